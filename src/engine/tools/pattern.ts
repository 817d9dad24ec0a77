// A grep pattern made ready: checked, translated where other dialects differ, with the bytes that every match must hold.
import { ToolError } from '../errors.ts'

export interface PatternInput {
	pattern: string
	literal?: boolean
	ignoreCase?: boolean
}

export interface Matcher {
	/** Per line, global. */
	line: RegExp
	/** The same over a whole text, ^ and $ at line ends; null when a line's match could be lost that way. */
	whole: RegExp | null
	/** Bytes that are in every match, or null. */
	bytes: Buffer | null
}

const posix: Record<string, string> = {
	alnum: 'a-zA-Z0-9',
	alpha: 'a-zA-Z',
	blank: ' \\t',
	cntrl: '\\x00-\\x1f\\x7f',
	digit: '0-9',
	graph: '\\x21-\\x7e',
	lower: 'a-z',
	print: '\\x20-\\x7e',
	punct: '!-\\/:-@\\[-`{-~',
	space: '\\s',
	upper: 'A-Z',
	word: '\\w',
	xdigit: '0-9a-fA-F',
}

/** Constructs that JavaScript would read as something else without a word. */
const foreign: [RegExp, string][] = [
	[/(?<!\\)(?:\\\\)*\\[AZzGQEhHRKX]/, 'the escapes \\A \\z \\Q \\E \\h \\R \\K'],
	[/(?<!\\)(?:\\\\)*\\[<>]/, 'the word marks \\< and \\> (write \\b)'],
	[/\(\?[#>|]|\(\?\(/, 'atomic groups, comments and conditions'],
]

const translate = (pattern: string): { source: string; flags: string } => {
	let flags = ''
	let source = pattern
	const inline = /^\(\?([imsx]+)\)/.exec(source)
	if (inline) {
		if (inline[1]!.includes('x')) throw regexError('the flag (?x) is not supported')
		flags = inline[1]!.includes('i') ? 'i' : ''
		source = source.slice(inline[0].length)
	}
	source = source
		.replaceAll('(?P<', '(?<')
		.replace(/\(\?P=(\w+)\)/g, (_, name: string) => `\\k<${name}>`)
		.replace(/\[:(\^?)(\w+):\]/g, (all, not: string, name: string) => (not || !posix[name] ? all : posix[name]))
	for (const [construct, words] of foreign) if (construct.test(source)) throw regexError(`${words} are not supported`)
	return { source, flags }
}

const regexError = (what: string): ToolError =>
	new ToolError(
		`regex error: ${what}. Nothing was searched. The syntax is that of JavaScript; to search for the text as it is, set literal: true.`,
	)

const escapeAll = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/** Throws ToolError for an invalid pattern: an error is never "no matches". */
export const compilePattern = ({ pattern, literal, ignoreCase }: PatternInput): Matcher => {
	if (pattern === '') throw new ToolError('The pattern is empty. To list files, use glob.')
	if (pattern.length > 5000) throw new ToolError('The pattern is too long (the limit is 5,000 characters).')
	if (literal && /[\r\n]/.test(pattern))
		throw new ToolError('A pattern matches within one line; this one holds a line break. Search for one of its lines.')
	const { source, flags } = literal ? { source: escapeAll(pattern), flags: '' } : translate(pattern)
	const letters = `g${ignoreCase || flags.includes('i') ? 'i' : ''}${/\\[pP]\{|\\u\{/.test(source) && !literal ? 'u' : ''}`
	try {
		const line = new RegExp(source, letters)
		// A negative look-around may see over the line's end and hide a match that the line alone has.
		const whole = /\(\?<?!/.test(source) && !literal ? null : new RegExp(source, `${letters}m`)
		const bytes = letters.includes('i') ? null : literal ? pattern : requiredText(source)
		return { line, whole, bytes: bytes ? Buffer.from(bytes) : null }
	} catch (error) {
		throw regexError((error as Error).message.replace(/^Invalid regular expression: /, ''))
	}
}

/** The longest plain text that every match of an expression holds, or ''. Gives up early rather than being wrong. */
export const requiredText = (source: string): string => {
	let depth = 0
	let best = ''
	let run = ''
	const end = (): void => {
		if (run.length > best.length) best = run
		run = ''
	}
	for (let at = 0; at < source.length; at++) {
		const char = source[at]!
		if (char === '|' && depth === 0) return ''
		if (char === '(') {
			end()
			depth++
		} else if (char === ')') {
			end()
			depth--
		} else if (char === '[') {
			end()
			// Over the class; a "]" right after the start is not its end in other dialects, but is in JavaScript.
			for (at++; at < source.length && source[at] !== ']'; at++) if (source[at] === '\\') at++
		} else if (char === '*' || char === '?') {
			// The character before may be absent.
			run = run.slice(0, run.codePointAt(run.length - 2)! > 0xffff ? -2 : -1)
			end()
		} else if (char === '{') {
			run = run.slice(0, run.codePointAt(run.length - 2)! > 0xffff ? -2 : -1)
			end()
			while (at < source.length && source[at] !== '}') at++
		} else if (char === '+' || char === '.' || char === '^' || char === '$') {
			end()
		} else if (char === '\\') {
			const next = source[++at]
			if (next !== undefined && /[^\w\s]/.test(next)) {
				if (depth === 0) run += next
			} else {
				end()
				// Escapes with letters or digits mean something else; what belongs to them is not text.
				if (
					next === 'x' ||
					next === 'u' ||
					next === 'c' ||
					next === 'k' ||
					next === 'p' ||
					next === 'P' ||
					/\d/.test(next ?? '')
				)
					return best
			}
		} else if (depth === 0) run += char
	}
	end()
	return best
}
