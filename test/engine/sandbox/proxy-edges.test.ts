// The proxy of commands where a connection ends at an odd moment, and the greeting of TLS byte by byte.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { clientHelloName } from '../../../src/engine/sandbox/client-hello.ts'
import { type ProxyKit, proxyKit } from './proxy-kit.ts'

const u16 = (value: number) => [value >> 8, value & 0xff]
/** A greeting of TLS with one name in it, cut into records of some size. */
const greeting = (
	name: string,
	{
		kind = 0,
		type = 1,
		record = 16_000,
		extra = 0,
		want,
	}: Partial<Record<'kind' | 'type' | 'record' | 'extra' | 'want', number>> = {},
): Buffer => {
	const text = [...Buffer.from(name)]
	const entry = [kind, ...u16(text.length), ...text]
	const extensions = [
		...[0xff, 1, ...u16(extra), ...new Array<number>(extra).fill(0)],
		...[0, 0, ...u16(entry.length + 2), ...u16(entry.length), ...entry],
	]
	const body = [
		3,
		3,
		...new Array<number>(32).fill(7),
		1,
		9,
		0,
		2,
		0x13,
		1,
		1,
		0,
		...u16(extensions.length),
		...extensions,
	]
	const length = want ?? body.length
	const message = [type, length >> 16, (length >> 8) & 0xff, length & 0xff, ...body]
	const records: number[] = []
	for (let at = 0; at < message.length; at += record) {
		const part = message.slice(at, at + record)
		records.push(0x16, 3, 1, ...u16(part.length), ...part)
	}
	return Buffer.from(records)
}

