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
 * sandbox: so each session writes in `own` which ones it may need until it ends, and with two sessions in one repository
 * they stay until the last of them closes.
 */
export class Placeholders {
	readonly #own: string
	/** By path, how many running commands need it; 0 is none. */
	readonly #held = new Map<string, { text: string; count: number }>()

	constructor(own: string) {
		this.#own = own
	}

	/** Makes what is missing, before the mounts. What cannot be made is left out: then the command cannot make it either. */
	hold(wanted: Placeholder[]): () => void {
		const files = new Map(wanted.flatMap(({ path, text }) => (text === null ? [] : [[path, text] as const])))
		const before = this.#held.size
		for (const [path, text] of files) {
			const known = this.#held.get(path)
			if (known) known.count++
			else this.#held.set(path, { text, count: 1 })
		}
		// Before the look at the disk: whoever removes looks here first.
		if (this.#held.size > before)
			quietly(() => writeFileSync(join(this.#own, 'held'), [...this.#held.keys()].join('\0'), { mode: 0o600 }))
		for (const { path, text } of wanted)
			if (text === null) makeFolder(path)
			else makeFile(path, text)
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
			if (!elsewhere.has(path) && smallFile(path, 16) === this.#held.get(path)!.text) quietly(() => unlinkSync(path))
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

const makeFile = (path: string, text: string): void => {
	quietly(() => {
		const found = lstat(path)
		// An empty commondir stops every git; bubblewrap leaves one where the file vanished before its mount.
		if (found?.isFile() && found.size === 0 && text !== '') rmSync(path)
		// What is there in any form, a link to nothing too, makes this fail and stays.
		writeFileSync(path, text, { flag: 'wx', mode: 0o644 })
		giveTo(path)
	})
}

/** As root, what lies in a user's repository belongs to that user; nobody else can give anything away. */
const giveTo = (path: string): void => {
	const { uid, gid } = lstatSync(dirname(path))
	chownSync(path, uid, gid)
}
