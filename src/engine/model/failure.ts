// Turns whatever a provider or a wire says into a ModelFailure: a code, words a person understands, and what to do next.
import { isHttpError } from '../net/http.ts'
import { oneLine } from '../text.ts'
import type { Json, ModelFailure } from '../types.ts'
import { aboutImages } from './images.ts'
import { overflowOf } from './overflow.ts'
import type { Provider } from './provider.ts'

/** An error as a provider told it, in a response or inside a stream. */
export interface Told {
	status?: number | undefined
	/** The provider's stable word (`overloaded_error`, `insufficient_quota`, …). */
	type?: string | undefined
	message: string
	headers?: Record<string, string>
	requestId?: string | undefined
}

const cut = (text: string, provider: Provider): string => {
	const key = provider.apiKey?.trim()
	// A server may echo the key it refused.
	const safe = key && key.length >= 4 ? text.replaceAll(key, '[key]') : text
	return oneLine(safe.replace(/\b(sk|pk|gsk|xai)-[\w-]{12,}/g, '[key]'), 600)
}

/** Reads an error body of any known shape. */
export function toldBy(status: number, body: string, headers: Record<string, string>): Told {
	const requestId = headers['request-id'] ?? headers['x-request-id']
	let parsed: Json = null
	try {
		parsed = JSON.parse(body)
	} catch {}
	const told = parsed === null ? null : errorIn(parsed)
	const html = /^\s*<(!doctype|html)/i.test(body)
	const message = told?.message ?? (html ? 'the answer was a web page, not an API' : body.trim())
	return { status, type: told?.type, message: message || `status ${status}, no text`, headers, requestId }
}

/** The error inside a JSON value (`{error:{type|code,message}}`, `{error:"…"}`, `{message}`, `{detail}`, an array of one), or null. */
export function errorIn(
	value: Json,
): { type?: string; message: string; status?: number; failedGeneration?: string } | null {
	const outer = Array.isArray(value) ? value[0] : value
	if (typeof outer !== 'object' || outer === null || Array.isArray(outer)) return null
	const inner = outer.error ?? (outer.object === 'error' || 'detail' in outer || 'message' in outer ? outer : undefined)
	if (inner === undefined || inner === null) return null
	if (typeof inner === 'string') return { message: inner }
	if (typeof inner !== 'object' || Array.isArray(inner)) return null
	const metadata = inner.metadata
	const raw =
		typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata) && typeof metadata.raw === 'string'
			? ` (${metadata.raw})`
			: ''
	const message = inner.message ?? inner.detail ?? inner.error ?? inner
	const details = typeof inner.details === 'object' ? JSON.stringify(inner.details ?? '') : ''
	const word = [inner.code, inner.type, inner.status].find(
		(x) => typeof x === 'string' && x !== 'invalid_request_error',
	)
	const status = [inner.code, inner.status, inner.status_code].find((x) => typeof x === 'number')
	return {
		message: `${typeof message === 'string' ? message : JSON.stringify(message)}${raw}${/retryDelay/.test(details) ? ` ${details}` : ''}`,
		...(typeof word === 'string' ? { type: word } : typeof inner.type === 'string' ? { type: inner.type } : {}),
		...(typeof status === 'number' && { status }),
		...(typeof inner.failed_generation === 'string' && { failedGeneration: inner.failed_generation }),
	}
}

const statusOfType: Record<string, number> = {
	authentication_error: 401,
	billing_error: 402,
	permission_error: 403,
	not_found_error: 404,
	request_too_large: 413,
	rate_limit_error: 429,
	rate_limit_exceeded: 429,
	insufficient_quota: 429,
	api_error: 500,
	server_error: 500,
	internal_server_error: 500,
	timeout_error: 504,
	overloaded_error: 529,
	overloaded: 529,
}

