// The built bin as an editor's agent: its stdout, its ends, older Nodes, and the clients of others (acpx) over it.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { Tap } from '../acp/tap.ts'
import {
	bin,
	environment,
	journals,
	lines,
	type Place,
	place,
	processesWith,
	records,
	repository,
	until,
} from '../helpers/cli.ts'
import { skip } from '../helpers/skip.ts'
import { openaiStream, startSse } from '../helpers/sse-server.ts'
import { removeTemp } from '../helpers/temp.ts'

interface Agent {
	child: ChildProcess
	tap: Tap
	stdout(): string
	stderr(): string
	ask(method: string, params: object): Promise<any>
	tell(method: string, params: object): void
	/** Requests and notifications of the agent, as they come. */
	heard: any[]
	/** Its exit code or signal. */
	ended: Promise<number | string | null>
}

const living: ChildProcess[] = []

/** Starts the built bin as an editor does. */
function agent(
	at: Place,
	o: {
		env?: Record<string, string | undefined>
		node?: string
		args?: string[]
		run?: object
		answer?: string
		noise?: string
	} = {},
): Agent {
	const child = spawn(o.node ?? process.execPath, [...(o.args ?? []), bin, 'acp'], {
		cwd: at.root,
		env: environment(at, { ...o.run, ...(o.env ? { env: o.env } : {}) }),
		stdio: ['pipe', 'pipe', 'pipe'],
	})
	living.push(child)
	const tap = new Tap()
	const heard: any[] = []
	const waiting = new Map<number, (message: any) => void>()
	let stdout = ''
	let stderr = ''
	let rest = ''
	let next = 0
	const send = (message: any): void => {
		tap.fromClient(message)
		child.stdin!.write(`${JSON.stringify(message)}\n`)
	}
	child.stdin!.on('error', () => {})
	child.stderr!.setEncoding('utf8').on('data', (text: string) => {
		stderr += text
	})
	child.stdout!.setEncoding('utf8').on('data', (text: string) => {
		stdout += text
		const whole = (rest + text).split('\n')
		rest = whole.pop()!
		for (const line of whole) {
			const message = JSON.parse(line)
			tap.fromAgent(message)
			if (message.method === undefined) waiting.get(message.id)?.(message)
			else {
				heard.push(message)
				if (message.method === 'session/request_permission')
					send({
						jsonrpc: '2.0',
						id: message.id,
						result: { outcome: { outcome: 'selected', optionId: o.answer ?? 'deny' } },
					})
			}
		}
	})
	if (o.noise) child.stdin!.write(o.noise)
	return {
		child,
		tap,
		heard,
		stdout: () => stdout,
		stderr: () => stderr,
		ask: (method, params) => {
			const id = next++
			send({ jsonrpc: '2.0', id, method, params })
			return new Promise((done, failed) =>
				waiting.set(id, (message) =>
					message.error ? failed(Object.assign(new Error(message.error.message), message.error)) : done(message.result),
				),
			)
		},
		tell: (method, params) => send({ jsonrpc: '2.0', method, params }),
		ended: new Promise((done) => child.on('close', (code, signal) => done(code ?? signal))),
	}
}

const hello = { protocolVersion: 1, clientCapabilities: {} }
const text = (prompt: string) => [{ type: 'text', text: prompt }]

async function opened(at: Place, o: Parameters<typeof agent>[1] = {}): Promise<{ a: Agent; sessionId: string }> {
	const a = agent(at, o)
	await a.ask('initialize', hello)
	const { sessionId } = await a.ask('session/new', { cwd: at.root, mcpServers: [] })
	return { a, sessionId }
}

/** A command that says when it runs, and whose processes can be found afterwards. */
const work = (mark: string) => ({
	steps: [
		{ calls: [{ name: 'bash', input: { command: `echo running; exec -a ${mark} sleep 300` } }] },
		{ text: 'done' },
	],
})

