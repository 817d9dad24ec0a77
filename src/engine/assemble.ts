// A session's parts put together: settings, rules, files, tools, sandbox, model, journal, undo. Called by engine.ts at `open`.
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { EngineOptions, OpenOptions } from './api.ts'
import { commandAccess } from './command-access.ts'
import { capLimits } from './config/apply-policy.ts'
import { readCredentials } from './config/credentials.ts'
import { denyReadPaths } from './config/deny-read.ts'
import type { GarudaPaths } from './config/paths.ts'
import { createRedactor } from './config/redact.ts'
import type { LoadedSettings } from './config/settings.ts'
import { environment } from './context/environment.ts'
import { loadInstructions } from './context/instructions.ts'
import { loadMemory } from './context/memory.ts'
import { systemPrompt } from './context/system-prompt.ts'
import { codeOf, UserError } from './errors.ts'
import { withBuffers } from './files/buffer.ts'
import { createFiles } from './files/guard.ts'
import { sweepBeside } from './files/leftovers.ts'
import { languageProfiles } from './languages/profiles.ts'
import { lazyExecutor } from './lazy-executor.ts'
import { LiveSession } from './live-session.ts'
import type { createModelChoice } from './model-choice.ts'
import { expandHosts, networkNote } from './net/host-names.ts'
import { upstreamProxy } from './net/upstream.ts'
import { originOf } from './origin.ts'
import { hostRule } from './permission/decide.ts'
import { createDecider } from './permission/decider.ts'
import { deniedReads } from './permission/rules.ts'
import type { AuditEntry, AuditLog, Clock, Redactor, SessionHeader, SessionWriter, ToolState } from './ports.ts'
import { resumeSession } from './resume-session.ts'
import type { Git } from './sandbox/git.ts'
import { checkSessionId, newSessionId } from './session/ids.ts'
import type { GarudaSessions } from './session/journal.ts'
import type { GarudaSnapshots } from './session/snapshots.ts'
import type { SessionStart } from './session-parts.ts'
import { builtinTools } from './tools/builtin.ts'
import { toolSpecs } from './tools/specs.ts'
import { webFetchTool } from './tools/web-fetch.ts'
import type { WebTools } from './tools/web-tools.ts'
import type { Json, Message, Mode, ToolSpec } from './types.ts'
import { noUsage } from './types.ts'

interface Assembly {
	options: EngineOptions
	how: OpenOptions
	root: string
	extraDirs: string[]
	paths: GarudaPaths
	loaded: LoadedSettings
	/** Answers about the project's own configuration, for the audit log. */
	consents: AuditEntry[]
	clock: Clock
	models: ReturnType<typeof createModelChoice>
	store(redactor: Redactor): Promise<GarudaSessions>
	closed(): void
}

