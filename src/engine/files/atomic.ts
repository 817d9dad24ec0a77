// A file is its old or its new content, never a piece: temp file in the target's folder, flushed, then renamed. And locks.
import { createHash, randomBytes } from 'node:crypto'
import { constants, promises as fs } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '../errors.ts'
import type { Folder } from './open.ts'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_WRONLY, O_RDONLY, O_DIRECTORY } = constants

/** Where a pid means what it means here: this machine, since its start, in this process space. Null where that cannot be told. */
export const writerSpace = async (): Promise<string | null> => {
	try {
		const [boot, pids] = await Promise.all([
			fs.readFile('/proc/sys/kernel/random/boot_id', 'latin1'),
			fs.readlink('/proc/self/ns/pid'),
		])
		return createHash('sha256').update(`${hostname()} ${boot} ${pids}`).digest('hex').slice(0, 8)
	} catch {
		return null
	}
}

/** Marks of 24 hex digits that tell who wrote something and where that can be looked at; each is another. */
export const writerMarks = async (): Promise<() => string> => {
	const [space, self] = await Promise.all([writerSpace(), fs.readlink('/proc/self').catch(() => '')])
	const pid = (Number.parseInt(self, 10) || 0).toString(16).padStart(8, '0')
	return () => `${space ?? '00000000'}${pid}${randomBytes(4).toString('hex')}`
}

/** A name beside another that tells its writer, so that files/leftovers.ts knows what a killed one left. */
export const tempName = (name: string, mark: string): string => `.${name.slice(0, 40)}.${mark}.garuda-tmp`

export interface ReplaceOptions {
	/** Permission bits; absent: what the umask leaves of rw for all. */
	mode?: number
	/** Owner to keep, where the system allows it. */
	owner?: { uid: number; gid: number }
	/** Called when the new content is on the disk, right before it takes the name; a throw leaves the target untouched. */
	before?(): Promise<void>
	/** The name must not exist: fails with EEXIST instead of replacing. */
	fresh?: boolean
}

/** New content that is on the disk and has no name yet. */
export interface Prepared {
	/** Gives it the name. The folder itself is not flushed. */
	place(): Promise<void>
	/** Removes it; nothing where it has its name. Never throws. */
	drop(): Promise<void>
}

/** The first half of `replaceIn`: the bytes, flushed, beside their name. Throws the system's error, leaving nothing. */
export const prepareIn = async (
	folder: Pick<Folder, 'at'>,
	name: string,
	bytes: Uint8Array,
	options: Omit<ReplaceOptions, 'before'> & { mark?: string } = {},
): Promise<Prepared> => {
	const temp = tempName(name, options.mark ?? (await writerMarks())())
	const drop = () => fs.unlink(folder.at(temp)).catch(() => {})
	const handle = await fs.open(
		folder.at(temp),
		O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY,
		options.mode === undefined ? 0o666 : 0o600,
	)
	try {
		try {
			await handle.writeFile(bytes)
			if (options.owner) {
				const made = await handle.stat()
				const { uid, gid } = options.owner
				// Not the owner's process: the file then belongs to who wrote it, as with every editor.
				if (made.uid !== uid || made.gid !== gid) await handle.chown(uid, gid).catch(() => {})
			}
			// After chown, which drops setuid and setgid.
			if (options.mode !== undefined) await handle.chmod(options.mode & 0o7777)
			await handle.sync()
		} finally {
			await handle.close()
		}
	} catch (error) {
		await drop()
		throw error
	}
	return {
		place: () => (options.fresh ? placeFresh(folder, temp, name) : fs.rename(folder.at(temp), folder.at(name))),
		drop,
	}
}

/** Puts bytes under a name of an open folder. No link is followed: a link of that name is replaced itself. */
export const replaceIn = async (
	folder: Pick<Folder, 'at'>,
	name: string,
	bytes: Uint8Array,
	options: ReplaceOptions = {},
): Promise<void> => {
	const prepared = await prepareIn(folder, name, bytes, options)
	try {
		await options.before?.()
		await prepared.place()
	} catch (error) {
		await prepared.drop()
		throw error
	}
	await syncFolder(folder)
}

/** link() fails when the name exists, rename() would not. Disks without hard links get a check and a rename. */
const placeFresh = async (folder: Pick<Folder, 'at'>, temp: string, name: string): Promise<void> => {
	try {
		await fs.link(folder.at(temp), folder.at(name))
	} catch (error) {
		if (codeOf(error) === 'EEXIST') throw error
		const there = await fs.lstat(folder.at(name)).then(
			() => true,
			() => false,
		)
		if (there) throw Object.assign(new Error('exists'), { code: 'EEXIST' })
		return fs.rename(folder.at(temp), folder.at(name))
	}
	await fs.unlink(folder.at(temp))
}

/** What took a name in it has it also after a power cut. Never throws. */
export const syncFolder = async (folder: Pick<Folder, 'at'>): Promise<void> => {
	try {
		const handle = await fs.open(`${dirname(folder.at('x'))}/.`, O_RDONLY | O_DIRECTORY)
		try {
			await handle.sync()
		} finally {
			await handle.close()
		}
	} catch {
		// Some disks cannot flush a folder; the content is flushed already.
	}
}

/**
 * Replaces a file of Garuda's own (JSON state) atomically. `mode` defaults to 0600. The folder must exist; a link in
 * the file's place is replaced, never followed. Throws the system's error; the old content then stays.
 */
