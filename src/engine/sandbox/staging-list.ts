// What a staged command changed, from its copy: as data to apply and as a text to ask about. Between the copy and the question.
import { promises as fs } from 'node:fs'
import { dirname, join } from 'node:path'
import { unified } from '../files/unified.ts'
import { oneLine } from '../text.ts'
import { rootProtected } from './names.ts'
import { inside } from './paths.ts'
import { type Entry, type Known, look, type StagedTree, type StagingCopy } from './staging-copy.ts'
import { gitRefusal } from './staging-git.ts'

export interface StagedChange {
	/** Relative to its root. */
	path: string
	kind: 'create' | 'change' | 'delete'
	old?: Entry
	new?: Entry
	/** Only the permission bits differ. */
	modeOnly: boolean
	/** Of links, where they point. */
	target?: string
	oldTarget?: string
	/** A part of a folder that is made or goes as a whole; its folder's change carries it. */
	within: boolean
}

export interface Refused {
	path: string
	why: string
}

export interface StagedList {
	changes: StagedChange[]
	/** What is never applied, and why. */
	refused: Refused[]
	/** Nothing may be applied; `refused` says why. */
	void?: boolean
}

/** Real paths that a command may not change even without staging. */
export type Protected = (real: string) => boolean

/** Compares a copy with what it was made from. Links are never followed, neither by the walk nor by the texts. */
export const listChanges = async (copy: StagingCopy, isProtected: Protected): Promise<StagedList> => {
	const changes: StagedChange[] = []
	const refused: Refused[] = []
	const children = childrenOf(copy.known)
	const refuse = (path: string, why: string) => refused.push({ path, why })

	const made = async (path: string, entry: Entry, within: boolean): Promise<void> => {
		const why = await forbidden(copy, path, entry, isProtected)
		if (why) return void refuse(path, why)
		const target = entry.kind === 'link' ? await fs.readlink(join(copy.path, path)) : undefined
		changes.push({
			path,
			kind: 'create',
			new: entry,
			modeOnly: false,
			within,
			...(target !== undefined && { target }),
		})
		if (entry.kind !== 'folder') return
		for (const name of await namesIn(join(copy.path, path))) {
			const inner = await look(join(copy.path, path, name))
			if (inner) await made(`${path}/${name}`, inner, true)
			else refuse(`${path}/${name}`, noText)
		}
	}

	/** Of what goes with a path: the first that must stay. */
	const mustStay = (path: string): string | undefined => {
		if (isProtected(join(copy.base, path)) || copy.known.get(path)?.skipped) return path
		for (const rel of children.get(path) ?? []) {
			const found = mustStay(rel)
			if (found !== undefined) return found
		}
		return undefined
	}

	const gone = async (path: string, old: Known, within: boolean): Promise<void> => {
		changes.push({ path, kind: 'delete', old: old.base, modeOnly: false, within })
		if (old.base.kind !== 'folder') return
		for (const rel of children.get(path) ?? []) await gone(rel, copy.known.get(rel)!, true)
	}

	const folder = async (rel: string): Promise<void> => {
		const there = await namesIn(join(copy.path, rel))
		const present = new Set(there)
		for (const path of children.get(rel) ?? [])
			if (!present.has(path.slice(rel === '' ? 0 : rel.length + 1))) await lost(path)
		for (const name of there) await one(rel === '' ? name : `${rel}/${name}`)
	}

	const stays = (path: string): boolean => {
		const kept = mustStay(path)
		if (kept !== undefined)
			refuse(path, kept === path ? 'protected or hidden from commands' : `${kept} in it is protected from commands`)
		return kept !== undefined
	}

	const lost = async (path: string): Promise<void> => {
		if (stays(path)) return
		await gone(path, copy.known.get(path)!, false)
	}

	const one = async (path: string): Promise<void> => {
		const old = copy.known.get(path)
		const entry = await look(join(copy.path, path))
		if (!entry) return void refuse(path, noText)
		if (!old) return made(path, entry, false)
		if (old.skipped) return
		if (old.base.kind !== entry.kind) {
			const why = await forbidden(copy, path, entry, isProtected)
			if (why) return void refuse(path, why)
			if (stays(path)) return
			await gone(path, old, false)
			return made(path, entry, false)
		}
		if (entry.kind === 'folder') {
			if (closed(entry)) return void refuse(path, closedWhy)
			if (entry.mode !== old.copy.mode) await changed(path, old, entry, true)
			return folder(path)
		}
		if (entry.key === old.copy.key) return
		const [now, then] = [join(copy.path, path), join(copy.base, path)]
		const same =
			entry.kind === 'link' ? (await fs.readlink(now)) === (await readLink(then)) : await sameBytes(now, then, entry)
		if (same && entry.mode === old.copy.mode) return
		await changed(path, old, entry, same)
	}

	const changed = async (path: string, old: Known, entry: Entry, modeOnly: boolean): Promise<void> => {
		const why = await forbidden(copy, path, entry, isProtected)
		if (why) return void refuse(path, why)
		const target = entry.kind === 'link' ? await fs.readlink(join(copy.path, path)) : undefined
		const oldTarget = old.base.kind === 'link' ? await readLink(join(copy.base, path)) : undefined
		changes.push({
			path,
			kind: 'change',
			old: old.base,
			new: entry,
			modeOnly,
			within: false,
			...(target !== undefined && { target }),
			...(oldTarget !== undefined && { oldTarget }),
		})
	}

	await folder('')
	return { changes, refused }
}

