// What a turn can do to get around its own undo: pipes, permissions, hard links, ignore rules of its own.
import { execFileSync } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { History } from '../../../src/engine/history.ts'
import type { SnapshotOptions } from '../../../src/engine/session/snapshots.ts'
import type { CallInfo } from '../../../src/engine/types.ts'
import { UndoStack } from '../../../src/engine/undo-stack.ts'
import { cleanFolders, clock, folder, git, never, snapshotsOf } from './help.ts'

const project = async (files: Record<string, string>) => {
	const base = await folder('garuda-undo-')
	const root = join(base, 'project')
	await fs.mkdir(root)
	const write = async (changes: Record<string, string>) => {
		for (const [path, text] of Object.entries(changes)) {
			await fs.mkdir(dirname(join(root, path)), { recursive: true })
			await fs.writeFile(join(root, path), text)
		}
	}
	await write(files)
	return {
		root,
		store: join(base, 'home', 'x'),
		write,
		sh: (script: string) => execFileSync('bash', ['-c', script], { cwd: root, encoding: 'utf8' }),
		read: (path: string) => fs.readFile(join(root, path), 'utf8'),
		bits: async (path: string) => (await fs.stat(join(root, path))).mode & 0o777,
		snaps: (more: Partial<SnapshotOptions> = {}) => snapshotsOf(root, join(base, 'home', 'x'), more),
	}
}
type Project = Awaited<ReturnType<typeof project>>

const turnOf = async (p: Project, act: () => unknown, snaps = p.snaps(), number = 1) => {
	const from = await snaps.take(number, never)
	await act()
	const to = await snaps.take(number, never)
	return { snaps, from: from.id!, to: to.id!, notes: [from.note, to.note] }
}

const init = 'git init -q && git -c user.name=u -c user.email=u@u commit -q --allow-empty -m x'

