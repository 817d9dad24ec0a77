// What models write as a call's name, id and arguments, made into something the gate can judge.
import type { Json, ToolSpec } from '../types.ts'

export interface Arguments {
	input: Record<string, unknown>
	badInput?: string
}

/** The arguments of a call: an object, JSON text, JSON text in JSON text, or nothing. Never repaired: what is no object is `badInput`. */
export function readArguments(value: unknown): Arguments {
	if (value === null || value === undefined) return { input: {} }
	if (typeof value === 'object' && !Array.isArray(value)) return { input: value as Record<string, unknown> }
	const text = typeof value === 'string' ? value : JSON.stringify(value)
	if (text.trim() === '') return { input: {} }
	let parsed: unknown
	try {
		parsed = JSON.parse(text)
		if (typeof parsed === 'string') parsed = parsed.trim() === '' ? {} : JSON.parse(parsed)
	} catch {
		return { input: {}, badInput: text }
	}
	if (parsed === null) return { input: {} }
	if (typeof parsed !== 'object' || Array.isArray(parsed)) return { input: {}, badInput: text }
	return { input: parsed as Record<string, unknown> }
}

/** The declared type of a top-level property of a tool's schema. */
export const typeOf = (tool: ToolSpec | undefined, key: string): string | undefined => {
	const schema = tool?.schema as { properties?: Record<string, { type?: Json; anyOf?: Json }> } | undefined
	const own = schema?.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined
	const type = own?.type
	if (typeof type === 'string') return type
	if (Array.isArray(type)) return type.find((name): name is string => typeof name === 'string' && name !== 'null')
	const first = Array.isArray(own?.anyOf) ? own.anyOf.find((x: any) => x?.type && x.type !== 'null') : undefined
	return (first as { type?: string } | undefined)?.type
}

/** Strings that say exactly a value of the schema's type become it ("10" → 10); all else stays as it came. */
export function coerce(input: Record<string, unknown>, tool: ToolSpec | undefined): Record<string, unknown> {
	if (!tool) return input
	let changed: Record<string, unknown> | undefined
	for (const [key, value] of Object.entries(input)) {
		if (typeof value !== 'string') continue
		const better = fromText(value, typeOf(tool, key))
		if (better !== value) {
			changed ??= { ...input }
			changed[key] = better
		}
	}
	return changed ?? input
}

/** A text as the type says, or the text itself when it does not say such a value without loss. */
export function fromText(text: string, type: string | undefined): unknown {
	if (type === 'integer' || type === 'number') {
		const trimmed = text.trim()
		const value = Number(trimmed)
		return trimmed !== '' && String(value) === trimmed && (type === 'number' || Number.isSafeInteger(value))
			? value
			: text
	}
	if (type === 'boolean') return /^\s*true\s*$/i.test(text) ? true : /^\s*false\s*$/i.test(text) ? false : text
	if (type === 'array' || type === 'object') {
		try {
			const value: unknown = JSON.parse(text)
			if (
				type === 'array' ? Array.isArray(value) : typeof value === 'object' && value !== null && !Array.isArray(value)
			)
				return value
		} catch {}
	}
	return text
}

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

/** The tool a name means: itself, or the only tool that is the same but for case, separators, spaces and a known prefix; else the name as it came. */
export function resolveName(name: string, tools: ToolSpec[]): string {
	if (tools.some((tool) => tool.name === name)) return name
	const trimmed = name.trim().replace(/^(functions?|tools?|default_api|default)\s*[.:/]\s*/i, '')
	if (tools.some((tool) => tool.name === trimmed)) return trimmed
	const wanted = plain(trimmed)
	const found = wanted ? tools.filter((tool) => plain(tool.name) === wanted) : []
	return found.length === 1 ? found[0]!.name : name
}

/** An id that the conversation does not have yet: the one given, or it with a number; none given makes one. Adds it to `used`. */
export function freshId(id: string | undefined, used: Set<string>): string {
	const base = id || `call_${used.size + 1}`
	let name = base
	for (let n = 2; used.has(name); n++) name = `${base}_${n}`
	used.add(name)
	return name
}
