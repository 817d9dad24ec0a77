// One open conversation: prompts become turns, turns become records, and every change can be taken back. Between a front end and the turn.
import type { CommandList, Profile, PromptOptions, Session, Status, Turn, UndoResult } from './api.ts'
import { TokenBudget, tooManyImages } from './budget.ts'
import type { FileText } from './command-turn.ts'
import { type Compaction, createCompaction } from './context/compact.ts'
import { UserError } from './errors.ts'
import { imageLine, soundImage } from './files/image.ts'
import { asEvents, History } from './history.ts'
import { aboutImages } from './pictures.ts'
import type { ResolvedPath } from './ports.ts'
import { promptText } from './prompt-message.ts'
import { schemaCheck } from './schema-check.ts'
import { titleOf } from './session/title.ts'
import { Choices } from './session-choices.ts'
import type { SessionParts } from './session-parts.ts'
import { Recorder } from './session-record.ts'
import { oneLine } from './text.ts'
import { createGate, type Gate } from './tools/invoke.ts'
import { runTurn } from './turn.ts'
import { TurnFrame } from './turn-frame.ts'
import type {
	AgentEvent,
	Block,
	CallInfo,
	Effort,
	Image,
	Json,
	Message,
	Mode,
	PromptInput,
	TurnEnd,
	Usage,
} from './types.ts'
import { addUsage, noUsage } from './types.ts'
import { UndoStack } from './undo-stack.ts'
import { commandsStay, ranCommands } from './undo-words.ts'
import { wrap } from './untrusted.ts'

export class LiveSession implements Session {
	readonly id: string
	readonly root: string
	readonly notices: readonly string[]
	readonly tools: readonly string[]
	private readonly p: SessionParts
	private readonly log: History
	private readonly record: Recorder
	private readonly frame: TurnFrame
	private readonly gate: Gate
	private readonly undoStack: UndoStack
	private readonly compaction: Compaction
	private readonly sessionKeys = new Set<string>()
	private readonly choices: Choices
	private modeTold: Mode
	private title: string | null
	private usage: Usage
	private stopped: boolean
	private closing: Promise<void> | null = null
	private toldOfUndo = false
	private searchAsked = false
	constructor(parts: SessionParts) {
		this.p = parts
		this.id = parts.id
		this.root = parts.root
		this.notices = parts.notices
		this.tools = parts.tools.map((tool) => tool.name)
		this.modeTold = 'build'
		this.title = parts.start.title
		this.usage = parts.start.usage
		this.stopped = parts.start.stoppedMidway
		const fixed = parts.system.length + JSON.stringify(parts.specs).length
		this.record = new Recorder({ ...parts, note: (text) => this.note(text) })
		this.log = new History(parts.start.messages, fixed, (message, record) => this.record.message(message, record))
		this.undoStack = new UndoStack({
			...parts.start,
			history: this.log,
			snapshots: parts.snapshots,
			clock: parts.clock,
			write: (record) => this.record.write(record),
			note: (text) => this.note(text),
			forget: () => parts.state.seen.clear(),
		})
		this.gate = createGate({
			...parts.gate,
			root: parts.root,
			tools: parts.tools,
			state: parts.state,
			redactor: parts.redactor,
			mode: () => this.choices.mode,
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
			record: (entry) => this.record.decision(entry),
			done: async ({ name, key, status, data }, call) => {
				// What a command planted is told to the person by itself: the model's text may be cut or hide it.
				for (const finding of findingsOf(data)) this.note(finding)
				await parts.audit.append({ kind: 'action', callId: call.id, tool: name, key, status }).catch(() => {})
			},
			beforeChange: (info) => this.undoStack.beforeChange(info),
		})
		this.frame = new TurnFrame({
			undo: this.undoStack,
			warmUp: parts.warmUp,
			before: (signal) => this.askForSearch(signal),
			worked: (end) => {
				if (end.reason === 'cancelled') this.stopped = true
				this.usage = addUsage(this.usage, end.usage)
			},
			record: (turn, end) => this.recordEnd(turn, end),
		})
		this.choices = new Choices({
			...parts,
			record: this.record,
			emit: (event) => this.emit(event),
			free: (hint) => this.frame.free(hint),
			changed: () => Object.assign(this.compaction, this.makeCompaction()),
		})
		this.compaction = this.makeCompaction()
	}

	get mode(): Mode {
		return this.choices.mode
	}

	get model(): string {
		return this.choices.model.name
	}

	// ------------------------------------------------------------ turns

