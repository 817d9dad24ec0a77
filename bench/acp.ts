// An editor's agent: from its start to `initialize`, session/new, prompt to first model request, memory at rest, memory of many sessions.
// npx node --import tsx bench/acp.ts [rounds] [--strict]
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bin, median, modelServer, must, place, type Row, report, rounds, time } from './common.ts'

const n = rounds(15)
const server = await modelServer()
const at = place()
const cacheFolder = join(at.home, '.garuda', 'cache')
const hello = [{ text: 'Hello! What shall we do?' }]
server.play(hello)

/** A started agent and its requests, with the time of each answer. */
class Agent {
	readonly child: ChildProcess
	readonly begun = performance.now()
	private next = 0
	private rest = ''
	/** All that it has said, as text. */
	text = ''
	private readonly waiting = new Map<number, (message: any) => void>()

	constructor() {
		this.child = spawn(process.execPath, [bin, 'acp'], {
			cwd: at.root,
			env: {
				PATH: process.env.PATH!,
				LANG: 'C.UTF-8',
				HOME: at.home,
				GARUDA_MODEL: 'openai/gpt-test',
				OPENAI_BASE_URL: `${server.url}/v1`,
			},
			stdio: ['pipe', 'pipe', 'ignore'],
		})
		this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
			this.text += text.replaceAll('\\n', '\n')
			const lines = (this.rest + text).split('\n')
			this.rest = lines.pop()!
			for (const line of lines) {
				const message = JSON.parse(line)
				if (message.id !== undefined && message.method === undefined) this.waiting.get(message.id)?.(message)
			}
		})
	}

	ask(method: string, params: object): Promise<any> {
		const id = this.next++
		this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
		return new Promise((done, failed) =>
			this.waiting.set(id, (message) =>
				message.error ? failed(new Error(`${method}: ${message.error.message}`)) : done(message.result),
			),
		)
	}

	tell(method: string, params: object): void {
		this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`)
	}

	initialize(): Promise<any> {
		return this.ask('initialize', { protocolVersion: 1, clientCapabilities: {} })
	}

	async session(): Promise<string> {
		return (await this.ask('session/new', { cwd: at.root, mcpServers: [] })).sessionId
	}

	async end(): Promise<void> {
		const ended = new Promise((done) => this.child.on('close', done))
		this.child.stdin!.end()
		await ended
	}
}

/** KiB of the process and everything under it, shared pages counted in parts. */
function pss(pid: number): number {
	const children = new Map<number, number[]>()
	for (const name of readdirSync('/proc')) {
		if (!/^\d+$/.test(name)) continue
		try {
			const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
			const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
			children.set(parent, [...(children.get(parent) ?? []), Number(name)])
		} catch {
			// ended meanwhile
		}
	}
	let sum = 0
	const visit = (one: number): void => {
		try {
			sum += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${one}/smaps_rollup`, 'utf8'))![1])
		} catch {
			// ended meanwhile
		}
		for (const child of children.get(one) ?? []) visit(child)
	}
	visit(pid)
	return sum
}

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms))
const rows: Row[] = []
const lists: Record<string, number[]> = {}
const keep = (name: string, value: number): void => {
	lists[name] = [...(lists[name] ?? []), value]
}

try {
	for (let i = 0; i < n + 2; i++) {
		if (i === 2) for (const name of Object.keys(lists)) delete lists[name]
		keep('bare', must(await time(['-e', '0'], { cwd: at.root, env: { HOME: at.home } })).wall)
		const agent = new Agent()
		await agent.initialize()
		keep('initialize', performance.now() - agent.begun)
		// As an editor does it: the person has not typed yet.
		await wait(100)
		let begun = performance.now()
		const id = await agent.session()
		keep('session', performance.now() - begun)
		await wait(200)
		keep('pss', pss(agent.child.pid!))
		const before = server.exchanges.length
		begun = performance.now()
		await agent.ask('session/prompt', { sessionId: id, prompt: [{ type: 'text', text: 'hello' }] })
		keep('prompt', server.exchanges[before]!.arrived - begun)
		await agent.end()
		if (i % 3 === 0) {
			rmSync(cacheFolder, { recursive: true, force: true })
			const cold = new Agent()
			await cold.initialize()
			keep('cold', performance.now() - cold.begun)
			await cold.end()
		}
	}
	const floor = median(lists.bare!)
	rows.push(
		{
			what: 'start to initialize',
			measured: median(lists.initialize!),
			unit: 'ms',
			floor,
			bar: { ratio: 5.5 },
			peers: 'codex 500, claude 400-1,700, opencode 2,000-4,200, gemini 5,200-9,400',
		},
		{ what: 'start to initialize, cold cache', measured: median(lists.cold!), unit: 'ms', floor },
		{ what: 'session/new', measured: median(lists.session!), unit: 'ms', bar: { value: 40 } },
		{ what: 'prompt to first model request', measured: median(lists.prompt!), unit: 'ms', bar: { value: 60 } },
		{ what: 'memory at rest, whole tree (PSS)', measured: median(lists.pss!) / 1024, unit: 'MiB', bar: { value: 100 } },
	)
	rows.push(...(await stops()))
	rows.push(await many())
	report(`acp, ${n} rounds`, rows)
} finally {
	await server.close()
	at.remove()
}

/** From session/cancel to the answer of the prompt, by what it stops. */
async function stops(): Promise<Row[]> {
	const command = (text: string) => ({ calls: [{ name: 'bash', input: { command: text } }] })
	const kinds: [string, number, Parameters<typeof server.play>[0], string][] = [
		['a command that ends on TERM', 100, [command('echo begun; sleep 300')], '\nbegun'],
		['a command that ignores TERM', 3200, [command('trap "" TERM; echo begun; sleep 300')], '\nbegun'],
		[
			'an open question',
			100,
			[{ calls: [{ name: 'write_file', input: { path: 'n.txt', content: 'x' } }] }],
			'"session/request_permission"',
		],
	]
	const out: Row[] = []
	for (const [what, value, answers, sign] of kinds) {
		const list: number[] = []
		for (let i = 0; i < 3; i++) {
			server.play(answers)
			const agent = new Agent()
			await agent.initialize()
			const sessionId = await agent.session()
			const prompt = agent.ask('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] })
			while (!agent.text.includes(sign)) await wait(10)
			const begun = performance.now()
			agent.tell('session/cancel', { sessionId })
			await prompt
			list.push(performance.now() - begun)
			await agent.end()
		}
		out.push({ what: `stop of ${what}`, measured: median(list), unit: 'ms', bar: { value } })
	}
	return out
}

/** 100 sessions opened, asked once and closed, twice: what the second hundred leaves behind. */
async function many(): Promise<Row> {
	server.play(hello)
	const agent = new Agent()
	await agent.initialize()
	const rests: number[] = []
	for (let hundred = 0; hundred < 2; hundred++) {
		for (let i = 0; i < 100; i++) {
			const sessionId = await agent.session()
			if (i % 10 === 0) await agent.ask('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hello' }] })
			await agent.ask('session/close', { sessionId })
		}
		await wait(5000)
		rests.push(pss(agent.child.pid!))
	}
	await agent.end()
	return {
		what: 'memory after the second 100 sessions, less after the first',
		measured: Math.max(0, rests[1]! - rests[0]!) / 1024,
		unit: 'MiB',
		bar: { value: 10 },
	}
}