describe('network proxy: edges', () => {
	it('the name in a greeting is found in any records, and only a whole and bounded one counts', () => {
		const found = { state: 'found', name: 'ok.example' }
		expect(clientHelloName(greeting('ok.example'))).to.deep.equal(found)
		for (const record of [1, 3, 4, 5, 50])
			expect(clientHelloName(greeting('ok.example', { record }))).to.deep.equal(found)
		const whole = greeting('ok.example', { record: 30 })
		for (let end = 0; end < whole.length; end++)
			expect(clientHelloName(whole.subarray(0, end)), String(end)).to.deep.equal({ state: 'more' })
		expect(clientHelloName(Buffer.concat([whole, Buffer.from('more')]))).to.deep.equal(found)
		const odd = { state: 'odd' }
		expect(clientHelloName(Buffer.from('GET / HTTP/1.1'))).to.deep.equal({ state: 'none' })
		expect(clientHelloName(Buffer.from([0x16, 2, 0, 0, 5, 1, 0, 0, 0, 0]))).to.deep.equal({ state: 'none' })
		for (const [what, bytes] of [
			['another kind of name', greeting('ok.example', { kind: 1 })],
			['another message', greeting('ok.example', { type: 2 })],
			['longer than any greeting', greeting('ok.example', { want: 20_000 })],
			['an empty record', Buffer.from([0x16, 3, 1, 0, 0])],
			['a record beyond the limit', Buffer.from([0x16, 3, 1, ...u16(16_385)])],
			[
				'records beyond the limit',
				Buffer.concat([
					greeting('ok.example', { extra: 15_900, want: 16_300 }),
					Buffer.from([0x16, 3, 1, ...u16(500)]),
				]),
			],
			[
				'a second record of another kind',
				Buffer.concat([
					greeting('ok.example').subarray(0, 5),
					greeting('ok.example').subarray(5, 30),
					Buffer.from([0x17]),
				]),
			],
			['cut within', greeting('ok.example', { want: 40 })],
		] as const)
			expect(clientHelloName(bytes), what).to.deep.equal(
				what === 'a second record of another kind' ? { state: 'more' } : odd,
			)
	})

	describe('connections', () => {
		let kit: ProxyKit
		let server: Server
		const behind: Socket[] = []
		let heard = ''
		before(async () => {
			server = createServer({ allowHalfOpen: true }, (socket) => {
				behind.push(socket)
				socket.on('error', () => {})
				socket.on('data', (bytes) => {
					heard += bytes
				})
				socket.on('end', () => socket.end(`END:${heard}`))
			})
			server.listen(0, '127.0.0.1')
			await once(server, 'listening')
		})
		beforeEach(() => {
			heard = ''
			behind.length = 0
		})
		afterEach(() => kit.close())
		after(() => {
			for (const socket of behind) socket.destroy()
			server.close()
		})
		const port = () => (server.address() as { port: number }).port
		const open = (text: string) => {
			const socket = connect({ port: kit.port, host: '127.0.0.1', allowHalfOpen: true })
			socket.on('error', () => {})
			socket.write(text)
			return socket
		}
		const until = async (true_: () => boolean) => {
			for (let tries = 0; tries < 500 && !true_(); tries++) await delay(10)
			expect(true_()).to.equal(true)
		}
		const request = 'CONNECT ok.example:443 HTTP/1.1\r\n\r\n'

		it('net-04 an address is called one', async () => {
			kit = await proxyKit()
			for (const authority of ['[2606:4700::1]:443', '::1:443', 'ok.example', ':443', 'ok.example:443:443'])
				expect(await kit.ask(`CONNECT ${authority} HTTP/1.1\r\n\r\n`), authority).to.include(
					'only name:port can be reached, no address',
				)
		})

		it('whoever leaves while the user is asked is not connected afterwards', async () => {
			kit = await proxyKit()
			let say = (_: boolean) => {}
			const asked = new Promise<void>((resolve) => {
				kit.proxy.begin(async () => {
					resolve()
					return new Promise((answer) => {
						say = answer
					})
				})
			})
			const socket = open('CONNECT new.example:443 HTTP/1.1\r\n\r\n')
			await asked
			socket.resetAndDestroy()
			await delay(100)
			say(true)
			await delay(100)
			expect(kit.dialled).to.deep.equal([])
			// The answer itself holds.
			expect(await kit.connect('new.example:443')).to.equal(200)
		})

		it('a connection that was made for somebody who has left is closed', async () => {
			let made: Socket | undefined
			let socket: Socket | undefined
			kit = await proxyKit({
				dial: () => {
					const later = connect(port(), '127.0.0.1')
					made = later
					// The event of the connection comes when the other side has gone.
					const emit = later.emit.bind(later)
					later.emit = ((name: string, ...more: unknown[]) => {
						if (name !== 'connect') return emit(name, ...more)
						socket?.resetAndDestroy()
						setTimeout(() => emit('connect'), 200)
						return true
					}) as never
					return later
				},
			})
			socket = open(request)
			await until(() => made?.destroyed === true)
		})

		it('what comes with the request passes without a wait for more', async () => {
			kit = await proxyKit({ dial: () => connect(port(), '127.0.0.1') })
			const socket = open(`${request}early`)
			await until(() => heard === 'early')
			socket.destroy()
		})

		it('net-17 a greeting for another host passes neither late, in slow pieces, nor padded or with two names', async () => {
			const evil = greeting('evil.example')
			const right = greeting('ok.example')
			const two = greeting('ok.example')
			const list = two.indexOf('ok.example') - 5
			const second = Buffer.from([0, 0, 12, ...Buffer.from('evil.example')])
			// The list of names, its extension, all extensions, the message and the record grow by the second name.
			const grown = Buffer.concat([two, second])
			for (const at of [list, list - 2]) grown.writeUInt16BE(grown.readUInt16BE(at) + second.length, at)
			for (const at of [3, 7]) grown.writeUInt16BE(grown.readUInt16BE(at) + second.length, at)
			const all = two.indexOf(Buffer.from([0xff, 1, 0, 0])) - 2
			grown.writeUInt16BE(grown.readUInt16BE(all) + second.length, all)
			const attempts: [string, Buffer[]][] = [
				['late', [Buffer.alloc(0), evil]],
				['in pieces', [evil.subarray(0, 20), evil.subarray(20)]],
				['padded', [greeting('evil.example', { extra: 17_000 })]],
				['two names', [grown]],
				['an empty record first', [Buffer.concat([Buffer.from([0x16, 3, 1, 0, 0]), evil])]],
			]
			kit = await proxyKit({ dial: () => connect(port(), '127.0.0.1'), limits: { headerMs: 200 } })
			const client = kit.proxy.begin()
			for (const [what, pieces] of attempts) {
				heard = ''
				const socket = open(request)
				let ended = false
				for (const event of ['end', 'close'])
					socket.on(event, () => {
						ended = true
					})
				socket.resume()
				await once(socket, 'data')
				for (const [at, piece] of pieces.entries()) {
					if (at > 0) await delay(400)
					socket.write(piece)
				}
				await until(() => ended)
				expect(heard, what).to.equal('')
				socket.destroy()
			}
			expect(client.refused).to.have.length(2)
			const socket = open(request)
			await once(socket, 'data')
			await delay(400)
			socket.write(right)
			await until(() => heard.includes('ok.example'))
			socket.destroy()
		})

		it('what is sent and ended at once arrives, and so does the end', async () => {
			kit = await proxyKit({ dial: () => connect({ port: port(), host: '127.0.0.1', allowHalfOpen: true }) })
			for (const text of ['early', '']) {
				heard = ''
				const socket = open(request)
				let got = ''
				socket.on('data', (bytes) => {
					got += bytes
				})
				await until(() => got.includes('200'))
				socket.end(text)
				await until(() => got.includes(`END:${text}`))
				socket.destroy()
			}
		})
	})
})
