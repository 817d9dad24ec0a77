// The state of one path and its exact restoring, through folders opened without following a link. Under undo.
import { createHash } from 'node:crypto'
import { promises as fs, lstatSync, type Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '../errors.ts'
import { prepareIn, tempName } from '../files/atomic.ts'
import { type Folder, kindOfStats, Moved, NotAFile, openFile, openFolder, type Way } from '../files/open.ts'

/** A file or link as a snapshot holds it; the hash is git's of a blob. */
export interface FileState {
	mode: '100644' | '100755' | '120000'
	hash: string
	/** Permission bits of a file; absent for a link. */
	bits?: number
}

/** One path that differs between two snapshots, relative to the root; null: not there. */
export interface Change {
	path: string
	from: FileState | null
	to: FileState | null
}

export type Present =
	| { kind: 'absent' }
	| { kind: 'file'; state: FileState; stats: Stats }
	| { kind: 'folder' }
	/** Behind a link or another kind of file; `special`: a pipe, a socket or a device stands at `at`. */
	| { kind: 'other'; what: string; at: string; special?: Stats }

export const blobHash = (bytes: Uint8Array): string =>
	createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')

/** No part is a repository's folder: neither `.git` nor what a case-blind disk takes for it. */
export const isPlainPath = (path: string): boolean =>
	path !== '' &&
	!path.startsWith('/') &&
	path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && part.toLowerCase() !== '.git')

/** The real path of the folder that holds a path. */
export const folderOf = (root: string, path: string): string =>
	dirname(path) === '.' ? root : join(root, dirname(path))

/** Opens the folder of a path, does something in it, closes it. */
export async function inFolder<T>(
	root: string,
	path: string,
	way: Way,
	make: boolean,
	act: (folder: Folder, name: string) => Promise<T>,
): Promise<T> {
	const folder = await openFolder(folderOf(root, path), way, make)
	try {
		return await act(folder, basename(path))
	} finally {
		await folder.close()
	}
}

/** What is at a path now. Reads the whole file for its hash, in pieces. */
export async function presentAt(root: string, path: string, way: Way): Promise<Present> {
	return presence(root, path, () => inFolder(root, path, way, false, (folder, name) => lookIn(folder, name, path, way)))
}

/** The same of some paths of one folder, which is opened once. */
export async function presentIn(root: string, paths: readonly string[], way: Way): Promise<Present[]> {
	const found: Present[] = []
	const folder = await openFolder(folderOf(root, paths[0]!), way).catch(() => null)
	try {
		for (const path of paths)
			found.push(
				folder
					? await presence(root, path, () => lookIn(folder, basename(path), path, way))
					: await presentAt(root, path, way),
			)
		return found
	} finally {
		await folder?.close()
	}
}

async function presence(root: string, path: string, look: () => Promise<Present>): Promise<Present> {
	try {
		return await look()
	} catch (error) {
		const code = codeOf(error)
		if (code === 'ENOENT') return { kind: 'absent' }
		if (error instanceof Moved || code === 'ENOTDIR' || code === 'ELOOP') return blocked(root, path)
		if (error instanceof NotAFile) return { kind: 'other', what: error.kind, at: path }
		return { kind: 'other', what: `unreadable (${code ?? 'unknown error'})`, at: path }
	}
}

async function lookIn(folder: Folder, name: string, path: string, way: Way): Promise<Present> {
	const stats = lstatSync(folder.at(name))
	if (stats.isDirectory()) return { kind: 'folder' }
	if (isSpecial(stats)) return { kind: 'other', what: kindOfStats(stats), at: path, special: stats }
	if (stats.isSymbolicLink()) {
		const target = await fs.readlink(folder.at(name), { encoding: 'buffer' })
		return { kind: 'file', state: { mode: '120000', hash: blobHash(target) }, stats }
	}
	const { handle, stats: opened } = await openFile(folder, name, way)
	try {
		const hash = createHash('sha1').update(`blob ${opened.size}\0`)
		if (opened.size <= 1 << 16) hash.update(await handle.readFile())
		else
			for await (const chunk of handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 1 << 18 }))
				hash.update(chunk as Buffer)
		return {
			kind: 'file',
			state: {
				mode: Number(opened.mode) & 0o100 ? '100755' : '100644',
				hash: hash.digest('hex'),
				bits: Number(opened.mode) & 0o777,
			},
			stats: opened as Stats,
		}
	} finally {
		await handle.close()
	}
}

/** The first part of a path that is no folder. */
async function blocked(root: string, path: string): Promise<Present> {
	const parts = path.split('/')
	for (let i = 1; i < parts.length; i++) {
		const at = parts.slice(0, i).join('/')
		const stats = await fs.lstat(join(root, at)).catch(() => null)
		if (!stats) return { kind: 'absent' }
		if (!stats.isDirectory())
			return {
				kind: 'other',
				what: stats.isSymbolicLink() ? 'behind a link' : 'behind a file',
				at,
				...(isSpecial(stats) ? { special: stats } : {}),
			}
	}
	return { kind: 'other', what: 'behind a link', at: path }
}

