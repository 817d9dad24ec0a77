// The second places for the heads of a chain: a checkpoint file, a folder, a git ref. Written at a turn's end, read by verify.
import { constants, promises as fs } from 'node:fs'
import { basename, join, resolve, sep } from 'node:path'
import type { AuditSettings, WitnessSpec } from '../config/settings.ts'
import { codeOf, messageOf } from '../errors.ts'
import type { Git } from '../sandbox/git.ts'
import { type Head, headText, openPlain, rawLines, readHead } from './chain.ts'

export type { WitnessSpec } from '../config/settings.ts'

export const defaultRef = 'refs/garuda/witness'
const checkpointName = 'garuda-audit-heads.jsonl'
const headsSuffix = '.heads.jsonl'

/** A place that heads go to. `put` throws with words for a person. */
export interface Witness {
	/** As a message names it. */
	name: string
	put(head: Head): Promise<void>
	close(): Promise<void>
}

/** The settings' paths made absolute. */
export function auditPlaces(
	settings: AuditSettings,
	home: string,
): { checkpoint: string | undefined; witnesses: WitnessSpec[] } {
	const whole = (path: string) => resolve(path.startsWith('~/') ? join(home, path.slice(2)) : path)
	return {
		checkpoint: settings.checkpoint === undefined ? undefined : whole(settings.checkpoint),
		witnesses: settings.witness.map((one) =>
			'git' in one ? { git: whole(one.git), ...(one.ref ? { ref: one.ref } : {}) } : { folder: whole(one.folder) },
		),
	}
}

export const witnessName = (spec: WitnessSpec): string =>
	'git' in spec ? `${spec.git} (${spec.ref ?? defaultRef})` : spec.folder

