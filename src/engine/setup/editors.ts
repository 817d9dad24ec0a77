// `garuda setup editors`: the entry for an editor printed, or put into its configuration with all else left as it is, after the diff was seen.
import { constants, type Stats } from 'node:fs'
import { lstat, mkdir, open, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, UserError } from '../errors.ts'
import { writeAtomic } from '../files/atomic.ts'
import { unified } from '../files/unified.ts'
import { ownUid } from '../own-uid.ts'
import { visible } from '../text.ts'
import type { Ask } from './ask.ts'
import { type EditorEntry, type EditorPlace, editorEntries, editorNames, type Launcher } from './editor-entries.ts'
import type { Node, ParseError } from './jsonc.ts'
import { tilde } from './place.ts'

export interface EditorFlags {
	/** Which editors; all that are found here when empty. */
	editors: string[]
	/** Write into the configuration instead of printing. */
	write?: boolean | undefined
	/** Write without asking. */
	yes?: boolean | undefined
}

/** Prints or writes; `ask` null asks nothing, and then nothing is written without `yes`. Throws UserError. */
export async function setupEditors(
	place: EditorPlace,
	launcher: Launcher,
	flags: EditorFlags,
	ask: Ask | null,
	say: (text: string) => void,
): Promise<void> {
	const entries = editorEntries(place, launcher)
	for (const name of flags.editors)
		if (!editorNames.some((one) => one === name))
			throw new UserError(`No editor "${visible(name.slice(0, 40))}" is known.`, `Known: ${editorNames.join(', ')}.`)
	const here = []
	for (const entry of entries) if (await isFolder(entry.folder)) here.push(entry)
	const wanted =
		flags.editors.length > 0 ? entries.filter((one) => flags.editors.includes(one.name)) : flags.write ? here : entries
	if (wanted.length === 0)
		throw new UserError(
			'No editor was found on this machine.',
			`Name one: garuda setup editors ${editorNames.join('|')} --write`,
		)
	for (const entry of wanted) {
		say(`${entry.title}  (needs ${entry.needs})`)
		if (entry.code) {
			say(`Put this into ${entry.code.where}:\n\n${entry.code.text}`)
			if (flags.write) say(`It is a program of yours, so Garuda does not write into it.`)
		} else if (flags.write) await writeEntry(place, entry, flags, ask, say)
		else say(`In ${tilde(entry.file!, place.home)}:\n\n${entryText(entry)}\n`)
		say(`${entry.next}\n`)
	}
	if (!flags.write && flags.editors.length === 0 && here.some((one) => one.file))
		say(
			`Found here: ${here.map((one) => one.title).join(', ')}. "garuda setup editors --write" puts the entry in, after showing what changes.`,
		)
}

/** The entry as it stands in a file of its own. */
export const entryText = ({ path, value }: EditorEntry): string =>
	JSON.stringify(
		path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value),
		null,
		2,
	)

async function writeEntry(
	place: EditorPlace,
	entry: EditorEntry,
	flags: EditorFlags,
	ask: Ask | null,
	say: (text: string) => void,
): Promise<void> {
	const file = entry.file!
	const shown = tilde(file, place.home)
	const found = await readConfig(file)
	const text = await withEntry(found?.text ?? '', entry, shown)
	if (text === found?.text) return say(`The entry stands in ${shown} already.`)
	say(visible(unified({ path: shown, old: found?.text ?? null, new: text })))
	if (!flags.yes) {
		if (!ask)
			throw new UserError(`Nothing was written: there is no terminal to ask on.`, 'Add --yes to write what is shown.')
		if (!(await ask.confirm(`Write this to ${shown}?`, true))) return say('Nothing was changed.')
	}
	// The editor may have saved it while the person read.
	const again = await readConfig(file)
	if (again?.text !== found?.text)
		throw new UserError(`${shown} has changed meanwhile; nothing was written.`, 'Run it again.')
	if (!found) await mkdir(dirname(file), { recursive: true, mode: 0o700 })
	// A link is a person's own (dotfiles): its target gets the new text, the link stays.
	await writeAtomic(found?.real ?? file, text, { mode: found ? found.mode : 0o600 })
	say(`Written: ${shown}${found && found.real !== file ? ` (it is a link to ${tilde(found.real, place.home)})` : ''}`)
}

interface Config {
	text: string
	real: string
	mode: number
}

const maxBytes = 8 << 20

/** The editor's file, or null when there is none. UserError when it is no regular file of this user. */
export async function readConfig(file: string): Promise<Config | null> {
	const refuse = (why: string): never => {
		throw new UserError(`${file} ${why}; nothing was written.`, 'Paste the entry by hand: garuda setup editors')
	}
	try {
		await lstat(file)
	} catch (error) {
		if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null
		throw error
	}
	const real = await realpath(file).catch(() => refuse('is a link to nothing'))
	const handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(
		(error: unknown) => refuse(`cannot be read (${codeOf(error)})`),
	)
	try {
		const found: Stats = await handle.stat()
		const uid = await ownUid()
		if (!found.isFile()) refuse('is no regular file')
		if (uid !== null && found.uid !== uid) refuse('belongs to another user')
		if (found.size > maxBytes) refuse('is larger than 8 MiB')
		const bytes = await handle.readFile()
		try {
			return {
				text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
				real,
				mode: found.mode & 0o777,
			}
		} catch {
			return refuse('is not UTF-8')
		}
	} finally {
		await handle.close()
	}
}

