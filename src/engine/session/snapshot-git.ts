// The undo store: trees of the project in a git folder of Garuda's own. The user's repository is only read. Used by snapshots.ts.
import { randomBytes } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { join, relative } from 'node:path'
import { codeOf, messageOf, UserError } from '../errors.ts'
import { writeAtomic } from '../files/atomic.ts'
import type { Way } from '../files/open.ts'
import type { Clock } from '../ports.ts'
import type { Git } from '../sandbox/git.ts'
import { oneLine } from '../text.ts'
import { blobHash, type Change, type FileState, inFolder, isPlainPath, presentAt } from './snapshot-files.ts'
import { lookAt, NoSnapshot, readable } from './snapshot-look.ts'
import { ownExcludes, prepareStore, putFile, readObject, topOf } from './snapshot-store.ts'

export interface GitStoreOptions {
	root: string
	store: string
	git: Pick<Git, 'run'>
	budget: { bytes: number; ms: number }
	clock: Clock
	way: Way
}

const emptyBlob = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
/** From here on a snapshot writes a pack. */
const manyFiles = 32
/** Stands in the index for a repository inside the project, so that git looks into its folder instead of linking to it. */
const nestedMark = '.garuda-nested'
const idShape = /^g[0-9a-z]{8,10}-\d{1,7}-[0-9a-f]{6}$/
/** Of .garuda only what the project owns; never Garuda's own records. */
const ownShared = /^\.garuda\/(?:(?:settings|mcp|hooks)\.json|memory\.md|(?:commands|agents|skills)\/.+)$/

/** Time of a snapshot, from its name; 0 for a name that is none. */
export const timeOfId = (id: string): number =>
	idShape.test(id) ? Number.parseInt(id.slice(1, id.indexOf('-')), 36) : 0

export type GitStore = ReturnType<typeof createGitStore>

