// The built-in slash commands in an editor's menu: the shared table without what only a terminal has. Used by the session.
import type { AvailableCommand } from '@agentclientprotocol/sdk'
import { parseSlash, slashCommands } from '../engine/index.ts'

/** The editor has its own way to each of these. */
const elsewhere: Record<string, string> = {
	new: 'A new thread of your editor is a new session.',
	clear: 'A new thread of your editor is a new session.',
	exit: 'Close the thread in your editor.',
	quit: 'Close the thread in your editor.',
	q: 'Close the thread in your editor.',
	sessions: "Earlier sessions are in your editor's list of threads.",
	resume: "Earlier sessions are in your editor's list of threads.",
}

/** What the menu offers on "/". */
export const availableCommands = (): AvailableCommand[] =>
	slashCommands
		.filter((one) => !Object.hasOwn(elsewhere, one.name))
		.map(({ name, summary, args }) => ({
			name,
			description: summary,
			...(args === '' ? {} : { input: { hint: args } }),
		}))

/** Why a command is not for an editor, or null. */
export function notHere(line: string): string | null {
	const name = parseSlash(line)?.name
	return name !== undefined && Object.hasOwn(elsewhere, name) ? elsewhere[name]! : null
}
