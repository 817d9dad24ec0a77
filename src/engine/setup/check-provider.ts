// One request that shows whether a provider answers and takes the key: GET …/models at its own base URL, followed nowhere else.
import type { ProviderConfig } from '../config/models.ts'
import { failureOf, toldBy } from '../model/failure.ts'
import { endpoint, normaliseBaseURL } from '../model/provider.ts'
import { type Http, isHttpError } from '../net/http.ts'
import { oneLine } from '../text.ts'
import type { Problem } from '../types.ts'
import { type Listed, readList } from './listed.ts'
import { listPathOf, presetOf } from './presets.ts'

export interface Target {
	provider: ProviderConfig
	/** Without white space around it; null sends none. */
	key: string | null
}

export type Checked = { date: string | null } & (
	| { ok: true; models: Listed[] }
	/** `keyTaken`: the key is good, something else is not (no credit, too many requests). */
	| { ok: false; problem: Problem; keyTaken: boolean }
)

export interface CheckOptions {
	signal?: AbortSignal
	/** For the whole request; default 10,000. */
	ms?: number
	/** YYYY-MM-DD, the date of prices. */
	today: string
}

const maxList = 16_000_000

/**
 * The models that a provider lists for a key. One request, no redirect (its target would get the key), 10 s for all of it.
 * Never throws but when `signal` aborts; no problem's text holds the key.
 */
export async function checkProvider(http: Http, target: Target, options: CheckOptions): Promise<Checked> {
	const { provider, key } = target
	const ms = options.ms ?? 10_000
	const limit = AbortSignal.timeout(ms)
	const url = listUrl(provider)
	let date: string | null = null
	try {
		const response = await http.request({
			url,
			headers: listHeaders(provider, key),
			signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
			headerTimeoutMs: ms,
			connectTimeoutMs: ms,
		})
		date = response.headers.date ?? null
		const text = await response.text(response.status === 200 ? maxList : 100_000, ms)
		if (response.status !== 200) return { date, ...refusal(target, url, response.status, text, response.headers) }
		const models = readList(parsed(text), options.today)
		if (models) return { ok: true, date, models }
		const what = /^\s*</.test(text) ? 'a web page' : 'something else'
		return {
			ok: false,
			date,
			keyTaken: false,
			problem: notAList(target, url, `answered with ${what}, not with a list of models`),
		}
	} catch (error) {
		if (options.signal?.aborted) throw error
		return {
			ok: false,
			date,
			keyTaken: false,
			problem: hidden(wireProblem(http, target, url, error, limit.aborted, ms), key),
		}
	}
}

/** Where a provider lists its models. */
export function listUrl(provider: ProviderConfig): string {
	const base = normaliseBaseURL(provider.baseURL, provider.api)
	// One page holds all that Anthropic has.
	return provider.api === 'anthropic' ? endpoint(base, 'v1/models?limit=1000') : endpoint(base, listPathOf(provider))
}

const listHeaders = ({ api, headers = {} }: ProviderConfig, key: string | null): Record<string, string> => ({
	accept: 'application/json',
	'user-agent': 'garuda-setup',
	...(api === 'anthropic' ? { 'anthropic-version': '2023-06-01' } : {}),
	...(key === null ? {} : api === 'anthropic' ? { 'x-api-key': key } : { authorization: `Bearer ${key}` }),
	...headers,
})

const parsed = (text: string): unknown => {
	try {
		return JSON.parse(text)
	} catch {
		return null
	}
}

/** A server may echo the key it refused. */
const hidden = (problem: Problem, key: string | null): Problem =>
	key === null || key.length < 4
		? problem
		: {
				...problem,
				message: problem.message.replaceAll(key, '[key]'),
				...(problem.hint ? { hint: problem.hint.replaceAll(key, '[key]') } : {}),
			}

