// Two trees of the undo store held against each other. Under snapshot-git.ts.
import { type Bits, bitsName, bitsOf } from './snapshot-bits.ts'
import type { Change, FileState } from './snapshot-files.ts'

type Run = (args: string[], more: { timeoutMs?: number; maxBytes?: number }) => Promise<{ stdout: Buffer }>

/** Stands in the index for a repository inside the project, so that git looks into its folder instead of linking to it. */
export const nestedMark = '.garuda-nested'

/** What differs between two trees: content, kind, permission bits. */
export async function compareTrees(
	{ run, readBits }: { run: Run; readBits(name: string): Promise<Bits> },
	a: string,
	b: string,
): Promise<Change[]> {
	if (a === b) return []
	const bits = [await readBits(`${a}:${bitsName}`), await readBits(`${b}:${bitsName}`)] as const
	const { stdout } = await run(['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', a, b], {
		timeoutMs: 60_000,
		maxBytes: 256 << 20,
	})
	const fields = split(stdout)
	const changes: Change[] = []
	for (let i = 0; i + 1 < fields.length; i += 2) {
		const [from, to, fromHash, toHash] = fields[i]!.slice(1).split(' ')
		const path = fields[i + 1]!
		if (path === bitsName || path.endsWith(`/${nestedMark}`)) continue
		changes.push({
			path,
			from: stateOf(from, fromHash, path, bits[0]),
			to: stateOf(to, toHash, path, bits[1]),
		})
	}
	// The same content with other bits.
	const known = new Set(changes.map(({ path }) => path))
	const paths = [...new Set(bits.flatMap(({ odd }) => [...odd.keys()]))].filter(
		(path) => !known.has(path) && bits[0].odd.get(path) !== bits[1].odd.get(path),
	)
	if (paths.length === 0) return changes
	const all = paths.length > 200
	const listed = await run(['ls-tree', '-z', ...(all ? ['-r'] : []), a, ...(all ? [] : ['--', ...paths])], {
		timeoutMs: 60_000,
		maxBytes: 256 << 20,
	})
	const wanted = new Set(paths)
	for (const line of split(listed.stdout)) {
		const [about = '', path = ''] = line.split('\t')
		const [mode, , hash] = about.split(' ')
		if (!wanted.has(path)) continue
		const [from, to] = [stateOf(mode, hash, path, bits[0]), stateOf(mode, hash, path, bits[1])]
		if (from?.bits !== to?.bits) changes.push({ path, from, to })
	}
	return changes
}

const stateOf = (mode: string | undefined, hash: string | undefined, path: string, known: Bits): FileState | null => {
	if (mode !== '100644' && mode !== '100755' && mode !== '120000') return null
	const bits = bitsOf(known, path, mode)
	return { mode, hash: hash!, ...(bits === undefined ? {} : { bits }) }
}

/** Names that end with a NUL each. */
export const split = (bytes: Buffer): string[] =>
	bytes
		.toString('utf8')
		.split('\0')
		.filter((name) => name !== '')
