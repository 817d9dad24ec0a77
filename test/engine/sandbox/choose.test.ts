// Which executor is chosen and what the user is told; the walls and the macOS profile as data.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { lazyExecutor } from '../../../src/engine/lazy-executor.ts'
import { commandEnvironment, createExecutor, findWall } from '../../../src/engine/sandbox/index.ts'
import { BoundedText, decodeInto } from '../../../src/engine/sandbox/output.ts'
import { diagnose, type Machine } from '../../../src/engine/sandbox/probe.ts'
import { findBubblewrap } from '../../../src/engine/sandbox/programs.ts'
import { sbplString, seatbeltProfile } from '../../../src/engine/sandbox/seatbelt.ts'
import { asNobody, readableCopy } from './copy.ts'
import { type Fixture, makeFixture } from './fixture.ts'

const never = new AbortController().signal
const isRoot = process.getuid?.() === 0

describe('sandbox: choice', () => {
	let fixture: Fixture
	beforeEach(() => {
		fixture = makeFixture()
	})
	afterEach(() => fixture.remove())
	const fails = (promise: Promise<unknown>) =>
		promise.then(
			() => undefined,
			(error) => error as UserError,
		)
	const reasonWith = async (bwrap: string) => {
		const { executor, reason } = await createExecutor(fixture.options({ executor: 'auto', bwrap }))
		await executor.close()
		return reason
	}
	const fakeBwrap = (text: string) => {
		const path = join(fixture.base, 'bwrap')
		writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
		return path
	}

	it('config-21 no bubblewrap: a loud notice with the cure and a host executor; sandbox and strict refuse', async () => {
		const bwrap = join(fixture.base, 'none')
		const chosen = await createExecutor(fixture.options({ executor: 'auto', bwrap }))
		expect(chosen.executor.kind).to.equal('host')
		expect(chosen.notice).to.match(/^NO SANDBOX: .*asks before each one.*apt install bubblewrap/)
		expect(chosen.reason).to.include('bubblewrap')
		await chosen.executor.close()
		for (const more of [
			{ executor: 'sandbox' as const },
			{ executor: 'auto' as const, profile: 'strict' as const },
			{ executor: 'host' as const, profile: 'strict' as const },
		]) {
			const error = await fails(createExecutor(fixture.options({ bwrap, ...more })))
			expect(error).to.be.instanceOf(UserError)
			expect(error?.hint).to.be.a('string')
		}
		const other = await createExecutor(fixture.options({ executor: 'auto', platform: 'win32' }))
		expect([other.executor.kind, other.notice]).to.satisfy(
			([kind, notice]: string[]) => kind === 'host' && notice?.includes('win32'),
		)
		await other.executor.close()
	})

	it('config-21 a bubblewrap that does not confine counts as none', async () => {
		const bwrap = fakeBwrap(
			'while [ "$1" != -- ]; do shift; done; shift; cat <&3 >/dev/null; cat <&4 >/dev/null; echo \'{ "child-pid": 1 }{ "exit-code": 0 }\' >&5; export HOME=/; exec "$@"',
		)
		const chosen = await createExecutor(fixture.options({ executor: 'auto', bwrap }))
		expect(chosen.executor.kind).to.equal('host')
		expect(chosen.reason).to.include('does not confine')
		await chosen.executor.close()
		const broken = await createExecutor(
			fixture.options({
				executor: 'auto',
				bwrap: fakeBwrap('echo "bwrap: Unknown option --disable-userns" >&2; exit 1'),
			}),
		)
		expect(broken.notice).to.include('0.8.0')
		await broken.executor.close()
	})

	it('config-16 a planted bubblewrap is never used: fixed places, owner, mode', async () => {
		const path = fakeBwrap('exit 0')
		chmodSync(path, 0o777)
		expect(await reasonWith(path)).to.include('no safe bubblewrap')
		chmodSync(path, 0o755)
		chmodSync(fixture.base, 0o777)
		expect(await reasonWith(path)).to.include('no safe bubblewrap')
		chmodSync(fixture.base, 0o700)
		writeFileSync(join(fixture.root, 'bwrap'), '#!/bin/sh\necho planted\n', { mode: 0o755 })
		const chosen = await createExecutor(
			fixture.options({ env: { ...fixture.env, PATH: `.:${fixture.root}:${fixture.env.PATH}` } }),
		)
		expect(
			(await chosen.executor.run({ script: 'echo real', cwd: fixture.root, timeoutMs: 5_000 }, never)).output,
		).to.equal('real\n')
		await chosen.executor.close()
		expect(findBubblewrap()).to.equal('/usr/bin/bwrap')
	})

	it('proc-21 inside another sandbox it says so and what to do', () => {
		const driver = new URL('./driver.ts', import.meta.url).pathname
		const within = (flags: string[]) => {
			const ran = spawnSync(
				'/usr/bin/bwrap',
				[...flags, process.execPath, driver, 'choose', fixture.root, fixture.home, fixture.tmp],
				{ encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } },
			)
			expect(ran.status, ran.stderr).to.equal(0)
			return JSON.parse(ran.stdout) as { kind: string; notice: string; reason: string }
		}
		const noUsers = within(['--unshare-user', '--disable-userns', '--cap-drop', 'ALL', '--dev-bind', '/', '/', '--'])
		expect(noUsers.kind).to.equal('host')
		expect(noUsers.notice).to.match(/^NO SANDBOX: .*(?:user namespace|not allowed|forbids).*To mend it: /)
		const noProc = within([
			'--unshare-user',
			'--unshare-pid',
			'--dev-bind',
			'/',
			'/',
			'--proc',
			'/proc',
			'--ro-bind',
			'/dev/null',
			'/proc/keys',
			'--',
		])
		expect(noProc.kind).to.equal('host')
		expect(noProc.notice).to.match(/^NO SANDBOX: /)
	})

	it('causes and cures', () => {
		const machine: Machine = { appArmorLimit: false, cloneForbidden: false, noNamespaces: false, container: false }
		const says = (complaint: string, at: Partial<Machine> = {}) => diagnose(complaint, { ...machine, ...at })
		expect(says('bwrap: setting up uid map: Permission denied', { appArmorLimit: true }).reason).to.include('AppArmor')
		expect(says('bwrap: setting up uid map: Permission denied', { appArmorLimit: true }).fix).to.include(
			'bwrap-userns-restrict',
		)
		expect(says("bwrap: Can't mount proc on /newroot/proc: Operation not permitted").fix).to.include(
			'systempaths=unconfined',
		)
		expect(says('bwrap: No permissions to create new namespace', { cloneForbidden: true }).fix).to.include(
			'unprivileged_userns_clone=1',
		)
		expect(
			says('bwrap: Creating new namespace failed: No space left on device', { noNamespaces: true }).fix,
		).to.include('max_user_namespaces')
		expect(
			says('bwrap: Creating new namespace failed: Operation not permitted', { container: true }).reason,
		).to.include('container')
		expect(says('bwrap: something new').reason).to.include('something new')
	})

	it("as an ordinary user the process limit is the kernel's and counts the sandbox only", function () {
		if (!isRoot) {
			console.log('      not root: the other tests ran as an ordinary user')
			this.skip()
		}
		const copy = readableCopy()
		try {
			const at = (name: string) => join(copy, 'tmp', name)
			const ran = asNobody(copy, [
				'run',
				at('root'),
				at('home'),
				at('session'),
				'for i in $(seq 100); do sleep 1 & done; echo end',
			])
			expect(ran.status, ran.stderr).to.equal(0)
			const { kind, notice, result } = JSON.parse(ran.stdout)
			expect([kind, notice]).to.deep.equal(['bubblewrap', undefined])
			expect(result.output).to.match(/fork: .*Resource temporarily unavailable/)
		} finally {
			rmSync(copy, { recursive: true, force: true })
		}
	})

	it('leaves nothing in the temporary folder', async () => {
		const own = () => readdirSync(fixture.base).filter((name) => name.startsWith('session-own-'))
		const loose = () => readdirSync(tmpdir()).filter((name) => name.startsWith('garuda-own-'))
		const before = loose()
		const { executor } = await createExecutor(fixture.options())
		await executor.run({ script: 'cat', stdin: 'x', cwd: fixture.root, timeoutMs: 5_000 }, never)
		expect(own()).to.have.length(1)
		expect(readdirSync(fixture.tmp).filter((name) => !name.startsWith('garuda-'))).to.deep.equal([])
		await executor.close()
		await fails(createExecutor(fixture.options({ root: '/' })))
		await fails(createExecutor(fixture.options({ tmp: join(fixture.base, 'missing') })))
		expect(own()).to.deep.equal([])
		expect(loose().filter((name) => !before.includes(name))).to.deep.equal([])
		expect(readdirSync(fixture.tmp).filter((name) => name.startsWith('.garuda'))).to.deep.equal([])
	})

	it("what a killed Garuda left beside its session folder is swept at the next start, and nobody else's", async () => {
		const folder = join(fixture.base, 'tmp')
		// No process has this number: the kernel's highest is one less.
		const dead = join(folder, 's-4194304-abcdef')
		const alive = join(folder, `s-${process.ppid}-abcdef`)
		for (const path of [dead, alive]) mkdirSync(path, { recursive: true })
		const left = await Promise.all([dead, alive].map((tmp) => createExecutor(fixture.options({ tmp }))))
		expect(readdirSync(folder)).to.have.length(4)
		const executor = lazyExecutor(
			folder,
			(tmp) => createExecutor(fixture.options({ tmp })),
			() => {},
		)
		await executor.run({ script: 'true', cwd: fixture.root, timeoutMs: 5_000 }, never)
		const names = readdirSync(folder)
		expect(names.filter((name) => name.startsWith('s-4194304-'))).to.deep.equal([])
		expect(names.filter((name) => name.startsWith(`s-${process.ppid}-`))).to.have.length(2)
		expect(names.filter((name) => name.startsWith(`s-${process.pid}-`))).to.have.length(2)
		await executor.close()
		expect(readdirSync(folder)).to.have.length(2)
		for (const each of left) await each.executor.close()
		expect(readdirSync(folder)).to.deep.equal([`s-${process.ppid}-abcdef`])
	})

	it('env-06 env-05 only the allowlist passes, and never an empty key', () => {
		const env = commandEnvironment(
			{
				PATH: '.:bin:/usr/bin::/bin',
				LANG: 'de_DE.UTF-8',
				LC_ALL: 'C',
				JAVA_HOME: '/j',
				A_TOKEN: 't',
				LD_PRELOAD: 'x',
				ENV: '/rc',
				BASH_ENV: '/rc',
				CI: '1',
				MINE: 'm',
				EMPTY: '',
				OPENAI_API_KEY: '',
				NUL: 'a\0b',
				GIT_DIR: 'x',
			},
			'/h',
			['MINE', 'EMPTY', 'NUL', 'OPENAI_API_KEY'],
		)
		expect(env).to.include({
			PATH: '/usr/bin:/bin',
			LANG: 'de_DE.UTF-8',
			LC_ALL: 'C',
			JAVA_HOME: '/j',
			MINE: 'm',
			HOME: '/h',
			PAGER: 'cat',
			TERM: 'dumb',
		})
		for (const name of [
			'A_TOKEN',
			'LD_PRELOAD',
			'ENV',
			'BASH_ENV',
			'CI',
			'EMPTY',
			'OPENAI_API_KEY',
			'NUL',
			'GIT_DIR',
			'NO_COLOR',
		])
			expect(env).to.not.have.property(name)
		expect(Object.values(env)).to.not.include('')
	})
})

