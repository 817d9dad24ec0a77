// What one command may see and write: built anew for each command from the disk as it is now, by a few dozen lstat calls.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { UserError } from '../errors.ts'
import { createDenied } from './denied.ts'
import { commandEnvironment } from './environment.ts'
import { createConfigReader } from './git-config.ts'
import { homeProtected, homeSecrets, privateFolders, procHidden, rootProtected, systemSecrets } from './names.ts'
import { below, between, inside, lstat, real, smallFile, stat } from './paths.ts'
import type { Placeholder } from './placeholders.ts'
import { nestedParts, type RepositoryParts, repositoryParts } from './repository.ts'

/** A piece of the file tree: an empty private folder, a read-only or a writable view of `source` (default: the same path). */
export interface Mount {
	kind: 'private' | 'read' | 'write'
	path: string
	source?: string
}
export interface Mask {
	path: string
	folder: boolean
	/** A root inside it comes back, so it must be able to hold mount points. */
	holds?: boolean
}
interface Layer {
	pins: string[]
	protect: string[]
	masks: Mask[]
}
/** Everything bubblewrap needs to know about one command; all paths real and absolute. */
export interface Policy extends Layer {
	procHidden: string[]
	base: Mount[]
	back: (Layer & { path: string; write: boolean })[]
	/** What lies over hidden files and folders: empty, and not writable by commands. */
	emptyFile: string
	emptyFolder: string
	/** Hooks folders that git would obey once they exist. */
	absent: string[]
	/** The same of files that a configuration includes. */
	absentIncludes: string[]
	/** Names in the home that hold secrets or are obeyed at the next login, do not exist, and could be made by this command. */
	absentHome: string[]
	/** Git folders that are read-only as a whole, for the disk did not take what would keep single names in them from being made. */
	shut?: string[]
	/** Bytes of each private folder. */
	tmpBytes: number
	cwd: string
	env: Record<string, string>
	filter: boolean
	/** Started in the session's network namespace, and stays in it; else it gets an empty one of its own. */
	network?: boolean
}

export interface PolicyOptions {
	root: string
	extraDirs: string[]
	home: string
	tmp: string
	env: Record<string, string | undefined>
	envAllow: string[]
	writePaths: string[]
	caches: string[]
	denyRead: string[]
	tmpBytes: number
	/** The executor's own folder: no command may see or change its pipes and its filter. */
	own: string
	emptyFile: string
	emptyFolder: string
	filter: boolean
}

export interface PolicyBuilder {
	/** Real paths of the root and the added folders. */
	readonly roots: string[]
	/** Git folders of the roots' repositories, inside and outside the roots, as of the last command. */
	gitFolders(): string[]
	/**
	 * `hold` makes placeholders first, and gives the folders that must be read-only because it could not; without it, names that
	 * a git folder lacks can be made. `nested`: git folders below the roots, from the watch; `sockets`: sockets found there.
	 */
	build(spec: {
		cwd: string
		env: Record<string, string>
		readOnly: boolean
		nested: string[]
		sockets: string[]
		network?: boolean
		hold?: (wanted: Placeholder[]) => string[] | undefined
	}): Policy
}

/** Mounts that bound what is masked, protected and bound in one command, so that a planted tree cannot make each start slow. */
const maxNested = 64
const maxSockets = 64

/** Which of `names` (parts by /) are there: one listing of the folder instead of an lstat for each of a hundred names. */
const existing = (folder: string, names: string[]): string[] => {
	let entries: Set<string>
	try {
		entries = new Set(readdirSync(folder))
	} catch {
		return names.map((name) => join(folder, name)).filter((path) => lstat(path))
	}
	return names.flatMap((name) => {
		const slash = name.indexOf('/')
		if (!entries.has(slash < 0 ? name : name.slice(0, slash))) return []
		const path = `${folder}/${name}`
		return slash < 0 || lstat(path) ? [path] : []
	})
}

const fail = (what: string, path: string, hint: string): never => {
	throw new UserError(`${what}: ${path}`, hint)
}

/**
 * Fixes what holds for the session: the real paths of the root (a later re-link has no effect), of the added folders and of
 * the home. Throws UserError for a root that cannot be fenced in and for a `denyRead` pattern that cannot be expanded.
 */
