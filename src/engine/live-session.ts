// One open conversation: prompts become turns, turns become records, and every change can be taken back. Between a front end and the turn.
import type { PromptOptions, Session, Status, Turn, UndoResult } from './api.ts'
import { TokenBudget } from './budget.ts'
import { Channel } from './channel.ts'
import { type Compaction, createCompaction } from './context/compact.ts'
import { expandMentions } from './context/mentions.ts'
import { messageOf, UserError } from './errors.ts'
import { asEvents, History, type RecordOf } from './history.ts'
import type { Decider } from './permission/decider.ts'
import type {
	Clock,
	ModelClient,
	Redactor,
	ResolvedPath,
	SessionRecord,
	SessionWriter,
	Snapshots,
	Tool,
	ToolState,
} from './ports.ts'
import { schemaCheck } from './schema-check.ts'
import { messagesBefore, type Turnmark } from './session/resume.ts'
import type { GarudaSnapshots } from './session/snapshots.ts'
import { titleOf } from './session/title.ts'
import { oneLine } from './text.ts'
import { createGate, type Gate, type GateDeps } from './tools/invoke.ts'
import { runTurn } from './turn.ts'
import type {
	AgentEvent,
	CallInfo,
	Effort,
	Json,
	Message,
	Mode,
	ModelSpec,
	PromptInput,
	ToolSpec,
	TurnEnd,
	Usage,
} from './types.ts'
import { addUsage, noUsage } from './types.ts'
import { neutralise, wrap } from './untrusted.ts'

/** A model ready to be called. */
export interface ModelChoice {
	name: string
	client: ModelClient
	spec: ModelSpec
}

/** What a session starts from: rebuilt from a journal, or new and empty. */
export interface SessionStart {
	messages: Message[]
	turns: Turnmark[]
	/** The redo stack: each turn and the whole conversation after its redo. */
	undone: { mark: Turnmark; messages: Message[] }[]
	nextTurn: number
	title: string | null
	usage: Usage
	stoppedMidway: boolean
}

export interface SessionParts {
	id: string
	root: string
	extraDirs: string[]
	start: SessionStart
	model: ModelChoice
	effort: Effort | undefined
	mode: Mode
	acceptEdits: boolean
	system: string
	tools: Tool[]
	specs: ToolSpec[]
	gate: Omit<
		GateDeps,
		'mode' | 'emit' | 'record' | 'beforeChange' | 'decide' | 'remember' | 'tools' | 'state' | 'redactor' | 'root'
	>
	decider: Pick<Decider, 'decide' | 'rules'>
	/** Whether commands run in the OS sandbox. */
	sandboxed(): Promise<boolean>
	redactor: Redactor
	state: ToolState
	snapshots: (Snapshots & Partial<Pick<GarudaSnapshots, 'keep'>>) | null
	limits: { steps: number; repeatHint: number; repeatStop: number; tokens: number | null; cost: number | null }
	compaction: { auto: boolean; reserve: number; keep: number }
	clock: Clock
	notices: string[]
	/** Makes or continues the journal; called at the first record. Null: keep none. */
	openJournal: (() => Promise<SessionWriter>) | null
	chooseModel(name: string): Promise<ModelChoice>
	sandboxWord(): string
	/** Starts what the first command will need, beside the first request. */
	warmUp(): void
	/** Files of a finished snapshot pair as a unified diff. */
	diffOf(from: string, to: string | null): Promise<string>
	exportText(): Promise<string>
	complete(prefix: string): Promise<string[]>
	onClose(): Promise<void>
}

export class LiveSession implements Session {
	readonly id: string
	readonly root: string
	readonly notices: readonly string[]
	readonly tools: readonly string[]
	private readonly p: SessionParts
	private readonly log: History
	private readonly gate: Gate
	private readonly compaction: Compaction
	private readonly sessionKeys = new Set<string>()
	private readonly listeners = new Set<(event: AgentEvent) => void>()
	private choice: ModelChoice
	private effort: Effort | undefined
	private modeNow: Mode
	private modeTold: Mode
	private acceptEdits: boolean
	private title: string | null
	private usage: Usage
	private turns: Turnmark[]
	private undone: { mark: Turnmark; messages: Message[] }[]
	private nextTurn: number
	private stopped: boolean
	private writer: Promise<SessionWriter> | null = null
	private running: { abort: AbortController; end: Promise<TurnEnd> } | null = null
	private channel: Channel | null = null
	/** The state before this turn. */
	private before: Before | null = null
	private changed = false
	private closing: Promise<void> | null = null