/** Places that the agent itself can write to witness nothing; each is named. Real paths decide. */
export async function placesInside(
	root: string,
	checkpoint: string | undefined,
	witnesses: readonly WitnessSpec[],
): Promise<string[]> {
	const real = (path: string) => fs.realpath(path).catch(() => path)
	const top = await real(root)
	const places = [...(checkpoint ? [checkpoint] : []), ...witnesses.map((one) => ('git' in one ? one.git : one.folder))]
	const inside: string[] = []
	for (const place of places) {
		const path = await real(place)
		if (path === top || path.startsWith(top.endsWith(sep) ? top : top + sep)) inside.push(place)
	}
	return inside
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants

/** One line at the end, flushed to the disk. The folder must be there: an unmounted disk is no witness. */
async function appendHead(path: string, head: Head): Promise<void> {
	const handle = await fs.open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
	try {
		if (!(await handle.stat()).isFile()) throw new Error('no regular file')
		const bytes = Buffer.from(`${headText(head)}\n`)
		const { bytesWritten } = await handle.write(bytes)
		if (bytesWritten !== bytes.length) throw new Error('the disk took a part of the line only')
		await handle.sync()
	} finally {
		await handle.close()
	}
}

const isFolder = async (path: string): Promise<boolean> =>
	(await fs.stat(path).catch(() => null))?.isDirectory() ?? false

/** The file that a checkpoint means: itself, or a file of a fixed name in the folder it names. */
export const checkpointFile = async (path: string): Promise<string> =>
	(await isFolder(path)) ? join(path, checkpointName) : path

export const checkpointWitness = (path: string): Witness => ({
	name: path,
	put: async (head) => appendHead(await checkpointFile(path), head),
	close: async () => {},
})

export function witness(spec: WitnessSpec, git: () => Promise<Git>): Witness {
	const close = async () => {}
	if ('folder' in spec)
		return {
			name: witnessName(spec),
			close,
			put: (head) => appendHead(join(spec.folder, `${head.session}${headsSuffix}`), head),
		}
	return { name: witnessName(spec), close, put: (head) => commitHead(spec, head, git) }
}

// ---------------------------------------------------------------- git

type GitSpec = Extract<WitnessSpec, { git: string }>

/** The folder to run in and, for a bare repository, the one to name: git takes none by discovery. */
async function repository(path: string, git: Git): Promise<{ cwd: string; gitDir?: string }> {
	if (!(await isFolder(path))) throw new Error('there is no such folder')
	const entry = await fs.lstat(join(path, '.git')).catch(() => null)
	const at = entry ? { cwd: path } : { cwd: path, gitDir: path }
	// With a `.git` that is none, git would go on looking in the folders above.
	const found = await git.run(['rev-parse', entry ? '--show-toplevel' : '--absolute-git-dir'], at)
	const said = found.stdout.toString('utf8').replace(/\n$/, '')
	if (found.code !== 0 || (await fs.realpath(said).catch(() => '')) !== (await fs.realpath(path)))
		throw new Error(
			`it is no git repository that Garuda may use${found.stderr ? ` (${found.stderr.trim().slice(0, 200)})` : ''}`,
		)
	return at
}

/** A commit with an empty tree on the ref; no hook runs, no file and no branch changes. */
async function commitHead(spec: GitSpec, head: Head, makeGit: () => Promise<Git>): Promise<void> {
	const git = await makeGit()
	const at = await repository(spec.git, git)
	const ref = spec.ref ?? defaultRef
	const run = async (args: string[], input?: string): Promise<string | null> => {
		const { code, stdout, stderr } = await git.run(args, { ...at, ...(input === undefined ? {} : { input }) })
		if (code === 0) return stdout.toString('utf8').trim()
		if (args[0] === 'update-ref' || args[0] === 'rev-parse') return null
		throw new Error(stderr.trim().slice(0, 200) || `git ${args[0]} failed`)
	}
	const tree = await run(['mktree'], '')
	for (let attempt = 0; attempt < 8; attempt++) {
		const old = await run(['rev-parse', '--verify', '--quiet', `${ref}^{commit}`])
		const message = `garuda audit: ${head.session} ${head.lines}\n\n${headText(head)}\n`
		const commit = await run(['commit-tree', ...(old ? ['-p', old] : []), '-F', '-', tree!], message)
		// The old value is part of the update: a session beside this one may have been faster.
		const zero = '0'.repeat(commit!.length)
		if ((await run(['update-ref', '-m', 'garuda audit', ref, commit!, old || zero])) !== null) return
	}
	throw new Error(`${ref} could not be moved`)
}

// ---------------------------------------------------------------- reading

export interface WitnessedHeads {
	name: string
	kind: 'checkpoint' | 'witness'
	heads: Head[]
	/** Lines that are no heads: a write that was cut off, or somebody's. Their neighbours still count. */
	damaged: number
	/** Why it could not be read: nothing was checked against it. */
	failure?: string
}

async function readHeads(path: string): Promise<{ heads: Head[]; damaged: number }> {
	const handle = await openPlain(path)
	try {
		const heads: Head[] = []
		let damaged = 0
		for await (const raw of rawLines(handle)) {
			const head = readHead(raw.bytes.toString('utf8'))
			if (head) heads.push(head)
			else if (raw.bytes.length > 0) damaged++
		}
		return { heads, damaged }
	} finally {
		await handle.close()
	}
}

const words = (error: unknown): string =>
	codeOf(error) === 'ENOENT' ? 'it is not there' : (codeOf(error) ?? messageOf(error))

export async function readCheckpoint(path: string): Promise<WitnessedHeads> {
	const base = { name: path, kind: 'checkpoint' as const }
	try {
		return { ...base, ...(await readHeads(await checkpointFile(path))) }
	} catch (error) {
		return { ...base, heads: [], damaged: 0, failure: words(error) }
	}
}

export async function readWitness(spec: WitnessSpec, git: () => Promise<Git>): Promise<WitnessedHeads> {
	const base = { name: witnessName(spec), kind: 'witness' as const }
	try {
		return { ...base, ...('git' in spec ? await readRef(spec, await git()) : await readFolder(spec.folder)) }
	} catch (error) {
		return { ...base, heads: [], damaged: 0, failure: words(error) }
	}
}

async function readFolder(folder: string): Promise<{ heads: Head[]; damaged: number }> {
	const all = { heads: [] as Head[], damaged: 0 }
	for (const name of (await fs.readdir(folder)).sort()) {
		if (!name.endsWith(headsSuffix) && name !== checkpointName) continue
		const one = await readHeads(join(folder, name))
		const id = basename(name, headsSuffix)
		all.damaged += one.damaged
		for (const head of one.heads)
			if (name === checkpointName || head.session === id) all.heads.push(head)
			else all.damaged++
	}
	return all
}

async function readRef(spec: GitSpec, git: Git): Promise<{ heads: Head[]; damaged: number }> {
	const at = await repository(spec.git, git)
	const ref = spec.ref ?? defaultRef
	const { code, stdout, stderr } = await git.run(['rev-list', '--reverse', '--format=%x00%B%x00', ref, '--'], at)
	if (code !== 0) throw new Error(stderr.trim().slice(0, 200) || `${ref} could not be read`)
	const messages = stdout
		.toString('utf8')
		.split('\0')
		.filter((_, index) => index % 2 === 1)
	const heads: Head[] = []
	for (const message of messages) {
		const head = readHead(message.split('\n')[2] ?? '')
		if (head) heads.push(head)
	}
	return { heads, damaged: messages.length - heads.length }
}

/** What `--witness` means: a repository (`PATH#refs/garuda/NAME` or with the usual ref), else a folder. */
export async function witnessOf(text: string, cwd: string): Promise<WitnessSpec> {
	const match = /^(.*)#(refs\/.+)$/s.exec(text)
	const path = resolve(cwd, match?.[1] ?? text)
	if (match) return { git: path, ref: match[2]! }
	const has = async (name: string) => (await fs.lstat(join(path, name)).catch(() => null)) !== null
	const bare = (await has('HEAD')) && (await has('objects')) && (await has('refs'))
	return bare || (await has('.git')) ? { git: path } : { folder: path }
}
