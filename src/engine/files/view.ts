// A file as the model reads it: numbered lines, bounded, saying what it left out. For read_file and for @mentions.
import { ToolError } from '../errors.ts'
import type { FileKind, Files, ResolvedPath, ToolContext } from '../ports.ts'
import { hasHidden } from '../text.ts'
import type { Image } from '../types.ts'
import { inWords, shownPath, sizeInWords } from './guard.ts'
import { imageFromBase64, imageKinds, imageLine, imageOf } from './image.ts'
import { kindOf, looksLatin } from './kind.ts'
import { notebookPictures, renderNotebook } from './notebook.ts'
import { listFolder, wayHere } from './open.ts'
import type { Ranges } from './seen.ts'
import { splitEnds } from './text-file.ts'
import { cutWords } from './tokens.ts'

export type ViewLimits = ToolContext['limits']

export interface View {
	path: string
	text: string
	hash: string
	kind: FileKind
	/** Lines that were shown whole. */
	lines: Ranges
	total: number
	truncated: boolean
	/** The file is a picture (`text` is its label), or a notebook with pictures on this page. */
	images?: Image[]
}

const lineMax = 2000

/** One page of a text: lines from `offset` (1-based), at most `limit` lines and `budget` characters, but at least one line. */
export const page = (
	text: string,
	offset: number,
	limit: number,
	budget: number,
): { body: string; from: number; to: number; total: number; lines: Ranges } => {
	const all = text.split('\n')
	if (all.at(-1) === '') all.pop()
	const total = all.length
	const out: string[] = []
	const lines: Ranges = []
	let used = 0
	let at = offset - 1
	for (; at < Math.min(total, offset - 1 + limit); at++) {
		const line = all[at]!
		const clipped = line.length > lineMax
		const head = cutWords(line, lineMax)
		const shown = clipped
			? `${head}[… ${(line.length - head.length).toLocaleString('en')} more characters of this line; grep shows the part around a match]`
			: line
		const row = `${at + 1}\t${shown}`
		if (out.length > 0 && used + row.length + 1 > budget) break
		used += row.length + 1
		out.push(row)
		if (!clipped) {
			const last = lines.at(-1)
			if (last && last[1] === at) last[1] = at + 1
			else lines.push([at, at + 1])
		}
	}
	return { body: out.join('\n'), from: offset, to: at, total, lines }
}

/** Characters a page may have: what the gate passes on without cutting, less what is said around it. */
const budgetOf = (limits: ViewLimits): number => Math.max(500, Math.min(limits.readBytes, limits.resultChars) - 700)

/**
 * Reads and shows a file; a picture as such, unless `noImages` says why the model takes none. ToolError for what cannot be
 * shown: a folder (with its entries), damaged pictures and those of other kinds, binaries, devices.
 */
export const viewFile = async (
	files: Files,
	resolved: ResolvedPath,
	range: { offset?: number; limit?: number },
	limits: ViewLimits,
	noImages?: string,
): Promise<View> => {
	const shown = shownPath(resolved.shown)
	const file = await files.read(resolved.path).catch(async (error) => {
		throw (await folderError(resolved)) ?? error
	})
	if (file.path !== resolved.path)
		throw new ToolError(`${shown} was moved or replaced by a link meanwhile. Nothing was read.`)
	const kind = kindOf(file.bytes)
	const base = { path: file.path, hash: file.hash, kind: kind.kind }
	if (kind.kind === 'empty') return { ...base, text: '[the file is empty]', lines: [], total: 0, truncated: false }
	if (kind.kind === 'image') {
		const image = await imageOf(file.bytes, shown)
		if (noImages !== undefined)
			throw new ToolError(`${shown} is a ${kind.label}, ${sizeInWords(file.bytes.length)}. ${noImages}`)
		return { ...base, text: imageLine(image.label), lines: [], total: 0, truncated: false, images: [image] }
	}
	if (kind.kind === 'pdf')
		throw new ToolError(
			`${shown} is a PDF document, ${sizeInWords(file.bytes.length)}. Get its text with bash (pdftotext), where that is installed.`,
		)
	if (kind.kind === 'binary' && !looksLatin(file.bytes)) {
		const hint = kind.label.endsWith('image')
			? `Of images, only ${imageKinds} can be shown.`
			: 'Look at it with bash (file, xxd, strings).'
		throw new ToolError(`${shown} is not text: ${kind.label}, ${sizeInWords(file.bytes.length)}. ${hint}`)
	}
	const notes: string[] = []
	const pictures: { line: string; image: Image }[] = []
	const text =
		kind.kind === 'notebook'
			? await notebookText(Buffer.from(file.bytes).toString('utf8'), shown, noImages, pictures)
			: textOf(file.bytes, kind.kind, shown, notes)
	if (file.unsaved)
		notes.push("this is the unsaved text of the user's editor, not what is on the disk: no edit until it is saved")
	const { offset = 1, limit = limits.readLines } = range
	const part = page(text, offset, Math.min(limit, limits.readLines), budgetOf(limits))
	if (offset > part.total)
		throw new ToolError(
			`${shown} has ${part.total} line${part.total === 1 ? '' : 's'}; offset ${offset} is behind its end.`,
		)
	const more = part.to < part.total
	if (kind.kind === 'notebook') notes.push('notebook shown as text; edit_file works on the source of one cell')
	const onPage = new Set(pictures.length > 0 ? part.body.split('\n').map((row) => row.replace(/^\d+\t/, '')) : [])
	const images = pictures.flatMap(({ line, image }) => (onPage.has(line) ? [image] : []))
	const whole = part.from === 1 && !more
	const foot = whole
		? `lines 1-${part.total} of ${part.total}: the whole file`
		: `lines ${part.from}-${part.to} of ${part.total}${more ? `; go on with offset ${part.to + 1}` : '; this is the end'}`
	return {
		...base,
		text: `${part.body}\n[${[foot, ...notes].join('; ')}]`,
		// A rendering is not the file's own lines: seen as a whole or not at all.
		lines: part.lines,
		total: part.total,
		truncated: !whole,
		...(images.length > 0 && { images }),
	}
}

