// The shape of a settings file, checked with zod; loaded only when a settings file exists (zod costs start-up time).
import { z } from 'zod'
import { oneLine } from '../text.ts'
import type { Json } from '../types.ts'
import type { JsonFile } from './json-file.ts'
import { locate } from './json-place.ts'

const words = (what: string) => z.array(z.string().min(1).max(4096)).max(1000).describe(what)
const ms = (what: string) => z.int().min(1).max(86_400_000).describe(what)
const count = (what: string, max = 10_000_000) => z.int().min(1).max(max).describe(what)

const denyRead = z
	.string()
	.min(1)
	.max(4096)
	.refine(
		// A mask is a mount: it can hide a folder or a listed file, not "any file of this name anywhere".
		(path) => !/\*\*(?!$)/.test(path.replace(/\/+$/, '')) && !/[[\]{}]/.test(path),
		{
			error:
				'cannot be enforced by the sandbox: "**" may only end a path, and [] and {} are not known here; name the folder',
		},
	)

/** A place on this machine, never relative: what it is relative to would be a guess. */
const place = (what: string) =>
	z
		.string()
		.max(4096)
		.regex(/^(?:\/|~\/)/, { error: 'must be an absolute path or begin with ~/' })
		.describe(what)

const audit = z.strictObject({
	enabled: z.boolean().optional().describe('Keep the audit log. Default true.'),
	checkpoint: place('A file or folder elsewhere that gets the head of each turn.').optional(),
	witness: z
		.array(
			z.union(
				[
					z.strictObject({ folder: place('A folder that gets one file a session, appended to.') }),
					z.strictObject({
						git: place('A repository that gets a commit a turn on a ref of its own.'),
						ref: z
							.string()
							.regex(/^refs\/garuda\/(?!.*(?:\.\.|\.lock(?:\/|$)|\/\/|\/\.|[./]$))[\w./-]{1,200}$/, {
								error: 'must be a ref under refs/garuda/',
							})
							.optional()
							.describe('Default refs/garuda/witness.'),
					}),
				],
				{
					error:
						'must be {"folder": PATH} or {"git": PATH, "ref": "refs/garuda/NAME"}, with a path that is absolute or begins with ~/',
				},
			),
		)
		.max(10)
		.optional()
		.describe('Second places for the heads of the audit log. User settings only.'),
})

const schema = z.strictObject({
	$schema: z.string().optional(),
	executor: z
		.enum(['auto', 'sandbox', 'host'])
		.optional()
		.describe('Where commands run. A project cannot choose the host.'),
	profile: z.enum(['standard', 'strict']).optional().describe('strict: never outside the sandbox.'),
	allow: words('Rules that need no question.').optional(),
	ask: words('Rules that ask each time.').optional(),
	deny: words('Rules that refuse; they win over all others.').optional(),
	outside: words('Whole commands that may run outside the sandbox with no question.').optional(),
	sandbox: z
		.strictObject({
			writePaths: words('More folders that commands may write to.').optional(),
			denyRead: z.array(denyRead).max(1000).optional().describe('More files and folders hidden from commands.'),
			blockUnix: z.boolean().optional().describe('No Unix sockets for commands.'),
		})
		.optional(),
	env: z.strictObject({ allow: words('More environment variables that commands see.').optional() }).optional(),
	network: z
		.strictObject({
			allow: words(
				'Hosts that commands in the sandbox may reach: names, *.suffix, or npm, pypi, crates, maven, go, github, debian.',
			).optional(),
		})
		.optional(),
	web: z
		.strictObject({
			enabled: z.boolean().optional().describe('The web_fetch tool.'),
			allowLocalhost: z.boolean().optional().describe('The agent may fetch from this machine.'),
		})
		.optional(),
	staging: z
		.strictObject({
			enabled: z
				.boolean()
				.optional()
				.describe('Commands change a copy of the project; what they changed is shown and asked about. Linux.'),
		})
		.optional(),
	daemons: z
		.strictObject({
			enabled: z.boolean().optional().describe('bash may leave processes running in the background.'),
			max: z.int().min(1).max(50).optional().describe('Running at once. Default 5.'),
			lines: z.int().min(100).max(100_000).optional().describe('Lines of output kept of each. Default 10,000.'),
		})
		.optional(),
	secrets: z
		.strictObject({
			handles: z.boolean().optional().describe('Commands may use the secrets below as {{secret:NAME}}.'),
			names: z
				.record(
					z.string().regex(/^[A-Z][A-Z0-9_]{0,63}$/, { error: 'must be a name of capitals, digits and _' }),
					z.strictObject({
						hosts: words('The only hosts that a command with this secret reaches; none: no network.').default([]),
						about: z.string().max(200).optional().describe('What it is for, a few words; the model sees them.'),
					}),
				)
				.optional()
				.describe('Each value comes from the credentials file or the environment variable of this name.'),
		})
		.optional()
		.describe('Secret handles. User settings only.'),
	limits: z
		.strictObject({
			steps: count('Model calls in one turn.', 10_000).optional(),
			repeatHint: count('Same call, same result: the hint.', 1000).optional(),
			repeatStop: count('Same call, same result: the stop.', 1000).optional(),
			resultChars: z.int().min(1000).max(1_000_000).describe('Characters of a tool result for the model.').optional(),
			readLines: count('Lines of one read.', 100_000).optional(),
			readBytes: z
				.int()
				.min(1024)
				.max(16 << 20)
				.describe('Bytes of one read.')
				.optional(),
			bashTimeoutMs: ms('Default time of a command.').optional(),
			bashMaxTimeoutMs: ms('Longest time that a call may ask for.').optional(),
			turnTokens: count('Tokens of one turn, in all.', 1_000_000_000).optional(),
		})
		.optional(),
	model: z
		.strictObject({
			idleMs: ms('A stream that is quiet for this long has failed.').optional(),
			noticeMs: ms('A notice when the model is quiet for this long.').optional(),
			firstRetryMs: ms('Wait before the first retry.').optional(),
			maxRetryMs: ms('Longest wait before a retry.').optional(),
			ca: z.string().min(1).optional().describe('PEM file with more CA certificates. User settings only.'),
			allowHttp: words('Hosts that may be reached by plain http. User settings only.').optional(),
		})
		.optional(),
	compaction: z
		.strictObject({
			auto: z.boolean().optional(),
			reserve: z.int().min(1000).max(200_000).optional(),
			keep: z.int().min(1000).max(500_000).optional(),
		})
		.optional(),
	audit: audit.optional().describe('The audit log. User settings only.'),
	undo: z.boolean().optional().describe('A snapshot before each turn.'),
	todo: z.boolean().optional().describe('The todo tool.'),
	effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
	maxCost: z.number().positive().max(100_000).optional().describe('US dollars for one turn.'),
	notifications: z.boolean().optional(),
	memory: z.boolean().optional().describe("The project's memory file."),
	instructions: z.boolean().optional().describe('AGENTS.md, CLAUDE.md and GARUDA.md.'),
})

