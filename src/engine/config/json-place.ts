// Places in JSON text: where it is broken, where a value stands. Only for messages about files that people write.

/** "line:column" of an offset. */
export const lineColumn = (text: string, offset: number): string => {
	const before = text.slice(0, offset).split('\n')
	return `${before.length}:${before.at(-1)!.length + 1}`
}

const space = /[ \t\n\r]*/y
const stringToken = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const plainToken = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y

/** The offset of the first thing that JSON does not allow; the text's length when it ends too early. */
export function brokenAt(text: string): number {
	let at = 0
	const skip = (token: RegExp): boolean => {
		token.lastIndex = at
		if (!token.test(text)) return false
		at = token.lastIndex
		return true
	}
	const open: string[] = []
	let wants: 'value' | 'first' | 'key' | 'after' = 'value'
	for (;;) {
		skip(space)
		const char = text[at]
		if (char === undefined) return at
		const list = open.at(-1) === '['
		if (wants === 'after') {
			if (open.length === 0) return at
			if (char === (list ? ']' : '}')) open.pop()
			else if (char === ',') wants = list ? 'value' : 'key'
			else return at
			at++
		} else if (wants === 'first' && char === (list ? ']' : '}')) {
			open.pop()
			at++
			wants = 'after'
		} else if (wants === 'key' || (wants === 'first' && !list)) {
			if (!skip(stringToken)) return at
			skip(space)
			if (text[at] !== ':') return at
			at++
			wants = 'value'
		} else if (char === '{' || char === '[') {
			open.push(char)
			at++
			wants = 'first'
		} else {
			if (!skip(stringToken) && !skip(plainToken)) return at
			wants = 'after'
		}
	}
}

/** A name that stands twice in one object of valid JSON text, with its offset: a reader takes the last, a person the first. Linear. */
export function twiceAt(text: string): { offset: number; name: string } | null {
	const open: (Set<string> | null)[] = []
	let key = false
	for (let at = 0; at < text.length; at++) {
		const char = text[at]!
		if (char === '{' || char === '[') {
			open.push(char === '{' ? new Set() : null)
			key = char === '{'
		} else if (char === '}' || char === ']') {
			open.pop()
			key = false
		} else if (char === ',') key = open.at(-1) !== null
		else if (char === '"') {
			stringToken.lastIndex = at
			stringToken.test(text)
			const end = stringToken.lastIndex
			const names = open.at(-1)
			if (key && names) {
				const name = JSON.parse(text.slice(at, end)) as string
				if (names.has(name)) return { offset: at, name }
				names.add(name)
			}
			key = false
			at = end - 1
		}
	}
	return null
}

/** The offset of the first bracket that is open within `max` others, or null. Linear, in any text. */
export function deepAt(text: string, max: number): number | null {
	let depth = 0
	let quoted = false
	for (let at = 0; at < text.length; at++) {
		const char = text[at]
		if (char === '"') quoted = !quoted
		else if (quoted) at += char === '\\' ? 1 : 0
		else if (char === '[' || char === '{') depth++
		else if (char === ']' || char === '}') depth--
		if (depth > max) return at
	}
	return null
}

/** "line:column" of the value at `path` in valid JSON text; of the nearest parent when it is not there. */
export function locate(text: string, path: readonly (string | number)[]): string {
	let at = 0
	const blank = () => {
		while (/\s/.test(text[at] ?? 'x')) at++
	}
	const string = (): string => {
		const from = at++
		while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
		return JSON.parse(text.slice(from, ++at)) as string
	}
	const skip = (): void => {
		blank()
		if (text[at] === '"') return void string()
		if (text[at] !== '{' && text[at] !== '[') {
			while (at < text.length && !/[,\]}\s]/.test(text[at]!)) at++
			return
		}
		let depth = 0
		do {
			if (text[at] === '"') {
				string()
				continue
			}
			if (/[{[]/.test(text[at]!)) depth++
			if (/[}\]]/.test(text[at]!)) depth--
			at++
		} while (depth > 0 && at < text.length)
	}
	blank()
	let best = at
	for (const step of path) {
		const array = text[at] === '['
		if (!array && text[at] !== '{') break
		at++
		let found = false
		for (let index = 0; at < text.length; index++) {
			blank()
			if (/[}\]]/.test(text[at] ?? '}')) break
			const name = array ? index : string()
			if (!array) {
				blank()
				at++ // the colon
				blank()
			}
			if (name === step) {
				best = at
				found = true
				break
			}
			skip()
			blank()
			if (text[at] === ',') at++
		}
		if (!found) break
	}
	return lineColumn(text, best)
}
