// The glob tool: files by name, from the turn's gate; the walk runs in the search worker.
import picomatch from 'picomatch'
import { ToolError } from '../errors.ts'
import { shownPath } from '../files/guard.ts'
import { didYouMean } from '../files/suggest.ts'
import type { ResolvedPath, Tool, ToolContext } from '../ports.ts'
import { oneLine } from '../text.ts'
import type { SearchResult } from './grep-worker.ts'
import { jsonInput } from './json-input.ts'
import { leftOut, runSearch, type SearchOptions, searchBase } from './search.ts'

interface Input {
	pattern: string
	path?: string | undefined
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		pattern: { type: 'string', description: 'Glob relative to path, e.g. src/**/*.{ts,tsx}' },
		path: { description: 'Folder to search in; default: the working folder', type: 'string' },
	},
	required: ['pattern'],
	additionalProperties: false,
})

const maxFiles = 500

interface Data {
	pattern: string
	resolved: ResolvedPath
	/** The folder was named, so ignore rules must not hide all of it. */
	named: boolean
}

/** A literal folder at the front of the pattern becomes the base: `scripts/*.py` looks only into scripts. */
const split = (pattern: string): { folder: string; rest: string } => {
	const { base, glob, isGlob } = picomatch.scan(pattern)
	if (!isGlob || !base || !glob || pattern.startsWith('!') || base.includes('..')) return { folder: '', rest: pattern }
	return { folder: base, rest: glob }
}

const found = (result: SearchResult, base: string, notes: string[], limit: number): string => {
	const lines: string[] = []
	let size = 0
	for (const { path } of result.files) {
		const line = shownPath(base + path)
		if (size + line.length + 1 > limit) break
		size += line.length + 1
		lines.push(line)
	}
	const more = result.fileCount - lines.length
	const foot = [
		`${result.fileCount.toLocaleString('en')}${result.stopped ? ' or more' : ''} file${result.fileCount === 1 ? '' : 's'}, sorted by path`,
		...(more > 0 ? [`${more.toLocaleString('en')} more not shown: narrow the pattern`] : []),
		...notes,
	]
	return [...lines, leftOut(result, foot)].join('\n')
}

/** Finds files. Read-only. */
export const globTool = (options: SearchOptions): Tool<Input, Data> => ({
	name: 'glob',
	description:
		'Find files by glob pattern. Paths come sorted, at most 500. Hidden files count; .git, what .gitignore excludes, secret files and links are left out. A folder named in path or at the start of the pattern is searched even when ignored.',
	input,
	readOnly: true,
	async plan({ pattern, path }, ctx) {
		if (pattern.trim() === '') throw new ToolError('The pattern is empty.')
		if (pattern.length > 1000) throw new ToolError('The pattern is too long (the limit is 1,000 characters).')
		const relative = pattern.startsWith('/') ? await fromAbsolute(pattern, ctx) : pattern.replace(/^(?:\.\/)+/, '')
		const { folder, rest } = split(relative)
		const asked = [path ?? '.', folder].filter((part) => part !== '').join('/')
		const resolved = await ctx.files.resolve(asked)
		const title = `Find ${oneLine(pattern, 100)}${path ? ` in ${shownPath(path)}` : ''}`
		const info = {
			title,
			kind: 'search' as const,
			access: 'read' as const,
			paths: [resolved.path],
			key: `glob:${resolved.path}:${rest}`,
		}
		if (!resolved.exists && folder === '')
			throw new ToolError(`${shownPath(asked)} does not exist.${await didYouMean(resolved, ctx.files.roots)}`)
		return { info, data: { pattern: rest, resolved, named: resolved.path !== ctx.root } }
	},
	async run({ data }, ctx) {
		const { resolved, pattern } = data
		if (!resolved.exists)
			return {
				status: 'ok',
				text: `No files found: the folder ${shownPath(resolved.shown)} does not exist.${await didYouMean(resolved, ctx.files.roots)}`,
			}
		const base = await searchBase(resolved, ctx)
		if (base.file) throw new ToolError(`${shownPath(resolved.shown)} is a file, not a folder.`)
		const job = { ...base, context: 0, maxFiles, maxRows: 0 }
		const shown = resolved.shown === '.' ? '' : `${resolved.shown}/`
		const limit = ctx.limits.resultChars - 600
		const tries: { glob: string; ignore: boolean; note: string[] }[] = [{ glob: pattern, ignore: true, note: [] }]
		if (!pattern.includes('/') && !data.named)
			tries.push({ glob: `**/${pattern}`, ignore: true, note: ['none at the top, so these lie deeper'] })
		if (data.named) tries.push({ glob: pattern, ignore: false, note: ['all of these are excluded by .gitignore'] })
		let first: SearchResult | null = null
		for (const { glob, ignore, note } of tries) {
			const result = await runSearch({ ...job, glob, ignore }, options, ctx.signal)
			if (result.stopped) note.push(`stopped after ${options.deadlineMs / 1000} s, so this list is not complete`)
			if (result.fileCount > 0 || result.stopped)
				return { status: 'ok', text: found(result, shown, note, limit), data: { files: result.fileCount } }
			first ??= result
			if (ignore && data.named && result.counts.ignored === 0) break
		}
		return { status: 'ok', text: ['No files found.', leftOut(first!)].filter(Boolean).join('\n'), data: { files: 0 } }
	},
})

/** An absolute pattern below a root becomes relative to the working folder. */
const fromAbsolute = async (pattern: string, ctx: ToolContext): Promise<string> => {
	if (pattern.startsWith(`${ctx.root}/`)) return pattern.slice(ctx.root.length + 1)
	throw new ToolError('Give the folder as path and a pattern relative to it.')
}
