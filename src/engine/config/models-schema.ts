// The shape of ~/.garuda/models.json, checked with zod; loaded only when the file exists.
import { z } from 'zod'
import { oneLine } from '../text.ts'
import type { Json } from '../types.ts'
import type { JsonFile } from './json-file.ts'
import { locate } from './json-place.ts'

const effort = z.enum(['low', 'medium', 'high', 'xhigh', 'max'])
const dollars = z.number().min(0).max(100_000)
const rates = { input: dollars, output: dollars, cacheRead: dollars, cacheWrite: dollars }
const price = z.strictObject({
	...rates,
	above: z.strictObject({ tokens: z.int().min(1), ...rates }).optional(),
	date: z.string().regex(/^\d{4}-\d\d-\d\d$/, { error: 'must look like 2026-01-31' }),
})
const model = z.strictObject({
	window: z.int().min(1024).max(100_000_000).optional(),
	maxOutput: z.int().min(1).max(10_000_000).optional(),
	thinking: z.enum(['always', 'adaptive', 'budget', 'none']).optional(),
	efforts: z.array(effort).optional(),
	defaultEffort: effort.optional(),
	price: price.nullable().optional(),
	textToolCalls: z.enum(['whole', 'lines', 'off']).optional(),
	images: z.boolean().optional(),
})
const name = z
	.string()
	.regex(/^[A-Za-z][\w.-]{0,63}$/, { error: 'a name begins with a letter and holds letters, digits, ".", "_" and "-"' })
const provider = z.strictObject({
	api: z.enum(['anthropic', 'openai']).optional(),
	baseURL: z.string().min(1).optional(),
	key: z
		.string()
		.regex(/^[A-Za-z_]\w{0,99}$/, { error: 'is the name of a variable, never the key itself' })
		.nullable()
		.optional(),
	headers: z.record(z.string().regex(/^[!#$%&'*+.^_`|~\w-]+$/), z.string().regex(/^[\x20-\x7e]*$/)).optional(),
	allowHttp: z.boolean().optional(),
	models: z.record(z.string().min(1).max(200), model).optional(),
})
const schema = z.strictObject({
	$schema: z.string().optional(),
	default: z.string().min(1).optional(),
	providers: z.record(name, provider).default({}),
})

export const modelsSchema = (): Json =>
	JSON.parse(JSON.stringify(z.toJSONSchema(schema, { target: 'draft-7', io: 'input' }))) as Json

export type ModelsFile = z.output<typeof schema>

/** The values of the file, or a UserError with file, line, column and field. */
export function checkModels(file: JsonFile, broken: (message: string) => never): ModelsFile {
	const result = schema.safeParse(file.value)
	if (result.success) return result.data
	const issue = result.error.issues[0]!
	const steps = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
	if (issue.code === 'unrecognized_keys') steps.push(issue.keys[0]!)
	const message = issue.code === 'unrecognized_keys' ? 'is not known' : issue.message
	return broken(
		`${file.file}:${locate(file.text, steps)}: ${steps.length > 0 ? `${oneLine(steps.join('.'), 100)}: ` : ''}${message}`,
	)
}
