// Lines of a journal: a record made safe to write, and a line from a file checked before anything believes it.
import { imageLine, soundImage } from '../files/image.ts'
import type { SessionHeader, SessionRecord } from '../ports.ts'

/** Stands in `records` where a line could not be read, so that what needs every line (undo) knows that one is missing. */
export interface Damaged {
	type: 'damaged'
	/** 1-based. */
	line: number
	reason: string
}

/** The longest line that is read; what is written stays far below, since long texts lie beside the journal. */
export const maxLine = 8 << 20
/** Texts longer than this (UTF-16 units) are stored beside the journal. */
export const maxText = 256 << 10

type Obj = Record<string, unknown>
const isObj = (value: unknown): value is Obj => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const statuses = new Set(['ok', 'failed', 'denied', 'cancelled'])

function validBlock(block: unknown): boolean {
	if (!isObj(block)) return false
	switch (block.type) {
		case 'text':
			return isText(block.text)
		case 'thinking':
			return isText(block.text) && isText(block.provider) && isText(block.model)
		case 'tool_call':
			return (
				isText(block.id) &&
				isText(block.name) &&
				isObj(block.input) &&
				(block.badInput === undefined || isText(block.badInput))
			)
		case 'tool_result':
			return (
				isText(block.callId) &&
				isText(block.text) &&
				statuses.has(block.status as string) &&
				(block.images === undefined || Array.isArray(block.images))
			)
		case 'image':
			return true
		case 'opaque':
			return isText(block.provider)
		default:
			return false
	}
}

const validMessage = (message: unknown): boolean =>
	isObj(message) &&
	(message.role === 'user' || message.role === 'assistant') &&
	Array.isArray(message.blocks) &&
	message.blocks.every(validBlock)

const from = (role: string, message: unknown): boolean => validMessage(message) && (message as Obj).role === role

const shapes: Record<string, (record: Obj) => boolean> = {
	start: (r) =>
		isText(r.id) &&
		isText(r.root) &&
		isNumber(r.created) &&
		isText(r.system) &&
		Array.isArray(r.tools) &&
		isText(r.model) &&
		isText(r.origin) &&
		isText(r.garuda),
	resume: (r) => isText(r.model),
	user: (r) => from('user', r.message) && isText(r.prompt),
	assistant: (r) => from('assistant', r.message) && isText(r.model) && isText(r.stop),
	results: (r) => from('user', r.message),
	decision: (r) => isText(r.tool) && isText(r.decision) && isText(r.reason) && isText(r.key),
	model: (r) => isText(r.model) && (r.effort === undefined || isText(r.effort)),
	mode: (r) => r.mode === 'build' || r.mode === 'plan',
	title: (r) => isText(r.title),
	compaction: (r) => Array.isArray(r.messages) && r.messages.every(validMessage),
	snapshot: (r) => isNumber(r.turn) && (r.id === null || isText(r.id)),
	undo: (r) => isNumber(r.turn),
	redo: (r) => isNumber(r.turn),
	notice: (r) => isText(r.text),
	end: (r) => isNumber(r.turn) && isText(r.reason),
}

/** A line as a record, or why it is none. Records of kinds that this version does not know pass as they are. */
export function parseLine(line: string): SessionRecord | { bad: string } {
	let value: unknown
	try {
		value = JSON.parse(line)
	} catch {
		return { bad: line.includes('\0') ? 'holds NUL bytes' : 'is no JSON' }
	}
	if (!isObj(value) || !isText(value.type)) return { bad: 'is no record' }
	if (value.type === 'damaged') return { bad: 'is no record' }
	const shape = Object.hasOwn(shapes, value.type) ? shapes[value.type] : undefined
	if (shape && !(shape(value) && (value.type === 'start' || isNumber(value.time))))
		return { bad: `is no whole "${value.type}" record` }
	if (mayHoldImages.test(line)) for (const message of messagesOf(value)) wholeImages(message)
	return value as SessionRecord
}

