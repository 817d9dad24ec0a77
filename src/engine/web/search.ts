// A search at the user's service: request, answer, rows. Called by the web_search tool.
import { ToolError } from '../errors.ts'
import { type Http, type HttpRequest, isHttpError } from '../net/http.ts'
import { oneLine } from '../text.ts'
import { plainWords } from './plain.ts'
import type { SearchBackend } from './search-config.ts'
import { encodedLength, encodedRun } from './tokens.ts'

export interface SearchRow {
	title: string
	url: string
	text: string
}

const maxQuery = 300
const answerBytes = 2_000_000

/** Why a query is not sent, or null: what is long and looks encoded may be a secret or the project's content. */
export const refusedQuery = (query: string): string | null => {
	if (query.trim() === '') return 'The query is empty.'
	if (query.length > maxQuery) return `The query is longer than ${maxQuery} characters. Use a few words.`
	if (encodedRun(query, 32) !== null || encodedLength(query) >= 48 || hexGroups.test(`${query} `))
		return 'The query holds a long token that looks like a key, a hash or encoded data. It was not sent; search with words.'
	return null
}

/** A token of hex written apart. */
const hexGroups = /(?:\b[0-9a-f]{2,16}\b[\s:.,-]+){8,}/i

/** At most `maxResults` rows, cleaned of nothing yet. Throws ToolError; the key is in no message. */
export const searchWeb = async (
	backend: SearchBackend,
	query: string,
	http: Pick<Http, 'request'>,
	signal: AbortSignal,
): Promise<SearchRow[]> => {
	let answer: unknown
	try {
		const response = await http.request({
			...request(backend, query),
			signal,
			headerTimeoutMs: 20_000,
			connectTimeoutMs: 10_000,
		})
		const text = await response.text(answerBytes, 20_000)
		if (response.status !== 200)
			throw new ToolError(
				response.status === 401 || response.status === 403
					? `${backend.name} refused the key or the request (status ${response.status}). The user must look at ~/.garuda/search.json.`
					: response.status === 429
						? `${backend.name} says that there were too many searches (429). Wait, or go on without.`
						: `${backend.name} answered with status ${response.status}.`,
			)
		answer = JSON.parse(text)
	} catch (error) {
		if (isHttpError(error)) throw new ToolError(`The search failed: ${error.message}`)
		if (error instanceof SyntaxError)
			throw new ToolError(
				`${backend.name} did not answer with JSON${backend.name === 'searxng' ? '; its settings must allow the json format' : ''}.`,
			)
		throw error
	}
	return rows(backend.name, answer).slice(0, backend.maxResults)
}

const request = ({ name, url, key, maxResults }: SearchBackend, query: string): HttpRequest => {
	const json = { accept: 'application/json' }
	const words = encodeURIComponent(query)
	if (name === 'brave')
		return {
			url: `${url}/res/v1/web/search?q=${words}&count=${maxResults}&text_decorations=false`,
			headers: { ...json, 'x-subscription-token': key ?? '' },
		}
	if (name === 'tavily')
		return {
			method: 'POST',
			url: `${url}/search`,
			headers: { ...json, 'content-type': 'application/json', authorization: `Bearer ${key ?? ''}` },
			body: JSON.stringify({ query, max_results: maxResults, search_depth: 'basic' }),
		}
	return {
		url: `${url}/search?q=${words}&format=json`,
		headers: { ...json, ...(key && { authorization: `Bearer ${key}` }) },
	}
}

/** An answer of another shape is no empty list: that would be told as "nothing found". */
const rows = (name: SearchBackend['name'], answer: unknown): SearchRow[] => {
	const at = (value: unknown, key: string): unknown =>
		typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
	let list = name === 'brave' ? at(at(answer, 'web'), 'results') : at(answer, 'results')
	// Brave leaves the part out when it found nothing.
	if (list === undefined && name === 'brave' && at(answer, 'type') === 'search') list = []
	if (!Array.isArray(list)) throw new ToolError(`${name} answered in a form that is not known.`)
	return list.flatMap((row): SearchRow[] => {
		const url = at(row, 'url')
		if (typeof url !== 'string' || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return []
		const text = at(row, name === 'brave' ? 'description' : 'content')
		const title = at(row, 'title')
		return [{ url: new URL(url).href, title: plain(title, 200), text: plain(text, 500) }]
	})
}

const plain = (value: unknown, max: number): string =>
	typeof value === 'string'
		? oneLine(plainWords(value.replace(/<\/?(?:strong|em|b|i|span|mark)[^>]*>/gi, '')), max)
		: ''
