// Opening without following a link: folder by folder through handles on Linux, by a checked real path elsewhere.
import { closeSync, constants, promises as fs, fstatSync, openSync, readlinkSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Linux: a handle to a place in the tree that cannot be read itself, so opening a device or FIFO this way does nothing. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY, O_RDONLY } = constants

type Handle = Awaited<ReturnType<typeof fs.open>>

/** Something is not where it was decided to be: a link, or a folder that was moved. Callers turn it into words. */
export class Moved extends Error {
	override name = 'Moved'
}

/** How handles are walked: through /proc/self/fd, or by path with the real path checked before and after. */
export type Way = 'handles' | 'paths'

/** Which way this machine offers. */
export const wayHere = async (): Promise<Way> => {
	try {
		const handle = await fs.open('/', O_PATH | O_DIRECTORY)
		try {
			return (await fs.readlink(`/proc/self/fd/${handle.fd}`)) === '/' ? 'handles' : 'paths'
		} finally {
			await handle.close()
		}
	} catch {
		return 'paths'
	}
}

/** An open folder: what is done through `at(name)` happens in this folder, wherever its name points by then. */
export interface Folder {
	readonly path: string
	/** A path for the system that means `name` in this very folder. `name` must be a single part. */
	at(name: string): string
	/** Throws Moved when the folder is no longer at its path. */
	check(): Promise<void>
	close(): Promise<void>
}

const single = (name: string): string => {
	if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) throw new Moved(`not a name: ${name}`)
	return name
}

const isLinkError = (error: unknown): boolean =>
	['ELOOP', 'ENOTDIR', 'EMLINK'].includes((error as NodeJS.ErrnoException)?.code ?? '')

/**
 * Opens a folder by its absolute real path; a link on the way is Moved. `make` creates what is missing.
 * Throws the system's error for anything else (ENOENT, EACCES).
 */
export const openFolder = async (real: string, way: Way, make = false): Promise<Folder> =>
	way === 'handles' ? byHandles(real, make) : byPaths(real, make)

/** Part by part, each made where it is missing. */
const walked = async (real: string): Promise<Handle> => {
	let handle: Handle = await fs.open('/', O_PATH | O_DIRECTORY | O_NOFOLLOW)
	try {
		for (const part of real.split('/').filter((name) => name !== '')) {
			const next = `/proc/self/fd/${handle.fd}/${single(part)}`
			const open = () => fs.open(next, O_PATH | O_DIRECTORY | O_NOFOLLOW)
			let opened: Handle
			try {
				opened = await open()
			} catch (error) {
				if (isLinkError(error)) throw new Moved(`${real}: ${part} is not a folder`)
				if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
				await fs.mkdir(next).catch((failure) => {
					if (failure.code !== 'EEXIST') throw failure
				})
				opened = await open().catch((failure) => {
					throw isLinkError(failure) ? new Moved(`${real}: ${part} is not a folder`) : failure
				})
			}
			await handle.close()
			handle = opened
		}
	} catch (error) {
		await handle.close()
		throw error
	}
	return handle
}

const byHandles = async (real: string, make: boolean): Promise<Folder> => {
	// Nothing is made or read by opening a place, so all parts may be taken at once: whether one was a link is told by where
	// the handle is, below. To make what is missing, each part must be looked at first.
	const handle = make
		? await walked(real)
		: await fs.open(real, O_PATH | O_DIRECTORY | O_NOFOLLOW).catch((error) => {
				throw isLinkError(error) ? new Moved(`${real} is not a folder`) : error
			})
	const self = `/proc/self/fd/${handle.fd}`
	const folder: Folder = {
		path: real,
		at: (name) => `${self}/${single(name)}`,
		check: async () => {
			if ((await fs.readlink(self)) !== real) throw new Moved(`${real} was moved`)
		},
		close: () => handle.close(),
	}
	try {
		await folder.check()
	} catch (error) {
		await handle.close()
		throw error
	}
	return folder
}

const byPaths = async (real: string, make: boolean): Promise<Folder> => {
	if (make) await fs.mkdir(real, { recursive: true })
	const folder: Folder = {
		path: real,
		at: (name) => join(real, single(name)),
		check: async () => {
			if ((await fs.realpath(real)) !== real) throw new Moved(`${real} passes a link`)
		},
		close: async () => {},
	}
	await folder.check()
	if (!(await fs.lstat(real)).isDirectory()) throw new Moved(`${real} is not a folder`)
	return folder
}

/** Not a regular file: `kind` says what it is in words. */
export class NotAFile extends Error {
	override name = 'NotAFile'
	readonly kind: string
	constructor(kind: string) {
		super(kind)
		this.kind = kind
	}
}

type Stats = Awaited<ReturnType<typeof fs.lstat>>

export const kindOfStats = (stats: Stats): string =>
	stats.isDirectory()
		? 'a folder'
		: stats.isFIFO()
			? 'a FIFO (named pipe)'
			: stats.isSocket()
				? 'a socket'
				: stats.isCharacterDevice() || stats.isBlockDevice()
					? 'a device'
					: stats.isSymbolicLink()
						? 'a link'
						: 'not a regular file'

