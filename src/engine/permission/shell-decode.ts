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
	// Braces that the parser does not see as such: `{a},b}`.
	const bare = parts ? parts.map((part) => (part.type === 'Literal' ? part.text : '')).join('') : word.text
	if (mayBeBraces(bare.replace(/\\./gs, ''))) texts = [DYNAMIC]
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
		case 'Glob':
		case 'ExtendedGlob':
			// The parser keeps what stands between brackets as one text, expansions and all.
			return /[$`{]/.test(part.text) ? DYNAMIC : part.type === 'Glob' ? unmarked(part.value) : part.text
		case 'Literal':
		case 'SingleQuoted':
			return unmarked(part.value)
		case 'AnsiCQuoted':
			// What bash makes of these the parser does not.
			return /\\(?:x\{|u[dD]|U|\n)/.test(part.text) ? DYNAMIC : unmarked(part.value)
		case 'DoubleQuoted':
		case 'LocaleString':
			return part.parts.map((child) => decodePart(child, known, true)).join('')
		case 'SimpleExpansion':
			return variable(part.text.slice(1), known, quoted)
		case 'ParameterExpansion':
			return part.prefix || part.index || part.operation ? DYNAMIC : variable(part.parameter, known, quoted)
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

const mayBeBraces = (text: string): boolean => {
	const comma = text.indexOf(',', text.indexOf('{') + 1)
	return text.includes('{') && comma >= 0 && text.indexOf('}', comma) >= 0
}

/** `{a,b}` → both; a range, a pattern, a home or anything nested is unknown. */
function braces(text: string): string[] {
	const inner = text.slice(1, -1)
	if (!/^[^{}"'`$\\~*?[]*$/.test(inner) || !inner.includes(',')) return [DYNAMIC]
	return inner.split(',')
}

/** Several words from one brace: `{rm,-rf}` is a command with an argument, and `a{b,c}` two words. */
export const hasDynamic = (text: string): boolean => text.includes(DYNAMIC)

/** An expansion stands in a word that the parser gives as plain text. */
export const hidesParts = (word: Word): boolean =>
	/[$`]/.test(word.text) && !word.parts && /\$[\w({['"@*#?!$-]|`/.test(word.text.replace(/\\./gs, ''))

/**
 * bash 5.2 ends `$(time { case x in a) …` at the pattern's parenthesis and reads the rest, quoted here-documents too, as
 * text around it (found by the comparison with what bash runs).
 */
export function misreadByBash(text: string): boolean {
	const rest = text.split('$(').slice(1).join('$(')
	const time = rest.search(/\btime\b/)
	return time >= 0 && /\bcase\b/.test(rest.slice(time))
}

/**
 * bash takes `\` and a line's end out wherever they stand, also between the marks of one operator or expansion (`$` and `(`,
 * `<` and `(`, a stream's number and `>`) and behind `${`: the parser then sees other marks than bash does. At the end of all
 * bash drops a `\`, and a plain sh keeps it.
 */
export function joinsLines(text: string): boolean {
	if (/(?<!\\)(?:\\\\)*\\$/.test(text)) return true
	if (!text.includes('\\\n')) return false
	if (/\$\w*\\\n|[^\s\w./,@%+:-]\\\n[^\s\w.,@%+:]|\w\\\n[<>]/.test(text)) return true
	let open = 0
	for (const [mark] of text.matchAll(/\$\{|\}|\\\n/g)) {
		if (mark === '${') open++
		else if (mark === '}') open = Math.max(0, open - 1)
		else if (open > 0) return true
	}
	return false
}

/** Text that printf or a here-document would hand on, as shell text: escapes done, an editor's `!` and make's tab cut off. */
export const inputText = (text: string): string =>
	text
		.replace(/\\n/g, '\n')
		.replace(/\\t/g, '\t')
		.replaceAll(DYNAMIC, '$__unknown')
		.replace(/^[ \t]*!|^\t[@+-]*/gm, '')

/** A folder that `cd` names; a pattern means what lies on the disk. */
export const folderOf = (word = DYNAMIC): string => (/[*?[]/.test(word) ? DYNAMIC : word)
