// A scripted Garuda and a fake process for tests of the front end: streams in memory, signals and crashes by hand.
import { PassThrough, Writable } from 'node:stream'
import type { InputStream, OutputStream, SignalName, Stdio } from '../../src/chat/stdio.ts'
import type {
	CommandList,
	Garuda,
	ModelInfo,
	OpenOptions,
	Readiness,
	Session,
	Status,
	Turn,
} from '../../src/engine/api.ts'
import { Channel } from '../../src/engine/channel.ts'
import { UserError } from '../../src/engine/errors.ts'
import type { Approver, SessionSummary } from '../../src/engine/ports.ts'
import type {
	AgentEvent,
	ApprovalRequest,
	Block,
	Effort,
	Mode,
	ModelSpec,
	PromptInput,
	TurnEnd,
} from '../../src/engine/types.ts'
import { noUsage } from '../../src/engine/types.ts'

export interface Stage {
	text: string
	input: PromptInput
	signal: AbortSignal
	emit(event: AgentEvent): void
	/** A finished reply of one text, as the engine would stream it. */
	say(...deltas: string[]): void
	/** Asks the approver as the gate does. */
	ask(request: Partial<ApprovalRequest>): ReturnType<Approver['ask']>
	stopped(): Promise<void>
}

/** Plays one turn; what it returns is laid over the turn's end. */
export type Script = (stage: Stage) => unknown

export const end = (more: Partial<TurnEnd> = {}): TurnEnd => ({
	reason: 'done',
	usage: { ...noUsage(), input: 10, output: 5, requests: 1, cost: 0.001 },
	steps: 1,
	text: '',
	denials: [],
	durationMs: 12,
	modelMs: 10,
	firstTokenMs: 3,
	...more,
})

export const replyOf = (blocks: Block[], more: Partial<Extract<AgentEvent, { type: 'message' }>> = {}): AgentEvent => ({
	type: 'message',
	message: { role: 'assistant', blocks },
	usage: { ...noUsage(), input: 10, output: 5, requests: 1, cost: 0.001 },
	model: 'fake/one',
	stop: 'end',
	...more,
})

export interface FakeOptions {
	approver?: Approver
	openFails?: Error
	problem?: Readiness
	local?: { provider?: string; name: string; url: string; models: string[] }[]
	sessions?: SessionSummary[]
	status?: Partial<Status>
	notices?: string[]
	complete?(prefix: string): Promise<string[]>
	history?: AgentEvent[]
	models?: ModelInfo[]
	diff?: string
	commands?: CommandList
}

export interface Fake {
	garuda: Garuda
	/** Every prompt and shell command, in order. */
	prompts: string[]
	inputs: PromptInput[]
	calls: string[]
	opened: OpenOptions[]
	closed: number
	live: Session | null
}

