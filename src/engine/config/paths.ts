// Where Garuda's own files lie, and a check that ~/.garuda is really the user's. First step of every verb that needs them.
import { lstat, mkdir } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { codeOf, messageOf, UserError } from '../errors.ts'
import { ownUid } from '../own-uid.ts'

export interface GarudaPaths {
	/** ~/.garuda, or the folder that the user's GARUDA_HOME names. */
	home: string
	settings: string
	models: string
	credentials: string
	/** The map of session id → root that resume and list read from anywhere. */
	sessions: string
	snapshots: string
	tmp: string
	logs: string
	project: { dir: string; settings: string; sessions: string; memory: string }
}

/**
 * All paths from three arguments; nothing is read, least of all a project's .env.
 * @param home the user's home folder
 * @param garudaHome the value of GARUDA_HOME in the user's own environment; empty counts as not set
 */
export function garudaPaths(home: string, root: string, garudaHome?: string): GarudaPaths {
	const own = garudaHome?.trim()
	if (!own && (!home || !isAbsolute(home)))
		throw new UserError('The home folder is not known: HOME is not set or no absolute path.', 'Set HOME and try again.')
	if (own && !isAbsolute(own))
		throw new UserError(`GARUDA_HOME is no absolute path: ${own}`, 'Give the whole path, or unset it to use ~/.garuda.')
	const base = own ? resolve(own) : join(resolve(home), '.garuda')
	const dir = join(resolve(root), '.garuda')
	return {
		home: base,
		settings: join(base, 'settings.json'),
		models: join(base, 'models.json'),
		credentials: join(base, 'credentials'),
		sessions: join(base, 'sessions.json'),
		snapshots: join(base, 'snapshots'),
		tmp: join(base, 'tmp'),
		logs: join(base, 'logs'),
		project: {
			dir,
			settings: join(dir, 'settings.json'),
			sessions: join(dir, 'sessions'),
			memory: join(dir, 'memory.md'),
		},
	}
}

/**
 * Makes ~/.garuda (0700) when it is missing. Throws UserError when it is a link, no folder, another user's, or writable
 * by others: whoever can write there decides what Garuda trusts.
 */
export async function prepareHome(paths: GarudaPaths): Promise<void> {
	try {
		await makeFolder(paths.home)
	} catch (error) {
		// EEXIST: a file or a dangling link is in the way; the check below names it.
		if (codeOf(error) !== 'EEXIST') {
			throw new UserError(
				`Garuda's folder cannot be made: ${paths.home} (${codeOf(error) ?? messageOf(error)})`,
				'Make the home folder writable, or set GARUDA_HOME to a folder of yours.',
			)
		}
	}
	await checkHome(paths.home)
}

/** Step by step: Node's recursive mkdir never returns for a path under /proc. EEXIST of the last one is thrown. */
async function makeFolder(path: string): Promise<void> {
	try {
		return await mkdir(path, { mode: 0o700 })
	} catch (error) {
		if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error
	}
	await makeFolder(dirname(path)).catch((error: unknown) => {
		if (codeOf(error) !== 'EEXIST') throw error
	})
	await mkdir(path, { mode: 0o700 })
}

/** The check of `prepareHome` alone; a missing folder passes. */
export async function checkHome(home: string): Promise<void> {
	const stat = await lstat(home).catch((error: unknown) => {
		if (codeOf(error) === 'ENOENT') return null
		throw new UserError(`Garuda's folder cannot be read: ${home} (${codeOf(error) ?? messageOf(error)})`)
	})
	if (!stat) return
	if (stat.isSymbolicLink())
		throw new UserError(
			`${home} is a link; Garuda keeps keys and consents there and follows none.`,
			'Replace it by a folder, or set GARUDA_HOME to the real one.',
		)
	if (!stat.isDirectory()) throw new UserError(`${home} is no folder.`, 'Move it away; Garuda makes the folder itself.')
	const uid = await ownUid()
	if (uid !== null && stat.uid !== uid)
		throw new UserError(`${home} belongs to another user (uid ${stat.uid}).`, `Take it over: chown -R ${uid} ${home}`)
	if (stat.mode & 0o022) throw new UserError(`Others can write to ${home}.`, `Close it: chmod 700 ${home}`)
}
