// --replay: a recorded session through the real loop, with the model's and the tools' recorded answers. Writes nothing.
import { TokenBudget } from '../budget.ts'
import type { Compaction } from '../context/compact.ts'
import { History } from '../history.ts'
import type { Clock, ModelClient, SessionHeader, SessionRecord } from '../ports.ts'
import type { Damaged } from '../session/records.ts'
import { beginRebuild, toUsage } from '../session/resume.ts'
import type { Gate, Outcome } from '../tools/invoke.ts'
import { runTurn } from '../turn.ts'
import type { AgentEvent, CallInfo, Json, ModelEvent, ModelSpec, ModelStop, ToolSpec, TurnEnd } from '../types.ts'
import { noUsage } from '../types.ts'
import { type Divergence, describe, Tape } from './tape.ts'

export interface ReplayOptions {
	header: SessionHeader
	/** As `SessionStore.read` gives them. */
	records: readonly (SessionRecord | Damaged)[]
	/** The loop's limits for repeated calls; the defaults are the product's. */
	limits?: { repeatHint: number; repeatStop: number }
	/** Events as they come, for a screen. */
	onEvent?(event: AgentEvent): void
	signal?: AbortSignal
}

export interface ReplayResult {
	/** Turns that were replayed, the one that diverged included. */
	turns: number
	/** The first place where the loop did something else than the record says; null when it did the same throughout. */
	divergence: Divergence | null
	events: AgentEvent[]
	/** Why a divergence may not be the loop's: lines that could not be read, or an abort. */
	problems: string[]
}

/** The real limits never matter: what the model said is known. */
const spec: ModelSpec = {
	provider: 'record',
	id: 'record',
	window: null,
	maxOutput: 64_000,
	thinking: 'none',
	efforts: [],
	price: null,
	textToolCalls: 'off',
}
const stillClock: Clock = { now: () => 0, sleep: async () => {} }
const wrongForm = /^The answer does not have the wanted form: ([\s\S]*)\nAnswer again with the JSON alone\.$/

/**
 * Runs every turn of a record, each from the conversation that the record gives at its start, so that one divergence
 * does not hide the next turn's cause; stops at the first. Nothing is asked, run, sent or written.
 */
export async function replaySession(o: ReplayOptions): Promise<ReplayResult> {
	const events: AgentEvent[] = []
	const problems: string[] = []
	const emit = (event: AgentEvent): void => {
		events.push(event)
		o.onEvent?.(event)
	}
	const state = beginRebuild()
	let turns = 0
	const { records } = o
	for (let i = 0; i < records.length; ) {
		const record = records[i]!
		state.add(record)
		if (record.type === 'damaged') problems.push(`Line ${record.line} of the session's file could not be read.`)
		if (record.type !== 'user' || record.prompt === '') {
			i++
			continue
		}
		if (o.signal?.aborted) {
			problems.push('Stopped before the end of the record.')
			break
		}
		const { messages, nextTurn } = state.result()
		const history = [...messages]
		const tape = new Tape(nextTurn - 1)
		for (i++; i < records.length; i++) {
			const next = records[i]!
			if (
				(next.type === 'user' && next.prompt !== '') ||
				next.type === 'undo' ||
				next.type === 'redo' ||
				next.type === 'resume'
			)
				break
			state.add(next)
			if (next.type === 'damaged') problems.push(`Line ${next.line} of the session's file could not be read.`)
			// A call before the first reply is the session's own: of a command file, or the user's command. Then comes what it came to.
			else if (next.type === 'user' && tape.entries.length === 0 && tape.decisions.size > 0) history.push(next.message)
			else if (next.type !== 'start') tape.add(next)
			if (next.type === 'end') {
				i++
				break
			}
		}
		turns++
		if (tape.withoutModel) continue
		await replayTurn(o, tape, history, emit)
		if (tape.divergence) return { turns, divergence: tape.divergence, events, problems }
	}
	return { turns, divergence: null, events, problems }
}

