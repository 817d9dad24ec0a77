// Bytes in and out of the undo store's git folder. Under snapshot-git.ts.
import { promises as fs } from 'node:fs'
import { UserError } from '../errors.ts'
import type { Way } from '../files/open.ts'
import type { Git } from '../sandbox/git.ts'
import { oneLine } from '../text.ts'
import { blobHash, inFolder } from './snapshot-files.ts'

type Run = (
	args: string[],
	more: { input?: string; timeoutMs?: number; maxBytes?: number },
) => Promise<{ stdout: Buffer }>

/** The bytes of blobs, in groups of at most about 64 MB. UserError when one is missing or damaged. */
export async function* blobContents(run: Run, hashes: string[]): AsyncGenerator<Map<string, Buffer>> {
	if (hashes.length === 0) return
	const { stdout } = await run(['cat-file', '--batch-check=%(objectname) %(objecttype) %(objectsize)'], {
		input: `${hashes.join('\n')}\n`,
		timeoutMs: 60_000,
	})
	const sizes = stdout
		.toString()
		.trim()
		.split('\n')
		.map((line) => line.split(' '))
	let group: string[] = []
	let bytes = 0
	for (const [hash, type, size] of sizes) {
		if (type !== 'blob')
			throw new UserError('A file of the snapshot is missing in the undo store; nothing more was restored.')
		if (group.length > 0 && bytes + Number(size) > 64 << 20) {
			yield await fetch(run, group, bytes)
			group = []
			bytes = 0
		}
		group.push(hash!)
		bytes += Number(size)
	}
	yield await fetch(run, group, bytes)
}

async function fetch(run: Run, hashes: string[], bytes: number): Promise<Map<string, Buffer>> {
	const { stdout } = await run(['cat-file', '--batch'], {
		input: `${hashes.join('\n')}\n`,
		timeoutMs: 120_000,
		maxBytes: bytes + hashes.length * 128 + 1024,
	})
	const found = new Map<string, Buffer>()
	let at = 0
	for (const hash of hashes) {
		const end = stdout.indexOf(10, at)
		const size = Number(stdout.toString('latin1', at, end).split(' ')[2])
		const content = stdout.subarray(end + 1, end + 1 + size)
		if (blobHash(content) !== hash)
			throw new UserError('A file of the snapshot is damaged in the undo store; nothing more was restored.')
		found.set(hash, content)
		at = end + 1 + size + 1
	}
	return found
}

/** Puts a file (or a link's target) into the store as it is; its hash. */
export async function writeBlob(
	o: { root: string; store: string; git: Pick<Git, 'run'>; way: Way },
	path: string,
	link: boolean,
): Promise<string> {
	const bytes = await inFolder(o.root, path, o.way, false, async (folder, name) =>
		link ? fs.readlink(folder.at(name), { encoding: 'buffer' }) : fs.readFile(folder.at(name)),
	)
	const result = await o.git.run(['hash-object', '-w', '--no-filters', '--stdin'], {
		cwd: o.store,
		gitDir: o.store,
		input: bytes,
	})
	if (result.code !== 0) throw new Error(`git hash-object: ${oneLine(result.stderr, 200)}`)
	return result.stdout.toString().trim()
}
