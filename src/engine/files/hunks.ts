// A change in hunks: what a question shows, and exactly what an answer that takes only some of them writes.
import { diffArrays } from 'diff'
import type { FileChange } from '../types.ts'

/** One hunk, lines without their line ends. Starts are 1-based; of an empty side, the line before it (0 at the top). */
export interface Hunk {
	index: number
	oldStart: number
	oldLines: number
	newStart: number
	newLines: number
	/** First character ' ', '-' or '+'; a line `\ No newline at end of file` after a last line without one. */
	lines: string[]
}

/** Half-open ranges of lines that differ: [oldFrom, oldTo, newFrom, newTo]. */
export type Block = [number, number, number, number]

/** Lines with their line ends. An empty text has none. */
export const splitLines = (text: string): string[] => (text === '' ? [] : text.split(/(?<=\n)/))

/**
 * Beyond so many changed lines the search is given up. A count and not a time: the hunks that were shown must be the
 * hunks that are applied, on a busy machine too.
 */
const maxEdits = 1500

/** Lines that differ, in order. Of pairs with too little in common the middle is one block: never wrong, at worst coarse. */
export const diffBlocks = (a: string[], b: string[]): Block[] => {
	let head = 0
	while (head < a.length && head < b.length && a[head] === b[head]) head++
	let tail = 0
	while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
	const [middleA, middleB] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)]
	if (middleA.length === 0 && middleB.length === 0) return []
	const coarse: Block[] = [[head, a.length - tail, head, b.length - tail]]
	if (middleA.length === 0 || middleB.length === 0) return coarse
	const parts = diffArrays(middleA, middleB, { maxEditLength: maxEdits })
	if (!parts) return coarse
	const blocks: Block[] = []
	let [atA, atB] = [head, head]
	let open: Block | null = null
	for (const part of parts) {
		const length = part.value.length
		if (!part.added && !part.removed) {
			if (open) blocks.push(open)
			open = null
			atA += length
			atB += length
			continue
		}
		open ??= [atA, atA, atB, atB]
		if (part.removed) open[1] = atA += length
		else open[3] = atB += length
	}
	if (open) blocks.push(open)
	return blocks
}

/** Blocks nearer than two contexts belong to one hunk. */
const groupBlocks = (blocks: readonly Block[], context: number): Block[][] => {
	const groups: Block[][] = []
	for (const block of blocks) {
		const last = groups.at(-1)?.at(-1)
		if (last && block[0] - last[1] <= context * 2) groups.at(-1)!.push(block)
		else groups.push([block])
	}
	return groups
}

const context = 3

const shownLines = (mark: string, lines: readonly string[]): string[] =>
	lines.flatMap((line) =>
		line.endsWith('\n') ? [mark + line.slice(0, -1)] : [mark + line, '\\ No newline at end of file'],
	)

/** The hunks of a change, in order; indexes are what `Answer.accepted` names. */
export const hunksOf = (change: Pick<FileChange, 'old' | 'new'>): Hunk[] => {
	const a = splitLines(change.old ?? '')
	const b = splitLines(change.new)
	return groupBlocks(diffBlocks(a, b), context).map((group, index) => {
		const from = Math.max(0, group[0]![0] - context)
		const to = Math.min(a.length, group.at(-1)![1] + context)
		const lines: string[] = []
		let at = from
		for (const [oldFrom, oldTo, newFrom, newTo] of group) {
			lines.push(
				...shownLines(' ', a.slice(at, oldFrom)),
				...shownLines('-', a.slice(oldFrom, oldTo)),
				...shownLines('+', b.slice(newFrom, newTo)),
			)
			at = oldTo
		}
		lines.push(...shownLines(' ', a.slice(at, to)))
		const added = group.reduce((sum, block) => sum + block[3] - block[2] - (block[1] - block[0]), 0)
		const newFrom = group[0]![2] - (group[0]![0] - from)
		const [oldLines, newLines] = [to - from, to - from + added]
		return {
			index,
			oldStart: oldLines ? from + 1 : from,
			oldLines,
			newStart: newLines ? newFrom + 1 : newFrom,
			newLines,
			lines,
		}
	})
}

/** The old text with only the accepted hunks of the change applied. Throws RangeError for an index that no hunk has. */
export const applyHunks = (change: Pick<FileChange, 'old' | 'new'>, accepted: readonly number[]): string => {
	const a = splitLines(change.old ?? '')
	const b = splitLines(change.new)
	const groups = groupBlocks(diffBlocks(a, b), context)
	const wanted = new Set(accepted)
	for (const index of wanted) if (!groups[index]) throw new RangeError(`no hunk ${index}`)
	let out = ''
	let at = 0
	groups.forEach((group, index) => {
		for (const [oldFrom, oldTo, newFrom, newTo] of group) {
			out +=
				a.slice(at, oldFrom).join('') + (wanted.has(index) ? b.slice(newFrom, newTo) : a.slice(oldFrom, oldTo)).join('')
			at = oldTo
		}
	})
	return out + a.slice(at).join('')
}

/** Lines added and removed. */
export const countChange = (change: Pick<FileChange, 'old' | 'new'>): { added: number; removed: number } => {
	const blocks = diffBlocks(splitLines(change.old ?? ''), splitLines(change.new))
	return blocks.reduce((sum, [a, b, c, d]) => ({ added: sum.added + d - c, removed: sum.removed + b - a }), {
		added: 0,
		removed: 0,
	})
}
