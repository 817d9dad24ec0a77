// The person's and the project's own slash commands in the shared table: run as prompts, shown in the help.
import type { CommandInfo, CommandList, Session } from '../api.ts'
import { UserError } from '../errors.ts'
import { fewOf, oneLine } from '../text.ts'
import type { SlashResult } from './types.ts'

/** The prompt that a command file comes to; null where there is no such file. UserError: it was left out, with why. */
export async function runCustom(
	session: Session,
	line: string,
	parsed: { name: string; args: string },
): Promise<SlashResult | null> {
	const { commands, problems } = await session.commands()
	if (commands.some((one) => one.name === parsed.name)) return { type: 'prompt', prompt: line.trim(), command: parsed }
	const file = `/${parsed.name.replaceAll(':', '/')}.md`
	const about = problems.filter((one) => one.toLowerCase().includes(file))
	if (about.length > 0) throw new UserError(`/${parsed.name} is not there. ${about.join(' ')}`)
	return null
}

/** One line: what it does and where it comes from. */
export const aboutCommand = (one: CommandInfo): string =>
	`${one.description === '' ? '' : `${oneLine(one.description, 200)} `}(${one.source === 'user' ? 'yours' : "the project's"}, ${oneLine(one.path, 200)})`

/** For the start: what was left out, of many the first and how many more. */
export const leftOut = ({ problems }: Pick<CommandList, 'problems'>): string[] =>
	fewOf(problems, (more) => `${more} more command files are left out; /help names them all.`)

/** The lines of /help: the commands, then what was left out and why. */
export function customLines({ commands, problems }: CommandList, width: number): string[] {
	if (commands.length === 0 && problems.length === 0) return []
	const lines = commands.map((one) => `  ${`/${one.name} ${oneLine(one.hint, 60)}`.padEnd(width)} ${aboutCommand(one)}`)
	return ['', ...lines, ...problems.map((one) => `  ! ${oneLine(one, 400)}`)]
}
