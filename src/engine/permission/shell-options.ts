// Options and words of a command as its program reads them. Part of shell-inner and command-paths.
import { DYNAMIC } from './shell-decode.ts'

/** What a command may start besides itself. */
export type Inner =
	| { argv: string[] }
	/** Shell text; `sure` when it is run as such, else it may be anything. `plain`: what it evaluates is read by a plain sh too. */
	| { script: string; sure?: true; plain?: true }
	/** Shell text comes from standard input; with `code` a program in another language does. */
	| { stdin: true; reason: string; code?: true }
	| { doubt: string }

export interface Wrapper {
	/** Options that take the next word. */
	valued?: string
	/** Words between the options and the command. */
	skip?: number
	/** NAME=value words may stand before the command. */
	assigns?: boolean
}

export const shells = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'mksh', 'ash', 'fish', 'rbash', 'csh', 'tcsh'])
for (const name of ['yash', 'posh', 'lksh', 'oksh', 'rksh', 'pwsh', 'powershell', 'nu', 'xonsh', 'elvish', 'git-shell'])
	shells.add(name)

/** A shell by its name, whatever version stands behind it (bash5.2, ksh93, bash-static). */
export const isShell = (name: string): boolean => shells.has(name.replace(/-static$|(?<=[a-z])-?[\d.]+$/, ''))

const maxReadings = 20

/** The command after a wrapper's options; each option that is not known may take the next word, and both readings count. */
export function afterOptions(args: readonly string[], { valued = '', skip = 0, assigns = false }: Wrapper): string[][] {
	const takes = new Set(valued.split(' ').filter(Boolean))
	const readings: string[][] = []
	const behind = (start: number) => args.slice(start + skip + (skip > 0 && args[start + skip] === '--' ? 1 : 0))
	let at = 0
	let open = false
	for (; at < args.length; at++) {
		const word = args[at]!
		if (word === '--') {
			at++
			break
		}
		// env and sudo take anything with a `=` for a variable, env a `-` for -i.
		if (assigns && (word === '-' || (!word.startsWith('-') && word.includes('=')))) continue
		if (!word.startsWith('-') || word === '-') {
			if (!open) break
			// Nobody writes so many: then the command is one that is not known.
			if (readings.length === maxReadings) return [...readings, [DYNAMIC]]
			readings.push(behind(at))
			open = false
		} else if (takes.has(word)) {
			at++
			open = false
		} else open = !word.includes('=')
	}
	while (assigns && args[at]?.includes('=')) at++
	const last = behind(at)
	if (last.length > 0 || readings.length === 0) readings.push(last)
	return readings
}

export const literals = (text: string): Inner[] => {
	const found: Inner[] = []
	for (const match of text.matchAll(
		/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`([^`]*)`|(?:\bq[qxw]?\s*|%x)(?:[({[<]([^)}\]>]*)[)}\]>]|([/|!])([^/|!]*)\5)/gs,
	)) {
		const inner = match[1] ?? match[2] ?? match[3] ?? match[4] ?? match[6] ?? ''
		if (/[A-Za-z]/.test(inner) && found.length < 50) found.push({ script: inner.replace(/\\(["'\\])/g, '$1') })
	}
	// ['rm', '-rf', 'x']: the list as one command.
	if (found.length > 1) found.push({ argv: found.flatMap((one) => ('script' in one ? [one.script] : [])) })
	return found
}

/** What code in another language may start. */
export const codeText = (text: string): Inner[] =>
	/system|exec|spawn|run|`|qx|%x|open|Process|Command|passthru|cmd|call/i.test(text) ? literals(text) : []

export const scripts = (...texts: (string | undefined)[]): Inner[] =>
	texts.flatMap((text) => (text === undefined || text === '' ? [] : [{ script: text.replace(/^!/, '') }]))

/**
 * Values of an option, spelled `-x V`, `-xV` and `-abx V` (short only), `--long V`, `--long=V`, or a long one by its beginning.
 */
export function values(args: readonly string[], ...names: string[]): string[] {
	const found: string[] = []
	args.forEach((word, index) => {
		for (const name of names) {
			if (word === name || isShortened(word, name)) found.push(args[index + 1] ?? '')
			else if (word.startsWith('--')) {
				const end = word.indexOf('=')
				const given = word.slice(0, end)
				if (end > 0 && (given === name || isShortened(given, name))) found.push(word.slice(end + 1))
			} else if (name.length === 2 && word.startsWith('-')) {
				// Behind other letters, too: what follows the letter is its value, or else the next word.
				const at = /^-[A-Za-z0-9]*/.exec(word)![0].indexOf(name[1]!, 1)
				if (at > 0) found.push(word.slice(at + 1) || (args[index + 1] ?? ''))
			}
		}
	})
	return found
}

/** Programs take a long option by its beginning; one that means two options is an error of theirs. */
export const isShortened = (word: string, name: string): boolean =>
	word.length > 2 && word.startsWith('--') && word.length < name.length && name.startsWith(word)

/** The last part of a path, without .exe. */
export const baseName = (word: string): string => word.slice(word.lastIndexOf('/') + 1).replace(/\.exe$/i, '')

const envEscapes: Record<string, string> = { f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** The words of `env -S text` by env's own rules, which are no shell's: `(`, `;` and `|` are characters, `\_` is a blank. */
function envWords(text: string): string[] {
	const words: string[] = []
	let word: string | null = null
	let quote = ''
	const end = () => {
		if (word !== null) words.push(word)
		word = null
	}
	for (let at = 0; at < text.length; at++) {
		const one = text[at]!
		if (quote === "'") {
			if (one === "'") quote = ''
			else if (one === '\\' && /^[\\']/.test(text[at + 1] ?? '')) word += text[++at]!
			else word += one
		} else if (one === '\\') {
			const next = text[++at] ?? ''
			if (next === 'c') break
			if (next === '_' && quote === '') end()
			else word = (word ?? '') + (next === '_' ? ' ' : (envEscapes[next] ?? next))
		} else if (quote === '"') {
			if (one === '"') quote = ''
			else word += one
		} else if (one === '"' || one === "'") {
			quote = one
			word ??= ''
		} else if (/[ \t\n\v\f\r]/.test(one)) end()
		else if (one === '#' && word === null) break
		else word = (word ?? '') + one
	}
	end()
	return words
}

/** Each text that env splits: as env reads it, with the words after it, and as a shell would (a script's first line may be either). */
export const splitStrings = (args: readonly string[]): Inner[] => {
	let count = 0
	return args.flatMap((word, at): Inner[] => {
		const joined = /^(?:-[a-zA-Z]*?S|--split-string=)([\s\S]*)$/.exec(word)
		const apart =
			word === '-S' || isShortened(word, '--split-string') || word === '--split-string' || joined?.[1] === ''
		const text = apart ? args[at + 1] : joined?.[1]
		if (text === undefined || text === '' || ++count > maxReadings + 1) return []
		if (count > maxReadings) return [{ argv: [DYNAMIC] }]
		return [{ script: text }, { argv: ['env', ...envWords(text), ...args.slice(at + (apart ? 2 : 1))] }]
	})
}
