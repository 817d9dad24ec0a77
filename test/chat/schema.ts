// The published JSON schema as a check for every line that a test sees.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { z } from 'zod'

const schema = z.fromJSONSchema(JSON.parse(readFileSync('docs/schemas/json-output.schema.json', 'utf8')))

export type Line = Record<string, any>

/** Every line parsed and valid; throws with the first that is not. */
export function validLines(stdout: string): Line[] {
	expect(stdout.endsWith('\n'), 'the last line has its end').to.equal(true)
	return stdout
		.trimEnd()
		.split('\n')
		.map((line) => valid(JSON.parse(line) as Line))
}

export function valid(value: Line): Line {
	const result = schema.safeParse(value)
	expect(result.success, `${JSON.stringify(value)}\n${result.error?.message}`).to.equal(true)
	return value
}

export const isValid = (value: unknown): boolean => schema.safeParse(value).success
