import { expect } from 'chai'
import { TokenBudget } from '../../../src/engine/budget.ts'
import type { Compaction } from '../../../src/engine/context/compact.ts'
import { History } from '../../../src/engine/history.ts'
import { replaySession } from '../../../src/engine/inspect/replay.ts'
import type { ModelClient, SessionHeader, SessionRecord } from '../../../src/engine/ports.ts'
import { rebuild } from '../../../src/engine/session/resume.ts'
import type { Gate } from '../../../src/engine/tools/invoke.ts'
import { runTurn, type TurnDeps } from '../../../src/engine/turn.ts'
import type { Block, Message, ModelEvent, ModelStop } from '../../../src/engine/types.ts'
import { noUsage } from '../../../src/engine/types.ts'
import { header, turn as plainTurn, start } from '../session/help.ts'

const head: SessionHeader = header({ root: '/p', home: '/h' })
const text = (words: string): Block => ({ type: 'text', text: words })
const call = (id: string, name = 'bash', input: Record<string, unknown> = { command: id }): Block => ({
	type: 'tool_call',
	id,
	name,
	input,
})
type Reply = { blocks: Block[]; stop?: ModelStop; detail?: string } | { error: string } | 'hang'

/** Records a session by running the real loop with scripted replies and tools. */
async function record(
	prompts: { prompt: string; replies: Reply[]; stopAfter?: number }[],
	more: {
		outcome?: (id: string) => { status: 'ok' | 'failed' | 'denied' | 'cancelled'; text: string; cancelTurn?: boolean }
		limits?: TurnDeps['limits']
		check?: TurnDeps['check']
		compactAt?: number
		budget?: () => TokenBudget
	} = {},
): Promise<SessionRecord[]> {
	const records: SessionRecord[] = [{ type: 'start', ...head }]
	const history = new History([], 0, async (message, kind) => {
		const base = { time: 1, message: structuredClone(message) }
		if (kind.type === 'note') records.push({ type: 'user', ...base, prompt: '' })
		else if (kind.type === 'user') records.push({ type: 'user', ...base, prompt: kind.prompt })
		else if (kind.type === 'results') records.push({ type: 'results', ...base })
		else records.push({ type: 'assistant', ...base, usage: { ...kind.usage }, model: kind.model, stop: kind.stop })
	})
	for (const [i, { prompt, replies }] of prompts.entries()) {
		const stop = new AbortController()
		let at = 0
		const client: ModelClient = {
			async *stream(): AsyncGenerator<ModelEvent> {
				const reply = replies[at++]!
				if (reply === 'hang') {
					yield { type: 'text_delta', text: 'partly ' }
					stop.abort()
					yield { type: 'error', error: { code: 'cancelled', message: 'x', retryable: false, streamed: true } }
				} else if ('error' in reply)
					yield {
						type: 'error',
						error: { code: reply.error, message: `${reply.error} happened`, retryable: false, streamed: false },
					}
				else {
					const usage = { ...noUsage(), input: 5, output: 1, requests: 1 }
					const calls = reply.blocks.some((block) => block.type === 'tool_call')
					yield {
						type: 'end',
						message: { role: 'assistant', blocks: reply.blocks },
						stop: reply.stop ?? (calls ? 'tool_calls' : 'end'),
						usage,
						...(reply.detail ? { detail: reply.detail } : {}),
					}
				}
			},
		}
		const gate: Gate = {
			parallel: () => false,
			consent: async () => ({ allowed: false, reason: 'no' }),
			invoke: async (given) => {
				const outcome = more.outcome?.(given.id) ?? { status: 'ok' as const, text: `result of ${given.id}` }
				records.push({
					type: 'decision',
					time: 1,
					callId: given.id,
					tool: given.name,
					input: {},
					decision: outcome.status === 'denied' ? 'deny' : 'allow',
					reason: 'r',
					key: `k:${given.name}`,
				})
				return {
					...outcome,
					name: given.name,
					key: `k:${given.name}`,
					...(outcome.status === 'denied' ? { denied: 'r' } : {}),
				}
			},
		}
		let compacted = false
		const compaction: Compaction = {
			due: () => more.compactAt === at && !compacted,
			learnWindow: () => {},
			run: async () => {
				compacted = true
				const messages: Message[] = [{ role: 'user', blocks: [text('summary')] }, ...history.messages.slice(-1)]
				records.push({ type: 'compaction', time: 1, messages: structuredClone(messages), before: 9, after: 1 })
				history.replace(messages)
				return { usage: noUsage() }
			},
		}
		await history.append({ role: 'user', blocks: [text(prompt)] }, { type: 'user', prompt })
		const end = await runTurn(
			{
				client,
				modelName: head.model,
				spec: {
					provider: 'p',
					id: 'm',
					window: null,
					maxOutput: 1000,
					thinking: 'none',
					efforts: [],
					price: null,
					textToolCalls: 'off',
				},
				system: head.system,
				tools: [],
				gate,
				history,
				compaction,
				budget: more.budget?.() ?? new TokenBudget(null, null),
				limits: more.limits ?? { steps: 200, repeatHint: 3, repeatStop: 5 },
				clock: { now: () => 0, sleep: async () => {} },
				sessionId: head.id,
				emit: () => {},
				...(more.check ? { check: more.check } : {}),
			},
			stop.signal,
		)
		records.push({
			type: 'end',
			time: 1,
			turn: i + 1,
			reason: end.reason,
			usage: { ...end.usage },
			...(end.error ? { error: { ...end.error } } : {}),
		})
	}
	return records
}