async function replayTurn(
	o: ReplayOptions,
	tape: Tape,
	messages: ConstructorParameters<typeof History>[0],
	emit: (event: AgentEvent) => void,
): Promise<void> {
	const stop = new AbortController()
	const signal = o.signal ? AbortSignal.any([o.signal, stop.signal]) : stop.signal
	const history = new History(structuredClone(messages), 0, async (message, kind) => {
		// Past the end of a record that a kill cut short there is nothing to compare with.
		if (tape.divergence || tape.exhausted || !tape.expect(message, kind)) stop.abort()
	})
	const end = await runTurn(
		{
			client: recordedModel(tape, stop),
			modelName: o.header.model,
			spec,
			system: o.header.system,
			tools: o.header.tools as unknown as ToolSpec[],
			gate: recordedGate(tape, emit),
			history,
			compaction: recordedCompaction(tape, history),
			budget: new RecordedBudget(tape),
			limits: { steps: tape.stepLimit ?? 200, repeatHint: 3, repeatStop: 5, ...o.limits },
			clock: stillClock,
			sessionId: o.header.id,
			emit: (event) => {
				if (event.type === 'step_start') tape.steps = event.step
				emit(event)
			},
			check: recordedCheck(tape),
		},
		signal,
	)
	emit({ type: 'turn_end', end })
	if (!tape.divergence && !o.signal?.aborted) compareEnd(tape, end)
}

function compareEnd(tape: Tape, end: TurnEnd): void {
	const entry = tape.peek()
	// Killed in the middle: there is nothing to compare with.
	if (!entry) return
	if (entry.type !== 'end') tape.diverge(describe(entry), `the turn's end (${end.reason})`)
	else if (entry.reason !== end.reason)
		tape.diverge(`the turn's end (${entry.reason})`, `the turn's end (${end.reason})`)
}

/** Answers each request with the record's next reply. */
function recordedModel(tape: Tape, stop: AbortController): ModelClient {
	const failure = (code: string, message: string): ModelEvent => ({
		type: 'error',
		error: { code, message, retryable: false, streamed: false },
	})
	return {
		async *stream(): AsyncGenerator<ModelEvent> {
			const entry = tape.peek()
			if (!entry) {
				stop.abort()
				yield failure('cancelled', 'The record ends here.')
				return
			}
			switch (entry.type) {
				case 'assistant': {
					for (const block of entry.message.blocks)
						if (block.type === 'text') yield { type: 'text_delta', text: block.text }
					if (entry.stop === 'cancelled') {
						// The user stopped here: the loop keeps what had been shown.
						stop.abort()
						yield failure('cancelled', 'Stopped.')
						return
					}
					const note = tape.peek(1)
					const leaked =
						note?.type === 'note' &&
						textOf(note.message.blocks).startsWith('Your last reply held a tool call written as text')
					yield {
						type: 'end',
						message: structuredClone(entry.message),
						stop: entry.stop as ModelStop,
						usage: toUsage(entry.usage),
						...(entry.requestId === undefined ? {} : { requestId: entry.requestId }),
						...(leaked ? { detail: 'leaked_tool_call' } : {}),
					}
					return
				}
				case 'end':
					if (entry.reason === 'done') break
					if (entry.reason === 'cancelled') {
						stop.abort()
						yield failure('cancelled', 'Stopped.')
					} else if (entry.reason === 'refusal') yield failure('refused', 'The model refused.')
					else if (entry.reason === 'error') yield failure(errorCode(entry.error), errorText(entry.error))
					else {
						tape.diverge(describe(entry), 'a further model request')
						stop.abort()
						yield failure('cancelled', 'The record ends here.')
					}
					return
				case 'note':
					break
				default:
					tape.diverge(describe(entry), 'a model request')
					stop.abort()
					yield failure('cancelled', 'The record has something else here.')
					return
			}
			// An empty reply leaves no record of its own.
			yield { type: 'end', message: { role: 'assistant', blocks: [] }, stop: 'end', usage: noUsage() }
		},
	}
}

