// A shell command read with a real parser: every simple command that it could run, and every doubt. Feeds permission/decide.
import type { Command, HereDoc, Redirection, SyntaxNode, Word } from 'unbash'
import type { ShellCommand, ShellRedirect, SimpleCommand } from './shell-command.ts'
import {
	type Decoded,
	DYNAMIC,
	decodeAssignment,
	decodeWord,
	folderOf,
	hidesParts,
	inputText,
	joinsLines,
	type Known,
	misreadByBash,
} from './shell-decode.ts'
import { innerOf } from './shell-inner.ts'
import { baseName, codeText, type Inner, values } from './shell-options.ts'
import { plainShellTexts } from './shell-plain.ts'
import { maxShellText, scan } from './shell-scan.ts'
import { fromVariables } from './shell-variables.ts'

export type { Doubt, ShellCommand, ShellRedirect, SimpleCommand } from './shell-command.ts'
export { DYNAMIC } from './shell-decode.ts'
export { maxShellText } from './shell-scan.ts'

const maxDepth = 8
const maxCommands = 20_000

type Parser = Pick<typeof import('unbash'), 'parse' | 'forEachChild'>

/** Loads the parser (once, by Node's own module cache) and reads the command. Never throws for any text. */
export async function readShell(text: string, home?: string, cwd?: string): Promise<ShellCommand> {
	if (text.length > maxShellText) return scan(text)
	const parser = await import('unbash')
	try {
		const read = new Reader(parser, { home, cwd }).read(text)
		// What was not read to its end (nested beyond the parser's limit, too) is seen by deny rules at least roughly.
		return read.broken === null ? read : { ...read, commands: [...read.commands, ...scan(text).commands] }
	} catch (error) {
		// Nested beyond the stack: read roughly, and ask.
		if (error instanceof RangeError) return scan(text, 'it is nested too deeply to be read')
		throw error
	}
}

