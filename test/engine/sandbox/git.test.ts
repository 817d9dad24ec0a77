// Garuda's own git: nothing that a repository says is run.
import { execFileSync } from 'node:child_process'
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createGit, findProgram, type Git } from '../../../src/engine/sandbox/index.ts'

describe('sandbox: git', () => {
	let base: string
	let repo: string
	let marker: string
	let git: Git
	const env = () => ({ PATH: '/usr/local/bin:/usr/bin:/bin', HOME: join(base, 'home') })
	const plain = (args: string[], cwd = repo) =>
		execFileSync('git', ['-c', 'user.name=u', '-c', 'user.email=u@x', ...args], {
			cwd,
			env: { ...env(), GIT_CONFIG_NOSYSTEM: '1' },
			encoding: 'utf8',
			stdio: ['ignore', 'pipe', 'ignore'],
		})
	const commands = [
		['status', '--porcelain'],
		['diff'],
		['diff', '--cached'],
		['log', '-p'],
		['add', '-A'],
		['commit', '-m', 'two', '--allow-empty'],
		['show', 'HEAD'],
		['branch', '--show-current'],
		['stash', 'list'],
		['checkout', '-f', 'HEAD', '--', '.'],
		['ls-files', '-m'],
		['grep', 'x'],
		['rev-parse', 'HEAD'],
	]
	const all = async (cwd = repo) => {
		for (const args of commands) {
			const { code, stderr } = await git.run(args, { cwd })
			// It must work and be quiet, not be quiet because it failed.
			expect([args[0], code, code === 0 ? '' : stderr]).to.deep.equal([args[0], 0, ''])
		}
	}
	const script = (name: string) => {
		const path = join(base, name)
		writeFileSync(path, `#!/bin/sh\necho ${name} >> '${marker}'\ncat 2>/dev/null\nexit 0\n`, { mode: 0o755 })
		return path
	}

	beforeEach(() => {
		base = mkdtempSync(join(tmpdir(), 'garuda-git-'))
		repo = join(base, 'repo')
		marker = join(base, 'ran')
		for (const path of [repo, join(base, 'home')]) mkdirSync(path)
		git = createGit({ env: env() })
		plain(['init', '-q', '-b', 'main'])
		writeFileSync(join(repo, 'a.txt'), 'x\n')
		plain(['add', '.'])
		plain(['commit', '-qm', 'one'])
		writeFileSync(join(repo, 'a.txt'), 'x\ny\n')
	})
	afterEach(() => rmSync(base, { recursive: true, force: true }))

	/** The setting acts with an ordinary git, so that a quiet marker means something. */
	const acts = (args: string[]) => {
		writeFileSync(join(repo, 'a.txt'), `x\n${Math.random()}\n`)
		try {
			plain(args)
		} catch {
			// the program it ran may have failed it
		}
		expect(existsSync(marker), `dead: git ${args.join(' ')}`).to.equal(true)
		rmSync(marker)
		writeFileSync(join(repo, 'a.txt'), `x\n${Math.random()}\n`)
	}
	const quiet = async () => {
		await all()
		expect(existsSync(marker) ? readFileSync(marker, 'utf8') : '').to.equal('')
	}

	it('git-02 core.fsmonitor, hooks and a hooks folder in the project do not run', async () => {
		plain(['config', 'core.fsmonitor', script('fsmonitor')])
		acts(['status'])
		await quiet()
		plain(['config', '--unset', 'core.fsmonitor'])
		script('hook')
		mkdirSync(join(repo, '.git/hooks'), { recursive: true })
		for (const hook of ['pre-commit', 'post-commit', 'post-checkout', 'post-index-change', 'reference-transaction'])
			symlinkSync(join(base, 'hook'), join(repo, '.git/hooks', hook))
		acts(['commit', '--allow-empty', '-qm', 'h'])
		await quiet()
		rmSync(join(repo, '.git/hooks'), { recursive: true })
		mkdirSync(join(repo, '.githooks'))
		symlinkSync(join(base, 'hook'), join(repo, '.githooks/post-commit'))
		plain(['config', 'core.hooksPath', '.githooks'])
		acts(['commit', '--allow-empty', '-qm', 'h'])
		await quiet()
	})

	it('git-05 filters, drivers, text converters, pagers, signing and aliases do not run', async () => {
		writeFileSync(join(repo, '.gitattributes'), '*.txt filter=f.x diff=d merge=m\n')
		for (const [key, name] of [
			['filter.f.x.clean', 'clean'],
			['filter.f.x.smudge', 'smudge'],
			['diff.d.textconv', 'textconv'],
			['merge.m.driver', 'driver'],
			['core.pager', 'pager'],
			['diff.external', 'external'],
			['gpg.program', 'gpg'],
			['core.editor', 'editor'],
			['credential.helper', 'helper'],
			['core.sshCommand', 'ssh'],
		] as const)
			plain(['config', key, script(name)])
		plain(['config', 'commit.gpgSign', 'true'])
		plain(['config', 'filter.f.x.required', 'true'])
		plain(['config', 'alias.status', `!${script('alias')}`])
		acts(['add', '-A'])
		acts(['diff'])
		await quiet()
		// A process filter, and one that only the included file names.
		plain(['config', '--unset', 'filter.f.x.clean'])
		writeFileSync(join(repo, 'more.cfg'), `[filter "f.x"]\n\tclean = ${script('included')}\n`)
		plain(['config', 'include.path', '../more.cfg'])
		acts(['add', '-A'])
		await quiet()
		expect((await git.run(['log', '--format=%s', '-1'], { cwd: repo })).stdout.toString()).to.equal('two\n')
	})

	it('git-05 where the git folder switches filters off nothing is looked up; where it does not quite, filters are silenced all the same', async () => {
		const log = join(base, 'started')
		const counting = join(base, 'git')
		writeFileSync(counting, `#!/bin/sh\necho x >> '${log}'\nexec /usr/bin/git "$@"\n`, { mode: 0o755 })
		const counted = createGit({ env: env(), git: counting })
		const store = join(base, 'store')
		plain(['init', '-q', '--bare', store], base)
		for (const where of [[], ['-C', store]]) plain([...where, 'config', 'filter.f.clean', script('clean')])
		writeFileSync(join(base, 'home/.gitconfig'), `[filter "f"]\n\tclean = ${script('clean')}\n\trequired = true\n`)
		writeFileSync(join(repo, '.gitattributes'), '*.txt filter=f\n')
		acts(['add', '-A'])
		const started = async (attributes: string, args: string[], input?: string): Promise<number> => {
			mkdirSync(join(store, 'info'), { recursive: true })
			writeFileSync(join(store, 'info/attributes'), attributes)
			rmSync(log, { force: true })
			rmSync(join(store, 'index'), { force: true })
			writeFileSync(join(repo, 'a.txt'), `${Math.random()}`)
			const run = await counted.run(args, {
				cwd: repo,
				gitDir: store,
				workTree: repo,
				...(input === undefined ? {} : { input }),
			})
			expect([run.code, run.stderr]).to.deep.equal([0, ''])
			expect(existsSync(marker), `${attributes} ${args.join(' ')}`).to.equal(false)
			return readFileSync(log, 'utf8').length / 2
		}
		const off = '* -text -eol -crlf -filter -ident\n'
		const add = ['update-index', '--add', '-z', '--stdin']
		expect(await started(off, add, 'a.txt\0')).to.equal(1)
		expect(await started(off, ['ls-files', '-m', '-o'])).to.equal(1)
		expect(await started(off, ['hash-object', '-w', '--path=a.txt', '--stdin'], 'x')).to.equal(1)
		for (const attributes of [
			'',
			`${off}*.txt filter=f\n`,
			'* -text filter=f\n',
			'* -filter filter=f\n',
			'[attr]evil filter=f\n* -filter evil\n',
			'*.c -filter\n',
			`# ${off}`,
		]) {
			expect(await started(attributes, add, 'a.txt\0'), attributes).to.equal(2)
			expect(await started(attributes, ['hash-object', '-w', '--path=a.txt', '--stdin'], 'x')).to.equal(2)
		}
		// A shared folder has attributes of its own; a look from inside a repository has those of others.
		writeFileSync(join(store, 'info/attributes'), off)
		writeFileSync(join(store, 'commondir'), '.\n')
		rmSync(log)
		await counted.run(['ls-files', '-m'], { cwd: repo, gitDir: store, workTree: repo })
		expect(readFileSync(log, 'utf8').length / 2).to.equal(2)
		rmSync(join(store, 'commondir'))
		// What reads no content needs no look-up; what may convert it does.
		for (const [args, input, count] of [
			[['cat-file', '--batch'], '', 1],
			[['cat-file', '--batch', '--filters'], '', 2],
			[['hash-object', '-w', '--no-filters', '--stdin'], 'x', 1],
			[['update-index', '-z', '--index-info'], '', 1],
			[['ls-files'], undefined, 2],
			[['status', '--porcelain'], undefined, 2],
		] as const) {
			rmSync(log, { force: true })
			await counted.run([...args], { cwd: repo, ...(input === undefined ? {} : { input }) })
			expect(readFileSync(log, 'utf8').length / 2, args.join(' ')).to.equal(count)
		}
		expect(existsSync(marker)).to.equal(false)
	})

	it('settings of the caller stand below the fixed ones', async () => {
		const run = (key: string) =>
			git.run(['config', key], {
				cwd: repo,
				config: [
					['core.bigFileThreshold', '7'],
					['core.fsmonitor', script('own')],
				],
			})
		expect((await run('core.bigFileThreshold')).stdout.toString()).to.equal('7\n')
		expect((await run('core.fsmonitor')).stdout.toString()).to.equal('false\n')
	})

	it('git-05 a submodule with a filter of its own is not entered', async () => {
		const sub = join(repo, 'sub')
		mkdirSync(sub)
		plain(['init', '-q'], sub)
		writeFileSync(join(sub, 's.txt'), 's\n')
		plain(['add', '.'], sub)
		plain(['commit', '-qm', 's'], sub)
		plain(['add', 'sub'])
		plain(['commit', '-qm', 'sub'])
		plain(['config', 'core.fsmonitor', script('sub-monitor')], sub)
		writeFileSync(join(sub, 's.txt'), 'changed\n')
		acts(['status'])
		await quiet()
	})

	it('git-07 a bare repository planted in the root is never taken; an explicit one is', async () => {
		const bare = join(base, 'planted')
		plain(['init', '-q', '--bare', bare], base)
		execFileSync('git', ['config', 'core.fsmonitor', script('bare')], { cwd: bare, env: env() })
		const looked = await git.run(['rev-parse', '--git-dir'], { cwd: bare })
		expect(looked.code).to.not.equal(0)
		expect(looked.stderr).to.match(/bare/)
		expect((await git.run(['status'], { cwd: bare })).code).to.not.equal(0)
		expect(
			(await git.run(['rev-parse', '--is-bare-repository'], { cwd: bare, gitDir: bare })).stdout.toString(),
		).to.equal('true\n')
		expect(existsSync(marker)).to.equal(false)
	})

	it('git-16 env-03 variables of the caller do not reach it', async () => {
		const poisoned = createGit({
			env: {
				...env(),
				GIT_DIR: '/nowhere',
				GIT_INDEX_FILE: '/nowhere',
				GIT_WORK_TREE: '/',
				GIT_CONFIG_COUNT: '1',
				GIT_CONFIG_KEY_0: 'core.fsmonitor',
				GIT_CONFIG_VALUE_0: script('env'),
				GIT_EXTERNAL_DIFF: script('ext'),
				GIT_SSH_COMMAND: script('ssh'),
				LD_PRELOAD: '/nowhere',
			},
		})
		const { code, stdout, stderr } = await poisoned.run(['diff'], { cwd: repo })
		expect([code, stderr]).to.deep.equal([0, ''])
		expect(stdout.toString()).to.include('+y')
		expect((await poisoned.run(['status', '--porcelain'], { cwd: repo })).stdout.toString()).to.equal(' M a.txt\n')
		expect(existsSync(marker)).to.equal(false)
	})

	it('git-13 names with shell characters are only names', async () => {
		const name = `x;touch$IFS${marker.replaceAll('/', '_')}`
		expect((await git.run(['branch', '--', name], { cwd: repo })).code).to.equal(0)
		writeFileSync(join(repo, '$(touch z);`x`.txt'), '')
		await quiet()
		expect(
			(await git.run(['for-each-ref', '--format=%(refname:short)', 'refs/heads'], { cwd: repo })).stdout.toString(),
		).to.include(name)
		await git.run(['log'], { cwd: repo }).then(({ code }) => expect(code).to.equal(0))
		const option = await git.run(['-c', 'core.pager=touch x', 'log'], { cwd: repo }).catch((error) => error)
		expect(option.message).to.include('after the command')
	})

	it('N07 git-14 a commit of its own is not stopped by hooks, signing or a missing identity', async () => {
		mkdirSync(join(repo, '.git/hooks'), { recursive: true })
		writeFileSync(join(repo, '.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
		plain(['config', 'commit.gpgsign', 'true'])
		plain(['config', 'user.useConfigOnly', 'true'])
		expect((await git.run(['add', '-A'], { cwd: repo })).code).to.equal(0)
		const made = await git.run(['commit', '-qm', 'work'], { cwd: repo })
		expect([made.code, made.stderr]).to.deep.equal([0, ''])
		expect((await git.run(['log', '-1', '--format=%an %s'], { cwd: repo })).stdout.toString()).to.equal('Garuda work\n')
	})

	it('N08 empty, detached, bare, missing and foreign repositories give an answer, not a crash', async () => {
		const empty = join(base, 'empty')
		mkdirSync(empty)
		plain(['init', '-q'], empty)
		expect((await git.run(['status', '--porcelain'], { cwd: empty })).code).to.equal(0)
		expect((await git.run(['rev-parse', 'HEAD'], { cwd: empty })).code).to.not.equal(0)
		plain(['checkout', '-q', '--detach'])
		expect((await git.run(['branch', '--show-current'], { cwd: repo })).stdout.toString()).to.equal('')
		const none = await git.run(['status'], { cwd: base })
		expect(none.code).to.equal(128)
		expect(none.stderr).to.include('not a git repository')
		const missing = createGit({ env: { PATH: join(base, 'home') } })
		expect(await missing.available()).to.equal(null)
		expect((await missing.run(['status'], { cwd: repo }).catch((error) => error)).message).to.include('no git')
		expect(await git.available()).to.match(/^\d+\.\d+/)
	})

	it('N09 looking takes no lock: status leaves the index as it is, also while the lock is held', async () => {
		const index = join(repo, '.git/index')
		const before = readFileSync(index)
		writeFileSync(join(repo, '.git/index.lock'), '')
		expect(
			await Promise.all(
				Array.from({ length: 10 }, () => git.run(['status', '--porcelain'], { cwd: repo }).then(({ code }) => code)),
			),
		).to.deep.equal(Array(10).fill(0))
		rmSync(join(repo, '.git/index.lock'))
		await git.run(['status'], { cwd: repo })
		expect(readFileSync(index).equals(before)).to.equal(true)
	})

	it('ends at its limits of time, output and abort, and says which', async () => {
		const input = Buffer.alloc(100_000, 'x')
		expect((await git.run(['hash-object', '--stdin'], { cwd: repo, input })).stdout.toString()).to.match(
			/^[0-9a-f]{40}\n$/,
		)
		const much = await git.run(['show', 'HEAD:a.txt'], { cwd: repo, maxBytes: 1 })
		expect(much).to.include({ code: null, stderr: 'git wrote more than 1 bytes\n' })
		const late = await git.run(['hash-object', '--stdin'], { cwd: repo, timeoutMs: 1, input: Buffer.alloc(30_000_000) })
		expect(late.stderr).to.match(/took longer/)
		expect((await git.run(['status'], { cwd: repo, signal: AbortSignal.abort() })).stderr).to.match(/cancelled/)
	})

	it('config-15 programs come from absolute PATH entries outside the root that others cannot write', () => {
		const planted = join(repo, 'bin')
		const open = join(base, 'open')
		const linked = join(base, 'linked')
		for (const path of [planted, open, linked]) mkdirSync(path)
		for (const path of [planted, open]) writeFileSync(join(path, 'git'), '#!/bin/sh\n', { mode: 0o755 })
		symlinkSync(join(planted, 'git'), join(linked, 'git'))
		chmodSync(open, 0o777)
		expect(findProgram('git', `.:./bin::${planted}:${open}:${linked}:/usr/bin`, [repo])).to.equal('/usr/bin/git')
		expect(findProgram('git', `.:${planted}`, [repo])).to.equal(undefined)
		expect(findProgram('git', planted, [])).to.equal(join(planted, 'git'))
		expect(findProgram('no-such-program', '/usr/bin', [])).to.equal(undefined)
	})
})
