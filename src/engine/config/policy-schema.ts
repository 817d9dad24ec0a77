// The shape of a team policy file, checked with zod; loaded only when a policy exists. Strict: a name that is not known is an error.
import { z } from 'zod'
import { oneLine } from '../text.ts'
import type { Json } from '../types.ts'
import { isUnexpanded } from './deny-read.ts'
import type { JsonFile } from './json-file.ts'
import { locate } from './json-place.ts'

const words = (what: string) => z.array(z.string().min(1).max(4096)).max(1000).describe(what)
const most = (what: string, low: number, high: number) => z.int().min(low).max(high).describe(`At most: ${what}`)

/** A path that both the file tools and the sandbox's masks can hold to. */
const place = z
	.string()
	.min(1)
	.max(4096)
	.refine((path) => !/\*\*(?!$)/.test(path.replace(/\/+$/, '')) && !/[[\]{}]/.test(path), {
		error:
			'cannot be enforced by the sandbox: "**" may only end a path, and [] and {} are not known here; name the folder, or write a deny rule such as read(**/*.pem)',
	})
	.refine((path) => !/(?:^|\/)\.\.(?:\/|$)/.test(path), { error: 'may not hold ".."; write the path itself' })
	.refine((path) => !/[\0\r\n]/.test(path), { error: 'holds a control character' })
	.refine((path) => !isUnexpanded(path), {
		error: 'begins with a variable or another user’s home, which nothing expands here; write the path itself',
	})

const placeAtMost = z
	.string()
	.min(1)
	.max(4096)
	.refine((path) => path === '~' || path.startsWith('~/') || path.startsWith('/'), {
		error: 'must be absolute or begin with ~/',
	})
	.refine((path) => !/(?:^|\/)\.\.(?:\/|$)/.test(path), { error: 'may not hold ".."; write the path itself' })
	.refine((path) => !/[*?[\]{}]/.test(path), { error: 'takes no pattern; name the folder' })

const variable = z
	.string()
	.regex(/^[A-Za-z_*][\w*]{0,199}$/, { error: 'must be the name of a variable; * stands for any characters' })

const host = z.string().regex(/^(?:(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9])?(?::\d{1,5})?)$/i, {
	error: 'needs a host name such as registry.npmjs.org or *.example.com, or the name of a preset',
})

const witness = z.union([
	z.strictObject({ folder: z.string().min(1).max(4096) }),
	z.strictObject({ git: z.string().min(1).max(4096), ref: z.string().min(1).max(200).optional() }),
])

const schema = z.strictObject({
	$schema: z.string().optional(),
	executor: z.enum(['auto', 'sandbox']).optional().describe('At least so strict: auto forbids "host".'),
	profile: z.enum(['standard', 'strict']).optional().describe('At least so strict.'),
	deny: words('Rules that refuse, whatever the user or a project allows.').optional(),
	ask: words('Rules that ask each time, whatever the user or a project allows.').optional(),
	allowRules: z
		.boolean()
		.optional()
		.describe('false: the allow lists of settings, and --allow, have no effect; accept-edits is off.'),
	allowOutside: z.boolean().optional().describe('false: nothing runs outside the sandbox, not even after a question.'),
	denyPaths: z.array(place).max(1000).optional().describe('Files and folders that tools and commands never see.'),
	sandbox: z
		.strictObject({
			writePaths: z.array(placeAtMost).max(1000).optional().describe('At most these may be writable besides the root.'),
			blockUnix: z.literal(true).optional().describe('No Unix sockets for commands.'),
		})
		.optional(),
	env: z
		.strictObject({ allow: z.array(variable).max(1000).optional().describe('At most these variables reach commands.') })
		.optional(),
	network: z
		.strictObject({ allow: z.array(host).max(1000).optional().describe('At most these hosts; [] is none.') })
		.optional(),
	web: z
		.strictObject({
			enabled: z.literal(false).optional().describe('false: no web_fetch and no web_search.'),
			allowLocalhost: z.literal(false).optional().describe('false: the agent never fetches from this machine.'),
		})
		.optional(),
	models: words('At most these models, as provider/model; * stands for any characters.').optional(),
	modelHosts: z.array(host).max(1000).optional().describe('At most these hosts answer as a model.'),
	maxCost: z.number().positive().max(100_000).optional().describe('At most: US dollars for one turn.'),
	limits: z
		.strictObject({
			steps: most('model calls in one turn.', 1, 10_000).optional(),
			turnTokens: most('tokens of one turn.', 1, 1_000_000_000).optional(),
			bashMaxTimeoutMs: most('milliseconds of one command.', 1000, 86_400_000).optional(),
		})
		.optional(),
	undo: z.literal(true).optional().describe('true: snapshots cannot be turned off.'),
	audit: z
		.strictObject({
			required: z.boolean().optional().describe('true: no session without its audit log.'),
			checkpoint: z.string().min(1).max(4096).optional().describe('A file or folder that gets the heads of the log.'),
			witness: z.array(witness).max(20).optional().describe('More second places that get the heads.'),
		})
		.optional(),
})

export type PolicyFile = z.output<typeof schema>

export const policySchema = (): Json =>
	JSON.parse(JSON.stringify(z.toJSONSchema(schema, { target: 'draft-7', io: 'input' }))) as Json

/** The values of a policy file; anything that is not known or not allowed ends in `broken` with file, line, column and field. */
export function checkPolicy(file: JsonFile, broken: (message: string) => never): PolicyFile {
	const result = schema.safeParse(file.value)
	if (result.success) return result.data
	const issue = result.error.issues[0]!
	const steps = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
	const unknown = issue.code === 'unrecognized_keys'
	if (unknown) steps.push(issue.keys[0]!)
	const field = steps.join('.').replace(/\.(\d+)/g, '[$1]')
	const message = unknown ? 'is not known, so it cannot be enforced' : issue.message
	return broken(`${file.file}:${locate(file.text, steps)}: ${field ? `${oneLine(field, 100)}: ` : ''}${message}`)
}
