// The git folder a root belongs to: which of it commands may write, and what in it makes git run programs.
import { readdirSync, readlinkSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import type { ConfigView } from './git-config.ts'
import { parseGitConfig } from './git-config.ts'
import { gitProtected } from './names.ts'
import { below, inside, lstat, real, smallFile } from './paths.ts'
import type { Placeholder } from './placeholders.ts'

export interface RepositoryParts {
	/** Git folders outside the root that commands may write (but for `protect`). */
	writable: string[]
	/** Existing real paths to keep read-only; may lie outside every writable folder. */
	protect: string[]
	/** Hooks folders that a configuration names and that do not exist yet: nothing to lay a mount on, so looked for afterwards. */
	absent: string[]
	/** Files that a configuration includes and that do not exist yet. */
	absentIncludes: string[]
	/** What a git folder lacks and a command must not make: something harmless takes its place while the command runs. */
	missing: Placeholder[]
	/** Every git folder looked at: the repository's own and its submodules'. */
	folders: string[]
}

const noParts = (): RepositoryParts => ({
	writable: [],
	protect: [],
	absent: [],
	absentIncludes: [],
	missing: [],
	folders: [],
})

const isGitDir = (path: string): boolean =>
	!!lstat(join(path, 'HEAD')) && !!lstat(join(path, 'objects'))?.isDirectory() && !!lstat(join(path, 'refs'))

/**
 * Looks at `.git` of the root, or of the nearest parent up to the home folder. A git folder outside the root counts only
 * when it is the repository's own: a parent's real `.git`, or one that points back to this very working folder. The
 * root is written by commands, so its `.git` file alone proves nothing.
 */
export const repositoryParts = (root: string, home: string, config: (path: string) => ConfigView): RepositoryParts => {
	const parts = noParts()
	for (let top = root; ; top = dirname(top)) {
		const entry = join(top, '.git')
		const found = lstat(entry)
		if (found) {
			if (found.isDirectory()) {
				if (top !== root && isGitDir(entry) && mine(found.uid)) parts.writable.push(entry)
				protectGitDir(entry, top, parts, home, config)
			} else if (found.isFile()) {
				parts.protect.push(entry)
				linked(entry, top, root, parts, home, config)
			} else if (found.isSymbolicLink()) {
				const target = real(entry)
				if (target && below(target, root)) protectGitDir(target, top, parts, home, config)
			}
			break
		}
		if (top === home || dirname(top) === top) break
	}
	return parts
}

const mine = (uid: number): boolean => uid === process.getuid?.()

/** `.git` as a file: a linked worktree or a submodule. */
const linked = (
	file: string,
	top: string,
	root: string,
	parts: RepositoryParts,
	home: string,
	config: (path: string) => ConfigView,
): void => {
	const named = /^gitdir: (.+?)\s*$/.exec(smallFile(file, 4096) ?? '')?.[1]
	const gitDir = named && real(resolve(top, named))
	if (!gitDir || gitDir === '/' || !lstat(gitDir)?.isDirectory()) return
	const commonName = smallFile(join(gitDir, 'commondir'), 4096)?.trim()
	const common = commonName === undefined ? undefined : real(resolve(gitDir, commonName))
	if (below(gitDir, root)) {
		protectGitDir(common && below(common, root) ? common : gitDir, top, parts, home, config)
		return
	}
	if (!mine(lstat(gitDir)!.uid)) return
	if (common) {
		const back = smallFile(join(gitDir, 'gitdir'), 4096)?.trim()
		const known = back && real(resolve(gitDir, back)) === file
		if (!known || dirname(gitDir) !== join(common, 'worktrees') || !isGitDir(common)) return
		parts.writable.push(common)
		protectGitDir(common, top, parts, home, config, false)
		// The other worktrees: a planted commondir or config there would act when their owner next works.
		for (const name of names(join(common, 'worktrees')))
			if (join(common, 'worktrees', name) !== gitDir) parts.protect.push(join(common, 'worktrees', name))
		protectWorktree(gitDir, config(join(common, 'config')).worktreeConfig, parts)
		return
	}
	const worktree = parseGitConfig(smallFile(join(gitDir, 'config')) ?? '').find(({ key }) => key === 'core.worktree')
	if (worktree && isGitDir(gitDir) && real(resolve(gitDir, worktree.value)) === top) {
		parts.writable.push(gitDir)
		protectGitDir(gitDir, top, parts, home, config)
	}
}

const names = (folder: string): string[] => {
	try {
		return readdirSync(folder)
	} catch {
		return []
	}
}

/** What one command pays for at most: further ones are left to the watch. */
const maxWorktrees = 64

/** The parts of one git folder, of its submodules and worktrees, and the hooks folder and includes that its configuration names. */
const protectGitDir = (
	gitDir: string,
	top: string,
	parts: RepositoryParts,
	home: string,
	config: (path: string) => ConfigView,
	worktrees = true,
): void => {
	const own = config(join(gitDir, 'config'))
	addParts(gitDir, parts, own, worksElsewhere(gitDir, own))
	if (worktrees)
		for (const name of names(join(gitDir, 'worktrees')).slice(0, maxWorktrees))
			protectWorktree(join(gitDir, 'worktrees', name), own.worktreeConfig, parts)
	const queue = [join(gitDir, 'modules')]
	for (let seen = 0; queue.length > 0 && seen < 64; seen++) {
		const folder = queue.shift()!
		if (!lstat(folder)?.isDirectory()) continue
		for (const name of names(folder)) {
			const path = join(folder, name)
			if (isGitDir(path)) {
				// A submodule: its core.worktree is where its .git file stands, so git finds the same by itself.
				addParts(path, parts, config(join(path, 'config')), false)
				queue.push(join(path, 'modules'))
			} else queue.push(path)
		}
	}
	for (const file of [join(gitDir, 'config'), join(home, '.gitconfig'), join(home, '.config/git/config')]) {
		const view = config(file)
		parts.protect.push(...view.files.slice(1).flatMap((path) => real(path) ?? []))
		parts.absentIncludes.push(...view.missing)
		for (const value of view.hooksPaths) {
			const path = value.startsWith('~/') ? join(home, value.slice(2)) : isAbsolute(value) ? value : resolve(top, value)
			const folder = real(path)
			// A folder that holds the whole root (`hooksPath = .`) cannot be protected without stopping all work.
			if (folder && !inside(top, folder)) parts.protect.push(folder)
			else if (!folder && path !== '/dev/null') parts.absent.push(path)
		}
	}
}

/** There is no working folder, or another one than git would find by itself. */
const worksElsewhere = (gitDir: string, view: ConfigView): boolean => {
	if (view.bare) return true
	if (view.worktree === undefined) return false
	const folder = resolve(gitDir, view.worktree)
	const entry = join(folder, '.git')
	const named = /^gitdir: (.+?)\s*$/.exec(smallFile(entry, 4096) ?? '')?.[1]
	return real(named === undefined ? entry : resolve(folder, named)) !== real(gitDir)
}

/** The git folder of a linked worktree: its files that name other places, and its own configuration where git reads one. */
const protectWorktree = (gitDir: string, worktreeConfig: boolean, parts: RepositoryParts): void => {
	for (const name of ['commondir', 'gitdir', 'config.worktree']) {
		const path = join(gitDir, name)
		if (lstat(path)) parts.protect.push(path)
		else if (name === 'config.worktree' && worktreeConfig && lstat(gitDir)?.isDirectory())
			parts.missing.push({ path, text: '' })
	}
}

/** `elsewhere`: the configuration moves the working folder or has none, which git forgets where there is a commondir. */
const addParts = (gitDir: string, parts: RepositoryParts, view: ConfigView, elsewhere: boolean): void => {
	parts.folders.push(gitDir)
	const whole = isGitDir(gitDir)
	for (const name of gitProtected) {
		const path = join(gitDir, name)
		const found = lstat(path)
		// One that Garuda left when it was killed, or an empty one, with which no git works, is taken over.
		const left = name === 'commondir' && found && ['.', ''].includes(smallFile(path, 16) ?? 'another')
		if (whole && (!found || left)) parts.missing.push(...placeholder(name, path, view, elsewhere))
		if (!found) continue
		// Of a link, what it leads to; the link itself is watched, for a mount cannot lie on it.
		const target = found.isSymbolicLink() ? real(path) : path
		if (target) parts.protect.push(target)
		else if (name === 'hooks') parts.absent.push(linkTarget(path))
	}
}

const linkTarget = (path: string): string => {
	try {
		return resolve(dirname(path), readlinkSync(path))
	} catch {
		return path
	}
}

/**
 * What stands for a protected name that is not there. A `commondir` of "." names the git folder itself, so git goes on as
 * before, but for two things: it then takes neither core.bare nor core.worktree from the configuration, and a reftable
 * would be opened twice. Such a repository gets none, and a planted commondir is removed afterwards.
 */
const placeholder = (name: string, path: string, view: ConfigView, elsewhere: boolean): Placeholder[] => {
	if (name === 'commondir') return elsewhere || view.reftable ? [] : [{ path, text: '.' }]
	return [{ path, text: name === 'hooks' || name === 'info' ? null : '' }]
}

/** The parts of a nested repository found by the watch. */
export const nestedParts = (
	gitDir: string,
	config: (path: string) => ConfigView,
): Pick<RepositoryParts, 'protect' | 'missing'> => {
	const parts = noParts()
	const view = config(join(gitDir, 'config'))
	addParts(gitDir, parts, view, worksElsewhere(gitDir, view))
	return parts
}
