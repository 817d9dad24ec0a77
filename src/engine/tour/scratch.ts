// A private copy of the user's folder for the tour to work in, or a sample project in its place. First step of prepareTour.
import { chmod, lstat, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { codeOf, messageOf, UserError } from '../errors.ts'
import { procProcesses } from '../files/atomic.ts'
import { wayHere } from '../files/open.ts'
import { protectedReason, sensitiveReason, under } from '../files/sensitive.ts'
import { readFileAt, walk } from '../files/walk.ts'
import { sampleFiles } from './sample.ts'

export interface Scratch {
	/** The working root of the tour, by its real path: below a 0700 folder of its own. */
	root: string
	/** For EngineOptions.garudaHome: beside the root, so that sessions and snapshots of the tour go with it. */
	garudaHome: string
	/** The sample project instead of the user's files. */
	sample: boolean
	/** Why it is the sample, in words for a person; null for a copy. */
	why: string | null
	/** Removes all of it; idempotent, never throws. */
	remove(): Promise<void>
}

export interface ScratchOptions {
	root: string
	/** The user's home: what is secret there is known by its place, and the home itself is never copied. */
	home: string
	tmpdir: string
	limits?: { files: number; bytes: number }
	/** Stops the copying; the folder is removed and the promise rejects. */
	signal?: AbortSignal
}

const defaults = { files: 2_000, bytes: 20e6 }
/** Files looked at and passed over before a folder counts as too large: a look must end soon, whatever is in there. */
const maxLooks = 20_000
const maxMs = 5_000

/**
 * Copies regular files, nothing else: no links, no secrets, nothing that .gitignore excludes, no installed packages, no
 * repository or configuration that programs obey. Nothing is written to the user's folder. Throws UserError only when
 * the temp folder cannot be written.
 */
export async function makeScratch(options: ScratchOptions): Promise<Scratch> {
	const limits = options.limits ?? defaults
	let box: string
	try {
		const { pid } = await procProcesses.self()
		box = await realpath(await mkdtemp(join(options.tmpdir, `garuda-tour-${pid}-`)))
		await chmod(box, 0o700)
	} catch (error) {
		throw unwritable(options.tmpdir, error)
	}
	await sweep(box).catch(() => {})
	const remove = () => rm(box, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
	try {
		const garudaHome = join(box, 'garuda')
		await mkdir(garudaHome, { mode: 0o700 })
		const from = await realpath(options.root).catch(() => null)
		const home = await realpath(options.home).catch(() => options.home)
		const root = join(box, from === null ? 'sample' : nameFor(from, home))
		const why =
			from === null ? 'Your folder cannot be read' : await copy({ from, to: root, box, home, limits }, options.signal)
		if (why === null) return { root, garudaHome, sample: false, why, remove }
		await rm(root, { recursive: true, force: true })
		const sample = join(box, 'sample')
		for (const [path, text] of Object.entries(sampleFiles)) await put(sample, path, text)
		return { root: sample, garudaHome, sample: true, why, remove }
	} catch (error) {
		await remove()
		if (options.signal?.aborted || error instanceof UserError || codeOf(error) === undefined) throw error
		throw unwritable(options.tmpdir, error)
	}
}

const dayMs = 86_400_000

/**
 * Copies that a killed process left: this user's, a day old, their process gone. The day is for a temp folder shared
 * with a container, whose processes cannot be seen from here.
 */
async function sweep(box: string): Promise<void> {
	const folder = dirname(box)
	const mine = await lstat(box)
	for (const name of await readdir(folder)) {
		const pid = Number(/^garuda-tour-(\d+)-\w{6}$/.exec(name)?.[1])
		if (!pid) continue
		const path = join(folder, name)
		const stats = await lstat(path).catch(() => null)
		if (!stats?.isDirectory() || stats.uid !== mine.uid || mine.mtimeMs - stats.mtimeMs < dayMs) continue
		if ((await procProcesses.alive(pid, '')) === false) await rm(path, { recursive: true, force: true }).catch(() => {})
	}
}

const unwritable = (tmpdir: string, error: unknown): UserError =>
	new UserError(
		`The tour's copy cannot be written in ${tmpdir} (${codeOf(error) ?? messageOf(error)}).`,
		'Make room there, or set TMPDIR to another folder.',
	)

/** The folder's own name where it is a plain one: a copy should look like what was copied. */
const nameFor = (from: string, home: string): string => {
	const name = basename(from)
	const plain = /^[\p{L}\p{N}_][\p{L}\p{N}_ .-]{0,60}$/u.test(name) && !['garuda', 'sample'].includes(name)
	return plain && sensitiveReason(join('/', name), home, []) === null ? name : 'project'
}

interface Copying {
	from: string
	to: string
	/** The folder that holds the copy: when it lies in the user's folder it is not copied into itself. */
	box: string
	home: string
	limits: { files: number; bytes: number }
}

/** Null when the copy is there, else why there is none. Rejects when the copy cannot be written. */
async function copy({ from, to, box, home, limits }: Copying, signal: AbortSignal | undefined): Promise<string | null> {
	if (under(home, from)) return 'The home folder is no project'
	if (sensitiveReason(from, home, [from]) !== null) return 'This folder may hold secrets'
	const large = `Your folder has more than ${limits.files.toLocaleString('en')} files or ${Math.round(limits.bytes / 1e6)} MB`
	const began = performance.now()
	const counts = { ignored: 0, secret: 0, links: 0, unreadable: 0 }
	const handles = (await wayHere()) === 'handles'
	let files = 0
	let bytes = 0
	let looks = 0
	for (const file of walk({ base: from, roots: [from], home, ignore: true, handles }, counts)) {
		signal?.throwIfAborted()
		if (++looks > maxLooks || performance.now() - began > maxMs) return large
		const real = join(from, file.path)
		if (/(?:^|\/)node_modules\//.test(file.path) || under(real, box)) continue
		if (protectedReason(real, from, home) !== null) continue
		if (files >= limits.files) return large
		let content: Buffer | null
		let mode: number
		try {
			// The mode first: reading gives a FIFO or a device up, and a file that grew beyond the limit is too large.
			const stats = await lstat(file.open)
			if (!stats.isFile()) continue
			mode = (stats.mode & 0o700) | 0o600
			if (stats.size > limits.bytes - bytes) return large
			content = readFileAt(file.open, limits.bytes - bytes)
		} catch {
			// Unreadable, or gone meanwhile: the rest is a project still.
			continue
		}
		if (content === null) continue
		bytes += content.length
		if (bytes > limits.bytes) return large
		files++
		await put(to, file.path, content, mode)
	}
	if (files > 0) return null
	return counts.unreadable > 0 ? 'Your folder cannot be read' : 'Your folder holds no files to work on'
}

async function put(root: string, path: string, content: string | Buffer, mode = 0o600): Promise<void> {
	const target = join(root, path)
	await mkdir(dirname(target), { recursive: true, mode: 0o700 })
	// Never through something that is there already: the copy is made in a fresh folder.
	await writeFile(target, content, { mode, flag: 'wx' })
}