/** The text with the entry in it; comments, order, indents, line ends and the entry's own further fields stay. */
export async function withEntry(text: string, entry: EditorEntry, shown: string): Promise<string> {
	const { applyEdits, findNodeAtLocation, getNodeValue, modify, parseTree } = await import('./jsonc.ts')
	const bom = text.startsWith('\ufeff') ? '\ufeff' : ''
	const body = text.slice(bom.length)
	if (body.trim() === '') return `${entryText(entry)}\n`
	const byHand = 'Mend it in the editor, or paste the entry by hand.'
	const errors: ParseError[] = []
	const tree = parseTree(body, errors, { allowTrailingComma: true })
	if (!tree || errors.length > 0) {
		const line = body.slice(0, errors[0]?.offset ?? 0).split('\n').length
		throw new UserError(`${shown}:${line}: this is no valid JSON (with comments), so nothing was written.`, byHand)
	}
	// The deepest object of the path that is there, and what is missing below it.
	let parent = tree
	let depth = 0
	for (; depth <= entry.path.length; depth++) {
		const node = depth === 0 ? tree : findNodeAtLocation(tree, entry.path.slice(0, depth))
		if (!node) break
		if (node.type !== 'object') {
			const place = entry.path.slice(0, depth).join('.') || 'the file'
			throw new UserError(`${shown}: ${place} is no object, so nothing was written.`, byHand)
		}
		parent = node
	}
	if (depth <= entry.path.length) {
		const missing = entry.path.slice(depth)
		const value = missing.reduceRight<unknown>((inner, name) => ({ [name]: inner }), entry.value)
		return bom + (await withProperty(body, parent, entry.path[depth - 1]!, value))
	}
	// The person's own environment and other fields of the entry stay; only what starts Garuda is set.
	const before = getNodeValue(parent) as Record<string, unknown>
	let result = body
	for (const [name, value] of Object.entries(entry.value)) {
		if (name === 'env' && Object.hasOwn(before, name)) continue
		if (JSON.stringify(before[name]) === JSON.stringify(value)) continue
		const path = [...entry.path, name]
		const now = findNodeAtLocation(parseTree(result)!, entry.path)!
		result = Object.hasOwn(before, name)
			? applyEdits(result, modify(result, path, value, {}))
			: await withProperty(result, now, name, value)
	}
	return bom + result
}

/**
 * A property as the last of an object, on lines of its own before the closing brace: the library's own insertion draws the
 * lines beside it anew, and a comment behind the last property ends up behind the new one.
 */
async function withProperty(text: string, object: Node, name: string, value: unknown): Promise<string> {
	const { createScanner } = await import('./jsonc.ts')
	const eol = text.includes('\r\n') ? '\r\n' : '\n'
	const unit = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  '
	const indentAt = (offset: number) => /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1))![0]
	const outer = indentAt(object.offset)
	const last = object.children?.at(-1)
	const first = object.children?.[0]
	const ownLine = first && /^[ \t]*$/.test(text.slice(text.lastIndexOf('\n', first.offset - 1) + 1, first.offset))
	const inner = ownLine ? indentAt(first.offset) : outer + unit
	const close = object.offset + object.length - 1
	const property = `${JSON.stringify(name)}: ${JSON.stringify(value, null, unit.startsWith('\t') ? '\t' : unit.length)}`
		.split('\n')
		.join(eol + inner)
	let comma = false
	const from = last ? last.offset + last.length : close
	if (last) {
		const scanner = createScanner(text, true)
		scanner.setPosition(from)
		scanner.scan()
		comma = text[scanner.getTokenOffset()] === ','
	}
	const between = text.slice(from, close).trimEnd()
	const head = last ? text.slice(0, from) + (comma ? '' : ',') + between : text.slice(0, close).trimEnd()
	return `${head}${eol}${inner}${property}${comma ? ',' : ''}${eol}${outer}${text.slice(close)}`
}

const isFolder = async (path: string): Promise<boolean> => (await stat(path).catch(() => null))?.isDirectory() === true

export interface EditorState {
	entry: EditorEntry
	here: boolean
	/** The command that its entry starts, where there is one; null: no entry. */
	command: string | null
	/** Why its file could not be read. */
	problem: string | null
}

/** What each editor's configuration says of Garuda, for the doctor. Never throws. */
export async function editorStates(place: EditorPlace, launcher: Launcher): Promise<EditorState[]> {
	const states: EditorState[] = []
	for (const entry of editorEntries(place, launcher)) {
		const here = await isFolder(entry.folder)
		const state: EditorState = { entry, here, command: null, problem: null }
		states.push(state)
		if (!here || !entry.file) continue
		try {
			const found = await readConfig(entry.file)
			if (!found) continue
			const { parseTree, findNodeAtLocation, getNodeValue } = await import('./jsonc.ts')
			const tree = parseTree(found.text.replace(/^\ufeff/, ''), [], { allowTrailingComma: true })
			const node = tree && findNodeAtLocation(tree, [...entry.path, 'command'])
			const command: unknown = node && getNodeValue(node)
			if (typeof command === 'string') state.command = command
		} catch (error) {
			state.problem = error instanceof Error ? error.message : String(error)
		}
	}
	return states
}
