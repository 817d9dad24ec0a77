// git never waits at a named pipe: one in the place of a file that git reads is opened and closed for it. Under snapshot-git.ts.
import { constants, promises as fs } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '../errors.ts'

const { O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants
const O_PATH = 0o10000000
/** Milliseconds that git gets alone: without a pipe in its way it is nearly always done by then. */
const aloneMs = 150
const everyMs = 5
const maxPipes = 2000
/** Files that git opens wherever it meets them. All that lies in a nested repository's folder counts too. */
const readByGit = new Set(['.gitignore', '.gitattributes', '.gitmodules', '.mailmap'])

/**
 * Runs git over `top`. When it takes long, named pipes that it may be waiting at are looked for (`known` keeps them for
 * the next run), and each gets a writer that closes at once: git reads an empty file and goes on. A pipe that nobody
 * has open for reading is not touched by that.
 */
export async function pastPipes<T>(top: string, known: Set<string>, git: () => Promise<T>): Promise<T> {
	const done = new AbortController()
	const helping = help(top, known, done.signal).catch(() => {})
	try {
		return await git()
	} finally {
		done.abort()
		await helping
	}
}

async function help(top: string, known: Set<string>, signal: AbortSignal): Promise<void> {
	if (known.size === 0) await sleep(aloneMs, undefined, { signal })
	void findPipes(top, known, signal).catch(() => {})
	while (!signal.aborted) {
		for (const path of known) if (!(await letPass(path))) known.delete(path)
		await sleep(everyMs, undefined, { signal })
	}
}

/** False when there is no pipe (any more). */
async function letPass(path: string): Promise<boolean> {
	const stats = await fs.lstat(path).catch(() => null)
	if (!stats?.isFIFO()) return false
	try {
		// Without a reader this fails at once (ENXIO); with one that waits to open, both go on.
		await (await fs.open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW)).close()
	} catch (error) {
		// A pipe that may be read but not written holds up git all the same. Through a handle: no link is followed.
		if (codeOf(error) === 'EACCES')
			await fs
				.open(path, O_PATH | O_NOFOLLOW)
				.then(async (handle) => {
					try {
						if ((await handle.stat()).isFIFO())
							await fs.chmod(`/proc/self/fd/${handle.fd}`, (stats.mode & 0o7777) | 0o200)
					} finally {
						await handle.close()
					}
				})
				.catch(() => {})
	}
	return true
}

/** Every pipe below `top` that git may open; installed packages come last. */
async function findPipes(top: string, known: Set<string>, signal: AbortSignal): Promise<void> {
	const queues: { path: string; inGit: boolean }[][] = [[{ path: top, inGit: false }], []]
	for (;;) {
		const next = queues[0]!.shift() ?? queues[1]!.shift()
		if (!next || signal.aborted || known.size >= maxPipes) return
		for (const entry of await fs.readdir(next.path, { withFileTypes: true }).catch(() => [])) {
			const path = join(next.path, entry.name)
			if (entry.isFIFO()) {
				if (next.inGit || readByGit.has(entry.name)) known.add(path)
			} else if (entry.isDirectory()) {
				const inGit = next.inGit || entry.name === '.git'
				// The project's own repository is not looked into by the undo store's git.
				if (inGit && (next.path === top || entry.name === 'objects')) continue
				queues[entry.name === 'node_modules' ? 1 : 0]!.push({ path, inGit })
			}
		}
	}
}
