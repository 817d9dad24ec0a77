// The setup service's door: providers and keys, the doctor, the editors' entries. A service on top of the engine, with no terminal of its own.
import type { Ask } from './ask.ts'
import { openRoom, type SetupPlace } from './place.ts'
import type { SetupFlags } from './unattended.ts'

export { type Ask, type Choice, SetupCancelled } from './ask.ts'
export type { SetupPlace } from './place.ts'
export type { SetupFlags } from './unattended.ts'

const next =
	'Next: "garuda" opens the chat, "garuda setup editors" connects an editor, "garuda setup check" looks at everything.'

/**
 * `garuda setup`. With `ask` and no `yes` it asks; else the flags must say all. Resolves with the text that is still to be
 * printed. Throws UserError with nothing written, SetupCancelled when the person leaves. `inChat`: what to do next needs no
 * word, a chat goes on.
 */
export async function setup(place: SetupPlace, flags: SetupFlags, ask: Ask | null, inChat = false): Promise<string> {
	const room = await openRoom(place)
	try {
		const { removeKey, show, unattended } = await import('./unattended.ts')
		if (flags.show) return await show(room, flags.json ?? false)
		if (flags['remove-key'] !== undefined) return await removeKey(room, flags['remove-key'])
		if (ask === null || flags.yes) return await unattended(room, flags)
		const { guided } = await import('./guided.ts')
		await guided(room, ask, flags)
		if (!inChat) ask.say(next)
		return ''
	} finally {
		room.close()
	}
}
