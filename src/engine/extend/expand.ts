// A command file's text with the arguments of one run: pieces in order, in one pass. What they mean is the engine's to do.
import { inShell } from './shell-span.ts'

export type Piece =
	/** Of the file; mentions in it are looked for. */
	| { type: 'text'; text: string }
	/** Of the file, as it stands: fenced, code, a comment. */
	| { type: 'code'; text: string }
	/** The person's words, exactly. */
	| { type: 'argument'; text: string }
	/** A live span: bash text with the arguments quoted. */
	| { type: 'shell'; command: string }

export interface Expanded {
	pieces: Piece[]
	/** Arguments that no placeholder took, where some were taken one by one. */
	unused: string[]
}

// A number goes on where a letter, a digit or a decimal follows: $10, $1M and $1.20 are prices.
const name = '\\$(ARGUMENTS(?![A-Za-z0-9_])|[1-9](?![A-Za-z0-9_]|[.,][0-9]))'
const shellName = new RegExp(`^${name}`)

/**
 * What stands first wins, and nothing is read twice: a comment, a code span of two or more backquotes, an escaped span, a live
 * one, an awk or jq program in quotes, a placeholder.
 */
const token = new RegExp(
	[
		'(?<comment><!--[\\s\\S]*?-->)',
		'(?<code>(?<!`)(?<ticks>``+)(?!`)[\\s\\S]*?(?<!`)\\k<ticks>(?!`))',
		'\\\\(?<kept>!`[^`\\n]+`)',
		'(?<=^|[\\s([{<>"\'|,;:=*_-])!`(?<shell>[^`\\n]+)`(?!`)',
		"(?<program>'\\{[^'\\n]*\\}')",
		`(?<slashes>\\\\*)${name}`,
	].join('|'),
	'gmu',
)

/** What placeholders stand for in one run. */
interface Values {
	all: string
	each: string[]
	/** Of `each`, those that were taken; `all`: $ARGUMENTS stood there. */
	taken: Set<number | 'all'>
}

/**
 * `$ARGUMENTS` is all of the arguments as typed, `$1` to `$9` one of them; where there is no such one the text stays. A text
 * without any gets the arguments at its end. UserError: a span in which an argument cannot be quoted.
 */
export function expandCommand(body: string, args: string): Expanded {
	const values: Values = { all: args, each: splitArguments(args), taken: new Set() }
	const pieces: Piece[] = []
	for (const part of fences(body)) {
		if (part.fenced) pieces.push({ type: 'code', text: part.text })
		else expandProse(part.text, values, pieces)
	}
	const { taken, each } = values
	if (taken.size === 0 && args !== '') {
		pieces.push({ type: 'text', text: '\n\nArguments: ' }, { type: 'argument', text: args })
		return { pieces, unused: [] }
	}
	return { pieces, unused: taken.has('all') ? [] : each.filter((_, i) => !taken.has(i)) }
}

function expandProse(text: string, values: Values, pieces: Piece[]): void {
	let at = 0
	const put = (piece: Piece): void => {
		if (piece.type === 'shell' || piece.text !== '') pieces.push(piece)
	}
	for (const hit of text.matchAll(token)) {
		put({ type: 'text', text: text.slice(at, hit.index) })
		at = hit.index + hit[0].length
		const { comment, code, kept, shell, program, slashes } = hit.groups!
		if (shell !== undefined && shell.trim() !== '') {
			const command = inShell(shell.trim(), shellName, (which) => take(which, values, false))
			put({ type: 'shell', command })
		} else if (slashes !== undefined) {
			const value = take(hit[0].slice(slashes.length + 1), values, slashes.length % 2 === 1)
			if (value === null) put({ type: 'text', text: escaped(hit[0], slashes.length) })
			else {
				put({ type: 'text', text: slashes.slice(0, slashes.length / 2) })
				put({ type: 'argument', text: value })
			}
		} else put({ type: 'code', text: comment ?? code ?? kept ?? program ?? hit[0] })
	}
	put({ type: 'text', text: text.slice(at) })
}

/** A placeholder that stays: an odd backslash was its escape, pairs are one each. */
const escaped = (written: string, slashes: number): string =>
	slashes % 2 === 1 ? written.slice(Math.ceil(slashes / 2)) : written

/** Null: it stays as it is written. */
function take(which: string, values: Values, kept: boolean): string | null {
	if (kept) return null
	if (which === 'ARGUMENTS') {
		values.taken.add('all')
		return values.all
	}
	const index = Number(which) - 1
	const value = values.each[index]
	if (value === undefined) return null
	values.taken.add(index)
	return value
}

/** Words as typed: a word in quotes is one, without them; a quote inside a word, or one never closed, is a character. */
export function splitArguments(args: string): string[] {
	const word = /"((?:[^"\\]|\\["\\])*)"(?=\s|$)|'([^']*)'(?=\s|$)|\S+/g
	return [...args.matchAll(word)].map((hit) => hit[1]?.replace(/\\(["\\])/g, '$1') ?? hit[2] ?? hit[0])
}

/** Fenced blocks apart from the rest; one that is never closed goes to the end. */
function* fences(body: string): Iterable<{ fenced: boolean; text: string }> {
	let fence = ''
	let text = ''
	for (const line of body.split(/(?<=\n)/)) {
		const mark = /^[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})(.*)/.exec(line)
		const run = mark?.[1] ?? ''
		if (fence === '' && mark && !(run.startsWith('`') && mark[2]!.includes('`'))) {
			if (text !== '') yield { fenced: false, text }
			fence = run
			text = line
		} else if (fence !== '' && run[0] === fence[0] && run.length >= fence.length && mark![2]!.trim() === '') {
			yield { fenced: true, text: text + line }
			fence = ''
			text = ''
		} else text += line
	}
	if (text !== '') yield { fenced: fence !== '', text }
}
