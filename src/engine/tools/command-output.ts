// A command's output on its way to the model and to the person's screen. Used by bash and process_manager.
import { wordStart } from '../files/tokens.ts'
import type { ToolContext } from '../ports.ts'
import { asShown, visible } from '../text.ts'

const bidi = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** A command's output as a terminal would have shown it: no escapes, no overwritten progress, direction marks written out. */
export const readable = (output: string): string => {
	let text = asShown(output)
	// Overstrikes (a, backspace, b) leave the last character.
	for (let round = 0; text.includes('\b') && round < 100; round++) {
		const next = text.replace(/[^\b\n]\u0008/g, '')
		if (next === text) break
		text = next
	}
	return text
		.replaceAll('\b', '')
		.replace(/[\u0080-\u009f]/g, '')
		.replace(bidi, visible)
}

/** The end of a line that has not ended: it may be the beginning of a key, which is known as one only when all of it is there. */
const unfinished = /(?<![\w+/=~-])(?=[\w+/=~-]*\d)(?=[\w+/=~-]*[A-Za-z])[\w+/=~-]{8,300}$/

/** Milliseconds between two states of a line that has not ended. */
const openLineMs = 100

/**
 * Whole lines of output to the user as they come, and now and then the line that has not ended yet (a progress bar, dots),
 * after a carriage return. An escape sequence cut by a chunk is never shown in halves.
 */
export const lineProgress = (
	ctx: Pick<ToolContext, 'progress'>,
	now: () => number = () => performance.now(),
): { take(text: string): void; end(): void } => {
	let rest = ''
	let toldAt = Number.NEGATIVE_INFINITY
	let told = ''
	const words = (text: string): string => visible(readable(text)).replace(/\n$/, '')
	const show = (text: string): void => {
		const shown = words(text)
		if (shown.trim() !== '') ctx.progress(shown)
	}
	const showOpen = (): void => {
		const time = now()
		if (rest === '' || time - toldAt < openLineMs) return
		const shown = words(rest).replace(unfinished, '')
		if (shown === told || shown.trim() === '') return
		toldAt = time
		told = shown
		ctx.progress(`\r${shown}`)
	}
	return {
		take: (text) => {
			rest += text
			const cut = rest.lastIndexOf('\n') + 1
			if (cut > 0) {
				show(rest.slice(0, cut))
				told = ''
			}
			rest = rest.slice(cut)
			// A progress bar without an end is shown by its last state only, and never collected.
			if (rest.length > 8192) rest = rest.slice(wordStart(rest, rest.length - 4096))
			showOpen()
		},
		end: () => show(rest),
	}
}
