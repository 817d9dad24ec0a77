// The guarded way to the disk for every file tool: what a path really means, may it be touched, open it without a link.
import { createHash } from 'node:crypto'
import { promises as fs, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, normalize, relative } from 'node:path'
import { codeOf, ToolError } from '../errors.ts'
import type { Files, ReadFile, ResolvedPath } from '../ports.ts'
import { oneLine } from '../text.ts'
import { replaceIn } from './atomic.ts'
import { sweepFolder } from './leftovers.ts'
import { type Folder, Moved, NotAFile, openFile, openFolder, readAtOnce, readBytes, type Way, wayHere } from './open.ts'
import { foldName, protectedReason, sensitiveReason, systemReason, under } from './sensitive.ts'

export interface FilesOptions {
	/** Absolute. A link is pinned to what it means now. */
	root: string
	extraDirs?: string[]
	home: string
	/** An editor's unsaved text of a real path, or undefined. */
	buffer?(path: string): Promise<string | undefined>
	/** Only for tests: how to open; by default what the machine offers. */
	way?: Way
}

type FileStats = Awaited<ReturnType<typeof openFile>>['stats']

const defaultLimit = 64 * 1024 * 1024

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Bytes in words for a message. */
export const sizeInWords = (bytes: number): string =>
	bytes < 1024
		? `${bytes} bytes`
		: bytes < 1024 ** 2
			? `${(bytes / 1024).toFixed(1)} kB`
			: bytes < 1024 ** 3
				? `${(bytes / 1024 ** 2).toFixed(1)} MB`
				: `${(bytes / 1024 ** 3).toFixed(1)} GB`

/** A path in a message or a result: one line, nothing hidden. */
export const shownPath = (path: string): string => oneLine(path, 1000)

