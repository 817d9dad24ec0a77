// One-shot: a prompt in, an answer out, an honest exit code. `garuda chat -p`; the chat room's part of a prompt's path.
import {
	type AgentEvent,
	type Garuda,
	type Json,
	type OpenOptions,
	type PromptInput,
	type Session,
	slashPrompt,
	type TurnEnd,
	threeWays,
	UserError,
} from '../engine/index.ts'
import { JsonMessages } from './json.ts'
import { promptOfLine, readAll, readLines } from './read-stdin.ts'
import { Renderer } from './render.ts'
import { safeText } from './safe-text.ts'
import { Output, type SignalName, type Stdio, signalCodes, wantsColor } from './stdio.ts'
import { painter } from './style.ts'
import { UsageError } from './usage-error.ts'
import { problemText, reasonText } from './words.ts'

export type Format = 'text' | 'json' | 'stream-json'

export interface PrintOptions {
	io: Stdio
	garuda: Garuda
	/** Which session; may fail, and then a result line says so. */
	open(): Promise<OpenOptions>
	/** The prompt of the command line; without it stdin alone is the prompt. */
	prompt?: string
	format: Format
	/** Lines of messages on stdin, each a turn of its own. */
	inputLines: boolean
	partial: boolean
	/** More of what happens: on stderr as text, all messages as an array in `json`. */
	verbose: boolean
	schema?: Json
	version: string
	slashCommands: readonly string[]
	acceptEdits: boolean
	/** What would have covered a call that nobody was there to allow. */
	cover?(callId: string): string | undefined
	/** Observes every event (the debug log). */
	watch?(event: AgentEvent): void
	/** How long stdin may stay silent; see read-stdin. */
	patienceMs?: number
}

/** How one kind of output shows a run; every method may write, none reads. */
interface Sink {
	/** `own`: names of the command files. */
	opened(session: Session, own: readonly string[]): void
	event(event: AgentEvent): void
	ended(end: TurnEnd): void
	/** What failed outside a turn. The thrower prints it on stderr too. */
	failed(error: unknown): void
	/** All turns are over. */
	finish(): void
}

/**
 * Runs the prompt, or each line of stdin, and resolves with the exit code when every byte is written: 0 done, 1 a failed
 * turn, 3 denied calls, 128 + signal. Throws UsageError and UserError for the base command; in JSON a result line was
 * written before. A closed stdout stops the turn without a word.
 */
export async function print(o: PrintOptions): Promise<number> {
	const { io, garuda } = o
	const abort = new AbortController()
	const out = new Output(io.stdout, () => abort.abort())
	const err = new Output(io.stderr)
	const say = (text: string) => {
		out.flush()
		err.line(`garuda: ${safeText(text).trimEnd()}`)
		err.flush()
	}
	const sink = o.format === 'text' ? textSink(o, out, err) : jsonSink(o, out)
	let signalled: SignalName | null = null
	const stopHearing = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((name) =>
		io.onSignal(name, () => {
			// A second one: the turn does not end by itself.
			if (signalled !== null) io.abandon(signalCodes[name])
			signalled = name
			abort.abort()
		}),
	)
	let code = 0
	const worse = (next: number) => {
		const rank = [0, 3, 1, 130]
		if (rank.indexOf(next) > rank.indexOf(code)) code = next
	}
	let session: Session | null = null
	try {
		const one = o.inputLines ? null : await promptOf(o, say, abort.signal)
		if (abort.signal.aborted) throw new UserError('The run was stopped before it began.')
		session = await openSession(garuda, await o.open())
		for (const notice of session.notices) say(notice)
		sink.opened(session, o.format === 'text' ? [] : (await session.commands()).commands.map((one) => one.name))
		if (one !== null)
			worse(await turn(session, await withCommand(session, one, o.prompt?.trim() ? o.prompt : undefined)))
		else {
			let number = 0
			for await (const line of readLines(io, abort.signal)) {
				number++
				if (line.trim() === '') continue
				let input: PromptInput
				try {
					const prompt = await promptOfLine(line, number)
					input = await withCommand(session, prompt, prompt.text)
				} catch (error) {
					if (!(error instanceof UserError)) throw error
					sink.failed(error)
					say(problemText({ message: error.message, ...(error.hint ? { hint: error.hint } : {}) }))
					worse(1)
					continue
				}
				worse(await turn(session, input))
				if (abort.signal.aborted) break
			}
			if (number === 0 && !abort.signal.aborted)
				throw new UsageError('No message came on stdin.', 'Each line is one message; see docs/json-output.md.')
		}
	} catch (error) {
		if (signalled === null || !(error instanceof UsageError)) sink.failed(error)
		if (signalled === null && !out.closed) throw error
	} finally {
		await session?.close().catch((error: unknown) => say(`the session could not be closed: ${String(error)}`))
		sink.finish()
		await out.end()
		if (out.failure) say(`the output could not be written: ${out.failure.message}`)
		await err.end()
		for (const stop of stopHearing) stop()
	}
	if (out.failure) worse(1)
	if (signalled !== null) return signalCodes[signalled]
	// Nobody interrupted it: the reader of stdout left, and what was asked was not finished.
	return out.closed && (code === 130 || code === 0) ? 1 : code

	async function turn(live: Session, input: PromptInput | string): Promise<number> {
		const running = live.prompt(input, {
			signal: abort.signal,
			...(o.schema === undefined ? {} : { schema: o.schema }),
		})
		for await (const event of running) {
			o.watch?.(event)
			if (event.type === 'notice') say(event.text)
			else if (event.type !== 'turn_end') sink.event(event)
			await out.ready()
		}
		const end = await running.end
		sink.ended(end)
		if (o.format !== 'text' && end.reason !== 'done') say(end.error ? problemText(end.error) : reasonText[end.reason])
		return exitCode(end)
	}
}

