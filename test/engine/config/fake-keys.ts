// Keys that look real and are none, made at run time from a seed: no scanner finds one in this repository. For the redactor's rates.

/** A small generator of numbers; the same seed gives the same keys. */
export function numbers(seed: number): () => number {
	let state = seed >>> 0
	return () => {
		state = (state + 0x6d2b79f5) >>> 0
		let t = state
		t = Math.imul(t ^ (t >>> 15), t | 1)
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
	}
}

const digits = '0123456789'
const hex = `${digits}abcdef`
const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const lower = upper.toLowerCase()
const base62 = upper + lower + digits
const base64url = `${base62}-_`
const base64 = `${base62}+/`

export interface FakeKey {
	kind: string
	/** What must not be seen. */
	secret: string
	/** A text as tools print or files hold it, with the secret in it. */
	text: string
}

type Random = () => number
type Make = (random: Random) => string
type Put = (secret: string) => string

const chars =
	(set: string, length: number): Make =>
	(random) =>
		Array.from({ length }, () => set[Math.floor(random() * set.length)]).join('')
const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!
const after =
	(prefix: string, set: string, length: number): Make =>
	(random) =>
		prefix + chars(set, length)(random)
const oneOf =
	(...list: Make[]): Make =>
	(random) =>
		pick(random, list)(random)

/** A key that says by itself what it is: it may stand anywhere. */
const anywhere: Put[] = [
	(k) => k,
	(k) => `export SERVICE=${k}\n`,
	(k) => `{"value": "${k}", "n": 1}`,
	(k) => `service:\n  - ${k}\n`,
	(k) => `2026-01-02T03:04:05Z INFO using ${k}, retry 1`,
	(k) => `tool --with ${k} --verbose`,
	(k) => `+const client = connect('${k}')`,
	(k) => `GET /v1/things?q=${k}&page=2`,
	(k) => `use \`${k}\` (not the old one).`,
	(k) => JSON.stringify({ log: `{"k":"${k}"}` }),
	(k) => `<entry>${k}</entry>`,
]

/** A value that only its name gives away. */
const named: Put[] = [
	(k) => `DB_PASSWORD=${k}`,
	(k) => `export API_TOKEN="${k}"`,
	(k) => `{"client_secret": "${k}"}`,
	(k) => `database:\n  password: ${k}\n`,
	(k) => `const apiKey = '${k}'`,
	(k) => `password = "${k}"  # staging`,
	(k) => `spring.datasource.password=${k}`,
	(k) => `deploy --token ${k} --region eu`,
	(k) => `deploy --password=${k} --region eu`,
	(k) => `https://service.internal/v1?access_token=${k}&page=2`,
	(k) => `X-Api-Key: ${k}`,
	(k) => `curl -H "X-Auth-Token: ${k}" https://service.internal`,
	(k) => `Authorization: Bearer ${k}`,
	(k) => `curl -u deploy:${k} https://service.internal`,
	(k) => `machine service.internal login deploy password ${k}`,
	(k) => JSON.stringify({ body: `{"password":"${k}"}` }),
	(k) => `Server=db;User Id=sa;Password=${k};Encrypt=true`,
	(k) => `<password>${k}</password>`,
	(k) => `secret := "${k}"`,
	(k) => `"auth": "${k}"`,
	(k) => `//registry.internal/:_auth=${k}`,
	(k) => `CREATE USER app IDENTIFIED BY '${k}'`,
	(k) => `ALTER ROLE app WITH PASSWORD '${k}'`,
	(k) => `-DstorePassword=${k} -jar x.jar`,
	(k) => `Enter the passphrase: ${k}`,
	(k) => `redis-cli -a ${k} ping`,
	(k) => `PGPASSWORD=${k} psql -h db`,
	(k) => `AWS_SESSION_TOKEN=${k}`,
]

const jwt: Make = (random) => {
	const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
	return `${part({ alg: pick(random, ['HS256', 'RS256', 'ES512']), typ: 'JWT' })}.${part({ sub: chars(digits, 10)(random), iat: 1.7e9 })}.${chars(base64url, 43)(random)}`
}

