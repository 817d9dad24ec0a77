// The slash commands in an editor's menu: the shared table without what only a terminal has, then the command files. Used by the session.
import type { AvailableCommand } from '@agentclientprotocol/sdk'
import { type CommandInfo, oneLine, parseSlash, slashCommands } from '../engine/index.ts'

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

/** For the help: it offers what works here. */
export const elsewhereNames: ReadonlySet<string> = new Set(Object.keys(elsewhere))

/** What the menu offers on "/": the built-in commands, then the person's own and the project's. */
export const availableCommands = (own: readonly CommandInfo[]): AvailableCommand[] => [
	...slashCommands
		.filter((one) => !Object.hasOwn(elsewhere, one.name))
		.map(({ name, summary, args }) => entry(name, summary, args)),
	...own.map(({ name, description, hint, source, path }) =>
		entry(
			name,
			oneLine(`${description} (${source === 'user' ? 'yours' : "the project's"}, ${path})`.trim()),
			oneLine(hint),
		),
	),
]

const entry = (name: string, description: string, hint: string): AvailableCommand => ({
	name,
	description,
	...(hint === '' ? {} : { input: { hint } }),
})

/** Why a command is not for an editor, or null. */
export function notHere(line: string): string | null {
	const name = parseSlash(line)?.name
	return name !== undefined && Object.hasOwn(elsewhere, name) ? elsewhere[name]! : null
}
