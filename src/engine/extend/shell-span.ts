// A live span of a command file with the arguments of one run as data. Used by expand; refuses where data could become code.
import { UserError } from '../errors.ts'
import { innerOf, interpreters } from '../permission/shell-inner.ts'
import { baseName, type Inner, shells } from '../permission/shell-options.ts'
import { wrapperOf } from '../permission/shell-wrappers.ts'

/** The value of a placeholder's name (`ARGUMENTS`, `1` … `9`), or null: it stays as it is written. */
export type Take = (name: string) => string | null

const unsafeOutside = /^(?:<<(?!<)|\$?\(\(|\$\[|\[\[|\$['"]|`|\$\{|\$(?:_(?!\w)|BASH_\w))/
const unsafeInside = /^(?:\$[({[]|`|\$(?:_(?!\w)|BASH_\w))/

/** Stands for an argument, or for output that may hold one; as in the reading of commands for the rules. */
const HELD = '\0'

interface Word {
	/** After quote removal, arguments as `HELD`. */
	text: string
	held: boolean
	/** No expansion, pattern or brace: it is one word, and this one. */
	plain: boolean
}

interface Frame {
	/** `sub`: a substitution, part of a word of the frame below. */
	kind: 'top' | 'group' | 'sub'
	words: Word[]
	word: Word | null
	/** The next word is a redirection's. */
	target: boolean
	held: boolean
}

const frame = (kind: Frame['kind']): Frame => ({ kind, words: [], word: null, target: false, held: false })

/**
 * The span's text with the arguments in it: outside of quotes each is one quoted word, inside double quotes it is escaped, inside
 * single quotes nothing is a placeholder, as in a shell. What is not certain to be data of an ordinary command (see `danger`, a
 * substitution in double quotes, arithmetic, an index, a here-document, next to a `$`) is refused: UserError. Linear.
 */
export function inShell(command: string, placeholder: RegExp, take: Take): string {
	let quote = ''
	let out = ''
	let unsafe = ''
	let replaced = false
	/** Where the last `$` stands in `out` that is not escaped. */
	let dollar = -1
	const stack = [frame('top')]
	const top = () => stack.at(-1)!
	const word = (): Word => (top().word ??= { text: '', held: false, plain: true })
	const refuse = (what: string) => {
		unsafe ||= what
	}
	const endWord = () => {
		const { word: ended, target, words } = top()
		if (!ended) return
		if (ended.text === '[' || ended.text === '{') ended.plain = true
		if (!target) words.push(ended)
		top().held ||= ended.held
		top().target = false
		top().word = null
	}
	const endCommand = () => {
		endWord()
		refuse(danger(top().words))
		top().words = []
	}
	const close = () => {
		endCommand()
		if (stack.length === 1) return refuse('a ) too many')
		const { kind, held } = stack.pop()!
		top().held ||= held
		if (kind === 'group') top().words = [{ text: ')', held: false, plain: true }]
		else {
			const whole = word()
			whole.text += held ? HELD : '$'
			whole.held ||= held
			whole.plain = false
		}
	}

	for (let at = 0; at < command.length; ) {
		const rest = command.slice(at, at + 16)
		const char = rest[0]!
		if (quote === "'") {
			if (char === "'") quote = ''
			else word().text += char
			out += char
			at++
			continue
		}
		const outside = quote === ''
		refuse((outside ? unsafeOutside : unsafeInside).exec(rest)?.[0] ?? '')
		const before = out.at(-1) ?? ''
		if (char === '\\') {
			word().text += outside || /[$`"\\]/.test(rest[1] ?? '') ? (rest[1] ?? '') : rest.slice(0, 2)
			out += rest.slice(0, 2)
			at += 2
			continue
		}
		const found = placeholder.exec(rest)?.[1]
		const value = found === undefined ? null : take(found)
		if (found !== undefined && value !== null) {
			replaced = true
			// `$'…'` is another kind of quoting, and letters would go on the name.
			const open = dollar < 0 ? '' : out.slice(dollar, dollar + 300)
			if (open === '$') refuse('a $ in front of it')
			else if (!outside && /^\$[A-Za-z_]\w*$/.test(open)) refuse(`${open} in front of it`)
			// Only all of the arguments may be none.
			if (value !== '' || found !== 'ARGUMENTS' || !outside) {
				const whole = word()
				whole.text += HELD
				whole.held = true
				out += outside ? quoted(value) : value.replace(/[\\"$`]/g, '\\$&')
			}
			at += found.length + 1
			continue
		}
		let raw = char
		if (char === '"') {
			quote = outside ? '"' : ''
			word()
		} else if (!outside) {
			if (char === '$') word().plain = false
			word().text += char
		} else if (char === "'") {
			quote = "'"
			word()
		} else if (char === ' ' || char === '\t') endWord()
		else if (rest.startsWith('$(') || /^[<>]\($/.test(rest.slice(0, 2))) {
			raw = rest.slice(0, 2)
			word()
			stack.push(frame('sub'))
		} else if (char === '<' || char === '>' || (char === '&' && rest[1] === '>')) {
			raw = /^(?:<<<|&>>|&>|>>|>\||[<>]&|<>|.)/.exec(rest)![0]
			// The number of a stream is no word.
			if (/^(?:\d+|\{\w+\})$/.test(top().word?.text ?? '')) top().word = null
			endWord()
			top().target = true
		} else if (/[;&|\n]/.test(char)) endCommand()
		else if (char === '(') {
			if (/\w/.test(before) && top().word?.text.endsWith('=')) refuse('a list =( )')
			if (top().word || !top().words.every(({ text }) => transparent.has(text))) refuse(`${before}(`)
			stack.push(frame('group'))
		} else if (char === ')') close()
		else {
			// A line break in an argument would end the comment.
			if (char === '#' && !top().word) refuse('a comment #')
			if (char === '[' && /\w/.test(before)) refuse('an index [ ]')
			if (/[$*?[{]/.test(char)) word().plain = false
			word().text += char
		}
		if (char === '$') dollar = out.length
		out += raw
		at += raw.length
	}
	if (quote !== '') refuse('a quote that is not closed')
	if (stack.length > 1) refuse('a ( that is not closed')
	endCommand()
	if (replaced && unsafe !== '')
		throw new UserError(
			`An argument cannot be passed safely in !\`${command}\`: it holds ${unsafe.replaceAll(HELD, '$…')}.`,
			'Put what it does into a script that takes the argument, or leave the placeholder out of this span.',
		)
	return out
}

const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`

// ---------------------------------------------------------------- commands that make code of their words

/** A command follows these. */
const transparent = new Set(['!', '{', 'if', 'then', 'elif', 'else', 'while', 'until', 'do', 'time'])
const closing = new Set([')', '}', 'fi', 'done'])
/** What takes text, names or input in ways of its own: not in a span with an argument. */
const never =
	/^(?:eval|source|\.|trap|let|read|mapfile|readarray|getopts|alias|unalias|fc|bind|complete|compgen|compopt|coproc|case|select|function|history|enable|shopt)$/
/** Builtins that evaluate a word as a name with an index, or make a variable or an option of it. */
const naming =
	/^(?:for|unset|declare|typeset|local|export|readonly|wait|set|hash|jobs|shift|exit|return|break|continue|ulimit|umask|caller|fg|bg|disown|kill|suspend|logout|times|dirs|popd)$/
const unary = /^-[a-hknprstuwxzGLNOS]$/
const binary = /^(?:=|==|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/

/** Why an argument in these words, or anywhere in a span with such a command, might be run; '' when it is data. */
function danger(words: readonly Word[], depth = 0): string {
	let at = 0
	for (; at < words.length; at++) {
		const { text, held } = words[at]!
		if (/^[A-Za-z_]\w*(?:\[.*\])?\+?=/s.test(text)) {
			// What a variable holds may be evaluated later, and PATH or PAGER are commands.
			if (held) return 'an assignment'
		} else if (!transparent.has(text) && !(text === '-p' && words[at - 1]?.text === 'time')) break
	}
	const first = words[at]
	if (!first || closing.has(first.text)) return ''
	if (first.held || (!first.plain && !/^[^{*?[]*\/[^{*?[]*$/.test(first.text)))
		return 'a command whose name is known only at the run'
	const name = baseName(first.text)
	const args = words.slice(at + 1)
	const holds = args.some(({ held }) => held)
	if (never.test(name)) return name
	if (holds && (name === 'test' || name === '[')) return testing(name === '[' ? args.slice(0, -1) : args)
	if (holds && name === 'printf') {
		const format = args[args[0]!.text === '--' ? 1 : 0]
		return format && fixed(format) && !format.text.startsWith('-') ? '' : 'a printf without a fixed format'
	}
	if (holds && naming.test(name)) return `${name} with an argument`
	const code = holds || interpreters.test(name) ? coding(name, args) : ''
	if (code !== '') return code
	for (const inner of innerOf([first.text, ...args.map(({ text }) => text)])) {
		const found = started(inner, name, args, depth)
		if (found !== '') return found
	}
	return ''
}

const fixed = ({ held, plain }: Word): boolean => !held && plain

/** Which of its words are operators depends on their number; `-v` evaluates an index. */
function testing(args: readonly Word[]): string {
	const rest = args[0]?.text === '!' && fixed(args[0]) ? args.slice(1) : args
	const one = rest.every(({ plain, held, text }) => plain || (held && text === HELD))
	const known =
		rest.length === 1 ||
		(rest.length === 2 && fixed(rest[0]!) && unary.test(rest[0]!.text)) ||
		(rest.length === 3 && fixed(rest[1]!) && binary.test(rest[1]!.text))
	return one && known ? '' : 'a test in which an argument may be an operator'
}

/** Programs whose words, or input, are text of a language of their own that starts commands. */
function coding(name: string, args: readonly Word[]): string {
	const why = `code for ${name}`
	if (shells.has(name)) {
		let end = 0
		while (end < args.length && /^[-+]/.test(args[end]!.text))
			end += /^[-+].*[oO]$|^--(?:rc|init-)file$/.test(args[end]!.text) ? 2 : 1
		const own = args.slice(0, end + 1)
		return end >= args.length || !own.every(fixed) || own.some(({ text }) => /^[-+][^-]*[cCs]/.test(text)) ? why : ''
	}
	if (interpreters.test(name)) {
		let given = false
		for (let at = 0; at < args.length; at++) {
			const { text, held } = args[at]!
			if (held) return given && !text.startsWith('-') ? '' : why
			if (/^-[A-Za-z]*[cerEpnR]$|^--(?:eval|print|command|run)$|^eval$/.test(text)) {
				if (args[++at]?.held) return why
				given = true
			} else if (!text.startsWith('-')) return text === 'repl' ? why : ''
		}
		return given ? '' : why
	}
	if (/^[gmn]?awk$|^busybox$/.test(name)) {
		for (let at = 0; at < args.length; at++) {
			const { text } = args[at]!
			if (/^-[vF]$/.test(text)) at++
			else if (args[at]!.held) return why
			else if (!text.startsWith('-')) return ''
		}
	}
	if (/^g?sed$/.test(name)) {
		const own = args.some(({ text }) => /^(?:-[A-Za-z]*[ef]|--expression|--file)/.test(text))
		let script = !own
		for (let at = 0; at < args.length; at++) {
			const { text, held } = args[at]!
			if (held && (text.startsWith('-') || script)) return why
			if (/^-[A-Za-z]*[ef]$|^--(?:expression|file)$/.test(text) && args[++at]?.held) return why
			if (!text.startsWith('-')) script = false
		}
	}
	return ''
}

function started(inner: Inner, name: string, args: readonly Word[], depth: number): string {
	if ('doubt' in inner) return name
	if ('stdin' in inner) return `${name}, which runs its input`
	if ('script' in inner) return inner.script.includes(HELD) ? `text that ${name} runs` : ''
	if (depth > 8) return name
	const { argv } = inner
	const ahead = args.slice(0, args.length - argv.length)
	const own = args.slice(ahead.length)
	const same = own.every(({ text }, at) => text === argv[at])
	if (wrapperOf(name) && !ahead.every(fixed)) return `options of ${name}`
	const words = same ? own : argv.map((text) => ({ text, held: text.includes(HELD), plain: !/[$*?[{]/.test(text) }))
	return danger(words, depth + 1)
}
