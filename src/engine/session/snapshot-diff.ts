// What changed between two snapshots, as a text that a person reads (/diff). Over the undo store.
import { unified } from '../files/unified.ts'
import { oneLine } from '../text.ts'
import { type Change, type FileState, sameBits } from './snapshot-files.ts'

const maxText = 256 * 1024
const maxFiles = 200

/** One unified diff text; binary and large files are named only, a long list says how many more there are. */
export async function diffText(
	changes: readonly Change[],
	contents: (hashes: string[]) => AsyncIterable<Map<string, Buffer>>,
): Promise<string> {
	const shown = changes.slice(0, maxFiles)
	const hashes = [
		...new Set(shown.flatMap(({ from, to }) => [from, to].flatMap((state) => (state ? [state.hash] : [])))),
	]
	const bytes = new Map<string, Buffer>()
	for await (const group of contents(hashes)) for (const [hash, one] of group) bytes.set(hash, one)
	const out: string[] = []
	for (const { path, from, to } of shown) {
		const old = textOf(from, bytes)
		const now = textOf(to, bytes)
		const name = oneLine(path, 1000)
		if (from?.mode !== to?.mode && from && to) out.push(`${name}: mode ${from.mode} → ${to.mode}`)
		else if (from && to && !sameBits(from, to))
			out.push(`${name}: permissions ${from.bits!.toString(8)} → ${to.bits!.toString(8)}`)
		if (from && to && from.hash === to.hash) continue
		if (old === null || now === null)
			out.push(`${name}: ${from ? (to ? 'changed' : 'deleted') : 'new'} (binary or large, not shown)`)
		else if (old !== now || !from || !to)
			out.push(
				to
					? unified({ path, old: from ? old : null, new: now })
					: `${unified({ path, old, new: '' }).trimEnd()}\n(deleted)`,
			)
	}
	if (changes.length > shown.length) out.push(`… and ${changes.length - shown.length} more files`)
	return out.map((text) => text.trimEnd()).join('\n')
}

/** The text of a state; '' when it is not there, null when it is no text to show. */
function textOf(state: FileState | null, bytes: ReadonlyMap<string, Buffer>): string | null {
	if (!state) return ''
	const content = bytes.get(state.hash)
	if (!content || content.length > maxText || content.includes(0)) return null
	const text = content.toString('utf8')
	return state.mode === '120000' ? `link → ${text}\n` : text
}