	constructor(parts: SessionParts) {
		this.p = parts
		this.id = parts.id
		this.root = parts.root
		this.notices = parts.notices
		this.tools = parts.tools.map((tool) => tool.name)
		this.choice = parts.model
		this.effort = parts.effort
		this.modeNow = parts.mode
		this.modeTold = 'build'
		this.acceptEdits = parts.acceptEdits
		this.title = parts.start.title
		this.usage = parts.start.usage
		this.turns = parts.start.turns
		this.undone = parts.start.undone
		this.nextTurn = parts.start.nextTurn
		this.stopped = parts.start.stoppedMidway
		const fixed = parts.system.length + JSON.stringify(parts.specs).length
		this.log = new History(parts.start.messages, fixed, (message, record) => this.writeMessage(message, record))
		this.gate = createGate({
			...parts.gate,
			root: parts.root,
			tools: parts.tools,
			state: parts.state,
			redactor: parts.redactor,
			mode: () => this.modeNow,
			emit: (event) => this.emit(event),
			decide: async (tool, info, effect, mode) =>
				parts.decider.decide({
					...this.answers(),
					tool: tool.name,
					readOnlyTool: tool.readOnly,
					info,
					effect,
					mode,
					sandboxed: info.access === 'run' || effect ? await parts.sandboxed() : true,
				}),
			remember: (key) => this.sessionKeys.add(key),
			record: async (entry) => this.write({ type: 'decision', time: parts.clock.now(), ...entry }),
			beforeChange: async ({ access, paths }) => {
				this.changed = true
				await this.before?.wait()
				if (access === 'write') await parts.snapshots?.keep?.(paths)
			},
		})
		this.compaction = this.makeCompaction()
	}

	get mode(): Mode {
		return this.modeNow
	}

	get model(): string {
		return this.choice.name
	}

	// ------------------------------------------------------------ turns

	prompt(input: PromptInput | string, options: PromptOptions = {}): Turn {
		const prompt = typeof input === 'string' ? { text: input } : input
		return this.begin(options.signal, async (signal) => {
			const check = options.schema === undefined ? undefined : await schemaCheck(options.schema)
			await this.takeIn(prompt, check ? options.schema : undefined, signal)
			return runTurn(
				{
					client: this.choice.client,
					modelName: this.choice.name,
					spec: this.choice.spec,
					...(this.effort ? { effort: this.effort } : {}),
					system: this.p.system,
					tools: this.p.specs,
					gate: this.gate,
					history: this.log,
					compaction: this.compaction,
					budget: new TokenBudget(this.p.limits.tokens, this.p.limits.cost),
					limits: this.p.limits,
					clock: this.p.clock,
					sessionId: this.id,
					emit: (event) => this.emit(event),
					...(check ? { check } : {}),
				},
				signal,
			)
		})
	}

	shell(command: string, options: { signal?: AbortSignal } = {}): Turn {
		return this.begin(options.signal, async (signal) => {
			const started = this.p.clock.now()
			const said = this.p.redactor.redact(command)
			await this.mark(`!${command}`)
			const text = `<garuda-note>The user runs a command of their own: ${oneLine(said, 2000)}</garuda-note>`
			await this.log.append({ role: 'user', blocks: [{ type: 'text', text }] }, { type: 'user', prompt: `!${said}` })
			const call = { id: `user-${started.toString(36)}`, name: 'bash', input: { command } }
			const outcome = await this.gate.invoke(call, signal)
			const result = wrap('garuda-user-command', { status: outcome.status }, outcome.text)
			await this.log.append({ role: 'user', blocks: [{ type: 'text', text: result }] }, { type: 'note' })
			const denied = outcome.status === 'denied'
			return {
				reason: signal.aborted || outcome.cancelTurn ? 'cancelled' : 'done',
				usage: noUsage(),
				steps: 0,
				text: '',
				denials: denied ? [{ callId: '', tool: 'bash', input: { command }, reason: outcome.denied ?? '' }] : [],
				durationMs: this.p.clock.now() - started,
				modelMs: 0,
				firstTokenMs: null,
			}
		})
	}

