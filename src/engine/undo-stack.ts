// The turns of a session with their files and messages, taken back and brought back together. Between the session and the snapshots.
import type { UndoResult } from './api.ts'
import { messageOf } from './errors.ts'
import type { History } from './history.ts'
import type { Clock, SessionRecord, Snapshots } from './ports.ts'
import { messagesBefore, type Turnmark } from './session/resume.ts'
import type { GarudaSnapshots, Restored, RestoreLimit } from './session/snapshots.ts'
import { oneLine } from './text.ts'
import type { CallInfo, Message } from './types.ts'

export type SessionSnapshots = Omit<Snapshots, 'restore'> &
	Pick<GarudaSnapshots, 'restore'> &
	Partial<Pick<GarudaSnapshots, 'keep' | 'diff' | 'onlyEdits'>>

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
	/** Turns of this process; those of them with a call that changes something; those with a command. */
	private readonly seen = new Set<number>()
	private readonly changing = new Set<number>()
	private readonly commands = new Set<number>()

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
		this.seen.add(mark.turn)
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
		const turn = this.turns.at(-1)?.turn ?? 0
		const told = this.changing.has(turn) && (access !== 'run' || this.commands.has(turn))
		this.changing.add(turn)
		if (access === 'run') this.commands.add(turn)
		const before = await this.before?.wait()
		if (before && !told && this.d.snapshots) this.warn(before, access)
		if (access === 'write') await this.d.snapshots?.keep?.(paths)
	}

	/** In each turn that undo does not cover as a whole, before that happens; unless the snapshot itself has just said it. */
	private warn(before: Taken, access: CallInfo['access']): void {
		if (before.note) return
		if (before.id === null) this.d.note('Undo does not cover this turn: there is no snapshot of its start.')
		else if (access === 'run' && this.d.snapshots?.onlyEdits?.(before.id))
			this.d.note('Undo covers only what edit tools change in this turn: what its commands do stays.')
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
		const moved = await this.moveFiles(mark.from, mark.to, limitOf(mark))
		if ('conflicts' in moved) return moved
		if (mark.brokenAt !== undefined) mark.only ??= new Set(moved.restored)
		const { history } = this.d
		this.undone.push({ mark, messages: history.messages })
		history.replace(messagesBefore(mark))
		this.turns.pop()
		await this.d.write({ type: 'undo', time: this.d.clock.now(), turn: mark.turn })
		this.d.forget()
		return done('Undid', mark, moved, this.uncovered(mark))
	}

	async redo(): Promise<UndoResult> {
		const entry = this.undone.at(-1)
		if (!entry) return no('There is nothing to redo.')
		const { mark } = entry
		if (mark.blocked) return no(`Turn ${mark.turn} cannot be redone: ${mark.blocked}.`)
		const moved = await this.moveFiles(mark.to, mark.from, limitOf(mark))
		if ('conflicts' in moved) return moved
		const { history } = this.d
		mark.base = history.messages
		mark.messages = history.messages.length
		history.replace(entry.messages)
		this.undone.pop()
		this.turns.push(mark)
		await this.d.write({ type: 'redo', time: this.d.clock.now(), turn: mark.turn })
		this.d.forget()
		return done('Redid', mark, moved, this.uncovered(mark))
	}

	/** What undo and redo do not touch of a turn's changes, in words; '' when they touch all. */
	private uncovered(mark: Turnmark): string {
		const { turn, from, to } = mark
		const known = this.seen.has(turn)
		if (from === null && to === null) {
			const changed = known ? this.changing.has(turn) : calledTools(mark)
			return changed ? 'only the conversation: there is no snapshot of that turn, so its files are as they are' : ''
		}
		if (from === null || !this.d.snapshots?.onlyEdits?.(from)) return ''
		if (!known) return 'what commands may have changed in it is not covered and stays as it is'
		return this.commands.has(turn) ? 'commands ran in it; what they changed is not covered and stays as it is' : ''
	}

	/** All files of a turn to one of its two states, or none. */
	private async moveFiles(
		to: string | null,
		from: string | null,
		limit: RestoreLimit,
	): Promise<Omit<Restored, 'conflicts'> | UndoResult> {
		if (to === null && from === null) return { restored: [] }
		if (to === null || from === null || !this.d.snapshots)
			return no('No snapshot of that turn was kept, so its files cannot be put back.')
		const { conflicts, ...moved } = await this.d.snapshots.restore(to, from, { ...limit, progress: this.progress() })
		if (conflicts.length === 0) return moved
		const names = conflicts.slice(0, 10).map((path) => oneLine(path, 200))
		const them = conflicts.length === 1 ? 'it' : 'them'
		const message = `Nothing was put back: ${names.join(', ')} changed since that turn. Save or revert ${them} first.`
		return { ...no(message), conflicts }
	}

	/** Says how far it is where it takes longer than a person waits without asking. */
	private progress(): (done: number, total: number) => void {
		const { clock } = this.d
		let next = clock.now() + patienceMs
		return (done, total) => {
			if (clock.now() < next || done === total) return
			next = clock.now() + 2 * patienceMs
			this.d.note(`Putting files back: ${done.toLocaleString('en')} of ${total.toLocaleString('en')} so far.`)
		}
	}

	/** A unified diff of the last turn's changes, or of all; '' when there are none. */
	async diff(which: 'last' | 'all'): Promise<string> {
		const marks = this.turns.filter((mark) => mark.from !== null && mark.to !== null)
		const chosen = which === 'all' ? marks : marks.slice(-1)
		if (chosen.length === 0) return ''
		return (await this.d.snapshots?.diff?.(chosen[0]!.from!, chosen.at(-1)!.to!)) ?? ''
	}
}