/** A substitution inside text that is data now and may be evaluated later. */
const hiddenCommand = /\$\(|`|\$\{[^}]*@P\}/

class Reader {
	readonly #parser: Parser
	readonly #known: Known
	readonly #commands: SimpleCommand[] = []
	readonly #doubts = new Map<string, boolean>()
	readonly #decoded = new Map<Word, Decoded>()
	readonly #folders: string[] = []
	/** Texts that a shell reading its input, or an evaluation, could run. */
	readonly #texts: { text: string; input: boolean }[] = []
	#broken: string | null = null
	#evaluates: string | null = null
	#readsInput = false
	#readsCode = false
	#usesPwd = false
	#guesses = 0
	/** Above 0: this is what a plain sh evaluates. */
	#plain = 0
	/** Characters that commands inside commands may still have: each reading of a wrapper is a copy of all its words. */
	#left = 10 * maxShellText
	/** The text that is being read, the first here-document of the substitution that is looked at. */
	#reprinted: { text: string; here: number | null; inside: boolean } = { text: '', here: null, inside: false }

	constructor(parser: Parser, known: Known) {
		this.#parser = parser
		this.#known = known
	}

	read(text: string): ShellCommand {
		this.#script(text, 0)
		if (/^HOME\+?=|\s(?:export\s+)?HOME=/.test(text)) this.#doubt('it changes HOME', false)
		if (this.#usesPwd && (this.#folders.length > 0 || /\bPWD\+?=|\bpopd\b/.test(text)))
			this.#doubt('it uses PWD after a change of the folder', false)
		if (misreadByBash(text)) this.#doubt('bash reads a case after time in a substitution in a way of its own', true)
		// What is only data in this text is run when something evaluates it.
		const given = this.#texts.filter((one) => one.input)
		if (this.#readsInput) for (const one of given) this.#script(inputText(one.text), 1, true)
		if (this.#readsCode)
			for (const one of given) for (const inner of codeText(inputText(one.text))) this.#inner(inner, 'code', 1)
		const hidden = this.#texts.filter((one) => !one.input && hiddenCommand.test(one.text))
		if (this.#evaluates && hidden.length > 0) {
			this.#doubt(`${this.#evaluates}, and a command stands inside quoted text`, true)
			for (const one of hidden) this.#script(`: "${one.text.replace(/["\\]/g, '\\$&')}"`, 1, true)
		}
		return {
			text,
			commands: this.#commands,
			doubts: [...this.#doubts].map(([reason, grave]) => ({ reason, grave })),
			broken: this.#broken,
			rough: false,
			folders: this.#folders,
		}
	}

	/** A word is looked at by its command and once more as text. */
	#decode(word: Word): Decoded {
		let found = this.#decoded.get(word)
		if (!found) {
			if (/\$\{?PWD\b|^~\+|\bpwd\b/.test(word.text)) this.#usesPwd = true
			// bash looks for the end of such a string as if a substitution stood in it, and then expands none.
			if (/"[^"]*\$\$[({[]/.test(word.text)) this.#doubt('a $$ stands before a bracket in a quoted text', true)
			if (hidesParts(word)) this.#doubt('a word could not be taken apart', true)
			found = decodeWord(word, this.#known)
			this.#decoded.set(word, found)
		}
		return found
	}

	/** In a guess (text that may be no shell text) only the commands count. */
	#doubt(reason: string, grave: boolean): void {
		if (this.#guesses > 0) return
		this.#doubts.set(reason, grave || (this.#doubts.get(reason) ?? false))
	}

	/** @param guess the text may be no shell text at all: its errors mean nothing */
	#script(text: string, depth: number, guess = false): void {
		if (joinsLines(text)) this.#doubt('a line goes on in the middle of a mark', true)
		const tree = this.#parser.parse(text)
		const outer = this.#reprinted
		this.#reprinted = { text, here: null, inside: false }
		if (guess) this.#guesses++
		this.#visit(tree, depth)
		if (guess) this.#guesses--
		this.#reprinted = outer
	}

	/** Below a substitution bash runs its own printing of what it read, which loses a `;` behind a here-document. */
	#visit(node: SyntaxNode, depth: number): void {
		const outer = this.#reprinted
		if (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution')
			this.#reprinted = { ...outer, here: null, inside: true }
		this.#look(node, depth)
		this.#reprinted = outer
	}

	#look(node: SyntaxNode, depth: number): void {
		switch (node.type) {
			case 'Statement': {
				const { text, here, inside } = this.#reprinted
				if (
					inside &&
					here !== null &&
					node.pos > here &&
					/(?:^|[^;]);\s*$/.test(text.slice(Math.max(0, node.pos - 40), node.pos))
				)
					this.#doubt('bash joins two commands behind a here-document in a substitution', true)
				break
			}
			case 'Script':
				if (node.errors?.[0] && this.#guesses === 0) this.#broken ??= node.errors[0].message
				break
			case 'Command':
				this.#command(node, depth)
				break
			case 'Redirected':
				this.#add({ words: [], text: '', prefixed: false, depth, redirects: this.#redirects(node.redirects, depth) })
				break
			case 'For':
			case 'Select':
				this.#assigns(
					node.name.text,
					node.wordlist?.map((word) => this.#decode(word).words.join(' ')).join(' ') ?? DYNAMIC,
					depth,
				)
				break
			case 'Coproc':
				if (node.name) this.#assigns(node.name.text, DYNAMIC, depth)
				break
			case 'Word':
				// A substitution is written with one of these, whatever quoting it stands in.
				if (/[$`]/.test(node.text)) this.#keep(this.#decode(node).words.join(' '))
				this.#oddArray(/^\w+(?:\[[^\]]*\])?\+?=(\(.*)/s.exec(node.text)?.[1] ?? '', depth)
				break
			case 'ArithmeticExpansion':
			case 'ArithmeticCommand':
			case 'ArithmeticFor':
				// Numbers alone name nothing that could be evaluated.
				if (
					node.type === 'ArithmeticFor' ||
					/[A-Za-z_$`]/.test(node.type === 'ArithmeticCommand' ? node.body : node.text.slice(1))
				)
					this.#evaluate('it calculates (arithmetic runs commands in array indexes)')
				// Without its `$`, so that the text below is read as quoted text and not as arithmetic once more.
				if (node.type === 'ArithmeticExpansion') this.#keep(node.text.slice(1))
				if (node.type === 'ArithmeticCommand') this.#keep(node.body)
				break
			case 'ArithmeticBinary':
				if (/^(?:[-+*/%&|^]|<<|>>)?=$/.test(node.operator) && node.left.type === 'ArithmeticWord')
					this.#assigns(node.left.value.replace(/\[.*/s, ''), DYNAMIC, depth)
				break
			case 'ArithmeticUnary':
				if (/^(?:\+\+|--)$/.test(node.operator) && node.operand.type === 'ArithmeticWord')
					this.#assigns(node.operand.value, DYNAMIC, depth)
				break
			case 'TestUnary':
				if (node.operator === '-v' || node.operator === '-R') this.#evaluate('it tests a variable by name')
				break
			case 'TestBinary':
				if (/^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator))
					this.#evaluate('it compares as numbers (arithmetic runs commands in array indexes)')
				break
			case 'ParameterExpansion':
				if (node.operation?.type === 'Transform' && /P/.test(node.text.slice(node.text.lastIndexOf('@')))) {
					this.#evaluate('it expands a value as a prompt (@P)')
					this.#doubt('it expands a value as a prompt (@P), which can run commands', true)
				} else if (
					node.prefix === '!' ||
					node.operation?.type === 'Slice' ||
					(node.index && !/^[\d@*]+$/.test(node.index.text))
				)
					this.#evaluate('it evaluates a name or an index')
				break
			case 'Assignment':
				if (node.index) this.#evaluate('it evaluates an index')
				if (node.value.type === 'Word') this.#oddArray(node.value.text, depth)
				break
			case 'HereDoc':
				this.#reprinted.here ??= node.pos
				this.#keep(hereText(node), true)
				break
		}
		this.#parser.forEachChild(node, (child) => this.#visit(child, depth))
	}

	#evaluate(reason: string): void {
		if (this.#guesses === 0) this.#evaluates ??= reason
	}

	/**
	 * A variable that no assignment sets, but a loop, a number or a stream: like an assignment it can change what later words
	 * mean (PATH …). Names as loops have them (i, file) mean nothing to any program.
	 */
	#assigns(name: string, value: string, depth: number): void {
		if (/^[a-z][a-z0-9]*$/.test(name) && !/^(?:path|cdpath|fpath|prompt)$/.test(name)) return
		if (name === 'HOME' || name === 'PWD') this.#doubt(`it changes ${name}`, false)
		this.#add({ words: [`${name}=${value}`], text: `${name}=`, prefixed: false, depth, redirects: [] })
	}

	/** `a=($(b))c`: the parser takes an array with more behind it for plain text, bash runs what stands in it. */
	#oddArray(text: string, depth: number): void {
		if (!text.startsWith('(')) return
		this.#doubt('more text stands behind an array', true)
		this.#script(text, depth + 1, true)
	}

	#keep(text: string, input = false): void {
		if (input || hiddenCommand.test(text)) this.#texts.push({ text, input })
	}

	#redirects(nodes: readonly Redirection[], depth: number): ShellRedirect[] {
		const found: ShellRedirect[] = []
		for (const node of nodes) {
			if (node.type === 'HereDoc' || !node.target) continue
			if (node.descriptor?.type === 'FileDescriptorVariable') this.#assigns(node.descriptor.name, DYNAMIC, depth)
			const { words, glob } = this.#decode(node.target)
			const target = words.join(' ')
			// bash ends the redirection at the `-`: what follows is a word, at the start even the command.
			if (/&$/.test(node.operator) && /^-./s.test(target)) this.#doubt('a closed stream has a word behind it', true)
			if (node.type === 'HereString') this.#keep(target, true)
			else found.push({ op: node.operator, target: glob ? DYNAMIC : target })
		}
		return found
	}

	#command(node: Command, depth: number): void {
		const words: string[] = []
		const raw: string[] = []
		let glob = false
		let end = -1
		const take = (word: Word) => {
			const decoded = this.#decode(word)
			if (words.length === 0) glob = decoded.glob
			const [first, ...rest] = decoded.words
			// The parser gives `a<(b)c` as three words, bash makes one of them.
			if (word.pos === end && words.length > 0 && first !== undefined) {
				words.push(`${words.pop()}${first}`, ...rest)
				raw.push(`${raw.pop()}${word.text}`)
			} else {
				words.push(...decoded.words)
				raw.push(word.text)
			}
			end = word.end
		}
		const assigned = node.prefix.filter((one) => one.type === 'Assignment')
		if (node.name) take(node.name)
		for (const one of node.args) {
			if (one.type === 'Word') take(one)
			else {
				words.push(decodeAssignment(one, this.#known))
				raw.push(one.text)
			}
		}
		const redirects = this.#redirects(node.redirects, depth)
		if (!node.name) {
			// A bare assignment can change what later words mean (PATH, LD_PRELOAD …): it counts as a command of its own.
			for (const one of assigned)
				this.#add({
					words: [decodeAssignment(one, this.#known)],
					text: one.text,
					prefixed: false,
					depth,
					redirects: [],
				})
			if (redirects.length > 0) this.#add({ words: [], text: '', prefixed: false, depth, redirects })
			return
		}
		if (glob) this.#doubt(`the name of a command is a pattern (${node.name.text})`, true)
		this.#add({ words, text: raw.join(' '), prefixed: assigned.length > 0, depth, redirects })
		for (const inner of fromVariables(assigned.map((one) => decodeAssignment(one, this.#known))))
			this.#inner(inner, 'a variable', depth)
	}

	#add(command: SimpleCommand): void {
		if (this.#commands.length > maxCommands) {
			this.#doubt('it holds too many commands to be read', true)
			return
		}
		this.#commands.push(command)
		const { words, depth } = command
		const [first] = words
		if (first === undefined) return
		if (first.includes(DYNAMIC) && !/^[A-Za-z_]\w*(?:\[.*\])?\+?=/s.test(first))
			this.#doubt('the name of a command is known only at the run', false)
		const name = baseName(first)
		if (/^(?:cd|pushd)$/.test(name))
			this.#folders.push(
				folderOf(words.slice(1).find((word) => !/^-[LPe@-]*$/.test(word) || word === '-') ?? this.#known.home),
			)
		// git -C, make -C, env -C: its words are read from there.
		if (/^(?:git|make|env|tar|ninja)$/.test(name))
			for (const folder of values(words.slice(1), '-C', '--chdir', '--directory')) this.#folders.push(folderOf(folder))
		if (/^(?:let|unset|read|wait)$/.test(name)) this.#evaluate(`${name} evaluates names and indexes`)
		if (/^(?:test|\[|printf)$/.test(name) && words.includes('-v')) this.#evaluate('it tests or sets a variable by name')
		if (
			/^(?:declare|typeset|local|export|readonly)$/.test(name) &&
			words.some((word) => /^-[a-zA-Z]*[aAin]/.test(word) || /^\w+(?:\[|\+?=\()/.test(word))
		)
			this.#evaluate(`${name} evaluates names and indexes`)
		// Plain text handed on by a pipe may be a shell's input.
		if (/^(?:echo|printf|print)$/.test(name))
			for (const word of words.slice(1)) this.#texts.push({ text: word, input: true })
		if (name === 'echo' && words.length > 2) this.#texts.push({ text: words.slice(1).join(' '), input: true })
		for (const inner of innerOf(words)) this.#inner(inner, name, depth)
	}

	#inner(inner: Inner, name: string, depth: number): void {
		if ('argv' in inner) for (const word of inner.argv) this.#left -= word.length + 1
		if ('script' in inner) this.#left -= inner.script.length
		if (this.#left < 0) this.#broken ??= 'it holds more commands inside commands than are read'
		else if ('doubt' in inner) this.#doubt(inner.doubt, true)
		else if ('stdin' in inner && inner.code) this.#readsCode = true
		else if ('stdin' in inner) {
			if (this.#guesses === 0) this.#readsInput = true
			this.#doubt(inner.reason, false)
		} else if (depth >= maxDepth) this.#doubt('it is nested too deeply to be read', true)
		else if ('argv' in inner) {
			const words = inner.argv
			if (/[*?]|\[./.test(words[0] ?? '') && words[0] !== '[[')
				this.#doubt(`the name of a command is a pattern (${words[0]})`, true)
			if (words.length > 0)
				this.#add({ words, text: words.join(' '), prefixed: false, depth: depth + 1, redirects: [] })
		} else {
			if (inner.script.includes(DYNAMIC)) this.#doubt(`${name} is given text that is known only at the run`, false)
			// An unknown part becomes an expansion again: the parser must see a word there.
			const text = inner.script.replaceAll(DYNAMIC, '$__unknown')
			if (inner.plain) this.#plain++
			this.#script(text, depth + 1, inner.sure !== true)
			if (this.#plain > 0 && !inner.plain) for (const one of plainShellTexts(text)) this.#script(one, depth + 1, true)
			if (inner.plain) this.#plain--
		}
	}
}

const hereText = (node: HereDoc): string => node.body.text
