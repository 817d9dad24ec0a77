// The plain chat: prompts in, events out, questions asked, and a terminal left as it was found. `garuda` on a terminal.
import {
	type AgentEvent,
	type ApprovalRequest,
	type Approver,
	type EngineOptions,
	type Garuda,
	leftOut,
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
import { endOf, openChat, whichSession } from './start.ts'
import { isGone, Output, type Stdio, signalCodes, wantsColor } from './stdio.ts'
import { painter } from './style.ts'
import { createTerminal } from './terminal.ts'
import { crashText } from './words.ts'

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
	/** The setup on this process's terminal, which it has to itself meanwhile; resolves with its exit code. Throws UserError. */
	setup?(signal: AbortSignal): Promise<number>
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
	let fallen = false
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
		if (fallen) return
		fallen = true
		live?.hide()
		modes.leave()
		// A terminal that went away while someone else had it is a hang-up, and there is nobody to tell.
		const code = isGone(error) ? signalCodes.SIGHUP : 1
		io.stderr.on('error', () => {})
		if (code === 1) io.stderr.write(crashText(messageOf(error)))
		leave(code)
		const give = setTimeout(() => io.abandon(code), 3000)
		void Promise.resolve(garuda?.close())
			.catch(() => {})
			.finally(() => {
				clearTimeout(give)
				io.abandon(code)
			})
	}

	try {
		if (terminal) modes.enter()
		const asked = async (prompt: string): Promise<string | null> => {
			const line = await input.answer(prompt, new AbortController().signal)
			if (line.type === 'interrupt') leave(signalCodes.SIGINT)
			return line.type === 'line' ? line.text : null
		}
		const open = await whichSession(o, () => o.create({ approver }), say, asked)
		if (leaving !== null) return leaving
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
			ask: asked,
			...(o.tour ? { tour: o.tour } : {}),
			...(o.setup && out.isTTY ? { setup: () => lend(o.setup!) } : {}),
		})
		if (first === null || leaving !== null) return leaving ?? 0
		garuda = first.garuda
		completer = createCompleter(
			first.garuda,
			() => session!,
			(line) => input.again(line),
		)
		await enter(first.session, open.resume !== undefined || open.latest === true)
		await talk(first.prefill)
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

	async function talk(prefill = ''): Promise<void> {
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
					if (command !== '') await show((signal) => session!.shell(command, { signal }), true)
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

	async function show(begin: (signal: AbortSignal) => Turn, own = false): Promise<void> {
		work = new AbortController()
		renderer.own(own)
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

	/** Gives the terminal, as the shell left it, to someone else; whether that ended with 0. */
	async function lend(use: (signal: AbortSignal) => Promise<number>): Promise<boolean> {
		work = new AbortController()
		await out.end()
		input.release()
		modes.leave()
		try {
			return (await use(work.signal)) === 0
		} finally {
			work = null
			if (terminal && leaving === null) modes.enter()
			input.retake()
			out.atLineStart = true
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
		// A command file that is left out is never missing without a word.
		for (const notice of [...next.notices, ...leftOut(await next.commands())])
			out.line(renderer.notice('warning', notice).trimEnd())
		if (resumed) past(next)
		next.onEvent((event) => {
			// A turn's events come by the turn.
			if (session === next && work === null && event.type === 'notice')
				out.line(renderer.notice(event.level, event.text).trimEnd())
		})
	}

	/** The end of a conversation that goes on, from its last but one prompt. */
	function past(live: Session): void {
		const { events, from } = endOf(live.history())
		const title = live.status().title
		dim(`session ${live.id}${title ? `, "${oneLine(title, 80)}"` : ''}${from > 0 ? ': its end' : ''}`)
		for (const event of events) put(renderer.past(event))
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
}