export const writeAtomic = (path: string, bytes: Uint8Array | string, options: { mode?: number } = {}): Promise<void> =>
	replaceIn(
		{ at: (name) => join(dirname(path), name) },
		basename(path),
		typeof bytes === 'string' ? Buffer.from(bytes) : bytes,
		{
			mode: options.mode ?? 0o600,
		},
	)

// ---------------------------------------------------------------- locks

/** Who holds a lock. `start` tells a process from a later one with the same pid. */
export interface Holder {
	pid: number
	start: string
	host: string
	token: string
	since: number
}

export type Lock = { held: true; release(): Promise<void> } | { held: false; holder: Holder | null }

/** How processes are told apart; the default reads /proc. Elsewhere the caller gives its pid and a liveness test. */
export interface Processes {
	self(): Promise<{ pid: number; start: string }>
	/** null: cannot tell; the holder then counts as alive. */
	alive(pid: number, start: string): Promise<boolean | null>
}

const startOf = async (pid: number | 'self'): Promise<{ pid: number; start: string } | null> => {
	let stat: string
	try {
		stat = await fs.readFile(`/proc/${pid}/stat`, 'latin1')
	} catch (error) {
		return codeOf(error) === 'ENOENT' || codeOf(error) === 'ESRCH' ? null : Promise.reject(error)
	}
	// The name in parentheses may hold spaces and parentheses itself: count from the last one.
	const rest = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
	// A zombie holds nothing.
	if (rest[0] === 'Z' || rest[0] === 'X') return null
	return { pid: Number.parseInt(stat, 10), start: rest[19] ?? '' }
}

export const procProcesses: Processes = {
	self: async () => (await startOf('self').catch(() => null)) ?? { pid: 0, start: '' },
	alive: async (pid, start) => {
		try {
			if (!(await startOf('self'))) return null
			const found = await startOf(pid)
			return found !== null && (start === '' || found.start === start)
		} catch {
			return null
		}
	},
}

/**
 * Takes a lock file; `held` false names the living holder (null: unreadable). A dead holder's lock is taken over, by
 * one of several contenders only. Release removes it when it is still ours.
 */
export const lock = async (path: string, now: number, processes: Processes = procProcesses): Promise<Lock> => {
	const mine: Holder = {
		...(await processes.self()),
		host: hostname(),
		token: randomBytes(12).toString('hex'),
		since: now,
	}
	const text = JSON.stringify(mine)
	if (await create(path, text)) return heldLock(path, mine)
	const holder = await readHolder(path)
	if (holder === 'gone') return (await create(path, text)) ? heldLock(path, mine) : { held: false, holder: null }
	const dead = holder === null ? await olderThan(path, await patience(path)) : await isDead(holder, processes)
	if (!dead) return { held: false, holder }
	// Two contenders may both see the dead holder: only the one with the guard may replace it.
	const guard = `${path}.takeover`
	if (await olderThan(guard, 10_000)) await fs.unlink(guard).catch(() => {})
	if (!(await create(guard, text))) return { held: false, holder }
	try {
		const again = await readHolder(path)
		const same = again === holder || (typeof again === 'object' && again?.token === holder?.token)
		if (!same && again !== 'gone') return { held: false, holder: again }
		await fs.unlink(path).catch(() => {})
		return (await create(path, text)) ? heldLock(path, mine) : { held: false, holder: null }
	} finally {
		await fs.unlink(guard).catch(() => {})
	}
}

const heldLock = (path: string, mine: Holder): Lock => ({
	held: true,
	release: async () => {
		const holder = await readHolder(path)
		if (holder !== null && holder !== 'gone' && holder.token === mine.token) await fs.unlink(path).catch(() => {})
	},
})

/** All of it or nothing: a full disk must leave no empty lock, which would be waited for. */
const create = async (path: string, text: string): Promise<boolean> => {
	let handle: Awaited<ReturnType<typeof fs.open>>
	try {
		handle = await fs.open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
	} catch (error) {
		if (codeOf(error) === 'EEXIST') return false
		throw error
	}
	try {
		const { dev, ino } = await handle.stat()
		const ours = async (): Promise<boolean> => {
			const now = await fs.lstat(path).catch(() => null)
			return now?.dev === dev && now.ino === ino
		}
		try {
			await handle.writeFile(text)
		} catch (error) {
			if (await ours()) await fs.unlink(path).catch(() => {})
			throw error
		}
		// Stopped for so long between the two that somebody took it for a torn one.
		return await ours()
	} finally {
		await handle.close()
	}
}

/**
 * Milliseconds after which a lock that names no holder is nobody's. Between making and writing one lie microseconds: an empty
 * or cut one is of a crash or a full disk. What cannot be read at all may be another user's, and held.
 */
const patience = async (path: string): Promise<number> => {
	try {
		await (await fs.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)).close()
		return 2_000
	} catch {
		return 60_000
	}
}

const readHolder = async (path: string): Promise<Holder | null | 'gone'> => {
	try {
		const value = JSON.parse(await fs.readFile(path, 'utf8'))
		return typeof value?.pid === 'number' && typeof value?.token === 'string' ? value : null
	} catch (error) {
		return codeOf(error) === 'ENOENT' ? 'gone' : null
	}
}

const olderThan = async (path: string, ms: number): Promise<boolean> => {
	try {
		// The disk's own clock on both sides: only the age of the file counts, so a wall clock is right here.
		return Date.now() - (await fs.lstat(path)).mtimeMs > ms
	} catch {
		return false
	}
}

const isDead = async (holder: Holder, processes: Processes): Promise<boolean> =>
	holder.host === hostname() && (await processes.alive(holder.pid, holder.start)) === false
