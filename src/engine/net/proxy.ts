// Which proxy a request goes through, by the variables that every tool knows.
import { isLoopback, matchesHost } from './addresses.ts'
import { HttpError } from './http-error.ts'

export type Env = Record<string, string | undefined>

const variable = (env: Env, name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined

/** The proxy for a URL by the usual variables; this machine and NO_PROXY entries go direct. */
export const pickProxy = (env: Env, url: URL): URL | null => {
	const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
	const value = (variable(env, name) ?? variable(env, 'ALL_PROXY'))?.trim()
	if (!value || isLoopback(url.hostname)) return null
	const skip = variable(env, 'NO_PROXY')?.split(/[\s,]+/) ?? []
	if (skip.some((entry) => matchesHost(entry, url.hostname, portOf(url)))) return null
	const text = value.includes('://') ? value : `http://${value}`
	if (!URL.canParse(text)) throw new HttpError('proxy', `The proxy address in ${name} is not a URL.`)
	const proxy = new URL(text)
	if (proxy.protocol !== 'http:' && proxy.protocol !== 'https:')
		throw new HttpError(
			'proxy',
			`The proxy in ${name} is ${proxy.protocol.slice(0, -1)}; only http and https proxies work.`,
		)
	return proxy
}

/** The header for a proxy's user and password. */
export const proxyAuth = (proxy: URL): Record<string, string> =>
	proxy.username || proxy.password
		? {
				'proxy-authorization': `Basic ${Buffer.from(`${decode(proxy.username)}:${decode(proxy.password)}`).toString('base64')}`,
			}
		: {}

const decode = (text: string): string => {
	try {
		return decodeURIComponent(text)
	} catch {
		return text
	}
}

/** A URL's scheme and host only: what may be shown of a proxy. */
export const shown = (url: URL): string => `${url.protocol}//${url.host}`
/** A host as sockets want it: without brackets. */
export const bareHost = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')
/** The port, also when it is the scheme's own. */
export const portOf = (url: URL): number => Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
