// The built-in slash commands: one table that every front end shares. Works on Garuda and Session only; rank 7.
import type { Garuda, ModelInfo, Session } from './api.ts'
import { UserError } from './errors.ts'
import { oneLine } from './text.ts'
import type { Effort, Usage } from './types.ts'

export interface SlashContext {
	garuda: Garuda
	session: Session
	signal?: AbortSignal
	now?(): number
}

/** What a command comes to: a text to show, or something that only the front end can do. Texts may hold anything; show them safely. */
export type SlashResult =
	| { type: 'text'; text: string /** Text for the input line. */; input?: string }
	/** A prompt to run now, after the text (if any) is shown. */
	| { type: 'prompt'; prompt: string; text?: string }
	/** What cannot be undone asks first; without a yes nothing is done. */
	| { type: 'confirm'; question: string; yes(): Promise<SlashResult> }
	| { type: 'new' }
	/** As `new`, with an empty screen. */
	| { type: 'clear' }
	| { type: 'open'; id: string }
	| { type: 'exit' }

export interface SlashCommand {
	name: string
	/** Its arguments as help shows them; empty when it takes none. */
	args: string
	summary: string
	/** Whole values for the last word of `args`. */
	complete?(ctx: SlashContext, args: string): Promise<string[]>
	/** Throws UserError for what a person must mend. */
	run(ctx: SlashContext, args: string): Promise<SlashResult>
}

const text = (value: string): SlashResult => ({ type: 'text', text: value })
const efforts: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']
const number = (value: number): string => value.toLocaleString('en')

/** `/name rest` as a command's name and arguments; null for anything else, such as a prompt that begins with a path. */
export function parseSlash(line: string): { name: string; args: string } | null {
	const match = /^\/([a-z][a-z0-9:_-]*|\?)(?:\s+([\s\S]*))?$/i.exec(line.trim())
	return match ? { name: match[1]!.toLowerCase(), args: (match[2] ?? '').trim() } : null
}

/** Runs a line that `parseSlash` took. Throws UserError for an unknown name, with the nearest one. */
export async function runSlash(ctx: SlashContext, line: string): Promise<SlashResult> {
	const parsed = parseSlash(line)
	const command = parsed && findSlash(parsed.name)
	if (!parsed || !command) {
		const best = parsed && nearestSlash(parsed.name)
		throw new UserError(
			`There is no command ${oneLine(line.trim().split(/\s/, 1)[0]!, 60)}.`,
			best ? `Did you mean /${best}?` : 'All commands: /help',
		)
	}
	if (command.args === '' && parsed.args !== '') throw new UserError(`/${command.name} takes no arguments.`)
	return command.run(ctx, parsed.args)
}

const aliases: Record<string, string> = {
	quit: 'exit',
	q: 'exit',
	model: 'models',
	resume: 'sessions',
	'?': 'help',
	usage: 'cost',
}

export const findSlash = (name: string): SlashCommand | undefined => {
	const wanted = Object.hasOwn(aliases, name) ? aliases[name] : name
	return slashCommands.find((one) => one.name === wanted)
}

/** Names that begin as typed, or share most of their letters in order. */
function nearestSlash(typed: string): string | undefined {
	const names = slashCommands.map((one) => one.name)
	const begins = names.find((name) => name.startsWith(typed.slice(0, 3)))
	if (begins) return begins
	const score = (name: string) => {
		let at = 0
		for (const char of name) if (char === typed[at]) at++
		return at / Math.max(name.length, typed.length)
	}
	const best = names.map((name) => ({ name, score: score(name) })).sort((a, b) => b.score - a.score)[0]
	return best && best.score >= 0.6 ? best.name : undefined
}

/** Completions of a line that begins with a slash: whole lines up to the cursor. */
export async function completeSlash(ctx: SlashContext, line: string): Promise<string[]> {
	const match = /^\/(\S*)(\s+)?([\s\S]*)$/.exec(line)
	if (!match) return []
	const [, name = '', gap, args = ''] = match
	if (gap === undefined)
		return slashCommands
			.filter((one) => one.name.startsWith(name))
			.map((one) => `/${one.name}${one.args === '' ? '' : ' '}`)
	const command = findSlash(name)
	if (!command?.complete) return []
	const start = args.slice(0, args.search(/\S*$/))
	const values = await command.complete(ctx, args)
	const last = args.slice(start.length)
	return values.filter((value) => value.startsWith(last)).map((value) => `/${name}${gap}${start}${value}`)
}

