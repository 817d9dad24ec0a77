// The redactor on keys of many services, each in its own form, on known values in the forms that tools give them, and its time on bad input.
import { expect } from 'chai'
import { createRedactor } from '../../../src/engine/config/redact.ts'
import { secretPatterns } from '../../../src/engine/config/secret-patterns.ts'
import { numbers } from './fake-keys.ts'

const random = numbers(20_261_201)
const from = (set: string) => (length: number) =>
	Array.from({ length }, () => set[Math.floor(random() * set.length)]).join('')
const digits = '0123456789'
const lower = 'abcdefghijklmnopqrstuvwxyz'
const any = from(lower + lower.toUpperCase() + digits)
const word = from(`${lower + lower.toUpperCase() + digits}-_`)
const hex = from(`${digits}abcdef`)
const upper = from(lower.toUpperCase() + digits)
const low = from(lower + digits)
const num = from(digits)
const bytes = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)))
const b64 = (length: number) => bytes(length).toString('base64')
const uuid = () => [8, 4, 4, 4, 12].map(hex).join('-')
const lines = (length: number, join = '\n') =>
	b64(length)
		.match(/.{1,64}/g)!
		.join(join)

// Made at run time, so that no scanner finds a key in this file. `@` in a place stands for the secret.
const kinds: [string, () => string, string?][] = [
	['aws, more ids', () => `ABIA${from('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')(16)}`],
	['aws, bedrock', () => `ABSK${b64(90)}`],
	['aws configure', () => any(40), 'aws configure set aws_secret_access_key @'],
	['azure client secret', () => `${any(3)}8Q~${word(34)}`],
	['azure, new form', () => `${any(52)}JQQJ99${any(22)}`],
	['gitlab, feed', () => `glft-${word(20)}`],
	['gitlab, service', () => `glsoat-${word(20)}`],
	['gitlab, agent', () => `glagent-${word(50)}`],
	['gitlab, runner', () => `GR1348941${any(20)}`],
	['slack, browser', () => `xoxc-${num(12)}-${num(12)}-${hex(64)}`],
	['slack, workflow', () => `T${upper(8)}/A${upper(8)}/${num(18)}/${any(24)}`, 'https://hooks.slack.com/workflows/@'],
	['stripe, organisation', () => `sk_org_live_${any(40)}`],
	['npm, basic', () => b64(30), '_auth=@'],
	['yarn, basic', () => `user:a1${any(20)}`, 'npmAuthIdent: "@"'],
	['digitalocean, refresh', () => `dor_v1_${hex(64)}`],
	['heroku, id as key', uuid, 'HEROKU_API_KEY=@'],
	['server token, id as key', uuid, 'X-Server-Token: @'],
	['telegram in its address', () => `${num(9)}:AA${word(33)}`, 'https://api.telegram.org/bot@/getMe'],
	['discord', () => `N${word(23)}.${word(6)}.${word(27)}`],
	['discord webhook', () => `${num(18)}/${word(68)}`, 'https://discord.com/api/webhooks/@'],
	['mailgun, private', () => `${hex(32)}-${hex(8)}-${hex(8)}`],
	['mailchimp', () => `${hex(32)}-us12`],
	['brevo mail', () => `xsmtpsib-${hex(64)}-${any(16)}`],
	['resend', () => `re_${any(8)}_${any(24)}`],
	['shopify, private app', () => `shppa_${hex(32)}`],
	['square', () => `EAAA${word(60)}`],
	['vercel', () => `vcp_${any(56)}`],
	['vercel store', () => `vercel_blob_rw_${any(16)}_${any(30)}`],
	['vault, recovery', () => `hvr.${word(60)}`],
	['age, plugin', () => `AGE-PLUGIN-YUBIKEY-1${upper(40)}`],
	['age, lower case', () => `age-secret-key-1${low(58)}`],
	['putty', () => lines(200), 'Private-Lines: 7\n@\nPrivate-MAC: 00'],
	['ssh2', () => lines(300), '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n@\n---- END SSH2 ENCRYPTED PRIVATE KEY ----'],
	[
		'a key with line numbers, cut off',
		() => lines(300, '\n2\t').replace(/^/, '2\t'),
		'1\t-----BEGIN RSA PRIVATE KEY-----\n@',
	],
	['a key in base64', () => Buffer.from(`-----BEGIN EC PRIVATE KEY-----\n${lines(120)}\n`).toString('base64')],
	['client key of a cluster', () => b64(600), 'client-key-data: @'],
	['encrypted token', () => `eyJhbGciOiJSU0EtT0FFUCJ9.${word(60)}.${word(16)}.${word(60)}.${word(22)}`],
	[
		'token of JSON with spaces',
		() => `${Buffer.from('{ "alg": "HS256" }').toString('base64url')}.${word(30)}.${word(43)}`,
	],
	['a token as the user of an address', () => `a1B${any(30)}`, 'https://@@git.internal/x.git'],
	['new relic', () => `${hex(36)}NRAL`],
	['okta', () => `00${word(40)}`, 'Authorization: SSWS @'],
	['a header without a word', () => `a1B${any(40)}`, 'Authorization: @'],
	['a header by a call', () => any(40), "req.setHeader('Authorization', 'Bearer @')"],
	['a header in a template', () => any(40), 'headers: { Authorization: `Bearer @` }'],
	['a cookie', () => `a1B${any(40)}`, 'Cookie: lang=en; session=@; theme=x'],
	['mapbox', () => `sk.eyJ1${word(50)}.${word(22)}`],
	['asana', () => `1/${num(16)}:${hex(32)}`],
	['dropbox', () => `sl.${word(130)}a1B`],
	['plaid', () => `access-sandbox-${uuid()}`],
	['flutterwave', () => `FLWSECK-${hex(32)}-X`],
	['contentful', () => `CFPAT-${word(43)}`],
	['airtable', () => `pat${any(14)}.${hex(64)}`],
	['crates.io', () => `cio${any(32)}`],
	['nuget', () => `oy2${low(43)}`],
	['clojars', () => `CLOJARS_${low(60)}`],
	['packagist', () => `packagist_uut_${hex(60)}`],
	['artifactory', () => `AKCp${any(69)}`],
	['circleci', () => `CCIPAT_${any(22)}_${hex(40)}`],
	['buildkite', () => `bkua_${hex(40)}`],
	['sonar', () => `squ_${hex(40)}`],
	['sourcegraph', () => `sgp_${hex(16)}_${hex(40)}`],
	['launchdarkly', () => `sdk-${uuid()}`],
	['render', () => `rnd_${any(32)}`],
	['alibaba', () => `LTAI${any(20)}`],
	['pinecone', () => `pcsk_${any(5)}_${any(60)}`],
	['weights and biases', () => `wandb_v1_${any(77)}`],
	['voyage', () => `pa-a1B${word(40)}`],
	['firecrawl', () => `fc-a1b2${hex(28)}`],
	['elevenlabs', () => `sk_a1b2${hex(44)}`],
	['1password', () => `A3-${upper(6)}-${[6, 5, 5, 5, 5].map(upper).join('-')}`],
	['rails', () => hex(128), 'secret_key_base: @'],
	['laravel', () => `${b64(32)}`, 'APP_KEY=base64:@'],
	['typed constant', () => any(32), 'const apiKey: string = "@"'],
	['rust', () => any(32), 'let api_key: &str = "@";'],
	['property', () => any(32), 'public string ApiKey { get; set; } = "@";'],
	['setter', () => any(32), 'client.setApiKey("@")'],
	['define', () => any(32), "define('DB_PASSWORD', '@');"],
	['name and value', () => any(24), '- name: DB_PASSWORD\n  value: "@"'],
	['attributes', () => any(24), '<add key="ApiKey" value="@" />'],
	['image file', () => any(32), 'ENV MY_SECRET @'],
	['fish', () => any(32), 'set -gx MY_SECRET @'],
	['pgpass', () => `a1${any(20)}`, 'db.internal:5432:app:admin:@'],
	['netrc, default', () => `a1${any(20)}`, 'default login me password @'],
	['an unquoted password with a digit', () => 'aX8rwxGtEMSty8aB', 'password: @'],
]