const pem: Make = (random) => {
	const name = pick(random, ['RSA ', 'EC ', 'OPENSSH ', 'ENCRYPTED ', ''])
	const lines = Array.from({ length: 3 + Math.floor(random() * 20) }, () => chars(base64, 64)(random))
	return `-----BEGIN ${name}PRIVATE KEY-----\n${[...lines, `${chars(base64, 40)(random)}==`].join('\n')}\n-----END ${name}PRIVATE KEY-----`
}

/** The 20 kinds that the rate is measured on: how one is made and where it may stand. */
export const kinds: readonly [kind: string, make: Make, places: readonly Put[]][] = [
	['anthropic', after('sk-ant-api03-', base64url, 93), anywhere],
	[
		'openai',
		oneOf(after('sk-proj-', base64url, 120), after('sk-', base62, 48), after('sk-svcacct-', base64url, 80)),
		anywhere,
	],
	[
		'other models',
		oneOf(
			after('sk-or-v1-', hex, 64),
			after('gsk_', base62, 52),
			after('xai-', base62, 80),
			after('hf_', base62, 34),
			after('pplx-', base62, 48),
			after('sk-', hex, 32),
			after('nvapi-', base64url, 64),
			after('csk-', lower + digits, 48),
		),
		anywhere,
	],
	[
		'google',
		oneOf(after('AIza', base64url, 35), after('ya29.', base64url, 90), after('GOCSPX-', base64url, 28)),
		anywhere,
	],
	['aws key id', oneOf(after('AKIA', `${upper}234567`, 16), after('ASIA', `${upper}234567`, 16)), anywhere],
	[
		'aws secret',
		chars(base64, 40),
		[
			(k) => `aws_secret_access_key = ${k}`,
			(k) => `export AWS_SECRET_ACCESS_KEY=${k}`,
			(k) => `"SecretAccessKey": "${k}",`,
			(k) => `secretAccessKey: '${k}'`,
		],
	],
	[
		'azure',
		(random) => `${chars(base64, 86)(random)}==`,
		[
			(k) => `DefaultEndpointsProtocol=https;AccountName=x;AccountKey=${k};EndpointSuffix=core.internal`,
			(k) => `SharedAccessKeyName=r;SharedAccessKey=${k}`,
			(k) => `AZURE_STORAGE_KEY=${k}`,
		],
	],
	[
		'github',
		oneOf(
			after('ghp_', base62, 36),
			after('gho_', base62, 36),
			after('ghs_', base62, 36),
			(random) => `github_pat_${chars(base62, 22)(random)}_${chars(base62, 59)(random)}`,
		),
		anywhere,
	],
	[
		'gitlab',
		oneOf(after('glpat-', base64url, 20), after('gldt-', base64url, 20), after('glrt-', base64url, 20)),
		anywhere,
	],
	[
		'slack',
		oneOf(
			(random) => `xoxb-${chars(digits, 12)(random)}-${chars(digits, 13)(random)}-${chars(base62, 24)(random)}`,
			after('xoxp-', `${digits}-`, 40),
			(random) => `xapp-1-${chars(upper + digits, 11)(random)}-${chars(digits, 13)(random)}-${chars(hex, 64)(random)}`,
		),
		anywhere,
	],
	[
		'payment',
		oneOf(
			after('sk_live_', base62, 24),
			after('rk_live_', base62, 99),
			after('whsec_', base62, 32),
			after('sq0csp-', base64url, 43),
		),
		anywhere,
	],
	[
		'packages',
		oneOf(
			after('npm_', base62, 36),
			after('pypi-AgEIcHlwaS5vcmc', base64url, 150),
			after('rubygems_', hex, 48),
			after('dckr_pat_', base64url, 27),
		),
		anywhere,
	],
	[
		'mail and messages',
		oneOf(
			(random) => `SG.${chars(base64url, 22)(random)}.${chars(base64url, 43)(random)}`,
			after('SK', hex, 32),
			(random) => `${chars('123456789', 9)(random)}:AA${chars(base64url, 33)(random)}`,
			(random) => `MT${chars(base62, 24)(random)}.G${chars(base62, 5)(random)}.${chars(base64url, 38)(random)}`,
		),
		anywhere,
	],
	[
		'clouds',
		oneOf(
			after('dop_v1_', hex, 64),
			after('dapi', hex, 32),
			after('glsa_', base62, 32),
			after('nfp_', base62, 36),
			after('sbp_', hex, 40),
			after('tskey-auth-', base62, 30),
			after('FlyV1 fm2_', base64, 120),
			after('pul-', hex, 40),
			after('NRAK-', upper + digits, 27),
			after('shpat_', hex, 32),
		),
		anywhere,
	],
	[
		'vaults',
		oneOf(
			after('hvs.', base64url, 90),
			after('AGE-SECRET-KEY-1', 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58),
			after('dp.pt.', base62, 43),
			after('ops_eyJ', base64url, 200),
			(random) => `${chars(base62, 14)(random)}.atlasv1.${chars(base64url, 67)(random)}`,
		),
		anywhere,
	],
	[
		'work tools',
		oneOf(
			after('lin_api_', base62, 40),
			after('ntn_', base62, 46),
			after('figd_', base64url, 40),
			(random) => `PMAK-${chars(hex, 24)(random)}-${chars(hex, 34)(random)}`,
			after('ATATT3xFfGF0', base64url, 180),
			(random) => `sntrys_eyJ${chars(base64, 120)(random)}_${chars(base64, 43)(random)}`,
		),
		anywhere,
	],
	['jwt', jwt, anywhere],
	[
		'private key block',
		pem,
		[
			(k) => k,
			(k) => `key: |\n${k}\n`,
			(k) => JSON.stringify({ private_key: k }),
			(k) => `KEY="${k}"`,
			(k) => k.replaceAll('\n', '\r\n'),
			(k) => k.replace(/^/gm, '    '),
			(k) => k.replace(/^/gm, '+'),
			(k) => k.slice(0, k.length * 0.6),
		],
	],
	[
		'password in an address',
		oneOf(chars(base62, 16), chars(base64url, 24), chars(`${base62}!$*.`, 12)),
		[
			(k) => `postgres://app:${k}@db.internal:5432/app`,
			(k) => `DATABASE_URL=mysql://root:${k}@10.0.0.4/app?x=1`,
			(k) => `redis://:${k}@cache.internal`,
			(k) => `remote: https://oauth2:${k}@git.internal/x.git`,
			(k) => `"amqp://u:${k}@mq.internal"`,
		],
	],
	[
		'named value',
		oneOf(
			chars(base62, 20),
			chars(base62, 32),
			chars(hex, 40),
			chars(base64url, 43),
			(random) => `${chars(base62, 10)(random)}${pick(random, ['!', '%', '#', '*', '^'])}${chars(base62, 6)(random)}`,
			chars(lower + digits, 24),
		),
		named,
	],
]

/** `count` keys, spread evenly over the kinds. */
export function fakeKeys(seed: number, count: number): FakeKey[] {
	const random = numbers(seed)
	return Array.from({ length: count }, (_, index) => {
		const [kind, make, places] = kinds[index % kinds.length]!
		const secret = make(random)
		return { kind, secret, text: pick(random, places)(secret) }
	})
}

/** Whether a text shows the secret, or an end of it of a third and at least six characters. */
export function leaks(text: string, { kind, secret, text: original }: FakeKey): boolean {
	if (kind === 'private key block')
		return (original.match(/[A-Za-z0-9+/]{40,}/g) ?? []).some((line) => text.includes(line))
	const size = Math.max(6, Math.ceil(secret.length / 3))
	return (
		text.includes(secret.slice(-size)) ||
		text.includes(
			secret
				.slice(0, size)
				.replace(/^[a-zA-Z]+[-_.]/, '')
				.padEnd(size, '\0'),
		) ||
		text.includes(secret)
	)
}
