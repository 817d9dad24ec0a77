// The one way out: proxies, certificates, redirects, timeouts, aborts, kept connections.
import { readFileSync } from 'node:fs'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createHttp, type Http, type HttpError, type HttpRequest } from '../../../src/engine/net/http.ts'
import { type SseServer, startSse } from '../../helpers/sse-server.ts'

const pem = (name: string) => readFileSync(new URL(`../../fixtures/wire/tls/${name}`, import.meta.url), 'utf8')

/** A proxy that leads every name to one port of this machine and records what it was asked. */
const startProxy = async (target: number, auth?: string) => {
	const asked: { line: string; auth: string | undefined }[] = []
	const proxy = http.createServer((request, response) => {
		asked.push({ line: `${request.method} ${request.url}`, auth: request.headers['proxy-authorization'] })
		const { pathname } = new URL(request.url!)
		http.get({ port: target, path: pathname }, (r) => r.pipe(response.writeHead(r.statusCode!, r.headers)))
	})
	proxy.on('connect', (request, socket) => {
		asked.push({ line: `CONNECT ${request.url}`, auth: request.headers['proxy-authorization'] })
		if (auth && request.headers['proxy-authorization'] !== `Basic ${Buffer.from(auth).toString('base64')}`)
			return socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
		const to = net.connect(target, '127.0.0.1', () => {
			socket.write('HTTP/1.1 200 OK\r\n\r\n')
			to.pipe(socket)
			socket.pipe(to)
		})
		for (const one of [to, socket]) one.on('error', () => {})
	})
	await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
	return {
		asked,
		port: (proxy.address() as AddressInfo).port,
		close: () =>
			new Promise<void>((done) => {
				proxy.close(() => done())
				proxy.closeAllConnections()
			}),
	}
}

