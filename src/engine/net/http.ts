// The one way out: every HTTP request of Garuda itself (models, key checks, fetched pages) goes through here.
import type { ClientRequest, Agent as HttpAgent, IncomingMessage, RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { HttpError, isHttpError } from './http-error.ts'
import { bareHost, type Env, pickProxy, portOf, proxyAuth, shown } from './proxy.ts'

export type { IncomingMessage } from 'node:http'
export { HttpError, type HttpErrorCode, isHttpError } from './http-error.ts'

export interface HttpRequest {
	method?: string
	/** Absolute http: or https: URL. */
	url: string
	headers?: Record<string, string>
	body?: string | Uint8Array
	signal?: AbortSignal | undefined
	/** From the call to the response's headers; default 300,000 ms. */
	headerTimeoutMs?: number
	/** Until the socket (and tunnel, and TLS) stands; default 30,000 ms. */
	connectTimeoutMs?: number
}

export interface HttpResponse {
	status: number
	/** Lower-case names; repeated headers joined by ", ". */
	headers: Record<string, string>
	/** Decompressed bytes as they come. Throws HttpError on a reset, a cut body or an abort; leaving the loop closes the connection. */
	body: AsyncIterable<Uint8Array>
	/** The body as text, at most `limit` characters (default 1,000,000; the rest is not read), within `ms` (default 60,000). */
	text(limit?: number, ms?: number): Promise<string>
}

export interface Http {
	/** Never follows a redirect: a 3xx is an ordinary response. Throws HttpError only. */
	request(request: HttpRequest): Promise<HttpResponse>
	/** The same as a `fetch` for libraries that want one (no redirects, no cookies, no cache). */
	fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>
	/** The proxy a URL would go through as shown to a person (no user, no password), or null. Throws HttpError for a proxy address that cannot be used. */
	proxyFor(url: string): string | null
	/** Closes idle and open connections; idempotent. */
	close(): void
}

/**
 * HTTP over node's own client. `env` gives the proxy variables (lower case wins, empty is not set); `ca` is PEM text added to
 * the usual roots. This machine is never reached through a proxy.
 */
export function createHttp(o: { env: Env; ca?: string }): Http {
	// By getBuiltinModule: an import statement of node:http would load all of undici (30 ms, 14 MB).
	const http = process.getBuiltinModule('node:http')
	const https = process.getBuiltinModule('node:https')
	const tls = process.getBuiltinModule('node:tls')
	const ca = o.ca ? [...tls.getCACertificates('default'), o.ca] : undefined
	const agents = new Map<string, HttpAgent>()

	const tlsOptions = (host: string): ConnectionOptions => ({
		...(ca && { ca }),
		...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
		ALPNProtocols: ['http/1.1'],
	})

	/** A socket that the proxy has connected to `host:port`. */
	const tunnel = (proxy: URL, host: string, port: number): Promise<Socket> =>
		new Promise((resolve, reject) => {
			const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
			const request = (proxy.protocol === 'https:' ? https : http).request({
				method: 'CONNECT',
				host: bareHost(proxy),
				port: portOf(proxy),
				path: target,
				agent: false,
				headers: { host: target, ...proxyAuth(proxy) },
				timeout: 30_000,
				...(proxy.protocol === 'https:' && tlsOptions(bareHost(proxy))),
			} as RequestOptions)
			const fail = (why: string) => reject(new HttpError('proxy', `The proxy ${shown(proxy)} ${why}.`))
			request.on('connect', (response, socket, head) => {
				if (response.statusCode !== 200) {
					socket.destroy()
					return fail(
						response.statusCode === 407
							? 'wants a user and password (407)'
							: `refused the connection to ${target} (${response.statusCode})`,
					)
				}
				if (head.length) socket.unshift(head)
				resolve(socket as Socket)
			})
			request.on('response', (response) => {
				response.resume()
				fail(`did not open a tunnel to ${target} (${response.statusCode})`)
			})
			request.on('timeout', () => request.destroy(new Error('timeout')))
			request.on('error', (error) => fail(`cannot be reached (${reasonOf(error)})`))
			request.end()
		})

	const agentFor = (url: URL, proxy: URL | null): HttpAgent => {
		const secure = url.protocol === 'https:'
		const key = `${secure}|${proxy?.href ?? ''}`
		const known = agents.get(key)
		if (known) return known
		const common = { keepAlive: true, keepAliveMsecs: 30_000, maxFreeSockets: 4, scheduling: 'lifo' as const }
		let agent: HttpAgent
		if (secure) {
			agent = new https.Agent({ ...common, ...(ca && { ca }) })
			if (proxy) {
				// node's own seam for connections that are made elsewhere
				;(agent as any).createConnection = (options: any, done: (error: Error | null, socket?: Socket) => void) => {
					const host = String(options.servername || options.host)
					tunnel(proxy, String(options.host), Number(options.port)).then((socket) => {
						const wrapped = tls.connect({ socket, ...tlsOptions(host) })
						wrapped.once('secureConnect', () => done(null, wrapped))
						wrapped.once('error', (error) => done(error))
					}, done)
				}
			}
		} else {
			agent = new http.Agent(common)
			// Through a proxy plain http is asked for by its whole address; the socket goes to the proxy.
			if (proxy?.protocol === 'https:') agent = new https.Agent({ ...common, ...(ca && { ca }) })
		}
		agents.set(key, agent)
		return agent
	}

	const attempt = (
		r: HttpRequest,
		url: URL,
		proxy: URL | null,
	): Promise<{ response: IncomingMessage; request: ClientRequest }> =>
		new Promise((resolve, reject) => {
			const plainProxy = proxy && url.protocol === 'http:' ? proxy : null
			const to = plainProxy ?? url
			const host = bareHost(to)
			const body = typeof r.body === 'string' ? Buffer.from(r.body) : r.body
			const request = (to.protocol === 'https:' ? https : http).request({
				method: r.method ?? 'GET',
				host,
				port: portOf(to),
				path: plainProxy ? `${url.origin}${url.pathname}${url.search}` : `${url.pathname}${url.search}`,
				agent: agentFor(url, proxy),
				headers: {
					...(plainProxy && proxyAuth(plainProxy)),
					...lowerNames(r.headers),
					host: url.host,
					...(body && { 'content-length': String(body.byteLength) }),
				},
				...(to.protocol === 'https:' && tlsOptions(host)),
			} as RequestOptions)
			let waiting = true
			const timers: NodeJS.Timeout[] = []
			const settle = () => {
				waiting = false
				for (const timer of timers) clearTimeout(timer)
			}
			const stop = () => request.destroy(new HttpError('aborted', 'The request was cancelled.'))
			const fail = (error: unknown) => {
				settle()
				r.signal?.removeEventListener('abort', stop)
				reject(error)
			}
			const expire = (ms: number, what: string) =>
				timers.push(
					setTimeout(() => {
						request.destroy(new HttpError('timeout', `${url.host} ${what} within ${seconds(ms)}.`))
					}, ms),
				)
			expire(r.headerTimeoutMs ?? 300_000, 'sent no answer')
			expire(r.connectTimeoutMs ?? 30_000, 'could not be connected')
			request.on('socket', (socket) => {
				const connected = () => {
					clearTimeout(timers[1])
					// Long quiet streams cross routers that forget a silent connection.
					socket.setKeepAlive(true, 30_000)
				}
				if (!socket.connecting) connected()
				else socket.once(to.protocol === 'https:' ? 'secureConnect' : 'connect', connected)
			})
			request.on('error', (error) => waiting && fail(Object.assign(error, { reused: request.reusedSocket })))
			request.on('response', (response) => {
				if (!waiting) return
				settle()
				response.once('close', () => r.signal?.removeEventListener('abort', stop))
				resolve({ response, request })
			})
			if (r.signal?.aborted) stop()
			else r.signal?.addEventListener('abort', stop, { once: true })
			request.end(body)
		})

	const send = async (r: HttpRequest): Promise<HttpResponse> => {
		const url = parseURL(r.url)
		if (r.signal?.aborted) throw new HttpError('aborted', 'The request was cancelled.')
		const proxy = pickProxy(o.env, url)
		let got: Awaited<ReturnType<typeof attempt>>
		try {
			got = await attempt(r, url, proxy)
		} catch (error) {
			// A kept connection that the server had just closed: nothing was answered, so once more on a new one.
			const stale =
				(error as { reused?: boolean }).reused && /ECONNRESET|EPIPE/.test((error as NodeJS.ErrnoException).code ?? '')
			if (!stale) throw asHttpError(error, url, proxy, r.signal)
			try {
				got = await attempt({ ...r, headers: { ...r.headers, connection: 'close' } }, url, proxy)
			} catch (second) {
				throw asHttpError(second, url, proxy, r.signal)
			}
		}
		const { response } = got
		const headers: Record<string, string> = {}
		for (const [name, value] of Object.entries(response.headers))
			headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '')
		const body = closable(response, readBody(response, url, proxy, r.signal))
		return { status: response.statusCode ?? 0, headers, body, text: (limit, ms) => readText(body, url, limit, ms) }
	}

	return {
		request: send,
		async fetch(input, init = {}) {
			const url = typeof input === 'string' ? input : input instanceof URL ? input.href : input.url
			const headers: Record<string, string> = {}
			new Headers(init.headers).forEach((value, name) => {
				headers[name] = value
			})
			const response = await send({
				url,
				method: init.method ?? 'GET',
				headers,
				...(init.body != null && { body: init.body as string | Uint8Array }),
				signal: init.signal ?? undefined,
			})
			const empty = response.status === 204 || response.status === 304
			return new Response(empty ? null : toReadable(response.body), {
				status: response.status < 200 ? 502 : response.status,
				headers: response.headers,
			})
		},
		proxyFor(url) {
			const proxy = pickProxy(o.env, parseURL(url))
			return proxy && shown(proxy)
		},
		close() {
			for (const agent of agents.values()) agent.destroy()
			agents.clear()
		},
	}
}

