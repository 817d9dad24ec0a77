// ~/.garuda/sessions.json: which session lies in which project, so that resume and list work from anywhere. Beside the journals.
import { constants, promises as fs } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf } from '../errors.ts'
import { lock, type Processes, writeAtomic } from '../files/atomic.ts'
import type { Clock } from '../ports.ts'
import { isSessionId } from './ids.ts'

export interface IndexEntry {
	root: string
	title: string
	created: number
	updated: number
}

export type Index = Map<string, IndexEntry>

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
const maxBytes = 16 << 20
/** A map, not the sessions themselves: what falls out here is still listed in its own project. */
const maxEntries = 10_000

/** The entries that are well-formed; empty when the file is missing; `damaged` when it is no such file. */
export async function readIndex(path: string): Promise<{ entries: Index; damaged: boolean }> {
	const entries: Index = new Map()
	let text: string
	try {
		const handle = await fs.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
		try {
			const stat = await handle.stat()
			if (!stat.isFile() || stat.size > maxBytes) return { entries, damaged: true }
			text = await handle.readFile('utf8')
		} finally {
			await handle.close()
		}
	} catch (error) {
		return { entries, damaged: codeOf(error) !== 'ENOENT' }
	}
	try {
		const value: unknown = JSON.parse(text)
		const sessions = (value as { sessions?: unknown } | null)?.sessions
		if (typeof sessions !== 'object' || sessions === null) return { entries, damaged: true }
		for (const [id, entry] of Object.entries(sessions)) {
			const { root, title, created, updated } = (entry ?? {}) as Record<string, unknown>
			if (!isSessionId(id) || typeof root !== 'string' || !root.startsWith('/') || typeof title !== 'string') continue
			entries.set(id, { root, title, created: Number(created) || 0, updated: Number(updated) || 0 })
		}
		return { entries, damaged: false }
	} catch {
		return { entries, damaged: true }
	}
}

/**
 * Changes the file under its lock: read, change, replace. A damaged file is kept once as `sessions.json.damaged`. False
 * when the lock could not be had within about five seconds.
 */
export async function changeIndex(
	path: string,
	clock: Clock,
	change: (entries: Index) => void,
	processes?: Processes,
): Promise<boolean> {
	await fs.mkdir(dirname(path), { recursive: true, mode: 0o700 })
	for (let attempt = 0; attempt < 400; attempt++) {
		const held = await lock(`${path}.lock`, clock.now(), processes)
		if (!held.held) {
			await clock.sleep(4 + (attempt % 7) * 3)
			continue
		}
		try {
			const { entries, damaged } = await readIndex(path)
			// Once only: a second damaged file would overwrite the first, and a loop would fill the disk.
			if (damaged) await fs.link(path, `${path}.damaged`).catch(() => {})
			change(entries)
			const kept = [...entries].sort((a, b) => b[1].updated - a[1].updated).slice(0, maxEntries)
			await writeAtomic(path, `${JSON.stringify({ version: 1, sessions: Object.fromEntries(kept) }, null, 1)}\n`)
			return true
		} finally {
			await held.release()
		}
	}
	return false
}
