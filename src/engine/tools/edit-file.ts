// The edit_file tool: one text in a file replaced by another, from the turn's gate. All other bytes stay.
import { ToolError } from '../errors.ts'
import { refuseWrite, shownPath } from '../files/guard.ts'
import { kindOf } from '../files/kind.ts'
import { editNotebook } from '../files/notebook.ts'
import { type Seen, sawLines } from '../files/seen.ts'
import { didYouMean } from '../files/suggest.ts'
import { applySplices, encodeSpliced, type Splice, type TextFile } from '../files/text-file.ts'
import { cutWords } from '../files/tokens.ts'
import type { Plan, ReadFile, ResolvedPath, Tool, ToolContext } from '../ports.ts'
import { type ChangeData, changePlan, encodeLike, presentFile, restoreMarks, runChange } from './change.ts'
import { jsonInput } from './json-input.ts'
import { findMatch, nearestLine } from './match.ts'

interface Input {
	path: string
	old_string: string
	new_string: string
	replace_all?: boolean | undefined
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		path: { type: 'string' },
		old_string: { type: 'string', description: 'Exact text, without line numbers; enough lines to be unique' },
		new_string: { type: 'string' },
		replace_all: { description: 'Replace every place', type: 'boolean' },
	},
	required: ['path', 'old_string', 'new_string'],
	additionalProperties: false,
})

const numbered = (text: string, from: number, to: number): string =>
	text
		.split('\n')
		.slice(from - 1, to)
		.map((line, index) => `${from + index}\t${cutWords(line, 300)}`)
		.join('\n')

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

const listed = (lines: number[]): string => `${lines.slice(0, 20).join(', ')}${lines.length > 20 ? ', …' : ''}`

const notFound = (shown: string, file: TextFile, seen: Seen, from: string): ToolError => {
	const hints: string[] = []
	if (from.split('\n').every((line) => /^\s*\d+\t/.test(line)))
		hints.push('old_string seems to hold the line numbers of read_file: leave them out.')
	const near = nearestLine(file.text, from)
	// Only lines that the agent was shown are shown again.
	const lines = file.text.split('\n').length
	if (near !== null && sawLines(seen, near - 1, near)) {
		const [a, b] = [Math.max(1, near - 2), Math.min(lines, near + 4)]
		const visible = sawLines(seen, a - 1, b) ? numbered(file.text, a, b) : numbered(file.text, near, near)
		hints.push(`The nearest place is line ${near}:\n${visible}`)
	}
	return new ToolError([`old_string was not found in ${shown}. Nothing was changed.`, ...hints].join('\n'))
}

/** Line breaks of the model's text in the file's terms: CRLF is one where the file, or the old text, uses it. */
const breaks = (text: string, file: TextFile, from: string): string =>
	file.ends.length > 0 || from.includes('\r\n') ? text.replaceAll('\r\n', '\n') : text

const planNotebook = (
	resolved: ResolvedPath,
	read: ReadFile,
	file: TextFile,
	seen: Seen,
	given: { from: string; to: string; all: boolean },
): Plan<ChangeData> => {
	const shown = shownPath(resolved.shown)
	const { text, cells } = editNotebook(file.text, given.from, given.to, given.all)
	const change = { path: resolved.path, old: file.text, new: text }
	const notes = [`cell${cells.length > 1 ? 's' : ''} ${cells.join(', ')}; outputs are as they were`]
	return changePlan(resolved, 'Edit', {
		change,
		base: read.hash,
		bytes: encodeLike(file, text),
		file,
		notes,
		done: `Edited ${shown}`,
		partly: !seen.whole,
		whole: true,
	})
}

/** Replaces text in a file that this agent has read. Exact first; a near match only when unique, and the result names it. */
export const editFileTool: Tool<Input, ChangeData> = {
	name: 'edit_file',
	description:
		'Replace old_string by new_string in a file that was read before. old_string must stand there exactly once, or replace_all be true. Line breaks are \\n; CRLF, encoding and all other bytes are kept. In a notebook it works on the source of one cell.',
	input,
	readOnly: false,
	async plan(given, ctx) {
		const resolved = await ctx.files.resolve(given.path)
		refuseWrite(resolved)
		const shown = shownPath(resolved.shown)
		if (!resolved.exists)
			throw new ToolError(
				`${shown} does not exist.${await didYouMean(resolved, ctx.files.roots)} To create a file use write_file.`,
			)
		const from = restoreMarks(ctx, 'old_string', given.old_string)
		const to = restoreMarks(ctx, 'new_string', given.new_string).toWellFormed()
		if (from === '') throw new ToolError('old_string is empty. To write a whole file use write_file.')
		if (from === to) throw new ToolError('old_string and new_string are the same. Nothing to do.')
		const { read, file, seen } = await presentFile(resolved, ctx, from)
		const all = given.replace_all ?? false
		const old = breaks(from.replace(/^\ufeff/, ''), file, from)
		const fresh = breaks(file.bom ? to.replace(/^\ufeff/, '') : to, file, from)
		if (kindOf(read.bytes).kind === 'notebook')
			return planNotebook(resolved, read, file, seen, { from: old, to: fresh, all })
		return planText(resolved, read, file, seen, { from: old, to: fresh, all }, ctx)
	},
	run: runChange,
}

const planText = (
	resolved: ResolvedPath,
	read: ReadFile,
	file: TextFile,
	seen: Seen,
	{ from, to, all }: { from: string; to: string; all: boolean },
	_ctx: ToolContext,
): Plan<ChangeData> => {
	const shown = shownPath(resolved.shown)
	const match = findMatch(file.text, from, to, all)
	if (match.kind === 'none') throw notFound(shown, file, seen, from)
	if (match.kind === 'many')
		throw new ToolError(
			match.how
				? `old_string was not found exactly in ${shown}, and nearly (${match.how}) at ${match.lines.length} places: lines ${listed(match.lines)}. That is ambiguous; nothing was changed. Give the exact text.`
				: `old_string was found ${match.lines.length} times in ${shown}, at lines ${listed(match.lines)}. Nothing was changed. Give more lines around it, or set replace_all.`,
		)
	const splices: Splice[] = match.splices
	const text = applySplices(file.text, splices)
	if (text === file.text) throw new ToolError('The edit would change nothing.')
	const first = lineAt(file.text, splices[0]!.start)
	const notes: string[] = []
	const places =
		splices.length === 1
			? `line ${first}`
			: `${splices.length} places, lines ${listed(splices.map(({ start }) => lineAt(file.text, start)))}`
	if (match.kind === 'near') {
		const last = first + splices[0]!.text.split('\n').length - 1
		notes.push(`not an exact match: ${match.how}. Now there:\n${numbered(text, first, Math.min(last, first + 40))}\n`)
	}
	const unseen = splices.some(
		({ start, end }) => !sawLines(seen, lineAt(file.text, start) - 1, lineAt(file.text, Math.max(start, end - 1))),
	)
	if (unseen) notes.push('this place was not among the lines that were read')
	const change = { path: resolved.path, old: file.text, new: text }
	const data = {
		change,
		base: read.hash,
		bytes: encodeSpliced(file, splices),
		file,
		notes,
		done: `Edited ${shown} (${places})`,
		partly: !seen.whole,
	}
	return changePlan(resolved, 'Edit', data, first)
}
