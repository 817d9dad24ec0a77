// Who answers the gate's questions: nobody with -p, the person at the terminal in a chat. Called by tools/invoke.ts through the port.
import {
	type Answer,
	type ApprovalRequest,
	type Approver,
	oneLine,
	partsOf,
	unifiedDiff,
	visible,
} from '../engine/index.ts'
import { askParts } from './hunks.ts'
import { type Paint, paintDiff } from './style.ts'

/** Nobody is there: what the fixed list (--allow) does not cover is denied. */
export const denyAll: Approver = { ask: async () => ({ choice: 'deny' }) }

/** As `denyAll`, and it knows what would have covered each call that it denied. */
export function createDenier(): Approver & { cover(callId: string): string | undefined } {
	const covers = new Map<string, string>()
	return {
		async ask({ callId, tool, lastingRule }) {
			const [, list, rule] = /^(\w+): ([\s\S]+)$/.exec(lastingRule ?? '') ?? []
			const edits = tool === 'edit_file' || tool === 'write_file'
			const word =
				list === 'outside'
					? `"outside": [${JSON.stringify(rule)}] in your settings would cover it`
					: list === 'allow'
						? `--allow ${edits ? 'edits' : JSON.stringify(rule)} would cover it`
						: undefined
			if (callId !== undefined && word !== undefined) covers.set(callId, word)
			return { choice: 'deny' }
		},
		cover: (callId) => covers.get(callId),
	}
}

/** What the approver needs of the terminal. */
export interface QuestionLine {
	show(text: string): void
	/**
	 * A line typed after the question stood on the screen, or null when nobody can answer any more. `interrupt` is
	 * Ctrl-C. What was typed before is never part of it.
	 */
	ask(prompt: string, signal: AbortSignal): Promise<{ line: string } | { interrupt: true } | null>
	/** The answer "a": later edits inside the root are not asked about. */
	acceptEdits(): void
}

const words: Record<string, 'once' | 'session' | 'deny' | 'edits' | 'parts' | 'cancel' | 'help'> = {
	y: 'once',
	yes: 'once',
	s: 'session',
	session: 'session',
	n: 'deny',
	no: 'deny',
	a: 'edits',
	h: 'parts',
	hunks: 'parts',
	c: 'cancel',
	cancel: 'cancel',
	stop: 'cancel',
	'?': 'help',
}

/** Asks one question after another, whole: the title, the warning, all of the diff or command, then the choices. */
export function createAsker(terminal: QuestionLine, paint: Paint): Approver {
	let last: Promise<unknown> = Promise.resolve()
	/** A question whose turn has been stopped, or whose terminal is gone, is denied. */
	async function one(request: ApprovalRequest, signal: AbortSignal): Promise<Answer> {
		if (signal.aborted) return { choice: 'deny' }
		terminal.show(questionText(request, paint))
		const edit = request.info.change !== undefined && request.effect === undefined
		const parts = partsOf(request)
		for (;;) {
			const typed = await terminal.ask(choices(request, edit, parts.length), signal)
			if (typed === null || signal.aborted) return { choice: 'deny' }
			if ('interrupt' in typed) return { choice: 'cancel' }
			const [, word = '', note = ''] = /^\s*(\S+)\s*([\s\S]*)$/.exec(typed.line) ?? []
			const meant = words[word.toLowerCase()]
			// A note belongs to a no. "yes but …" is a doubt, and doubt is asked again.
			if (meant === 'deny') return { choice: 'deny', ...(note.trim() ? { note: note.trim() } : {}) }
			if (meant !== undefined && meant !== 'help' && note === '') {
				if (meant === 'cancel') return { choice: 'cancel' }
				if (meant === 'parts' && parts.length > 0) {
					const answer = await askParts(parts, terminal, paint, signal)
					if (answer) return answer
					continue
				}
				if (meant === 'edits' && edit) {
					terminal.acceptEdits()
					return done(
						request,
						{ choice: 'once' },
						'edits in the project are accepted from now on (/permissions edits off ends it)',
					)
				}
				if (meant === 'once') return done(request, { choice: 'once' })
				if (meant === 'session' && request.choices.includes('session')) return done(request, { choice: 'session' })
			}
			terminal.show(help(request, edit, parts.length))
		}
	}

	const done = (request: ApprovalRequest, answer: Answer, word?: string): Answer => {
		if (word) terminal.show(`${paint('dim', word)}\n`)
		if (request.lastingRule)
			terminal.show(`${paint('dim', `a rule for good, in settings: ${oneLine(request.lastingRule)}`)}\n`)
		return answer
	}

	return {
		ask(request, signal) {
			const answer = last.then(() => one(request, signal)).catch((): Answer => ({ choice: 'deny' }))
			last = answer
			return answer
		},
	}
}

/** All that the question shows, every hidden character written out. */
export function questionText(request: ApprovalRequest, paint: Paint): string {
	const out = [`${paint('yellow', '?')} ${paint('bold', oneLine(request.title))}`]
	if (request.warning) out.push(paint('yellow', visible(request.warning).replace(/^/gm, '! ')))
	const { change } = request.info
	if (change && !request.effect)
		out.push(paintDiff(visible(unifiedDiff(change, { maxLines: Number.MAX_SAFE_INTEGER })), paint).trimEnd())
	if (request.preview.trim() !== '') out.push(visible(request.preview).trimEnd().replace(/^/gm, '  '))
	return `${out.join('\n')}\n`
}

/** A consent has other words for its choices. */
const word = (request: ApprovalRequest, choice: 'once' | 'session' | 'deny', usual: string): string =>
	request.labels?.[choice] ?? usual

const choices = (request: ApprovalRequest, edit: boolean, parts: number): string =>
	`[y] ${word(request, 'once', 'once')}  ${request.choices.includes('session') ? `[s] ${word(request, 'session', 'session')}  ` : ''}[n] ${word(request, 'deny', 'no')}  ${edit ? '[a] accept edits  ' : ''}${parts > 0 ? '[h] hunks  ' : ''}[c] stop  [?] > `

const help = (request: ApprovalRequest, edit: boolean, parts: number): string =>
	[
		`  y  ${word(request, 'once', 'yes, this once')}`,
		request.choices.includes('session')
			? `  s  ${word(request, 'session', 'yes, and do not ask again for the same in this session')}`
			: '',
		`  n  ${word(request, 'deny', 'no; words after it go to the model ("n use the other file")')}`,
		edit ? '  a  yes, and accept all edits inside the project in this session' : '',
		parts > 0 ? `  h  look through its ${parts} parts and take only some` : '',
		'  c  no, and stop the turn',
		'',
	]
		.filter((line, i, all) => line !== '' || i === all.length - 1)
		.join('\n')