	/** The frame of every turn: one at a time, snapshots around it, a record at its end. */
	private begin(outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<TurnEnd>): Turn {
		if (this.closing) throw new UserError('This session is closed.')
		if (this.running) throw new UserError('A turn is running in this session.', 'Wait for its end, or stop it first.')
		const abort = new AbortController()
		const stop = () => abort.abort()
		if (outer?.aborted) stop()
		outer?.addEventListener('abort', stop, { once: true })
		const channel = new Channel()
		this.channel = channel
		this.changed = false
		const turn = this.nextTurn
		const run = async (): Promise<TurnEnd> => {
			let end: TurnEnd
			this.before = this.takeFrom(turn)
			try {
				end = await work(abort.signal)
			} catch (error) {
				end = failed(error)
			}
			if (end.reason === 'cancelled') this.stopped = true
			this.usage = addUsage(this.usage, end.usage)
			await this.finishTurn(turn, end)
			outer?.removeEventListener('abort', stop)
			this.running = null
			this.emit({ type: 'turn_end', end })
			this.channel = null
			channel.close()
			return end
		}
		const end = run()
		this.running = { abort, end }
		return { end, [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator]() }
	}

	/**
	 * The snapshot of the state before this turn. It starts a moment after the request went out (so that it does not
	 * delay it), or at once when a call is about to change something; awaiting it puts it into the journal, once.
	 */
	private takeFrom(turn: number): Before {
		const { snapshots, clock } = this.p
		const over = new AbortController()
		let taking: Promise<Taken> | null = null
		const start = () => {
			taking ??= snapshots
				? snapshots.take(turn, over.signal).catch((error: unknown) => ({ id: null, note: messageOf(error) }))
				: Promise.resolve({ id: null })
			return taking
		}
		let recorded: Promise<Taken> | null = null
		void clock.sleep(warmUpMs, over.signal).then(() => {
			if (over.signal.aborted) return
			this.p.warmUp()
			if (snapshots) start()
		})
		return {
			wait: () => {
				recorded ??= start().then(async (from) => {
					if (!snapshots) return from
					const mark = this.turns.at(-1)
					if (mark?.turn === turn) mark.from = from.id
					const note = from.note ? { note: from.note } : {}
					if (from.note) this.note(from.note)
					await this.write({ type: 'snapshot', time: clock.now(), turn, id: from.id, ...note })
					return from
				})
				return recorded
			},
			drop: async () => {
				over.abort()
				await taking
			},
		}
	}

	private async finishTurn(turn: number, end: TurnEnd): Promise<void> {
		const time = () => this.p.clock.now()
		try {
			const mark = this.turns.at(-1)
			if (this.p.snapshots && mark?.turn === turn && this.changed) {
				const before = await this.before?.wait()
				const after = before?.id == null ? null : await this.p.snapshots.take(turn, new AbortController().signal)
				mark.to = after?.id ?? null
				await this.write({
					type: 'snapshot',
					time: time(),
					turn,
					id: mark.to,
					...(after?.note ? { note: after.note } : {}),
				})
				if (after?.note) this.note(after.note)
			} else await this.before?.drop()
			const ended = this.turns.at(-1)
			if (ended?.turn === turn) ended.ended = end.reason
			const error = end.error ? { error: { code: end.error.code, message: end.error.message } } : {}
			await this.write({ type: 'end', time: time(), turn, reason: end.reason, usage: { ...end.usage }, ...error })
		} catch (error) {
			const text = `The end of this turn could not be recorded: ${messageOf(error)}`
			this.emit({ type: 'notice', level: 'warning', text })
		}
	}

