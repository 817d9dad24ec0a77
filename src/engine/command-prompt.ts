// One run of a command file: consent, arguments, its shell spans and mentions through the gate, the text for the model. Before the turn.
import type { Command } from './commands.ts'
import { type Mention, parseMentions } from './context/mentions.ts'
import { expandCommand, type Piece } from './extend/expand.ts'
import { viewFolder } from './files/view.ts'
import type { Files, ResolvedPath } from './ports.ts'
import { clip, oneLine } from './text.ts'
import type { Call, Outcome } from './tools/invoke.ts'
import type { Image, TurnEnd } from './types.ts'
import { neutralise, wrap } from './untrusted.ts'

export interface CommandRun {
	/** Runs a call as the model's calls run. */
	invoke(call: Call): Promise<Outcome>
	files: Files
	/** The session's rules on a folder to be listed; a file goes through the gate. */
	permit(resolved: ResolvedPath): Promise<{ allowed: boolean; reason: string }>
	/** Called before the first call: the turn is then on record. */
	begin(): Promise<void>
	/** A word for the person. */
	note(text: string): void
	/** Makes ids of calls that are no other turn's. */
	id: string
}

export type CommandText =
	| { said: string; images: Image[] }
	/** It did not get as far as the model. */
	| { stopped: string; cancelled: boolean; denials: TurnEnd['denials'] }

/**
 * The command's text, calls made and their results put in. The first call that fails, or is denied, stops it: the rest is not run.
 * UserError: an argument that cannot be passed safely.
 */
export async function commandText(file: Command, args: string, run: CommandRun): Promise<CommandText> {
	for (const note of file.notes) run.note(`${oneLine(file.shown, 200)}: ${note}.`)
	const { pieces, unused } = expandCommand(file.body, neutralise(args))
	if (unused.length > 0) run.note(`/${file.name} has no use for: ${oneLine(unused.join(' '), 200)}`)
	let calls = 0
	let begun = false
	const call = async (name: string, input: Record<string, unknown>): Promise<Outcome> => {
		if (!begun) await run.begin()
		begun = true
		return run.invoke({ id: `${run.id}-${++calls}`, name, input })
	}
	const stopped = (what: string, input: Record<string, unknown>, outcome: Outcome): CommandText => {
		const why =
			outcome.status === 'denied'
				? `was denied: ${outcome.denied ?? 'no reason was given'}`
				: outcome.status === 'cancelled'
					? 'was stopped'
					: `failed:\n${clip(outcome.text, 2000)}`
		const denied = outcome.status === 'denied'
		return {
			stopped: `/${file.name} was not sent to the model: ${what} ${why}`,
			cancelled: outcome.cancelTurn === true || outcome.status === 'cancelled',
			denials: denied ? [{ callId: '', tool: outcome.name, input, reason: outcome.denied ?? '' }] : [],
		}
	}

	const out: string[] = []
	for (const piece of pieces) {
		if (piece.type !== 'shell') {
			out.push(piece.text)
			continue
		}
		const input = { command: piece.command }
		const outcome = await call('bash', input)
		if (outcome.status !== 'ok') return stopped(`\`${oneLine(piece.command, 200)}\``, input, outcome)
		const text = outcome.text.replace(/\n\[exit code 0\]$/, '')
		out.push(wrap('garuda-output', { command: oneLine(piece.command, 500) }, text))
	}
	const said = out.join('')

	const attached: string[] = []
	const images: Image[] = []
	const done = new Set<string>()
	for (const mention of bodyMentions(pieces)) {
		const found = await existing(mention, run.files)
		if (!found) {
			if (mention.explicit) run.note(`@${oneLine(mention.paths.at(-1)!, 200)}: no such file; the text stays as it is.`)
			continue
		}
		if (done.has(found.path)) continue
		done.add(found.path)
		const folder = found.inside && !found.sensitive ? await viewFolder(found).catch(() => null) : null
		if (folder) {
			const { allowed, reason } = await run.permit(found)
			if (!allowed) return stopped(`@${oneLine(found.typed, 200)}`, { path: found.typed }, deniedBy(reason))
			attached.push(wrap('garuda-attached', { path: found.shown }, `[folder, ${folder.count} entries]\n${folder.text}`))
			continue
		}
		const input = { path: found.typed }
		const outcome = await call('read_file', input)
		if (outcome.status !== 'ok') return stopped(`@${oneLine(found.typed, 200)}`, input, outcome)
		attached.push(wrap('garuda-attached', { path: found.shown }, outcome.text))
		images.push(...(outcome.images ?? []))
	}
	return { said: [said, ...attached].join('\n\n'), images }
}

const deniedBy = (reason: string): Outcome => ({
	status: 'denied',
	text: reason,
	name: 'read_file',
	key: '',
	denied: reason,
})

async function existing(mention: Mention, files: Files) {
	for (const typed of mention.paths) {
		const resolved = await files.resolve(typed).catch(() => null)
		// A secret's name gets the same answer whether or not the file is there.
		if (resolved?.exists || (resolved?.sensitive && mention.explicit)) return { ...resolved, typed }
	}
	return null
}

/** Mentions that begin in the file's own text, not in code, a span's output or an argument; `@$1` names what the argument says. */
function bodyMentions(pieces: readonly Piece[]): Mention[] {
	let text = ''
	const given = new Map<number, string>()
	const own: boolean[] = []
	for (const piece of pieces) {
		const shown = piece.type === 'shell' ? ' ' : piece.type === 'code' ? ' '.repeat(piece.text.length) : piece.text
		if (piece.type === 'argument') given.set(text.length, piece.text)
		for (let i = 0; i < shown.length; i++) own.push(piece.type === 'text')
		text += shown
	}
	return parseMentions(text)
		.filter((mention) => own[mention.start])
		.map((mention) => {
			const argument = given.get(mention.start + 1)
			if (!argument) return mention
			const tail = /^\S*/.exec(text.slice(mention.start + 1 + argument.length))![0]
			return { ...mention, explicit: true, paths: [...new Set([argument + tail, argument, ...mention.paths])] }
		})
}