describe('acp, the built bin', () => {
	afterEach(() => {
		for (const child of living.splice(0)) if (child.exitCode === null) child.kill('SIGKILL')
		removeTemp()
	})

	it('D02 every line of stdout is the protocol, also when a library prints before and between', async () => {
		const at = place()
		const preload = join(dirname(at.home), 'noisy.cjs')
		writeFileSync(
			preload,
			`const fs = require('node:fs')
			const { mkdirSync } = fs
			// The first thing that the start does once stdout is taken.
			fs.mkdirSync = (...args) => {
				fs.mkdirSync = mkdirSync
				console.log('early noise')
				setInterval(() => { console.log('noise'); process.stdout.write(Buffer.from('bytes\\n')); process.stdout.write('aGV4', 'base64') }, 5).unref()
				return mkdirSync(...args)
			}
			process.emitWarning('old thing', 'DeprecationWarning')`,
		)
		const { a, sessionId } = await opened(at, {
			args: ['--require', preload],
			run: { script: { steps: [{ text: 'Hi.', deltas: 3 }] } },
		})
		expect(await a.ask('session/prompt', { sessionId, prompt: text('hi') })).to.deep.equal({ stopReason: 'end_turn' })
		a.child.stdin!.end()
		expect(await a.ended).to.equal(0)
		const messages = lines(a.stdout())
		expect(messages[0]).to.deep.include({ jsonrpc: '2.0', id: 0 })
		expect(messages.every((one) => one.jsonrpc === '2.0')).to.equal(true)
		expect(a.stderr()).to.include('early noise').and.include('bytes')
		expect(a.tap.faults).to.deep.equal([])
	})

	it('D02 what a command prints, and a program that writes to every descriptor, stays out of the protocol', async () => {
		const at = place()
		const command =
			'echo to-stdout; echo to-stderr >&2; for f in /proc/$PPID/fd/1 /proc/1/fd/1; do echo planted > $f; done 2>/dev/null; true'
		const { a, sessionId } = await opened(at, {
			run: { script: { steps: [{ calls: [{ name: 'bash', input: { command } }] }, { text: 'ok' }] } },
		})
		await a.ask('session/prompt', { sessionId, prompt: text('run') })
		a.child.stdin!.end()
		await a.ended
		expect(a.stdout()).to.not.match(/^(?:planted|to-std)/m)
		expect(lines(a.stdout()).every((one) => one.jsonrpc === '2.0')).to.equal(true)
		expect(a.tap.faults).to.deep.equal([])
	})

	it('D06 noise, a byte order mark and CR line ends on stdin do no harm', async () => {
		const a = agent(place(), { noise: '\ufeff\u001b]0;title\u0007Welcome\r\n\r\n' })
		expect((await a.ask('initialize', hello)).protocolVersion).to.equal(1)
		a.child.stdin!.write('{"jsonrpc":"2.0","id":77,"method":"session/list","params":{}}\r\n')
		await until(() => a.stdout().includes('"id":77'), a.stdout)
		a.child.stdin!.write('{ broken\n')
		await until(() => a.stdout().includes('-32700'), a.stdout)
		a.child.stdin!.end()
		expect(await a.ended).to.equal(0)
	})

	it('an empty home and no key: the first line is the answer, with a sign-in; session/new asks for it', async () => {
		const at = place()
		const a = agent(at, { env: { TERM: 'dumb' } })
		const answer = await a.ask('initialize', {
			protocolVersion: 1,
			clientCapabilities: {
				terminal: true,
				fs: { readTextFile: true, writeTextFile: true },
				_meta: { 'terminal-auth': true, terminal_output: true },
			},
		})
		expect(lines(a.stdout())[0].id).to.equal(0)
		expect(answer.authMethods).to.deep.include({
			type: 'terminal',
			id: 'garuda-setup',
			name: 'Set up Garuda',
			description: 'Choose a model and enter its API key.',
			args: ['setup'],
		})
		const error = await a.ask('session/new', { cwd: at.root, mcpServers: [] }).catch((one) => one)
		expect(error.code).to.equal(-32000)
		a.child.stdin!.end()
		expect(await a.ended).to.equal(0)
	})

	it('answers initialize on Node 20, where session/new names the Node that it needs', async function () {
		const old = ['/usr/bin/node', '/usr/local/bin/node'].find((path) =>
			/^v20\./.test(spawnSync(path, ['-v'], { encoding: 'utf8' }).stdout ?? ''),
		)
		if (!old) return skip(this, 'no Node 20 beside this one')
		const at = place()
		const a = agent(at, { node: old })
		expect((await a.ask('initialize', hello)).protocolVersion).to.equal(1)
		const error = await a.ask('session/new', { cwd: at.root, mcpServers: [] }).catch((one) => one)
		expect(error.code).to.equal(-32603)
		expect(error.message).to.include('Node 22.20')
		a.child.stdin!.end()
		expect(await a.ended).to.equal(0)
	})

	for (const [what, end, code] of [
		['stdin closes', (a: Agent) => a.child.stdin!.end(), 0],
		['SIGTERM', (a: Agent) => a.child.kill('SIGTERM'), 143],
		['it is killed', (a: Agent) => a.child.kill('SIGKILL'), 'SIGKILL'],
	] as const)
		it(`D04 ${what} while a command runs: no process stays, and the next start lists the session`, async () => {
			const at = place()
			const mark = `acp-mark-${process.pid}-${Math.random().toString(36).slice(2)}`
			const { a, sessionId } = await opened(at, { run: { script: work(mark) } })
			void a.ask('session/prompt', { sessionId, prompt: text('work') }).catch(() => {})
			await until(
				() => processesWith(mark).length > 0 && a.stdout().includes('running'),
				() => a.stdout() + a.stderr(),
			)
			const begun = performance.now()
			end(a)
			expect(await a.ended).to.equal(code)
			await until(
				() => processesWith(mark).length === 0,
				() => JSON.stringify(processesWith(mark)),
				3000,
			)
			expect(performance.now() - begun).to.be.lessThan(5000)
			const b = agent(at, { run: { script: { steps: [] } } })
			await b.ask('initialize', hello)
			const { sessions } = await b.ask('session/list', { cwd: at.root })
			expect(sessions.map((one: any) => [one.sessionId, one.title])).to.deep.equal([[sessionId, 'work']])
			await b.ask('session/load', { sessionId, cwd: at.root, mcpServers: [] })
			expect(JSON.stringify(b.heard)).to.include('"work"')
			b.child.stdin!.end()
			await b.ended
			expect(b.tap.faults).to.deep.equal([])
		})

	it('D04 the editor dies while another process holds stdin open: the agent goes too', async () => {
		const at = place()
		const mark = `acp-held-${process.pid}-${Math.random().toString(36).slice(2)}`
		// A shell starts a holder of the pipe's other end and the agent, then dies.
		const shell = spawn(
			'/bin/bash',
			['-c', `exec 3< <(exec -a ${mark} sleep 60); "$0" "$1" acp <&3 & echo $!; sleep 0.6`, process.execPath, bin],
			{
				cwd: at.root,
				env: environment(at),
				stdio: ['ignore', 'pipe', 'ignore'],
			},
		)
		let out = ''
		shell.stdout.setEncoding('utf8').on('data', (chunk: string) => {
			out += chunk
		})
		await until(
			() => /\d+\n/.test(out),
			() => out,
		)
		const pid = Number(out)
		await new Promise((done) => shell.on('exit', done))
		const alive = (): boolean => {
			try {
				return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
			} catch {
				return false
			}
		}
		await until(
			() => !alive(),
			() => `process ${pid} is still there`,
			4000,
		)
		for (const { pid: holder } of processesWith(mark)) process.kill(holder)
	})

	it('a key in the environment leaves it, and works', async () => {
		const at = place()
		const { a } = await opened(at, {
			env: { OPENAI_API_KEY: 'sk-secret-of-the-test', GARUDA_MODEL: 'openai/gpt-test' },
		})
		expect(readFileSync(`/proc/${a.child.pid}/environ`, 'utf8')).to.not.include('sk-secret-of-the-test')
		a.child.stdin!.end()
		expect(await a.ended).to.equal(0)
		expect(a.tap.faults).to.deep.equal([])
	})

	it('100 prompts in one process leave no process behind', async () => {
		const at = place()
		const { a, sessionId } = await opened(at, { run: { script: { steps: [{ text: 'Hi.', repeat: 100 }] } } })
		for (let i = 0; i < 100; i++) await a.ask('session/prompt', { sessionId, prompt: text(`say ${i}`) })
		a.child.stdin!.end()
		expect(await a.ended).to.equal(0)
		expect(processesWith(at.home).map((one) => one.command)).to.deep.equal([])
		expect(a.tap.faults).to.deep.equal([])
	})
})

