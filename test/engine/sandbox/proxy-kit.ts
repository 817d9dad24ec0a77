// A proxy on a port of this machine, a server behind it that says which name it was dialled for, and raw requests.
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createNetworkProxy, type NetworkProxy, type ProxyOptions } from '../../../src/engine/sandbox/network-proxy.ts'

export const publicAddress = '93.184.215.14'

export interface ProxyKit {
	proxy: NetworkProxy
	port: number
	/** Names looked up, and addresses dialled, in order. */
	looked: string[]
	dialled: string[]
	/** Sends bytes and returns all that comes back until the end; `then` is sent after the first answer. */
	ask(request: string | Buffer, then?: string | Buffer): Promise<string>
	/** The status of CONNECT to an authority. */
	connect(authority: string): Promise<number>
	close(): Promise<void>
}

/** Listens, echoing what it gets after a greeting of its own. */
const listen = async (onSocket: (socket: Socket) => void): Promise<{ server: Server; port: number }> => {
	const server = createServer({ allowHalfOpen: true }, (socket) => {
		socket.on('error', () => {})
		onSocket(socket)
	})
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
	return { server, port: (server.address() as AddressInfo).port }
}

export const proxyKit = async (
	options: Partial<ProxyOptions> & { addresses?: Record<string, string[][]> } = {},
): Promise<ProxyKit> => {
	const { addresses = {}, ...more } = options
	const sockets = new Set<Socket>()
	const behind = await listen((socket) => {
		sockets.add(socket)
		socket.on('data', (bytes) => socket.write(`GOT:${bytes.toString('latin1')}`))
		socket.on('end', () => socket.end())
	})
	const looked: string[] = []
	const dialled: string[] = []
	const proxy = createNetworkProxy({
		hosts: ['ok.example', '*.reg.example'],
		lookup: async (host) => {
			looked.push(host)
			const turns = addresses[host] ?? [[publicAddress]]
			const now = turns.length > 1 ? turns.shift()! : turns[0]!
			return now.map((address) => ({ address }))
		},
		dial: (address, port) => {
			dialled.push(`${address}:${port}`)
			return connect(behind.port, '127.0.0.1')
		},
		...more,
	})
	const front = createServer({ allowHalfOpen: true })
	await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
	proxy.serve(front)
	const port = (front.address() as AddressInfo).port
	const ask: ProxyKit['ask'] = (request, then) =>
		new Promise((resolve) => {
			let got = ''
			let sent = then === undefined
			const socket = connect(port, '127.0.0.1', () => socket.write(request))
			socket.on('error', () => {})
			socket.on('data', (bytes) => {
				got += bytes.toString('latin1')
				if (!sent && got.includes('\r\n\r\n')) {
					sent = true
					socket.write(then!)
				}
				if (got.includes('GOT:')) socket.end()
			})
			socket.on('close', () => resolve(got))
		})
	return {
		proxy,
		port,
		looked,
		dialled,
		ask,
		connect: (authority) =>
			new Promise((resolve) => {
				const socket = connect(port, '127.0.0.1', () =>
					socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`),
				)
				socket.on('error', () => resolve(0))
				socket.once('data', (bytes) => {
					resolve(Number(bytes.toString('latin1').split(' ')[1]))
					socket.destroy()
				})
				socket.once('close', () => resolve(0))
			}),
		async close() {
			proxy.close()
			for (const socket of sockets) socket.destroy()
			await Promise.all([front, behind.server].map((server) => new Promise((resolve) => server.close(resolve))))
		},
	}
}
