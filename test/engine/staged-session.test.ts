// Whole sessions with staging, background processes and secret handles on, in the real sandbox.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Session } from '../../src/engine/api.ts'
import { createEngine } from '../../src/engine/engine.ts'
import type { AgentEvent, Answer, ApprovalRequest } from '../../src/engine/types.ts'
import { type FakeModel, fakeModel, fakeSpec, type Reply } from '../helpers/fakes.ts'
import { removeTemp, tempProject } from '../helpers/temp.ts'

const canary = 'canary-Zk4-91b0f7d2c6e8'

describe('a session with staging, daemons and secrets', function () {
	this.timeout(60_000)
	const closing: (() => Promise<void>)[] = []
	afterEach(async () => {
		for (const close of closing.splice(0)) await close()
		await removeTemp()
	})
	const open = async (
		settings: object,
		replies: Reply[],
		answer: (request: ApprovalRequest) => Answer = () => ({ choice: 'once' }),
		flags: { allow?: string[]; mode?: 'plan' } = {},
	) => {
		const { root, home } = tempProject({ 'f.txt': 'x\n', 'mk.sh': 'echo 1 > $1/$2\n' })
		mkdirSync(join(home, '.garuda'), { mode: 0o700 })
		writeFileSync(join(home, '.garuda/settings.json'), JSON.stringify(settings))
		writeFileSync(join(home, '.garuda/credentials'), JSON.stringify({ MY_TOKEN: canary }), { mode: 0o600 })
		const asked: ApprovalRequest[] = []
		const events: AgentEvent[] = []
		const debug: unknown[] = []
		const model: FakeModel = fakeModel(replies)
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
			debug: (line) => debug.push(line),
			ports: { client: model, spec: fakeSpec() },
			...flags,
		})
		closing.push(() => garuda.close())
		const session: Session = await garuda.open()
		const say = async (text: string) => {
			for await (const event of session.prompt(text)) events.push(event)
		}
		const results = () => events.flatMap((event) => (event.type === 'tool_result' ? [event.text] : []))
		const text = (path: string) => readFileSync(join(root, path), 'utf8')
		return { root, home, session, model, asked, events, debug, say, results, text }
	}
	const bash = (command: string, more = {}): Reply => ({ calls: [{ name: 'bash', input: { command, ...more } }] })
	const end: Reply = { text: 'ok' }
	const staging = { staging: { enabled: true } }

	it('args-04 staged: asked, applied after a yes, taken back by undo', async () => {
		const s = await open(staging, [bash('find . -name f.txt -delete'), end])
		await s.say('clean')
		expect(s.asked.map(({ title }) => title)).to.deep.equal(['Apply these changes to the project'])
		expect(s.asked[0]!.preview).to.include('delete  f.txt')
		expect(s.asked[0]!.choices).to.not.include('session')
		expect(existsSync(join(s.root, 'f.txt'))).to.equal(false)
		await s.session.undo()
		expect(s.text('f.txt')).to.equal('x\n')
	})

	it('a no leaves the project as it is', async () => {
		const s = await open(staging, [bash('echo y > f.txt'), end], () => ({ choice: 'deny' }))
		await s.say('go')
		expect(s.text('f.txt')).to.equal('x\n')
		expect(s.results()[0]).to.include('the project is as before')
	})

	it('one session answer covers the same declaration, and nothing beyond it', async () => {
		const effects = [{ path: 'out/**', kinds: ['create', 'change'] }]
		const s = await open(
			staging,
			[
				bash('mkdir -p out; echo 1 > out/a', { effects }),
				bash('echo 2 > out/b; echo 3 > out/a', { effects }),
				bash('echo 4 > out/a; echo y > f.txt', { effects }),
				bash('rm out/a', { effects }),
				bash('echo 5 > out/b', { effects: [{ path: '**', kinds: ['change'] }] }),
				end,
			],
			(request) => ({ choice: request.choices.includes('session') ? 'session' : 'deny' }),
		)
		await s.say('go')
		const heads = s.asked.map(({ preview }) => preview.split('\n', 2).join('|'))
		expect(heads).to.deep.equal([
			'All within what was declared:|  change, create out/**',
			'BEYOND what was declared:|  change f.txt',
			'BEYOND what was declared:|  delete out/a',
			'All within what was declared:|  change **',
		])
		expect([s.text('f.txt'), s.text('out/a'), s.text('out/b')]).to.deep.equal(['x\n', '3\n', '5\n'])
	})

	it('a rule apply(…) covers a declaration inside it; deny and ask rules on a path win', async () => {
		const rules = { allow: ['apply(out/**)'], deny: ['edit(out/keep)'], ask: ['edit(out/look)'] }
		const effects = [{ path: 'out/*', kinds: ['create'] }]
		const s = await open(
			{ ...staging, ...rules },
			[
				bash('mkdir -p out; echo 1 > out/a', { effects }),
				bash('sh mk.sh out keep', { effects }),
				bash('sh mk.sh out look', { effects }),
				bash('echo 1 > out/b'),
				bash('echo 1 > other', { effects: [{ path: '**', kinds: ['create'] }] }),
				end,
			],
			() => ({ choice: 'deny' }),
		)
		await s.say('go')
		expect(readdirSync(join(s.root, 'out'))).to.deep.equal(['a'])
		expect(s.asked.map(({ preview }) => /new {5}(\S+)/.exec(preview)?.[1])).to.deep.equal([
			'out/look',
			'out/b',
			'other',
		])
		expect(s.results()[1]).to.include('edit(out/keep)')
	})

	it('background processes: on by settings, told to the person, ended at close', async () => {
		const mark = `9${process.pid}.5`
		const s = await open({ daemons: { enabled: true } }, [
			bash(`sleep ${mark}`, { is_daemon: true }),
			{ calls: [{ name: 'process_manager', input: { action: 'list' } }] },
			end,
		])
		await s.say('serve')
		expect(s.results()[1]).to.match(/^d1 runs/)
		expect(s.asked).to.deep.equal([])
		await s.session.close()
		let left = ''
		try {
			left = execFileSync('pgrep', ['-f', `sleep ${mark}`], { encoding: 'utf8' })
		} catch {}
		expect(left).to.equal('')
	})

	it('secret-04 fifty turns: no canary in any request, journal, audit log, export, event or log', async () => {
		const handle = '{{secret:MY_TOKEN}}'
		const tries = [
			`echo ${handle}`,
			`echo "${handle}" | base64 -w0`,
			`echo ${handle} > f.txt`,
			'cat f.txt',
			`env; : ${handle}`,
		]
		const replies = Array.from({ length: 50 }, (_, turn) => [bash(tries[turn % tries.length]!), end]).flat()
		const s = await open({ secrets: { handles: true, names: { MY_TOKEN: { hosts: [] } } } }, replies)
		for (let turn = 0; turn < 50; turn++) await s.say(`turn ${turn}`)
		const exported = await s.session.export()
		await s.session.close()
		const files = [join(s.home, '.garuda'), join(s.root, '.garuda')].flatMap((folder) =>
			existsSync(folder)
				? readdirSync(folder, { recursive: true, withFileTypes: true })
						.filter(
							(entry) => entry.isFile() && entry.name !== 'credentials' && !entry.parentPath.includes('snapshots'),
						)
						.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
				: [],
		)
		expect(files.length, 'journal and audit log were looked at').to.be.greaterThan(1)
		const all = [
			JSON.stringify(s.model.requests),
			JSON.stringify(s.events),
			JSON.stringify(s.debug),
			exported,
			...files,
		]
		for (const secret of [canary, Buffer.from(`${canary}\n`).toString('base64').slice(0, 24)])
			expect(all.some((one) => one.includes(secret))).to.equal(false)
		expect(s.model.requests[0]!.tools.find(({ name }) => name === 'bash')!.description).to.include(handle)
		expect(all.join('')).to.include('[redacted:')
		expect(s.asked.length).to.be.greaterThan(39)
	})

	it('strict: no outside run, not after a question either', async () => {
		const s = await open({ profile: 'strict', outside: ['touch /usr/garuda-x'] }, [
			bash('touch /usr/garuda-x', { outside_sandbox: true }),
			bash('sh mk.sh /usr garuda-x'),
			end,
		])
		await s.say('go')
		expect(s.asked).to.deep.equal([])
		expect(s.results()[0]).to.include('strict')
		expect(s.results()[1]).to.include('strict')
		expect(existsSync('/usr/garuda-x')).to.equal(false)
	})
})