describe('acp, by acpx', () => {
	const homes: string[] = []
	const acpx = join(repository, 'node_modules', 'acpx', 'dist', 'cli.js')

	/** acpx over the built bin, which plays a script (or the tour). */
	function client(script?: object, env: Record<string, string> = {}) {
		const at = place()
		homes.push(at.home)
		const starter = join(dirname(at.home), 'agent.sh')
		writeFileSync(starter, `#!/bin/sh\nexec "${process.execPath}" "${bin}" acp\n`)
		chmodSync(starter, 0o755)
		mkdirSync(join(at.home, '.garuda'), { recursive: true, mode: 0o700 })
		const vars = environment(at, { ...(script ? { script: script as never } : {}), env })
		const run = (...args: string[]): Promise<{ code: number | null; out: string; err: string }> => {
			const child = spawn(
				process.execPath,
				[acpx, '--agent', starter, '--cwd', at.root, '--ttl', '20', '--timeout', '15', ...args],
				{
					cwd: at.root,
					env: vars,
					stdio: ['ignore', 'pipe', 'pipe'],
				},
			)
			let out = ''
			let err = ''
			child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
				out += chunk
			})
			child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
				err += chunk
			})
			return new Promise((done) => child.on('close', (code) => done({ code, out, err })))
		}
		return { at, run }
	}

	afterEach(() => {
		// acpx keeps an owner of each queue, which keeps its agent.
		for (const home of homes.splice(0))
			for (const one of processesWith(home))
				try {
					process.kill(one.pid)
				} catch {
					// ended meanwhile
				}
		removeTemp()
	})

	it('exec answers, and its JSON stream is the protocol', async () => {
		const { run } = client({ steps: [{ text: 'Hello from here.' }] })
		const plain = await run('exec', 'hi')
		expect(plain.code, plain.err).to.equal(0)
		expect(plain.out).to.include('Hello from here.')
		const json = await run('--format', 'json', 'exec', 'hi')
		const tap = new Tap()
		for (const message of lines(json.out))
			if (message.method === undefined || /^session\/(?:update|request)/.test(message.method)) tap.fromAgent(message)
			else tap.fromClient(message)
		expect(tap.faults).to.deep.equal([])
		expect(json.out).to.include('end_turn')
	}).timeout(40_000)

	it('a denied edit leaves no file and says so in the exit code; an approved one writes it', async () => {
		const script = {
			steps: [{ calls: [{ name: 'write_file', input: { path: 'n.txt', content: 'x\n' } }] }, { text: 'ok' }],
		}
		const denied = client(script)
		const no = await denied.run('--deny-all', 'exec', 'write')
		expect(no.code).to.equal(5)
		expect(existsSync(join(denied.at.root, 'n.txt'))).to.equal(false)
		const approved = client(script)
		const yes = await approved.run('--approve-all', 'exec', 'write')
		expect(yes.code, yes.err).to.equal(0)
		expect(readFileSync(join(approved.at.root, 'n.txt'), 'utf8')).to.equal('x\n')
	}).timeout(40_000)

	it('a session: made, prompted, its mode and options set, listed, resumed after its process ended, closed', async () => {
		const { at, run } = client({ steps: [{ text: 'First answer.' }, { text: 'Second answer.' }] })
		const ok = async (...args: string[]) => {
			const ran = await run(...args)
			expect(ran.code, `${args.join(' ')}\n${ran.out}\n${ran.err}`).to.equal(0)
			return ran.out + ran.err
		}
		await ok('sessions', 'new')
		expect(await ok('prompt', 'one')).to.include('First answer.')
		await ok('set-mode', 'plan')
		await ok('set', 'sandbox', 'strict')
		expect(await ok('--format', 'json', 'sessions', 'list')).to.include('one')
		// The agent dies; the next prompt starts another one, which takes the session up again (and its script anew).
		for (const one of processesWith(at.home)) if (one.command.includes('run.js acp')) process.kill(one.pid)
		expect(await ok('prompt', 'two')).to.include('First answer.')
		expect(journals(at.root)).to.have.length(1)
		expect(JSON.stringify(records(at.root, journals(at.root)[0]!))).to.include('"two"')
		await ok('sessions', 'close')
	}).timeout(90_000)

	it('cancel ends a running prompt', async () => {
		const { run } = client({
			steps: [
				{ text: 'working', delayMs: 0 },
				{ text: 'late', delayMs: 30_000 },
			],
		})
		await run('sessions', 'new')
		await run('prompt', 'one')
		const prompt = run('--format', 'json', 'prompt', 'two')
		await new Promise((done) => setTimeout(done, 1500))
		await run('cancel')
		const { out, err } = await prompt
		expect(out, err).to.include('"stopReason":"cancelled"')
	}).timeout(60_000)

	it('the model: chosen at the start, set in a session, kept when another process takes it up, refused when unknown', async () => {
		const server = await startSse(({ body }) => ({ body: openaiStream({ text: `I am ${body.model}.` }) }))
		try {
			const { at, run } = client(undefined, { GARUDA_MODEL: 'near/small' })
			const near = { baseURL: `${server.url}/v1`, key: null, models: { small: {}, big: {} } }
			writeFileSync(join(at.home, '.garuda', 'models.json'), JSON.stringify({ providers: { near } }), { mode: 0o600 })
			const ok = async (...args: string[]) => {
				const ran = await run(...args)
				expect(ran.code, `${args.join(' ')}\n${ran.out}\n${ran.err}`).to.equal(0)
				return ran.out + ran.err
			}
			expect(await ok('exec', 'who?')).to.include('I am small.')
			expect(await ok('--model', 'near/big', 'exec', 'who?')).to.include('I am big.')
			await ok('sessions', 'new')
			expect(await ok('prompt', 'who?')).to.include('I am small.')
			await ok('set', 'model', 'near/big')
			expect(await ok('prompt', 'and now?')).to.include('I am big.')
			const wrong = await run('set', 'model', 'near/huge')
			expect(wrong.code, wrong.out).to.not.equal(0)
			expect(wrong.out + wrong.err).to.include('near/huge')
			expect(await ok('prompt', 'still?')).to.include('I am big.')
			// The journal knows it, so another process goes on with it.
			for (const one of processesWith(at.home)) if (one.command.includes('run.js acp')) process.kill(one.pid)
			expect(await ok('prompt', 'after a restart?')).to.include('I am big.')
			expect(server.requests.map((one) => one.body?.model)).to.deep.equal([
				'small',
				'big',
				'small',
				'big',
				'big',
				'big',
			])
			await ok('sessions', 'close')
		} finally {
			await server.close()
		}
	}).timeout(90_000)

	it('a newcomer: the tour answers the first prompt with no key at all', async () => {
		const { run } = client(undefined, { GARUDA_MODEL: 'tour' })
		const ran = await run('exec', 'what can you do?')
		expect(ran.code, ran.err).to.equal(0)
		expect(ran.out).to.include('[done] end_turn')
		expect(ran.out.length).to.be.greaterThan(200)
	}).timeout(40_000)
})
