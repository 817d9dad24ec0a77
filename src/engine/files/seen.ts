// What an agent has seen of a file: by content and by lines, so that it edits nothing it has not read.
import type { ToolState } from '../ports.ts'

/** Half-open ranges of 0-based lines, sorted, not touching. */
export type Ranges = [number, number][]

/** The port keeps hash and whole; the ranges ride along. */
export interface Seen {
	hash: string
	whole: boolean
	lines?: Ranges
}

const merged = (ranges: Ranges): Ranges => {
	const out: Ranges = []
	for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
		const last = out.at(-1)
		if (last && from <= last[1]) last[1] = Math.max(last[1], to)
		else if (from < to) out.push([from, to])
	}
	return out
}

/** Notes lines as seen. Pages of the same content add up; when they cover all `total` lines the file counts as whole. */
export const noteSeen = (seen: ToolState['seen'], path: string, hash: string, lines: Ranges, total: number): void => {
	const before = seen.get(path) as Seen | undefined
	const same = before?.hash === hash
	if (same && before.whole) return
	const all = merged([...(same ? (before.lines ?? []) : []), ...lines])
	const whole = total === 0 || (all.length === 1 && all[0]![0] === 0 && all[0]![1] >= total)
	const now: Seen = whole ? { hash, whole } : { hash, whole, lines: all }
	seen.set(path, now)
}

/** Whether lines `from` up to but not including `to` were shown. */
export const sawLines = (entry: Seen, from: number, to: number): boolean =>
	entry.whole || (entry.lines ?? []).some(([start, end]) => start <= from && to <= end)

/** The ranges after a change: what was seen moves along, what was written counts as seen. `blocks` as diffBlocks gives them. */
export const carrySeen = (lines: Ranges, blocks: readonly (readonly [number, number, number, number])[]): Ranges => {
	const out: Ranges = blocks.map(([, , from, to]) => [from, to])
	for (const [start, end] of lines) {
		let at = start
		let shift = 0
		for (const [oldFrom, oldTo, , newTo] of blocks) {
			if (oldFrom >= end) break
			if (oldFrom > at) out.push([at + shift, oldFrom + shift])
			at = Math.max(at, oldTo)
			shift = newTo - oldTo
		}
		if (at < end) out.push([at + shift, end + shift])
	}
	return merged(out)
}