const mayHoldImages = /"type":"image"|"images":\[/

/** The messages that a record holds; none for a record that holds none. */
const messagesOf = (record: Obj): { blocks: Obj[] }[] =>
	[record.message, ...(Array.isArray(record.messages) ? record.messages : [])].filter(validMessage) as {
		blocks: Obj[]
	}[]

const lost = 'It is missing or damaged in the stored session.'

/** Pictures that cannot be read any more become their label: the words around them stay, and the session stays sendable. */
function wholeImages(message: { blocks: Obj[] }): void {
	message.blocks = message.blocks.map((block) => {
		if (block.type === 'image' && !soundImage(block)) return { type: 'text', text: imageLine(block.label, lost) }
		if (block.type !== 'tool_result' || !Array.isArray(block.images)) return block
		const { images, ...rest } = block
		const broken = block.images.filter((one) => !soundImage(one))
		if (broken.length === 0) return block
		const whole = block.images.filter((one) => soundImage(one))
		const lines = broken.map((one) => imageLine(isObj(one) ? one.label : undefined, lost))
		return { ...rest, text: [rest.text, ...lines].join('\n'), ...(whole.length > 0 ? { images: whole } : {}) }
	})
}

/** The header out of the first record, or null. */
export const headerOf = (record: SessionRecord | Damaged | undefined): SessionHeader | null => {
	if (record?.type !== 'start') return null
	const { type: _, ...header } = record
	return header
}

/**
 * A copy of a record with every string redacted. A provider's raw block that redaction would change is left out: it
 * only has worth unchanged. The base64 of a picture in a message is kept as it is when the picture is sound: a text that
 * stands in a picture's place, or anywhere else, is redacted.
 */
export function scrub(record: SessionRecord, redact: (text: string) => string): SessionRecord {
	let changes = 0
	const pictures = new Set<unknown>(
		messagesOf(record as unknown as Obj)
			.flatMap(({ blocks }) => blocks.flatMap((block) => (block.type === 'image' ? block : (block.images ?? []))))
			.filter((one) => soundImage(one)),
	)
	const text = (value: string): string => {
		const clean = redact(value)
		if (clean !== value) changes++
		return clean
	}
	const walk = (value: unknown): unknown => {
		if (typeof value === 'string') return text(value)
		if (Array.isArray(value)) return value.map(walk).filter((item) => item !== undefined)
		if (!isObj(value)) return value
		const before = changes
		const copy: Obj = {}
		for (const [key, item] of Object.entries(value)) {
			if (item === undefined) continue
			const name = key.length < 8 ? key : text(key)
			const here = changes
			const walked = name === 'data' && pictures.has(value) ? item : walk(item)
			if (name === 'raw' && changes !== here) {
				if (value.type === 'thinking' || value.type === 'opaque') return undefined
				continue
			}
			// `__proto__` from a model's arguments must stay a plain key.
			if (name === '__proto__')
				Object.defineProperty(copy, name, { value: walked, enumerable: true, configurable: true, writable: true })
			else copy[name] = walked
		}
		// The signature of thinking is bound to its words.
		return value.type === 'thinking' && changes !== before ? undefined : copy
	}
	return walk(record) as SessionRecord
}

const lineBreaks = /[\u0085\u2028\u2029]/g

/** One line with its newline; nothing in it splits a line for any reader. `type` comes first, long parts of a header last. */
export function toLine(record: SessionRecord): string {
	let ordered: Obj = record as unknown as Obj
	if (record.type === 'start') {
		const { system, tools, ...rest } = record
		ordered = { ...rest, system, tools }
	}
	const { type, ...rest } = ordered
	const json = JSON.stringify({ type, ...rest })
	return `${json.replace(lineBreaks, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

// ---------------------------------------------------------------- texts stored beside the journal

interface Stored {
	$stored: string
	chars: number
}

const isStored = (value: unknown): value is Stored =>
	isObj(value) &&
	Object.keys(value).length === 2 &&
	isText(value.$stored) &&
	/^[0-9a-f]{64}$/.test(value.$stored) &&
	isNumber(value.chars)

/** The record with each text longer than `limit` replaced by what `put` names it. */
export function moveLong(record: SessionRecord, limit: number, put: (text: string) => string): SessionRecord {
	const walk = (value: unknown): unknown => {
		if (typeof value === 'string')
			return value.length > limit ? ({ $stored: put(value), chars: value.length } satisfies Stored) : value
		if (Array.isArray(value)) return value.map(walk)
		if (!isObj(value)) return value
		return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item)]))
	}
	return walk(record) as SessionRecord
}

export const mayHoldStored = (line: string): boolean => line.includes('{"$stored":"')

/** The line with its stored texts put back; one that is missing or changed leaves a note and is named through `problem`. */
export async function fetchLong(
	line: string,
	get: (name: string) => Promise<string | null>,
	problem: () => void,
): Promise<string> {
	const walk = async (value: unknown): Promise<unknown> => {
		if (isStored(value)) {
			const text = await get(value.$stored)
			if (text !== null) return text
			problem()
			return `[left out: a text of ${value.chars} characters that was stored beside the session is missing]`
		}
		if (Array.isArray(value)) return Promise.all(value.map(walk))
		if (!isObj(value)) return value
		return Object.fromEntries(
			await Promise.all(Object.entries(value).map(async ([key, item]) => [key, await walk(item)])),
		)
	}
	try {
		return JSON.stringify(await walk(JSON.parse(line)))
	} catch {
		return line
	}
}
