// The names in a project's folders as a staged command begins: tells what appeared in a folder meanwhile from what went. For an
// overlay, which has no copy to compare with.
import { type Dirent, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

interface Seen {
	ino: bigint
	ctimeNs: bigint
	names: ReadonlySet<string>
	folders: string[]
	/** Of the last look that met it unchanged. */
	round: number
}

export interface SightBounds {
	/** Milliseconds of one look, in which nothing else happens. */
	ms: number
	folders: number
}

const usual: SightBounds = { ms: 25, folders: 50_000 }

/** A folder changed this shortly before it was read could change again without a later time. */
const settledNs = 50_000_000n

export class Sight {
	readonly #base: string
	readonly #bounds: SightBounds
	#seen = new Map<string, Seen>()
	#round = 0

	constructor(base: string, bounds: SightBounds = usual) {
		this.#base = base
		this.#bounds = bounds
	}

	/** Goes wide first; a folder that has not changed costs one lstat. What the bounds leave out is unknown. */
	look(): void {
		this.#round++
		const end = performance.now() + this.#bounds.ms
		const next = new Map<string, Seen>()
		const queue = ['']
		let index = 0
		for (; index < queue.length && index < this.#bounds.folders; index++) {
			if (index % 32 === 31 && performance.now() > end) break
			const path = queue[index]!
			const seen = this.#read(path)
			if (!seen) continue
			next.set(path, seen)
			for (const name of seen.folders) queue.push(path === '' ? name : `${path}/${name}`)
		}
		// What was not reached may be reached, cheaply, the next time.
		for (; index < queue.length; index++) {
			const old = this.#seen.get(queue[index]!)
			if (!old) continue
			next.set(queue[index]!, old)
			for (const name of old.folders) queue.push(`${queue[index]}/${name}`)
		}
		this.#seen = next
	}

	#read(path: string): Seen | undefined {
		try {
			const real = join(this.#base, path)
			const { ino, ctimeNs } = lstatSync(real, { bigint: true })
			const old = this.#seen.get(path)
			const round = this.#round
			if (old?.ino === ino && old.ctimeNs === ctimeNs) return { ...old, round }
			const entries: Dirent[] = readdirSync(real, { withFileTypes: true })
			const settled = BigInt(Date.now()) * 1_000_000n - ctimeNs > settledNs
			return {
				ino,
				ctimeNs: settled ? ctimeNs : -1n,
				names: new Set(entries.map(({ name }) => name)),
				folders: entries.filter((entry) => entry.isDirectory()).map(({ name }) => name),
				round,
			}
		} catch {
			return undefined
		}
	}

	/** Whether a folder held a name when the command began; undefined: it was not looked at. */
	had(folder: string, name: string): boolean | undefined {
		const seen = this.#seen.get(folder)
		return seen?.round === this.#round ? seen.names.has(name) : undefined
	}

	/** Whether the folder at a path is still the one that it was; undefined: it was not looked at. `began`: kernel time, ns. */
	same(folder: string, began: bigint): boolean | undefined {
		const seen = this.#seen.get(folder)
		if (seen?.round !== this.#round) return undefined
		try {
			const { ino, birthtimeNs } = lstatSync(join(this.#base, folder), { bigint: true })
			// Its number may be that of a folder that went.
			return ino === seen.ino && birthtimeNs <= began
		} catch {
			return false
		}
	}
}
