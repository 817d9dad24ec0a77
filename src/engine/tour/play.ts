// Plays the whole tour where nobody types: one prompt, what it changed, the undo, the ways to a model. Called by a front end.
import type { Session } from '../api.ts'
import { unified } from '../files/unified.ts'
import { cutHead } from '../text.ts'
import type { AgentEvent, FileChange, TurnEnd } from '../types.ts'
import { directed } from './script.ts'
import { threeWays } from './words.ts'

/** Where the tour goes: events to be rendered as those of any turn, and words of the director between them. */
export interface TourSink {
	event(event: AgentEvent): void
	say(text: string): void
}

export interface TourResult {
	/** Paths that the turn changed, relative to the session's root. */
	changed: string[]
	/** Paths that the undo put back. */
	undone: string[]
	/** Something was changed, its diff was shown, and it was undone. */
	ok: boolean
	/** The turn's end; its denials are part of the show. */
	end: TurnEnd
}

const maxDiff = 8_000

/**
 * Runs the tour in a session whose model is `tourModel`, whose root is a scratch copy and which accepts edits (in a
 * session that asks, the approver decides, and a no makes `ok` false). Never rejects for what happens in the tour; an
 * abort ends it with `ok` false. The caller decides on the exit code: denials are what the tour shows, so they must not
 * count as an exit of 3; `ok` says whether it came off.
 */
export async function playTour(
	session: Session,
	sink: TourSink | ((text: string) => void),
	signal: AbortSignal = new AbortController().signal,
): Promise<TourResult> {
	const out: TourSink = typeof sink === 'function' ? { say: sink, event: wordsOf(sink) } : sink
	const changes = new Map<string, FileChange>()
	const changed = new Map<string, FileChange>()
	const turn = session.prompt(directed, { signal })
	for await (const event of turn) {
		if (event.type === 'tool_call' && event.info.change) changes.set(event.callId, event.info.change)
		else if (event.type === 'tool_result' && event.status === 'ok') {
			const change = changes.get(event.callId)
			if (change) changed.set(relativeTo(session.root, change.path), change)
		}
		out.event(event)
	}
	const end = await turn.end
	const result = (undone: string[], ok: boolean): TourResult => ({ changed: [...changed.keys()], undone, ok, end })
	if (end.reason !== 'done' || signal.aborted) return result([], false)

	let shown = ''
	let undone: string[] = []
	if (changed.size === 0) out.say('Nothing was changed, so there is nothing to show or to undo.')
	else {
		shown = await diffOf(session, [...changed.values()])
		out.say(`What this turn changed (/diff):\n\n${cut(shown)}`)
		const undo = await session.undo().catch((error: Error) => ({ done: false, restored: [], message: error.message }))
		undone = undo.done ? undo.restored.map((path) => relativeTo(session.root, path)) : []
		out.say(
			`And taken back (/undo): ${undo.message}${undone.length > 0 ? `\n${undone.map((path) => `  ${path}`).join('\n')}` : ''}`,
		)
	}
	out.say(threeWays)
	return result(
		undone,
		changed.size > 0 && shown.trim() !== '' && [...changed.keys()].every((path) => undone.includes(path)),
	)
}

/** The session's own diff; where no git compares snapshots, that of the changes as they were shown. */
async function diffOf(session: Session, changes: readonly FileChange[]): Promise<string> {
	const diff = await session.diff('last').catch(() => '')
	if (diff.trim() !== '') return diff
	return changes.map((one) => unified({ ...one, path: relativeTo(session.root, one.path) }, maxDiff)).join('\n')
}

const cut = (diff: string): string => {
	const head = cutHead(diff.trimEnd(), maxDiff)
	return head.length < diff.trimEnd().length ? `${head}\n…` : head
}

const relativeTo = (root: string, path: string): string =>
	path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path

/** For a sink that takes only text: whole messages, the calls' titles, and how each ended. */
const wordsOf =
	(say: (text: string) => void) =>
	(event: AgentEvent): void => {
		if (event.type === 'message') {
			const text = event.message.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
			if (text.trim() !== '') say(text)
		} else if (event.type === 'tool_call') say(`> ${event.info.title}`)
		else if (event.type === 'tool_result') say(`  ${event.status}: ${event.text.split('\n').slice(0, 6).join('\n  ')}`)
		else if (event.type === 'notice') say(event.text)
	}
