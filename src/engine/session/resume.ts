// A journal's records folded into where the conversation stands: messages, turns to undo, title, model. Pure; used at resume and by replay.
import type { SessionRecord } from '../ports.ts'
import type { Json, Message, Mode, Usage } from '../types.ts'
import { addUsage, noUsage } from '../types.ts'
import type { Damaged } from './records.ts'
import { titleOf } from './title.ts'

export interface Turnmark {
	/** Counts the session's prompts from 1; never used twice. */
	turn: number
	/** Messages before the turn's user message, counted in `base`. */
	messages: number
	/** The messages that the count is of; the current ones unless a compaction came since. */
	base: Message[]
	/** Snapshots of the turn's start and end; null when there is none. */
	from: string | null
	to: string | null
	prompt: string
	/** The reason of its `end` record; null when it was broken off. */
	ended: string | null
	/** Why this turn must not be undone or redone. */
	blocked?: string
	/** A turn that was broken off by a crash: when its last record was written, in milliseconds. What changed later is not its own. */
	brokenAt?: number
	/** Of such a turn: the files that undo put back once; undo and redo touch no others. */
	only?: ReadonlySet<string>
}

export interface Rebuilt {
	messages: Message[]
	/** In order; the last is what undo means. */
	turns: Turnmark[]
	/** The redo stack; the last is what redo means. */
	undone: Turnmark[]
	/** For each of `undone`, the whole conversation as it is after its redo. */
	undoneMessages: Message[][]
	title: string | null
	/** Only what was last shown; the caller decides what a resumed session may do. */
	mode: Mode
	model: string
	effort?: string
	/** All model calls, undone turns too: they were paid. */
	usage: Usage
	/** The last turn has no end: the process was killed. Orphan calls are still open in `messages`. */
	stoppedMidway: boolean
	problems: string[]
	/** The number of the next prompt's turn, for its snapshot and end records. */
	nextTurn: number
}

/** The conversation before a turn, as undo leaves it. */
export const messagesBefore = (mark: Turnmark): Message[] => mark.base.slice(0, mark.messages)

/**
 * The state after all records. Decisions are not part of it: an approval of an earlier run never holds again. `snapshot`
 * records name their turn; the first of a turn is its start, a later one its end.
 */
export function rebuild(records: readonly (SessionRecord | Damaged)[]): Rebuilt {
	const state = beginRebuild()
	for (const record of records) state.add(record)
	return state.result()
}

