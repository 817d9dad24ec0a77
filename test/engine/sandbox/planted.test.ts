// What a command cannot plant: names that git folders lack, startup files that a home lacks, included configuration, and
// what the watch says about the rest.
import { execFileSync } from 'node:child_process'
import {
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	realpathSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { Executor, RunResult } from '../../../src/engine/ports.ts'
import { createExecutor, type SandboxOptions } from '../../../src/engine/sandbox/index.ts'
import { Placeholders } from '../../../src/engine/sandbox/placeholders.ts'
import { createWatch } from '../../../src/engine/sandbox/watch.ts'
import { asNobody, readableCopy } from './copy.ts'
import { put } from './fixture.ts'

const never = new AbortController().signal
const isRoot = process.getuid?.() === 0

/** A git folder of the attacker in $PWD/evil, and a commondir that names it in each git folder that git knows here. */
const plantCommondir = `
common=$(git rev-parse --path-format=absolute --git-common-dir); own=$(git rev-parse --path-format=absolute --git-dir)
mkdir -p evil && cp -r "$common/objects" "$common/refs" "$common/HEAD" evil/
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "touch %s/PWNED; false"\\n' "$PWD" > evil/config
for folder in "$common" "$own"; do echo "$PWD/evil" > "$folder/commondir" && echo "PLANTED $folder"; done`

describe('sandbox: planting', () => {
	let base: string
	let home: string
	let root: string
	const open: Executor[] = []

	const git = (cwd: string, ...args: string[]): string =>
		execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=b', '-c', 'protocol.file.allow=always', ...args], {
			cwd,
			env: { PATH: '/usr/bin:/bin', HOME: base, GIT_CONFIG_NOSYSTEM: '1' },
			stdio: 'pipe',
			encoding: 'utf8',
		})
	const repository = (path: string, ...init: string[]): string => {
		put(join(path, 'sub/a.txt'), 'a\n')
		git(path, 'init', '-q', ...init)
		git(path, 'add', '-A')
		git(path, 'commit', '-qm', 'one')
		return path
	}
	const executor = async (more: Partial<SandboxOptions> = {}): Promise<Executor> => {
		const tmp = mkdtempSync(join(base, 'sessions/s-'))
		const made = await createExecutor({
			root,
			extraDirs: [],
			home,
			tmp,
			env: { PATH: '/usr/bin:/bin', HOME: home },
			executor: 'sandbox',
			profile: 'standard',
			writePaths: [],
			envAllow: [],
			caches: [],
			...more,
		})
		open.push(made.executor)
		return made.executor
	}
	const run = async (script: string, more: Partial<SandboxOptions> = {}, cwd?: string): Promise<RunResult> =>
		(await executor(more)).run({ script, cwd: cwd ?? more.root ?? root, timeoutMs: 15_000 }, never)

	beforeEach(() => {
		base = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-planted-')))
		home = join(base, 'home')
		root = join(base, 'project')
		for (const path of [home, root, join(base, 'sessions')]) mkdirSync(path)
	})
	afterEach(async () => {
		await Promise.all(open.splice(0).map((each) => each.close()))
		rmSync(base, { recursive: true, force: true })
	})

	/** Where commands work, where the user then asks git, and the git folders that must stay without a commondir. */
	const places: Record<string, () => { cwd: string; asks: string[]; bare: string[]; more?: Partial<SandboxOptions> }> =
		{
			'the root of a repository': () => {
				repository(root)
				return { cwd: root, asks: [root], bare: [join(root, '.git')] }
			},
			'a sub-folder of a repository': () => {
				repository(root)
				return { cwd: join(root, 'sub'), asks: [root], bare: [join(root, '.git')] }
			},
			'a linked worktree': () => {
				repository(root)
				git(root, 'worktree', 'add', '-q', join(base, 'tree'))
				return { cwd: join(base, 'tree'), asks: [root, join(base, 'tree')], bare: [join(root, '.git')] }
			},
			'a submodule': () => {
				repository(join(base, 'origin'))
				repository(root)
				git(root, 'submodule', '-q', 'add', join(base, 'origin'), 'mod')
				return { cwd: join(root, 'mod'), asks: [join(root, 'mod'), root], bare: [join(root, '.git/modules/mod')] }
			},
			'a repository with a submodule': () => {
				repository(join(base, 'origin'))
				repository(root)
				git(root, 'submodule', '-q', 'add', join(base, 'origin'), 'mod')
				const more = { root }
				return {
					cwd: join(root, 'mod'),
					asks: [join(root, 'mod'), root],
					bare: [join(root, '.git/modules/mod'), join(root, '.git')],
					more,
				}
			},
			'an added sub-folder of another repository': () => {
				repository(root)
				const other = repository(join(base, 'other'))
				const more = { root, extraDirs: [join(other, 'sub')] }
				return { cwd: join(other, 'sub'), asks: [other], bare: [join(other, '.git')], more }
			},
			'a nested repository': () => {
				repository(root)
				repository(join(root, 'inner'))
				return {
					cwd: join(root, 'inner'),
					asks: [join(root, 'inner')],
					bare: [join(root, 'inner/.git')],
					more: { root },
				}
			},
		}
	for (const [where, make] of Object.entries(places))
		it(`plant-1 a commondir cannot be planted from ${where}, and git works on both sides`, async () => {
			const { cwd, asks, bare, more = { root: cwd } } = make()
			const before = bare.map((path) => readdirSync(path).includes('commondir'))
			const sandbox = await executor(more)
			const { output } = await sandbox.run(
				{
					script: `${plantCommondir}; echo new > new.txt; git add new.txt && git -c user.name=a -c user.email=b commit -qm two && echo done`,
					cwd,
					timeoutMs: 15_000,
				},
				never,
			)
			expect(output)
				.to.include('done')
				.and.match(/commondir: Read-only/)
			expect(output).to.not.include('PLANTED')
			for (const path of asks) git(path, 'status')
			expect(existsSync(join(cwd, 'PWNED'))).to.equal(false)
			expect(git(cwd, 'log', '--format=%s', '-1')).to.equal('two\n')
			expect(bare.map((path) => readdirSync(path).includes('commondir'))).to.deep.equal(before)
		})

	it('plant-1 control: without the sandbox the same script acts', async () => {
		repository(root)
		const { output } = await run(plantCommondir, { executor: 'host' })
		expect(output).to.include('PLANTED')
		git(root, 'status')
		expect(existsSync(join(root, 'PWNED'))).to.equal(true)
	})

	for (const where of ['the root', 'a sub-folder', 'a nested repository'] as const)
		it(`plant-2 absent hooks, info and config.worktree cannot be made from ${where}`, async () => {
			const top = where === 'a nested repository' ? join(root, 'inner') : root
			repository(root, '--template=')
			if (top !== root) repository(top, '--template=')
			expect(existsSync(join(top, '.git/hooks'))).to.equal(false)
			const names = ['hooks/post-checkout', 'hooks/pre-commit', 'info/attributes', 'config.worktree']
			const script = `for name in ${names.join(' ')}; do mkdir -p "$(dirname "${top}/.git/$name")"; echo 'touch x' > "${top}/.git/$name" && echo "WROTE $name"; done; mv ${top}/.git ${top}/.g2 && echo MOVED; mv ${top}/.git/hooks ${top}/.git/h && echo MOVED; true`
			const { output } = await run(script, { root: where === 'a sub-folder' ? join(root, 'sub') : root })
			expect(output).to.not.match(/WROTE|MOVED/)
			for (const name of names) expect(existsSync(join(top, '.git', name)), name).to.equal(false)
		})

	it('plant-2 a hooks link that leads nowhere yet: what appears there is told', async () => {
		repository(root, '--template=')
		symlinkSync('../later', join(root, '.git/hooks'))
		const { findings } = await run('mkdir later; echo x > later/post-checkout')
		expect(findings?.join('\n')).to.include(`${root}/later (a hooks folder`)
	})

	it('plant-3 while a command runs the user may ask git; what it plants has no effect then either', async () => {
		repository(root)
		const sandbox = await executor()
		let ready = () => {}
		const planted = new Promise<void>((resolve) => {
			ready = resolve
		})
		const running = sandbox.run(
			{
				script: `${plantCommondir}; rm -f .git/commondir; mv evil/config .git/commondir; ln -sf ../evil .git/commondir; echo READY; sleep 0.6; rm -rf evil`,
				cwd: root,
				timeoutMs: 15_000,
				onOutput: (text) => text.includes('READY') && ready(),
			},
			never,
		)
		await planted
		expect(git(root, 'status', '--short')).to.match(/^\?\? \.garuda\/\n\?\? evil\/\n$|^\?\? evil\/\n$/)
		expect(existsSync(join(root, 'PWNED'))).to.equal(false)
		put(join(root, 'mine.txt'), 'x')
		git(root, 'add', 'mine.txt')
		git(root, 'commit', '-qm', 'of the user')
		git(root, 'branch', 'side')
		expect(git(root, 'rev-parse', '--is-bare-repository', '--show-toplevel')).to.equal(`false\n${root}\n`)
		const { output } = await running
		expect(output).to.not.include('PLANTED')
		expect(existsSync(join(root, '.git/commondir'))).to.equal(false)
		expect(git(root, 'log', '--format=%s', '-1')).to.equal('of the user\n')
	})

	it('plant-3 the ordinary work with git goes on in the sandbox', async () => {
		repository(join(base, 'origin'))
		repository(root)
		git(root, 'submodule', '-q', 'add', join(base, 'origin'), 'mod')
		git(root, 'commit', '-qam', 'mod')
		const script = `set -e
g() { git -c user.name=a -c user.email=b -c protocol.file.allow=always "$@"; }
echo b > b.txt; g add b.txt; g commit -qm two; g checkout -q -b side; echo c >> b.txt; g stash -q; g stash pop -q; g commit -qam three
g checkout -q -; g merge -q side; g tag t; g worktree add -q tree -b w; (cd tree; echo z > z; g add z; g commit -qm z); g worktree remove tree
g rebase -q w; g reset -q --hard HEAD; g gc -q; g fsck --no-progress; g pack-refs --all; g clone -q . /tmp/clone; g bisect start; g bisect reset
(cd mod; echo q > q; g add q; g commit -qm q; [ "$(g rev-parse --show-toplevel)" = "$PWD" ]); g submodule status; g status --short; g reflog > /tmp/r; echo ALL DONE`
		const { output, code } = await run(script)
		expect(output).to.include('ALL DONE')
		expect(code, output).to.equal(0)
		expect(git(root, 'worktree', 'list').trim().split('\n')).to.have.length(1)
	})

	it('plant-3 what a worktree of the repository is told stays, and other worktrees can still be made', async () => {
		repository(root)
		git(root, 'worktree', 'add', '-q', join(base, 'tree'))
		const folder = join(root, '.git/worktrees/tree')
		const { output } = await run(
			`mkdir evil; for f in commondir gitdir; do echo "$PWD/evil" > ${folder}/$f && echo WROTE; done; mv ${folder} ${folder}2 && echo MOVED; git worktree add -q second && echo made`,
		)
		expect(output)
			.to.include('made')
			.and.not.match(/WROTE|MOVED/)
		expect(readFileSync(join(folder, 'commondir'), 'utf8')).to.equal('../..\n')
	})

	it('plant-3 where git would forget its working folder no placeholder is made, and a planted commondir goes', async () => {
		for (const settings of [{ 'core.worktree': '../sub' }, { 'core.bare': 'true' }] as Record<string, string>[]) {
			rmSync(root, { recursive: true })
			repository(root)
			for (const [key, value] of Object.entries(settings)) git(root, 'config', key, value)
			const { output, findings } = await run('ls .git; echo x > .git/commondir; echo done')
			expect(output).to.not.match(/^commondir$/m)
			expect(output).to.include('done')
			expect(findings?.join()).to.include('.git/commondir (removed')
			expect(existsSync(join(root, '.git/commondir'))).to.equal(false)
		}
		// A submodule has a core.worktree, but the one git finds by itself.
		rmSync(root, { recursive: true })
		repository(root)
		git(root, 'config', 'core.worktree', '..')
		expect((await run('echo x > .git/commondir')).output).to.match(/Read-only/)
	})

	it('plant-3 a placeholder is there while anybody needs it: the last session of two removes it', async () => {
		repository(root)
		const wanted = [
			{ path: join(root, '.git/commondir'), text: '.' },
			{ path: join(root, '.git/hooks2'), text: null },
		]
		const there = () => existsSync(join(root, '.git/commondir'))
		const [one, two] = ['s-a-own-1', 's-b-own-1'].map((name) => {
			mkdirSync(join(base, 'sessions', name))
			return new Placeholders(join(base, 'sessions', name))
		}) as [Placeholders, Placeholders]
		const [first, second] = [one.hold(wanted), one.hold(wanted)]
		first()
		first()
		expect(there()).to.equal(true)
		second()
		expect(there()).to.equal(false)
		expect(existsSync(join(root, '.git/hooks2'))).to.equal(true)
		const [a, b] = [one.hold(wanted), two.hold(wanted)]
		a()
		one.close()
		expect(there()).to.equal(true)
		b()
		expect(there()).to.equal(false)
		// A real one, made by somebody in between, is nobody's to remove; an empty one is no commondir.
		writeFileSync(join(root, '.git/commondir'), '../other\n')
		two.hold(wanted)()
		expect(readFileSync(join(root, '.git/commondir'), 'utf8')).to.equal('../other\n')
		writeFileSync(join(root, '.git/commondir'), '')
		const c = two.hold(wanted)
		expect(readFileSync(join(root, '.git/commondir'), 'utf8')).to.equal('.')
		c()
		expect(there()).to.equal(false)
	})

	it('plant-3 a planted link does not lead a placeholder out of the root', async () => {
		repository(root)
		const other = repository(join(base, 'other'), '--template=')
		mkdirSync(join(root, '.git/modules'))
		symlinkSync(join(other, '.git'), join(root, '.git/modules/x'))
		const { output } = await run(`ls -a ${other}/.git; echo done`)
		expect(output)
			.to.include('done')
			.and.not.match(/^(commondir|hooks)$/m)
		expect(existsSync(join(other, '.git/hooks'))).to.equal(false)
	})

	const startup = [
		'.ssh/authorized_keys',
		'.bash_profile',
		'.bashrc',
		'.profile',
		'.zshrc',
		'.gitconfig',
		'.config/systemd/user/x.service',
		'.config/autostart/x.desktop',
		'.local/bin/ls',
		'.npmrc',
		'.aws/config',
		'.garuda/settings.json',
	]
	const makeAll = `for name in ${startup.join(' ')}; do mkdir -p "$(dirname "$HOME/$name")"; echo evil > "$HOME/$name"; done; echo mine > $HOME/notes.txt; true`

	for (const where of ['the home', 'its parent'] as const)
		it(`plant-7 root is ${where}: startup files and places of secrets that did not exist are moved away, and told`, async () => {
			root = where === 'the home' ? home : base
			put(join(home, '.zshenv'), 'mine')
			const { findings = [], output } = await run(makeAll, { root, tmp: join(base, 'sessions') })
			for (const name of startup) expect(existsSync(join(home, name)), name).to.equal(false)
			expect(readFileSync(join(home, '.zshenv'), 'utf8')).to.equal('mine')
			expect(readFileSync(join(home, 'notes.txt'), 'utf8')).to.equal('mine\n')
			const kept = readdirSync(join(home, '.garuda/quarantine'), { recursive: true, encoding: 'utf8' })
			for (const name of ['.bashrc', '.ssh/authorized_keys', 'systemd/user/x.service', 'bin/ls'])
				expect(kept.some((path) => path.endsWith(`/${name}`))).to.equal(true)
			for (const name of ['.ssh', '.bashrc', '.config/systemd', '.local/bin', '.npmrc', '.aws'])
				expect(
					findings.some((line) => line.startsWith(`${home}/${name} (`) && line.includes('moved to')),
					name,
				).to.equal(true)
			expect(output).to.include('.bashrc')
		})

	it('plant-7 a root below the home, plan mode and what was there before are left alone', async () => {
		root = join(home, 'work')
		mkdirSync(root)
		for (const name of ['.bashrc', '.npmrc']) put(join(home, name), 'mine')
		const below = await run('mkdir .ssh; echo x > .bashrc; echo fine')
		expect(below.findings).to.equal(undefined)
		expect(existsSync(join(root, '.bashrc'))).to.equal(true)
		const sandbox = await executor({ root: home })
		await sandbox.run({ script: makeAll, cwd: home, timeoutMs: 5_000, readOnly: true }, never)
		const { findings } = await sandbox.run({ script: 'echo fine', cwd: home, timeoutMs: 5_000 }, never)
		expect(findings).to.equal(undefined)
		for (const name of ['.bashrc', '.npmrc']) expect(readFileSync(join(home, name), 'utf8')).to.equal('mine')
		expect(existsSync(join(home, '.garuda/quarantine'))).to.equal(false)
	})

	it('plant-7 a link on the way moves nothing that the command could not have made', async () => {
		root = home
		put(join(base, 'host/systemd/user/real.service'), 'mine')
		const { findings = [] } = await run(`ln -s ${base}/host $HOME/.config`)
		expect(readFileSync(join(base, 'host/systemd/user/real.service'), 'utf8')).to.equal('mine')
		expect(findings.join('\n')).to.match(/\.config\/systemd \(.*reached through a link/)
	})

	it('plant-8 an included configuration that does not exist yet: one that runs programs is moved away', async () => {
		repository(root)
		for (const path of ['../.gitconfig', '../cfg/git.inc', '../cfg/plain.inc'])
			git(root, 'config', '--add', 'include.path', path)
		git(root, 'config', 'includeIf.gitdir:/.path', '../cfg/cond.inc')
		const evil = `printf '[core]\\n\\tfsmonitor = "touch ${root}/PWNED; false"\\n'`
		const { findings = [] } = await run(
			`mkdir cfg; ${evil} > cfg/git.inc; ${evil} > cfg/cond.inc; ${evil} > .gitconfig; printf '[user]\\n\\tname = x\\n' > cfg/plain.inc`,
		)
		git(root, 'status')
		expect(existsSync(join(root, 'PWNED'))).to.equal(false)
		expect(readdirSync(join(root, 'cfg'))).to.deep.equal(['plain.inc'])
		expect(findings.filter((line) => line.includes('core.fsmonitor; moved to'))).to.have.length(3)
		expect(findings.filter((line) => line.includes('cfg/plain.inc (included'))).to.have.length(1)
		// Now it is there, and protected.
		expect((await run('echo x >> cfg/plain.inc')).output).to.match(/Read-only/)
	})

	it('plant-9 a nested repository is found and protected however wide the tree is', async () => {
		repository(root)
		for (let n = 0; n < 2_100; n++) mkdirSync(join(root, `wide/${n % 30}/${n}`), { recursive: true })
		const deep = repository(join(root, 'z/y/x/lib'), '--template=')
		const sandbox = await executor()
		const say = async (script: string) => (await sandbox.run({ script, cwd: root, timeoutMs: 5_000 }, never)).output
		// On a busy machine the first look ends early, and the walk in the background goes on.
		const mounted = async () => (await say(`grep -c ${deep}/.git/config /proc/self/mountinfo`)) === '1\n'
		for (let tries = 0; !(await mounted()) && tries < 50; tries++) await delay(50)
		const output = await say(`echo x > ${deep}/.git/hooks/pre-commit; echo x >> ${deep}/.git/config; echo fine`)
		expect(output)
			.to.include('fine')
			.and.match(/hooks\/pre-commit: Read-only[\s\S]*config: Read-only/)
	})

	it('plant-9 beyond the bounds of a look a walk in the background goes on; what no walk reaches is told once', async () => {
		for (let n = 0; n < 200; n++) mkdirSync(join(root, `wide/${n}`), { recursive: true })
		put(join(root, 'wide/199/deep/.git/hooks/pre-commit'), 'x')
		const bounds = { firstMs: 0, laterMs: 0, folders: 1_000, walkEveryMs: 0, repositories: 10 }
		const watch = createWatch([root], () => [], bounds)
		expect(watch.known().nested).to.deep.equal([])
		expect(watch.findings(Date.now()).join()).to.include('not all folders').and.include('in the background')
		expect(watch.findings(Date.now())).to.deep.equal([])
		const until = async (done: () => boolean) => {
			for (let waited = 0; !done() && waited < 3_000; waited += 20) await delay(20)
			expect(done()).to.equal(true)
		}
		await until(() => watch.findings(Date.now() + 1e6).length === 0 && watch.known().nested.length === 1)
		// Made long before the walk that finds it, and told all the same.
		put(join(root, 'wide/198/deep/.git/hooks/post-checkout'), 'x')
		let late: string[] = []
		await until(() => {
			late = [...late, ...watch.findings(Date.now() + 1e6)]
			return late.length > 0
		})
		expect(late).to.deep.equal([`${root}/wide/198/deep/.git/hooks/post-checkout (a git hook)`])
		const narrow = createWatch([root], () => [], { ...bounds, folders: 100 })
		narrow.known()
		await delay(60)
		let told: string[] = []
		await until(() => {
			told = [...told, ...narrow.findings(Date.now())]
			return told.some((line) => line.includes('only 100 were'))
		})
		expect(narrow.findings(Date.now())).to.deep.equal([])
	})

	it('plant-9 more repositories than are protected: each change is told', async () => {
		repository(root)
		for (let n = 10; n < 90; n++)
			for (const name of ['HEAD', 'config', 'objects/.k', 'refs/.k', 'hooks/.k']) put(join(root, `r${n}/.git/${name}`))
		const { findings = [] } = await run('for r in r*; do echo x > $r/.git/hooks/pre-commit; done 2>/dev/null; true')
		const written = readdirSync(root).filter((name) => existsSync(join(root, name, '.git/hooks/pre-commit')))
		expect(written.length).to.equal(16)
		for (const name of written)
			expect(findings.join('\n')).to.include(`${root}/${name}/.git/hooks/pre-commit (a git hook)`)
	})

	it('plant-10 findings are data too, in the sandbox and with streams kept apart', async () => {
		const sandbox = await executor()
		const spec = { cwd: root, timeoutMs: 5_000 }
		const { findings, output } = await sandbox.run({ ...spec, script: 'mkdir .idea; echo {} > .idea/x.xml' }, never)
		expect(findings).to.deep.equal([`${root}/.idea/x.xml`])
		expect(output).to.include('[note: ')
		const apart = await sandbox.run({ ...spec, script: 'echo {} > .mcp.json', separate: true }, never)
		expect(apart.findings).to.deep.equal([`${root}/.mcp.json`])
		expect((await sandbox.run({ ...spec, script: 'echo fine' }, never)).findings).to.equal(undefined)
	})

	it('plant-31 the journals of the project are hidden from commands, also in plan mode and through links', async () => {
		put(join(root, '.garuda/sessions/1.jsonl'), 'JOURNAL')
		put(join(root, '.garuda/memory.md'), 'MEMORY')
		for (const readOnly of [false, true]) {
			const sandbox = await executor()
			const { output } = await sandbox.run(
				{ script: 'grep -r R . /proc/self/cwd/; ls -A .garuda/sessions', cwd: root, timeoutMs: 5_000, readOnly },
				never,
			)
			expect(output).to.include('memory.md').and.not.include('JOURNAL')
		}
		// A project may bring a link there: it must not hide another folder.
		rmSync(join(root, '.garuda/sessions'), { recursive: true })
		symlinkSync('/usr', join(root, '.garuda/sessions'))
		expect((await run('ls /usr/bin/env')).output).to.equal('/usr/bin/env\n')
	})

	it('plant-1 plant-3 plant-7 hold for an ordinary user', function () {
		if (!isRoot) {
			console.log('      not root: the tests above ran as an ordinary user already')
			this.skip()
		}
		this.timeout(60_000)
		const copy = readableCopy()
		try {
			const at = (name: string) => join(copy, 'tmp', name)
			const act = (errand: string, where: string, of: string, script: string) => {
				const ran = asNobody(copy, [errand, where, of, at('s-PID-x'), script])
				expect(ran.status, ran.stderr).to.equal(0)
				return JSON.parse(ran.stdout).result as RunResult
			}
			const make =
				'git init -q --template= . && mkdir sub && git -c user.name=a -c user.email=b commit -q --allow-empty -m one'
			expect(act('outside', at('p'), at('h'), make).code).to.equal(0)
			const attack = `${plantCommondir}; echo x > ../.git/hooks/post-checkout && echo PLANTED hook; echo done`
			const inside = act('run', at('p/sub'), at('h'), attack)
			expect(inside.output).to.include('done').and.not.include('PLANTED')
			expect(existsSync(at('p/.git/commondir'))).to.equal(false)
			const planted = act('run', at('h2'), at('h2'), makeAll)
			expect(planted.findings?.length).to.be.at.least(9)
			expect(existsSync(at('h2/.bashrc'))).to.equal(false)
			expect(act('outside', at('p/sub'), at('h'), attack).output).to.include('PLANTED')
		} finally {
			rmSync(copy, { recursive: true, force: true })
		}
	})

	it('the placeholders end with the command also where it is aborted', async () => {
		repository(root)
		const sandbox = await executor()
		const abort = new AbortController()
		const running = sandbox.run(
			{ script: 'echo on; sleep 20', cwd: root, timeoutMs: 30_000, onOutput: () => abort.abort() },
			abort.signal,
		)
		expect((await running).cancelled).to.equal(true)
		expect(readdirSync(join(root, '.git'))).to.not.include('commondir')
		expect(dirname(join(root, '.git'))).to.equal(root)
	})
})