export function fakeGaruda(script: Script, options: FakeOptions = {}): Fake {
	const fake: Fake = { garuda: null as never, prompts: [], inputs: [], calls: [], opened: [], closed: 0, live: null }
	let count = 0
	const makeSession = (how: OpenOptions): Session => {
		let mode: Mode = options.status?.mode ?? 'build'
		let model = options.status?.model ?? 'fake/one'
		let effort: Effort | null = null
		let acceptEdits = false
		let title: string | null = null
		const history: AgentEvent[] = [...(options.history ?? [])]
		const listeners = new Set<(event: AgentEvent) => void>()
		const id = how.id ?? how.resume ?? `00000000-0000-4000-8000-${String(++count).padStart(12, '0')}`
		const begin = (input: PromptInput, outer: AbortSignal | undefined, kind: string): Turn => {
			fake.prompts.push(kind + input.text)
			fake.inputs.push(input)
			const channel = new Channel()
			const signal = outer ?? new AbortController().signal
			const emit = (event: AgentEvent) => {
				history.push(event)
				channel.push(event)
				for (const listener of listeners) listener(event)
			}
			const run = async (): Promise<TurnEnd> => {
				await null
				let said = ''
				const stage: Stage = {
					text: input.text,
					input,
					signal,
					emit,
					say(...deltas) {
						emit({ type: 'step_start', step: 1 })
						for (const text of deltas) emit({ type: 'text_delta', text })
						said = deltas.join('')
						emit(replyOf([{ type: 'text', text: said }]))
					},
					ask: (request) =>
						options.approver!.ask(
							{
								id: 'q1',
								tool: 'bash',
								title: 'Run something',
								preview: '',
								choices: ['once', 'session', 'deny'],
								info: { title: 'x', kind: 'execute', access: 'run', paths: [], key: 'k' },
								...request,
							},
							signal,
						),
					stopped: () =>
						new Promise((done) =>
							signal.aborted ? done() : signal.addEventListener('abort', () => done(), { once: true }),
						),
				}
				const partial = (await script(stage)) as Partial<TurnEnd> | undefined
				const final = end({ text: said, ...(signal.aborted ? { reason: 'cancelled' as const } : {}), ...partial })
				emit({ type: 'turn_end', end: final })
				channel.close()
				return final
			}
			const ending = run()
			return { end: ending, [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator]() }
		}
		const session: Session = {
			id,
			root: '/project',
			get mode() {
				return mode
			},
			get model() {
				return model
			},
			tools: ['read_file', 'bash'],
			notices: options.notices ?? [],
			prompt: (input, more) => begin(typeof input === 'string' ? { text: input } : input, more?.signal, ''),
			commands: async () => options.commands ?? { commands: [], problems: [] },
			shell: (command, more) => begin({ text: command }, more?.signal, '!'),
			async setMode(next) {
				fake.calls.push(`mode ${next}`)
				mode = next
			},
			async setModel(next) {
				fake.calls.push(`model ${next}`)
				model = next
			},
			async setEffort(next) {
				fake.calls.push(`effort ${next}`)
				effort = next
			},
			async setProfile(next) {
				fake.calls.push(`profile ${next}`)
			},
			setAcceptEdits(on) {
				fake.calls.push(`edits ${on}`)
				acceptEdits = on
			},
			async setTitle(next) {
				fake.calls.push(`title ${next}`)
				title = next
			},
			compact: async () => ({ before: 9000, after: 1200 }),
			undo: async () => ({
				done: true,
				restored: ['a.txt'],
				conflicts: [],
				prompt: 'the old prompt',
				message: 'Undid turn 1.',
			}),
			redo: async () => ({ done: false, restored: [], conflicts: [], message: 'There is nothing to redo.' }),
			diff: async (which) => options.diff ?? (which === 'all' ? '--- a\n+++ b\n' : ''),
			status: () => ({
				id,
				root: '/project',
				extraDirs: [],
				title,
				model,
				effort,
				mode,
				sandbox: 'bubblewrap',
				profile: 'standard',
				acceptEdits,
				usage: noUsage(),
				contextTokens: 5000,
				window: 100_000,
				turns: 1,
				...options.status,
				...(options.status?.mode ? { mode } : {}),
			}),
			permissions: () => ({
				rules: [{ text: 'bash(npm test)', kind: 'allow', source: 'user' }],
				session: ['bash:npm test'],
			}),
			history: () => history,
			export: async () => '/project/conversation.md',
			complete: options.complete ?? (async () => []),
			onEvent(listener) {
				listeners.add(listener)
				return () => listeners.delete(listener)
			},
			async close() {
				fake.closed++
			},
		}
		return session
	}
	fake.garuda = {
		root: '/project',
		sessions: {
			list: async () => options.sessions ?? [],
			read: async () => {
				throw new Error('not in this fake')
			},
			rename: async (id, title) => void fake.calls.push(`rename ${id} ${title}`),
			remove: async (id) => void fake.calls.push(`remove ${id}`),
		},
		models: { list: async () => options.models ?? [], local: async () => options.local ?? [] },
		readiness: async () => options.problem ?? { model: 'fake/one', problem: null },
		async open(how = {}) {
			fake.opened.push(how)
			if (options.openFails) throw options.openFails
			fake.live = makeSession(how)
			return fake.live
		},
		async close() {
			await fake.live?.close()
		},
	}
	return fake
}

