// The model's words for a call made exact: which tool it means and whether its arguments are right. Used by the gate.
import { messageOf } from '../errors.ts'
import type { Tool } from '../ports.ts'
import { JsonInput } from './json-input.ts'

const bare = (name: string): string =>
	name
		.trim()
		.toLowerCase()
		.replace(/^(?:functions|default_api|tools?)[.:/]+/, '')
		.replaceAll(/[-_\s]/g, '')

/** The tool that a model meant: small models add name spaces, spaces or other cases. Null unless exactly one fits. */
export const resolveTool = (tools: readonly Tool[], name: string): Tool | null => {
	const exact = tools.find((tool) => tool.name === name)
	if (exact) return exact
	const matches = tools.filter((tool) => bare(tool.name) === bare(name))
	return matches.length === 1 ? matches[0]! : null
}

/**
 * Arguments through the tool's schema. Lossless slips are mended (a number, a boolean or a list sent as a string, null
 * for "absent"); anything else is an error text for the model.
 */
export const parseInput = async (
	tool: Tool,
	input: Record<string, unknown>,
): Promise<{ value: unknown } | { error: string }> => {
	let type = tool.input
	try {
		if ((type as unknown) instanceof JsonInput) type = await (type as unknown as JsonInput).type()
	} catch (error) {
		return { error: `${tool.name} failed by a fault of its own: ${messageOf(error)}. Nothing was done.` }
	}
	const first = type.safeParse(input)
	if (first.success) return { value: first.data }
	const mended = { ...input }
	for (const issue of first.error.issues) {
		const [key] = issue.path
		if (issue.path.length !== 1 || typeof key !== 'string') continue
		const value = mended[key]
		if (value === null) delete mended[key]
		else if (typeof value === 'string' && /^\s*(?:-?\d{1,15}|true|false|\[[\s\S]*\])\s*$/.test(value))
			try {
				mended[key] = JSON.parse(value) as unknown
			} catch {
				// not JSON after all: the second parse says what is wrong
			}
	}
	const second = type.safeParse(mended)
	if (second.success) return { value: second.data }
	const problems = second.error.issues.slice(0, 5).map((issue) => {
		const at = issue.path.map(String).join('.')
		return at ? `${at}: ${issue.message}` : issue.message
	})
	return { error: `The input of ${tool.name} is not right: ${problems.join('; ')}. Nothing was done.` }
}
