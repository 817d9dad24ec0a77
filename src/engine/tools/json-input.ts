// A tool's input as a literal JSON schema: the very bytes that a model is sent. zod is made of it at the first call, not at the start.
import type { ZodType } from 'zod'
import type { Json } from '../types.ts'

/** Stands in `Tool.input` in place of a zod type; `specs.ts` takes the schema, `input.ts` the type. */
export class JsonInput<I = unknown> {
	readonly schema: Json
	private made: Promise<ZodType<I>> | null = null
	constructor(schema: Json) {
		this.schema = schema
	}

	/** Made once. Rejects where zod cannot be loaded. */
	type(): Promise<ZodType<I>> {
		this.made ??= import('zod').then(
			({ z }) => z.fromJSONSchema(this.schema as Parameters<typeof z.fromJSONSchema>[0]) as unknown as ZodType<I>,
		)
		return this.made
	}
}

/**
 * The input of a tool by its JSON schema (draft 7), of type I. The order of its keys is part of the bytes that providers
 * cache: a change makes every session's cache new.
 */
export const jsonInput = <I>(schema: Json): ZodType<I> => new JsonInput<I>(schema) as unknown as ZodType<I>