/** Throws UserError: no model or key, a foreign or locked session, a rule that cannot be read. Leaves nothing behind then. */
export async function assemble(a: Assembly): Promise<LiveSession> {
	const { options, how, root, extraDirs, paths, clock } = a
	const { settings } = a.loaded
	const notices = [...a.loaded.notices]
	const id = how.id === undefined ? newSessionId(clock.now()) : checkSessionId(how.id)

	const redactor = createRedactor(id)
	for (const [name, value] of Object.entries(options.env))
		if (value && /_(?:API_KEY|AUTH_TOKEN|TOKEN|SECRET)$/.test(name)) redactor.add(name, value.trim())
	const credentials = await readCredentials(paths)
	for (const [name, value] of Object.entries(credentials)) redactor.add(name, value)

	// An old session first: it may name the model, and its system prompt and tools go on byte for byte.
	let store: Promise<GarudaSessions> | null = null
	const openStore = () => {
		store ??= a.store(redactor)
		return store
	}
	// A foreign session is copied further down, under a system prompt and a model that are not its own.
	let resumed = how.trustForeign ? null : await resumeSession(how, openStore, () => header())
	notices.push(...(resumed?.problems ?? []))
	const chosen = options.model ?? options.env.GARUDA_MODEL ?? resumed?.model
	const [model, files] = await Promise.all([
		a.models.connect(chosen, settings, redactor),
		createFiles({ root, extraDirs, home: options.home }),
	])
	if (resumed?.start.stoppedMidway) await sweepBeside(files, writtenBy(resumed.start.messages))
	if (options.limits?.cost !== undefined && model.spec.price === null)
		throw new UserError(
			`The price of ${model.name} is unknown, so --max-cost cannot hold.`,
			'Set its price in ~/.garuda/models.json, or leave --max-cost out.',
		)
	const effort = options.effort ?? resumed?.effort ?? settings.effort
	if (effort && options.effort && !model.spec.efforts.includes(effort))
		throw new UserError(
			`${model.name} has no effort "${effort}".`,
			model.spec.efforts.length > 0 ? `It takes: ${model.spec.efforts.join(', ')}.` : 'It takes none.',
		)

	const read = async (path: string): Promise<string | null> => {
		try {
			return new TextDecoder().decode((await files.read(path, 1 << 20)).bytes)
		} catch {
			return null
		}
	}
	const profiles = await languageProfiles({ files: await readdir(root).catch(() => []), home: options.home, read })
	const listed = expandHosts(settings.network.allow)
	if ('error' in listed)
		throw new UserError(`network.allow: ${listed.error}.`, 'docs/network.md has the list of presets.')
	const hosts: string[] = listed
	const web = await webOf(a, credentials)
	notices.push(...web.notices)
	const daemons = settings.daemons.enabled
		? (await import('./sandbox/daemons.ts')).createDaemons(settings.daemons, (text) => session.note(text))
		: undefined
	const secrets = settings.secrets.handles
		? (await import('./tools/secrets.ts')).createSecretHandles(
				settings.secrets.names,
				(name) => credentials[name] ?? options.env[name],
				redactor,
			)
		: undefined
	notices.push(...(secrets?.notices ?? []))
	const staging = settings.staging.enabled
	const builtin = builtinTools({
		todo: settings.todo,
		memory: settings.memory,
		daemons,
		staging,
		secrets: secrets?.handles,
	})
	const tools = [...builtin, ...web.tools]
	// An answer is never taken from a file: what the provider runs is asked about again, and left out until then.
	const specs = ((resumed?.header.tools as ToolSpec[] | undefined) ?? toolSpecs(tools)).filter(({ server }) => !server)
	const serverSearch = model.spec.provider === 'anthropic' ? web.claude : null
	const system = resumed?.header.system ?? redactor.redact(await newSystemPrompt())

	async function newSystemPrompt(): Promise<string> {
		const [block, instructions, memory] = await Promise.all([
			environment({ root, env: options.env, platform: options.platform ?? 'linux', now: clock.now(), read }),
			settings.instructions ? loadInstructions({ root, read }) : null,
			settings.memory ? loadMemory({ root, read }) : null,
		])
		notices.push(...(instructions?.notices ?? []), ...(memory?.notices ?? []))
		return systemPrompt({
			environment: block,
			instructions: instructions?.text ?? '',
			memory: memory?.text ?? '',
			profiles,
			tools: tools.map((tool) => tool.name),
			append: [networkNote(hosts), options.appendSystemPrompt ?? ''].filter(Boolean).join('\n\n'),
		})
	}

	const audit = await auditLog(a, resumed?.header.id ?? id, redactor)
	for (const entry of a.consents) await audit.append(entry)

	const executor = lazyExecutor(
		paths.tmp,
		async (tmp) => {
			if (options.ports?.executor) return { executor: options.ports.executor }
			const { createExecutor } = await import('./sandbox/index.ts')
			const list = (dir: string) => readdir(dir).catch(() => [])
			// Garuda's own folder is masked by its usual name; one that GARUDA_HOME names is masked by its path.
			const usual = paths.home === join(options.home, '.garuda') || `${root}/`.startsWith(`${paths.home}/`)
			const listedPaths = await denyReadPaths(settings.sandbox.denyRead, { root, home: options.home }, list)
			const denyRead = [...listedPaths, ...(usual ? [] : [paths.home])]
			return createExecutor({
				root,
				extraDirs,
				home: options.home,
				tmp,
				env: options.env,
				executor: settings.executor,
				profile: settings.profile,
				writePaths: settings.sandbox.writePaths,
				envAllow: settings.env.allow,
				caches: profiles.flatMap((profile) => profile.caches),
				network: { hosts, rule: hostRule(decider.set, settings.policy) },
				blockUnix: settings.sandbox.blockUnix,
				staging,
				denyRead,
			})
		},
		(text) => session.note(text),
	)
	const state: ToolState = { seen: new Map(), cwd: root, todo: [] }
	const decider = createDecider({
		settings,
		root,
		home: options.home,
		files,
		fixed: options.allow ?? [],
		writable: [
			'/tmp',
			'/var/tmp',
			'/dev/shm',
			...settings.sandbox.writePaths,
			...profiles.flatMap((one) => one.caches),
		],
	})
	notices.push(...decider.notices)
	const mode: Mode = options.mode ?? resumed?.mode ?? 'build'
	const keep = !how.ephemeral
	const header = async (): Promise<SessionHeader> => ({
		version: 1,
		id: resumed?.header.id ?? id,
		root,
		created: clock.now(),
		system,
		tools: specs as unknown as Json,
		model: model.name,
		origin: await originOf(paths.home, options.hostname ?? 'this-machine', options.uid ?? 0),
		garuda: options.version ?? '0',
	})
	if (how.trustForeign) {
		resumed = await resumeSession(how, openStore, header)
		notices.push(
			...(resumed?.problems ?? []),
			'This is a copy of a session: its words were taken over, its instructions, model and answers were not.',
		)
	}
	const openJournal = async (): Promise<SessionWriter> => {
		const writer = resumed?.writer ?? (await (await openStore()).create(await header()))
		if (resumed) await writer.append({ type: 'resume', time: clock.now(), model: model.name })
		// A later resume without a flag must not find itself with more rights than this one had.
		if (mode !== (resumed?.mode ?? 'build')) await writer.append({ type: 'mode', time: clock.now(), mode })
		return writer
	}

	// A flag may ask for more than the team policy allows.
	const asked = capLimits(settings.policy, options.limits ?? {})
	const undo = settings.undo && keep ? await undoStore(a) : null
	if (resumed) await undo?.tidy()
	const session: LiveSession = new LiveSession({
		id: resumed?.header.id ?? id,
		root,
		extraDirs,
		start: resumed?.start ?? fresh(),
		model,
		effort,
		mode,
		acceptEdits: options.acceptEdits ?? false,
		system,
		tools,
		specs,
		serverSearch,
		gate: {
			approver: options.approver,
			files: options.ports?.buffer ? withBuffers(files, options.ports.buffer) : files,
			executor,
			home: options.home,
			limits: settings.limits,
			deniedReads: deniedReads(decider.set),
		},
		decider,
		sandboxed: () => executor.sandboxed(),
		redactor,
		audit,
		state,
		snapshots: options.ports?.snapshots ?? undo,
		limits: {
			steps: asked.steps ?? settings.limits.steps,
			repeatHint: settings.limits.repeatHint,
			repeatStop: settings.limits.repeatStop,
			tokens: asked.tokens ?? settings.limits.turnTokens ?? null,
			cost: asked.cost ?? settings.maxCost ?? null,
		},
		compaction: settings.compaction,
		clock,
		notices,
		openJournal: keep ? openJournal : null,
		chooseModel: (name) => a.models.connect(name, settings, redactor),
		sandboxWord: () => executor.word(),
		profile: () => settings.profile,
		tighten: async () => {
			// The decider and the next executor read it here.
			settings.profile = 'strict'
			await executor.renew()
		},
		warmUp: () => executor.warmUp(),
		...commandAccess({ options, paths, clock, record: (entry) => void audit.append(entry).catch(() => {}) }),
		exportText: async () => {
			const { exportTo, toMarkdown } = await import('./session/export.ts')
			const sessionId = resumed?.header.id ?? id
			const read = await (await openStore()).read(sessionId)
			return exportTo(root, sessionId, toMarkdown(read.header, read.records))
		},
		complete: async (prefix) => {
			const { complete } = await import('./files/complete.ts')
			return (await complete(files, prefix)).map((one) => one.insert)
		},
		onClose: async () => {
			web.close()
			await daemons?.close()
			await executor.close()
			await resumed?.writer.close()
			await audit.close()
			a.closed()
		},
	})
	audit.onProblem((text) => session.note(text))
	return session
}

