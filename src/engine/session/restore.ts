// Undo and redo of one turn's files: everything is checked first, then all of it is done, or nothing. Used by snapshots.ts.
import { promises as fs } from 'node:fs'
import { dirname } from 'node:path'
import { UserError } from '../errors.ts'
import { Moved, type Way } from '../files/open.ts'
import {
	type Change,
	ChangedMeanwhile,
	type FileState,
	inFolder,
	isPlainPath,
	type Present,
	presentAt,
	removeAt,
	sameState,
	writeAt,
} from './snapshot-files.ts'

export interface RestoreOptions {
	root: string
	way: Way
	/** Bytes of the hashes, in groups that fit memory. */
	contents(hashes: string[]): AsyncIterable<Map<string, Buffer>>
	/** Permission bits of a file that has to be made anew, when they were not the usual ones. */
	permissions(path: string): number | undefined
	/** Milliseconds: folders born after it were made by the turn and go when they are empty. */
	since: number
}

/**
 * Brings each path from its `to` state back to its `from` state. A path that is neither (the user changed it since) is a
 * conflict: then nothing is done at all. Paths that already are in their `from` state count as done.
 */
export async function restoreChanges(
	changes: readonly Change[],
	o: RestoreOptions,
): Promise<{ restored: string[]; conflicts: string[] }> {
	const byPath = new Map(changes.map((change) => [change.path, change]))
	const conflicts: string[] = []
	const todo: { change: Change; was: Present }[] = []
	for (const change of changes) {
		if (!isPlainPath(change.path)) {
			conflicts.push(change.path)
			continue
		}
		let was = await presentAt(o.root, change.path, o.way)
		// Behind something that this very turn put there, and that goes first: not there.
		if (was.kind === 'other' && was.at !== change.path && byPath.get(was.at)?.to) was = { kind: 'absent' }
		const now = was.kind === 'file' ? was.state : null
		if (was.kind === 'other') conflicts.push(was.at)
		else if (was.kind === 'folder') {
			// Only a folder of files that all go, where a file was.
			const strange = change.from === null ? change.path : await strangerIn(change.path, byPath, o)
			if (strange !== null || change.to !== null) conflicts.push(strange ?? change.path)
			else todo.push({ change, was })
		} else if (sameState(now, change.from)) continue
		else if (sameState(now, change.to)) todo.push({ change, was })
		else conflicts.push(change.path)
	}
	if (conflicts.length > 0) return { restored: [], conflicts: [...new Set(conflicts)].sort() }

	const restored: string[] = []
	try {
		const gone = todo
			.filter(({ change }) => change.from === null)
			.sort((a, b) => (a.change.path < b.change.path ? 1 : -1))
		for (const { change, was } of gone) {
			await removeAt(o.root, change.path, o.way, was)
			restored.push(change.path)
		}
		const places = new Set(todo.flatMap(({ change, was }) => (was.kind === 'folder' ? [change.path] : [])))
		await removeEmpty(
			gone.map(({ change }) => change.path),
			places,
			o,
		)
		const back = todo.filter(
			(item): item is { change: Change & { from: FileState }; was: Present } => item.change.from !== null,
		)
		const wanted = new Map<string, typeof back>()
		for (const item of back) wanted.set(item.change.from.hash, [...(wanted.get(item.change.from.hash) ?? []), item])
		for await (const group of o.contents([...wanted.keys()]))
			for (const [hash, bytes] of group)
				for (const { change, was } of wanted.get(hash) ?? []) {
					const now: Present = was.kind === 'folder' ? { kind: 'absent' } : was
					await writeAt(o.root, change.path, o.way, now, change.from, bytes, o.permissions(change.path))
					restored.push(change.path)
				}
		if (restored.length < todo.length)
			throw new UserError(
				'Some files of the snapshot are not in the undo store any more.',
				`${restored.length} of ${todo.length} files were restored.`,
			)
	} catch (error) {
		if (!(error instanceof ChangedMeanwhile || error instanceof Moved)) throw error
		throw new UserError(
			`Something changed ${error instanceof ChangedMeanwhile ? error.message : 'a folder'} while it was being restored, so it stopped there.`,
			`${restored.length} of ${todo.length} files were restored. Nothing outside the project was touched; the same command goes on with the rest.`,
		)
	}
	return { restored: restored.sort(), conflicts: [] }
}

/** The first entry below a folder that does not go with this undo; null when all do. */
async function strangerIn(path: string, byPath: Map<string, Change>, o: RestoreOptions): Promise<string | null> {
	const entries = await inFolder(o.root, `${path}/x`, o.way, false, (folder) =>
		fs.readdir(folder.at('x').slice(0, -2), { withFileTypes: true }),
	)
	for (const entry of entries) {
		const at = `${path}/${entry.name}`
		if (entry.isDirectory()) {
			const below = await strangerIn(at, byPath, o)
			if (below !== null) return below
		} else {
			const change = byPath.get(at)
			if (!change || change.from !== null) return at
		}
	}
	return null
}

/** Folders that the removals left empty: those the turn made, and those in the place of a file that comes back. */
async function removeEmpty(removed: readonly string[], places: ReadonlySet<string>, o: RestoreOptions): Promise<void> {
	const folders = new Set<string>()
	for (const path of removed) for (let at = dirname(path); at !== '.'; at = dirname(at)) folders.add(at)
	for (const at of [...folders].sort((a, b) => b.split('/').length - a.split('/').length)) {
		const needed = [...places].some((place) => at === place || at.startsWith(`${place}/`))
		await inFolder(o.root, at, o.way, false, async (folder, name) => {
			const stats = await fs.lstat(folder.at(name))
			// A folder that was there before, empty, stays: nobody asked for it to go.
			if (needed || stats.birthtimeMs >= o.since) await fs.rmdir(folder.at(name))
		}).catch(() => {})
	}
}