	/** The user's words become a message: mentions attached, notes of Garuda in front, redacted before anything is sent. */
	private async takeIn(prompt: PromptInput, schema: Json | undefined, signal: AbortSignal): Promise<void> {
		const parts: string[] = []
		if (this.stopped)
			parts.push(
				'<garuda-note>The user stopped the task before this message. Do not go on with it unless asked.</garuda-note>',
			)
		if (this.modeNow !== this.modeTold) {
			parts.push(this.modeNow === 'plan' ? planNote : buildNote)
			this.modeTold = this.modeNow
		}
		const text = neutralise(prompt.text)
		parts.push(text)
		if (text.includes('@')) {
			const { attachments, notices } = await expandMentions(text, {
				files: this.p.gate.files,
				limits: this.p.gate.limits,
				state: this.p.state,
				permit: (resolved) => this.permitRead(resolved),
			})
			for (const one of attachments) parts.push(wrap('garuda-attached', { path: one.path }, one.text))
			for (const notice of notices) this.emit({ type: 'notice', level: 'warning', text: notice })
		}
		for (const one of prompt.context ?? []) parts.push(wrap('garuda-context', { source: one.label }, one.text))
		if (schema !== undefined)
			parts.push(
				`<garuda-note>End with one JSON value alone, no prose and no code fence, that fits this JSON schema: ${JSON.stringify(schema)}</garuda-note>`,
			)
		this.stopped = false
		if (signal.aborted) this.stopped = true
		await this.mark(prompt.text)
		const redacted = this.p.redactor.redact(parts.join('\n\n'))
		await this.log.append(
			{ role: 'user', blocks: [{ type: 'text', text: redacted }] },
			{ type: 'user', prompt: this.p.redactor.redact(prompt.text) },
		)
	}

	private answers() {
		return { keys: this.sessionKeys, acceptEdits: this.acceptEdits, cwd: this.p.state.cwd }
	}

	/** A mention is a read by the user's own word: what would need a question is left to the agent, which asks it. */
	private async permitRead({ path }: ResolvedPath): Promise<{ allowed: boolean; reason: string }> {
		const info: CallInfo = { title: '', kind: 'read', access: 'read', paths: [path], key: `read:${path}` }
		const call = { tool: 'read_file', readOnlyTool: true, info, effect: undefined, mode: this.modeNow, sandboxed: true }
		const { decision, reason } = await this.p.decider.decide({ ...call, ...this.answers() })
		const word = decision === 'ask' ? `${reason}; let the agent read it, and it will ask.` : reason
		return { allowed: decision === 'allow', reason: word }
	}

	/** A new turn begins here; what was undone before it is gone. */
	private async mark(prompt: string): Promise<void> {
		this.undone = []
		const words = this.p.redactor.redact(prompt)
		const { messages } = this.log
		const mark = { turn: this.nextTurn++, messages: messages.length, base: messages, prompt: words, ended: null }
		this.turns.push({ ...mark, from: null, to: null })
		if (this.title === null) {
			this.title = titleOf(words)
			await this.write({ type: 'title', time: this.p.clock.now(), title: this.title })
			this.emit({ type: 'title', title: this.title })
		}
	}

	// ------------------------------------------------------------ settings of the session

	async setMode(mode: Mode): Promise<void> {
		if (mode === this.modeNow) return
		this.modeNow = mode
		if (this.writer) await this.write({ type: 'mode', time: this.p.clock.now(), mode })
		this.emit({ type: 'mode', mode })
	}

	async setModel(name: string): Promise<void> {
		if (this.running) throw new UserError('A turn is running in this session.', 'Change the model after it.')
		const choice = await this.p.chooseModel(name)
		if (this.p.limits.cost !== null && choice.spec.price === null)
			throw new UserError(
				`The price of ${choice.name} is unknown, so a cost limit cannot hold.`,
				'Set its price in models.json, or leave the limit out.',
			)
		this.choice = choice
		await this.changedModel()
	}

	async setEffort(effort: Effort | null): Promise<void> {
		const { efforts } = this.choice.spec
		if (effort !== null && !efforts.includes(effort))
			throw new UserError(
				`${this.choice.name} has no effort "${effort}".`,
				efforts.length ? `It takes: ${efforts.join(', ')}.` : 'It takes none.',
			)
		this.effort = effort ?? undefined
		await this.changedModel()
	}

	private async changedModel(): Promise<void> {
		Object.assign(this.compaction, this.makeCompaction())
		const effort = this.effort === undefined ? {} : { effort: this.effort }
		if (this.writer) await this.write({ type: 'model', time: this.p.clock.now(), model: this.choice.name, ...effort })
		this.emit({ type: 'model', model: this.choice.name, ...effort })
	}

	setAcceptEdits(on: boolean): void {
		this.acceptEdits = on
	}

	async setTitle(title: string): Promise<void> {
		this.title = titleOf(title)
		await this.write({ type: 'title', time: this.p.clock.now(), title: this.title })
		this.emit({ type: 'title', title: this.title })
	}

