// The slash commands that every front end shares: the built-in table, and the person's own as files. Works on Garuda and Session only; rank 7.
import type { Session } from './api.ts'
import { UserError } from './errors.ts'
import { context, cost, permissions, status } from './slash/about.ts'
import { customLines, runCustom } from './slash/custom.ts'
import { compact, effort, models, plan } from './slash/model.ts'
import { exportText, sessions } from './slash/sessions.ts'
import { diff, redo, undo } from './slash/turns.ts'
import { type SlashCommand, type SlashContext, type SlashResult, text } from './slash/types.ts'
import { oneLine } from './text.ts'
import type { PromptInput } from './types.ts'

export type { SlashCommand, SlashContext, SlashResult } from './slash/types.ts'

/** `/name rest` as a command's name and arguments; null for anything else, such as a prompt that begins with a path. */
export function parseSlash(line: string): { name: string; args: string } | null {
	const match = /^\/([a-z][a-z0-9:_-]*|\?)(?:\s+([\s\S]*))?$/i.exec(line.trim())
	return match ? { name: match[1]!.toLowerCase(), args: (match[2] ?? '').trim() } : null
}

/** Runs a line that `parseSlash` took. Throws UserError for an unknown name, with the nearest one. */
export async function runSlash(ctx: SlashContext, line: string): Promise<SlashResult> {
	const parsed = parseSlash(line)
	const command = parsed && findSlash(parsed.name)
	if (!parsed) throw await unknown(ctx.session, line, null)
	if (!command) {
		const own = await runCustom(ctx.session, line, parsed)
		if (own) return own
		throw await unknown(ctx.session, line, parsed.name)
	}
	if (command.args === '' && parsed.args !== '') throw new UserError(`/${command.name} takes no arguments.`)
	return command.run(ctx, parsed.args)
}

/**
 * A task of a script that begins with a slash, as the prompt of a command file; null where it is an ordinary prompt.
 * UserError for a built-in command, which works on a conversation that goes on, and for a name that there is not.
 */
export async function slashPrompt(session: Session, task: string): Promise<PromptInput | null> {
	const parsed = task.startsWith('/') ? parseSlash(task) : null
	if (!parsed) return null
	const asText = 'A blank in front of it makes it an ordinary prompt.'
	const builtin = findSlash(parsed.name)
	if (builtin) throw new UserError(`/${builtin.name} works in the chat, not in one task.`, asText)
	const found = await runCustom(session, task, parsed)
	if (found?.type !== 'prompt') {
		const { message, hint } = await unknown(session, task, parsed.name)
		// The help is for a chat; here there are only command files.
		const here = (await session.commands()).commands.slice(0, 20).map((one) => `/${one.name}`)
		const all = here.length > 0 ? `Command files here: ${here.join(', ')}.` : 'There are no command files here.'
		throw new UserError(message, `${hint === allCommands ? all : hint} ${asText}`)
	}
	return { text: found.prompt, ...(found.command ? { command: found.command } : {}) }
}

const allCommands = 'All commands: /help.'

async function unknown(session: Session, line: string, name: string | null): Promise<UserError> {
	const { commands } = name === null ? { commands: [] } : await session.commands()
	const best =
		name === null
			? undefined
			: nearest(
					name,
					[...slashCommands, ...commands].map((one) => one.name),
				)
	return new UserError(
		`There is no command ${oneLine(line.trim().split(/\s/, 1)[0]!, 60)}.`,
		best ? `Did you mean /${best}?` : allCommands,
	)
}

const aliases: Record<string, string> = {
	quit: 'exit',
	q: 'exit',
	model: 'models',
	resume: 'sessions',
	'?': 'help',
	usage: 'cost',
}

/** A built-in command by its name or a short one. */
export const findSlash = (name: string): SlashCommand | undefined => {
	const wanted = Object.hasOwn(aliases, name) ? aliases[name] : name
	return slashCommands.find((one) => one.name === wanted)
}

/** Names that begin as typed, or share most of their letters in order. */
function nearest(typed: string, names: readonly string[]): string | undefined {
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
	if (gap === undefined) {
		const own = (await ctx.session.commands()).commands.map((one) => ({ name: one.name, args: one.hint }))
		return [...slashCommands, ...own]
			.filter((one) => one.name.startsWith(name))
			.map((one) => `/${one.name}${one.args === '' ? '' : ' '}`)
	}
	const command = findSlash(name)
	if (!command?.complete) return []
	const start = args.slice(0, args.search(/\S*$/))
	const values = await command.complete(ctx, args)
	const last = args.slice(start.length)
	return values.filter((value) => value.startsWith(last)).map((value) => `/${name}${gap}${start}${value}`)
}

const help: SlashCommand = {
	name: 'help',
	args: '',
	summary: 'the commands and keys',
	run: async ({ session, elsewhere }) => {
		const shown = slashCommands.filter((one) => !elsewhere?.has(one.name))
		const width = Math.max(...shown.map((one) => one.name.length + one.args.length)) + 3
		const lines = shown.map((one) => `  ${`/${one.name} ${one.args}`.padEnd(width)} ${one.summary}`)
		const notes = [
			`${'  !command'.padEnd(width + 3)}run a command yourself, in the same sandbox and with the same questions`,
			`${'  @path'.padEnd(width + 3)}attach a file or folder (Tab completes)`,
		]
		return text([...lines, ...customLines(await session.commands(), width), '', ...notes].join('\n'))
	},
}

/** The built-in commands. */
export const slashCommands: readonly SlashCommand[] = [
	help,
	{ name: 'clear', args: '', summary: 'a new session on an empty screen', run: async () => ({ type: 'clear' }) },
	{ name: 'new', args: '', summary: 'a new session', run: async () => ({ type: 'new' }) },
	status,
	context,
	cost,
	permissions,
	models,
	effort,
	plan,
	compact,
	undo,
	redo,
	diff,
	sessions,
	exportText,
	{ name: 'exit', args: '', summary: 'leave', run: async () => ({ type: 'exit' }) },
]

/** Every name that a command file cannot take: the built-in ones and their short forms. */
export const takenNames = (): ReadonlySet<string> =>
	new Set([...slashCommands.map((one) => one.name), ...Object.keys(aliases)])
