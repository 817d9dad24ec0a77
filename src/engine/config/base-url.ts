// A provider's address as it is kept, whichever way it was written. Used by models.ts and local-presets.ts.
import { UserError } from '../errors.ts'
import { oneLine } from '../text.ts'

export interface ProviderConfig {
	name: string
	api: 'anthropic' | 'openai'
	/** No trailing slash. For `openai` it ends with its version part (/v1); for `anthropic` it does not. */
	baseURL: string
	/** The variable, and the name in ~/.garuda/credentials, that holds the key; null when it needs none. */
	keyName: string | null
	/** Extra request headers. */
	headers?: Record<string, string>
	/** Plain http to another machine is allowed by the user. */
	allowHttp?: boolean
	/** A model server of this machine that is known by its name alone (its title): it is looked for, and asked about, before use. */
	server?: string
}

export type Env = Readonly<Record<string, string | undefined>>

/** A variable's value; empty or blank is not set. */
export const set = (env: Env, name: string): string | undefined =>
	(Object.hasOwn(env, name) && env[name]?.trim()) || undefined

/** The base URL as an adapter wants it, whether or not it was given with /v1 or a slash at the end. */
export function baseUrl(text: string, api: ProviderConfig['api'], where: string, allowHttp = false): string {
	let url: URL
	try {
		url = new URL(text.trim())
	} catch {
		throw new UserError(
			`${where}: "${oneLine(text, 100)}" is no URL.`,
			'It begins with https:// (or http:// for this machine).',
		)
	}
	if (url.protocol !== 'https:' && url.protocol !== 'http:')
		throw new UserError(`${where}: only https and http are possible.`)
	if (url.username || url.password)
		throw new UserError(`${where}: no user name or password in the URL.`, 'Name a key variable instead.')
	if (url.search || url.hash) throw new UserError(`${where}: no "?" or "#" in a base URL.`)
	if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname))
		throw new UserError(
			`${where}: plain http to ${url.hostname} would show the code and the key to the network.`,
			'Use https, or set "allowHttp": true for this provider in ~/.garuda/models.json.',
		)
	let path = url.pathname.replace(/\/+$/, '').replace(/\/(?:chat\/completions|messages|models)$/, '')
	if (api === 'anthropic') path = path.replace(/\/v1$/, '')
	// A path of the provider's own (…/openai, /api/paas/v4) is kept; only a bare host gets the usual /v1.
	else if (path === '') path = '/v1'
	return url.origin + path
}

/** Whether a URL's host is this machine. */
export const isLoopback = (host: string): boolean =>
	host === 'localhost' || host.endsWith('.localhost') || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host)
