import { expect } from 'chai'
import { Renderer, usageLine } from '../../src/chat/render.ts'
import { painter } from '../../src/chat/style.ts'
import type { AgentEvent, CallInfo } from '../../src/engine/types.ts'
import { noUsage } from '../../src/engine/types.ts'
import { end, replyOf } from './fake.ts'

const info = (more: Partial<CallInfo> = {}): CallInfo => ({
	title: 'Do it',
	kind: 'execute',
	access: 'run',
	paths: [],
	key: 'k',
	...more,
})
const call = (more: Partial<CallInfo> = {}): AgentEvent => ({
	type: 'tool_call',
	callId: 'c',
	name: 'bash',
	input: {},
	info: info(more),
})
const result = (text: string, status: 'ok' | 'failed' | 'denied' | 'cancelled' = 'ok'): AgentEvent => ({
	type: 'tool_result',
	callId: 'c',
	name: 'bash',
	status,
	text,
})

function show(events: AgentEvent[], options: { thinking?: boolean } = {}): { answer: string; about: string } {
	const renderer = new Renderer({ paint: painter(false), ...options })
	const out = { answer: '', about: '' }
	for (const event of events) {
		const { answer, about } = renderer.event(event)
		out.answer += answer
		out.about += about
	}
	return out
}

describe('events as words', () => {
	it('a reply ends with one line end, however it came', () => {
		expect(show([{ type: 'text_delta', text: 'a' }, { type: 'text_delta', text: 'b' }, replyOf([])]).answer).to.equal(
			'ab\n',
		)
		expect(show([replyOf([])]).answer).to.equal('')
	})

	it('an edit that was taken in part says so', () => {
		const change = { path: 'a', old: 'a', new: 'b' }
		const request = { id: 'q', callId: 'c', tool: 't', info: info(), title: '', preview: '', choices: [] }
		const part = { ...result('x'), data: { parts: { taken: 2, of: 3 } } } as AgentEvent
		expect(show([call({ change }), { type: 'question', request }, part]).about).to.include('  done: 2 of 3 parts\n')
		expect(show([call({ change }), { type: 'question', request }, result('x')]).about).to.include('  done\n')
	})

	it('a call has its title, a result is bounded and says how much is left out', () => {
		const long = Array.from({ length: 30 }, (_, i) => `line ${i}`).join('\n')
		const { about } = show([call({ title: 'Run make\nall' }), result(long)])
		expect(about).to.include('● Run make ⏎ all\n').and.to.include('  line 6\n').and.to.include('… 23 more lines')
		expect(about).to.not.include('line 7')
		// A line end at the end begins no line.
		for (const [text, count] of [
			['a\n', '1 line'],
			['a', '1 line'],
			['a\nb\n', '2 lines'],
		] as const)
			expect(show([call({ kind: 'read' }), result(text)]).about).to.include(`  ${count}\n`)
		expect(show([call({ kind: 'read' }), result('a\nb\nc')]).about)
			.to.include('3 lines')
			.and.to.not.include('\n  a')
		expect(show([call(), result('x'.repeat(9000))]).about.length).to.be.below(700)
	})

	it("the output of a command of the person's own is shown up to 200 lines, and what comes after it as before", () => {
		const renderer = new Renderer({ paint: painter(false) })
		const shown = (lines: number) => {
			renderer.event(call())
			return renderer.event(result(Array.from({ length: lines }, (_, i) => `line ${i}.`).join('\n'))).about
		}
		renderer.own(true)
		expect(shown(200)).to.include('line 199.').and.not.include('more lines')
		expect(shown(2000)).to.include('line 199.').and.include('… 1,800 more lines').and.not.include('line 200.')
		renderer.own(false)
		expect(shown(200)).to.include('line 6.').and.not.include('line 7.')
	})

	it('an edit shows its diff, unless the question has shown it', () => {
		const change = { path: 'a.txt', old: 'one\n', new: 'two\n' }
		expect(show([call({ change }), result('ok')]).about)
			.to.include('-one')
			.and.to.include('+two')
		const request = {
			id: 'q',
			callId: 'c',
			tool: 'edit',
			info: info({ change }),
			title: 't',
			preview: '',
			choices: ['once' as const],
		}
		const asked = show([call({ change }), { type: 'question', request }, result('ok')]).about
		expect(asked).to.not.include('+two')
	})

	it('failed, denied and stopped are said in words, so that no colour is needed', () => {
		expect(show([call(), result('boom', 'failed')]).about).to.include('failed: boom')
		expect(show([call(), result('Denied: no rule\nmore', 'denied')]).about)
			.to.include('Denied: no rule\n')
			.and.to.not.include('more')
		expect(show([call(), result('x', 'cancelled')]).about).to.include('stopped')
	})

	it('thinking is a word, or the thinking itself when asked for', () => {
		const events: AgentEvent[] = [
			{ type: 'thinking_delta', text: 'let me ' },
			{ type: 'thinking_delta', text: 'see\u001b[2J' },
			replyOf([]),
		]
		expect(show(events).about).to.equal('· thinking\n')
		expect(show(events, { thinking: true }).about).to.equal('let me see\n')
	})

	it('a retry says that what was shown does not count; a failed turn says why and what to do', () => {
		const retry = (isVoid: boolean): AgentEvent => ({
			type: 'model_retry',
			attempt: 2,
			of: 5,
			delayMs: 4000,
			reason: 'overloaded',
			void: isVoid,
		})
		const text: AgentEvent = { type: 'text_delta', text: 'half a' }
		expect(show([text, retry(true)]).about)
			.to.include('in 4 s (2 of 5)')
			.and.to.include('does not count')
		expect(show([text, retry(false)]).about).to.not.include('does not count')
		const failed = show([
			{
				type: 'turn_end',
				end: end({ reason: 'error', error: { code: 'auth', message: 'No key.', hint: 'Run setup.' } }),
			},
		])
		expect(failed.about).to.equal('No key. Run setup.\n')
		expect(show([{ type: 'turn_end', end: end({ reason: 'max_steps' }) }]).about).to.include('--max-steps')
		expect(show([{ type: 'turn_end', end: end() }]).about).to.equal('')
	})

	it('the line of a turn tells an unknown cost from none', () => {
		expect(usageLine({ ...noUsage(), input: 1200, cacheRead: 300, output: 40, cost: 0.0123 }, 2500)).to.equal(
			'2.5 s · 1,500 tokens in (300 cached), 40 out · $0.0123',
		)
		expect(usageLine({ ...noUsage(), cost: null }, 0)).to.include('cost unknown')
	})
})
