// A session's name from its first prompt, without asking a model. Used by the engine after the first prompt and by lists.
import { cutHead, oneLine } from '../text.ts'

const max = 60

/** The first words of a prompt as one visible line of at most 60 characters; "(no words)" when there are none. */
export function titleOf(prompt: string): string {
	const lines = prompt
		.slice(0, 20_000)
		.split(/\r\n|[\n\r\u2028\u2029]/)
		.map((line) => line.replace(/^\s*(?:[#>*+-]+\s+)+/, '').trim())
	const words = (line: string) => /[\p{L}\p{N}]/u.test(line) && !/^(?:```|~~~)/.test(line)
	const line = lines.find(words) ?? lines.find((each) => each !== '') ?? ''
	const shown = oneLine(line.replace(/\s+/g, ' '), 400)
	if (shown === '') return '(no words)'
	if (shown.length <= max) return shown
	const cut = cutHead(shown, max - 1)
	// A word is kept whole when that still leaves most of the line.
	const space = cut.lastIndexOf(' ')
	return `${(space > max * 0.6 ? cut.slice(0, space) : cut).replace(/[\s,;:–-]+$/, '')}…`
}
