// Staged commands and git folders of their own making: what git would obey never reaches the project, whatever the answer.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Executor } from '../../../src/engine/ports.ts'
import { parseGitConfig, riskyKeys } from '../../../src/engine/sandbox/git-config.ts'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import type { StagedChanges, StagedSpec } from '../../../src/engine/sandbox/staging.ts'
import { skip } from '../../helpers/skip.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'
import { never, noOverlay } from './staging-kit.ts'

for (const way of ['overlay', 'copy'] as const)
	describe(`sandbox: git folders of a staged command (${way})`, function () {
		this.timeout(60_000)
		let fixture: Fixture
		let executor: Executor
		before(function () {
			if (way === 'overlay' && noOverlay()) skip(this, 'no overlay can be mounted here')
		})
		beforeEach(async () => {
			fixture = makeFixture()
			executor = (await createExecutor(fixture.options({ staging: way === 'copy' ? way : true }))).executor
		})
		afterEach(async () => {
			await executor.close()
			await fixture.remove()
		})
		const at = (path: string) => join(fixture.root, path)
		/** What a command's changes are after a yes. */
		const applied = async (script: string): Promise<StagedChanges & { left: string[] }> => {
			const spec: StagedSpec = {
				script: script.replaceAll('@ROOT@', fixture.root),
				cwd: fixture.root,
				timeoutMs: 20_000,
				staged: true,
			}
			const run = await executor.run(spec, never)
			const { staged, output, code } = run as typeof run & { staged: StagedChanges }
			expect(code, output).to.equal(0)
			await staged.apply(never)
			return { ...staged, left: staged.refused.map(({ path }) => path) }
		}
		const host = (cwd: string, ...args: string[]) =>
			spawnSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
				cwd: at(cwd),
				encoding: 'utf8',
				env: { PATH: process.env.PATH, HOME: fixture.home },
			})
		/** A hook and a configuration, each of which makes a mark when git on the host obeys it. */
		const evil = (folder: string) => {
			const mark = 'touch @ROOT@/OBEYED'
			return `printf '[core]\\n\\tfsmonitor = "${mark}"\\n' > ${folder}/config; mkdir -p ${folder}/hooks; printf '#!/bin/sh\\n${mark}\\n' > ${folder}/hooks/post-checkout; chmod +x ${folder}/hooks/post-checkout`
		}
		const bare = (folder: string) =>
			`mkdir -p ${folder}/objects ${folder}/refs; echo ref: refs/heads/m > ${folder}/HEAD`
		const nothingObeyed = (folder: string) => {
			for (const args of [['status'], ['commit', '-q', '--allow-empty', '-m', 'x'], ['checkout', '-q', '-b', 'b']])
				host(folder, ...args)
			expect(existsSync(at('OBEYED')), `git obeyed in ${folder}`).to.equal(false)
		}

		it('git-08 hooks and a configuration that runs programs of a new repository are left out, and named with the reason', async () => {
			const { left, refused, summary } = await applied(
				`git init -q --template= new; ${evil('new/.git')}; mkdir new/.vscode; echo {} > new/.vscode/tasks.json; echo x > new/file`,
			)
			expect(left).to.have.members(['new/.git/config', 'new/.git/hooks'])
			expect(refused.map(({ why }) => why).sort()).to.deep.equal([
				'a git configuration that runs programs: core.fsmonitor',
				'git hooks are never applied',
			])
			expect(summary).to.include('left out: new/.git/hooks (git hooks are never applied)')
			expect(summary).to.include('new/.vscode/tasks.json (OBEYED by editors')
			expect(summary).to.not.include('new/file (OBEYED')
			expect([readFileSync(at('new/file'), 'utf8'), existsSync(at('new/.git/HEAD'))]).to.deep.equal(['x\n', true])
			nothingObeyed('new')
		})

		it('a plain git init and a commit come through, and the repository works', async () => {
			const { left, summary } = await applied(
				'git init -q new && cd new && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm one',
			)
			expect(left.filter((path) => path !== 'new/.git/hooks')).to.deep.equal([])
			expect(summary).to.match(/new {5}new\/\.git\/objects \(\d+ files and folders of git's store\)/)
			expect(readFileSync(at('new/.git/config'), 'utf8')).to.include('repositoryformatversion')
			expect([host('new', 'log', '--format=%s').stdout, host('new', 'status', '--short').stdout]).to.deep.equal([
				'one\n',
				'',
			])
		})

		for (const [name, script, left, folder] of [
			[
				'under another spelling of its name',
				`mkdir -p a/.GIT; ${bare('a/.GIT')}; ${evil('a/.GIT')}`,
				['a/.GIT/config', 'a/.GIT/hooks'],
				'a',
			],
			['without a work tree', `${bare('b')}; ${evil('b')}`, ['b/config', 'b/hooks'], 'b'],
			[
				'that a .git file names',
				`${bare('c.d')}; ${evil('c.d')}; mkdir c; echo gitdir: ../c.d > c/.git`,
				['c.d/config', 'c.d/hooks'],
				'c',
			],
			[
				'that a link names',
				`${bare('d.d')}; ${evil('d.d')}; mkdir d; ln -s ../d.d d/.git`,
				['d.d/config', 'd.d/hooks'],
				'd',
			],
			[
				'by a commondir',
				`mkdir -p e/.git m/objects m/refs; echo ref: refs/heads/m > e/.git/HEAD; echo ../../m > e/.git/commondir; ${evil('m')}`,
				['e/.git/commondir'],
				'e',
			],
			[
				'as a linked work tree of a folder that is no repository by itself',
				`mkdir -p f g.d/worktrees/w g.d/objects g.d/refs; cd g.d/worktrees/w; echo ref: refs/heads/m > HEAD; echo ../.. > commondir; echo @ROOT@/f/.git > gitdir; cd ../../..; echo gitdir: ../g.d/worktrees/w > f/.git; ${evil('g.d')}`,
				['g.d/config', 'g.d/hooks'],
				'f',
			],
			[
				'in the cache, where commands write without staging',
				`mkdir -p h; echo gitdir: /var/tmp/none > h/.git`,
				['h/.git'],
				'h',
			],
			[
				'with a configuration of its work tree',
				`git init -q --template= i; git -C i config extensions.worktreeConfig true; git -C i config --worktree core.pager 'touch x'`,
				['i/.git/config.worktree'],
				'i',
			],
			[
				'with a hidden line in the configuration',
				`git init -q --template= j; printf '[core] # \\\\\\n\\tfsmonitor = touch @ROOT@/OBEYED\\n' > j/.git/config`,
				['j/.git/config'],
				'j',
			],
			[
				'with a link for its configuration',
				`git init -q --template= k; printf '[core]\\n\\tfsmonitor = touch x\\n' > kc; ln -sf ../../kc k/.git/config`,
				['k/.git/config'],
				'k',
			],
		] as const)
			it(`git-08 no git folder of a command's making is obeyed: one ${name}`, async () => {
				const { refused } = await applied(script)
				expect(refused.map(({ path }) => path)).to.have.members([...left])
				if (existsSync(at(folder))) nothingObeyed(folder)
			})

		it('git-08 a folder does not become a repository around hooks that are there already', async () => {
			put(at('kit/hooks/post-checkout'), '#!/bin/sh\n', 0o755)
			put(at('kit2/config'), '[core]\n\tpager = x\n')
			mkdirSync(at('kit3'))
			put(at('kit3/hooks/x.sample'), '')
			put(at('kit4/objects'), '')
			put(at('kit4/refs'), '')
			const { left } = await applied(
				`${bare('kit')}; ${bare('kit2')}; ${bare('kit3')}; mkdir u kit4/hooks; echo x > kit4/HEAD; echo x > kit4/hooks/h; ln -s ../kit u/.git`,
			)
			expect(left).to.have.members([
				...['kit/HEAD', 'kit/objects', 'kit/refs', 'kit2/HEAD', 'kit2/objects', 'kit2/refs'],
				...['kit4/hooks', 'u/.git'],
			])
			expect(readdirSync(at('kit3')).sort()).to.deep.equal(['HEAD', 'hooks', 'objects', 'refs'])
		})

		it('folders that only share a name with a part of git are applied', async () => {
			writeFileSync(at('f.txt'), 'x\n')
			const { left } = await applied(
				'mkdir -p src/hooks src/refs x/config; echo "[core] pager = x" > src/config; echo 1 > src/hooks/use.ts; echo 1 > x/config/a; echo 1 > HEAD; git add src; git -c user.name=a -c user.email=a@b commit -qm one; git branch hooks; git branch feature/config; git worktree add -q wt 2>&1',
			)
			expect(left).to.deep.equal([])
			expect(readFileSync(at('src/hooks/use.ts'), 'utf8')).to.equal('1\n')
			expect(host('wt', 'log', '--format=%s', '-1').stdout).to.equal('one\n')
		})
	})

