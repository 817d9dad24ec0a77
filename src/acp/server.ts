// The agent side of the protocol: every request of the editor, by the SDK's app. Between the stream and the sessions.
import { realpath } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import {
	type AgentApp,
	type AgentContext,
	type AuthMethod,
	agent,
	type InitializeResponse,
	type McpServer,
	PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk'
import {
	createEngine,
	type EngineOptions,
	type Garuda,
	type OpenOptions,
	oneLine,
	preload,
	type SessionSummary,
	UserError,
} from '../engine/index.ts'
import { AcpApprover } from './approver.ts'
import { clientSide, nothingOffered } from './client-side.ts'
import { asRequestError, authRequired, invalidParams, openError, plain, RequestError } from './errors.ts'
import { AcpSession } from './session.ts'
import type { SignIn } from './sign-in.ts'

export interface ServerOptions {
	version: string
	/** Engine options that all sessions share; read anew for each session, so that a setup meanwhile counts. */
	engine(): Omit<EngineOptions, 'root' | 'approver' | 'extraDirs' | 'consents'>
	signIn: SignIn
	/** Why no session can be opened in this process (an old Node, native Windows), or null. */
	obstacle: string | null
	/** Native Windows has no terminal sign-in. */
	terminalSetup: boolean
	/** The guided tour in place of a model, when it was chosen by name: engine options of its own and what to remove after. */
	tour?(root: string): Promise<{ options: Partial<EngineOptions>; remove(): Promise<void> } | null>
	now?(): number
	/** The folder for a list without one. */
	cwd: string
}

const page = 100
/** An editor that does not answer by then has no open text of the file. */
const bufferMs = 2000

export interface Server {
	app: AgentApp
	/** Ends all sessions and everything they started; idempotent. */
	close(): Promise<void>
}

/** One connection's worth of state; the app can be connected once. */
export function createServer(options: ServerOptions): Server {
	const sessions = new Map<string, AcpSession>()
	const now = options.now ?? Date.now
	let side = nothingOffered
	let client: AgentContext | null = null
	let closing = false

	const live = (id: string): AcpSession => {
		const session = sessions.get(id)
		if (!session) throw RequestError.sessionNotFound(id)
		return session
	}

	interface Folders {
		cwd: string
		additionalDirectories?: readonly string[] | undefined
		mcpServers?: readonly McpServer[] | undefined
	}

	async function open(params: Folders, requestId: string | number | null, how: OpenOptions): Promise<AcpSession> {
		const approver = new AcpApprover(client!, side, requestId)
		const base = options.engine()
		const tour = how.resume === undefined ? await options.tour?.(params.cwd) : null
		const garuda = createEngine({
			...base,
			...tour?.options,
			root: tour?.options.root ?? params.cwd,
			approver,
			// The tour's scratch copy is open in no editor.
			...(side.buffers && !tour
				? { ports: { ...base.ports, buffer: (path) => bufferText(approver, params, path) } }
				: {}),
			...(params.additionalDirectories?.length ? { extraDirs: [...params.additionalDirectories] } : {}),
			// Before a session there is only a form to ask with; without one, what was not agreed to is left out with a notice. In a
			// prompt (a project's command) there is always a way.
			consents: side.forms ? 'ask' : 'prompt',
		})
		try {
			const session = await garuda.open(how)
			const made = new AcpSession({
				garuda,
				session,
				approver,
				client: client!,
				side,
				cwd: params.cwd,
				extraDirs: params.additionalDirectories ?? [],
				notices: mcpNotice(params.mcpServers ?? []),
				now,
				...(tour ? { closed: () => tour.remove() } : {}),
			})
			if (closing) {
				await made.close()
				throw plain('Garuda is closing.')
			}
			sessions.set(made.id, made)
			return made
		} catch (error) {
			const answer = await openError(garuda, error)
			await garuda.close()
			await tour?.remove()
			throw answer
		}
	}

	/**
	 * The editor's text of a file, by the path as the editor spells it; null when it has none or does not answer soon. A path
	 * outside of the session's folders is not asked for: an editor takes that for a fault.
	 */
	async function bufferText({ at }: AcpApprover, folders: Folders, path: string): Promise<string | null> {
		if (!at) return null
		try {
			let spelled: string | null = null
			for (const folder of [folders.cwd, ...(folders.additionalDirectories ?? [])]) {
				const inside = relative(await realpath(folder), path)
				if (inside === '..' || inside.startsWith('../') || isAbsolute(inside)) continue
				spelled = join(folder, inside)
				break
			}
			if (spelled === null) return null
			const limit = { cancellationSignal: AbortSignal.timeout(bufferMs), stopWaitingOnCancel: true }
			const { content } = await client!.request('fs/read_text_file', { sessionId: at.sessionId, path: spelled }, limit)
			return content
		} catch {
			return null
		}
	}

	/** After the answer: editors drop what names a session they do not know yet. */
	const announce = (session: AcpSession): void => void setTimeout(() => session.announce(), 0)

	async function ready(params: Folders): Promise<void> {
		for (const [what, path] of [
			['cwd', params.cwd],
			...(params.additionalDirectories ?? []).map((dir) => ['additionalDirectories', dir] as const),
		] as const)
			await checkFolder(what, path)
		if (options.obstacle !== null) throw plain(options.obstacle)
		const out = await options.signIn.missing()
		if (out) throw authRequired(out)
	}

	/** For lists and for removing: no session is opened with it. */
	const browse = async <T>(cwd: string, work: (garuda: Garuda) => Promise<T>): Promise<T> => {
		if (options.obstacle !== null) throw plain(options.obstacle)
		const garuda = createEngine({ ...options.engine(), root: cwd, approver: { ask: async () => ({ choice: 'deny' }) } })
		try {
			return await work(garuda)
		} catch (error) {
			throw asRequestError(error)
		} finally {
			await garuda.close()
		}
	}

	const stored = (garuda: Garuda, id: string): Promise<SessionSummary | undefined> =>
		garuda.sessions.list().then((all) => all.find((one) => one.id === id))

	/** A session of this connection, or one on record; -32002 for an unknown one, -32602 in another folder than its own. */
	async function reopen(
		params: Folders & { sessionId: string },
		requestId: string | number | null,
	): Promise<AcpSession> {
		await ready(params)
		const { sessionId, cwd } = params
		const here = sessions.get(sessionId)
		if (here) {
			if (!(await sameFolder(here.cwd, cwd))) throw invalidParams(`this session works in ${oneLine(here.cwd)}`)
			return here
		}
		const found = await browse(cwd, (garuda) => stored(garuda, sessionId))
		if (!found) throw RequestError.sessionNotFound(sessionId)
		if (!(await sameFolder(found.root, cwd))) throw invalidParams(`this session belongs to ${oneLine(found.root)}`)
		return open(params, requestId, { resume: sessionId })
	}

	const app = agent({ name: 'garuda' })
		.onConnect((connection) => {
			client = connection.client
		})
		.onRequest('initialize', ({ params }): InitializeResponse => {
			side = clientSide(params)
			// The answer first; the editor's next request then finds everything loaded.
			if (options.obstacle === null) setTimeout(() => void preload(), 5)
			return {
				protocolVersion: PROTOCOL_VERSION,
				agentInfo: { name: 'garuda', title: 'Garuda', version: options.version },
				agentCapabilities: {
					loadSession: true,
					promptCapabilities: { image: true, audio: false, embeddedContext: true },
					mcpCapabilities: { http: false, sse: false },
					sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
					auth: { logout: {} },
				},
				authMethods: side.terminalAuth && options.terminalSetup ? [setupMethod] : [],
			}
		})
		.onRequest('authenticate', ({ params }) => {
			if (params.methodId !== setupMethod.id) throw invalidParams(`there is no sign-in "${params.methodId}"`)
			options.signIn.enter()
			return {}
		})
		.onRequest('logout', async () => {
			await options.signIn.leave()
			// Their model clients hold the key.
			await closeAll()
			return {}
		})
		.onRequest('session/new', async ({ params, requestId }) => {
			await ready(params)
			const session = await open(params, requestId, {})
			const state = await session.state()
			announce(session)
			return { sessionId: session.id, ...state }
		})
		.onRequest('session/load', async ({ params, requestId }) => {
			const session = await reopen(params, requestId)
			const state = await session.state()
			await session.replay()
			announce(session)
			return state
		})
		.onRequest('session/resume', async ({ params, requestId }) => {
			const session = await reopen(params, requestId)
			const state = await session.state()
			announce(session)
			return state
		})
		.onRequest('session/list', async ({ params }) => {
			const { cwd, cursor } = params
			if (cwd !== undefined && cwd !== null && !isAbsolute(cwd)) throw invalidParams('cwd must be an absolute path')
			const from = cursor === undefined || cursor === null ? 0 : Number(/^from-(\d{1,9})$/.exec(cursor)?.[1])
			if (Number.isNaN(from)) throw invalidParams('that cursor is not from this agent')
			const root = cwd ? await realpath(cwd).catch(() => null) : options.cwd
			if (root === null) return { sessions: [] }
			const kept = await browse(root, (garuda) => garuda.sessions.list())
			// Those that are open here may not be in the index yet.
			const open = [...sessions.values()].flatMap((one) => one.summary() ?? [])
			const all = [...open, ...kept.filter((one) => !('foreign' in one) && !open.some(({ id }) => id === one.id))]
				.filter((one) => !cwd || one.root === root)
				.sort((a, b) => b.updated - a.updated)
			return {
				sessions: all.slice(from, from + page).map((one) => ({
					sessionId: one.id,
					cwd: one.root,
					title: oneLine(one.title),
					updatedAt: new Date(one.updated).toISOString(),
				})),
				...(all.length > from + page ? { nextCursor: `from-${from + page}` } : {}),
			}
		})
		.onRequest('session/delete', async ({ params: { sessionId } }) => {
			const here = sessions.get(sessionId)
			const cwd = here?.cwd ?? options.cwd
			if (here) await drop(here)
			await browse(cwd, async (garuda) => {
				if (await stored(garuda, sessionId)) await garuda.sessions.remove(sessionId)
				else if (!here) throw RequestError.sessionNotFound(sessionId)
			})
			return {}
		})
		.onRequest('session/close', async ({ params: { sessionId } }) => {
			await drop(live(sessionId))
			return {}
		})
		.onRequest('session/set_mode', async ({ params }) => {
			await live(params.sessionId).setMode(params.modeId)
			return {}
		})
		.onRequest('session/set_config_option', async ({ params }) => {
			try {
				return { configOptions: await live(params.sessionId).setOption(params.configId, params.value) }
			} catch (error) {
				throw error instanceof UserError
					? invalidParams(`${error.message} ${error.hint ?? ''}`.trim())
					: asRequestError(error)
			}
		})
		.onRequest('session/prompt', ({ params, signal }) => live(params.sessionId).prompt(params.prompt, signal))
		.onNotification('session/cancel', ({ params }) => sessions.get(params.sessionId)?.cancel())

	async function drop(session: AcpSession): Promise<void> {
		sessions.delete(session.id)
		await session.close()
	}

	async function closeAll(): Promise<void> {
		await Promise.all([...sessions.values()].map(drop))
	}

	return {
		app,
		close: async () => {
			closing = true
			await closeAll()
		},
	}
}

const setupMethod = {
	type: 'terminal',
	id: 'garuda-setup',
	name: 'Set up Garuda',
	description: 'Choose a model and enter its API key.',
	args: ['setup'],
} satisfies AuthMethod

async function checkFolder(what: string, path: string): Promise<void> {
	if (!isAbsolute(path)) throw invalidParams(`${what} must be an absolute path, not "${oneLine(path)}"`)
	const { stat } = await import('node:fs/promises')
	const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unreadable')
	if (typeof found === 'string')
		throw invalidParams(
			found === 'ENOENT'
				? `${what} does not exist: ${oneLine(path)}`
				: `${what} cannot be opened: ${oneLine(path)} (${found})`,
		)
	if (!found.isDirectory()) throw invalidParams(`${what} is no folder: ${oneLine(path)}`)
}

const sameFolder = async (a: string, b: string): Promise<boolean> =>
	a === b || (await realpath(a).catch(() => a)) === (await realpath(b).catch(() => b))

/** Their programs would run outside of Garuda's consents, so they are not started. */
function mcpNotice(servers: readonly McpServer[]): string[] {
	if (servers.length === 0) return []
	const names = servers.map((one) => oneLine(one.name, 60)).join(', ')
	return [`MCP servers from the editor are not started: ${names}. Garuda starts only servers that you agreed to.`]
}
