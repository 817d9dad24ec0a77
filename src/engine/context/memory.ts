// The project's memory: facts that the remember tool saved, for the next session's system prompt.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { cutTail } from '../text.ts'
import { wrap } from '../untrusted.ts'
import type { ProjectText, ReadText } from './instructions.ts'
import { seenText } from './visible-text.ts'

/** Characters; the newest lines stay. */
const max = 16_000

/** `<root>/.garuda/memory.md`, cleaned and wrapped; empty when there is none. A link is not followed. */
export async function loadMemory({ root, read }: { root: string; read: ReadText }): Promise<ProjectText> {
	const name = '.garuda/memory.md'
	const path = join(root, name)
	const stat = await lstat(path).catch(() => null)
	if (!stat) return { text: '', notices: [], files: [] }
	const source = stat.isFile() ? await read(path) : null
	if (source === null) return { text: '', notices: [`${name} was not read: it is no regular text file.`], files: [] }
	const { text, hidden } = seenText(source)
	if (text.trim() === '') return { text: '', notices: [], files: [] }
	const notices: string[] = []
	if (hidden)
		notices.push(`${name} holds hidden characters: they were taken out or written out for the model. Look at the file.`)
	let kept = text
	if (text.length > max) {
		const tail = cutTail(text, max)
		kept = tail.slice(tail.indexOf('\n') + 1)
		notices.push(`${name} is longer than ${max.toLocaleString('en')} characters; its oldest lines were left out.`)
	}
	return { text: wrap('garuda-memory', { file: name }, kept), notices, files: [name] }
}
