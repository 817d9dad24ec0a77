// What an editor sees of a turn: text, calls, questions, ends.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { removeTemp, writeFiles } from '../helpers/temp.ts'
import { closeEditors, editor, errorOf, texts } from './editor.ts'

const call = (name: string, input: Record<string, unknown>) => ({ calls: [{ name, input }] })

describe('acp: turns', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	it('streams text and thoughts, says the title and the use, and ends the turn', async () => {
		const e = await editor({ replies: [{ thinking: 'hm', text: 'Hello there.' }] })
		const id = await e.session()
		expect(await e.prompt(id, 'hi')).to.deep.equal({ stopReason: 'end_turn' })
		expect(e.said()).to.equal('Hello there.')
		expect(e.only('agent_thought_chunk')).to.have.length(1)
		expect(e.only('session_info_update')[0]!.title).to.equal('hi')
		const use = e.only('usage_update').at(-1)!
		expect(use.size).to.equal(200_000)
		expect(use.used).to.be.greaterThan(0)
		expect(use.cost).to.deep.equal({ amount: 0.00012, currency: 'USD' })
		await e.close()
	})

	it('shows a call with title, kind, place and result, and what the model reads', async () => {
		const e = await editor({ replies: [call('read_file', { path: 'a.txt' }), { text: 'It says hello.' }] })
		const id = await e.session()
		await e.prompt(id, 'read a.txt')
		const [shown] = e.only('tool_call')
		expect(shown).to.deep.include({ title: 'Read a.txt', kind: 'read', status: 'pending', name: 'read_file' })
		expect(shown!.locations![0]!.path).to.equal(join(e.root, 'a.txt'))
		const states = e.only('tool_call_update').map((one) => one.status)
		expect(states).to.deep.equal(['in_progress', 'completed'])
		expect(texts(e.only('tool_call_update').at(-1)!.content)).to.include('hello')
		await e.close()
	})

	it('asks about an edit for its own call, with the diff and three options; "once" writes the file', async () => {
		const e = await editor({
			replies: [call('write_file', { path: 'new.txt', content: 'one\ntwo\n' }), { text: 'Done.' }],
			answer: () => 'once',
		})
		const id = await e.session()
		expect((await e.prompt(id, 'write')).stopReason).to.equal('end_turn')
		const [question] = e.questions
		expect(question!.toolCall.toolCallId).to.equal(e.only('tool_call')[0]!.toolCallId)
		expect(question!.options.map((one) => [one.optionId, one.kind])).to.deep.equal([
			['once', 'allow_once'],
			['session', 'allow_always'],
			['deny', 'reject_once'],
		])
		const diff = question!.toolCall.content!.find((one) => one.type === 'diff')
		expect(diff).to.deep.equal({ type: 'diff', path: join(e.root, 'new.txt'), oldText: null, newText: 'one\ntwo\n' })
		expect(readFileSync(join(e.root, 'new.txt'), 'utf8')).to.equal('one\ntwo\n')
		const last = e.only('tool_call_update').at(-1)!
		expect(last.status).to.equal('completed')
		expect(
			last.content!.some((one) => one.type === 'diff'),
			'the diff stays',
		).to.equal(true)
		await e.close()
	})

	it('stays pending until the answer', async () => {
		let atQuestion: (string | null | undefined)[] = []
		const e = await editor({
			replies: [call('write_file', { path: 'n.txt', content: 'x' }), { text: 'ok' }],
			answer: () => {
				atQuestion = [...e.only('tool_call'), ...e.only('tool_call_update')].map((one) => one.status)
				return 'once'
			},
		})
		await e.prompt(await e.session(), 'write')
		expect(atQuestion).to.deep.equal(['pending'])
		await e.close()
	})

	it('a denied edit writes nothing, fails, and the model hears why', async () => {
		const e = await editor({
			replies: [call('write_file', { path: 'no.txt', content: 'x' }), { text: 'As you like.' }],
			answer: () => 'deny',
		})
		expect((await e.prompt(await e.session(), 'write')).stopReason).to.equal('end_turn')
		expect(existsSync(join(e.root, 'no.txt'))).to.equal(false)
		const last = e.only('tool_call_update').at(-1)!
		expect(last.status).to.equal('failed')
		expect(texts(last.content)).to.include('Denied')
		expect(JSON.stringify(e.model.requests[1]!.messages)).to.include('Denied')
		await e.close()
	})

	for (const answer of ['always!', '', 'cancel', 'allow_once'])
		it(`acp-02 an answer with the unknown option "${answer}" is a no`, async () => {
			const e = await editor({
				replies: [call('write_file', { path: 'no.txt', content: 'x' }), { text: 'ok' }],
				answer: () => answer,
			})
			expect((await e.prompt(await e.session(), 'write')).stopReason).to.equal('end_turn')
			expect(existsSync(join(e.root, 'no.txt'))).to.equal(false)
			await e.close()
		})

	it('acp-02 an answer that comes after a cancel allows nothing', async () => {
		let answer = (_: string) => {}
		const e = await editor({
			replies: [call('write_file', { path: 'no.txt', content: 'x' }), { text: 'never' }],
			answer: () =>
				new Promise<string>((done) => {
					answer = done
				}),
		})
		const id = await e.session()
		const prompt = e.prompt(id, 'write')
		await e.next((one) => one.sessionUpdate === 'tool_call')
		while (e.questions.length === 0) await new Promise((done) => setTimeout(done, 5))
		await e.agent.notify('session/cancel', { sessionId: id })
		expect((await prompt).stopReason).to.equal('cancelled')
		answer('once')
		await new Promise((done) => setTimeout(done, 30))
		expect(existsSync(join(e.root, 'no.txt'))).to.equal(false)
		expect(e.model.requests).to.have.length(1)
		await e.close()
	})

	it('the outcome "cancelled" ends the turn: no denial, no more requests', async () => {
		const e = await editor({
			replies: [call('write_file', { path: 'no.txt', content: 'x' }), { text: 'never' }],
			answer: () => 'cancelled',
		})
		expect((await e.prompt(await e.session(), 'write')).stopReason).to.equal('cancelled')
		expect(e.model.requests).to.have.length(1)
		expect(e.said()).to.include('Garuda: Create no.txt cancelled.')
		await e.close()
	})

	it('a question that the editor cannot answer ends the turn, and nothing is done', async () => {
		const e = await editor({
			replies: [call('write_file', { path: 'no.txt', content: 'x' }), { text: 'never' }],
			answer: () => {
				throw new Error('the view is gone')
			},
		})
		expect((await e.prompt(await e.session(), 'write')).stopReason).to.equal('cancelled')
		expect(existsSync(join(e.root, 'no.txt'))).to.equal(false)
		expect(e.model.requests).to.have.length(1)
		await e.close()
	})

	it('"for this session" asks no more for the same file', async () => {
		const e = await editor({
			replies: [
				call('write_file', { path: 'n.txt', content: 'x' }),
				call('write_file', { path: 'n.txt', content: 'y' }),
				{ text: 'ok' },
			],
			answer: () => 'session',
		})
		await e.prompt(await e.session(), 'write twice')
		expect(e.questions).to.have.length(1)
		expect(readFileSync(join(e.root, 'n.txt'), 'utf8')).to.equal('y')
		await e.close()
	})

	it('hidden characters are written out in title, diff and command, with a warning', async () => {
		const e = await editor({
			replies: [
				call('write_file', { path: 'n.txt', content: 'safe\u202e\u2066txt' }),
				call('bash', { command: 'echo \u200bhi', outside_sandbox: true }),
				{ text: 'a\u202eb' },
			],
		})
		await e.prompt(await e.session(), 'write')
		const [edit, bash] = e.questions
		const diff = edit!.toolCall.content!.find((one) => one.type === 'diff')
		expect(diff && 'newText' in diff && diff.newText).to.equal('safe[U+202E][U+2066]txt')
		expect(texts(edit!.toolCall.content)).to.include('hidden or control characters')
		expect(bash!.toolCall.title).to.include('echo [U+200B]hi')
		expect(texts(bash!.toolCall.content)).to.include('echo [U+200B]hi')
		expect(e.said()).to.include('a[U+202E]b')
		expect(JSON.stringify(e.questions.map((one) => ({ ...one.toolCall, rawInput: null })))).to.not.match(
			/[\u202e\u2066\u200b]/,
		)
		await e.close()
	})

	it('a command is shown whole, in the title and in the content', async () => {
		const command = `echo ${'x'.repeat(500)} && echo end-of-it`
		const e = await editor({ replies: [call('bash', { command, outside_sandbox: true }), { text: 'ok' }] })
		await e.prompt(await e.session(), 'run')
		const [shown] = e.only('tool_call')
		expect(shown!.title).to.equal(`$ ${command}`)
		expect(texts(shown!.content)).to.include(command)
		expect(e.questions[0]!.toolCall.title).to.include(command)
		expect(texts(e.questions[0]!.toolCall.content)).to.include(command)
		await e.close()
	})

	it('a command in another folder than the root says where it runs', async () => {
		const e = await editor({
			files: { 'sub/a.txt': 'x' },
			replies: [
				call('bash', { command: 'cd sub' }),
				call('bash', { command: 'echo here', outside_sandbox: true }),
				{ text: 'ok' },
			],
		})
		await e.prompt(await e.session(), 'run')
		expect(texts(e.only('tool_call')[1]!.content)).to.include(`In ${join(e.root, 'sub')}:`)
		expect(texts(e.questions[0]!.toolCall.content))
			.to.include(`In ${join(e.root, 'sub')}:`)
			.and.include('echo here')
		await e.close()
	})

	it('streams what a command prints', async () => {
		const e = await editor({
			replies: [call('bash', { command: 'echo first; sleep 0.3; echo second' }), { text: 'ok' }],
		})
		await e.prompt(await e.session(), 'run')
		const seen = e
			.only('tool_call_update')
			.filter((one) => one.status === 'in_progress')
			.map((one) => texts(one.content))
		expect(seen.some((text) => text.includes('first') && !/^second/m.test(text))).to.equal(true)
		expect(texts(e.only('tool_call_update').at(-1)!.content)).to.include('second')
		await e.close()
	})

	it('a progress bar is sent as the line it ends as, not as each of its states', async () => {
		const e = await editor({
			replies: [
				call('bash', {
					command: "echo begin; for i in 1 2 3; do printf '\\rstate %s' $i; sleep 0.2; done; echo; sleep 0.3",
				}),
				{ text: 'ok' },
			],
		})
		await e.prompt(await e.session(), 'run')
		const seen = e.only('tool_call_update').map((one) => texts(one.content))
		expect(seen.join('\n'))
			.to.include('begin')
			.and.include('state 3')
			.and.not.match(/state [12]/)
		await e.close()
	})

	for (const [what, key] of [
		['a known key', 'sk-ant-api03-abcdefghijklmnop-0123456789'],
		['a key of another shape', 'ghp_0123456789abcdefghijABCDEFGHIJ456789'],
	])
		it(`secret-04 ${what} that a command prints reaches neither stream nor result`, async () => {
			const e = await editor({
				files: { 'k.txt': `${key}\n` },
				replies: [call('bash', { command: 'cat k.txt; sleep 0.2; cat k.txt' }), { text: 'ok' }],
			})
			await e.prompt(await e.session(), 'run')
			expect(e.only('tool_call_update').some((one) => texts(one.content).length > 40)).to.equal(true)
			expect(JSON.stringify(e.tap.sent)).to.not.include(key)
			await e.close()
		})

	it('the list of steps is the plan', async () => {
		const items = [
			{ text: 'look', status: 'done' },
			{ text: 'mend', status: 'doing' },
			{ text: 'test', status: 'open' },
		]
		const e = await editor({ replies: [call('todo_write', { items }), { text: 'ok' }] })
		writeFiles(e.home, { '.garuda/settings.json': '{ "todo": true }' })
		await e.prompt(await e.session(), 'plan it')
		expect(e.questions, 'a list needs no question').to.deep.equal([])
		expect(e.only('plan')[0]!.entries.map((one) => [one.content, one.status])).to.deep.equal([
			['look', 'completed'],
			['mend', 'in_progress'],
			['test', 'pending'],
		])
		await e.close()
	})

	it('a second prompt while one runs is refused with a clear word, and the first goes on', async () => {
		const e = await editor({ replies: [{ text: 'wait', hang: true }, { text: 'next' }] })
		const id = await e.session()
		const first = e.prompt(id, 'one')
		await e.next((one) => one.sessionUpdate === 'agent_message_chunk')
		const error = await errorOf(e.prompt(id, 'two'))
		expect(error.code).to.equal(-32600)
		expect(error.message).to.include('a prompt is running')
		await e.agent.notify('session/cancel', { sessionId: id })
		expect((await first).stopReason).to.equal('cancelled')
		expect((await e.prompt(id, 'three')).stopReason).to.equal('end_turn')
		await e.close()
	})

	it('a failure of the model is an error with its words; a wrong key asks for the sign-in', async () => {
		const fail = (code: string, message: string) => ({ error: { code, message, retryable: false, streamed: false } })
		const e = await editor({
			replies: [fail('billing', 'There is no credit left.'), fail('auth', 'The key is wrong.')],
		})
		const id = await e.session()
		const error = await errorOf(e.prompt(id, 'hi'))
		expect(error).to.deep.include({ code: -32603, message: 'There is no credit left.' })
		expect((await errorOf(e.prompt(id, 'hi'))).code).to.equal(-32000)
		await e.close()
	})

	it('the same call id from the model in two turns is two calls in the editor', async () => {
		const one = { calls: [{ id: 'call_0', name: 'read_file', input: { path: 'a.txt' } }] }
		const e = await editor({ replies: [one, { text: 'a' }, one, { text: 'b' }] })
		const id = await e.session()
		await e.prompt(id, 'read')
		await e.prompt(id, 'again')
		const ids = e.only('tool_call').map((shown) => shown.toolCallId)
		expect(new Set(ids).size).to.equal(2)
		await e.close()
	})

	it('plan mode: an edit is denied without a question', async () => {
		const e = await editor({ replies: [call('write_file', { path: 'n.txt', content: 'x' }), { text: 'A plan.' }] })
		const id = await e.session()
		await e.agent.request('session/set_mode', { sessionId: id, modeId: 'plan' })
		await e.prompt(id, 'write')
		expect(e.questions).to.deep.equal([])
		expect(e.only('tool_call_update').at(-1)!.status).to.equal('failed')
		await e.close()
	})
})
