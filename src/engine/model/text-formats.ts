// The forms in which models write a tool call as text, each with a strict reader; what is malformed is no call.
import type { ToolSpec } from '../types.ts'
import { coerce, fromText, readArguments, resolveName, typeOf } from './calls.ts'
import { jsonAt, Literals } from './literals.ts'

export interface TextCall {
	name: string
	input: Record<string, unknown>
}

/** Tokens with which models end a message, when a server lets them through. */
export const endTokens = /<\|(?:eom_id|eot_id|im_end|end|endoftext)\|>|<\/s>/g

/** Reads the call or calls at a marker; null (or a throw) when it is none. */
export type Reader = (
	text: string,
	at: number,
	tools: ToolSpec[],
) => { calls: TextCall[]; end: number; weak?: boolean } | null

const bars = '[｜‖|]{1,4}'
const dsml = `${bars}\\s?DSML\\s?${bars}`

/** What may begin a call. Order does not matter; the first place in the text wins. */
export const markers = new RegExp(
	[
		'<tool_call>',
		'</tool_call>',
		'<function=',
		'<function_calls>',
		'<\\|python_tag\\|>',
		'\\[TOOL_CALLS\\]',
		`<${dsml}`,
		'<invoke name=',
		'<start_function_call>',
		'```[a-z_]*[ \\t]*\\n(?=\\s*[{[])',
	].join('|'),
	'g',
)

/** Beginnings of markers, for a text that may go on in the next delta. */
export const openers = [
	'<tool_call>',
	'</tool_call>',
	'<function=',
	'<function_calls>',
	'<|python_tag|>',
	'[TOOL_CALLS]',
	'<｜DSML',
	'<‖DSML',
	'<|DSML',
	'<｜｜DSML',
	'<||DSML',
	'<invoke name=',
	'<start_function_call>',
]

/** The reader for what a marker begins. */
export const readerOf = (marker: string): Reader => {
	if (marker === '<tool_call>') return toolCallTag
	if (marker === '<function=') return functionTag
	if (marker === '<|python_tag|>') return pythonTag
	if (marker === '[TOOL_CALLS]') return mistral
	if (marker === '<start_function_call>') return gemma
	if (marker.startsWith('```')) return fence
	return invokes
}

const call = (name: string, input: unknown, tools: ToolSpec[]): TextCall | null => {
	const read = readArguments(input)
	if (read.badInput !== undefined) return null
	const resolved = resolveName(name, tools)
	return {
		name: resolved,
		input: coerce(
			read.input,
			tools.find((tool) => tool.name === resolved),
		),
	}
}

/** `{"name": f, "arguments"|"parameters": {…}}`, also one level down in `function`. */
const fromObject = (value: unknown, tools: ToolSpec[]): TextCall | null => {
	if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
	const outer = value as Record<string, unknown>
	const v =
		typeof outer.function === 'object' && outer.function !== null ? (outer.function as Record<string, unknown>) : outer
	const name = v.name ?? (typeof v.function === 'string' ? v.function : undefined)
	if (typeof name !== 'string' || !('arguments' in v || 'parameters' in v)) return null
	return call(name, 'arguments' in v ? v.arguments : v.parameters, tools)
}

const space = (text: string, at: number): number => {
	let i = at
	while (i < text.length && /\s/.test(text[i]!)) i++
	return i
}

const skip = (text: string, at: number, word: string): number => {
	const i = space(text, at)
	return text.startsWith(word, i) ? i + word.length : at
}

/** One JSON call or an array of them, then more after `;`, a comma or white space. */
const objects = (
	text: string,
	at: number,
	tools: ToolSpec[],
	separators = /[\s;,]/,
): { calls: TextCall[]; end: number } | null => {
	const calls: TextCall[] = []
	let end = at
	for (let i = space(text, at); ; ) {
		const json = jsonAt(text, i)
		if (!json) break
		const found = (Array.isArray(json.value) ? json.value : [json.value]).map((value) => fromObject(value, tools))
		if (!found.length || found.includes(null)) return null
		calls.push(...(found as TextCall[]))
		end = json.end
		i = end
		while (i < text.length && separators.test(text[i]!)) i++
	}
	return calls.length ? { calls, end } : null
}

