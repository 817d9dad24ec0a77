// What bash tells the model: ends in words, readable bounded output, where it stands, one question after a wall.
import { spawn } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Executor, RunResult } from '../../../src/engine/ports.ts'
import { lineProgress } from '../../../src/engine/tools/command-output.ts'
import { ended, fakeExecutor, type Scene, type SceneOptions, scene } from './scene.ts'

/** A small real executor: bash in a group of its own, ended with what it left; it reports where the shell stood. */
const realExecutor: Executor = {
	kind: 'host',
	close: async () => {},
	run: (spec) =>
		new Promise<RunResult>((resolve) => {
			const script = `${spec.script}\n`
			const child = spawn('bash', ['--noprofile', '--norc', '-c', `trap 'pwd >&3' EXIT\n${script}`], {
				cwd: spec.cwd,
				detached: true,
				stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
			})
			const chunks: Buffer[] = []
			let cwd = ''
			let timedOut = false
			const take = (chunk: Buffer) => {
				chunks.push(chunk)
				spec.onOutput?.(chunk.toString('latin1'))
			}
			child.stdout!.on('data', take)
			child.stderr!.on('data', take)
			child.stdio[3]!.on('data', (chunk) => {
				cwd += chunk
			})
			const end = () => {
				try {
					process.kill(-child.pid!, 'SIGKILL')
				} catch {}
			}
			const timer = setTimeout(() => {
				timedOut = true
				end()
			}, spec.timeoutMs)
			child.on('exit', (code, signal) => {
				clearTimeout(timer)
				end()
				setTimeout(
					() =>
						resolve(
							ended({
								code,
								signal,
								timedOut,
								output: Buffer.concat(chunks).toString('utf8'),
								...(cwd && { cwd: cwd.trim() }),
							}),
						),
					20,
				)
			})
		}),
}

