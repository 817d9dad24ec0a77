// Keeps names in a git folder from being made by a command: a mount needs something to lie on, so for as long as a command
// runs, something harmless has the name.
import { chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { lstat, smallFile } from './paths.ts'

/** A file with `text`, or an empty folder (null), which stays: `hooks` and `info` are ordinary parts of a git folder. */
export interface Placeholder {
	path: string
	text: string | null
}

/**
 * The placeholders of one session, counted over its commands. Removing a file takes the mounts on it along, in every
 * sandbox: so the last of all sessions of this user removes it, and each session writes in `own` which ones it needs.
 */
export class Placeholders {
	readonly #own: string
	readonly #held = new Map<string, { text: string; count: number; ino: number }>()

	constructor(own: string) {
		this.#own = own
	}

	/** Makes what is missing, before the mounts. What cannot be made is left out: then the command cannot make it either. */
	hold(wanted: Placeholder[]): () => void {
		const files = new Map(wanted.flatMap(({ path, text }) => (text === null ? [] : [[path, text] as const])))
		const news = [...files.keys()].some((path) => !this.#held.has(path))
		for (const [path, text] of files) {
			const known = this.#held.get(path)
			if (known) known.count++
			else this.#held.set(path, { text, count: 1, ino: 0 })
		}
		// Before the look at the disk: whoever removes looks here first.
		if (news) this.#write()
		for (const { path, text } of wanted)
			if (text === null) makeFolder(path)
			else this.#held.get(path)!.ino = makeFile(path, text) ?? this.#held.get(path)!.ino
		let done = false
		return () => {
			if (done) return
			done = true
			this.#release([...files.keys()])
		}
	}

	#release(paths: string[]): void {
		const over = new Map<string, { text: string; ino: number }>()
		for (const path of paths) {
			const known = this.#held.get(path)
			if (!known || --known.count > 0) continue
			this.#held.delete(path)
			over.set(path, known)
		}
		if (over.size === 0) return
		this.#write()
		const elsewhere = this.#others()
		for (const [path, { text, ino }] of over)
			if (!elsewhere.has(path) && lstat(path)?.ino === ino && smallFile(path, 16) === text)
				quietly(() => unlinkSync(path))
	}

	#write(): void {
		quietly(() => writeFileSync(join(this.#own, 'held'), [...this.#held.keys()].join('\0'), { mode: 0o600 }))
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

const makeFolder = (path: string): void => {
	quietly(() => {
		mkdirSync(path)
		giveTo(path)
	})
}

/** The inode of the file that is ours now; undefined where there is another one, or none can be made. */
const makeFile = (path: string, text: string): number | undefined =>
	quietly(() => {
		const found = lstat(path)
		// An empty commondir stops every git; bubblewrap leaves one where the file vanished before its mount.
		if (found?.isFile() && found.size === 0 && text !== '') rmSync(path)
		else if (found) return found.isFile() && smallFile(path, 16) === text ? found.ino : undefined
		writeFileSync(path, text, { flag: 'wx', mode: 0o644 })
		giveTo(path)
		return lstatSync(path).ino
	})

/** As root, what lies in a user's repository belongs to that user. */
const giveTo = (path: string): void => {
	if (process.getuid?.() !== 0) return
	const { uid, gid } = lstatSync(dirname(path))
	if (uid !== 0) chownSync(path, uid, gid)
}
