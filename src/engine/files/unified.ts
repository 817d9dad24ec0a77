// A change as a unified diff, for questions and results: bounded, and it says what it leaves out.
import type { FileChange } from '../types.ts'
import { type Hunk, hunksOf } from './hunks.ts'

/** The diff text of a change. At most about `max` characters: whole hunks first, then a part of one, then a count of the rest. */
export const unified = (change: FileChange, max = 20_000): string => {
	const hunks = hunksOf(change)
	const out = [`--- ${change.old === null ? '/dev/null' : change.path}`, `+++ ${change.path}`]
	if (hunks.length === 0) return `${out.join('\n')}\n(no difference)\n`
	let size = 0
	for (const hunk of hunks) {
		const lines = [head(hunk)]
		for (const line of hunk.lines) {
			size += line.length + 1
			if (size > max) {
				const left = hunk.lines.length - lines.length + 1
				const more = hunks.length - hunk.index - 1
				out.push(...lines, `[… ${left} more lines${more ? ` and ${more} more hunks` : ''} not shown …]`)
				return `${out.join('\n')}\n`
			}
			lines.push(line)
		}
		out.push(...lines)
	}
	return `${out.join('\n')}\n`
}

/** Each part of a change as text, whole; their order is what `Answer.accepted` counts in. */
export const unifiedParts = (change: FileChange): string[] =>
	hunksOf(change).map((hunk) => [head(hunk), ...hunk.lines, ''].join('\n'))

const head = (hunk: Hunk): string =>
	`@@ -${span(hunk.oldStart, hunk.oldLines)} +${span(hunk.newStart, hunk.newLines)} @@`

const span = (start: number, lines: number): string => (lines === 1 ? String(start) : `${start},${lines}`)
