// Models without a model: a script, a recording, a replay.
import { expect } from 'chai'
import {
	type RecordedEntry,
	recordingClient,
	replayClient,
	scriptedClient,
	scriptOf,
} from '../../../src/engine/model/index.ts'
import { answersOf } from '../../../src/engine/model/replay.ts'
import type { Message } from '../../../src/engine/types.ts'
import { all, callsOf, endOf, errorOf, only, quickClock, request, shown, textOf, user } from './kit.ts'

const clock = quickClock()

describe('scripted', () => {
	it('plays steps in order: text in deltas, thinking, calls, stop, usage, delay; then it has ended', async () => {
		const client = scriptedClient(
			{
				steps: [
					{
						thinking: 'hm',
						text: 'Hello world',
						deltas: 3,
						calls: [
							{ name: 'read_file', input: { path: 'a' } },
							{ name: 'x', badInput: '{"a' },
						],
						delayMs: 70,
					},
					{ text: 'Done', stop: 'max_tokens', usage: { input: 7, output: 3 } },
				],
			},
			clock,
		)
		const first = await all(client)
		expect(only(first, 'text_delta')).to.have.length(3)
		const end = endOf(first)
		expect([end.stop, textOf(end.message), end.usage.cost]).to.deep.equal(['tool_calls', 'Hello world', 0])
		expect(callsOf(end.message)).to.deep.equal([
			{ type: 'tool_call', id: 'script_1', name: 'read_file', input: { path: 'a' } },
			{ type: 'tool_call', id: 'script_2', name: 'x', input: {}, badInput: '{"a' },
		])
		expect(clock.slept).to.include(70)
		expect(endOf(await all(client)))
			.to.deep.include({ stop: 'max_tokens' })
			.and.nested.include({ 'usage.input': 7, 'usage.output': 3 })
		expect(errorOf(await all(client)).error)
			.to.include({ retryable: false })
			.and.property('message')
			.to.match(/script has ended/)
	})

	it('repeats a step, checks what it expects, answers summaries apart, fails as told', async () => {
		const client = scriptedClient(
			{
				steps: [
					{ text: 'a', repeat: 2 },
					{ expect: 'magic', text: 'b' },
					{ text: 'part', error: { code: 'overloaded', message: 'busy', status: 529, retryable: true } },
				],
				summary: 'short',
			},
			clock,
		)
		expect(shown(await all(client))).to.equal('a')
		expect(shown(await all(client, request({ purpose: 'summary' })))).to.equal('short')
		expect(shown(await all(client))).to.equal('a')
		const missed = errorOf(await all(client)).error.message
		expect(missed).to.include('"magic"').and.include('hello')
		const busy = await all(client)
		expect(shown(busy)).to.equal('part')
		expect(errorOf(busy).error).to.include({ code: 'overloaded', status: 529, retryable: true, streamed: true })
		const met = scriptedClient({ steps: [{ expect: 'magic', text: 'b' }] }, clock)
		expect(shown(await all(met, request({ messages: [user('the magic word')] })))).to.equal('b')
	})

	it('an abort ends it with cancelled', async () => {
		const client = scriptedClient({ steps: [{ text: 'abcdef', deltas: 6 }, { text: 'x' }] }, clock)
		const stop = new AbortController()
		const events = []
		for await (const event of client.stream(request(), stop.signal)) {
			events.push(event)
			stop.abort()
		}
		expect(shown(events)).to.equal('a')
		expect(errorOf(events).error).to.include({ code: 'cancelled', streamed: true })
		expect(errorOf(await all(client, request(), AbortSignal.abort())).error.code).to.equal('cancelled')
	})

	it('a script that has not the form is refused with the place', () => {
		for (const [script, words] of [
			[null, /steps/],
			[{ steps: 'x' }, /steps/],
			[{ steps: [{ txt: 'x' }] }, /step 1 an unknown field "txt"/],
			[{ steps: [{}, { calls: [{}] }] }, /step 2 a call without a name/],
			[{ steps: [{ stop: 'never' }] }, /unknown stop/],
			[{ steps: [{ delayMs: -1 }] }, /delayMs/],
			[{ steps: [{ error: {} }] }, /error/],
		] as const)
			expect(() => scriptedClient(script, clock)).to.throw(words)
	})

	it('a recording of a run plays as the run did', async () => {
		const script = {
			steps: [
				{ thinking: 'hm', text: 'Hello', deltas: 2, calls: [{ id: 'c1', name: 'read_file', input: { path: 'a' } }] },
				{ error: { code: 'overloaded', message: 'busy', retryable: true } },
				{ text: 'Done' },
			],
			summary: 'short',
		}
		const entries: RecordedEntry[] = []
		const run = async (client: ReturnType<typeof scriptedClient>) => {
			const events = []
			for (const purpose of ['turn', 'turn', 'summary', 'turn'] as const)
				events.push(...(await all(client, request({ purpose }))))
			return events
		}
		const first = await run(recordingClient(scriptedClient(script, clock), (entry) => entries.push(entry)))
		const again = JSON.parse(JSON.stringify(scriptOf(entries)))
		expect(again.summary).to.equal('short')
		expect(again.steps).to.have.length(3)
		expect(await run(scriptedClient(again, clock))).to.deep.equal(first)
	})

	it('a replay gives the recorded answers and names the first request that differs', async () => {
		const answer = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
		const history = [user('one'), answer('a'), user('two'), answer('b')]
		const client = replayClient(answersOf(history))
		expect(shown(await all(client, request({ messages: history.slice(0, 1) })))).to.equal('a')
		expect(endOf(await all(client, request({ messages: history.slice(0, 3) }))).message).to.deep.equal(answer('b'))
		expect(errorOf(await all(client)).error)
			.to.include({ code: 'diverged' })
			.and.property('message')
			.to.match(/2 answers/)
		const other = replayClient(answersOf(history))
		const error = errorOf(await all(other, request({ messages: [user('ONE')] }))).error
		expect(error.message).to.include('Request 1').and.include('ONE').and.include('one')
	})
})