/** Answers each call with the record's result; nothing is decided, asked or run. */
function recordedGate(tape: Tape, emit: (event: AgentEvent) => void): Gate {
	return {
		parallel: () => false,
		consent: async () => ({ allowed: false, reason: 'a replay asks nothing' }),
		async invoke(call): Promise<Outcome> {
			const decided = tape.decisions.get(call.id)
			const name = decided?.tool ?? call.name
			const info: CallInfo = { title: name, kind: 'other', access: 'none', paths: [], key: decided?.key ?? '' }
			emit({ type: 'tool_call', callId: call.id, name, input: call.input, info })
			const entry = tape.peek()
			const blocks = entry?.type === 'results' ? entry.message.blocks : []
			const result = blocks.find((block) => block.type === 'tool_result' && block.callId === call.id)
			if (result?.type !== 'tool_result') {
				// A process killed while its calls ran left no results; the turn's tape ends here then.
				if (!tape.exhausted) tape.diverge(describe(entry), `a result of the call ${name} (${call.id})`)
				return { status: 'cancelled', text: 'No result was recorded.', name, key: info.key, cancelTurn: true }
			}
			emit({ type: 'tool_result', callId: call.id, name, status: result.status, text: result.text })
			const after = tape.peek(1)
			const last = blocks.findLast((block) => block.type === 'tool_result') === result
			return {
				status: result.status,
				text: result.text,
				...(result.images ? { images: result.images } : {}),
				name,
				key: info.key,
				...(result.status === 'denied' ? { denied: decided?.reason ?? '' } : {}),
				...(last && after?.type === 'end' && after.reason === 'cancelled' ? { cancelTurn: true } : {}),
			}
		},
	}
}

/** Shortens where the record was shortened, to what it became. */
function recordedCompaction(tape: Tape, history: History): Compaction {
	return {
		due: () => tape.peek()?.type === 'compaction',
		learnWindow: () => {},
		async run() {
			const entry = tape.peek()
			if (entry?.type === 'compaction') {
				tape.next()
				history.replace(structuredClone(entry.messages))
				return { usage: noUsage() }
			}
			// Asked for, but the record has none: it failed then, and ended the turn if the turn ended.
			return {
				usage: noUsage(),
				...(entry?.type === 'end'
					? { problem: { code: errorCode(entry.error), message: errorText(entry.error) } }
					: {}),
			}
		},
	}
}

/** Runs out exactly where the record says that it did. */
class RecordedBudget extends TokenBudget {
	private readonly tape: Tape

	constructor(tape: Tape) {
		super(null, null)
		this.tape = tape
	}

	override reserve(input: number, maxOutput: number): ReturnType<TokenBudget['reserve']> {
		const entry = this.tape.peek()
		if (entry?.type === 'end' && (entry.reason === 'token_budget' || entry.reason === 'cost_budget'))
			return entry.reason
		// A reply cut short by the budget's rest ended the turn at once.
		const cut =
			entry?.type === 'assistant' &&
			entry.stop === 'max_tokens' &&
			[1, 2].some((ahead) => this.tape.peek(ahead)?.type === 'end')
		return super.reserve(input, cut ? maxOutput - 1 : maxOutput, null)
	}
}

/** A wanted form's complaints, out of the notes that they became. */
function recordedCheck(tape: Tape): (text: string) => { value: Json } | { error: string } {
	return () => {
		const entry = tape.peek()
		const complaint = entry?.type === 'note' ? wrongForm.exec(textOf(entry.message.blocks))?.[1] : undefined
		if (complaint !== undefined) return { error: complaint }
		if (entry?.type === 'end' && entry.reason === 'error') return { error: errorText(entry.error) }
		return { value: null }
	}
}

const textOf = (blocks: readonly { type: string; text?: string }[]): string =>
	blocks.flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : [])).join('')
const field = (error: Json | undefined, name: string, otherwise: string): string =>
	typeof error === 'object' && error !== null && !Array.isArray(error) && typeof error[name] === 'string'
		? error[name]
		: otherwise
const errorCode = (error: Json | undefined): string => field(error, 'code', 'internal')
const errorText = (error: Json | undefined): string => field(error, 'message', 'The model failed.')
