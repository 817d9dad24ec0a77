// Tab completion of paths: reads one folder, so it is as fast in a huge tree as in a small one.
import type { Files } from '../ports.ts'
import { listFolder, wayHere } from './open.ts'
import { secretName } from './sensitive.ts'

export interface Completion {
	/** What to put in place of the typed mention, with its "@", quoted when it must be. */
	insert: string
	/** The path relative to the root; folders end with a slash. */
	path: string
	folder: boolean
}

/** How a path is written in a prompt so that the parser reads it back: plain, or quoted with \" and \\ escaped. */
export const writeMention = (path: string): string =>
	/^[\p{L}\p{N}_./~+@#%=-]+$/u.test(path) && !/[.,;:!?]$/.test(path)
		? `@${path}`
		: `@"${path.replace(/["\\]/g, '\\$&')}"`

/**
 * Paths that begin with what is typed (without "@" and quotes), relative to the root. Case-insensitive unless the typed
 * part has capitals. Hidden names only when a dot is typed, never secret files. Bounded by `max`; never throws: no
 * folder, no completions.
 */
export const complete = async (files: Files, typed: string, max = 50): Promise<Completion[]> => {
	const slash = typed.lastIndexOf('/')
	const folder = slash === -1 ? '' : typed.slice(0, slash + 1)
	const part = typed.slice(slash + 1)
	try {
		const resolved = await files.resolve(folder === '' ? '.' : folder)
		if (!resolved.inside || resolved.sensitive) return []
		const exact = /\p{Lu}/u.test(part)
		const fold = (name: string) => (exact ? name.normalize('NFC') : name.normalize('NFC').toLowerCase())
		const prefix = fold(part)
		const out: Completion[] = []
		for (const name of await listFolder(resolved.path, await wayHere())) {
			if (out.length >= max) break
			if (name === '.git/' || (name.startsWith('.') && !part.startsWith('.')) || secretName(name.replace(/\/$/, '')))
				continue
			if (!fold(name).startsWith(prefix)) continue
			const path = folder + name
			out.push({ insert: writeMention(path), path, folder: name.endsWith('/') })
		}
		return out
	} catch {
		return []
	}
}
