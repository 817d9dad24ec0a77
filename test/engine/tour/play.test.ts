import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import type { EngineOptions, Garuda, Session } from '../../../src/engine/api.ts'
import { createEngine } from '../../../src/engine/engine.ts'
import type { Executor, RunSpec } from '../../../src/engine/ports.ts'
import { type PreparedTour, playTour, prepareTour } from '../../../src/engine/tour/index.ts'
import type { AgentEvent, ApprovalRequest, Choice } from '../../../src/engine/types.ts'
import { skip } from '../../helpers/skip.ts'
import { removeTemp, tempDir, tempProject, writeFiles } from '../../helpers/temp.ts'

const project = {
	'README.md': '# Boat\n\nIt floats.\n',
	'package.json': '{"name":"boat"}\n',
	'src/float.js': '// TODO: sails\nexport const floats = true\n',
	'test/float.test.js': "import '../src/float.js'\n",
	'.env': 'TOKEN=t0p-secret\n',
}

interface Setup {
	tour: PreparedTour
	session: Session
	root: string
	home: string
	tmpdir: string
	asked: ApprovalRequest[]
	said: string[]
	say(text: string): void
}

const open: { garuda: Garuda; tour: PreparedTour }[] = []

async function start(
	files: Record<string, string>,
	more: Partial<EngineOptions> & { answer?: Choice; sandboxed?: boolean } = {},
): Promise<Setup> {
	const { answer = 'deny', sandboxed, ...options } = more
	const { root, home } = tempProject(files)
	writeFiles(home, { '.ssh/id_ed25519': 'KEY-OF-THE-USER' })
	const tmpdir = tempDir()
	const env = { PATH: process.env.PATH }
	const tour = await prepareTour({ root, home, tmpdir, env, ...(sandboxed === undefined ? {} : { sandboxed }) })
	const asked: ApprovalRequest[] = []
	const garuda = createEngine({
		root: tour.root,
		garudaHome: tour.garudaHome,
		home,
		env,
		tmpdir,
		acceptEdits: true,
		model: 'tour',
		clients: { tour: async () => tour },
		approver: {
			ask: async (request) => {
				asked.push(request)
				return { choice: answer }
			},
		},
		...options,
	})
	open.push({ garuda, tour })
	const said: string[] = []
	return { tour, session: await garuda.open(), root, home, tmpdir, asked, said, say: (text) => void said.push(text) }
}

/** A host executor that only notes what it was given. */
function noted(): { executor: Executor; scripts: string[] } {
	const scripts: string[] = []
	const executor: Executor = {
		kind: 'host',
		run: async (spec: RunSpec) => {
			scripts.push(spec.script ?? '')
			return {
				code: 0,
				signal: null,
				timedOut: false,
				cancelled: false,
				output: 'ran\n',
				stderr: '',
				bytes: 4,
				survivors: 0,
				durationMs: 1,
			}
		},
		close: async () => {},
	}
	return { executor, scripts }
}

const walls = async (): Promise<boolean> => {
	const { root, home } = tempProject({ a: 'a' })
	const tour = await prepareTour({ root, home, tmpdir: tempDir(), env: { PATH: process.env.PATH } })
	const { client } = tour
	let text = ''
	const messages = [{ role: 'user' as const, blocks: [{ type: 'text' as const, text: 'danger' }] }]
	for (let step = 0; step < 2; step++)
		for await (const event of client.stream(
			{ model: 'tour', system: '', tools: [], messages, maxOutput: 1, purpose: 'turn' },
			new AbortController().signal,
		))
			if (event.type === 'end') {
				messages.push(event.message as never)
				text = JSON.stringify(event.message)
			}
	await tour.remove()
	return text.includes('hidden-command')
}