describe('sandbox: walls', () => {
	const wall = (output: string) => findWall(output, ['/home/u/.ssh', '/home/u/.npmrc'])?.wall
	for (const [line, expected] of [
		['npm error code EAI_AGAIN\nnpm error request to https://registry.example failed', 'network'],
		['curl: (6) Could not resolve host: example.com', 'network'],
		["fatal: unable to access 'https://example.com/': Could not resolve host: example.com", 'network'],
		['ssh: Could not resolve hostname git.example: Temporary failure in name resolution', 'network'],
		['go: example.com/x: Get "https://proxy": dial tcp: lookup proxy: no such host', 'network'],
		['error: failed to fetch: failed to lookup address information', 'network'],
		['psql: connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused', 'network'],
		['Cannot connect to the Docker daemon at unix:///var/run/docker.sock', 'network'],
		["touch: cannot touch '/etc/x': Read-only file system", 'write'],
		["Error: EROFS: read-only file system, open '/x'", 'write'],
		["mv: cannot move '.git' to 'x': Device or resource busy", 'write'],
		['npm warn EROFS: read-only file system\nnpm error EAI_AGAIN', 'network'],
		['cat: /home/u/.ssh/id_rsa: No such file or directory', 'read'],
		['Unable to locate credentials. You can configure credentials by running "aws configure".', 'read'],
		['strace: ptrace(PTRACE_TRACEME): Operation not permitted', 'process'],
		['bash: fork: retry: Resource temporarily unavailable', 'process'],
		['sudo: The "no new privileges" flag is set', 'process'],
		['cat: nothing: No such file or directory', undefined],
		['AssertionError: expected 1 to equal 2', undefined],
		['bash: foo: command not found', undefined],
		['', undefined],
	] as const)
		it(`${expected ?? 'none'}: ${line.slice(0, 60)}`, () => expect(wall(line)).to.equal(expected))

	it('shows the line that tells, one line, bounded, with nothing hidden in it', () => {
		const found = findWall(`x\rprogress\rcurl: (6) Could not resolve host: \u202eevil${'y'.repeat(999)}\nlast`, [])
		expect(found?.detail).to.match(/^curl: \(6\) Could not resolve host: \[U\+202E\]evily+…$/)
		expect(found?.detail.length).to.be.at.most(300)
	})
})

