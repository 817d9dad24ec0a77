// Old snapshots make room: by age, then by size, at most once a day and beside the work. Used by snapshots.ts.
import { promises as fs } from 'node:fs'
import { basename, join } from 'node:path'
import { writeAtomic } from '../files/atomic.ts'
import type { Clock } from '../ports.ts'
import type { GitStore } from './snapshot-git.ts'

const day = 86_400_000
const stampName = 'prune.json'

/** Milliseconds since 1970 in a snapshot's id of either kind; 0 when it is none. */
export const timeIn = (id: string): number => {
	const time = /^[gc]([0-9a-z]{8,10})-\d{1,7}-[0-9a-f]{6}(?:\.json)?$/.exec(id)?.[1]
	return time === undefined ? 0 : Number.parseInt(time, 36)
}

/** Removes what is older than `keep.days` or makes the store larger than `keep.bytes`; the newest two always stay. Stops at an abort. */
export async function pruneSnapshots(
	o: { store: string; keep: { days: number; bytes: number }; clock: Clock; git: GitStore | null },
	signal: AbortSignal,
): Promise<void> {
	const stamp = join(o.store, stampName)
	const last = await fs.readFile(stamp, 'utf8').then(Number, () => 0)
	if (last > 0 && o.clock.now() - last < day) return
	// Before the work: one that fails is not tried again at once.
	await writeAtomic(stamp, String(o.clock.now()))
	if (last === 0) return

	const copies = join(o.store, 'copies')
	const list = async () => {
		const names = [
			...(o.git ? (await fs.readdir(o.git.refs).catch(() => [])).map((name) => join(o.git!.refs, name)) : []),
			...(await fs.readdir(copies).catch(() => [])).map((name) => join(copies, name)),
		]
		return names
			.map((path) => ({ path, time: timeIn(path.slice(path.lastIndexOf('/') + 1)) }))
			.filter(({ time }) => time > 0)
			.sort((a, b) => b.time - a.time)
	}
	const collect = async (): Promise<void> => {
		await sweepBlobs(o.store, copies)
		if (!o.git || signal.aborted) return
		const more = { signal, timeoutMs: 10 * 60_000 }
		// An hour's grace: another process may have written objects that nothing names yet.
		await o.git.run(['prune', '--expire=1.hour.ago'], more)
		const loose = await looseCount(join(o.store, 'objects'))
		const packs = (await fs.readdir(join(o.store, 'objects/pack')).catch(() => [])).filter((name) =>
			name.endsWith('.pack'),
		)
		if (loose > 5000 || packs.length > 40)
			await o.git.run(['repack', '-a', '-d', '-q', '--unpack-unreachable=1.hour.ago'], more)
	}

	let old = (await list()).slice(2).filter(({ time }) => time < o.clock.now() - o.keep.days * day)
	for (let round = 0; round < 6; round++) {
		for (const { path } of old) {
			await fs.rm(path, { force: true })
			await fs.rm(join(o.store, 'left', basename(path)), { force: true })
		}
		if (old.length > 0 || round === 0) await collect()
		if (signal.aborted || (await sizeOf(o.store)) <= o.keep.bytes) return
		const all = (await list()).slice(2)
		if (all.length === 0) return
		old = all.slice(Math.floor(all.length / 2))
	}
}

/** Copies' bytes that no list names; an hour's grace for one that is being made. */
async function sweepBlobs(store: string, copies: string): Promise<void> {
	const blobs = join(store, 'blobs')
	const names = await fs.readdir(blobs).catch(() => [])
	if (names.length === 0) return
	const used = new Set<string>()
	for (const name of await fs.readdir(copies).catch(() => [])) {
		if (timeIn(name) === 0) continue
		const text = await fs.readFile(join(copies, name), 'utf8').catch(() => '')
		for (const [hash] of text.matchAll(/[0-9a-f]{40}/g)) used.add(hash)
	}
	for (const name of names) {
		if (used.has(name)) continue
		const stats = await fs.lstat(join(blobs, name)).catch(() => null)
		if (stats && Date.now() - stats.mtimeMs > 3_600_000) await fs.rm(join(blobs, name), { force: true })
	}
}

async function looseCount(objects: string): Promise<number> {
	let count = 0
	for (const name of await fs.readdir(objects).catch(() => []))
		if (/^[0-9a-f]{2}$/.test(name)) count += (await fs.readdir(join(objects, name)).catch(() => [])).length
	return count
}

async function sizeOf(path: string): Promise<number> {
	let bytes = 0
	for (const entry of await fs.readdir(path, { withFileTypes: true }).catch(() => [])) {
		const at = join(path, entry.name)
		if (entry.isDirectory()) bytes += await sizeOf(at)
		else bytes += (await fs.lstat(at).catch(() => null))?.size ?? 0
	}
	return bytes
}
