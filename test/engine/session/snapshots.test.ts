import { execFileSync, spawnSync } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { createGit } from '../../../src/engine/sandbox/git.ts'
import { cleanFolders, clock, folder, git, never, snapshotsOf, thrown } from './help.ts'

interface Project {
	root: string
	store: string
	write(files: Record<string, string | null>): Promise<void>
	/** Every file and link of the root but repositories' own, with its content. */
	all(): Promise<Record<string, string>>
}

const project = async (files: Record<string, string> = {}, inside = 'project'): Promise<Project> => {
	const base = await folder('garuda-undo-')
	const root = join(base, inside)
	await fs.mkdir(root, { recursive: true })
	const write = async (changes: Record<string, string | null>) => {
		for (const [path, text] of Object.entries(changes)) {
			await fs.mkdir(dirname(join(root, path)), { recursive: true })
			if (text === null) await fs.rm(join(root, path), { recursive: true })
			else await fs.writeFile(join(root, path), text)
		}
	}
	await write(files)
	const all = async () => {
		const found: Record<string, string> = {}
		const walk = async (dir: string) => {
			for (const entry of await fs.readdir(join(root, dir), { withFileTypes: true })) {
				const path = dir === '' ? entry.name : `${dir}/${entry.name}`
				if (entry.name === '.git') continue
				if (entry.isDirectory()) await walk(path)
				else if (entry.isSymbolicLink()) found[path] = `-> ${await fs.readlink(join(root, path))}`
				else if (entry.isFile()) found[path] = await fs.readFile(join(root, path), 'latin1')
			}
		}
		await walk('')
		return found
	}
	return { root, store: join(base, 'home', 'snapshots', 'x'), write, all }
}

const g = (cwd: string, ...args: string[]) =>
	execFileSync('git', ['-c', 'user.name=u', '-c', 'user.email=u@u', ...args], {
		cwd,
		encoding: 'utf8',
		stdio: ['ignore', 'pipe', 'pipe'],
	})

/** A turn: a snapshot, what happens, a snapshot. */
const turnOf = async (p: Project, act: () => Promise<unknown>, snaps = snapshotsOf(p.root, p.store), number = 1) => {
	const from = await snaps.take(number, never)
	await act()
	const to = await snaps.take(number, never)
	return { snaps, from: from.id!, to: to.id!, notes: [from.note, to.note] }
}