function refusal(
	{ provider, key }: Target,
	url: string,
	status: number,
	body: string,
	headers: Record<string, string>,
): { ok: false; problem: Problem; keyTaken: boolean } {
	const { name, api, baseURL } = provider
	const failure = failureOf(toldBy(status, body, headers), { name, api, baseURL, apiKey: key }, 'the list of models')
	const page = presetOf(name)?.keyPage
	const result = (message: string, hint: string, code: string, keyTaken = false) => ({
		ok: false as const,
		keyTaken,
		problem: hidden({ code, message, hint, status }, key),
	})
	if (status >= 300 && status < 400) {
		const to = headers.location && URL.canParse(headers.location, url) ? new URL(headers.location, url).origin : null
		return result(
			`${name} sent a redirect (${status})${to ? ` to ${oneLine(to, 100)}` : ''}; it was not followed, for the key would have gone there.`,
			'Give the final address as the base URL, if you trust it.',
			'invalid_request',
		)
	}
	if (status === 401 || (status === 400 && /api.?key/i.test(body)))
		return result(
			key === null ? `${name} wants a key (${status}).` : `${name} did not accept the key (${status}).`,
			key === null
				? 'Set this provider up with a key.'
				: `Copy the key again, whole${page ? `: ${page}` : ''}. A key of another provider or of another project does not work here.`,
			'auth',
		)
	if (failure.code === 'billing')
		return result(
			`${name} took the key, but the account has no credit (${status}).`,
			`Top up the account, or choose another provider.${page ? ` Keys and account: ${page}` : ''}`,
			'billing',
			true,
		)
	if (status === 403)
		return result(
			`${name} does not allow this key to list the models (403).`,
			'The key may be limited to other rights, an address or a region: look at its permissions, or make another one.',
			'auth',
		)
	if (status === 404 || status === 405)
		return {
			ok: false,
			keyTaken: false,
			problem: hidden(notAList({ provider, key }, url, `does not know this address (${status})`), key),
		}
	if (status === 429)
		return result(
			`${name} limits the rate (429), so the key could not be checked.`,
			'Wait a minute and try again.',
			'rate_limit',
		)
	return result(
		failure.message,
		status >= 500 ? 'This is a fault at the provider: try again a little later.' : 'Look at the base URL and the key.',
		failure.code,
	)
}

/** The forms in which people write a base URL, as advice for the one that was tried. */
const notAList = ({ provider }: Target, url: string, what: string): Problem => ({
	code: 'not_found',
	message: `${shownUrl(url)} ${what}.`,
	hint:
		presetOf(provider.name)?.baseURL === provider.baseURL
			? 'Something between here and the provider may answer in its place (a proxy, a login page of the network).'
			: provider.api === 'anthropic'
				? 'The base URL of an Anthropic-compatible server is what stands before /v1/messages, as in https://api.anthropic.com.'
				: 'The base URL is what stands before /chat/completions, and mostly ends with /v1: https://host/v1, or http://localhost:11434/v1.',
})

const shownUrl = (url: string): string => oneLine(url.replace(/\?.*$/, ''), 200)

function wireProblem(
	http: Http,
	{ provider }: Target,
	url: string,
	error: unknown,
	late: boolean,
	ms: number,
): Problem {
	const { host } = new URL(url)
	const local = /^(?:localhost|127\.|\[::1\])/.test(host)
	const problem = (code: string, message: string, hint: string): Problem => ({ code, message, hint })
	if (late) {
		return problem(
			'timeout',
			`${host} did not answer within ${ms < 1000 ? `${ms} ms` : `${Math.round(ms / 1000)} s`}.`,
			local
				? 'Is the server busy loading a model? Try again.'
				: `Try again; if it stays, look at the network${proxyWords(http, url)}.`,
		)
	}
	if (!isHttpError(error))
		return problem(
			'internal',
			`The check failed: ${oneLine(String(error), 200)}`,
			'This is a fault in Garuda; please report it.',
		)
	switch (error.code) {
		case 'refused':
			return problem(
				'network',
				error.message,
				local
					? `Start the server of ${provider.name}, or correct its port.`
					: 'Look at the host and port of the base URL.',
			)
		case 'dns':
			return problem(
				'network',
				error.message,
				`Are you online? Else look at the spelling of the base URL${proxyWords(http, url)}. Where only a proxy leads out, set HTTPS_PROXY.`,
			)
		case 'tls':
			return problem(
				'network',
				error.message,
				/WRONG_VERSION|EPROTO|PACKET_LENGTH/.test(error.message)
					? 'The server there does not speak https: for a server of this machine begin the base URL with http://.'
					: 'Where a company or a private server has a certificate authority of its own, name its PEM file in NODE_EXTRA_CA_CERTS, or as "model": {"ca": "/path"} in ~/.garuda/settings.json.',
			)
		case 'proxy':
			return problem(
				'network',
				error.message,
				'Look at HTTPS_PROXY and HTTP_PROXY (a user and password go in as http://user:password@host:port), and at NO_PROXY.',
			)
		case 'bad_url':
			return problem('invalid_request', error.message, 'A base URL looks like https://host/v1.')
		case 'reset':
			return problem(
				'network',
				error.message,
				'Is it the right port, and https:// or http:// as the server speaks? Try again.',
			)
		default:
			return problem('network', error.message, `Look at the network${proxyWords(http, url)}, then try again.`)
	}
}

/** The proxy that a request would take, as far as it may be shown. */
const proxyWords = (http: Http, url: string): string => {
	try {
		const proxy = http.proxyFor(url)
		return proxy ? ` and the proxy ${proxy} (HTTPS_PROXY, HTTP_PROXY, NO_PROXY)` : ''
	} catch {
		return ''
	}
}
