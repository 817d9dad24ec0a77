// One edit of a file that changes nothing of what it does: a comment near its top, or a line in a document. Used by script.ts.

/** A file read by read_file: its path and its first lines. */
export interface Seen {
	path: string
	lines: readonly string[]
}

export interface SafeEdit {
	old: string
	new: string
	/** A word for the sentence that announces it. */
	what: 'comment' | 'line'
}

const said = "Garuda's tour was here; /undo takes this line back."

const hash = 'py|rb|sh|bash|zsh|fish|pl|r|jl|ex|exs|nix|tf|toml|yml|yaml|cmake|mk|ps1|gd|coffee|dockerfile|makefile'
const slashes =
	'js|mjs|cjs|jsx|ts|mts|cts|tsx|go|rs|c|h|cc|cpp|cxx|hpp|cs|java|kt|kts|scala|swift|dart|zig|groovy|gradle|proto|scss|less|php|v|sol'
const styles: [RegExp, (text: string) => string][] = [
	[new RegExp(`^(?:${slashes})$`), (text) => `// ${text}`],
	[new RegExp(`^(?:${hash})$`), (text) => `# ${text}`],
	[/^(?:sql|lua|hs|elm|adb)$/, (text) => `-- ${text}`],
	[/^(?:css)$/, (text) => `/* ${text} */`],
	[/^(?:html|htm|xml|svg|vue|svelte)$/, (text) => `<!-- ${text} -->`],
	[/^(?:el|clj|cljs|lisp|scm)$/, (text) => `;; ${text}`],
	[/^(?:tex|erl)$/, (text) => `% ${text}`],
]

/** The kind of a file for comments: its extension, or its name where that says it. */
const kindOf = (path: string): string => {
	const name = (path.split('/').at(-1) ?? '').toLowerCase()
	if (/^(?:dockerfile|makefile)$/.test(name)) return name
	const dot = name.lastIndexOf('.')
	return dot <= 0 ? '' : name.slice(dot + 1)
}

const documents = /^(?:md|markdown|txt|rst|adoc)$/

/** How well a file suits the edit, lower is better; null when none is safe there (JSON, data, what machines write). */
export function suits(path: string): number | null {
	const name = (path.split('/').at(-1) ?? '').toLowerCase()
	const kind = kindOf(path)
	const depth = path.split('/').length - 1
	if (/(?:\.min\.|\.lock$|-lock\.|generated|vendor\/|\.snap$|\.d\.ts$)/.test(path.toLowerCase())) return null
	if (/^(?:agents|claude|gemini)\.md$/.test(name)) return null
	if (/^readme\.(?:md|markdown|txt)$/.test(name)) return depth * 10
	if (documents.test(kind) && kind !== 'rst' && kind !== 'adoc') return 30 + depth
	// Settings that a tool reads are the last choice, even with a comment.
	if (/^(?:ya?ml|toml|tf|nix|xml|svg|gradle|kts)$/.test(kind)) return 60 + depth
	return styles.some(([ends]) => ends.test(kind)) ? 20 + depth : null
}

/** What must stay first in a file: an interpreter, an encoding, a declaration, a directive of the build. */
const mustLead =
	/^(?:#!|<\?|<!doctype|@charset|#.*coding[:=]|#\s*(?:syntax|escape|check)\s*=|%YAML|["']use \w+["']|\/\/\s*@ts-|\/\/go:build|\/\/\s*\+build|\s*$)/i

/** The edit for these lines, or null where no place is surely safe: then the tour writes a file of its own. */
export function safeEdit({ path, lines }: Seen): SafeEdit | null {
	if (lines.length === 0 || lines.slice(0, 6).some((line) => line.length > 400)) return null
	if (lines[0]!.trim() === '---' || lines[0]!.trim() === '+++') return null
	const kind = kindOf(path)
	if (documents.test(kind)) return inDocument(lines, /^(?:md|markdown)$/.test(kind))
	const style = styles.find(([ends]) => ends.test(kind))?.[1]
	if (!style || suits(path) === null) return null
	// In PHP everything before its opening tag is output; elsewhere an unclosed comment would swallow the line.
	if (kind === 'php' && !/^<\?php\s*$/.test(lines[0]!)) return null
	if (/^(?:vue|svelte)$/.test(kind) && mustLead.test(lines[0]!)) return null
	let at = 0
	while (at < lines.length && at < 4 && mustLead.test(lines[at]!)) at++
	if (at >= lines.length) return null
	// The XML declaration or the doctype may go on over lines.
	if (at > 0 && /^<[?!]/.test(lines[at - 1]!) && !lines[at - 1]!.trimEnd().endsWith('>') && kind !== 'php') return null
	return insert(lines, at, [style(said)], 'comment')
}

const inDocument = (lines: readonly string[], markdown: boolean): SafeEdit | null => {
	const first = lines.findIndex((line) => line.trim() !== '')
	if (first === -1 || first > 5) return null
	// A heading keeps its underline, and the line stands as a paragraph of its own.
	const underlined = /^(?:=+|-+)\s*$/.test(lines[first + 1] ?? '')
	const heading = underlined || (markdown && /^#{1,6}\s/.test(lines[first]!))
	const words = markdown ? `*${said}*` : said
	return heading
		? insert(lines, first + (underlined ? 2 : 1), ['', words], 'line')
		: insert(lines, first, [words, ''], 'line')
}

/** Put before line `at`; `old` begins at the first line, so that it stands in the file once. */
const insert = (lines: readonly string[], at: number, added: string[], what: SafeEdit['what']): SafeEdit | null => {
	const head = lines.slice(0, at)
	const anchor = lines.slice(at, Math.max(at + 1, 3))
	const old = [...head, ...anchor].join('\n')
	if (old.trim() === '') return null
	return { old, new: [...head, ...added, ...anchor].join('\n'), what }
}