/** A generator that waits for a byte cannot be returned from; so leaving closes the connection first, which ends the wait. */
const closable = (response: IncomingMessage, generator: AsyncGenerator<Uint8Array>): AsyncIterable<Uint8Array> => ({
	[Symbol.asyncIterator]: () => ({
		next: () => generator.next(),
		return() {
			response.destroy()
			return generator.return(undefined)
		},
	}),
})

async function* readBody(
	response: IncomingMessage,
	url: URL,
	proxy: URL | null,
	signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
	const encoding = response.headers['content-encoding']
	try {
		if (!encoding || encoding === 'identity') yield* response
		else {
			const zlib = await import('node:zlib')
			const unpack =
				encoding === 'br'
					? zlib.createBrotliDecompress({ flush: zlib.constants.BROTLI_OPERATION_FLUSH })
					: zlib.createUnzip({ flush: zlib.constants.Z_SYNC_FLUSH })
			response.on('error', (error) => unpack.destroy(error))
			response.on('close', () => response.complete || unpack.destroy(new HttpError('reset', 'The answer was cut.')))
			yield* response.pipe(unpack)
		}
	} catch (error) {
		throw asHttpError(error, url, proxy, signal)
	} finally {
		response.destroy()
	}
}

const readText = async (body: AsyncIterable<Uint8Array>, url: URL, limit = 1_000_000, ms = 60_000): Promise<string> => {
	const decoder = new TextDecoder()
	const parts: string[] = []
	let length = 0
	let late = false
	const iterator = body[Symbol.asyncIterator]()
	const timer = setTimeout(() => {
		late = true
		iterator.return?.().then(undefined, () => {})
	}, ms)
	try {
		for (;;) {
			const { done, value } = await iterator.next()
			if (done) break
			const text = decoder.decode(value, { stream: true })
			parts.push(text)
			length += text.length
			if (length <= limit) continue
			await iterator.return?.()
			break
		}
	} catch (error) {
		if (!late) throw error
	} finally {
		clearTimeout(timer)
	}
	if (late) throw new HttpError('timeout', `${url.host} did not end its answer within ${seconds(ms)}.`)
	return (parts.join('') + decoder.decode()).slice(0, limit)
}