/** What a script learns from a turn's end. */
export const exitCode = (end: TurnEnd): number =>
	end.reason === 'cancelled' ? 130 : end.reason !== 'done' ? 1 : end.denials.length > 0 ? 3 : 0

/**
 * The prompt, or the command file that its task names. `task` is what the caller wrote itself: what is piped in is never a command.
 * UserError for a command that there is not.
 */
async function withCommand(session: Session, prompt: PromptInput, task: string | undefined): Promise<PromptInput> {
	const command = task === undefined ? null : await slashPrompt(session, task)
	return command ? { ...prompt, ...command } : prompt
}

async function promptOf(o: PrintOptions, say: (text: string) => void, signal: AbortSignal): Promise<PromptInput> {
	const patience = o.patienceMs === undefined ? {} : { patienceMs: o.patienceMs }
	const given = o.prompt?.trim() ? o.prompt : undefined
	const piped = await readAll(o.io, { optional: given !== undefined, say, signal, ...patience })
	const stdin = piped !== null && piped.trim() !== '' ? piped : undefined
	if (given !== undefined)
		return stdin === undefined ? { text: given } : { text: given, context: [{ label: 'stdin', text: stdin }] }
	if (stdin !== undefined) return { text: stdin }
	if (signal.aborted) return { text: '' }
	throw new UsageError(
		'No prompt was given and nothing came on stdin.',
		'Give one: garuda -p "what to do", or pipe it in. The chat needs a terminal.',
	)
}

/** With no model at all, the three ways to get one. */
export async function openSession(garuda: Garuda, how: OpenOptions): Promise<Session> {
	try {
		return await garuda.open(how)
	} catch (error) {
		if (!(error instanceof UserError)) throw error
		const { model, problem } = await garuda.readiness()
		// Another fault (an unknown session) is told by its own words.
		if (model === null && problem !== null && problem.code !== 'user' && problem.message === error.message)
			throw new UserError(problem.message, `${problem.hint ? `${problem.hint}\n` : ''}${threeWays}`)
		throw error
	}
}

// ---------------------------------------------------------------- text

/** Nobody said no here: nobody was asked. */
const unasked = ({ callId, reason }: TurnEnd['denials'][number], o: Pick<PrintOptions, 'cover'>): string => {
	if (reason !== 'the answer was no') return reason
	const cover = o.cover?.(callId)
	return `it asks, and nobody is there to answer${cover === undefined ? '' : `; ${cover}`}`
}

/**
 * On a terminal the model's words stream; through a pipe only the last answer goes, so that a script gets that and
 * nothing else. What happens meanwhile is on stderr when a person watches it, or with --verbose.
 */
function textSink(o: PrintOptions, out: Output, err: Output): Sink {
	const streams = out.isTTY
	const about = o.verbose || err.isTTY
	const renderer = new Renderer({ paint: painter(wantsColor(o.io.stderr, o.io.env)) })
	const tell = (text: string) => {
		if (streams && !out.atLineStart) out.write('\n')
		out.flush()
		err.write(text)
		err.flush()
	}
	return {
		opened() {},
		event(event) {
			// Nobody looks: the answer comes whole at the end.
			if (!streams && !about) return
			const shown = renderer.event(event)
			if (streams && o.schema === undefined) out.write(shown.answer)
			if (about && shown.about !== '') tell(shown.about)
		},
		ended(end) {
			const whole = end.reason !== 'error' && end.reason !== 'cancelled' && end.reason !== 'refusal'
			if (end.structured !== undefined) out.write(`${safeText(JSON.stringify(end.structured))}\n`)
			else if (streams) {
				if (!out.atLineStart) out.write('\n')
			} else if (whole && end.text !== '') {
				const text = safeText(end.text)
				out.write(text.endsWith('\n') ? text : `${text}\n`)
			}
			if (end.reason !== 'done')
				tell(`garuda: ${safeText(end.error ? problemText(end.error) : reasonText[end.reason])}\n`)
			for (const one of end.denials)
				tell(`garuda: denied: ${safeText(`${one.tool}: ${unasked(one, o)}`).replaceAll('\n', ' ')}\n`)
		},
		failed() {
			if (streams && !out.atLineStart) out.write('\n')
		},
		finish() {},
	}
}

// ---------------------------------------------------------------- json

/** stdout holds JSON only: a line a message, one result, or with `json --verbose` one array. */
function jsonSink(o: PrintOptions, out: Output): Sink {
	const messages = new JsonMessages({
		partial: o.partial,
		slashCommands: o.slashCommands,
		version: o.version,
		acceptEdits: o.acceptEdits,
	})
	const stream = o.format === 'stream-json'
	const kept: string[] = []
	let last = ''
	let failed = false
	const write = (lines: string) => {
		if (stream) out.write(lines)
		else if (o.verbose && lines !== '') kept.push(lines.trimEnd().replaceAll('\n', ',\n'))
	}
	const result = (line: string) => {
		last = line
		write(line)
	}
	return {
		opened: (session, own) => write(messages.init(session, own)),
		event: (event) => write(messages.event(event)),
		ended: (end) => {
			if (o.inputLines || !failed) result(messages.result(end))
		},
		failed(error) {
			failed = true
			if (error instanceof UsageError) return
			const message = error instanceof Error ? error.message : String(error)
			const user = error instanceof UserError
			result(
				messages.failure({
					code: user ? 'user' : 'internal',
					message,
					...(user && error.hint ? { hint: error.hint } : {}),
				}),
			)
		},
		finish() {
			if (stream || (last === '' && kept.length === 0)) return
			out.write(o.verbose ? `[${kept.join(',\n')}]\n` : last)
		},
	}
}
