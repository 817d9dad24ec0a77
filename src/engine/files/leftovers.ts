// What a killed Garuda left beside a file: new content that never took its name. Swept at a resume and at the next write there.
import { promises as fs } from 'node:fs'
import { dirname, join } from 'node:path'
import { ownUid } from '../own-uid.ts'
import type { Files } from '../ports.ts'
import { procProcesses, writerMarks, writerSpace } from './atomic.ts'
import { type Folder, openFolder, wayHere } from './open.ts'

/** The names of `replaceIn`: where the writer ran, its pid, chance. */
const pattern = /^\.[\s\S]{1,40}\.([0-9a-f]{8})([0-9a-f]{8})[0-9a-f]{8}\.garuda-tmp$/
/** After this even a writer that cannot be looked at is not in the middle of it. */
const minute = 60_000

/**
 * Removes the unfinished files of dead writers in an open folder: only files and links of this user under the exact names,
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
			if (!(stat?.isFile() || stat?.isSymbolicLink()) || stat.uid !== uid) continue
			const dead = (await writerState(`${where}${pid}`, space)) === 'dead'
			// The disk's own clock on both sides: only the age of the file counts, so a wall clock is right here.
			if (dead || Date.now() - stat.mtimeMs > minute) await fs.unlink(folder.at(name)).catch(() => {})
		}
	} catch {
		// A folder that cannot be listed keeps what is in it.
	}
}

/** Of a mark as atomic.ts makes them. `elsewhere`: of another machine, start or process space, where a pid tells nothing. */
const writerState = async (mark: string, space: string | null): Promise<'dead' | 'alive' | 'elsewhere'> => {
	if (space === null || mark.slice(0, 8) !== space) return 'elsewhere'
	return (await procProcesses.alive(Number.parseInt(mark.slice(8, 16), 16), '')) === false ? 'dead' : 'alive'
}

const record = /^restoring\.([0-9a-f]{24})$/

/**
 * Writes down in `store` which folders (absolute) are about to be written to, so that whoever comes after a kill finds what
 * lies there. The result takes the word back. Never throws: without it only leftovers stay.
 */
export async function announce(store: string, folders: Iterable<string>): Promise<() => Promise<void>> {
	const path = join(store, `restoring.${(await writerMarks())()}`)
	const taken = () => fs.unlink(path).catch(() => {})
	await fs.writeFile(path, JSON.stringify([...folders]), { flag: 'wx', mode: 0o600 }).catch(taken)
	return taken
}

/** Sweeps the folders that killed processes announced in `store`; only what lies in `root` is touched. Never throws. */
export async function sweepAnnounced(store: string, root: string): Promise<void> {
	const names = (await fs.readdir(store).catch(() => [])).filter((name) => record.test(name))
	if (names.length === 0) return
	const [space, way] = await Promise.all([writerSpace(), wayHere()])
	for (const name of names) {
		const path = join(store, name)
		const state = await writerState(record.exec(name)![1]!, space)
		const stat = await fs.lstat(path).catch(() => null)
		// The disk's own clock on both sides. Of a writer that cannot be looked at: what it left counts after a minute.
		if (!stat || state === 'alive' || (state === 'elsewhere' && Date.now() - stat.mtimeMs <= minute)) continue
		const folders: unknown = await fs
			.readFile(path, 'utf8')
			.then(JSON.parse, () => null)
			.catch(() => null)
		for (const at of Array.isArray(folders) ? folders : []) {
			if (typeof at !== 'string' || !`${at}/`.startsWith(`${root}/`)) continue
			if (`${at.slice(root.length)}/`.toLowerCase().includes('/.git/')) continue
			const folder = await openFolder(at, way).catch(() => null)
			if (!folder) continue
			await sweepFolder(folder)
			await folder.close()
		}
		await fs.unlink(path).catch(() => {})
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
