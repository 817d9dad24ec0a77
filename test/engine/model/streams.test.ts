// Broken, silent and odd streams, on both wires.
import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import {
	type Answer,
	anthropicEvent,
	anthropicStream,
	openaiChunk,
	openaiStream,
	type Reply,
	type SseServer,
	startSse,
} from '../../helpers/sse-server.ts'
import { all, callsOf, endOf, errorOf, type Made, make, only, request, shown, textOf, user } from './kit.ts'

const wires = [
	{ api: 'anthropic' as const, stream: anthropicStream },
	{ api: 'openai' as const, stream: openaiStream },
]

describe('model streams', () => {
	let server: SseServer
	let made: Made
	const start = async (
		api: 'anthropic' | 'openai',
		replies: Parameters<typeof startSse>[0],
		over: Parameters<typeof make>[2] = {},
	) => {
		server = await startSse(replies)
		made = await make(api, server.url, over)
		return made.client
	}
	afterEach(async () => {
		made?.close()
		await server?.close()
	})

	for (const { api, stream } of wires) {
		describe(api, () => {
			const one = (answer: Answer): Reply[] => [{ body: stream(answer) }]

			it('streams text, thinking and usage into one message', async () => {
				const client = await start(api, one({ text: 'Hello world', deltas: 3, thinking: 'hm' }))
				const events = await all(client)
				const end = endOf(events)
				expect(shown(events)).to.equal('Hello world')
				expect(
					only(events, 'thinking_delta')
						.map((e) => e.text)
						.join(''),
				).to.equal('hm')
				expect(textOf(end.message)).to.equal('Hello world')
				expect(end.message.blocks[0]).to.include({ type: 'thinking', text: 'hm' })
				expect(end.stop).to.equal('end')
				expect(end.usage).to.include({ input: 10, output: 20, requests: 1 })
				expect(end.requestId).to.equal('req_1')
				expect(only(events, 'end')).to.have.length(1)
			})

			it('S01 a stall after the first event is noticed and asked again on a new connection', async () => {
				const client = await start(
					api,
					[{ body: [stream({ text: 'x' })[0]!, { stall: true }] }, { body: stream({ text: 'Done' }) }],
					{
						tuning: { idleMs: 80 },
					},
				)
				const events = await all(client)
				expect(shown(events)).to.equal('Done')
				expect(only(events, 'retry')).to.have.length(1)
				expect(only(events, 'retry')[0]).to.include({ void: false })
				expect(server.connections()).to.equal(2)
				await new Promise((later) => setTimeout(later, 30))
				expect(server.open(), 'the dead one is closed').to.equal(1)
			})

			it('many requests of one turn use kept connections and leave nothing on its signal', async () => {
				const client = await start(api, one({ text: 'ok' }))
				const { signal } = new AbortController()
				for (let i = 0; i < 20; i++) endOf(await all(client, request(), signal))
				// Two take turns: the next request may start before the last bytes of an answer are in.
				expect(server.connections()).to.be.at.most(2)
				await new Promise((later) => setTimeout(later, 30))
				expect(getEventListeners(signal, 'abort')).to.have.length(0)
			})

			it('an error whose body never ends is told all the same', async () => {
				const client = await start(api, [{ status: 401, body: ['{"error"', { cut: true }] }])
				expect(errorOf(await all(client)).error).to.include({ code: 'auth', status: 401 })
			})

			it('S01 silence before the headers ends with a clear error after the retries', async () => {
				const client = await start(api, () => ({ headersAfter: 'never' }), {
					tuning: { headerTimeoutMs: 50, retriesBefore: 2 },
				})
				const events = await all(client)
				expect(errorOf(events).error).to.include({ code: 'timeout', streamed: false })
				expect(only(events, 'retry')).to.have.length(2)
				expect(server.requests).to.have.length(3)
			})

			it('S01 a stream with steady deltas is never cut, however long it lasts', async () => {
				const parts = stream({ text: 'abcdefgh', deltas: 8 }).flatMap((part) => [part, { wait: 30 }])
				const client = await start(api, [{ body: parts }], { tuning: { idleMs: 150 } })
				const events = await all(client)
				expect(textOf(endOf(events).message)).to.equal('abcdefgh')
				expect(only(events, 'retry')).to.have.length(0)
			})

			it('S01 a quiet stream tells so before it is given up', async () => {
				const client = await start(
					api,
					[{ body: [stream({ text: 'x' })[0]!, { wait: 120 }, ...stream({ text: 'Done' }).slice(1)] }],
					{
						tuning: { noticeMs: 40 },
					},
				)
				const events = await all(client)
				expect(
					only(events, 'notice')
						.map((e) => e.text)
						.join(),
				).to.match(/no byte/)
				expect(shown(events)).to.equal('Done')
			})

			it('S03 a reset after text makes that text void; the second answer is the only one', async () => {
				const full = stream({ text: 'Hello world', deltas: 3 })
				const client = await start(api, [{ body: [...full.slice(0, 4), { reset: true }] }, { body: full }])
				const events = await all(client)
				expect(shown(events)).to.equal('Hello world')
				expect(textOf(endOf(events).message)).to.equal('Hello world')
				expect(only(events, 'retry')).to.have.length(1)
				expect(only(events, 'retry')[0]).to.include({ attempt: 1, of: 3, void: true })
			})

			it('S03 a body that ends cleanly but too early is broken, too, and its calls are not given', async () => {
				const full = stream({ text: 'a', calls: [{ name: 'read_file', input: { path: 'x' } }] })
				const client = await start(api, [{ body: full.slice(0, -4) }, { body: stream({ text: 'Done' }) }])
				const events = await all(client)
				expect(callsOf(endOf(events).message)).to.deep.equal([])
				expect(only(events, 'retry')).to.have.length(1)
			})

			it('S03 retries after text are bounded and then a clear error', async () => {
				const client = await start(
					api,
					() => ({ body: [...stream({ text: 'Hello', deltas: 2 }).slice(0, 3), { cut: true }] }),
					{
						tuning: { retriesMid: 2 },
					},
				)
				const events = await all(client)
				expect(only(events, 'retry').map((e) => e.attempt)).to.deep.equal([1, 2])
				expect(errorOf(events).error).to.include({ code: 'network', streamed: true })
				expect(server.requests).to.have.length(3)
			})

			it('S04 the same events whatever the split, with pings, CRLF and a BOM', async () => {
				const plain = stream({
					text: 'Grüße 🌍 ok',
					deltas: 3,
					calls: [{ name: 'read_file', input: { path: 'ä' } }],
				}).join('')
				const noisy = Buffer.from(
					`\ufeff: ping\n\n${plain.replaceAll('\n\n', '\n\n: ping\n\n')}`.replaceAll('\n', '\r\n'),
				)
				const bytes = Array.from(noisy, (_, i) => noisy.subarray(i, i + 1))
				const client = await start(api, [
					{ body: plain },
					{ body: bytes },
					{ body: [noisy.subarray(0, 301), noisy.subarray(301)] },
				])
				const ends = []
				for (let i = 0; i < 3; i++) {
					const { requestId: _, ...end } = endOf(await all(client))
					ends.push(end)
				}
				expect(ends[1]).to.deep.equal(ends[0])
				expect(ends[2]).to.deep.equal(ends[0])
				expect(textOf(ends[0]!.message)).to.equal('Grüße 🌍 ok')
				expect(only([...(await all(client))], 'retry')).to.have.length(0)
			})

			it('S04 pings keep a stream alive past the idle limit, and a notice says that nothing else comes', async () => {
				const ping = api === 'anthropic' ? anthropicEvent({ type: 'ping' }) : ': ping\n\n'
				const pings = Array.from({ length: 10 }, () => [ping, { wait: 25 }]).flat()
				const client = await start(
					api,
					[{ body: [stream({ text: 'x' })[0]!, ...pings, ...stream({ text: 'Done' }).slice(1)] }],
					{
						tuning: { idleMs: 120, noticeMs: 100 },
					},
				)
				const events = await all(client)
				expect(shown(events)).to.equal('Done')
				expect(only(events, 'retry')).to.have.length(0)
				expect(
					only(events, 'notice')
						.map((e) => e.text)
						.join(),
				).to.match(/alive but has sent no content/)
			})

			it('S06 an overload told inside a 200 stream is asked again like a 529', async () => {
				const overload =
					api === 'anthropic'
						? anthropicEvent({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
						: 'data: {"error":{"code":503,"message":"Overloaded"}}\n\n'
				const client = await start(api, [
					{ body: overload },
					{ status: 529, body: '{"error":{"type":"overloaded_error","message":"Overloaded"}}' },
					{ body: stream({ text: 'Done' }) },
				])
				const events = await all(client)
				expect(shown(events)).to.equal('Done')
				expect(
					only(events, 'retry')
						.map((e) => e.reason)
						.every((reason) => /overloaded/.test(reason)),
				).to.equal(true)
				expect(only(events, 'retry')).to.have.length(2)
			})

			it('S06 after text it makes the text void; a final one has the code', async () => {
				const overload =
					api === 'anthropic'
						? anthropicEvent({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
						: 'data: {"error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
				const client = await start(api, [{ body: [...stream({ text: 'Hel' }).slice(0, 3), overload] }], {
					tuning: { retriesMid: 1 },
				})
				const events = await all(client)
				expect(only(events, 'retry')[0]).to.include({ void: true })
				expect(errorOf(events).error).to.include({ code: 'overloaded', streamed: true })
			})

			it('S07 a call without arguments runs with {} and goes back as {}', async () => {
				const client = await start(api, one({ calls: [{ name: 'git_status', json: '', id: 'a1' }] }))
				const end = endOf(await all(client))
				expect(callsOf(end.message)).to.deep.equal([{ type: 'tool_call', id: 'a1', name: 'git_status', input: {} }])
				await all(
					client,
					request({
						messages: [
							user('go'),
							end.message,
							{ role: 'user', blocks: [{ type: 'tool_result', callId: 'a1', status: 'ok', text: 'clean' }] },
						],
					}),
				)
				const sent = server.requests[1]!.body.messages
				if (api === 'anthropic') expect(sent[1].content[0].input).to.deep.equal({})
				else expect(sent[2].tool_calls[0].function.arguments).to.equal('{}')
			})

			it('S09 a call cut by the output limit is no call to run', async () => {
				const cut = { name: 'write_file', json: '{"path":"big.py","content":"line1\\nline2' }
				const client = await start(api, one({ calls: [cut], stop: api === 'anthropic' ? 'max_tokens' : 'length' }))
				const end = endOf(await all(client))
				expect(end.stop).to.equal('max_tokens')
				expect(callsOf(end.message)[0]).to.deep.include({ input: {}, badInput: cut.json })
			})

			it('S09 a call cut before its first argument is none either, and a whole one before it stays', async () => {
				const calls = [
					{ name: 'read_file', input: { path: 'a' } },
					{ name: 'write_file', json: '' },
				]
				const client = await start(api, one({ calls, stop: api === 'anthropic' ? 'max_tokens' : 'length' }))
				const [first, second] = callsOf(endOf(await all(client)).message)
				expect(first).to.deep.include({ input: { path: 'a' } })
				expect(first).to.not.have.property('badInput')
				expect(second!.badInput).to.be.a('string').and.not.equal('')
			})

			it('S10 the tool-use stop with cut arguments at the output limit counts as the limit', async () => {
				const usage = api === 'anthropic' ? { output_tokens: 1_000 } : { completion_tokens: 1_000 }
				const client = await start(api, one({ calls: [{ name: 'write_file', json: '{"path":"x","con' }], usage }))
				expect(endOf(await all(client)).stop).to.equal('max_tokens')
			})

			it('S10 cut arguments below the limit are a bad call, not the limit', async () => {
				const client = await start(api, one({ calls: [{ name: 'write_file', json: '{"path":"x","con' }] }))
				const end = endOf(await all(client))
				expect(end.stop).to.equal('tool_calls')
				expect(callsOf(end.message)[0]!.badInput).to.equal('{"path":"x","con')
			})

			it('S13 an id that the conversation has already is renamed when it comes and paired by place when it goes', async () => {
				const client = await start(api, one({ calls: [{ id: 'call_1', name: 'git_status', json: '' }] }))
				const first = endOf(await all(client))
				const history = [
					user('one'),
					first.message,
					{
						role: 'user' as const,
						blocks: [{ type: 'tool_result' as const, callId: 'call_1', status: 'ok' as const, text: 'done' }],
					},
				]
				const second = endOf(await all(client, request({ messages: history })))
				expect(callsOf(second.message)[0]!.id).to.equal('call_1_2')
				// Killed before the result, with the id as an older session may hold it.
				const old = {
					...second.message,
					blocks: [{ type: 'tool_call' as const, id: 'call_1', name: 'git_status', input: {} }],
				}
				await all(client, request({ messages: [...history, old, user('go on')] }))
				const sent = server.requests[2]!.body.messages
				if (api === 'anthropic') {
					expect(sent[3].content[0].id).to.equal('call_1_2')
					expect(sent[4].content[0]).to.include({ type: 'tool_result', tool_use_id: 'call_1_2', is_error: true })
				} else {
					const results = sent.filter((m: any) => m.role === 'tool')
					expect(results.map((m: any) => m.tool_call_id)).to.deep.equal(['call_1', 'call_1_2'])
				}
			})

			it('S17 blank text beside a call is left out, and an answer of nothing says so', async () => {
				const client = await start(api, [
					{ body: stream({ text: '\n\n', calls: [{ name: 'git_status', json: '' }] }) },
					{ body: stream({ text: '' }) },
					{ body: stream({ text: '  \n' }) },
				])
				const first = endOf(await all(client))
				expect(first.message.blocks.map((block) => block.type)).to.deep.equal(['tool_call'])
				for (let i = 0; i < 2; i++) {
					const end = endOf(await all(client))
					expect(end.message.blocks).to.deep.equal([])
					expect(end.detail).to.equal('empty_reply')
				}
			})

			it('S19 a prompt that is too long is an overflow, told once with the words and the window', async () => {
				const client = await start(api, [
					{
						status: 400,
						body: '{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
					},
				])
				const events = await all(client)
				expect(errorOf(events).error).to.include({ code: 'overflow', window: 200_000, retryable: false, status: 400 })
				expect(errorOf(events).error.message).to.include('210000 tokens')
				expect(server.requests).to.have.length(1)
			})

			it('S19 a 413 is one, too; a rate limit that speaks of tokens is none', async () => {
				const client = await start(
					api,
					[
						{
							status: 413,
							body: '{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
						},
						{ status: 429, body: '{"error":{"message":"Rate limit: too many tokens per minute"}}' },
					],
					{ tuning: { retriesBefore: 1 } },
				)
				expect(errorOf(await all(client)).error.code).to.equal('overflow')
				const events = await all(client)
				expect(errorOf(events).error.code).to.equal('rate_limit')
				expect(only(events, 'retry')).to.have.length(1)
			})

			it('S20 lone surrogates and NUL never reach the wire', async () => {
				const client = await start(api, one({ text: 'ok' }))
				const half = '🌍'.slice(0, 1)
				await all(
					client,
					request({
						messages: [
							user(`a${half}b\0c`),
							{
								role: 'assistant',
								blocks: [
									{ type: 'tool_call', id: 't1', name: 'read_file', input: { path: `x${half}`, deep: [{ k: '\0' }] } },
								],
							},
							{ role: 'user', blocks: [{ type: 'tool_result', callId: 't1', status: 'ok', text: `cut ${half}` }] },
						],
					}),
				)
				const { text } = server.requests[0]!
				expect(text).to.not.match(/\\ud83c(?!\\u)/i)
				expect(text).to.not.include('\\u0000')
				expect(text.isWellFormed()).to.equal(true)
				expect(text).to.include('\ufffd')
			})

			it('an abort in the middle ends with cancelled, keeps the usage told so far and closes the connection', async () => {
				const client = await start(api, [
					{ body: [...stream({ text: 'Hello world', deltas: 3 }).slice(0, 4), { stall: true }] },
				])
				const stop = new AbortController()
				const events = []
				for await (const event of client.stream(request(), stop.signal)) {
					events.push(event)
					if (event.type === 'text_delta') stop.abort()
				}
				const error = errorOf(events)
				expect(error.error).to.include({ code: 'cancelled', streamed: true, retryable: false })
				if (api === 'anthropic') expect(error.usage).to.include({ input: 10, requests: 1 })
				expect(server.requests).to.have.length(1)
			})

			it('an abort while waiting for the headers, and one before the start, end at once', async () => {
				const client = await start(api, () => ({ headersAfter: 'never' }))
				const stop = new AbortController()
				setTimeout(() => stop.abort(), 30)
				expect(errorOf(await all(client, request(), stop.signal)).error.code).to.equal('cancelled')
				expect(errorOf(await all(client, request(), AbortSignal.abort())).error.code).to.equal('cancelled')
			})
		})
	}

	it('S11 fragments of parallel calls go by index, whatever their order', async () => {
		const calls = (...tool_calls: object[]) => openaiChunk({ delta: { tool_calls }, finish_reason: null })
		const client = await start('openai', [
			{
				body: [
					calls({ index: 0, id: 'a', function: { name: 'read_file', arguments: '{"pa' } }),
					calls({ index: 1, id: 'b', function: { name: 'read_file', arguments: '{"path":' } }),
					calls({ index: 0, function: { arguments: 'th":"x"}' } }, { index: 1, function: { arguments: '"y"}' } }),
					openaiChunk({ delta: {}, finish_reason: 'tool_calls' }),
				],
			},
		])
		const found = callsOf(endOf(await all(client)).message)
		expect(found.map((call) => [call.id, call.input])).to.deep.equal([
			['a', { path: 'x' }],
			['b', { path: 'y' }],
		])
	})

	it('S11 calls with no index, and calls that all say index 0, stay apart', async () => {
		const call = (index: number | undefined, id: string, path: string) =>
			openaiChunk({
				delta: { tool_calls: [{ index, id, function: { name: 'read_file', arguments: JSON.stringify({ path }) } }] },
				finish_reason: null,
			})
		for (const index of [undefined, 0]) {
			const client = await start('openai', [
				{ body: [call(index, 'a', 'x'), call(index, 'b', 'y'), openaiChunk({ delta: {}, finish_reason: 'stop' })] },
			])
			const end = endOf(await all(client))
			expect(end.stop).to.equal('tool_calls')
			expect(callsOf(end.message).map((each) => each.input.path)).to.deep.equal(['x', 'y'])
			made.close()
			await server.close()
		}
	})

	it('S11 blocks of Anthropic that interleave stay apart', async () => {
		const client = await start('anthropic', [
			{
				body: [
					anthropicStream({})[0]!,
					...[
						{
							type: 'content_block_start',
							index: 0,
							content_block: { type: 'tool_use', id: 'a', name: 'read_file', input: {} },
						},
						{
							type: 'content_block_start',
							index: 1,
							content_block: { type: 'tool_use', id: 'b', name: 'read_file', input: {} },
						},
						{ type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"path":' } },
						{
							type: 'content_block_delta',
							index: 0,
							delta: { type: 'input_json_delta', partial_json: '{"path":"x"}' },
						},
						{ type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '"y"}' } },
						{ type: 'content_block_stop', index: 0 },
						{ type: 'content_block_stop', index: 1 },
						{ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } },
						{ type: 'message_stop' },
					].map(anthropicEvent),
				],
			},
		])
		expect(callsOf(endOf(await all(client)).message).map((each) => each.input.path)).to.deep.equal(['x', 'y'])
	})

	it('S18 each stop reason of Anthropic has its rule; an unknown one ends with a notice', async () => {
		const rules: [string | null, string, boolean][] = [
			['pause_turn', 'pause', false],
			['refusal', 'refusal', false],
			['model_context_window_exceeded', 'context_full', false],
			['stop_sequence', 'stop_sequence', false],
			[null, 'end', true],
			['new_reason', 'end', true],
		]
		const client = await start('anthropic', (_, n) => ({ body: anthropicStream({ text: 'x', stop: rules[n]![0] }) }))
		for (const [, stop, notice] of rules) {
			const events = await all(client)
			expect(endOf(events).stop).to.equal(stop)
			expect(only(events, 'notice').length > 0).to.equal(notice)
		}
	})

	it('S18 each finish reason of Chat Completions has its rule; calls with "stop" still run, refused ones do not', async () => {
		const rules: [string, string, boolean][] = [
			['content_filter', 'refusal', false],
			['function_call', 'end', false],
			['eos', 'end', false],
			['length', 'max_tokens', false],
			['brand_new', 'end', true],
		]
		const client = await start('openai', (_, n) =>
			rules[n]
				? { body: openaiStream({ text: 'x', stop: rules[n][0] }) }
				: { body: openaiStream({ calls: [{ name: 'git_status' }], stop: n === 5 ? 'stop' : 'content_filter' }) },
		)
		for (const [, stop, notice] of rules) {
			const events = await all(client)
			expect(endOf(events).stop).to.equal(stop)
			expect(only(events, 'notice').length > 0).to.equal(notice)
		}
		const called = endOf(await all(client))
		expect([called.stop, callsOf(called.message).length]).to.deep.equal(['tool_calls', 1])
		const refused = endOf(await all(client))
		expect([refused.stop, callsOf(refused.message).length]).to.deep.equal(['refusal', 0])
	})

	it('S18 a missing [DONE] after a finish reason is a whole answer, also when the line then breaks', async () => {
		const body = openaiStream({ text: 'Done' }).slice(0, -1)
		const client = await start('openai', [{ body }, { body: [...body, { reset: true }] }])
		for (let i = 0; i < 2; i++) {
			const events = await all(client)
			expect(textOf(endOf(events).message)).to.equal('Done')
			expect(only(events, 'retry')).to.have.length(0)
		}
	})
})