export const slashCommands: readonly SlashCommand[] = [
	{
		name: 'help',
		args: '',
		summary: 'the commands and keys',
		run: async () => {
			const width = Math.max(...slashCommands.map((one) => one.name.length + one.args.length)) + 3
			const lines = slashCommands.map((one) => `  ${`/${one.name} ${one.args}`.padEnd(width)} ${one.summary}`)
			const notes = [
				`${'  !command'.padEnd(width + 3)}run a command yourself, in the same sandbox and with the same questions`,
				`${'  @path'.padEnd(width + 3)}attach a file or folder (Tab completes)`,
			]
			return text([...lines, '', ...notes].join('\n'))
		},
	},
	{ name: 'clear', args: '', summary: 'a new session on an empty screen', run: async () => ({ type: 'clear' }) },
	{ name: 'new', args: '', summary: 'a new session', run: async () => ({ type: 'new' }) },
	{
		name: 'status',
		args: '',
		summary: 'session, model, mode, sandbox, use',
		run: async ({ session }) => {
			const s = session.status()
			const rows: [string, string][] = [
				['session', `${s.id}${s.title ? `  "${oneLine(s.title, 80)}"` : ''}`],
				['root', s.root],
				...s.extraDirs.map((dir): [string, string] => ['also', dir]),
				['model', `${s.model}${s.effort ? `, effort ${s.effort}` : ''}`],
				['mode', `${s.mode}${s.acceptEdits ? ', edits accepted' : ''}`],
				['sandbox', s.sandbox],
				['context', contextLine(s.contextTokens, s.window)],
				['used', usage(s.usage)],
				['turns', String(s.turns)],
			]
			return text(rows.map(([name, value]) => `  ${name.padEnd(8)} ${value}`).join('\n'))
		},
	},
	{
		name: 'context',
		args: '',
		summary: 'how full the context window is',
		run: async ({ session }) => {
			const { contextTokens, window } = session.status()
			const line = contextLine(contextTokens, window)
			if (window === null) return text(`  ${line}`)
			const filled = Math.min(40, Math.round((contextTokens / window) * 40))
			return text(
				`  [${'#'.repeat(filled)}${'.'.repeat(40 - filled)}]\n  ${line}\n  /compact makes room: it summarises the conversation so far.`,
			)
		},
	},
	{
		name: 'cost',
		args: '',
		summary: 'tokens and cost of this session',
		run: async ({ session }) => {
			const { usage: u, turns } = session.status()
			const rows: [string, string][] = [
				['cost', u.cost === null ? 'unknown (no price is known for a model that was used)' : `$${u.cost.toFixed(4)}`],
				['input', number(u.input)],
				['from cache', number(u.cacheRead)],
				['to cache', number(u.cacheWrite)],
				['output', `${number(u.output)}${u.thinking ? ` (${number(u.thinking)} of it thinking)` : ''}`],
				['requests', `${number(u.requests)} in ${turns} turns`],
			]
			return text(rows.map(([name, value]) => `  ${name.padEnd(10)} ${value}`).join('\n'))
		},
	},
	{
		name: 'permissions',
		args: '[edits on|off]',
		summary: 'the rules in force; accept edits in the project or ask',
		complete: async (_ctx, args) => (/^\S*$/.test(args) ? ['edits'] : /^edits\s+\S*$/.test(args) ? ['on', 'off'] : []),
		run: async ({ session }, args) => {
			if (args !== '') {
				const match = /^edits\s+(on|off)$/.exec(args)
				if (!match) throw new UserError('/permissions takes nothing, or: edits on, edits off.')
				session.setAcceptEdits(match[1] === 'on')
				return text(
					match[1] === 'on'
						? 'Edits inside the project are accepted without a question.'
						: 'Edits are asked about again.',
				)
			}
			const { rules, session: answers } = session.permissions()
			const out = rules.map((rule) => `  ${rule.kind.padEnd(7)} ${oneLine(rule.text)}  (${oneLine(rule.source)})`)
			if (rules.length === 0) out.push('  no rules: what is not plainly harmless is asked about')
			if (answers.length > 0)
				out.push('', '  answered for this session:', ...answers.map((key) => `    ${oneLine(key)}`))
			if (session.status().acceptEdits)
				out.push('', '  edits inside the project are accepted (/permissions edits off ends it)')
			return text(out.join('\n'))
		},
	},
	{
		name: 'models',
		args: '[name]',
		summary: 'the models, or change to one',
		complete: async ({ garuda }) => (await garuda.models.list()).map((one) => one.name),
		run: async ({ garuda, session }, args) => {
			const all = await garuda.models.list()
			if (args !== '') {
				await session.setModel(whichModel(all, args))
				return text(`The model is now ${session.model}.`)
			}
			if (all.length === 0) return text('  no models are known: garuda setup')
			const width = Math.max(...all.map((one) => one.name.length))
			const price = (one: ModelInfo) =>
				one.spec.price ? `$${one.spec.price.input} in, $${one.spec.price.output} out` : 'price unknown'
			const lines = all.map((one) => {
				const note = one.problem
					? `not usable: ${oneLine(one.problem.message, 80)}`
					: `${one.spec.window === null ? 'window unknown' : `${number(one.spec.window)} tokens`}, ${price(one)}`
				return `${one.name === session.model ? '*' : ' '} ${one.name.padEnd(width)}  ${note}`
			})
			return text([...lines, '  prices are per million tokens'].join('\n'))
		},
	},
	{
		name: 'effort',
		args: '[low|medium|high|xhigh|max|default]',
		summary: 'how hard the model thinks',
		complete: async () => [...efforts, 'default'],
		run: async ({ session }, args) => {
			if (args === '') return text(`  effort: ${session.status().effort ?? "the model's default"}`)
			const effort = args === 'default' ? null : efforts.find((one) => one === args)
			if (effort === undefined)
				throw new UserError(
					`There is no effort "${oneLine(args, 40)}".`,
					`It is one of: ${efforts.join(', ')}, default.`,
				)
			await session.setEffort(effort)
			return text(`Effort is now ${effort ?? "the model's default"}.`)
		},
	},
	{
		name: 'plan',
		args: '[task|off]',
		summary: 'plan mode: read and plan only; again to leave it and carry the plan out',
		complete: async () => ['off'],
		run: plan,
	},
	{
		name: 'compact',
		args: '',
		summary: 'summarise the conversation to make room',
		run: async ({ session, signal }) => {
			const done = await session.compact(signal)
			return text(
				done
					? `From about ${number(done.before)} to ${number(done.after)} tokens.`
					: 'There is nothing to summarise yet.',
			)
		},
	},
	{
		name: 'undo',
		args: '',
		summary: 'take back the last turn: its files and its messages',
		run: async ({ session }) => {
			const done = await session.undo()
			const files = done.done && done.restored.length > 0 ? `\n${list(done.restored)}` : ''
			return {
				...(text(done.message + files) as { type: 'text'; text: string }),
				...(done.done && done.prompt ? { input: done.prompt } : {}),
			}
		},
	},
	{
		name: 'redo',
		args: '',
		summary: 'bring back what /undo took',
		run: async ({ session }) => {
			const done = await session.redo()
			return text(done.done && done.restored.length > 0 ? `${done.message}\n${list(done.restored)}` : done.message)
		},
	},
	{
		name: 'diff',
		args: '[all]',
		summary: 'what the last turn changed, or all turns',
		complete: async () => ['all'],
		run: async ({ session }, args) => {
			if (args !== '' && args !== 'all') throw new UserError('/diff takes nothing, or: all.')
			const diff = await session.diff(args === 'all' ? 'all' : 'last')
			return text(
				diff.trim() === ''
					? args === 'all'
						? 'No turn changed a file.'
						: 'The last turn changed no file.'
					: diff.trimEnd(),
			)
		},
	},
	{
		name: 'sessions',
		args: '[open|rename|delete <id>]',
		summary: 'the sessions; open, rename or delete one',
		complete: completeSessions,
		run: sessions,
	},
	{
		name: 'export',
		args: '',
		summary: 'write this conversation to a Markdown file',
		run: async ({ session }) => text(`Written to ${await session.export()}`),
	},
	{ name: 'exit', args: '', summary: 'leave', run: async () => ({ type: 'exit' }) },
]

