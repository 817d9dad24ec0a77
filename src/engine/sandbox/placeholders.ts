// Keeps names in a git folder from being made by a command: a mount needs something to lie on, so for as long as a command
// runs, something harmless has the name.
import { randomBytes } from 'node:crypto'
import {
	chownSync,
	linkSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	unlinkSync,
	writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '../errors.ts'
import { lstat, smallFile } from './paths.ts'

/** A file with `text`, or an empty folder (null), which stays: `hooks` and `info` are ordinary parts of a git folder. */
export interface Placeholder {
	path: string
	text: string | null
}

/**
 * The placeholders of one session, counted over its commands. Removing a file takes the mounts on it along, in every
 * sandbox: so each session writes in `own` which ones it may need until it ends, and with two sessions in one repository
 * they stay until the last of them closes.
 */
export class Placeholders {
	readonly #own: string
	/** By path, how many running commands need it; 0 is none. */
	readonly #held = new Map<string, { text: string; count: number }>()
	/** The other sessions can read of all that is held. */
	#told = true

	constructor(own: string) {
		this.#own = own
	}

	/**
	 * Makes what is missing, before the mounts. What may not be made is left out: then the command may not make it either. But
	 * where the disk took it not (it is full), the command might yet make room: `shut` gets the folder, to keep it read-only.
	 */
	hold(wanted: Placeholder[], shut: (folder: string) => void = () => {}): () => void {
		const files = new Map(wanted.flatMap(({ path, text }) => (text === null ? [] : [[path, text] as const])))
		const before = this.#held.size
		for (const [path, text] of files) {
			const known = this.#held.get(path)
			if (known) known.count++
			else {
				this.#held.set(path, { text, count: 1 })
				sweep(path)
			}
		}
		// Before the look at the disk: whoever removes looks here first.
		if (!this.#told || this.#held.size > before) this.#told = tell(join(this.#own, 'held'), [...this.#held.keys()])
		// Another session would take away what it cannot know of, and the mount with it.
		for (const { path, text } of wanted)
			if (!(text === null ? makeFolder(path) : this.#told && makeFile(path, text))) shut(dirname(path))
		let done = false
		return () => {
			if (done) return
			done = true
			for (const path of files.keys()) this.#held.get(path)!.count--
			this.#remove([...files.keys()])
		}
	}

	/** After the last command: what another session kept from being removed. */
	close(): void {
		quietly(() => rmSync(join(this.#own, 'held'), { force: true }))
		this.#remove([...this.#held.keys()])
	}

	#remove(paths: string[]): void {
		const over = paths.filter((path) => this.#held.get(path)!.count === 0)
		if (over.length === 0) return
		const elsewhere = this.#others()
		for (const path of over)
			if (!elsewhere.has(path) && ['', this.#held.get(path)!.text].includes(smallFile(path, 16) ?? 'none'))
				quietly(() => unlinkSync(path))
	}

	/** What the user's other sessions hold now; those of dead processes are swept by whoever starts next. */
	#others(): Set<string> {
		const found = new Set<string>()
		const folder = dirname(this.#own)
		for (const name of quietly(() => readdirSync(folder)) ?? []) {
			if (name === basename(this.#own) || !name.includes('-own-')) continue
			const pid = /^s-(\d+)-/.exec(name)?.[1]
			if (pid !== undefined && process.platform === 'linux' && !lstat(`/proc/${pid}`)) continue
			for (const path of (quietly(() => readFileSync(join(folder, name, 'held'), 'utf8')) ?? '').split('\0'))
				found.add(path)
		}
		return found
	}
}

const quietly = <T>(act: () => T): T | undefined => {
	try {
		return act()
	} catch {
		return undefined
	}
}

/** Whole or not at all: half a list would have the rest taken away. */
const tell = (path: string, held: string[]): boolean => {
	const temp = `${path}.${randomBytes(6).toString('hex')}`
	try {
		writeFileSync(temp, held.join('\0'), { mode: 0o600 })
		renameSync(temp, path)
		return true
	} catch {
		quietly(() => unlinkSync(temp))
		return false
	}
}

const temporary = /^\.\w[\w.]*\.[0-9a-f]{12}\.garuda-tmp$/

/** What a kill between two calls left beside a placeholder. */
const sweep = (path: string): void => {
	const folder = dirname(path)
	for (const name of quietly(() => readdirSync(folder)) ?? []) {
		if (!temporary.test(name)) continue
		const found = lstat(join(folder, name))
		// The disk's clock on both sides.
		if (found?.isFile() && found.size <= 16 && Date.now() - found.mtimeMs > 60_000)
			quietly(() => unlinkSync(join(folder, name)))
	}
}

/** Errors with which the command cannot make it either, having no more rights, or with which there is nothing to make. */
const settled = new Set(['EEXIST', 'ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EPERM', 'EROFS'])

/** Whether something is there now, or cannot come there. */
const makeFolder = (path: string): boolean => {
	try {
		mkdirSync(path)
	} catch (error) {
		return settled.has(codeOf(error) ?? '')
	}
	quietly(() => giveTo(path))
	return true
}

/**
 * The same of a file, which is there with its text or not at all: an empty commondir stops every git, on the host too, and a
 * kill or a full disk would leave one.
 */
const makeFile = (path: string, text: string): boolean => {
	const found = lstat(path)
	// bubblewrap leaves an empty one where the file vanished before its mount.
	if (found?.isFile() && found.size === 0 && text !== '') quietly(() => rmSync(path))
	// What is there in any form, a link to nothing too, stays.
	if (lstat(path)) return true
	const temp = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.garuda-tmp`)
	try {
		writeFileSync(temp, text, { flag: 'wx', mode: 0o644 })
		quietly(() => giveTo(temp))
		try {
			linkSync(temp, path)
		} catch (error) {
			if (codeOf(error) === 'EEXIST') return true
			// A disk without hard links.
			if (lstat(path)) return true
			renameSync(temp, path)
		}
		return true
	} catch (error) {
		return settled.has(codeOf(error) ?? '')
	} finally {
		quietly(() => unlinkSync(temp))
	}
}

/** As root, what lies in a user's repository belongs to that user; nobody else can give anything away. */
const giveTo = (path: string): void => {
	const { uid, gid } = lstatSync(dirname(path))
	chownSync(path, uid, gid)
}
