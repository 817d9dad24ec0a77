// The read_file tool: one page of a file as numbered lines, from the turn's gate.
import { ToolError } from '../errors.ts'
import { shownPath } from '../files/guard.ts'
import { noteSeen } from '../files/seen.ts'
import { didYouMean } from '../files/suggest.ts'
import { viewFile } from '../files/view.ts'
import type { ResolvedPath, Tool } from '../ports.ts'
import { jsonInput } from './json-input.ts'

interface Input {
	path: string
	offset?: number | undefined
	limit?: number | undefined
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		path: { type: 'string', description: 'Relative to the working folder, absolute, or ~/…' },
		offset: { description: 'First line, from 1', type: 'integer', minimum: 1 },
		limit: { description: 'Number of lines', type: 'integer', minimum: 1 },
	},
	required: ['path'],
	additionalProperties: false,
})

interface Data {
	resolved: ResolvedPath
	range: { offset?: number; limit?: number }
}

/** Reads a text file, notebook or picture; what was shown counts as read for edits. */
export const readFileTool: Tool<Input, Data> = {
	name: 'read_file',
	description:
		'Read a text file, notebook or image (PNG, JPEG, GIF, WebP). Of text: each line as number, tab, text. At most 2,000 lines a call; the last line in brackets says which lines these are and how to go on. Paths are always relative to the working folder, wherever bash stands.',
	input,
	readOnly: true,
	async plan({ path, offset, limit }, ctx) {
		const resolved = await ctx.files.resolve(path)
		const shown = shownPath(resolved.shown)
		if (resolved.sensitive) throw new ToolError(`${shown} is off limits for the file tools: ${resolved.sensitive}.`)
		if (!resolved.exists) throw new ToolError(`${shown} does not exist.${await didYouMean(resolved, ctx.files.roots)}`)
		return {
			info: {
				title: `Read ${shown}${offset ? ` from line ${offset}` : ''}`,
				kind: 'read',
				access: 'read',
				paths: [resolved.path],
				key: `read:${resolved.path}`,
				...(offset !== undefined && { line: offset }),
			},
			data: { resolved, range: { ...(offset !== undefined && { offset }), ...(limit !== undefined && { limit }) } },
		}
	},
	async run({ data: { resolved, range } }, ctx) {
		const view = await viewFile(ctx.files, resolved, range, ctx.limits, ctx.state.noImages)
		noteSeen(ctx.state.seen, view.path, view.hash, view.lines, view.total)
		const [image] = view.kind === 'image' ? (view.images ?? []) : []
		const data = image
			? { label: image.label, mime: image.mime, width: image.width, height: image.height }
			: { lines: view.total, truncated: view.truncated }
		return {
			status: 'ok',
			text: view.text,
			...(view.images && { images: view.images }),
			data: { path: view.path, ...data },
		}
	},
}