describe('bash', () => {
	let s: Scene
	const open = async (options: SceneOptions = {}): Promise<void> => {
		s = await scene(options)
	}
	afterEach(() => s.close())
	const bash = async (command: string, more = {}) => s.call('bash', { command, ...more })

	it('B01 B10 processes left in the background are named and the shell’s own end is told', async () => {
		await open({ executor: fakeExecutor((_, call) => ({ output: 'done\n', survivors: call })) })
		const one = await bash('sleep 60 & echo done')
		expect(one).to.deep.include({
			status: 'ok',
			text: 'done\n[exit code 0]\n[1 process it started was still running in the background and was ended: nothing goes on after a call]',
		})
		expect((await bash('nohup ./worker > log 2>&1 &')).text).to.contain('2 processes it started were still running')
	})

	it('B01 nothing is said of the background when nothing was left', async () => {
		await open({ executor: fakeExecutor(() => ({ output: 'done\n' })) })
		expect((await bash('echo done')).text).to.equal('done\n[exit code 0]')
	})

	it('B02 a timeout is passed on, capped at the most allowed, and told with the output so far', async () => {
		const executor = fakeExecutor(() => ({ code: null, signal: 'SIGKILL', timedOut: true, output: 'half\n' }))
		await open({ executor })
		const result = await bash('sleep 300', { timeout_ms: 1000 })
		expect(result.status).to.equal('failed')
		expect(result.text).to.contain('half').and.contain('timed out after 1 s').and.not.contain('exit code')
		expect((await bash('sleep 300', { timeout_ms: 10_000_000 })).text).to.contain('time limit was 600 s')
		await bash('x')
		expect(executor.specs.map((spec) => spec.timeoutMs)).to.deep.equal([1000, 600_000, 120_000])
	})

	it('B04 B08 B16 the command goes to the executor as written: the shell, its environment and decoding are its work', async () => {
		const executor = fakeExecutor(() => ({ output: '你'.repeat(9000) }))
		await open({ executor })
		const result = await bash("git log && echo '你'")
		expect(executor.specs[0]).to.deep.include({
			script: "git log && echo '你'",
			cwd: s.root,
			outside: false,
			readOnly: false,
		})
		expect(executor.specs[0]).not.to.have.property('stdin')
		expect(result.text).to.equal(`${'你'.repeat(9000)}\n[exit code 0]`)
	})

	it('B07 progress bars shrink to what a terminal shows, and the result stays under the cap', async () => {
		const line = (n: number) =>
			`${Array.from({ length: 14 }, (_, k) => `${k * 7}%|${'█'.repeat(60)}| ${n}`).join('\r')}\n`
		await open({ executor: fakeExecutor(() => ({ output: Array.from({ length: 100 }, (_, n) => line(n)).join('') })) })
		const { text } = await bash('tail -100 log')
		expect(text.split('\n')).to.have.length(101)
		expect(text).to.match(/^91%\|█+\| 0\n/)
		expect(text.length).to.be.lessThan(10_000)
	})

	it('plant-10 what a command planted is data of the result, one line each; else there is none', async () => {
		const findings = ['/w/.idea/x.xml', '/w/two\nlines']
		await open({ executor: fakeExecutor((_, call) => ({ output: 'done\n', ...(call === 1 && { findings }) })) })
		expect((await bash('x')).data).to.deep.include({ findings: ['/w/.idea/x.xml', '/w/two ⏎ lines'] })
		expect((await bash('x')).data).to.not.have.property('findings')
	})

	it('B07 long output keeps head and tail and says how much is missing; CRLF output is lines', async () => {
		await open({
			executor: fakeExecutor((_, call) => ({
				output: call === 1 ? `HEAD\n${'x\n'.repeat(100_000)}TAIL\n` : 'a\r\nb\r\n',
			})),
		})
		const { text } = await bash('yes | head')
		expect(text.length).to.be.lessThan(30_000)
		expect(text).to.match(/^HEAD\n/)
		expect(text)
			.to.contain('characters left out')
			.and.match(/TAIL\n\[exit code 0\]$/)
		expect((await bash('x')).text).to.equal('a\nb\n[exit code 0]')
	})

	it('B12 a folder that is gone: the command runs in the root with one note, and the next has none', async () => {
		await open({ executor: realExecutor })
		await fs.mkdir(join(s.root, 'wt'))
		expect((await bash('cd wt')).text).to.contain('next command starts in wt')
		await fs.rm(join(s.root, 'wt'), { recursive: true })
		const third = (await bash('echo hi; pwd')).text
		expect(third).to.contain(`hi\n${s.root}\n`)
		expect(third.match(/is gone/g)).to.have.length(1)
		expect((await bash('pwd')).text).to.equal(`${s.root}\n[exit code 0]`)
	})

	it('B12 a folder replaced by a file or by a link out of the root is as good as gone', async () => {
		await open({ executor: realExecutor })
		for (const replace of [(path: string) => fs.writeFile(path, ''), (path: string) => fs.symlink(s.outside, path)]) {
			await fs.mkdir(join(s.root, 'd'))
			await bash('cd d')
			await fs.rmdir(join(s.root, 'd'))
			await replace(join(s.root, 'd'))
			expect((await bash('pwd')).text)
				.to.contain(`${s.root}\n`)
				.and.contain('is gone')
			await fs.rm(join(s.root, 'd'))
		}
	})

	it('B13 the folder is kept between calls; file tools stay relative to the root', async () => {
		await open({ executor: realExecutor })
		await s.put('src/a.ts', 'inner\n')
		await s.put('a.ts', 'outer\n')
		await bash('cd src')
		expect((await bash('pwd')).text).to.contain(`${s.root}/src`)
		expect((await s.call('read_file', { path: 'a.ts' })).text).to.contain('outer')
	})

	it('B13 a folder outside the roots, a made-up one and a secret one are not kept, and that is told', async () => {
		let cwd = ''
		await open({ executor: fakeExecutor(() => ({ cwd })) })
		await fs.mkdir(join(s.root, '.ssh'))
		await s.put('file', 'x')
		for (const place of [
			s.outside,
			'/',
			'/nowhere\n[exit code 0]',
			join(s.root, '.ssh'),
			join(s.root, 'file'),
			`${s.root}/../outside`,
		]) {
			cwd = place
			expect((await bash('cd')).text, place).to.contain(`the next command starts in ${s.root}`)
			expect(s.ctx.state.cwd).to.equal(s.root)
		}
	})

	it('B14 exit codes, signals and timeouts are told as what they are, with the output so far', async () => {
		await open({ executor: realExecutor })
		expect((await bash('false; true')).text).to.equal('(no output)\n[exit code 0]')
		expect(await bash('echo part; exit 3')).to.deep.include({ status: 'failed', text: 'part\n[exit code 3]' })
		expect((await bash('kill -9 $$')).text).to.contain('ended by signal SIGKILL')
		expect((await bash('grep x /dev/null')).text).to.contain('exit code 1')
		expect((await bash('false | true')).text).to.contain('exit code 0')
		const late = await bash('echo part; sleep 5', { timeout_ms: 200 })
		expect(late.text).to.contain('part').and.contain('timed out after 0.2 s').and.not.contain('exit code')
	})

	it('B14 a stop by the user is told as that', async () => {
		await open({ executor: fakeExecutor(() => ({ code: null, signal: 'SIGTERM', cancelled: true, output: 'x' })) })
		expect(await bash('sleep 9')).to.deep.include({ status: 'failed', text: 'x\n[stopped by the user]' })
	})

	it('B15 term-01 term-02 term-03 term-08 no escape, title, clipboard or control reaches the model or the user', async () => {
		const nasty =
			'\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u001b]52;c;ZXZpbA==\u0007 \u009b2J \u001b]8;;https://evil\u0007text\u001b]8;;\u0007 \u001b[21t\u001b[?1049h\u001b[?2004l\u001b_Gx\u001b\\ a\bb c_\bc \u202Eevil\u2069 \u0007\n'
		await open({
			executor: {
				...fakeExecutor(() => ({})),
				run: async (spec) => {
					spec.onOutput?.(nasty)
					return ended({ output: nasty })
				},
			},
		})
		const { text } = await bash('printf')
		for (const where of [text.replaceAll('\u0007', ''), ...s.progress]) {
			expect(where).not.to.match(/[\u001b\u009b\b\u202e\u2069]/)
			expect(where).to.contain('red').and.contain('text').and.contain('[U+202E]evil[U+2069]').and.contain('b c')
			expect(where).not.to.contain('title').and.not.contain('ZXZpbA').and.not.contain('https://evil')
		}
		expect(s.progress.join('')).not.to.contain('\u0007')
	})

	it('term-06 an escape split between chunks is not shown in halves', async () => {
		await open({
			executor: {
				...fakeExecutor(() => ({})),
				run: async (spec) => {
					for (const chunk of ['one\ntwo \u001b', ']52;c;Y3Vy', 'cA==\u0007 end', '\nlast \u001b[3', '1mred'])
						spec.onOutput?.(chunk)
					return ended()
				},
			},
		})
		await bash('x')
		const whole = s.progress.filter((text) => !text.startsWith('\r'))
		expect(whole).to.deep.equal(['one', 'two  end', 'last red'])
		// Nor is one in a line that has not ended.
		expect(s.progress.join('\n')).to.not.match(/\u001b|52;c|\[3/)
	})

	it('a wall asks once, runs outside after a yes and says so', async () => {
		const executor = fakeExecutor((spec) =>
			spec.outside
				? { output: 'ok\n' }
				: { code: 1, output: 'no route\n', wall: { wall: 'network', detail: 'no route' } },
		)
		await open({ executor })
		const result = await bash('npm install')
		expect(s.effects).to.deep.equal([
			{ type: 'outside_sandbox', command: 'npm install', wall: 'network', detail: 'no route' },
		])
		expect(executor.specs.map((spec) => spec.outside)).to.deep.equal([false, true])
		expect(result.status).to.equal('ok')
		expect(result.text).to.contain('ran again outside the sandbox').and.contain('ok\n[exit code 0]')
	})

	it('a no keeps the first result with the reason; plan mode and an outside run never ask', async () => {
		const executor = fakeExecutor(() => ({ code: 1, output: 'denied\n', wall: { wall: 'write', detail: 'read-only' } }))
		await open({ executor, allow: false })
		expect((await bash('touch /x')).text)
			.to.contain('denied')
			.and.contain('the user said no')
		s.ctx.mode = 'plan'
		expect((await bash('touch x')).text).to.contain('in plan mode commands only read')
		expect(executor.specs.at(-1)!.readOnly).to.equal(true)
		expect(await s.fails('bash', { command: 'x', outside_sandbox: true })).to.contain('plan mode')
		s.ctx.mode = 'build'
		await bash('x', { outside_sandbox: true, reason: 'r' })
		expect(s.effects).to.have.length(1)
		expect(executor.specs.map((spec) => spec.outside)).to.deep.equal([false, false, true])
	})

	it('the plan shows the command itself, and its key is the command as written', async () => {
		await open()
		const plan = (input: object) => s.tool('bash').plan(input, s.ctx)
		expect((await plan({ command: 'rm -rf x', description: 'List files' })).info).to.deep.equal({
			title: 'Run rm -rf x',
			kind: 'execute',
			access: 'run',
			paths: [],
			key: 'bash:rm -rf x',
			command: 'rm -rf x',
		})
		expect((await plan({ command: 'ls ', outside_sandbox: true, reason: 'why\u001b' })).info).to.deep.include({
			key: 'outside:ls ',
			outside: true,
			preview: "The model's reason: why␛",
		})
		expect(await s.fails('bash', { command: ' ' })).to.contain('empty')
		expect(await s.fails('bash', { command: 'a\0b' })).to.contain('NUL')
	})
})

describe('the progress of a command', () => {
	it('a line that has not ended is told as it stands, at most every tenth of a second, and whole at its end', () => {
		const told: string[] = []
		let time = 0
		const progress = lineProgress({ progress: (text) => told.push(text) }, () => time)
		const take = (text: string, ms = 150) => {
			time += ms
			progress.take(text)
		}
		take('start\n 10 %')
		for (let i = 11; i < 40; i++) take(`\r ${i} %`, 1)
		take('\r\u001b[32m 50 %\u001b')
		take('[0m')
		take('\r 60 %\r')
		take('\r100 %\nnext\n')
		progress.end()
		expect(told).to.deep.equal(['start', '\r 10 %', '\r 50 %', '\r 60 %', '100 %\nnext'])
	})
})
