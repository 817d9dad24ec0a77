// What the editor said it can do; nothing is sent that it did not offer. Read at initialize, used by everything that sends.
import type { InitializeRequest } from '@agentclientprotocol/sdk'

export interface ClientSide {
	/** Runs `garuda acp setup` in a terminal for the user: the capability, or the older form of it that some send alone. */
	terminalAuth: boolean
	notices: boolean
	compaction: boolean
	/** Shows a form. */
	forms: boolean
	/** Tells the text of an unsaved buffer. */
	buffers: boolean
}

export function clientSide({ clientCapabilities: c }: Pick<InitializeRequest, 'clientCapabilities'>): ClientSide {
	// `{}` is an offer, null and absence are none.
	const offers = (value: unknown): boolean => value !== undefined && value !== null && value !== false
	return {
		terminalAuth: c?.auth?.terminal === true || c?._meta?.['terminal-auth'] === true,
		notices: offers(c?.session?.notices),
		compaction: offers(c?.session?.compaction),
		forms: offers(c?.elicitation?.form),
		buffers: c?.fs?.readTextFile === true,
	}
}

export const nothingOffered: ClientSide = clientSide({})
