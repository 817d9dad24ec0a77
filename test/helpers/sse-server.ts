// A model server on loopback that does exactly what a test says: chunks, delays, stalls, resets, cut bodies, status codes.
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

/** One thing a response does, in order. */
export type Action =
	| string
	| Uint8Array
	| { wait: number }
	/** Nothing more, with the connection open. */
	| { stall: true }
	/** The socket is destroyed (a reset). */
	| { reset: true }
	/** The body ends without its last chunk. */
	| { cut: true }

export interface Reply {
	status?: number
	headers?: Record<string, string>
	/** Without headers for so long; 'never' sends none. */
	headersAfter?: number | 'never'
	body?: Action | Action[]
}

export interface Seen {
	method: string
	path: string
	headers: http.IncomingHttpHeaders
	/** The body as text, and as JSON when it is. */
	text: string
	body: any
}

export type Handler = (request: Seen, n: number) => Reply | Promise<Reply>

export interface SseServer {
	url: string
	requests: Seen[]
	/** Connections accepted so far. */
	connections(): number
	/** Connections open now. */
	open(): number
	close(): Promise<void>
}

/**
 * Serves a handler, or a list of replies (one a request, the last one for all after it). With `tls` (key and cert in PEM) it
 * speaks https on the same loopback.
 */
export async function startSse(steps: Handler | Reply[], tls?: { key: string; cert: string }): Promise<SseServer> {
	const requests: Seen[] = []
	const sockets = new Set<Socket>()
	let accepted = 0
	const listen: http.RequestListener = async (request, response) => {
		const parts: Buffer[] = []
		for await (const part of request) parts.push(part as Buffer)
		const text = Buffer.concat(parts).toString()
		let body: unknown = null
		try {
			body = JSON.parse(text)
		} catch {}
		const seen: Seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, text, body }
		requests.push(seen)
		const n = requests.length - 1
		const reply = typeof steps === 'function' ? await steps(seen, n) : steps[Math.min(n, steps.length - 1)]!
		if (reply.headersAfter === 'never') return
		if (reply.headersAfter) await wait(reply.headersAfter)
		const status = reply.status ?? 200
		response.writeHead(status, {
			'content-type': status === 200 ? 'text/event-stream' : 'application/json',
			'request-id': `req_${n + 1}`,
			...reply.headers,
		})
		response.flushHeaders()
		for (const action of [reply.body ?? ''].flat() as Action[]) {
			if (response.destroyed) return
			if (typeof action === 'string' || action instanceof Uint8Array) {
				if (action.length) await new Promise<void>((done) => response.write(action, () => done()))
			} else if ('wait' in action) await wait(action.wait)
			else if ('stall' in action) return
			else if ('reset' in action) {
				// Time for the bytes before it to arrive: a reset may overtake them.
				await wait(20)
				request.socket.resetAndDestroy()
				return
			} else {
				request.socket.end()
				return
			}
		}
		response.end()
	}
	const server = tls ? https.createServer(tls, listen) : http.createServer(listen)
	server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
		accepted++
		sockets.add(socket)
		socket.on('error', () => {})
		socket.on('close', () => sockets.delete(socket))
	})
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
	const { port } = server.address() as AddressInfo
	return {
		url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
		requests,
		connections: () => accepted,
		open: () => sockets.size,
		async close() {
			for (const socket of sockets) socket.destroy()
			await new Promise<void>((done) => server.close(() => done()))
		},
	}
}

const wait = (ms: number) => new Promise<void>((done) => setTimeout(done, ms))

/** One answer of a model, for either wire. */
export interface Answer {
	text?: string
	/** Into how many deltas; default 1. */
	deltas?: number
	thinking?: string
	signature?: string
	calls?: { id?: string; name: string; input?: unknown; json?: string }[]
	stop?: string | null
	usage?: Record<string, unknown>
	model?: string
}