describe('session: what a turn does against its own undo', () => {
	afterEach(cleanFolders)

	for (const [name, script] of [
		['.gitignore', 'mkdir t && mkfifo t/.gitignore'],
		['.gitignore of the root', 'mkfifo .gitignore'],
		['.gitattributes', 'rm -f .gitattributes; mkfifo .gitattributes t.gitattributes; mkdir s; mkfifo s/.gitattributes'],
		[
			'.garuda/.gitignore',
			'mkdir .garuda; mkfifo .garuda/.gitignore; mkdir .garuda/commands; echo x > .garuda/commands/a.md',
		],
		['.git/info/exclude', 'rm -f .git/info/exclude; mkfifo .git/info/exclude'],
		['HEAD of a repository inside', 'git init -q in; rm in/.git/HEAD; mkfifo in/.git/HEAD; echo 1 > in/f'],
		['a pipe that may not be written', 'mkdir t && mkfifo -m 444 t/.gitignore'],
	] as const)
		it(`undo-14 a pipe in the place of ${name} holds up no snapshot, and what commands destroy comes back`, async () => {
			const p = await project({ a: 'one', b: 'two' })
			p.sh(init)
			const first = await turnOf(p, () => p.sh(script))
			expect(first.notes).to.deep.equal([undefined, undefined])
			const started = performance.now()
			// A new process starts with the pipe there.
			const { snaps, from, to, notes } = await turnOf(p, () => p.sh('rm b; echo gone > a'), p.snaps(), 2)
			expect(notes).to.deep.equal([undefined, undefined])
			expect(performance.now() - started).to.be.lessThan(6000)
			expect((await snaps.restore(from, to)).restored).to.deep.equal(['a', 'b'])
			expect([await p.read('a'), await p.read('b')]).to.deep.equal(['one', 'two'])
			await Promise.all([first.snaps.close(), snaps.close()])
		})

	it('undo-14 a pipe that is no business of git gets no writer', async () => {
		const p = await project({ a: 'one' })
		p.sh(`${init}; mkfifo mine; mkdir t; mkfifo t/.gitignore`)
		const reader = fs.open(join(p.root, 'mine'), 'r')
		let opened = false
		void reader.then(() => {
			opened = true
		})
		const { notes, snaps } = await turnOf(p, () => p.sh('echo x > a'))
		expect(notes).to.deep.equal([undefined, undefined])
		expect(opened).to.equal(false)
		await (await fs.open(join(p.root, 'mine'), 'w')).close()
		await (await reader).close()
		await snaps.close()
	})

	it('undo-15 a link or a folder in the place of .git/info/exclude is read or passed over; the rules of a file hold', async () => {
		const p = await project({ a: '1', hidden: 'h' })
		p.sh(`${init}; echo hidden > rules.txt; ln -sf ../../rules.txt .git/info/exclude`)
		const { snaps, from, to, notes } = await turnOf(p, () => p.sh('echo x > a; echo x > hidden'))
		expect(notes).to.deep.equal([undefined, undefined])
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['a'])
		p.sh('rm .git/info/exclude; mkdir .git/info/exclude')
		const second = await turnOf(p, () => p.sh('echo y > a'))
		expect(second.notes).to.deep.equal([undefined, undefined])
	})

	it('undo-16 a pipe or socket that the turn put in the place of a file or folder goes, and the file comes back', async () => {
		const p = await project({ a: 'one', c: 'precious', 'd/x': 'x', 'd/y/z': 'z', e: 'e' })
		p.sh(init)
		const servers = [createServer()]
		const { snaps, from, to } = await turnOf(p, async () => {
			p.sh('rm a; mkfifo a; echo gone > c; rm -r d; mkfifo d; rm e')
			await new Promise<void>((done) => servers[0]!.listen(join(p.root, 'e'), done))
		})
		const undone = await snaps.restore(from, to)
		expect(undone).to.deep.equal({ restored: ['a', 'c', 'd/x', 'd/y/z', 'e'], conflicts: [] })
		expect(p.sh('cat a c d/x d/y/z e')).to.equal('onepreciousxze')
		await new Promise((done) => servers[0]!.close(done))
	})

	it('undo-16 a folder in the place of a file, with nothing or with pipes in it, goes too', async () => {
		const p = await project({ a: 'one', b: 'two' })
		const { snaps, from, to } = await turnOf(p, () => p.sh('rm a b; mkdir -p a/in b/x; mkfifo b/x/p; echo n > b/n'))
		expect((await snaps.restore(from, to)).conflicts).to.deep.equal([])
		expect([await p.read('a'), await p.read('b')]).to.deep.equal(['one', 'two'])
	})

	it("undo-16 a pipe that came after the turn is somebody else's: a conflict, and nothing is done", async () => {
		const p = await project({ a: 'one', c: 'c' })
		const { snaps, from, to } = await turnOf(p, () => p.sh('rm a; echo x > c'))
		p.sh('sleep 0.02; mkfifo a')
		expect(await snaps.restore(from, to)).to.deep.equal({ restored: [], conflicts: ['a'] })
		expect(await p.read('c')).to.equal('x\n')
		expect((await fs.lstat(join(p.root, 'a'))).isFIFO()).to.equal(true)
	})

	it('undo-17 permissions that the turn changed come back: alone, with content, of a file made anew; redo too', async () => {
		const p = await project({ priv: 's', key: 'k', text: 't', gone: 'g', plain: 'p', run: '#!' })
		p.sh('chmod 600 priv gone; chmod 640 key; chmod 644 text plain; chmod 755 run')
		const { snaps, from, to } = await turnOf(p, () =>
			p.sh('chmod 666 priv; chmod 777 key; chmod 666 text; echo new > text; rm gone; chmod 700 run'),
		)
		expect(await snaps.diff(from, to)).to.include('priv: permissions 600 → 666')
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['gone', 'key', 'priv', 'run', 'text'])
		const all = async () => {
			const found: Record<string, string> = {}
			for (const name of await fs.readdir(p.root)) found[name] = (await p.bits(name)).toString(8)
			return found
		}
		expect(await all()).to.deep.equal({ priv: '600', key: '640', text: '644', gone: '600', plain: '644', run: '755' })
		expect(await p.read('text')).to.equal('t')
		await snaps.restore(to, from)
		expect(await all()).to.deep.equal({ priv: '666', key: '777', text: '666', plain: '644', run: '700' })
		await snaps.close()
	})

	it("undo-17 the bits are those of each turn, in a new process too, and a chmod between turns is not the turn's", async () => {
		const p = await project({ a: '1', b: '1' })
		p.sh('chmod 600 a')
		const first = await turnOf(p, () => p.sh('chmod 644 a'))
		// git compares whole seconds, and this process alone knows what changed within the last ones.
		p.sh('sleep 1.1; chmod 640 b')
		const second = await turnOf(p, () => p.sh('chmod 666 a'), p.snaps(), 2)
		expect((await second.snaps.restore(second.from, second.to)).restored).to.deep.equal(['a'])
		expect([await p.bits('a'), await p.bits('b')]).to.deep.equal([0o644, 0o640])
		expect((await second.snaps.restore(first.from, first.to)).restored).to.deep.equal(['a'])
		expect(await p.bits('a')).to.equal(0o600)
	})

	it('undo-17 bits that the user changed since the turn are a conflict where the turn changed them, and kept where not', async () => {
		const p = await project({ a: '1', b: '1' })
		const { snaps, from, to } = await turnOf(p, () => p.sh('chmod 666 a; echo 2 > b'))
		p.sh('chmod 600 b')
		p.sh('chmod 611 a')
		expect((await snaps.restore(from, to)).conflicts).to.deep.equal(['a'])
		p.sh('chmod 666 a')
		await snaps.restore(from, to)
		expect([await p.bits('a'), await p.bits('b'), await p.read('b')]).to.deep.equal([0o644, 0o600, '1'])
	})

	it('undo-17 without git the bits of what edit tools change come back', async () => {
		const p = await project({ a: '1' })
		p.sh('chmod 600 a')
		const snaps = p.snaps({ git: null })
		const from = await snaps.take(1, never)
		await snaps.keep([join(p.root, 'a')])
		p.sh('chmod 644 a; echo 2 > a')
		const to = await snaps.take(1, never)
		await snaps.restore(from.id!, to.id!)
		expect([await p.bits('a'), await p.read('a')]).to.deep.equal([0o600, '1'])
	})

	it('undo-18 hard-linked files are undone whole: changed in place, deleted, and beside others', async () => {
		const p = await project({ a: 'a', c: 'c', x: 'x' })
		p.sh('ln a b; ln x y; ln x z')
		const { snaps, from, to } = await turnOf(p, () =>
			p.sh('echo more >> a; echo more >> c; chmod 666 x; rm z; ln a new'),
		)
		const undone = await snaps.restore(from, to)
		expect(undone.restored).to.deep.equal(['a', 'b', 'c', 'new', 'x', 'y', 'z'])
		expect(p.sh('cat a b c x y z; ls')).to.equal('aacxxxa\nb\nc\nx\ny\nz\n')
		expect([await p.bits('x'), await p.bits('y')]).to.deep.equal([0o644, 0o644])
	})

	it('undo-18 what fails midway is taken back: all or nothing', async () => {
		const p = await project({ a: '1', b: '1', c: '1' })
		const snaps = p.snaps()
		const { from, to } = await turnOf(p, () => p.sh('echo 2 > a; echo 2 > b; rm c; echo n > new'), snaps)
		// The bytes of b's old state are there when they are counted, and another thing than they should be.
		const { restoreChanges } = await import('../../../src/engine/session/restore.ts')
		const { wayHere } = await import('../../../src/engine/files/open.ts')
		const { createGitStore } = await import('../../../src/engine/session/snapshot-git.ts')
		const way = await wayHere()
		const store = createGitStore({ root: p.root, store: p.store, git, budget: { bytes: 1e9, ms: 10_000 }, clock, way })
		let failing = true
		const failed = await restoreChanges(await store.diff(from, to), {
			root: p.root,
			way,
			since: 0,
			until: Date.now(),
			contents: async function* (hashes) {
				for await (const group of store.contents(hashes)) {
					// The user saves another file just then.
					if (failing) await p.write({ b: 'mine' })
					failing = false
					yield group
				}
			},
		}).catch((error: Error) => error)
		expect(failed).to.be.instanceOf(Error)
		expect((failed as Error & { hint: string }).hint).to.match(/No file was restored/)
		expect(p.sh('cat a b new; ls')).to.equal('2\nminen\na\nb\nnew\n')
	})

	it('undo-19 files that the turn made and put under ignore itself go with its undo and come with its redo', async () => {
		const p = await project({ a: 'a', 'sub/keep': '1', '.gitignore': '*.log\n' })
		p.sh(`${init}; echo old > x.log`)
		const { snaps, from, to, notes } = await turnOf(p, () =>
			p.sh(
				'echo new >> .gitignore; echo x > new; mkdir made; echo "made/" >> .gitignore; echo y > made/f; echo l > made/l.log; ' +
					'mkdir self; echo "*" > self/.gitignore; echo s > self/s; echo deep > sub/.gitignore; echo d > sub/deep; echo z > y.log',
			),
		)
		expect(notes).to.deep.equal([undefined, undefined])
		const undone = await snaps.restore(from, to)
		expect(undone.restored).to.deep.equal([
			...['.gitignore', 'made/f', 'new', 'self/.gitignore', 'self/s', 'sub/.gitignore', 'sub/deep'],
		])
		// By the rules of the start a log is nobody's to take away.
		expect(p.sh('find . -path ./.git -prune -o -type f -print | sort')).to.equal(
			['./.gitignore', './a', './made/l.log', './sub/keep', './x.log', './y.log', ''].join('\n'),
		)
		await snaps.restore(to, from)
		expect(p.sh('cat new made/f self/s sub/deep')).to.equal('x\ny\ns\nd\n')
		await snaps.close()
	})

	it("undo-19 what was there before, hidden by its own .gitignore, is not taken for the turn's", async () => {
		const p = await project({ a: 'a', 'venv/.gitignore': '*\n', 'venv/lib': 'l' })
		p.sh(`${init}; sleep 0.02`)
		const { snaps, from, to, notes } = await turnOf(p, () =>
			p.sh('echo venv > .gitignore; echo 2 > venv/lib; echo 2 > a'),
		)
		expect(notes).to.deep.equal([undefined, undefined])
		expect((await snaps.restore(from, to)).restored).to.deep.equal(['.gitignore', 'a'])
		expect(await p.read('venv/lib')).to.equal('2\n')
	})

	it('undo-19 too much for a snapshot is named, at the end of the turn and by undo', async () => {
		const p = await project({ a: 'a' })
		p.sh(init)
		const { snaps, from, to, notes } = await turnOf(p, () =>
			p.sh(
				'echo node_modules > .gitignore; echo .env >> .gitignore; echo s > .env; mkdir node_modules; cd node_modules; touch $(seq 1200)',
			),
		)
		expect(notes[1]).to.match(/leaves what it made and put under ignore: node_modules\//)
		const undone = await snaps.restore(from, to)
		expect(undone).to.deep.equal({ restored: ['.env', '.gitignore'], conflicts: [], left: ['node_modules/'] })
		expect((await snaps.restore(to, from)).left).to.equal(undefined)
	})
})

