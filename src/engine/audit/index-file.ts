// ~/.garuda/audit/index.json: which sessions have a log and where each chain stood last, so that a deleted or cut file is missed.
import { constants, promises as fs } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../errors.ts'
import { lock, type Processes, writeAtomic } from '../files/atomic.ts'
import type { Clock } from '../ports.ts'

export interface IndexHead {
	/** Lines in the file when this was written, and the hash of the last of them. 0 lines: the session has just begun. */
	lines: number
	hash: string
	/** ISO 8601, UTC. */
	time: string
	root: string
	/** The session ended by itself: nothing may come after the head. */
	closed: boolean
}

export type AuditIndex = Map<string, IndexHead>

export interface ReadIndex {
	heads: AuditIndex
	state: 'ok' | 'missing' | 'damaged'
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
const maxBytes = 256 << 20

export const indexPath = (dir: string): string => join(dir, 'index.json')

/** Only well-formed entries; one that is not makes the whole index `damaged`: Garuda writes none such. */
export async function readAuditIndex(dir: string): Promise<ReadIndex> {
	const heads: AuditIndex = new Map()
	let text: string
	try {
		const handle = await fs.open(indexPath(dir), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
		try {
			const stat = await handle.stat()
			if (!stat.isFile() || stat.size > maxBytes) return { heads, state: 'damaged' }
			text = await handle.readFile('utf8')
		} finally {
			await handle.close()
		}
	} catch (error) {
		return { heads, state: codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR' ? 'missing' : 'damaged' }
	}
	try {
		const { sessions, version } = (JSON.parse(text) ?? {}) as { sessions?: unknown; version?: unknown }
		if (typeof sessions !== 'object' || sessions === null || Array.isArray(sessions)) return { heads, state: 'damaged' }
		const entries = Object.entries(sessions)
		// Of a name that stands there twice one entry hides the other.
		let damaged = version !== 1 || (text.match(/(?<!\\)"hash"\s*:/g)?.length ?? 0) !== entries.length
		for (const [id, value] of entries) {
			const { lines, hash, time, root, closed } = (value ?? {}) as Partial<IndexHead>
			if (
				typeof lines !== 'number' ||
				!Number.isSafeInteger(lines) ||
				lines < 0 ||
				typeof hash !== 'string' ||
				!/^[0-9a-f]{64}$/.test(hash) ||
				typeof time !== 'string' ||
				typeof root !== 'string' ||
				typeof closed !== 'boolean'
			) {
				damaged = true
				continue
			}
			heads.set(id, { lines, hash, time, root, closed })
		}
		return { heads, state: damaged ? 'damaged' : 'ok' }
	} catch {
		return { heads, state: 'damaged' }
	}
}

/**
 * Sets one session's head under the index's lock. Entries never fall out: one less would make a deleted file unmissed.
 * A damaged index is kept once as `index.json.damaged`. False when the lock could not be had within about five seconds.
 */
export async function setHead(
	dir: string,
	id: string,
	head: IndexHead,
	clock: Clock,
	processes?: Processes,
): Promise<boolean> {
	const path = indexPath(dir)
	for (let attempt = 0; attempt < 400; attempt++) {
		const held = await lock(`${path}.lock`, clock.now(), processes)
		if (!held.held) {
			await clock.sleep(4 + (attempt % 7) * 3)
			continue
		}
		try {
			const { heads, state } = await readAuditIndex(dir)
			if (state === 'damaged') await fs.link(path, `${path}.damaged`).catch(() => {})
			heads.set(id, head)
			const lines = [...heads].map(([name, one]) => `${JSON.stringify(name)}: ${JSON.stringify(one)}`)
			await writeAtomic(path, `{"version": 1, "sessions": {\n${lines.join(',\n')}\n}}\n`)
			return true
		} finally {
			await held.release()
		}
	}
	return false
}
