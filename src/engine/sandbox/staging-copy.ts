// The staging copy of a root: what a staged command sees and changes in its place. Kept between commands and brought up to
// date before each, so that a large project is copied once. Between the executor and the disk.
import { constants, promises as fs } from 'node:fs'
import { join } from 'node:path'
import { codeOf, ToolError } from '../errors.ts'

export interface Entry {
	kind: 'file' | 'folder' | 'link' | 'other'
	/** Permission bits with setuid, setgid and sticky. */
	mode: number
	size: number
	uid: number
	gid: number
	/** Equal as long as it is the very same file, unchanged: the change time cannot be set back by a program. */
	key: string
	/** The same without the change time, which a rename moves. */
	weak: string
	mtimeMs: number
	ctimeNs: bigint
	/** Names of the file, where there are more than one. */
	links?: number
	/** An overlay's sign for what was deleted: a character device 0,0. Of kind 'other' like every device. */
	whiteOut?: boolean
}

/** What stands at a path, no link followed; undefined when nothing does. */
export const look = async (path: string): Promise<Entry | undefined> => {
	try {
		const found = await fs.lstat(path, { bigint: true })
		const kind = found.isFile() ? 'file' : found.isDirectory() ? 'folder' : found.isSymbolicLink() ? 'link' : 'other'
		const weak = `${kind} ${found.dev} ${found.ino} ${found.size} ${found.mtimeNs} ${found.mode}`
		return {
			kind,
			mode: Number(found.mode & 0o7777n),
			size: Number(found.size),
			uid: Number(found.uid),
			gid: Number(found.gid),
			key: `${weak} ${found.ctimeNs}`,
			weak,
			mtimeMs: Number(found.mtimeNs / 1_000_000n),
			ctimeNs: found.ctimeNs,
			...(kind === 'file' && found.nlink > 1n && { links: Number(found.nlink) }),
			...(found.isCharacterDevice() && found.rdev === 0n && { whiteOut: true }),
		}
	} catch (error) {
		if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
		throw error
	}
}

/** A path of the root as it was when the command began. `skipped`: hidden or not readable, never applied. */
export interface Seen {
	base: Entry
	skipped?: boolean
}

/** The same with what stood in the copy then. */
export interface Known extends Seen {
	copy: Entry
}

/** Where a staged command's changes lie: a whole copy of a root, or an overlay's upper folder with the changes alone. */
export interface StagedTree {
	/** Real path of the root. */
	readonly base: string
	/** Below it, at the same relative paths, what was made or changed. */
	readonly path: string
	/** What the root held, at least of each folder that a change takes away. */
	readonly known: ReadonlyMap<string, Seen>
	/** Whether the root had something there before the command. */
	had(path: string): boolean
}

export interface CopyLimits {
	entries: number
	bytes: number
}

export const usualLimits: CopyLimits = { entries: 150_000, bytes: 4 * 2 ** 30 }

const together = 16

export class StagingCopy implements StagedTree {
	/** Real path of the root. */
	readonly base: string
	readonly path: string
	/** By path relative to the root. */
	known = new Map<string, Known>()
	readonly #limits: CopyLimits

	constructor(base: string, path: string, limits: CopyLimits = usualLimits) {
		this.base = base
		this.path = path
		this.#limits = limits
	}

	had(path: string): boolean {
		return this.known.has(path)
	}