/** The failure for what a provider told. */
export function failureOf(told: Told, provider: Provider, model: string): ModelFailure {
	const type = told.type ?? ''
	const status = told.status && told.status >= 300 ? told.status : (statusOfType[type] ?? told.status)
	const text = `${type} ${told.message}`
	const words = cut(told.message, provider)
	const at = provider.name
	const delay = retryAfter(told)
	const base = { streamed: false, ...(status && { status }), ...(told.requestId && { requestId: told.requestId }) }
	const fail = (code: string, message: string, hint: string, retryable = false): ModelFailure => ({
		...base,
		code,
		message,
		hint,
		retryable,
		...(delay !== undefined && retryable && { retryAfterMs: delay }),
	})

	if (status && status < 400)
		return fail(
			'invalid_request',
			`${at} sent a redirect (${status}); Garuda does not follow it with your key.`,
			'Correct the base URL of the provider: it must be the final address.',
		)
	if (status === 407)
		return fail(
			'network',
			'The proxy wants a user and password (407).',
			'Put them into HTTPS_PROXY as http://user:password@host:port.',
		)
	const overflow = overflowOf(status, text)
	if (overflow)
		return {
			...fail(
				'overflow',
				`The conversation no longer fits into ${model}: ${words}`,
				'It is shortened with /compact; a local server may need a larger context (num_ctx, OLLAMA_CONTEXT_LENGTH, -c).',
			),
			...overflow,
		}
	const unpaid =
		/insufficient_quota|billing|credit balance|insufficient (credits|balance|funds)|payment|spend(ing)? limit|exceeded your current quota/i
	if (status === 402 || (unpaid.test(text) && status !== 500 && !(status === 429 && delay !== undefined)))
		return fail(
			'billing',
			`${at} says that the account has no credit or quota left: ${words}`,
			"Top up or raise the limit in the provider's console, or choose another model with /model.",
		)
	if (status === 401)
		return fail(
			'auth',
			`${at} did not accept the API key (401): ${words}`,
			`Check the key for ${at}: garuda setup stores a new one; a variable in the environment wins over it.`,
		)
	if (status === 403)
		return fail(
			'auth',
			`${at} does not allow this (403): ${words}`,
			'The key may lack the right to this model or region; look at its permissions, or choose another model.',
		)
	if (status === 404)
		return fail(
			'not_found',
			`${at} does not know the model ${model} or the address (404): ${words}`,
			'Look at the model name with garuda models, and at the base URL. For Ollama: ollama pull the model first.',
		)
	if (status === 529 || /overloaded|over capacity|at capacity|loading model/i.test(text) || status === 503)
		return fail(
			'overloaded',
			`${at} is overloaded: ${words}`,
			'Wait a little and send the prompt again, or choose another model.',
			told.headers?.['x-should-retry'] !== 'false',
		)
	if (status === 429)
		return fail(
			'rate_limit',
			`${at} limits the rate: ${words}`,
			'Wait a little, send less at once, or raise the limit of the account.',
			told.headers?.['x-should-retry'] !== 'false',
		)
	if (status === 408 || status === 504 || status === 524)
		return fail('timeout', `${at} took too long: ${words}`, 'Send the prompt again.', true)
	if (!status || status >= 500 || status === 409 || status === 425)
		return fail(
			'internal',
			`${at} failed${status ? ` (${status})` : ''}: ${words}`,
			'This is a fault at the provider; send the prompt again, or choose another model.',
			told.headers?.['x-should-retry'] !== 'false' && status !== 501 && status !== 505,
		)
	return {
		...fail('invalid_request', `${at} refused the request (${status}): ${words}`, hintFor(text)),
		...namedParts(text),
	}
}

const hintFor = (text: string): string => {
	if (/does not support tools|tool.{0,20}not supported|no tools? support/i.test(text))
		return 'This model cannot call tools: choose one that can.'
	if (/enable-auto-tool-choice|tool-call-parser/.test(text))
		return 'Start vLLM with --enable-auto-tool-choice and --tool-call-parser for this model.'
	if (/jinja/i.test(text)) return 'Start the llama.cpp server with --jinja: tools need it.'
	if (/content.?filter|content management policy|safety/i.test(text))
		return 'The provider filtered the content: say it in other words.'
	return 'Send the prompt again; if it stays, start a new session and report the message.'
}

