// A change looked through part by part, after [h] at its question. Called by the approver of the plain chat.
import { type Answer, visible } from '../engine/index.ts'
import type { QuestionLine } from './approver.ts'
import { type Paint, paintDiff } from './style.ts'

/**
 * Shows one part after another. Null: back to the question. Parts are taken only when every one of them was shown here; what
 * `a` or `d` decides unseen is shown and then confirmed. No part taken is a no.
 */
export async function askParts(
	parts: readonly string[],
	terminal: QuestionLine,
	paint: Paint,
	signal: AbortSignal,
): Promise<Answer | null> {
	const total = parts.length
	const taken: number[] = []
	const show = (index: number, word = '') => {
		const head = `part ${index + 1} of ${total}${word && `: ${word}`}`
		terminal.show(`${paint('bold', head)}\n${paintDiff(visible(parts[index]!), paint).trimEnd()}\n`)
	}
	const key = async (prompt: string): Promise<string | Answer> => {
		const typed = await terminal.ask(prompt, signal)
		if (typed === null || signal.aborted) return { choice: 'deny' }
		return 'interrupt' in typed ? { choice: 'cancel' } : typed.line.trim().toLowerCase()
	}
	for (let index = 0; index < total; ) {
		show(index)
		const typed = await key('[y] take  [n] leave  [a] take the rest  [d] leave the rest  [b] back  [c] stop  [?] > ')
		if (typeof typed !== 'string') return typed
		if (typed === 'b') return null
		if (typed === 'c') return { choice: 'cancel' }
		if (typed === 'y' || typed === 'a') taken.push(index)
		if (/^[ynad]$/.test(typed)) index++
		else terminal.show(help)
		if (typed !== 'a' && typed !== 'd') continue
		if (index === total) break
		for (; index < total; index++) {
			show(index, typed === 'a' ? 'taken' : 'left out')
			if (typed === 'a') taken.push(index)
		}
		while (taken.length > 0) {
			const sure = await key(`take ${taken.length} of ${total} parts?  [y] yes  [b] back  [c] stop > `)
			if (typeof sure !== 'string') return sure
			if (sure === 'b' || sure === 'n') return null
			if (sure === 'c') return { choice: 'cancel' }
			if (sure === 'y') break
		}
	}
	if (taken.length === 0) return { choice: 'deny', note: `none of the ${total} parts of the change was taken` }
	terminal.show(`${paint('dim', `taken: ${taken.length} of ${total} parts`)}\n`)
	return { choice: 'once', accepted: taken }
}

const help = [
	'  y  take this part',
	'  n  leave this part out',
	'  a  take this part and the rest, which is shown first',
	'  d  leave out this part and the rest',
	'  b  back to the question about the whole change',
	'  c  no to all of it, and stop the turn',
	'',
].join('\n')
