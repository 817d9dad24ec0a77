// Walks a tree for glob and grep, inside the search worker: sorted, ignore rules as git's, no link followed, secrets left out.
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type IgnoreFile, isIgnored, parseIgnore } from './gitignore.ts'
import { secretName, sensitiveReason } from './sensitive.ts'

const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY, O_RDONLY } = constants

export interface WalkOptions {
	/** Absolute real path of a folder. */
	base: string
	/** Roots and home for the rules on secrets. */
	roots: readonly string[]
	home: string
	/** Leave out what .gitignore, .git/info/exclude and the user's ignore file exclude. */
	ignore: boolean
	/** Open folders by handle through /proc/self/fd. */
	handles: boolean
}

/** What the walk left out, so that "nothing found" is never mistaken for "did not look". */
export interface WalkCounts {
	/** Files and folders excluded by ignore rules. */
	ignored: number
	secret: number
	links: number
	unreadable: number
}

export interface WalkedFile {
	/** Relative to the base, with "/". */
	path: string
	name: string
	/** What to open with O_NOFOLLOW, only until the next step of the walk. */
	open: string
}

const maxDepth = 250

/** Regular files below the base, in the order of their paths. Folders are opened one below the other, so that none can be swapped for a link. `only` names one file of the base and yields just that. */
export function* walk(options: WalkOptions, counts: WalkCounts, only?: string): Generator<WalkedFile, void> {
	const { stack, prefix } = options.ignore ? outerIgnores(options) : { stack: [], prefix: '' }
	let base: Dir
	try {
		base = openBase(options)
	} catch {
		counts.unreadable++
		return
	}
	if (only !== undefined) {
		try {
			yield { path: only, name: only, open: base.at(only) }
		} finally {
			base.close()
		}
		return
	}
	yield* walkFolder(options, counts, base, { real: options.base, relative: '', prefix, stack, depth: 0 })
}

interface Dir {
	/** Path for the system of an entry in this folder. */
	at(name: string): string
	close(): void
}

interface Place {
	real: string
	/** '' or 'a/b/' */
	relative: string
	/** What stands before `relative` for ignore rules. */
	prefix: string
	stack: readonly IgnoreFile[]
	depth: number
}

const openDir = (path: string, real: string, handles: boolean): Dir => {
	if (!handles) {
		if (!lstatSync(real).isDirectory()) throw new Error('not a folder')
		return { at: (name) => join(real, name), close: () => {} }
	}
	const fd = openSync(path, O_PATH | O_DIRECTORY | O_NOFOLLOW)
	const self = `/proc/self/fd/${fd}`
	return { at: (name) => `${self}/${name}`, close: () => closeSync(fd) }
}

const openBase = ({ base, handles }: WalkOptions): Dir => {
	let dir = openDir('/', '/', handles)
	if (!handles) return openDir(base, base, false)
	for (const part of base.split('/').filter((name) => name !== '')) {
		const outer = dir
		try {
			dir = openDir(outer.at(part), '', true)
		} finally {
			outer.close()
		}
	}
	// Moved between decision and opening: then it is not the folder that was decided on.
	if (readlinkSync(dirname(dir.at('x'))) !== base) {
		dir.close()
		throw new Error('moved')
	}
	return dir
}

