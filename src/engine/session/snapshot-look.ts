// What a snapshot is about to take in, looked at first: what is there, how much it is, whose permissions are unusual.
import { accessSync, constants, lstatSync, type Stats } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf } from '../errors.ts'
import { oneLine } from '../text.ts'

/** Why a snapshot was not taken; `slow` ones are not tried again in this session. */
export class NoSnapshot extends Error {
	override name = 'NoSnapshot'
	readonly slow: boolean
	constructor(message: string, slow = false) {
		super(message)
		this.slow = slow
	}
}

export interface Seen {
	/** Files and links. */
	present: string[]
	/** Not there, no file, or behind a link. */
	gone: string[]
	modesChanged: boolean
}

/**
 * Looks at changed paths (relative to `top`). Unusual permission bits go into `modes`, by the path without `prefix`.
 * NoSnapshot names the largest files when all together have more than `limit` bytes.
 */
export async function lookAt(o: {
	top: string
	prefix: string
	names: readonly string[]
	limit: number
	modes: Map<string, number>
	signal: AbortSignal
}): Promise<Seen> {
	const seen: Seen = { present: [], gone: [], modesChanged: false }
	const real = new Map<string, boolean>([['.', true]])
	/** Whether a folder is one by every part: git refuses paths behind a link, and so does undo. */
	const isReal = (dir: string): boolean => {
		const known = real.get(dir)
		if (known !== undefined) return known
		const answer = isReal(dirname(dir)) && (look(join(o.top, dir))?.isDirectory() ?? false)
		real.set(dir, answer)
		return answer
	}
	let bytes = 0
	const large: [number, string][] = []
	for (const [i, name] of o.names.entries()) {
		// In slices: thousands of files must not hold up a screen.
		if (i % 500 === 499) await new Promise((done) => setImmediate(done))
		if (o.signal.aborted) throw new Error('stopped')
		const stats = isReal(dirname(name)) ? look(join(o.top, name)) : undefined
		if (!stats?.isFile() && !stats?.isSymbolicLink()) {
			seen.gone.push(name)
			continue
		}
		seen.present.push(name)
		if (!stats.isFile()) continue
		const path = name.slice(o.prefix.length)
		bytes += stats.size
		if (stats.size > 10_000_000) large.push([stats.size, path])
		const bits = stats.mode & 0o777
		if (bits === 0o644 || bits === 0o755 || bits === 0o664 || bits === 0o775) {
			seen.modesChanged = o.modes.delete(path) || seen.modesChanged
		} else if (o.modes.get(path) !== bits) {
			o.modes.set(path, bits)
			seen.modesChanged = true
		}
	}
	if (bytes > o.limit) {
		const names = large
			.sort((a, b) => b[0] - a[0])
			.slice(0, 3)
			.map(([size, path]) => `${oneLine(path, 100)} (${mega(size)})`)
		throw new NoSnapshot(
			`new and changed files are ${mega(bytes)}, more than the ${mega(o.limit)} a snapshot may take${names.length > 0 ? `; the largest: ${names.join(', ')}` : ''}. A line in .gitignore leaves them out`,
		)
	}
	return seen
}

/** Undefined when it is not there, which a file in the place of a folder on the way also means. */
const look = (path: string): Stats | undefined => {
	try {
		return lstatSync(path, { throwIfNoEntry: false })
	} catch (error) {
		if (codeOf(error) === 'ENOTDIR') return undefined
		throw error
	}
}

/** False for a file that this process may not read. */
export const readable = (path: string): boolean => {
	try {
		if (look(path)?.isFile()) accessSync(path, constants.R_OK)
		return true
	} catch {
		return false
	}
}

const mega = (bytes: number): string =>
	bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.ceil(bytes / 1e6)} MB`
