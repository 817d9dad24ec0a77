import { expect } from 'chai'
import { TokenBudget } from '../../src/engine/budget.ts'
import { systemClock } from '../../src/engine/clock.ts'
import { createCompaction } from '../../src/engine/context/compact.ts'
import type { Gate } from '../../src/engine/tools/invoke.ts'
import { runTurn, type TurnDeps } from '../../src/engine/turn.ts'
import type { AgentEvent, Message, ModelFailure, TurnEnd } from '../../src/engine/types.ts'
import { type FakeModel, fakeGate, fakeHistory, fakeModel, fakeSpec, only, type Reply, user } from '../helpers/fakes.ts'

interface Run {
	end: TurnEnd
	events: AgentEvent[]
	messages: Message[]
	model: FakeModel
	budget: TokenBudget
}

async function play(
	replies: Parameters<typeof fakeModel>[0],
	more: Partial<TurnDeps> & {
		gate?: Gate
		messages?: Message[]
		signal?: AbortSignal
		onEvent?: (event: AgentEvent) => void
	} = {},
): Promise<Run> {
	const spec = more.spec ?? fakeSpec()
	const model = fakeModel(replies, spec.price)
	const events: AgentEvent[] = []
	const { history } = fakeHistory(more.messages ?? [user('do it')])
	const emit = (event: AgentEvent) => {
		events.push(event)
		more.onEvent?.(event)
	}
	const compaction = createCompaction({
		client: model,
		spec,
		system: 'system',
		tools: [],
		settings: { auto: true, reserve: 13_000, keep: 20_000 },
		state: { seen: new Map(), cwd: '/', todo: [] },
		mode: () => 'build',
		messages: () => history.messages,
		tokens: () => history.tokens(),
		replace: async (messages) => history.replace(messages),
		emit,
	})
	const budget = more.budget ?? new TokenBudget(null, null)
	const end = await runTurn(
		{
			client: model,
			modelName: 'fake/m',
			spec,
			system: 'system',
			tools: [],
			gate: more.gate ?? fakeGate(() => ({})),
			history,
			compaction,
			budget,
			limits: { steps: 50, repeatHint: 3, repeatStop: 5 },
			clock: systemClock,
			sessionId: 's',
			...more,
			emit,
		},
		more.signal ?? new AbortController().signal,
	)
	return { end, events, messages: history.messages, model, budget }
}

const failure = (more: Partial<ModelFailure>): ModelFailure => ({
	code: 'overloaded',
	message: 'no',
	retryable: false,
	streamed: false,
	...more,
})
const texts = (messages: Message[], role: string) =>
	messages.filter((m) => m.role === role).flatMap((m) => m.blocks.flatMap((b) => (b.type === 'text' ? [b.text] : [])))

