// Reading a journal: line by line in bounded memory, whatever its bytes are. Between the folder and the store.
import { createHash } from 'node:crypto'
import { constants, promises as fs } from 'node:fs'
import { codeOf, UserError } from '../errors.ts'
import type { Folder } from '../files/open.ts'
import { ownUid } from '../own-uid.ts'
import type { SessionHeader, SessionRecord } from '../ports.ts'
import { type Damaged, fetchLong, headerOf, maxLine, mayHoldStored, parseLine } from './records.ts'

type Handle = Awaited<ReturnType<typeof fs.open>>
const { O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants

export const journalName = (id: string): string => `${id}.jsonl`
/** The folder of texts too long for a line. */
export const storeName = (id: string): string => `${id}.d`

export interface JournalFile {
	handle: Handle
	size: number
	/** Why the file itself (owner, mode, second names) is not one that Garuda wrote for this user, or null. */
	foreign: string | null
}

/** Opens a journal; null when there is none. A link or anything but a regular file is a UserError. */
export async function openJournal(folder: Folder, id: string, write: boolean): Promise<JournalFile | null> {
	const shown = `${folder.path}/${journalName(id)}`
	let handle: Handle
	try {
		handle = await fs.open(folder.at(journalName(id)), (write ? O_RDWR | O_APPEND : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK)
	} catch (error) {
		const code = codeOf(error)
		if (code === 'ENOENT') return null
		if (code === 'ELOOP' || code === 'EMLINK')
			throw new UserError(`${shown} is a link, and a session is never read through one.`, 'Remove the link.')
		if (code === 'EISDIR' || code === 'ENXIO') throw new UserError(`${shown} is no regular file.`, 'Move it away.')
		throw new UserError(`${shown} cannot be opened (${code ?? 'unknown error'}).`, 'Check its owner and mode.')
	}
	try {
		const stat = await handle.stat()
		if (!stat.isFile()) throw new UserError(`${shown} is no regular file.`, 'Move it away.')
		const uid = await ownUid()
		const foreign =
			uid !== null && stat.uid !== uid
				? `it belongs to another user (uid ${stat.uid})`
				: stat.mode & 0o077
					? `it is open to others (mode ${(stat.mode & 0o777).toString(8)}), as files from a repository or an archive are`
					: stat.nlink !== 1
						? 'it has a second name (a hard link)'
						: null
		return { handle, size: stat.size, foreign }
	} catch (error) {
		await handle.close()
		throw error
	}
}

export interface Journal {
	header: SessionHeader
	/** Everything from the header's record on; `damaged` stands for each line that was skipped. */
	records: (SessionRecord | Damaged)[]
	problems: string[]
	/** Bytes up to the end of the last whole line. */
	whole: number
	/** The last record is whole but its newline is missing. */
	open: boolean
}

const chunkSize = 1 << 20

/** Reads all of it. UserError when the first line is no header, or one of a later version. */
export async function readJournal(folder: Folder, id: string, handle: Handle): Promise<Journal> {
	const records: (SessionRecord | Damaged)[] = []
	const skipped: string[] = []
	const problems: string[] = []
	const get = (name: string) => readStored(folder, id, name)
	let number = 0
	let missing = 0
	let last = ''

	/** False: not a record. */
	function take(bytes: Buffer | null, final: boolean): boolean | Promise<boolean> {
		number++
		if (!bytes) return bad(`is longer than ${maxLine >> 20} MiB`, final)
		const text = bytes.toString('utf8')
		if (text.trim() === '') return true
		if (text === last) {
			skipped.push(`line ${number} is the same as the line before it`)
			return true
		}
		last = text.length < 1 << 16 ? text : ''
		// Most lines are read without a wait: a large session has a hundred thousand of them.
		if (!mayHoldStored(text)) return accept(text, final)
		return fetchLong(text, get, () => missing++).then((whole) => accept(whole, final))
	}
	function accept(text: string, final: boolean): boolean {
		const record = parseLine(text)
		if ('bad' in record) return bad(record.bad, final)
		if (record.type === 'start' && records.length > 0) return bad('begins another session', final)
		records.push(record)
		return true
	}
	function bad(reason: string, final: boolean): false {
		if (!final) {
			skipped.push(`line ${number} ${reason}`)
			records.push({ type: 'damaged', line: number, reason })
		}
		return false
	}

	let position = 0
	let whole = 0
	let parts: Buffer[] = []
	let length = 0
	for (;;) {
		const chunk = Buffer.allocUnsafe(chunkSize)
		const { bytesRead } = await handle.read(chunk, 0, chunkSize, position)
		if (bytesRead === 0) break
		const bytes = chunk.subarray(0, bytesRead)
		let start = 0
		for (;;) {
			const end = bytes.indexOf(10, start)
			const part = bytes.subarray(start, end === -1 ? bytesRead : end)
			length += part.length
			// What is longer than any record is counted, not kept.
			if (length > maxLine) parts = []
			else if (part.length > 0) parts.push(part)
			if (end === -1) break
			const taken = take(length > maxLine ? null : parts.length === 1 ? parts[0]! : Buffer.concat(parts), false)
			if (typeof taken !== 'boolean') await taken
			parts = []
			length = 0
			start = end + 1
			whole = position + start
		}
		position += bytesRead
	}
	let open = false
	if (length > 0) {
		// No newline: the process was killed in the middle of a line, or right before its end.
		open = await take(length > maxLine ? null : Buffer.concat(parts), true)
		if (!open) problems.push(`The last record was cut off by a crash (${length} bytes); everything before it is there.`)
	}

	const header = headerOf(records[0])
	const shown = `${folder.path}/${journalName(id)}`
	if (!header)
		throw new UserError(
			`${shown} has no readable first line, so it cannot be resumed.`,
			'The file was left as it is; it is text, one record a line. Start a new session to go on.',
		)
	if (header.version !== 1)
		throw new UserError(
			`${shown} was written by a later version of Garuda (${String(header.garuda).slice(0, 40)}).`,
			'Update Garuda to resume it.',
		)
	if (header.id !== id)
		throw new UserError(
			`${shown} holds a session of another name.`,
			'The file was copied or renamed: give it its own name back.',
		)
	if (skipped.length > 0) {
		const more = skipped.length > 5 ? ` and ${skipped.length - 5} more` : ''
		problems.push(`Skipped in the session's file: ${skipped.slice(0, 5).join(', ')}${more}.`)
	}
	if (missing > 0) problems.push(`${missing} long text(s) stored beside the session are missing or changed.`)
	return { header, records, problems, whole, open }
}

/** A text stored beside the journal; null when missing, too long, or not the one that was stored. */
async function readStored(folder: Folder, id: string, name: string): Promise<string | null> {
	let dir: Handle | undefined
	try {
		const path = folder.at(storeName(id))
		if (!(await fs.lstat(path)).isDirectory()) return null
		dir = await fs.open(`${path}/${name}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
		const stat = await dir.stat()
		if (!stat.isFile() || stat.size > 256 << 20) return null
		const bytes = await dir.readFile()
		if (createHash('sha256').update(bytes).digest('hex') !== name) return null
		const text: unknown = JSON.parse(bytes.toString('utf8'))
		return typeof text === 'string' ? text : null
	} catch {
		return null
	} finally {
		await dir?.close()
	}
}
