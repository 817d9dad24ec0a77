// The Chat Completions adapter: local servers and hosted ones that speak the same form, each with its habits (quirks).
import type { ModelEvent, ModelFailure, ModelRequest, ModelSpec } from '../types.ts'
import { type Adapter, type AdapterDeps, idsIn } from './adapter.ts'
import { brokenStream, cancelled, errorIn, failureOf, toldBy, wireFailure } from './failure.ts'
import { beyondTokens, imagesIn } from './images.ts'
import { learnOpenai } from './learn.ts'
import { OpenaiDecoder } from './openai-decode.ts'
import { encodeOpenai } from './openai-encode.ts'
import { endpoint, type Provider, type ProviderQuirks, quirksFor } from './provider.ts'
import { readStream } from './sse.ts'
import { readTextCalls } from './text-calls.ts'

/** No SDK: one POST, read by the stream reader. */
export function openaiAdapter(provider: Provider, spec: ModelSpec, deps: AdapterDeps): Adapter {
	const key = provider.apiKey?.trim() || null
	const quirks: ProviderQuirks = quirksFor(provider, spec.id)
	let cutTold = false
	const headers = {
		'content-type': 'application/json',
		accept: 'text/event-stream, application/json',
		'user-agent': 'garuda',
		// Never an empty Bearer.
		...(key && { authorization: `Bearer ${key}` }),
		...provider.headers,
	}

	return {
		quirks,
		async *attempt(request, messages, signal) {
			for (let learned = 0; ; learned++) {
				const { body, origin } = encodeOpenai(request, messages, spec, quirks)
				const text = JSON.stringify(body)
				const sent = Number(body[quirks.maxTokens ?? 'max_tokens'])
				let failure: ModelFailure
				try {
					const response = await deps.http.request({
						url: endpoint(provider.baseURL, 'chat/completions'),
						method: 'POST',
						headers,
						body: text,
						signal,
						headerTimeoutMs: deps.tuning.headerTimeoutMs,
					})
					const requestId = response.headers['x-request-id'] ?? response.headers['request-id']
					const decoder = () =>
						new OpenaiDecoder({
							provider,
							spec,
							tools: request.tools,
							usedIds: idsIn(request.messages),
							maxOutput: sent,
							requestId,
							sentChars: text.length - beyondTokens(imagesIn(messages)),
							cutTold,
						})
					const type = response.headers['content-type'] ?? ''
					if (response.status >= 200 && response.status < 300) {
						if (/text\/html/.test(type)) {
							await response.text(1, 1_000).catch(() => '')
							const hint = 'Look at the base URL; a network login page may also be in the way.'
							yield {
								type: 'error',
								error: {
									...brokenStream(provider, 'was a web page, not an API', 'invalid_request'),
									retryable: false,
									hint,
								},
							}
							return
						}
						const streaming = decoder()
						// A server that ignores `stream` answers with one JSON object.
						const events = /application\/json/.test(type)
							? readWhole(await response.text(64 * 1024 * 1024, deps.tuning.idleMs), streaming, provider)
							: readStream(response.body, streaming, { provider, tuning: deps.tuning, signal })
						for await (const event of events) {
							if (event.type === 'end' && event.detail?.startsWith('context_cut')) cutTold = true
							const saved =
								event.type === 'error' && streaming.failedGeneration
									? recovered(streaming.failedGeneration, request, decoder())
									: null
							if (saved) yield* saved
							else yield event
						}
						return
					}
					const answer = await response.text(100_000, 30_000).catch(() => '')
					const saved = response.status === 400 ? groq(answer, request, decoder()) : null
					if (saved) {
						yield* saved
						return
					}
					failure = failureOf(toldBy(response.status, answer, response.headers), provider, request.model)
					if (/tool_use_failed/.test(answer)) failure.retryable = true
				} catch (error) {
					failure = signal.aborted ? cancelled() : wireFailure(error, provider)
				}
				if (learned < 6 && learnOpenai(quirks, failure, sent)) {
					deps.log({ learned: quirks, from: failure.message })
					continue
				}
				if (failure.badMessage !== undefined) {
					const at = origin[failure.badMessage] ?? -1
					if (at >= 0) failure.badMessage = at
					else delete failure.badMessage
				}
				yield { type: 'error', error: failure }
				return
			}
		},
	}
}

async function* readWhole(text: string, decoder: OpenaiDecoder, provider: Provider): AsyncGenerator<ModelEvent> {
	const out: ModelEvent[] = []
	decoder.push(text, out)
	if (decoder.failure || !decoder.complete) {
		yield {
			type: 'error',
			error: decoder.failure ?? { ...brokenStream(provider, 'was JSON that is no answer'), retryable: false },
		}
		return
	}
	decoder.finish(out)
	yield* out
}

/** Groq refuses its model's own malformed call and gives its text: when it reads as calls to our tools, it is the answer. */
const groq = (answer: string, request: ModelRequest, decoder: OpenaiDecoder): ModelEvent[] | null => {
	try {
		const text = errorIn(JSON.parse(answer))?.failedGeneration
		return text ? recovered(text, request, decoder) : null
	} catch {
		return null
	}
}

const recovered = (text: string, request: ModelRequest, decoder: OpenaiDecoder): ModelEvent[] | null => {
	const { calls } = readTextCalls(text, request.tools, 'whole')
	if (!calls.length) return null
	const out: ModelEvent[] = []
	const tool_calls = calls.map((call, index) => ({
		index,
		id: '',
		function: { name: call.name, arguments: call.input },
	}))
	decoder.push(JSON.stringify({ choices: [{ delta: { tool_calls }, finish_reason: 'tool_calls' }] }), out)
	decoder.finish(out)
	return out
}
