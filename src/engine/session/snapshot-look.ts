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
	/** Of the files: permission bits, by the path without `prefix`. */
	bits: (readonly [path: string, bits: number])[]
	/** Changed just now, relative to `top`. */
	fresh: Set<string>
}

/** So long after a change git may not tell the next one from it: it compares whole seconds. */
const freshMs = 2500

/**
 * Looks at changed paths (relative to `top`). NoSnapshot names the largest files when all of `weighed` together have more
 * than `limit` bytes.
 */
export async function lookAt(o: {
	top: string
	prefix: string
	names: readonly string[]
	weighed: ReadonlySet<string>
	limit: number
	signal: AbortSignal
}): Promise<Seen> {
	const seen: Seen = { present: [], gone: [], bits: [], fresh: new Set() }
	// The disk's clock on both sides.
	const now = Date.now()
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
		seen.bits.push([path, stats.mode & 0o777])
		if (now - stats.ctimeMs < freshMs) seen.fresh.add(name)
		if (!o.weighed.has(name)) continue
		bytes += stats.size
		if (stats.size > 10_000_000) large.push([stats.size, path])
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

/** Those of `names` whose permission bits are others than recorded. Those whose last change is long ago leave the set. */
export function rebitted(
	top: string,
	names: Set<string>,
	recorded: (name: string, execute: boolean) => number,
): string[] {
	const now = Date.now()
	const changed: string[] = []
	for (const name of names) {
		const stats = look(join(top, name))
		if (!stats?.isFile() || now - stats.ctimeMs >= freshMs) names.delete(name)
		if (stats?.isFile() && (stats.mode & 0o777) !== recorded(name, Boolean(stats.mode & 0o100))) changed.push(name)
	}
	return changed
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
