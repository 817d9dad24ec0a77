// The one writer of a session: whole lines, in order, kept in memory while the disk refuses them. Under the store.
import { createHash } from 'node:crypto'
import { constants, promises as fs, writeSync } from 'node:fs'
import { codeOf, messageOf } from '../errors.ts'
import { replaceIn } from '../files/atomic.ts'
import type { Folder } from '../files/open.ts'
import type { SessionRecord, SessionWriter } from '../ports.ts'
import { journalName, storeName } from './journal-file.ts'
import { maxText, moveLong, scrub, toLine } from './records.ts'

type Handle = Awaited<ReturnType<typeof fs.open>>
const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants
const longLine = 4 << 20
/** Bytes of a line that is written without a wait. */
const atOnce = 256 << 10

export interface JournalWriter extends SessionWriter {
	/** Records that are not in the file (a full disk); 0 when all is well. */
	readonly unsaved: number
}

export interface WriterOptions {
	id: string
	/** Null: there is no place to write to; everything stays in memory. */
	folder: Folder | null
	/** An open journal to go on with, and its size; absent: it is made with the first prompt. */
	file?: { handle: Handle; size: number }
	/** Written before anything else. */
	header?: SessionRecord
	redact(text: string): string
	/** A first problem, reported as soon as somebody listens. */
	problem?: string
	/** The file exists now, or the session has a new title. */
	changed(change: { title?: string; prompt?: string }): void
	/** Releases the lock and the folder. */
	release(): Promise<void>
}

/** Records that say nothing without a prompt: a session that never got one leaves no file. */
const quiet = new Set(['start', 'resume', 'model', 'mode', 'title', 'notice', 'snapshot'])

export function createWriter(o: WriterOptions): JournalWriter {
	const pending: SessionRecord[] = o.header ? [scrub(o.header, o.redact)] : []
	let handle = o.file?.handle ?? null
	let size = o.file?.size ?? 0
	let begun = o.file !== undefined
	let torn = false
	let dirty = false
	let lost = false
	let closed = false
	let queue: Promise<void> = Promise.resolve()
	let listener: ((text: string) => void) | undefined
	let waiting = o.problem
	let failing = o.problem !== undefined

	const report = (text: string): void => {
		if (listener) listener(text)
		else waiting = text
	}

	async function write(record: SessionRecord): Promise<void> {
		if (!o.folder) throw new Error('there is no folder for it')
		let line = toLine(record)
		for (const limit of [maxText, 4096]) {
			if (line.length <= (limit === maxText ? maxText : longLine)) break
			const texts = new Map<string, Buffer>()
			const short = moveLong(record, limit, (text) => {
				const bytes = Buffer.from(JSON.stringify(text))
				const name = createHash('sha256').update(bytes).digest('hex')
				texts.set(name, bytes)
				return name
			})
			for (const [name, bytes] of texts) await putBeside(o.folder, o.id, name, bytes)
			line = toLine(short)
		}
		handle ??= await fs.open(o.folder.at(journalName(o.id)), O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_RDWR, 0o600)
		if (torn) {
			await handle.truncate(size)
			torn = false
		}
		const bytes = Buffer.from(line)
		try {
			// Short lines at once: a step writes several, and each promise of the file system costs a step's worth of work.
			for (let done = 0; done < bytes.length; )
				done +=
					bytes.length <= atOnce
						? writeSync(handle.fd, bytes, done, bytes.length - done)
						: (await handle.write(bytes, done, bytes.length - done)).bytesWritten
		} catch (error) {
			// Part of the line may be there: it goes, so that the file ends with a whole record.
			torn = true
			await handle.truncate(size).then(
				() => {
					torn = false
				},
				() => {},
			)
			throw error
		}
		size += bytes.length
		dirty = true
	}

	async function flush(): Promise<void> {
		while (pending.length > 0) {
			const record = pending[0]!
			try {
				await write(record)
			} catch (error) {
				if (!failing)
					report(
						`The session cannot be saved (${codeOf(error) ?? messageOf(error)}): ${reasonOf(codeOf(error))}. It goes on in memory, and each further step tries again.`,
					)
				failing = true
				return
			}
			pending.shift()
			failing = false
			if (record.type === 'title') o.changed({ title: record.title })
			if (record.type === 'user' && record.prompt !== '') o.changed({ prompt: record.prompt })
			if (record.type === 'end') await gone()
		}
	}

	/** A file that lost its name is written to in vain: worth a word, once. */
	async function gone(): Promise<void> {
		const stat = await handle?.stat().catch(() => null)
		if (stat && stat.nlink === 0 && !lost) {
			lost = true
			report("The session's file was deleted while it was open: this session cannot be resumed later.")
		}
	}

	const sync = async (): Promise<void> => {
		if (!dirty || !handle) return
		dirty = false
		await handle.datasync().catch(() => {})
	}

	const enqueue = (job: () => Promise<void>): Promise<void> => {
		queue = queue.then(job, job)
		return queue
	}

	return {
		id: o.id,
		get unsaved() {
			return begun ? pending.length : 0
		},
		append(record) {
			if (closed) {
				report('A record came after the session was closed; it is not saved.')
				return Promise.resolve()
			}
			const clean = scrub(record, o.redact)
			const done = enqueue(async () => {
				pending.push(clean)
				if (!quiet.has(clean.type)) begun = true
				if (begun) await flush()
			})
			// Not waited for: a crash of the machine, not of the process, is what this is against.
			if (clean.type === 'end') void enqueue(sync)
			return done
		},
		onProblem(given) {
			listener = given
			if (waiting !== undefined) given(waiting)
			waiting = undefined
		},
		async close() {
			if (closed) return queue
			closed = true
			await enqueue(async () => {
				if (begun && pending.length > 0) {
					failing = true
					await flush()
					if (pending.length > 0)
						report(`${pending.length} record(s) of this session could not be saved; resuming it goes on from what was.`)
				}
				await sync()
				await handle?.close().catch(() => {})
				handle = null
				await o.release()
			})
		},
	}
}

const reasonOf = (code: string | undefined): string =>
	code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
		? 'the disk or the quota is full'
		: 'its folder does not take it'

async function putBeside(folder: Folder, id: string, name: string, bytes: Buffer): Promise<void> {
	const dir = folder.at(storeName(id))
	await fs
		.mkdir(dir, { mode: 0o700 })
		.catch((error) => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
	// Only a folder: through a link the text would land elsewhere.
	if (!(await fs.lstat(dir)).isDirectory()) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' })
	const there = await fs.lstat(`${dir}/${name}`).catch(() => null)
	if (there?.isFile() && there.size === bytes.length) return
	await replaceIn({ at: (part) => `${dir}/${part}` }, name, bytes, { mode: 0o600 })
}