function* walkFolder(options: WalkOptions, counts: WalkCounts, dir: Dir, place: Place): Generator<WalkedFile, void> {
	try {
		const entries = readdirSync(dir.at('.'), { withFileTypes: true })
		const names = entries.map((entry) => ({ entry, key: entry.isDirectory() ? `${entry.name}/` : entry.name }))
		names.sort((a, b) => (a.key < b.key ? -1 : 1))
		let { stack } = place
		if (options.ignore && entries.some((entry) => entry.name === '.gitignore')) {
			const text = readSmall(dir.at('.gitignore'))
			if (text) stack = [...stack, parseIgnore(text, place.prefix + place.relative)]
		}
		// Home secrets lie at most four folders deep; deeper, the name alone decides.
		const nearHome = isNear(place.real, options.home)
		for (const { entry } of names) {
			const { name } = entry
			const path = place.relative + name
			const folder = entry.isDirectory()
			if (entry.isSymbolicLink()) {
				counts.links++
				continue
			}
			if (!folder && !entry.isFile()) continue
			if (name === '.git') continue
			if (stack.length > 0 && isIgnored(stack, place.prefix + path, name, folder)) {
				counts.ignored++
				continue
			}
			const real = place.real === '/' ? `/${name}` : `${place.real}/${name}`
			if (folder || nearHome ? sensitiveReason(real, options.home, options.roots) : secretName(name)) {
				counts.secret++
				continue
			}
			if (!folder) {
				yield { path, name, open: dir.at(name) }
				continue
			}
			if (place.depth >= maxDepth) {
				counts.unreadable++
				continue
			}
			let inner: Dir
			try {
				inner = openDir(dir.at(name), real, options.handles)
			} catch {
				counts.unreadable++
				continue
			}
			yield* walkFolder(options, counts, inner, { ...place, real, relative: `${path}/`, stack, depth: place.depth + 1 })
		}
	} catch (error) {
		// Only the folder's own listing: a permission or a disk error hides this folder, not the rest.
		if (typeof (error as NodeJS.ErrnoException).code !== 'string') throw error
		counts.unreadable++
	} finally {
		dir.close()
	}
}

const isNear = (real: string, home: string): boolean =>
	real === home ||
	home.startsWith(real === '/' ? '/' : `${real}/`) ||
	(real.startsWith(`${home}/`) && real.slice(home.length).split('/').length <= 5)

/** The ignore files that rule the base from above: the user's, the repository's, and those of the folders in between. */
const outerIgnores = ({ base, roots, home }: WalkOptions): { stack: IgnoreFile[]; prefix: string } => {
	const top = repositoryTop(base) ?? roots.find((root) => base === root || base.startsWith(`${root}/`)) ?? base
	const stack: IgnoreFile[] = []
	const add = (path: string, at: string): void => {
		const text = readSmall(path)
		if (text) stack.push(parseIgnore(text, at))
	}
	add(join(home, '.config/git/ignore'), '')
	add(join(top, '.git/info/exclude'), '')
	const parts = base === top ? [] : base.slice(top === '/' ? 1 : top.length + 1).split('/')
	// The base's own file is read by the walk.
	parts.forEach((_, depth) => {
		const at = parts.slice(0, depth).join('/')
		add(join(top, at, '.gitignore'), at === '' ? '' : `${at}/`)
	})
	return { stack, prefix: parts.length ? `${parts.join('/')}/` : '' }
}

const repositoryTop = (base: string): string | null => {
	for (let folder = base; ; folder = dirname(folder)) {
		try {
			lstatSync(join(folder, '.git'))
			return folder
		} catch {
			if (dirname(folder) === folder) return null
		}
	}
}

/** A small regular file's text, or '' (missing, a link, a FIFO, a device, larger than 1 MB). Never waits. */
const readSmall = (path: string): string => {
	try {
		if (!lstatSync(path).isFile()) return ''
		return readFileAt(path, 1 << 20)?.toString('utf8') ?? ''
	} catch {
		return ''
	}
}

/** Bytes of a regular file, no link followed; null when it is larger than `limit` or not a regular file. Throws the system's error. `into` is reused when it is large enough. */
export const readFileAt = (path: string, limit: number, into?: Buffer): Buffer | null => {
	const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
	try {
		let buffer = into ?? Buffer.allocUnsafe(16_384)
		let filled = readSync(fd, buffer, 0, buffer.length, 0)
		if (filled < buffer.length) return buffer.subarray(0, filled)
		// Larger than the buffer: only now is its size worth a call.
		const stats = fstatSync(fd)
		if (!stats.isFile() || stats.size > limit) return null
		const rest = Buffer.allocUnsafe(stats.size + 1)
		buffer.copy(rest)
		buffer = rest
		for (;;) {
			const read = readSync(fd, buffer, filled, buffer.length - filled, filled)
			if (read === 0) return buffer.subarray(0, filled)
			filled += read
			// It grew meanwhile: what was there at first is enough.
			if (filled === buffer.length) return buffer
		}
	} finally {
		closeSync(fd)
	}
}
