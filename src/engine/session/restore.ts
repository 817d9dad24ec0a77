// Undo and redo of one turn's files: everything is checked first, then all of it is done, or nothing. Used by snapshots.ts.
import { promises as fs, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { UserError } from '../errors.ts'
import { syncFolder, writerMarks } from '../files/atomic.ts'
import { type Folder, Moved, openFolder, type Way } from '../files/open.ts'
import {
	type Change,
	ChangedMeanwhile,
	chmodAt,
	type FileState,
	folderOf,
	inFolder,
	isPlainPath,
	isSpecial,
	type PreparedState,
	type Present,
	prepareState,
	presentAt,
	presentIn,
	removeAt,
	removeSpecial,
	sameBits,
	sameState,
} from './snapshot-files.ts'

export interface RestoreOptions {
	root: string
	way: Way
	/** Bytes of the hashes, in groups that fit memory. */
	contents(hashes: string[]): AsyncIterable<Map<string, Buffer>>
	/** Milliseconds: folders born after it were made by the turn and go when they are empty. */
	since: number
	/** Milliseconds: pipes and sockets born before it, where the turn's start had a file or folder, were made by the turn. */
	until: number
	/** After each few files, with how many of how many are done. */
	progress?(done: number, total: number): void
}

/** Questions to the disk at once, and files that wait beside their names at once: the disk flushes many as fast as one. */
const together = 16
const batch = 128

interface Todo {
	change: Change
	was: Present
	/** Bits to give; undefined: as they are now. */
	bits: number | undefined
	/** The content is right already. */
	bitsOnly: boolean
}

/**
 * Brings each path from its `to` state back to its `from` state. A path that is neither (the user changed it since) is a
 * conflict: then nothing is done at all. Paths that already are in their `from` state count as done. What fails midway is
 * taken back. Permission bits count where the turn changed them.
 */
export async function restoreChanges(
	changes: readonly Change[],
	o: RestoreOptions,
): Promise<{ restored: string[]; conflicts: string[] }> {
	const { todo, specials, conflicts } = await check(changes, o)
	if (conflicts.size > 0) return { restored: [], conflicts: [...conflicts].sort() }
	const finished: Change[] = []
	try {
		await act(todo, specials, o, (change) => {
			finished.push(change)
			o.progress?.(finished.length, todo.length)
		})
	} catch (error) {
		const back = await takeBack(finished, o)
		if (!(error instanceof ChangedMeanwhile || error instanceof Moved)) throw error
		throw new UserError(
			`Something changed ${error instanceof ChangedMeanwhile ? error.message : 'a folder'} while it was being restored, so it stopped there.`,
			back
				? 'No file was restored. Nothing outside the project was touched; try once more.'
				: `${finished.length} of ${todo.length} files were restored. Nothing outside the project was touched; the same command goes on with the rest.`,
		)
	}
	return { restored: finished.map(({ path }) => path).sort(), conflicts: [] }
}

/** What is to do for each path, or what stands against it. */
async function check(changes: readonly Change[], o: RestoreOptions) {
	const byPath = new Map(changes.map((change) => [change.path, change]))
	const conflicts = new Set<string>()
	const todo: Todo[] = []
	const specials = new Map<string, Stats>()
	const plain = changes.filter(({ path }) => isPlainPath(path) || !conflicts.add(path))
	const seen = new Map<string, Present>()
	await pooled([...Map.groupBy(plain, ({ path }) => folderOf(o.root, path)).values()], async (some) => {
		const paths = some.map(({ path }) => path)
		for (const [index, was] of (await presentIn(o.root, paths, o.way)).entries()) seen.set(paths[index]!, was)
	})
	for (const change of plain) {
		const { path, from, to } = change
		let was = seen.get(path)!
		if (was.kind === 'other') {
			// Behind something that this very turn put there, and that goes first: not there.
			if (was.at !== path && byPath.get(was.at)?.to) was = { kind: 'absent' }
			else if (was.special && from !== null && to === null && madeBefore(was.special, o.until)) {
				specials.set(was.at, was.special)
				was = { kind: 'absent' }
			}
		}
		if (was.kind === 'other') {
			conflicts.add(was.at)
			continue
		}
		const now = was.kind === 'file' ? was.state : null
		if (was.kind === 'folder') {
			// Only a folder of files that all go, where a file was.
			const strange = from === null ? path : await strangerIn(path, byPath, specials, o)
			if (strange !== null || to !== null) conflicts.add(strange ?? path)
			else todo.push({ change, was, bits: from?.bits, bitsOnly: false })
			continue
		}
		const turned = from !== null && to !== null && !sameBits(from, to)
		const bits = turned || to === null ? from?.bits : undefined
		if (sameState(now, from)) {
			// The content is back already; the bits may still be the turn's.
			if (!turned || sameBits(now, from)) continue
			if (sameBits(now, to)) todo.push({ change, was, bits, bitsOnly: true })
			else if (from.hash === to.hash) conflicts.add(path)
		} else if (!sameState(now, to) || (turned && !sameBits(now, to) && !sameBits(now, from))) conflicts.add(path)
		else {
			const bitsOnly = turned && from.hash === to.hash && from.mode !== '120000' && to.mode !== '120000'
			todo.push({ change, was, bits, bitsOnly })
		}
	}
	return { todo, specials, conflicts }
}

const madeBefore = (stats: Stats, until: number): boolean =>
	// Whole milliseconds, as `until` has them.
	Math.floor(stats.birthtimeMs || stats.ctimeMs) <= until

async function act(
	todo: readonly Todo[],
	specials: ReadonlyMap<string, Stats>,
	o: RestoreOptions,
	done: (change: Change) => void,
): Promise<void> {
	/** Files whose other names were taken away here: that alone changes their time of change. */
	const ours = new Set<string>()
	const fresh = async ({ change: { path }, was }: Todo): Promise<Present> => {
		if (was.kind === 'folder') return { kind: 'absent' }
		if (was.kind !== 'file' || was.stats.nlink < 2) return was
		const key = `${was.stats.dev}:${was.stats.ino}`
		if (!ours.has(key)) {
			ours.add(key)
			return was
		}
		const now = await presentAt(o.root, path, o.way)
		if (now.kind !== 'file' || now.stats.ino !== was.stats.ino || !sameState(now.state, was.state))
			throw new ChangedMeanwhile(path)
		return now
	}
	for (const [path, stats] of specials) await removeSpecial(o.root, path, o.way, stats)
	const gone = todo
		.filter(({ change }) => change.from === null)
		.sort((a, b) => (a.change.path < b.change.path ? 1 : -1))
	for (const item of gone) {
		await removeAt(o.root, item.change.path, o.way, await fresh(item))
		done(item.change)
	}
	await removeEmpty(
		gone.map(({ change }) => change.path),
		o,
	)
	for (const { change, was } of todo) if (was.kind === 'folder') await clearPlace(change.path, o)
	const wanted = new Map<string, Todo[]>()
	let count = gone.length
	for (const item of todo) {
		const { from, path } = item.change
		if (from === null) continue
		if (item.bitsOnly) {
			await chmodAt(o.root, path, o.way, await fresh(item), item.bits!)
			done(item.change)
			count++
		} else wanted.set(from.hash, [...(wanted.get(from.hash) ?? []), item])
	}
	const written = new Set<string>()
	for await (const group of o.contents([...wanted.keys()])) {
		const writes = [...group].flatMap(([hash, bytes]) => (wanted.get(hash) ?? []).map((item) => ({ item, bytes })))
		for (let at = 0; at < writes.length; at += batch) {
			const some = writes.slice(at, at + batch)
			for (const { item } of some) written.add(folderOf(o.root, item.change.path))
			await writeBatch(some, o, fresh, done)
			count += some.length
		}
	}
	// Once, when all names are taken: until then a crash leaves the old or the new content under each of them.
	await pooled([...written], async (path) => {
		const folder = await openFolder(path, o.way).catch(() => null)
		if (!folder) return
		await syncFolder(folder)
		await folder.close()
	})
	if (count < todo.length)
		throw new UserError(
			'Some files of the snapshot are not in the undo store any more.',
			'Snapshots are kept for a limited time and size.',
		)
}

/** The contents of some files, all on the disk before the first takes its name. What fails leaves nothing beside the rest. */
async function writeBatch(
	writes: readonly { item: Todo; bytes: Buffer }[],
	o: RestoreOptions,
	fresh: (item: Todo) => Promise<Present>,
	done: (change: Change) => void,
): Promise<void> {
	const folders = new Map<string, Folder>()
	const prepared: { item: Todo; state: PreparedState | null }[] = writes.map(({ item }) => ({ item, state: null }))
	let left = 0
	const mark = await writerMarks()
	try {
		const paths = [...new Set(writes.map(({ item }) => folderOf(o.root, item.change.path)))]
		for (const path of paths) folders.set(path, await openFolder(path, o.way, true))
		await pooled(writes, async ({ item: { change, was, bits }, bytes }, index) => {
			const folder = folders.get(folderOf(o.root, change.path))!
			prepared[index]!.state = await prepareState(
				folder,
				change.path,
				was,
				change.from as FileState,
				bytes,
				bits,
				mark(),
			)
		})
		for (; left < prepared.length; left++) {
			const { item, state } = prepared[left]!
			await state!.place(await fresh(item))
			done(item.change)
		}
	} finally {
		for (const { state } of prepared.slice(left)) await state?.drop()
		for (const folder of folders.values()) await folder.close()
	}
}

/** Some at a time, in order. All have ended when it rejects with the first failure. */
async function pooled<T, R>(items: readonly T[], work: (item: T, index: number) => Promise<R>): Promise<R[]> {
	const results: R[] = new Array(items.length)
	let next = 0
	let failed: { error: unknown } | null = null
	const worker = async (): Promise<void> => {
		while (next < items.length && !failed) {
			const index = next++
			try {
				results[index] = await work(items[index]!, index)
			} catch (error) {
				failed ??= { error }
			}
		}
	}
	await Promise.all(Array.from({ length: Math.min(together, items.length) }, worker))
	if (failed) throw (failed as { error: unknown }).error
	return results
}

/** Undoes the half of an undo; false when that is not possible either. */
async function takeBack(finished: readonly Change[], o: RestoreOptions): Promise<boolean> {
	try {
		const swapped = finished.map(({ path, from, to }) => ({ path, from: to, to: from }))
		const { todo, specials, conflicts } = await check(swapped, o)
		if (conflicts.size > 0) return false
		await act(todo, specials, o, () => {})
		return true
	} catch {
		return false
	}
}

/** The first entry below a folder that does not go with this undo; null when all do. Pipes and sockets of the turn go too. */
async function strangerIn(
	path: string,
	byPath: Map<string, Change>,
	specials: Map<string, Stats>,
	o: RestoreOptions,
): Promise<string | null> {
	for (const { name, stats } of await entriesOf(path, o)) {
		const at = `${path}/${name}`
		if (stats.isDirectory()) {
			const below = await strangerIn(at, byPath, specials, o)
			if (below !== null) return below
		} else if (isSpecial(stats) && madeBefore(stats, o.until)) specials.set(at, stats)
		else {
			const change = byPath.get(at)
			if (!change || change.from !== null) return at
		}
	}
	return null
}

const entriesOf = (path: string, o: RestoreOptions): Promise<{ name: string; stats: Stats }[]> =>
	inFolder(o.root, `${path}/x`, o.way, false, async (folder) => {
		const names = await fs.readdir(dirname(folder.at('x')))
		return Promise.all(names.map(async (name) => ({ name, stats: await fs.lstat(folder.at(name)) })))
	})

/** Removes a folder in whose place a file comes back; only empty folders are left in it. */
async function clearPlace(path: string, o: RestoreOptions): Promise<void> {
	if ((await presentAt(o.root, path, o.way)).kind === 'absent') return
	for (const { name, stats } of await entriesOf(path, o)) {
		if (!stats.isDirectory()) throw new ChangedMeanwhile(`${path}/${name}`)
		await clearPlace(`${path}/${name}`, o)
	}
	await inFolder(o.root, path, o.way, false, (folder, name) => fs.rmdir(folder.at(name)))
}

/** Folders that the removals left empty and that the turn made. */
async function removeEmpty(removed: readonly string[], o: RestoreOptions): Promise<void> {
	const folders = new Set<string>()
	for (const path of removed) for (let at = dirname(path); at !== '.'; at = dirname(at)) folders.add(at)
	for (const at of [...folders].sort((a, b) => b.split('/').length - a.split('/').length))
		await inFolder(o.root, at, o.way, false, async (folder, name) => {
			// A folder that was there before, empty, stays: nobody asked for it to go.
			if ((await fs.lstat(folder.at(name))).birthtimeMs >= o.since) await fs.rmdir(folder.at(name))
		}).catch(() => {})
}
