// How commands run and end: output, signals, time, what is left behind, inside the sandbox and on the host.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import type { Executor, RunSpec } from '../../../src/engine/ports.ts'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import { type Fixture, makeFixture } from './fixture.ts'

const never = new AbortController().signal
const alive = (mark: string): boolean => {
	try {
		return execFileSync('pgrep', ['-f', mark], { encoding: 'utf8' }).trim() !== ''
	} catch {
		return false
	}
}
const gone = async (mark: string) => {
	for (let tries = 0; tries < 50 && alive(mark); tries++) await delay(10)
	return !alive(mark)
}
/** Whether it handles SIGUSR1 already (bit 10 of the mask). */
const caught = (pid: number): boolean =>
	(Number.parseInt(/SigCgt:\s*[0-9a-f]*?([0-9a-f]{4})$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!, 16) &
		0x200) !==
	0
let number = 0
/** A number of seconds that no other process sleeps. */
const nap = () => `7${process.pid}.${++number}`

for (const where of ['sandbox', 'host'] as const)
	describe(`sandbox: running on the ${where}`, () => {
		let fixture: Fixture
		let executor: Executor
		const run = (script: string, more: Partial<RunSpec> = {}, signal = never) =>
			executor.run({ script, cwd: fixture.root, timeoutMs: 10_000, ...more }, signal)

		before(async () => {
			fixture = makeFixture()
			executor = (await createExecutor(fixture.options({ executor: where, limits: { graceMs: 300 } }))).executor
		})
		after(async () => {
			await executor.close()
			await fixture.remove()
		})

		it('B01 a background child does not hold the turn, and is counted and ended', async () => {
			const [plain, redirected, twice] = [nap(), nap(), nap()]
			const start = performance.now()
			const first = await run(`sleep ${plain} & echo done`)
			expect(first).to.include({ output: 'done\n', code: 0, survivors: 1 })
			const second = await run(`sleep ${redirected} >/dev/null 2>&1 & echo $! >/dev/null`)
			expect(second).to.include({ output: '', code: 0, survivors: 1 })
			expect(await run(`(sleep ${twice} &); (sleep ${twice} &); true`)).to.include({ survivors: 2 })
			expect(performance.now() - start).to.be.below(5_000)
			for (const mark of [plain, redirected, twice]) expect(await gone(`sleep ${mark}`)).to.equal(true)
		})

		it('B02 no orphan after a timeout, a subshell or a session of its own', async () => {
			const [nested, flood, daemon] = [nap(), nap(), nap()]
			expect(await run(`sh -c "sleep ${nested} & sleep ${nested}"`, { timeoutMs: 200 })).to.include({ timedOut: true })
			await run(`(while :; do sleep ${flood}; done >/dev/null &) ; true`)
			await run(`setsid sh -c 'setsid sleep ${daemon} &' & sleep 0.1; true`)
			for (const mark of [nested, flood, daemon]) expect(await gone(`sleep ${mark}`), mark).to.equal(true)
		})

		it('B02 closing the session ends what still runs', async () => {
			const other = (await createExecutor(fixture.options({ executor: where }))).executor
			const mark = nap()
			const running = other.run({ script: `sleep ${mark}`, cwd: fixture.root, timeoutMs: 60_000 }, never)
			await delay(100)
			await other.close()
			await other.close()
			expect((await running).cancelled).to.equal(true)
			expect(await gone(`sleep ${mark}`)).to.equal(true)
		})

		it('B04 nothing waits for a pager or an editor', async () => {
			const { output } = await run(
				'git log; echo "$PAGER $GIT_PAGER $MANPAGER"; git -c user.name=a -c user.email=b commit --allow-empty; echo "code $?"',
			)
			expect(output).to.include('cat cat cat')
			expect(output).to.include('There is no editor here')
			expect(output).to.include('code 1')
			expect(await run('git -c user.name=a -c user.email=b rebase -i --root')).to.include({ code: 1 })
			expect((await run('GIT_TERMINAL_PROMPT= ; echo "$EDITOR"; sh -c "$EDITOR"')).code).to.equal(1)
		})

		it('B08 characters split over chunks stay whole', async () => {
			const long = await run(`perl -e 'print "\\xe4\\xbd\\xa0" x 50000'`, { maxOutput: 100_000 })
			expect(long.output).to.equal('你'.repeat(50_000))
			const slow = await run(`printf '\\xf0\\x9f'; sleep 0.1; printf '\\x98\\x80'`)
			expect(slow.output).to.equal('😀')
			expect((await run(`printf 'a\\xffb\\xf0\\x9f'`)).output).to.equal('a\ufffdb\ufffd')
		})

		it('dos-03 a flood keeps its head and tail, in bounded memory', async () => {
			const result = await run('echo first; yes | head -c 30000000; echo last', { maxOutput: 1_000 })
			expect(result.bytes).to.equal(30_000_011)
			expect(result.output)
				.to.match(/^first\ny\n/)
				.and.match(/y\nlast\n$/)
				.and.match(/29,999,011 characters left out/)
			// The collector's room for such a stream is taken first: what counts is that a second one needs no more.
			await run('yes', { timeoutMs: 400 })
			const before = process.memoryUsage().rss
			const flood = await run('yes', { timeoutMs: 400 })
			expect(flood).to.include({ timedOut: true, code: null })
			expect(flood.output.length).to.be.below(31_000)
			expect(process.memoryUsage().rss - before).to.be.below(200 * 2 ** 20)
			expect((await run('yes', { timeoutMs: 200, separate: true, onOutput: () => {} })).output.length).to.be.below(
				31_000,
			)
		})

		it('B14 exit codes and signals are the real ones', async () => {
			expect(await run('false; true')).to.include({ code: 0, signal: null })
			expect(await run('exit 3')).to.include({ code: 3, signal: null })
			expect(await run('kill -9 $$')).to.include({ code: null, signal: 'SIGKILL' })
			expect(await run('grep x /dev/null')).to.include({ code: 1 })
			expect(await run('false | true')).to.include({ code: 0 })
			expect(await run('exit 137')).to.include({ code: 137, signal: null })
			expect(await run('echo part; sleep 20', { timeoutMs: 200 })).to.include({
				code: null,
				signal: 'SIGTERM',
				timedOut: true,
				output: 'part\n',
			})
			expect(
				await executor.run({ argv: ['sh', '-c', 'echo "$0"; exit 4'], cwd: fixture.root, timeoutMs: 5_000 }, never),
			).to.include({ code: 4 })
			expect(await executor.run({ argv: ['no-such-program'], cwd: fixture.root, timeoutMs: 5_000 }, never)).to.include({
				code: 127,
			})
		})

		it('B16 a fresh bash without rc files, aliases or inherited options', async () => {
			for (const name of ['.bashrc', '.bash_profile', '.zshrc'])
				writeFileSync(join(fixture.home, name), 'echo RC; alias rm="rm -i"; set -o noclobber\n')
			const result = await run(
				'echo "$0 $BASH_ENV$ENV"; echo a > f2; echo b > f2; rm f2; shopt expand_aliases; echo $-',
				{ env: {} },
			)
			expect(result.output)
				.to.match(/^\/bin\/bash \n/)
				.and.include('expand_aliases \toff')
			expect(result.output).to.not.include('RC')
			expect(result.code).to.equal(0)
			const other = (
				await createExecutor(
					fixture.options({
						executor: where,
						env: { ...fixture.env, BASH_ENV: join(fixture.root, 'rc.sh'), ENV: join(fixture.root, 'rc.sh') },
					}),
				)
			).executor
			expect(
				(
					await other.run(
						{ script: 'echo "[$FROM_RC]"; sh -c "echo [\\$FROM_RC]"', cwd: fixture.root, timeoutMs: 5_000 },
						never,
					)
				).output,
			).to.equal('[]\n[]\n')
			await other.close()
		})

		it('the output is a real pipe: /dev/stdout, /dev/stderr and /dev/stdin can be opened', async () => {
			const result = await run('echo a >/dev/stderr; echo b | tee /dev/stderr >/dev/null; cat /dev/stdin', {
				stdin: 'given',
			})
			expect(result.output).to.equal('a\nb\ngiven')
		})

		it('B12 says where the shell stood, also after exit, and refuses a folder that is gone', async () => {
			expect((await run('cd sub; false')).cwd).to.equal(join(fixture.root, 'sub'))
			expect((await run('cd /; exit 2')).cwd).to.equal('/')
			expect((await run('mkdir gone; cd gone; rmdir ../gone')).cwd).to.equal(undefined)
			const error = await executor
				.run({ script: 'true', cwd: join(fixture.root, 'gone'), timeoutMs: 1_000 }, never)
				.catch((each) => each)
			expect(error).to.be.instanceOf(ToolError)
			expect(error.message).to.include('gone')
		})

		it('a planted end report is neither followed nor waited for', async () => {
			const secret = join(fixture.base, 'outside.txt')
			writeFileSync(secret, '0 0\n/planted\n')
			const planted = await run(
				`trap - EXIT; f=$(echo .garuda-none); for t in "$TMPDIR"; do ln -sf ${secret} "$t/$f.end"; done; mkfifo "$TMPDIR/x-$$"`,
			)
			expect(planted.code).to.equal(0)
			expect(planted.cwd).to.equal(undefined)
			expect(existsSync(secret)).to.equal(true)
		})

		it('keeps stdout and stderr apart when asked, else in order', async () => {
			expect(await run('echo o; echo e >&2', { separate: true })).to.include({ output: 'o\n', stderr: 'e\n' })
			expect(await run('for i in 1 2 3; do echo o$i; echo e$i >&2; done')).to.include({
				output: 'o1\ne1\no2\ne2\no3\ne3\n',
				stderr: '',
			})
		})

		it('a script longer than an argument can be still runs', async () => {
			const { output, cwd } = await run(`cd sub\n${': xxxxxxxxxxxxxxxxxxxxxxxx\n'.repeat(8_000)}echo end`)
			expect(output).to.equal('end\n')
			expect(cwd).to.equal(join(fixture.root, 'sub'))
			expect((await run('true').then(() => run('ls -A "$TMPDIR"'))).output).to.not.include('.sh')
		})

		it('T10 on a timeout the command hears TERM and may clean up; one that ignores it is killed after the grace', async () => {
			expect(await run("trap 'echo cleaned; exit 5' TERM; sleep 20", { timeoutMs: 200 })).to.include({
				code: 5,
				timedOut: true,
			})
			const start = performance.now()
			const stubborn = await run("trap '' TERM; while :; do sleep 0.05; done", { timeoutMs: 200 })
			expect(stubborn).to.include({ code: null, signal: 'SIGKILL', timedOut: true })
			expect(performance.now() - start).to.be.within(450, 3_000)
		})

		it('an abort ends the whole tree, also one before the start', async () => {
			const stop = new AbortController()
			const mark = nap()
			const running = run(`sh -c 'sleep ${mark} & wait'`, {}, stop.signal)
			setTimeout(() => stop.abort(), 100)
			expect(await running).to.include({ cancelled: true, timedOut: false })
			expect(await gone(`sleep ${mark}`)).to.equal(true)
			expect(await run('echo never; sleep 5', {}, AbortSignal.abort())).to.include({ cancelled: true })
		})

		it('progress comes as decoded text while it runs', async () => {
			const seen: string[] = []
			await run('echo one; sleep 0.25; echo two', { onOutput: (text) => seen.push(text) })
			expect(seen).to.deep.equal(['one\n', 'two\n'])
		})

		it('many commands at once keep their outputs apart', async () => {
			const outputs = await Promise.all(
				Array.from({ length: 12 }, (_, index) => run(`echo ${index}; sleep 0.02; echo ${index}`)),
			)
			expect(outputs.map(({ output }) => output)).to.deep.equal(
				Array.from({ length: 12 }, (_, index) => `${index}\n${index}\n`),
			)
		})
	})