/** The same, record by record. */
export function beginRebuild(): { add(record: SessionRecord | Damaged): void; result(): Rebuilt } {
	let messages: Message[] = []
	let turns: Turnmark[] = []
	let undone: Turnmark[] = []
	let undoneMessages: Message[][] = []
	let title: string | null = null
	let firstPrompt: string | null = null
	let mode: Mode = 'build'
	let model = ''
	let effort: string | undefined
	let usage = noUsage()
	/** Of the turn that has no end yet. */
	let openUsage = noUsage()
	let running = false
	let count = 0
	const problems: string[] = []
	const snapshots = new Map<number, { from: string | null; to: string | null }>()

	const block = (reason: string): void => {
		for (const mark of [...turns, ...undone]) mark.blocked ??= reason
	}
	const push = (message: Message): void => {
		if (message.blocks.length > 0) messages.push(message)
	}
	const wrong = (what: string): void => {
		problems.push(what)
		block(what)
	}

	/** Of the last record of a running turn. */
	let lastTime = 0
	const breakOff = (): void => {
		const mark = turns.at(-1)
		if (running && mark && mark.ended === null) mark.brokenAt ??= lastTime
	}

	function add(record: SessionRecord | Damaged): void {
		if (record.type === 'resume' || (record.type === 'user' && record.prompt !== '')) breakOff()
		if ('time' in record && typeof record.time === 'number') lastTime = Math.max(lastTime, record.time)
		switch (record.type) {
			case 'damaged':
				// What stood there may have been an undo or a snapshot: no turn before it can be undone with certainty.
				block(
					`line ${record.line} of the session's file ${record.reason}, so what this turn changed is not known for certain`,
				)
				break
			case 'start':
				model = record.model
				break
			case 'resume':
				model = record.model
				break
			case 'user':
				if (record.prompt === '') {
					push(record.message)
					break
				}
				firstPrompt ??= record.prompt
				usage = addUsage(usage, openUsage)
				openUsage = noUsage()
				count++
				turns.push({
					turn: count,
					messages: messages.length,
					base: messages,
					prompt: record.prompt,
					ended: null,
					...(snapshots.get(count) ?? { from: null, to: null }),
				})
				undone = []
				undoneMessages = []
				running = true
				push(record.message)
				break
			case 'assistant':
				openUsage = addUsage(openUsage, toUsage(record.usage))
				push(record.message)
				break
			case 'results':
				push(record.message)
				break
			case 'model':
				model = record.model
				effort = record.effort
				break
			case 'mode':
				mode = record.mode
				break
			case 'title':
				title = record.title
				break
			case 'compaction':
				messages = record.messages.filter((message) => message.blocks.length > 0)
				break
			case 'snapshot': {
				const seen = snapshots.get(record.turn)
				const pair = seen ? { from: seen.from, to: record.id } : { from: record.id, to: null }
				snapshots.set(record.turn, pair)
				const mark = turns.findLast((each) => each.turn === record.turn)
				if (mark) Object.assign(mark, pair)
				else if (record.turn !== count + 1) wrong(`a snapshot record names turn ${record.turn}, which is not there`)
				break
			}
			case 'undo': {
				const mark = turns.at(-1)
				if (mark?.turn !== record.turn) {
					wrong(`an undo record names turn ${record.turn}, but the last one was ${mark?.turn ?? 'none'}`)
					break
				}
				turns = turns.slice(0, -1)
				undone = [...undone, mark]
				undoneMessages = [...undoneMessages, messages]
				messages = messagesBefore(mark)
				running = false
				break
			}
			case 'redo': {
				const mark = undone.at(-1)
				if (mark?.turn !== record.turn) {
					wrong(`a redo record names turn ${record.turn}, but the last undone was ${mark?.turn ?? 'none'}`)
					break
				}
				// Counted in what undo left: the same messages in a new array.
				mark.base = messages
				mark.messages = messages.length
				messages = [...undoneMessages.at(-1)!]
				mark.base = sameStart(mark.base, messages) ? messages : mark.base
				undone = undone.slice(0, -1)
				undoneMessages = undoneMessages.slice(0, -1)
				turns = [...turns, mark]
				break
			}
			case 'end': {
				const mark = turns.findLast((each) => each.turn === record.turn) ?? (running ? turns.at(-1) : undefined)
				if (mark) mark.ended = record.reason
				// The turn's own sum holds what has no message of its own (summaries, failed requests).
				const total = toUsage(record.usage)
				usage = addUsage(usage, total.requests > 0 ? total : openUsage)
				openUsage = noUsage()
				running = false
				break
			}
		}
	}

	return {
		add,
		result: () => {
			breakOff()
			return {
				messages,
				turns,
				undone,
				undoneMessages,
				title: title ?? (firstPrompt === null ? null : titleOf(firstPrompt)),
				mode,
				model,
				...(effort === undefined ? {} : { effort }),
				usage: addUsage(usage, openUsage),
				stoppedMidway: running,
				problems,
				nextTurn: count + 1,
			}
		},
	}
}

const sameStart = (start: readonly Message[], all: readonly Message[]): boolean =>
	start.every((message, i) => message === all[i])

/** A usage as it was recorded, from anything: wrong or missing figures count as nothing, an unknown cost stays unknown. */
export function toUsage(value: Json | undefined): Usage {
	const usage = noUsage()
	if (typeof value !== 'object' || value === null || Array.isArray(value)) return usage
	const given: { [key: string]: Json | undefined } = value
	for (const key of ['input', 'output', 'cacheRead', 'cacheWrite', 'thinking', 'requests'] as const) {
		const figure = given[key]
		if (typeof figure === 'number' && Number.isFinite(figure) && figure >= 0) usage[key] = figure
	}
	usage.cost =
		typeof given.cost === 'number' && Number.isFinite(given.cost) && given.cost >= 0
			? given.cost
			: usage.requests > 0 || given.cost === null
				? null
				: 0
	return usage
}
