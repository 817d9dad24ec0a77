// Project texts for the system prompt: invisible characters taken out or written out, so that what is read is what is seen.
import { hasHidden, visible } from '../text.ts'
import { clean } from '../untrusted.ts'

/** Emoji need joiners and selectors; after a pictograph they hide nothing. */
const emoji = /(\p{Extended_Pictographic}(?:\ufe0f|\u200d|\u20e3|[\u{1f3fb}-\u{1f3ff}]|\p{Extended_Pictographic})*)/u

/** The text as a person sees it, and whether anything was hidden in it. */
export function seenText(source: string): { text: string; hidden: boolean } {
	const lines = source.replace(/^\ufeff/, '').replace(/\r\n?/g, '\n')
	const pieces = (text: string) => text.split(emoji)
	const hidden = pieces(lines).some((piece, index) => index % 2 === 0 && hasHidden(piece))
	const text = pieces(clean(lines))
		.map((piece, index) => (index % 2 === 0 ? visible(piece) : piece))
		.join('')
	return { text, hidden }
}
