// Undo's memory: the project's files before and after each turn. The gate waits for `take` before a turn's first change.
import { promises as fs } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { messageOf, UserError } from '../errors.ts'
import { announce, sweepAnnounced } from '../files/leftovers.ts'
import { wayHere } from '../files/open.ts'
import type { Clock, Snapshots } from '../ports.ts'
import type { Git } from '../sandbox/git.ts'
import { oneLine } from '../text.ts'
import { type RestoreOptions, restoreChanges } from './restore.ts'
import { type CopyStore, createCopyStore, isCopyId } from './snapshot-copies.ts'
import { diffText } from './snapshot-diff.ts'
import type { Change } from './snapshot-files.ts'
import { createGitStore, type GitStore, timeOfId } from './snapshot-git.ts'
import { NoSnapshot } from './snapshot-look.ts'
import { pruneSnapshots, timeIn } from './snapshot-prune.ts'

export interface SnapshotOptions {
	/** Real path. Only what lies in it is covered: no added folders, nothing outside. */
	root: string
	/** `~/.garuda/snapshots/<hash of root>`; made 0700. Whole files lie in it. */
	store: string
	/** Null, or one that is not available: only what the edit tools change can be undone. */
	git: Git | null
	/** Of one snapshot's new content, and of its time. */
	budget: { bytes: number; ms: number }
	keep: { days: number; bytes: number }
	clock: Clock
}

/**
 * What is covered: all files of the root that the repository's and the user's ignore rules do not leave out, tracked or
 * not, with links, the execute right and repositories inside the root (their files, not their `.git`); of `.garuda` only
 * settings, commands, agents, skills and memory. An ignored file is covered from the moment `keep` names it. Never
 * covered, never touched by undo: other ignored files, `.git`, empty folders, names that are no UTF-8, FIFOs and sockets.
 * What somebody else changes while a turn runs counts as the turn's.
 */
export interface GarudaSnapshots extends Snapshots {
	/**
	 * The first call of a turn number is its start, the next its end. Never throws, never waits for another process.
	 * Over budget the start is one that covers only edits (`keep`): an id with a note. A note is given once a session.
	 */
	take(turn: number, signal: AbortSignal): Promise<{ id: string | null; note?: string }>
	/** A tool is about to change these files (absolute paths): awaited before its write, after `take` has resolved. Never throws. */
	keep(paths: readonly string[]): Promise<void>
	/** Whether that turn's snapshots hold only what edit tools change: undo then does not cover commands. */
	onlyEdits(id: string): boolean
	/** A unified diff text of what changed between two snapshots; UserError when one is gone. */
	diff(from: string, to: string): Promise<string>
	/**
	 * Undo is `restore(from, to)`, redo `restore(to, from)`. All or nothing; UserError when a snapshot is gone. `left`: what the
	 * turn made, put under ignore, and no snapshot could take in; it is still there.
	 */
	restore(from: string, to: string, limit?: RestoreLimit): Promise<Restored>
	/** Removes what a killed process was writing beside files when it restored them. Never throws. */
	tidy(): Promise<void>
}

/** For a turn that was broken off, whose own changes nobody has told from later ones. */
export interface RestoreLimit {
	/** No other files. */
	only?: ReadonlySet<string>
	/** Milliseconds: what was touched after it stays and is named in `later`. */
	before?: number
	/** After each file, with how many of how many are put back. */
	progress?(done: number, total: number): void
}

export interface Restored {
	restored: string[]
	conflicts: string[]
	left?: string[]
	later?: string[]
}

