// The redactor: what goes, what stays, marks that come back.
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { createRedactor } from '../../../src/engine/config/redact.ts'
import { fakeKeys, kinds as fakeKinds, leaks } from './fake-keys.ts'

const letters = (length: number, set = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789') =>
	Array.from(randomBytes(length), (byte) => set[byte % set.length]).join('')
const fake = (length: number) => `${letters(length - 4)}a7B3`
const token = () =>
	`${Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')}.${Buffer.from('{"sub":"1234567890"}').toString('base64url')}.${fake(43)}`

// Made at run time, so that no scanner finds a key in this file.
const kinds: [string, () => string][] = [
	['anthropic', () => `sk-ant-api03-${fake(80)}`],
	['openai', () => `sk-proj-${fake(60)}`],
	['openai, old', () => `sk-${fake(48)}`],
	['openrouter', () => `sk-or-v1-${letters(64, '0123456789abcdef')}`],
	['github', () => `ghp_${fake(36)}`],
	['github, fine', () => `github_pat_${fake(70)}`],
	['gitlab', () => `glpat-${fake(20)}`],
	['aws id', () => `AKIA${letters(16, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}`],
	['google', () => `AIza${fake(35)}`],
	['slack', () => `xoxb-${letters(12, '0123456789')}-${fake(24)}`],
	['stripe', () => `sk_live_${fake(24)}`],
	['npm', () => `npm_${fake(36)}`],
	['hugging face', () => `hf_${fake(34)}`],
	['groq', () => `gsk_${fake(52)}`],
	['sendgrid', () => `SG.${fake(22)}.${fake(43)}`],
	['jwt', token],
	['telegram', () => `12345678:AA${fake(33)}`],
	['vault', () => `hvs.${fake(30)}`],
	['private key', () => `-----BEGIN RSA PRIVATE KEY-----\n${fake(64)}\n${fake(64)}\n-----END RSA PRIVATE KEY-----`],
	['cut private key', () => `-----BEGIN PRIVATE KEY-----\n${fake(64)}\n${fake(64)}`],
	['escaped private key', () => `-----BEGIN PRIVATE KEY-----\\n${fake(64)}\\n-----END PRIVATE KEY-----`],
]

const inContext: [string, (secret: string) => string][] = [
	['url', (secret) => `postgres://user:${secret}@db.example:5432/x`],
	['env file', (secret) => `DB_PASSWORD=${secret}`],
	['json', (secret) => `{"client_secret": "${secret}"}`],
	['yaml', (secret) => `api_key: ${secret}`],
	['code', (secret) => `const apiKey = '${secret}'`],
	['header', (secret) => `Authorization: Bearer ${secret}`],
	['aws secret', (secret) => `aws_secret_access_key = ${(secret + secret).slice(0, 40)}`],
	['azure', (secret) => `AccountKey=${(secret + secret + secret).slice(0, 86)}==;x`],
	['npmrc', (secret) => `//registry.example/:_authToken=${secret}`],
]

describe('config: redaction', () => {
	it('a key that is added later goes out of a long text that had been clean before', () => {
		const redactor = createRedactor('seed')
		const text = `${'a line of code\n'.repeat(300)}and my-own-password here`
		expect(redactor.redact(text)).to.equal(text)
		expect(redactor.redact(text)).to.equal(text)
		redactor.add('PASSWORD', 'my-own-password')
		const out = redactor.redact(text)
		expect(out).to.not.include('my-own-password')
		expect(redactor.redact(out)).to.equal(out)
		for (let i = 0; i < 6; i++) redactor.redact(`${text}${i}`)
		expect(redactor.redact(text)).to.equal(out)
	})

	it('secret-04 keys of the common kinds become marks, wherever they stand, and come back', () => {
		for (const [kind, make] of kinds) {
			const redactor = createRedactor('seed')
			const secret = make()
			for (const text of [secret, `a ${secret} b`, `"${secret}"`, `export X=${secret}\n`, `key is:\n${secret}\n`]) {
				const safe = redactor.redact(text)
				expect(safe, kind).to.match(/\[redacted:[a-z0-9-]+:[0-9a-f]{6}\]/)
				expect(safe, kind).not.to.include(secret.slice(-12))
				expect(redactor.redact(safe), kind).to.equal(safe)
				expect(redactor.restore(safe), kind).to.deep.equal({ text, unknown: [] })
			}
		}
	})

	it('secret-04 of 200 seeded fake keys of 20 kinds at least 95 % are caught, and of each kind alone', () => {
		const missed = (count: number, seed: number) =>
			fakeKeys(seed, count).filter((key) => leaks(createRedactor('seed').redact(key.text), key))
		expect(fakeKinds).to.have.length(20)
		expect(missed(200, 20_261_130).map((key) => key.kind)).to.have.length.at.most(10)
		// What is not touched counts as missed: the measure itself works.
		expect(fakeKeys(1, 200).filter((key) => leaks(key.text, key))).to.have.length(200)
		const by = new Map<string, number>()
		for (const { kind } of missed(2000, 7)) by.set(kind, (by.get(kind) ?? 0) + 1)
		for (const [kind, count] of by) expect(count, kind).to.be.at.most(5)
	})

	it('secret-04 what is redacted comes back, whatever the kind and the place', () => {
		for (const { kind, text } of fakeKeys(3, 600)) {
			const redactor = createRedactor('seed')
			const safe = redactor.redact(text)
			expect(redactor.restore(safe), kind).to.deep.equal({ text, unknown: [] })
			expect(redactor.redact(safe), kind).to.equal(safe)
		}
	})

	it('secret-04 a password that is also the user before it goes, not the user', () => {
		const redactor = createRedactor('seed')
		expect(redactor.redact('curl -u app12345:app12345 https://h')).to.match(
			/^curl -u app12345:\[redacted:value:\w+\] https/,
		)
		expect(redactor.redact('machine app12345 login app12345 password app12345')).to.match(
			/login app12345 password \[redacted/,
		)
	})

	it('ordinary source trees raise at most one alarm in 10,000 lines', async () => {
		for (const tree of ['zod/src', '@oclif/core', '@types/node']) {
			const base = new URL(`../../../node_modules/${tree}/`, import.meta.url)
			let lines = 0
			let alarms = 0
			for (const name of await readdir(base, { recursive: true })) {
				if (!/\.(?:[cm]?[jt]s|json|md)$/.test(name)) continue
				const text = await readFile(new URL(name, base), 'utf8').catch(() => '')
				lines += text.split('\n').length
				alarms += createRedactor('seed').redact(text).split('[redacted:').length - text.split('[redacted:').length
			}
			expect(lines, tree).to.be.above(5000)
			expect(alarms / lines, tree).to.be.at.most(1 / 10_000)
		}
	})

	it('secret-04 values after a name that says so, in files, code and headers', () => {
		for (const [kind, put] of inContext) {
			const redactor = createRedactor('seed')
			const text = put(fake(28))
			const safe = redactor.redact(text)
			expect(safe, kind).to.include('[redacted:').and.not.equal(text)
			expect(redactor.restore(safe).text, kind).to.equal(text)
			expect(redactor.redact(safe), kind).to.equal(safe)
		}
	})

	it('a known value goes everywhere: plain, in a URL, in JSON and in base64', () => {
		const redactor = createRedactor('seed')
		const value = 'p@ss "word"/+é1234'
		redactor.add('MY_KEY', ` ${value}\n`)
		for (const text of [value, `x${value}y`, encodeURIComponent(value), JSON.stringify({ a: value })])
			expect(redactor.redact(text), text).to.include('[redacted:my-key:').and.not.include('1234')
		for (const head of ['', 'a', 'ab', 'abc']) {
			const coded = Buffer.from(`${head}${value}`).toString('base64')
			expect(redactor.redact(coded), head).to.include('[redacted:my-key:')
			expect(redactor.restore(redactor.redact(coded)).text).to.equal(coded)
		}
	})

	it('a longer key that holds a shorter one leaves no rest, and very short values are no secrets', () => {
		const redactor = createRedactor('seed')
		redactor.add('A', 'abcdef')
		redactor.add('B', 'abcdefghijkl')
		redactor.add('C', 'on')
		expect(redactor.redact('abcdefghijkl on')).to.match(/^\[redacted:b:[0-9a-f]{6}\] on$/)
	})

	it('marks are the same in a session, differ between sessions, and an unknown one is named', () => {
		const secret = kinds[0]![1]()
		const one = createRedactor('one')
		expect(one.redact(secret)).to.equal(one.redact(`${secret}`))
		expect(one.redact(secret)).not.to.equal(createRedactor('two').redact(secret))
		const mark = '[redacted:value:abcdef]'
		expect(one.restore(`a ${mark}`)).to.deep.equal({ text: `a ${mark}`, unknown: [mark] })
		expect(one.redact(`PASSWORD=${mark}`)).to.equal(`PASSWORD=${mark}`)
	})

	it('a secret with $& and the like is put in as it is', () => {
		const redactor = createRedactor('seed')
		redactor.add('K', "a$&b$'c$1d")
		expect(redactor.restore(redactor.redact("x a$&b$'c$1d y")).text).to.equal("x a$&b$'c$1d y")
	})

	it('what is no secret stays: hashes, ids, lock files, code, examples, images', async () => {
		const redactor = createRedactor('seed')
		const harmless = [
			'commit 3f786850e387550fdab836ed7e6dc881de23001b',
			'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
			'"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
			'id: 123e4567-e89b-12d3-a456-426614174000',
			`data:image/png;base64,${randomBytes(300).toString('base64')}`,
			'const token = await getToken()',
			'password: string',
			'API_KEY=your-api-key-here',
			'api_key: ${API_KEY}',
			'token = process.env.TOKEN',
			'secret: <your secret>',
			'if (token === undefinedValue) return',
			'tokenizer: BertWordPieceTokenizer',
			'max_tokens: 128000',
			'tokens = 1234567890',
			'https://user@example.com/x',
			'http://localhost:3000/a@b',
			'const contextToken = findPrecedingToken(position)',
			'password = os.environ["DB_PASSWORD"]',
			'the secret: patience and time',
			'sk-learn-contrib-packages',
			'AKIA is a prefix',
			'passwordField: this.form.get("password")',
			'ssh-rsa-cert-v01@openssh.com',
			'const exclamationToken = !questionToken && !other',
			'max_tokens: "The reply reached the model\'s output limit, so it ends here."',
			'https://user:secret1@example.com/x',
			'-----BEGIN PRIVATE KEY-----\\n${key}\\n-----END PRIVATE KEY-----',
			'docker run --user 1000:1000 image',
			'chown -u www-data:www-data /srv',
			'git push --force-with-lease --token-file /etc/x1',
			'tool --token $TOKEN1 --password "${PASSWORD1}" --secret <secret1>',
			'publicKey: "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE9"',
			'const cacheKey = buildCacheKeyFromParts1(a, b)',
			'sortKey: "2026-01-02T03:04:05.000Z-abcdef"',
			'<Password>type your password</Password>',
			'"auth": "none-whatsoever"',
			"when the user types the password 'wrong' three times",
			'mysql -uroot -p',
		]
		for (const text of harmless) expect(redactor.redact(text), text).to.equal(text)
		for (const file of ['package-lock.json', 'src/engine/ports.ts', 'node_modules/zod/package.json']) {
			const text = await readFile(new URL(`../../../${file}`, import.meta.url), 'utf8')
			expect(redactor.redact(text) === text, file).to.equal(true)
		}
	})

	it('any text: redaction is idempotent and restores to itself', () => {
		const pieces = fc.constantFrom(
			'password=',
			'token: "',
			'[redacted:',
			'value:abcdef]',
			'sk-ant-',
			'eyJ',
			'://a:',
			'@b',
			'-----BEGIN PRIVATE KEY-----',
			' --token ',
			' -u a:',
			'<password>',
			'</',
			"PASSWORD '",
			'\\"',
			'MY_KEY=',
			'"auth": "',
			' ',
			'\n',
			fake(30),
			'x',
		)
		fc.assert(
			fc.property(fc.array(fc.oneof(pieces, fc.string()), { maxLength: 12 }), (parts) => {
				const redactor = createRedactor('seed')
				const text = parts.join('')
				const safe = redactor.redact(text)
				expect(redactor.redact(safe)).to.equal(safe)
				const { text: back, unknown } = redactor.restore(safe)
				if (unknown.length === 0) expect(back).to.equal(text)
			}),
			{ numRuns: 200 },
		)
	})

	it('hostile and large texts stay fast', async () => {
		const redactor = createRedactor('seed')
		redactor.add('K', fake(40))
		const texts = [
			'a'.repeat(1e6),
			'token = '.repeat(1e5),
			`${'x://'.repeat(1e5)}a:b`,
			'-----BEGIN PRIVATE KEY-----\n'.repeat(1e4),
			`-----BEGIN PRIVATE KEY-----\n${'A'.repeat(5e5)}!`,
			'eyJ'.repeat(2e5),
			'sk-'.repeat(2e5),
			`authorization: bearer ${' '.repeat(2e5)}`,
			`_authToken${' '.repeat(2e5)}`,
			'secret="'.repeat(1e5),
			'secret=\\\\\\"'.repeat(1e5),
			'machine x login y '.repeat(5e4),
			'<password>'.repeat(1e5),
			`<${'password'.repeat(1e5)}>`,
			' --token'.repeat(1e5),
			` -${'-'.repeat(5e5)}`,
			' -u a'.repeat(1e5),
			'redis-cli '.repeat(1e5),
			'mysql '.repeat(1e5),
			'identified by with '.repeat(5e4),
			'aKey='.repeat(2e5),
			`A_KEY=${'a1B/'.repeat(2e5)}`,
			`"auth": "${'a'.repeat(1e6)}`,
			'AAAAAAAAAAAAAA.atlasv1.'.repeat(5e4),
			'dapi'.repeat(2e5),
		]
		const began = performance.now()
		for (const text of texts) redactor.redact(text)
		expect(performance.now() - began).to.be.below(5000)
	})
})
