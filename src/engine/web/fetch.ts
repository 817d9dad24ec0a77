// One web page as text: hop by hop, each host decided before it is asked, the body bounded, HTML made Markdown. Called by the web_fetch tool.
import { ToolError } from '../errors.ts'
import type { Dial, Lookup } from '../net/checked-dial.ts'
import { isHttpError } from '../net/http-error.ts'
import { type PinnedResponse, pinnedGet } from '../net/pinned-fetch.ts'
import { oneLine } from '../text.ts'
import { convert } from './convert.ts'
import { type Target, webTarget } from './target.ts'

export interface FetchOptions {
	allowLocalhost?: boolean | undefined
	/** PEM text trusted besides the usual roots. */
	ca?: string | undefined
	/** The proxy of the user's network that leads to a host, or null. */
	upstream?: ((host: string, port: number) => URL | null) | undefined
	lookup?: Lookup | undefined
	dial?: Dial | undefined
	/** Bytes after decompression. Default 5,000,000. */
	maxBytes?: number | undefined
	/** For each hop. Default 20,000. */
	deadlineMs?: number | undefined
	convertMs?: number | undefined
	convertWorkerUrl?: URL | undefined
}

export interface Page {
	url: string
	status: number
	title: string
	text: string
	/** What the model should know of how this came about. */
	notes: string[]
}

const maxHops = 5

/**
 * `reach` is asked for each host before its name is even looked up; it answers null, or why not. Throws ToolError with a text
 * for the model. A page with an error status is returned as it is.
 */
export const fetchPage = async (
	first: Target,
	options: FetchOptions,
	reach: (target: Target) => Promise<string | null>,
	signal: AbortSignal,
): Promise<Page> => {
	const { maxBytes = 5_000_000, deadlineMs = 20_000 } = options
	const notes: string[] = []
	let target = first
	let asked = ''
	for (let hop = 0; ; hop++) {
		if (target.upgraded) notes.push('asked by https instead of http')
		const place = `${target.host}:${target.port}`
		if (place !== asked) {
			const refusal = await reach(target)
			if (refusal !== null)
				throw new ToolError(hop === 0 ? refusal : `${first.host} sent on to ${shown(target.url)}. ${refusal}`)
			asked = place
		}
		let response: PinnedResponse
		try {
			response = await pinnedGet({
				url: target.url,
				headers: {
					'user-agent': 'Garuda (coding agent)',
					accept: 'text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.1',
				},
				maxBytes,
				deadlineMs,
				signal,
				reach: { lookup: options.lookup, dial: options.dial, upstream: options.upstream, loopback: target.loopback },
				ca: options.ca,
				check: (status, headers) => {
					if (status >= 300 && status < 400) return
					const type = mediaType(headers)
					if (kindOf(type) === null && status < 400)
						throw new ToolError(
							`${shown(target.url)} is ${oneLine(type, 60) || 'of an unknown type'}, no text; it was not read.`,
						)
				},
			})
		} catch (error) {
			if (isHttpError(error)) throw new ToolError(`${shown(target.url)} could not be fetched: ${error.message}`)
			throw error
		}
		const location = response.status >= 300 && response.status < 400 ? response.headers.location : undefined
		if (location === undefined) return toPage(target, response, options, notes, signal)
		if (hop + 1 >= maxHops) throw new ToolError(`${shown(first.url)} sends on more than ${maxHops} times.`)
		const next = webTarget(location, { allowLocalhost: target.loopback && first.loopback, base: target.url })
		notes.push(`sent on to ${shown(next.url)}`)
		target = next
	}
}

const shown = (url: URL): string => oneLine(url.href, 300)

const mediaType = (headers: Record<string, string>): string =>
	(headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase()

/** How a type is read; null for what is no text. A missing type is looked at as text. */
const kindOf = (type: string): 'html' | 'text' | null =>
	type === 'text/html' || type === 'application/xhtml+xml'
		? 'html'
		: type === '' ||
				type.startsWith('text/') ||
				/^application\/(?:(?:[\w.-]+\+)?(?:json|xml|yaml)|x-yaml|javascript|ecmascript|toml|x-toml|x-ndjson|x-sh|sql|graphql|rtf)$/.test(
					type,
				)
			? 'text'
			: null

const toPage = async (
	target: Target,
	response: PinnedResponse,
	options: FetchOptions,
	notes: string[],
	signal: AbortSignal,
): Promise<Page> => {
	const { status, bytes, headers } = response
	const type = mediaType(headers)
	const url = target.url.href
	const kind = kindOf(type)
	if (response.cut) notes.push(`only the first ${bytes.byteLength.toLocaleString('en')} bytes were read`)
	if (kind === null) return { url, status, title: '', text: '', notes }
	const source = decode(bytes, headers['content-type'] ?? '', kind === 'html')
	// Bytes without a type may be anything.
	if (type === '' && source.includes('\0')) throw new ToolError(`${shown(target.url)} is no text; it was not read.`)
	if (kind === 'text') return { url, status, title: '', text: source, notes }
	const page = await convert({ html: source, url }, signal, options.convertMs, options.convertWorkerUrl)
	if (page.cut) notes.push('the page is longer than what was converted')
	return { url, status, title: page.title, text: page.markdown, notes }
}

/** By byte order mark, header, the page's own word, else UTF-8; never throws. */
const decode = (bytes: Uint8Array, contentType: string, html: boolean): string => {
	const mark =
		bytes[0] === 0xff && bytes[1] === 0xfe
			? 'utf-16le'
			: bytes[0] === 0xfe && bytes[1] === 0xff
				? 'utf-16be'
				: undefined
	const named = /charset\s*=\s*"?([\w:-]{1,40})/i
	const head = html ? Buffer.from(bytes.subarray(0, 2_048)).toString('latin1') : ''
	const name =
		mark ?? named.exec(contentType)?.[1] ?? /<meta[^>]{0,200}charset\s*=\s*["']?([\w:-]{1,40})/i.exec(head)?.[1]
	try {
		return new TextDecoder(name ?? 'utf-8').decode(bytes)
	} catch {
		return new TextDecoder().decode(bytes)
	}
}
