// Tools as a model sees them: the same tools give the same bytes, whatever the session.
import { z } from 'zod'
import type { Tool } from '../ports.ts'
import type { Json, ToolSpec } from '../types.ts'

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

/** JSON schema (draft 7) of each tool's input. */
export const toolSpecs = (tools: readonly Tool[]): ToolSpec[] =>
	tools.map(({ name, description, input }) => ({
		name,
		description,
		schema: strip(z.toJSONSchema(input, { io: 'input', target: 'draft-7' }) as unknown as Json),
	}))