/** The guard of a session. Root, added folders and home are pinned to their real paths once. */
export const createFiles = async (options: FilesOptions): Promise<Files> => {
	const way = options.way ?? (await wayHere())
	const real = (path: string) => fs.realpath(path)
	const root = await real(options.root)
	const roots = [root, ...(await Promise.all((options.extraDirs ?? []).map(real)))]
	const home = await real(options.home).catch(() => options.home)

	const nothingAt = createAbsence()
	/** Folders where nothing of a dead writer is any more: looked at once a session. */
	const swept = new Set<string>()

	const resolve = async (path: string): Promise<ResolvedPath> => {
		const typed = absolute(path, root, home)
		// Links of /proc lead anywhere; what is asked for by such a path is never answered, whatever it leads to.
		const system = systemReason(normalize(typed))
		if (system)
			return {
				path: normalize(typed),
				shown: normalize(typed),
				inside: false,
				exists: true,
				sensitive: system,
				protected: null,
			}
		const found = realPathOf(typed, nothingAt)
		const inRoot = roots.find((folder) => under(found.path, folder))
		return {
			path: found.path,
			shown:
				under(found.path, root) && found.path !== root
					? relative(root, found.path)
					: found.path === root
						? '.'
						: found.path,
			inside: inRoot !== undefined,
			exists: found.exists,
			sensitive: sensitiveReason(found.path, home, roots),
			protected: inRoot === undefined ? null : protectedReason(found.path, inRoot, home),
		}
	}

	/** A path that was already decided on must be its own real path: a link that came in since then is refused, not followed. */
	const decided = async (path: string): Promise<ResolvedPath> => {
		const resolved = await resolve(path)
		if (isAbsolute(path) && resolved.path !== path)
			throw new ToolError(
				`${shownPath(path)} is or passes through a link now (to ${shownPath(resolved.path)}). Nothing was done; use the real path.`,
			)
		return resolved
	}

	const refuseSensitive = (resolved: ResolvedPath): void => {
		if (resolved.sensitive)
			throw new ToolError(`${shownPath(resolved.shown)} is off limits for the file tools: ${resolved.sensitive}.`)
	}

	const opened = async <T>(
		resolved: ResolvedPath,
		use: (file: Awaited<ReturnType<typeof openFile>>) => Promise<T>,
	): Promise<T> => {
		refuseSensitive(resolved)
		try {
			const folder = await openFolder(dirname(resolved.path), way)
			let file: Awaited<ReturnType<typeof openFile>> | undefined
			try {
				file = await openFile(folder, basename(resolved.path), way)
				return await use(file)
			} finally {
				await Promise.all([file?.handle.close(), folder.close()])
			}
		} catch (error) {
			throw inWords(error, resolved.shown)
		}
	}

	const read = async (path: string, limit = defaultLimit): Promise<ReadFile> => {
		const resolved = await resolve(path)
		refuseSensitive(resolved)
		const unsaved = await options.buffer?.(resolved.path)
		if (unsaved === undefined) {
			const whole = atOnce(resolved)
			if (whole) return readFileOf(resolved, whole.stats, whole.bytes, limit)
		}
		return opened(resolved, async ({ handle, stats }) => {
			if (stats.size > limit) throw tooLarge(resolved.shown, Number(stats.size), limit)
			const bytes = unsaved === undefined ? await readAll(handle, Number(stats.size), limit) : Buffer.from(unsaved)
			return readFileOf(resolved, stats, bytes, limit)
		})
	}

	const atOnce = (resolved: ResolvedPath) => {
		try {
			return readAtOnce(resolved.path, way)
		} catch (error) {
			throw inWords(error, resolved.shown)
		}
	}

	const readFileOf = (resolved: ResolvedPath, stats: FileStats, bytes: Buffer, limit: number): ReadFile => {
		if (bytes.length > limit) throw tooLarge(resolved.shown, bytes.length, limit)
		return {
			path: resolved.path,
			bytes,
			hash: sha256(bytes),
			mode: Number(stats.mode) & 0o7777,
			nlink: Number(stats.nlink),
			mtimeMs: Number(stats.mtimeMs),
		}
	}

	const write = async (
		path: string,
		bytes: Uint8Array,
		base: string | null,
	): Promise<{ path: string; hash: string; note?: string }> => {
		const resolved = await decided(path)
		refuseWrite(resolved)
		try {
			const folder = await openFolder(dirname(resolved.path), way, base === null)
			try {
				const made = await replace(folder, resolved, bytes, base)
				if (!swept.has(folder.path)) await sweepFolder(folder)
				swept.add(folder.path)
				return made
			} finally {
				await folder.close()
			}
		} catch (error) {
			throw inWords(error, resolved.shown)
		}
	}

	const replace = async (folder: Folder, resolved: ResolvedPath, bytes: Uint8Array, base: string | null) => {
		const name = basename(resolved.path)
		const current = await present(folder, name)
		if ((current?.hash ?? null) !== base) throw changed(resolved.shown, current !== null)
		const unsaved = await options.buffer?.(resolved.path)
		if (unsaved !== undefined && sha256(Buffer.from(unsaved)) !== base)
			throw new ToolError(
				`${resolved.shown} has changes in the editor that are not saved. Nothing was written; ask the user to save or drop them.`,
			)
		await replaceIn(folder, name, bytes, {
			...(current && { mode: current.mode, owner: current.owner }),
			fresh: current === null,
			before: async () => {
				await folder.check()
				if (current && (await present(folder, name))?.hash !== base) throw changed(resolved.shown, true)
			},
		}).catch((error) => {
			throw codeOf(error) === 'EEXIST' ? changed(resolved.shown, true) : error
		})
		const others = (current?.nlink ?? 1) - 1
		return {
			path: resolved.path,
			hash: sha256(bytes),
			// Written in place, the other names would change too, also those outside the root.
			...(others > 0 && {
				note: `the file had ${others} other hard link${others > 1 ? 's' : ''}, which keep${others > 1 ? '' : 's'} the old content`,
			}),
		}
	}

	const present = async (folder: Folder, name: string) => {
		let file: Awaited<ReturnType<typeof openFile>>
		try {
			file = await openFile(folder, name, way)
		} catch (error) {
			if (codeOf(error) === 'ENOENT') return null
			throw error
		}
		try {
			const { mode, nlink, uid, gid, size } = file.stats
			if (size > defaultLimit) throw tooLarge(name, Number(size), defaultLimit)
			return {
				hash: sha256(await readAll(file.handle, Number(size), defaultLimit)),
				mode: Number(mode),
				nlink: Number(nlink),
				owner: { uid: Number(uid), gid: Number(gid) },
			}
		} finally {
			await file.handle.close()
		}
	}

	return {
		roots,
		resolve,
		read,
		readPart: async (path, start, length) => {
			const resolved = await resolve(path)
			return opened(resolved, async ({ handle, stats }) => ({
				path: resolved.path,
				bytes: await readBytes(handle, start, Math.min(length, defaultLimit)),
				size: Number(stats.size),
			}))
		},
		write,
	}
}