export function createSnapshots(o: SnapshotOptions): GarudaSnapshots {
	const said = new Set<string>()
	const stop = new AbortController()
	let stores: Promise<{ git: GitStore | null; copies: CopyStore }> | null = null
	let gitOff = false
	let current: { turn: number; id: string | null } | null = null
	let pruning: Promise<void> | null = null
	let queue: Promise<unknown> = Promise.resolve()

	const serial = <T>(job: () => Promise<T>): Promise<T> => {
		const result = queue.then(job, job)
		queue = result.catch(() => {})
		return result
	}

	const open = () => {
		stores ??= (async () => {
			const way = await wayHere()
			const usable = o.git && (await o.git.available()) !== null
			return {
				git: usable ? createGitStore({ ...o, git: o.git!, way }) : null,
				copies: createCopyStore({ ...o, way }),
			}
		})()
		return stores
	}

	/** A note once; the same reason again is no news. */
	const note = (text: string): { note?: string } => {
		if (said.has(text)) return {}
		said.add(text)
		return { note: text }
	}

	async function take(turn: number, signal: AbortSignal): Promise<{ id: string | null; note?: string }> {
		const ending = current?.turn === turn
		const before = current?.id ?? null
		try {
			const { git, copies } = await open()
			if (ending && before === null) return { id: null }
			if (ending && copies.owns(before!)) return { id: await copies.take(turn) }
			let why = 'there is no usable git on this machine'
			if (git && !gitOff) {
				try {
					const { id, left } = await git.take(turn, signal, ending ? before : null)
					if (!ending) current = { turn, id }
					startPruning(git)
					return { id, ...(left.length > 0 ? { note: leftNote(left) } : {}) }
				} catch (error) {
					if (signal.aborted) {
						if (!ending) current = { turn, id: null }
						return { id: null, note: 'Stopped before the snapshot was taken.' }
					}
					why = messageOf(error)
					if (!(error instanceof NoSnapshot) || error.slow) gitOff = true
				}
			} else if (git) why = ''
			// Of each turn: what is lost is not the same.
			if (ending) return { id: null, note: `This turn cannot be undone: ${why || 'its end could not be recorded'}.` }
			const id = await copies.take(turn)
			current = { turn, id }
			return {
				id,
				...(why === '' ? {} : note(`Undo covers only what the edit tools change, not what commands do: ${why}.`)),
			}
		} catch (error) {
			if (!ending) current = { turn, id: null }
			return { id: null, ...note(`Undo is off: ${messageOf(error)}.`) }
		}
	}

	function startPruning(git: GitStore): void {
		pruning ??= pruneSnapshots({ ...o, git }, stop.signal).catch(() => {})
	}

	async function keep(paths: readonly string[]): Promise<void> {
		const id = current?.id
		if (!id) return
		const inside = paths
			.map((path) => (isAbsolute(path) ? relative(o.root, path) : path))
			.filter((path) => path !== '' && !path.startsWith('../') && path !== '..')
		if (inside.length === 0) return
		const { git, copies } = await open()
		// A file that could not be kept is not undone; the edit itself goes on.
		await (copies.owns(id) ? copies.keep(id, inside) : git?.keep(id, inside))?.catch(() => {})
	}

	/** The store that holds both; UserError when there is none. */
	async function storeOf(from: string, to: string): Promise<CopyStore | GitStore> {
		const { git, copies } = await open()
		const store = copies.owns(from) && copies.owns(to) ? copies : git?.owns(from) && git.owns(to) ? git : null
		if (!store)
			throw new UserError(
				'This turn has no two snapshots of one kind, so its files cannot be compared or restored.',
				'The changes are in your files; git diff shows them where the project is a repository.',
			)
		return store
	}

	/** Of changes, those whose files were last touched after a moment; of a file that is gone, its folder was. */
	async function touchedAfter(changes: readonly Change[], moment: number): Promise<Set<string>> {
		const later = new Set<string>()
		for (const { path, to } of changes) {
			let at = join(o.root, path)
			let stats = await fs.lstat(at).catch(() => null)
			const there = stats !== null && to !== null
			while (!stats && at.length > o.root.length) {
				at = dirname(at)
				stats = await fs.lstat(at).catch(() => null)
			}
			const time = there ? Math.max(stats!.mtimeMs, stats!.ctimeMs) : (stats?.mtimeMs ?? Number.POSITIVE_INFINITY)
			if (time > moment) later.add(path)
		}
		return later
	}

	async function restore(from: string, to: string, limit: RestoreLimit = {}): Promise<Restored> {
		const store = await storeOf(from, to)
		const options: RestoreOptions = {
			root: o.root,
			way: await wayHere(),
			contents: (hashes) => store.contents(hashes),
			since: Math.min(timeOfId(from) || Number.POSITIVE_INFINITY, timeOfId(to) || Number.POSITIVE_INFINITY),
			until: Math.max(timeIn(from), timeIn(to)),
			...(limit.progress ? { progress: limit.progress } : {}),
		}
		const { only, before } = limit
		const all = await store.diff(from, to)
		const later = before === undefined ? null : await touchedAfter(all, before)
		const changes = all.filter(({ path }) => (only?.has(path) ?? true) && !later?.has(path))
		await sweepAnnounced(o.store, o.root)
		const over = await announce(o.store, new Set(changes.map(({ path }) => dirname(join(o.root, path)))))
		const done = await restoreChanges(changes, options).finally(over)
		const result = { ...done, ...(later?.size ? { later: [...later].sort() } : {}) }
		const left: string[] = []
		if (result.conflicts.length === 0 && 'left' in store)
			for (const path of await store.left(to)) if (await isThere(join(o.root, path))) left.push(path)
		return left.length > 0 ? { ...result, left } : result
	}

	return {
		onlyEdits: isCopyId,
		take: (turn, signal) => serial(() => take(turn, signal)),
		keep: (paths) => serial(() => keep(paths)),
		tidy: () => serial(() => sweepAnnounced(o.store, o.root)),
		restore: (from, to, limit) => serial(() => restore(from, to, limit)),
		diff: (from, to) =>
			serial(async () => {
				const store = await storeOf(from, to)
				return diffText(await store.diff(from, to), (hashes) => store.contents(hashes))
			}),
		changes: (id) =>
			serial(async () => {
				const { git, copies } = await open()
				if (copies.owns(id)) return copies.changes(id)
				if (!git) throw new UserError('There is no usable git on this machine to compare with this snapshot.')
				return git.changes(id)
			}),
		async close() {
			stop.abort()
			await queue
			await pruning
		},
	}
}

const leftNote = (left: readonly string[]): string => {
	const names = left.slice(0, 5).map((path) => oneLine(path, 200))
	const more = left.length > names.length ? ` and ${left.length - names.length} more` : ''
	return `Undo of this turn leaves what it made and put under ignore: ${names.join(', ')}${more} (too large, or not certain to be of this turn).`
}

const isThere = (path: string): Promise<boolean> =>
	fs.lstat(path.replace(/\/$/, '')).then(
		() => true,
		() => false,
	)
