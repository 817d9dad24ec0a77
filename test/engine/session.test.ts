import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { EngineOptions, Session } from '../../src/engine/api.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { writerSpace } from '../../src/engine/files/atomic.ts'
import type { AgentEvent, Answer, ApprovalRequest, TurnEnd } from '../../src/engine/types.ts'
import { type FakeModel, fakeModel, fakeSpec, only, type Reply } from '../helpers/fakes.ts'
import { skip } from '../helpers/skip.ts'
import { removeTemp, tempProject } from '../helpers/temp.ts'

interface Made {
	root: string
	home: string
	asked: ApprovalRequest[]
	engine(model: FakeModel, more?: Partial<EngineOptions>): ReturnType<typeof createEngine>
	/** A session whose model plays these replies. */
	open(
		replies: (Reply | ((request: never) => Reply))[],
		more?: Partial<EngineOptions>,
		how?: Parameters<ReturnType<typeof createEngine>['open']>[0],
	): Promise<{ session: Session; model: FakeModel }>
	say(
		session: Session,
		text: string,
		options?: { signal?: AbortSignal },
	): Promise<{ end: TurnEnd; events: AgentEvent[] }>
}

const closing: (() => Promise<void>)[] = []

function make(
	files: Record<string, string> = {},
	answer: (request: ApprovalRequest) => Answer = () => ({ choice: 'deny' }),
): Made {
	const { root, home } = tempProject(files)
	const asked: ApprovalRequest[] = []
	const made: Made = {
		root,
		home,
		asked,
		engine: (model, more = {}) => {
			const garuda = createEngine({
				root,
				home,
				env: { PATH: process.env.PATH },
				approver: {
					ask: async (request) => {
						asked.push(request)
						return answer(request)
					},
				},
				hostname: 'test',
				uid: process.getuid!(),
				ports: { client: model, spec: fakeSpec() },
				...more,
			})
			closing.push(() => garuda.close())
			return garuda
		},
		open: async (replies, more, how) => {
			const model = fakeModel(replies as Reply[])
			return { session: await made.engine(model, more).open(how), model }
		},
		say: async (session, text, options) => {
			const events: AgentEvent[] = []
			const turn = session.prompt(text, options)
			for await (const event of turn) events.push(event)
			return { end: await turn.end, events }
		},
	}
	return made
}

const edit = (path: string, from: string, to: string): Reply => ({
	calls: [{ name: 'edit_file', input: { path, old_string: from, new_string: to } }],
})
const read = (path: string): Reply => ({ calls: [{ name: 'read_file', input: { path } }] })
const bash = (command: string): Reply => ({ calls: [{ name: 'bash', input: { command } }] })
const done: Reply = { text: 'done' }

