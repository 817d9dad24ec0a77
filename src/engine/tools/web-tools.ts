// The web tools of a session, made from the user's settings and files. Called where the session's tools are put together.
import { readFile } from 'node:fs/promises'
import type { GarudaPaths } from '../config/paths.ts'
import { UserError } from '../errors.ts'
import { createHttp } from '../net/http.ts'
import { upstreamProxy } from '../net/upstream.ts'
import type { Tool } from '../ports.ts'
import type { ToolSpec } from '../types.ts'
import type { FetchOptions } from '../web/fetch.ts'
import { claudeSearchQuestion, claudeSearchSpec, readSearchConfig } from '../web/search-config.ts'
import { webFetchTool } from './web-fetch.ts'
import { webSearchTool } from './web-search.ts'

export interface WebToolsOptions {
	/** Settings: `enabled` false leaves out web_fetch. */
	web: { enabled?: boolean; allowLocalhost: boolean }
	/** A PEM file trusted besides the usual roots (settings: model.ca). */
	ca?: string | undefined
	paths: Pick<GarudaPaths, 'home'>
	env: Record<string, string | undefined>
	credentials: Record<string, string>
	fetch?: FetchOptions
}

/** A search that a provider runs inside its replies. */
export interface ServerSearch {
	spec: ToolSpec
	/** The whole question, for the person. */
	question: string
}

export interface WebTools {
	tools: Tool[]
	/** Claude's own search as the user configured it: a session asks its question once, and a yes adds the tool. */
	claude: ServerSearch | null
	notices: string[]
	close(): void
}

/** web_fetch unless it is off; web_search where ~/.garuda/search.json names a service. Throws UserError for a broken file. */
export const webTools = async (options: WebToolsOptions): Promise<WebTools> => {
	const { web, env } = options
	const [config, ca] = await Promise.all([
		readSearchConfig(options.paths, env, options.credentials),
		options.ca === undefined
			? undefined
			: readFile(options.ca, 'utf8').catch(() => {
					throw new UserError(
						`The certificates in ${options.ca} cannot be read.`,
						'Mend model.ca in ~/.garuda/settings.json.',
					)
				}),
	])
	const tools: Tool[] = []
	if (web.enabled !== false)
		tools.push(webFetchTool({ allowLocalhost: web.allowLocalhost, ca, upstream: upstreamProxy(env), ...options.fetch }))
	const http = config?.backend ? createHttp({ env, ...(ca !== undefined && { ca }) }) : null
	if (config?.backend && http) tools.push(webSearchTool(config.backend, http))
	const notices = [...(config?.notices ?? [])]
	// Whoever names a service means it: the other one does not take its place when a key is missing.
	const both = config?.named && config.claude
	if (both) notices.push(`search.json names a backend and Claude's own search: only the backend counts.`)
	const own = config?.claude && !both ? config.claude : null
	const claude = own && { spec: claudeSearchSpec(own), question: claudeSearchQuestion(own) }
	return { tools, claude, notices, close: () => http?.close() }
}
