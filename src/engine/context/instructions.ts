// The project's instructions for agents: AGENTS.md, CLAUDE.md and GARUDA.md of the root, with their imports. Once a session.
import { lstat, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { cutHead } from '../text.ts'
import { wrap } from '../untrusted.ts'
import { seenText } from './visible-text.ts'

/** A guarded read of a text file: null when there is none or it is refused; never blocks, never throws. */
export type ReadText = (path: string) => Promise<string | null>

export interface ProjectText {
	/** For the system prompt, wrapped and cleaned; empty when there is nothing. */
	text: string
	notices: string[]
	/** Paths that went in, relative to the root. */
	files: string[]
}

/** Later ones win. Only the root's: a file in a dependency's folder instructs nobody. */
const names = ['AGENTS.md', 'CLAUDE.md', 'GARUDA.md']
/** Characters. */
const maxFile = 40_000
const maxAll = 80_000
const maxImports = 20
const maxDepth = 5

/**
 * Reads the three files and their imports (a line that is nothing but `@path`, outside code blocks, to a file inside the
 * root by its real path). A line that names no such file stays as it is. Notices tell what was cut, refused or hidden.
 */
export async function loadInstructions({ root, read }: { root: string; read: ReadText }): Promise<ProjectText> {
	const notices: string[] = []
	const files: string[] = []
	const seen = new Set<string>()
	const texts = new Set<string>()
	const base = await realpath(root).catch(() => root)
	let imports = 0

	/** The real path when it lies inside the root, else null. */
	const inside = async (path: string): Promise<string | null> => {
		const real = await realpath(path).catch(() => null)
		if (real === null) return null
		const way = relative(base, real)
		return way !== '' && !way.startsWith('..') && !isAbsolute(way) ? real : null
	}

	async function load(path: string, shown: string, depth: number): Promise<string | null> {
		const real = await inside(path)
		if (real === null || seen.has(real)) return null
		seen.add(real)
		const source = await read(real)
		if (source === null) return null
		const { text, hidden } = seenText(source)
		if (hidden)
			notices.push(
				`${shown} holds hidden characters: they were taken out or written out for the model. Look at the file.`,
			)
		files.push(shown)
		const cut = text.length > maxFile
		if (cut) notices.push(`${shown} is longer than ${maxFile.toLocaleString('en')} characters; the rest was left out.`)
		return expand(cut ? `${cutHead(text, maxFile)}\n[… the rest was left out …]` : text, dirname(path), shown, depth)
	}

	async function expand(text: string, folder: string, shown: string, depth: number): Promise<string> {
		const out: string[] = []
		let fence = ''
		for (const line of text.split('\n')) {
			const mark = /^\s{0,3}(```+|~~~+)/.exec(line)?.[1]
			if (mark && !fence) fence = mark
			else if (mark && mark[0] === fence[0] && mark.length >= fence.length) fence = ''
			const name = fence ? undefined : /^\s{0,3}(?:[-*]\s+)?@([^\s@]{1,255})\s*$/.exec(line)?.[1]
			out.push(name === undefined ? line : await importLine(line, name, folder, shown, depth))
		}
		return out.join('\n')
	}

	async function importLine(line: string, name: string, folder: string, shown: string, depth: number): Promise<string> {
		const path = join(folder, name)
		if (isAbsolute(name) || name.startsWith('~')) {
			if (await lstat(name.startsWith('~') ? '/' : name).catch(() => null))
				notices.push(`${shown}: "@${name}" was not imported: imports lie inside the root.`)
			return line
		}
		const stat = await lstat(path).catch(() => null)
		// No such file: a handle, a decorator or a package; not an import.
		if (!stat || stat.isDirectory()) return line
		if (depth >= maxDepth || imports >= maxImports) {
			notices.push(`${shown}: "@${name}" was not imported: there are too many imports.`)
			return line
		}
		const real = await inside(path)
		if (real === null) {
			notices.push(`${shown}: "@${name}" was not imported: it leads outside the root.`)
			return line
		}
		if (seen.has(real)) return line
		imports++
		const text = await load(path, relative(root, path), depth + 1)
		if (text !== null) return text
		notices.push(`${shown}: "@${name}" could not be read as text.`)
		return line
	}

	const parts: string[] = []
	let left = maxAll
	for (const name of names) {
		const path = join(root, name)
		const text = await load(path, name, 0)
		if (text === null) {
			const stat = await lstat(path).catch(() => null)
			// A second name of a file that is in already needs no word.
			const real = stat ? await inside(path) : null
			if (stat && !(real !== null && seen.has(real) && files.includes(relative(base, real))))
				notices.push(`${name} was not read: it is no regular text file inside the root.`)
			continue
		}
		if (text.trim() === '' || texts.has(text)) continue
		texts.add(text)
		if (left <= 0) {
			notices.push(`${name} was left out: the instructions are too long.`)
			continue
		}
		const fits = cutHead(text, left)
		if (fits.length < text.length)
			notices.push(
				`The instructions are longer than ${maxAll.toLocaleString('en')} characters; the end of ${name} was left out.`,
			)
		left -= fits.length
		parts.push(wrap('garuda-instructions', { file: name }, fits))
	}
	return { text: parts.join('\n'), notices, files }
}
