// A web address from the model made safe to speak of: which host it asks, and what is unusual about it. First step of web_fetch.
import { isIP } from 'node:net'
import { ToolError } from '../errors.ts'
import { isLoopback } from '../net/addresses.ts'
import { canonicalHost } from '../net/host-names.ts'
import { oneLine } from '../text.ts'
import { encodedLength, encodedRun } from './tokens.ts'

export interface Target {
	/** As it will be sent: normalised, https, without a fragment. */
	url: URL
	host: string
	port: number
	/** This machine; only with `allowLocalhost`. */
	loopback: boolean
	/** It was http:// and is asked by https. */
	upgraded: boolean
	/** Why this address is asked about each time, or null. */
	unusual: string | null
}

/** Throws ToolError for an address that is never fetched. `base` for a redirect's relative one. */
export const webTarget = (text: string, options: { allowLocalhost?: boolean; base?: URL } = {}): Target => {
	const { allowLocalhost = false, base } = options
	const shown = oneLine(text, 200)
	if (text.length > 2_000) throw new ToolError('This address is longer than 2,000 characters.')
	if (!URL.canParse(text, base?.href)) throw new ToolError(`This is no web address: ${shown}`)
	const url = new URL(text, base?.href)
	if (url.protocol !== 'http:' && url.protocol !== 'https:')
		throw new ToolError(`Only https:// and http:// addresses can be fetched, not ${oneLine(url.protocol, 40)}`)
	if (url.username || url.password) throw new ToolError('An address with a user or a password in it is not fetched.')
	url.hash = ''
	const literal = url.hostname.replace(/^\[|\]$/g, '')
	const loopback = isLoopback(url.hostname)
	if (loopback && !allowLocalhost)
		throw new ToolError(
			`${shown} is this machine, which web_fetch does not reach (the user's setting web.allowLocalhost opens it). A server started by a command is reached inside that command, with curl.`,
		)
	if (!loopback && isIP(literal) !== 0) throw new ToolError(`Addresses by number are not fetched, only names: ${shown}`)
	const host = loopback ? literal : canonicalHost(url.hostname)
	if (!host) throw new ToolError(`This is no public host name: ${oneLine(url.hostname, 100)}`)
	const upgraded = !loopback && url.protocol === 'http:'
	if (upgraded) url.protocol = 'https:'
	const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
	return { url, host, port, loopback, upgraded, unusual: loopback ? null : unusual(url, host) }
}

const unusual = (url: URL, host: string): string | null => {
	if (url.port !== '') return `it names a port of its own (${url.port})`
	if (url.search.length > 101) return `its query is ${url.search.length - 1} characters long`
	if (url.pathname.length > 250) return `its path is ${url.pathname.length} characters long`
	const labels = host.split('.')
	if (labels.length > 6 || labels.some((label) => label.length > 40)) return 'its host name is unusually long'
	const parts = decoded(`${labels.slice(0, -1).join(' ')} ${url.pathname.replaceAll('/', ' ')} ${url.search}`)
	const found = encodedRun(parts, 20)
	if (found) return `a part of it looks like encoded data (${oneLine(found, 60)})`
	if (encodedLength(parts) >= 40) return 'many parts of it look like encoded data'
	if ((url.href.match(/%[0-9a-f]{2}/gi)?.length ?? 0) > 30) return 'much of it is percent-encoded'
	return null
}

const decoded = (text: string): string => {
	try {
		return decodeURIComponent(text)
	} catch {
		return text
	}
}