	private makeCompaction(): Compaction {
		return createCompaction({
			client: this.choice.client,
			spec: this.choice.spec,
			system: this.p.system,
			tools: this.p.specs,
			settings: this.p.compaction,
			state: this.p.state,
			mode: () => this.modeNow,
			messages: () => this.log.messages,
			tokens: () => this.log.tokens(),
			emit: (event) => this.emit(event),
			replace: async (messages, before, after) => {
				await this.write({ type: 'compaction', time: this.p.clock.now(), messages, before, after })
				this.log.replace(messages)
			},
		})
	}

	async compact(signal?: AbortSignal): Promise<{ before: number; after: number } | null> {
		if (this.running) throw new UserError('A turn is running in this session.', 'Compact after it.')
		const before = this.log.tokens()
		const result = await this.compaction.run('asked', signal ?? new AbortController().signal)
		this.usage = addUsage(this.usage, result.usage)
		if (result.problem) throw new UserError(result.problem.message, result.problem.hint)
		const after = this.log.tokens()
		return result.usage.requests === 0 ? null : { before, after }
	}

	// ------------------------------------------------------------ undo

	async undo(): Promise<UndoResult> {
		const none = { done: false, restored: [], conflicts: [] }
		if (this.running) throw new UserError('A turn is running in this session.', 'Undo after it.')
		const mark = this.turns.at(-1)
		if (!mark) return { ...none, message: 'There is nothing to undo in this session.' }
		if (mark.blocked) return { ...none, message: `Turn ${mark.turn} cannot be undone: ${mark.blocked}.` }
		if (mark.from !== null && mark.to === null && mark.ended === null && this.p.snapshots) {
			// The turn was broken off (a crash): what is there now is taken for its end.
			const { id } = await this.p.snapshots.take(mark.turn, new AbortController().signal)
			mark.to = id
			await this.write({ type: 'snapshot', time: this.p.clock.now(), turn: mark.turn, id })
		}
		const moved = await this.moveFiles(mark.from, mark.to)
		if (!moved.ok) return { ...none, conflicts: moved.conflicts, message: moved.message }
		const messages = this.log.messages
		this.log.replace(messagesBefore(mark))
		this.turns.pop()
		this.undone.push({ mark, messages })
		await this.write({ type: 'undo', time: this.p.clock.now(), turn: mark.turn })
		this.p.state.seen.clear()
		return {
			done: true,
			restored: moved.restored,
			conflicts: [],
			prompt: mark.prompt,
			message: said('Undid', moved.restored, mark),
		}
	}

	async redo(): Promise<UndoResult> {
		const none = { done: false, restored: [], conflicts: [] }
		if (this.running) throw new UserError('A turn is running in this session.', 'Redo after it.')
		const entry = this.undone.at(-1)
		if (!entry) return { ...none, message: 'There is nothing to redo.' }
		if (entry.mark.blocked)
			return { ...none, message: `Turn ${entry.mark.turn} cannot be redone: ${entry.mark.blocked}.` }
		const moved = await this.moveFiles(entry.mark.to, entry.mark.from)
		if (!moved.ok) return { ...none, conflicts: moved.conflicts, message: moved.message }
		entry.mark.base = this.log.messages
		entry.mark.messages = this.log.messages.length
		this.log.replace(entry.messages)
		this.undone.pop()
		this.turns.push(entry.mark)
		await this.write({ type: 'redo', time: this.p.clock.now(), turn: entry.mark.turn })
		this.p.state.seen.clear()
		return {
			done: true,
			restored: moved.restored,
			conflicts: [],
			prompt: entry.mark.prompt,
			message: said('Redid', moved.restored, entry.mark),
		}
	}

	private async moveFiles(
		to: string | null,
		from: string | null,
	): Promise<{ ok: true; restored: string[] } | { ok: false; conflicts: string[]; message: string }> {
		if (to === null && from === null) return { ok: true, restored: [] }
		if (to === null || from === null || !this.p.snapshots)
			return {
				ok: false,
				conflicts: [],
				message: 'No snapshot of that turn was kept, so its files cannot be put back.',
			}
		const { restored, conflicts } = await this.p.snapshots.restore(to, from)
		if (conflicts.length === 0) return { ok: true, restored }
		const names = conflicts.slice(0, 10).join(', ')
		return {
			ok: false,
			conflicts,
			message: `Nothing was put back: ${names} changed since that turn. Save or revert ${conflicts.length === 1 ? 'it' : 'them'} first.`,
		}
	}