/** ToolError when a file tool must not write there. */
export const refuseWrite = (resolved: ResolvedPath): void => {
	const shown = shownPath(resolved.shown)
	if (resolved.sensitive) throw new ToolError(`${shown} is off limits for the file tools: ${resolved.sensitive}.`)
	if (resolved.protected)
		throw new ToolError(`${shown} is protected from writing (${resolved.protected}). The user can change it.`)
	if (!resolved.inside)
		throw new ToolError(
			`${shown} lies outside the working folder. Writing is only possible inside it and in folders that the user added (--add-dir).`,
		)
}

const absolute = (path: string, root: string, home: string): string => {
	if (path === '') throw new ToolError('The path is empty.')
	if (path.includes('\0')) throw new ToolError('The path holds a NUL character.')
	if (!path.isWellFormed()) throw new ToolError('The path is not valid Unicode.')
	if (path.length > 4096) throw new ToolError('The path is too long.')
	if (path === '~') return home
	if (path.startsWith('~/')) return `${home}/${path.slice(2)}`
	// Joined as text: normalising would take "link/.." for nothing, which the system does not.
	return isAbsolute(path) ? path : `${root}/${path}`
}

/**
 * The system's own reading of a path, links and ".." included; of a new file, its folder's real path plus the rest.
 * Without a wait: a call asks this several times, and a promise of the file system costs ten times the look itself.
 */
const realPathOf = (path: string, nothingAt: (path: string) => boolean): { path: string; exists: boolean } => {
	const missing: string[] = []
	let rest = path.replace(/(?<=.)\/+$/, '')
	for (;;) {
		try {
			if (missing.length === 0 && nothingAt(rest)) throw nothing
			const real = realpathSync.native(rest)
			return { path: missing.length ? normalize(`${real}/${missing.join('/')}`) : real, exists: missing.length === 0 }
		} catch (error) {
			const code = codeOf(error)
			if (code !== 'ENOENT') throw inWords(error, shownPath(path))
			// realpath fails for a link to nothing as well; writing "through" it would make a file somewhere else.
			if (error !== nothing && isLink(rest))
				throw new ToolError(`${shownPath(rest)} is a link to something that does not exist.`)
			const slash = rest.lastIndexOf('/')
			const name = rest.slice(slash + 1)
			if (name === '..') throw new ToolError(`${shownPath(path)} does not exist.`)
			if (name !== '' && name !== '.') missing.unshift(name)
			rest = rest.slice(0, slash) || '/'
		}
	}
}

const nothing = Object.assign(new Error('nothing there'), { code: 'ENOENT' })

/**
 * Whether there is nothing under a name, not even a link. Synchronous: some microseconds, where a promise that rejects
 * costs twenty times that. For many names of a folder in one go its listing answers, for those that no disk could mean.
 */