/** So many pictures of one notebook are shown; the rest are named with their size. */
const maxPictures = 8

/** A notebook's text; the pictures of its outputs that can be shown are added to `pictures`, each with its line in the text. */
const notebookText = async (
	json: string,
	shown: string,
	noImages: string | undefined,
	pictures: { line: string; image: Image }[],
): Promise<string> => {
	if (noImages !== undefined) return renderNotebook(json)
	const lines: (string | undefined)[] = []
	for (const [at, { cell, data, plain }] of notebookPictures(json).entries()) {
		if (pictures.length >= maxPictures) break
		const image = await imageFromBase64(data, `${shown} cell ${cell} picture ${at + 1}`)
		const line = 'refused' in image ? `[${plain}: ${image.refused}]` : imageLine(image.label)
		lines.push(line)
		if (!('refused' in image)) pictures.push({ line, image })
	}
	let next = 0
	return renderNotebook(json, () => lines[next++])
}

const textOf = (bytes: Uint8Array, kind: FileKind, shown: string, notes: string[]): string => {
	if (kind === 'binary') {
		notes.push('not UTF-8: bytes above 7F are shown as Latin-1; edit_file and write_file refuse this file')
		return splitEnds(Buffer.from(bytes).toString('latin1')).text
	}
	const [first, second] = bytes
	const wide = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
	let whole: string
	try {
		const decoder = new TextDecoder(wide ? (first === 0xff ? 'utf-16le' : 'utf-16be') : 'utf-8', { fatal: true })
		whole = decoder.decode(bytes)
	} catch {
		throw new ToolError(
			`${shown} begins like UTF-16 text but is not valid UTF-16, ${sizeInWords(bytes.length)}. Look at it with bash (xxd, iconv).`,
		)
	}
	if (wide) notes.push('UTF-16, kept by edits')
	const { text, ends, usual } = splitEnds(whole)
	const windows = ends.filter((end) => end === '\r\n').length
	if (windows > 0)
		notes.push(
			windows === ends.length
				? 'line ends CRLF, kept by edits'
				: `line ends mixed: ${windows} of ${ends.length} CRLF, kept by edits`,
		)
	else if (usual === '\r') notes.push('line ends CR, kept by edits')
	const nuls = text.split('\0').length - 1
	if (nuls > 0) notes.push(`${nuls} NUL character${nuls > 1 ? 's' : ''}, shown as ␀`)
	else if (hasHidden(text)) notes.push('holds hidden or control characters')
	if (!text.endsWith('\n')) notes.push('no newline at the end')
	return text
}

const folderError = async (resolved: ResolvedPath): Promise<ToolError | null> => {
	if (resolved.sensitive) return null
	try {
		const { text, count } = await viewFolder(resolved)
		return new ToolError(
			`${shownPath(resolved.shown)} is a folder with ${count} entr${count === 1 ? 'y' : 'ies'}:\n${text}`,
		)
	} catch {
		return null
	}
}

/** A folder's entries, one a line, capped at 200. ToolError when it is no folder or off limits. */
export const viewFolder = async (resolved: ResolvedPath): Promise<{ text: string; count: number }> => {
	if (resolved.sensitive)
		throw new ToolError(`${shownPath(resolved.shown)} is off limits for the file tools: ${resolved.sensitive}.`)
	try {
		const names = await listFolder(resolved.path, await wayHere())
		const head = names.slice(0, 200).map(shownPath)
		return {
			text: [...head, ...(names.length > 200 ? [`[… ${names.length - 200} more]`] : [])].join('\n'),
			count: names.length,
		}
	} catch (error) {
		throw inWords(error, resolved.shown)
	}
}