const toolCallTag: Reader = (text, at, tools) => {
	const start = space(text, at + '<tool_call>'.length)
	if (text.startsWith('<function=', start)) return functionTag(text, start, tools)
	const got = objects(text, start, tools)
	if (!got) return null
	// Without its closing tag the end of the reply must close it: else it was cut.
	const closed = skip(text, got.end, '</tool_call>')
	return closed > got.end || text.slice(got.end).trim() === '' ? { calls: got.calls, end: closed } : null
}

const functionTag: Reader = (text, at, tools) => {
	const head = /<function=\s*["']?([\w.:-]+)["']?\s*(>|(?=[{(]))/y
	head.lastIndex = at
	const match = head.exec(text)
	if (!match) return null
	const name = resolveName(match[1]!, tools)
	const tool = tools.find((each) => each.name === name)
	let i = space(text, at + match[0].length)
	const json = jsonAt(text, i)
	if (json) {
		const found = call(name, json.value, tools)
		if (!found) return null
		return { calls: [found], end: skip(text, skip(text, skip(text, json.end, '>'), '</function>'), '</tool_call>') }
	}
	const input: Record<string, unknown> = {}
	const opener = /<parameter=\s*["']?([^>"'\n]+)["']?\s*>/y
	for (;;) {
		i = space(text, i)
		opener.lastIndex = i
		const parameter = opener.exec(text)
		if (!parameter) break
		const from = i + parameter[0].length
		const end = valueEnd(text, from)
		if (!end) return null
		const raw = text
			.slice(from, end.at)
			.replace(/^\r?\n/, '')
			.replace(/\r?\n$/, '')
		set(input, parameter[1]!.trim(), fromText(raw, typeOf(tool, parameter[1]!.trim())))
		i = end.next
	}
	if (!text.startsWith('</function>', i)) return null
	return { calls: [{ name, input }], end: skip(text, i + '</function>'.length, '</tool_call>') }
}

/** Where a raw value ends: at the first closing tag that the markup goes on after; a value may hold the tag's text itself. */
const valueEnd = (text: string, from: number): { at: number; next: number } | null => {
	const close = '</parameter>'
	for (let at = text.indexOf(close, from); at >= 0; at = text.indexOf(close, at + 1)) {
		const next = space(text, at + close.length)
		if (text.startsWith('<parameter=', next) || text.startsWith('</function>', next)) return { at, next }
	}
	return null
}

const pythonTag: Reader = (text, at, tools) => objects(text, at + '<|python_tag|>'.length, tools)

const mistral: Reader = (text, at, tools) => {
	let i = at + '[TOOL_CALLS]'.length
	const list = objects(text, i, tools)
	if (list) return list
	const calls: TextCall[] = []
	const named = /\s*([\w.:-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*(?=\{)/y
	for (;;) {
		named.lastIndex = i
		const match = named.exec(text)
		const json = match && jsonAt(text, i + match[0].length)
		const found = json ? call(match[1]!, json.value, tools) : null
		if (!json || !found) return null
		calls.push(found)
		i = skip(text, json.end, '[TOOL_CALLS]')
		if (i === json.end) return { calls, end: i }
	}
}

const invokes: Reader = (text, at, tools) => {
	const tag = (name: string, rest = '') => new RegExp(`\\s*<(?:${dsml})?\\s?${name}${rest}>`, 'y')
	const eat = (pattern: RegExp, from: number) => {
		pattern.lastIndex = from
		return pattern.exec(text)
	}
	const wrapper = eat(tag('(?:tool_calls|function_calls)'), at)
	let i = at + (wrapper?.[0].length ?? 0)
	const calls: TextCall[] = []
	for (;;) {
		const head = eat(tag('invoke', '\\s+name="([^"]+)"\\s*'), i)
		if (!head) break
		const name = resolveName(head[1]!, tools)
		const tool = tools.find((each) => each.name === name)
		const input: Record<string, unknown> = {}
		i += head[0].length
		for (;;) {
			const parameter = eat(tag('parameter', '\\s+name="([^"]+)"(?:\\s+string="(true|false)")?\\s*'), i)
			if (!parameter) break
			const from = i + parameter[0].length
			const close = new RegExp(`</(?:${dsml})?\\s?parameter>(?=\\s*</?(?:${dsml})?\\s?(?:parameter|invoke))`, 'g')
			close.lastIndex = from
			const end = close.exec(text)
			if (!end) return null
			const raw = text.slice(from, end.index)
			const key = parameter[1]!
			set(
				input,
				key,
				parameter[2] === 'false'
					? JSON.parse(raw)
					: parameter[2] === 'true'
						? raw
						: fromText(raw.replace(/^\r?\n/, '').replace(/\r?\n$/, ''), typeOf(tool, key)),
			)
			i = end.index + end[0].length
		}
		const close = eat(new RegExp(`\\s*</(?:${dsml})?\\s?invoke>`, 'y'), i)
		if (!close) return null
		i += close[0].length
		calls.push({ name, input })
	}
	if (!calls.length && wrapper) {
		const end = text.indexOf('</function_calls>', i)
		if (end < 0) return null
		return { calls: pythonic(text.slice(i, end), tools), end: end + '</function_calls>'.length }
	}
	const close = eat(new RegExp(`\\s*</(?:${dsml})?\\s?(?:tool_calls|function_calls)>`, 'y'), i)
	return { calls, end: i + (close?.[0].length ?? 0) }
}

/** Calls as Python would write them, one after another with commas or new lines; throws when there is anything else. */
const pythonic = (text: string, tools: ToolSpec[]): TextCall[] => {
	const read = new Literals(text, 0)
	const calls: TextCall[] = []
	const bracket = read.is('[')
	for (read.space(); read.at < text.length && text[read.at] !== ']'; read.space()) {
		const { name, input } = read.call()
		calls.push({ name: resolveName(name, tools), input })
		read.is(',')
	}
	if (bracket) read.need(']')
	read.space()
	if (read.at < text.length) throw new SyntaxError('more text')
	return calls
}

const gemma: Reader = (text, at, tools) => {
	const head = /<start_function_call>\s*call:\s*([\w.:-]+)\s*\{/y
	head.lastIndex = at
	const match = head.exec(text)
	if (!match) return null
	const name = resolveName(match[1]!, tools)
	const tool = tools.find((each) => each.name === name)
	const input: Record<string, unknown> = {}
	const item = /\s*([\w-]+)\s*:\s*(?:<escape>([\s\S]*?)<escape>|([^,{}<]*))\s*(,|(?=\}))/y
	let i = at + match[0].length
	for (;;) {
		item.lastIndex = i
		const pair = item.exec(text)
		if (!pair) break
		const key = pair[1]!
		set(input, key, pair[2] !== undefined ? fromText(pair[2], typeOf(tool, key)) : literal(pair[3]!.trim()))
		i += pair[0].length
	}
	const close = /\s*\}\s*<end_function_call>/y
	close.lastIndex = i
	const end = close.exec(text)
	return end ? { calls: [{ name, input }], end: i + end[0].length } : null
}

const literal = (text: string): unknown => {
	try {
		return JSON.parse(text)
	} catch {
		return text
	}
}

const fence: Reader = (text, at, tools) => {
	const open = text.indexOf('\n', at) + 1
	const got = objects(text, open, tools)
	if (!got) return null
	const end = space(text, got.end)
	return text.startsWith('```', end) ? { calls: got.calls, end: end + 3, weak: true } : null
}

/** Forms with no marker, only when they are all there is: bare JSON, or a Python list of calls. */
export const atHead = (text: string, tools: ToolSpec[]): { calls: TextCall[]; start: number; end: number } | null => {
	const bare = text.replace(endTokens, '').trim()
	const start = text.indexOf(bare.slice(0, 1))
	try {
		const got = bare.startsWith('{') || /^\[\s*\{/.test(bare) ? objects(bare, 0, tools) : null
		if (got && got.end === bare.length) return { calls: got.calls, start, end: text.length }
		if (/^\[\s*[A-Za-z_][\w.-]*\(/.test(bare)) return { calls: pythonic(bare, tools), start, end: text.length }
	} catch {}
	return null
}

const set = (input: Record<string, unknown>, key: string, value: unknown): void => {
	// A key of "__proto__" stays a plain key.
	Object.defineProperty(input, key, { value, enumerable: true, writable: true, configurable: true })
}