describe('config: redaction of many services', () => {
	it('secret-04 keys in the form of their service go, wherever they stand', () => {
		const missed: string[] = []
		for (const [kind, make, place] of kinds)
			for (let round = 0; round < 5; round++) {
				const secret = make()
				const places = place ? [place] : ['@', 'using @, retry', '{"value": "@"}', "connect('@')"]
				for (const one of places) {
					const text = one.replace('@', () => secret)
					const redactor = createRedactor('seed')
					const safe = redactor.redact(text)
					if (safe.includes(secret.slice(-16))) missed.push(`${kind}: ${text.slice(0, 60)}`)
					expect(redactor.restore(safe), kind).to.deep.equal({ text, unknown: [] })
					expect(redactor.redact(safe), kind).to.equal(safe)
				}
			}
		// What is random may look like a word now and then.
		expect(missed.length, missed.join('\n')).to.be.at.most(4)
	})

	it('names and code of a like form stay', () => {
		const redactor = createRedactor('seed')
		for (const text of [
			'return s.ReadUint24LengthPrefixed((*cryptobyte.String)(out))',
			'self._auth = HTTPBasicAuth(user, password)',
			'const password = base64Decode',
			'MyModuleWithALongNameHere1.module.someVeryLongFunctionName2',
			'expect(result).toHaveProperty("token", "identifier-like-value")',
			'new URL("https://example-user-name-of-some-length@example.com/")',
			'session=currentSessionOfTheUser',
			'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
			'id=123e4567-e89b-12d3-a456-426614174000',
			'import { x } from "./api-123e4567.js"',
			'Authorization: getAuthorizationHeader(request)',
			'throw new InvalidTokenError("unexpected character in the input")',
		])
			expect(redactor.redact(text), text).to.equal(text)
	})

	it('a known value goes in every form that tools give it', () => {
		const value = 'p/w+é ~(x)~"1234567890abcdefghij?k&l=m'
		const url = encodeURIComponent(value)
		const json = JSON.stringify(value)
		const forms: [string, string][] = [
			['escapes in lower case', url.replace(/%../g, (code) => code.toLowerCase())],
			['a form', new URLSearchParams({ v: value }).toString()],
			['a strict encoder', url.replace(/[()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)],
			['slashes as they are', url.replaceAll('%2F', '/')],
			['JSON in ASCII', json.replace('é', '\\u00e9')],
			['JSON with slashes escaped', json.replaceAll('/', '\\/')],
			['JSON in JSON', JSON.stringify(json)],
		]
		for (const head of ['', 'a', 'ab']) {
			forms.push([`base64url after ${head}`, Buffer.from(`${head}${value}`).toString('base64url')])
			const long = Buffer.from(`${head}${'- '.repeat(20)}${value}`).toString('base64')
			forms.push([`base64 in lines after ${head}`, long.replace(/.{76}/g, '$&\n')])
			forms.push([`base64 in lines of a mail after ${head}`, long.replace(/.{64}/g, '$&\r\n')])
		}
		for (const [kind, text] of forms) {
			const redactor = createRedactor('seed')
			redactor.add('MY_KEY', value)
			const safe = redactor.redact(text)
			expect(safe, kind).to.include('[redacted:my-key:')
			expect(safe, kind).not.to.match(/567890abc|NTY3ODkw|U2Nzg5M|1Njc4OT/)
			expect(redactor.restore(safe), kind).to.deep.equal({ text, unknown: [] })
		}
	})

	it('of a known value of many lines each secret line goes by itself', () => {
		const redactor = createRedactor('seed')
		const body = lines(300)
		redactor.add('DEPLOY_KEY', `-----BEGIN X-----\n${body}\n-----END X-----\n`)
		for (const line of body.split('\n').filter((one) => one.length >= 24))
			expect(redactor.redact(`2\t${line}`)).to.match(/^2\t\[redacted:deploy-key:/)
		expect(redactor.redact('-----END X-----')).to.equal('-----END X-----')
	})

	it('no expression takes more than linear time on repeated beginnings', () => {
		const seconds = (work: () => void): number => {
			const began = performance.now()
			work()
			return (performance.now() - began) / 1000
		}
		for (const { kind, anchors, find } of secretPatterns)
			for (const anchor of anchors)
				for (const tail of ['', '-', '.', '_', ' ', '\n', '/', ':', '=', '"', 'a', '-a', 'A1', 'a ', '@'])
					for (const text of [
						(anchor + tail).repeat(60_000 / (anchor.length + tail.length)),
						anchor + tail.repeat(60_000),
					])
						expect(
							seconds(() => text.replace(find, (found) => found)),
							`${kind} ${anchor}${tail}`,
						).to.be.below(0.5)
	}).timeout(120_000)
})
