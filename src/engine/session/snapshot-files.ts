// The state of one path and its exact restoring, through folders opened without following a link. Under undo.
import { createHash, randomBytes } from 'node:crypto'
import { promises as fs, type Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '../errors.ts'
import { replaceIn } from '../files/atomic.ts'
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

const folderOf = (root: string, path: string): string => (dirname(path) === '.' ? root : join(root, dirname(path)))

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
	try {
		return await inFolder(root, path, way, false, async (folder, name): Promise<Present> => {
			const stats = await fs.lstat(folder.at(name))
			if (stats.isDirectory()) return { kind: 'folder' }
			if (isSpecial(stats)) return { kind: 'other', what: kindOfStats(stats), at: path, special: stats }
			if (stats.isSymbolicLink()) {
				const target = await fs.readlink(folder.at(name), { encoding: 'buffer' })
				return { kind: 'file', state: { mode: '120000', hash: blobHash(target) }, stats }
			}
			const { handle, stats: opened } = await openFile(folder, name, way)
			try {
				const hash = createHash('sha1').update(`blob ${opened.size}\0`)
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
		})
	} catch (error) {
		const code = codeOf(error)
		if (code === 'ENOENT') return { kind: 'absent' }
		if (error instanceof Moved || code === 'ENOTDIR' || code === 'ELOOP') return blocked(root, path)
		if (error instanceof NotAFile) return { kind: 'other', what: error.kind, at: path }
		return { kind: 'other', what: `unreadable (${code ?? 'unknown error'})`, at: path }
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
	const now = await fs
		.lstat(folder.at(name))
		.catch((error) => (codeOf(error) === 'ENOENT' ? null : Promise.reject(error)))
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

/** Puts a state's bytes at a path that is still what was seen. `mode`: its bits; absent: those of the file that is there. */
export const writeAt = (
	root: string,
	path: string,
	way: Way,
	was: Present,
	state: FileState,
	bytes: Uint8Array,
	mode: number | undefined,
): Promise<void> =>
	inFolder(root, path, way, true, async (folder, name) => {
		const check = async (): Promise<void> => {
			if (!(await unchanged(folder, name, was))) throw new ChangedMeanwhile(path)
			await folder.check()
		}
		if (state.mode === '120000') {
			await check()
			const temp = `.${randomBytes(6).toString('hex')}.garuda-tmp`
			await fs.symlink(Buffer.from(bytes), folder.at(temp))
			await fs.rename(folder.at(temp), folder.at(name)).catch(async (error) => {
				await fs.unlink(folder.at(temp)).catch(() => {})
				throw error
			})
			return
		}
		const old = was.kind === 'file' && was.state.mode !== '120000' ? was.stats : null
		const known = mode ?? (old ? old.mode & 0o7777 : state.bits)
		const execute = state.mode === '100755'
		const bits = known === undefined ? (execute ? 0o755 : undefined) : executable(known, execute)
		await replaceIn(folder, name, bytes, {
			...(bits === undefined ? {} : { mode: bits }),
			...(old ? { owner: { uid: old.uid, gid: old.gid } } : {}),
			before: check,
		})
	})

/** Bits with the execute right where there is the read right, or without any. */
const executable = (mode: number, wanted: boolean): number => {
	if (wanted === Boolean(mode & 0o100)) return mode
	return wanted ? mode | ((mode & 0o444) >> 2) : mode & ~0o111
}