const createAbsence = (): ((path: string) => boolean) => {
	const folders = new Map<string, { asked: number; names: Set<string> | null }>()
	const listing = (folder: string): Set<string> | null => {
		try {
			const names = readdirSync(folder)
			return names.length > 10_000 ? null : new Set(names.map(foldName))
		} catch {
			return null
		}
	}
	return (path) => {
		const slash = path.lastIndexOf('/')
		const folder = path.slice(0, slash) || '/'
		const name = foldName(path.slice(slash + 1))
		// What was listed holds for this moment only.
		if (folders.size === 0) setImmediate(() => folders.clear())
		const known = folders.get(folder) ?? { asked: 0, names: null }
		folders.set(folder, known)
		known.asked++
		if (known.asked === 16) known.names = listing(folder)
		if (known.names && /[^.]/.test(name) && !known.names.has(name)) return true
		try {
			return lstatSync(path, { throwIfNoEntry: false }) === undefined
		} catch {
			// realpath says in its own words what is wrong.
			return false
		}
	}
}

const isLink = (path: string): boolean => {
	try {
		return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
	} catch {
		return false
	}
}

const readAll = async (handle: Parameters<typeof readBytes>[0], size: number, limit: number): Promise<Buffer> => {
	const first = await readBytes(handle, 0, Math.min(size, limit) + 1)
	if (first.length <= size || first.length > limit) return first
	// It grew meanwhile: take what there is, in pieces, up to the limit.
	const pieces = [first]
	for (let at = first.length; at <= limit; ) {
		const piece = await readBytes(handle, at, Math.min(1 << 20, limit + 1 - at))
		if (piece.length === 0) break
		pieces.push(piece)
		at += piece.length
	}
	return Buffer.concat(pieces)
}

const tooLarge = (shown: string, size: number, limit: number): ToolError =>
	new ToolError(
		`${shownPath(shown)} is too large to read whole: ${sizeInWords(size)}, the limit is ${sizeInWords(limit)}. Use grep, or bash with head, tail or sed.`,
	)

const changed = (shown: string, exists: boolean): ToolError =>
	new ToolError(
		exists
			? `${shownPath(shown)} changed on the disk meanwhile. Nothing was written. Read it again and repeat the edit.`
			: `${shownPath(shown)} does not exist any more. Nothing was written.`,
	)

/** Any failure of the disk as a text for the model; bugs pass through. */
export const inWords = (error: unknown, path: string): unknown => {
	const shown = shownPath(path)
	if (error instanceof ToolError) return error
	if (error instanceof Moved)
		return new ToolError(`${shown} was moved or replaced by a link meanwhile. Nothing was done.`)
	if (error instanceof NotAFile) return new ToolError(`${shown} is ${error.kind}, not a regular file.`)
	switch (codeOf(error)) {
		case 'ENOENT':
			return new ToolError(`${shown} does not exist.`)
		case 'ENOTDIR':
			return new ToolError(`${shown} does not exist: a part of the path is a file, not a folder.`)
		case 'EISDIR':
			return new ToolError(`${shown} is a folder, not a regular file.`)
		case 'EACCES':
		case 'EPERM':
			return new ToolError(`${shown}: permission denied.`)
		case 'ELOOP':
			return new ToolError(`${shown}: too many links, or a link loop.`)
		case 'ENAMETOOLONG':
			return new ToolError(`${shown}: the name is too long.`)
		case 'ENXIO':
			return new ToolError(`${shown} is a socket or a device, not a regular file.`)
		case 'ENOSPC':
		case 'EDQUOT':
			return new ToolError(`${shown}: the disk is full. The old content is unchanged.`)
		case 'EROFS':
			return new ToolError(`${shown} is on a read-only disk.`)
		case 'EMFILE':
		case 'ENFILE':
			return new ToolError(`${shown}: too many open files on this machine; try again.`)
		case 'EIO':
			return new ToolError(`${shown}: the disk could not be read (I/O error).`)
		default:
			return error
	}
}
