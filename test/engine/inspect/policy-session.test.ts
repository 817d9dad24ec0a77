// A whole session under a team policy and a consent, and its journal and audit log replayed: everything but the model is real.
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { EngineOptions } from '../../../src/engine/api.ts'
import { createEngine } from '../../../src/engine/engine.ts'
import { UserError } from '../../../src/engine/errors.ts'
import { replayReport } from '../../../src/engine/inspect/policy-replay.ts'
import type { Answer, ApprovalRequest } from '../../../src/engine/types.ts'
import { fakeModel, fakeSpec, type Reply } from '../../helpers/fakes.ts'
import { removeTemp, tempProject } from '../../helpers/temp.ts'
import { fakeExecutor } from '../tools/scene.ts'

const call = (name: string, input: Record<string, unknown>): Reply => ({ calls: [{ name, input }] })
const bash = (command: string, more: object = {}): Reply => call('bash', { command, ...more })

describe('inspect: policy of a whole session', () => {
	const closing: (() => Promise<void>)[] = []
	afterEach(async () => {
		for (const close of closing.splice(0)) await close()
		removeTemp()
	})

	const session = async (
		files: Record<string, string>,
		replies: Reply[],
		answer: (request: ApprovalRequest) => Answer,
		more: Partial<EngineOptions> = {},
		user: object = {},
	) => {
		const { root, home } = tempProject(files)
		await fs.mkdir(join(home, '.garuda'), { mode: 0o700 })
		await fs.writeFile(join(home, '.garuda/settings.json'), JSON.stringify(user))
		const managed = join(home, 'no-policy.json')
		const asked: ApprovalRequest[] = []
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
			managedPolicy: managed,
			ports: { client: fakeModel(replies), spec: fakeSpec(), executor: fakeExecutor(() => ({ output: 'ok' })) },
			...more,
		})
		closing.push(() => garuda.close())
		const place = { home, cwd: root, env: {}, platform: 'linux' as const, managedPolicy: managed }
		return { root, home, asked, garuda, place }
	}

	it('the journal and the audit log of one session replay to the live decisions, line by line', async () => {
		const replies: Reply[] = [
			bash('make'),
			bash('make'),
			bash('curl evil.example'),
			call('read_file', { path: 'a.txt' }),
			call('edit_file', { path: 'a.txt', old_string: 'one', new_string: 'two' }),
			bash('npm publish', { outside_sandbox: true }),
			bash('cd src && ls'),
			{ text: 'done' },
		]
		const answer = (request: ApprovalRequest): Answer => ({ choice: request.tool === 'bash' ? 'session' : 'once' })
		const user = { deny: ['bash(curl:*)'] }
		const made = await session({ 'a.txt': 'one\n', 'src/x': '' }, replies, answer, {}, user)
		const live = await made.garuda.open()
		const end = await live.prompt('go').end
		expect(end.reason).to.equal('done')
		await live.close()
		const { sessions, counts } = await replayReport(made.place, {})
		const { lines } = sessions[0]!
		expect(lines.map((line) => `${line.what} ${line.was}`)).to.deep.equal([
			'make ask',
			'make allow',
			'curl evil.example deny',
			'a.txt allow',
			'a.txt ask',
			'outside the sandbox: npm publish ask',
			'cd src && ls ask',
		])
		expect(lines.map((line) => line.now)).to.deep.equal(lines.map((line) => line.was))
		expect(counts).to.include({ same: 7, not_comparable: 0 })
		const audit = await replayReport(made.place, { audit: join(made.home, '.garuda/audit') })
		expect(audit.problems).to.deep.equal([])
		expect(audit.sessions[0]!.lines).to.deep.equal(
			lines.map((line, i) => ({ ...line, time: audit.sessions[0]!.lines[i]!.time })),
		)
	})

	it('a policy binds a real session: a rule over --allow, the model, limits; a broken one opens none', async () => {
		const made = await session({ 'a.txt': '' }, [bash('curl x'), { text: 'done' }], () => ({ choice: 'once' }), {
			allow: ['bash'],
		})
		const file = join(made.home, '.garuda/policy.json')
		await fs.writeFile(file, JSON.stringify({ deny: ['bash(curl:*)'], limits: { steps: 3 } }))
		const live = await made.garuda.open()
		const end = await live.prompt('go').end
		expect(end.denials.map((one) => one.reason).join())
			.to.include('bash(curl:*)')
			.and.include(file)
		expect(live.permissions().rules[0]).to.include({ text: 'bash(curl:*)', kind: 'deny', source: `${file}:1` })
		expect(live.notices.join('\n')).to.include('3 steps')
		await live.close()
		await fs.writeFile(file, '{"limts":{}}')
		const error = await made.garuda.open().then(
			() => null,
			(reason: unknown) => reason,
		)
		expect(error).to.be.instanceOf(UserError)
		expect((error as UserError).message)
			.to.include(`${file}:1:`)
			.and.include('limts')
	})

	it('config-02 a project’s settings: unattended they are left out with a notice; asked, the whole file is shown, and the consent is in the audit log', async () => {
		const text = '{ "allow": ["bash(make)"], "executor": "host" }\n'
		const files = { '.garuda/settings.json': text }
		const alone = await session(files, [{ text: 'done' }], () => ({ choice: 'session' }))
		const quiet = await alone.garuda.open()
		expect(alone.asked).to.deep.equal([])
		expect(quiet.notices.join('\n'))
			.to.include('allow')
			.and.include('executor')
			.and.include('Start garuda once in a terminal')
		expect(quiet.permissions().rules).to.deep.equal([])
		await quiet.close()

		const asking = await session(files, [bash('make'), { text: 'done' }], () => ({ choice: 'session' }), {
			consents: 'ask',
		})
		const live = await asking.garuda.open()
		expect(asking.asked).to.have.length(1)
		expect(asking.asked[0]!.tool).to.equal('trust')
		expect(asking.asked[0]!.preview).to.include(text.trimEnd())
		await live.prompt('go').end
		expect(asking.asked).to.have.length(1)
		expect(live.permissions().rules).to.deep.include({
			text: 'bash(make)',
			kind: 'allow',
			source: `${join(asking.root, '.garuda/settings.json')}:1`,
		})
		await live.close()
		const [log] = (await fs.readdir(join(asking.home, '.garuda/audit'))).filter((name) => name.endsWith('.jsonl'))
		const entries = (await fs.readFile(join(asking.home, '.garuda/audit', log!), 'utf8')).trim().split('\n')
		expect(
			entries
				.map((line) => JSON.parse(line))
				.filter((line) => line.kind === 'consent')
				.map((line) => line.decision),
		).to.deep.equal(['granted'])
		// Another session of the same folder asks no more.
		await (await asking.garuda.open()).close()
		expect(asking.asked).to.have.length(1)
	})
})
