// Patterns of rules against commands and paths: `*` for commands, globs for paths. Pure.
import { compileParts, type GlobTest, inName, literal, type Part } from '../glob-parts.ts'
import { DYNAMIC } from './shell-decode.ts'

/** A pattern taken apart once: `*` any text, `\*` and `\\` themselves. Matching is by search for its fixed pieces: no expression is built. */
export interface TextPattern {
	/** The fixed pieces in order; one alone means no star. */
	pieces: string[]
	/** The text up to the first space, where the pattern fixes it; any matching text begins with exactly this word. */
	first: string | null
	/** The longest fixed piece: what a matching text must hold. */
	longest: string
	tokens: number[]
}

export function compileText(pattern: string, fold = false): TextPattern {
	const tokens = tokenise(fold ? pattern.toLowerCase() : pattern)
	const pieces = ['']
	for (const token of tokens) {
		if (token === STAR) pieces.push('')
		else pieces[pieces.length - 1] += String.fromCharCode(token)
	}
	const head = pieces[0]!
	const space = head.indexOf(' ')
	const first = space >= 0 ? head.slice(0, space) : pieces.length === 1 ? head : null
	const longest = pieces.reduce((a, b) => (b.length > a.length ? b : a))
	return { pieces, first, longest, tokens }
}

/** Whether the whole text matches; of a pattern compiled with `fold` the text must be in lower case. */
export function matchesText({ pieces }: TextPattern, text: string): boolean {
	const last = pieces.length - 1
	const head = pieces[0]!
	if (last === 0) return text === head
	const tail = pieces[last]!
	if (text.length < head.length + tail.length || !text.startsWith(head) || !text.endsWith(tail)) return false
	let at = head.length
	const end = text.length - tail.length
	for (let piece = 1; piece < last; piece++) {
		const found = text.indexOf(pieces[piece]!, at)
		if (found < 0) return false
		at = found + pieces[piece]!.length
		if (at > end) return false
	}
	return true
}

/** `*` any text, `\*` and `\\` themselves; the whole text must match. */
export const matchText = (pattern: string, text: string, fold = false): boolean =>
	matchesText(compileText(pattern, fold), fold ? text.toLowerCase() : text)

const STAR = -1

const tokenise = (pattern: string): number[] => {
	const tokens: number[] = []
	for (let at = 0; at < pattern.length; at++) {
		const char = pattern[at]!
		if (char === '\\' && /[*\\]/.test(pattern[at + 1] ?? '')) tokens.push(pattern.charCodeAt(++at))
		else if (char !== '*') tokens.push(pattern.charCodeAt(at))
		else if (tokens.at(-1) !== STAR) tokens.push(STAR)
	}
	return tokens
}

/** A text with unknown parts, made ready: lower case, the spaces around an unknown part unknown as well, and so is what is far behind. */
export const looseText = (text: string): string => {
	const loose = text.toLowerCase().replace(unknownWithSpaces, DYNAMIC)
	return loose.length > 4096 ? loose.slice(0, 4096) + DYNAMIC : loose
}

const unknownWithSpaces = new RegExp(` *${DYNAMIC} *`, 'g')

/** Whether some value of the text's unknown parts could match. Over-reads: "could" leads to a question. */
export const couldMatch = (pattern: string, text: string): boolean =>
	couldMatchText(compileText(pattern, true), looseText(text))

/** The same for a pattern compiled with `fold` and a text from `looseText`. */
export function couldMatchText({ tokens, pieces }: TextPattern, loose: string): boolean {
	// Most pairs differ before the first unknown part or after the last.
	const known = loose.indexOf(DYNAMIC)
	const head = pieces[0]!
	const start = known < 0 ? loose : loose.slice(0, known)
	const both = Math.min(head.length, start.length)
	if (head.slice(0, both) !== start.slice(0, both)) return false
	const tail = pieces.at(-1)!
	const end = known < 0 ? loose : loose.slice(loose.lastIndexOf(DYNAMIC) + 1)
	const ends = Math.min(tail.length, end.length)
	if (ends > 0 && tail.slice(-ends) !== end.slice(-ends)) return false
	// Sets of pattern positions, moved over the text: the unknown part moves to every later position.
	let places = new Set<number>()
	const add = (into: Set<number>, place: number) => {
		into.add(place)
		while (tokens[place] === STAR) into.add(++place)
	}
	add(places, 0)
	for (const char of loose) {
		const next = new Set<number>()
		for (const place of places) {
			if (char === DYNAMIC) for (let later = place; later <= tokens.length; later++) next.add(later)
			else if (tokens[place] === STAR) add(next, place)
			else if (tokens[place] === char.charCodeAt(0)) add(next, place + 1)
		}
		places = next
		if (places.size === 0) return false
		// A star at the end takes whatever still comes.
		if (tail === '' && places.has(tokens.length)) return true
	}
	return places.has(tokens.length)
}

