// Text from outside made safe to show: used wherever a model's, file's or command's words reach a screen or a title.

// C0, DEL, C1, soft hyphen, zero-width and bidirectional controls, tags, variation selectors, fillers, lone surrogates.
// An emoji keeps its own selector and joiner: they hide nothing there.
const hidden =
	/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffc]|\u034f|[\u17b4\u17b5]|[\u180b-\u180f]|[\ufe00-\ufe0d]|(?<!\p{Emoji})[\ufe0e\ufe0f]|(?<!\p{Extended_Pictographic}\ufe0f?)\u200d|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu

const name = (char: string): string => {
	const code = char.codePointAt(0) ?? 0
	if (code < 0x20) return String.fromCodePoint(0x2400 + code)
	if (code === 0x7f) return '\u2421'
	return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`
}

/** The text with every control, invisible or direction-changing character written out (␍, ␛, [U+202E]); newlines and tabs stay. */
export const visible = (text: string): string => text.replace(hidden, name)

/** Whether `visible` would change the text: a question then carries a warning line. */
export const hasHidden = (text: string): boolean => {
	hidden.lastIndex = 0
	return hidden.test(text)
}

export const hiddenWarning = 'It holds hidden or control characters, shown as ␛ or [U+…]: read it with care.'

/** One visible line of at most `max` characters, for titles. */
export const oneLine = (text: string, max = 200): string => {
	const line = visible(text.replace(/\s*[\r\n]+\s*/g, ' ⏎ ').replace(/\t/g, ' ')).trim()
	return line.length <= max ? line : `${cutHead(line, max - 1)}…`
}

/** At most `max` UTF-16 units from the start, never half a surrogate pair. */
export const cutHead = (text: string, max: number): string => {
	if (text.length <= max) return text
	const code = text.charCodeAt(max - 1)
	return text.slice(0, code >= 0xd800 && code < 0xdc00 ? max - 1 : max)
}

/** At most `max` UTF-16 units from the end, never half a surrogate pair. */
export const cutTail = (text: string, max: number): string => {
	if (text.length <= max) return text
	const start = text.length - max
	const code = text.charCodeAt(start)
	return text.slice(code >= 0xdc00 && code < 0xe000 ? start + 1 : start)
}

/** At most `max` of the sentences, and one for the rest: a repository with a thousand mistakes does not bury what else is said. */
export const fewOf = (sentences: readonly string[], rest: (count: number) => string, max = 5): string[] =>
	sentences.length <= max + 1 ? [...sentences] : [...sentences.slice(0, max), rest(sentences.length - max)]

/** Head and tail of a text with a line between that says how much was left out; the text itself when it fits. */
export const clip = (text: string, max: number, hint = ''): string => {
	if (text.length <= max) return text
	const head = cutHead(text, Math.ceil(max / 2))
	const tail = cutTail(text, Math.floor(max / 2))
	const left = text.length - head.length - tail.length
	return `${head}\n[… ${left.toLocaleString('en')} characters left out here${hint && `; ${hint}`} …]\n${tail}`
}

/** What a terminal would show of a text with carriage returns: of each line, the part after the last one. Escape sequences removed. */
export const asShown = (text: string): string =>
	stripEscapes(text)
		.replace(/\r+\n/g, '\n')
		.replace(/^[^\n]*\r(?=[^\n])/gm, '')
		.replace(/\r/g, '')

// CSI, OSC/DCS/SOS/PM/APC up to their end (or the end of the text), charset and two-byte escapes; the 8-bit forms too.
const escapes =
	/(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c|$)?|\u001b[ -/]*[0-~]?/g

/** Terminal escape sequences removed, whole; for text that goes to the model. */
export const stripEscapes = (text: string): string => text.replace(escapes, '')

/** Valid Unicode with no NUL: lone surrogates become U+FFFD, so that a request is always valid UTF-8 and JSON. */
export const wellFormed = (text: string): string => text.toWellFormed().replaceAll('\0', '\u2400')
