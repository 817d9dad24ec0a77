// The only way out of a session's network namespace: a CONNECT proxy that decides by the name alone. Fed by the namespace holder.
import type { Server, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Dial, dialChecked, type Lookup } from '../net/checked-dial.ts'
import { canonicalHost, onList } from '../net/host-names.ts'
import { isHttpError } from '../net/http-error.ts'
import { clientHelloName } from './client-hello.ts'

export interface ProxyLimits {
	/** Bytes of a request's header. Default 8,192. */
	headerBytes?: number
	/** Until the header is complete, and from the first byte of a TLS greeting to its end. Default 10,000. */
	headerMs?: number
	/** Open at once. Default 256. */
	connections?: number
	/** A tunnel on which nothing moves is closed. Default 600,000. */
	idleMs?: number
	/** For the lookup and each address tried. Default 10,000. */
	dialMs?: number
}

export interface ProxyOptions {
	/** Expanded: names and `*.suffix`. An empty list lets nothing pass that is not asked for. */
	hosts: readonly string[]
	/** What the user's rules say of a host: `deny` beats the list, `ask` asks although it is listed. */
	rule?: ((host: string, port: number) => 'deny' | 'ask' | undefined) | undefined
	/** Where others can reach the listening port too (macOS): the password that a request must carry. */
	token?: string | undefined
	/** The proxy of the user's network that leads to a host, or null. */
	upstream?: ((host: string, port: number) => URL | null) | undefined
	lookup?: Lookup | undefined
	dial?: Dial | undefined
	limits?: ProxyLimits | undefined
}

/** One command while it runs. */
export interface ProxyClient {
	/** What was refused since it began, each once, in order: `host:port (why)`. */
	readonly refused: readonly string[]
	/** Its end; with the last running command, "once" answers end too, and open tunnels are cut. */
	end(): void
}

export interface NetworkProxy {
	/** Takes the connections of a server that listens inside the namespace. */
	serve(server: Server): void
	/** A command begins; `ask` decides on hosts that are not listed. Without it they are refused. */
	begin(ask?: (host: string, port: number) => Promise<boolean>): ProxyClient
	/** Ends every connection; idempotent. */
	close(): void
}

type Verdict = { allowed: true } | { allowed: false; why: string }

/**
 * CONNECT name:443 and name:80 only. The decision depends on the authority in the first line and on nothing else: headers
 * are read to their end and dropped, so that there is nothing to smuggle.
 */
export const createNetworkProxy = (options: ProxyOptions): NetworkProxy => {
	const { hosts, rule, token, upstream, lookup, dial, limits = {} } = options
	const { headerBytes = 8_192, headerMs = 10_000, connections = 256, idleMs = 600_000, dialMs = 10_000 } = limits
	const expected = token === undefined ? undefined : `Basic ${Buffer.from(`garuda:${token}`).toString('base64')}`
	const open = new Set<Socket>()
	const closing = new AbortController()
	const clients: { ask?: ((host: string, port: number) => Promise<boolean>) | undefined; refused: string[] }[] = []
	// A question answered once holds while the commands run that were running: tools retry, and open many connections at once.
	let answers = new Map<string, Promise<boolean>>()

	const note = (text: string) => {
		for (const { refused } of clients) if (refused.length < 20 && !refused.includes(text)) refused.push(text)
	}

	const judge = async (host: string, port: number): Promise<Verdict> => {
		const ruled = rule?.(host, port)
		if (ruled === 'deny') return { allowed: false, why: 'a deny rule or the team policy refuses it' }
		if (ruled !== 'ask' && onList(hosts, host)) return { allowed: true }
		const key = `${host}:${port}`
		let answer = answers.get(key)
		if (!answer) {
			// Who asks is not known, for the namespace is shared: the newest command that may ask is asked for.
			const ask = clients.findLast((client) => client.ask)?.ask
			if (!ask) return { allowed: false, why: 'it is not on the list of hosts' }
			answer = ask(host, port).catch(() => false)
			answers.set(key, answer)
		}
		return (await answer)
			? { allowed: true }
			: { allowed: false, why: 'it is not on the list of hosts, and was not allowed' }
	}

	const tunnel = async (client: Socket, authority: string, rest: Buffer): Promise<void> => {
		const refuse = (shown: string, why: string, status = '403 Forbidden') => {
			note(`${shown} (${why})`)
			answer(client, status, `Garuda: ${shown} was refused: ${why}.`)
		}
		const [, name, digits] = /^([^:[\]]{1,255}):(\d{1,5})$/.exec(authority) ?? []
		const shown = authority.slice(0, 200)
		if (name === undefined) return refuse(shown, 'only name:port can be reached, no address')
		const port = Number(digits)
		if (port !== 443 && port !== 80) return refuse(shown, 'only ports 443 and 80 can be reached')
		const host = canonicalHost(name)
		if (!host) return refuse(shown, 'it is no host name')
		const verdict = await judge(host, port)
		if (client.destroyed) return
		if (!verdict.allowed) return refuse(`${host}:${port}`, verdict.why)
		let server: Socket
		try {
			server = await dialChecked(host, port, { lookup, dial, upstream, timeoutMs: dialMs, signal: closing.signal })
		} catch (error) {
			const refused = isHttpError(error) && error.code === 'refused'
			const why = isHttpError(error) ? error.message.replace(/\.$/, '') : 'it cannot be connected'
			return refuse(`${host}:${port}`, why, refused ? '403 Forbidden' : '502 Bad Gateway')
		}
		server.on('error', () => client.destroy())
		server.on('close', () => client.destroy())
		client.on('close', () => server.destroy())
		if (client.destroyed || closing.signal.aborted) return void server.destroy()
		for (const socket of [client, server]) socket.setTimeout(idleMs, () => socket.destroy())
		client.write('HTTP/1.1 200 Connection established\r\n\r\n')
		server.pipe(client)
		// Inside the tunnel all is the client's and the server's own, but for one look at the name of a TLS greeting.
		const greeting = await firstBytes(client, rest, headerMs)
		if (greeting.odd) {
			note(`${host}:${port} (the greeting of its secure connection cannot be read)`)
			client.destroy()
			return
		}
		const sni = greeting.name
		if (sni !== undefined && canonicalHost(sni) !== host) {
			note(`${host}:${port} (the secure connection names another host, ${sni.slice(0, 100)})`)
			client.destroy()
			return
		}
		if (greeting.bytes.length > 0) server.write(greeting.bytes)
		client.pipe(server)
	}

	const accept = (client: Socket) => {
		client.on('error', () => client.destroy())
		if (open.size >= connections || closing.signal.aborted)
			return answer(client, '503 Service Unavailable', 'Garuda: too many connections at once.')
		open.add(client)
		client.once('close', () => open.delete(client))
		let head = Buffer.alloc(0)
		const late = setTimeout(() => answer(client, '408 Request Timeout', 'Garuda: the request took too long.'), headerMs)
		client.once('close', () => clearTimeout(late))
		const onEnd = () => client.destroy()
		client.once('end', onEnd)
		const onData = (bytes: Buffer) => {
			head = Buffer.concat([head, bytes])
			const end = head.indexOf('\r\n\r\n')
			if (end < 0 ? head.length > headerBytes : end > headerBytes) {
				client.off('data', onData)
				return answer(client, '431 Request Header Fields Too Large', 'Garuda: the request header is too long.')
			}
			if (end < 0) return
			clearTimeout(late)
			client.off('data', onData)
			client.off('end', onEnd)
			client.pause()
			const line = requestLine(head.subarray(0, end))
			if (line === null) return answer(client, '400 Bad Request', 'Garuda: this is no proxy request.')
			if (line.method !== 'CONNECT') {
				note(`plain http (${line.method}): only https and other CONNECT requests pass`)
				return answer(
					client,
					'405 Method Not Allowed',
					'Garuda: plain http does not pass this proxy; use https:// (CONNECT).',
					'allow: CONNECT\r\n',
				)
			}
			if (expected !== undefined && line.authorization !== expected)
				return answer(
					client,
					'407 Proxy Authentication Required',
					'Garuda: this proxy is for the commands of one session.',
					'proxy-authenticate: Basic realm="garuda"\r\n',
				)
			tunnel(client, line.target, head.subarray(end + 4)).catch(() => client.destroy())
		}
		client.on('data', onData)
	}

	return {
		serve(server) {
			server.on('connection', accept)
			server.on('error', () => {})
		},
		begin(ask) {
			const client = { ask, refused: [] as string[] }
			clients.push(client)
			return {
				refused: client.refused,
				end() {
					const at = clients.indexOf(client)
					if (at < 0) return
					clients.splice(at, 1)
					if (clients.length > 0) return
					answers = new Map()
					for (const socket of open) socket.destroy()
				},
			}
		},
		close() {
			closing.abort()
			for (const socket of open) socket.destroy()
		},
	}
}

