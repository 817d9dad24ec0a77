// ~/.garuda/search.json: which search service the user chose. Only the user's file counts; a project has no say in where queries go.
import { z } from 'zod'
import { readJsonFile } from '../config/json-file.ts'
import { locate } from '../config/json-place.ts'
import { checkHome, type GarudaPaths } from '../config/paths.ts'
import { UserError } from '../errors.ts'
import { isLoopback } from '../net/addresses.ts'
import { canonicalHost } from '../net/host-names.ts'
import type { Json, ToolSpec } from '../types.ts'

export type BackendName = 'brave' | 'tavily' | 'searxng'

const domains = z.array(z.string().min(1).max(253)).max(100)
const schema = z.strictObject({
	$schema: z.string().optional(),
	backend: z.enum(['brave', 'tavily', 'searxng']).optional().describe('The service of web_search.'),
	url: z
		.string()
		.optional()
		.describe("The service's address: SearXNG's own; for the others only to go through a gateway of yours."),
	key: z
		.string()
		.regex(/^[A-Za-z_][\w.-]{0,99}$/)
		.optional()
		.describe('The name of the environment variable or of the entry in ~/.garuda/credentials; never the key itself.'),
	maxResults: z.int().min(1).max(20).optional(),
	claude: z
		.strictObject({
			maxUses: z.int().min(1).max(20).optional(),
			allowedDomains: domains.optional(),
			blockedDomains: domains.optional(),
		})
		.optional()
		.describe("Claude's own search, which runs inside a reply."),
})

/** The JSON schema (draft 7) of search.json, for docs and editors. */
export const searchJsonSchema = (): Json => z.toJSONSchema(schema, { target: 'draft-7', io: 'input' }) as Json

export interface SearchBackend {
	name: BackendName
	url: string
	/** Null where the service needs none. */
	key: string | null
	maxResults: number
}

/** Claude's own search, which runs inside a reply: its queries cannot be looked at first. */
export interface ClaudeSearch {
	maxUses: number
	allowedDomains: string[]
	blockedDomains: string[]
}

export interface SearchConfig {
	backend: SearchBackend | null
	/** The file names a service, with its key or without. */
	named: boolean
	claude: ClaudeSearch | null
	/** For the person: a key that is missing. */
	notices: string[]
}

const defaults: Record<BackendName, { url: string | null; key: string | null }> = {
	brave: { url: 'https://api.search.brave.com', key: 'BRAVE_API_KEY' },
	tavily: { url: 'https://api.tavily.com', key: 'TAVILY_API_KEY' },
	searxng: { url: null, key: null },
}

/** Null when there is no file. Throws UserError with file, line and field for one that is broken. */
export const readSearchConfig = async (
	paths: Pick<GarudaPaths, 'home'>,
	env: Record<string, string | undefined>,
	credentials: Record<string, string>,
): Promise<SearchConfig | null> => {
	await checkHome(paths.home)
	const file = await readJsonFile(`${paths.home}/search.json`, { noFollow: true })
	if (!file) return null
	const fail = (path: readonly PropertyKey[], message: string): never => {
		const steps = path.map((step) => (typeof step === 'number' ? step : String(step)))
		throw new UserError(
			`${file.file}:${locate(file.text, steps)}: ${steps.length > 0 ? `${steps.join('.')}: ` : ''}${message}`,
			'docs/network.md shows the file.',
		)
	}
	const parsed = schema.safeParse(file.value)
	if (!parsed.success) {
		const issue = parsed.error.issues[0]!
		return fail(issue.path, issue.message)
	}
	const { backend: name, url, key: keyName, maxResults = 8, claude } = parsed.data
	const notices: string[] = []
	let backend: SearchBackend | null = null
	if (name) {
		const address = url ?? defaults[name].url ?? fail([], 'searxng needs its address in "url".')
		const wanted = keyName ?? defaults[name].key
		const key = wanted === null ? null : env[wanted]?.trim() || credentials[wanted] || null
		if (wanted !== null && key === null)
			notices.push(`web_search is off: the key ${wanted} is neither in the environment nor in ~/.garuda/credentials.`)
		else backend = { name, url: checkedUrl(address, fail), key, maxResults }
	} else if (url !== undefined || keyName !== undefined) fail([], 'names no "backend".')
	if (claude?.allowedDomains?.length && claude.blockedDomains?.length)
		fail(['claude'], 'takes allowedDomains or blockedDomains, not both.')
	const names = (list: 'allowedDomains' | 'blockedDomains') =>
		(claude?.[list] ?? []).map((domain, at) => canonicalHost(domain) ?? fail(['claude', list, at], 'is no host name.'))
	return {
		backend,
		named: name !== undefined,
		claude: claude
			? {
					maxUses: claude.maxUses ?? 5,
					allowedDomains: names('allowedDomains'),
					blockedDomains: names('blockedDomains'),
				}
			: null,
		notices,
	}
}

const checkedUrl = (text: string, fail: (path: string[], message: string) => never): string => {
	if (!URL.canParse(text)) return fail(['url'], 'is no address.')
	const url = new URL(text)
	if (url.username || url.password) return fail(['url'], 'holds a password; name the key in "key".')
	if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
		return fail(['url'], 'must be https (http only for this machine).')
	return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/**
 * The server tool of the Messages API that does Claude's search, for a request's `tools`. It has the name of Garuda's own
 * search, so only one of the two may be in a request.
 */
export const claudeSearchTool = (search: ClaudeSearch): Json => ({
	type: 'web_search_20250305',
	name: 'web_search',
	max_uses: search.maxUses,
	...(search.allowedDomains.length > 0 && { allowed_domains: search.allowedDomains }),
	...(search.blockedDomains.length > 0 && { blocked_domains: search.blockedDomains }),
})

/** The same as a tool of a session; only Anthropic ever sees it. */
export const claudeSearchSpec = (search: ClaudeSearch): ToolSpec => ({
	name: 'web_search',
	description: '',
	schema: {},
	server: { provider: 'anthropic', tool: claudeSearchTool(search) },
})

/** The one question about Claude's search in a session, in full. */
export const claudeSearchQuestion = (search: ClaudeSearch): string =>
	[
		'Let Claude search the web by itself in this session?',
		'The searches run at the provider, inside the reply: Garuda cannot show or check a query before it is sent, and each search costs money.',
		`At most ${search.maxUses} searches a request.`,
		...(search.allowedDomains.length > 0 ? [`Only on: ${search.allowedDomains.join(', ')}`] : []),
		...(search.blockedDomains.length > 0 ? [`Never on: ${search.blockedDomains.join(', ')}`] : []),
	].join('\n')
