// Staging on an overlay: what changes underneath meanwhile, what a command could fake, and what is read back from the kernel's folders.
import {
	chmodSync,
	chownSync,
	existsSync,
	linkSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	symlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { Executor } from '../../../src/engine/ports.ts'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import type { StagedChanges, StagedRun, StagedSpec } from '../../../src/engine/sandbox/staging.ts'
import { usualLimits } from '../../../src/engine/sandbox/staging-copy.ts'
import { findOverlayTools, mountPoints, OverlayStage } from '../../../src/engine/sandbox/staging-overlay.ts'
import { listOverlay } from '../../../src/engine/sandbox/staging-overlay-list.ts'
import { skip } from '../../helpers/skip.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'
import { leftovers, never, noOverlay, setAttribute, thrown } from './staging-kit.ts'

describe('sandbox: staging on an overlay', function () {
	this.timeout(60_000)
	let fixture: Fixture
	let executor: Executor
	before(function () {
		if (noOverlay()) skip(this, 'no overlay can be mounted here')
	})
	beforeEach(async () => {
		fixture = makeFixture()
		executor = (await createExecutor(fixture.options({ staging: true }))).executor
	})
	afterEach(async () => {
		await executor.close()
		await fixture.remove()
	})
	const run = (script: string, timeoutMs = 20_000): Promise<StagedRun> => {
		const spec: StagedSpec = { script, cwd: fixture.root, timeoutMs, staged: true }
		return executor.run(spec, never)
	}
	const at = (path: string) => join(fixture.root, path)
	const text = (path: string) => readFileSync(at(path), 'utf8')
	const listed = ({ changes }: StagedChanges) => changes.map(({ kind, path }) => `${kind} ${path}`)

	/** Does something to the project while a command runs, at a point of the command's own. */
	const during = async (before: string, act: () => void, after = 'true'): Promise<StagedChanges> => {
		for (const name of ['ready', 'go']) rmSync(join(fixture.tmp, name), { force: true })
		const running = run(`${before}; echo > /tmp/ready; until [ -e /tmp/go ]; do sleep 0.02; done; ${after}`)
		const end = Date.now() + 15_000
		while (!existsSync(join(fixture.tmp, 'ready')) && Date.now() < end) await delay(5)
		act()
		writeFileSync(join(fixture.tmp, 'go'), '')
		const { staged, output, code } = await running
		expect([code, existsSync(join(fixture.tmp, 'ready'))], output).to.deep.equal([0, true])
		return staged!
	}

	describe('link-05 the project changes while the command runs', () => {
		beforeEach(() => {
			for (const path of ['dir/in', 'dir/two', 'other/in', 'deep/er/x']) put(at(path), '1\n')
		})
		for (const [name, script, act, path] of [
			['a file', 'echo mine > f.txt', () => writeFileSync(at('f.txt'), 'theirs'), 'f.txt'],
			['a file that the command only moves', 'mv f.txt g.txt', () => writeFileSync(at('f.txt'), 'theirs'), 'f.txt'],
			['a file that goes', 'rm dir/in', () => writeFileSync(at('dir/in'), 'theirs'), 'dir/in'],
			['a file in a folder that goes', 'rm -r dir', () => writeFileSync(at('dir/in'), 'theirs'), 'dir/in'],
			['a new file in a folder that goes', 'rm -r deep', () => put(at('deep/er/y'), 'theirs'), 'deep/er'],
			['a mode', 'echo mine > f.txt', () => chmodSync(at('f.txt'), 0o600), 'f.txt'],
			['a mode of a folder', 'echo mine > dir/in', () => chmodSync(at('dir'), 0o700), 'dir'],
			['a file that was removed', 'echo mine > f.txt', () => rmSync(at('f.txt')), 'f.txt'],
			['a file that both removed', 'rm f.txt', () => rmSync(at('f.txt')), 'f.txt'],
			['a folder that was removed', 'echo mine > dir/in', () => rmSync(at('dir'), { recursive: true }), 'dir'],
			[
				'a folder that another took the place of',
				'echo mine > dir/in; rm dir/two',
				() => {
					renameSync(at('dir'), at('dir-old'))
					renameSync(at('other'), at('dir'))
				},
				'dir',
			],
			[
				'a file whose times were set back',
				'echo mine > f.txt',
				() => {
					writeFileSync(at('f.txt'), 'theirs')
					utimesSync(at('f.txt'), 0, 0)
				},
				'f.txt',
			],
			[
				'a file that another was moved over',
				'echo mine > f.txt',
				() => {
					renameSync(at('dir/two'), at('f.txt'))
				},
				'f.txt',
			],
		] as const)
			it(`${name}: nothing at all is applied`, async () => {
				const staged = await during(`echo a > aaa; ${script}`, act)
				expect(listed(staged), staged.summary).to.deep.equal([])
				expect(staged.refused.map((one) => one.path)).to.deep.equal([path])
				expect(staged.refused[0]!.why).to.match(/while the command ran.*nothing of this command is applied/)
				await staged.apply(never)
				expect([existsSync(at('aaa')), leftovers(fixture.root)]).to.deep.equal([false, []])
			})

		it('the same name made by both', async () => {
			const staged = await during('echo a > aaa; echo mine > both', () => writeFileSync(at('both'), 'theirs'))
			expect(listed(staged)).to.deep.equal([])
			expect([text('both'), existsSync(at('aaa'))]).to.deep.equal(['theirs', false])
		})

		it('what does not concern the command’s changes does not stop them, in the same folder too', async () => {
			const staged = await during('echo mine > dir/new; echo mine >> f.txt; rm dir/two', () => {
				writeFileSync(at('dir/in'), 'theirs')
				put(at('dir/late'), 'theirs')
				put(at('top'), 'theirs')
			})
			expect(listed(staged)).to.deep.equal(['delete dir/two', 'create dir/new', 'change f.txt'])
			await staged.apply(never)
			expect([text('f.txt'), text('dir/in'), text('dir/late'), text('dir/new')]).to.deep.equal([
				'x\nmine\n',
				'theirs',
				'theirs',
				'mine\n',
			])
		})

		it('a file that the command only touched may have changed', async () => {
			const staged = await during('touch f.txt; chmod 644 f.txt; echo 2 > new', () => put(at('dir/late'), 'theirs'))
			expect(listed(staged)).to.deep.equal(['create new'])
		})
	})

	it('job-10 a command can make no white-out, no device and no mark of the overlay', async () => {
		put(at('dir/in'), '1\n')
		put(at('dir/two'), '1\n')
		const marks = ['opaque', 'redirect', 'whiteout', 'metacopy', 'origin', 'impure'].flatMap((name) => [
			setAttribute(`user.overlay.${name}`, 'y', 'dir'),
			setAttribute(`trusted.overlay.${name}`, 'y', 'dir'),
		])
		const { staged, output } = await run(
			`mknod w c 0 0; mknod f.txt.w c 0 0; mknod null c 1 3; mknod disk b 7 99; ${marks.join('; ')}; ${setAttribute('user.overlay.redirect', '/dir', 'sub')}; ${setAttribute('user.overlay.metacopy', '', 'f.txt')}; ls dir; true`,
		)
		expect(output.match(/mknod:/g), output).to.have.length(4)
		expect(output).to.match(/in\ntwo\n$/)
		expect([listed(staged!), staged!.refused]).to.deep.equal([[], []])
	})

	it('job-10 renames, hard links, sparse files and folders made anew come back as what they are', async () => {
		put(at('tree/a/b'), 'b\n')
		put(at('tree/c'), 'c\n')
		put(at('anew/old'), '1\n')
		put(at('anew/sub/old'), '1\n')
		put(at('twin'), 'one\n')
		linkSync(at('twin'), at('twin2'))
		symlinkSync('f.txt', at('link'))
		const { staged, output, code } = await run(
			'mv tree tree2; rm -r anew; mkdir -p anew/sub; echo 2 > anew/sub/new; echo 2 >> twin; truncate -s 1M hole; ln hole hole2; mv link link2; mv f.txt .f.tmp; echo new > f.txt; rm .f.tmp',
		)
		expect(code, output).to.equal(0)
		expect(listed(staged!)).to.deep.equal([
			...['delete link', 'delete tree', 'delete tree/a', 'delete tree/a/b', 'delete tree/c', 'delete anew/old'],
			...['delete anew/sub/old', 'create anew/sub/new', 'change f.txt', 'create hole', 'create hole2', 'create link2'],
			...['create tree2', 'create tree2/a', 'create tree2/a/b', 'create tree2/c', 'change twin'],
		])
		await staged!.apply(never)
		expect([text('tree2/a/b'), text('anew/sub/new'), text('twin'), text('twin2'), text('f.txt')]).to.deep.equal([
			'b\n',
			'2\n',
			'one\n2\n',
			'one\n',
			'new\n',
		])
		expect([readdirSync(at('anew')), readdirSync(at('anew/sub')), existsSync(at('tree'))]).to.deep.equal([
			['sub'],
			['new'],
			false,
		])
	})

	it('secret-07 no move of what lies around it shows a hidden file', async () => {
		await executor.close()
		put(at('d/e/.env'), 'KEY=SECRETTOKEN')
		put(at('d/plain'), 'p')
		executor = (await createExecutor(fixture.options({ staging: true, denyRead: ['**/.env'] }))).executor
		const { output, staged } = await run(
			'cat d/e/.env; mv d z; mv d/e e2; cp -a d y; ln d/e/.env l; cat z/e/.env e2/.env y/e/.env l; grep -rn SECRET . ; rm -rf d; cat d/e/.env; true',
		)
		expect(output).to.not.include('SECRETTOKEN')
		await staged!.apply(never)
		expect(text('d/e/.env')).to.equal('KEY=SECRETTOKEN')
		expect(staged!.changes.filter(({ path }) => path === 'd' || path.startsWith('d/e'))).to.deep.equal([])
	})

	it('job-10 sockets and pipes of the project’s own programs are not reached through it, and stay', async () => {
		const { createServer } = await import('node:net')
		let met = 0
		mkdirSync(at('deep/run'), { recursive: true })
		const server = createServer((socket) => {
			met++
			socket.destroy()
		})
		await new Promise<void>((resolve) => server.listen(at('deep/run/s'), resolve))
		const { execFileSync } = await import('node:child_process')
		execFileSync('mkfifo', [at('deep/run/p')])
		const connect = `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); print connect(S, sockaddr_un("deep/run/s")) ? "in" : "out"'`
		const { output, staged } = await run(`${connect}; timeout 0.3 sh -c 'echo x > deep/run/p'; echo " $?"; rm -rf deep`)
		server.close()
		expect([output.split('\n')[0], met]).to.deep.equal(['out 124', 0])
		expect([listed(staged!), staged!.refused.map(({ path }) => path)]).to.deep.equal([[], ['deep/run/p']])
	})

	it('nothing is mounted here, while a command runs and after', async () => {
		const before = mountPoints().length
		await during('true', () => expect(mountPoints()).to.have.length(before))
		expect(mountPoints()).to.have.length(before)
	})

	it('a command that is ended leaves nothing that the next one sees', async () => {
		const ended = await run('echo 1 > half; sleep 60', 300)
		expect(ended.timedOut).to.equal(true)
		const { output } = await run('ls half 2>&1; true')
		expect(output).to.match(/^ls: /)
		expect(existsSync(at('half'))).to.equal(false)
	})

	it('where the kernel refuses the overlay, a copy takes its place in the same call, and that is said once', async () => {
		expect((await run('echo 1 > a')).output).to.equal('')
		const own = readdirSync(fixture.base).find((name) => name.startsWith('session-own-'))!
		const lower = join(fixture.base, own, 'overlay-0/lower')
		rmSync(lower)
		symlinkSync(at('f.txt'), lower)
		const first = await run('echo 1 > new; ls a 2>/dev/null; true')
		expect(first.output).to.match(
			/^\[note: staged commands work on a copy of the project here, which is slower: .*mount/s,
		)
		expect(listed(first.staged!)).to.deep.equal(['create new'])
		expect(existsSync(at('new'))).to.equal(false)
		const second = await run('cat new 2>&1; true')
		expect(second.output).to.match(/^cat: .*\n$/)
	})

	it('for root a file of another owner is what it is without staging, and keeps its owner', async function () {
		if (process.getuid?.() !== 0) skip(this, 'only root can do this') // for others: staging-user.test.ts
		chownSync(at('f.txt'), 1_234, 1_234)
		chownSync(at('rc.sh'), 1_234, 1_234)
		chmodSync(at('rc.sh'), 0o666)
		const { output, staged } = await run('echo 2 > f.txt; echo 2 > rc.sh')
		expect(output).to.match(/^.*f\.txt: Permission denied\n$/)
		await staged!.apply(never)
		expect([text('f.txt'), text('rc.sh'), statSync(at('rc.sh')).uid]).to.deep.equal(['x\n', '2\n', 1_234])
	})

	it('the root itself has its own mode in it, and a change of that is not staged', async () => {
		chmodSync(fixture.root, 0o2751)
		const { output, staged } = await run('stat -c %a .; chmod 700 .')
		expect([output, listed(staged!)]).to.deep.equal(['2751\n', []])
	})

	it('added folders have overlays of their own, and what makes one void makes all void', async () => {
		await executor.close()
		const more = join(fixture.base, 'more, with: odd\\ name')
		put(join(more, 'in'), '1\n')
		executor = (await createExecutor(fixture.options({ staging: true, extraDirs: [more] }))).executor
		const both = (await run(`echo 2 > f.txt; cd '${more}' && cat in && echo 2 >> in; rm -f gone; echo n > new`)).staged!
		expect(listed(both)).to.deep.equal(['change f.txt', `change ${more}/in`, `create ${more}/new`])
		await both.apply(never)
		expect([text('f.txt'), readFileSync(join(more, 'in'), 'utf8')]).to.deep.equal(['2\n', '1\n2\n'])
		const torn = (await run(`echo 4 > f.txt; echo 4 > '${more}/in'`)).staged!
		writeFileSync(join(more, 'in'), 'theirs')
		expect((await thrown(torn.apply(never))).message).to.include('Nothing was applied')
		expect([text('f.txt'), readFileSync(join(more, 'in'), 'utf8')]).to.deep.equal(['2\n', 'theirs'])
		const none = await during(`echo 3 > f.txt; echo 3 > '${more}/in'`, () => writeFileSync(join(more, 'in'), 'theirs'))
		expect([listed(none), none.refused.map(({ path }) => path)]).to.deep.equal([[], [join(more, 'in')]])
	})

	it('the network’s space and the overlay’s go together', async () => {
		await executor.close()
		executor = (await createExecutor(fixture.options({ staging: true, network: { hosts: ['ok.example'] } }))).executor
		const { output, staged } = await run(
			'exec 3<>/dev/tcp/127.0.0.1/3128 && echo proxy; echo 2 > f.txt; cat f.txt; ip -o link 2>/dev/null | wc -l',
		)
		expect(output).to.match(/^proxy\n2\n[01]\n$/)
		expect(listed(staged!)).to.deep.equal(['change f.txt'])
	})
})

describe('sandbox: an overlay read back', () => {
	let fixture: Fixture
	let stage: OverlayStage
	before(function () {
		if (noOverlay()) skip(this, 'no overlay can be mounted here')
	})
	beforeEach(async () => {
		fixture = makeFixture()
		put(join(fixture.root, 'dir/in'), '1\n')
		put(join(fixture.root, 'dir/two'), '1\n')
		stage = new OverlayStage(fixture.root, join(fixture.base, 'overlay-0'), findOverlayTools()!)
		await stage.begin()
	})
	afterEach(() => fixture.remove())
	const list = (limits = usualLimits, hidden: string[] = []) => listOverlay(stage, () => false, new Set(hidden), limits)
	const up = (path: string) => join(stage.path, path)
	const run = async (command: string, ...args: string[]) => {
		const { execFileSync } = await import('node:child_process')
		return execFileSync(command, args, { encoding: 'utf8' })
	}

	it('job-10 marks that the kernel itself would make count, so a faked one would have hidden a folder', async () => {
		mkdirSync(up('dir'))
		expect((await list()).changes).to.deep.equal([])
		await run('sh', '-c', setAttribute('user.overlay.opaque', 'y', up('dir')))
		expect((await list()).changes.map(({ kind, path }) => `${kind} ${path}`)).to.deep.equal([
			'delete dir/in',
			'delete dir/two',
		])
	})

	it('job-10 what is not understood makes all of it void', async function () {
		if (process.getuid?.() !== 0) skip(this, 'only root can do this') // only root makes white-outs by hand
		writeFileSync(up('fine'), '1')
		for (const [name, make, undo] of [
			['nothing there', () => run('mknod', up('ghost'), 'c', '0', '0'), () => rmSync(up('ghost'))],
			[
				'in a new folder',
				() => {
					mkdirSync(up('newdir'))
					return run('mknod', up('newdir/w'), 'c', '0', '0')
				},
				() => rmSync(up('newdir'), { recursive: true }),
			],
			[
				'a redirect',
				async () => {
					mkdirSync(up('moved'))
					mkdirSync(up('dir'))
					await run('sh', '-c', setAttribute('user.overlay.redirect', '/dir', up('dir')))
				},
				() => {},
			],
		] as const) {
			await make()
			const { changes, refused, ...rest } = await list()
			if (name === 'a redirect') {
				// The kernel is told not to follow it: the folder shows nothing that is not its own.
				expect(
					changes.filter(({ kind }) => kind === 'delete').map(({ path }) => path),
					name,
				).to.deep.equal([])
				continue
			}
			expect([changes, rest.void], name).to.deep.equal([[], true])
			expect(refused[0]!.why, name).to.include('nothing of this command is applied')
			undo()
		}
	})

	it('job-10 devices in the changes are refused, a change of what is hidden makes all void', async function () {
		if (process.getuid?.() !== 0) skip(this, 'only root can do this')
		await run('mknod', up('null'), 'c', '1', '3')
		await run('mknod', up('f.txt'), 'b', '7', '99')
		writeFileSync(up('rc.sh'), 'mine')
		const { changes, refused } = await list()
		expect(changes.map(({ path }) => path)).to.deep.equal(['rc.sh'])
		expect(refused.map(({ path }) => path)).to.deep.equal(['f.txt', 'null'])
		const hidden = await list(usualLimits, [join(fixture.root, 'rc.sh')])
		expect([hidden.changes, hidden.void, hidden.refused[0]!.path]).to.deep.equal([[], true, 'rc.sh'])
	})

	it('dos-03 a command that makes more than a project may hold gets none of it applied', async () => {
		mkdirSync(up('many'))
		for (let index = 0; index < 20; index++) writeFileSync(up(`many/${index}`), 'x'.repeat(100))
		expect((await list()).changes).to.have.length(21)
		for (const limits of [
			{ entries: 20, bytes: 1e9 },
			{ entries: 1e5, bytes: 1_999 },
		]) {
			const { changes, refused, ...rest } = await list(limits)
			expect([changes, rest.void]).to.deep.equal([[], true])
			expect(refused[0]!.why).to.include('changed too much for staging')
		}
	})

	it('a name that is no text makes all of it void', async () => {
		writeFileSync(up('fine'), '1')
		writeFileSync(Buffer.concat([Buffer.from(`${stage.path}/`), Buffer.from([0x61, 0xff, 0x62])]), '1')
		const { changes, ...rest } = await list()
		expect([changes, rest.void]).to.deep.equal([[], true])
		expect(rest.refused[0]!.why).to.include('a name that cannot be read')
	})

	it('a root that was replaced, or that another disk is mounted in, is not read', async () => {
		writeFileSync(up('fine'), '1')
		expect(stage.unfit([join(fixture.root, 'dir')])).to.include('another disk')
		expect(stage.unfit([fixture.root, fixture.base, '/proc'])).to.equal(undefined)
		renameSync(fixture.root, `${fixture.root}-old`)
		mkdirSync(fixture.root)
		const { changes, refused } = await list()
		expect([changes, refused.map(({ why }) => why.includes('replaced'))]).to.deep.equal([[], [true]])
	})

	it('link-05 after the clock was set back nothing can be told, forwards is no harm', async () => {
		let wall = 1_000_000
		const other = new OverlayStage(fixture.root, join(fixture.base, 'overlay-1'), findOverlayTools()!, () => wall)
		for (const [step, isVoid] of [
			[3_600_000, undefined],
			[-200, true],
		] as const) {
			await other.begin()
			writeFileSync(join(other.path, 'fine'), '1')
			wall += step
			const { changes, refused, ...rest } = await listOverlay(other, () => false, new Set(), usualLimits)
			expect([changes.length, rest.void], String(step)).to.deep.equal(isVoid ? [0, true] : [1, undefined])
			if (isVoid) expect(refused[0]!.why).to.include('clock was set back')
		}
	})

	it('link-05 a change just before counts as before, one just after as meanwhile', async () => {
		for (let round = 0; round < 25; round++) {
			writeFileSync(join(fixture.root, 'f.txt'), `before ${round}`)
			writeFileSync(join(fixture.root, `n${round}`), '')
			await stage.begin()
			writeFileSync(up('f.txt'), 'mine')
			writeFileSync(up('new'), 'mine')
			expect((await list()).changes.map(({ path }) => path).sort(), `round ${round}`).to.deep.equal(['f.txt', 'new'])
			writeFileSync(join(fixture.root, 'f.txt'), `after ${round}`)
			expect((await list()).void, `round ${round}`).to.equal(true)
		}
	})

	it('folders that were too many to look at beforehand count as changed in doubt', async () => {
		const { Sight } = await import('../../../src/engine/sandbox/staging-sight.ts')
		const sight = new Sight(fixture.root, { ms: 1_000, folders: 1 })
		sight.look()
		expect([sight.had('', 'f.txt'), sight.had('', 'nothing'), sight.had('dir', 'in')]).to.deep.equal([
			true,
			false,
			undefined,
		])
		const whole = new Sight(fixture.root)
		whole.look()
		const now = BigInt(Date.now() + 1_000) * 1_000_000n
		expect([whole.had('dir', 'in'), whole.same('dir', now), whole.same('gone', now)]).to.deep.equal([
			true,
			true,
			undefined,
		])
		rmSync(join(fixture.root, 'dir'), { recursive: true })
		expect(whole.same('dir', now)).to.equal(false)
		put(join(fixture.root, 'dir/in'), '1')
		expect(whole.same('dir', stage.began), 'made anew, maybe with the same number').to.equal(false)
	})

	it('an overlay that shows something else than expected is not used', async () => {
		const { probeOverlay } = await import('../../../src/engine/sandbox/staging-probe.ts')
		const tools = findOverlayTools()!
		const folder = join(fixture.base, 'probe')
		await probeOverlay(tools, folder)
		// A find that says nothing, a mount that mounts nothing, an unshare that may not.
		for (const [name, script] of [
			['find', '#!/bin/sh\nexit 0\n'],
			['mount', '#!/bin/sh\nexit 0\n'],
			['unshare', '#!/bin/sh\necho not permitted >&2; exit 1\n'],
		] as const) {
			const fake = join(fixture.base, `fake-${name}`)
			put(fake, script, 0o755)
			const error = await thrown(probeOverlay({ ...tools, [name]: fake }, folder))
			expect(error.message, name).to.match(/no overlay can be mounted|does not show changes as expected/)
			expect(existsSync(folder), name).to.equal(false)
		}
	})
})
