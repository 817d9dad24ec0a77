// <root>/.garuda/sessions, opened so that no link and no other user's folder is ever written to. Under the journal.
import { constants, promises as fs } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf, UserError } from '../errors.ts'
import { replaceIn } from '../files/atomic.ts'
import { type Folder, Moved, openFolder, wayHere } from '../files/open.ts'
import { ownUid } from '../own-uid.ts'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY, O_RDONLY, O_DIRECTORY, O_NONBLOCK } = constants

/** Kept by git: settings.json, commands, agents, skills, mcp.json, hooks.json, memory.md. */
const ignored =
	'# Written by Garuda: conversations and caches stay on this machine.\n/.gitignore\n/sessions/\n/logs/\n/index/\n/cache/\n/tmp/\n*.lock\n'

const refused = (path: string, what: string, hint: string): UserError =>
	new UserError(`${path} ${what}, so no session is kept there.`, hint)

/** Null when it is missing and not to be made. A link, a file or another user's folder is a UserError. */
async function checkedFolder(path: string, make: number | null): Promise<boolean> {
	let stat = await fs
		.lstat(path)
		.catch((error) => (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR' ? null : Promise.reject(error)))
	if (!stat) {
		if (make === null) return false
		await fs
			.mkdir(path, { mode: make })
			.catch((error) => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
		stat = await fs.lstat(path)
	}
	if (stat.isSymbolicLink()) throw refused(path, 'is a link', 'Remove the link; Garuda makes the folder itself.')
	if (!stat.isDirectory()) throw refused(path, 'is no folder', 'Move it away; Garuda makes the folder itself.')
	const uid = await ownUid()
	if (uid !== null && stat.uid !== uid)
		throw refused(path, `belongs to another user (uid ${stat.uid})`, `Take it over: chown -R ${uid} ${path}`)
	return true
}

/**
 * Opens `<projectDir>/sessions`, null when it is not there and `make` is false. Made: .garuda 0755 (its settings are
 * shared by git), sessions 0700, each with a .gitignore. The caller closes the folder.
 */
export async function openSessions(projectDir: string, make: boolean): Promise<Folder | null> {
	const dir = join(projectDir, 'sessions')
	if (!(await checkedFolder(projectDir, make ? 0o755 : null))) return null
	if (!(await checkedFolder(dir, make ? 0o700 : null))) return null
	let folder: Folder
	try {
		// The project's own path may pass links that the user made; what was checked above may not.
		const real = join(await fs.realpath(dirname(projectDir)), basename(projectDir), 'sessions')
		folder = await openFolder(real, await wayHere())
	} catch (error) {
		if (error instanceof Moved) throw refused(dir, 'passes a link', 'Remove the link; Garuda makes the folder itself.')
		throw error
	}
	try {
		if (make) await prepare(projectDir, folder)
		return folder
	} catch (error) {
		await folder.close()
		throw error
	}
}

async function prepare(projectDir: string, folder: Folder): Promise<void> {
	const handle = await fs.open(join(projectDir, 'sessions'), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
	try {
		const stat = await handle.stat()
		if (stat.mode & 0o077) await handle.chmod(0o700)
	} finally {
		await handle.close()
	}
	await writeNew(join(projectDir, '.gitignore'), ignored, 0o644)
	// The nearest .gitignore wins: whatever the project's own rules say, git sees nothing in here.
	const text = await readSmall(folder.at('.gitignore'))
	if (text !== '*\n') await replaceIn(folder, '.gitignore', Buffer.from('*\n'), { mode: 0o600 })
}

async function writeNew(path: string, text: string, mode: number): Promise<void> {
	try {
		const handle = await fs.open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, mode)
		await handle.writeFile(text).finally(() => handle.close())
	} catch (error) {
		if (codeOf(error) !== 'EEXIST') throw error
	}
}

async function readSmall(path: string): Promise<string | null> {
	try {
		const handle = await fs.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
		try {
			const stat = await handle.stat()
			return stat.isFile() && stat.size < 4096 ? await handle.readFile('utf8') : null
		} finally {
			await handle.close()
		}
	} catch {
		return null
	}
}