export const noModel = {
	openFails: new UserError('No model is set.'),
	problem: { model: null, problem: { code: 'auth', message: 'No model is set.' } },
}

export const spec = (id: string): ModelSpec => ({
	provider: 'fake',
	id,
	window: 100_000,
	maxOutput: 8000,
	thinking: 'none',
	efforts: ['low', 'high'],
	price: null,
	textToolCalls: 'off',
})

// ---------------------------------------------------------------- the process

export class Capture extends Writable {
	text = ''
	writes = 0
	isTTY?: boolean
	columns?: number
	constructor(tty = false) {
		super({ decodeStrings: false })
		if (tty) {
			this.isTTY = true
			this.columns = 80
		}
	}
	override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
		this.text += chunk.toString()
		this.writes++
		done()
	}
}

export interface FakeIo extends Stdio {
	out: Capture
	err: Capture
	keys: PassThrough
	raw: boolean[]
	abandoned: number[]
	signal(name: SignalName): void
	crash(error: unknown): void
	exit(): void
	/** Goes on after Ctrl-Z; null while it was not stopped. */
	resume: (() => void) | null
	/** Types into the terminal. */
	type(text: string): void
	/** Resolves when stdout holds the text (after `from`). */
	sees(text: string, from?: number): Promise<void>
}

export function fakeIo(
	o: {
		tty?: boolean
		outTty?: boolean
		errTty?: boolean
		env?: Record<string, string>
		kind?: 'file' | 'pipe' | 'socket'
	} = {},
): FakeIo {
	const keys = new PassThrough() as PassThrough & { isTTY?: boolean; setRawMode?(on: boolean): unknown }
	const raw: boolean[] = []
	if (o.tty) {
		keys.isTTY = true
		keys.setRawMode = (on) => raw.push(on)
	}
	const out = new Capture(o.outTty ?? o.tty)
	const err = new Capture(o.errTty ?? o.tty)
	const signals = new Map<string, Set<() => void>>()
	const crashes = new Set<(error: unknown) => void>()
	const exits = new Set<() => void>()
	const abandoned: number[] = []
	const add = <T>(set: Set<T>, item: T) => {
		set.add(item)
		return () => void set.delete(item)
	}
	const io: FakeIo = {
		resume: null,
		suspend(resumed) {
			io.resume = resumed
		},
		stdin: keys as InputStream,
		stdout: out as OutputStream,
		stderr: err as OutputStream,
		env: { TERM: 'xterm-256color', NO_COLOR: '1', ...o.env },
		onSignal(name, listener) {
			if (!signals.has(name)) signals.set(name, new Set())
			return add(signals.get(name)!, listener)
		},
		onCrash: (listener) => add(crashes, listener),
		onExit: (listener) => add(exits, listener),
		abandon: (code) => abandoned.push(code),
		stdinKind: () => (o.tty ? 'terminal' : (o.kind ?? 'file')),
		out,
		err,
		keys,
		raw,
		abandoned,
		signal(name) {
			for (const listener of [...(signals.get(name) ?? [])]) listener()
		},
		crash(error) {
			for (const listener of [...crashes]) listener(error)
		},
		exit() {
			for (const listener of [...exits]) listener()
		},
		type: (text) => void keys.write(text),
		async sees(text, from = 0) {
			for (let i = 0; i < 400; i++) {
				if (out.text.includes(text, from)) return
				await new Promise((done) => setTimeout(done, 5))
			}
			throw new Error(`never saw ${JSON.stringify(text)} in:\n${out.text}`)
		},
	}
	return io
}
