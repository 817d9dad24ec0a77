// One conversation of the editor: prompts in, updates and a stop reason out. Between the server's requests and a session of the engine.
import { randomUUID } from 'node:crypto'
import type {
	AgentContext,
	ContentBlock,
	NewSessionResponse,
	PromptResponse,
	SessionConfigOption,
	SessionUpdate,
	StopReason,
} from '@agentclientprotocol/sdk'
import {
	type Garuda,
	leftOut,
	type ModelInfo,
	oneLine,
	type PromptInput,
	parseSlash,
	runSlash,
	type Session,
	type SlashResult,
	type TurnEnd,
	type Usage,
	UserError,
} from '../engine/index.ts'
import type { AcpApprover } from './approver.ts'
import { KnownCalls } from './calls.ts'
import { SessionChannel } from './channel.ts'
import type { ClientSide } from './client-side.ts'
import { availableCommands, elsewhereNames, notHere } from './commands.ts'
import { asRequestError, notNow, RequestError, turnError } from './errors.ts'
import { configOptions, modeOf, modeState, setOption } from './options.ts'
import { promptInput, withImages } from './prompt.ts'
import { replay } from './replay.ts'
import { fenced } from './tool-calls.ts'
import { EventMapper } from './updates.ts'

export interface SessionDeps {
	garuda: Garuda
	session: Session
	approver: AcpApprover
	/** Outlives each request. */
	client: AgentContext
	side: ClientSide
	/** The working folder as the editor spells it. */
	cwd: string
	extraDirs: readonly string[]
	/** Words that wait for the first prompt. */
	notices: readonly string[]
	now(): number
	/** After everything of the session is closed (a scratch copy is removed). */
	closed?(): Promise<void>
}

const stopReasons: Record<Exclude<TurnEnd['reason'], 'error'>, StopReason> = {
	done: 'end_turn',
	max_tokens: 'max_tokens',
	refusal: 'refusal',
	max_steps: 'max_turn_requests',
	token_budget: 'max_turn_requests',
	cost_budget: 'max_turn_requests',
	repeated_calls: 'max_turn_requests',
	cancelled: 'cancelled',
}

const stopWords: Partial<Record<TurnEnd['reason'], string>> = {
	max_tokens: 'The model reached the end of its output or of its window. Say "go on", or /compact first.',
	max_steps: 'Stopped: the limit of steps for one prompt is reached. Say "go on" to continue.',
	token_budget: 'Stopped: the limit of tokens for one prompt is reached.',
	cost_budget: 'Stopped: the cost limit is reached.',
	repeated_calls: 'Stopped: the same calls gave the same results again and again.',
	refusal: 'The model refused to go on with this request.',
}

export class AcpSession {
	readonly id: string
	readonly cwd: string
	private readonly d: SessionDeps
	private readonly session: Session
	private readonly channel: SessionChannel
	private readonly calls = new KnownCalls()
	private readonly mapper: EventMapper
	private readonly notices: string[]
	/** Of the menu: as it was last sent, and what was said about files that are not in it. */
	private menu = ''
	private readonly told = new Set<string>()
	private readonly off: () => void
	/** When it was last used here. */
	private used: number
	private models: readonly ModelInfo[] = []
	private usedBefore: Usage
	private running: { abort: AbortController; done: Promise<unknown> } | null = null
	private closing: Promise<void> | null = null

	constructor(deps: SessionDeps) {
		this.d = deps
		this.session = deps.session
		this.id = deps.session.id
		this.cwd = deps.cwd
		this.usedBefore = deps.session.status().usage
		this.used = deps.now()
		this.notices = [...deps.session.notices, ...deps.notices]
		const notify = (update: SessionUpdate): Promise<void> =>
			deps.client.notify('session/update', { sessionId: this.id, update })
		this.channel = new SessionChannel(notify, randomUUID)
		this.mapper = new EventMapper({
			channel: this.channel,
			calls: this.calls,
			client: deps.side,
			window: () => this.session.status().window,
			usedBefore: () => this.usedBefore,
			optionsChanged: () => this.channel.send(this.optionUpdate()),
			now: deps.now,
		})
		deps.approver.at = { sessionId: this.id, channel: this.channel, calls: this.calls }
		this.off = deps.session.onEvent((event) => {
			if (this.running) this.mapper.event(event)
			// Between prompts there is no turn to say it in.
			else if (event.type === 'notice') this.notices.push(event.text)
		})
	}

