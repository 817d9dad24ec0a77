// Where a text may be cut: never inside a word that could be a key, for half a key is no longer known as one. Used by all that shows parts of lines.
import { cutHead } from '../text.ts'

const part = /[\w+/=.~%-]/
/** Longer runs are data that is cut wherever it must be. */
const longest = 300

/** Where the unbroken word around `at` begins; `at` itself where there is none, or one too long to be a key. */
export const wordStart = (text: string, at: number): number => {
	if (at >= text.length || !part.test(text[at]!)) return at
	let from = at
	while (from > 0 && part.test(text[from - 1]!)) if (at - --from > longest) return at
	return from
}

/** Where the unbroken word around `at` ends (exclusive), by the same measure. */
export const wordEnd = (text: string, at: number): number => {
	if (at <= 0 || !part.test(text[at - 1]!)) return at
	let to = at
	while (to < text.length && part.test(text[to]!)) if (++to - at > longest) return at
	return to
}

/** At most `max` characters from the start, without a word that would be cut in two. */
export const cutWords = (text: string, max: number): string => {
	if (text.length <= max) return text
	const head = cutHead(text, max)
	return head.slice(0, wordStart(text, head.length))
}
