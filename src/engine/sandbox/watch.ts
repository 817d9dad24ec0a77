// Looks, after a command, for what a mount could not prevent: new files that git, editors, shells or agents on the host obey.
//
// A mount needs something to lie on, so a protected name that does not exist yet could only be kept from being made by
// leaving an empty folder in its place; a dozen of those in each project would be seen by git, watchers, packers and the
// model. So only `.garuda` is made in advance; the rest is found here and named at the end of the output.
import { mkdirSync, readdirSync, rmSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { riskyKeys } from './git-config.ts'
import { rootProtected } from './names.ts'
import { lstat, smallFile } from './paths.ts'

interface Folder {
	mtimeMs: number
	ino: number
	folders: string[]
	watched: string[]
	sockets: string[]
	bare: boolean
}

interface Sight {
	ctimeMs: number
	parentMs: number
	mark: string
	what: string
}

export interface Watch {
	/** Git folders below the roots' top level and sockets, as far as the last look saw; looks when it never did. */
	known(): { nested: string[]; sockets: string[] }
	/** What appeared or changed since `since` (ms of the disk's clock), as lines; removes a planted `commondir`. */
	findings(since: number): string[]
}

const watchedNames = new Set(rootProtected)
/** Big trees that hold no sources of their own. */
const skipped = new Set(['node_modules', '.hg', '.svn', '__pycache__', '.venv'])

/** `maxFolders` and `maxMs` bound one look; it goes wide first, so what lies deep in a huge tree may stay unseen. */
export const createWatch = (roots: string[], maxFolders = 2_000, maxMs = 25): Watch => {
	const cache = new Map<string, Folder>()
	let last: Map<string, Sight> | undefined
	let nested: string[] = []
	let sockets: string[] = []

	const read = (path: string, found: Stats): Folder => {
		const cached = cache.get(path)
		if (cached?.mtimeMs === found.mtimeMs && cached.ino === found.ino) return cached
		const folder: Folder = {
			mtimeMs: found.mtimeMs,
			ino: found.ino,
			folders: [],
			watched: [],
			sockets: [],
			bare: false,
		}
		const names = new Set<string>()
		try {
			for (const entry of readdirSync(path, { withFileTypes: true })) {
				names.add(entry.name)
				if (entry.name === '.git' || watchedNames.has(entry.name)) folder.watched.push(entry.name)
				else if (entry.isDirectory() && !skipped.has(entry.name)) folder.folders.push(entry.name)
				else if (entry.isSocket()) folder.sockets.push(entry.name)
			}
		} catch {
			// not ours to read
		}
		folder.bare = names.has('HEAD') && names.has('objects') && names.has('refs') && names.has('config')
		// A folder changed within the clock's grain could change again unseen.
		if (Date.now() - found.mtimeMs > 50) cache.set(path, folder)
		return folder
	}

	const look = (): Map<string, Sight> => {
		const sights = new Map<string, Sight>()
		nested = []
		sockets = []
		const end = performance.now() + maxMs
		const queue = [...roots]
		for (let index = 0; index < queue.length && index < maxFolders; index++) {
			if (index % 64 === 63 && performance.now() > end) break
			const path = queue[index]!
			const found = lstat(path)
			if (!found?.isDirectory()) continue
			const folder = read(path, found)
			for (const name of folder.watched) {
				const at = join(path, name)
				if (name === '.git') {
					if (lstat(at)?.isDirectory() && index >= roots.length) nested.push(at)
					lookAtGit(at, found.mtimeMs, sights)
				} else if (name !== '.garuda' || index >= roots.length) lookAt(at, found.mtimeMs, sights)
			}
			if (folder.bare) lookAtGit(path, found.mtimeMs, sights)
			for (const name of folder.sockets) sockets.push(join(path, name))
			for (const name of folder.folders) queue.push(join(path, name))
		}
		return sights
	}

	return {
		known() {
			last ??= look()
			return { nested, sockets }
		},
		findings(since) {
			const before = last ?? new Map<string, Sight>()
			last = look()
			const lines: string[] = []
			for (const [path, sight] of last) {
				const old = before.get(path)
				const recent = sight.ctimeMs >= since || (!old && sight.parentMs >= since)
				if (old?.mark === sight.mark || !recent) continue
				if (sight.what === 'commondir') {
					// No tool makes one in a main git folder; with it the next git command on the host obeys another folder.
					rmSync(path, { recursive: true, force: true })
					last.delete(path)
					lines.push(`${path} (removed: it would make git use another configuration)`)
				} else lines.push(sight.what === '' ? path : `${path} (${sight.what})`)
			}
			return lines
		},
	}
}

const sight = (path: string, found: Stats, parentMs: number, what: string, sights: Map<string, Sight>): void => {
	sights.set(path, {
		ctimeMs: found.ctimeMs,
		parentMs,
		mark: `${found.ino}:${found.mode}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`,
		what,
	})
}

const lookAt = (path: string, parentMs: number, sights: Map<string, Sight>, depth = 0): void => {
	const found = lstat(path)
	if (!found) return
	if (!found.isDirectory()) {
		sight(path, found, parentMs, '', sights)
		return
	}
	if (depth > 2) return
	for (const name of list(path).slice(0, 64))
		lookAt(join(path, name), Math.max(parentMs, found.mtimeMs), sights, depth + 1)
}

const lookAtGit = (path: string, parentMs: number, sights: Map<string, Sight>): void => {
	const found = lstat(path)
	if (!found) return
	if (!found.isDirectory()) {
		sight(path, found, parentMs, found.isFile() ? 'a git folder elsewhere' : 'a link', sights)
		return
	}
	const own = Math.max(parentMs, found.mtimeMs)
	for (const name of ['config', 'config.worktree']) {
		const at = join(path, name)
		const file = lstat(at)
		if (!file) continue
		if (!file.isFile()) sight(at, file, own, 'not a plain file', sights)
		else {
			const risky = riskyKeys(smallFile(at, 1_000_000) ?? '')
			if (risky.length > 0) sight(at, file, own, `sets ${[...new Set(risky)].slice(0, 5).join(', ')}`, sights)
		}
	}
	const hooks = join(path, 'hooks')
	const folder = lstat(hooks)
	if (folder?.isSymbolicLink()) sight(hooks, folder, own, 'a link', sights)
	for (const name of folder?.isDirectory() ? list(hooks) : []) {
		const at = join(hooks, name)
		const file = name.endsWith('.sample') ? undefined : lstat(at)
		if (file) sight(at, file, Math.max(own, folder!.mtimeMs), 'a git hook', sights)
	}
	const common = join(path, 'commondir')
	const planted = lstat(common)
	if (planted) sight(common, planted, own, 'commondir', sights)
	for (const name of list(join(path, 'worktrees'))) {
		const at = join(path, 'worktrees', name, 'commondir')
		const file = lstat(at)
		if (file && smallFile(at, 4096)?.trim() !== '../..') sight(at, file, own, 'names another git folder', sights)
	}
}

const list = (path: string): string[] => {
	try {
		return readdirSync(path)
	} catch {
		return []
	}
}

/** Makes the root's `.garuda`, so that there is something to keep read-only. A root that cannot be written needs none. */
export const prepareRoot = (root: string): void => {
	try {
		mkdirSync(join(root, '.garuda'), { mode: 0o755 })
	} catch {
		// exists, or a read-only root
	}
}

/** The findings as the note that ends a command's output. */
export const findingsNote = (lines: string[]): string => {
	const shown = lines.slice(0, 10).join('; ')
	const more = lines.length > 10 ? `; and ${lines.length - 10} more` : ''
	return `[note: while this command ran, files appeared or changed that git, an editor, a shell or an agent on this machine would obey outside the sandbox: ${shown}${more}. Tell the user if this was not asked for.]`
}