/** The words of a request line, and the password; null unless all bytes of the header are printable ASCII in lines. */
const requestLine = (header: Buffer): { method: string; target: string; authorization: string | undefined } | null => {
	const text = header.toString('latin1')
	// A bare CR, LF or NUL, or a byte above ASCII, is where two readers begin to disagree.
	if (/[^\x20-\x7e\r\n\t]/.test(text) || /\r(?!\n)|(?<!\r)\n/.test(text)) return null
	const match = /^([A-Z]{1,20}) ([^\s]+) HTTP\/1\.[01](?:\r\n|$)/.exec(text)
	const authorization = /\r\nproxy-authorization:[ \t]*([^\r]*?)[ \t]*(?:\r\n|$)/i.exec(text)?.[1]
	return match ? { method: match[1]!, target: match[2]!, authorization } : null
}

const answer = (client: Socket, status: string, words: string, headers = ''): void => {
	const body = `${words}\n`
	client.end(
		`HTTP/1.1 ${status}\r\n${headers}content-type: text/plain; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
	)
	// Whoever goes on sending is not read to the end.
	client.resume()
	setTimeout(() => client.destroy(), 1_000).unref()
}

/**
 * What the client says first, whole if it is a TLS greeting, and the host name in it. It waits as long as the client is quiet,
 * for the server may speak first; a greeting that has begun must be complete within `ms`.
 */
const firstBytes = (
	client: Duplex,
	first: Buffer,
	ms: number,
): Promise<{ bytes: Buffer; name?: string; odd?: boolean }> =>
	new Promise((resolve) => {
		let bytes = first
		let timer: NodeJS.Timeout | undefined
		const done = (found: { name?: string; odd?: boolean } = {}) => {
			clearTimeout(timer)
			client.off('data', onData)
			client.off('end', onEnd)
			client.off('close', onEnd)
			client.pause()
			resolve({ bytes, ...found })
		}
		const look = () => {
			const found = clientHelloName(bytes)
			if (found.state === 'more') timer ??= setTimeout(() => done({ odd: true }), ms)
			else done(found.state === 'found' ? { name: found.name } : { odd: found.state === 'odd' })
		}
		const onData = (more: Buffer) => {
			bytes = Buffer.concat([bytes, more])
			look()
		}
		const onEnd = () => done()
		client.on('data', onData)
		client.once('end', onEnd)
		client.once('close', onEnd)
		if (bytes.length > 0) look()
		client.resume()
	})