export const createPolicyBuilder = (options: PolicyOptions): PolicyBuilder => {
	const home = real(options.home) ?? normalize(options.home)
	const tmp = real(options.tmp) ?? fail('The session folder is missing', options.tmp, 'Make it before the sandbox.')
	const roots = [options.root, ...options.extraDirs].map(
		(path) => real(path) ?? fail('There is no such folder', path, 'Start Garuda in an existing folder.'),
	)
	for (const root of roots) {
		if (root === '/' || ['/proc', '/sys', '/dev'].some((folder) => inside(root, folder)))
			fail('This folder cannot be a working root', root, 'Start Garuda in a project folder.')
		if (existing(home, homeSecrets).some((path) => (real(path) ?? path) === root))
			fail('This folder holds secrets and cannot be a working root', root, 'Start Garuda in a project folder.')
	}
	const uid = process.getuid?.() ?? -1
	const hiddenProc = existing('/proc', procHidden)
	const folders = privateFolders.filter((path) => lstat(path)?.isDirectory())
	const system = uid === 0 ? systemSecrets.filter((path) => lstat(path)) : []
	const homes = [
		home,
		...aliases(home, smallFile('/proc/self/mountinfo', Number.POSITIVE_INFINITY) ?? procText('/proc/self/mountinfo')),
	]
	const config = createConfigReader(home)
	const denied = createDenied(options.denyRead, roots[0]!, home)
	denied()
	let last: RepositoryParts[] | undefined
	const look = () => roots.map((root) => repositoryParts(root, home, config))

	return {
		roots,
		gitFolders() {
			last ??= look()
			return last.flatMap((parts) => parts.folders)
		},
		build({ cwd, env, readOnly, nested, sockets, network = false, hold }) {
			const kind = readOnly ? 'read' : 'write'
			const repositories = look()
			last = repositories
			const own = [...new Set([...roots, ...repositories.flatMap(({ writable }) => writable)])]
			const base: Mount[] = folders.map((path) =>
				path === '/tmp' ? { kind: 'write', path, source: tmp } : { kind: 'private', path },
			)
			// Some systems keep every program below /run.
			if (lstat('/run/current-system')) base.push({ kind: 'read', path: '/run/current-system' })
			const covered = folders.some((folder) => below(home, folder)) && !own.some((path) => inside(home, path))
			if (covered && lstat(home)) base.push({ kind: 'read', path: home })
			const caches = readOnly ? [] : [...options.caches, ...options.writePaths].flatMap((path) => usable(path, home))
			for (const path of caches) base.push({ kind: 'write', path })
			for (const path of own) base.push({ kind, path })
			const mounts = unique(base)

			const layer: Layer = { pins: [], protect: [], masks: [] }
			const absentHome = readOnly ? [] : absentNames(home, mounts)
			const shut = new Set<string>()
			if (!readOnly) {
				const inner = nested.slice(0, maxNested).map((path) => nestedParts(path, config))
				// A planted link among the parents would have the placeholder made outside.
				const missing = [...repositories, ...inner]
					.flatMap((parts) => parts.missing)
					.filter(({ path }) => writableIn(mounts, path) && real(dirname(path)) === dirname(path))
				for (const folder of hold?.(missing) ?? []) shut.add(folder)
				const wanted = [
					...[...repositories, ...inner].flatMap(({ protect }) => protect),
					...missing.map(({ path }) => path),
					...nested.slice(0, maxNested),
					...[...roots, ...options.writePaths.flatMap((path) => real(path) ?? [])].flatMap((root) =>
						existing(root, rootProtected),
					),
					...existing(home, homeProtected),
				]
				for (const path of wanted) {
					const target = real(path)
					// Only what is below a writable mount: a planted link to / must not bring the host's folders back.
					if (target && writableIn(mounts, target)) (nested.includes(path) ? layer.pins : layer.protect).push(target)
				}
			}
			const hide = (path: string) => {
				const target = real(path)
				const found = target && stat(target)
				if (target && found) layer.masks.push({ path: target, folder: found.isDirectory() })
			}
			for (const folder of homes) for (const path of existing(folder, homeSecrets)) hide(path)
			for (const path of [
				options.own,
				...system,
				...denied(),
				...sockets.slice(0, maxSockets),
				...boundSockets(mounts, tmp),
				// Journals quote every command: a search of the project would find itself. A link there may lead anywhere.
				...roots.map((root) => join(root, '.garuda/sessions')).filter((path) => real(path) === path),
			])
				hide(path)
			layer.protect.push(...shut)
			return {
				procHidden: hiddenProc,
				...arrange(mounts, layer, own, tmp),
				absent: readOnly ? [] : repositories.flatMap(({ absent }) => absent),
				absentIncludes: readOnly
					? []
					: repositories.flatMap((parts) => parts.absentIncludes).filter((path) => writableIn(mounts, path)),
				absentHome,
				shut: [...shut],
				emptyFile: options.emptyFile,
				emptyFolder: options.emptyFolder,
				tmpBytes: options.tmpBytes,
				cwd,
				env: { ...commandEnvironment(options.env, home, options.envAllow), TMPDIR: '/tmp', ...env },
				filter: options.filter,
				network,
			}
		},
	}
}