const list = (paths: readonly string[]): string => {
	const shown = paths.slice(0, 20).map((path) => `  ${oneLine(path)}`)
	if (paths.length > 20) shown.push(`  … and ${paths.length - 20} more`)
	return shown.join('\n')
}

const contextLine = (tokens: number, window: number | null): string =>
	window === null
		? `about ${number(tokens)} tokens; the window is unknown`
		: `about ${number(tokens)} of ${number(window)} tokens (${Math.round((tokens / window) * 100)} %)`

const usage = (u: Usage): string =>
	`${number(u.input + u.cacheRead + u.cacheWrite)} tokens in, ${number(u.output)} out, ${u.cost === null ? 'cost unknown' : `$${u.cost.toFixed(4)}`}`

/** A model by its name, its id alone, or a part of it that only one model has. */
function whichModel(all: readonly ModelInfo[], typed: string): string {
	const exact = all.find((one) => one.name === typed)
	if (exact || typed.includes('/')) return exact?.name ?? typed
	const byId = all.filter((one) => one.spec.id === typed)
	const found = byId.length > 0 ? byId : all.filter((one) => one.name.includes(typed))
	if (found.length === 1) return found[0]!.name
	if (found.length > 1)
		throw new UserError(
			`"${oneLine(typed, 60)}" fits ${found.length} models.`,
			found
				.slice(0, 8)
				.map((one) => one.name)
				.join(', '),
		)
	// Not in the list is not "does not exist": the engine knows best.
	return typed
}

