// The way out where only a proxy of the user's network leads there: a tunnel through it. Used by the proxy of commands and by web_fetch.
import type { Socket } from 'node:net'
import { HttpError } from './http-error.ts'
import { bareHost, type Env, pickProxy, portOf, proxyAuth, shown } from './proxy.ts'

/** The proxy that Garuda's own environment names for a host, or null; null for a variable that cannot be used. */
export const upstreamProxy =
	(env: Env) =>
	(host: string, port: number): URL | null =>
		pickProxy(env, new URL(`https://${host}:${port}/`))

const maxAnswer = 16_384

/** A socket, paused, that the proxy has connected to `host:port`; `connectTo` opens one to the proxy. Throws HttpError. */
export const throughProxy = async (
	proxy: URL,
	host: string,
	port: number,
	connectTo: (host: string, port: number) => Promise<Socket>,
	timeoutMs: number,
): Promise<Socket> => {
	const fail = (why: string) => new HttpError('proxy', `The proxy ${shown(proxy)} ${why}.`)
	let socket: Socket
	try {
		socket = await connectTo(bareHost(proxy), portOf(proxy))
	} catch (error) {
		throw new HttpError('proxy', `The proxy ${shown(proxy)} cannot be reached.`, { cause: error })
	}
	if (proxy.protocol === 'https:') {
		const tls = process.getBuiltinModule('node:tls')
		socket = tls.connect({ socket, servername: bareHost(proxy), ALPNProtocols: ['http/1.1'] })
	}
	const target = `${host}:${port}`
	const auth = Object.entries(proxyAuth(proxy)).map(([name, value]) => `${name}: ${value}\r\n`)
	return new Promise<Socket>((resolve, reject) => {
		let got = Buffer.alloc(0)
		const end = (error: HttpError | null) => {
			clearTimeout(timer)
			socket.off('data', onData)
			socket.off('error', onError)
			socket.off('close', onError)
			if (!error) return resolve(socket)
			socket.on('error', () => {})
			socket.destroy()
			reject(error)
		}
		const onError = () => end(fail('broke the connection'))
		const onData = (bytes: Buffer) => {
			got = Buffer.concat([got, bytes])
			const at = got.indexOf('\r\n\r\n')
			if (at < 0) return got.length > maxAnswer ? end(fail('answered at too great length')) : undefined
			const status = /^HTTP\/1\.[01] (\d{3})\b/.exec(got.toString('latin1', 0, at))?.[1]
			if (status !== '200') return end(fail(`refused the connection to ${target} (${status ?? 'no status'})`))
			socket.pause()
			const rest = got.subarray(at + 4)
			if (rest.length > 0) socket.unshift(rest)
			end(null)
		}
		const timer = setTimeout(() => end(fail('did not answer in time')), timeoutMs)
		socket.on('data', onData)
		socket.on('error', onError)
		socket.on('close', onError)
		socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${auth.join('')}\r\n`)
	})
}