describe('http', () => {
	let server: SseServer
	let client: Http | undefined
	let proxy: Awaited<ReturnType<typeof startProxy>> | undefined
	afterEach(async () => {
		client?.close()
		await proxy?.close()
		proxy = undefined
		await server?.close()
	})
	const portOf = (url: string) => Number(new URL(url).port)
	const failing = async (r: HttpRequest): Promise<HttpError> => {
		try {
			const response = await client!.request(r)
			for await (const _ of response.body);
		} catch (error) {
			return error as HttpError
		}
		throw new Error('it did not fail')
	}

	it('streams a body as it comes and keeps the connection for the next request', async () => {
		server = await startSse([{ body: ['one', { wait: 40 }, 'two'] }])
		client = createHttp({ env: {} })
		const response = await client.request({
			url: server.url,
			method: 'POST',
			body: '{"a":"ä"}',
			headers: { 'X-Mine': 'y' },
		})
		const parts: string[] = []
		for await (const chunk of response.body) parts.push(Buffer.from(chunk).toString())
		expect(parts).to.deep.equal(['one', 'two'])
		expect(server.requests[0]).to.deep.include({ method: 'POST', body: { a: 'ä' } })
		expect(server.requests[0]!.headers).to.include({ 'x-mine': 'y', 'content-length': '10' })
		await (await client.request({ url: server.url })).text()
		expect(server.connections()).to.equal(1)
	})

	it('a redirect is an answer, never followed', async () => {
		server = await startSse((r) => (r.path === '/a' ? { status: 307, headers: { location: '/b' } } : { body: 'b' }))
		client = createHttp({ env: {} })
		expect((await client.request({ url: `${server.url}/a` })).status).to.equal(307)
		expect((await client.fetch(`${server.url}/a`)).status).to.equal(307)
		expect(server.requests.map((r) => r.path)).to.deep.equal(['/a', '/a'])
	})

	it('tells apart: nobody there, no name, reset, cut, no headers in time, aborted', async () => {
		server = await startSse((r) =>
			r.path === '/reset'
				? { body: ['x', { reset: true }] }
				: r.path === '/cut'
					? { body: ['x', { cut: true }] }
					: { headersAfter: 'never' },
		)
		client = createHttp({ env: {} })
		const gone = await startSse([])
		await gone.close()
		expect((await failing({ url: gone.url })).code).to.equal('refused')
		expect((await failing({ url: `http://${'a'.repeat(70)}.invalid/` })).code).to.equal('dns')
		expect((await failing({ url: `${server.url}/reset` })).code).to.equal('reset')
		expect((await failing({ url: `${server.url}/cut` })).code).to.equal('reset')
		expect((await failing({ url: `${server.url}/slow`, headerTimeoutMs: 30 })).code).to.equal('timeout')
		expect((await failing({ url: `${server.url}/slow`, signal: AbortSignal.timeout(30) })).code).to.equal('aborted')
		expect((await failing({ url: server.url, signal: AbortSignal.abort() })).code).to.equal('aborted')
		expect((await failing({ url: 'file:///etc/passwd' })).code).to.equal('bad_url')
	})

	it('an abort in the body ends the reading and closes the connection', async () => {
		server = await startSse([{ body: ['x', { stall: true }] }])
		client = createHttp({ env: {} })
		const stop = new AbortController()
		const response = await client.request({ url: server.url, signal: stop.signal })
		const error = await (async () => {
			for await (const _ of response.body) stop.abort()
		})().then(
			() => null,
			(e: HttpError) => e,
		)
		expect(error?.code).to.equal('aborted')
	})

	it('a kept connection that the server closed is replaced once, unseen', async () => {
		let n = 0
		const raw = net.createServer((socket) => {
			const mine = n++
			socket.on('error', () => {})
			let asked = 0
			socket.on('data', () => {
				if (mine === 0 && asked++ > 0) return socket.resetAndDestroy()
				socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
			})
		})
		await new Promise<void>((done) => raw.listen(0, '127.0.0.1', done))
		server = await startSse([])
		client = createHttp({ env: {} })
		const url = `http://127.0.0.1:${(raw.address() as AddressInfo).port}/`
		expect(await (await client.request({ url })).text()).to.equal('ok')
		expect(await (await client.request({ url })).text()).to.equal('ok')
		expect(n).to.equal(2)
		client.close()
		raw.close()
	})

	it('a packed body is unpacked while it streams', async () => {
		server = await startSse([{ headers: { 'content-encoding': 'gzip' }, body: gzipSync('packed words') }])
		client = createHttp({ env: {} })
		expect(await (await client.request({ url: server.url })).text()).to.equal('packed words')
	})

	it('text() stops at its limit', async () => {
		server = await startSse([{ body: 'x'.repeat(100_000) }])
		client = createHttp({ env: {} })
		expect(await (await client.request({ url: server.url })).text(10)).to.equal('x'.repeat(10))
	})

	it('text() does not wait for ever, and leaving a body that waits closes its connection', async () => {
		server = await startSse([{ body: ['x', { stall: true }] }])
		client = createHttp({ env: {} })
		const error = await (await client.request({ url: server.url })).text(10, 30).then(
			() => null,
			(e: HttpError) => e,
		)
		expect(error?.code).to.equal('timeout')
		const iterator = (await client.request({ url: server.url })).body[Symbol.asyncIterator]()
		await iterator.next()
		const waiting = iterator.next().then(
			() => 'ended',
			() => 'ended',
		)
		await iterator.return?.()
		expect(await waiting).to.equal('ended')
		await new Promise((later) => setTimeout(later, 30))
		expect(server.open()).to.equal(0)
	})

	it('a certificate of an unknown maker is refused, and taken when it is given as a CA', async () => {
		server = await startSse([{ body: 'ok' }], { key: pem('server.key'), cert: pem('server.pem') })
		client = createHttp({ env: {} })
		expect((await failing({ url: server.url })).code).to.equal('tls')
		client.close()
		client = createHttp({ env: {}, ca: pem('server.pem') })
		expect(await (await client.request({ url: server.url })).text()).to.equal('ok')
	})

	for (const name of ['HTTPS_PROXY', 'https_proxy'])
		it(`Z04 https goes through ${name} by CONNECT, with user and password, over one kept tunnel`, async () => {
			server = await startSse([{ body: 'ok' }], { key: pem('server.key'), cert: pem('server.pem') })
			proxy = await startProxy(portOf(server.url), 'me:p@ss:word')
			client = createHttp({
				env: {
					[name]: `http://me:p%40ss%3Aword@127.0.0.1:${proxy.port}`,
					NO_PROXY: 'localhost,127.0.0.1,.corp,10.0.0.0/8',
				},
				ca: pem('server.pem'),
			})
			for (let i = 0; i < 2; i++)
				expect(await (await client.request({ url: 'https://model.test/v1' })).text()).to.equal('ok')
			expect(proxy.asked.map((a) => a.line)).to.deep.equal(['CONNECT model.test:443'])
			expect(server.requests[0]!.headers)
				.to.include({ host: 'model.test' })
				.and.not.have.property('proxy-authorization')
			expect(client.proxyFor('https://model.test/')).to.equal(`http://127.0.0.1:${proxy.port}`)
		})

	it('Z04 plain http goes through HTTP_PROXY by its whole address', async () => {
		server = await startSse([{ body: 'ok' }])
		proxy = await startProxy(portOf(server.url))
		client = createHttp({ env: { HTTP_PROXY: `127.0.0.1:${proxy.port}` } })
		expect(await (await client.request({ url: 'http://lan.test:8080/v1' })).text()).to.equal('ok')
		expect(proxy.asked[0]!.line).to.equal('GET http://lan.test:8080/v1')
	})

	it('Z04 this machine never goes through a proxy; NO_PROXY and empty variables are kept to', async () => {
		server = await startSse([{ body: 'ok' }])
		proxy = await startProxy(1)
		const url = `http://127.0.0.1:${proxy.port}`
		client = createHttp({ env: { HTTP_PROXY: url, HTTPS_PROXY: url, no_proxy: '.corp,10.0.0.0/8,host.test:8443' } })
		expect(await (await client.request({ url: server.url })).text()).to.equal('ok')
		expect(proxy.asked).to.deep.equal([])
		for (const direct of [
			'https://a.corp/',
			'https://10.1.1.1/',
			'https://host.test:8443/',
			'http://localhost:1/',
			'http://[::1]:1/',
		])
			expect(client.proxyFor(direct), direct).to.equal(null)
		for (const through of ['https://host.test/', 'https://11.1.1.1/', 'http://x.test/'])
			expect(client.proxyFor(through), through).to.equal(url)
		const none = createHttp({ env: { HTTPS_PROXY: '', https_proxy: '', ALL_PROXY: undefined } })
		expect(none.proxyFor('https://x.test/')).to.equal(null)
	})

	it('Z04 a proxy that refuses, is not there or is of another kind is told without its password', async () => {
		server = await startSse([{ body: 'ok' }])
		proxy = await startProxy(portOf(server.url), 'me:right')
		for (const [address, words] of [
			[`http://me:secretword@127.0.0.1:${proxy.port}`, /407/],
			['http://me:secretword@127.0.0.1:1', /cannot be reached/],
			['socks5://me:secretword@127.0.0.1:1080', /only http and https proxies/],
			['http://me:secretword@ ', /not a URL/],
		] as const) {
			client = createHttp({ env: { HTTPS_PROXY: address } })
			const error = await failing({ url: 'https://model.test/' })
			expect(error.code).to.equal('proxy')
			expect(error.message).to.match(words)
			expect(`${error.message} ${JSON.stringify(error)}`).to.not.include('secretword')
			client.close()
		}
	})

	it('fetch gives a Response that streams and reads like any other', async () => {
		server = await startSse([{ headers: { 'x-a': '1' }, body: ['{"a":', '1}'] }])
		client = createHttp({ env: {} })
		const response = await client.fetch(new URL(server.url), { method: 'POST', headers: { 'x-b': '2' }, body: 'hi' })
		expect([response.status, response.headers.get('x-a'), await response.json()]).to.deep.equal([200, '1', { a: 1 }])
		expect(server.requests[0]).to.include({ text: 'hi' })
		expect(server.requests[0]!.headers['x-b']).to.equal('2')
	})
})