/** The web tools. Who has no search.json and no CA of their own does not pay for reading them (and zod) at each start. */
async function webOf({ options, paths, loaded }: Assembly, credentials: Record<string, string>): Promise<WebTools> {
	const { web, model } = loaded.settings
	const plain = await lstat(join(paths.home, 'search.json')).then(
		() => false,
		(error) => codeOf(error) === 'ENOENT',
	)
	if (!plain || model.ca !== undefined) {
		const { webTools } = await import('./tools/web-tools.ts')
		return webTools({ web, ca: model.ca, paths, env: options.env, credentials })
	}
	const fetch = { allowLocalhost: web.allowLocalhost, upstream: upstreamProxy(options.env) }
	return { tools: web.enabled === false ? [] : [webFetchTool(fetch)], claude: null, notices: [], close: () => {} }
}

/** Paths that the last turn's calls wrote to, as the model named them. */
function* writtenBy(messages: readonly Message[]): Iterable<string> {
	for (const { blocks } of messages.slice(-100))
		for (const block of blocks)
			if (
				block.type === 'tool_call' &&
				/^(?:edit|write)_file$/.test(block.name) &&
				typeof block.input.path === 'string'
			)
				yield block.input.path
}

const fresh = (): SessionStart => ({
	messages: [],
	turns: [],
	undone: [],
	title: null,
	usage: noUsage(),
	stoppedMidway: false,
	nextTurn: 1,
})

