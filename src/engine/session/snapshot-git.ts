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
import { type Bits, bitsName, bitsOf, copyBits, decodeBits, encodeBits, noBits, noteBits } from './snapshot-bits.ts'
import { blobContents, writeBlob } from './snapshot-blobs.ts'
import { compareTrees, nestedMark, split } from './snapshot-compare.ts'
import { blobHash, type Change, isPlainPath, presentAt } from './snapshot-files.ts'
import { madeAndIgnored } from './snapshot-ignored.ts'
import { lookAt, NoSnapshot, readable, rebitted } from './snapshot-look.ts'
import { pastPipes } from './snapshot-pipes.ts'
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
const brokenIndex = /\bindex file\b|bad signature|unknown index|index uses/i
const idShape = /^g[0-9a-z]{8,10}-\d{1,7}-[0-9a-f]{6}$/
/** Of .garuda only what the project owns; never Garuda's own records. */
const ownShared = /^\.garuda\/(?:(?:settings|mcp|hooks)\.json|memory\.md|(?:commands|agents|skills)\/.+)$/

/** Time of a snapshot, from its name; 0 for a name that is none. */
export const timeOfId = (id: string): number =>
	idShape.test(id) ? Number.parseInt(id.slice(1, id.indexOf('-')), 36) : 0

interface Place {
	top: string
	prefix: string
}

interface Taken {
	hash: string
	/** Of the index; null when the tree is not made of one. */
	mark: string | null
	left: string[]
}

export type GitStore = ReturnType<typeof createGitStore>

