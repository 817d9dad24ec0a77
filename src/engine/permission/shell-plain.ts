// A text that bash and a plain sh take apart in different ways, rewritten so that the parser, which knows bash, sees what sh does.

/**
 * The other readings of a text given to sh; none where it reads as bash does. The second one minds no quotes, for the stray quote
 * of a here-document leads the first astray. Both only add to what the text itself shows.
 */
export const plainShellTexts = (text: string): string[] =>
	[...new Set([byQuotes(text), everywhere(text)])].filter((one) => one !== text)

const everywhere = (text: string): string =>
	text
		.replaceAll("$'", () => "\\$'")
		.replaceAll('[[', '[')
		.replaceAll('&>', '& >')
		.replace(/(?<!\$)\(\(/g, '( (')

/** What follows is taken whole: an escape, a string in single quotes, a comment where no word goes on, the start of a substitution. */
const whole = /\\.?|'[^']*'?|(?<=^|[\s;&|()<>])#[^\n]*|\$\(\(?|\$\{/sy
/** In double quotes only these are more than text. */
const inQuotes = /\\.?|\$\(/sy

function byQuotes(text: string): string {
	let out = ''
	/** What is open: a double quote, or a bracket. */
	const open: ('"' | ')')[] = []
	for (let at = 0; at < text.length; ) {
		const quoted = open.at(-1) === '"'
		const rule = quoted ? inQuotes : whole
		rule.lastIndex = at
		const [taken] = rule.exec(text) ?? []
		if (taken !== undefined) {
			if (taken.startsWith('$(')) open.push(')')
			if (taken === '$((') open.push(')')
			out += taken
			at += taken.length
			continue
		}
		const char = text[at]!
		const two = text.slice(at, at + 2)
		if (char === '"') {
			if (quoted) open.pop()
			else open.push('"')
			out += char
		} else if (quoted) out += char
		else if (char === '(') {
			open.push(')')
			// A group in a group, never arithmetic.
			out += two === '((' ? '( ' : '('
		} else if (char === ')') {
			if (open.at(-1) === ')') open.pop()
			out += char
		} else if (two === '[[') {
			out += '['
			at++
		} else if (two === '&>') out += '& '
		// A dollar before a string, a brace in a word: text.
		else if (two === '$"' || two === "$'" || /^\{\S/.test(two)) out += `\\${char}`
		else out += char
		at++
	}
	return out
}
