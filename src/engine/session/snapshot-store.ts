// The folder of the undo store: made by hand, private, tidied; and what is read of the user's repository. Under snapshot-git.ts.
import { randomBytes } from 'node:crypto'
import { constants, promises as fs } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf, messageOf } from '../errors.ts'
import { oneLine } from '../text.ts'
import { NoSnapshot } from './snapshot-look.ts'

/** Over the user's configuration, which is read for its ignore rules only. */
const config = `[core]
	repositoryformatversion = 0
	bare = false
	filemode = true
	symlinks = true
	autocrlf = false
	safecrlf = false
	attributesFile = /dev/null
	protectNTFS = false
	logAllRefUpdates = false
	compression = 1
	looseCompression = 1
	bigFileThreshold = 16m
	splitIndex = false
	sharedRepository = false
	fsync = none
	preferSymlinkRefs = false
	precomposeUnicode = false
[index]
	sparse = false
[gc]
	auto = 0
[pack]
	threads = 1
`
const attributes = '* -text -eol -crlf -filter -ident -working-tree-encoding\n'

/** The store's folders and files, made by hand: no template, no hook, no repository's own program. */
export async function prepareStore(store: string): Promise<void> {
	await privateFolder(store)
	for (const dir of ['objects/info', 'objects/pack', 'refs/garuda', 'info'])
		await fs.mkdir(join(store, dir), { recursive: true, mode: 0o700 })
	await putFile(store, 'HEAD', 'ref: refs/heads/none\n')
	await putFile(store, 'config', config)
	await putFile(store, 'info/attributes', attributes)
	await cleanUp(store)
}

/** Writes only what differs. Whole or not at all, but not forced to the disk: each start looks at it again. */
export async function putFile(store: string, name: string, text: string): Promise<void> {
	const path = join(store, name)
	if ((await fs.readFile(path, 'utf8').catch(() => null)) === text) return
	const temp = join(store, `ref.${randomBytes(6).toString('hex')}`)
	await fs.writeFile(temp, text, { mode: 0o600, flag: 'wx' })
	await fs.rename(temp, path)
}

/** A JSON object from a file of the store; an empty one when it is missing or damaged. */
export async function readObject(path: string): Promise<Record<string, unknown>> {
	try {
		const value: unknown = JSON.parse(await fs.readFile(path, 'utf8'))
		return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
	} catch {
		return {}
	}
}

/** Makes the folder 0700; a link or another user's is refused: snapshots hold whole files. */
export async function privateFolder(path: string): Promise<void> {
	await fs.mkdir(dirname(path), { recursive: true, mode: 0o700 })
	await fs
		.mkdir(path, { mode: 0o700 })
		.catch((error) => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
	const stats = await fs.lstat(path)
	if (!stats.isDirectory()) throw new NoSnapshot(`${path} is no folder`, true)
	if (stats.mode & 0o077) await fs.chmod(path, 0o700)
}

/** What a killed process left: second names of the index, locks, half refs. None is ever waited for; the old ones go. */
async function cleanUp(store: string): Promise<void> {
	for (const name of await fs.readdir(store)) {
		if (
			!/^(?:rules\.[0-9a-f]{12}|index\.[0-9a-f]{12}(?:\.lock)?|ref\.[0-9a-f]{12}|index(?:-[0-9a-f]{8})?\.lock|\..*\.garuda-tmp)$/.test(
				name,
			)
		)
			continue
		const stats = await fs.lstat(join(store, name)).catch(() => null)
		// The disk's clock on both sides; no snapshot runs for minutes.
		if (stats && Date.now() - stats.ctimeMs > 10 * 60_000)
			await fs.rm(join(store, name), { force: true, recursive: true })
	}
}

/** The nearest folder that holds a repository, whose ignore rules therefore count; the root itself when there is none. */
export async function topOf(root: string): Promise<string> {
	for (let at = root; ; at = dirname(at)) {
		if (await fs.lstat(join(at, '.git')).catch(() => null)) return at
		if (dirname(at) === at) return root
	}
}

/** The repository's own info/exclude, read as text; '' for what is no small file. A pipe in its place is never waited for. */
export async function ownExcludes(top: string): Promise<string> {
	try {
		const dir = join(top, '.git')
		if (!(await fs.lstat(dir)).isDirectory()) return ''
		const handle = await fs.open(join(dir, 'info', 'exclude'), constants.O_RDONLY | constants.O_NONBLOCK)
		try {
			const stats = await handle.stat()
			return stats.isFile() && stats.size < 65_536 ? await handle.readFile('utf8') : ''
		} finally {
			await handle.close()
		}
	} catch (error) {
		return codeOf(error) === 'ENOENT' ? '' : `# ${oneLine(messageOf(error), 100)}\n`
	}
}
