// Small strict readers for what models write as arguments: JSON with its end found, Python literals. Nothing is repaired or run.

/** The end of the JSON object or array that begins at `start`, or -1 when it is not closed. Linear; knows strings. */
export function jsonEnd(text: string, start: number): number {
	let depth = 0
	let quoted = false
	for (let i = start; i < text.length; i++) {
		const c = text.charCodeAt(i)
		if (quoted) {
			if (c === 92) i++
			else if (c === 34) quoted = false
		} else if (c === 34) quoted = true
		else if (c === 123 || c === 91) depth++
		else if (c === 125 || c === 93) {
			if (--depth === 0) return i + 1
		}
	}
	return -1
}

/** The JSON value at `start`, when it is an object or array and valid. */
export function jsonAt(text: string, start: number): { value: unknown; end: number } | null {
	const c = text[start]
	if (c !== '{' && c !== '[') return null
	const end = jsonEnd(text, start)
	if (end < 0) return null
	try {
		return { value: JSON.parse(text.slice(start, end)), end }
	} catch {
		return null
	}
}

/** Reads `f(a='x', b=[1, True])` forms: names, keyword arguments, literals only. Throws on all else. */
export class Literals {
	at: number
	private depth = 0
	private readonly text: string
	constructor(text: string, at: number) {
		this.text = text
		this.at = at
	}

	space(): void {
		while (this.at < this.text.length && /\s/.test(this.text[this.at]!)) this.at++
	}

	is(char: string): boolean {
		this.space()
		if (this.text[this.at] !== char) return false
		this.at++
		return true
	}

	need(char: string): void {
		if (!this.is(char)) throw new SyntaxError(`no ${char}`)
	}

	word(): string {
		this.space()
		const match = /[A-Za-z_][\w.-]*/y
		match.lastIndex = this.at
		const found = match.exec(this.text)
		if (!found) throw new SyntaxError('no name')
		this.at += found[0].length
		return found[0]
	}

	call(): { name: string; input: Record<string, unknown> } {
		const name = this.word()
		const input: Record<string, unknown> = {}
		this.need('(')
		while (!this.is(')')) {
			const key = this.word()
			this.need('=')
			Object.defineProperty(input, key, { value: this.value(), enumerable: true, writable: true, configurable: true })
			if (!this.is(',')) {
				this.need(')')
				break
			}
		}
		return { name, input }
	}

	value(): unknown {
		if (++this.depth > 100) throw new SyntaxError('too deep')
		try {
			this.space()
			const c = this.text[this.at]
			if (c === "'" || c === '"') return this.string(c)
			if (c === '[' || c === '(') return this.list(c === '[' ? ']' : ')')
			if (c === '{') return this.dict()
			const number = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y
			number.lastIndex = this.at
			const found = number.exec(this.text)
			if (found) {
				this.at += found[0].length
				return Number(found[0])
			}
			switch (this.word()) {
				case 'True':
				case 'true':
					return true
				case 'False':
				case 'false':
					return false
				case 'None':
				case 'null':
					return null
				default:
					throw new SyntaxError('no literal')
			}
		} finally {
			this.depth--
		}
	}

	private list(close: string): unknown[] {
		this.at++
		const items: unknown[] = []
		while (!this.is(close)) {
			items.push(this.value())
			if (!this.is(',')) {
				this.need(close)
				break
			}
		}
		return items
	}

	private dict(): Record<string, unknown> {
		this.at++
		const entries: [string, unknown][] = []
		while (!this.is('}')) {
			this.space()
			const quote = this.text[this.at]
			if (quote !== "'" && quote !== '"') throw new SyntaxError('no key')
			const key = this.string(quote)
			this.need(':')
			entries.push([key, this.value()])
			if (!this.is(',')) {
				this.need('}')
				break
			}
		}
		return Object.fromEntries(entries)
	}

	private string(quote: string): string {
		const triple = this.text.startsWith(quote.repeat(3), this.at)
		const close = triple ? quote.repeat(3) : quote
		const parts: string[] = []
		for (let i = this.at + close.length; i < this.text.length; i++) {
			const c = this.text[i]!
			if (this.text.startsWith(close, i)) {
				this.at = i + close.length
				return parts.join('')
			}
			if (c !== '\\') {
				if (c === '\n' && !triple) break
				parts.push(c)
				continue
			}
			const escaped = this.text[++i]
			const plain: Record<string, string> = {
				n: '\n',
				t: '\t',
				r: '\r',
				b: '\b',
				f: '\f',
				'0': '\0',
				'\\': '\\',
				"'": "'",
				'"': '"',
				'\n': '',
			}
			const hex = escaped === 'x' ? 2 : escaped === 'u' ? 4 : 0
			if (hex) {
				const digits = this.text.slice(i + 1, i + 1 + hex)
				if (!/^[0-9a-fA-F]+$/.test(digits) || digits.length !== hex) throw new SyntaxError('bad escape')
				parts.push(String.fromCharCode(Number.parseInt(digits, 16)))
				i += hex
			} else if (escaped !== undefined) parts.push(plain[escaped] ?? `\\${escaped}`)
		}
		throw new SyntaxError('open string')
	}
}
