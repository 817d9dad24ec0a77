// What a killed Garuda left beside a file: new content that never took its name. Swept at a resume and at the next write there.
import { promises as fs } from 'node:fs'
import { dirname } from 'node:path'
import { ownUid } from '../own-uid.ts'
import type { Files } from '../ports.ts'
import { procProcesses, writerSpace } from './atomic.ts'
import { type Folder, openFolder, wayHere } from './open.ts'

/** The names of `replaceIn`: where the writer ran, its pid, chance. */
const pattern = /^\.[\s\S]{1,40}\.([0-9a-f]{8})([0-9a-f]{8})[0-9a-f]{8}\.garuda-tmp$/
/** After this even a writer that cannot be looked at is not in the middle of it. */
const minute = 60_000

/**
 * Removes the unfinished files of dead writers in an open folder: only regular files of this user under the exact names,
 * whose writer is gone (told only of the same machine, start and process space) or that are older than a minute. Never throws.
 */
export async function sweepFolder(folder: Pick<Folder, 'at'>): Promise<void> {
	try {
		// "/." makes the kernel look up the opened folder itself.
		const names = (await fs.readdir(`${dirname(folder.at('x'))}/.`)).filter((name) => pattern.test(name))
		if (names.length === 0) return
		const [uid, space] = await Promise.all([ownUid(), writerSpace()])
		for (const name of names) {
			const [, where, pid] = pattern.exec(name)!
			const stat = await fs.lstat(folder.at(name)).catch(() => null)
			if (!stat?.isFile() || stat.uid !== uid) continue
			const here = space !== null && where === space
			const dead = here && (await procProcesses.alive(Number.parseInt(pid!, 16), '')) === false
			// The disk's own clock on both sides: only the age of the file counts, so a wall clock is right here.
			if (dead || Date.now() - stat.mtimeMs > minute) await fs.unlink(folder.at(name)).catch(() => {})
		}
	} catch {
		// A folder that cannot be listed keeps what is in it.
	}
}

/** The same for the folders of paths a session was writing to when it was stopped; what lies outside the roots is left alone. */
export async function sweepBeside(files: Files, paths: Iterable<string>): Promise<void> {
	const folders = new Set<string>()
	for (const path of paths) {
		const found = await files.resolve(path).catch(() => null)
		if (found?.inside && !found.sensitive && !found.protected) folders.add(dirname(found.path))
	}
	const way = await wayHere()
	for (const path of folders) {
		const folder = await openFolder(path, way).catch(() => null)
		if (!folder) continue
		await sweepFolder(folder)
		await folder.close()
	}
}