/** The deepest mount that holds `path`; undefined is the read-only host. */
const nearest = (path: string, mounts: Mount[]): Mount | undefined => {
	let found: Mount | undefined
	for (const mount of mounts)
		if (inside(path, mount.path) && (!found || mount.path.length >= found.path.length)) found = mount
	return found
}

/** Whether a command can write the host's own `path`: it lies below a writable mount, and not in the session folder. */
export const writableIn = (mounts: Mount[], path: string): boolean => {
	const mount = nearest(path, mounts)
	return mount?.kind === 'write' && !mount.source && mount.path !== path
}

/** Names of the home that matter, are not there, and could be made. Garuda's own folder is made at once, to have something to mask. */
const absentNames = (home: string, mounts: Mount[]): string[] => {
	const near = mounts.filter(({ path }) => inside(home, path) || below(path, home))
	const open = [...homeSecrets, ...homeProtected].filter((name) => writableIn(near, `${home}/${name}`))
	if (open.length === 0) return []
	const there = new Set(existing(home, open))
	const absent = open.map((name) => `${home}/${name}`).filter((path) => !there.has(path))
	const own = `${home}/.garuda`
	if (!absent.includes(own)) return absent
	mkdirSync(own, { mode: 0o700 })
	return absent.filter((path) => path !== own)
}

/** Whether a command sees the host's own `path`, not something private in its place. */
const visible = (path: string, mounts: Mount[], tmp: string): boolean => {
	const mount = nearest(path, mounts)
	return mount?.kind !== 'private' && mount?.source !== tmp
}

/** One mount a path, the last wins (a root that is /tmp shows the real one). */
const unique = (mounts: Mount[]): Mount[] => [...new Map(mounts.map((mount) => [mount.path, mount])).values()]

/** Puts pins under what must stay in place, leaves out masks that nobody can see, and sets apart the roots inside masks. */
const arrange = (
	base: Mount[],
	layer: Layer,
	own: string[],
	tmp: string,
): Pick<Policy, 'base' | 'back' | keyof Layer> => {
	const seen = new Set<string>()
	const masks = layer.masks.filter(({ path }) => {
		if (seen.has(path) || !visible(path, base, tmp) || nearest(path, base)?.path === path) return false
		seen.add(path)
		return true
	})
	// A mask below a mask needs no mount of its own, and could have none.
	const outer = masks.filter(({ path }) => !masks.some((mask) => mask.folder && below(path, mask.path)))
	const hidden = (path: string) => outer.some((mask) => mask.folder && inside(path, mask.path))
	const protect = [...new Set(layer.protect)]
	const writable = (path: string) => nearest(path, base)?.kind === 'write'
	const pins = new Set<string>(layer.pins)
	for (const path of [...protect, ...masks.map((mask) => mask.path)]) {
		const mount = nearest(path, base)
		if (mount?.kind === 'write' && mount.source !== tmp)
			for (const folder of between(path, mount.path)) pins.add(folder)
	}
	// A pin is writable: below a protected folder it would open it again.
	const useful = [...pins].filter((path) => writable(path) && !protect.some((folder) => inside(path, folder)))
	const back = own
		.filter((path) => outer.some((mask) => mask.folder && below(path, mask.path)))
		.map((path) => ({
			path,
			write: writable(path),
			pins: shallowFirst(useful.filter((pin) => below(pin, path))),
			protect: protect.filter((each) => below(each, path)),
			masks: masks.filter((mask) => below(mask.path, path)),
		}))
	return {
		base: [...base, ...mountPoints(base, tmp)],
		pins: shallowFirst(useful.filter((path) => !hidden(path))),
		protect: protect.filter((path) => !hidden(path)),
		masks: outer.map((mask) => (back.some(({ path }) => below(path, mask.path)) ? { ...mask, holds: true } : mask)),
		back,
	}
}

