// The life of sessions: kept, listed, opened anew, closed, deleted, many at a time.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { KnownCalls } from '../../src/acp/calls.ts'
import { replay } from '../../src/acp/replay.ts'
import type { SessionRecord } from '../../src/engine/index.ts'
import type { Reply } from '../helpers/fakes.ts'
import { removeTemp, tempDir, tempProject } from '../helpers/temp.ts'
import { closeEditors, editor, errorOf, texts } from './editor.ts'

const read: Reply = { text: 'Let me look.', calls: [{ name: 'read_file', input: { path: 'a.txt' } }] }
const write: Reply = { calls: [{ name: 'write_file', input: { path: 'n.txt', content: 'one\n' } }] }
const until = async (test: () => boolean) => {
	for (let i = 0; i < 1000 && !test(); i++) await new Promise((done) => setTimeout(done, 5))
	if (!test()) throw new Error('it never came')
}

describe('acp: sessions', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	it('load shows everything in order, in a new process too, and the conversation goes on', async () => {
		const first = await editor({
			replies: [{ thinking: 'hm', ...read }, { text: 'It says hello.' }, write, { text: 'Not then.' }],
		})
		const id = await first.session()
		await first.prompt(id, 'read @a.txt')
		await first.prompt(id, 'write it')
		await first.close()

		const e = await editor({ place: first, replies: [{ text: 'Going on.' }] })
		const state = await e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] })
		expect(state.configOptions!.map((one) => one.id)).to.include.members(['mode', 'model'])
		expect(state.modes!.currentModeId).to.equal('build')
		const shown = e.updates(id).map((one) => {
			if (one.sessionUpdate === 'tool_call') return `call ${one.title}`
			if (one.sessionUpdate === 'tool_call_update') return `${one.status} ${texts(one.content).includes('hello')}`
			if ('content' in one && one.content && 'text' in one.content) return `${one.sessionUpdate} ${one.content.text}`
			return one.sessionUpdate
		})
		expect(shown).to.deep.equal([
			'user_message_chunk read @a.txt',
			'agent_thought_chunk hm',
			'agent_message_chunk Let me look.',
			'call Read a.txt',
			'completed true',
			'agent_message_chunk It says hello.',
			'user_message_chunk write it',
			'call Write n.txt',
			'failed false',
			'agent_message_chunk Not then.',
			'session_info_update',
			'usage_update',
		])
		await e.prompt(id, 'go on')
		expect(JSON.stringify(e.model.requests[0]!.messages)).to.include('It says hello.')
		await e.close()
	})

	it('resume goes on without showing anything', async () => {
		const first = await editor({ replies: [{ text: 'One.' }] })
		const id = await first.session()
		await first.prompt(id, 'one')
		await first.close()
		const e = await editor({ place: first, replies: [{ text: 'Two.' }] })
		const state = await e.agent.request('session/resume', { sessionId: id, cwd: e.root })
		expect(state.configOptions).to.have.length.greaterThan(1)
		expect(e.only('agent_message_chunk')).to.deep.equal([])
		await e.prompt(id, 'two')
		expect(JSON.stringify(e.model.requests[0]!.messages)).to.include('One.')
		await e.close()
	})

	it('an earlier approval does not hold in a session that is opened anew', async () => {
		const first = await editor({ replies: [write, { text: 'ok' }], answer: () => 'session' })
		const id = await first.session()
		await first.prompt(id, 'write')
		await first.close()
		const again: Reply = { calls: [{ name: 'bash', input: { command: 'touch x', outside_sandbox: true } }] }
		const e = await editor({ place: first, replies: [again, { text: 'ok' }] })
		await e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] })
		await e.prompt(id, 'again')
		expect(e.questions).to.have.length(1)
		await e.close()
	})

	it('load of a session that is open here re-attaches: the turn under way is shown and can be cancelled', async () => {
		const e = await editor({
			replies: [read, { text: 'half of it', hang: true }, { text: 'next' }],
		})
		const id = await e.session()
		const prompt = e.prompt(id, 'go')
		await until(() => e.said().includes('half of it'))
		const before = e.updates(id).length
		await e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] })
		const again = e.updates(id).slice(before)
		expect(again.map((one) => one.sessionUpdate)).to.include.members(['user_message_chunk', 'tool_call'])
		expect(JSON.stringify(again)).to.include('half of it')
		await e.agent.notify('session/cancel', { sessionId: id })
		expect(await prompt).to.deep.equal({ stopReason: 'cancelled' })
		expect(await e.prompt(id, 'next')).to.deep.equal({ stopReason: 'end_turn' })
		await e.close()
	})

	it('load in a question keeps the question and its call', async () => {
		let answer = (_: string) => {}
		const e = await editor({
			replies: [write, { text: 'ok' }],
			answer: () => new Promise<string>((done) => (answer = done)),
		})
		const id = await e.session()
		const prompt = e.prompt(id, 'go')
		await until(() => e.questions.length === 1)
		await e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] })
		answer('once')
		expect(await prompt).to.deep.equal({ stopReason: 'end_turn' })
		expect(existsSync(join(e.root, 'n.txt'))).to.equal(true)
		expect(e.only('tool_call_update').at(-1)).to.deep.include({
			toolCallId: e.questions[0]!.toolCall.toolCallId,
			status: 'completed',
		})
		await e.close()
	})

	it('a session of another folder is not opened in this one', async () => {
		const first = await editor({ replies: [{ text: 'One.' }] })
		const id = await first.session()
		await first.prompt(id, 'one')
		await first.close()
		const e = await editor({ place: { root: tempDir(), home: first.home } })
		const error = await errorOf(e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] }))
		expect(error.code).to.equal(-32602)
		expect(error.message).to.include(first.root)
		await e.close()
	})

	it('list: newest first, by folder, with titles; a session without a prompt is not kept', async () => {
		const place = tempProject({ 'a.txt': 'x' })
		const e = await editor({ place, replies: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] })
		const one = await e.session()
		await e.prompt(one, 'the first')
		const other = tempDir()
		const two = await e.session({ cwd: other })
		await e.prompt(two, 'the other')
		await e.session()
		const here = await e.agent.request('session/list', { cwd: e.root })
		expect(here.sessions.map((s) => [s.sessionId, s.cwd, s.title])).to.deep.equal([[one, e.root, 'the first']])
		expect(new Date(here.sessions[0]!.updatedAt!).getTime()).to.be.greaterThan(Date.now() - 60_000)
		const all = await e.agent.request('session/list', {})
		expect(all.sessions.map((s) => s.sessionId)).to.deep.equal([two, one])
		expect((await e.agent.request('session/list', { cwd: join(e.root, 'gone') })).sessions).to.deep.equal([])
		await e.close()
	})

	it('delete takes it from the list and from load; also one that is open', async () => {
		const e = await editor({ replies: [{ text: 'a' }, { text: 'b' }] })
		const id = await e.session()
		await e.prompt(id, 'one')
		const kept = await e.session()
		await e.prompt(kept, 'two')
		await e.agent.request('session/delete', { sessionId: id })
		expect((await errorOf(e.prompt(id, 'x'))).code).to.equal(-32002)
		expect((await e.agent.request('session/list', { cwd: e.root })).sessions.map((s) => s.sessionId)).to.deep.equal([
			kept,
		])
		const load = e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] })
		expect((await errorOf(load)).code).to.equal(-32002)
		await e.close()
	})

	it('close in the middle of a prompt answers it as cancelled, and the session can be loaded again', async () => {
		const e = await editor({ replies: [{ text: 'I am', hang: true }] })
		const id = await e.session()
		const prompt = e.prompt(id, 'go')
		await until(() => e.said().includes('I am'))
		await e.agent.request('session/close', { sessionId: id })
		expect(await prompt).to.deep.equal({ stopReason: 'cancelled' })
		expect((await errorOf(e.prompt(id, 'x'))).code).to.equal(-32002)
		await e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] })
		expect(JSON.stringify(e.updates(id))).to.include('I am')
		await e.close()
	})

	it('a session that another process has open is refused by name', async () => {
		const one = await editor({ replies: [{ text: 'a' }] })
		const id = await one.session()
		await one.prompt(id, 'hi')
		const two = await editor({ place: one })
		const error = await errorOf(two.agent.request('session/load', { sessionId: id, cwd: one.root, mcpServers: [] }))
		expect(error.code).to.equal(-32603)
		expect(error.message).to.match(/open/)
		await two.close()
		await one.close()
	})

	it('two sessions in one process, one cancelled, one closed, a third working: no cross-talk', async () => {
		const slow: Reply = { calls: [{ name: 'bash', input: { command: 'echo on; sleep 1; echo end-of-work' } }] }
		const replies = (request: { messages: unknown[] }): Reply => {
			const text = JSON.stringify(request.messages)
			if (text.includes('end-of-work [') || text.includes('exit code')) return { text: 'worked' }
			if (text.includes('be cancelled')) return { text: 'c-text', hang: true }
			if (text.includes('be closed')) return { text: 'x-text', hang: true }
			return slow
		}
		const e = await editor({ replies: Array(6).fill(replies) })
		const [a, b, c] = [await e.session(), await e.session(), await e.session()] as [string, string, string]
		const ends = [e.prompt(a, 'work'), e.prompt(b, 'be cancelled'), e.prompt(c, 'be closed')]
		await until(() => e.said(b).includes('c-text') && e.said(c).includes('x-text'))
		await until(() => JSON.stringify(e.updates(a)).includes('on'))
		await e.agent.notify('session/cancel', { sessionId: b })
		await e.agent.request('session/close', { sessionId: c })
		expect((await Promise.all(ends)).map((one) => one.stopReason)).to.deep.equal(['end_turn', 'cancelled', 'cancelled'])
		expect(e.said(a))
			.to.include('worked')
			.and.not.match(/c-text|x-text|cancelled/)
		expect(JSON.stringify(e.updates(b))).to.not.include('end-of-work')
		expect(e.only('tool_call', b)).to.deep.equal([])
		await e.close()
	})

	it('a replay leaves out what was undone and says what was broken off', () => {
		const at = { time: 1 }
		const user = (prompt: string): SessionRecord => ({
			type: 'user',
			...at,
			prompt,
			message: { role: 'user', blocks: [{ type: 'text', text: prompt }] },
		})
		const said = (text: string, call = false): SessionRecord => ({
			type: 'assistant',
			...at,
			usage: null,
			model: 'm',
			stop: 'end',
			message: {
				role: 'assistant',
				blocks: [
					{ type: 'text', text },
					...(call ? [{ type: 'tool_call' as const, id: 'c1', name: 'bash', input: { command: 'ls' } }] : []),
				],
			},
		})
		const records: SessionRecord[] = [
			user('one'),
			said('first'),
			user('two'),
			said('second'),
			{ type: 'undo', ...at, turn: 2 },
			user('three'),
			said('third', true),
		]
		const updates = replay(records, new KnownCalls(), null)
		const text = JSON.stringify(updates)
		expect(text).to.include('first').and.include('third').and.not.include('second')
		expect(updates.at(-1)).to.deep.include({ sessionUpdate: 'tool_call_update', status: 'failed' })
		expect(text).to.include('Broken off')
		const again = [...records.slice(0, 5), { type: 'redo' as const, ...at, turn: 2 }]
		expect(JSON.stringify(replay(again, new KnownCalls(), null))).to.include('second')
	})
})
