// Who this process acts as: the owner that Garuda's own files must have. Asked before a key, a consent or a journal is read.
import { promises as fs } from 'node:fs'
import { userInfo } from 'node:os'

/** The user this process acts as; null where there is no such thing. */
export async function ownUid(): Promise<number | null> {
	try {
		const { uid } = userInfo()
		return uid >= 0 ? uid : null
	} catch {
		// A user with no entry in passwd (a container's): the owner of the process's own files says it.
		return (await fs.stat('/proc/self').catch(() => null))?.uid ?? null
	}
}
