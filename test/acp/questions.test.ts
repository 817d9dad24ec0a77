// What a question holds, whatever it is about; and questions that are about no call the editor knows.
import type { AgentContext } from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import { AcpApprover, questionContent } from '../../src/acp/approver.ts'
import { KnownCalls } from '../../src/acp/calls.ts'
import { SessionChannel } from '../../src/acp/channel.ts'
import { clientSide, nothingOffered } from '../../src/acp/client-side.ts'
import { describeCall } from '../../src/acp/tool-calls.ts'
import type { ApprovalRequest, CallInfo, Effect } from '../../src/engine/index.ts'
import { texts } from './editor.ts'

const info = (more: Partial<CallInfo> = {}): CallInfo => ({
	title: 'A thing',
	kind: 'other',
	access: 'none',
	paths: [],
	key: 'k',
	...more,
})
const request = (more: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
	id: 'q1',
	tool: 'x',
	info: info(),
	title: 'May it?',
	preview: 'all of it',
	choices: ['once', 'session', 'deny'],
	...more,
})

/** An approver with a fake editor behind it. */
function asking(answer: (method: string, params: any) => unknown, side = nothingOffered) {
	const sent: any[] = []
	const client = {
		notify: async (_: string, params: any) => void sent.push(params.update),
		request: async (method: string, params: any) => {
			sent.push({ method, ...params })
			return answer(method, params)
		},
	} as unknown as AgentContext
	let id = 0
	const channel = new SessionChannel(
		(update) => client.notify('session/update', { sessionId: 's', update }),
		() => `m${++id}`,
	)
	const calls = new KnownCalls()
	const approver = new AcpApprover(client, side, 7)
	return { sent, channel, calls, approver, open: () => (approver.at = { sessionId: 's', channel, calls }) }
}
const signal = new AbortController().signal
const once = () => ({ outcome: { outcome: 'selected', optionId: 'once' } })