const patienceMs = 2000

/** From its last record to the end of the write that was under way. */
const slackMs = 1000

/** What undo may touch of a turn that a crash broke off: what its user did afterwards is not the turn's. */
const limitOf = ({ brokenAt, only }: Turnmark): RestoreLimit =>
	brokenAt === undefined ? {} : only ? { only } : { before: brokenAt + slackMs }

const no = (message: string): UndoResult => ({ done: false, restored: [], conflicts: [], message })

/** Whether the turn's messages hold calls of tools; of a compacted conversation too, for the mark keeps the messages. */
const calledTools = ({ base, messages }: Turnmark): boolean =>
	base.slice(messages).some(({ blocks }) => blocks.some(({ type }) => type === 'tool_call'))

const done = (
	verb: 'Undid' | 'Redid',
	mark: Turnmark,
	{ restored, left = [], later = [] }: Omit<Restored, 'conflicts'>,
	uncovered: string,
): UndoResult => {
	const none = mark.from === null && mark.to === null
	const count =
		restored.length === 0
			? uncovered === ''
				? 'no file had changed'
				: none
					? ''
					: 'no file that it covers had changed'
			: `${restored.length === 1 ? '1 file is' : `${restored.length} files are`} as ${verb === 'Undid' ? 'before' : 'after'} it`
	const named = (paths: readonly string[]): string => {
		const names = paths.slice(0, 5).map((path) => oneLine(path, 200))
		return `${names.join(', ')}${paths.length > names.length ? ` and ${paths.length - names.length} more` : ''}`
	}
	const stays = left.length > 0 ? `still there (made and put under ignore by it): ${named(left)}` : ''
	const after = later.length > 0 ? `left as it is, for it changed after the turn was broken off: ${named(later)}` : ''
	const words = [count, uncovered, stays, after].filter((text) => text !== '').join('; ')
	const message = `${verb} turn ${mark.turn} ("${oneLine(mark.prompt, 60)}"): ${words}.`
	return { done: true, restored, conflicts: [], prompt: mark.prompt, message }
}
