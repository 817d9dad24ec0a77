// The one request that checks a key: where it goes, what it never follows, and what each failure tells a person to do.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ProviderConfig } from '../../../src/engine/config/models.ts'
import { createHttp } from '../../../src/engine/net/http.ts'
import { checkProvider, listUrl } from '../../../src/engine/setup/check-provider.ts'
import { presets } from '../../../src/engine/setup/presets.ts'
import { type Reply, type SseServer, startSse } from '../../helpers/sse-server.ts'
import { freePort, goodKey, json, models } from './fixture.ts'

const today = '2026-11-30'
const servers: SseServer[] = []
const start = async (...args: Parameters<typeof startSse>) => {
	const server = await startSse(...args)
	servers.push(server)
	return server
}

const at = (baseURL: string, more: Partial<ProviderConfig> = {}): ProviderConfig => ({
	name: 'work',
	api: 'openai',
	baseURL,
	keyName: 'WORK_API_KEY',
	...more,
})

async function check(
	provider: ProviderConfig,
	o: { key?: string | null; env?: Record<string, string>; ms?: number; ca?: string } = {},
) {
	const http = createHttp({ env: o.env ?? {}, ...(o.ca ? { ca: o.ca } : {}) })
	try {
		return await checkProvider(
			http,
			{ provider, key: o.key === undefined ? goodKey : o.key },
			{ today, ms: o.ms ?? 2_000 },
		)
	} finally {
		http.close()
	}
}

const problemOf = (checked: Awaited<ReturnType<typeof check>>) => {
	if (checked.ok) throw new Error('it passed')
	expect(JSON.stringify(checked)).to.not.include(goodKey)
	return `${checked.problem.message} ${checked.problem.hint}`
}

