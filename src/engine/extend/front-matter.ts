// The front matter of a Markdown file, read leniently: what cannot be understood is named with its place, never dropped in silence.

export interface FrontMatter {
	/** By lower-case name; the first of two wins. */
	fields: Map<string, string>
	/** The text after it. */
	body: string
	/** What was not understood, with line and column. */
	notes: string[]
}

const bounds = /^---[ \t]*$/
const ends = /^(?:---|\.\.\.)[ \t]*$/

/**
 * `text` has LF line ends and no byte order mark. The rest of a line is the value, colons and all; quotes around all of it are
 * taken off; `|` and `>` take the indented lines below, and so does a value that goes on there. Front matter that is never closed
 * is text. Never throws.
 */
export function frontMatter(text: string): FrontMatter {
	const fields = new Map<string, string>()
	const notes: string[] = []
	const lines = text.split('\n')
	if (!bounds.test(lines[0]!)) return { fields, body: text, notes }
	const end = lines.findIndex((line, i) => i > 0 && ends.test(line))
	if (end === -1) {
		notes.push('line 1, column 1: the front matter is never closed by a line "---", so all of it is text')
		return { fields, body: text, notes }
	}
	for (let i = 1; i < end; i++) {
		const line = lines[i]!
		if (line.trim() === '' || line.trimStart().startsWith('#')) continue
		const found = /^([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+|$)(.*)$/.exec(line)
		if (!found) {
			const column = line.length - line.trimStart().length + 1
			notes.push(`line ${i + 1}, column ${column}: this is no "name: value" and counts for nothing`)
			continue
		}
		const name = found[1]!.toLowerCase()
		const below: string[] = []
		while (i + 1 < end && /^(?:[ \t]+\S|[ \t]*$|[ \t]*- )/.test(lines[i + 1]!)) below.push(lines[++i]!.trim())
		if (fields.has(name))
			notes.push(`line ${i + 1 - below.length}, column 1: "${name}" stands there twice; the first counts`)
		else fields.set(name, fieldValue(found[2]!.trim(), below))
	}
	return { fields, body: lines.slice(end + 1).join('\n'), notes }
}

function fieldValue(first: string, below: readonly string[]): string {
	if (/^[|>][+-]?\d?$/.test(first)) return below.join(first.startsWith('|') ? '\n' : ' ').trim()
	return unquoted([first, ...below].filter((line) => line !== '').join(' '))
}

/** Quotes are taken off where they enclose the whole value. */
function unquoted(value: string): string {
	const double = /^"((?:[^"\\]|\\.)*)"$/.exec(value)
	if (double) return double[1]!.replace(/\\(["\\/])/g, '$1')
	const single = /^'((?:[^']|'')*)'$/.exec(value)
	return single ? single[1]!.replaceAll("''", "'") : value
}
