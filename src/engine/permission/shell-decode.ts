// Words of a shell command as bash would see them after quote removal. Part of reading a command for the rules.
import type { Assignment, Word, WordPart } from 'unbash'

/** Stands for text that only the run knows: an expansion, a substitution. NUL cannot be in a command. */
export const DYNAMIC = '\u0000'
/** Where an unquoted $IFS or brace splits a word in two; never leaves this file. */
const SPLIT = '\u0001'

export interface Decoded {
	/** One word may become several ({a,b}, $IFS) . */
	words: string[]
	/** An unquoted glob: the name is chosen by what lies on the disk. */
	glob: boolean
}

const maxWords = 64

/** What expansions are known to mean; without it they are unknown. */
export interface Known {
	/** ~ and $HOME. */
	home?: string | undefined
	/** ~+ and $PWD, before any cd. */
	cwd?: string | undefined
}

/** Nothing in it means anything to a shell. */
const plain = /^[\w./:@%+,-]+$/

export function decodeWord(word: Word, known: Known): Decoded {
	// The parser makes a word's parts when they are asked for, at the cost of reading it again; most words have none.
	if (plain.test(word.text)) return { words: [word.text], glob: false }
	const parts = word.parts
	let glob = false
	let texts = ['']
	const append = (next: string[]) => {
		const joined = texts.flatMap((text) => next.map((one) => text + one))
		texts = joined.length > maxWords ? [texts[0]! + DYNAMIC] : joined
	}
	for (const part of parts ?? []) {
		if (part.type === 'Glob' || part.type === 'ExtendedGlob') glob = true
		append(part.type === 'BraceExpansion' ? braces(part.text) : [decodePart(part, known, false)])
	}
	if (!parts) texts = [unmarked(word.value)]
	// Only a tilde that is written bare is one.
	const { home, cwd } = known
	if (home !== undefined && /^~(?:\/|$)/.test(word.text)) texts = texts.map((text) => home + text.slice(1))
	if (/^~[+-](?:\/|$)/.test(word.text))
		texts = texts.map((text) => (text[1] === '+' && cwd !== undefined ? cwd : DYNAMIC) + text.slice(2))
	// An unquoted $IFS alone is no word at all: what follows it moves up.
	const words = texts.flatMap((text) =>
		text.includes(SPLIT) ? text.split(SPLIT).filter((part) => part !== '') : [text],
	)
	// {a,} is `a` and nothing, and nothing unquoted is no word.
	const types = new Set(parts?.map(({ type }) => type))
	if (types.has('BraceExpansion') && ![...types].some((type) => /Quoted|Locale/.test(type)))
		return { words: words.filter((one) => one !== ''), glob }
	return { words, glob }
}

/** `NAME=value` as one word, for declare, export, alias and the like. */
export function decodeAssignment(node: Assignment, known: Known): string {
	const { value } = node
	const text = value.type === 'Word' ? decodeWord(value, known).words.join(' ') : DYNAMIC
	return `${node.name}${node.index ? `[${node.index.text}]` : ''}${node.append ? '+=' : '='}${text}`
}

/** A character that is a mark in here is unknown text. */
const unmarked = (value: string): string => value.replaceAll(SPLIT, DYNAMIC)

function decodePart(part: WordPart, known: Known, quoted: boolean): string {
	switch (part.type) {
		case 'Literal':
		case 'Glob':
		case 'SingleQuoted':
		case 'AnsiCQuoted':
			return unmarked(part.value)
		case 'DoubleQuoted':
		case 'LocaleString':
			return part.parts.map((child) => decodePart(child, known, true)).join('')
		case 'SimpleExpansion':
			return variable(part.text.slice(1), known, quoted)
		case 'ParameterExpansion':
			return part.prefix || part.index || part.operation ? DYNAMIC : variable(part.parameter, known, quoted)
		case 'ExtendedGlob':
			return part.text
		case 'CommandExpansion':
			return /^(?:\$\(\s*pwd\s*\)|`pwd`)$/.test(part.text) && known.cwd !== undefined ? known.cwd : DYNAMIC
		default:
			return DYNAMIC
	}
}

const variable = (name: string, { home, cwd }: Known, quoted: boolean): string =>
	name === 'IFS' && !quoted
		? SPLIT
		: name === 'HOME' && home !== undefined
			? home
			: name === 'PWD' && cwd !== undefined
				? cwd
				: DYNAMIC

/** `{a,b}` → both; a range or anything nested is unknown. */
function braces(text: string): string[] {
	const inner = text.slice(1, -1)
	if (!/^[^{}"'`$\\]*$/.test(inner) || !inner.includes(',')) return [DYNAMIC]
	return inner.split(',').map((one) => one)
}

/** Several words from one brace: `{rm,-rf}` is a command with an argument, and `a{b,c}` two words. */
export const hasDynamic = (text: string): boolean => text.includes(DYNAMIC)

/**
 * bash 5.2 ends `$(time { case x in a) …` at the pattern's parenthesis and reads the rest, quoted here-documents too, as
 * text around it (found by the comparison with what bash runs).
 */
export function misreadByBash(text: string): boolean {
	const rest = text.split('$(').slice(1).join('$(')
	const time = rest.search(/\btime\b/)
	return time >= 0 && /\bcase\b/.test(rest.slice(time))
}
