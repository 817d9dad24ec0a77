// A tool call in the editor's words: title, kind, places, content. Pure; used by updates, approver and replay.
import type { ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk'
import { type CallInfo, clip, type FileChange, oneLine, unifiedDiff, visible } from '../engine/index.ts'

export interface Shown {
	title: string
	kind: ToolKind
	locations: ToolCallLocation[]
	content: ToolCallContent[]
	rawInput?: unknown
}

const kinds: Record<string, ToolKind> = {
	read_file: 'read',
	grep: 'search',
	glob: 'search',
	write_file: 'edit',
	edit_file: 'edit',
	bash: 'execute',
	process_manager: 'execute',
	web_fetch: 'fetch',
	web_search: 'fetch',
	todo_write: 'think',
	remember: 'think',
}

/** A command is shown whole: a title that leaves a part out would hide what runs. Only beyond this is it cut, and the content has all. */
const maxTitle = 8000
const maxRaw = 100_000
/** Old and new text together; a longer change is shown as a part of its diff text. */
const maxDiff = 1_000_000

/** How a call is shown. Without `info` (a replay) it is made from the tool's name and input. Nothing hidden stays hidden. */
export function describeCall(name: string, input: Record<string, unknown>, info?: CallInfo): Shown {
	const command = info?.command ?? (name === 'bash' ? word(input.command) : undefined)
	const raw = JSON.stringify(input).length <= maxRaw ? { rawInput: input } : {}
	return {
		title: command === undefined ? (info?.title ? oneLine(info.title) : titleOf(name, input)) : commandTitle(command),
		kind: (info?.access === 'none' && info.kind === 'other' ? kinds[name] : info?.kind) ?? kinds[name] ?? 'other',
		locations: info ? places(info) : [],
		content: [
			...(info?.cwd === undefined ? [] : [textContent(inFolder(info.cwd))]),
			...(command === undefined ? [] : [textContent(fenced(visible(command), 'sh'))]),
			...(info?.change ? changeContent(info.change) : []),
		],
		...raw,
	}
}

/** Where a command runs, when that is not the root. */
export const inFolder = (cwd: string): string => `In ${oneLine(cwd, 1000)}:`

export const commandTitle = (command: string): string => `$ ${oneLine(command, maxTitle)}`

const word = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function titleOf(name: string, input: Record<string, unknown>): string {
	const of = (key: string) => word(input[key]) ?? ''
	const titles: Record<string, string> = {
		read_file: `Read ${of('path')}`,
		write_file: `Write ${of('path')}`,
		edit_file: `Edit ${of('path')}`,
		grep: `Search ${of('pattern')}`,
		glob: `Find ${of('pattern')}`,
		web_fetch: `Fetch ${of('url')}`,
		web_search: `Search the web: ${of('query')}`,
		todo_write: 'Update the list of steps',
	}
	return oneLine(Object.hasOwn(titles, name) ? titles[name]! : name) || 'a call'
}

const places = (info: CallInfo): ToolCallLocation[] =>
	info.paths.map((path, i) => ({ path, ...(i === 0 && info.line !== undefined ? { line: info.line } : {}) }))

/** The change as the editor's own diff; hidden characters written out, as in every question. */
export function changeContent(change: FileChange): ToolCallContent[] {
	if ((change.old?.length ?? 0) + change.new.length > maxDiff)
		return [textContent(fenced(visible(unifiedDiff(change, { maxLines: 2000 })), 'diff'))]
	return [
		{
			type: 'diff',
			path: change.path,
			oldText: change.old === null ? null : shown(change.old),
			newText: shown(change.new),
		},
	]
}

/** `visible`, but line ends of a Windows file are no hidden characters. */
const shown = (text: string): string => text.split('\r\n').map(visible).join('\r\n')

export const textContent = (text: string): ToolCallContent => ({ type: 'content', content: { type: 'text', text } })

/** Text as it is in a Markdown block: the fence is longer than any run of backticks in it. */
export function fenced(text: string, language = ''): string {
	const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length))
	const fence = '`'.repeat(longest + 1)
	return `${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`
}

/** A result's text for the editor, bounded. */
export const resultContent = (text: string): ToolCallContent[] => [textContent(fenced(visible(clip(text, 30_000))))]
