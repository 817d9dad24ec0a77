// An earlier session taken up again: locked, read and folded into what a session starts from. Used by assemble.ts.
import type { OpenOptions } from './api.ts'
import { UserError } from './errors.ts'
import type { SessionHeader, SessionWriter } from './ports.ts'
import type { GarudaSessions } from './session/journal.ts'
import { rebuild } from './session/resume.ts'
import type { SessionStart } from './session-parts.ts'
import type { Effort, Mode } from './types.ts'

export interface Resumed {
	header: SessionHeader
	writer: SessionWriter
	start: SessionStart
	model: string
	effort?: Effort
	mode: Mode
	problems: string[]
}

const efforts = new Set(['low', 'medium', 'high', 'xhigh', 'max'])

/** Null when a new session is wanted. UserError: none there, open elsewhere, of another folder, foreign. Approvals are never taken over. */
export async function resumeSession(
	how: OpenOptions,
	openStore: () => Promise<GarudaSessions>,
	/** For a copy of a foreign session: nothing of its own header is taken over. */
	newHeader: () => Promise<SessionHeader>,
): Promise<Resumed | null> {
	if (how.resume === undefined && !how.latest) return null
	const store = await openStore()
	let id: string
	if (how.resume === undefined) {
		const latest = await store.latest()
		if (!latest) throw new UserError('There is no earlier session in this folder.', 'Start a new one: garuda')
		id = latest.id
	} else id = await store.find(how.resume)
	let opened: Awaited<ReturnType<GarudaSessions['open']>>
	if (how.trustForeign) {
		opened = await store.adopt(id, await newHeader())
	} else opened = await store.open(id)
	const { header, writer, records, problems } = opened
	const state = rebuild(records)
	const { effort } = state
	return {
		header,
		writer,
		model: state.model,
		mode: state.mode,
		...(effort !== undefined && efforts.has(effort) ? { effort: effort as Effort } : {}),
		problems: [...problems, ...state.problems],
		start: {
			messages: state.messages,
			turns: state.turns,
			undone: state.undone.map((mark, i) => ({ mark, messages: state.undoneMessages[i]! })),
			nextTurn: state.nextTurn,
			title: state.title,
			usage: state.usage,
			stoppedMidway: state.stoppedMidway,
		},
	}
}
