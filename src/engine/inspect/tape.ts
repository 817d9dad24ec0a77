// One recorded turn as a tape: what the model and the tools answered, and what the loop then put into the history.
import type { RecordOf } from '../history.ts'
import type { SessionRecord } from '../ports.ts'
import type { Json, Message } from '../types.ts'

export type Entry =
	| { type: 'assistant'; message: Message; usage: Json; model: string; stop: string; requestId?: string }
	| { type: 'results' | 'note'; message: Message }
	| { type: 'compaction'; messages: Message[] }
	| { type: 'end'; reason: string; error?: Json }

export interface Decided {
	tool: string
	key: string
	decision: string
	reason: string
}

/** Where a replay left its record. `expected` is the record's, `got` the loop's; both short and for people. */
export interface Divergence {
	turn: number
	step: number
	expected: string
	got: string
}

/** What the loop takes from and checks against, in order. */
export class Tape {
	readonly turn: number
	readonly entries: Entry[] = []
	/** The last decision of each call. */
	readonly decisions = new Map<string, Decided>()
	divergence: Divergence | null = null
	steps = 0
	private at = 0

	constructor(turn: number) {
		this.turn = turn
	}

	add(record: SessionRecord): void {
		switch (record.type) {
			case 'user':
				this.entries.push({ type: 'note', message: record.message })
				break
			case 'assistant':
			case 'results':
			case 'compaction':
			case 'end':
				this.entries.push(record)
				break
			case 'decision':
				if (record.callId !== undefined) this.decisions.set(record.callId, record)
				break
		}
	}

	peek(ahead = 0): Entry | undefined {
		return this.entries[this.at + ahead]
	}

	next(): Entry | undefined {
		return this.entries[this.at++]
	}

	/** The record ends in the middle of the turn: the process was killed there. */
	get exhausted(): boolean {
		return this.at >= this.entries.length
	}

	/** The loop never ran: a command of the user's own, or a command file that was stopped. */
	get withoutModel(): boolean {
		const last = this.entries.at(-1)
		if (last?.type !== 'end') return false
		return (
			(last.error as { code?: Json } | undefined)?.code === 'command' ||
			(this.entries.length === 1 && last.reason === 'done')
		)
	}

	/** How many steps the turn was allowed, when the record says that this is what ended it. */
	get stepLimit(): number | undefined {
		const last = this.entries.at(-1)
		if (last?.type !== 'end' || last.reason !== 'max_steps') return undefined
		return this.entries.filter((entry) => entry.type === 'assistant').length
	}

	/** The first one counts. */
	diverge(expected: string, got: string): void {
		this.divergence ??= { turn: this.turn, step: this.steps, expected, got }
	}

	/** The loop appended a message: the record's next entry must be it. False when not. */
	expect(message: Message, kind: RecordOf): boolean {
		const entry = this.peek()
		const type = kind.type === 'user' ? 'note' : kind.type
		if (!entry || entry.type !== type) {
			this.diverge(describe(entry), `${type}: ${show(message)}`)
			return false
		}
		if (entry.type !== 'assistant' && entry.type !== 'results' && entry.type !== 'note') return false
		if (canonical(entry.message) !== canonical(message)) {
			const [a, b] = firstDifference(entry.message, message)
			this.diverge(`${type}: ${a}`, `${type}: ${b}`)
			return false
		}
		if (entry.type === 'assistant' && kind.type === 'assistant' && entry.stop !== kind.stop) {
			this.diverge(`stop ${entry.stop}`, `stop ${kind.stop}`)
			return false
		}
		this.at++
		return true
	}
}

/** JSON with sorted keys: the order of keys in a record means nothing. */
export const canonical = (value: unknown): string =>
	JSON.stringify(value, (_, item: unknown) =>
		typeof item === 'object' && item !== null && !Array.isArray(item)
			? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
			: item,
	)

const short = (text: string): string => (text.length > 300 ? `${text.slice(0, 299).toWellFormed()}…` : text)
const show = (message: Message): string => short(canonical(message.blocks))

export const describe = (entry: Entry | undefined): string => {
	if (!entry) return 'nothing more'
	if (entry.type === 'end') return `the turn's end (${entry.reason})`
	if (entry.type === 'compaction') return 'a compaction'
	return `${entry.type}: ${show(entry.message)}`
}

/** The first blocks that differ. */
function firstDifference(a: Message, b: Message): [string, string] {
	for (let i = 0; i < Math.max(a.blocks.length, b.blocks.length); i++) {
		const [left, right] = [a.blocks[i], b.blocks[i]]
		if (left === undefined || right === undefined || canonical(left) !== canonical(right))
			return [
				left === undefined ? 'no further block' : around(canonical(left), right && canonical(right)),
				right === undefined ? 'no further block' : around(canonical(right), left && canonical(left)),
			]
	}
	return [a.role, b.role]
}

/** The part of a text where it leaves the other. */
function around(text: string, other: string | undefined): string {
	let at = 0
	while (other !== undefined && at < text.length && text[at] === other[at]) at++
	return at < 200 ? short(text) : `…${short(text.slice(at - 60).toWellFormed())}`
}
