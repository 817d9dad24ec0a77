// The remember tool: one fact for later sessions in the project's memory file, from the turn's gate.
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { codeOf, ToolError } from '../errors.ts'
import { replaceIn } from '../files/atomic.ts'
import { inWords, sha256 } from '../files/guard.ts'
import { openFile, openFolder, readBytes, wayHere } from '../files/open.ts'
import type { Tool } from '../ports.ts'
import { oneLine, visible } from '../text.ts'
import { clean } from '../untrusted.ts'
import { jsonInput } from './json-input.ts'

interface Input {
	fact: string
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		fact: { type: 'string', minLength: 1, maxLength: 1000, description: 'One sentence' },
	},
	required: ['fact'],
	additionalProperties: false,
})

/** The most that a memory file may hold: all of it goes into the prompt of each session. */
const maxBytes = 32 * 1024

interface Data {
	line: string
	text: string
	base: string | null
}

/**
 * The one way for the model to write into `.garuda`: only memory.md, opened without following links, so that a link in
 * its place or in the folder's is refused.
 */
const readMemory = async (root: string): Promise<{ text: string; hash: string | null; mode?: number }> => {
	const way = await wayHere()
	try {
		const folder = await openFolder(join(root, '.garuda'), way)
		try {
			const { handle, stats } = await openFile(folder, 'memory.md', way)
			try {
				if (stats.size > maxBytes)
					throw new ToolError('The memory file is full. The user can shorten .garuda/memory.md.')
				const bytes = await readBytes(handle, 0, maxBytes + 1)
				return { text: bytes.toString('utf8'), hash: sha256(bytes), mode: Number(stats.mode) }
			} finally {
				await handle.close()
			}
		} finally {
			await folder.close()
		}
	} catch (error) {
		if (codeOf(error) === 'ENOENT') return { text: '', hash: null }
		throw inWords(error, '.garuda/memory.md')
	}
}

const writeMemory = async (root: string, text: string, base: string | null): Promise<void> => {
	const way = await wayHere()
	try {
		const folder = await openFolder(join(root, '.garuda'), way, true)
		try {
			const now = await readMemory(root)
			if (now.hash !== base) throw new ToolError('The memory file changed meanwhile. Nothing was written; try again.')
			await replaceIn(folder, 'memory.md', Buffer.from(text), {
				...(now.mode !== undefined && { mode: now.mode }),
				fresh: base === null,
				before: () => folder.check(),
			})
		} finally {
			await folder.close()
		}
	} catch (error) {
		throw inWords(error, '.garuda/memory.md')
	}
}

/** Adds a line to `<root>/.garuda/memory.md`. Secrets are not kept: the fact goes through the redactor. */
export const rememberTool: Tool<Input, Data> = {
	name: 'remember',
	description:
		'Save one lasting fact about this project for later sessions (a build command, a convention). No secrets, nothing about the present task.',
	input,
	readOnly: false,
	async plan({ fact }, ctx) {
		const line = ctx.redactor.redact(oneLine(clean(visible(fact)), 500)).replace(/^[-*#>\s]+/, '')
		if (line === '') throw new ToolError('The fact is empty.')
		const { text, hash } = await readMemory(ctx.root)
		if (text.split('\n').includes(`- ${line}`)) throw new ToolError('This is remembered already.')
		const after = `${text === '' || text.endsWith('\n') ? text : `${text}\n`}- ${line}\n`
		if (Buffer.byteLength(after) > maxBytes)
			throw new ToolError('The memory file is full. The user can shorten .garuda/memory.md.')
		const path = join(await fs.realpath(ctx.root), '.garuda', 'memory.md')
		const change = { path, old: hash === null ? null : text, new: after }
		return {
			info: {
				title: `Remember: ${oneLine(line, 120)}`,
				kind: 'edit',
				access: 'write',
				paths: [path],
				key: 'remember',
				change,
				whole: true,
			},
			data: { line, text: after, base: hash },
		}
	},
	async run({ data }, ctx, accepted) {
		if (accepted) throw new ToolError('A fact is kept as a whole or not at all. Nothing was written.')
		await writeMemory(ctx.root, data.text, data.base)
		return { status: 'ok', text: `Remembered: ${data.line}` }
	},
}
