// The write_file tool: a whole new content for a file, from the turn's gate.
import { ToolError } from '../errors.ts'
import { refuseWrite, shownPath } from '../files/guard.ts'
import { kindOf } from '../files/kind.ts'
import type { Tool } from '../ports.ts'
import { type ChangeData, changePlan, encodeLike, presentFile, restoreMarks, runChange } from './change.ts'
import { jsonInput } from './json-input.ts'

interface Input {
	path: string
	content: string
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		path: { type: 'string' },
		content: { type: 'string' },
	},
	required: ['path', 'content'],
	additionalProperties: false,
})

/** Makes or replaces a file atomically. An existing file must have been read whole; its encoding, mark, line ends and mode stay. */
export const writeFileTool: Tool<Input, ChangeData> = {
	name: 'write_file',
	description:
		'Create a file (and missing folders) or replace its whole content. An existing file must have been read whole before. Its encoding, byte order mark, CRLF line ends and mode are kept. For a part of a file use edit_file.',
	input,
	readOnly: false,
	async plan({ path, content }, ctx) {
		const resolved = await ctx.files.resolve(path)
		refuseWrite(resolved)
		const shown = shownPath(resolved.shown)
		if (/[/\\]$/.test(path)) throw new ToolError(`${shown}: a file name is missing. Nothing was written.`)
		const given = restoreMarks(ctx, 'content', content).toWellFormed()
		if (!resolved.exists) {
			const change = { path: resolved.path, old: null, new: given }
			const data = {
				change,
				base: null,
				bytes: Buffer.from(given),
				file: null,
				notes: [],
				done: `Created ${shown}`,
				partly: false,
			}
			return changePlan(resolved, 'Create', data)
		}
		const { read, file, seen } = await presentFile(resolved, ctx)
		if (!seen.whole)
			throw new ToolError(
				`Only a part of ${shown} was read, so replacing it could lose the rest. Read the other lines, or use edit_file. Nothing was written.`,
			)
		const notes: string[] = []
		let text = given.startsWith('\ufeff') && file.bom ? given.slice(1) : given
		const windows = file.ends.includes('\r\n')
		let bytes: Uint8Array
		if (text.includes('\r\n') && !windows) {
			// Asked for explicitly: written as given.
			bytes = encodeLike({ ...file, ends: [], usual: '\n' }, text)
			notes.push('line ends are CRLF where the content has them')
		} else {
			text = text.replaceAll('\r\n', '\n')
			bytes = encodeLike(file, text)
			if (windows) notes.push('line ends kept: CRLF')
		}
		if (file.bom && !given.startsWith('\ufeff')) notes.push('byte order mark kept')
		const notebook = [read.bytes, bytes].some((one) => kindOf(one).kind === 'notebook')
		if (text === file.text) throw new ToolError(`${shown} already has exactly this content. Nothing to do.`)
		const change = { path: resolved.path, old: file.text, new: text }
		return changePlan(resolved, 'Write', {
			change,
			base: read.hash,
			bytes,
			file,
			notes,
			done: `Wrote ${shown}`,
			partly: false,
			...(notebook && { whole: true }),
		})
	},
	run: runChange,
}
