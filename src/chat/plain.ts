// The plain chat: prompts in, events out, questions asked, and a terminal left as it was found. `garuda` on a terminal.
import {
	type AgentEvent,
	type ApprovalRequest,
	type Approver,
	type EngineOptions,
	type Garuda,
	messageOf,
	type OpenOptions,
	oneLine,
	parseSlash,
	runSlash,
	type Session,
	type SlashResult,
	type Turn,
	UserError,
} from '../engine/index.ts'
import { createAsker } from './approver.ts'
import { createCompleter } from './complete.ts'
import { Input, type Line } from './input.ts'
import { Live } from './live.ts'
import { Renderer, type Shown, usageLine } from './render.ts'
import { safeText } from './safe-text.ts'
import { openChat } from './start.ts'
import { Output, type Stdio, signalCodes, wantsColor } from './stdio.ts'
import { painter } from './style.ts'
import { createTerminal } from './terminal.ts'

export interface ChatOptions {
	io: Stdio
	/** An engine with some options of its own. */
	create(more: Partial<EngineOptions>): Garuda
	open: OpenOptions
	/** `latest`, an id or its beginning, or empty to choose. */
	resume?: string
	model?: string
	/** Prepares the tour for a start with no model: the engine's options for it. */
	tour?(): Promise<Partial<EngineOptions>>
	version: string
	home: string
	/** Show the model's thinking. */
	verbose: boolean
	watch?(event: AgentEvent): void
	/** See Input. */
	guardMs?: number
}

const twiceMs = 2000

/**
 * Runs the chat until the person leaves; resolves with the exit code: 0, or 130 after Ctrl-C twice, or 128 + signal.
 * The terminal's modes are off again after every kind of end, a crash included.
 */
