// Files that a turn made and put under ignore itself: by the rules of its start they are covered. Under snapshot-git.ts.
import { randomBytes } from 'node:crypto'
import { promises as fs, lstatSync, type Stats } from 'node:fs'
import { dirname, join } from 'node:path'
import { smallFile } from '../sandbox/paths.ts'
import { split } from './snapshot-compare.ts'

export interface IgnoredOptions {
	run(
		args: string[],
		more: {
			cwd?: string
			workTree?: string
			index?: string
			input?: string
			signal?: AbortSignal
			maxBytes?: number
		},
		allowed?: number[],
	): Promise<{ stdout: Buffer }>
	store: string
	/** The repository's folder, the root's way in it, and the index of the present snapshot. */
	top: string
	prefix: string
	index: string
	/** The tree of the turn's start, its time, and whether a .gitignore differs from it. */
	tree: string
	since: number
	rulesChanged: boolean
	covered(path: string): boolean
	maxBytes: number
	signal: AbortSignal
}

const maxFiles = 1000

/**
 * `files` (relative to `top`) belong into the snapshot of the turn's end. `left` (relative to the root) are too many or too
 * large for it, or it is not certain that the turn made them: undo leaves them, and says so.
 */
export async function madeAndIgnored(
	o: IgnoredOptions,
	items: readonly string[],
): Promise<{ files: string[]; left: string[] }> {
	const none: { files: string[]; left: string[] } = { files: [], left: [] }
	const inRoot = items.filter((item) => o.covered(bare(item).slice(o.prefix.length)))
	// A disk that knows no time of birth gives the last change for it.
	const home = look(join(o.top, o.prefix))
	const certain = home !== undefined && home.birthtimeMs > 0 && home.birthtimeMs !== home.ctimeMs
	if (!certain && !o.rulesChanged) return none
	const born = (name: string): boolean => {
		const stats = look(join(o.top, name))
		return stats !== undefined && (certain ? stats.birthtimeMs : stats.ctimeMs) >= o.since
	}
	const wanted = inRoot.filter((item) => born(bare(item)) || (o.rulesChanged && item.endsWith('/')))
	if (wanted.length === 0) return none
	const rules = join(o.store, `rules.${randomBytes(6).toString('hex')}`)
	try {
		const found: typeof none = { files: [], left: [] }
		let bytes = 0
		for (const item of await notIgnored(o, rules, wanted)) {
			let files = [item]
			let whole = true
			if (item.endsWith('/')) {
				const { stdout } = await o.run(['ls-files', '-o', '-z', '--', `:(top,literal)${bare(item)}`], {
					cwd: o.top,
					workTree: o.top,
					index: o.index,
					signal: o.signal,
					maxBytes: 256 << 20,
				})
				const old = born(bare(item)) ? () => false : (name: string) => !born(name)
				const inside = split(stdout).filter((name) => !old(name))
				files = inside.filter((name) => !name.endsWith('/') && o.covered(name.slice(o.prefix.length)))
				whole = files.length === inside.length
				if (files.length + found.files.length > maxFiles) {
					found.left.push(item)
					continue
				}
				files = await notIgnored(o, rules, files)
			}
			const size = files.reduce((sum, name) => sum + (look(join(o.top, name))?.size ?? 0), 0)
			if (!certain || files.length + found.files.length > maxFiles || bytes + size > o.maxBytes) {
				if (files.length > 0) found.left.push(item)
				continue
			}
			if (!whole) found.left.push(item)
			bytes += size
			found.files.push(...files)
		}
		return { files: found.files, left: found.left.map((name) => name.slice(o.prefix.length)) }
	} finally {
		await fs.rm(rules, { recursive: true, force: true })
	}
}

/** Those that the rules of the turn's start do not ignore: git judges them in a folder that holds those rules and nothing else. */
async function notIgnored(o: IgnoredOptions, rules: string, names: readonly string[]): Promise<string[]> {
	if (names.length === 0) return []
	await fs.mkdir(rules, { recursive: true, mode: 0o700 })
	const folders = new Set<string>([''])
	for (const name of names)
		for (let at = dirname(bare(name)); at !== '.'; at = dirname(at)) {
			if (folders.has(`${at}/`)) break
			folders.add(`${at}/`)
		}
	for (const folder of folders) {
		// Above the root nothing is in a snapshot, and no turn writes there.
		if (folder.startsWith(o.prefix)) continue
		const text = smallFile(join(o.top, folder, '.gitignore'), 1 << 20)
		if (text !== undefined) await put(rules, `${folder}.gitignore`, Buffer.from(text))
	}
	const inside = [...folders].filter((folder) => folder.startsWith(o.prefix))
	for (let i = 0; i < inside.length; i += 200) {
		const paths = inside.slice(i, i + 200).map((folder) => `${folder.slice(o.prefix.length)}.gitignore`)
		const { stdout } = await o.run(['ls-tree', '-z', o.tree, '--', ...paths], { signal: o.signal })
		for (const line of split(stdout)) {
			const [about = '', path = ''] = line.split('\t')
			const [mode, type, hash] = about.split(' ')
			if (type !== 'blob' || mode === '120000' || !hash) continue
			const blob = await o.run(['cat-file', 'blob', hash], { signal: o.signal })
			await put(rules, o.prefix + path, blob.stdout)
		}
	}
	const { stdout } = await o.run(
		['check-ignore', '--no-index', '-z', '--stdin'],
		{ cwd: rules, workTree: rules, input: `${names.join('\0')}\0`, signal: o.signal },
		[0, 1],
	)
	const ignored = new Set(split(stdout))
	return names.filter((name) => !ignored.has(name))
}

async function put(rules: string, name: string, bytes: Buffer): Promise<void> {
	await fs.mkdir(join(rules, dirname(name)), { recursive: true, mode: 0o700 })
	await fs.writeFile(join(rules, name), bytes, { mode: 0o600 })
}

const bare = (name: string): string => name.replace(/\/$/, '')

const look = (path: string): Stats | undefined => {
	try {
		return lstatSync(path, { throwIfNoEntry: false })
	} catch {
		return undefined
	}
}
