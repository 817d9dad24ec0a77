// Who is asked and how: a provider's address, key and habits, before the first request of a prompt.
import type { Problem } from '../types.ts'

export interface Provider {
	name: string
	api: 'anthropic' | 'openai'
	baseURL: string
	/** null or blank: no authorization header is sent. */
	apiKey: string | null
	headers?: Record<string, string>
	quirks?: ProviderQuirks
	/** Plain http to another machine; only from the user's own configuration. */
	allowHttp?: boolean
}

/** How a Chat Completions server differs from the plain form. What is not set comes from its address, then from its errors. */
export interface ProviderQuirks {
	maxTokens?: 'max_tokens' | 'max_completion_tokens'
	systemRole?: 'system' | 'developer'
	/** Thinking goes back on tool turns in this field, or not at all. */
	reasoning?: 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'never'
	/** Content of an assistant message that only calls tools. */
	emptyContent?: 'null' | 'empty' | 'omit'
	/** How effort is asked for. */
	effort?: 'reasoning_effort' | 'reasoning' | 'none'
	/** Tool call ids of nine letters and digits. */
	shortIds?: boolean
	/** Ask for usage in the stream. */
	streamUsage?: boolean
	/** `prompt_cache_key` with the session's id. */
	cacheKey?: boolean
	/** `cache_control` marks in message parts. */
	cacheMarks?: boolean
	/** The most output tokens the server takes in a request. */
	maxOutput?: number
	/** False: the server takes no pictures. */
	images?: boolean
	/** The most pictures in a request. */
	maxImages?: number
	/** A user's message must not follow a tool's: a word of the assistant goes between. */
	wordAfterTools?: boolean
	/** Anthropic form: leave thinking parameters out. */
	noThinking?: boolean
}

export interface ModelTuning {
	/** No byte for this long: the stream is broken (pings are bytes). */
	idleMs: number
	/** No content for this long: a notice. */
	noticeMs: number
	firstRetryMs: number
	maxRetryMs: number
	/** Tries again when nothing had been shown, and when something had. */
	retriesBefore: number
	retriesMid: number
	/** Until the response's headers. A local model may read a long prompt before it sends any. */
	headerTimeoutMs: number
}

export const defaultTuning: ModelTuning = {
	idleMs: 300_000,
	noticeMs: 120_000,
	firstRetryMs: 1_000,
	maxRetryMs: 60_000,
	retriesBefore: 5,
	retriesMid: 3,
	headerTimeoutMs: 300_000,
}

/**
 * The base address as the adapter needs it: without a trailing slash or the endpoint's own path; for `anthropic` without `/v1`,
 * for `openai` with it unless another version is there. A trailing `#` takes the address as written.
 */
export function normaliseBaseURL(url: string, api: Provider['api']): string {
	let text = url.trim()
	if (text.endsWith('#')) return text.slice(0, -1).replace(/\/+$/, '')
	if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
		text = `${/^(localhost|127\.|\[::1\]|0\.0\.0\.0)/.test(text) ? 'http' : 'https'}://${text}`
	if (!URL.canParse(text)) return text
	const parsed = new URL(text)
	let path = parsed.pathname.replace(/\/+$/, '')
	path = path.replace(api === 'anthropic' ? /\/messages$/ : /\/chat\/completions$/, '').replace(/\/models$/, '')
	if (api === 'anthropic') path = path.replace(/\/v1$/, '')
	else if (!/\/(v\d+[a-z0-9]*|deployments)(\/|$)/.test(path) && parsed.hostname !== 'models.github.ai') path += '/v1'
	const login = parsed.username ? `${parsed.username}${parsed.password && `:${parsed.password}`}@` : ''
	return `${parsed.protocol}//${login}${parsed.host}${path}${parsed.search}`
}

/** The address of an endpoint below a base address; a query of the base stays. */
export const endpoint = (baseURL: string, path: string): string => {
	const cut = baseURL.indexOf('?')
	return cut < 0 ? `${baseURL}/${path}` : `${baseURL.slice(0, cut)}/${path}${baseURL.slice(cut)}`
}

/** What is wrong with a key, never showing it; null when it can be sent. White space around it is not wrong: it is trimmed. */
export function checkKey(key: string): Problem | null {
	const problem = (what: string): Problem => ({
		code: 'auth',
		message: `The API key ${what}.`,
		hint: 'Copy the key again from the provider and set it without quotes or spaces.',
	})
	const text = key.trim()
	if (!text) return problem('is empty')
	if (/^(["'`]).*\1$/.test(text)) return problem('is wrapped in quotation marks')
	if (/^bearer\s/i.test(text)) return problem('begins with the word "Bearer"; give the key alone')
	for (let i = 0; i < text.length; i++) {
		const code = text.codePointAt(i)!
		if (code > 0x20 && code < 0x7f) continue
		const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
		if (code === 0x0a || code === 0x0d) return problem('holds a line break')
		if (code === 0x20 || code === 0x09) return problem('holds a space')
		if (code < 0x20 || code === 0x7f) return problem(`holds a control character (${name})`)
		if (code === 0x200b || code === 0x200c || code === 0x200d || code === 0xfeff || code === 0x2060)
			return problem(`holds an invisible character (${name})`)
		return problem(`holds a character that no key has (${name})`)
	}
	return null
}

/** The habits of known servers, by host name; an address on this machine gets the plain form. */
export function quirksFor(provider: Provider, model: string): ProviderQuirks {
	const host = URL.canParse(provider.baseURL) ? new URL(provider.baseURL).hostname : ''
	const is = (name: string) => host === name || host.endsWith(`.${name}`)
	let known: ProviderQuirks = {}
	if (is('openai.com') || is('openai.azure.com'))
		known = {
			maxTokens: 'max_completion_tokens',
			systemRole: /^(o\d|gpt-5)/.test(model) ? 'developer' : 'system',
			cacheKey: is('openai.com'),
			reasoning: 'never',
		}
	else if (is('openrouter.ai'))
		known = { reasoning: 'reasoning_details', effort: 'reasoning', cacheMarks: /^(anthropic|qwen)\//.test(model) }
	else if (is('deepseek.com') || is('moonshot.ai') || is('moonshot.cn') || is('z.ai') || is('bigmodel.cn'))
		known = { reasoning: 'reasoning_content' }
	else if (is('mistral.ai')) known = { shortIds: true, effort: 'none', maxImages: 8, wordAfterTools: true }
	else if (is('groq.com')) known = { maxTokens: 'max_completion_tokens', maxImages: 5 }
	return {
		maxTokens: 'max_tokens',
		systemRole: 'system',
		reasoning: 'never',
		emptyContent: 'empty',
		effort: 'reasoning_effort',
		streamUsage: true,
		shortIds: /mistral|devstral|codestral|magistral/i.test(model),
		...known,
		...provider.quirks,
	}
}
