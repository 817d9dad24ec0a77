// Looks, after a command, for what a mount could not prevent: new files that git, editors, shells or agents on the host obey.
//
// A mount needs something to lie on, so a protected name that does not exist yet could only be kept from being made by
// leaving an empty folder in its place; a dozen of those in each project would be seen by git, watchers, packers and the
// model. So only `.garuda` is made in advance, and what stands inside git folders, where nobody sees it (placeholders.ts);
// the rest is found here and named at the end of the output.
import { mkdirSync, readdirSync, rmSync, type Stats } from 'node:fs'
import { dirname, join } from 'node:path'
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
	/** In a git folder that only a walk in the background came upon: new since then, whenever it was made. */
	late: boolean
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

export interface WatchBounds {
	/** Milliseconds of the first look, which the first command waits for, and of each later one. */
	firstMs: number
	laterMs: number
	/** Folders that are looked at; what one look does not reach, a walk in the background does. */
	folders: number
	/** Milliseconds from one walk to the next. */
	walkEveryMs: number
	/** Git folders that are looked at after each command wherever they lie. */
	repositories: number
}
const usual: WatchBounds = { firstMs: 250, laterMs: 25, folders: 50_000, walkEveryMs: 20_000, repositories: 128 }

/**
 * Each look goes wide first, and knows a folder that has not changed by one lstat. `gitFolders`: those of the roots' own
 * repositories, which may lie outside the roots.
 */
export const createWatch = (
	roots: string[],
	gitFolders: () => string[],
	{ firstMs, laterMs, folders, walkEveryMs, repositories }: WatchBounds = usual,
): Watch => {
	const cache = new Map<string, Folder>()
	let last: Map<string, Sight> | undefined
	let sockets: string[] = []
	/** Git folders found by any look, with the mark of those that came late. */
	const repos = new Map<string, { late: boolean }>()
	/** How the last whole look or walk ended. */
	let reach: 'unknown' | 'whole' | 'cut' = 'unknown'
	let walking = false
	let walkedAt = Number.NEGATIVE_INFINITY
	/** The tree was known whole once: a git folder found later by a walk is new. */
	let settled = false
	let told = ''

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

	/** The folder and what is below it; undefined when it is none. */
	const visit = (path: string): { folder: Folder; mtimeMs: number } | undefined => {
		const found = lstat(path)
		return found?.isDirectory() ? { folder: read(path, found), mtimeMs: found.mtimeMs } : undefined
	}
	const remember = (path: string, late: boolean): void => {
		if (!repos.has(path) && repos.size < repositories) repos.set(path, { late })
	}
	const gitOf = (path: string, { bare, watched }: Folder): string[] => [
		...(watched.includes('.git') ? [join(path, '.git')] : []),
		...(bare ? [path] : []),
	]

	const look = (): Map<string, Sight> => {
		const sights = new Map<string, Sight>()
		const looked = new Set<string>()
		const atGit = (at: string, parentMs: number, late = false) => {
			if (looked.has(at)) return
			looked.add(at)
			lookAtGit(at, parentMs, sights, late)
		}
		sockets = []
		const end = performance.now() + (last ? laterMs : firstMs)
		const queue = [...roots]
		let index = 0
		for (; index < queue.length && index < folders; index++) {
			if (index % 64 === 63 && performance.now() > end) break
			const path = queue[index]!
			const seen = visit(path)
			if (!seen) continue
			const { folder, mtimeMs } = seen
			for (const name of folder.watched)
				if (name !== '.git' && (name !== '.garuda' || index >= roots.length)) lookAt(join(path, name), mtimeMs, sights)
			for (const at of gitOf(path, folder)) {
				if (index >= roots.length) remember(at, false)
				atGit(at, mtimeMs)
			}
			for (const name of folder.sockets) sockets.push(join(path, name))
			for (const name of folder.folders) queue.push(join(path, name))
		}
		if (index < queue.length) startWalk(queue.slice(index), index)
		else {
			reach = 'whole'
			settled = true
		}
		for (const [at, { late }] of repos) {
			if (!lstat(at)) repos.delete(at)
			else if (!looked.has(at)) atGit(at, lstat(dirname(at))?.mtimeMs ?? 0, late)
		}
		for (const at of gitFolders()) atGit(at, 0)
		return sights
	}

	/** Goes on where a look ended, a few milliseconds at a time between other work; never keeps the process alive. */
	const startWalk = (queue: string[], seen: number): void => {
		if (walking || performance.now() - walkedAt < walkEveryMs) return
		walking = true
		const late = settled
		let index = 0
		const step = () => {
			const end = performance.now() + 3
			for (; index < queue.length && seen + index < folders && performance.now() < end; index++) {
				const path = queue[index]!
				const found = visit(path)
				if (!found) continue
				for (const at of gitOf(path, found.folder)) remember(at, late)
				for (const name of found.folder.folders) queue.push(join(path, name))
			}
			if (index < queue.length && seen + index < folders) {
				setTimeout(step, 5).unref()
				return
			}
			walking = false
			reach = index < queue.length ? 'cut' : 'whole'
			walkedAt = performance.now()
			settled = true
		}
		setTimeout(step, 5).unref()
	}

	/** Once for each reason: in a tree this large it would else end every command's output. */
	const bounds = (): string[] => {
		const why =
			reach === 'cut'
				? `only ${folders} were`
				: repos.size >= repositories
					? `of its repositories only ${repositories} were`
					: reach === 'unknown'
						? 'the others follow in the background'
						: ''
		if (why === '' || why === told) return []
		told = why
		return [`not all folders of ${roots.join(', ')} were looked at (${why}): what lies deeper is not watched`]
	}

	return {
		known() {
			last ??= look()
			// Anew: a walk may have come upon more since.
			const nested = [...repos.keys()].filter((at) => at.endsWith('/.git') && lstat(at)?.isDirectory())
			return { nested, sockets }
		},
		findings(since) {
			const before = last ?? new Map<string, Sight>()
			last = look()
			const lines: string[] = []
			for (const [path, sight] of last) {
				const old = before.get(path)
				const recent = sight.ctimeMs >= since || (!old && (sight.late || sight.parentMs >= since))
				if (old?.mark === sight.mark || !recent) continue
				if (sight.what === 'commondir') {
					// No tool makes one in a main git folder; with it the next git command on the host obeys another folder.
					const empty = smallFile(path, 0) === ''
					rmSync(path, { recursive: true, force: true })
					last.delete(path)
					// One of no bytes names no configuration: a mount point left it, or a full disk.
					if (empty) continue
					lines.push(`${path} (removed: it would make git use another configuration)`)
				} else lines.push(sight.what === '' ? path : `${path} (${sight.what})`)
			}
			return [...lines, ...bounds()]
		},
	}
}

