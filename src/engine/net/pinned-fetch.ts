// One GET to a host whose every address was judged, over a socket to the judged address. No redirect, cookie or cache. Used by web_fetch.
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { dialChecked, type Reach } from './checked-dial.ts'
import type { IncomingMessage } from './http.ts'
import { HttpError } from './http-error.ts'

export interface PinnedRequest {
	/** https:, or http: for this machine. */
	url: URL
	headers?: Record<string, string>
	/** Bytes of the body after decompression; what is beyond is not read. */
	maxBytes: number
	/** For all of it: name, connection, headers, body. */
	deadlineMs: number
	signal: AbortSignal
	reach?: Pick<Reach, 'lookup' | 'dial' | 'loopback' | 'upstream'>
	/** PEM text trusted besides the usual roots. */
	ca?: string | undefined
	/** Looks at status and headers before the body is read; throws to leave it. */
	check?(status: number, headers: Record<string, string>): void
}

export interface PinnedResponse {
	status: number
	/** Lower-case names. */
	headers: Record<string, string>
	bytes: Uint8Array
	/** The body was longer than `maxBytes`. */
	cut: boolean
}

/** Throws HttpError, or what `check` throws. */
export const pinnedGet = async (request: PinnedRequest): Promise<PinnedResponse> => {
	const { url, maxBytes, deadlineMs, check } = request
	const host = url.hostname.replace(/^\[|\]$/g, '')
	const late = AbortSignal.timeout(deadlineMs)
	const signal = AbortSignal.any([request.signal, late])
	let socket: Socket | undefined
	try {
		socket = await dialChecked(host, Number(url.port) || (url.protocol === 'https:' ? 443 : 80), {
			...request.reach,
			signal,
		})
		const response = await ask(socket, host, request, signal)
		const headers: Record<string, string> = {}
		for (const [name, value] of Object.entries(response.headers))
			headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '')
		const status = response.statusCode ?? 0
		check?.(status, headers)
		const body = await unpacked(response, headers['content-encoding'])
		return { status, headers, ...(await readBytes(body, response, maxBytes, signal)) }
	} catch (error) {
		if (request.signal.aborted) throw new HttpError('aborted', 'The request was cancelled.')
		if (late.aborted) throw new HttpError('timeout', `${host} did not send all within ${deadlineMs / 1000} s.`)
		const code = (error as NodeJS.ErrnoException).code ?? ''
		if (/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO_VERIFY|EPROTO|ALTNAME/.test(code))
			throw new HttpError('tls', `The secure connection to ${host} failed (${code}).`, { cause: error })
		if (/^(?:ECONN|EPIPE|HPE_|Z_|ERR_STREAM|ERR__ERROR|ERR_BROTLI|ERR_PADDING)/.test(code))
			throw new HttpError('reset', `The answer of ${host} was broken (${code}).`, { cause: error })
		throw error
	} finally {
		socket?.on('error', () => {})
		socket?.destroy()
	}
}

const ask = async (
	socket: Socket,
	host: string,
	request: PinnedRequest,
	signal: AbortSignal,
): Promise<IncomingMessage> => {
	const { url, ca } = request
	const http = process.getBuiltinModule('node:http')
	const tls = process.getBuiltinModule('node:tls')
	const way =
		url.protocol === 'https:'
			? tls.connect({
					socket,
					ALPNProtocols: ['http/1.1'],
					...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
					...(ca && { ca: [...tls.getCACertificates('default'), ca] }),
				})
			: socket
	return new Promise((resolve, reject) => {
		way.on('error', reject)
		const outgoing = http.request({
			method: 'GET',
			host,
			path: `${url.pathname}${url.search}`,
			headers: { ...request.headers, host: url.host, 'accept-encoding': 'gzip, br', connection: 'close' },
			// No agent: this connection belongs to this request alone.
			createConnection: () => way,
			signal,
		})
		outgoing.on('response', resolve)
		outgoing.on('error', reject)
		outgoing.end()
	})
}

const unpacked = async (response: IncomingMessage, encoding = 'identity'): Promise<Readable> => {
	if (encoding === 'identity' || encoding === '') return response
	const zlib = await import('node:zlib')
	// One encoding only: a list of them is how a small answer becomes an endless one.
	const unpack =
		encoding === 'br'
			? zlib.createBrotliDecompress()
			: encoding === 'gzip' || encoding === 'x-gzip' || encoding === 'deflate'
				? zlib.createUnzip()
				: null
	if (!unpack)
		throw new HttpError('network', `The answer is packed in a way that was not asked for (${encoding.slice(0, 40)}).`)
	response.on('error', (error) => unpack.destroy(error))
	response.on('aborted', () => unpack.destroy(new HttpError('reset', 'The answer was cut.')))
	return response.pipe(unpack)
}

/** Reads as far as the cap, piece by piece: what is not read is never unpacked. */
const readBytes = async (
	body: Readable,
	response: IncomingMessage,
	maxBytes: number,
	signal: AbortSignal,
): Promise<{ bytes: Uint8Array; cut: boolean }> => {
	const parts: Uint8Array[] = []
	let length = 0
	const stop = () => body.destroy(new HttpError('timeout', 'The answer took too long.'))
	signal.addEventListener('abort', stop, { once: true })
	try {
		for await (const part of body) {
			parts.push(part as Uint8Array)
			length += (part as Uint8Array).byteLength
			if (length > maxBytes) break
		}
		const all = Buffer.concat(parts)
		return { bytes: all.subarray(0, maxBytes), cut: length > maxBytes }
	} finally {
		signal.removeEventListener('abort', stop)
		response.on('error', () => {})
		response.destroy()
	}
}
