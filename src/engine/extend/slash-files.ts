// Slash commands that are Markdown files: found in one folder, read without following a link, parsed. Called by commands.ts.
import { promises as fs } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf } from '../errors.ts'
import { type Folder, Moved, NotAFile, openFile, openFolder, readBytes, type Way, wayHere } from '../files/open.ts'
import { hasHidden, oneLine, visible } from '../text.ts'
import { clean } from '../untrusted.ts'
import { frontMatter } from './front-matter.ts'

export interface SlashFile {
	/** `name`, or `folder:name`: lower case. */
	name: string
	/** Its front matter's, or its first line; may be empty. One line of visible characters, as is `hint`. */
	description: string
	/** Its arguments in words; may be empty. */
	hint: string
	/** Absolute, no link in it. */
	path: string
	/** As a person reads it. */
	shown: string
	/** The file, decoded. */
	text: string
	/** Exactly what was parsed. */
	bytes: Uint8Array
	/** After the front matter: LF, cleaned of escapes, hidden characters written out. */
	body: string
	/** What of the file counts for nothing, and where. */
	notes: string[]
}

export interface SlashFiles {
	files: SlashFile[]
	/** What was left out, with its path and why. */
	problems: string[]
}

export const maxFileBytes = 256 * 1024
const maxFiles = 500
const maxDepth = 4

const namePart = /^[a-z0-9_-]+$/

/**
 * Reads all `*.md` below `<base>/commands`; other files and names that begin with a dot are no commands.
 * @param base the real path of the `.garuda` folder that they stand in
 * @param shown how that folder is written for a person
 * Never throws: a link, a device, a name or text that cannot be used is a problem in words. No folder is no problem.
 */
export async function readSlashFiles(base: string, shown: string): Promise<SlashFiles> {
	const out: SlashFiles = { files: [], problems: [] }
	const way = await wayHere()
	const taken = new Map<string, string>()

	const folder = async (real: string, word: string, prefix: string, depth: number): Promise<void> => {
		const problem = (why: string): void => void out.problems.push(`${oneLine(word, 300)} is left out: ${why}.`)
		let open: Folder
		try {
			open = await openFolder(real, way)
		} catch (error) {
			// The folder of the commands need not be there; what is there must be one.
			if (codeOf(error) !== 'ENOENT' || depth > 0) problem(reasonOf(error, true))
			return
		}
		try {
			const entries = await fs.readdir(way === 'handles' ? `${dirname(open.at('x'))}/.` : real, { withFileTypes: true })
			for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
				const { name } = entry
				const markdown = /\.md$/i.test(name)
				if (name.startsWith('.') || !(markdown || entry.isDirectory() || entry.isSymbolicLink())) continue
				const at = `${word}/${name}`
				const leave = (why: string): void => void out.problems.push(`${oneLine(at, 300)} is left out: ${why}.`)
				if (entry.isSymbolicLink()) leave('it is a link, and none is followed')
				else if (hasHidden(name) || /[\t\n]/.test(name)) leave('its name holds hidden or control characters')
				else if (entry.isDirectory()) {
					const part = name.toLowerCase()
					if (!namePart.test(part)) leave('a folder name is made of letters a-z, digits, "-" and "_"')
					else if (depth >= maxDepth) leave(`it lies more than ${maxDepth} folders deep`)
					else await folder(join(real, name), at, `${prefix}${part}:`, depth + 1)
				} else await file(open, name, at, prefix, leave)
			}
		} catch (error) {
			problem(reasonOf(error, true))
		} finally {
			await open.close()
		}
	}

	const file = async (
		open: Folder,
		fileName: string,
		word: string,
		prefix: string,
		leave: (why: string) => void,
	): Promise<void> => {
		const name = prefix + fileName.slice(0, -3).toLowerCase()
		if (!namePart.test(name.slice(prefix.length)) || !/^[a-z]/.test(name))
			return leave('a name is made of letters a-z, digits, "-" and "_", and begins with a letter')
		if (taken.has(name)) return leave(`/${name} is ${oneLine(taken.get(name)!, 300)} already`)
		if (out.files.length >= maxFiles) return leave(`there are more than ${maxFiles} commands`)
		const bytes = await bytesOf(open, fileName, way)
		if (typeof bytes === 'string') return leave(bytes)
		const text = textOf(bytes)
		if (text === null) return leave('it is not UTF-8 text')
		taken.set(name, word)
		out.files.push({ name, path: join(open.path, fileName), shown: word, text, bytes, ...parseSlashFile(text) })
	}

	await folder(join(base, 'commands'), `${shown}/commands`, '', 0)
	return out
}

/** The whole file, or why not. */
async function bytesOf(folder: Folder, name: string, way: Way): Promise<Uint8Array | string> {
	try {
		const { handle, stats } = await openFile(folder, name, way)
		try {
			if (stats.size > maxFileBytes) return `it is larger than ${maxFileBytes / 1024} KB`
			// One byte more than there should be: a file that grows meanwhile is not cut.
			const bytes = await readBytes(handle, 0, maxFileBytes + 1)
			return bytes.length > maxFileBytes ? `it is larger than ${maxFileBytes / 1024} KB` : bytes
		} finally {
			await handle.close()
		}
	} catch (error) {
		return reasonOf(error, false)
	}
}

function reasonOf(error: unknown, folder: boolean): string {
	if (error instanceof Moved)
		return folder ? 'it is no folder, or a link, and none is followed' : 'it is a link, and none is followed'
	if (error instanceof NotAFile) return `it is ${error.kind}, no regular file`
	return codeOf(error) === 'EACCES' ? 'it may not be read' : `it cannot be read (${codeOf(error) ?? 'unknown error'})`
}

function textOf(bytes: Uint8Array): string | null {
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch {
		return null
	}
}

/** Fields that other agents' files have and that have no effect here, with why. */
const without: Record<string, string> = {
	'allowed-tools': 'a command file allows nothing: your rules and the questions hold as ever',
	tools: 'a command file allows nothing: your rules and the questions hold as ever',
	model: 'the model of the session is used',
	agent: 'there are no agents of that kind here',
	hooks: 'a command file runs no hooks',
}

/** The parts of a command file. Never throws; what has no effect is in `notes`. */
export function parseSlashFile(text: string): Pick<SlashFile, 'description' | 'hint' | 'body' | 'notes'> {
	const { fields, body, notes } = frontMatter(text.replace(/^\ufeff/, '').replace(/\r\n?/g, '\n'))
	for (const [name, why] of Object.entries(without)) if (fields.has(name)) notes.push(`"${name}" has no effect: ${why}`)
	const plain = visible(clean(body)).trim()
	const first = plain
		.split('\n')
		.find((line) => /[\p{L}\p{N}]/u.test(line))
		?.replace(/^[#>*\s-]+/, '')
	return {
		description: oneLine(fields.get('description') || first || '', 200),
		hint: oneLine(fields.get('argument-hint') ?? '', 100),
		body: plain,
		notes,
	}
}