describe('sandbox: what a git configuration says, as git reads it', () => {
	it('git-08 no comment, header or line end hides a key', () => {
		for (const text of [
			'[core] # \\\nfsmonitor = x',
			'[core]\na = b ; \\\nfsmonitor = x',
			'[user][core]fsmonitor = x',
			'[user] [core] ; c\r\nfsmonitor\t= x',
			'\uFEFF[core]\nfsmonitor=x',
			'[core]\na = "x # \\\n"\nfsmonitor = x',
		])
			expect(riskyKeys(text), text).to.deep.equal(['core.fsmonitor'])
		expect(parseGitConfig('[a]\nb = c\\\n[core]\nfsmonitor = x')).to.deep.equal([
			{ key: 'a.b', value: 'c[core]' },
			{ key: 'a.fsmonitor', value: 'x' },
		])
	})

	it('git-08 further keys that run programs are known', () => {
		for (const key of [
			...['tar.x.command', 'hook.x.command', 'imap.tunnel', 'sendemail.smtpServer', 'sendemail.x.toCmd'],
			...['gpg.ssh.defaultKeyCommand', 'guitool.x.cmd', 'instaweb.httpd', 'lfs.customtransfer.x.path'],
		]) {
			const [section, ...rest] = key.split('.')
			const name = rest.pop()
			const text = `[${section}${rest.length > 0 ? ` "${rest.join('.')}"` : ''}]\n${name} = x\n`
			expect(riskyKeys(text), key).to.have.lengthOf(1)
		}
	})
})