/** By folder; the root is ''. */
const childrenOf = (known: ReadonlyMap<string, Known>): Map<string, string[]> => {
	const children = new Map<string, string[]>()
	for (const path of known.keys()) {
		const parent = dirname(path) === '.' ? '' : dirname(path)
		const list = children.get(parent)
		if (list) list.push(path)
		else children.set(parent, [path])
	}
	return children
}

export const namesIn = async (path: string): Promise<string[]> => (await fs.readdir(path)).sort()

export const readLink = (path: string): Promise<string | undefined> => fs.readlink(path).catch(() => undefined)

export const sameBytes = async (a: string, b: string, { size }: Entry): Promise<boolean> => {
	const other = await look(b)
	if (other?.kind !== 'file' || other.size !== size || size > 64 * 2 ** 20) return false
	// One that cannot be read counts as changed.
	const [one, two] = await Promise.all([a, b].map((path) => fs.readFile(path).catch(() => null)))
	return one && two ? one.equals(two) : false
}

/** Its bytes are no UTF-8, so there is no path for it here. */
const noText = 'its name is no text'

export const closedWhy = 'not even its owner may read it'

/** Whoever wrote it shut himself out, and Garuda with him. */
export const closed = ({ kind, mode }: Entry): boolean =>
	process.getuid?.() !== 0 &&
	kind !== 'link' &&
	(mode & (kind === 'folder' ? 0o500 : 0o400)) !== (kind === 'folder' ? 0o500 : 0o400)

/** Why a new or changed entry must not reach the project, or null. */
export const forbidden = async (
	copy: StagedTree,
	path: string,
	entry: Entry,
	isProtected: Protected,
): Promise<string | null> => {
	if (isProtected(join(copy.base, path))) return 'protected from commands'
	// Devices, an overlay's white-outs, pipes, sockets: no content that a project has.
	if (entry.kind === 'other') return 'no file, folder or link'
	if (closed(entry)) return closedWhy
	if (entry.kind === 'file' && (entry.mode & 0o6000) !== 0) return 'it would run with the rights of its owner'
	if (entry.kind === 'link') {
		const target = await fs.readlink(join(copy.path, path))
		if (!linkInside(copy.base, path, target)) return `a link out of the project, to ${oneLine(target, 200)}`
	}
	return gitRefusal(copy, path, entry)
}

/**
 * Whether a link at `path` stays inside `root` whatever other links there are: `..` may only lead its target, for after the
 * name of another link it would go up from where that one leads.
 */
export const linkInside = (root: string, path: string, target: string): boolean => {
	if (target === '' || target.includes('\0')) return false
	const parts = target.split('/').filter((part) => part !== '' && part !== '.')
	const first = parts.findIndex((part) => part !== '..')
	if (first !== -1 && parts.slice(first).includes('..')) return false
	if (target.startsWith('/')) return parts[0] !== '..' && inside(`/${parts.join('/')}`, root)
	return inside(join(root, dirname(path), target).replace(/(.)\/$/, '$1'), root)
}

// ---------------------------------------------------------------- the text

/** Characters of diffs in all; what does not fit is named without its diff. */
const textChars = 100_000
const maxNames = 2_000
const maxDiffBytes = 512 * 1024

