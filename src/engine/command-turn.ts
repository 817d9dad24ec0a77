// A command file at the start of a turn: the consent that a project's needs, then its text; or the turn's end when it stops there.
import { type CommandRun, commandText } from './command-prompt.ts'
import type { Command, Commands } from './commands.ts'
import { UserError } from './errors.ts'
import type { TrustStore } from './permission/trust.ts'
import type { ToolState } from './ports.ts'
import type { Image, TurnEnd } from './types.ts'
import { noUsage } from './types.ts'

/** What goes to the model; `begun`: the turn is on record already. */
export interface FileText {
	said: string
	images: Image[]
	begun: boolean
}

export interface FileTurn extends Omit<CommandRun, 'begin'> {
	commands: Commands | null
	trust: TrustStore
	root: string
	state: Pick<ToolState, 'cwd'>
	signal: AbortSignal
	/** Milliseconds since the prompt. */
	elapsed(): number
	/** Puts the turn on record with a text for the model. */
	begin(text: string): Promise<void>
	/** A later text for the model. */
	told(text: string): Promise<void>
}

/** UserError: there is no such command, or an argument cannot be passed. An abort is an end with `cancelled`. */
export async function fileTurn(
	{ name, args }: { name: string; args: string },
	turn: FileTurn,
): Promise<FileText | TurnEnd> {
	const { trust, state, signal } = turn
	if (!turn.commands) throw new UserError(`There is no command /${name}.`, 'All commands: /help.')
	const file = await turn.commands.find(name)
	const ended = (message: string | null, denials: TurnEnd['denials'] = []): TurnEnd => ({
		...(message === null || signal.aborted
			? { reason: 'cancelled' as const }
			: { reason: 'error' as const, error: { code: 'command', message } }),
		usage: noUsage(),
		steps: 0,
		text: '',
		denials,
		durationMs: turn.elapsed(),
		modelMs: 0,
		firstTokenMs: null,
	})
	if (file.source === 'project' && !(await agreed(file, turn))) {
		const notices = trust.notices()
		if (trust.stopped()) return ended(null)
		return ended(
			`/${name} was not run: it is the project's, and ${notices.length > 0 ? `needs your consent. ${notices.join(' ')}` : 'you did not agree to it.'}`,
		)
	}
	for (const notice of trust.notices()) turn.note(notice)

	let begun = false
	const stood = state.cwd
	try {
		const text = await commandText(file, args, {
			...turn,
			// Each span begins in the root, as the file means it, and moves neither the next one nor the agent.
			invoke: (call) => {
				state.cwd = turn.root
				return turn.invoke(call)
			},
			begin: async () => {
				begun = true
				await turn.begin(`<garuda-note>The user runs the command /${name}.</garuda-note>`)
			},
		})
		if ('said' in text) return signal.aborted ? ended(null) : { said: text.said, images: text.images, begun }
		if (begun)
			await turn.told(
				`<garuda-note>The command /${name} was stopped before its text reached you: one of its own steps did not succeed.</garuda-note>`,
			)
		return ended(text.cancelled ? null : text.stopped, text.denials)
	} finally {
		state.cwd = stood
	}
}

const agreed = async ({ name, path, text, bytes }: Command, { trust, root, signal }: FileTurn): Promise<boolean> =>
	(await trust.consent({ kind: 'command', root, name, path, text, bytes }, signal)) === 'granted'
