// Tokens and money: counted as the server counts them, unknown never taken for free.
import { expect } from 'chai'
import { catalogueDate, costOf, knownModels, modelSpec } from '../../../src/engine/model/index.ts'
import type { Price, Usage } from '../../../src/engine/types.ts'
import { anthropicEvent, anthropicStream, openaiChunk, openaiStream, startSse } from '../../helpers/sse-server.ts'
import { all, endOf, errorOf, make, request } from './kit.ts'

const usage = (over: Partial<Usage>): Usage => ({
	input: 0,
	output: 0,
	cacheRead: 0,
	cacheWrite: 0,
	thinking: 0,
	requests: 1,
	cost: null,
	...over,
})

const usageOf = async (api: 'anthropic' | 'openai', body: string[], price?: Price) => {
	const server = await startSse([{ body }])
	const made = await make(api, server.url, { model: 'm', ...(price && { spec: { price } }) })
	const end = endOf(await all(made.client))
	made.close()
	await server.close()
	return end.usage
}

const anthropic = (start: object, ...deltas: object[]) => [
	anthropicEvent({ type: 'message_start', message: { usage: start } }),
	...deltas.map((delta) => anthropicEvent({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: delta })),
	anthropicEvent({ type: 'message_stop' }),
]

describe('cost', () => {
	const full = { input_tokens: 9, cache_read_input_tokens: 1, cache_creation_input_tokens: 4_425, output_tokens: 1 }
	const expected = { input: 9, cacheRead: 1, cacheWrite: 4_425, output: 50, requests: 1 }

	it('V01 cumulative usage is set, not added', async () => {
		expect(await usageOf('anthropic', anthropic(full, { ...full, output_tokens: 50 }))).to.include(expected)
		expect(
			await usageOf('anthropic', anthropic(full, { ...full, output_tokens: 20 }, { ...full, output_tokens: 50 })),
		).to.include(expected)
	})

	it('V01 cache figures only in the delta, or only output in it: nothing is erased', async () => {
		expect(
			await usageOf('anthropic', anthropic({ input_tokens: 9, output_tokens: 1 }, { ...full, output_tokens: 50 })),
		).to.include(expected)
		expect(await usageOf('anthropic', anthropic(full, { output_tokens: 50 }))).to.include(expected)
		expect(
			await usageOf(
				'anthropic',
				anthropic(full, {
					input_tokens: 0,
					cache_read_input_tokens: null,
					cache_creation_input_tokens: 0,
					output_tokens: 50,
				}),
			),
		).to.include(expected)
	})

	it('V02 cached tokens are inside the prompt tokens, and the last usage wins', async () => {
		const price = { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1, date: '2026-01-01' }
		const told = { prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 800 }, completion_tokens: 10 }
		const got = await usageOf(
			'openai',
			[
				openaiChunk({ delta: { content: 'x' } }, { usage: { ...told, completion_tokens: 3 } }),
				...openaiStream({ text: 'y', usage: told }),
			],
			price,
		)
		expect(got).to.include({ input: 200, cacheRead: 800, output: 10 })
		expect(got.cost).to.be.closeTo((200 * 1 + 800 * 0.1 + 10 * 2) / 1e6, 1e-12)
	})

	it('V02 the names of DeepSeek, Kimi and Moonshot, and cache writes', async () => {
		const base = { prompt_tokens: 1_000, completion_tokens: 10 }
		expect(
			await usageOf('openai', openaiStream({ text: 'x', usage: { ...base, prompt_cache_hit_tokens: 800 } })),
		).to.include({ input: 200, cacheRead: 800 })
		expect(await usageOf('openai', openaiStream({ text: 'x', usage: { ...base, cached_tokens: 800 } }))).to.include({
			input: 200,
			cacheRead: 800,
		})
		const inChoice = [
			openaiChunk({
				delta: { content: 'x' },
				finish_reason: 'stop',
				usage: { ...base, prompt_tokens_details: { cached_tokens: 700, cache_write_tokens: 100 } },
			}),
		]
		expect(await usageOf('openai', inChoice)).to.include({ input: 200, cacheRead: 700, cacheWrite: 100 })
	})

	it('V03 each request is counted once over retries, aborts and a summary, as the server counts it', async () => {
		const counted = { input: 0, output: 0 }
		const server = await startSse((_, n) => {
			counted.input += 10
			counted.output += n === 0 ? 300 : n === 2 ? 1 : 20
			if (n === 0)
				return {
					body: [
						...anthropicStream({ text: 'Hello' }).slice(0, 3),
						anthropicEvent({ type: 'message_delta', delta: {}, usage: { output_tokens: 300 } }),
						{ cut: true },
					],
				}
			if (n === 2) return { body: [anthropicStream({ text: 'x' })[0]!, { stall: true }] }
			return { body: anthropicStream({ text: 'Done' }) }
		})
		const made = await make('anthropic', server.url)
		const used: Usage[] = [endOf(await all(made.client)).usage]
		const stop = new AbortController()
		setTimeout(() => stop.abort(), 60)
		used.push(errorOf(await all(made.client, request(), stop.signal)).usage!)
		used.push(endOf(await all(made.client, request({ purpose: 'summary' }))).usage)
		const sum = (key: 'input' | 'output' | 'requests') => used.reduce((total, one) => total + one[key], 0)
		expect({ input: sum('input'), output: sum('output') }).to.deep.equal(counted)
		expect(sum('requests')).to.equal(server.requests.length)
		made.close()
		await server.close()
	})

	it('V05 what a budget needs is there: the usage of a step comes with its end and with its failure', async () => {
		const server = await startSse([
			{ body: anthropicStream({ text: 'x', usage: { input_tokens: 3_000, output_tokens: 1_000 } }) },
			{ body: [anthropicStream({ usage: { input_tokens: 4_000 } })[0]!, { cut: true }] },
		])
		const made = await make('anthropic', server.url, { tuning: { retriesBefore: 0 } })
		const first = endOf(await all(made.client)).usage
		expect(first.input + first.output).to.equal(4_000)
		expect(errorOf(await all(made.client)).usage).to.include({ input: 4_000 })
		made.close()
		await server.close()
	})

	it('an unknown price is null, in the table, in the end and in sums; a price of 0 is 0', async () => {
		expect(costOf(usage({ input: 5 }), modelSpec('local', 'qwen'))).to.equal(null)
		expect(costOf(usage({ input: 5 }), modelSpec('gateway', 'claude-opus-5-5'))).to.equal(null)
		const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, date: '2026-01-01' }
		expect(costOf(usage({ input: 5 }), modelSpec('local', 'qwen', { price: free }))).to.equal(0)
		expect((await usageOf('openai', openaiStream({ text: 'x' }))).cost).to.equal(null)
	})

	it('a tier holds for the whole request when its prompt, cached or not, is above the line', () => {
		const spec = modelSpec('anthropic', 'claude-haiku-5-5')
		expect(costOf(usage({ input: 100_000, output: 1_000 }), spec)).to.be.closeTo(
			(100_000 * 0.1 + 1_000 * 0.5) / 1e6,
			1e-12,
		)
		expect(costOf(usage({ input: 1, cacheRead: 100_000, output: 1_000 }), spec)).to.be.closeTo(
			(0.5 + 100_000 * 0.05 + 1_000 * 2.5) / 1e6,
			1e-12,
		)
	})

	it('the table is dated and plausible for every model it knows', () => {
		expect(catalogueDate).to.match(/^\d{4}-\d\d-\d\d$/)
		expect(knownModels().length).to.be.greaterThan(10)
		for (const { provider, id } of knownModels()) {
			const { price, window, maxOutput, efforts, defaultEffort, thinking } = modelSpec(provider, id)
			expect(price!.date).to.equal(catalogueDate)
			expect(price!.cacheRead).to.be.lessThan(price!.input)
			expect(price!.cacheWrite).to.be.closeTo(price!.input * 1.25, 1e-9)
			expect(price!.output).to.be.closeTo(price!.input * 5, 1e-9)
			expect(maxOutput).to.be.lessThan(window!)
			if (defaultEffort) expect(efforts).to.include(defaultEffort)
			expect(thinking).to.not.equal('none')
		}
	})

	it('a name outside the table has an unknown window; overrides win field by field; a dated name is its model', () => {
		expect(modelSpec('local', 'qwen')).to.include({
			window: null,
			price: null,
			thinking: 'none',
			textToolCalls: 'whole',
		})
		expect(modelSpec('local', 'qwen', { window: 32_768 })).to.include({ window: 32_768, thinking: 'none' })
		expect(modelSpec('anthropic', 'claude-haiku-4-5-20251001')).to.include({ window: 200_000, thinking: 'budget' })
		expect(modelSpec('anthropic', 'claude-opus-9')).to.include({ window: null, thinking: 'adaptive' })
		expect(modelSpec('anthropic', 'claude-3-haiku-20240307').thinking).to.equal('none')
		expect(modelSpec('anthropic', 'constructor').price).to.equal(null)
	})

	it('thinking tokens are part of the output', async () => {
		const got = await usageOf(
			'openai',
			openaiStream({
				text: 'x',
				usage: { completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 20 } },
			}),
		)
		expect(got).to.include({ output: 30, thinking: 20 })
	})
})