	/**
	 * Makes the copy equal to the root as it is now, whatever stood there. `hidden`: real paths that commands must not see;
	 * they stand there empty, for a mask to lie on. Devices, sockets and pipes are left out. Throws ToolError when the root
	 * is larger than the limits; an abort rejects.
	 */
	async sync(hidden: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
		const before = this.known
		const now = new Map<string, Known>()
		let bytes = 0
		const count = (entry: Entry) => {
			bytes += entry.kind === 'file' ? entry.size : 0
			if (now.size > this.#limits.entries || bytes > this.#limits.bytes)
				throw new ToolError(
					`The project is too large for staged commands: more than ${this.#limits.entries.toLocaleString('en')} files or ${Math.round(this.#limits.bytes / 2 ** 20).toLocaleString('en')} MB. Nothing was run. The user can turn them off (staging.enabled) or work in a part of it.`,
				)
		}
		const folder = async (rel: string): Promise<void> => {
			signal.throwIfAborted()
			const [names, there] = await Promise.all([fs.readdir(join(this.base, rel)), fs.readdir(join(this.path, rel))])
			const wanted = new Set(names)
			for (const name of there) if (!wanted.has(name)) await remove(join(this.path, rel, name))
			for (let at = 0; at < names.length; at += together)
				await Promise.all(names.slice(at, at + together).map((name) => one(rel === '' ? name : `${rel}/${name}`)))
		}
		const one = async (rel: string): Promise<void> => {
			const from = join(this.base, rel)
			const to = join(this.path, rel)
			const [base, copy] = await Promise.all([look(from), look(to)])
			if (!base || base.kind === 'other') {
				if (copy) await remove(to)
				return
			}
			count(base)
			if (hidden.has(from)) {
				await remove(to)
				await (base.kind === 'folder' ? fs.mkdir(to) : fs.writeFile(to, '', { flag: 'wx' }))
				now.set(rel, { base, copy: (await look(to))!, skipped: true })
				return
			}
			if (base.kind === 'folder') {
				if (copy?.kind !== 'folder') {
					if (copy) await remove(to)
					await fs.mkdir(to, { mode: 0o700 })
				}
				// The user's own bits at least while it is filled.
				else if ((copy.mode & 0o700) !== 0o700) await fs.chmod(to, copy.mode | 0o700)
				let skipped = false
				try {
					await folder(rel)
				} catch (error) {
					if (codeOf(error) !== 'EACCES') throw error
					skipped = true
				}
				await fs.chmod(to, base.mode)
				now.set(rel, { base, copy: (await look(to))!, ...(skipped && { skipped }) })
				return
			}
			const old = before.get(rel)
			if (copy && old && !old.skipped && old.base.key === base.key && old.copy.key === copy.key) {
				now.set(rel, old)
				return
			}
			if (copy) await remove(to)
			let skipped = false
			if (base.kind === 'link') await fs.symlink(await fs.readlink(from), to)
			else skipped = !(await copyFile(from, to, base))
			now.set(rel, { base, copy: (await look(to))!, ...(skipped && { skipped }) })
		}
		await fs.mkdir(this.path, { recursive: true, mode: 0o700 })
		await fs.chmod(this.path, 0o700)
		await folder('')
		await fs.chmod(this.path, (await look(this.base))!.mode)
		this.known = now
	}
}

/** False: it cannot be read, so it stands there empty. */
const copyFile = async (from: string, to: string, base: Entry): Promise<boolean> => {
	try {
		await fs.copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
	} catch (error) {
		if (codeOf(error) !== 'EACCES' && codeOf(error) !== 'EPERM') throw error
		await fs.writeFile(to, '', { mode: 0 })
		return false
	}
	await fs.chmod(to, base.mode)
	// make and others go by it.
	await fs.utimes(to, base.mtimeMs / 1000, base.mtimeMs / 1000)
	return true
}

/** Removes what a command may have made hard to remove; links are not followed. */
export const remove = async (path: string): Promise<void> => {
	try {
		await fs.rm(path, { recursive: true, force: true })
	} catch (error) {
		if (codeOf(error) !== 'EACCES' && codeOf(error) !== 'EPERM' && codeOf(error) !== 'ENOTEMPTY') throw error
		await open(path)
		await fs.rm(path, { recursive: true, force: true })
	}
}

const open = async (path: string): Promise<void> => {
	const found = await look(path)
	if (found?.kind !== 'folder') return
	await fs.chmod(path, 0o700)
	for (const name of await fs.readdir(path)) await open(join(path, name))
}