export type SettingsFile = z.output<typeof schema>

/** The values of a file; unknown names become notices, or an error when one looks like a mistyped known name. */
export function checkSettings(file: JsonFile, notices: string[], broken: (message: string) => never): SettingsFile {
	const known = knownNames(schema)
	const fail = (path: readonly PropertyKey[], message: string): never => {
		const steps = path.map((step) => (typeof step === 'number' ? step : String(step)))
		const field = steps.join('.').replace(/\.(\d+)/g, '[$1]')
		return broken(`${file.file}:${locate(file.text, steps)}: ${field ? `${oneLine(field, 100)}: ` : ''}${message}`)
	}
	// Unknown names are taken out of a copy, then the rest must fit exactly.
	const value = structuredClone(file.value)
	const first = schema.safeParse(value)
	if (first.success) return first.data
	for (const issue of first.error.issues) {
		if (issue.code !== 'unrecognized_keys') return fail(issue.path, issue.message)
		const parent = issue.path.reduce<any>((at, step) => at?.[step], value) as Record<string, unknown>
		for (const key of issue.keys) {
			const near = [...known].find((name) => distance(name, key) <= 2 && name.length > 3)
			if (near) return fail([...issue.path, key], `is not known; did you mean "${near}"?`)
			const name = [...issue.path.map(String), key].join('.')
			notices.push(
				`${file.file}:${locate(file.text, [...issue.path.map(String), key])}: "${oneLine(name, 100)}" is not known and has no effect${name === 'permissions' ? ': allow, ask and deny stand at the top of the file' : ''}.`,
			)
			delete parent[key]
		}
	}
	const second = schema.safeParse(value)
	if (second.success) return second.data
	const issue = second.error.issues[0]!
	return fail(issue.path, issue.message)
}

export const jsonSchema = (): Json => {
	const json = z.toJSONSchema(schema, { target: 'draft-7', io: 'input' })
	return JSON.parse(JSON.stringify(json)) as Json
}

function knownNames(object: z.ZodObject): Set<string> {
	const names = new Set<string>()
	for (const [name, field] of Object.entries(object.shape)) {
		names.add(name)
		const inner = field instanceof z.ZodOptional ? field.unwrap() : field
		if (inner instanceof z.ZodObject) for (const one of knownNames(inner)) names.add(one)
	}
	return names
}

/** Edit distance with swaps, stopped early: names are short. */
function distance(a: string, b: string): number {
	if (Math.abs(a.length - b.length) > 2) return 3
	const left = a.toLowerCase()
	const right = b.toLowerCase()
	let before: number[] = []
	let row = Array.from({ length: right.length + 1 }, (_, index) => index)
	for (let i = 1; i <= left.length; i++) {
		const next = [i]
		for (let j = 1; j <= right.length; j++) {
			const same = left[i - 1] === right[j - 1] ? 0 : 1
			let best = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same)
			if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1])
				best = Math.min(best, before[j - 2]! + 1)
			next.push(best)
		}
		before = row
		row = next
	}
	return row.at(-1)!
}