describe('a turn', () => {
	it('streams text, runs calls, ends when the model stops', async () => {
		const { end, events, messages } = await play([
			{ text: 'Looking.', calls: [{ name: 'read', input: { path: 'a' } }] },
			{ text: 'Done.' },
		])
		expect(end.reason).to.equal('done')
		expect(end.text).to.equal('Done.')
		expect(end.steps).to.equal(2)
		expect(end.usage).to.include({ input: 200, output: 20, requests: 2 })
		expect(messages.map((m) => m.role)).to.deep.equal(['user', 'assistant', 'user', 'assistant'])
		expect(events.map((event) => event.type)).to.deep.equal([
			'step_start',
			'text_delta',
			'message',
			'step_end',
			'step_start',
			'text_delta',
			'message',
			'step_end',
		])
	})

	it('runs reads side by side and everything else in order', async () => {
		const open: string[] = []
		let most = 0
		const order: string[] = []
		const gate = fakeGate(async (call) => {
			open.push(call.name)
			most = Math.max(most, open.length)
			order.push(`${call.name} with ${open.length}`)
			await new Promise((done) => setTimeout(done, 5))
			open.splice(open.indexOf(call.name), 1)
			return { text: String(call.input.n) }
		})
		const calls = ['read', 'read', 'write', 'write', 'read'].map((name, n) => ({ name, input: { n } }))
		const { messages } = await play([{ calls }, { text: 'ok' }], { gate })
		expect(most).to.equal(2)
		expect(order).to.deep.equal(['read with 1', 'read with 2', 'write with 1', 'write with 1', 'read with 1'])
		expect(messages[2]!.blocks.map((b) => b.type === 'tool_result' && b.text)).to.deep.equal(['0', '1', '2', '3', '4'])
	})

	it('V03: counts each request once, failed ones too, by the price of the model', async () => {
		const { end } = await play([{ text: 'a', calls: [{ name: 'read' }] }, { text: 'b' }])
		expect(end.usage.cost).to.be.closeTo((2 * (100 * 1 + 10 * 2)) / 1e6, 1e-12)
		const unknown = await play([{ text: 'a' }], { spec: fakeSpec({ price: null }) })
		expect(unknown.end.usage.cost).to.equal(null)
	})

	it('V05: stops before the step that passes the token budget, and says so', async () => {
		const usage = { input: 3_500, output: 500 }
		const step = (): Reply => ({ calls: [{ name: 'read', input: { n: Math.random() } }], usage })
		const { end, model, budget } = await play([step, step, step, step], { budget: new TokenBudget(10_000, null) })
		expect(end.reason).to.equal('token_budget')
		expect(model.requests.length).to.equal(2)
		expect(budget.used).to.equal(8_000)
		expect(model.requests[1]!.maxOutput).to.be.at.most(10_000 - 4_000 - 3_500)
	})

	it('V05: a call that fails with no usage counts as spent whole', async () => {
		const budget = new TokenBudget(10_000, null)
		await play([{ error: failure({}) }], { budget })
		expect(budget.used).to.be.greaterThan(7_900)
	})

	it('stops at the cost limit before it is passed', async () => {
		const step = (): Reply => ({
			calls: [{ name: 'read', input: { n: Math.random() } }],
			usage: { input: 400_000, output: 100 },
		})
		const { end } = await play([step, step, step], {
			budget: new TokenBudget(null, 1),
			spec: fakeSpec({ window: 10_000_000 }),
		})
		expect(end.reason).to.equal('cost_budget')
		expect(end.usage.cost).to.be.at.most(1)
	})

	it('stops at the step limit', async () => {
		const step = (): Reply => ({ calls: [{ name: 'read', input: { n: Math.random() } }] })
		const { end } = await play([step, step, step, step], { limits: { steps: 3, repeatHint: 3, repeatStop: 5 } })
		expect(end.reason).to.equal('max_steps')
		expect(end.steps).to.equal(3)
	})

	it('gives a hint on the third equal call with an equal result and stops at the fifth', async () => {
		const same = (): Reply => ({ calls: [{ name: 'read', input: { path: 'x' } }] })
		const { end, messages, model } = await play([same, same, same, same, same, same])
		expect(end.reason).to.equal('repeated_calls')
		expect(model.requests.length).to.equal(5)
		expect(texts(messages, 'user').filter((text) => text.includes('same results')).length).to.equal(2)
	})

	it('does not stop equal calls whose results differ', async () => {
		let n = 0
		const same = (): Reply => ({ calls: [{ name: 'read', input: { path: 'x' } }] })
		const { end } = await play([same, same, same, same, same, same, { text: 'ok' }], {
			gate: fakeGate(() => ({ text: `${n++}` })),
		})
		expect(end.reason).to.equal('done')
	})

	it('P08: stops after three denials of one tool with small changes', async () => {
		const gate = fakeGate((call) => ({
			status: 'denied',
			text: 'Denied: rule',
			denied: 'rule',
			key: JSON.stringify(call.input),
		}))
		let n = 0
		const again = (): Reply => ({ calls: [{ name: 'bash', input: { command: `curl ${n++}` } }] })
		const { end, model } = await play([again, again, again, again], { gate })
		expect(end.reason).to.equal('repeated_calls')
		expect(model.requests.length).to.equal(3)
		expect(end.denials.length).to.equal(3)
	})

	it('P08: goes on over denials of different things, up to five in a row', async () => {
		const paths = ['a', 'b', 'c', 'd', 'e', 'f']
		const gate = fakeGate((call) => ({ status: 'denied', denied: 'no', key: String(call.input.path) }))
		const steps = paths.map((path): Reply => ({ calls: [{ name: 'write_file', input: { path } }] }))
		const { end, model } = await play(steps, { gate })
		expect(end.reason).to.equal('repeated_calls')
		expect(model.requests.length).to.equal(5)
		const mixed = fakeGate((call) =>
			call.name === 'write_file' ? { status: 'denied', denied: 'no', key: String(call.input.path) } : {},
		)
		const between = steps.flatMap((step, n): Reply[] => [step, { calls: [{ name: 'read', input: { n } }] }])
		expect((await play([...between, { text: 'ok' }], { gate: mixed })).end.reason).to.equal('done')
	})

	it('forgets a denial whose same key was allowed later', async () => {
		let first = true
		const gate = fakeGate(() => {
			const outcome = first ? { status: 'denied' as const, denied: 'no', key: 'k' } : { key: 'k' }
			first = false
			return outcome
		})
		const call = { calls: [{ name: 'bash', input: { command: 'x' } }] }
		const { end } = await play([call, call, { text: 'ok' }], { gate })
		expect(end.denials).to.deep.equal([])
	})

	describe('a reply cut at the output limit', () => {
		it('runs none of its calls, keeps its text and asks to go on', async () => {
			const gate = fakeGate(() => ({}))
			const { end, messages } = await play(
				[
					{ text: 'half', calls: [{ name: 'write', input: { path: 'a', content: 'x' } }], stop: 'max_tokens' },
					{ text: ' whole' },
				],
				{ gate },
			)
			expect(gate.calls).to.deep.equal([])
			expect(end.reason).to.equal('done')
			const result = messages[2]!.blocks[0]!
			expect(result.type === 'tool_result' && result.status).to.equal('failed')
			expect(texts(messages, 'assistant')).to.deep.equal(['half', ' whole'])
		})

		it('goes on three times, then ends with max_tokens', async () => {
			const cut = { text: 'more', stop: 'max_tokens' as const }
			const { end, model } = await play([cut, cut, cut, cut, cut])
			expect(end.reason).to.equal('max_tokens')
			expect(model.requests.length).to.equal(4)
		})
	})

	describe('a stop by the user', () => {
		it('during the stream keeps the text shown and leaves a valid history', async () => {
			const abort = new AbortController()
			const { end, messages } = await play([{ text: 'I will now', hang: true }], {
				signal: abort.signal,
				onEvent: (event) => event.type === 'text_delta' && abort.abort(),
			})
			expect(end.reason).to.equal('cancelled')
			expect(messages.at(-1)).to.deep.equal({ role: 'assistant', blocks: [{ type: 'text', text: 'I will now' }] })
		})

		it('gives every call of the reply a result, the unbegun ones too', async () => {
			const abort = new AbortController()
			const gate = fakeGate(async (_call, signal) => {
				abort.abort()
				await new Promise<void>((done) => (signal.aborted ? done() : signal.addEventListener('abort', () => done())))
				return { status: 'cancelled', text: 'Stopped' }
			})
			const { end, messages } = await play([{ calls: [{ name: 'bash' }, { name: 'bash' }] }], {
				gate,
				signal: abort.signal,
			})
			expect(end.reason).to.equal('cancelled')
			const results = messages.at(-1)!.blocks
			expect(results.map((b) => b.type === 'tool_result' && b.status)).to.deep.equal(['cancelled', 'cancelled'])
			expect(gate.calls.length).to.equal(1)
		})

		it('D01: waits three seconds at most for a call that does not end', async () => {
			const abort = new AbortController()
			const slept: number[] = []
			const clock = { now: () => 0, sleep: async (ms: number) => void slept.push(ms) }
			setTimeout(() => abort.abort(), 10)
			const gate = fakeGate(() => new Promise(() => {}))
			const { end, messages } = await play([{ calls: [{ name: 'bash' }] }], { gate, clock, signal: abort.signal })
			expect(end.reason).to.equal('cancelled')
			expect(slept).to.deep.equal([3000])
			expect(JSON.stringify(messages.at(-1))).to.contain('did not report in time')
		})

		it('an answer of cancel ends the turn with nothing after it', async () => {
			const gate = fakeGate(() => ({ status: 'cancelled', cancelTurn: true }))
			const { end, model } = await play([{ calls: [{ name: 'bash' }, { name: 'bash' }] }, { text: 'never' }], { gate })
			expect(end.reason).to.equal('cancelled')
			expect(gate.calls.length).to.equal(1)
			expect(model.requests.length).to.equal(1)
		})
	})

	describe('what the model does wrong', () => {
		it('L01: a call leaked as text gets one word to the model, then ends', async () => {
			const leak = { text: '<function=x>', detail: 'leaked_tool_call' }
			const { end, model, messages } = await play([leak, leak])
			expect(end.reason).to.equal('done')
			expect(model.requests.length).to.equal(2)
			expect(texts(messages, 'user')[1]).to.contain('written as text')
		})

		it('an empty reply gets one word, then ends', async () => {
			const { model } = await play([{ thinking: 'hm' }, { text: 'There.' }])
			expect(model.requests.length).to.equal(2)
		})

		it('a refusal ends the turn as such', async () => {
			const { end } = await play([{ text: 'No.', stop: 'refusal', detail: 'cyber' }])
			expect(end.reason).to.equal('refusal')
			expect(end.error?.hint).to.contain('cyber')
		})

		it('a paused reply goes back as it is', async () => {
			const { end, model } = await play([{ text: 'searching', stop: 'pause' }, { text: 'found' }])
			expect(end.reason).to.equal('done')
			expect(model.requests[1]!.messages.at(-1)!.role).to.equal('assistant')
		})
	})

	describe('what the provider refuses', () => {
		it('the thinking binding error: once more without thinking', async () => {
			const thinking: Message = {
				role: 'assistant',
				blocks: [
					{ type: 'thinking', text: 't', provider: 'fake', model: 'm', raw: {} },
					{ type: 'text', text: 'x' },
				],
			}
			const { end, model } = await play(
				[{ error: failure({ code: 'invalid_request', thinkingBinding: true }) }, { text: 'ok' }],
				{
					messages: [user('a'), thinking, user('b')],
				},
			)
			expect(end.reason).to.equal('done')
			expect(JSON.stringify(model.requests[0]!.messages)).to.contain('"thinking"')
			expect(JSON.stringify(model.requests[1]!.messages)).not.to.contain('"thinking"')
		})

		it('a message it names: left out, once', async () => {
			const bad: Message = {
				role: 'user',
				blocks: [{ type: 'tool_result', callId: 'c', status: 'ok', text: 'poison' }],
			}
			const call: Message = { role: 'assistant', blocks: [{ type: 'tool_call', id: 'c', name: 'read', input: {} }] }
			const error = failure({ code: 'invalid_request', badMessage: 2 })
			const { end, model } = await play([{ error }, { error }], { messages: [user('a'), call, bad] })
			expect(model.requests.length).to.equal(2)
			expect(JSON.stringify(model.requests[1]!.messages)).not.to.contain('poison')
			expect(end.reason).to.equal('error')
		})

		it('S19: a prompt too long is compacted and sent once more; then a clear stop', async () => {
			const long = Array.from({ length: 40 }, (_, i) =>
				i % 2
					? { role: 'assistant' as const, blocks: [{ type: 'text' as const, text: 'y'.repeat(8000) }] }
					: user('x'.repeat(8000)),
			)
			const error = failure({
				code: 'overflow',
				message: 'prompt is too long: 210000 tokens > 200000',
				window: 100_000,
			})
			const good = await play([{ error }, { text: 'summary' }, { text: 'ok' }], { messages: [...long, user('go')] })
			expect(good.end.reason).to.equal('done')
			expect(good.model.requests[1]!.purpose).to.equal('summary')
			const bad = await play([{ error }, { text: 'summary' }, { error }], { messages: [...long, user('go')] })
			expect(bad.end.reason).to.equal('error')
			expect(bad.end.error?.message).to.contain('210000')
		})
	})

	it('voids the text of a broken stream', async () => {
		const { end, events } = await play([
			{
				before: [
					{ type: 'text_delta', text: 'Hel' },
					{ type: 'retry', attempt: 1, of: 3, delayMs: 1, reason: 'reset', void: true },
				],
				text: 'Hello world',
			},
		])
		expect(end.text).to.equal('Hello world')
		expect(only(events, 'model_retry')[0]).to.include({ void: true, attempt: 1 })
	})

	it('holds the final text against the wanted form, twice at most', async () => {
		const check = (text: string) => (text === '42' ? { value: 42 } : { error: 'not 42' })
		const good = await play([{ text: 'well' }, { text: '42' }], { check })
		expect(good.end.structured).to.equal(42)
		const bad = await play([{ text: 'a' }, { text: 'b' }, { text: 'c' }], { check })
		expect(bad.end.error?.code).to.equal('invalid_output')
	})
})
