// The grep tool: lines that match, from the turn's gate; the search runs in the search worker.
import { ToolError } from '../errors.ts'
import { shownPath } from '../files/guard.ts'
import { didYouMean } from '../files/suggest.ts'
import type { ResolvedPath, Tool } from '../ports.ts'
import { oneLine } from '../text.ts'
import type { FoundFile, SearchResult } from './grep-worker.ts'
import { jsonInput } from './json-input.ts'
import { compilePattern } from './pattern.ts'
import { leftOut, runSearch, type SearchOptions, searchBase } from './search.ts'

interface Input {
	pattern: string
	path?: string | undefined
	glob?: string | undefined
	literal?: boolean | undefined
	ignore_case?: boolean | undefined
	context?: number | undefined
	output?: 'lines' | 'files' | 'count' | undefined
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		pattern: { type: 'string', description: 'JavaScript regular expression, matched line by line' },
		path: { description: 'File or folder; default: the working folder', type: 'string' },
		glob: { description: 'Only these files, e.g. *.ts or src/**; !… excludes', type: 'string' },
		literal: { description: 'Take pattern as plain text', type: 'boolean' },
		ignore_case: { type: 'boolean' },
		context: { description: 'Lines around each match', type: 'integer', minimum: 0, maximum: 20 },
		output: { description: 'Default: lines', type: 'string', enum: ['lines', 'files', 'count'] },
	},
	required: ['pattern'],
	additionalProperties: false,
})

interface Data {
	input: Input
	resolved: ResolvedPath
}

const maxFiles = 1000
const maxRows = 1000
const plural = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`

const render = (file: FoundFile, base: string, output: Input['output'], context: number): string[] => {
	const path = shownPath(base + file.path)
	if (output === 'files') return [path]
	if (output === 'count') return [`${path}:${file.count}`]
	const lines: string[] = []
	let before = 0
	for (const row of file.rows) {
		if (context > 0 && before > 0 && row.line > before + 1) lines.push('--')
		before = row.line
		lines.push(
			row.match
				? `${path}:${row.line}:${row.col === undefined ? '' : `${row.col}:`}${row.text}`
				: `${path}-${row.line}-${row.text}`,
		)
	}
	return lines
}

const report = (
	result: SearchResult,
	base: string,
	{ output, context = 0 }: Input,
	notes: string[],
	limit: number,
): string => {
	const out: string[] = []
	let size = 0
	let cut = false
	for (const file of result.files) {
		for (const line of render(file, base, output, context)) {
			if (size + line.length + 1 > limit) {
				cut = true
				break
			}
			size += line.length + 1
			out.push(line)
		}
		if (cut) break
		if (context > 0 && output === undefined && file !== result.files.at(-1)) out.push('--')
	}
	const rows = result.files.reduce((sum, file) => sum + file.rows.filter((row) => row.match).length, 0)
	const some = result.stopped ? ' or more' : ''
	cut ||= result.files.length < result.fileCount || ((output ?? 'lines') === 'lines' && rows < result.lineCount)
	const foot = [
		`${plural(result.lineCount, 'matching line')}${some} in ${plural(result.fileCount, 'file')}, sorted by path`,
		...(cut ? ['not all shown: narrow the pattern, path or glob, or use output: "files" or "count"'] : []),
		...notes,
	]
	return [...out, leftOut(result, foot)].join('\n')
}

/** Searches file contents. Read-only. */
export const grepTool = (options: SearchOptions): Tool<Input, Data> => ({
	name: 'grep',
	description:
		'Search file contents by regular expression. Gives path:line:text (path:line:column: for parts of long lines). Hidden files count; .git, what .gitignore excludes, binary and secret files and links are left out. A folder named as path is searched even when ignored.',
	input,
	readOnly: true,
	async plan(given, ctx) {
		const { pattern, path, literal, ignore_case } = given
		compilePattern({
			pattern,
			...(literal !== undefined && { literal }),
			...(ignore_case !== undefined && { ignoreCase: ignore_case }),
		})
		if (given.glob !== undefined && (given.glob.trim() === '' || given.glob.length > 1000))
			throw new ToolError('The glob is empty or too long.')
		const resolved = await ctx.files.resolve(path ?? '.')
		if (!resolved.exists)
			throw new ToolError(`${shownPath(resolved.shown)} does not exist.${await didYouMean(resolved, ctx.files.roots)}`)
		return {
			info: {
				title: `Search ${oneLine(pattern, 100)}${path ? ` in ${shownPath(path)}` : ''}`,
				kind: 'search',
				access: 'read',
				paths: [resolved.path],
				key: `grep:${resolved.path}:${pattern}`,
			},
			data: { input: given, resolved },
		}
	},
	async run({ data: { input: given, resolved } }, ctx) {
		const { pattern, literal, ignore_case, context = 0, glob, output } = given
		const base = await searchBase(resolved, ctx)
		const job = {
			...base,
			...(glob !== undefined && { glob, anyDepth: true }),
			pattern: {
				pattern,
				...(literal !== undefined && { literal }),
				...(ignore_case !== undefined && { ignoreCase: ignore_case }),
			},
			context,
			maxFiles,
			maxRows: output === undefined || output === 'lines' ? maxRows : 0,
		}
		const shown =
			base.file !== undefined
				? resolved.shown.slice(0, -base.file.length)
				: resolved.shown === '.'
					? ''
					: `${resolved.shown}/`
		const limit = ctx.limits.resultChars - 800
		const named = resolved.path !== ctx.root
		const notes: string[] = []
		let result = await runSearch({ ...job, ignore: base.file === undefined }, options, ctx.signal)
		const first = result
		if (result.fileCount === 0 && named && base.file === undefined && result.counts.ignored > 0 && !result.stopped) {
			result = await runSearch({ ...job, ignore: false }, options, ctx.signal)
			if (result.fileCount > 0) notes.push('all of these are in files that .gitignore excludes')
			else result = first
		}
		if (result.stopped) notes.push(`stopped after ${options.deadlineMs / 1000} s, so this is not complete`)
		if (!literal && /\\n|\n/.test(pattern)) notes.push('a pattern matches within one line, so \\n never matches')
		const data = { files: result.fileCount, lines: result.lineCount }
		if (result.fileCount > 0) return { status: 'ok', text: report(result, shown, given, notes, limit), data }
		const looked = result.stopped ? 'No matches so far' : 'No matches'
		return {
			status: 'ok',
			text: `${looked} in ${plural(result.looked, 'file')}${glob ? ' (before the glob filter)' : ''}.\n${leftOut(result, notes)}`.trimEnd(),
			data,
		}
	},
})
