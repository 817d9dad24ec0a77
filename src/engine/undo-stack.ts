// The turns of a session with their files and messages, taken back and brought back together. Between the session and the snapshots.
import type { UndoResult } from './api.ts'
import { messageOf } from './errors.ts'
import type { History } from './history.ts'
import type { Clock, SessionRecord, Snapshots } from './ports.ts'
import { messagesBefore, type Turnmark } from './session/resume.ts'
import type { GarudaSnapshots } from './session/snapshots.ts'
import { oneLine } from './text.ts'
import type { CallInfo, Message } from './types.ts'

export type SessionSnapshots = Snapshots & Partial<Pick<GarudaSnapshots, 'keep' | 'diff'>>

export interface UndoDeps {
	turns: Turnmark[]
	/** The redo stack: each turn and the whole conversation after its redo. */
	undone: { mark: Turnmark; messages: Message[] }[]
	nextTurn: number
	history: History
	/** Null: undo is off. */
	snapshots: SessionSnapshots | null
	clock: Clock
	write(record: SessionRecord): Promise<void>
	/** A word for the person. */
	note(text: string): void
	/** What the agent has read no longer holds. */
	forget(): void
}

interface Taken {
	id: string | null
	note?: string
}

/**
 * Milliseconds from a prompt to the start of what only a command or a change will need: after the request went out on a slow
 * machine too (a first one loads its provider's code), and still long before a model's first call.
 */
const warmUpMs = 250

export class UndoStack {
	turns: Turnmark[]
	nextTurn: number
	private undone: { mark: Turnmark; messages: Message[] }[]
	private readonly d: UndoDeps
	/** The state before the running turn. */
	private before: { wait(): Promise<Taken>; drop(): Promise<void> } | null = null
	private changed = false

	constructor(deps: UndoDeps) {
		this.d = deps
		this.turns = deps.turns
		this.undone = deps.undone
		this.nextTurn = deps.nextTurn
	}

	/** The user's words open a turn here; what was undone before it is gone. `prompt` is redacted. */
	mark(prompt: string): void {
		this.undone = []
		const { messages } = this.d.history
		const mark = { turn: this.nextTurn++, messages: messages.length, base: messages, prompt, ended: null }
		this.turns.push({ ...mark, from: null, to: null })
	}

	/**
	 * Prepares the snapshot of the state before a turn. It starts a moment after the request went out (so that it does
	 * not delay it), or at once when a call is about to change something. `warmUp` runs with it.
	 */
	begin(warmUp: () => void): number {
		const { snapshots, clock } = this.d
		const turn = this.nextTurn
		const over = new AbortController()
		this.changed = false
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
			warmUp()
			if (snapshots) start()
		})
		this.before = {
			wait: () => {
				recorded ??= start().then(async (from) => {
					const mark = this.turns.at(-1)
					if (mark?.turn === turn) mark.from = from.id
					if (snapshots) await this.record(turn, from)
					return from
				})
				return recorded
			},
			drop: async () => {
				over.abort()
				await taking
			},
		}
		return turn
	}

	/** Awaited before a call that changes something runs: the snapshot is taken and in the journal, once a turn. */
	async beforeChange({ access, paths }: CallInfo): Promise<void> {
		this.changed = true
		await this.before?.wait()
		if (access === 'write') await this.d.snapshots?.keep?.(paths)
	}

	/** The state after a turn, where it changed anything. */
	async finish(turn: number, reason: string): Promise<void> {
		const mark = this.turns.at(-1)
		if (mark?.turn === turn) mark.ended = reason
		if (!this.d.snapshots || mark?.turn !== turn || !this.changed) return this.before?.drop()
		const before = await this.before!.wait()
		const after = before.id === null ? { id: null } : await this.d.snapshots.take(turn, new AbortController().signal)
		mark.to = after.id
		await this.record(turn, after)
	}

	private async record(turn: number, { id, note }: Taken): Promise<void> {
		if (note) this.d.note(note)
		await this.d.write({ type: 'snapshot', time: this.d.clock.now(), turn, id, ...(note ? { note } : {}) })
	}

	async undo(): Promise<UndoResult> {
		const mark = this.turns.at(-1)
		if (!mark) return no('There is nothing to undo in this session.')
		if (mark.blocked) return no(`Turn ${mark.turn} cannot be undone: ${mark.blocked}.`)
		if (mark.from !== null && mark.to === null && mark.ended === null && this.d.snapshots) {
			// The turn was broken off (a crash): what is there now is taken for its end.
			const now = await this.d.snapshots.take(mark.turn, new AbortController().signal)
			mark.to = now.id
			await this.record(mark.turn, now)
		}
		const moved = await this.moveFiles(mark.from, mark.to)
		if ('conflicts' in moved) return moved
		const { history } = this.d
		this.undone.push({ mark, messages: history.messages })
		history.replace(messagesBefore(mark))
		this.turns.pop()
		await this.d.write({ type: 'undo', time: this.d.clock.now(), turn: mark.turn })
		this.d.forget()
		return done('Undid', mark, moved.restored)
	}

	async redo(): Promise<UndoResult> {
		const entry = this.undone.at(-1)
		if (!entry) return no('There is nothing to redo.')
		const { mark } = entry
		if (mark.blocked) return no(`Turn ${mark.turn} cannot be redone: ${mark.blocked}.`)
		const moved = await this.moveFiles(mark.to, mark.from)
		if ('conflicts' in moved) return moved
		const { history } = this.d
		mark.base = history.messages
		mark.messages = history.messages.length
		history.replace(entry.messages)
		this.undone.pop()
		this.turns.push(mark)
		await this.d.write({ type: 'redo', time: this.d.clock.now(), turn: mark.turn })
		this.d.forget()
		return done('Redid', mark, moved.restored)
	}

	/** All files of a turn to one of its two states, or none. */
	private async moveFiles(to: string | null, from: string | null): Promise<{ restored: string[] } | UndoResult> {
		if (to === null && from === null) return { restored: [] }
		if (to === null || from === null || !this.d.snapshots)
			return no('No snapshot of that turn was kept, so its files cannot be put back.')
		const { restored, conflicts } = await this.d.snapshots.restore(to, from)
		if (conflicts.length === 0) return { restored }
		const names = conflicts.slice(0, 10).map((path) => oneLine(path, 200))
		const them = conflicts.length === 1 ? 'it' : 'them'
		const message = `Nothing was put back: ${names.join(', ')} changed since that turn. Save or revert ${them} first.`
		return { ...no(message), conflicts }
	}

	/** A unified diff of the last turn's changes, or of all; '' when there are none. */
	async diff(which: 'last' | 'all'): Promise<string> {
		const marks = this.turns.filter((mark) => mark.from !== null && mark.to !== null)
		const chosen = which === 'all' ? marks : marks.slice(-1)
		if (chosen.length === 0) return ''
		return (await this.d.snapshots?.diff?.(chosen[0]!.from!, chosen.at(-1)!.to!)) ?? ''
	}
}

const no = (message: string): UndoResult => ({ done: false, restored: [], conflicts: [], message })

const done = (verb: string, mark: Turnmark, restored: string[]): UndoResult => {
	const count =
		restored.length === 0
			? 'no file had changed'
			: restored.length === 1
				? '1 file put back'
				: `${restored.length} files put back`
	const message = `${verb} turn ${mark.turn} ("${oneLine(mark.prompt, 60)}"): ${count}.`
	return { done: true, restored, conflicts: [], prompt: mark.prompt, message }
}
