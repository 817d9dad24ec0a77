// A text file as the model sees it (LF, no byte order mark) and the way back to its exact bytes.
import { ToolError } from '../errors.ts'
import { diffBlocks, splitLines } from './hunks.ts'
import { looksLatin } from './kind.ts'

export type Encoding = 'utf8' | 'utf16le' | 'utf16be'
type LineEnd = '\n' | '\r\n' | '\r'

/** A decoded file. `text` has LF line ends; `ends[i]` is what ends line i in the file, so mixed files stay mixed. */
export interface TextFile {
	text: string
	encoding: Encoding
	bom: boolean
	ends: LineEnd[]
	/** The line end that new lines take when no neighbour tells. */
	usual: LineEnd
}

const bomOf = (bytes: Uint8Array): { encoding: Encoding; length: number } | null => {
	if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return { encoding: 'utf8', length: 3 }
	if (bytes[0] === 0xff && bytes[1] === 0xfe) return { encoding: 'utf16le', length: 2 }
	if (bytes[0] === 0xfe && bytes[1] === 0xff) return { encoding: 'utf16be', length: 2 }
	return null
}

const swapped = (bytes: Uint8Array): Buffer => Buffer.from(bytes).swap16()

const raw = (bytes: Uint8Array, encoding: Encoding): string => {
	if (encoding === 'utf8') return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	if (bytes.length % 2 === 1) throw new RangeError('odd length')
	return new TextDecoder('utf-16le', { fatal: true, ignoreBOM: true }).decode(
		encoding === 'utf16le' ? bytes : swapped(bytes),
	)
}

/** Decodes without loss, or ToolError that says why the file cannot be handled as text. `shown` names it there. */
export const decodeText = (bytes: Uint8Array, shown: string): TextFile => {
	const bom = bomOf(bytes)
	const encoding = bom?.encoding ?? 'utf8'
	let whole: string
	try {
		whole = raw(bytes.subarray(bom?.length ?? 0), encoding)
	} catch {
		if (encoding !== 'utf8')
			throw new ToolError(`${shown} begins like UTF-16 text but is not valid UTF-16. It was not changed.`)
		throw new ToolError(
			looksLatin(bytes)
				? `${shown} is text, but not UTF-8 (most likely Latin-1 or Windows-1252). It was not changed: its bytes cannot be kept here. Convert it with bash (iconv) when the project wants that, or edit it with bash.`
				: `${shown} is not text (invalid UTF-8). It was not changed. Look at it with bash (file, xxd).`,
		)
	}
	const { text, ends, usual } = splitEnds(whole)
	return { text, encoding, bom: bom !== null, ends, usual }
}

/** Line ends out of a text. A lone CR ends a line only in files that know no other line end; else it is a character. */
export const splitEnds = (whole: string): { text: string; ends: LineEnd[]; usual: LineEnd } => {
	if (!whole.includes('\r')) return { text: whole, ends: [], usual: '\n' }
	if (!whole.includes('\n')) {
		const text = whole.replaceAll('\r', '\n')
		return { text, ends: Array(text.split('\n').length - 1).fill('\r'), usual: '\r' }
	}
	const ends: LineEnd[] = []
	let crlf = 0
	for (let at = whole.indexOf('\n'); at !== -1; at = whole.indexOf('\n', at + 1)) {
		const is = whole[at - 1] === '\r'
		ends.push(is ? '\r\n' : '\n')
		if (is) crlf++
	}
	return { text: whole.replaceAll('\r\n', '\n'), ends, usual: crlf * 2 > ends.length ? '\r\n' : '\n' }
}

/** A replacement in a decoded text: from `start` to `end` (offsets), by `text`. */
export interface Splice {
	start: number
	end: number
	text: string
}

/** The new text of non-overlapping splices in order. */
export const applySplices = (text: string, splices: readonly Splice[]): string => {
	let out = ''
	let at = 0
	for (const splice of splices) {
		out += text.slice(at, splice.start) + splice.text
		at = splice.end
	}
	return out + text.slice(at)
}

const newlines = (text: string, start = 0, end = text.length): number => {
	let count = 0
	for (let at = text.indexOf('\n', start); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) count++
	return count
}

/** The bytes of a file after splices: untouched lines keep their ends, new ones take those they replace or their neighbour's. */
export const encodeSpliced = (file: TextFile, splices: readonly Splice[]): Uint8Array => {
	const text = applySplices(file.text, splices)
	if (file.ends.length === 0) return toBytes(file, text)
	const ends: LineEnd[] = []
	let at = 0
	let line = 0
	for (const splice of splices) {
		const kept = newlines(file.text, at, splice.start)
		ends.push(...file.ends.slice(line, line + kept))
		line += kept
		const replaced = file.ends.slice(line, line + newlines(file.text, splice.start, splice.end))
		const made = newlines(splice.text)
		// A line that grows into several ends like itself; only the last line of a file has no end to go by.
		const neighbour = replaced.at(-1) ?? file.ends[line] ?? file.ends[line - 1] ?? file.usual
		for (let index = 0; index < made; index++) ends.push(replaced[index] ?? neighbour)
		line += replaced.length
		at = splice.end
	}
	ends.push(...file.ends.slice(line))
	return toBytes(file, joinEnds(text, ends))
}

const joinEnds = (text: string, ends: readonly LineEnd[]): string => {
	let out = ''
	let at = 0
	for (let index = 0; ; index++) {
		const next = text.indexOf('\n', at)
		if (next === -1) return out + text.slice(at)
		out += text.slice(at, next) + (ends[index] ?? '\n')
		at = next + 1
	}
}

const toBytes = (file: Pick<TextFile, 'encoding' | 'bom'>, text: string): Uint8Array => {
	const marked = file.bom ? `\ufeff${text}` : text
	if (file.encoding === 'utf8') return Buffer.from(marked, 'utf8')
	const le = Buffer.from(marked, 'utf16le')
	return file.encoding === 'utf16le' ? le : le.swap16()
}

/**
 * The splices that turn `from` into `to`, by lines: what they share stays untouched, so that a whole-file write keeps the
 * ends of the lines it did not change.
 */
export const lineSplices = (from: string, to: string): Splice[] => {
	const a = splitLines(from)
	const b = splitLines(to)
	const starts = [0]
	for (const line of a) starts.push(starts.at(-1)! + line.length)
	return diffBlocks(a, b).map(([oldFrom, oldTo, newFrom, newTo]) => ({
		start: starts[oldFrom]!,
		end: starts[oldTo]!,
		text: b.slice(newFrom, newTo).join(''),
	}))
}
