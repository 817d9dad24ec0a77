// JSON files that people write, read with care: settings, models and credentials pass here on their way in.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { codeOf, UserError } from '../errors.ts'
import { oneLine } from '../text.ts'
import { brokenAt, deepAt, lineColumn, twiceAt } from './json-place.ts'

export interface JsonFile {
	file: string
	text: string
	value: unknown
	/** Exactly what was read and parsed: a consent is pinned to these. */
	bytes: Uint8Array
}

export interface ReadOptions {
	/** Refuse a link in the last part of the path. */
	noFollow?: boolean
	/** Called with the open handle before anything is read. */
	check?(handle: FileHandle): Promise<void>
}

const maxBytes = 1 << 20
/** Brackets within brackets; what is written by hand has a handful. */
const maxDepth = 100
const keep = 'The file was left as it is: mend it, or move it away to start without it.'

/**
 * The parsed file, or null when there is none. Anything else is a UserError that names file, line and column and never
 * quotes the text (it may be a key). Opens without blocking, so that a FIFO cannot hold the start.
 */
export async function readJsonFile(file: string, options: ReadOptions = {}): Promise<JsonFile | null> {
	let handle: FileHandle
	try {
		const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY
		handle = await open(file, flags | (options.noFollow ? constants.O_NOFOLLOW : 0))
	} catch (error) {
		const code = codeOf(error)
		if (code === 'ENOENT' || code === 'ENOTDIR') return null
		if (code === 'ELOOP' || code === 'EMLINK')
			throw new UserError(`${file} is a link, and no link is followed here.`, 'Put the file itself there.')
		if (code === 'ENXIO') throw new UserError(`${file} is no regular file.`, 'Put a JSON file there, or remove it.')
		throw new UserError(`${file} cannot be read (${code ?? 'unknown error'}).`, 'Check its owner and mode.')
	}
	try {
		const stat = await handle.stat()
		if (!stat.isFile()) throw new UserError(`${file} is no regular file.`, 'Put a JSON file there, or remove it.')
		await options.check?.(handle)
		if (stat.size > maxBytes) throw new UserError(`${file} is larger than 1 MiB.`, keep)
		const bytes = await handle.readFile()
		return parseJson(file, bytes)
	} finally {
		await handle.close()
	}
}

function parseJson(file: string, bytes: Uint8Array): JsonFile {
	let text: string
	try {
		text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch {
		throw new UserError(`${file} is not UTF-8.`, 'Save it as UTF-8 (without a byte order mark).')
	}
	if (text.startsWith('\ufeff'))
		throw new UserError(
			`${file}:1:1: starts with a byte order mark (BOM), which JSON does not allow.`,
			'Save it as UTF-8 without BOM.',
		)
	// Whoever checks or copies the value goes down by calls.
	const deep = deepAt(text, maxDepth)
	if (deep !== null)
		throw new UserError(`${file}:${lineColumn(text, deep)}: is nested more than ${maxDepth} levels deep`, keep)
	if (text.trim() === '') throw new UserError(`${file}:1:1: is empty.`, 'Write {} into it, or remove it.')
	let value: unknown
	try {
		value = JSON.parse(text)
	} catch {
		const { offset, why } = explain(text)
		throw new UserError(`${file}:${lineColumn(text, offset)}: ${why}`, keep)
	}
	// The last would count and the first be lost in silence: a deny list, a bound.
	const twice = twiceAt(text)
	if (twice)
		throw new UserError(
			`${file}:${lineColumn(text, twice.offset)}: ${oneLine(twice.name, 100)}: stands here a second time in one object`,
			keep,
		)
	return { file, text, value, bytes }
}

/** The place and kind of a mistake. V8's own message is not used: it quotes the text. */
function explain(text: string): { offset: number; why: string } {
	const offset = brokenAt(text)
	const here = text.slice(offset, offset + 2)
	if (here.startsWith('/') || here.startsWith('#')) return { offset, why: 'JSON has no comments; remove this one' }
	const before = text.slice(0, offset).trimEnd()
	if (/^[}\]]/.test(here) && before.endsWith(','))
		return { offset: before.length - 1, why: 'a comma too many before the end' }
	if (here.startsWith("'")) return { offset, why: 'JSON wants double quotes' }
	if (here === '')
		return { offset: text.trimEnd().length, why: 'the JSON ends too early: a bracket or quote is not closed' }
	return { offset, why: 'this is no valid JSON from here on' }
}

/** For checks of a file's values: the file is never changed or replaced by defaults. */
export const brokenFile = (message: string): never => {
	throw new UserError(message, keep)
}
