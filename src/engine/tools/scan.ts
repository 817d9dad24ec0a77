// Searches the bytes of one file: cheap tests on bytes first, then lines. Runs in the search worker.
import { cutWords, wordEnd, wordStart } from '../files/tokens.ts'
import type { Matcher } from './pattern.ts'

/** A line of the result; `col` (1-based) only when the line was too long and is shown in parts. */
export interface Row {
	line: number
	text: string
	match: boolean
	col?: number
}

const longLine = 400
const around = 120
const windowsPerLine = 5

/** The text of a file that is searched: UTF-8, or UTF-16 by its mark; null for binary data (a NUL near the start). */
const textOf = (bytes: Buffer): string | null => {
	if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.toString('utf16le', 2)
	if (bytes[0] === 0xfe && bytes[1] === 0xff)
		return Buffer.from(bytes.subarray(2, 2 + (((bytes.length - 2) >> 1) << 1)))
			.swap16()
			.toString('utf16le')
	const nul = bytes.indexOf(0)
	if (nul !== -1 && nul < 8192) return null
	const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
	return bytes.toString('utf8', start)
}

export interface Scan {
	/** Matching lines in all. */
	count: number
	/** At most `maxRows` matching lines, with context. */
	rows: Row[]
	binary: boolean
}

const nothing: Scan = { count: 0, rows: [], binary: false }

/** Lines of one file that match. */
export const scanFile = (bytes: Buffer, matcher: Matcher, maxRows: number, context: number): Scan => {
	const wide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
	if (matcher.bytes && !wide && bytes.indexOf(matcher.bytes) === -1) return nothing
	const text = textOf(bytes)
	if (text === null) return { ...nothing, binary: true }
	const { whole, line: perLine } = matcher
	const found: { line: number; start: number; end: number }[] = []
	let count = 0
	let lineNumber = 1
	let counted = 0
	for (let at = 0; at < text.length; ) {
		let start = at
		if (whole) {
			whole.lastIndex = at
			const hit = whole.exec(text)
			if (!hit) break
			start = hit.index === 0 ? 0 : text.lastIndexOf('\n', hit.index - 1) + 1
			// An empty match behind the last line end belongs to no line.
			if (start >= text.length) break
		}
		const next = text.indexOf('\n', start)
		const end = next === -1 ? text.length : next
		perLine.lastIndex = 0
		const shown = text.slice(start, text[end - 1] === '\r' && end > start ? end - 1 : end)
		if (perLine.test(shown)) {
			count++
			if (found.length < maxRows) {
				// Line ends are only counted up to lines that are shown.
				for (let nl = text.indexOf('\n', counted); nl !== -1 && nl < start; nl = text.indexOf('\n', nl + 1))
					lineNumber++
				counted = start
				found.push({ line: lineNumber, start, end: start + shown.length })
			}
		}
		at = end + 1
	}
	if (count === 0) return nothing
	return {
		count,
		rows:
			context > 0
				? withContext(text, found, perLine, context)
				: found.flatMap((one) => rowsOf(text.slice(one.start, one.end), one.line, perLine)),
		binary: false,
	}
}

/** A matching line whole when short, else a window round each match with its column. */
const rowsOf = (text: string, line: number, expression: RegExp): Row[] => {
	if (text.length <= longLine) return [{ line, text, match: true }]
	const rows: Row[] = []
	let shownTo = -1
	let hidden = 0
	let tried = 0
	// matchAll goes on where the last test ended.
	expression.lastIndex = 0
	for (const hit of text.matchAll(expression)) {
		if (++tried > 10_000) break
		if (hit.index + hit[0].length <= shownTo) continue
		if (rows.length === windowsPerLine) {
			hidden++
			continue
		}
		const from = wordStart(text, Math.max(0, hit.index - around))
		const to = wordEnd(text, Math.min(text.length, hit.index + Math.min(hit[0].length, longLine) + around))
		rows.push({
			line,
			col: hit.index + 1,
			match: true,
			text: `${from > 0 ? '…' : ''}${text.slice(from, to).toWellFormed()}${to < text.length ? '…' : ''}`,
		})
		shownTo = to
	}
	if (hidden > 0)
		rows.push({
			line,
			match: false,
			text: `[… ${hidden} more matches in this line of ${text.length.toLocaleString('en')} characters]`,
		})
	return rows
}

const withContext = (
	text: string,
	found: { line: number; start: number; end: number }[],
	expression: RegExp,
	context: number,
): Row[] => {
	const lines = text.split('\n')
	if (lines.at(-1) === '') lines.pop()
	const matching = new Set(found.map(({ line }) => line))
	const rows: Row[] = []
	let done = 0
	for (const { line } of found) {
		for (let at = Math.max(done + 1, line - context); at <= Math.min(lines.length, line + context); at++) {
			const shown = lines[at - 1]!.replace(/\r$/, '')
			if (matching.has(at)) rows.push(...rowsOf(shown, at, expression))
			else
				rows.push({
					line: at,
					match: false,
					text: shown.length > longLine ? `${cutWords(shown, longLine).toWellFormed()}…` : shown,
				})
			done = at
		}
	}
	return rows
}
