// The Anthropic adapter: the SDK makes the request (its form, headers and version are the SDK's business), Garuda carries and reads it.
import { BaseAnthropic } from '@anthropic-ai/sdk/client'
import type { Http } from '../net/http.ts'
import type { ModelFailure, ModelSpec } from '../types.ts'
import { type Adapter, type AdapterDeps, idsIn } from './adapter.ts'
import { AnthropicDecoder } from './anthropic-decode.ts'
import { encodeAnthropic } from './anthropic-encode.ts'
import { Headers } from './anthropic-headers.ts'
import { brokenStream, cancelled, failureOf, toldBy, wireFailure } from './failure.ts'
import { learnAnthropic } from './learn.ts'
import type { Provider, ProviderQuirks } from './provider.ts'
import { readStream } from './sse.ts'

// The SDK reads headers from the environment; Garuda sends only these of it and the provider's own.
const ownHeaders =
	/^(authorization|content-type|accept|anthropic-(version|beta)|user-agent|x-stainless-.*|idempotency-key)$/

/** This file holds the SDK's core: it is loaded only where this provider is used. */
export function anthropicAdapter(provider: Provider, spec: ModelSpec, deps: AdapterDeps): Adapter {
	const key = provider.apiKey?.trim() || null
	const quirks: ProviderQuirks = { ...provider.quirks }
	const extra = Object.fromEntries(
		Object.entries(provider.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
	)
	const silent = { error: quiet, warn: quiet, info: quiet, debug: quiet }
	const client = new BaseAnthropic({
		// Never null: the SDK would look for a key, a profile and a base URL of its own.
		apiKey: key ?? 'none',
		authToken: null,
		baseURL: provider.baseURL,
		maxRetries: 0,
		timeout: deps.tuning.headerTimeoutMs + 60_000,
		logger: silent,
		logLevel: 'off',
		openTelemetry: false,
		fetchOptions: { redirect: 'error' },
		fetch: async (url, init) => {
			const headers: Record<string, string> = {}
			new Headers(init?.headers as Record<string, string>).forEach((value, name) => {
				if (ownHeaders.test(name) && (name !== 'authorization' || key)) headers[name] = value
			})
			const response = await deps.http.request({
				url: String(url),
				method: init?.method ?? 'POST',
				headers: { ...headers, ...extra },
				body: init?.body as string,
				signal: init?.signal ?? undefined,
				headerTimeoutMs: deps.tuning.headerTimeoutMs,
			})
			return new WireResponse(response) as unknown as Response
		},
	})

	return {
		quirks,
		async *attempt(request, messages, signal) {
			for (let learned = 0; ; learned++) {
				const body = encodeAnthropic(request, messages, spec, quirks)
				let wire: WireResponse
				// The SDK leaves its listener on the signal until the garbage collector comes; a turn's signal lives long.
				const link = new AbortController()
				const onAbort = () => link.abort()
				signal.addEventListener('abort', onAbort, { once: true })
				if (signal.aborted) link.abort()
				try {
					// Not messages.create: it prints warnings about old models to the console.
					wire = (await client
						.post('/v1/messages', {
							// As text: for an object the SDK first asks the global FormData, which loads undici.
							body: JSON.stringify(body),
							headers: { 'content-type': 'application/json' },
							stream: true,
							signal: link.signal,
							timeout: deps.tuning.headerTimeoutMs + 60_000,
						})
						.asResponse()) as unknown as WireResponse
				} catch (error) {
					const failure = await asFailure(error, provider, request.model, signal)
					if (learned < 3 && learnAnthropic(quirks, failure, body.max_tokens)) {
						deps.log({ learned: quirks, from: failure.message })
						continue
					}
					yield { type: 'error', error: failure }
					return
				} finally {
					signal.removeEventListener('abort', onAbort)
				}
				const requestId = wire.source.headers['request-id'] ?? wire.source.headers['x-request-id']
				const type = wire.source.headers['content-type'] ?? ''
				if (/text\/html/.test(type)) {
					await wire.source.text(1, 1_000).catch(() => '')
					yield {
						type: 'error',
						error: {
							...brokenStream(provider, 'was a web page, not an API', 'invalid_request'),
							retryable: false,
							hint: 'Look at the base URL; a network login page may also be in the way.',
						},
					}
					return
				}
				const decoder = new AnthropicDecoder({
					provider,
					spec,
					tools: request.tools,
					usedIds: idsIn(request.messages),
					maxOutput: body.max_tokens,
					requestId,
				})
				yield* readStream(wire.source.body, decoder, { provider, tuning: deps.tuning, signal })
				return
			}
		},
	}
}

const quiet = () => {}

/** The part of a Response that the SDK reads, over our own: no second stream between the socket and the parser. */
class WireResponse {
	readonly source
	readonly status: number
	readonly ok: boolean
	readonly headers: Headers
	readonly url = ''
	/** The SDK watches it for being forgotten: the same object that is read. */
	readonly body: object
	constructor(source: Awaited<ReturnType<Http['request']>>) {
		this.source = source
		this.body = source.body
		this.status = source.status
		this.ok = source.status >= 200 && source.status < 300
		this.headers = new Headers(source.headers)
	}
	text(): Promise<string> {
		return this.source.text(100_000, 30_000)
	}
}

const asFailure = async (
	error: unknown,
	provider: Provider,
	model: string,
	signal: AbortSignal,
): Promise<ModelFailure> => {
	if (signal.aborted) return cancelled()
	const e = error as { status?: number; error?: unknown; headers?: Headers; message?: string; cause?: unknown }
	if (typeof e.status !== 'number') return wireFailure(e.cause ?? error, provider)
	const headers: Record<string, string> = {}
	e.headers?.forEach((value, name) => {
		headers[name] = value
	})
	const body = e.error === undefined ? (e.message ?? '').replace(/^\d+ /, '') : JSON.stringify(e.error)
	return failureOf(toldBy(e.status, body, headers), provider, model)
}
