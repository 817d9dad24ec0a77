// The guarded way to the disk: what a path means, what is refused, and that nothing is followed that was not decided on.
import { execFileSync } from 'node:child_process'
import { promises as fs, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { createFiles, sha256 } from '../../../src/engine/files/guard.ts'
import { foldName, protectedReason, secretName, sensitiveReason } from '../../../src/engine/files/sensitive.ts'
import { skip } from '../../helpers/skip.ts'
import { type Scene, scene } from '../tools/scene.ts'

const refused = async (work: Promise<unknown>): Promise<string> => {
	try {
		await work
	} catch (error) {
		if ((error as Error).name === 'ToolError') return (error as Error).message
		throw error
	}
	throw new Error('it was not refused')
}

for (const way of ['handles', 'paths'] as const)
	describe(`files/guard, opened by ${way}`, () => {
		let s: Scene
		before(function () {
			if (way === 'handles' && process.platform !== 'linux') skip(this, 'Linux only')
		})
		beforeEach(async () => {
			s = await scene({ way })
		})
		afterEach(() => s.close())
		const read = (path: string) => s.ctx.files.read(path)
		const write = (path: string) => s.fails('write_file', { path, content: 'x' })

		it('path-03 ".." after a linked folder is taken as the system takes it, and refused outside', async () => {
			await s.put(join(s.outside, 'deep/in'), 'secret')
			await s.put(join(s.outside, 'x'), 'outside')
			await s.put('x', 'inside')
			await fs.symlink(join(s.outside, 'deep'), join(s.root, 'link'))
			const resolved = await s.ctx.files.resolve('link/../x')
			expect([resolved.path, resolved.inside]).to.deep.equal([join(s.outside, 'x'), false])
			expect(await write('link/../x')).to.contain('outside the working folder')
			expect(await write('link/../new')).to.contain('outside the working folder')
			expect(await write('../outside/new')).to.contain('outside the working folder')
			expect(await s.text(join(s.outside, 'x'))).to.equal('outside')
			expect(await fs.readdir(s.outside)).to.deep.equal(['deep', 'x'])
		})

		it('path-03 ".." behind a missing folder is an error, not a shortcut', async () => {
			await s.put('x', 'inside')
			expect(await refused(read('missing/../x'))).to.contain('does not exist')
			expect(await write('missing/../../outside/x')).to.contain('does not exist')
		})

		it('path-04 absolute paths and ~ mean what they say; keys in the home are refused', async () => {
			await s.put(join(s.home, '.ssh/id_rsa'), 'KEY')
			await s.put(join(s.home, '.aws/credentials'), 'KEY')
			await s.put(join(s.home, '.garuda/credentials'), 'KEY')
			await s.put(join(s.home, 'notes.txt'), 'n')
			for (const path of [
				'~/.ssh/id_rsa',
				join(s.home, '.ssh/id_rsa'),
				'~/.aws/credentials',
				'~/.garuda/credentials',
				'../home/.ssh/id_rsa',
			])
				expect(await refused(read(path)), path).to.contain('off limits')
			expect((await s.ctx.files.resolve('~/notes.txt')).path).to.equal(join(s.home, 'notes.txt'))
			expect((await s.ctx.files.resolve('~')).path).to.equal(s.home)
		})

		it('path-05 path-07 /proc, /sys and /dev are never paths of file tools, by whatever link', async () => {
			await fs.symlink('/proc/self', join(s.root, 'me'))
			for (const path of [
				'/proc/self/root/etc/shadow',
				'/proc/self/fd/3',
				'/dev/fd/0',
				'/proc/self/environ',
				'/proc/self/cwd/x',
				'//proc/self/root/etc/passwd',
				'/tmp/../proc/self/root/etc/passwd',
				'me/environ',
				'/sys/kernel/notes',
				'/dev/null',
			])
				expect(await refused(read(path)), path).to.match(/off limits|does not exist|denied|loop/)
			expect(await refused(read('/proc/self/environ'))).to.contain('off limits')
			expect(await refused(read('me/environ'))).to.contain('off limits')
			expect(await refused(read('/proc/self/root/etc/passwd'))).to.contain('off limits')
			// Through a link, what counts is the real path behind it: a plain file outside, for which the gate asks.
			expect((await s.ctx.files.resolve('me/root/etc/passwd')).inside).to.equal(false)
			expect(await refused(read('me/root/etc/shadow'))).to.match(/off limits|denied/)
			expect(await write('/dev/null')).to.contain('off limits')
		})

		it('path-08 path-09 path-10 path-11 protected names are recognised in every spelling', async () => {
			for (const path of [
				'.git/config',
				'.GARUDA/settings.json',
				'.Git/hooks/x',
				'.g\u0131t/config',
				'.git\u200c/config',
				'.\u200bgit/x',
				'\uff0egit/config',
				'.git /config',
				'.git./config',
				'.git . /config',
				'.//.git/./config',
				'.git\\config',
				'sub\\.git\\hooks\\pre-commit',
				'GIT~1/config',
				'.git::$INDEX_ALLOCATION/config',
				'sub/deep/.git/hooks/pre-commit',
				'.claude/settings.json',
				'.vscode/tasks.json',
				'.IDEA/x',
				'.envrc',
				'.husky/pre-commit',
				'.mcp.json',
				'.MCP.json ',
			])
				expect(await write(path), path).to.contain('protected')
			expect((await fs.readdir(s.root)).length).to.equal(0)
		})

		it('path-08 names that only look alike are ordinary files', async () => {
			for (const path of [
				'.gitignore',
				'.github/workflows/ci.yml',
				'git/config',
				'.gitattributes',
				'dotgit',
				'.vscodeignore',
				'.env.example',
				'environment',
				'monkey.ts',
			])
				await s.call('write_file', { path, content: 'x' })
			expect(await s.text('.github/workflows/ci.yml')).to.equal('x')
		})

		it('path-12 NUL, empty, broken and endless paths are refused', async () => {
			expect(await refused(read('a.txt\0.png'))).to.contain('NUL')
			expect(await refused(read(''))).to.contain('empty')
			expect(await refused(read('a\ud800'))).to.contain('Unicode')
			expect(await refused(read('a'.repeat(5000)))).to.contain('too long')
			expect(await refused(read('a'.repeat(400)))).to.contain('too long')
		})

		it('path-15 link-01 a link to a secret is refused on its real path, at every step of the way', async () => {
			await s.put(join(s.home, '.ssh/id_rsa'), 'KEY')
			await s.put('.env', 'TOKEN=1')
			await fs.symlink(join(s.home, '.ssh/id_rsa'), join(s.root, 'doc.txt'))
			await fs.symlink(join(s.home, '.ssh'), join(s.root, 'docs'))
			await fs.symlink('doc.txt', join(s.root, 'again.md'))
			await fs.symlink('.env', join(s.root, 'env.txt'))
			for (const path of ['doc.txt', 'docs/id_rsa', 'again.md', 'env.txt']) {
				expect(await refused(read(path)), path).to.contain('off limits')
				expect(await refused(s.ctx.files.readPart(path, 0, 3)), path).to.contain('off limits')
				expect(await s.fails('read_file', { path }), path).to.contain('off limits')
				expect(await write(path), path).to.contain('off limits')
			}
		})

		it('a link to nothing is not written through, a link loop is told', async () => {
			await fs.symlink(join(s.root, 'made.txt'), join(s.root, 'dangling'))
			await fs.symlink('loop', join(s.root, 'loop'))
			expect(await write('dangling')).to.contain('does not exist')
			expect(await write('loop')).to.contain('loop')
			expect(await fs.readdir(s.root)).to.deep.equal(['dangling', 'loop'])
		})

		it('link-04 a folder swapped for a link after the plan is not followed, for reading and writing', async () => {
			await s.put('src/a.ts', 'mine')
			await s.put(join(s.outside, 'a.ts'), 'mine')
			await s.call('read_file', { path: 'src/a.ts' })
			const plans = {
				edit: await s.tool('edit_file').plan({ path: 'src/a.ts', old_string: 'mine', new_string: 'evil' }, s.ctx),
				create: await s.tool('write_file').plan({ path: 'src/new.ts', content: 'evil' }, s.ctx),
				read: await s.tool('read_file').plan({ path: 'src/a.ts' }, s.ctx),
			}
			await fs.rename(join(s.root, 'src'), join(s.root, 's2'))
			await fs.symlink(s.outside, join(s.root, 'src'))
			expect(await refused(s.tool('edit_file').run(plans.edit, s.ctx))).to.contain('link')
			expect(await refused(s.tool('write_file').run(plans.create, s.ctx))).to.contain('link')
			expect(await refused(s.tool('read_file').run(plans.read, s.ctx))).to.contain('link')
			expect(await fs.readdir(s.outside)).to.deep.equal(['a.ts'])
			expect(await s.text(join(s.outside, 'a.ts'))).to.equal('mine')
		})

		it('link-04 a swap to another folder of the root is refused as well: it is not the file of the question', async () => {
			await s.put('src/a.ts', 'same')
			await s.put('other/a.ts', 'same')
			await s.call('read_file', { path: 'src/a.ts' })
			const plan = await s
				.tool('edit_file')
				.plan({ path: 'src/a.ts', old_string: 'same', new_string: 'changed' }, s.ctx)
			await fs.rename(join(s.root, 'src'), join(s.root, 's2'))
			await fs.symlink('other', join(s.root, 'src'))
			expect(await refused(s.tool('edit_file').run(plan, s.ctx))).to.contain('link')
			expect(await s.text('other/a.ts')).to.equal('same')
		})

		it('link-04 a swap in the middle of the write, after the last check by name, does not reach the link’s target', async () => {
			for (const base of ['mine', null]) {
				await s.close()
				let swap = async (): Promise<void> => {}
				s = await scene({
					way,
					buffer: async () => {
						await swap()
						return undefined
					},
				})
				if (base) await s.put('src/a.ts', base)
				else await fs.mkdir(join(s.root, 'src'))
				if (base) await s.put(join(s.outside, 'a.ts'), base)
				swap = async () => {
					await fs.rename(join(s.root, 'src'), join(s.root, 's2'))
					await fs.symlink(s.outside, join(s.root, 'src'))
				}
				const path = join(s.root, 'src/a.ts')
				expect(
					await refused(s.ctx.files.write(path, Buffer.from('evil'), base ? sha256(Buffer.from(base)) : null)),
				).to.contain('moved or replaced')
				expect(await fs.readdir(s.outside)).to.deep.equal(base ? ['a.ts'] : [])
				if (base) expect(await s.text(join(s.outside, 'a.ts'))).to.equal('mine')
			}
		})

		it('link-06 a hard link to a file outside is replaced, never changed in place', async () => {
			await s.put(join(s.home, '.bashrc'), 'theirs\n')
			await fs.link(join(s.home, '.bashrc'), join(s.root, 'x'))
			await s.call('read_file', { path: 'x' })
			await s.call('write_file', { path: 'x', content: 'evil\n' })
			expect(await s.text(join(s.home, '.bashrc'))).to.equal('theirs\n')
			expect((await fs.stat(join(s.home, '.bashrc'))).nlink).to.equal(1)
			expect(await s.text('x')).to.equal('evil\n')
		})

		it('link-10 the root is pinned to its real path when the session opens', async () => {
			const link = join(s.outside, 'project')
			await fs.symlink(s.root, link)
			const files = await createFiles({ root: link, home: s.home, way })
			await s.put('f', 'real')
			await fs.unlink(link)
			await fs.symlink(s.home, link)
			expect(Buffer.from((await files.read('f')).bytes).toString()).to.equal('real')
			expect(files.roots).to.deep.equal([s.root])
		})

		it('added folders are writable, all else outside is not', async () => {
			const files = await createFiles({ root: s.root, extraDirs: [s.outside], home: s.home, way })
			await files.write(join(s.outside, 'ok'), Buffer.from('1'), null)
			expect(await s.text(join(s.outside, 'ok'))).to.equal('1')
			expect(await refused(files.write(join(s.home, 'no'), Buffer.from('1'), null))).to.contain('outside')
			expect(await refused(files.write(join(s.outside, '.git/config'), Buffer.from('1'), null))).to.contain('protected')
		})

		it('unsaved text of an editor is what is read, and a file with unsaved changes is not written', async () => {
			await s.close()
			let unsaved: string | undefined = 'typed'
			s = await scene({ way, buffer: async () => unsaved })
			await s.put('f', 'saved')
			expect(Buffer.from((await read('f')).bytes).toString()).to.equal('typed')
			expect(await refused(s.ctx.files.write('f', Buffer.from('x'), sha256(Buffer.from('saved'))))).to.contain(
				'not saved',
			)
			unsaved = undefined
			await s.ctx.files.write('f', Buffer.from('x'), sha256(Buffer.from('saved')))
			expect(await s.text('f')).to.equal('x')
		})
	})

describe('files/guard', () => {
	let s: Scene
	beforeEach(async () => {
		s = await scene()
	})
	afterEach(() => s.close())

	it('link-04 R08 hundreds of swaps of a folder and a file under way: nothing outside is read or written, nothing hangs', async function () {
		this.timeout(60_000)
		await s.put('src/a.txt', 'mine')
		await s.put('src/b.txt', 'mine')
		await s.put(join(s.outside, 'a.txt'), 'theirs')
		await s.put(join(s.outside, 'b.txt'), 'mine')
		await s.put('f', 'mine')
		await fs.symlink(s.outside, join(s.root, 'src.link'))
		await fs.symlink(join(s.outside, 'a.txt'), join(s.root, 'f.link'))
		execFileSync('mkfifo', [join(s.root, 'f.fifo')])
		const before = await fs.stat(join(s.outside, 'b.txt'))
		const stop = new Int32Array(new SharedArrayBuffer(4))
		const worker = new Worker(
			`const { renameSync, rmSync } = require('node:fs'); const { workerData: { root, stop } } = require('node:worker_threads')
			// A write may have made the folder anew in between: out of the way with it.
			const mv = (from, to) => { for (;;) try { return renameSync(from, to) } catch (error) { if (!/ENOTEMPTY|EISDIR|ENOTDIR/.test(error.code)) throw error; try { rmSync(to, { recursive: true, force: true }) } catch {} } }
			const p = (n) => root + '/' + n
			const swap = (name, other) => { mv(p(name), p(name + '.real')); mv(p(name + other), p(name)); mv(p(name), p(name + other)); mv(p(name + '.real'), p(name)) }
			while (!Atomics.load(stop, 0)) { swap('src', '.link'); swap('f', '.link'); swap('f', '.fifo') }`,
			{ eval: true, workerData: { root: s.root, stop } },
		)
		let leaks = 0
		let naive = 0
		let good = 0
		const attempt = async (work: Promise<unknown>): Promise<void> => {
			await work.then(
				() => good++,
				(error) => {
					// Its own real path failing is the only kind of failure there may be.
					if ((error as Error).name !== 'ToolError') throw error
				},
			)
		}
		try {
			const base = sha256(Buffer.from('mine'))
			for (let round = 0; round < 200; round++) {
				const path = join(s.root, 'src/a.txt')
				await attempt(
					s.ctx.files.read(path).then(({ path: real, bytes }) => {
						// Resolved to the outside on the way is an honest answer, with that path; a wrong pair is a leak.
						if ((Buffer.from(bytes).toString() === 'theirs') !== real.startsWith(s.outside)) leaks++
					}),
				)
				await attempt(s.ctx.files.write(join(s.root, 'src/b.txt'), Buffer.from('mine'), base))
				await attempt(s.ctx.files.write(join(s.root, `src/new${round}`), Buffer.from('mine'), null))
				await attempt(
					s.ctx.files.read(join(s.root, 'f')).then(({ path: real, bytes }) => {
						if ((Buffer.from(bytes).toString() === 'theirs') !== real.startsWith(s.outside)) leaks++
					}),
				)
			}
			// The control: deciding by real path and then opening by name is caught by the same swaps.
			for (const end = performance.now() + 10_000; naive === 0 && performance.now() < end; ) {
				let text = ''
				try {
					if (realpathSync(join(s.root, 'src/a.txt')).startsWith(s.root))
						text = readFileSync(join(s.root, 'src/a.txt'), 'utf8')
				} catch {}
				if (text === 'theirs') naive++
			}
		} finally {
			Atomics.store(stop, 0, 1)
			await new Promise((done) => worker.once('exit', done))
		}
		expect(leaks).to.equal(0)
		expect((await fs.readdir(s.outside)).sort()).to.deep.equal(['a.txt', 'b.txt'])
		expect(
			(await fs.stat(join(s.outside, 'b.txt'))).ino,
			'a write of the same bytes would show as a new inode',
		).to.equal(before.ino)
		expect(good).to.be.greaterThan(20)
		expect(naive, 'the swaps must be able to catch a careless reader').to.equal(1)
	})

	it('secret-07 secrets of a project are refused for reading and writing, examples are not', async () => {
		for (const path of [
			'.env',
			'.env.local',
			'.env.production',
			'a/.ENV',
			'certs/server.pem',
			'id_rsa',
			'id_ed25519',
			'.npmrc',
			'.netrc',
			'.git-credentials',
			'release.keystore',
			'.env .',
			'x.KEY',
		]) {
			await s.put(path, 'SECRET=1\n')
			expect(await s.fails('read_file', { path }), path).to.contain('off limits')
			expect(await s.fails('write_file', { path, content: 'x' }), path).to.contain('off limits')
		}
		for (const path of ['.env.example', '.env.sample', '.env.template', 'id_rsa.pub', 'env.ts', 'keys.ts', 'pem.md']) {
			await s.put(path, 'KEY=\n')
			expect((await s.call('read_file', { path })).text, path).to.contain('KEY=')
		}
	})

	it('secret-07 every secret that the sandbox hides is refused by the file tools too', async () => {
		const { homeSecrets, systemSecrets } = await import('../../../src/engine/sandbox/names.ts')
		for (const name of homeSecrets)
			expect(sensitiveReason(`/home/u/${name}`, '/home/u', ['/w']), name).to.be.a('string')
		for (const path of systemSecrets.filter((path) => !path.includes('*')))
			expect(sensitiveReason(path, '/home/u', ['/w']), path).to.be.a('string')
	})

	it('every name that the sandbox keeps read-only is protected from the file tools too', async () => {
		const { homeProtected, rootProtected } = await import('../../../src/engine/sandbox/names.ts')
		for (const name of rootProtected) expect(protectedReason(`/w/${name}`, '/w', '/home/u'), name).to.be.a('string')
		for (const name of homeProtected.filter((one) => !one.startsWith('.m2')))
			expect(
				protectedReason(`/home/u/${name}`, '/home/u', '/home/u') ??
					sensitiveReason(`/home/u/${name}`, '/home/u', ['/home/u']),
				name,
			).to.be.a('string')
	})

	it('a worktree inside ~/.garuda is usable, its neighbours are not', () => {
		const home = '/home/u'
		const root = '/home/u/.garuda/worktrees/p-1/job'
		expect(sensitiveReason(`${root}/src/a.ts`, home, [root])).to.equal(null)
		expect(sensitiveReason(`${root}/.env`, home, [root])).to.be.a('string')
		expect(sensitiveReason('/home/u/.garuda/credentials', home, [root])).to.be.a('string')
		expect(sensitiveReason('/home/u/.garuda/worktrees/p-1/other/a', home, [root])).to.be.a('string')
		// The whole of ~/.garuda as root, or ~/.ssh, gives no way in.
		expect(sensitiveReason('/home/u/.garuda/credentials', home, ['/home/u/.garuda'])).to.be.a('string')
		expect(sensitiveReason('/home/u/.ssh/id_x', home, ['/home/u/.ssh'])).to.be.a('string')
	})

	it('names fold as disks fold them, and plain names cost nothing', () => {
		expect(foldName('.G\u0131T')).to.equal('.git')
		expect(foldName('.git. .')).to.equal('.git')
		expect(foldName('..')).to.equal('..')
		expect(secretName('.ENV\u200d')).to.be.a('string')
		expect(secretName('.env.ts')).to.be.a('string')
		expect(secretName('index.ts')).to.equal(null)
	})
})
