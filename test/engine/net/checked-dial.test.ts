// From a name to a connection: every address judged, one lookup, the judged one dialled; and the way through a proxy of the user's network.
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { dialAny, dialChecked, type Reach } from '../../../src/engine/net/checked-dial.ts'
import type { HttpError } from '../../../src/engine/net/http-error.ts'
import { upstreamProxy } from '../../../src/engine/net/upstream.ts'

const good = '93.184.215.14'

describe('checked dialling', () => {
	const servers: Server[] = []
	const sockets: Socket[] = []
	let dialled: string[]
	const listen = async (onSocket: (socket: Socket) => void): Promise<number> => {
		const server = createServer((socket) => {
			socket.on('error', () => {})
			sockets.push(socket)
			onSocket(socket)
		})
		servers.push(server)
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
		return (server.address() as AddressInfo).port
	}
	beforeEach(() => {
		dialled = []
	})
	afterEach(async () => {
		for (const socket of sockets.splice(0)) socket.destroy()
		await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))
	})
	const reach = (
		addresses: string[],
		to: (address: string, port: number) => number,
		more: Partial<Reach> = {},
	): Reach => ({
		lookup: async (host) => (host === '127.0.0.1' ? [{ address: host }] : addresses.map((address) => ({ address }))),
		dial: (address, port) => {
			dialled.push(address)
			return connect(to(address, port), '127.0.0.1')
		},
		timeoutMs: 500,
		...more,
	})
	const fails = (work: Promise<unknown>): Promise<HttpError> =>
		work.then(
			() => {
				throw new Error('it did not fail')
			},
			(error: HttpError) => error,
		)

	it('tries the judged addresses in turn, IPv4 first, three at most', async () => {
		const port = await listen(() => {})
		const socket = await dialChecked(
			'a.example',
			443,
			reach(['2606:4700::1', '1.1.1.1', good], (address) => (address === good ? port : 1)),
		)
		expect(dialled).to.deep.equal(['1.1.1.1', good])
		socket.destroy()
		dialled = []
		await fails(
			dialChecked(
				'a.example',
				443,
				reach(['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'], () => 1),
			),
		)
		expect(dialled).to.have.length(3)
	})

	it('net-13 one address that is not public refuses them all; with loopback only this machine counts', async () => {
		for (const wrong of [
			'10.0.0.1',
			'127.0.0.1',
			'169.254.169.254',
			'::1',
			'::ffff:192.168.0.1',
			'64:ff9b::a00:1',
			'2002:7f00:1::',
			'nonsense',
		])
			expect(
				await fails(
					dialChecked(
						'a.example',
						443,
						reach([good, wrong], () => 1),
					),
				),
			).to.include({ code: 'refused' })
		expect(
			await fails(
				dialChecked(
					'localhost',
					80,
					reach([good], () => 1, { loopback: true }),
				),
			),
		).to.include({ code: 'refused' })
		expect(dialled).to.deep.equal([])
	})

	it('a name with no address is not found; what was given up before is neither looked up nor dialled', async () => {
		const none = await fails(dialChecked('a.example', 443, { lookup: async () => [], timeoutMs: 10_000 }))
		expect(none).to.include({ code: 'dns' })
		const signal = AbortSignal.abort()
		const hang = { lookup: () => new Promise<never>(() => {}), timeoutMs: 120_000, signal }
		expect(await fails(dialChecked('a.example', 443, hang))).to.include({ code: 'aborted' })
		let calls = 0
		const dial = () => {
			calls++
			return connect({ host: '127.0.0.1', port: 1 })
		}
		expect(await fails(dialAny('a.example', ['127.0.0.1'], 1, { dial, signal }))).to.include({ code: 'aborted' })
		expect(calls).to.equal(0)
	})

	it('a lookup or a connection that hangs ends in time, an abort at once', async () => {
		const start = performance.now()
		const hang = { lookup: () => new Promise<never>(() => {}), timeoutMs: 50 }
		expect(await fails(dialChecked('a.example', 443, hang))).to.include({ code: 'dns' })
		const stop = new AbortController()
		setTimeout(() => stop.abort(), 30)
		expect(await fails(dialChecked('a.example', 443, { ...hang, timeoutMs: 10_000, signal: stop.signal }))).to.include({
			code: 'aborted',
		})
		expect(performance.now() - start).to.be.below(2_000)
	})

	describe('behind a proxy of the user', () => {
		let asked: string[]
		const proxy = async (answer: string) => {
			asked = []
			const port = await listen((socket) =>
				socket.once('data', (bytes) => {
					asked.push(bytes.toString())
					socket.write(answer)
					socket.on('data', (more) => socket.write(`echo:${more}`))
				}),
			)
			return upstreamProxy({ HTTPS_PROXY: `http://user:pw@127.0.0.1:${port}` })
		}
		const straight = (_: string, port: number) => port

		it('asks it for the name, with its password, and gives what follows', async () => {
			const upstream = await proxy('HTTP/1.1 200 OK\r\nx: y\r\n\r\nfirst')
			const socket = await dialChecked('a.example', 443, reach([good], straight, { upstream }))
			const got: string[] = []
			await new Promise<void>((resolve) => {
				socket.on('data', (bytes) => {
					got.push(String(bytes))
					if (got.join('').includes('echo')) resolve()
				})
				socket.resume()
				socket.write('hi')
			})
			expect(got.join('')).to.equal('firstecho:hi')
			expect(asked[0]).to.equal(
				`CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\nproxy-authorization: Basic ${Buffer.from('user:pw').toString('base64')}\r\n\r\n`,
			)
			socket.destroy()
		})

		it('a name that is known here to lead inside is refused before the proxy hears of it; one unknown here is the proxy to judge', async () => {
			const upstream = await proxy('HTTP/1.1 200 OK\r\n\r\n')
			expect(await fails(dialChecked('a.example', 443, reach(['10.0.0.1'], straight, { upstream })))).to.include({
				code: 'refused',
			})
			expect(asked).to.deep.equal([])
			const socket = await dialChecked('a.example', 443, reach([], straight, { upstream }))
			expect(asked).to.have.length(1)
			socket.destroy()
		})

		it('a refusal, nonsense and silence are told without the password', async () => {
			for (const answer of ['HTTP/1.1 403 No\r\n\r\n', 'hello\r\n\r\n', '', 'x'.repeat(20_000)]) {
				const error = await fails(
					dialChecked('a.example', 443, reach([good], straight, { upstream: await proxy(answer), timeoutMs: 100 })),
				)
				expect(error).to.include({ code: 'proxy' })
				expect(error.message).to.not.include('pw')
			}
			expect(
				await fails(
					dialChecked(
						'a.example',
						443,
						reach([good], () => 1, { upstream: upstreamProxy({ https_proxy: 'http://127.0.0.1:1' }) }),
					),
				),
			).to.include({ code: 'proxy' })
		})

		it('NO_PROXY goes straight, and this machine is never asked of a proxy', async () => {
			const upstream = upstreamProxy({ HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: 'a.example' })
			const port = await listen(() => {})
			const socket = await dialChecked(
				'a.example',
				443,
				reach([good], () => port, { upstream }),
			)
			expect(dialled).to.deep.equal([good])
			socket.destroy()
			const local = await dialChecked(
				'127.0.0.1',
				80,
				reach([], () => port, { upstream: () => new URL('http://127.0.0.1:1'), loopback: true }),
			)
			local.destroy()
		})
	})
})