export async function chat(o: ChatOptions): Promise<number> {
	const { io } = o
	const terminal = io.stdin.isTTY === true && io.stdout.isTTY === true && io.env.TERM !== 'dumb'
	const paint = painter(wantsColor(io.stdout, io.env))
	let leaving: number | null = null
	let work: AbortController | null = null
	let interruptedAt = Number.NEGATIVE_INFINITY
	let session: Session | null = null
	let garuda: Garuda | null = null

	const out = new Output(io.stdout, () => leave(signalCodes.SIGHUP))
	const modes = createTerminal(io)
	const renderer = new Renderer({ paint, thinking: o.verbose })
	const live = terminal ? new Live({ out, paint }) : null
	const say = (text: string) => out.line(safeText(text).trimEnd())
	const dim = (text: string) => out.line(paint('dim', text))
	const input: Input = new Input({
		io,
		out,
		terminal,
		complete: (line) => completer?.(line) ?? Promise.resolve([[], line]),
		onInterrupt: interrupt,
		onSuspend: () => {
			live?.hide()
			modes.leave()
			io.suspend(() => {
				modes.enter()
				input.redraw()
			})
		},
		onEnd: () => leave(0),
		onQueued: (text) => {
			out.line(paint('dim', `(kept for after this turn: ${oneLine(text, 120)})`))
		},
		...(o.guardMs === undefined ? {} : { guardMs: o.guardMs }),
	})
	let completer: ReturnType<typeof createCompleter> | null = null
	const hearing = [
		io.onSignal('SIGINT', () => input.pressInterrupt()),
		io.onSignal('SIGTERM', () => leave(signalCodes.SIGTERM)),
		io.onSignal('SIGHUP', () => leave(signalCodes.SIGHUP)),
		io.onCrash(crashed),
	]
	const approver = questions()

	/** The first stops what runs, the second leaves; at an empty prompt both are asked for. */
	function interrupt(): void {
		const now = performance.now()
		const twice = now - interruptedAt < twiceMs
		interruptedAt = now
		if (twice) leave(signalCodes.SIGINT)
		else if (work && !work.signal.aborted) {
			work.abort()
			dim('stopping (Ctrl-C again leaves)')
		}
	}

	function leave(code: number): void {
		// A hang-up ends stdin too, often first: the signal says what it was.
		if (leaving === null || leaving === 0) leaving = code
		work?.abort()
		input.stop()
	}

	/** Nothing caught it, so nothing more is trusted but this: the terminal, one line, the session's files. */
	function crashed(error: unknown): void {
		live?.hide()
		modes.leave()
		const message = error instanceof Error ? error.message : String(error)
		io.stderr.write(
			`\ngaruda: failed by a fault of its own: ${safeText(message)}\nRun it again with --debug and report what the log says.\n`,
		)
		leave(1)
		const give = setTimeout(() => io.abandon(1), 3000)
		void Promise.resolve(garuda?.close())
			.catch(() => {})
			.finally(() => {
				clearTimeout(give)
				io.abandon(1)
			})
	}

	try {
		if (terminal) modes.enter()
		const open = await which()
		const create = (more: Partial<EngineOptions>) => {
			garuda = o.create({ approver, ...more })
			return garuda
		}
		const first = await openChat({
			create,
			open,
			modelNamed: o.model !== undefined,
			say,
			confirm,
			...(o.tour ? { tour: o.tour } : {}),
		})
		garuda = first.garuda
		completer = createCompleter(
			first.garuda,
			() => session!,
			(line) => input.again(line),
		)
		await enter(first.session, open.resume !== undefined || open.latest === true)
		await talk()
	} finally {
		try {
			await (garuda as Garuda | null)?.close()
		} finally {
			input.close()
			out.flush()
			modes.dispose()
			await out.end()
			for (const stop of hearing) stop()
		}
	}
	return leaving ?? 0

	// ------------------------------------------------------------ the conversation

	async function talk(): Promise<void> {
		let prefill = ''
		while (leaving === null) {
			const line = await input.line(session!.mode === 'plan' ? 'plan> ' : '> ', prefill)
			prefill = ''
			if (leaving !== null) return
			if (line.type === 'end') return leave(0)
			if (line.type === 'interrupt') {
				out.atLineStart = false
				out.line('')
				interrupt()
				if (leaving === null) dim('Ctrl-C again leaves.')
				continue
			}
			// A line was sent: what comes next is the first Ctrl-C again.
			interruptedAt = Number.NEGATIVE_INFINITY
			const text = line.text.trim()
			if (text === '') continue
			try {
				if (text.startsWith('!')) {
					const command = text.slice(1).trim()
					if (command !== '') await show((signal) => session!.shell(command, { signal }))
				} else if (parseSlash(text)) prefill = await slash(text)
				else await show((signal) => session!.prompt(text, { signal }))
			} catch (error) {
				// A fault in one command must not take the conversation along.
				const known = error instanceof UserError
				problem(
					known
						? error
						: new UserError(
								`Garuda failed by a fault of its own: ${messageOf(error)}`,
								'Start with --debug and report what the log says.',
							),
				)
			}
		}
	}

	async function show(begin: (signal: AbortSignal) => Turn): Promise<void> {
		work = new AbortController()
		try {
			const turn = begin(work.signal)
			for await (const event of turn) {
				o.watch?.(event)
				live?.event(event)
				put(renderer.event(event))
				await out.ready()
			}
			const end = await turn.end
			if (end.usage.requests > 0) dim(usageLine(end.usage, end.durationMs))
			// What was typed for after the turn is looked at again when the turn was stopped.
			if (end.reason === 'cancelled') input.unqueue()
		} finally {
			live?.stop()
			work = null
		}
	}

	function put({ answer, about }: Shown): void {
		out.write(answer)
		if (about === '') return
		if (!out.atLineStart) out.write('\n')
		out.write(about)
	}

	function problem(error: UserError): void {
		out.line(paint('red', safeText(error.message)))
		if (error.hint) out.line(safeText(error.hint))
	}

	// ------------------------------------------------------------ slash commands

	/** Resolves with text for the next input line. */
	async function slash(text: string): Promise<string> {
		work = new AbortController()
		let result: SlashResult
		try {
			result = await runSlash({ garuda: garuda!, session: session!, signal: work.signal }, text)
		} finally {
			work = null
		}
		return apply(result)
	}

	async function apply(result: SlashResult): Promise<string> {
		switch (result.type) {
			case 'text':
				say(result.text)
				return result.input ?? ''
			case 'prompt':
				if (result.text) say(result.text)
				await show((signal) => {
					const command = result.command ? { command: result.command } : {}
					return session!.prompt({ text: result.prompt, ...command }, { signal })
				})
				return ''
			case 'confirm':
				if (await confirm(result.question)) return apply(await result.yes())
				say('Not done.')
				return ''
			case 'clear':
			case 'new':
				await change({})
				if (result.type === 'clear' && terminal) out.write('\u001b[H\u001b[2J')
				say('A new session.')
				return ''
			case 'open':
				await change({ resume: result.id })
				return ''
			case 'exit':
				leave(0)
				return ''
		}
	}

	/** Another session in place of this one; this one stays open when the other cannot be. */
	async function change(how: OpenOptions): Promise<void> {
		const before = session!
		const next = await openTrusted(how)
		if (how.resume === undefined && next.model !== before.model) await next.setModel(before.model)
		await before.close()
		await enter(next, how.resume !== undefined)
	}

	/** A session that was not made here by this user goes on as a copy, after a yes. */
	async function openTrusted(how: OpenOptions): Promise<Session> {
		try {
			return await garuda!.open(how)
		} catch (error) {
			if (!(error instanceof UserError) || !error.hint?.includes('--fork')) throw error
			say(error.message)
			if (!(await confirm('Go on with a copy of it all the same?'))) throw new UserError('It was not opened.')
			return garuda!.open({ ...how, trustForeign: true })
		}
	}

	async function enter(next: Session, resumed: boolean): Promise<void> {
		const first = session === null
		session = next
		if (first) {
			const { model, mode, sandbox } = next.status()
			out.line(`${paint('bold', `Garuda ${o.version}`)}  ${oneLine(model)}  ${mode} mode  sandbox: ${oneLine(sandbox)}`)
			dim(`${oneLine(next.root)}  (/help lists the commands; Ctrl-C stops a turn, twice leaves)`)
		}
		for (const notice of next.notices) out.line(renderer.notice('warning', notice).trimEnd())
		// A command file that is left out is never missing without a word.
		for (const problem of (await next.commands()).problems) out.line(renderer.notice('warning', problem).trimEnd())
		if (resumed) past(next)
		next.onEvent((event) => {
			// A turn's events come by the turn.
			if (session === next && work === null && event.type === 'notice')
				out.line(renderer.notice(event.level, event.text).trimEnd())
		})
	}

	/** The end of a conversation that goes on, from its last but one prompt. */
	function past(live: Session): void {
		const events = live.history()
		const prompts = events.flatMap((event, i) => (event.type === 'user_text' ? [i] : []))
		const from = prompts.at(-2) ?? prompts[0] ?? 0
		const title = live.status().title
		dim(`session ${live.id}${title ? `, "${oneLine(title, 80)}"` : ''}${from > 0 ? ': its end' : ''}`)
		for (const event of events.slice(from)) put(renderer.past(event))
	}

	// ------------------------------------------------------------ questions to the person

	async function confirm(question: string): Promise<boolean> {
		say(question)
		const line = await input.answer('[y/n] > ', new AbortController().signal)
		return line.type === 'line' && /^\s*y(es)?\s*$/i.test(line.text)
	}

	function questions(): Approver {
		const asker = createAsker(
			{
				show: (text) => {
					if (!out.atLineStart) out.write('\n')
					out.write(text)
				},
				ask: async (prompt, signal) => {
					const line: Line = await input.answer(prompt, signal)
					return line.type === 'line' ? { line: line.text } : line.type === 'interrupt' ? { interrupt: true } : null
				},
				acceptEdits: () => session?.setAcceptEdits(true),
			},
			paint,
		)
		return {
			async ask(request: ApprovalRequest, signal: AbortSignal) {
				// What led to the question is shown first: its events are on their way.
				await new Promise((done) => setImmediate(done))
				return asker.ask(request, signal)
			},
		}
	}

	/** The session that -c or -r means. */
	async function which(): Promise<OpenOptions> {
		if (o.resume === undefined) return o.open
		if (o.resume === 'latest') return { ...o.open, latest: true }
		if (o.resume !== '') return { ...o.open, resume: o.resume }
		const looking = o.create({ approver })
		try {
			const all = (await looking.sessions.list()).sort((a, b) => b.updated - a.updated).slice(0, 20)
			if (all.length === 0) {
				say('There are no sessions yet; this is a new one.')
				return o.open
			}
			for (const [i, one] of all.entries())
				out.line(
					`${String(i + 1).padStart(3)}  ${new Date(one.updated).toISOString().slice(0, 16).replace('T', ' ')}  ${oneLine(one.title || one.id, 80)}`,
				)
			const line = await input.answer('which? (number, or nothing for a new session) > ', new AbortController().signal)
			const chosen = line.type === 'line' ? all[Number(line.text.trim()) - 1] : undefined
			return chosen ? { ...o.open, resume: chosen.id } : o.open
		} finally {
			await looking.close()
		}
	}
}
