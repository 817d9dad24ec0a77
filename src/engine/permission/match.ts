// Patterns of rules against commands and paths: `*` for commands, globs for paths. Pure.
import { DYNAMIC } from './shell-decode.ts'

/** `*` any text, `\*` and `\\` themselves; the whole text must match. Linear-time: no expression is built from it. */
export function matchText(pattern: string, text: string, fold = false): boolean {
	const tokens = tokenise(fold ? pattern.toLowerCase() : pattern)
	return matchTokens(tokens, fold ? text.toLowerCase() : text)
}

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

function matchTokens(tokens: readonly number[], text: string): boolean {
	let at = 0
	let token = 0
	let star = -1
	let from = 0
	while (at < text.length) {
		if (tokens[token] === STAR) {
			star = token++
			from = at
		} else if (token < tokens.length && tokens[token] === text.charCodeAt(at)) {
			token++
			at++
		} else if (star >= 0) {
			token = star + 1
			at = ++from
		} else return false
	}
	while (tokens[token] === STAR) token++
	return token === tokens.length
}

/** Whether some value of the text's unknown parts could match. Over-reads: "could" leads to a question. */
export function couldMatch(pattern: string, text: string): boolean {
	// An unknown word may be empty or several words: the spaces around it are unknown as well.
	const loose = text
		.toLowerCase()
		.replaceAll(new RegExp(` *${DYNAMIC} *`, 'g'), DYNAMIC)
		.slice(0, 4096)
	const tokens = tokenise(pattern.toLowerCase())
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
	}
	return places.has(tokens.length)
}

/** A path glob as an expression: `**` any folders, `*` and `?` within a name, `[a-z]`, `{a,b}`; hidden names match too. */
export function globRegExp(glob: string, fold: boolean): RegExp | null {
	let out = ''
	let group = 0
	for (let at = 0; at < glob.length; at++) {
		const char = glob[at]!
		if (char === '*' && glob[at + 1] === '*') {
			while (glob[at + 1] === '*') at++
			if (glob[at + 1] === '/') {
				at++
				// Several in a row mean one: nested repeats would make matching slow.
				while (glob.startsWith('**/', at + 1)) at += 3
				out += '(?:[^/]+/)*'
			} else out += '.*'
		} else if (char === '*') out += '[^/]*'
		else if (char === '?') out += '[^/]'
		else if (char === '[') {
			const end = glob.indexOf(']', at + 2)
			if (end < 0) return null
			const body = glob.slice(at + 1, end)
			out += `[${body.replace(/^!/, '^').replace(/[\\[\]&]/g, '\\$&')}]`
			at = end
		} else if (char === '{') {
			group++
			out += '(?:'
		} else if (char === '}' && group > 0) {
			group--
			out += ')'
		} else if (char === ',' && group > 0) out += '|'
		else if (char === '\\' && at + 1 < glob.length) out += glob[++at]!.replace(/[^\w]/g, '\\$&')
		else out += char.replace(/[.+^$()|{}\]\\]/g, '\\$&')
	}
	if (group > 0) return null
	try {
		return new RegExp(`^${out}$`, fold ? 'is' : 's')
	} catch {
		return null
	}
}

/** The text as a glob that matches exactly itself. */
export const escapeGlob = (path: string): string => path.replace(/[*?[\]{}\\,]/g, '\\$&')
