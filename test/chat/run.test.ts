import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type ChatFlags, type RunInput, run } from '../../src/chat/run.ts'
import type { EngineOptions } from '../../src/engine/api.ts'
import { type Fake, type FakeIo, fakeGaruda, fakeIo, type Script } from './fake.ts'
import { validLines } from './schema.ts'

let home: string

async function go(
	flags: ChatFlags,
	more: Partial<RunInput> & { stdin?: string; io?: FakeIo; script?: Script; env?: Record<string, string> } = {},
) {
	const { stdin = '', script = ({ say }) => say('ok'), env, ...rest } = more
	const io = more.io ?? fakeIo({ ...(env ? { env } : {}) })
	if (!more.io) io.keys.end(stdin)
	let made: EngineOptions | null = null
	let fake: Fake | null = null
	let error: (Error & { exitCode?: number }) | null = null
	const code = await run({
		flags,
		named: new Set(Object.keys(flags)),
		version: '0.1.0',
		clients: { scripted: () => Promise.reject(new Error('not asked for')) },
		home,
		cwd: '/project',
		...rest,
		io,
		createEngine(options) {
			made = options
			fake = fakeGaruda(script, { approver: options.approver })
			return fake.garuda
		},
	}).catch((thrown: Error) => {
		error = thrown
		return -1
	})
	return {
		code,
		io,
		made: made as EngineOptions | null,
		fake: fake as Fake | null,
		error: error as (Error & { exitCode?: number }) | null,
	}
}