describe('tour: played by the real engine', () => {
	let sandbox = false
	before(async () => {
		sandbox = await walls()
		removeTemp()
	})
	afterEach(async () => {
		for (const { garuda, tour } of open.splice(0)) {
			await garuda.close()
			await tour.remove()
		}
		removeTemp()
	})

	it('changes, shows and undoes something in a copy of the user’s folder, and says how to get a model', async () => {
		const { tour, session, root, said, say, tmpdir, home } = await start(project)
		const result = await playTour(session, say)
		expect(result.end.error).to.equal(undefined)
		expect({ ...result, end: result.end.reason }).to.deep.equal({
			changed: ['README.md'],
			undone: ['README.md'],
			ok: true,
			end: 'done',
		})
		const text = said.join('\n')
		expect(text).to.match(/^This is Garuda's tour: a fixed script, not an AI\./)
		expect(text).to.include('a private copy of your folder')
		expect(text).to.include('test/float.test.js').and.include('Node project').and.include('TODO: sails')
		// The diff, then the undo, then the ways to a model.
		expect(text.indexOf("+*Garuda's tour was here")).to.be.greaterThan(0)
		expect(text.indexOf('Undid turn 1')).to.be.greaterThan(text.indexOf("+*Garuda's tour was here"))
		expect(said.at(-1)).to.include('garuda setup').and.include('ANTHROPIC_API_KEY').and.include('Ollama')
		expect(text.match(/garuda setup/g)).to.have.length(1)
		expect(text).to.not.include('t0p-secret').and.to.not.include('KEY-OF-THE-USER')
		// Put back in the copy; never touched in the folder of the user.
		expect(readFileSync(join(tour.root, 'README.md'), 'utf8')).to.equal(project['README.md'])
		for (const [path, content] of Object.entries(project))
			expect(readFileSync(join(root, path), 'utf8')).to.equal(content)
		expect(readdirSync(root).sort()).to.deep.equal(['.env', 'README.md', 'package.json', 'src', 'test'])
		// Nothing stays behind.
		const { garuda } = open.pop()!
		await garuda.close()
		await tour.remove()
		expect(readdirSync(tmpdir)).to.deep.equal([])
		expect(existsSync(join(home, '.garuda'))).to.equal(false)
	})

	it('an empty folder: the same in the sample project, and its test runs', async () => {
		const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
		const { session, root } = await start({}, { env: { PATH } })
		const said: string[] = []
		let ran = ''
		const result = await playTour(session, {
			say: (text) => said.push(text),
			event: (event) => {
				if (event.type === 'message') said.push(JSON.stringify(event.message.blocks))
				if (event.type === 'tool_result' && event.callId.endsWith('run-command')) ran = event.text
			},
		})
		expect([result.ok, result.changed]).to.deep.equal([true, ['README.md']])
		expect(said.join('\n')).to.include('Your folder holds no files to work on, so it works in a small sample project')
		if (sandbox) expect(ran).to.match(/pass 2\b/)
		expect(readdirSync(root)).to.deep.equal([])
	})

	it('a folder with no test, no TODO and nothing to comment still comes to its end, with a file of its own', async () => {
		const { tour, session, root, say } = await start({ 'data.json': '{"a":1}\n', 'pic.bin': '\0\x01\x02' })
		const result = await playTour(session, say)
		expect(result).to.deep.include({ changed: ['garuda-tour.md'], undone: ['garuda-tour.md'], ok: true })
		expect(existsSync(join(tour.root, 'garuda-tour.md'))).to.equal(false)
		expect(readFileSync(join(tour.root, 'data.json'), 'utf8')).to.equal('{"a":1}\n')
		expect(readdirSync(root).sort()).to.deep.equal(['data.json', 'pic.bin'])
	})

	it('a file with CRLF, a BOM or repeated lines is edited and put back byte for byte', async () => {
		for (const text of ['\ufeffa\r\nb\r\n', 'same\nsame\nsame\nsame\nsame\n', 'one line, no end']) {
			const { tour, session, say } = await start({ 'notes.txt': text })
			const result = await playTour(session, say)
			expect([JSON.stringify(text), result.ok]).to.deep.equal([JSON.stringify(text), true])
			expect(readFileSync(join(tour.root, 'notes.txt'), 'utf8')).to.equal(text)
		}
	})

	it('in the sandbox the attempts are stopped: no key is seen, the network is denied at the question, and only that counts as denied', async function () {
		if (!sandbox) return skip(this, 'no sandbox')
		const { session, asked, said, say } = await start(project)
		const results: Extract<AgentEvent, { type: 'tool_result' }>[] = []
		const result = await playTour(session, {
			say,
			event: (event) => event.type === 'tool_result' && results.push(event),
		})
		const of = (part: string) => results.find((event) => event.callId.endsWith(part))!
		expect(of('key-file').status).to.equal('failed')
		expect(of('key-file').text).to.include('off limits')
		expect(of('hidden-command').text).to.include('see there: 0\n').and.include('can read: 0\n')
		expect(of('net-command').status).to.equal('failed')
		expect(of('net-command').text).to.include('the sandbox stopped it (network')
		// One question in all, and it is the one about leaving the sandbox.
		expect(asked.map((request) => request.effect?.type)).to.deep.equal(['outside_sandbox'])
		expect(result.end.text).to.include('Denied: it did not get out')
		expect(result.end.denials.map((one) => one.callId)).to.deep.equal([of('net-command').callId])
		expect(said.join('\n')).to.not.include('KEY-OF-THE-USER')
	})

	it('on a machine with no sandbox no command reaches for secrets or the network, whatever is answered', async () => {
		for (const answer of ['deny', 'once'] as const) {
			const { executor, scripts } = noted()
			const { session, asked, say, said } = await start(project, { ports: { executor }, sandboxed: false, answer })
			const result = await playTour(session, say)
			expect(result.ok).to.equal(true)
			const given = [...scripts, ...asked.map((request) => request.info.command ?? '')].join('\n')
			expect(given)
				.to.include('ls')
				.and.to.not.match(/HOME|\/dev\/tcp|ssh|192\.0\.2/)
			expect(scripts.length).to.equal(answer === 'once' ? 1 : 0)
			expect(said.join('\n')).to.include('no sandbox on this machine')
		}
	})

	it('a session that asks shows the whole diff first; a no leaves nothing to undo and is not ok', async () => {
		const { session, asked, said, say, tour } = await start(project, { acceptEdits: false })
		const result = await playTour(session, say)
		expect([result.ok, result.changed, result.undone]).to.deep.equal([false, [], []])
		const edit = asked.find((request) => request.tool === 'edit_file')!
		expect(edit.info.change!.new).to.include("Garuda's tour was here")
		expect(readFileSync(join(tour.root, 'README.md'), 'utf8')).to.equal(project['README.md'])
		expect(said.join('\n')).to.include('The answer was no').and.include('Nothing was changed')
		expect(said.at(-1)).to.include('garuda setup')
	})

	it('in plan mode nothing is changed, and it says that the mode did it', async () => {
		const { session, said, say } = await start(project, { mode: 'plan' })
		const result = await playTour(session, say)
		expect([result.ok, result.changed]).to.deep.equal([false, []])
		expect(said.join('\n')).to.include('Plan mode is on')
	})

	it('where no snapshot is kept it cannot be undone, and it is not ok', async () => {
		const { root, home } = tempProject(project)
		const tour = await prepareTour({ root, home, tmpdir: tempDir(), sandboxed: false })
		writeFileSync(join(tour.garudaHome, 'settings.json'), '{"undo": false}')
		const garuda = createEngine({
			root: tour.root,
			garudaHome: tour.garudaHome,
			home,
			env: {},
			acceptEdits: true,
			model: 'tour',
			clients: { tour: async () => tour },
			approver: { ask: async () => ({ choice: 'deny' }) },
			ports: { executor: noted().executor },
		})
		open.push({ garuda, tour })
		const result = await playTour(await garuda.open(), () => {})
		expect([result.changed, result.undone, result.ok]).to.deep.equal([['README.md'], [], false])
	})

	it('a stop in the middle ends it, not ok, with nothing more said', async () => {
		const { session, say, said } = await start(project)
		const stop = new AbortController()
		const result = await playTour(
			session,
			{ say, event: (event) => event.type === 'tool_result' && event.name === 'grep' && stop.abort() },
			stop.signal,
		)
		expect([result.ok, result.end.reason, said]).to.deep.equal([false, 'cancelled', []])
	})

	it('typed in a chat: the turn ends with how to undo, and /undo works as with any model', async () => {
		const { session, tour } = await start(project)
		const end = await session.prompt('show me').end
		expect(end.reason).to.equal('done')
		expect(end.text).to.include('/undo takes it back').and.include('garuda setup')
		expect(end.usage.cost).to.equal(0)
		expect(readFileSync(join(tour.root, 'README.md'), 'utf8')).to.include("Garuda's tour was here")
		// A second round finds the line of the first and goes on.
		const again = await session.prompt('edit').end
		expect(again.reason).to.equal('done')
		expect((await session.undo()).restored.length).to.equal(1)
		expect((await session.undo()).done).to.equal(true)
		expect(readFileSync(join(tour.root, 'README.md'), 'utf8')).to.equal(project['README.md'])
		const other = await session.prompt('write a parser').end
		expect(other.text).to.include('needs a model')
		expect((await session.prompt('tests').end).text).to.include('test/float.test.js')
		expect((await session.prompt('todo').end).text).to.include('in 1 line, in 1 file')
	})

	it('a prompt with attachments and notes of Garuda’s is still understood', async () => {
		const { session } = await start(project)
		await session.setMode('plan')
		const end = await session.prompt({ text: 'todo', context: [{ label: 'selection', text: 'show me' }] }).end
		expect([end.reason, end.steps]).to.deep.equal(['done', 2])
		expect(end.text).to.include('TODO or FIXME stands')
	})

	it('is never chosen where nobody named it', async () => {
		const { root, home } = tempProject(project)
		const tour = await prepareTour({ root, home, tmpdir: tempDir() })
		mkdirSync(join(home, '.garuda'), { mode: 0o700 })
		const garuda = createEngine({
			root,
			home,
			env: {},
			clients: { tour: async () => tour },
			approver: { ask: async () => ({ choice: 'deny' }) },
		})
		open.push({ garuda, tour })
		expect((await garuda.readiness()).model).to.equal(null)
		expect((await garuda.models.list()).some((one) => one.name.includes('tour'))).to.equal(false)
	})
})