describe('session: snapshots', () => {
	afterEach(cleanFolders)

	it('undo and redo bring back edits, new files, deletions, links, the execute right and bytes as they were', async () => {
		const p = await project({
			'a.txt': 'one\r\ntwo\n',
			'dir/b.bin': 'b',
			'dir/deep/c': 'gone',
			run: '#!',
			empty: '',
			'no newline': 'x',
			'ünï \n name': '1',
		})
		await fs.writeFile(join(p.root, 'dir/b.bin'), Buffer.from([0, 255, 13, 10, 128]))
		await fs.symlink('a.txt', join(p.root, 'link'))
		await fs.writeFile(join(p.root, '.gitattributes'), '* text=auto eol=crlf ident\n')
		const before = await p.all()
		const { snaps, from, to } = await turnOf(p, async () => {
			await p.write({
				'a.txt': 'changed\n',
				'dir/deep/c': null,
				'new/sub/file': 'n',
				empty: 'full',
				'ünï \n name': '2',
			})
			await fs.writeFile(join(p.root, 'dir/b.bin'), Buffer.from([1, 13, 10]))
			await fs.chmod(join(p.root, 'run'), 0o755)
			await fs.unlink(join(p.root, 'link'))
			await fs.symlink('dir', join(p.root, 'link'))
			await fs.rm(join(p.root, 'dir/deep'), { recursive: true })
		})
		const after = await p.all()
		const undone = await snaps.restore(from, to)
		expect(undone.conflicts).to.deep.equal([])
		expect(undone.restored).to.have.members([
			'a.txt',
			'dir/b.bin',
			'dir/deep/c',
			'empty',
			'link',
			'new/sub/file',
			'run',
			'ünï \n name',
		])
		expect(await p.all()).to.deep.equal(before)
		expect((await fs.stat(join(p.root, 'run'))).mode & 0o111).to.equal(0)
		expect(await fs.readdir(p.root), 'folders that the turn made are gone').to.not.include('new')
		expect(await snaps.changes(from)).to.deep.equal([])
		await snaps.restore(to, from)
		expect(await p.all()).to.deep.equal(after)
		expect((await fs.stat(join(p.root, 'run'))).mode & 0o111).to.not.equal(0)
		await snaps.close()
	})

	it('a file in the place of a folder, a link in the place of a folder, and back', async () => {
		const p = await project({ 'a/x': '1', 'a/y/z': '2', b: 'file', 'c/d': '3' })
		const before = await p.all()
		const { snaps, from, to } = await turnOf(p, async () => {
			await p.write({ a: null, b: null, c: null })
			await p.write({ a: 'now a file', 'b/in/b': 'now a folder' })
			await fs.symlink('/etc', join(p.root, 'c'))
		})
		const after = await p.all()
		expect((await snaps.restore(from, to)).conflicts).to.deep.equal([])
		expect(await p.all()).to.deep.equal(before)
		expect((await snaps.restore(to, from)).conflicts).to.deep.equal([])
		expect(await p.all()).to.deep.equal(after)
		await fs.writeFile(join(p.root, 'b/in/mine'), 'user')
		expect(await snaps.restore(from, to)).to.deep.equal({ restored: [], conflicts: ['b/in/mine'] })
		expect(await p.all()).to.deep.equal({ ...after, 'b/in/mine': 'user' })
	})

	it('keeps permission bits: of a file that is there, and of a private one that the turn deleted', async () => {
		const p = await project({ secret: 's', other: 'o' })
		await fs.chmod(join(p.root, 'secret'), 0o600)
		await fs.chmod(join(p.root, 'other'), 0o640)
		const { snaps, from, to } = await turnOf(p, () => p.write({ secret: null, other: 'changed' }))
		await snaps.restore(from, to)
		expect((await fs.stat(join(p.root, 'secret'))).mode & 0o777).to.equal(0o600)
		expect((await fs.stat(join(p.root, 'other'))).mode & 0o777).to.equal(0o640)
	})

	it('N01 a store left by a killed process (index.lock, half files) is never waited for', async () => {
		const p = await project({ a: '1' })
		await (await turnOf(p, () => p.write({ a: '2' }))).snaps.close()
		const names = await fs.readdir(p.store)
		const index = names.find((name) => name.startsWith('index-'))!
		for (const name of [
			'index.lock',
			`${index}.lock`,
			'index.0123456789ab',
			'index.0123456789ab.lock',
			'ref.0123456789ab',
			'HEAD.lock',
			'packed-refs.lock',
			'config.lock',
		])
			await fs.writeFile(join(p.store, name), '')
		const before = performance.now()
		const { snaps, from, to, notes } = await turnOf(p, () => p.write({ a: '3' }), undefined, 2)
		expect(performance.now() - before).to.be.lessThan(3000)
		expect(notes).to.deep.equal([undefined, undefined])
		await snaps.restore(from, to)
		expect(await p.all()).to.deep.equal({ a: '2' })
	})

	it('a turn that changed nothing takes two git processes beside each other and the tree of before; whatever makes that doubtful takes the long way', async () => {
		const p = await project({ a: '1', 'd/b': '2' })
		const started: string[] = []
		const counted = {
			available: git.available,
			run: (args: string[], options: Parameters<typeof git.run>[1]) => {
				started.push(args[0]!)
				return git.run(args, options)
			},
		}
		const snaps = snapshotsOf(p.root, p.store, { git: counted })
		const treeOf = (id: string) => fs.readFile(join(p.store, 'refs/garuda', id), 'utf8')
		let turn = 0
		const take = async (): Promise<{ tree: string; id: string }> => {
			started.length = 0
			const { id } = await snaps.take(++turn, never)
			return { tree: await treeOf(id!), id: id! }
		}
		const first = await take()
		const same = await take()
		expect([same.tree, started]).to.deep.equal([first.tree, ['ls-files', 'diff-files']])
		await p.write({ a: '3' })
		const changed = await take()
		expect(changed.tree).to.not.equal(first.tree)
		await p.write({ a: '1' })
		expect((await take()).tree).to.equal(first.tree)
		// Another process put back its own view of the index meanwhile: nothing differs from that, yet the tree is another.
		await p.write({ a: 'other' })
		await (await turnOf(p, async () => {}, undefined, 9)).snaps.close()
		const other = await take()
		expect(other.tree).to.not.equal(first.tree)
		expect(started).to.include('write-tree')
		expect((await take()).tree).to.equal(other.tree)
		expect(started).to.deep.equal(['ls-files', 'diff-files'])
		// The snapshot it would lean on is gone: what nothing names may be gone too.
		const last = await take()
		await fs.rm(join(p.store, 'refs/garuda', last.id))
		expect((await take()).tree).to.equal(other.tree)
		expect(started).to.include('write-tree')
		// A new file of the same second, an ignored one that a tool is about to change.
		await p.write({ 'd/c': 'new' })
		expect((await take()).tree).to.not.equal(other.tree)
		await p.write({ '.gitignore': 'e\n', e: 'kept' })
		const { id } = await take()
		await snaps.keep([join(p.root, 'e')])
		await p.write({ e: 'edited' })
		const { id: to } = await take()
		expect((await snaps.restore(id, to)).restored).to.deep.equal(['e'])
		expect((await p.all()).e).to.equal('kept')
		await snaps.close()
	})

	it('many files go into one pack, a few do not; both come back, also when one changes its length meanwhile', async () => {
		const files = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`d${i % 7}/f${i}`, `${i}\n`.repeat(i)]))
		const p = await project(files)
		const packs = async () =>
			(await fs.readdir(join(p.store, 'objects/pack'))).filter((name) => name.endsWith('.pack')).length
		const snaps = snapshotsOf(p.root, p.store)
		const from = (await snaps.take(1, never)).id!
		expect(await packs()).to.equal(1)
		await p.write({ ...Object.fromEntries(Object.keys(files).map((name) => [name, null])), new: '1' })
		const to = (await snaps.take(1, never)).id!
		expect(await packs()).to.equal(1)
		await snaps.restore(from, to)
		expect(await p.all()).to.deep.equal(files)
		await p.write(Object.fromEntries(Object.keys(files).map((name, i) => [name, `changed ${i}`])))
		const grows = setInterval(() => void fs.appendFile(join(p.root, 'd0/f0'), 'x'.repeat(99)).catch(() => {}), 1)
		const cuts = setInterval(() => void fs.truncate(join(p.root, 'd1/f1'), 1).catch(() => {}), 1)
		const { id, note } = await snaps.take(2, never)
		clearInterval(grows)
		clearInterval(cuts)
		expect([typeof id, note]).to.deep.equal(['string', undefined])
		await snaps.close()
	})

	it('N01 a broken index is made anew at once', async () => {
		const p = await project({ a: '1' })
		for (const text of ['garbage', '', 'DIRC\0\0\0\x02\0\0\0\x01']) {
			await (await turnOf(p, () => p.write({ a: '2' }))).snaps.close()
			const index = (await fs.readdir(p.store)).find((name) => name.startsWith('index-'))!
			await fs.writeFile(join(p.store, index), text)
			const { snaps, from, to, notes } = await turnOf(p, () => p.write({ a: '3' }), undefined, 2)
			expect(notes).to.deep.equal([undefined, undefined])
			expect((await snaps.restore(from, to)).restored).to.deep.equal(['a'])
		}
	})

	it('N01 a store that cannot be used is told once and stops no turn; edits can still be undone', async () => {
		const p = await project({ a: '1' })
		await (await turnOf(p, () => p.write({ a: '2' }))).snaps.close()
		await fs.rm(join(p.store, 'objects'), { recursive: true })
		await fs.writeFile(join(p.store, 'HEAD'), 'rubbish')
		await fs.chmod(p.store, 0o700)
		const failing = {
			available: git.available,
			run: async () => ({
				code: 128,
				stdout: Buffer.alloc(0),
				stderr: 'fatal: Unable to create index.lock: File exists.',
			}),
		}
		const snaps = snapshotsOf(p.root, p.store, { git: failing })
		const from = await snaps.take(2, never)
		expect(from.note).to.match(/only what the edit tools change.*Unable to create/)
		await snaps.keep([join(p.root, 'a')])
		await p.write({ a: '3' })
		const to = await snaps.take(2, never)
		await snaps.restore(from.id!, to.id!)
		expect(await p.all()).to.deep.equal({ a: '2' })
		expect((await snaps.take(3, never)).note).to.equal(undefined)
	})

	it('N01 killed with -9 in the middle of snapshots: the next start takes its own at once, and undo works', async () => {
		const p = await project(Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`f${i}`, `${i}\n`.repeat(200)])))
		const helper = pathToFileURL(fileURLToPath(new URL('./help.ts', import.meta.url))).href
		const code = `import * as h from ${JSON.stringify(helper)}
import { writeFileSync } from 'node:fs'
const snaps = h.snapshotsOf(${JSON.stringify(p.root)}, ${JSON.stringify(p.store)})
setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(process.env.KILL_AFTER))
for (let i = 1; ; i++) { writeFileSync(${JSON.stringify(join(p.root, 'f1'))}, String(i)); await snaps.take(i, h.never) }`
		for (const after of ['5', '25', '60', '150']) {
			const run = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
				cwd: fileURLToPath(new URL('../../..', import.meta.url)),
				env: { ...process.env, KILL_AFTER: after },
			})
			expect(run.signal).to.equal('SIGKILL')
			const { snaps, from, to, notes } = await turnOf(p, () => p.write({ f2: after, new: 'n' }))
			expect(notes).to.deep.equal([undefined, undefined])
			expect((await snaps.restore(from, to)).restored).to.deep.equal(['f2', 'new'])
		}
	}).timeout(30_000)

	it('N01 an undo that was killed half way goes on where it stopped', async () => {
		const p = await project({ a: '1', b: '1', c: '1' })
		const { snaps, from, to } = await turnOf(p, () => p.write({ a: '2', b: '2', c: null, new: 'n' }))
		// As a kill leaves it: some paths done, a temporary file of the next.
		await p.write({ a: '1', new: null, '.b.0123456789ab.garuda-tmp': 'half' })
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['b', 'c'])
		expect(await p.all()).to.deep.equal({ a: '1', b: '1', c: '1', '.b.0123456789ab.garuda-tmp': 'half' })
		expect(await snaps.changes(from), "the left-over is nobody's change").to.deep.equal([])
	})

	it('N01 two agents of one project at once take snapshots side by side', async () => {
		const p = await project({ a: '1', b: '1' })
		const two = [snapshotsOf(p.root, p.store), snapshotsOf(p.root, p.store)]
		const taken = await Promise.all(
			two.flatMap((snaps, i) => [1, 2, 3].map((number) => snaps.take(number + i * 10, never))),
		)
		for (const each of taken) expect(each.note).to.equal(undefined)
		await p.write({ a: '2' })
		const to = await two[1]!.take(13, never)
		await two[1]!.restore(taken[5]!.id!, to.id!)
		expect(await p.all()).to.deep.equal({ a: '1', b: '1' })
	})

	it('N03 a file that the user changed since is a conflict: named, and nothing at all is restored', async () => {
		const p = await project({ a: '1', b: '1', c: '1', d: '1' })
		const { snaps, from, to } = await turnOf(p, () => p.write({ a: '2', b: '2', c: null, new: 'n' }))
		for (const [change, conflicts] of [
			[{ b: 'user' }, ['b']],
			[{ b: '2', c: 'made again' }, ['c']],
			[{ c: null, new: 'more' }, ['new']],
			[{ new: 'n', a: 'x', b: 'y' }, ['a', 'b']],
		] as [Record<string, string | null>, string[]][]) {
			await p.write(change)
			const before = await p.all()
			expect(await snaps.restore(from, to)).to.deep.equal({ restored: [], conflicts })
			expect(await p.all()).to.deep.equal(before)
		}
		await p.write({ a: '2', b: '2' })
		await fs.chmod(join(p.root, 'a'), 0o755)
		expect((await snaps.restore(from, to)).conflicts).to.deep.equal(['a'])
		await fs.chmod(join(p.root, 'a'), 0o644)
		await p.write({ d: 'the user, elsewhere', b: '1', other: 'user' })
		expect(await snaps.restore(from, to), 'what already is as before counts as done').to.deep.equal({
			restored: ['a', 'c', 'new'],
			conflicts: [],
		})
		expect(await p.all()).to.deep.equal({ a: '1', b: '1', c: '1', d: 'the user, elsewhere', other: 'user' })
	})

	it('N03 started in one package of a repository, undo knows nothing of the others, and the ignore rules above count', async () => {
		const p = await project({ 'src/a': '1' }, 'mono/packages/a')
		const mono = join(p.root, '../..')
		g(mono, 'init', '-q')
		await fs.writeFile(join(mono, '.gitignore'), 'node_modules/\n')
		await fs.mkdir(join(mono, 'packages/b'))
		await fs.writeFile(join(mono, 'packages/b/b'), '1')
		await p.write({ 'node_modules/big': 'x' })
		const { snaps, from, to } = await turnOf(p, async () => {
			await p.write({ 'src/a': '2', 'node_modules/big': 'y', 'src/new': 'n' })
			await fs.writeFile(join(mono, 'packages/b/b'), 'by hand')
		})
		expect(await snaps.restore(from, to)).to.deep.equal({ restored: ['src/a', 'src/new'], conflicts: [] })
		expect(await fs.readFile(join(mono, 'packages/b/b'), 'utf8')).to.equal('by hand')
		expect(await p.all()).to.deep.equal({ 'src/a': '1', 'node_modules/big': 'y' })
	})

	it('N03 a home folder in git that ignores everything does not hide the project from undo', async () => {
		const p = await project({ a: '1' }, 'home/work/project')
		const home = join(p.root, '../..')
		g(home, 'init', '-q')
		await fs.writeFile(join(home, '.gitignore'), '*\n')
		const { snaps, from, to } = await turnOf(p, () => p.write({ a: '2' }))
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['a'])
	})

	it('N06 a repository or worktree inside the project is never a link in a snapshot; its files can be undone, its .git is left alone', async () => {
		const p = await project({ a: '1', 'nested/keep': 'k', 'nested/sub/x': '1' })
		g(p.root, 'init', '-q')
		g(join(p.root, 'nested'), 'init', '-q')
		await p.write({ 'nested/inner/y': '1', 'nested/.gitignore': 'ignored\n', 'nested/ignored': '1' })
		g(join(p.root, 'nested/inner'), 'init', '-q')
		g(p.root, 'add', 'a')
		g(p.root, 'commit', '-qm', 'x')
		g(p.root, 'worktree', 'add', '-q', 'tree')
		const heads = await fs.readFile(join(p.root, 'nested/.git/HEAD'), 'utf8')
		const { snaps, from, to } = await turnOf(p, async () => {
			await p.write({
				'nested/keep': 'changed',
				'nested/inner/y': '2',
				'nested/new': 'n',
				'tree/a': '2',
				'nested/ignored': '2',
			})
			await fs.mkdir(join(p.root, 'cloned'))
			g(join(p.root, 'cloned'), 'init', '-q')
			await p.write({ 'cloned/file': 'c' })
		})
		for (const id of [from, to]) {
			const hash = (await fs.readFile(join(p.store, 'refs/garuda', id), 'utf8')).trim()
			const listed = execFileSync('git', ['--git-dir', p.store, 'ls-tree', '-r', hash], { encoding: 'utf8' })
			expect(listed)
				.to.match(/nested\/inner\/y/)
				.and.not.match(/^160000|\.git\//m)
		}
		expect((await snaps.restore(from, to)).restored).to.have.members([
			'nested/keep',
			'nested/inner/y',
			'nested/new',
			'tree/a',
			'cloned/file',
		])
		expect(await p.all()).to.deep.equal({
			a: '1',
			'nested/keep': 'k',
			'nested/sub/x': '1',
			'nested/inner/y': '1',
			'nested/.gitignore': 'ignored\n',
			'nested/ignored': '2',
			'tree/a': '1',
		})
		expect(await fs.readFile(join(p.root, 'nested/.git/HEAD'), 'utf8')).to.equal(heads)
		expect(await fs.readdir(join(p.root, 'cloned'))).to.deep.equal(['.git'])
	})

	it('N07 hooks, signing, filters and a missing identity of the repository play no part', async () => {
		const p = await project({ 'a.txt': '1' })
		g(p.root, 'init', '-q')
		const trap = join(dirname(p.root), 'ran')
		for (const hook of ['pre-commit', 'post-index-change', 'reference-transaction']) {
			await fs.writeFile(join(p.root, '.git/hooks', hook), `#!/bin/sh\necho ${hook} >> ${trap}\nexit 1\n`, {
				mode: 0o755,
			})
		}
		for (const [key, value] of [
			['commit.gpgsign', 'true'],
			['gpg.program', `sh -c 'touch ${trap}'`],
			['core.hooksPath', '.git/hooks'],
			['core.fsmonitor', `touch ${trap}`],
			['filter.evil.clean', `touch ${trap}; cat`],
			['filter.evil.smudge', `touch ${trap}; cat`],
			['filter.evil.required', 'true'],
		])
			g(p.root, 'config', key!, value!)
		await p.write({ '.gitattributes': '* filter=evil diff=evil\n' })
		const { snaps, from, to, notes } = await turnOf(p, () => p.write({ 'a.txt': '2', 'b.txt': 'b' }))
		expect(notes).to.deep.equal([undefined, undefined])
		await snaps.restore(from, to)
		expect(await p.all()).to.deep.equal({ 'a.txt': '1', '.gitattributes': '* filter=evil diff=evil\n' })
		expect(
			await fs.access(trap).then(
				() => true,
				() => false,
			),
		).to.equal(false)
	})

	for (const [name, prepare] of [
		['no repository', async () => {}],
		['a repository with no commit', async (root: string) => g(root, 'init', '-q')],
		[
			'a detached HEAD',
			async (root: string) => {
				g(root, 'init', '-q')
				g(root, 'commit', '-q', '--allow-empty', '-m', 'x')
				g(root, 'checkout', '-q', '--detach')
			},
		],
		['a bare repository', async (root: string) => g(root, 'init', '-q', '--bare')],
		['a .git that is rubbish', async (root: string) => fs.writeFile(join(root, '.git'), 'gitdir: ../../.ssh\n')],
		[
			'a repository of another owner',
			async (root: string) => {
				g(root, 'init', '-q')
				if (process.getuid?.() === 0) await fs.chown(join(root, '.git'), 65534, 65534)
			},
		],
	] as [string, (root: string) => Promise<unknown>][])
		it(`N08 undo works in ${name}`, async () => {
			const p = await project({ a: '1' })
			await prepare(p.root)
			const { snaps, from, to, notes } = await turnOf(p, () => p.write({ a: '2', b: '1' }))
			expect(notes).to.deep.equal([undefined, undefined])
			expect((await snaps.restore(from, to)).restored).to.include.members(['a', 'b'])
			expect((await p.all()).a).to.equal('1')
		})

	it('N08 GIT_DIR and GIT_INDEX_FILE of the environment mean nothing', async () => {
		const p = await project({ a: '1' })
		const poisoned = createGit({
			env: { ...process.env, GIT_DIR: '/nowhere', GIT_INDEX_FILE: join(p.root, 'a'), GIT_WORK_TREE: '/' },
		})
		const { snaps, from, to } = await turnOf(
			p,
			() => p.write({ a: '2' }),
			snapshotsOf(p.root, p.store, { git: poisoned }),
		)
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['a'])
	})

	for (const [name, missing] of [
		['git is not given', null],
		['git is not installed', createGit({ git: '/nowhere/git', env: {} })],
	] as const)
		it(`N08 when ${name}, what the edit tools change can be undone, and that is said once`, async () => {
			const p = await project({ a: '1', b: '1', 'dir/c': 'old' })
			const snaps = snapshotsOf(p.root, p.store, { git: missing })
			const from = await snaps.take(1, never)
			expect(from.note).to.match(/only what the edit tools change.*no usable git/)
			await fs.chmod(join(p.root, 'dir/c'), 0o600)
			await snaps.keep([
				join(p.root, 'a'),
				join(p.root, 'new/file'),
				'dir/c',
				'/etc/passwd',
				join(p.root, '../outside'),
			])
			await p.write({ a: '2', 'new/file': 'n', b: 'by a command', 'dir/c': null })
			const to = await snaps.take(1, never)
			expect(to.note).to.equal(undefined)
			expect(await snaps.changes(from.id!)).to.have.members(['a', 'new/file', 'dir/c'])
			expect(await snaps.restore(from.id!, to.id!)).to.deep.equal({
				restored: ['a', 'dir/c', 'new/file'],
				conflicts: [],
			})
			expect(await p.all()).to.deep.equal({ a: '1', b: 'by a command', 'dir/c': 'old' })
			expect((await fs.stat(join(p.root, 'dir/c'))).mode & 0o777).to.equal(0o600)
			await snaps.restore(to.id!, from.id!)
			expect((await p.all()).a).to.equal('2')
			await p.write({ a: 'user' })
			expect((await snaps.restore(from.id!, to.id!)).conflicts).to.deep.equal(['a'])
			expect((await snaps.take(2, never)).note, 'said once').to.equal(undefined)
		})

	it("N09 snapshots never take a lock in, or write to, the user's repository", async () => {
		const p = await project({ a: '1' })
		g(p.root, 'init', '-q')
		g(p.root, 'add', '-A')
		g(p.root, 'commit', '-qm', 'x')
		const index = async () => {
			const stat = await fs.stat(join(p.root, '.git/index'))
			return [stat.ino, stat.mtimeMs, await fs.readFile(join(p.root, '.git/index'), 'hex')]
		}
		const before = await index()
		const snaps = snapshotsOf(p.root, p.store)
		await fs.utimes(join(p.root, 'a'), new Date(), new Date(5000))
		await snaps.take(1, never)
		expect(await index()).to.deep.equal(before)
		// A lock of the user's own is in nobody's way.
		await fs.writeFile(join(p.root, '.git/index.lock'), '')
		expect((await snaps.take(1, never)).note).to.equal(undefined)
		await fs.unlink(join(p.root, '.git/index.lock'))
		let stop = false
		const polling = (async () => {
			let runs = 0
			for (let i = 2; !stop; i++, runs++) {
				await snaps.take(i, never)
				await git.run(['status', '--porcelain'], { cwd: p.root })
			}
			return runs
		})()
		for (let i = 0; i < 15; i++) {
			await p.write({ a: `${i}` })
			g(p.root, 'commit', '-qam', `c${i}`)
			await clock.sleep(5)
		}
		stop = true
		expect(await polling).to.be.greaterThan(2)
		expect(g(p.root, 'rev-list', '--count', 'HEAD').trim()).to.equal('16')
		expect(g(p.root, 'for-each-ref')).to.not.include('garuda')
	})

	it('session-05 ignored files that commands made are left alone, and tracked ones stay undoable', async () => {
		const p = await project({ '.gitignore': 'build/\n*.log\n', 'src/a': '1', 'build/old': 'o' })
		const { snaps, from, to } = await turnOf(p, () =>
			p.write({ 'build/new': 'n', 'build/old': 'changed', 'x.log': 'l', 'src/a': '2', 'src/b': 'n' }),
		)
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['src/a', 'src/b'])
		expect(await p.all()).to.deep.equal({
			'.gitignore': 'build/\n*.log\n',
			'src/a': '1',
			'build/old': 'changed',
			'build/new': 'n',
			'x.log': 'l',
		})
	})

	it('session-05 an ignored file that an edit tool changes or makes is undone; the next to it is not', async () => {
		const p = await project({ '.gitignore': '*.local\n', 'a.local': '1', 'b.local': '1' })
		const snaps = snapshotsOf(p.root, p.store)
		const act = async () => {
			await snaps.keep([join(p.root, 'a.local'), join(p.root, 'new.local'), join(p.root, '.gitignore')])
			await p.write({ 'a.local': '2', 'b.local': '2', 'new.local': 'n' })
		}
		const { from, to } = await turnOf(p, act, snaps)
		const second = await turnOf(p, () => p.write({ 'a.local': '3' }), snapshotsOf(p.root, p.store), 2)
		expect(
			(await second.snaps.restore(second.from, second.to)).restored,
			'from now on, in every session',
		).to.deep.equal(['a.local'])
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['a.local', 'new.local'])
		expect(await p.all()).to.deep.equal({ '.gitignore': '*.local\n', 'a.local': '1', 'b.local': '2' })
	})

	it('session-05 a parent folder swapped for a link does not let undo write or delete outside', async () => {
		const p = await project({ 'dir/a': '1', 'dir/gone': 'g' })
		const outside = join(dirname(p.root), 'outside')
		const { snaps, from, to } = await turnOf(p, () => p.write({ 'dir/a': '2', 'dir/new': 'n', 'dir/gone': null }))
		// The same content outside: only the way there is wrong.
		await fs.rename(join(p.root, 'dir'), outside)
		await fs.symlink(outside, join(p.root, 'dir'))
		const before = Object.fromEntries(
			await Promise.all(
				(await fs.readdir(outside)).map(async (name) => [name, await fs.readFile(join(outside, name), 'utf8')]),
			),
		)
		expect(await snaps.restore(from, to)).to.deep.equal({ restored: [], conflicts: ['dir'] })
		expect(
			Object.fromEntries(
				await Promise.all(
					(await fs.readdir(outside)).map(async (name) => [name, await fs.readFile(join(outside, name), 'utf8')]),
				),
			),
		).to.deep.equal(before)
		expect(before).to.deep.equal({ a: '2', new: 'n' })
	})

	it('session-05 a file swapped for a link to one outside with the same words is not followed', async () => {
		const p = await project({ a: '1' })
		const outside = join(dirname(p.root), 'outside')
		await fs.writeFile(outside, '2')
		const { snaps, from, to } = await turnOf(p, () => p.write({ a: '2' }))
		await p.write({ a: null })
		await fs.symlink(outside, join(p.root, 'a'))
		expect((await snaps.restore(from, to)).conflicts).to.deep.equal(['a'])
		expect(await fs.readFile(outside, 'utf8')).to.equal('2')
		// A second name of a file outside is replaced, not written through.
		await fs.unlink(join(p.root, 'a'))
		await fs.link(outside, join(p.root, 'a'))
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['a'])
		expect(await fs.readFile(outside, 'utf8')).to.equal('2')
	})

	it("session-05 .git and Garuda's own records are never in a snapshot; settings and memory are", async () => {
		const p = await project({
			'.garuda/sessions/x.jsonl': 's',
			'.garuda/memory.md': 'm',
			'.garuda/settings.json': '{}',
			'.garuda/commands/a.md': 'c',
			'.garuda/cache/y': 'y',
			a: '1',
		})
		g(p.root, 'init', '-q')
		await p.write({ '.gitignore': '!.garuda/sessions/**\n' })
		const { snaps, from, to } = await turnOf(p, async () => {
			await p.write({
				'.garuda/sessions/x.jsonl': 'more',
				'.garuda/memory.md': 'm2',
				'.garuda/cache/y': 'z',
				'.garuda/settings.json': null,
			})
			g(p.root, 'add', '-A')
		})
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['.garuda/memory.md', '.garuda/settings.json'])
		expect((await p.all())['.garuda/sessions/x.jsonl']).to.equal('more')
		const hash = (await fs.readFile(join(p.store, 'refs/garuda', from), 'utf8')).trim()
		expect(
			execFileSync('git', ['--git-dir', p.store, 'ls-tree', '-r', '--name-only', hash], { encoding: 'utf8' })
				.trim()
				.split('\n'),
		).to.deep.equal(['.garuda/commands/a.md', '.garuda/memory.md', '.garuda/settings.json', '.gitignore', 'a'])
	})

	it('over the budget of bytes the largest files are named, edits stay undoable, and the next turn is tried again', async () => {
		const p = await project({ a: '1' })
		const snaps = snapshotsOf(p.root, p.store, { budget: { bytes: 20_000_000, ms: 10_000 } })
		await fs.writeFile(join(p.root, 'huge.bin'), Buffer.alloc(21_000_000))
		const from = await snaps.take(1, never)
		expect(from.note).to.match(/huge\.bin \(21 MB\)/)
		await snaps.keep([join(p.root, 'a')])
		await p.write({ a: '2' })
		const to = await snaps.take(1, never)
		expect((await snaps.restore(from.id!, to.id!)).restored).to.deep.equal(['a'])
		await fs.unlink(join(p.root, 'huge.bin'))
		const next = await turnOf(p, () => p.write({ a: '3' }), snaps, 2)
		expect(next.notes).to.deep.equal([undefined, undefined])
		await snaps.restore(next.from, next.to)
		expect((await p.all()).a).to.equal('1')
	})

	it('over the budget of time it says so and is not tried again; an abort ends it at once', async () => {
		const p = await project({ a: '1' })
		const slow = {
			available: git.available,
			run: (args: string[], o: Parameters<typeof git.run>[1]) =>
				new Promise<never>((_, no) => {
					calls.push(args[0]!)
					o.signal?.addEventListener('abort', () => no(new Error('aborted')))
				}),
		}
		const calls: string[] = []
		const snaps = snapshotsOf(p.root, p.store, { git: slow, budget: { bytes: 1e9, ms: 50 } })
		expect((await snaps.take(1, never)).note).to.match(/longer than 0.05 s/)
		const count = calls.length
		expect(await snaps.take(2, never).then(({ id }) => id?.[0])).to.equal('c')
		expect(calls).to.have.length(count)
		const stop = new AbortController()
		setTimeout(() => stop.abort(), 20)
		const before = performance.now()
		expect((await snapshotsOf(p.root, p.store, { git: slow }).take(1, stop.signal)).id).to.equal(null)
		expect(performance.now() - before).to.be.lessThan(2000)
	})

	it('unreadable and vanishing files do not stop a snapshot; FIFOs and names that are no UTF-8 are left out', async () => {
		const p = await project({ a: '1' })
		execFileSync('mkfifo', [join(p.root, 'fifo')])
		await fs.writeFile(Buffer.concat([Buffer.from(`${p.root}/bad`), Buffer.from([0xff])]), 'x')
		await p.write({ closed: 'c' })
		await fs.chmod(join(p.root, 'closed'), 0)
		const { snaps, from, to, notes } = await turnOf(p, () => p.write({ a: '2' }))
		expect(notes).to.deep.equal([undefined, undefined])
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['a'])
		await fs.chmod(join(p.root, 'closed'), 0o600)
	})

	it("a snapshot that is gone, or no snapshot's name, is refused with words", async () => {
		const p = await project({ a: '1' })
		const { snaps, from, to } = await turnOf(p, () => p.write({ a: '2' }))
		await fs.unlink(join(p.store, 'refs/garuda', from))
		expect((await thrown(snaps.restore(from, to))).message).to.match(/not in the undo store any more/)
		for (const id of ['', '../../x', 'HEAD', '--help', 'gaaaaaaaa-1-../../a'])
			expect((await thrown(snaps.restore(id, to))).message, id).to.match(/cannot be compared or restored/)
		expect((await thrown(snaps.restore('c00000000-1-000000', to))).message).to.match(/one kind/)
		expect(await p.all()).to.deep.equal({ a: '2' })
	})

	it('the store is private, and a link in its place is refused', async () => {
		const p = await project({ a: '1' })
		const { snaps } = await turnOf(p, () => p.write({ a: '2' }))
		await snaps.close()
		expect((await fs.stat(p.store)).mode & 0o777).to.equal(0o700)
		await fs.rename(p.store, `${p.store}2`)
		await fs.symlink(`${p.store}2`, p.store)
		const before = await fs.readdir(join(`${p.store}2`, 'refs/garuda'))
		const taken = await snapshotsOf(p.root, p.store).take(1, never)
		expect(taken.id).to.equal(null)
		expect(taken.note).to.match(/Undo is off.*no folder/)
		expect(await fs.readdir(join(`${p.store}2`, 'refs/garuda'))).to.deep.equal(before)
	})

	it('old snapshots go after their days, the newest stay, and it happens once a day', async () => {
		const p = await project({ a: '1' })
		let now = Date.now() - 40 * 86_400_000
		const old = { ...clock, now: () => now }
		for (let i = 1; i <= 3; i++, now += 86_400_000) {
			await p.write({ a: `${i}` })
			const snaps = snapshotsOf(p.root, p.store, { clock: old, keep: { days: 30, bytes: 5e9 } })
			await snaps.take(i, never)
			await snaps.close()
		}
		const refs = () => fs.readdir(join(p.store, 'refs/garuda'))
		expect(await refs()).to.have.length(3)
		now = Date.now()
		const snaps = snapshotsOf(p.root, p.store, { clock: old })
		await snaps.take(4, never)
		for (let i = 0; i < 100 && (await refs()).length > 2; i++) await clock.sleep(20)
		await snaps.close()
		expect((await refs()).map((name) => name.split('-')[1]).sort()).to.deep.equal(['3', '4'])
	})

	it('is fast on a small repository', async () => {
		const files = Object.fromEntries(
			Array.from({ length: 400 }, (_, i) => [`src/${i % 20}/file${i}.ts`, `export const a${i} = ${i}\n`.repeat(40)]),
		)
		const p = await project(files)
		g(p.root, 'init', '-q')
		const snaps = snapshotsOf(p.root, p.store)
		const times: number[] = []
		for (let i = 1; i <= 8; i++) {
			if (i % 2 === 0) await p.write({ 'src/1/file1.ts': `changed ${i}` })
			const before = performance.now()
			await snaps.take(i, never)
			times.push(performance.now() - before)
		}
		console.log(
			`        400 files: first ${times[0]!.toFixed(0)} ms, then ${times
				.slice(1)
				.map((ms) => ms.toFixed(0))
				.join(' ')} ms`,
		)
		expect(Math.min(...times.slice(1))).to.be.lessThan(1000)
		await snaps.close()
	})
})