describe('a session, with everything but the model real', () => {
	afterEach(async () => {
		for (const close of closing.splice(0)) await close()
		removeTemp()
	})

	it('reads, edits after a question, runs a command in the sandbox, and records it all', async () => {
		const m = make({ 'a.txt': 'one\n' }, () => ({ choice: 'once' }))
		const { session } = await m.open([read('a.txt'), edit('a.txt', 'one', 'two'), bash('cat a.txt'), done])
		const { end, events } = await m.say(session, 'change it')
		expect(end.reason).to.equal('done')
		expect(readFileSync(join(m.root, 'a.txt'), 'utf8')).to.equal('two\n')
		expect(m.asked.map((one) => one.title)).to.deep.equal(['Edit a.txt'])
		expect(only(events, 'tool_result').map((one) => one.status)).to.deep.equal(['ok', 'ok', 'ok'])
		expect(only(events, 'tool_result')[2]!.text).to.contain('two')
		const [journal] = readdirSync(join(m.root, '.garuda/sessions')).filter((name) => name.endsWith('.jsonl'))
		const types = readFileSync(join(m.root, '.garuda/sessions', journal!), 'utf8')
			.trim()
			.split('\n')
			.map((line) => (JSON.parse(line) as { type: string }).type)
		expect(types[0]).to.equal('start')
		expect(types.at(-1)).to.equal('end')
		expect(types).to.include.members(['title', 'user', 'assistant', 'results', 'decision', 'snapshot'])
	})

	it('undoes and redoes files and conversation together, what a command changed too', async () => {
		const m = make({ 'a.txt': 'one\n' })
		const { session, model } = await m.open([bash('echo two > a.txt; echo new > b.txt'), done, done])
		await m.say(session, 'first')
		expect(existsSync(join(m.root, 'b.txt'))).to.equal(true)
		const undo = await session.undo()
		expect(undo.done).to.equal(true)
		expect(undo.restored.sort()).to.deep.equal(['a.txt', 'b.txt'])
		expect(readFileSync(join(m.root, 'a.txt'), 'utf8')).to.equal('one\n')
		expect(existsSync(join(m.root, 'b.txt'))).to.equal(false)
		expect(session.history()).to.deep.equal([])
		const redo = await session.redo()
		expect(redo.done).to.equal(true)
		expect(readFileSync(join(m.root, 'a.txt'), 'utf8')).to.equal('two\n')
		await m.say(session, 'second')
		expect(JSON.stringify(model.requests.at(-1)!.messages))
			.to.contain('first')
			.and.to.contain('second')
	})

	it('N03: undo of a turn with commands says once what it does not cover; of one without, nothing', async () => {
		const m = make({ 'a.txt': 'one\n', '.gitignore': 'out/\n' }, () => ({ choice: 'once' }))
		const { session } = await m.open([
			read('a.txt'),
			edit('a.txt', 'one', 'two'),
			done,
			bash('mkdir -p out; echo x > out/x; echo 3 > a.txt'),
			done,
			bash('echo 4 > a.txt'),
			done,
		])
		await m.say(session, 'edit')
		expect((await session.undo()).message).to.not.include('Commands ran')
		await m.say(session, 'command')
		const told = (await session.undo()).message
		expect(told).to.include('Commands ran in it').and.include('git commits').and.include('ignore rules')
		expect(existsSync(join(m.root, 'out/x'))).to.equal(true)
		await m.say(session, 'another')
		expect((await session.undo()).message).to.not.include('Commands ran')
	})

	it('N03: undo over a later change of the user puts nothing back and names the file', async () => {
		const m = make({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
		const { session } = await m.open([bash('echo two > a.txt; echo two > b.txt'), done])
		await m.say(session, 'first')
		writeFileSync(join(m.root, 'a.txt'), 'mine\n')
		const undo = await session.undo()
		expect(undo).to.deep.include({ done: false, conflicts: ['a.txt'] })
		expect(undo.message).to.contain('a.txt')
		expect(readFileSync(join(m.root, 'b.txt'), 'utf8')).to.equal('two\n')
	})

	it('resumes with the same bytes of system prompt and tools, and goes on', async () => {
		const m = make({ 'AGENTS.md': 'Use tabs.\n' })
		const first = await m.open([done])
		await m.say(first.session, 'hello')
		const { id } = first.session
		await first.session.close()
		writeFileSync(join(m.root, 'AGENTS.md'), 'Use spaces.\n')
		const second = await m.open([done], {}, { resume: id })
		await m.say(second.session, 'again')
		const [before, after] = [first.model.requests[0]!, second.model.requests[0]!]
		expect(after.system).to.equal(before.system)
		expect(JSON.stringify(after.tools)).to.equal(JSON.stringify(before.tools))
		expect(after.messages.length).to.equal(3)
		expect(before.system).to.contain('Use tabs.')
	})

	it('a resume sweeps what a killed undo was writing, in folders that no edit tool named', async function () {
		const space = await writerSpace()
		if (space === null) skip(this, 'processes cannot be told apart here')
		const m = make({ 'deep/down/a.txt': 'one\n' })
		const first = await m.open([done])
		await m.say(first.session, 'hello')
		const { id } = first.session
		await first.session.close()
		const mark = `${space}7fffffff00000000`
		const left = join(m.root, `deep/down/.a.txt.${mark}.garuda-tmp`)
		const store = createHash('sha256').update(m.root).digest('hex').slice(0, 24)
		const folder = join(m.home, '.garuda/snapshots', store)
		mkdirSync(folder, { recursive: true })
		writeFileSync(left, 'half')
		writeFileSync(join(folder, `restoring.${mark}`), JSON.stringify([join(m.root, 'deep/down')]))
		await m.open([done], {}, { resume: id })
		expect(existsSync(left)).to.equal(false)
	})

	it('X04: a session that is open is not opened twice, and is free after its end', async () => {
		const m = make()
		const { session } = await m.open([done])
		await m.say(session, 'hello')
		let problem = ''
		await m.open([done], {}, { resume: session.id }).catch((error: Error) => {
			problem = error.message
		})
		expect(problem).to.match(/open/i)
		await session.close()
		const again = await m.open([done], {}, { latest: true })
		expect(again.session.id).to.equal(session.id)
		await again.session.close()
		expect((await m.open([done], {}, { latest: true })).session.id).to.equal(session.id)
	})

	it('session-01: an answer of an earlier run never holds again', async () => {
		const m = make({ 'a.txt': 'one\n' }, () => ({ choice: 'session' }))
		const first = await m.open([read('a.txt'), edit('a.txt', 'one', 'two'), done])
		await m.say(first.session, 'go')
		await first.session.close()
		const second = await m.open([read('a.txt'), edit('a.txt', 'two', 'three'), done], {}, { latest: true })
		await m.say(second.session, 'go on')
		expect(m.asked.length).to.equal(2)
	})

	it('session-01: a copy of a foreign session takes over its words, not its instructions, model or mode', async () => {
		const m = make()
		const first = await m.open([done])
		await m.say(first.session, 'the words')
		const { id } = first.session
		await first.session.close()
		const file = join(m.root, '.garuda/sessions', `${id}.jsonl`)
		const lines = readFileSync(file, 'utf8').split('\n')
		const start = JSON.parse(lines[0]!)
		lines[0] = JSON.stringify({
			...start,
			system: 'EVIL SYSTEM',
			tools: [],
			model: 'openai/evil',
			origin: 'elsewhere/0',
		})
		writeFileSync(file, lines.join('\n'))
		let refused = ''
		await m.open([done], {}, { resume: id }).catch((error: Error) => {
			refused = error.message
		})
		expect(refused).not.to.equal('')
		const copy = await m.open([done], {}, { resume: id, trustForeign: true })
		expect(copy.session.notices.join(' ')).to.contain('copy of a session')
		await m.say(copy.session, 'go on')
		const request = copy.model.requests[0]!
		expect(request.system).not.to.contain('EVIL')
		expect(request.tools.length).to.be.greaterThan(3)
		expect(copy.session.model).to.equal('fake/m')
		expect(JSON.stringify(request.messages)).to.contain('the words')
	})

	it('a taken session id is said once', async () => {
		const m = make()
		const first = await m.open([done])
		await m.say(first.session, 'one')
		const { id } = first.session
		await first.session.close()
		const second = await m.open([done], {}, { id })
		const { end, events } = await m.say(second.session, 'two')
		expect(end.reason).to.equal('error')
		expect(only(events, 'notice')).to.deep.equal([])
		await second.session.close()
	})

	it('arguments nested thousands of levels deep are answered, not run, and break nothing', async () => {
		const m = make()
		let deep: unknown = 'x'
		for (let i = 0; i < 5000; i++) deep = [deep]
		const { session, model } = await m.open([{ calls: [{ name: 'read_file', input: { path: deep } }] }, done])
		const { end, events } = await m.say(session, 'go')
		expect(end.reason).to.equal('done')
		expect(only(events, 'tool_result')[0]!.text).to.contain('not a JSON object')
		expect(model.requests.length).to.equal(2)
	})

	it('plan mode: an edit is denied with no question, a command cannot write, the prompt is the same', async () => {
		const m = make({ 'a.txt': 'one\n' }, () => ({ choice: 'once' }))
		const { session, model } = await m.open([
			done,
			read('a.txt'),
			edit('a.txt', 'one', 'two'),
			bash('echo x > b.txt || echo stopped'),
			done,
		])
		await m.say(session, 'hello')
		await session.setMode('plan')
		const { events } = await m.say(session, 'change it')
		const results = only(events, 'tool_result')
		expect(results[1]!.status).to.equal('denied')
		expect(results[2]!.text).to.contain('stopped')
		expect(m.asked).to.deep.equal([])
		expect(readFileSync(join(m.root, 'a.txt'), 'utf8')).to.equal('one\n')
		expect(existsSync(join(m.root, 'b.txt'))).to.equal(false)
		expect(new Set(model.requests.map((request) => request.system)).size).to.equal(1)
		expect(JSON.stringify(model.requests[1]!.messages.at(-1))).to.contain('Plan mode is on')
		await session.setMode('build')
		expect(JSON.stringify(model.requests[0]!.messages)).not.to.contain('Plan mode')
	})

	it('after a stop the model learns of it, and the history is whole', async () => {
		const m = make()
		const { session, model } = await m.open([bash('sleep 30'), done])
		const abort = new AbortController()
		const turn = session.prompt('run it', { signal: abort.signal })
		for await (const event of turn) if (event.type === 'tool_call') setTimeout(() => abort.abort(), 300)
		const end = await turn.end
		expect(end.reason).to.equal('cancelled')
		expect(end.durationMs).to.be.lessThan(6000)
		await m.say(session, 'what now?')
		const last = model.requests.at(-1)!.messages
		expect(JSON.stringify(last.at(-1))).to.contain('The user stopped the task')
		expect(JSON.stringify(last)).to.contain('"cancelled"')
	})

	it('secret-07, A03: a secret file is neither attached nor read nor edited', async () => {
		const m = make({ '.env': 'TOKEN=abc\n', 'x.md': 'see @.env\n' }, () => ({ choice: 'once' }))
		const { session, model } = await m.open([
			read('.env'),
			{ calls: [{ name: 'write_file', input: { path: '.env', content: 'x' } }] },
			done,
		])
		const { events } = await m.say(session, 'look at @.env and @x.md')
		expect(only(events, 'tool_result').every((one) => one.status !== 'ok')).to.equal(true)
		expect(JSON.stringify(model.requests)).not.to.contain('TOKEN=abc')
		expect(only(events, 'notice').some((one) => one.text.includes('.env'))).to.equal(true)
		expect(readFileSync(join(m.root, '.env'), 'utf8')).to.equal('TOKEN=abc\n')
	})

	it('P04: a deny rule on reading holds for the tool, the mention, the search and the command', async () => {
		const m = make({ 'notes/a.txt': 'needle\n', 'b.txt': 'needle\n' }, () => ({ choice: 'once' }))
		mkdirSync(join(m.home, '.garuda'), { mode: 0o700 })
		writeFileSync(join(m.home, '.garuda/settings.json'), JSON.stringify({ deny: ['read(notes/)'] }))
		symlinkSync('notes/a.txt', join(m.root, 'link.txt'))
		const { session, model } = await m.open([
			read('notes/a.txt'),
			read('./notes/../notes/a.txt'),
			read('link.txt'),
			{ calls: [{ name: 'grep', input: { pattern: 'needle' } }] },
			bash('cat notes/a.txt'),
			done,
		])
		const { events } = await m.say(session, 'look at @notes/a.txt')
		const results = only(events, 'tool_result')
		expect(results.map((one) => one.status)).to.deep.equal(['denied', 'denied', 'denied', 'ok', 'denied'])
		expect(results[3]!.text).to.contain('b.txt').and.not.to.contain('notes/a')
		expect(JSON.stringify(model.requests).match(/needle/g)?.length).to.be.lessThan(12)
		expect(only(events, 'notice').some((one) => one.text.includes('notes/a.txt'))).to.equal(true)
	})

	it('a run outside the sandbox is asked once, with the wall named, and runs on the host after a yes', async () => {
		const m = make({}, () => ({ choice: 'once' }))
		const outside = join(m.home, 'made-outside')
		const { session } = await m.open([bash(`touch ${outside}`), done])
		const { events } = await m.say(session, 'make it')
		expect(m.asked.length).to.equal(1)
		expect(m.asked[0]!.title).to.contain('outside the sandbox').and.to.contain('touch')
		expect(existsSync(outside)).to.equal(true)
		expect(only(events, 'tool_result')[0]!.status).to.equal('ok')
		const denied = make({}, () => ({ choice: 'deny', note: 'no need' }))
		const file = join(denied.home, 'made-outside')
		const second = await denied.open([bash(`touch ${file}`), done])
		const after = await denied.say(second.session, 'make it')
		expect(existsSync(file)).to.equal(false)
		expect(only(after.events, 'tool_result')[0]!.text).to.contain('no need')
	})

	it('an outside rule and an answer hold in the folder they were given for, and the question names another folder', async () => {
		const m = make({ 'sub/x': '' }, () => ({ choice: 'session' }))
		mkdirSync(join(m.home, '.garuda'), { mode: 0o700 })
		const made = join(m.home, 'made')
		const rule = `touch ${made}1`
		writeFileSync(join(m.home, '.garuda/settings.json'), JSON.stringify({ outside: [rule] }))
		const outside = (command: string): Reply => ({
			calls: [{ name: 'bash', input: { command, outside_sandbox: true } }],
		})
		const { session } = await m.open([
			outside(rule),
			outside(`touch ${made}2`),
			outside(`touch ${made}2`),
			bash('cd sub'),
			outside(rule),
			outside(`touch ${made}2`),
			done,
		])
		const { events } = await m.say(session, 'go')
		expect(only(events, 'tool_result').map((one) => one.status)).to.deep.equal(['ok', 'ok', 'ok', 'ok', 'ok', 'ok'])
		expect(m.asked.map((one) => one.title)).to.deep.equal([
			`Run outside the sandbox: touch ${made}2`,
			`Run outside the sandbox (in ${join(m.root, 'sub')}): ${rule}`,
			`Run outside the sandbox (in ${join(m.root, 'sub')}): touch ${made}2`,
		])
		expect(m.asked[1]!.warning).to.contain('not in the working root')
		expect(m.asked[1]!.lastingRule).to.equal(undefined)
	})

	it('a command runs in the folder that was shown, or not at all', async () => {
		const m = make({ 'sub/x': '' })
		const { session } = await m.open([
			bash('cd sub'),
			{
				calls: [
					{ name: 'bash', input: { command: 'rm -rf ../sub; cd ..' } },
					{ name: 'bash', input: { command: 'pwd' } },
				],
			},
			done,
		])
		const { events } = await m.say(session, 'go')
		expect(only(events, 'tool_call')[1]!.info.title).to.contain('(in sub)')
		expect(only(events, 'tool_result')[2]!.text).to.contain(m.root)
	})

	it('what a command planted is told to the person, apart from its output', async () => {
		const m = make({ 'a.txt': 'x' })
		const { session } = await m.open([bash('seq 100; d=.vsc; mkdir -p "$d"ode; echo {} > "$d"ode/tasks.json'), done])
		const { events } = await m.say(session, 'go')
		expect(only(events, 'notice').some((one) => one.text.includes('.vscode'))).to.equal(true)
	})

	it('a project may not loosen its own safety, and is told so', async () => {
		const m = make({
			'.garuda/settings.json': JSON.stringify({ executor: 'host', allow: ['bash', 'edits'], env: { allow: ['*'] } }),
			'a.txt': 'one\n',
		})
		const { session } = await m.open([read('a.txt'), edit('a.txt', 'one', 'two'), done])
		expect(session.notices.join('\n')).to.contain('executor').and.to.contain('allow')
		const { end } = await m.say(session, 'go')
		expect(m.asked.length).to.equal(1)
		expect(end.denials.length).to.equal(1)
	})

	it('!command runs through the same gate, and the model hears of it', async () => {
		const m = make({ 'a.txt': 'one\n' })
		const { session, model } = await m.open([done])
		const turn = session.shell('cat a.txt')
		for await (const _ of turn);
		expect((await turn.end).reason).to.equal('done')
		await m.say(session, 'what did it print?')
		expect(JSON.stringify(model.requests[0]!.messages)).to.contain('one')
		expect(session.status().turns).to.equal(2)
		await session.close()
		const again = await m.open([done], {}, { latest: true })
		expect(again.session.status().turns).to.equal(2)
	})

	it('two prompts at once are refused, an empty one too', async () => {
		const m = make()
		const { session } = await m.open([{ hang: true }, done])
		const abort = new AbortController()
		const turn = session.prompt('one', { signal: abort.signal })
		expect(() => session.prompt('two')).to.throw('A turn is running')
		abort.abort()
		await turn.end
		expect(() => session.prompt('  ')).to.throw('empty')
	})

	it('two sessions of one engine do not meet', async () => {
		const m = make({ 'a.txt': 'x' })
		const engine = m.engine(fakeModel([bash('cd /tmp; pwd'), done, bash('pwd'), done]))
		const [a, b] = [await engine.open(), await engine.open()]
		await m.say(a, 'one')
		const { events } = await m.say(b, 'two')
		expect(only(events, 'tool_result')[0]!.text).to.contain(m.root)
		expect(a.id).not.to.equal(b.id)
		expect(b.history().length).to.be.greaterThan(0)
	})

	it('replaces a secret by its mark before the first send and in the journal, and writes the value back', async () => {
		const key = `sk-ant-api03-${'Ab3dEf6h'.repeat(11)}`
		const m = make({ 'conf.txt': `key ${key}\n` }, () => ({ choice: 'once' }))
		let mark = ''
		const { session, model } = await m.open([
			read('conf.txt'),
			(request: { messages: unknown }) => {
				mark = /\[redacted:[^\]]+\]/.exec(JSON.stringify(request.messages))?.[0] ?? ''
				return { calls: [{ name: 'write_file', input: { path: 'copy.txt', content: `copied ${mark}\n` } }] }
			},
			done,
		])
		await m.say(session, `use ${key}`)
		expect(mark).not.to.equal('')
		expect(JSON.stringify(model.requests)).not.to.contain(key)
		expect(readFileSync(join(m.root, 'copy.txt'), 'utf8')).to.equal(`copied ${key}\n`)
		const folder = join(m.root, '.garuda/sessions')
		for (const name of readdirSync(folder))
			if (name.endsWith('.jsonl')) expect(readFileSync(join(folder, name), 'utf8')).not.to.contain(key)
	})

	it('never commits a prompt: the sessions hide themselves from git', async () => {
		const m = make({ 'a.txt': 'x' })
		execFileSync('git', ['init', '-q'], { cwd: m.root })
		const { session } = await m.open([done])
		await m.say(session, 'secret plan')
		const out = execFileSync('git', ['status', '--porcelain', '-uall'], { cwd: m.root, encoding: 'utf8' })
		expect(out).to.equal('?? a.txt\n')
	})

	it('leaves nothing behind: no process, no temp folder', async () => {
		const m = make()
		const { session } = await m.open([bash('echo hi; sleep 300 & sleep 0.1'), done])
		await m.say(session, 'go')
		await session.close()
		expect(readdirSync(join(m.home, '.garuda/tmp'))).to.deep.equal([])
	})
})