const namedParts = (text: string): Partial<ModelFailure> => {
	const named = /\bmessages[.[](\d+)\b/.exec(text)
	const binding = isThinkingError(text)
	return {
		...(named && { badMessage: Number(named[1]) }),
		...(aboutImages(text) && { badImage: true }),
		...(binding && { thinkingBinding: true }),
	}
}

/** The errors that sending the same request without thinking blocks mends. */
export const isThinkingError = (text: string): boolean =>
	/invalid `?signature`? in `?thinking`? block|bound to a different conversation|thinking` or `redacted_thinking` blocks .{0,60}cannot be modified|thinking blocks? .{0,40}cannot be modified|expected `?thinking`? or `?redacted_thinking`?|thinking\.signature/i.test(
		text,
	)

const retryAfter = (told: Told): number | undefined => {
	const h = told.headers ?? {}
	const ms = Number(h['retry-after-ms'])
	if (h['retry-after-ms'] && ms >= 0) return ms
	const after = h['retry-after']
	if (after) {
		if (/^\s*[\d.]+\s*$/.test(after)) return Math.round(Number(after) * 1000)
		const date = Date.parse(after)
		const now = Date.parse(h.date ?? '')
		// Both ends by the server's clock where it tells it: ours may be wrong.
		if (!Number.isNaN(date)) return Math.max(0, date - (Number.isNaN(now) ? Date.now() : now))
	}
	const said =
		/(?:try again|retry) (?:in|after) (?:(\d+)m(?!s))?\s*([\d.]+)\s*(ms|s)|"retrydelay"\s*:\s*"()([\d.]+)(s)"/i.exec(
			told.message,
		)
	if (!said) return undefined
	const value = Number(said[2] ?? said[5])
	return Math.round(Number(said[1] ?? 0) * 60_000 + value * ((said[3] ?? said[6]) === 'ms' ? 1 : 1000))
}

/** The failure for a request that broke on the wire. */
export function wireFailure(error: unknown, provider: Provider): ModelFailure {
	const fail = (code: string, message: string, hint: string, retryable: boolean): ModelFailure => ({
		code,
		message,
		hint,
		retryable,
		streamed: false,
	})
	if (!isHttpError(error))
		return fail(
			'internal',
			`The model adapter failed: ${cut(error instanceof Error ? error.message : String(error), provider)}`,
			'This is a fault in Garuda; please report it.',
			false,
		)
	const again = 'Send the prompt again; if it stays, look at the network.'
	switch (error.code) {
		case 'aborted':
			return cancelled()
		case 'timeout':
			return fail('timeout', error.message, again, true)
		case 'refused':
			return fail('network', error.message, `Is the server of ${provider.name} running? Look at its base URL.`, true)
		case 'dns':
			return fail('network', error.message, 'Look at the network, the proxy variables and the base URL.', true)
		case 'tls':
			return fail(
				'network',
				error.message,
				'If your company inspects traffic, give its certificate in NODE_EXTRA_CA_CERTS.',
				false,
			)
		case 'proxy':
			return fail('network', error.message, 'Look at HTTPS_PROXY, HTTP_PROXY and NO_PROXY.', false)
		case 'bad_url':
			return fail('invalid_request', error.message, `Correct the base URL of ${provider.name}.`, false)
		default:
			return fail('network', error.message, again, true)
	}
}

export const cancelled = (): ModelFailure => ({
	code: 'cancelled',
	message: 'The request was cancelled.',
	retryable: false,
	streamed: false,
})

/** The failure for a stream that ended, stalled or made no sense before its end. */
export const brokenStream = (provider: Provider, what: string, code = 'network'): ModelFailure => ({
	code,
	message: `The answer of ${provider.name} ${what}.`,
	hint: 'Send the prompt again; if it stays, look at the network or the server.',
	retryable: true,
	streamed: false,
})
