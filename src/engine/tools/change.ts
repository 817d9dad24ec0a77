// What write_file and edit_file share: may this agent change the file, what a question shows, and writing just what was accepted.
import { ToolError } from '../errors.ts'
import { unsavedText } from '../files/buffer.ts'
import { refuseWrite, shownPath } from '../files/guard.ts'
import { carrySeen, noteSeen, type Seen } from '../files/seen.ts'
import { decodeText, encodeSpliced, lineSplices, type TextFile } from '../files/text-file.ts'
import { page } from '../files/view.ts'
import type { Plan, ReadFile, ResolvedPath, ToolContext, ToolResult } from '../ports.ts'
import type { FileChange } from '../types.ts'

/** A planned write. `file` null: a new file. */
export interface ChangeData {
	change: FileChange
	base: string | null
	bytes: Uint8Array
	file: TextFile | null
	/** Said in the result: an approximation, a kept line end. */
	notes: string[]
	/** First words of the result. */
	done: string
	/** The agent still has not seen the whole file after this edit. */
	partly: boolean
	/** All or nothing: a part of it would break the file's form (a notebook). */
	whole?: boolean
}

/** The present file for a change, or ToolError: protected, never read, or changed since it was read (then with what is in it now). */
export const presentFile = async (
	resolved: ResolvedPath,
	ctx: ToolContext,
	near?: string,
): Promise<{ read: ReadFile; file: TextFile; seen: Seen }> => {
	refuseWrite(resolved)
	const shown = shownPath(resolved.shown)
	const read = await ctx.files.read(resolved.path)
	// Decided on one path, read at another: what lies there was never agreed to, and the refusals below quote it.
	if (read.path !== resolved.path)
		throw new ToolError(`${shown} was moved or replaced by a link meanwhile. Nothing was changed.`)
	if (read.unsaved) throw new ToolError(unsavedText(shown))
	const seen = ctx.state.seen.get(resolved.path) as Seen | undefined
	if (!seen)
		throw new ToolError(`${shown} exists and was not read yet. Read it with read_file first. Nothing was changed.`)
	const file = decodeText(read.bytes, shown)
	if (seen.hash !== read.hash) throw stale(resolved, read, file, ctx, near)
	return { read, file, seen }
}

/** The file was read before by this agent, so its present content is no news beyond the rules: it comes with the refusal. */
const stale = (resolved: ResolvedPath, read: ReadFile, file: TextFile, ctx: ToolContext, near?: string): ToolError => {
	const at = near ? file.text.indexOf(near) : -1
	const line = at === -1 ? 1 : file.text.slice(0, at).split('\n').length
	const offset = Math.max(1, line - 20)
	const part = page(file.text, offset, 400, Math.min(12_000, ctx.limits.resultChars - 800))
	noteSeen(ctx.state.seen, resolved.path, read.hash, part.lines, part.total)
	return new ToolError(
		`${shownPath(resolved.shown)} changed on the disk since it was read. Nothing was changed. Now it is (lines ${part.from}-${part.to} of ${part.total}):\n${part.body}\n[this counts as read; repeat the change on this content, keeping what others changed]`,
	)
}

/** Marks of redacted secrets back to their values; an unknown one would be written as text, so it is refused. */
export const restoreMarks = (ctx: ToolContext, name: string, text: string): string => {
	const { text: restored, unknown } = ctx.redactor.restore(text)
	if (unknown.length > 0)
		throw new ToolError(
			`${name} holds ${unknown.slice(0, 3).join(', ')}, which stands for no secret known in this session. Nothing was changed.`,
		)
	return restored
}

/** The plan of a write: its question shows the same texts that the hunks of an answer are counted in. */
export const changePlan = (
	resolved: ResolvedPath,
	verb: string,
	data: ChangeData,
	line?: number,
): Plan<ChangeData> => ({
	info: {
		title: `${verb} ${shownPath(resolved.shown)}`,
		kind: 'edit',
		access: 'write',
		paths: [resolved.path],
		key: `write:${resolved.path}`,
		change: data.change,
		...(data.whole && { whole: true }),
		...(line !== undefined && { line }),
	},
	data,
})

/** Writes the planned bytes, or those of the accepted hunks; refuses when the file changed since the plan. */
export const runChange = async (
	{ data }: Plan<ChangeData>,
	ctx: ToolContext,
	accepted?: number[],
): Promise<ToolResult> => {
	const { applyHunks, diffBlocks, hunksOf, splitLines } = await import('../files/hunks.ts')
	const { change, base, file } = data
	let bytes = data.bytes
	let after = change.new
	const notes = [...data.notes]
	let parts: { taken: number; of: number } | undefined
	if (accepted) {
		const hunks = hunksOf(change)
		const wanted = [...new Set(accepted)]
		if (wanted.some((index) => !hunks[index]))
			throw new ToolError('The answer names a part of the change that does not exist. Nothing was written.')
		if (wanted.length === 0)
			return { status: 'failed', text: 'The user accepted no part of this change. Nothing was written.' }
		if (wanted.length < hunks.length) {
			if (data.whole)
				throw new ToolError(
					'The user accepted a part of this change, but a notebook changes as a whole. Nothing was written.',
				)
			parts = { taken: wanted.length, of: hunks.length }
			after = applyHunks(change, wanted)
			bytes = encodeLike(file, after)
			const left = hunks
				.filter(({ index }) => !wanted.includes(index))
				.map(({ oldStart, oldLines }) => `${oldStart}-${oldStart + Math.max(0, oldLines - 1)}`)
			notes.push(
				`the user accepted ${wanted.length} of ${hunks.length} parts; not written: the changes at old lines ${left.join(', ')}`,
			)
		}
	}
	ctx.signal.throwIfAborted()
	const written = await ctx.files.write(change.path, bytes, base)
	if (written.note) notes.push(written.note)
	const blocks = diffBlocks(splitLines(change.old ?? ''), splitLines(after))
	const total = splitLines(after).length
	const before = (ctx.state.seen.get(change.path) as Seen | undefined)?.lines ?? []
	// Of a partly read file the agent now knows the lines it knew, wherever they stand, and those it wrote.
	noteSeen(ctx.state.seen, written.path, written.hash, data.partly ? carrySeen(before, blocks) : [[0, total]], total)
	const added = blocks.reduce((sum, [, , from, to]) => sum + to - from, 0)
	const removed = blocks.reduce((sum, [from, to]) => sum + to - from, 0)
	return {
		status: 'ok',
		text: `${data.done}: +${added} −${removed} lines.${notes.map((note) => `\n[${note}]`).join('')}`,
		data: { path: written.path, added, removed, ...(parts && { parts }) },
	}
}

/** The bytes of a whole new text in the form of the present file: byte order mark, encoding, line ends line by line. */
export const encodeLike = (file: TextFile | null, text: string): Uint8Array =>
	file ? encodeSpliced(file, lineSplices(file.text, text)) : Buffer.from(text, 'utf8')