	prompt(input: PromptInput | string, options: PromptOptions = {}): Turn {
		const prompt = typeof input === 'string' ? { text: input } : input
		if (prompt.text.trim() === '' && !prompt.context?.length && !prompt.images?.length)
			throw new UserError('The prompt is empty.')
		for (const image of prompt.images ?? [])
			if (!soundImage(image)) throw new UserError(`${imageLine(image.label)} is damaged and was not sent.`)
		const many = tooManyImages(prompt.images ?? [])
		if (many !== null) throw new UserError(many, 'Name some of them in a later prompt.')
		return this.frame.begin(options.signal, async (signal) => {
			const check = options.schema === undefined ? undefined : await schemaCheck(options.schema)
			const file = prompt.command ? await this.commandFile(prompt, prompt.command, signal) : null
			if (file && 'reason' in file) return file
			await this.takeIn(prompt, check ? options.schema : undefined, file)
			return runTurn(
				{
					client: this.choices.model.client,
					modelName: this.choices.model.name,
					spec: this.choices.model.spec,
					...(this.choices.effort ? { effort: this.choices.effort } : {}),
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
		return this.frame.begin(options.signal, async (signal) => {
			const started = this.p.clock.now()
			const said = this.p.redactor.redact(command)
			const text = `<garuda-note>The user runs a command of their own: ${oneLine(said, 2000)}</garuda-note>`
			await this.open(`!${said}`, text)
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

	async commands(): Promise<CommandList> {
		const commands = await this.p.commands()
		return commands ? commands.list() : { commands: [], problems: [] }
	}

	/** A command file's text for the model, or the end of a turn that it stopped. */
	private async commandFile(prompt: PromptInput, command: { name: string; args: string }, signal: AbortSignal) {
		const { fileTurn } = await import('./command-turn.ts')
		const began = this.p.clock.now()
		return fileTurn(command, {
			commands: await this.p.commands(),
			trust: this.p.trust(),
			root: this.root,
			state: this.p.state,
			signal,
			id: `command-${began.toString(36)}`,
			elapsed: () => this.p.clock.now() - began,
			invoke: (call) => this.gate.invoke(call, signal),
			files: this.p.gate.files,
			permit: (resolved) => this.permitRead(resolved),
			note: (text) => this.note(text),
			begin: (text) => this.open(prompt.text, text),
			told: (text) => this.log.append(this.said(text), { type: 'note' }),
		})
	}

	private async recordEnd(turn: number, end: TurnEnd): Promise<void> {
		const error = end.error ? { error: { code: end.error.code, message: end.error.message } } : {}
		const time = this.p.clock.now()
		// What ended before it was on record (a command that was not agreed to) leaves no session behind.
		if (this.undoStack.turns.at(-1)?.turn === turn)
			await this.record.write({ type: 'end', time, turn, reason: end.reason, usage: { ...end.usage }, ...error })
		await this.p.audit.turnEnd()
	}

	/** The one question about the provider's own search, before the first turn; the tools then stay as they are. */
	private async askForSearch(signal: AbortSignal): Promise<void> {
		const { serverSearch, specs } = this.p
		if (!serverSearch || this.searchAsked || signal.aborted) return
		this.searchAsked = true
		await this.record.after(async () => {
			const { allowed, reason } = await this.gate.consent('web_search', searchInfo(serverSearch.question), signal)
			if (allowed) specs.push(serverSearch.spec)
			else if (!signal.aborted) this.note(`The model cannot search the web in this session: ${reason}.`)
		})
	}

	/** The user's words become a message, redacted before anything is sent or kept. */
	private async takeIn(prompt: PromptInput, schema: Json | undefined, file: FileText | null): Promise<void> {
		const {
			text,
			images: mentioned,
			notices,
		} = await promptText(
			file && prompt.command ? { ...prompt, text: prompt.command.args } : prompt,
			{
				...(file ? { instead: file.said } : {}),
				stopped: this.stopped,
				newMode: this.choices.mode === this.modeTold ? null : this.choices.mode,
				...(schema === undefined ? {} : { schema }),
			},
			{
				files: this.p.gate.files,
				limits: this.p.gate.limits,
				state: this.p.state,
				permit: (resolved) => this.permitRead(resolved),
			},
		)
		const images = [...(file?.images ?? []), ...mentioned]
		for (const notice of notices) this.note(notice)
		const told = aboutImages(prompt.images ?? [], images, this.p.state.noImages)
		if (told) this.emit({ type: 'notice', ...told })
		this.modeTold = this.choices.mode
		this.stopped = false
		if (file?.begun) return this.log.append(this.said(this.p.redactor.redact(text), images), { type: 'note' })
		// A record with no prompt would be no turn: context or pictures alone are named by their label.
		const words = prompt.text.trim() || (prompt.context?.[0]?.label ?? images[0]?.label ?? '…')
		await this.open(words, this.p.redactor.redact(text), images)
	}

	/** A turn begins in the conversation and in the journal. */
	private async open(prompt: string, text: string, images: readonly Image[] = []): Promise<void> {
		const words = this.p.redactor.redact(prompt)
		this.undoStack.mark(words)
		if (this.title === null) await this.setTitle(words)
		await this.log.append(this.said(text, images), { type: 'user', prompt: words })
	}

	/** A message of the user's; `text` is redacted. */
	private said(text: string, images: readonly Image[] = []): Message {
		const { redactor } = this.p
		const pictures = images.map((image): Block => ({ type: 'image', ...image, label: redactor.redact(image.label) }))
		return { role: 'user', blocks: [...pictures, { type: 'text', text }] }
	}

	private answers() {
		return { keys: this.sessionKeys, acceptEdits: this.choices.acceptEdits, cwd: this.p.state.cwd }
	}

	/** A mention is a read by the user's own word: what would need a question is left to the agent, which asks it. */
	private async permitRead({ path }: ResolvedPath): Promise<{ allowed: boolean; reason: string }> {
		const info: CallInfo = { title: '', kind: 'read', access: 'read', paths: [path], key: `read:${path}` }
		const call = {
			tool: 'read_file',
			readOnlyTool: true,
			info,
			effect: undefined,
			mode: this.choices.mode,
			sandboxed: true,
		}
		const { decision, reason } = await this.p.decider.decide({ ...call, ...this.answers() })
		const word = decision === 'ask' ? `${reason}; let the agent read it, and it will ask.` : reason
		return { allowed: decision === 'allow', reason: word }
	}

	// ------------------------------------------------------------ settings of the session

	setMode(mode: Mode): Promise<void> {
		return this.choices.setMode(mode)
	}

	setModel(name: string): Promise<void> {
		return this.choices.setModel(name)
	}

	setEffort(effort: Effort | null): Promise<void> {
		return this.choices.setEffort(effort)
	}

	setProfile(profile: Profile): Promise<void> {
		return this.choices.setProfile(profile)
	}

	setAcceptEdits(on: boolean): void {
		this.choices.acceptEdits = on
	}

	async setTitle(title: string): Promise<void> {
		this.title = titleOf(title)
		await this.record.write({ type: 'title', time: this.p.clock.now(), title: this.title })
		this.emit({ type: 'title', title: this.title })
	}

	private makeCompaction(): Compaction {
		return createCompaction({
			client: this.choices.model.client,
			spec: this.choices.model.spec,
			system: this.p.system,
			tools: this.p.specs,
			settings: this.p.compaction,
			state: this.p.state,
			mode: () => this.choices.mode,
			messages: () => this.log.messages,
			tokens: () => this.log.tokens(),
			emit: (event) => this.emit(event),
			replace: async (messages, before, after) => {
				await this.record.write({ type: 'compaction', time: this.p.clock.now(), messages, before, after })
				this.log.replace(messages)
			},
		})
	}

	async compact(signal?: AbortSignal): Promise<{ before: number; after: number } | null> {
		this.frame.free('Compact after it.')
		const before = this.log.tokens()
		const result = await this.compaction.run('asked', signal ?? new AbortController().signal)
		this.usage = addUsage(this.usage, result.usage)
		if (result.problem) throw new UserError(result.problem.message, result.problem.hint)
		const after = this.log.tokens()
		return result.usage.requests === 0 ? null : { before, after }
	}

	// ------------------------------------------------------------ undo

	async undo(): Promise<UndoResult> {
		await this.frame.idle('Undo after it.')
		const mark = this.undoStack.turns.at(-1)
		const ran = mark !== undefined && ranCommands(mark)
		const result = await this.audited('undo', await this.undoStack.undo())
		if (!result.done || !ran || this.toldOfUndo || result.message.includes('not covered')) return result
		this.toldOfUndo = true
		return { ...result, message: `${result.message} ${commandsStay}` }
	}

	async redo(): Promise<UndoResult> {
		await this.frame.idle('Redo after it.')
		return this.audited('redo', await this.undoStack.redo())
	}

	private async audited(what: string, result: UndoResult): Promise<UndoResult> {
		if (result.done)
			await this.p.audit.append({ kind: 'undo', detail: { what, files: result.restored } }).catch(() => {})
		return result
	}

	async diff(which: 'last' | 'all' = 'last'): Promise<string> {
		await this.frame.settled()
		return this.undoStack.diff(which)
	}

	// ------------------------------------------------------------ views

	status(): Status {
		return {
			id: this.id,
			root: this.root,
			extraDirs: this.p.extraDirs,
			title: this.title,
			model: this.choices.model.name,
			effort: this.choices.effort ?? null,
			mode: this.choices.mode,
			sandbox: this.p.sandboxWord(),
			profile: this.p.profile(),
			acceptEdits: this.choices.acceptEdits,
			usage: this.usage,
			contextTokens: this.log.tokens(),
			window: this.choices.model.spec.window,
			turns: this.undoStack.turns.length,
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
		return this.frame.onEvent(listener)
	}

	close(): Promise<void> {
		this.closing ??= (async () => {
			await this.frame.stop()
			await this.p.snapshots?.close()
			await this.record.close()
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
		this.frame.emit(event)
	}
}

/** As a call of Garuda's own search would be: the same rules bind it. */
const searchInfo = (question: string): CallInfo => ({
	title: 'Let Claude search the web by itself in this session',
	kind: 'fetch',
	access: 'net',
	paths: [],
	key: 'web_search',
	preview: question,
})

const findingsOf = (data: Json | undefined): string[] => {
	const found = typeof data === 'object' && data !== null && !Array.isArray(data) ? data.findings : undefined
	return Array.isArray(found) ? found.filter((one) => typeof one === 'string') : []
}
