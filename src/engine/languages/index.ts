// The language profiles of a root: its file names listed, a few small files read through the guard. Used when a session opens.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Files } from '../ports.ts'
import { type LanguageProfile, languageProfiles } from './profiles.ts'

export type { LanguageProfile } from './profiles.ts'

const smallFile = 256 * 1024

/** Never throws: what cannot be read is as if it were not there. Starts no process. */
export async function detectProfiles(
	files: Pick<Files, 'read'>,
	root: string,
	home: string,
): Promise<LanguageProfile[]> {
	const names: string[] = await readdir(root).catch(() => [])
	return languageProfiles({
		files: names,
		home,
		read: async (name) => {
			if (!names.includes(name)) return null
			try {
				return new TextDecoder().decode((await files.read(join(root, name), smallFile)).bytes)
			} catch {
				return null
			}
		},
	})
}