describe('setup: the key check', () => {
	afterEach(async () => {
		for (const server of servers.splice(0)) await server.close()
	})

	it('asks for the list of models once, with the key in the form of each wire', async () => {
		const server = await start([models('m-1')])
		expect((await check(at(`${server.url}/v1`))).ok).to.equal(true)
		expect((await check(at(server.url, { api: 'anthropic', name: 'other' }))).ok).to.equal(true)
		const [openai, anthropic] = server.requests
		expect(server.requests).to.have.length(2)
		expect([openai!.method, openai!.path, openai!.headers.authorization]).to.deep.equal([
			'GET',
			'/v1/models',
			`Bearer ${goodKey}`,
		])
		expect([
			anthropic!.path,
			anthropic!.headers['x-api-key'],
			anthropic!.headers['anthropic-version'],
			anthropic!.headers.authorization,
		]).to.deep.equal(['/v1/models?limit=1000', goodKey, '2023-06-01', undefined])
	})

	it('sends no key where there is none, and the headers of models.json', async () => {
		const server = await start([models('m-1')])
		await check(at(`${server.url}/v1`, { headers: { 'x-team': 'a' } }), { key: null })
		expect(server.requests[0]!.headers).to.include({ 'x-team': 'a' }).and.not.have.property('authorization')
	})

	for (const status of [301, 302, 307, 308])
		it(`secret-11 a redirect (${status}) to another server is not followed: the key stays with the provider`, async () => {
			const other = await start([models('stolen')])
			const server = await start([{ status, headers: { location: `${other.url}/v1/models` } }])
			const text = problemOf(await check(at(`${server.url}/v1`)))
			expect(text).to.include('redirect').and.include(new URL(other.url).host)
			expect([server.requests.length, other.requests.length, other.connections()]).to.deep.equal([1, 0, 0])
		})

	it('secret-11 a redirect to the same server is not followed either, and a location that is no address is left out', async () => {
		const server = await start([{ status: 302, headers: { location: '/elsewhere' } }])
		problemOf(await check(at(`${server.url}/v1`)))
		expect(server.requests.map((one) => one.path)).to.deep.equal(['/v1/models'])
		const odd = await start([{ status: 302, headers: { location: 'http://%zz' } }])
		expect(problemOf(await check(at(`${odd.url}/v1`)))).to.include('redirect (302);')
	})

	it('secret-11 the whole check is bounded: no headers, and a body that never ends', async () => {
		for (const reply of [{ headersAfter: 'never' as const }, { body: ['{"data":[', { stall: true as const }] }]) {
			const server = await start([reply])
			const begun = performance.now()
			expect(problemOf(await check(at(`${server.url}/v1`), { ms: 250 }))).to.match(/within 250 ms/)
			expect(performance.now() - begun).to.be.below(2_000)
		}
	})

	it('every preset is asked at its own base URL, over https', () => {
		for (const preset of presets) {
			const url = listUrl({ name: preset.name, api: preset.api, baseURL: preset.baseURL, keyName: null })
			expect(url.startsWith('https://'), url).to.equal(true)
			expect(new URL(url).host, url).to.equal(new URL(preset.baseURL).host)
			expect(url, url).to.match(/\/models(\/user)?(\?limit=1000)?$/)
		}
	})

	it('OpenRouter is asked where a key is needed: its plain list answers to any', () => {
		const preset = presets.find((one) => one.name === 'openrouter')!
		expect(listUrl({ ...preset, keyName: null })).to.equal('https://openrouter.ai/api/v1/models/user')
		expect(listUrl({ ...preset, baseURL: 'https://own.example/v1', keyName: null })).to.equal(
			'https://own.example/v1/models',
		)
	})

	const cases: [string, Reply, RegExp, boolean][] = [
		[
			'401',
			json({ error: { message: `bad key ${goodKey}` } }, 401),
			/did not accept the key.*Copy the key again/s,
			false,
		],
		[
			'400 about the key',
			json([{ error: { code: 400, message: 'API key not valid', status: 'INVALID_ARGUMENT' } }], 400),
			/did not accept the key/,
			false,
		],
		['402', json({ error: { message: 'Insufficient Balance' } }, 402), /no credit.*Top up/s, true],
		[
			'billing in a 403',
			json({ error: { type: 'insufficient_quota', message: 'exceeded your current quota' } }, 403),
			/no credit/,
			true,
		],
		['403', json({ error: { message: 'forbidden' } }, 403), /does not allow this key.*permissions/s, false],
		['404', json({ error: 'nope' }, 404), /\/v1\/models does not know this address.*mostly ends with \/v1/s, false],
		['429', json({ error: { message: 'slow down' } }, 429), /limits the rate.*minute/s, false],
		['500', json({ error: { message: `oops ${goodKey}` } }, 500), /failed \(500\).*fault at the provider/s, false],
		[
			'a web page',
			{ headers: { 'content-type': 'text/html' }, body: '<!doctype html><title>hello</title>' },
			/a web page, not with a list/,
			false,
		],
		['other JSON', json({ hello: 1 }), /something else, not with a list/, false],
		['a cut answer', { body: ['{"data":[', { cut: true }] }, /connection.*broke|list of models/i, false],
	]
	for (const [name, reply, words, keyTaken] of cases)
		it(`says what to do: ${name}`, async () => {
			const server = await start([reply])
			const checked = await check(at(`${server.url}/v1`))
			expect(problemOf(checked)).to.match(words)
			expect(!checked.ok && checked.keyTaken).to.equal(keyTaken)
		})

	it('a server that wants a key although none was given says so', async () => {
		const server = await start([json({ error: 'no key' }, 401)])
		expect(problemOf(await check(at(`${server.url}/v1`), { key: null }))).to.match(/wants a key.*up with a key/s)
	})

	it('nothing listens: the server is to be started', async () => {
		expect(problemOf(await check(at(`http://127.0.0.1:${await freePort()}/v1`)))).to.match(
			/Nothing answers.*Start the server/s,
		)
	})

	it('offline, a name that does not exist: network, spelling, proxy', async () => {
		expect(problemOf(await check(at('https://no-such-host.invalid/v1')))).to.match(
			/was not found.*online.*HTTPS_PROXY/s,
		)
	})

	it('https to a server that speaks http: begin it with http://', async () => {
		const server = await start([models('m')])
		expect(problemOf(await check(at(`${server.url.replace('http:', 'https:')}/v1`)))).to.include('http://')
	})

	it('an own certificate authority: refused with what to set, taken when it is set', async () => {
		const read = (name: string) => readFileSync(join('test', 'fixtures', 'wire', 'tls', name), 'utf8')
		const server = await start([models('m-1')], { key: read('server.key'), cert: read('server.pem') })
		const url = `${server.url}/v1`
		expect(problemOf(await check(at(url))))
			.to.include('NODE_EXTRA_CA_CERTS')
			.and.include('"ca"')
		expect(server.requests).to.have.length(0)
		expect((await check(at(url), { ca: read('server.pem') })).ok).to.equal(true)
	})

	it('Z04 a remote provider is asked through the proxy, one of this machine is not; the password is never told', async () => {
		const lines: string[] = []
		const proxy = createServer((socket) => {
			socket.on('error', () => {})
			socket.once('data', (bytes) => {
				lines.push(bytes.toString('latin1'))
				socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
			})
		})
		await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
		const { port } = proxy.address() as { port: number }
		try {
			for (const name of ['HTTPS_PROXY', 'https_proxy']) {
				const text = problemOf(
					await check(at('https://llm.example.com/v1'), { env: { [name]: `http://me:pass-word-1@127.0.0.1:${port}` } }),
				)
				expect(text)
					.to.match(/wants a user and password.*HTTPS_PROXY/s)
					.and.not.include('pass-word-1')
			}
			expect(lines.map((line) => line.split('\r\n')[0])).to.deep.equal(
				Array(2).fill('CONNECT llm.example.com:443 HTTP/1.1'),
			)
			const skipped = problemOf(
				await check(at('https://llm.corp.invalid/v1'), {
					env: { HTTPS_PROXY: `http://127.0.0.1:${port}`, NO_PROXY: 'localhost,.corp.invalid' },
				}),
			)
			expect(skipped).to.include('was not found')
			const local = await start([models('m')])
			expect((await check(at(`${local.url}/v1`), { env: { HTTP_PROXY: `http://127.0.0.1:${port}` } })).ok).to.equal(
				true,
			)
			expect(lines).to.have.length(2)
		} finally {
			proxy.close()
		}
	})

	it('an abort of the person throws, it is no finding', async () => {
		const server = await start([{ headersAfter: 'never' }])
		const http = createHttp({ env: {} })
		const leave = new AbortController()
		setTimeout(() => leave.abort(), 50)
		let thrown: unknown
		await checkProvider(http, { provider: at(`${server.url}/v1`), key: null }, { today, signal: leave.signal }).catch(
			(error) => {
				thrown = error
			},
		)
		http.close()
		expect(thrown).to.be.an('error')
	})
})