describe('sandbox: limits and refusals', () => {
	let fixture: Fixture
	beforeEach(() => {
		fixture = makeFixture()
	})
	afterEach(() => fixture.remove())
	const use = async <T>(
		more: Parameters<Fixture['options']>[0],
		act: (executor: Executor) => Promise<T>,
	): Promise<T> => {
		const { executor } = await createExecutor(fixture.options(more))
		try {
			return await act(executor)
		} finally {
			await executor.close()
		}
	}

	it('proc-22 of the home a command writes to the caches of build tools alone, in plan mode to none; the limit is said', async () => {
		const caches = ['.npm/_cacache', '.cargo/registry', '.m2/repository', 'go/pkg/mod'].map((name) =>
			join(fixture.home, name),
		)
		for (const path of caches) mkdirSync(path, { recursive: true })
		const beside = [
			'.npm/x',
			'.npmrc',
			'.cargo/config.toml',
			'.cargo/bin/x',
			'.m2/settings.xml',
			'go/bin/x',
			'go/pkg/x',
		]
		const into = [...caches.map((path) => join(path, 'x')), ...beside.map((name) => join(fixture.home, name))]
		const script = into.map((path) => `mkdir -p '${join(path, '..')}'; echo planted > '${path}'`).join('; ')
		const written = () => into.filter((path) => existsSync(path) && readFileSync(path, 'utf8') === 'planted\n')
		await use({ caches }, async (executor) => {
			const run = (readOnly: boolean) =>
				executor.run(
					{ script: `{ ${script}; } 2>/dev/null; true`, cwd: fixture.root, timeoutMs: 5_000, readOnly },
					never,
				)
			await run(true)
			expect(written()).to.deep.equal([])
			await run(false)
			expect(written()).to.deep.equal(caches.map((path) => join(path, 'x')))
		})
		// What a host's build then takes from a cache is not checked.
		const said = readFileSync(new URL('../../../docs/security.md', import.meta.url), 'utf8')
		expect(said).to.match(/^- Caches of build tools are shared with your own builds/m)
	})

	it('dos-01 a fork bomb is ended and named', async () => {
		const result = await use({ limits: { processes: 60 } }, (executor) =>
			executor.run({ script: 'f() { f | f & }; f; sleep 5', cwd: fixture.root, timeoutMs: 8_000 }, never),
		)
		expect(result.durationMs).to.be.below(7_000)
		expect(`${result.output}${result.wall?.wall}`).to.match(/more than 60 processes|fork/)
		expect(result.wall?.wall).to.equal('process')
		const fine = await use({ limits: { processes: 60 } }, (executor) =>
			executor.run(
				{ script: 'for i in $(seq 20); do sleep 0.3 & done; wait; echo ok', cwd: fixture.root, timeoutMs: 8_000 },
				never,
			),
		)
		expect(fine.output).to.equal('ok\n')
	})

	it('dos-02 private memory folders and single files have a size; short memory ends the command first', async () => {
		const result = await use({ limits: { tmpBytes: 1_000_000, fileBytes: 500_000 } }, (executor) =>
			executor.run(
				{
					script:
						'for d in /run /var/tmp /dev/shm; do for i in 1 2 3 4; do head -c 400000 /dev/zero > $d/x$i || echo "full $d"; done; done; head -c 900000 /dev/zero > big; stat -c %s big; cat /proc/self/oom_score_adj',
					cwd: fixture.root,
					timeoutMs: 8_000,
				},
				never,
			),
		)
		for (const folder of ['/run', '/var/tmp', '/dev/shm']) expect(result.output).to.include(`full ${folder}`)
		expect(result.output).to.match(/\n500\d{3}\n800\n$|\n499\d{3}\n800\n$/)
	})

	it('strict refuses a run outside and blocks Unix sockets; standard allows both', async () => {
		const socket = `perl -e 'use Socket; print socket(S, AF_UNIX, SOCK_STREAM, 0) ? "unix " : "no ", socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) ? "pair" : "none"'`
		await use({ profile: 'strict' }, async (executor) => {
			const refused = await executor
				.run({ script: 'true', cwd: fixture.root, timeoutMs: 1_000, outside: true }, never)
				.catch((error) => error)
			expect(refused).to.be.instanceOf(ToolError)
			expect((await executor.run({ script: socket, cwd: fixture.root, timeoutMs: 5_000 }, never)).output).to.equal(
				'no pair',
			)
		})
		await use({}, async (executor) => {
			expect((await executor.run({ script: socket, cwd: fixture.root, timeoutMs: 5_000 }, never)).output).to.equal(
				'unix pair',
			)
			const outside = await executor.run(
				{ script: 'cat ~/.netrc; echo "[$ANTHROPIC_API_KEY]"', cwd: fixture.root, timeoutMs: 5_000, outside: true },
				never,
			)
			expect(outside.output).to.equal('SECRETTOKEN[]\n')
		})
	})

	it('proc-14 when Garuda is killed nothing of the command is left', async () => {
		const mark = nap()
		const driver = new URL('./driver.ts', import.meta.url).pathname
		const child = spawn(
			process.execPath,
			[driver, 'run', fixture.root, fixture.home, fixture.tmp, `setsid sleep ${mark} & sleep ${mark}`],
			{ stdio: 'ignore', env: { PATH: '/usr/bin:/bin', TMPDIR: fixture.base } },
		)
		for (let tries = 0; tries < 300 && !alive(`^sleep ${mark}$`); tries++) await delay(10)
		expect(alive(`^sleep ${mark}$`)).to.equal(true)
		child.kill('SIGKILL')
		expect(await gone(`^sleep ${mark}$`)).to.equal(true)
	})

	it('proc-14 outside the sandbox a killed Garuda takes its command along; what left the group is known by its mark and ended by the next start', async () => {
		const driver = new URL('./driver.ts', import.meta.url).pathname
		const marks = [nap(), nap(), nap()]
		const sessions = join(fixture.base, 'sessions')
		mkdirSync(sessions)
		const child = spawn(
			process.execPath,
			[
				driver,
				'outside',
				fixture.root,
				fixture.home,
				join(sessions, 's-PID-x'),
				`setsid sleep ${marks[0]} & sleep ${marks[2]}; true`,
			],
			{ stdio: 'ignore', env: { PATH: '/usr/bin:/bin', TMPDIR: fixture.base } },
		)
		const begun = () => alive(`^sleep ${marks[0]}$`) && alive(`^sleep ${marks[2]}$`)
		for (let tries = 0; tries < 300 && !begun(); tries++) await delay(10)
		expect(begun()).to.equal(true)
		child.kill('SIGKILL')
		expect(await gone(`^sleep ${marks[2]}$`), 'its group ends with Garuda').to.equal(true)
		// The documented limit: it has a group of its own now. Its environment still says whose it is, and the next start ends it.
		const pid = execFileSync('pgrep', ['-f', `^sleep ${marks[0]}$`], { encoding: 'utf8' }).trim()
		expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).to.match(/GARUDA_RUN=[0-9a-f]{16}/)
		await use({ tmp: fixture.tmp }, async () => {})
		expect(alive(`^sleep ${marks[0]}$`), 'not of this folder').to.equal(true)
		mkdirSync(join(sessions, 's-1-next'))
		await use({ tmp: join(sessions, 's-1-next') }, async () => {})
		expect(await gone(`^sleep ${marks[0]}$`)).to.equal(true)
		await use({ executor: 'host' }, async (executor) => {
			const running = executor.run(
				{ script: `sleep ${marks[1]} & sleep ${marks[1]}`, cwd: fixture.root, timeoutMs: 9_000 },
				never,
			)
			for (let tries = 0; tries < 300 && !alive(`^sleep ${marks[1]}$`); tries++) await delay(10)
			await executor.close()
			expect((await running).cancelled).to.equal(true)
			expect(await gone(`^sleep ${marks[1]}$`)).to.equal(true)
		})
	})

	it('env-10 a command cannot make Garuda listen for a debugger, nor dump its memory', async () => {
		// A Garuda of its own, for the control sends it a signal that an ordinary process would obey.
		const victim = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
			stdio: ['ignore', 'ignore', 'pipe'],
		})
		let said = ''
		victim.stderr.on('data', (bytes) => {
			said += bytes
		})
		try {
			for (let tries = 0; tries < 300 && !caught(victim.pid!); tries++) await delay(10)
			const reach = `for p in ${victim.pid} ${process.pid}; do kill -USR1 $p && echo REACHED; kill -QUIT $p && echo REACHED; [ -e /proc/$p/mem ] && grep -aq node /proc/$p/comm && echo REACHED; done; (exec 3<>/dev/tcp/127.0.0.1/9229) && echo REACHED; pkill -USR1 node && echo REACHED; kill -USR1 -1; true`
			await use({}, async (executor) => {
				for (const readOnly of [false, true]) {
					const { output } = await executor.run({ script: reach, cwd: fixture.root, timeoutMs: 5_000, readOnly }, never)
					expect(output).to.not.include('REACHED')
				}
			})
			await delay(50)
			expect(said).to.equal('')
			expect(victim.exitCode).to.equal(null)
			// The control: from outside the same signal makes it listen.
			execFileSync('kill', ['-USR1', String(victim.pid)])
			for (let tries = 0; tries < 300 && !said.includes('Debugger listening'); tries++) await delay(10)
			expect(said).to.match(/Debugger listening|address already in use/)
		} finally {
			victim.kill('SIGKILL')
		}
	})

	it('proc-25 a root whose name tries to be flags', async () => {
		const odd = join(fixture.base, "a\n--bind\n..\n'b'")
		mkdirSync(odd)
		const result = await use({ root: odd }, (executor) =>
			executor.run({ script: 'touch in; touch "$HOME/out" /usr/out; pwd', cwd: odd, timeoutMs: 5_000 }, never),
		)
		expect(existsSync(join(odd, 'in'))).to.equal(true)
		expect(existsSync(join(fixture.home, 'out'))).to.equal(false)
		expect(result.output).to.include('--bind')
	})

	it('link-10 a root that is a link is pinned to its real path once', async () => {
		const link = join(fixture.base, 'link')
		symlinkSync(fixture.root, link)
		await use({ root: link }, async (executor) => {
			rmSync(link)
			symlinkSync(fixture.home, link)
			const result = await executor.run(
				{ script: `touch "${fixture.root}/in"; touch "$HOME/out"`, cwd: fixture.root, timeoutMs: 5_000 },
				never,
			)
			expect(result.wall?.wall).to.equal('write')
			expect([existsSync(join(fixture.root, 'in')), existsSync(join(fixture.home, 'out'))]).to.deep.equal([true, false])
		})
	})

	it('a mount point planted as a link in the session folder leads nowhere', async () => {
		await use({}, async (executor) => {
			const name = fixture.base.split('/')[2]!
			const plant = await executor.run(
				{ script: `mv /tmp/${name} /tmp/moved; ls -d /tmp/moved`, cwd: fixture.root, timeoutMs: 5_000 },
				never,
			)
			expect(plant.output).to.match(/busy/i)
			rmSync(join(fixture.tmp, name), { recursive: true, force: true })
			symlinkSync('../../oldroot/var/tmp', join(fixture.tmp, name))
			expect(await executor.run({ script: 'echo fine', cwd: fixture.root, timeoutMs: 5_000 }, never)).to.include({
				output: 'fine\n',
			})
		})
	})

	it('secret-10 a secret made after the start is hidden from the next command', async () => {
		rmSync(join(fixture.home, '.aws'), { recursive: true })
		await use({}, async (executor) => {
			const script = `cat ~/.aws/credentials ~/.vault-token 2>&1 | tr -d '\\n'`
			expect((await executor.run({ script, cwd: fixture.root, timeoutMs: 5_000 }, never)).output).to.include(
				'No such file',
			)
			mkdirSync(join(fixture.home, '.aws'))
			writeFileSync(join(fixture.home, '.aws/credentials'), 'LATER')
			expect((await executor.run({ script, cwd: fixture.root, timeoutMs: 5_000 }, never)).output).to.not.include(
				'LATER',
			)
			expect(readFileSync(join(fixture.home, '.aws/credentials'), 'utf8')).to.equal('LATER')
		})
	})
})

