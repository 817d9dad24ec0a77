// One request to a judged address: what is read of an answer, and what is not.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { pinnedGet } from '../../../src/engine/net/pinned-fetch.ts'

describe('net: pinned fetch', () => {
	let server: Server
	let answer: (socket: Socket) => void
	let asked: string
	const open = new Set<Socket>()
	before(async () => {
		server = createServer((socket) => {
			open.add(socket)
			socket.on('error', () => {})
			socket.once('data', (bytes) => {
				asked = bytes.toString('latin1')
				answer(socket)
			})
		})
		server.listen(0, '127.0.0.1')
		await once(server, 'listening')
	})
	after(() => {
		for (const socket of open) socket.destroy()
		server.close()
	})
	const get = (more: Partial<Parameters<typeof pinnedGet>[0]> = {}) => {
		const { port } = server.address() as { port: number }
		return pinnedGet({
			url: new URL(`http://127.0.0.1:${port}/p?q=1#f`),
			maxBytes: 1_000,
			deadlineMs: 10_000,
			signal: new AbortController().signal,
			reach: { loopback: true },
			...more,
		})
	}
	const fails = (more?: Parameters<typeof get>[0]): Promise<{ code?: string; message: string }> =>
		get(more).then(
			() => expect.fail('it answered'),
			(error) => error,
		)
	const say = (head: string, body: Uint8Array | string = '') => {
		answer = (socket) => {
			socket.write(`HTTP/1.1 200 OK\r\n${head}connection: close\r\n\r\n`)
			socket.end(body)
		}
	}

	it('asks for the path alone, and gives status, headers and bytes', async () => {
		say('x-a: 1\r\nset-cookie: a\r\nset-cookie: b\r\n', 'hello')
		const { status, headers, bytes, cut } = await get({ headers: { accept: 'text/x' } })
		expect(asked).to.match(/^GET \/p\?q=1 HTTP\/1\.1\r\naccept: text\/x\r\nhost: 127\.0\.0\.1:\d+\r\n/)
		expect([status, headers['x-a'], headers['set-cookie'], Buffer.from(bytes).toString(), cut]).to.deep.equal([
			200,
			'1',
			'a, b',
			'hello',
			false,
		])
	})

	it('an address that is not judged good is never dialled', async () => {
		say('', 'x')
		expect((await fails({ reach: {} })).code).to.equal('refused')
	})

	it('unpacks one encoding, no other and no list of them', async () => {
		for (const name of ['gzip', 'x-gzip', 'deflate']) {
			say(`content-encoding: ${name}\r\n`, gzipSync('packed'))
			expect(Buffer.from((await get()).bytes).toString(), name).to.equal('packed')
		}
		for (const name of ['identity', '']) {
			say(`content-encoding: ${name}\r\n`, 'plain')
			expect(Buffer.from((await get()).bytes).toString(), name).to.equal('plain')
		}
		for (const name of ['zstd', 'gzip, gzip', 'x']) {
			say(`content-encoding: ${name}\r\n`, gzipSync('packed'))
			expect((await fails()).message, name).to.include('packed in a way that was not asked for')
		}
	})

	it('reads no further than the cap, of what is sent and of what is unpacked', async () => {
		let sent = 0
		answer = (socket) => {
			socket.write('HTTP/1.1 200 OK\r\n\r\n')
			const more = () => {
				if (socket.destroyed) return
				sent += 65_536
				// With no cap this one never ends.
				if (socket.write(Buffer.alloc(65_536, 'a'))) setImmediate(more)
				else socket.once('drain', more)
			}
			more()
		}
		const long = await get({ deadlineMs: 5_000 })
		expect([long.bytes.length, long.cut]).to.deep.equal([1_000, true])
		expect(sent).to.be.greaterThan(1_000)
		say('content-encoding: gzip\r\n', gzipSync(Buffer.alloc(1_000_000)))
		const bomb = await get()
		expect([bomb.bytes.length, bomb.cut]).to.deep.equal([1_000, true])
	})

	it('a check that throws leaves the body unread; each other end has its name', async () => {
		say('', 'x')
		const own = new Error('mine')
		expect(
			await get({
				check() {
					throw own
				},
			}).catch((error) => error),
		).to.equal(own)
		answer = (socket) => socket.end('HTTP/1.1 2')
		expect((await fails()).code).to.equal('reset')
		answer = (socket) => socket.end('nonsense\r\n\r\n')
		expect((await fails()).code).to.equal('reset')
		say('content-encoding: gzip\r\n', 'no gzip')
		expect((await fails()).code).to.equal('reset')
		say('content-encoding: gzip\r\ncontent-length: 5000\r\n', gzipSync('x'.repeat(5_000)).subarray(0, 20))
		expect((await fails()).code).to.equal('reset')
		answer = () => {}
		expect((await fails({ deadlineMs: 100 })).code).to.equal('timeout')
		const stop = new AbortController()
		setTimeout(() => stop.abort(), 50)
		expect((await fails({ signal: stop.signal })).code).to.equal('aborted')
		answer = (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')
		const { port } = server.address() as { port: number }
		expect((await fails({ url: new URL(`https://127.0.0.1:${port}/`) })).code).to.equal('tls')
	})
})
