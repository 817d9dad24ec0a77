// Staged commands in the real sandbox: what is listed is what changed, what is applied is what was listed, or nothing.
import {
	existsSync,
	linkSync,
	lstatSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	renameSync,
	rmSync,
	symlinkSync,
	unlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import type { Executor, RunSpec } from '../../../src/engine/ports.ts'
import { createExecutor, createGit } from '../../../src/engine/sandbox/index.ts'
import type { StagedChanges, StagedRun, StagedSpec } from '../../../src/engine/sandbox/staging.ts'
import { createSnapshots } from '../../../src/engine/session/snapshots.ts'
import { skip } from '../../helpers/skip.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'
import { leftovers, never, noOverlay, thrown } from './staging-kit.ts'

for (const way of ['overlay', 'copy'] as const)
	describe(`sandbox: staged commands (${way})`, function () {
		this.timeout(60_000)
		const staging = way === 'copy' ? way : true
		let fixture: Fixture
		let executor: Executor
		before(function () {
			if (way === 'overlay' && noOverlay()) skip(this, 'no overlay can be mounted here')
		})
		beforeEach(async () => {
			fixture = makeFixture()
			executor = (await createExecutor(fixture.options({ staging }))).executor
		})
		afterEach(async () => {
			await executor.close()
			await fixture.remove()
		})
		const run = async (script: string, more: Partial<RunSpec> = {}): Promise<StagedRun> => {
			const spec: StagedSpec = { script, cwd: fixture.root, timeoutMs: 10_000, staged: true, ...more }
			return executor.run(spec, never)
		}
		const changes = async (script: string): Promise<StagedChanges> => {
			const { staged, output, code } = await run(script)
			expect(code, output).to.equal(0)
			return staged!
		}
		const at = (path: string) => join(fixture.root, path)
		const text = (path: string) => readFileSync(at(path), 'utf8')
		const listed = ({ changes: all }: StagedChanges) => all.map(({ kind, path }) => `${kind} ${path}`)

		it('the command sees its own changes at the usual path; the project has none of them before they are applied', async () => {
			const { output, staged } = await run(
				'echo two >> f.txt; cat f.txt; pwd; mkdir -p a/b && echo n > a/b/c && ls a/b',
			)
			expect(output).to.equal(`x\ntwo\n${fixture.root}\nc\n`)
			expect([text('f.txt'), existsSync(at('a'))]).to.deep.equal(['x\n', false])
			expect(listed(staged!)).to.deep.equal(['create a', 'create a/b', 'create a/b/c', 'change f.txt'])
			await staged!.apply(never)
			expect([text('f.txt'), text('a/b/c')]).to.deep.equal(['x\ntwo\n', 'n\n'])
			expect(leftovers(fixture.root)).to.deep.equal([])
		})

		it('what is not applied is gone with the next command', async () => {
			await run('echo two > f.txt; touch new')
			const { output, staged } = await run('cat f.txt; ls new 2>&1; true')
			expect(output).to.match(/^x\nls: /)
			expect(listed(staged!)).to.deep.equal([])
		})

		it('diffs, modes, links and deletions are in the text; hidden characters are for the question to write out', async () => {
			put(at('gone/deep.txt'), 'bye')
			symlinkSync('f.txt', at('link'))
			const { summary } = await changes(
				'echo two > f.txt; chmod 755 rc.sh; ln -sf rc.sh link; rm -r gone; echo "#!/bin/sh" > run; chmod +x run; head -c 9 /dev/zero > bin',
			)
			expect(summary).to.include('2 new, 3 changed, 2 deleted')
			for (const line of [
				'change  f.txt (4 bytes)',
				'mode    rc.sh (mode 644 to 755)',
				'change  link (link from f.txt to rc.sh)',
				'delete  gone (folder)',
				'delete  gone/deep.txt',
				'new     run (executable, 10 bytes)',
				'new     bin (9 bytes)',
				'[1 files are binary or too long',
				'@@ -1 +1 @@\n-x\n+two\n',
			])
				expect(summary).to.include(line)
		})

		it('a touched file is no change; one whose times were set back is', async () => {
			const time = lstatSync(at('f.txt')).mtime
			expect(listed(await changes('touch f.txt; cat f.txt > f2; mv f2 f.txt'))).to.deep.equal([])
			utimesSync(at('f.txt'), time, time)
			expect(listed(await changes('printf "y\\n" > f.txt; touch -r rc.sh f.txt'))).to.deep.equal(['change f.txt'])
		})

		it('all kinds of changes are applied: files, folders, links, modes, one kind for another', async () => {
			put(at('dir/in'), '1')
			put(at('old'), '1')
			await (
				await changes(
					'rm f.txt; mkdir f.txt; echo 1 > f.txt/x; rm -r dir; echo file > dir; ln -s rc.sh l; chmod 600 rc.sh; chmod 700 sub; mkdir empty; rm old',
				)
			).apply(never)
			expect([text('f.txt/x'), text('dir'), readlinkSync(at('l'))]).to.deep.equal(['1\n', 'file\n', 'rc.sh'])
			expect([lstatSync(at('rc.sh')).mode & 0o777, lstatSync(at('sub')).mode & 0o777]).to.deep.equal([0o600, 0o700])
			expect([readdirSync(at('empty')), existsSync(at('old')), leftovers(fixture.root)]).to.deep.equal([[], false, []])
		})

		it('a commit in the copy is a commit in the project once applied; git status alone changes nothing', async () => {
			expect(listed(await changes('git status --short >/dev/null'))).to.deep.equal([])
			const commit = await changes('echo y > f.txt; git -c user.name=a -c user.email=b commit -qam two')
			expect(commit.summary).to.match(/new {5}\.git\/objects \(\d+ files and folders/)
			expect((await run('git log --oneline | wc -l')).output.trim(), 'thrown away').to.equal('1')
			const again = await changes('echo y > f.txt; git -c user.name=a -c user.email=b commit -qam two')
			await again.apply(never)
			expect((await run('git log --oneline | wc -l; git status --short -uno')).output.trim()).to.equal('2')
		})

		it('several names of one file are changed and removed in one go, and still not over a change meanwhile', async () => {
			for (const name of ['one', 'two', 'three', 'four']) {
				rmSync(at(name), { force: true })
				linkSync(at('f.txt'), at(name))
			}
			const staged = await changes('rm one two; echo more >> three; sed -i s/x/y/ four; chmod 600 f.txt')
			await staged.apply(never)
			expect([existsSync(at('one')), existsSync(at('two')), text('three'), text('four'), text('f.txt')]).to.deep.equal([
				false,
				false,
				'x\nmore\n',
				'y\n',
				'x\n',
			])
			const elsewhere = join(fixture.base, 'elsewhere')
			linkSync(at('f.txt'), elsewhere)
			await (await changes('chmod 640 f.txt')).apply(never)
			expect([lstatSync(at('f.txt')).mode & 0o777, lstatSync(elsewhere).mode & 0o777]).to.deep.equal([0o640, 0o600])
			linkSync(at('f.txt'), at('one'))
			linkSync(at('f.txt'), at('two'))
			const late = await changes('rm one two')
			writeFileSync(at('f.txt'), 'theirs')
			expect((await thrown(late.apply(never))).message).to.include('Nothing was applied')
			expect([text('one'), text('two'), leftovers(fixture.root)]).to.deep.equal(['theirs', 'theirs', []])
		})

		it('a name that is no text is not applied, and said', async () => {
			const { staged } = await run("echo n > $'bad\\xff'; mkdir new; echo n > $'new/bad\\xfe'; echo n > new/good")
			expect(staged!.refused.length).to.be.greaterThan(0)
			await staged!.apply(never)
			expect(readdirSync(fixture.root, 'buffer').some((name) => name.includes(0xff))).to.equal(false)
			expect(existsSync(at('new/good'))).to.equal(way === 'copy')
		})

		it('link-05 a file that changed meanwhile is not overwritten, deleted or run over, and nothing else is applied', async () => {
			put(at('dir/in'), '1')
			put(at('dir/two'), '1')
			for (const [script, meanwhile, path] of [
				['echo a > aaa; echo mine > f.txt', () => writeFileSync(at('f.txt'), 'theirs'), 'f.txt'],
				['echo a > aaa; rm f.txt', () => writeFileSync(at('f.txt'), 'theirs'), 'f.txt'],
				['echo a > aaa; echo n > new', () => writeFileSync(at('new'), 'theirs'), 'new'],
				['echo a > aaa; rm -r dir', () => writeFileSync(at('dir/in'), 'theirs'), 'dir/in'],
				['echo a > aaa; rm -r dir', () => put(at('dir/sub/late'), 'theirs'), 'dir/sub'],
				['echo a > aaa; mkdir n2; touch n2/x', () => put(at('n2/y'), 'theirs'), 'n2'],
				['echo a > aaa; chmod 700 rc.sh', () => writeFileSync(at('rc.sh'), 'theirs'), 'rc.sh'],
			] as const) {
				const staged = await changes(script)
				meanwhile()
				const error = await thrown(staged.apply(never))
				expect(error, script).to.be.instanceOf(ToolError)
				expect(error.message).to.include(path).and.to.include('Nothing was applied')
				expect([existsSync(at('aaa')), leftovers(fixture.root)], script).to.deep.equal([false, []])
			}
			expect(text('f.txt') + text('new') + text('dir/in') + text('rc.sh')).to.equal('theirstheirstheirstheirs')
		})

		it('job-09 the apply follows no link: not one in the copy, not one that came into the project meanwhile', async () => {
			const victim = join(fixture.base, 'victim')
			put(join(victim, 'x'), 'theirs')
			const out = await changes(
				`ln -s ${victim} a; ln -s ../victim/x b; ln -s f.txt good; mkdir d; ln -s ../../.. d/up`,
			)
			expect(listed(out)).to.deep.equal(['create d', 'create good'])
			expect(out.refused.map(({ path }) => path)).to.deep.equal(['a', 'b', 'd/up'])
			await out.apply(never)
			expect([existsSync(at('a')), existsSync(at('d/up')), readlinkSync(at('good'))]).to.deep.equal([
				false,
				false,
				'f.txt',
			])

			put(at('p/x'), '1')
			for (const script of ['echo mine > p/x', 'echo mine > p/y', 'rm p/x', 'mkdir p/z', 'chmod 777 p/x']) {
				const staged = await changes(script)
				renameSync(at('p'), at('real-p'))
				symlinkSync(victim, at('p'))
				expect(await thrown(staged.apply(never)), script).to.be.instanceOf(ToolError)
				unlinkSync(at('p'))
				renameSync(at('real-p'), at('p'))
			}
			expect([readdirSync(victim), readFileSync(join(victim, 'x'), 'utf8')]).to.deep.equal([['x'], 'theirs'])

			// The command replaces a folder by a link and writes through it: that goes where commands may write, never applied.
			const through = await changes(`rm -rf p; ln -s ${victim} p; echo mine > p/x 2>/dev/null; true`)
			expect(through.refused.map(({ path }) => path)).to.deep.equal(['p'])
			expect(readFileSync(join(victim, 'x'), 'utf8')).to.equal('theirs')
		})

		it('job-10 devices, white-outs, pipes, sockets and setuid files never reach the project', async () => {
			const staged = await changes(
				`mkfifo p; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")' 2>/dev/null; cp /bin/true su; chmod u+s su; rm f.txt; mkfifo f.txt; mkdir d; mkfifo d/p; echo 1 > d/x`,
			)
			const refused = staged.refused.map(({ path }) => path)
			expect(refused).to.include.members(['p', 'su', 'f.txt', 'd/p'])
			expect(listed(staged)).to.deep.equal(['create d', 'create d/x'])
			await staged.apply(never)
			expect([text('f.txt'), readdirSync(at('d')), existsSync(at('su'))]).to.deep.equal(['x\n', ['x'], false])
		})

		it('what commands may not change stays so: hooks, editor and agent settings, and a folder with such in it', async () => {
			const staged = await changes(
				'echo z > .git/hooks/pre-commit; git config core.pager evil; echo 1 > .vscode/x; mkdir .claude; echo 1 > .claude/settings.json; rm -rf sub; rm -rf .husky; echo ok > ok',
			)
			expect(listed(staged)).to.deep.equal(['create ok'])
			const refused = staged.refused.map(({ path }) => path).join('\n')
			for (const path of ['.git/hooks/pre-commit', '.git/config', '.vscode/x', '.claude', 'sub', '.husky'])
				expect(refused).to.include(path)
			await staged.apply(never)
			expect([existsSync(at('sub/.git/config')), existsSync(at('.claude/settings.json'))]).to.deep.equal([true, false])
		})

		it('secret-07 what is hidden from commands is not in the copy, and cannot be deleted or replaced', async () => {
			await executor.close()
			put(at('.env'), 'KEY=SECRETTOKEN')
			put(at('vault/k'), 'SECRETTOKEN')
			executor = (await createExecutor(fixture.options({ staging, denyRead: ['.env', 'vault'] }))).executor
			const { output, staged } = await run('cat .env vault/k; ls -A vault; echo x > .env; rm -rf vault .env; true')
			expect(output).to.not.include('SECRETTOKEN')
			expect(listed(staged!)).to.deep.equal([])
			const found = readdirSync(fixture.tmp.replace(/session$/, ''), { recursive: true, withFileTypes: true }).filter(
				(entry) => entry.isFile() && entry.parentPath.includes('stage-0') && /^(?:\.env|k)$/.test(entry.name),
			)
			// An overlay shows the project itself, with the mask over it.
			expect(found.map(({ name }) => name)).to.deep.equal(way === 'copy' ? ['.env'] : [])
			expect(found.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8')).join('')).to.equal('')
			expect([text('.env'), text('vault/k')]).to.deep.equal(['KEY=SECRETTOKEN', 'SECRETTOKEN'])
		})

		it('args-04 find -delete is asked about first; applied, undo restores it', async () => {
			put(at('d/f.txt'), 'deep')
			const git = createGit({ env: { PATH: '/usr/bin:/bin' }, avoid: [fixture.root] })
			const snapshots = createSnapshots({
				root: fixture.root,
				store: join(fixture.base, 'snapshots'),
				git,
				budget: { bytes: 2e9, ms: 10_000 },
				keep: { days: 30, bytes: 5e9 },
				// Its time limits never pass.
				clock: { now: () => Date.now(), sleep: () => new Promise(() => {}) },
			})
			const before = await snapshots.take(1, never)
			const staged = await changes('find . -name f.txt -delete')
			expect(listed(staged)).to.deep.equal(['delete f.txt', 'delete d/f.txt'])
			expect([existsSync(at('f.txt')), existsSync(at('d/f.txt'))]).to.deep.equal([true, true])
			await staged.apply(never)
			expect([existsSync(at('f.txt')), existsSync(at('d/f.txt'))]).to.deep.equal([false, false])
			const after = await snapshots.take(2, never)
			const back = await snapshots.restore(before.id!, after.id!)
			expect([back.conflicts, back.restored.length]).to.deep.equal([[], 2])
			expect([text('f.txt'), text('d/f.txt')]).to.deep.equal(['x\n', 'deep'])
			await snapshots.close()
		})

		it('a sandbox without staging runs nothing', async () => {
			for (const more of [{}, { executor: 'host' as const, staging: true }]) {
				const { executor: other } = await createExecutor(fixture.options(more))
				const spec: StagedSpec = { script: 'touch ran', cwd: fixture.root, timeoutMs: 10_000, staged: true }
				expect(await thrown(other.run(spec, never))).to.be.instanceOf(ToolError)
				await other.close()
			}
			expect(existsSync(at('ran'))).to.equal(false)
		})

		it('two at once do not share the copy, and old changes do not apply after a later command', async () => {
			const first = run('sleep 0.3; echo one > f.txt')
			expect(await thrown(run('echo two > f.txt'))).to.be.instanceOf(ToolError)
			const { staged } = await first
			await run('true')
			expect((await thrown(staged!.apply(never))).message).to.include('Another command ran since')
			expect(text('f.txt')).to.equal('x\n')
		})

		it('plan mode is as without staging', async () => {
			const { staged, code } = await run('touch new', { readOnly: true })
			expect([staged, code === 0]).to.deep.equal([undefined, false])
		})
	})