/** The snapshots of this root, in the user's own folder; git starts with the first one. */
async function undoStore({ options, root, paths, clock }: Assembly): Promise<GarudaSnapshots> {
	const [{ createSnapshots }, { createHash }] = await Promise.all([
		import('./session/snapshots.ts'),
		import('node:crypto'),
	])
	let git: Git | null = null
	const lazy = async () => {
		git ??= (await import('./sandbox/index.ts')).createGit({ env: options.env, avoid: [root] })
		return git
	}
	return createSnapshots({
		root,
		store: join(paths.snapshots, createHash('sha256').update(root).digest('hex').slice(0, 24)),
		git: { available: async () => (await lazy()).available(), run: async (args, o) => (await lazy()).run(args, o) },
		budget: { bytes: 2e9, ms: 10_000 },
		keep: { days: 30, bytes: 5e9 },
		clock,
	})
}

/** The session's chained log; the first line is written with the first entry. */
async function auditLog(
	{ options, root, paths, clock, loaded }: Assembly,
	session: string,
	redactor: Redactor,
): Promise<AuditLog> {
	const { settings } = loaded
	const { createAuditLog, noAudit } = await import('./audit/log.ts')
	if (!settings.audit.enabled) return noAudit
	const { auditPlaces } = await import('./audit/witness.ts')
	return createAuditLog({
		dir: join(paths.home, 'audit'),
		session,
		root,
		redactor,
		clock,
		version: options.version ?? '0',
		...auditPlaces(settings.audit, options.home),
		required: settings.policy?.audit?.required !== undefined,
		git: async () => (await import('./sandbox/index.ts')).createGit({ env: options.env, avoid: [root] }),
	})
}