export function createGitStore(o: GitStoreOptions) {
	const refs = join(o.store, 'refs', 'garuda')
	const modesFile = join(o.store, 'modes.json')
	const extrasFile = join(o.store, 'extras.json')
	let ready: Promise<{ top: string; prefix: string }> | null = null
	/** Unusual permission bits by path, so that a private file does not come back public. */
	let modes = new Map<string, number>()
	/** The last snapshot: while the index is as it left it and nothing differs from that, its tree is the next one's too. */
	let last: { id: string; hash: string; mark: string } | null = null
	/** Ignored files that a tool was about to change: from then on they belong to every snapshot. */
	let extras = new Set<string>()

	async function run(
		args: string[],
		more: {
			cwd?: string
			workTree?: string
			index?: string
			input?: string
			config?: readonly [string, string][]
			signal?: AbortSignal
			maxBytes?: number
			timeoutMs?: number
		} = {},
		allowed: number[] = [0],
	) {
		const { cwd = o.store, timeoutMs = o.budget.ms, ...rest } = more
		if (rest.signal?.aborted) throw new Error('stopped')
		const result = await o.git.run(args, { cwd, gitDir: o.store, timeoutMs, ...rest })
		if (result.code === null || !allowed.includes(result.code))
			throw new Error(
				`git ${args[0]}: ${oneLine(result.stderr.trim().split('\n').at(-1) ?? '', 300) || `code ${result.code}`}`,
			)
		return result
	}

	/** The store, and where the ignore rules come from. */
	async function prepare(): Promise<{ top: string; prefix: string }> {
		await prepareStore(o.store)
		modes = new Map(
			Object.entries(await readObject(modesFile)).filter(
				(entry): entry is [string, number] => typeof entry[1] === 'number',
			),
		)
		extras = new Set(Object.keys(await readObject(extrasFile)))
		const top = await topOf(o.root)
		await putFile(o.store, 'info/exclude', `/.garuda/sessions/\n${await ownExcludes(top)}`)
		let prefix = relative(top, o.root)
		if (prefix !== '') {
			// A home folder kept in git often ignores everything: then its rules are not meant for this project.
			const { code } = await run(
				['check-ignore', '-q', '--no-index', '--', prefix],
				{ cwd: top, workTree: top },
				[0, 1],
			)
			if (code === 0) return { top: o.root, prefix: '' }
		}
		if (!isPlainPath(prefix)) prefix = ''
		return { top: prefix === '' ? o.root : top, prefix: prefix === '' ? '' : `${prefix}/` }
	}
	const start = () => {
		ready ??= prepare()
		ready.catch(() => {
			ready = null
		})
		return ready
	}

	/**
	 * Works on a second name of the index and puts it back at the end: another process, or a lock left by a killed one,
	 * is never in the way, and the index (a cache of what was seen) is whole at every moment.
	 */
	async function withIndex<T>(top: string, act: (index: string) => Promise<T>): Promise<T> {
		const shared = join(o.store, `index-${blobHash(Buffer.from(top)).slice(0, 8)}`)
		const mine = join(o.store, `index.${randomBytes(6).toString('hex')}`)
		await fs.link(shared, mine).catch((error) => (codeOf(error) === 'ENOENT' ? undefined : fs.copyFile(shared, mine)))
		try {
			const result = await act(mine).catch(async (error) => {
				// A broken index is only a cache: once more without it.
				if (!/\bindex file\b|bad signature|unknown index|index uses/i.test(messageOf(error))) throw error
				await fs.rm(mine, { force: true })
				await fs.rm(shared, { force: true })
				return act(mine)
			})
			await fs.rename(mine, shared).catch(() => {})
			return result
		} finally {
			await fs.rm(mine, { force: true })
			await fs.rm(`${mine}.lock`, { force: true })
		}
	}

	/** New and changed paths, relative to `top`. Looks into repositories inside the project. */
	async function listChanged(
		place: { top: string; prefix: string },
		index: string,
		signal: AbortSignal,
	): Promise<string[]> {
		const where = { cwd: place.top, workTree: place.top, index, signal }
		const spec = place.prefix === '' ? [] : ['--', `:(top,literal)${place.prefix.slice(0, -1)}`]
		for (let round = 0; ; round++) {
			const { stdout } = await run(['ls-files', '-z', '-o', '-m', '--exclude-standard', ...spec], where)
			const names = new Set(split(stdout))
			const nested = [...names].filter((name) => name.endsWith('/'))
			if (nested.length === 0 || round === 5)
				return [...names].filter((name) => !name.endsWith('/') && covered(name.slice(place.prefix.length)))
			await run(['hash-object', '-w', '--stdin'], { input: '', signal })
			await run(['update-index', '-z', '--index-info'], {
				...where,
				input: nested.map((name) => `100644 ${emptyBlob}\t${name}${nestedMark}\0`).join(''),
			})
		}
	}

	const covered = (path: string): boolean =>
		isPlainPath(path) &&
		!path.includes('\ufffd') &&
		(!path.startsWith('.garuda/') || ownShared.test(path)) &&
		!path.endsWith(`/${nestedMark}`) &&
		!path.endsWith('.garuda-tmp')

	/** The project as a tree, relative to its root, and the index that it is made of. */
	async function tree(signal: AbortSignal): Promise<{ hash: string; mark: string | null }> {
		const place = await start()
		return withIndex(place.top, async (index) => {
			const before = await markOf(index)
			let names = await listChanged(place, index, signal)
			if (names.length === 0 && extras.size === 0 && last && before !== null && last.mark === before) {
				// The mark once more, for a nested repository found just now changed the index.
				if ((await markOf(index)) === before && (await treeOf(last.id).catch(() => '')) === last.hash) return last
			}
			// Each time: another process may have put back an index that does not know them.
			names = [...new Set([...names, ...[...extras].map((extra) => place.prefix + extra)])]
			const seen = await lookAt({ ...place, names, limit: o.budget.bytes, modes, signal })
			if (seen.modesChanged) await writeAtomic(modesFile, JSON.stringify(Object.fromEntries([...modes].slice(-20_000))))
			const where = { cwd: place.top, workTree: place.top, index, signal }
			if (seen.gone.length > 0)
				await run(['update-index', '-z', '--index-info'], {
					...where,
					input: seen.gone.map((name) => `0 ${'0'.repeat(40)}\t${name}\0`).join(''),
				})
			if (seen.present.length > 0) {
				// Many files go into one pack: a hundred new folders of loose objects would take the time of the whole snapshot.
				const packed: [string, string][] = seen.present.length < manyFiles ? [] : [['core.bigFileThreshold', '1']]
				const add = (paths: string[], config: [string, string][] = []) =>
					run(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], {
						...where,
						config,
						input: `${paths.join('\0')}\0`,
					})
				// A file that cannot be read, or that is being written right now, stops git: once more without those.
				await add(seen.present, packed).catch(() =>
					signal.aborted
						? Promise.reject(new Error('stopped'))
						: add(seen.present.filter((name) => readable(join(place.top, name)))),
				)
			}
			const { code, stdout, stderr } = await run(
				['write-tree', ...(place.prefix === '' ? [] : [`--prefix=${place.prefix}`])],
				{ cwd: place.top, workTree: place.top, index, signal },
				[0, 128],
			)
			if (code === 0) return { hash: stdout.toString().trim(), mark: await markOf(index) }
			if (!/prefix .* not found/.test(stderr)) throw new Error(`git write-tree: ${oneLine(stderr, 200)}`)
			return { hash: (await run(['mktree'], { input: '' })).stdout.toString().trim(), mark: null }
		})
	}

	/** What an index file is, to know it again; null when there is none. */
	const markOf = (index: string): Promise<string | null> =>
		fs.stat(index).then(
			({ ino, size, mtimeMs }) => `${ino}:${size}:${mtimeMs}`,
			() => null,
		)

	/** Runs with the budget's time as the limit. */
	async function timed<T>(signal: AbortSignal, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
		const over = new AbortController()
		const done = new AbortController()
		void o.clock.sleep(o.budget.ms, done.signal).then(() => !done.signal.aborted && over.abort())
		try {
			return await act(AbortSignal.any([signal, over.signal]))
		} catch (error) {
			if (over.signal.aborted && !signal.aborted)
				throw new NoSnapshot(`it took longer than ${o.budget.ms / 1000} s`, true)
			throw error
		} finally {
			done.abort()
		}
	}

	const writeRef = async (id: string, treeHash: string): Promise<void> => {
		// By hand: one file, no lock that a crash could leave, no further process.
		const temp = join(o.store, `ref.${randomBytes(6).toString('hex')}`)
		await fs.writeFile(temp, `${treeHash}\n`, { mode: 0o600, flag: 'wx' })
		await fs.rename(temp, join(refs, id))
	}

	async function treeOf(id: string): Promise<string> {
		const text = idShape.test(id) ? await fs.readFile(join(refs, id), 'latin1').catch(() => '') : ''
		const hash = /^([0-9a-f]{40})\n$/.exec(text)?.[1]
		if (!hash)
			throw new UserError(
				'The snapshot of this turn is not in the undo store any more.',
				'Snapshots are kept for a limited time and size; the conversation alone can still be continued.',
			)
		return hash
	}

	async function compare(a: string, b: string): Promise<Change[]> {
		const { stdout } = await run(['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', a, b], {
			timeoutMs: 60_000,
			maxBytes: 256 << 20,
		})
		const fields = split(stdout)
		const changes: Change[] = []
		for (let i = 0; i + 1 < fields.length; i += 2) {
			const [from, to, fromHash, toHash] = fields[i]!.slice(1).split(' ')
			const path = fields[i + 1]!
			if (path.endsWith(`/${nestedMark}`)) continue
			const state = (mode: string | undefined, hash: string | undefined): FileState | null =>
				mode === '100644' || mode === '100755' || mode === '120000' ? { mode, hash: hash! } : null
			changes.push({ path, from: state(from, fromHash), to: state(to, toHash) })
		}
		return changes
	}

	return {
		owns: (id: string): boolean => idShape.test(id),

		/** Takes the state now; NoSnapshot or another error when it cannot. */
		async take(turn: number, signal: AbortSignal): Promise<string> {
			const id = `g${o.clock.now().toString(36).padStart(8, '0')}-${turn}-${randomBytes(3).toString('hex')}`
			const { hash, mark } = await timed(signal, tree)
			await writeRef(id, hash)
			last = mark === null ? null : { id, hash, mark }
			return id
		},

		async changes(id: string): Promise<string[]> {
			const before = await treeOf(id)
			const now = await timed(new AbortController().signal, tree)
			return (await compare(before, now.hash)).map((change) => change.path)
		},

		diff: async (from: string, to: string): Promise<Change[]> => compare(await treeOf(from), await treeOf(to)),

		/**
		 * A tool is about to change these paths of the turn that `id` began. What git's ignore rules leave out is put into
		 * that snapshot now, and into all later ones.
		 */
		async keep(id: string, paths: string[]): Promise<void> {
			const { top, prefix } = await start()
			const fresh = paths.filter((path) => !extras.has(path) && covered(path))
			if (fresh.length === 0) return
			const { stdout } = await run(
				['check-ignore', '-z', '--stdin'],
				{ cwd: top, workTree: top, input: `${fresh.map((path) => prefix + path).join('\0')}\0` },
				[0, 1],
			)
			const ignored = split(stdout).map((path) => path.slice(prefix.length))
			if (ignored.length === 0) return
			const lines: string[] = []
			for (const path of ignored) {
				const there = await presentAt(o.root, path, o.way)
				if (there.kind !== 'file' || there.stats.size > 64 << 20) continue
				const hash = await writeBlob(path, there.state.mode === '120000')
				lines.push(`${there.state.mode} ${hash}\t${path}\0`)
				modes.set(path, there.stats.mode & 0o777)
			}
			if (lines.length > 0) {
				const index = join(o.store, `index.${randomBytes(6).toString('hex')}`)
				try {
					await run(['read-tree', await treeOf(id)], { index })
					await run(['update-index', '-z', '--index-info'], { index, input: lines.join('') })
					await writeRef(id, (await run(['write-tree'], { index })).stdout.toString().trim())
				} finally {
					await fs.rm(index, { force: true })
					await fs.rm(`${index}.lock`, { force: true })
				}
			}
			for (const path of ignored) extras.add(path)
			await writeAtomic(
				extrasFile,
				JSON.stringify(Object.fromEntries([...extras].slice(-2000).map((path) => [path, 1]))),
			)
		},

		/** The bytes of blobs, in groups of at most about 64 MB. */
		async *contents(hashes: string[]): AsyncGenerator<Map<string, Buffer>> {
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
					yield await fetch(group, bytes)
					group = []
					bytes = 0
				}
				group.push(hash!)
				bytes += Number(size)
			}
			yield await fetch(group, bytes)
		},

		permissions: (path: string): number | undefined => modes.get(path),
		run,
		refs,
	}

	async function writeBlob(path: string, link: boolean): Promise<string> {
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

	async function fetch(hashes: string[], bytes: number): Promise<Map<string, Buffer>> {
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
}

const split = (bytes: Buffer): string[] =>
	bytes
		.toString('utf8')
		.split('\0')
		.filter((name) => name !== '')
