// Untrusted words as Markdown that shows them and does nothing else: no HTML, no links, no images. Used by the export.
import { visible } from '../text.ts'

/** Fences whose language a viewer would draw or run instead of showing it. */
const drawn = /^(?:mermaid|math|geojson|topojson|stl|svg|html-preview)$/i

/** A block of code that its content cannot end early. */
export function fenced(text: string, language = ''): string {
	const body = visible(text).replace(/\n+$/, '')
	const longest = Math.max(2, ...(body.match(/`+/g) ?? []).map((run) => run.length))
	const fence = '`'.repeat(longest + 1)
	const word = /^[\w+#.-]{1,30}$/.test(language) && !drawn.test(language) ? language : ''
	return `${fence}${word}\n${body}\n${fence}`
}

/** Everything in a piece of a line that could be more than text. */
const escapeText = (text: string): string =>
	text
		.replaceAll('\\', '\\\\')
		.replaceAll('&', '&amp;')
		.replaceAll('<', '&lt;')
		// A run of tildes would open a block whose end this file does not control.
		.replace(/[`~[\]]/g, '\\$&')
		// Mathematics that a viewer would typeset, and addresses of other schemes than the web's.
		.replaceAll('$', '\\$')

/** Code spans that begin and end on this line stay; every other backtick is escaped, so that none pairs across lines. */
function escapeLine(line: string): string {
	let out = ''
	let rest = 0
	const table = line.includes('|')
	for (const open of line.matchAll(/`+/g)) {
		if (open.index < rest) continue
		const after = open.index + open[0].length
		const close = [...line.slice(after).matchAll(/`+/g)].find((run) => run[0].length === open[0].length)
		if (!close) continue
		const content = line.slice(after, after + close.index)
		// In a table a bar ends the cell even inside code.
		if (table && /[<[\]&$\\]/.test(content)) continue
		out += escapeText(line.slice(rest, open.index)) + open[0] + content + close[0]
		rest = after + close.index + close[0].length
	}
	return out + escapeText(line.slice(rest))
}

/** A heading inside a text becomes a small one, and lines that would turn the text above into a heading lose that. */
const escapeStart = (line: string): string =>
	line.replace(/^(\s{0,3})#{1,6}(?=\s|$)/, '$1####').replace(/^(\s{0,3})(=+|-+)(\s*)$/, '$1\\$2$3')

/**
 * Text of a user or model for a Markdown file. Code blocks are written anew with fences of ours; outside of them HTML,
 * links and images are shown as their source. Headings become small, so that no text can pose as another speaker.
 */
export function safeMarkdown(text: string): string {
	const lines = visible(text.replace(/\r\n?/g, '\n')).split('\n')
	const out: string[] = []
	let fence: { mark: string; language: string; indent: number; body: string[] } | null = null
	for (const line of lines) {
		if (fence) {
			const end = /^\s*(`{3,}|~{3,})\s*$/.exec(line)?.[1]
			if (end?.startsWith(fence.mark)) {
				out.push('', fenced(fence.body.join('\n'), fence.language), '')
				fence = null
			} else fence.body.push(line.replace(new RegExp(`^\\s{0,${fence.indent}}`), ''))
			continue
		}
		const begin = /^(\s*)(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/.exec(line)
		if (begin) fence = { mark: begin[2]!, language: begin[3] ?? '', indent: begin[1]!.length, body: [] }
		else out.push(escapeStart(escapeLine(line)))
	}
	if (fence) out.push('', fenced(fence.body.join('\n'), fence.language), '')
	return out
		.join('\n')
		.replace(/\n{3,}/g, '\n\n')
		.trim()
}

/** One line for a heading or a list. */
export const safeLine = (text: string): string =>
	escapeText(visible(text.replace(/\s+/g, ' ')).trim()).replace(/[*_#|~]/g, '\\$&')
