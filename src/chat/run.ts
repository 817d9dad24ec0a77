// From the words of `garuda chat` to one of its two rooms: one-shot or the chat. Between the command class and print or plain.
import { homedir, hostname, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import {
	type Effort,
	type EngineOptions,
	type Garuda,
	type Json,
	type Mode,
	type OpenOptions,
	slashCommands,
	UserError,
} from '../engine/index.ts'
import { createDenier } from './approver.ts'
import type { DebugLog } from './debug-log.ts'
import type { Format } from './print.ts'
import { processStdio, type Stdio } from './stdio.ts'
import { type PreparedTour, type TourRoom, tourOptions } from './tour.ts'
import { UsageError } from './usage-error.ts'

/** The flags of `garuda chat`, as parsed. */
export interface ChatFlags {
	print?: string | undefined
	'output-format'?: Format | undefined
	'input-format'?: 'text' | 'stream-json' | undefined
	'include-partial-messages'?: boolean | undefined
	verbose?: boolean | undefined
	'json-schema'?: string | undefined
	allow?: string[] | undefined
	'max-steps'?: number | undefined
	'max-tokens'?: number | undefined
	'max-cost'?: number | undefined
	model?: string | undefined
	effort?: Effort | undefined
	mode?: Mode | undefined
	cd?: string | undefined
	'add-dir'?: string[] | undefined
	'append-system-prompt'?: string | undefined
	continue?: boolean | undefined
	resume?: string | undefined
	fork?: boolean | undefined
	'session-id'?: string | undefined
	replay?: string | undefined
	debug?: boolean | undefined
}

export interface RunInput {
	flags: ChatFlags
	/** Flags that stand on the command line; the others came from the environment. */
	named: ReadonlySet<string>
	version: string
	createEngine(options: EngineOptions): Garuda
	/** Models that are no provider's (tour, scripted). */
	clients: NonNullable<EngineOptions['clients']>
	/** The tour service, loaded when it is needed. */
	tour?(): Promise<TourRoom>
	/** The setup, loaded when a chat without a model wants it. */
	setup?(): Promise<{ runSetup(flags: object, inChat: { signal: AbortSignal }): Promise<number> }>
	/** Keeps what models answer, for a script. */
	wrapClient?: EngineOptions['wrapClient']
	/** Goes through a recorded session again; absent when the build has none. */
	replay?(garuda: Garuda, id: string): Promise<{ text: string; same: boolean }>
	io?: Stdio
	cwd?: string
	home?: string
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Resolves with the exit code when everything is written and closed. Throws UsageError and UserError. */
export async function run(input: RunInput): Promise<number> {
	const { flags } = input
	const io = input.io ?? processStdio()
	const format = flags['output-format'] ?? 'text'
	const inputLines = flags['input-format'] === 'stream-json'
	// Something piped in, or a word that only one task can have, means one task.
	const oneTask = flags.print !== undefined || inputLines || flags.replay !== undefined || io.stdin.isTTY !== true
	checkWords(input, format, inputLines, oneTask)

	const cwd = input.cwd ?? process.cwd()
	const home = input.home ?? (io.env.HOME || homedir())
	const root = resolve(cwd, expand(flags.cd ?? '.', home))
	const schema = flags['json-schema'] === undefined ? undefined : await readSchema(flags['json-schema'], cwd)
	const log = flags.debug ? await openLog(io.env.GARUDA_HOME || join(home, '.garuda'), input.version) : null
	// A script stands in for a model only where no model was named.
	const scripted = io.env.GARUDA_MODEL_SCRIPT && input.clients.scripted ? 'scripted' : undefined
	const model = input.named.has('model') ? flags.model : (scripted ?? flags.model)
	const limits = {
		...(flags['max-steps'] === undefined ? {} : { steps: flags['max-steps'] }),
		...(flags['max-tokens'] === undefined ? {} : { tokens: flags['max-tokens'] }),
		...(flags['max-cost'] === undefined ? {} : { cost: flags['max-cost'] }),
	}
	const denier = createDenier()
	const base: EngineOptions = {
		root,
		home,
		...(io.env.GARUDA_HOME ? { garudaHome: resolve(cwd, io.env.GARUDA_HOME) } : {}),
		env: io.env,
		approver: denier,
		...(flags['add-dir'] ? { extraDirs: flags['add-dir'].map((dir) => resolve(cwd, expand(dir, home))) } : {}),
		...(model ? { model } : {}),
		...(flags.effort ? { effort: flags.effort } : {}),
		...(flags.mode ? { mode: flags.mode } : {}),
		...(flags.allow ? { allow: flags.allow } : {}),
		limits,
		...(flags['append-system-prompt'] ? { appendSystemPrompt: flags['append-system-prompt'] } : {}),
		version: input.version,
		platform: process.platform,
		hostname: hostname(),
		...(process.getuid ? { uid: process.getuid() } : {}),
		clients: input.clients,
		...(input.wrapClient ? { wrapClient: input.wrapClient } : {}),
		...(log ? { debug: log.write } : {}),
	}
	const watch = log ? { watch: log.event } : {}
	const tours: PreparedTour[] = []
	const prepare = async (room: TourRoom): Promise<PreparedTour> => {
		const tour = await room.prepareTour({ root, home, tmpdir: tmpdir(), env: io.env, paceMs: oneTask ? 0 : 15 })
		tours.push(tour)
		return tour
	}

	try {
		if (model === 'tour' && input.tour && flags.replay === undefined) {
			const room = await input.tour()
			const tour = await prepare(room)
			// Its own edit, in its own copy, needs no question where nobody is there to answer it.
			Object.assign(base, tourOptions(tour), oneTask ? { acceptEdits: true } : {})
			if (oneTask && format === 'text' && schema === undefined && flags.print && room.asksForAll(flags.print)) {
				const { play } = await import('./tour.ts')
				return await play({ io, room, tour, create: (more) => input.createEngine({ ...base, ...more }) })
			}
		}
		if (!oneTask) {
			const { chat } = await import('./plain.ts')
			return await chat({
				io,
				create: (more) =>
					input.createEngine({
						...base,
						consents: 'ask',
						...more,
						...(more.env ? { env: { ...base.env, ...more.env } } : {}),
					}),
				open: {
					...(flags['session-id'] ? { id: flags['session-id'] } : {}),
					...(flags.fork ? { trustForeign: true } : {}),
				},
				...(flags.continue ? { resume: 'latest' } : flags.resume === undefined ? {} : { resume: flags.resume }),
				...(model ? { model } : {}),
				...(input.tour ? { tour: async () => tourOptions(await prepare(await input.tour!())) } : {}),
				...(input.setup
					? { setup: async (signal: AbortSignal) => (await input.setup!()).runSetup({}, { signal }) }
					: {}),
				version: input.version,
				home,
				verbose: flags.verbose ?? false,
				...watch,
			})
		}
		const garuda = input.createEngine(base)
		try {
			if (flags.replay !== undefined) return await replayed(input, garuda, io, flags.replay)
			let prompt = flags.print
			if (!prompt && !inputLines && format === 'text' && input.tour && (await noModel(garuda))) {
				// Nothing to do and nobody to do it: the start still does not fail, it shows what a task looks like.
				const piped = await (await import('./read-stdin.ts')).readAll(io, {
					optional: false,
					say: () => {},
					signal: new AbortController().signal,
				})
				const nothing = piped === null || piped.trim() === ''
				if (nothing && (flags.continue || flags.resume !== undefined)) {
					// A session that goes on is no place for the tour: what is wrong with it is said, or that it has no prompt.
					const { openSession } = await import('./print.ts')
					await (await openSession(garuda, await openOptions(flags, format))).close()
				} else if (nothing) {
					const [room, { play }] = [await input.tour(), await import('./tour.ts')]
					const create = (more: Partial<EngineOptions>) => input.createEngine({ ...base, ...more })
					return await play({ io, room, tour: await prepare(room), create })
				}
				prompt = piped ?? undefined
			}
			const { print } = await import('./print.ts')
			return await print({
				io,
				garuda,
				open: () => openOptions(flags, format),
				...(prompt ? { prompt } : {}),
				format,
				inputLines,
				partial: flags['include-partial-messages'] ?? false,
				verbose: flags.verbose ?? false,
				...(schema === undefined ? {} : { schema }),
				version: input.version,
				slashCommands: slashCommands.map((one) => one.name),
				acceptEdits: flags.allow?.includes('edits') ?? false,
				cover: denier.cover,
				...watch,
			})
		} finally {
			await garuda.close()
		}
	} finally {
		for (const tour of tours) await tour.remove()
		if (log) {
			log.write({ at: 'exit' })
			io.stderr.write(`garuda: the debug log is ${log.path}\n`)
		}
	}
}

/** No model was chosen anywhere; a broken file or a missing key is another matter. */
async function noModel(garuda: Garuda): Promise<boolean> {
	const { model, problem } = await garuda.readiness()
	return model === null && problem?.message === 'No model is chosen.'
}

function checkWords({ flags, named }: RunInput, format: Format, inputLines: boolean, oneTask: boolean): void {
	if (flags['session-id'] !== undefined && !uuid.test(flags['session-id']))
		throw new UsageError(
			'--session-id takes a UUID in lower case.',
			'For example: --session-id "$(uuidgen | tr A-Z a-z)"',
		)
	if (flags['include-partial-messages'] && format !== 'stream-json')
		throw new UsageError('--include-partial-messages goes with --output-format stream-json.')
	if (inputLines && format !== 'stream-json')
		throw new UsageError('--input-format stream-json goes with --output-format stream-json.')
	if (inputLines && flags.print)
		throw new UsageError('With --input-format stream-json the prompts come on stdin, not with -p.')
	if (
		flags.replay !== undefined &&
		(format !== 'text' || flags.print !== undefined || flags['json-schema'] !== undefined)
	)
		throw new UsageError('--replay goes alone: it prints what it found as text.', 'For example: garuda --replay <id>')
	if (!oneTask) {
		for (const name of ['json-schema', 'allow'] as const)
			if (flags[name] !== undefined) throw new UsageError(`--${name} is for one task.`, 'Give the task with -p.')
		if (format !== 'text' && named.has('output-format'))
			throw new UsageError(`--output-format ${format} is for one task.`, 'Give the task with -p.')
	} else if (flags.resume === '')
		throw new UsageError(
			'--resume needs the id of a session here.',
			'To choose from a list, start the chat: garuda --resume. The newest: --continue.',
		)
}

/** Which session a one-shot goes on with; JSON output gets a UUID where the session is new, as its readers expect. */
async function openOptions(flags: ChatFlags, format: Format): Promise<OpenOptions> {
	if (flags.continue) return { latest: true }
	if (flags.resume) return { resume: flags.resume, ...(flags.fork ? { trustForeign: true } : {}) }
	if (flags['session-id']) return { id: flags['session-id'] }
	return format === 'text' ? {} : { id: process.getBuiltinModule('node:crypto').randomUUID() }
}

async function replayed(input: RunInput, garuda: Garuda, io: Stdio, id: string): Promise<number> {
	if (!input.replay) throw new UserError('This build has no replay of sessions.')
	const { text, same } = await input.replay(garuda, id)
	const [{ Output }, { safeText }] = await Promise.all([import('./stdio.ts'), import('./safe-text.ts')])
	const out = new Output(io.stdout)
	out.line(safeText(text).trimEnd())
	await out.end()
	return same ? 0 : 1
}

const expand = (path: string, home: string): string =>
	path === '~' || path.startsWith('~/') ? join(home, path.slice(1)) : path

/** The schema as given, or the file that holds it. */
async function readSchema(given: string, cwd: string): Promise<Json> {
	let text = given
	let from = '--json-schema'
	if (!given.trimStart().startsWith('{')) {
		from = resolve(cwd, given)
		const { readFile } = await import('node:fs/promises')
		text = await readFile(from, 'utf8').catch((error: Error) => {
			throw new UsageError(
				`The JSON schema cannot be read: ${error.message}`,
				'Give the schema itself ({"type":"object",…}) or a file.',
			)
		})
	}
	try {
		const value: unknown = JSON.parse(text)
		if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
	} catch {
		// said below
	}
	throw new UsageError(`${from} holds no JSON object.`, 'A schema looks like {"type":"object","properties":{…}}.')
}

async function openLog(folder: string, version: string): Promise<DebugLog> {
	const { createDebugLog } = await import('./debug-log.ts')
	try {
		return createDebugLog(folder, version)
	} catch (error) {
		throw new UserError(`The debug log cannot be written in ${folder}: ${(error as Error).message}`)
	}
}