async function plan({ session }: SlashContext, args: string): Promise<SlashResult> {
	if (args === 'off') {
		await session.setMode('build')
		return text('Plan mode is off.')
	}
	if (args !== '') {
		await session.setMode('plan')
		return { type: 'prompt', prompt: args, text: 'Plan mode is on: nothing is changed.' }
	}
	if (session.mode !== 'plan') {
		await session.setMode('plan')
		return text(
			'Plan mode is on: the model reads and plans, nothing is changed. /plan again carries the plan out; /plan off just leaves.',
		)
	}
	const made = madePlan(session)
	await session.setMode('build')
	if (!made) return text('Plan mode is off. There was no plan yet.')
	return { type: 'prompt', prompt: 'Carry out the plan above.', text: 'Plan mode is off; the plan is handed over.' }
}

/** Whether the model has answered since plan mode was entered (or at all, where the history does not say when). */
function madePlan(session: Session): boolean {
	let made = false
	for (const event of session.history()) {
		if (event.type === 'mode') made = false
		else if (event.type === 'message' && event.message.role === 'assistant')
			made = event.message.blocks.some((block) => block.type === 'text' && block.text.trim() !== '')
	}
	return made
}

async function completeSessions({ garuda }: SlashContext, args: string): Promise<string[]> {
	if (/^\S*$/.test(args)) return ['open', 'rename', 'delete', 'list']
	return /^(open|rename|delete)\s+\S*$/.test(args) ? (await garuda.sessions.list()).map((one) => one.id) : []
}

async function sessions(ctx: SlashContext, args: string): Promise<SlashResult> {
	const { garuda, session } = ctx
	const [verb = 'list', id = '', ...rest] = args === '' ? [] : args.split(/\s+/)
	const all = (await garuda.sessions.list()).sort((a, b) => b.updated - a.updated)
	if (verb === 'list') {
		if (all.length === 0) return text('There are no sessions yet.')
		const lines = all.slice(0, 30).map((one) => {
			const mark = one.id === session.id ? '*' : ' '
			const where = one.root === session.root ? '' : `  ${oneLine(one.root, 60)}`
			return `${mark} ${one.id}  ${age(one.updated, ctx.now?.() ?? Date.now()).padStart(8)}  ${oneLine(one.title || '(no title)', 60)}${where}`
		})
		if (all.length > 30) lines.push(`  … and ${all.length - 30} older`)
		return text(lines.join('\n'))
	}
	if (verb !== 'open' && verb !== 'rename' && verb !== 'delete')
		throw new UserError(`/sessions has no "${oneLine(verb, 40)}".`, 'It has: list, open, rename, delete.')
	if (id === '') throw new UserError(`/sessions ${verb} needs the id of a session.`, 'List them with /sessions.')
	const exact = all.filter((one) => one.id === id)
	const found = exact.length > 0 ? exact : all.filter((one) => one.id.startsWith(id))
	if (found.length !== 1)
		throw new UserError(
			found.length === 0
				? `There is no session "${oneLine(id, 60)}".`
				: `${found.length} sessions begin with "${oneLine(id, 60)}".`,
		)
	const one = found[0]!
	const name = `${one.id}${one.title ? ` ("${oneLine(one.title, 60)}")` : ''}`
	if (verb === 'open') return one.id === session.id ? text('That session is open.') : { type: 'open', id: one.id }
	if (verb === 'rename') {
		const title = rest.join(' ')
		if (title === '') throw new UserError('/sessions rename needs an id and a title.')
		if (one.id === session.id) await session.setTitle(title)
		else await garuda.sessions.rename(one.id, title)
		return text(`${one.id} is now "${oneLine(title, 80)}".`)
	}
	if (one.id === session.id) throw new UserError('That session is open here.', 'Open another first: /new.')
	return {
		type: 'confirm',
		question: `Delete the session ${name} for good?`,
		yes: async () => {
			await garuda.sessions.remove(one.id)
			return text(`Deleted ${one.id}.`)
		},
	}
}

function age(then: number, now: number): string {
	const minutes = Math.max(0, Math.round((now - then) / 60_000))
	if (minutes < 60) return `${minutes} min`
	if (minutes < 48 * 60) return `${Math.round(minutes / 60)} h`
	return `${Math.round(minutes / 1440)} days`
}