const split = (text: string, deltas = 1): string[] => {
	const size = Math.max(1, Math.ceil(text.length / deltas))
	return Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))
}

export const anthropicEvent = (event: { type: string; [key: string]: unknown }): string =>
	`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/** The events of an answer in Anthropic's form, one string each. */
export function anthropicStream(answer: Answer): string[] {
	const events: { type: string; [key: string]: unknown }[] = [
		{
			type: 'message_start',
			message: {
				id: 'msg_1',
				type: 'message',
				role: 'assistant',
				model: answer.model ?? 'claude-test',
				content: [],
				stop_reason: null,
				stop_sequence: null,
				usage: { input_tokens: 10, output_tokens: 1, ...answer.usage },
			},
		},
	]
	let index = 0
	const block = (start: object, deltas: object[]) => {
		events.push({ type: 'content_block_start', index, content_block: start })
		for (const delta of deltas) events.push({ type: 'content_block_delta', index, delta })
		events.push({ type: 'content_block_stop', index })
		index++
	}
	if (answer.thinking !== undefined)
		block({ type: 'thinking', thinking: '', signature: '' }, [
			...split(answer.thinking).map((thinking) => ({ type: 'thinking_delta', thinking })),
			{ type: 'signature_delta', signature: answer.signature ?? 'sig' },
		])
	if (answer.text !== undefined)
		block(
			{ type: 'text', text: '' },
			split(answer.text, answer.deltas).map((text) => ({ type: 'text_delta', text })),
		)
	;(answer.calls ?? []).forEach((call, i) => {
		const json = call.json ?? (call.input === undefined ? '' : JSON.stringify(call.input))
		block(
			{ type: 'tool_use', id: call.id ?? `toolu_${i + 1}`, name: call.name, input: {} },
			split(json, 2).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
		)
	})
	const stop_reason = answer.stop === undefined ? (answer.calls?.length ? 'tool_use' : 'end_turn') : answer.stop
	events.push({
		type: 'message_delta',
		delta: { stop_reason, stop_sequence: null },
		usage: { output_tokens: 20, ...answer.usage },
	})
	events.push({ type: 'message_stop' })
	return events.map(anthropicEvent)
}

export const openaiChunk = (choice: object | null, more: object = {}): string =>
	`data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'test', choices: choice ? [{ index: 0, ...choice }] : [], ...more })}\n\n`

/** The chunks of an answer in Chat Completions form, one string each, with usage and [DONE]. */
export function openaiStream(answer: Answer & { reasoningField?: string }): string[] {
	const out = [openaiChunk({ delta: { role: 'assistant', content: '' }, finish_reason: null })]
	if (answer.thinking !== undefined)
		for (const text of split(answer.thinking))
			out.push(openaiChunk({ delta: { [answer.reasoningField ?? 'reasoning_content']: text }, finish_reason: null }))
	if (answer.text !== undefined)
		for (const content of split(answer.text, answer.deltas))
			out.push(openaiChunk({ delta: { content }, finish_reason: null }))
	;(answer.calls ?? []).forEach((call, index) => {
		const json = call.json ?? JSON.stringify(call.input ?? {})
		const head = {
			index,
			id: call.id ?? `call_${index + 1}`,
			type: 'function',
			function: { name: call.name, arguments: '' },
		}
		out.push(openaiChunk({ delta: { tool_calls: [head] }, finish_reason: null }))
		for (const part of split(json, 2))
			out.push(openaiChunk({ delta: { tool_calls: [{ index, function: { arguments: part } }] }, finish_reason: null }))
	})
	const finish_reason = answer.stop === undefined ? (answer.calls?.length ? 'tool_calls' : 'stop') : answer.stop
	out.push(openaiChunk({ delta: {}, finish_reason }))
	out.push(
		openaiChunk(null, { usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30, ...answer.usage } }),
	)
	out.push('data: [DONE]\n\n')
	return out
}