	async diff(which: 'last' | 'all' = 'last'): Promise<string> {
		const marks = this.turns.filter((mark) => mark.from !== null && mark.to !== null)
		const chosen = which === 'all' ? marks : marks.slice(-1)
		if (chosen.length === 0) return ''
		return this.p.diffOf(chosen[0]!.from!, chosen.at(-1)!.to)
	}

	// ------------------------------------------------------------ views

	status(): Status {
		return {
			id: this.id,
			root: this.root,
			extraDirs: this.p.extraDirs,
			title: this.title,
			model: this.choice.name,
			effort: this.effort ?? null,
			mode: this.modeNow,
			sandbox: this.p.sandboxWord(),
			acceptEdits: this.acceptEdits,
			usage: this.usage,
			contextTokens: this.log.tokens(),
			window: this.choice.spec.window,
			turns: this.turns.length,
		}
	}

	permissions() {
		return { rules: this.p.decider.rules(), session: [...this.sessionKeys] }
	}

	history(): AgentEvent[] {
		return asEvents(this.log.messages)
	}

	export(): Promise<string> {
		return this.p.exportText()
	}

	complete(prefix: string): Promise<string[]> {
		return this.p.complete(prefix)
	}

	onEvent(listener: (event: AgentEvent) => void): () => void {
		this.listeners.add(listener)
		return () => this.listeners.delete(listener)
	}

	close(): Promise<void> {
		this.closing ??= (async () => {
			this.running?.abort.abort()
			await this.running?.end
			await this.p.snapshots?.close()
			if (this.writer) await (await this.writer).close()
			await this.p.onClose()
		})()
		return this.closing
	}

	// ------------------------------------------------------------ plumbing

	/** A word for the person from a part of this session (no sandbox, a full disk). */
	note(text: string): void {
		this.emit({ type: 'notice', level: 'warning', text })
	}

	private emit(event: AgentEvent): void {
		this.channel?.push(event)
		for (const listener of this.listeners) listener(event)
	}

	private async write(record: SessionRecord): Promise<void> {
		if (!this.p.openJournal) return
		this.writer ??= this.p.openJournal().then((writer) => {
			writer.onProblem((text) => this.emit({ type: 'notice', level: 'warning', text }))
			return writer
		})
		await (await this.writer).append(record)
	}

	private async writeMessage(message: Message, record: RecordOf): Promise<void> {
		const time = this.p.clock.now()
		if (record.type === 'user') return this.write({ type: 'user', time, message, prompt: record.prompt })
		if (record.type === 'note') return this.write({ type: 'user', time, message, prompt: '' })
		if (record.type === 'results') return this.write({ type: 'results', time, message })
		const { usage, model, stop, requestId } = record
		return this.write({
			type: 'assistant',
			time,
			message,
			usage: { ...usage },
			model,
			stop,
			...(requestId === undefined ? {} : { requestId }),
		})
	}
}

interface Taken {
	id: string | null
	note?: string
}

interface Before {
	wait(): Promise<Taken>
	/** Nothing was changed: the snapshot is not needed. */
	drop(): Promise<void>
}

/** Milliseconds from a prompt to the start of what only a command or a change will need. */
const warmUpMs = 40

const planNote =
	'<garuda-note>Plan mode is on. Read, search and think; files cannot be changed and commands cannot write the project. End with a plan: what to change where, how to check it, what is uncertain.</garuda-note>'
const buildNote = '<garuda-note>Plan mode is off: you may change files and run commands again.</garuda-note>'

const failed = (error: unknown): TurnEnd => ({
	reason: 'error',
	error:
		error instanceof UserError
			? { code: 'user', message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }
			: {
					code: 'internal',
					message: `Garuda failed by a fault of its own: ${messageOf(error)}`,
					hint: 'Run again with --debug and report what its log says.',
				},
	usage: noUsage(),
	steps: 0,
	text: '',
	denials: [],
	durationMs: 0,
	modelMs: 0,
	firstTokenMs: null,
})

const said = (verb: string, files: readonly string[], mark: Turnmark): string => {
	const count =
		files.length === 0
			? 'no file had changed'
			: files.length === 1
				? '1 file put back'
				: `${files.length} files put back`
	return `${verb} turn ${mark.turn} ("${oneLine(mark.prompt, 60)}"): ${count}.`
}