/** Longer ones are no path's. */
const maxGlob = 4096
const maxNesting = 20
const folders: Part = { many: [inName, { many: [inName] }, { one: '/' }] }

/**
 * A path glob as a test: `**` any folders, `*` and `?` within a name, `[a-z]`, `{a,b}`; hidden names match too. Null: it is broken,
 * or beyond any path's length. Matching is linear in the path.
 */
export function compileGlob(glob: string, fold: boolean): GlobTest | null {
	if (glob.length > maxGlob) return null
	/** The sequence that is written, under it the groups that are open. */
	let parts: Part[] = []
	const groups: { before: Part[]; either: Part[][] }[] = []
	for (let at = 0; at < glob.length; at++) {
		const char = glob[at]!
		if (char === '*' && glob[at + 1] === '*') {
			while (glob[at + 1] === '*') at++
			if (glob[at + 1] === '/') {
				at++
				// Several in a row mean one.
				while (glob.startsWith('**/', at + 1)) at += 3
				parts.push(folders)
			} else parts.push({ many: [{ one: '.' }] })
		} else if (char === '*') parts.push({ many: [inName] })
		else if (char === '?') parts.push(inName)
		else if (char === '[') {
			const end = glob.indexOf(']', at + 2)
			if (end < 0) return null
			const body = glob.slice(at + 1, end)
			parts.push({ one: `[${body.replace(/^!/, '^').replace(/[\\[\]&]/g, '\\$&')}]` })
			at = end
		} else if (char === '{') {
			if (groups.length === maxNesting) return null
			groups.push({ before: parts, either: [] })
			parts = []
		} else if (char === '}' && groups.length > 0) {
			const { before, either } = groups.pop()!
			before.push({ either: [...either, parts] })
			parts = before
		} else if (char === ',' && groups.length > 0) {
			groups.at(-1)!.either.push(parts)
			parts = []
		} else parts.push(literal(char === '\\' && at + 1 < glob.length ? glob[++at]! : char))
	}
	return groups.length > 0 ? null : compileParts(parts, fold ? 'is' : 's')
}

/** Whether one of the globs (of `deniedReads`) keeps an absolute path from reading. */
export function deniedTest(denied: readonly { glob: string; below: boolean }[]): (path: string) => boolean {
	const tests = denied.map(({ glob, below }) => {
		const exact = compileGlob(glob, below)
		if (!exact) throw new Error(`path pattern lost: ${glob}`)
		return { exact, below, part: globLiteral(glob, below) }
	})
	return (path) =>
		tests.some(({ exact, below, part }) => {
			if (!(below ? path.toLowerCase() : path).includes(part)) return false
			if (exact.test(path)) return true
			if (!below) return false
			for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1))
				if (exact.test(path.slice(0, at))) return true
			return false
		})
}

/** The longest run of plain ASCII characters that every path of a glob holds, in lower case when `fold`; '' when there is none. */
export function globLiteral(glob: string, fold: boolean): string {
	let best = ''
	let run = ''
	let group = 0
	const end = () => {
		if (run.length > best.length) best = run
		run = ''
	}
	for (let at = 0; at < glob.length; at++) {
		const char = glob[at]!
		if (char === '*' || char === '?') {
			end()
			if (char === '*' && glob[at + 1] === '*') {
				while (glob[at + 1] === '*') at++
				// That slash belongs to the folders that may be none.
				if (glob[at + 1] === '/') at++
			}
		} else if (char === '[') {
			end()
			at = Math.max(at, glob.indexOf(']', at + 2))
		} else if (char === '{' || char === '}') {
			end()
			group += char === '{' ? 1 : -1
		} else {
			const plain = char === '\\' && at + 1 < glob.length ? glob[++at]! : char
			if (group > 0 || plain > '~') end()
			else run += plain
		}
	}
	end()
	return fold ? best.toLowerCase() : best
}

/** The text as a glob that matches exactly itself. */
export const escapeGlob = (path: string): string => path.replace(/[*?[\]{}\\,]/g, '\\$&')
