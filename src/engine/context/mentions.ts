// @mentions in a prompt: found, read by read_file's rules and attached, between the prompt and the turn.
import { ToolError } from '../errors.ts'
import { shownPath } from '../files/guard.ts'
import { noteSeen } from '../files/seen.ts'
import { viewFile, viewFolder } from '../files/view.ts'
import type { Files, ResolvedPath, ToolContext, ToolState } from '../ports.ts'
import { oneLine } from '../text.ts'
import type { Image } from '../types.ts'

export interface Mention {
	/** What may be meant, the longest first: punctuation at the end may belong to the sentence. */
	paths: string[]
	/** Written in quotes, or with a path's marks: a missing file is then worth a word of its own. */
	explicit: boolean
	/** A decorator's call, a sign, or too long for a name: no word is lost on it. */
	noise: boolean
	start: number
	end: number
}

const maxPath = 1024

/** Mentions in a text: `@path`, `@"a b.md"`, `@a\ b.md`, only where a word starts. Whether the file exists is not known here. */
export const parseMentions = (text: string): Mention[] => {
	const found: Mention[] = []
	const start = /(?<=^|[\s([{<'"`,;:|=>–—])@(?=\S)/gu
	for (const hit of text.matchAll(start)) {
		const at = hit.index + 1
		const quote = text[at]
		if (quote === '"' || quote === "'") {
			const end = closing(text, at, quote)
			if (end !== -1) {
				const path = text.slice(at + 1, end).replace(/\\(["'\\])/g, '$1')
				if (path.trim() !== '' && path.length <= maxPath)
					found.push({ paths: [path], explicit: true, noise: false, start: hit.index, end: end + 1 })
			}
			continue
		}
		const word = /^(?:\\[^\n]|[^\s\\])+/u.exec(text.slice(at, at + maxPath * 2))?.[0]
		if (!word || word.length > maxPath) continue
		const raw = word.replace(/\\(.)/gsu, '$1')
		const paths = [...candidates(raw)]
		const last = paths.at(-1) ?? ''
		const called = raw.startsWith(`${last}(`)
		const explicit =
			!called && (/^(?:\.{1,2}\/|\/|~\/)/.test(last) || /[^/.]\.[A-Za-z0-9]{1,6}$/.test(last) || word.includes('\\ '))
		const noise = called || last.length > 255 || !/^[\p{L}\p{N}_.~/-]/u.test(last)
		if (paths.length > 0) found.push({ paths, explicit, noise, start: hit.index, end: at + word.length })
	}
	return found
}

/** The closing quote on the same line, or -1. */
const closing = (text: string, at: number, quote: string): number => {
	for (let index = at + 1; index < text.length && text[index] !== '\n'; index++) {
		if (text[index] === '\\') index++
		else if (text[index] === quote) return index
	}
	return -1
}

/** The word itself, then without the punctuation of the sentence around it, then up to a bracket or quote. */
const candidates = (word: string): Set<string> => {
	const out = new Set<string>()
	let rest = word
	if (/^\.{3,}/.test(word)) return out
	const add = (path: string): void => {
		if (path !== '' && path !== '/') out.add(path)
	}
	add(rest)
	while (/[.,;:!?)\]}>'"`…]$/u.test(rest) && rest !== '.' && rest !== '..') {
		rest = rest.slice(0, -1)
		add(rest)
	}
	const cut = rest.search(/[()[\]{}<>'"`|]/)
	if (cut > 0) add(rest.slice(0, cut))
	return out
}

export interface ExpandContext {
	files: Files
	limits: ToolContext['limits']
	/** What is attached counts as read by the agent. */
	state?: Pick<ToolState, 'seen' | 'noImages'>
	/** The session's rules for reading; without it, files outside the roots are not attached. */
	permit?(resolved: ResolvedPath): Promise<{ allowed: boolean; reason: string }>
}

export interface Expanded {
	attachments: { path: string; text: string }[]
	/** Pictures among the attachments, in their order; the text of each is its label. */
	images: Image[]
	/** For the user: what was not attached and why. */
	notices: string[]
}

const maxAttachments = 20

/** Reads what a prompt mentions. Never throws: what cannot be attached is a notice, what is no file stays plain text. */
export const expandMentions = async (text: string, ctx: ExpandContext): Promise<Expanded> => {
	const out: Expanded = { attachments: [], images: [], notices: [] }
	const done = new Set<string>()
	// All attachments share three results' worth of room, so that a list of files cannot fill the window.
	let room = ctx.limits.resultChars * 3
	/** Words after an @ that are no file's name: a person's, a package's, or a slip. */
	const words = new Set<string>()
	for (const mention of parseMentions(text)) {
		const resolved = await firstExisting(mention, ctx.files)
		if (!resolved) {
			const last = mention.paths.at(-1)!
			if (mention.explicit) out.notices.push(`@${shownPath(last)}: no such file; the text stays as it is.`)
			else if (!mention.noise) words.add(`@${oneLine(last, 80)}`)
			continue
		}
		if (done.has(resolved.path)) continue
		done.add(resolved.path)
		const shown = shownPath(resolved.shown)
		if (out.attachments.length >= maxAttachments || room < 500) {
			out.notices.push(`@${shown}: not attached, there are too many mentions; the agent can read it.`)
			continue
		}
		try {
			await permitted(resolved, ctx)
			const limits = { ...ctx.limits, resultChars: Math.min(ctx.limits.resultChars, room) }
			const attached = await attach(resolved, ctx, limits)
			room -= attached.text.length
			out.attachments.push({ path: shown, text: attached.text })
			out.images.push(...attached.images)
		} catch (error) {
			out.notices.push(
				`@${shown}: not attached. ${error instanceof ToolError ? error.message : 'It could not be read.'}`,
			)
		}
	}
	if (words.size > 0) out.notices.push(noFiles([...words]))
	return out
}

/** One line for all of them: most are no slip. */
const noFiles = (words: string[]): string => {
	const more = words.length > 5 ? ` and ${words.length - 5} more` : ''
	return `No file or folder is called ${words.slice(0, 5).join(', ')}${more}; the text stays as it is.`
}

const firstExisting = async (mention: Mention, files: Files): Promise<ResolvedPath | null> => {
	for (const path of mention.paths) {
		const resolved = await files.resolve(path).catch(() => null)
		if (resolved?.exists) return resolved
		// A secret's name gets the same answer whether or not the file exists.
		if (resolved?.sensitive && mention.explicit) return resolved
	}
	return null
}

const permitted = async (resolved: ResolvedPath, ctx: ExpandContext): Promise<void> => {
	if (resolved.sensitive) throw new ToolError(`It is off limits for the file tools: ${resolved.sensitive}.`)
	if (ctx.permit) {
		const { allowed, reason } = await ctx.permit(resolved)
		if (!allowed) throw new ToolError(reason)
	} else if (!resolved.inside) throw new ToolError('It lies outside the working folder; ask the agent to read it.')
}

const attach = async (
	resolved: ResolvedPath,
	ctx: ExpandContext,
	limits: ToolContext['limits'],
): Promise<{ text: string; images: Image[] }> => {
	const folder = await viewFolder(resolved).catch(() => null)
	if (folder) return { text: `[folder, ${folder.count} entries]\n${folder.text}`, images: [] }
	const view = await viewFile(ctx.files, resolved, {}, limits, ctx.state?.noImages)
	if (ctx.state) noteSeen(ctx.state.seen, view.path, view.hash, view.lines, view.total)
	return { text: view.text, images: view.images ?? [] }
}
