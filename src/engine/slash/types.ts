// What a slash command is, for the table and its groups. Types and small words; rank 7.
import type { Garuda, Session } from '../api.ts'
import { oneLine } from '../text.ts'

export interface SlashContext {
	garuda: Garuda
	session: Session
	signal?: AbortSignal
	now?(): number
	/** Names of commands that the front end has another way for: the help leaves them out. */
	elsewhere?: ReadonlySet<string>
}

/** What a command comes to: a text to show, or something that only the front end can do. Texts may hold anything; show them safely. */
export type SlashResult =
	| { type: 'text'; text: string /** Text for the input line. */; input?: string }
	/** A prompt to run now, after the text (if any) is shown. */
	| {
			type: 'prompt'
			prompt: string
			/** The prompt is a command file's: to be given to `Session.prompt` with it. */
			command?: { name: string; args: string }
			text?: string
	  }
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

/** A result that is only shown. */
export const text = (value: string): SlashResult => ({ type: 'text', text: value })

export const number = (value: number): string => value.toLocaleString('en')

/** Paths one a line, at most 20. */
export const list = (paths: readonly string[]): string => {
	const shown = paths.slice(0, 20).map((path) => `  ${oneLine(path)}`)
	if (paths.length > 20) shown.push(`  … and ${paths.length - 20} more`)
	return shown.join('\n')
}