export const isSpecial = (stats: Stats): boolean => !stats.isFile() && !stats.isDirectory() && !stats.isSymbolicLink()

/** Whether content and kind are the same. */
export const sameState = (a: FileState | null, b: FileState | null): boolean =>
	a?.hash === b?.hash && a?.mode === b?.mode

/** Whether the permission bits are the same, as far as both are known. */
export const sameBits = (a: FileState | null, b: FileState | null): boolean =>
	a?.bits === undefined || b?.bits === undefined || a.bits === b.bits

/** Whether a path is still what it was when it was looked at, by its inode's figures. */
const unchanged = async (folder: Folder, name: string, was: Present): Promise<boolean> => {
	// Without a wait: thousands of names, each a moment before its own change.
	const now = lstatSync(folder.at(name), { throwIfNoEntry: false }) ?? null
	if (was.kind === 'absent' || was.kind === 'folder')
		return now === null || (was.kind === 'folder' && !now.isDirectory() ? false : was.kind === 'folder')
	if (was.kind !== 'file' || !now) return false
	return (
		now.ino === was.stats.ino &&
		now.size === was.stats.size &&
		now.mtimeMs === was.stats.mtimeMs &&
		now.ctimeMs === was.stats.ctimeMs
	)
}

/** A path changed between the check and the act; what was done so far stays done, and undo can be repeated. */
export class ChangedMeanwhile extends Error {
	override name = 'ChangedMeanwhile'
}

/** Removes a file or link that is still what was seen. */
export const removeAt = (root: string, path: string, way: Way, was: Present): Promise<void> =>
	inFolder(root, path, way, false, async (folder, name) => {
		if (!(await unchanged(folder, name, was))) throw new ChangedMeanwhile(path)
		await fs.unlink(folder.at(name))
	})

/** Removes the pipe, socket or device that was seen, and nothing else. */
export const removeSpecial = (root: string, path: string, way: Way, was: Stats): Promise<void> =>
	inFolder(root, path, way, false, async (folder, name) => {
		const now = await fs.lstat(folder.at(name))
		if (now.ino !== was.ino || now.dev !== was.dev || !isSpecial(now)) throw new ChangedMeanwhile(path)
		await fs.unlink(folder.at(name))
	})

/** Gives a file that is still what was seen its permission bits. */
export const chmodAt = (root: string, path: string, way: Way, was: Present, bits: number): Promise<void> =>
	inFolder(root, path, way, false, async (folder, name) => {
		const { handle } = await openFile(folder, name, way)
		try {
			if (!(await unchanged(folder, name, was))) throw new ChangedMeanwhile(path)
			await handle.chmod(bits)
		} finally {
			await handle.close()
		}
	})

/** A state's content beside the path that it is for; `place` throws ChangedMeanwhile or Moved when that is not what was seen. */
export interface PreparedState {
	place(was: Present): Promise<void>
	drop(): Promise<void>
}

/**
 * Puts a state's bytes, flushed, beside its path in an open folder. `mode`: its bits; absent: those of the file that is there.
 * `mark`: of the writer, another each time.
 */
export async function prepareState(
	folder: Folder,
	path: string,
	was: Present,
	state: FileState,
	bytes: Uint8Array,
	mode: number | undefined,
	mark: string,
): Promise<PreparedState> {
	const name = basename(path)
	const check = async (now: Present): Promise<void> => {
		if (!(await unchanged(folder, name, now))) throw new ChangedMeanwhile(path)
		await folder.check()
	}
	if (state.mode === '120000') {
		const temp = tempName(name, mark)
		await fs.symlink(Buffer.from(bytes), folder.at(temp))
		return {
			place: async (now) => {
				await check(now)
				await fs.rename(folder.at(temp), folder.at(name))
			},
			drop: () => fs.unlink(folder.at(temp)).catch(() => {}),
		}
	}
	const old = was.kind === 'file' && was.state.mode !== '120000' ? was.stats : null
	const known = mode ?? (old ? old.mode & 0o7777 : state.bits)
	const execute = state.mode === '100755'
	const bits = known === undefined ? (execute ? 0o755 : undefined) : executable(known, execute)
	const prepared = await prepareIn(folder, name, bytes, {
		mark,
		...(bits === undefined ? {} : { mode: bits }),
		...(old ? { owner: { uid: old.uid, gid: old.gid } } : {}),
	})
	return {
		place: async (now) => {
			await check(now)
			await prepared.place()
		},
		drop: prepared.drop,
	}
}

/** Bits with the execute right where there is the read right, or without any. */
const executable = (mode: number, wanted: boolean): number => {
	if (wanted === Boolean(mode & 0o100)) return mode
	return wanted ? mode | ((mode & 0o444) >> 2) : mode & ~0o111
}
