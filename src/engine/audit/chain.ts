// Lines of the audit log: how one is written, what its hash covers, and how a file is read line by line. Under log and verify.
import { createHash } from 'node:crypto'
import { constants, promises as fs } from 'node:fs'
import type { AuditEntry } from '../ports.ts'

export type Handle = Awaited<ReturnType<typeof fs.open>>

/** A place in a session's chain: after `lines` lines the last hash was `hash`. */
export interface Head {
	session: string
	lines: number
	hash: string
	/** ISO 8601, UTC. */
	time: string
}

export interface AuditLine extends AuditEntry {
	n: number
	time: string
	session: string
	/** The hash of the line before; of the first line, `genesis(session)`. */
	prev: string
	/** How many texts or parts were shortened to fit. */
	cut?: number
	hash: string
}

export const maxLine = 1 << 20

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

/** What the first line of a session's log points back to: a log of another session does not begin the same way. */
export const genesis = (session: string): string => sha256(`garuda audit 1 ${session}`)

// Only ASCII in the file: no line break but \n for any reader, nothing that a terminal would act on, no encoding to argue about.
const ascii = (json: string): string =>
	json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const order = 'n time session prev kind callId tool input decision reason rule key status detail cut'.split(' ')

const sorted = (value: unknown): unknown => {
	if (Array.isArray(value)) return value.map(sorted)
	if (typeof value !== 'object' || value === null) return value
	return Object.fromEntries(
		Object.entries(value)
			.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
			.map(([name, one]) => [name, sorted(one)]),
	)
}

/**
 * The one way to write a line without its hash: members in a fixed order (unknown ones after, by name), those inside
 * them by name, no blanks, ASCII. The same value always gives the same bytes.
 */
export function canonical(line: object): string {
	const own = new Map(Object.entries(line).filter(([name, value]) => name !== 'hash' && value !== undefined))
	const names = [
		...order.filter((name) => own.has(name)),
		...[...own.keys()].filter((name) => !order.includes(name)).sort(),
	]
	return ascii(`{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(sorted(own.get(name)))}`).join(',')}}`)
}

/** The line as it stands in the file, without its newline, and its hash: sha256 of the canonical text. */
export function seal(line: Omit<AuditLine, 'hash'>): { text: string; hash: string } {
	const body = canonical(line)
	const hash = sha256(body)
	return { text: `${body.slice(0, -1)},"hash":"${hash}"}`, hash }
}

const sealed = /^(\{.*),"hash":"([0-9a-f]{64})"\}$/s
const hex = /^[0-9a-f]{64}$/

export interface ReadLine {
	line: AuditLine
	/** What the hash should be. */
	computed: string
	/** False when the bytes are not how this value is written (blanks, doubled names): then no reader is sure what they say. */
	written: boolean
}

/** A line's parts; null when it is none. Whether the hash is right is for the caller: `line.hash === computed`. */
export function readLine(text: string): ReadLine | null {
	const match = sealed.exec(text)
	if (!match) return null
	const body = `${match[1]}}`
	let line: AuditLine
	try {
		line = JSON.parse(text) as AuditLine
	} catch {
		return null
	}
	if (
		typeof line.n !== 'number' ||
		!Number.isSafeInteger(line.n) ||
		typeof line.time !== 'string' ||
		typeof line.session !== 'string' ||
		typeof line.prev !== 'string' ||
		!hex.test(line.prev) ||
		typeof line.kind !== 'string'
	)
		return null
	line.hash = match[2]!
	return { line, computed: sha256(body), written: isCanonical(line, body) }
}

/** What is nested beyond the stack was never written by Garuda. */
function isCanonical(line: AuditLine, body: string): boolean {
	try {
		return canonical(line) === body
	} catch {
		return false
	}
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants

/** Opens a file of the log for reading: no link, regular only. Throws the system's error; EINVAL for anything else but a file. */
export async function openPlain(path: string): Promise<Handle> {
	const handle = await fs.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
	const stat = await handle.stat()
	if (stat.isFile()) return handle
	await handle.close()
	throw Object.assign(new Error('no regular file'), { code: 'EINVAL' })
}

/** One line of a file. `whole` false: the last bytes, with no newline after them. */
export interface RawLine {
	bytes: Buffer
	whole: boolean
	/** Longer than a line may be: `bytes` is its beginning only. */
	long: boolean
}

/** The lines from the start, in bounded memory. */
export async function* rawLines(handle: Handle): AsyncGenerator<RawLine> {
	const chunk = Buffer.allocUnsafe(256 << 10)
	let rest: Buffer[] = []
	let length = 0
	let long = false
	const take = (part: Buffer) => {
		if (length + part.length > maxLine) long = true
		else rest.push(Buffer.from(part))
		length += part.length
	}
	for (let at = 0; ; ) {
		const { bytesRead } = await handle.read(chunk, 0, chunk.length, at)
		if (bytesRead === 0) break
		at += bytesRead
		const read = chunk.subarray(0, bytesRead)
		let from = 0
		for (let end = read.indexOf(10); end >= 0; end = read.indexOf(10, from)) {
			take(read.subarray(from, end))
			yield { bytes: Buffer.concat(rest), whole: true, long }
			rest = []
			length = 0
			long = false
			from = end + 1
		}
		if (from < bytesRead) take(read.subarray(from))
	}
	if (length > 0) yield { bytes: Buffer.concat(rest), whole: false, long }
}

/** A head in a checkpoint, a witness file or a commit's message. */
export const headText = ({ session, lines, hash, time }: Head): string =>
	ascii(JSON.stringify({ time, session, lines, hash }))

export function readHead(text: string): Head | null {
	try {
		const { session, lines, hash, time } = JSON.parse(text) as Partial<Head>
		if (typeof session !== 'string' || typeof hash !== 'string' || !hex.test(hash)) return null
		if (typeof lines !== 'number' || !Number.isSafeInteger(lines) || lines < 0) return null
		return { session, lines, hash, time: typeof time === 'string' ? time : '' }
	} catch {
		return null
	}
}
