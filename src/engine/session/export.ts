// /export: a session as a Markdown file for people. Reads records only; the file is new, always.
import { constants, promises as fs } from 'node:fs'
import { join } from 'node:path'
import { codeOf, UserError } from '../errors.ts'
import type { SessionHeader, SessionRecord } from '../ports.ts'
import { clip, oneLine } from '../text.ts'
import type { Message } from '../types.ts'
import { checkSessionId } from './ids.ts'
import { fenced, safeLine, safeMarkdown } from './markdown.ts'
import type { Damaged } from './records.ts'
import { rebuild } from './resume.ts'

const maxResult = 10_000
const maxInput = 20_000

/**
 * The conversation as Markdown: prompts, answers, calls with their results, undone turns marked. `redact` runs over the
 * whole once more (a key learnt after it was recorded). Thinking and system prompt are left out. Nothing in it acts:
 * HTML, links and images of the session are shown as text.
 */
export function toMarkdown(
	header: SessionHeader,
	records: readonly (SessionRecord | Damaged)[],
	redact: (text: string) => string = (text) => text,
): string {
	const state = rebuild(records)
	const undone = new Set(state.undone.map((mark) => mark.turn))
	const parts: string[] = [
		`# ${safeLine(state.title ?? 'A session')}`,
		[
			`- Session: ${header.id}`,
			`- Folder: ${safeLine(header.root)}`,
			`- Begun: ${when(header.created)}`,
			`- Model: ${safeLine(state.model)}`,
			`- Tokens: ${tokens(state.usage)}`,
		].join('\n'),
	]
	let turn = 0
	for (const record of records) {
		switch (record.type) {
			case 'user':
				if (record.prompt === '') parts.push('### Garuda', ...texts(record.message))
				else {
					turn++
					parts.push(`## You${undone.has(turn) ? ' (undone)' : ''}`, safeMarkdown(record.prompt))
					parts.push(...labels(record.message))
				}
				break
			case 'assistant':
				parts.push('## Garuda', ...texts(record.message), ...calls(record.message))
				break
			case 'results':
				parts.push(...results(record.message))
				break
			case 'compaction':
				parts.push(`*The conversation was shortened here (about ${record.before} to ${record.after} tokens).*`)
				break
			case 'model':
				parts.push(`*Model from here: ${safeLine(record.model)}*`)
				break
			case 'undo':
			case 'redo':
				parts.push(`*The user ${record.type === 'undo' ? 'undid' : 'did again'} turn ${record.turn}.*`)
				break
			case 'end':
				if (record.reason !== 'done') parts.push(`*The turn ended: ${safeLine(record.reason)}*`)
				break
			case 'damaged':
				parts.push(`*Line ${record.line} of the session's file could not be read.*`)
				break
		}
	}
	return redact(`${parts.filter((part) => part !== '').join('\n\n')}\n`)
}

const texts = (message: Message): string[] =>
	message.blocks.flatMap((block) => (block.type === 'text' ? [safeMarkdown(block.text)] : []))

/** Pictures by their labels only. */
const labels = (message: Message): string[] =>
	message.blocks.flatMap((block) => (block.type === 'image' ? [`*Image: ${safeLine(block.label)}*`] : []))

const calls = (message: Message): string[] =>
	message.blocks.flatMap((block) => {
		if (block.type !== 'tool_call') return []
		const shown = ['command', 'path', 'pattern', 'url', 'query']
			.map((key) => block.input[key])
			.find((value) => typeof value === 'string')
		const title = `### ${safeLine(block.name)}${shown === undefined ? '' : `: ${safeLine(oneLine(String(shown), 100))}`}`
		const input = block.badInput ?? JSON.stringify(block.input, null, 2)
		return [title, fenced(clip(input, maxInput), block.badInput === undefined ? 'json' : '')]
	})

const results = (message: Message): string[] =>
	message.blocks.flatMap((block) => {
		if (block.type === 'text') return ['### Garuda', safeMarkdown(block.text)]
		return block.type === 'tool_result' ? [`Result (${block.status}):`, fenced(clip(block.text, maxResult))] : []
	})

const when = (time: number): string => {
	const date = new Date(time)
	return Number.isNaN(date.getTime()) ? 'unknown' : `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

const tokens = (usage: {
	input: number
	cacheRead: number
	cacheWrite: number
	output: number
	cost: number | null
}): string =>
	`${(usage.input + usage.cacheRead + usage.cacheWrite).toLocaleString('en')} in, ${usage.output.toLocaleString('en')} out${usage.cost ? `, $${usage.cost.toFixed(2)}` : ''}`

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/** Writes `garuda-<id>.md` (or -2, -3 …) into a folder, 0600, never over a file and through no link. The path written. */
export async function exportTo(dir: string, id: string, text: string): Promise<string> {
	checkSessionId(id)
	for (let i = 1; i < 1000; i++) {
		const path = join(dir, `garuda-${id}${i === 1 ? '' : `-${i}`}.md`)
		try {
			const handle = await fs.open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
			try {
				await handle.writeFile(text)
			} catch (error) {
				await fs.unlink(path).catch(() => {})
				throw error
			} finally {
				await handle.close()
			}
			return path
		} catch (error) {
			if (codeOf(error) !== 'EEXIST')
				throw new UserError(
					`The session could not be written to ${path} (${codeOf(error) ?? 'unknown error'}).`,
					'Check the folder and the free space.',
				)
		}
	}
	throw new UserError(`${dir} holds 999 exports of this session already.`, 'Remove some.')
}