const refuseOdd = (shown: string, stats: Stats): void => {
	if (stats.isSymbolicLink()) throw new Moved(`${shown} is a link`)
	if (!stats.isFile()) throw new NotAFile(kindOfStats(stats))
}

/**
 * Opens a regular file in a folder for reading. Nothing but a regular file is ever opened for real: no wait for a
 * FIFO's writer, no side effect of a device. Throws Moved for a link, NotAFile, or the system's error.
 */
export const openFile = async (folder: Folder, name: string, way: Way): Promise<{ handle: Handle; stats: Stats }> => {
	const refuse = (stats: Stats): void => refuseOdd(name, stats)
	if (way === 'handles') {
		// The place first, then the very same inode for reading: nothing can be swapped in between.
		const place = await fs.open(folder.at(name), O_PATH | O_NOFOLLOW)
		let handle: Handle
		try {
			refuse(await place.stat())
			const self = `/proc/self/fd/${place.fd}`
			const expected = folder.path === '/' ? `/${name}` : `${folder.path}/${name}`
			if ((await fs.readlink(self)) !== expected) throw new Moved(`${expected} was moved`)
			handle = await fs.open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY)
		} catch (error) {
			await place.close()
			throw error
		}
		return (await Promise.all([checked(handle, refuse), place.close()]))[0]
	}
	const path = folder.at(name)
	refuse(await fs.lstat(path))
	const opened = await checked(
		await fs.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY).catch((error) => {
			throw isLinkError(error) ? new Moved(`${name} is a link`) : error
		}),
		refuse,
	)
	try {
		await folder.check()
		const now = await fs.lstat(path)
		if (now.ino !== opened.stats.ino || now.dev !== opened.stats.dev) throw new Moved(`${path} was swapped`)
	} catch (error) {
		await opened.handle.close()
		throw error
	}
	return opened
}

const checked = async (handle: Handle, refuse: (stats: Stats) => void): Promise<{ handle: Handle; stats: Stats }> => {
	try {
		const stats = await handle.stat()
		refuse(stats)
		return { handle, stats }
	} catch (error) {
		await handle.close()
		throw error
	}
}

/** Up to `length` bytes from `start` (fewer at the end of the file). */
export const readBytes = async (handle: Handle, start: number, length: number): Promise<Buffer> => {
	const buffer = Buffer.alloc(length)
	let filled = 0
	while (filled < length) {
		const { bytesRead } = await handle.read(buffer, filled, length - filled, start + filled)
		if (bytesRead === 0) break
		filled += bytesRead
	}
	return buffer.subarray(0, filled)
}

/** Above this many bytes a file is read in the background instead. */
const atOnceLimit = 1 << 20

/**
 * A regular file of at most 1 MiB in one go, without a wait: some microseconds, where each promise of the file system
 * costs fifty. A disk that hangs hangs Garuda for that moment, as the look-up of the path before it does already.
 * Null: larger, or this machine has no handles; use openFile. Throws as openFile does. One byte more than the size is
 * asked for, so that a file that grew meanwhile is null too.
 */
export const readAtOnce = (real: string, way: Way): { bytes: Buffer; stats: Stats } | null => {
	if (way !== 'handles') return null
	const place = openSync(real, O_PATH | O_NOFOLLOW)
	try {
		refuseOdd(real, fstatSync(place))
		const self = `/proc/self/fd/${place}`
		// Where the handle really is: a link on the way would show here.
		if (readlinkSync(self) !== real) throw new Moved(`${real} was moved`)
		const file = openSync(self, O_RDONLY | O_NONBLOCK | O_NOCTTY)
		try {
			const stats = fstatSync(file)
			refuseOdd(real, stats)
			if (stats.size > atOnceLimit) return null
			const buffer = Buffer.allocUnsafe(stats.size + 1)
			let filled = 0
			while (filled < buffer.length) {
				const count = readSync(file, buffer, filled, buffer.length - filled, filled)
				if (count === 0) break
				filled += count
			}
			return filled > stats.size ? null : { bytes: buffer.subarray(0, filled), stats }
		} finally {
			closeSync(file)
		}
	} finally {
		closeSync(place)
	}
}

/** The entries of a folder by its real path, sorted by name, links not followed; folders end with a slash. */
export const listFolder = async (real: string, way: Way): Promise<string[]> => {
	const folder = await openFolder(real, way)
	try {
		// "/." makes the kernel look up the opened folder itself.
		const target = way === 'handles' ? `${dirname(folder.at('x'))}/.` : real
		const entries = await fs.readdir(target, { withFileTypes: true })
		return entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort()
	} finally {
		await folder.close()
	}
}

/** Whether a real path is a folder right now; false for anything else, also for what cannot be opened. */
export const isFolder = async (real: string): Promise<boolean> => {
	try {
		const folder = await openFolder(real, await wayHere())
		await folder.close()
		return true
	} catch {
		return false
	}
}