describe('from flags to a room', () => {
	beforeEach(() => {
		home = mkdtempSync(join(tmpdir(), 'garuda-run-'))
	})
	afterEach(() => rmSync(home, { recursive: true, force: true }))

	it('hands every flag to the engine, with paths from where it was started', async () => {
		const { code, made, io } = await go({
			print: 'x',
			model: 'a/b',
			effort: 'high',
			mode: 'plan',
			cd: 'sub',
			'add-dir': ['../other', '~/third'],
			allow: ['edits'],
			'max-steps': 3,
			'max-tokens': 1000,
			'max-cost': 0.5,
			'append-system-prompt': 'be brief',
		})
		expect([code, io.out.text]).to.deep.equal([0, 'ok\n'])
		expect(made).to.deep.include({
			root: '/project/sub',
			home,
			model: 'a/b',
			effort: 'high',
			mode: 'plan',
			extraDirs: ['/other', join(home, 'third')],
			allow: ['edits'],
			limits: { steps: 3, tokens: 1000, cost: 0.5 },
			appendSystemPrompt: 'be brief',
			version: '0.1.0',
		})
	})

	it('a script stands in for the model only where none is named', async () => {
		const env = { GARUDA_MODEL_SCRIPT: '/tmp/s.json' }
		expect((await go({ print: 'x' }, { env })).made!.model).to.equal('scripted')
		expect((await go({ print: 'x', model: 'a/b' }, { env })).made!.model).to.equal('a/b')
		expect((await go({ print: 'x', model: 'from/env' }, { env, named: new Set() })).made!.model).to.equal('scripted')
		expect((await go({ print: 'x' })).made!.model).to.equal(undefined)
	})

	it('which session: new, with an id, the newest, a certain one, a copy of one; JSON output has a UUID', async () => {
		const uuid = '01234567-89ab-4def-8123-456789abcdef'
		const opened = async (flags: ChatFlags) => (await go({ print: 'x', ...flags })).fake!.opened[0]
		expect(await opened({})).to.deep.equal({})
		expect(await opened({ 'session-id': uuid })).to.deep.equal({ id: uuid })
		expect(await opened({ continue: true })).to.deep.equal({ latest: true })
		expect(await opened({ resume: 'abc' })).to.deep.equal({ resume: 'abc' })
		expect(await opened({ resume: 'abc', fork: true })).to.deep.equal({ resume: 'abc', trustForeign: true })
		expect((await opened({ 'output-format': 'json' }))!.id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4/)
	})

	it('T06 something piped in is one task even without -p; nothing at all is wrong usage', async () => {
		const piped = await go({}, { stdin: 'hi\n' })
		expect([piped.code, piped.fake!.prompts]).to.deep.equal([0, ['hi\n']])
		expect((await go({})).error).to.include({ exitCode: 2 })
	})

	it('words that do not go together are wrong usage, before any engine is made', async () => {
		const tty = () => fakeIo({ tty: true })
		for (const [flags, io] of [
			[{ print: 'x', 'session-id': 'ABC' }],
			[{ print: 'x', 'include-partial-messages': true, 'output-format': 'json' }],
			[{ 'input-format': 'stream-json' }],
			[{ print: 'x', 'input-format': 'stream-json', 'output-format': 'stream-json' }],
			[{ print: 'x', resume: '' }],
			[{ allow: ['edits'] }, tty()],
			[{ 'output-format': 'json' }, tty()],
			[{ print: 'x', 'json-schema': '{"type"' }],
			[{ print: 'x', 'json-schema': '[1]' }],
			[{ print: 'x', 'json-schema': '/nowhere/schema.json' }],
		] as [ChatFlags, FakeIo?][]) {
			const { error, made } = await go(flags, io ? { io } : {})
			expect(error, JSON.stringify(flags)).to.include({ name: 'UsageError', exitCode: 2 })
			expect(made).to.equal(null)
		}
	})

	it('an output format of the environment does not stop a chat', async () => {
		const io = fakeIo({ tty: true })
		setTimeout(() => io.signal('SIGTERM'), 50)
		const { code, fake } = await go({ 'output-format': 'json' }, { io, named: new Set() })
		expect([code, fake!.prompts]).to.deep.equal([143, []])
	})

	it('a JSON schema is given as text or as a file', async () => {
		const file = join(home, 'schema.json')
		writeFileSync(file, '{"type":"object"}')
		for (const schema of ['{"type":"object"}', file]) {
			const { io } = await go({ print: 'x', 'json-schema': schema }, { script: () => ({ structured: { a: 1 } }) })
			expect(io.out.text).to.equal('{"a":1}\n')
		}
	})

	it('--debug keeps a log for its user only, with request ids and without the conversation, named at the end', async () => {
		const { io } = await go(
			{ print: 'my secret plan', debug: true },
			{
				script: ({ emit }) => {
					emit({
						type: 'message',
						message: { role: 'assistant', blocks: [{ type: 'text', text: 'private words' }] },
						usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, thinking: 0, requests: 1, cost: 0 },
						model: 'm',
						stop: 'end',
						requestId: 'req_42',
					})
				},
			},
		)
		const path = /the debug log is (.*)\n/.exec(io.err.text)![1]!
		const log = readFileSync(path, 'utf8')
		expect(path.startsWith(join(home, '.garuda', 'logs'))).to.equal(true)
		expect(log).to.include('req_42').and.to.not.include('private words').and.to.not.include('secret plan')
		expect(statSync(path).mode & 0o077).to.equal(0)
		for (const line of log.trimEnd().split('\n')) JSON.parse(line)
	})

	it('J06 whatever fails, the engine is closed and JSON has its result', async () => {
		const { io, fake, code } = await go(
			{ print: 'x', 'output-format': 'stream-json' },
			{ script: () => ({ reason: 'error', error: { code: 'internal', message: 'the disk is full' } }) },
		)
		expect([code, fake!.closed > 0]).to.deep.equal([1, true])
		expect(validLines(io.out.text).at(-1)!.errors).to.deep.equal(['the disk is full'])
	})

	it('--replay shows what the record gives and whether it went the same way', async () => {
		const replay = async () => ({ text: 'diverged at turn 2\u001b[2J', same: false })
		const { code, io } = await go({ replay: 'abc' }, { replay })
		expect([code, io.out.text]).to.deep.equal([1, 'diverged at turn 2\n'])
		expect((await go({ replay: 'abc' })).error?.message).to.include('no replay')
	})
})
