// Undo without git, or beyond a snapshot's budget: plain copies of what the edit tools change. Used by snapshots.ts.
import { randomBytes } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { codeOf, UserError } from '../errors.ts'
import { writeAtomic } from '../files/atomic.ts'
import type { Way } from '../files/open.ts'
import type { Clock } from '../ports.ts'
import {
	blobHash,
	type Change,
	type FileState,
	inFolder,
	isPlainPath,
	presentAt,
	sameBits,
	sameState,
} from './snapshot-files.ts'
import { privateFolder } from './snapshot-store.ts'

interface Entry extends FileState {
	/** Permission bits. */
	bits: number
}

const idShape = /^c[0-9a-z]{8,10}-\d{1,7}-[0-9a-f]{6}$/
/** Whether a snapshot holds only what edit tools change. */
export const isCopyId = (id: string): boolean => idShape.test(id)
const maxPaths = 2000
const maxFile = 64 << 20

export type CopyStore = ReturnType<typeof createCopyStore>

/** Snapshots of the paths that `keep` has named so far; each holds their states as a list, and their bytes by hash. */
export function createCopyStore(o: { root: string; store: string; clock: Clock; way: Way }) {
	const dir = join(o.store, 'copies')
	const blobs = join(o.store, 'blobs')
	let paths: Set<string> | null = null

	async function known(): Promise<Set<string>> {
		if (paths) return paths
		await privateFolder(o.store)
		for (const each of [dir, blobs]) await fs.mkdir(each, { recursive: true, mode: 0o700 })
		const list: unknown = await fs
			.readFile(join(dir, 'paths.json'), 'utf8')
			.then(JSON.parse)
			.catch(() => [])
		paths = new Set(
			Array.isArray(list) ? list.filter((path): path is string => typeof path === 'string' && isPlainPath(path)) : [],
		)
		return paths
	}

	async function capture(path: string): Promise<Entry | null> {
		const there = await presentAt(o.root, path, o.way)
		if (there.kind !== 'file' || there.stats.size > maxFile) return null
		const bytes = await inFolder(o.root, path, o.way, false, async (folder, name) =>
			there.state.mode === '120000'
				? fs.readlink(folder.at(name), { encoding: 'buffer' })
				: fs.readFile(folder.at(name)),
		)
		const hash = blobHash(bytes)
		const stored = await fs.lstat(join(blobs, hash)).catch(() => null)
		if (stored?.size !== bytes.length) await writeAtomic(join(blobs, hash), bytes)
		else await fs.utimes(join(blobs, hash), new Date(), new Date()).catch(() => {})
		return { mode: there.state.mode, hash, bits: there.stats.mode & 0o777 }
	}

	async function load(id: string): Promise<Map<string, Entry | null>> {
		try {
			if (!idShape.test(id)) throw new Error('no such id')
			const value = JSON.parse(await fs.readFile(join(dir, `${id}.json`), 'utf8')) as Record<string, Entry | null>
			return new Map(Object.entries(value))
		} catch {
			throw new UserError(
				'The snapshot of this turn is not in the undo store any more.',
				'Snapshots are kept for a limited time and size.',
			)
		}
	}
	const save = (id: string, files: Map<string, Entry | null>) =>
		writeAtomic(join(dir, `${id}.json`), JSON.stringify(Object.fromEntries(files)))

	return {
		owns: isCopyId,

		async take(turn: number): Promise<string> {
			const id = `c${o.clock.now().toString(36).padStart(8, '0')}-${turn}-${randomBytes(3).toString('hex')}`
			const files = new Map<string, Entry | null>()
			for (const path of await known()) files.set(path, await capture(path))
			await save(id, files)
			return id
		},

		/** Before a tool changes these paths: their present states join the snapshot of the turn's start. */
		async keep(id: string, wanted: string[]): Promise<void> {
			const all = await known()
			const files = await load(id)
			let fresh = false
			for (const path of wanted) {
				if (!isPlainPath(path) || files.has(path)) continue
				files.set(path, await capture(path))
				all.delete(path)
				all.add(path)
				fresh = true
			}
			if (!fresh) return
			await save(id, files)
			while (all.size > maxPaths)
				for (const path of all) {
					all.delete(path)
					break
				}
			await writeAtomic(join(dir, 'paths.json'), JSON.stringify([...all]))
		},

		async diff(from: string, to: string): Promise<Change[]> {
			const [a, b] = [await load(from), await load(to)]
			const changes: Change[] = []
			for (const path of new Set([...a.keys(), ...b.keys()])) {
				// Known to one side only: the other did not look, which is not "not there".
				if (!a.has(path) || !b.has(path)) continue
				const [before, after] = [a.get(path) ?? null, b.get(path) ?? null]
				if (sameState(before, after) && sameBits(before, after)) continue
				changes.push({
					path,
					from: before && stateOf(before),
					to: after && stateOf(after),
				})
			}
			return changes
		},

		async changes(id: string): Promise<string[]> {
			const changed: string[] = []
			for (const [path, entry] of await load(id)) {
				const there = await presentAt(o.root, path, o.way)
				const now = there.kind === 'file' ? there.state : null
				if (!sameState(entry, now) || !sameBits(entry, now)) changed.push(path)
			}
			return changed
		},

		async *contents(hashes: string[]): AsyncGenerator<Map<string, Buffer>> {
			for (const hash of hashes) {
				const bytes = await fs.readFile(join(blobs, hash)).catch((error) => {
					throw new UserError(
						`A file of the snapshot is missing in the undo store (${codeOf(error) ?? 'unknown error'}).`,
					)
				})
				if (blobHash(bytes) !== hash) throw new UserError('A file of the snapshot is damaged in the undo store.')
				yield new Map([[hash, bytes]])
			}
		},
	}
}

const stateOf = ({ mode, hash, bits }: Entry): FileState => (mode === '120000' ? { mode, hash } : { mode, hash, bits })