describe('acp: questions', () => {
	it('a question about no known call gets its own entry, with an end', async () => {
		for (const [optionId, choice, status] of [
			['once', 'once', 'completed'],
			['deny', 'deny', 'failed'],
		] as const) {
			const a = asking(() => ({ outcome: { outcome: 'selected', optionId } }))
			a.open()
			a.channel.begin()
			expect(await a.approver.ask(request({ callId: 'of-a-subagent' }), signal)).to.deep.equal({ choice })
			expect(
				a.sent.map((one) => [one.sessionUpdate ?? one.method, one.toolCallId ?? one.toolCall.toolCallId, one.status]),
			).to.deep.equal([
				['tool_call', 'garuda-question-1', 'pending'],
				['session/request_permission', 'garuda-question-1', undefined],
				['tool_call_update', 'garuda-question-1', status],
			])
			expect(a.sent[0]).to.deep.include({ kind: 'other', title: 'May it?' })
		}
	})

	it('two of them at a time have two entries', async () => {
		const a = asking(once)
		a.open()
		a.channel.begin()
		await Promise.all([a.approver.ask(request(), signal), a.approver.ask(request(), signal)])
		const ids = a.sent.filter((one) => one.sessionUpdate === 'tool_call').map((one) => one.toolCallId)
		expect(new Set(ids).size).to.equal(2)
	})

	it('asks nothing when no prompt runs, when stopped, or before there is a session and no form', async () => {
		const a = asking(once)
		expect(await a.approver.ask(request(), signal)).to.deep.equal({ choice: 'deny' })
		a.open()
		expect(await a.approver.ask(request(), signal)).to.deep.equal({ choice: 'deny' })
		a.channel.begin()
		expect(await a.approver.ask(request(), AbortSignal.abort())).to.deep.equal({ choice: 'deny' })
		expect(a.sent).to.deep.equal([])
	})

	it('before there is a session a form asks, bound to the request; only its own answers count', async () => {
		const side = clientSide({ clientCapabilities: { elicitation: { form: {} } } })
		for (const [answer, choice] of [
			[{ action: 'accept', content: { answer: 'session' } }, 'session'],
			[{ action: 'accept', content: { answer: 'always' } }, 'deny'],
			[{ action: 'accept', content: null }, 'deny'],
			[{ action: 'decline' }, 'deny'],
			[{ action: 'cancel' }, 'deny'],
			[{ action: 'whatever', content: { answer: 'once' } }, 'deny'],
		] as const) {
			const a = asking(() => answer, side)
			const labels = { session: 'Trust this text from now on' }
			expect((await a.approver.ask(request({ labels, preview: 'rm\u202e' }), signal)).choice).to.equal(choice)
			expect(a.sent[0]).to.deep.include({ method: 'elicitation/create', requestId: 7 })
			expect(a.sent[0].message).to.include('rm[U+202E]')
			expect(JSON.stringify(a.sent[0].requestedSchema)).to.include('Trust this text from now on')
		}
	})

	it('labels of a consent are the names of its options', async () => {
		const a = asking(once)
		a.open()
		a.channel.begin()
		await a.approver.ask(
			request({ labels: { once: 'This time', session: 'From now on' }, choices: ['once', 'session', 'deny'] }),
			signal,
		)
		expect(a.sent[1].options.map((one: any) => one.name)).to.deep.equal(['This time', 'From now on', 'Deny'])
	})

	for (const [what, effect, preview, more] of [
		['staged changes', { type: 'apply_changes', summary: 'a.txt +1' }, 'a.txt +1', { command: 'make' }],
		[
			'a secret',
			{ type: 'use_secret', name: 'KEY', command: 'curl x' },
			'curl x\n\nIt reaches: x',
			{ command: 'curl x' },
		],
		['a host', { type: 'reach_host', host: 'h', port: 443 }, 'curl h', { command: 'curl h' }],
		[
			'a run outside',
			{ type: 'outside_sandbox', command: 'rm -r /x', wall: 'write', detail: 'd' },
			'rm -r /x',
			{ command: 'rm -r /x' },
		],
	] as const)
		it(`shows all of ${what}`, () => {
			const content = questionContent(
				request({ effect: effect as Effect, preview, info: info(more), warning: 'Look\u200b out' }),
			)
			expect(texts(content)).to.include(preview).and.include('Look[U+200B] out')
		})

	it('a change that is too large for a diff is shown as a part of its text', () => {
		const change = { path: '/r/big.txt', old: 'a\n'.repeat(300_000), new: `${'a\n'.repeat(300_000)}b\n` }
		const { content } = describeCall(
			'write_file',
			{ path: 'big.txt', content: 'x'.repeat(200_000) },
			info({ change, kind: 'edit' }),
		)
		expect(content.some((one) => one.type === 'diff')).to.equal(false)
		expect(texts(content)).to.include('+b')
		expect(texts(content).length).to.be.lessThan(300_000)
	})

	it('a fence is longer than any run of backticks in what it holds', () => {
		const { content } = describeCall('bash', { command: 'echo "```` x"' })
		expect(texts(content)).to.match(/^`{5}sh\n[\s\S]*\n`{5}$/)
	})

	it('streamed text: emoji cut in pieces stay whole, hidden characters do not hide behind a cut', async () => {
		const sent: any[] = []
		const channel = new SessionChannel(
			async (update) => void sent.push(update),
			() => 'm',
		)
		channel.begin()
		const text = 'a👩‍👩‍👧❤️b\u202ec'
		for (const unit of text.split('')) channel.text('agent_message_chunk', unit)
		channel.end()
		await new Promise((done) => setTimeout(done, 0))
		expect(sent.map((one) => one.content.text).join('')).to.equal('a👩‍👩‍👧❤️b[U+202E]c')
		expect(sent.every((one) => one.content.text !== '' && !/[\ud800-\udbff]$/.test(one.content.text))).to.equal(true)
		channel.text('agent_message_chunk', 'after the answer')
		expect(sent.map((one) => one.content.text).join('')).to.not.include('after the answer')
	})

	it('a slow editor gets joined pieces, not a growing queue', async () => {
		const sent: any[] = []
		let free = (): void => {}
		const channel = new SessionChannel(
			(update) => {
				sent.push(update)
				return new Promise((done) => (free = done))
			},
			() => 'm',
		)
		channel.begin()
		for (let i = 0; i < 10_000; i++) channel.text('agent_message_chunk', 'x')
		expect(sent).to.have.length(1)
		free()
		await new Promise((done) => setTimeout(done, 0))
		expect(sent).to.have.length(2)
		expect(sent[1].content.text).to.equal('x'.repeat(9_999))
	})
})