	/** As a list shows it; null before its first prompt, when nothing of it is kept. */
	summary(): { id: string; root: string; title: string; updated: number } | null {
		const { title } = this.session.status()
		return title === null ? null : { id: this.id, root: this.session.root, title, updated: this.used }
	}

	/** Modes and options, as new, load and resume answer. */
	async state(): Promise<Pick<NewSessionResponse, 'modes' | 'configOptions'>> {
		this.models = await this.d.garuda.models.list({ servers: false }).catch(() => [])
		return { modes: modeState(this.session), configOptions: this.options() }
	}

	/** The menu of slash commands; to be called after the session's request was answered, else editors drop it. */
	async announce(): Promise<void> {
		this.menu = ''
		await this.refreshMenu()
	}

	/** Sends the menu where it has changed; a file that is left out is told of once. */
	private async refreshMenu(): Promise<void> {
		const { commands, problems } = await this.session.commands()
		const untold = problems.filter((one) => !this.told.has(one))
		this.notices.push(...leftOut({ problems: untold }))
		for (const problem of problems) this.told.add(problem)
		const menu = availableCommands(commands)
		const text = JSON.stringify(menu)
		if (this.closing || text === this.menu) return
		this.menu = text
		this.channel.always({ sessionUpdate: 'available_commands_update', availableCommands: menu })
	}

	// ------------------------------------------------------------ a prompt