const sight = (
	path: string,
	found: Stats,
	parentMs: number,
	what: string,
	sights: Map<string, Sight>,
	late = false,
): void => {
	sights.set(path, {
		ctimeMs: found.ctimeMs,
		parentMs,
		mark: `${found.ino}:${found.mode}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`,
		what,
		late,
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

const lookAtGit = (path: string, parentMs: number, sights: Map<string, Sight>, late: boolean): void => {
	const found = lstat(path)
	if (!found) return
	if (!found.isDirectory()) {
		sight(path, found, parentMs, found.isFile() ? 'a git folder elsewhere' : 'a link', sights, late)
		return
	}
	const own = Math.max(parentMs, found.mtimeMs)
	for (const name of ['config', 'config.worktree']) lookAtConfig(join(path, name), own, sights, late)
	const hooks = join(path, 'hooks')
	const folder = lstat(hooks)
	if (folder?.isSymbolicLink()) sight(hooks, folder, own, 'a link', sights, late)
	for (const name of folder?.isDirectory() ? list(hooks) : []) {
		const at = join(hooks, name)
		const file = name.endsWith('.sample') ? undefined : lstat(at)
		if (file) sight(at, file, Math.max(own, folder!.mtimeMs), 'a git hook', sights, late)
	}
	const common = join(path, 'commondir')
	const planted = lstat(common)
	// Garuda's own placeholder names the folder itself.
	if (planted && smallFile(common, 16) !== '.') sight(common, planted, own, 'commondir', sights, late)
	for (const name of list(join(path, 'worktrees'))) {
		const at = join(path, 'worktrees', name, 'commondir')
		const file = lstat(at)
		if (file && smallFile(at, 4096)?.trim() !== '../..') sight(at, file, own, 'names another git folder', sights, late)
		lookAtConfig(join(path, 'worktrees', name, 'config.worktree'), own, sights, late)
	}
}

const lookAtConfig = (at: string, parentMs: number, sights: Map<string, Sight>, late: boolean): void => {
	const file = lstat(at)
	if (!file) return
	if (!file.isFile()) sight(at, file, parentMs, 'not a plain file', sights, late)
	else {
		const risky = riskyKeys(smallFile(at, 1_000_000) ?? '')
		if (risky.length > 0) sight(at, file, parentMs, `sets ${[...new Set(risky)].slice(0, 5).join(', ')}`, sights, late)
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
