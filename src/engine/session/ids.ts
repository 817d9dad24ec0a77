// Names of sessions: what a journal file, a lock and --resume go by. First thing of session/ that sees the user's text.
import { randomBytes } from 'node:crypto'
import { UserError } from '../errors.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const own = /^[0-9a-z]{16}$/
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** 16 lower-case characters: nine of the time (they sort by it), seven of chance. */
export function newSessionId(now: number): string {
	let time = ''
	for (let left = Math.floor(now), i = 0; i < 9; i++, left = Math.floor(left / 32)) time = alphabet[left % 32] + time
	return time + Array.from(randomBytes(7), (byte) => alphabet[byte % 32]).join('')
}

/** Own ids and UUIDs (--session-id) only: an id becomes a file name, so nothing else ever may. */
export const isSessionId = (text: string): boolean => own.test(text) || uuid.test(text)

/** The id itself; UserError for anything else (`../../x`, an empty text, a path). */
export function checkSessionId(text: string): string {
	if (isSessionId(text)) return text
	throw new UserError(
		'That is no id of a session: it has 16 lower-case letters and digits, or is a UUID in lower case.',
		'The list of sessions shows the ids: garuda chat --resume',
	)
}
