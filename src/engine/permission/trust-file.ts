// ~/.garuda/trust.json on the disk: private, replaced as a whole under a lock. Beside the trust store.
import { constants, promises as fs } from 'node:fs'
import { dirname } from 'node:path'
import { deepAt } from '../config/json-place.ts'
import { codeOf, UserError } from '../errors.ts'
import { lock, writeAtomic } from '../files/atomic.ts'
import { ownUid } from '../own-uid.ts'
import type { Clock } from '../ports.ts'
import type { TrustKind } from './trust.ts'

/** A consent to one text. */
export interface Entry {
	kind: TrustKind
	root: string
	name: string
	path: string
	/** Of the bytes that were agreed to. */
	sha256: string
	/** When, in milliseconds. */
	time: number
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
const maxBytes = 4 << 20
/** Oldest consents fall out: they are asked for again. */
const maxEntries = 5_000

interface State {
	entries: Entry[]
	/** It is there and is no such file: nobody's consent can be read from it. */
	damaged: boolean
	/** A later Garuda's: never written by this one. */
	newer: boolean
}

/**
 * The consents. A damaged file counts as none, is kept once as `trust.json.damaged` at the next change, and is told of.
 * UserError: a link, another user's, or writable by others.
 */
export async function readTrust(file: string, told: string[]): Promise<State> {
	const state = await read(file)
	const say = (text: string) => {
		if (!told.includes(text)) told.push(text)
	}
	if (state.damaged) say(`${file} is damaged, so nothing of it counts: what you agreed to is asked for again.`)
	if (state.newer) say(`${file} was written by a newer Garuda and is left as it is: nothing of it counts here.`)
	return state
}

async function read(file: string): Promise<State> {
	const none: State = { entries: [], damaged: false, newer: false }
	let handle: fs.FileHandle
	try {
		handle = await fs.open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
	} catch (error) {
		const code = codeOf(error)
		if (code === 'ENOENT') return none
		if (code === 'ELOOP' || code === 'EMLINK')
			throw new UserError(
				`${file} is a link; consents are read through none.`,
				'Replace it by the file itself, or remove it.',
			)
		throw new UserError(`${file} cannot be read (${code ?? 'unknown error'}).`, 'Check its owner and mode.')
	}
	try {
		const stat = await handle.stat()
		if (!stat.isFile()) throw new UserError(`${file} is no regular file.`, 'Move it away.')
		const uid = await ownUid()
		if (uid !== null && stat.uid !== uid)
			throw new UserError(`${file} belongs to another user (uid ${stat.uid}).`, 'Remove it; you will be asked again.')
		if (stat.mode & 0o022)
			throw new UserError(
				`${file} can be written by others, so its consents may not be yours.`,
				`Remove it, or: chmod 600 ${file}`,
			)
		if (stat.size > maxBytes) return { ...none, damaged: true }
		return parse(await handle.readFile('utf8'))
	} finally {
		await handle.close()
	}
}

function parse(text: string): State {
	try {
		if (deepAt(text, 20) !== null) return { entries: [], damaged: true, newer: false }
		const value = JSON.parse(text) as { version?: unknown; consents?: unknown } | null
		if (typeof value?.version === 'number' && value.version > 1) return { entries: [], damaged: false, newer: true }
		// What is no list is damaged: it has no filter.
		const entries = (value!.consents as unknown[]).filter(isEntry)
		return { entries, damaged: false, newer: false }
	} catch {
		return { entries: [], damaged: true, newer: false }
	}
}

const isEntry = (value: unknown): value is Entry => {
	if (typeof value !== 'object' || value === null) return false
	const { kind, root, name, path, sha256, time } = value as Record<string, unknown>
	return (
		[kind, root, name, path].every((one) => typeof one === 'string') &&
		typeof sha256 === 'string' &&
		/^[0-9a-f]{64}$/.test(sha256) &&
		typeof time === 'number'
	)
}

/** Read, change, replace, under the lock: concurrent writers lose nothing. UserError when it cannot be written. */
export async function changeTrust(
	file: string,
	clock: Clock,
	told: string[],
	change: (entries: Entry[]) => Entry[],
): Promise<void> {
	await fs.mkdir(dirname(file), { recursive: true, mode: 0o700 })
	for (let attempt = 0; attempt < 400; attempt++) {
		const held = await lock(`${file}.lock`, clock.now())
		if (!held.held) {
			await clock.sleep(4 + (attempt % 7) * 3)
			continue
		}
		try {
			const { entries, damaged, newer } = await readTrust(file, told)
			if (newer) throw new UserError(`${file} was written by a newer Garuda.`, 'Use that one, or move the file away.')
			// Once only: a later damaged file must not overwrite the first, and a loop must not fill the disk.
			if (damaged) await fs.link(file, `${file}.damaged`).catch(() => {})
			const kept = change(entries).toSorted((a, b) => a.time - b.time)
			const consents = kept.slice(-maxEntries)
			await writeAtomic(file, `${JSON.stringify({ version: 1, consents }, null, 1)}\n`)
			return
		} finally {
			await held.release()
		}
	}
	throw new UserError(
		`${file} is locked by another Garuda and could not be changed.`,
		`Remove ${file}.lock if none runs.`,
	)
}
