// Tools as a model sees them: the same tools give the same bytes, whatever the session.
import type { Tool } from '../ports.ts'
import type { Json, ToolSpec } from '../types.ts'
import { JsonInput } from './json-input.ts'

/** zod's own noise: the dialect, and the bounds that it gives every integer. */
const strip = (value: Json): Json => {
	if (Array.isArray(value)) return value.map(strip)
	if (value === null || typeof value !== 'object') return value
	return Object.fromEntries(
		Object.entries(value)
			.filter(
				([key, inner]) =>
					key !== '$schema' &&
					!((key === 'maximum' || key === 'minimum') && Math.abs(inner as number) === Number.MAX_SAFE_INTEGER),
			)
			.map(([key, inner]) => [key, strip(inner)]),
	)
}

/** JSON schema (draft 7) of a tool's input: its own literal, or made from its zod type. */
const schemaOf = ({ input }: Tool): Json =>
	(input as unknown) instanceof JsonInput
		? (input as unknown as JsonInput).schema
		: strip(input.toJSONSchema({ io: 'input', target: 'draft-7' }) as unknown as Json)

export const toolSpecs = (tools: readonly Tool[]): ToolSpec[] =>
	tools.map((tool) => ({ name: tool.name, description: tool.description, schema: schemaOf(tool) }))