const shallowFirst = (paths: string[]): string[] => paths.sort((a, b) => a.length - b.length)

/**
 * A mount below /tmp needs folders in the session folder, which commands write: a link planted there would lead bubblewrap's
 * mkdir out to the host. So the folders are made here, and each is a mount point of its own that no command can rename.
 */
const mountPoints = (base: Mount[], tmp: string): Mount[] => {
	const found = new Map<string, Mount>()
	for (const { path, source } of base) {
		if (
			source === tmp ||
			nearest(
				path,
				base.filter((mount) => mount.path !== path),
			)?.source !== tmp
		)
			continue
		for (const folder of [...between(path, '/tmp'), path]) {
			const at = join(tmp, folder.slice('/tmp'.length))
			if (!lstat(at)?.isDirectory()) {
				rmSync(at, { force: true })
				mkdirSync(at)
			}
			if (folder !== path) found.set(folder, { kind: 'write', path: folder, source: at })
		}
	}
	return [...found.values()]
}

/** An existing folder or file to bind writable, or none: never one that holds the home or the whole disk. */
const usable = (path: string, home: string): string[] => {
	const target = real(path)
	return target && !inside(home, target) && !['/proc', '/sys', '/dev'].some((folder) => inside(target, folder))
		? [target]
		: []
}

const procText = (path: string): string => {
	try {
		return readFileSync(path, 'utf8')
	} catch {
		return ''
	}
}

/** Sockets of this machine's programs, by path; daemons keep some outside /run and /tmp. */
const boundSockets = (mounts: Mount[], tmp: string): string[] => {
	const found = new Set<string>()
	for (const line of procText('/proc/net/unix').split('\n')) {
		const path = /^\S+ \S+ \S+ \S+ \S+ \S+ +\d+ (\/.+)$/.exec(line)?.[1]
		if (path && visible(path, mounts, tmp)) found.add(path)
		if (found.size >= maxSockets) break
	}
	return [...found].filter((path) => lstat(path)?.isSocket())
}

/**
 * Other paths at which the home can be reached because its disk is mounted twice, from the text of mountinfo;
 * checked by device and inode.
 */
export const aliases = (home: string, mountinfo: string): string[] => {
	const mounts = mountinfo
		.split('\n')
		.map((line) => line.split(' '))
		.filter((fields) => fields.length > 6)
		.map((fields) => ({ device: fields[2]!, root: unescaped(fields[3]!), point: unescaped(fields[4]!) }))
	const holder = mounts
		.filter(({ point }) => inside(home, point))
		.reduce<(typeof mounts)[number] | undefined>(
			(best, mount) => (!best || mount.point.length >= best.point.length ? mount : best),
			undefined,
		)
	const self = stat(home)
	if (!holder || !self) return []
	const onDisk = normalize(join(holder.root, home.slice(holder.point === '/' ? 0 : holder.point.length)))
	return mounts
		.filter(({ device, root }) => device === holder.device && inside(onDisk, root))
		.map(({ root, point }) =>
			normalize(join(point, onDisk.slice(root === '/' ? 0 : root.length))).replace(/(.)\/$/, '$1'),
		)
		.filter((path) => {
			const found = path === home ? undefined : stat(path)
			return found?.dev === self.dev && found.ino === self.ino
		})
}

const unescaped = (field: string): string =>
	field.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8)))