/** The changes for a person: a count, what is left out, each path with its kind and mode, and the diffs of texts. */
export const describeChanges = async (copies: readonly StagedTree[], lists: readonly StagedList[]): Promise<string> => {
	const heads: string[] = []
	const diffs: string[] = []
	let left = textChars
	let undiffed = 0
	let total = 0
	for (const [index, list] of lists.entries()) {
		const copy = copies[index]!
		const shown = (path: string) => oneLine(index === 0 ? path : join(copy.base, path), 1000)
		for (const { path, why } of list.refused) heads.push(`left out: ${shown(path)} (${why})`)
		const objects = list.changes.filter(isGitObject)
		// Named by their content's hash: their names tell a person nothing.
		for (const [store, count] of Map.groupBy(objects, ({ path }) => storeOf(path)!))
			heads.push(`new     ${shown(store)} (${count.length} files and folders of git's store)`)
		for (const change of list.changes) {
			total++
			if (isGitObject(change)) continue
			if (heads.length < maxNames) heads.push(`${headOf(change)} ${shown(change.path)}${tailOf(change)}`)
			const diff = left > 0 ? await diffOf(copy, change, shown(change.path)) : null
			if (diff !== null && diff.length <= left) {
				left -= diff.length
				diffs.push(diff)
			} else if (change.new?.kind === 'file' && !change.modeOnly) undiffed++
		}
	}
	if (total > maxNames) heads.push(`[… ${total - maxNames} more changes, not named …]`)
	const kinds = (['create', 'change', 'delete'] as const).map(
		(kind) => [kind, lists.flatMap((list) => list.changes).filter((one) => one.kind === kind).length] as const,
	)
	const counts = kinds.flatMap(([kind, count]) => (count > 0 ? [`${count} ${words[kind]}`] : []))
	const more =
		undiffed > 0 ? [`[${undiffed} files are binary or too long to show here: only their names are above]`] : []
	return [counts.join(', '), ...heads, ...more, ...(diffs.length > 0 ? ['', ...diffs] : [])].join('\n')
}

/** The store that a path is an object of. */
const storeOf = (path: string): string | undefined =>
	/^((?:.+\/)?\.git\/objects)\/(?:[0-9a-f]{2}(?:\/[0-9a-f]{38,62})?|pack\/pack-[0-9a-f]{40,64}\.\w+)$/.exec(path)?.[1]

const isGitObject = ({ path, kind }: StagedChange): boolean => kind === 'create' && storeOf(path) !== undefined

const words = { create: 'new', change: 'changed', delete: 'deleted' }

/** Protected at the top of a root; further down any project may lie, so it is only said. */
const obeyed = new Set(rootProtected)

const octal = (mode: number): string => mode.toString(8).padStart(3, '0')

const headOf = ({ kind, modeOnly }: StagedChange): string =>
	kind === 'create' ? 'new    ' : kind === 'delete' ? 'delete ' : modeOnly ? 'mode   ' : 'change '

const tailOf = ({ path, kind, old, new: now, target, oldTarget, modeOnly }: StagedChange): string => {
	const what = now ?? old
	const parts: string[] = []
	if (now && path.split('/').some((name) => obeyed.has(name)))
		parts.push('OBEYED by editors, shells or agents that open it')
	if (what?.kind === 'folder') parts.push('folder')
	if (what?.kind === 'link')
		parts.push(
			`link${oldTarget === undefined ? '' : ` from ${oneLine(oldTarget, 200)}`}${target === undefined ? '' : ` to ${oneLine(target, 200)}`}`,
		)
	if (kind === 'create' && now?.kind === 'file' && (now.mode & 0o111) !== 0) parts.push('executable')
	if (kind === 'change' && old && now && old.mode !== now.mode)
		parts.push(`mode ${octal(old.mode)} to ${octal(now.mode)}`)
	if (now?.kind === 'file' && !modeOnly) parts.push(`${now.size.toLocaleString('en')} bytes`)
	return parts.length > 0 ? ` (${parts.join(', ')})` : ''
}

const text = async (path: string, entry: Entry | undefined): Promise<string | null> => {
	if (entry?.kind !== 'file' || entry.size > maxDiffBytes) return null
	const bytes = await fs.readFile(path).catch(() => null)
	if (!bytes || bytes.includes(0)) return null
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch {
		return null
	}
}

/** Null where there is nothing to show as lines. What goes is shown by its name; undo brings it back. */
const diffOf = async (copy: StagedTree, change: StagedChange, shown: string): Promise<string | null> => {
	if (change.kind === 'delete' || change.modeOnly || change.new?.kind !== 'file') return null
	const now = await text(join(copy.path, change.path), change.new)
	const then = change.kind === 'create' ? '' : await text(join(copy.base, change.path), change.old)
	if (now === null || then === null) return null
	return unified({ path: shown, old: change.kind === 'create' ? null : then, new: now }, maxDiffBytes)
}
