// Who wrote a journal: this machine, this user, and a random word that only ~/.garuda knows, so that a planted file cannot claim it.
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from './errors.ts'

/** The same for all sessions of a user on a machine. The word is made once; a folder that cannot be written gives none. */
export async function originOf(garudaHome: string, hostname: string, uid: number): Promise<string> {
	const file = join(garudaHome, 'origin')
	const known = await readWord(file)
	if (known) return `${hostname}/${uid}/${known}`
	const word = randomBytes(12).toString('hex')
	const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
	try {
		const handle = await open(file, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
		await handle.writeFile(word).finally(() => handle.close())
		return `${hostname}/${uid}/${word}`
	} catch (error) {
		// Another start was first, or nothing can be written there.
		const theirs = codeOf(error) === 'EEXIST' ? await readWord(file) : null
		return `${hostname}/${uid}/${theirs ?? 'none'}`
	}
}

async function readWord(file: string): Promise<string | null> {
	try {
		const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
		try {
			const stat = await handle.stat()
			if (!stat.isFile() || stat.size > 64) return null
			const word = await handle.readFile('utf8')
			return /^[0-9a-f]{24}$/.test(word) ? word : null
		} finally {
			await handle.close()
		}
	} catch {
		return null
	}
}
