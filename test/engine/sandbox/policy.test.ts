// What a command sees and writes: the order of mounts, repositories and links, what is found afterwards, and the negative control.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { UserError } from '../../../src/engine/errors.ts'
import { bubblewrapFlags } from '../../../src/engine/sandbox/bubblewrap.ts'
import { parseGitConfig, riskyKeys } from '../../../src/engine/sandbox/git-config.ts'
import { createExecutor, type SandboxOptions } from '../../../src/engine/sandbox/index.ts'
import { aliases, createPolicyBuilder, type Policy } from '../../../src/engine/sandbox/policy.ts'
import { seccompFilter } from '../../../src/engine/sandbox/seccomp.ts'
import { skip } from '../../helpers/skip.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'

const never = new AbortController().signal
const isRoot = process.getuid?.() === 0

describe('sandbox: policy', () => {
	let fixture: Fixture
	beforeEach(() => {
		fixture = makeFixture()
	})
	afterEach(() => fixture.remove())
	after(() => {
		for (const folder of ['/tmp', '/var/tmp']) rmSync(`${folder}/garuda-control`, { force: true })
	})
	const git = (args: string[], cwd = fixture.root) =>
		execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=b', ...args], {
			cwd,
			env: { PATH: '/usr/bin:/bin', HOME: fixture.base },
			stdio: 'pipe',
			encoding: 'utf8',
		})
	const run = async (script: string, more: Partial<SandboxOptions> = {}, cwd?: string) => {
		const { executor } = await createExecutor(fixture.options(more))
		try {
			return await executor.run({ script, cwd: cwd ?? more.root ?? fixture.root, timeoutMs: 10_000 }, never)
		} finally {
			await executor.close()
		}
	}
	const build = (more: Partial<SandboxOptions> = {}, readOnly = false): Policy =>
		createPolicyBuilder({
			...fixture.options(more),
			denyRead: more.denyRead ?? [],
			tmpBytes: 1e6,
			emptyFile: '/e',
			emptyFolder: '/f',
			own: '/o',
			filter: true,
		}).build({ cwd: fixture.root, env: {}, readOnly, nested: [], sockets: [] })

	it('orders mounts: shallow before deep, protection over pins, masks last, and every flag that closes a trap', () => {
		const path = fc
			.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 })
			.map((parts) => `/${parts.join('/')}`)
		const policy = fc.record({
			procHidden: fc.constant<string[]>(['/proc/keys']),
			base: fc.array(
				fc.record({ kind: fc.constantFrom('private' as const, 'read' as const, 'write' as const), path }),
				{ maxLength: 6 },
			),
			pins: fc.array(path, { maxLength: 3 }),
			protect: fc.array(path, { maxLength: 3 }),
			masks: fc.array(fc.record({ path, folder: fc.boolean() }), { maxLength: 4 }),
			back: fc.constant<Policy['back']>([]),
			absent: fc.constant<string[]>([]),
			absentIncludes: fc.constant<string[]>([]),
			absentHome: fc.constant<string[]>([]),
			emptyFile: fc.constant('/e'),
			emptyFolder: fc.constant('/f'),
			tmpBytes: fc.constant(5),
			cwd: fc.constant('/a'),
			env: fc.constant({ A: 'b' }),
			filter: fc.constant(true),
		})
		fc.assert(
			fc.property(policy, (each) => {
				const flags = bubblewrapFlags(each)
				const text = flags.join(' ')
				for (const part of [
					'--unshare-user --unshare-all --disable-userns --cap-drop ALL --die-with-parent --new-session',
					'--proc /proc --remount-ro /proc',
					'--chdir /a --clearenv --setenv A b --seccomp 4 --json-status-fd 5',
				])
					expect(text).to.include(part)
				const at = flags.indexOf('/proc/keys') + 1
				const mounts = flags.slice(at, flags.indexOf('--chdir')).filter((flag) => /^\/[abc]/.test(flag))
				const masks = each.masks.map((mask) => mask.path)
				expect(mounts.slice(mounts.length - masks.length)).to.deep.equal(masks)
				const before = flags.slice(at, flags.indexOf('--chdir') - masks.length * 3)
				const depths: number[] = []
				for (let index = 0; index < before.length; index++) {
					if (before[index] === '--tmpfs') depths.push(before[index + 1]!.split('/').length)
					if (before[index] === '--bind' || before[index] === '--ro-bind')
						depths.push(before[index + 2]!.split('/').length)
				}
				expect(depths).to.deep.equal(depths.toSorted((a, b) => a - b))
			}),
			{ numRuns: 200 },
		)
	})

	it('plan mode binds nothing writable but the session folder', () => {
		const policy = build({ writePaths: [fixture.home] }, true)
		expect(policy.base.filter(({ kind, source }) => kind === 'write' && !source)).to.deep.equal([])
		expect(build().base.some(({ kind, path }) => kind === 'write' && path === fixture.root)).to.equal(true)
	})

	it('T11 a root inside a masked folder comes back with its protection; its neighbours stay hidden', async () => {
		const root = join(fixture.home, '.garuda/worktrees/j1')
		for (const name of ['.vscode/x.json', 'a.txt']) put(join(root, name), 'mine')
		put(join(fixture.home, '.garuda/worktrees/j2/b.txt'), 'other')
		const { output } = await run(
			'cat a.txt; echo; touch new && echo wrote; touch .vscode/y; ls ..; cat ~/.garuda/k; touch ../z',
			{ root },
		)
		expect(output).to.match(/^mine\nwrote\n/)
		expect(output)
			.to.match(/\.vscode\/y.*Read-only/)
			.and.match(/\nj1\n/)
		expect(output).to.not.include('j2')
		expect(output).to.not.include('SECRETTOKEN')
		expect(existsSync(join(root, 'new'))).to.equal(true)
		expect(existsSync(join(root, '../z'))).to.equal(false)
		const failed = await run('true', { root: join(fixture.home, '.ssh') }).catch((error) => error)
		expect(failed).to.be.instanceOf(UserError)
		for (const bad of ['/', '/proc/self', '/sys'])
			expect(await run('true', { root: bad }).catch((error) => error)).to.be.instanceOf(UserError)
	})

	it('proc-28 root = parent of home: the masks of the home hold, and what the next login runs stays', async () => {
		for (const [root, cwd] of [
			[fixture.base, fixture.base],
			[fixture.base, fixture.home],
			[fixture.home, fixture.home],
		] as const)
			for (const readOnly of [false, true]) {
				const { executor } = await createExecutor(fixture.options({ root }))
				const script = `touch ${cwd}/made; cat ${fixture.home}/.garuda/k ${fixture.home}/.ssh/k ~/.netrc; ls -A ~/.garuda ~/.ssh; for f in .bashrc .garuda/k .garuda/new .ssh/new .netrc .local/bin/tool; do echo evil >> ${fixture.home}/$f; done; mv ${fixture.home} ${fixture.base}/moved; mv ~/.ssh ~/s2; umount ~/.ssh; cat ~/s2/k ${fixture.base}/moved/.ssh/k; true`
				const { output } = await executor.run({ script, cwd, timeoutMs: 5_000, readOnly }, never)
				await executor.close()
				expect(output, root).to.not.include('SECRETTOKEN')
				expect(existsSync(join(cwd, 'made')), root).to.equal(!readOnly)
				rmSync(join(cwd, 'made'), { force: true })
				for (const name of ['.bashrc', '.garuda/k', '.netrc', '.local/bin/tool'])
					expect(readFileSync(join(fixture.home, name), 'utf8'), name).to.not.include('evil')
				for (const name of ['.garuda/new', '.ssh/new', 's2'])
					expect(existsSync(join(fixture.home, name))).to.equal(false)
			}
	})

	it("the executor's own folder is hidden and read-only wherever the session folder lies", async () => {
		const tmp = join(fixture.root, 'state/session')
		mkdirSync(tmp, { recursive: true })
		const { executor } = await createExecutor(fixture.options({ tmp }))
		const own = readdirSync(join(fixture.root, 'state')).find((name) => name.startsWith('session-own-'))
		expect(existsSync(join(fixture.root, 'state', own!, 'filter'))).to.equal(true)
		const script = `cd state/session-own-*; ls -A; for f in *; do echo x > $f; done; cd ..; mv session-own-* o2; rm -rf session-own-*; ls`
		const { output } = await executor.run({ script, cwd: fixture.root, timeoutMs: 5_000 }, never)
		expect(output).to.not.match(/filter|empty-|pipe-|o2$/m)
		expect(output).to.include(own)
		expect((await executor.run({ script: 'echo fine', cwd: fixture.root, timeoutMs: 5_000 }, never)).output).to.equal(
			'fine\n',
		)
		await executor.close()
		expect(readdirSync(join(fixture.root, 'state'))).to.deep.equal(['session'])
	})

	it('decision 13: in a sub-folder git works, and the rest of the repository stays as it is', async () => {
		const root = join(fixture.root, 'inner')
		mkdirSync(root)
		const script =
			'echo x > new.txt && git add new.txt && git -c core.hooksPath= -c user.name=a -c user.email=b commit -qm sub && echo done; touch ../f2.txt; echo x >> ../.git/config; touch ../.git/hooks/x'
		const { output } = await run(script, { root })
		expect(output).to.match(/^done\n/)
		expect(git(['log', '--format=%s', '-1'])).to.equal('sub\n')
		for (const path of ['f2.txt', '.git/hooks/x']) expect(existsSync(join(fixture.root, path)), path).to.equal(false)
		expect(readFileSync(join(fixture.root, '.git/config'), 'utf8')).to.not.match(/^x$/m)
	})

	it('git-15 in a linked worktree git works, and the configuration and other worktrees are read-only', async () => {
		for (const name of ['wt', 'other']) git(['worktree', 'add', '-q', '-b', name, join(fixture.base, name)])
		const root = join(fixture.base, 'wt')
		const common = join(fixture.root, '.git')
		const script = `echo x > n.txt && git add n.txt && git -c core.hooksPath= -c user.name=a -c user.email=b commit -qm wt && echo done; for f in ${common}/config ${common}/worktrees/other/commondir ${common}/worktrees/wt/commondir .git ${fixture.root}/f.txt; do echo evil >> $f; done; echo x > ${common}/hooks/h; git config user.x y`
		const { output } = await run(script, { root })
		expect(output).to.match(/^done\n/)
		expect(git(['log', '--format=%s', '-1', 'wt'])).to.equal('wt\n')
		for (const path of [
			join(common, 'config'),
			join(common, 'worktrees/other/commondir'),
			join(common, 'worktrees/wt/commondir'),
			join(root, '.git'),
			join(fixture.root, 'f.txt'),
		])
			expect(readFileSync(path, 'utf8'), path).to.not.include('evil')
		expect(existsSync(join(common, 'hooks/h'))).to.equal(false)
	})

	it('link-11 git-10 a .git that names a folder outside its family is never bound writable', async () => {
		const root = join(fixture.base, 'planted')
		mkdirSync(root)
		const elsewhere = join(fixture.home, 'other')
		mkdirSync(elsewhere)
		git(['init', '-q'], elsewhere)
		mkdirSync(join(elsewhere, '.git/worktrees/x'), { recursive: true })
		for (const gitdir of ['../home/.ssh', `${elsewhere}/.git`, `${elsewhere}/.git/worktrees/x`, '/', fixture.home]) {
			rmSync(join(root, '.git'), { force: true, recursive: true })
			writeFileSync(join(root, '.git'), `gitdir: ${gitdir}\n`)
			const script = `touch ${elsewhere}/.git/evil ${elsewhere}/.git/worktrees/x/evil ~/evil ~/.ssh/evil; cat ~/.ssh/k; true`
			expect((await run(script, { root })).output, gitdir).to.not.include('SECRETTOKEN')
			for (const path of [`${elsewhere}/.git`, `${elsewhere}/.git/worktrees/x`, fixture.home, `${fixture.home}/.ssh`])
				expect(existsSync(join(path, 'evil')), gitdir).to.equal(false)
		}
		rmSync(join(root, '.git'))
		symlinkSync(`${elsewhere}/.git`, join(root, '.git'))
		await run(`touch ${elsewhere}/.git/evil`, { root })
		expect(existsSync(join(elsewhere, '.git/evil'))).to.equal(false)
	})

	it('link-09 protected paths that are links start, protect their target, and bring nothing of the host back', async () => {
		const hooks = join(fixture.root, 'shared-hooks')
		mkdirSync(hooks)
		rmSync(join(fixture.root, '.git/hooks'), { recursive: true, force: true })
		for (const [target, expected] of [
			['../shared-hooks', false],
			['/', true],
			['/tmp', true],
			[fixture.home, true],
			['missing', true],
		] as const) {
			rmSync(join(fixture.root, '.git/hooks'), { force: true })
			symlinkSync(target, join(fixture.root, '.git/hooks'))
			const script = `touch ${hooks}/h 2>/dev/null && echo hook; cat ~/.ssh/k; touch /usr/x; ls /run; [ -e /tmp/${fixture.base.split('/')[2]}/session ] && echo host; true`
			const { output } = await run(script)
			expect(output.includes('hook\n'), target).to.equal(expected)
			expect(output, target).to.not.match(/SECRETTOKEN|^host$/m)
			rmSync(join(hooks, 'h'), { force: true })
		}
	})

	it('git-08 T6 what a command plants is named at the end of its output, and a planted commondir removed', async () => {
		const script =
			'mkdir -p deep/x/.git/hooks new/.vscode; printf "[core]\\n\\tfsmonitor = touch y\\n" > deep/x/.git/config; echo x > deep/x/.git/hooks/post-checkout; echo {} > new/.vscode/tasks.json; echo x > new/.envrc; mkdir bare bare/objects bare/refs; touch bare/HEAD; cp deep/x/.git/config bare/config; echo ../evil > deep/x/.git/commondir; ln -s /tmp sub/.git/hooks2; echo fine'
		const { executor } = await createExecutor(fixture.options())
		try {
			const { output } = await executor.run({ script, cwd: fixture.root, timeoutMs: 5_000 }, never)
			expect(output).to.match(/^fine\n\[note: /)
			for (const part of [
				'deep/x/.git/config (sets core.fsmonitor)',
				'deep/x/.git/hooks/post-checkout (a git hook)',
				'new/.vscode/tasks.json',
				'new/.envrc',
				'bare/config (sets core.fsmonitor)',
				'deep/x/.git/commondir (removed',
			])
				expect(output).to.include(part)
			expect(existsSync(join(fixture.root, 'deep/x/.git/commondir'))).to.equal(false)
			// What is there now is protected for the next command, and not told again.
			const next = await executor.run(
				{ script: 'echo x > deep/x/.git/hooks/post-checkout; echo fine', cwd: fixture.root, timeoutMs: 5_000 },
				never,
			)
			expect(next.output)
				.to.match(/Read-only/)
				.and.match(/fine\n$/)
			// A prepared folder moved into place, with old times, is new all the same.
			await executor.run(
				{ script: 'mkdir prep; echo {} > prep/launch.json; sleep 0.1', cwd: fixture.root, timeoutMs: 5_000 },
				never,
			)
			await new Promise((resolve) => setTimeout(resolve, 60))
			const moved = await executor.run(
				{ script: 'mkdir far; mv prep far/.idea', cwd: fixture.root, timeoutMs: 5_000, separate: true },
				never,
			)
			expect(moved.output).to.equal('')
			expect(moved.stderr).to.include('far/.idea/launch.json')
			git(['config', 'core.hooksPath', 'tools/hooks'])
			const hooks = await executor.run(
				{ script: 'mkdir -p tools/hooks; echo x > tools/hooks/pre-commit', cwd: fixture.root, timeoutMs: 5_000 },
				never,
			)
			expect(hooks.output).to.include('tools/hooks (a hooks folder')
			// An ordinary new repository is none of it.
			expect(
				(await executor.run({ script: 'mkdir ok && cd ok && git init -q', cwd: fixture.root, timeoutMs: 5_000 }, never))
					.output,
			).to.equal('')
		} finally {
			await executor.close()
		}
	})

	it('denyRead hides paths and globs, anew for each command; what cannot be expanded is an error', async () => {
		for (const name of ['vault/a.key', 'vault/b.key', 'vault/c.txt']) put(join(fixture.root, name), 'HIDDEN')
		const { executor } = await createExecutor(
			fixture.options({ denyRead: ['vault/*.key', '~/new', join(fixture.root, 'f.txt')] }),
		)
		put(join(fixture.home, 'new/x'), 'HIDDEN')
		put(join(fixture.root, 'vault/d.key'), 'HIDDEN')
		const { output } = await executor.run(
			{
				script: 'cat vault/a.key vault/b.key vault/d.key ~/new/x f.txt 2>/dev/null; cat vault/c.txt',
				cwd: fixture.root,
				timeoutMs: 5_000,
			},
			never,
		)
		expect(output).to.equal('HIDDEN')
		await executor.close()
		for (const denyRead of [[''], ['!x'], ['a\0b']])
			expect(await createExecutor(fixture.options({ denyRead })).catch((error) => error)).to.be.instanceOf(UserError)
	})

	it('secret-12 a home mounted twice is hidden at both places', async function () {
		const info = (root: string, point: string) => `30 1 8:1 ${root} ${point} rw - ext4 /dev/x rw`
		expect(aliases(fixture.home, `${info('/', '/')}\n31 1 8:2 / /mnt rw - ext4 /dev/y rw`)).to.deep.equal([])
		if (!isRoot) skip(this, 'only root can do this')
		const second = join(fixture.base, 'second home')
		mkdirSync(second)
		mkdirSync('/srv', { recursive: true })
		const driver = new URL('./driver.ts', import.meta.url).pathname
		const point = join('/srv', `garuda-${process.pid}`)
		mkdirSync(point)
		try {
			const inner = `mount --make-rprivate / && mount --bind "${fixture.home}" "${point}" && cat ${point}/.ssh/k && "${process.execPath}" "${driver}" run "${fixture.root}" "${fixture.home}" "${fixture.tmp}" 'cat ${point}/.ssh/k ${point}/.netrc ${point}/.bashrc'`
			const { stdout, stderr } = spawnSync('unshare', ['-m', 'bash', '-c', inner], {
				encoding: 'utf8',
				env: { PATH: '/usr/bin:/bin' },
			})
			expect(stdout, stderr).to.match(/^SECRETTOKEN\{/)
			const { kind, result } = JSON.parse(stdout.slice('SECRETTOKEN'.length))
			expect(kind).to.equal('bubblewrap')
			expect(result.output).to.include('# mine')
			expect(result.output).to.not.include('SECRETTOKEN')
		} finally {
			rmSync(point, { recursive: true })
		}
	})

	it('git-08 each key of git that starts a program or names another file to obey is known, and its neighbours are not', () => {
		const risky = [
			'core.fsmonitor core.hookspath core.pager core.editor core.sshcommand core.askpass core.gitproxy',
			'core.alternaterefscommand core.attributesfile core.worktree sequence.editor include.path includeif.a.path',
			'filter.a.clean filter.a.smudge filter.a.process diff.a.textconv diff.a.command diff.external merge.a.driver',
			'difftool.a.cmd difftool.a.path mergetool.a.cmd mergetool.a.path alias.a pager.a credential.helper',
			'credential.a.helper gpg.program gpg.a.program gpg.a.defaultkeycommand remote.a.uploadpack remote.a.receivepack',
			'remote.a.vcs remote.a.proxy url.a.insteadof url.a.pushinsteadof interactive.difffilter trailer.a.cmd',
			'trailer.a.command uploadpack.packobjectshook browser.a.cmd man.a.cmd init.templatedir tar.a.command',
			'hook.a.command imap.tunnel sendemail.smtpserver sendemail.sendmailcmd sendemail.tocmd sendemail.cccmd',
			'sendemail.headercmd sendemail.a.tocmd guitool.a.cmd instaweb.httpd lfs.customtransfer.a.path',
			'lfs.extension.a.clean lfs.extension.a.smudge protocol.allow protocol.a.allow',
		].join(' ')
		const plain =
			'core.bare core.quotepath user.name remote.a.url branch.a.merge filter.a.required diff.a.binary merge.ff sendemail.to gpg.format tar.umask init.defaultbranch'
		const written = (key: string, value: string): string => {
			const parts = key.split('.')
			const [section, name] = [parts[0]!, parts.at(-1)!]
			const sub = parts.slice(1, -1).join('.')
			return `[${section}${sub === '' ? '' : ` "${sub}"`}]\n${name} = ${value}\n`
		}
		for (const key of risky.split(' ')) expect(riskyKeys(written(key, 'x')), key).to.deep.equal([key])
		for (const key of plain.split(' ')) expect(riskyKeys(written(key, 'x')), key).to.deep.equal([])
		expect([
			riskyKeys(written('submodule.a.update', '!x')),
			riskyKeys(written('submodule.a.update', 'merge')),
		]).to.deep.equal([['submodule.a.update'], []])
	})

	it('git configuration is read as git reads it', () => {
		const text =
			'[core] hooksPath = a # no\n[Filter "X y"]\n\tclean = "touch \\"z\\"; b"\n[include]\npath = \\\n ../c\n[core]\n fsmonitor\n'
		expect(parseGitConfig(text)).to.deep.equal([
			{ key: 'core.hookspath', value: 'a' },
			{ key: 'filter.X y.clean', value: 'touch "z"; b' },
			{ key: 'include.path', value: '../c' },
			{ key: 'core.fsmonitor', value: 'true' },
		])
		expect(riskyKeys(text)).to.deep.equal(['core.hookspath', 'filter.X y.clean', 'include.path'])
		expect(
			riskyKeys('[core]\nbare=false\n[remote "origin"]\nurl=x\n[user]\nname=a\n[submodule "s"]\nupdate = !touch x\n'),
		).to.deep.equal(['submodule.s.update'])
	})

	// Removing one element of the flags must let one thing through; where a second wall stands behind, both go.
	const without: [what: string, drop: (flags: string[]) => string[], script: string, rootOnly?: boolean][] = [
		[
			'--cap-drop',
			(flags) => cut(flags, '--cap-drop', 2),
			'grep -q CapEff:.0000000000000000 /proc/self/status || echo ESCAPED',
			true,
		],
		[
			'the network namespace of --unshare-all',
			(flags) => flags.flatMap((flag) => (flag === '--unshare-all' ? ['--unshare-pid', '--unshare-uts'] : [flag])),
			'[ "$(cat /proc/net/dev | grep -c :)" -gt 1 ] && echo ESCAPED',
		],
		[
			'--ro-bind / /',
			(flags) => {
				flags[flags.indexOf('--ro-bind')] = '--bind'
				return flags
			},
			'[ -w "$HOME/.bashrc" ] || [ -w /usr ] && echo ESCAPED',
			true,
		],
		[
			'--remount-ro /proc',
			(flags) => cut(flags, '--remount-ro', 2),
			'[ -w /proc/sys/kernel/core_pattern ] && echo ESCAPED',
			true,
		],
		['--tmpfs /run', (flags) => cutBefore(flags, '/run', 4), 'ls -A /run | grep -q . && echo ESCAPED'],
		[
			'--tmpfs /var/tmp',
			(flags) => cutBefore(flags, '/var/tmp', 4),
			'[ -e "/var/tmp/garuda-control" ] && echo ESCAPED',
		],
		[
			'the bind of the session folder on /tmp',
			(flags) => {
				const at = flags.indexOf('/tmp')
				flags.splice(at - 2, 3)
				return flags
			},
			'[ -e /tmp/garuda-control ] && echo ESCAPED',
		],
		[
			'the mask of .ssh',
			(flags) => cutBefore(flags, (path) => path.endsWith('/.ssh'), 3),
			'grep -q SECRET ~/.ssh/k && echo ESCAPED',
		],
		[
			'the mask of .netrc',
			(flags) => cutBefore(flags, (path) => path.endsWith('/.netrc'), 3),
			'grep -q SECRET ~/.netrc && echo ESCAPED',
		],
		[
			'the protection of .git/config',
			(flags) => cutBefore(flags, (path) => path.endsWith('project/.git/config'), 3),
			'echo >> .git/config && echo ESCAPED',
		],
		[
			'the protection of .vscode',
			(flags) => cutBefore(flags, (path) => path.endsWith('/.vscode'), 3),
			'echo >> .vscode/tasks.json && echo ESCAPED',
		],
		[
			'the pin of .git (the protections inside it go too)',
			(flags) => {
				let all = flags
				for (const name of ['.git', '.git/config', '.git/hooks', '.git/info'])
					all = cutBefore(all, (path) => path.endsWith(`project/${name}`), 3)
				return all
			},
			'mv .git .g && echo ESCAPED',
		],
		['--clearenv', (flags) => cut(flags, '--clearenv', 1), '[ -n "$KEY" ] && echo ESCAPED'],
		['--seccomp', (flags) => cut(flags, '--seccomp', 2), `perl -e 'print "ESCAPED" if syscall(323, 1) != -1'`],
		[
			'--disable-userns (and the filter behind it)',
			(flags) => cut(cut(flags, '--disable-userns', 1), '--seccomp', 2),
			'unshare -U true && echo ESCAPED',
		],
		[
			'--proc',
			(flags) => {
				const at = flags.indexOf('--proc')
				flags.splice(at, 4)
				return flags
			},
			'[ -e "/proc/$HOSTPID/comm" ] && echo ESCAPED',
		],
		[
			'--dev',
			(flags) => {
				const at = flags.indexOf('--dev')
				flags.splice(at, 2)
				return flags
			},
			'[ -e /dev/kmsg ] && echo ESCAPED',
		],
	]
	const cut = (flags: string[], flag: string, count: number) => {
		flags.splice(flags.indexOf(flag), count)
		return flags
	}
	const cutBefore = (flags: string[], path: string | ((path: string) => boolean), count: number) => {
		const at = flags.findIndex(
			(each, index) =>
				(typeof path === 'string' ? each === path : path(each)) && flags[index - count + 1]?.startsWith('--'),
		)
		if (at >= 0) flags.splice(at - count + 1, count)
		return flags
	}
	const raw = (flags: string[], script: string): Promise<string> =>
		new Promise((resolve) => {
			const filter = seccompFilter(process.arch, { blockUnix: false })!
			const child = spawn('/usr/bin/bwrap', ['--args', '3', '--', '/bin/bash', '-c', script], {
				env: { KEY: 'k' },
				cwd: '/',
				stdio: ['ignore', 'pipe', 'ignore', 'pipe', 'pipe', 'ignore'],
			})
			for (const [index, bytes] of [
				[3, flags.map((flag) => `${flag}\0`).join('')],
				[4, filter],
			] as const) {
				const feed = child.stdio[index] as import('node:stream').Writable
				feed.on('error', () => {}).end(bytes)
			}
			let out = ''
			child.stdout!.on('data', (bytes) => {
				out += bytes
			})
			child.once('close', () => resolve(out))
		})

	for (const [what, drop, script, rootOnly] of without)
		it(`negative control: without ${what} something gets through`, async function () {
			if (rootOnly && !isRoot) {
				console.log(`      not root: ${what} matters to root`)
				this.skip()
			}
			for (const folder of ['/tmp', '/var/tmp']) put(`${folder}/garuda-control`)
			put(join(fixture.base, 'e'), '')
			mkdirSync(join(fixture.base, 'f'))
			const policy = createPolicyBuilder({
				...fixture.options(),
				denyRead: [],
				tmpBytes: 1e6,
				emptyFile: join(fixture.base, 'e'),
				emptyFolder: join(fixture.base, 'f'),
				own: fixture.base,
				filter: true,
			}).build({
				cwd: fixture.root,
				env: { HOSTPID: String(process.pid) },
				readOnly: false,
				nested: [],
				sockets: [],
			})
			const flags = bubblewrapFlags(policy).filter(
				(flag, index, all) => flag !== '--json-status-fd' && all[index - 1] !== '--json-status-fd',
			)
			const whole = await raw([...flags], `${script}; echo STARTED`)
			expect(whole).to.include('STARTED').and.not.include('ESCAPED')
			expect(await raw(drop([...flags]), script)).to.include('ESCAPED')
		})
})
