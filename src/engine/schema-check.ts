// A final text held against the JSON schema that the user asked for (`--json-schema`). Loaded with zod only when one was given.
import { UserError } from './errors.ts'
import type { Json } from './types.ts'

/** A check for the turn. Throws UserError for a schema that cannot be used. Accepts one JSON value, bare or in one code fence. */
export async function schemaCheck(schema: Json): Promise<(text: string) => { value: Json } | { error: string }> {
	const { z } = await import('zod')
	let type: ReturnType<typeof z.fromJSONSchema>
	try {
		if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) throw new Error('it must be an object')
		type = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
	} catch (error) {
		throw new UserError(`The JSON schema cannot be used: ${error instanceof Error ? error.message : String(error)}`)
	}
	return (text) => {
		const bare = /^\s*```(?:json)?\s*\n([\s\S]*?)\n```\s*$/.exec(text)?.[1] ?? text
		let value: Json
		try {
			value = JSON.parse(bare) as Json
		} catch {
			return { error: 'it is not one JSON value' }
		}
		const result = type.safeParse(value)
		if (result.success) return { value }
		const problems = result.error.issues
			.slice(0, 5)
			.map((issue) => `${issue.path.map(String).join('.') || 'value'}: ${issue.message}`)
		return { error: problems.join('; ') }
	}
}