describe('sandbox: output', () => {
	it('B08 keeps any text whatever the chunks, and bounds any length', () => {
		const text = 'aé你😀'.repeat(500)
		for (const size of [1, 2, 3, 7, 1000]) {
			const whole = new BoundedText(10_000)
			const sink = decodeInto(whole)
			const bytes = Buffer.from(text)
			for (let at = 0; at < bytes.length; at += size) sink.chunk(bytes.subarray(at, at + size))
			sink.end()
			expect(whole.text()).to.equal(text)
			expect(whole.bytes).to.equal(bytes.length)
			const cut = new BoundedText(101)
			const other = decodeInto(cut)
			for (let at = 0; at < bytes.length; at += size) other.chunk(bytes.subarray(at, at + size))
			other.end()
			const [, head, left, tail] = /^([^\n]*)\n\[… ([\d,]+) characters left out here …\]\n([^\n]*)$/.exec(cut.text())!
			expect(text.startsWith(head!) && text.endsWith(tail!)).to.equal(true)
			expect(head!.length + tail!.length + Number(left!.replace(',', ''))).to.equal(text.length)
			expect(cut.text().isWellFormed()).to.equal(true)
		}
	})
})

describe('sandbox: Seatbelt', () => {
	const options = {
		roots: ['/Users/u/p'],
		home: '/Users/u',
		tmp: '/private/tmp/s',
		writable: ['/Users/u/.npm/_cacache'],
		denyRead: ['/Users/u/vault'],
		protect: ['/Users/u/p/.githooks'],
		readOnly: false,
		blockUnix: false,
	}
	/** The last rule wins: what a write to, or a read of, a path meets. */
	const verdict = (profile: string, operation: 'file-write*' | 'file-read*', path: string): string => {
		let found = 'deny'
		for (const [, how, operations, places] of profile.matchAll(
			/^\((allow|deny) ([a-z*\- ]+?)((?:\s*\((?:subpath|literal|global-name|regex)[^\n]*)*)\)$/gm,
		)) {
			if (!operations!.split(' ').includes(operation)) continue
			const paths = [...places!.matchAll(/\((subpath|literal) "((?:[^"\\]|\\.)*)"\)/g)]
			if (
				places === '' ||
				paths.some(([, kind, each]) => path === each || (kind === 'subpath' && path.startsWith(`${each}/`)))
			)
				found = how!
		}
		return found
	}

	it('writes only where work happens, protects, hides secrets last, and lets no other program act', () => {
		const profile = seatbeltProfile(options)
		for (const [path, expected] of [
			['/Users/u/p/a', 'allow'],
			['/private/tmp/s/x', 'allow'],
			['/Users/u/.npm/_cacache/x', 'allow'],
			['/Users/u/other', 'deny'],
			['/usr/x', 'deny'],
			['/Users/u/p/.git/hooks/x', 'deny'],
			['/Users/u/p/.git/config', 'deny'],
			['/Users/u/p/.vscode/x', 'deny'],
			['/Users/u/p/.githooks/x', 'deny'],
			['/Users/u/.ssh/x', 'deny'],
		] as const)
			expect(verdict(profile, 'file-write*', path), path).to.equal(expected)
		for (const [path, expected] of [
			['/usr/x', 'allow'],
			['/Users/u/.ssh/k', 'deny'],
			['/Users/u/Library/Keychains/k', 'deny'],
			['/Users/u/vault/k', 'deny'],
			['/Users/u/p/.garuda/k', 'allow'],
		] as const)
			expect(verdict(profile, 'file-read*', path), path).to.equal(expected)
		for (const part of [
			'(deny default)',
			'(deny network*)',
			'(deny appleevent-send)',
			'(deny lsopen)',
			'(deny job-creation)',
		])
			expect(profile).to.include(part)
		for (const service of [
			'coreservices',
			'launchd',
			'appleevents',
			'lsd',
			'pasteboard',
			'SecurityServer',
			'securityd',
		])
			expect(profile).to.not.include(service)
	})

	it('plan mode writes only the session folder; a root inside a hidden folder comes back; root = home keeps its masks', () => {
		const plan = seatbeltProfile({ ...options, readOnly: true })
		expect(verdict(plan, 'file-write*', '/Users/u/p/a')).to.equal('deny')
		expect(verdict(plan, 'file-write*', '/Users/u/.npm/_cacache/a')).to.equal('deny')
		expect(verdict(plan, 'file-write*', '/private/tmp/s/a')).to.equal('allow')
		const job = seatbeltProfile({ ...options, roots: ['/Users/u/.garuda/worktrees/j'] })
		expect(verdict(job, 'file-write*', '/Users/u/.garuda/worktrees/j/a')).to.equal('allow')
		expect(verdict(job, 'file-write*', '/Users/u/.garuda/worktrees/j/.vscode/a')).to.equal('deny')
		expect(verdict(job, 'file-read*', '/Users/u/.garuda/credentials')).to.equal('deny')
		const home = seatbeltProfile({ ...options, roots: ['/Users/u'] })
		expect(verdict(home, 'file-read*', '/Users/u/.ssh/k')).to.equal('deny')
		expect(verdict(home, 'file-write*', '/Users/u/.zshrc')).to.equal('deny')
		expect(verdict(home, 'file-write*', '/Users/u/Library/LaunchAgents/x')).to.equal('deny')
	})

	it('no path can add a rule', () => {
		expect(sbplString('/a"b\\c')).to.equal('"/a\\"b\\\\c"')
		expect(() => sbplString('/a\n(allow default)')).to.throw('control character')
		expect(seatbeltProfile({ ...options, roots: ['/p") (allow default) ("'] })).to.include('\\") (allow default) (\\"')
	})
})