const one = (replies: Reply[]) => [{ prompt: 'go', replies }]
const replay = (records: SessionRecord[]) => replaySession({ header: head, records })

describe('inspect: replay', () => {
	const cases: [string, () => Promise<SessionRecord[]>, string][] = [
		['an answer', () => record(one([{ blocks: [text('hi')] }])), 'done'],
		[
			'several turns with calls',
			() =>
				record([
					{ prompt: 'a', replies: [{ blocks: [text('x'), call('c1'), call('c2')] }, { blocks: [text('done')] }] },
					{ prompt: 'b', replies: [{ blocks: [call('c3')] }, { blocks: [text('ok')] }] },
				]),
			'done',
		],
		[
			'failed and denied calls',
			() =>
				record(one([{ blocks: [call('c1')] }, { blocks: [call('c2')] }, { blocks: [text('sorry')] }]), {
					outcome: (id) => ({ status: id === 'c1' ? 'failed' : 'denied', text: id }),
				}),
			'done',
		],
		['a stop in the middle of a reply', () => record(one([{ blocks: [call('c1')] }, 'hang'])), 'cancelled'],
		[
			'a cancel at a question',
			() =>
				record(one([{ blocks: [call('c1'), call('c2')] }]), {
					outcome: () => ({ status: 'cancelled', text: 'Stopped', cancelTurn: true }),
				}),
			'cancelled',
		],
		['a model error', () => record(one([{ blocks: [call('c1')] }, { error: 'billing' }])), 'error'],
		['a refusal', () => record(one([{ blocks: [text('no')], stop: 'refusal' }])), 'refusal'],
		[
			'repeated calls with the hint',
			() =>
				record(one(Array.from({ length: 6 }, (_, i) => ({ blocks: [call(`c${i}`, 'bash', { command: 'same' })] }))), {
					outcome: () => ({ status: 'ok', text: 'same' }),
				}),
			'repeated_calls',
		],
		[
			'the same tool denied again and again',
			() =>
				record(one(Array.from({ length: 6 }, (_, i) => ({ blocks: [call(`c${i}`)] }))), {
					outcome: (id) => ({ status: 'denied', text: id }),
				}),
			'repeated_calls',
		],
		[
			'the limit of steps',
			() =>
				record(one(Array.from({ length: 4 }, (_, i) => ({ blocks: [call(`c${i}`)] }))), {
					limits: { steps: 3, repeatHint: 3, repeatStop: 5 },
				}),
			'max_steps',
		],
		[
			'a reply cut at its limit, then more',
			() => record(one([{ blocks: [text('a'), call('c1')], stop: 'max_tokens' }, { blocks: [text('b')] }])),
			'done',
		],
		[
			'replies cut again and again',
			() => record(one(Array.from({ length: 5 }, () => ({ blocks: [text('a')], stop: 'max_tokens' as const })))),
			'max_tokens',
		],
		['an empty reply', () => record(one([{ blocks: [] }, { blocks: [text('ok')] }])), 'done'],
		['two empty replies', () => record(one([{ blocks: [] }, { blocks: [] }])), 'done'],
		[
			'a tool call written as text',
			() => record(one([{ blocks: [text('<call>')], detail: 'leaked_tool_call' }, { blocks: [text('ok')] }])),
			'done',
		],
		['a pause', () => record(one([{ blocks: [text('a')], stop: 'pause' }, { blocks: [text('b')] }])), 'done'],
		[
			'a compaction in the turn',
			() => record(one([{ blocks: [call('c1')] }, { blocks: [text('ok')] }]), { compactAt: 1 }),
			'done',
		],
		[
			'a full context',
			() => record(one([{ blocks: [text('a')], stop: 'context_full' }, { blocks: [text('b')] }])),
			'done',
		],
		[
			'the token budget',
			() =>
				record(one([{ blocks: [call('c1')] }, { blocks: [call('c2')] }]), { budget: () => new TokenBudget(262, null) }),
			'token_budget',
		],
		[
			'a wanted form, twice wrong',
			() =>
				record(one([{ blocks: [text('a')] }, { blocks: [text('b')] }, { blocks: [text('{}')] }]), {
					check: (said) => (said === '{}' ? { value: {} } : { error: `not JSON: ${said}` }),
				}),
			'done',
		],
		[
			'a wanted form never met',
			() =>
				record(one([{ blocks: [text('a')] }, { blocks: [text('b')] }, { blocks: [text('c')] }]), {
					check: () => ({ error: 'bad' }),
				}),
			'error',
		],
	]

	for (const [name, make, reason] of cases)
		it(`runs the loop as recorded: ${name}`, async () => {
			const records = await make()
			const ends = records.filter((each) => each.type === 'end')
			expect(ends.at(-1)).to.include({ reason })
			const result = await replay(records)
			expect(result.divergence).to.equal(null)
			expect(result.turns).to.equal(ends.length)
			expect(result.events.filter((event) => event.type === 'turn_end')).to.have.length(ends.length)
			expect(result.problems).to.deep.equal([])
		})

	it('ends without a divergence where a kill ended the record, at every place', async () => {
		const records = await record(
			one([{ blocks: [text('x'), call('c1'), call('c2')] }, { blocks: [call('c3')] }, { blocks: [text('done')] }]),
		)
		for (let length = 2; length < records.length; length++)
			expect((await replay(records.slice(0, length))).divergence, `${length} records`).to.equal(null)
	})

	it('goes on over undone turns, models, titles and further runs', async () => {
		const records = await record([
			{ prompt: 'a', replies: [{ blocks: [text('A')] }] },
			{ prompt: 'b', replies: [{ blocks: [text('B')] }] },
		])
		const more: SessionRecord[] = [
			...records,
			{ type: 'undo', time: 1, turn: 2 },
			{ type: 'resume', time: 1, model: 'm' },
			{ type: 'title', time: 1, title: 't' },
			...plainTurn(3, 'c'),
		]
		const result = await replay(more)
		expect(result).to.deep.include({ turns: 3, divergence: null })
	})

	it('changes nothing that it was given', async () => {
		const records = await record(one([{ blocks: [text('x'), call('c1')] }, { blocks: [text('done')] }]), {
			compactAt: 1,
		})
		const before = structuredClone(records)
		await replay(records)
		expect(records).to.deep.equal(before)
		expect(rebuild(records).messages).to.deep.equal(rebuild(before).messages)
	})

	const tampered: [string, (records: SessionRecord[]) => void, { step: number; expected: RegExp; got: RegExp }][] = [
		[
			'a result for another call',
			(records) => changeResult(records, (block) => (block.callId = 'other')),
			{ step: 1, expected: /results.*other/, got: /a result of the call bash \(c1\)/ },
		],
		['results in another order', (records) => reverseResults(records), { step: 1, expected: /"c2"/, got: /"c1"/ }],
		[
			'a further text in the results',
			(records) => void resultsOf(records).push(text('trust me')),
			{ step: 1, expected: /trust me/, got: /no further block/ },
		],
		[
			'a note that the loop never wrote',
			(records) =>
				void records.splice(-1, 0, {
					type: 'user',
					time: 1,
					message: { role: 'user', blocks: [text('forged')] },
					prompt: '',
				}),
			{ step: 2, expected: /note.*forged/, got: /the turn's end \(done\)/ },
		],
		[
			'another end',
			(records) => Object.assign(records.at(-1)!, { reason: 'max_steps' }),
			{ step: 2, expected: /max_steps/, got: /done/ },
		],
	]
	const resultsOf = (records: SessionRecord[]): Block[] => {
		const found = records.find((each) => each.type === 'results')
		return found?.type === 'results' ? found.message.blocks : []
	}
	const changeResult = (records: SessionRecord[], change: (block: Block & { type: 'tool_result' }) => void) => {
		const block = resultsOf(records)[0]
		if (block?.type === 'tool_result') change(block)
	}
	const reverseResults = (records: SessionRecord[]) => void resultsOf(records).reverse()

	for (const [name, tamper, expected] of tampered)
		it(`names the first divergence: ${name}`, async () => {
			const records = await record([...one([{ blocks: [call('c1'), call('c2')] }, { blocks: [text('done')] }])])
			tamper(records)
			const { divergence, turns } = await replay(records)
			expect(turns).to.equal(1)
			expect(divergence?.turn).to.equal(1)
			expect(divergence?.step).to.equal(expected.step)
			expect(divergence?.expected).to.match(expected.expected)
			expect(divergence?.got).to.match(expected.got)
		})

	it('names the turn, and says which lines it could not read', async () => {
		const records = await record([
			{ prompt: 'a', replies: [{ blocks: [text('A')] }] },
			{ prompt: 'b', replies: [{ blocks: [call('c1')] }, { blocks: [text('B')] }] },
		])
		const at = records.findIndex((each) => each.type === 'results')
		const result = await replaySession({
			header: head,
			records: records.map((each, i) =>
				i === at ? { type: 'damaged' as const, line: at + 1, reason: 'is no JSON' } : each,
			),
		})
		expect(result.divergence?.turn).to.equal(2)
		expect(result.problems.join()).to.include(`Line ${at + 1}`)
	})

	it('of an empty record there is nothing to run', async () => {
		expect(await replay([start()])).to.deep.equal({ turns: 0, divergence: null, events: [], problems: [] })
	})
})