const infoOf = (access: CallInfo['access'], paths: string[] = []): CallInfo => ({
	title: 'x',
	kind: 'execute',
	access,
	paths,
	key: 'k',
})

describe('undo: what it says', () => {
	afterEach(cleanFolders)

	const stackOf = async (p: Project, more: Partial<SnapshotOptions> = {}) => {
		const notes: string[] = []
		const snapshots = p.snaps(more)
		const stack = new UndoStack({
			turns: [],
			undone: [],
			nextTurn: 1,
			history: new History([], 0, async () => {}),
			snapshots,
			clock,
			write: async () => {},
			note: (text) => notes.push(text),
			forget: () => {},
		})
		const turn = async (...calls: [CallInfo, () => unknown][]) => {
			const number = stack.begin(() => {})
			stack.mark('do it')
			for (const [info, act] of calls) {
				await stack.beforeChange(info)
				await act()
			}
			await stack.finish(number, 'done')
		}
		return { stack, notes, turn, snapshots }
	}

	it('undo-14 where snapshots cover only edit tools, each turn with a command says so, and undo and redo too', async () => {
		const p = await project({ a: '1', b: '1' })
		const { stack, notes, turn } = await stackOf(p, { git: null })
		const edit: [CallInfo, () => unknown] = [infoOf('write', [join(p.root, 'a')]), () => p.write({ a: '2' })]
		const destroy: [CallInfo, () => unknown] = [infoOf('run'), () => p.sh('rm -f b')]
		await turn(edit)
		expect(notes.splice(0)).to.have.length(1)
		await turn(destroy, destroy)
		expect(notes.splice(0)).to.deep.equal([
			'Undo covers only what edit tools change in this turn: what its commands do stays.',
		])
		await turn(edit, destroy)
		expect(notes.splice(0)).to.have.length(1)
		await turn(edit)
		expect(notes.splice(0)).to.deep.equal([])
		expect((await stack.undo()).message).to.match(/no file had changed\.$/)
		expect((await stack.undo()).message).to.match(/commands ran in it; what they changed is not covered/)
		const { message } = await stack.undo()
		expect(message).to.match(/commands ran in it; what they changed is not covered/)
		expect(message).not.to.match(/no file had changed/)
		expect((await stack.redo()).message).to.match(/commands ran in it/)
		await stack.undo()
		expect((await stack.undo()).message).to.match(/1 file is as before it\.$/)
	})

	it('undo-14 a turn without any snapshot says that its files are as they are; one that did nothing says so', async () => {
		const p = await project({ a: '1' })
		await fs.mkdir(dirname(p.store), { recursive: true })
		await fs.writeFile(p.store, 'no folder')
		const { stack, notes, turn } = await stackOf(p)
		await turn()
		for (let i = 0; i < 2; i++) {
			await turn([infoOf('run'), () => p.sh('rm -f a')])
			expect(notes.splice(0), `turn ${i}`).to.have.length(1)
		}
		const { message } = await stack.undo()
		expect(message).to.match(/only the conversation: there is no snapshot/)
		expect(message).not.to.match(/no file had changed/)
		await stack.undo()
		expect((await stack.undo()).message).to.match(/no file had changed/)
	})

	it('undo-19 undo names what it left', async () => {
		const p = await project({ a: '1' })
		p.sh(init)
		const { stack, turn } = await stackOf(p)
		await turn([infoOf('run'), () => p.sh('echo big > .gitignore; mkdir big; cd big; touch $(seq 1100)')])
		expect((await stack.undo()).message).to.match(/1 file is as before it; still there .*: big\/\.$/)
	})
})