export function createGitStore(o: GitStoreOptions) {
	const refs = join(o.store, 'refs', 'garuda')
	const extrasFile = join(o.store, 'extras.json')
	let ready: Promise<Place> | null = null
	/** The permission bits that the index of that mark holds, and files whose next change git may not notice. */
	let seenBits: { mark: string; bits: Bits } | null = null
	const fresh = new Set<string>()
	/** Named pipes that git would wait at. */
	const pipes = new Set<string>()
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
		const start = () => o.git.run(args, { cwd, gitDir: o.store, timeoutMs, ...rest })
		const result = await (rest.workTree === undefined ? start() : pastPipes(rest.workTree, pipes, start))
		if (result.code === null || !allowed.includes(result.code))
			throw new Error(
				`git ${args[0]}: ${oneLine(result.stderr.trim().split('\n').at(-1) ?? '', 300) || `code ${result.code}`}`,
			)
		return result
	}

	/** The store, and where the ignore rules come from. */
	async function prepare(): Promise<Place> {
		await prepareStore(o.store)
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
		const shared = join(o.store, `index-${blobHash(Buffer.from(`bits ${top}`)).slice(0, 8)}`)
		const mine = join(o.store, `index.${randomBytes(6).toString('hex')}`)
		await fs.link(shared, mine).catch((error) => (codeOf(error) === 'ENOENT' ? undefined : fs.copyFile(shared, mine)))
		try {
			const result = await act(mine).catch(async (error) => {
				// A broken index is only a cache: once more without it.
				if (!brokenIndex.test(messageOf(error))) throw error
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

	/**
	 * Paths relative to `top`: new and changed ones; `touched` with the same content (their bits may be others); folders and
	 * files that are ignored, when asked for. Looks into repositories inside the project.
	 */
	async function listChanged(
		place: Place,
		index: string,
		signal: AbortSignal,
		ignored: boolean,
	): Promise<{ changed: string[]; touched: string[]; ignored: string[] }> {
		const where = { cwd: place.top, workTree: place.top, index, signal }
		const spec = place.prefix === '' ? [] : ['--', `:(top,literal)${place.prefix.slice(0, -1)}`]
		const list = async (...args: string[]) => split((await run([...args, '-z', ...spec], where)).stdout)
		const own = (names: Iterable<string>) =>
			[...names].filter((name) => !name.endsWith('/') && covered(name.slice(place.prefix.length)))
		for (let round = 0; ; round++) {
			const empty = (await markOf(index)) === null
			// Beside each other: each looks at every file once.
			const [found, touched, hidden] = await Promise.all([
				list('ls-files', '-o', '-m', '--exclude-standard'),
				empty ? [] : list('diff-files', '--name-only'),
				ignored ? list('ls-files', '-o', '-i', '--exclude-standard', '--directory') : [],
			])
			const names = new Set(found)
			const nested = [...names].filter((name) => name.endsWith('/'))
			if (nested.length === 0 || round === 5)
				return { changed: own(names), touched: own(touched).filter((name) => !names.has(name)), ignored: hidden }
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

	/** The bits that an index holds, to be changed. */
	async function bitsIn(place: Place, index: string, mark: string | null): Promise<Bits> {
		if (mark === null) return noBits()
		if (seenBits?.mark === mark) return copyBits(seenBits.bits)
		fresh.clear()
		return readBits(`:${place.prefix}${bitsName}`, { workTree: place.top, index })
	}

	async function readBits(name: string, more: { workTree?: string; index?: string } = {}): Promise<Bits> {
		const { code, stdout, stderr } = await run(
			['cat-file', 'blob', name],
			{ ...more, maxBytes: 256 << 20, timeoutMs: 60_000 },
			[0, 128],
		)
		if (code !== 0 && brokenIndex.test(stderr)) throw new Error(oneLine(stderr, 200))
		return decodeBits(code === 0 ? stdout.toString() : '')
	}

	/** An index's line for bits, and their bytes in the store; one that removes it where there is nothing to say. */
	async function bitsLine(bits: Bits, prefix: string, signal?: AbortSignal): Promise<string> {
		const text = encodeBits(bits)
		if (text === null) return `0 ${'0'.repeat(40)}\t${prefix}${bitsName}\0`
		const { stdout } = await run(['hash-object', '-w', '--stdin'], { input: text, ...(signal ? { signal } : {}) })
		return `100644 ${stdout.toString().trim()}\t${prefix}${bitsName}\0`
	}

	/**
	 * The project as a tree, relative to its root, and the index that it is made of. `from`: the snapshot of the turn's start;
	 * then `left` names what the turn made and put under ignore, and what no undo takes away.
	 */
	async function tree(signal: AbortSignal, from: string | null = null): Promise<Taken> {
		const place = await start()
		return withIndex(place.top, async (index) => {
			const before = await markOf(index)
			const found = await listChanged(place, index, signal, from !== null)
			const bits = await bitsIn(place, index, before)
			const own = (name: string) => name.slice(place.prefix.length)
			const rebits = rebitted(
				place.top,
				fresh,
				(name, execute) => bitsOf(bits, own(name), execute ? '100755' : '100644')!,
			)
			const made =
				from === null || found.ignored.length === 0
					? { files: [], left: [] }
					: await madeAndIgnored(
							{
								...place,
								run,
								store: o.store,
								index,
								tree: await treeOf(from),
								since: timeOfId(from),
								rulesChanged: found.changed.some((name) => /(?:^|\/)\.gitignore$/.test(name)),
								covered,
								maxBytes: Math.min(32 << 20, o.budget.bytes / 4),
								signal,
							},
							found.ignored,
						)
			const weighed = new Set([...found.changed, ...made.files])
			let names = [...new Set([...weighed, ...found.touched, ...rebits])]
			if (names.length === 0 && extras.size === 0 && last && before !== null && last.mark === before) {
				// The mark once more, for a nested repository found just now changed the index.
				if ((await markOf(index)) === before && (await treeOf(last.id).catch(() => '')) === last.hash)
					return { ...last, left: made.left }
			}
			// Each time: another process may have put back an index that does not know them.
			const kept = [...extras].map((extra) => place.prefix + extra)
			for (const name of kept) weighed.add(name)
			names = [...new Set([...names, ...kept])]
			const seen = await lookAt({ ...place, names, weighed, limit: o.budget.bytes, signal })
			for (const name of seen.fresh) fresh.add(name)
			const old = encodeBits(bits)
			noteBits(bits, seen.bits)
			for (const name of seen.gone) bits.odd.delete(own(name))
			const where = { cwd: place.top, workTree: place.top, index, signal }
			const lines = seen.gone.map((name) => `0 ${'0'.repeat(40)}\t${name}\0`)
			if (encodeBits(bits) !== old) lines.push(await bitsLine(bits, place.prefix, signal))
			if (lines.length > 0) await run(['update-index', '-z', '--index-info'], { ...where, input: lines.join('') })
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
			if (code === 0) {
				const mark = await markOf(index)
				seenBits = mark === null ? null : { mark, bits }
				return { hash: stdout.toString().trim(), mark, left: made.left }
			}
			if (!/prefix .* not found/.test(stderr)) throw new Error(`git write-tree: ${oneLine(stderr, 200)}`)
			return { hash: (await run(['mktree'], { input: '' })).stdout.toString().trim(), mark: null, left: made.left }
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

	const leftFolder = async (): Promise<string> => {
		const folder = join(o.store, 'left')
		await fs.mkdir(folder, { recursive: true, mode: 0o700 })
		return folder
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

	const compare = (a: string, b: string) => compareTrees({ run, readBits }, a, b)

	return {
		owns: (id: string): boolean => idShape.test(id),

		/** Takes the state now; NoSnapshot or another error when it cannot. `from`: this turn's start. */
		async take(turn: number, signal: AbortSignal, from: string | null = null): Promise<{ id: string; left: string[] }> {
			const id = `g${o.clock.now().toString(36).padStart(8, '0')}-${turn}-${randomBytes(3).toString('hex')}`
			const { hash, mark, left } = await timed(signal, (stop) => tree(stop, from))
			await writeRef(id, hash)
			last = mark === null ? null : { id, hash, mark }
			if (left.length > 0) await writeAtomic(join(await leftFolder(), id), JSON.stringify(left.slice(0, 200)))
			return { id, left }
		},

		/** What that snapshot, of a turn's end, could not take in and undo leaves. */
		async left(id: string): Promise<string[]> {
			if (!idShape.test(id)) return []
			const list: unknown = await fs.readFile(join(o.store, 'left', id), 'utf8').then(JSON.parse, () => [])
			return Array.isArray(list) ? list.filter((path) => typeof path === 'string') : []
		},

		async changes(id: string): Promise<string[]> {
			const before = await treeOf(id)
			const now = await timed(new AbortController().signal, (stop) => tree(stop))
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
			const startTree = await treeOf(id)
			const bits = await readBits(`${startTree}:${bitsName}`)
			for (const path of ignored) {
				const there = await presentAt(o.root, path, o.way)
				if (there.kind !== 'file' || there.stats.size > 64 << 20) continue
				const hash = await writeBlob(o, path, there.state.mode === '120000')
				lines.push(`${there.state.mode} ${hash}\t${path}\0`)
				if (there.state.bits !== undefined) noteBits(bits, [[path, there.state.bits]])
			}
			if (lines.length > 0) {
				lines.push(await bitsLine(bits, ''))
				const index = join(o.store, `index.${randomBytes(6).toString('hex')}`)
				try {
					await run(['read-tree', startTree], { index })
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

		contents: (hashes: string[]) => blobContents(run, hashes),
		run,
		refs,
	}
}
