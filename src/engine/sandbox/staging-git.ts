// What a staged command may not bring into the project as part of a git folder, also of one that it made itself: what git
// obeys on the host. A folder is known by its parts, for git takes one of any name. Under the list of changes.
import { promises as fs } from 'node:fs'
import { dirname, join } from 'node:path'
import { riskyKeys } from './git-config.ts'
import { inside } from './paths.ts'
import { type Entry, look, type StagedTree } from './staging-copy.ts'

const configs = new Set(['config', 'config.worktree'])
/** With these a folder becomes one that git takes for a repository. */
const parts = new Set(['head', 'objects', 'refs', 'worktrees'])
const maxConfig = 1_000_000

/**
 * Why an entry that is new or changed must not be applied, or null. Hooks never are, nor a configuration that runs programs or
 * names further files, nor what would make git take a folder with such in it for a repository. A plain repository passes
 * without its hooks folder. Case is not told apart: some disks do not.
 */
export const gitRefusal = async (tree: StagedTree, path: string, entry: Entry): Promise<string | null> => {
	const names = path.toLowerCase().split('/')
	const name = names.at(-1)!
	const folder = parentOf(path)
	for (let index = names.indexOf('hooks'); index >= 0; index = names.indexOf('hooks', index + 1))
		if (await isGitFolder(tree, path.split('/').slice(0, index).join('/'))) return 'git hooks are never applied'
	if (isGitName(name) && entry.kind !== 'folder') return pointer(tree, path, entry)
	if (name === 'commondir' && !(await isPlainCommon(tree, path, entry, names)))
		return 'it would make git obey another folder'
	if (configs.has(name) && (name !== 'config' || (await isGitFolder(tree, folder))))
		return entry.kind === 'folder' ? null : configRefusal(join(tree.path, path), entry)
	if (parts.has(name) && !isGitName(names.at(-2) ?? '') && (await isGitFolder(tree, folder))) {
		const found = await obeyed(tree, folder)
		if (found !== null) return `git would take its folder for a repository and obey ${found} in it`
	}
	return null
}

const parentOf = (path: string): string => (path.includes('/') ? dirname(path) : '')

const isGitName = (name: string): boolean => ['.git', 'git~1'].includes(name.toLowerCase())

/** What stands at a path for the command: its own change, else what the project has. Too much rather than too little. */
const seen = async (tree: StagedTree, path: string): Promise<Entry | undefined> => {
	for (const base of [tree.path, tree.base]) {
		const entry = await look(join(base, path))
		if (entry && !entry.whiteOut) return entry
	}
	return undefined
}

/** Named as one, or with the parts by which git knows one: where a commondir leads there needs be no HEAD. */
const isGitFolder = async (tree: StagedTree, path: string): Promise<boolean> => {
	if (isGitName(path.slice(path.lastIndexOf('/') + 1))) return true
	const kept = /(?:^|\/)(?:\.git|git~1)\/(?:modules|worktrees)(\/.+)/i.exec(path)
	// Not a branch of that name.
	if (kept && !/\/(?:refs|logs|objects)(?:\/|$)/i.test(kept[1]!)) return true
	const has = async (name: string) => (await seen(tree, join(path, name))) !== undefined
	return (await has('objects')) && (await has('refs')) && ((await has('HEAD')) || (await has('worktrees')))
}

const configRefusal = async (at: string, entry: Entry): Promise<string | null> => {
	if (entry.kind !== 'file') return 'a git configuration that is no plain file'
	if (entry.size > maxConfig) return 'a git configuration that is too large to be looked at'
	const text = await fs.readFile(at, 'latin1').catch(() => null)
	if (text === null) return 'a git configuration that cannot be read'
	const keys = [...new Set(riskyKeys(text))]
	return keys.length > 0 ? `a git configuration that runs programs: ${keys.slice(0, 5).join(', ')}` : null
}

/** A linked working folder's: back to the folder that holds `worktrees`. */
const isPlainCommon = async (tree: StagedTree, path: string, entry: Entry, names: string[]): Promise<boolean> => {
	if (entry.kind === 'folder') return true
	if (names.at(-3) !== 'worktrees' || entry.kind !== 'file' || entry.size > 16) return false
	const text = await fs.readFile(join(tree.path, path), 'latin1').catch(() => '')
	return text.trim() === '../..'
}

/** What of a folder in the project, as it was there before, git would obey: what the command adds is refused by itself. */
const obeyed = async (tree: StagedTree, folder: string): Promise<string | null> => {
	for (const name of configs) {
		const at = join(tree.base, folder, name)
		const entry = await look(at)
		if (entry && entry.kind !== 'folder' && (await configRefusal(at, entry)) !== null) return name
	}
	const hooks = await look(join(tree.base, folder, 'hooks'))
	if (!hooks) return null
	if (hooks.kind !== 'folder') return 'hooks'
	const names = await fs.readdir(join(tree.base, folder, 'hooks')).catch(() => ['unreadable'])
	return names.every((name) => name.endsWith('.sample')) ? null : 'hooks'
}

/** `.git` as a file or a link: only to a folder of the project in which git finds nothing to run. */
const pointer = async (tree: StagedTree, path: string, entry: Entry): Promise<string | null> => {
	const at = join(tree.path, path)
	const named =
		entry.kind === 'link'
			? await fs.readlink(at).catch(() => undefined)
			: entry.kind === 'file' && entry.size < 4096
				? /^gitdir: (.+?)\s*$/.exec(await fs.readFile(at, 'utf8').catch(() => ''))?.[1]
				: undefined
	if (named === undefined) return 'it names a git folder in a way that is not understood'
	const real = named.startsWith('/') ? join(named) : join(tree.base, parentOf(path), named)
	if (!inside(real, tree.base) || real === tree.base) return 'it names a git folder outside the project'
	const target = real.slice(tree.base.length + 1).replace(/\/$/, '')
	for (let part = target; part !== ''; part = parentOf(part))
		if ((await seen(tree, part))?.kind === 'link') return 'it names a git folder behind a link'
	// One that the project's own repository keeps is protected already.
	if (tree.had('.git') && /^\.git\/(?:modules|worktrees)\//.test(target)) return null
	const found = await obeyed(tree, target)
	return found === null ? null : `it names a git folder with ${found} that git would obey`
}