const toReadable = (body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> => {
	const iterator = body[Symbol.asyncIterator]()
	return new ReadableStream<Uint8Array>(
		{
			async pull(controller) {
				const { done, value } = await iterator.next()
				if (done) controller.close()
				else controller.enqueue(value)
			},
			async cancel() {
				await iterator.return?.()
			},
		},
		{ highWaterMark: 0 },
	)
}

const parseURL = (text: string): URL => {
	if (!URL.canParse(text)) throw new HttpError('bad_url', 'The address is not a URL.')
	const url = new URL(text)
	if (url.protocol !== 'http:' && url.protocol !== 'https:')
		throw new HttpError('bad_url', `The address must begin with https:// or http://, not ${url.protocol}`)
	return url
}

const seconds = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${Math.round(ms / 1000)} s`)
const lowerNames = (headers: Record<string, string> = {}): Record<string, string> =>
	Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

const reasonOf = (error: unknown): string => {
	const e = error as NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }
	return e.code ?? e.errors?.[0]?.code ?? e.message ?? 'unknown'
}

const asHttpError = (error: unknown, url: URL, proxy: URL | null, signal?: AbortSignal): HttpError => {
	if (signal?.aborted) return new HttpError('aborted', 'The request was cancelled.', { cause: error })
	if (isHttpError(error)) return error
	const reason = reasonOf(error)
	const where = proxy && url.protocol === 'http:' ? `the proxy ${shown(proxy)}` : url.host
	const options = { cause: error }
	if (/^(ENOTFOUND|EAI_AGAIN|EAI_)/.test(reason))
		return new HttpError('dns', `The name ${where} was not found.`, options)
	if (reason === 'ECONNREFUSED') return new HttpError('refused', `Nothing answers at ${where}.`, options)
	if (reason === 'ETIMEDOUT') return new HttpError('timeout', `${where} did not answer in time.`, options)
	if (/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO_VERIFY|EPROTO|ALTNAME/.test(reason))
		return new HttpError('tls', `The secure connection to ${where} failed (${reason}).`, options)
	if (/ECONNRESET|EPIPE|aborted|socket hang up|HPE_|Z_|ERR_STREAM_PREMATURE/.test(reason))
		return new HttpError('reset', `The connection to ${where} broke.`, options)
	return new HttpError('network', `The connection to ${where} failed (${reason}).`, options)
}