/** There and no zombie: whoever adopted a process may be slow to collect it. */
const livesOn = (pid: number): boolean => {
	try {
		const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
		return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z'
	} catch {
		return false
	}
}

describe('sandbox: the bubblewrap that waits', () => {
	let fixture: Fixture
	let executor: Executor
	const run = (script: string, more: Partial<RunSpec> = {}) =>
		executor.run({ script, cwd: fixture.root, timeoutMs: 5_000, ...more }, never)
	/** Children of this process that wait for their flags. */
	const waiting = (parent = process.pid): number[] => {
		try {
			return execFileSync('pgrep', ['-P', String(parent), '-x', 'bwrap'], { encoding: 'utf8' })
				.trim()
				.split('\n')
				.map(Number)
		} catch {
			return []
		}
	}
	const ready = async (parent?: number): Promise<number> => {
		// While a command runs there may be its own too.
		for (let tries = 0; tries < 300 && waiting(parent).length !== 1; tries++) await delay(5)
		expect(waiting(parent)).to.have.length(1)
		return waiting(parent)[0]!
	}
	beforeEach(async () => {
		fixture = makeFixture()
		executor = (await createExecutor(fixture.options({ limits: { graceMs: 300 } }))).executor
	})
	afterEach(async () => {
		await executor.close()
		await fixture.remove()
	})

	it('is used once, and decides nothing before its command comes: secrets, folders and the environment are of that moment', async () => {
		rmSync(join(fixture.home, '.aws'), { recursive: true })
		await run('true')
		const first = await ready()
		mkdirSync(join(fixture.home, '.aws'))
		writeFileSync(join(fixture.home, '.aws/credentials'), 'LATER')
		mkdirSync(join(fixture.root, '.run'))
		const { output, cwd, code } = await run(
			'cat ~/.aws/credentials; echo x > .run/x; echo "$MINE $0"; cd sub; exit 3',
			{
				env: { MINE: 'mine' },
			},
		)
		expect(output)
			.to.match(/No such file/)
			.and.match(/Read-only/)
			.and.match(/mine \/bin\/bash\n$/)
		expect([cwd, code]).to.deep.equal([join(fixture.root, 'sub'), 3])
		expect(await ready()).to.not.equal(first)
		// Plan mode is decided then too.
		expect((await run('touch planned', { readOnly: true })).code).to.equal(1)
		expect(existsSync(join(fixture.root, 'planned'))).to.equal(false)
	})

	it('when it was killed, or is taken by another, the command starts its own', async () => {
		await run('true')
		process.kill(await ready(), 'SIGKILL')
		expect(await run('echo fine')).to.include({ output: 'fine\n', code: 0 })
		await ready()
		const both = await Promise.all([run('echo a'), run('echo b'), run('cat; echo c', { stdin: 'i' })])
		expect(both.map(({ output }) => output)).to.deep.equal(['a\n', 'b\n', 'ic\n'])
	})

	it('ends with the session; a Garuda that only waits for it ends; and with a killed Garuda it ends and runs nothing', async () => {
		await run('true')
		const pid = await ready()
		await executor.close()
		for (let tries = 0; tries < 100 && waiting().includes(pid); tries++) await delay(5)
		expect(waiting()).to.deep.equal([])
		const driver = new URL('./driver.ts', import.meta.url).pathname
		const start = (errand: string) =>
			spawn(process.execPath, [driver, errand, fixture.root, fixture.home, fixture.tmp, 'true'], {
				stdio: ['ignore', 'pipe', 'ignore'],
				env: { PATH: '/usr/bin:/bin', TMPDIR: fixture.base },
			})
		const open = start('open')
		expect(await new Promise((resolve) => open.once('exit', resolve))).to.equal(0)
		const killed = start('stay')
		let said = ''
		killed.stdout.on('data', (bytes) => {
			said += bytes
		})
		let left: number
		try {
			for (let tries = 0; tries < 300 && !said.includes('result'); tries++) await delay(10)
			await delay(40)
			left = await ready(killed.pid)
		} finally {
			killed.kill('SIGKILL')
		}
		for (let tries = 0; tries < 600 && livesOn(left); tries++) await delay(5)
		expect(livesOn(left)).to.equal(false)
	})

	it('without its flags bubblewrap starts no command', () => {
		const marker = join(fixture.base, 'ran')
		const ran = spawnSync('/usr/bin/bwrap', ['--args', '0', '--', '/bin/bash', '-c', `touch ${marker}`], {
			input: '',
			encoding: 'utf8',
		})
		expect(ran.status).to.not.equal(0)
		expect(existsSync(marker)).to.equal(false)
	})

	it('the script is the shell itself: lines are counted from 1, and nobody finds it in the environment', async () => {
		const { output } = await run(
			'echo "$LINENO"\nnope\nenv | grep -c GARUDA_SCRIPT; sh -c "env" | grep -c GARUDA; echo "[$GARUDA_SCRIPT]"; echo "$#"',
		)
		expect(output)
			.to.match(/^1\n/)
			.and.match(/line 2: nope: command not found/)
			.and.match(/\n0\n0\n\[\]\n0\n$/)
		expect(await run('if')).to.include({ code: 2 })
		expect((await run('echo $((1+1))', { env: { GARUDA_SCRIPT: 'echo planted' } })).output).to.equal('2\n')
	})
})