	/**
	 * Runs one prompt to its end. A second one meanwhile is -32600; a failed turn is an error with its words. After the
	 * answer no update of the turn follows.
	 */
	async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
		if (this.closing) throw RequestError.sessionNotFound(this.id)
		if (this.running) throw notNow('a prompt is running in this session; wait for its answer, or cancel it first')
		const words = promptInput(blocks, [this.cwd, this.session.root, ...this.d.extraDirs])
		const abort = new AbortController()
		const stop = (): void => abort.abort()
		if (signal.aborted) stop()
		signal.addEventListener('abort', stop, { once: true })
		abort.signal.addEventListener('abort', () => this.mapper.stop(), { once: true })
		let finished = (): void => {}
		this.running = {
			abort,
			done: new Promise<void>((done) => {
				finished = done
			}),
		}
		this.channel.begin()
		this.mapper.begin()
		this.usedBefore = this.session.status().usage
		try {
			const input = await withImages(words, blocks)
			await this.refreshMenu()
			for (const text of this.notices.splice(0)) this.mapper.notice('warning', text)
			const stopReason = await this.work(input, abort.signal)
			await this.refreshMenu()
			return { stopReason }
		} catch (error) {
			this.mapper.settle()
			if (abort.signal.aborted) return { stopReason: 'cancelled' }
			throw asRequestError(error)
		} finally {
			signal.removeEventListener('abort', stop)
			this.channel.end()
			this.used = this.d.now()
			this.running = null
			finished()
		}
	}

	private async work(input: PromptInput, signal: AbortSignal): Promise<StopReason> {
		if (signal.aborted) return this.cancelled()
		if (!parseSlash(input.text)) return this.turn(input, signal)
		const line = input.text.trim()
		const elsewhere = notHere(line)
		if (elsewhere) return this.say(elsewhere)
		try {
			return await this.result(
				await runSlash({ garuda: this.d.garuda, session: this.session, signal, elsewhere: elsewhereNames }, line),
				input,
				signal,
			)
		} catch (error) {
			if (signal.aborted) return this.cancelled()
			if (!(error instanceof UserError)) throw error
			return this.say(error.hint ? `${error.message} ${error.hint}` : error.message)
		}
	}

	private async turn(input: PromptInput, signal: AbortSignal): Promise<StopReason> {
		const { reason, error } = await this.session.prompt(input, { signal }).end
		const ended = this.mapper.settle()
		if (reason === 'cancelled') return this.cancelled(ended)
		// A command file that was stopped is an answer to the person, not a fault of the request.
		if (reason === 'error' && error?.code === 'command') return this.say(error.message)
		if (reason === 'error') throw turnError(error ?? { code: 'internal', message: 'The turn failed.' })
		const words = reason === 'refusal' && error ? error.message : stopWords[reason]
		if (words) this.channel.line(words)
		return stopReasons[reason]
	}

	/** What a command came to. */
	private async result(result: SlashResult, input: PromptInput, signal: AbortSignal): Promise<StopReason> {
		if (signal.aborted) return this.cancelled()
		switch (result.type) {
			case 'text': {
				const back = result.input ? `\nThe prompt was: ${oneLine(result.input, 500)}` : ''
				return this.say(`${result.text}${back}`)
			}
			case 'prompt':
				if (result.text) this.channel.line(result.text)
				return this.turn(
					{ ...input, text: result.prompt, ...(result.command ? { command: result.command } : {}) },
					signal,
				)
			default:
				return this.say('This command is for the terminal; your editor has its own way to do it.')
		}
	}

	/** Short words as a line, anything longer (a diff, a table) as it is. */
	private say(text: string): StopReason {
		if (text.includes('\n'))
			this.channel.line(fenced(text.replace(/^\n+|\s+$/g, ''), /^diff --git|^--- /m.test(text) ? 'diff' : ''), false)
		else this.channel.line(text)
		this.mapper.usage(this.session.status().contextTokens)
		return 'end_turn'
	}

	/** The person sees what the stop ended. */
	private cancelled(ended: readonly string[] = []): StopReason {
		if (ended.length === 0) this.channel.line('the turn was cancelled.')
		else for (const title of ended) this.channel.line(`${title} cancelled.`)
		return 'cancelled'
	}

	/** Stops what runs: model, questions, commands. Nothing to do when nothing runs. */
	cancel(): void {
		this.running?.abort.abort()
	}

	// ------------------------------------------------------------ options

	/** By the editor's own request; it is told of the options that hang together with the mode. */
	async setMode(id: string): Promise<void> {
		await this.session.setMode(modeOf(id))
		if (!this.running) this.channel.always(this.optionUpdate())
	}

	/** All options after the change. */
	async setOption(id: string, value: string | boolean): Promise<SessionConfigOption[]> {
		const before = this.session.mode
		await setOption(this.session, this.models, id, value)
		if (this.session.mode !== before && !this.running)
			this.channel.always({ sessionUpdate: 'current_mode_update', currentModeId: this.session.mode })
		return this.options()
	}

	private options(): SessionConfigOption[] {
		return configOptions(this.session, this.models)
	}

	private optionUpdate(): SessionUpdate {
		return { sessionUpdate: 'config_option_update', configOptions: this.options() }
	}

	// ------------------------------------------------------------ life

	/** Shows the whole conversation once more; a turn under way goes on in the same entries. */
	async replay(): Promise<void> {
		const read = await this.d.garuda.sessions.read(this.id).catch(() => null)
		const calls = new KnownCalls()
		for (const update of replay(read?.records ?? [], calls, this.running ? this.calls : null))
			this.channel.always(update)
		this.calls.reserve(calls)
		const { title, contextTokens, window, usage } = this.session.status()
		if (title !== null) this.channel.always({ sessionUpdate: 'session_info_update', title: oneLine(title) })
		this.channel.always({
			sessionUpdate: 'usage_update',
			used: contextTokens,
			size: window ?? 128_000,
			...(usage.cost === null ? {} : { cost: { amount: usage.cost, currency: 'USD' } }),
		})
		if (this.running) this.channel.again()
	}

	/** Stops what runs, waits for its end and frees everything; idempotent. */
	close(): Promise<void> {
		this.closing ??= (async () => {
			this.cancel()
			await this.running?.done
			this.off()
			await this.d.garuda.close()
			await this.d.closed?.()
		})()
		return this.closing
	}
}
