// Git's ignore rules, nested as git nests them: the nearest file wins, in a file the last rule wins.
import { compileParts, type GlobTest, inName, literal, type Part } from '../glob-parts.ts'

/** One ignore file: the folder it rules, relative to where the walk's paths start ('' or 'a/b/'), and its compiled rules. */
export interface IgnoreFile {
	base: string
	rules: Rule[]
}

interface Rule {
	negated: boolean
	folderOnly: boolean
	/** Matches the last name only; else the path below `base`. */
	byName: boolean
	test(text: string): boolean
}

const escapeChar = (char: string): string => char.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

const posixClasses: Record<string, string> = {
	alnum: 'a-zA-Z0-9',
	alpha: 'a-zA-Z',
	blank: ' \\t',
	cntrl: '\\x00-\\x1f\\x7f',
	digit: '0-9',
	graph: '\\x21-\\x7e',
	lower: 'a-z',
	print: '\\x20-\\x7e',
	punct: '!-\\/:-@\\[-`{-~',
	space: ' \\t-\\r',
	upper: 'A-Z',
	xdigit: '0-9a-fA-F',
}

/** A bracket expression from `at` ('['): its source and the index after it, or null when it never closes. */
const bracket = (glob: string, at: number): { source: string; next: number } | null => {
	let index = at + 1
	const negated = glob[index] === '!' || glob[index] === '^'
	if (negated) index++
	let inside = ''
	for (let first = true; index < glob.length; first = false) {
		const char = glob[index]!
		if (char === ']' && !first) return { source: negated ? `[^/${inside}]` : `(?!/)[${inside}]`, next: index + 1 }
		const named = /^\[:(\w+):\]/.exec(glob.slice(index, index + 12))
		if (named) {
			const set = posixClasses[named[1]!]
			if (set === undefined) return null
			inside += set
			index += named[0].length
			continue
		}
		if (char === '\\') {
			if (index + 1 >= glob.length) return null
			inside += escapeChar(glob[index + 1]!)
			index += 2
			continue
		}
		// A dash stays a dash only where it makes a range.
		inside += char === '-' && !first && glob[index + 1] !== ']' ? '-' : escapeChar(char)
		index++
	}
	return null
}

const any: Part = { one: '.' }

const compileGlob = (glob: string): GlobTest | null => {
	const parts: Part[] = []
	for (let at = 0; at < glob.length; ) {
		const char = glob[at]!
		if (char === '*') {
			let end = at
			while (glob[end] === '*') end++
			const whole = (at === 0 || glob[at - 1] === '/') && (end === glob.length || glob[end] === '/')
			if (end - at >= 2 && whole) {
				if (end === glob.length) {
					parts.push(...(at === 0 ? [] : [any]), { many: [any] })
					at = end
				} else {
					parts.push({ either: [[{ many: [any] }, literal('/')], []] })
					at = end + 1
				}
			} else {
				parts.push({ many: [inName] })
				at = end
			}
		} else if (char === '?') {
			parts.push(inName)
			at++
		} else if (char === '[') {
			const found = bracket(glob, at)
			if (!found) return null
			parts.push({ one: found.source })
			at = found.next
		} else if (char === '\\') {
			// A pattern that ends in a lone backslash matches nothing.
			if (at + 1 >= glob.length) return null
			parts.push(literal(glob[at + 1]!))
			at += 2
		} else {
			parts.push(literal(char))
			at++
		}
	}
	// Null: an impossible range like [z-a]; git matches nothing with it.
	return compileParts(parts, 's')
}

const compile = (line: string): Rule | null => {
	let glob = line.replace(/(?<!\\)((?:\\\\)*) +$/, '$1')
	if (glob === '' || glob.startsWith('#')) return null
	const negated = glob.startsWith('!')
	if (negated) glob = glob.slice(1)
	const folderOnly = glob.endsWith('/')
	if (folderOnly) glob = glob.slice(0, -1)
	if (glob === '') return null
	const byName = !glob.includes('/')
	if (glob.startsWith('/')) glob = glob.slice(1)
	if (!/[*?[\\]/.test(glob)) return { negated, folderOnly, byName, test: (text) => text === glob }
	// The most frequent kind, without a regular expression: *.ext
	if (byName && /^\*[^*?[\\]+$/.test(glob)) {
		const end = glob.slice(1)
		return { negated, folderOnly, byName, test: (text) => text.endsWith(end) }
	}
	const expression = compileGlob(glob)
	return expression && { negated, folderOnly, byName, test: (text) => expression.test(text) }
}

/** Git compares bytes: "?" is one of the two of an "Ä". Each byte becomes a character. */
const asBytes = (text: string): string =>
	/[^\x00-\x7f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text

/** The rules of an ignore file's text; lines that cannot match are dropped, as git does. */
export const parseIgnore = (text: string, base: string): IgnoreFile => ({
	base: asBytes(base),
	rules: asBytes(text.replace(/^\ufeff/, ''))
		.split('\n')
		.map((line) => compile(line.replace(/\r$/, '')))
		.filter((rule) => rule !== null),
})

/** Whether a path is ignored by the stack (outermost file first). Its parents must not be: git never looks into an ignored folder. */
export const isIgnored = (stack: readonly IgnoreFile[], path: string, name: string, folder: boolean): boolean => {
	const [bytePath, byteName] = [asBytes(path), asBytes(name)]
	for (let file = stack.length - 1; file >= 0; file--) {
		const { base, rules } = stack[file]!
		let local: string | undefined
		for (let index = rules.length - 1; index >= 0; index--) {
			const rule = rules[index]!
			if (rule.folderOnly && !folder) continue
			if (rule.byName) {
				if (rule.test(byteName)) return !rule.negated
				continue
			}
			local ??= bytePath.slice(base.length)
			if (rule.test(local)) return !rule.negated
		}
	}
	return false
}
