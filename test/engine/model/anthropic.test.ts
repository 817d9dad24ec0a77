// Anthropic's wire: what is sent, what is kept, what is mended.
import { expect } from 'chai'
import type { Message } from '../../../src/engine/types.ts'
import { anthropicEvent, anthropicStream, type SseServer, startSse } from '../../helpers/sse-server.ts'
import { all, callsOf, endOf, errorOf, type Made, make, only, request, textOf, user } from './kit.ts'

describe('anthropic', () => {
	let server: SseServer
	let made: Made
	const start = async (replies: Parameters<typeof startSse>[0], over: Parameters<typeof make>[2] = {}) => {
		server = await startSse(replies)
		made = await make('anthropic', server.url, over)
		return made.client
	}
	afterEach(async () => {
		made?.close()
		await server?.close()
	})
	const done = { body: anthropicStream({ text: 'ok' }) }
	const turn = (n: number, thinking = true): Message[] => [
		{
			role: 'assistant',
			blocks: [
				...(thinking
					? [
							{
								type: 'thinking' as const,
								text: 'hm',
								provider: 'anthropic',
								model: 'claude-opus-5-5',
								raw: { type: 'thinking', thinking: 'hm', signature: `S${n}` },
							},
						]
					: []),
				{ type: 'tool_call', id: `toolu_${n}`, name: 'read_file', input: { path: 'a' } },
			],
		},
		{ role: 'user', blocks: [{ type: 'tool_result', callId: `toolu_${n}`, status: 'ok', text: 'text' }] },
	]
	const strip = (value: unknown): unknown =>
		JSON.parse(JSON.stringify(value), (key, item) => (key === 'cache_control' ? undefined : item))

	it('sends the key as Bearer, the version, thinking summarised, and no sampling fields', async () => {
		const client = await start([done])
		await all(client, request({ effort: 'xhigh' }))
		const { path, headers, body } = server.requests[0]!
		expect(path).to.equal('/v1/messages')
		expect(headers.authorization).to.equal('Bearer sk-secret-key-123456')
		expect(headers['anthropic-version']).to.be.a('string')
		expect(body).to.deep.include({
			thinking: { type: 'adaptive', display: 'summarized' },
			output_config: { effort: 'xhigh' },
			stream: true,
			max_tokens: 1_000,
		})
		for (const key of ['temperature', 'top_p', 'top_k', 'tool_choice']) expect(body).to.not.have.property(key)
	})

	it('Z02 sends no authorization header at all without a key, and takes none from the environment', async () => {
		const before = { ...process.env }
		Object.assign(process.env, {
			ANTHROPIC_API_KEY: 'sk-env',
			ANTHROPIC_AUTH_TOKEN: 'tok',
			ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
			ANTHROPIC_CUSTOM_HEADERS: 'x-from-env: 1',
		})
		try {
			for (const apiKey of [null, '', '  ']) {
				const client = await start([done], { provider: { apiKey, headers: { 'X-Api-Key': 'own' } } })
				expect(textOf(endOf(await all(client)).message)).to.equal('ok')
				expect(server.requests[0]!.headers).to.not.have.property('authorization')
				expect(server.requests[0]!.headers).to.not.have.property('x-from-env')
				expect(server.requests[0]!.headers['x-api-key']).to.equal('own')
				made.close()
				await server.close()
			}
		} finally {
			for (const key of ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_BASE_URL', 'ANTHROPIC_CUSTOM_HEADERS'])
				if (before[key] === undefined) delete process.env[key]
				else process.env[key] = before[key]
		}
	})

	it('system and tools are the same bytes in every request, and earlier messages but for their cache marks', async () => {
		const client = await start([done])
		const history: Message[] = [user('go')]
		for (let n = 1; n <= 4; n++) {
			await all(client, request({ messages: [...history], effort: n % 2 ? 'high' : 'low' }))
			history.push(...turn(n))
		}
		const [first, ...rest] = server.requests.map((r) => r.body)
		for (const body of rest) {
			expect(JSON.stringify(body.system)).to.equal(JSON.stringify(first.system))
			expect(JSON.stringify(body.tools)).to.equal(JSON.stringify(first.tools))
		}
		server.requests.slice(1).forEach((r, i) => {
			const earlier = server.requests[i]!.body.messages
			expect(JSON.stringify(strip(r.body.messages.slice(0, earlier.length)))).to.equal(JSON.stringify(strip(earlier)))
		})
	})

	it('marks system, the last tool, the last message and the user message before it; never thinking; at most four', async () => {
		const client = await start([done])
		await all(client, request({ messages: [user('go'), ...turn(1), ...turn(2)] }))
		const { body } = server.requests[0]!
		expect(body.system[0].cache_control).to.deep.equal({ type: 'ephemeral' })
		expect(body.tools.map((t: any) => 'cache_control' in t)).to.deep.equal([false, false, true])
		const marks = body.messages.map((m: any) => m.content.map((b: any) => 'cache_control' in b))
		expect(marks).to.deep.equal([[false], [false, false], [true], [false, false], [true]])
		expect(server.requests[0]!.text.match(/cache_control/g)).to.have.length(4)
	})

	it('thinking comes back exactly as it was given, redacted and unknown blocks too', async () => {
		const redacted = { type: 'redacted_thinking', data: 'abc' }
		const odd = { type: 'strange_block', payload: { deep: [1, 2] } }
		const events = anthropicStream({
			thinking: 'hm',
			signature: 'SIG==',
			calls: [{ name: 'Read_File', input: { path: 'a' } }],
		})
		const extra = [
			{ type: 'content_block_start', index: 5, content_block: redacted },
			{ type: 'content_block_stop', index: 5 },
			{ type: 'content_block_start', index: 6, content_block: odd },
			{ type: 'content_block_stop', index: 6 },
		].map(anthropicEvent)
		const client = await start([{ body: [...events.slice(0, -2), ...extra, ...events.slice(-2)] }, done])
		const end = endOf(await all(client))
		expect(callsOf(end.message)[0]!.name, 'the gate sees the resolved name').to.equal('read_file')
		await all(
			client,
			request({
				messages: [
					user('hello'),
					end.message,
					{ role: 'user', blocks: [{ type: 'tool_result', callId: 'toolu_1', status: 'ok', text: 'x' }] },
				],
			}),
		)
		expect(server.requests[1]!.body.messages[1].content).to.deep.equal([
			{ type: 'thinking', thinking: 'hm', signature: 'SIG==' },
			{ type: 'tool_use', id: 'toolu_1', name: 'Read_File', input: { path: 'a' } },
			redacted,
			odd,
		])
	})

	it('S16 on the binding error it goes on once without thinking, and stays without for that history', async () => {
		const bound = {
			status: 400,
			body: JSON.stringify({
				type: 'error',
				error: {
					type: 'invalid_request_error',
					message:
						'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
				},
			}),
		}
		const client = await start((r) => (/"thinking":"hm"/.test(r.text) ? bound : done))
		const history = [user('go'), ...turn(1)]
		const events = await all(client, request({ messages: history }))
		expect(textOf(endOf(events).message)).to.equal('ok')
		expect(only(events, 'retry')).to.have.length(0)
		expect(server.requests).to.have.length(2)
		await all(client, request({ messages: [...history, ...turn(2)] }))
		expect(server.requests, 'the first turn stays stripped, the new thinking is tried').to.have.length(4)
		expect(server.requests[2]!.text).to.include('S2').and.not.include('"S1"')
	})

	it('S16 a binding error that stays is an error, not a loop', async () => {
		const client = await start([
			{
				status: 400,
				body: JSON.stringify({
					error: { type: 'invalid_request_error', message: 'Invalid signature in thinking block' },
				}),
			},
		])
		expect(errorOf(await all(client, request({ messages: [user('go'), ...turn(1)] }))).error).to.include({
			code: 'invalid_request',
			thinkingBinding: true,
		})
		expect(server.requests).to.have.length(2)
	})

	it('stripThinking sends none, and what was stripped once is not sent again', async () => {
		const client = await start([done])
		const history = [user('go'), ...turn(1)]
		await all(client, request({ messages: history, stripThinking: true }))
		await all(client, request({ messages: [...history, ...turn(2)] }))
		expect(server.requests[0]!.text).to.not.include('"S1"')
		expect(server.requests[1]!.text).to.include('"S2"').and.not.include('"S1"')
	})

	it('a 400 that names a message sends that message once more as plain words and remembers it', async () => {
		const bad = {
			status: 400,
			body: JSON.stringify({
				error: { type: 'invalid_request_error', message: 'messages.2.content.0: this item is not allowed' },
			}),
		}
		const client = await start((r) => (/poison/.test(r.text) ? bad : done))
		const history = [user('go'), ...turn(1)]
		;(history[2]!.blocks[0] as { text: string }).text = 'poison'
		const events = await all(client, request({ messages: history }))
		expect(textOf(endOf(events).message)).to.equal('ok')
		expect(only(events, 'notice')[0]!.text).to.match(/message 3/)
		await all(client, request({ messages: [...history, ...turn(2)] }))
		expect(server.requests).to.have.length(3)
	})

	it('a named message that stays bad is told with its place in the given history', async () => {
		const client = await start([
			{ status: 400, body: JSON.stringify({ error: { type: 'invalid_request_error', message: 'messages.2: no' } }) },
		])
		// The two first messages are one on the wire.
		const events = await all(client, request({ messages: [user('a'), user('b'), ...turn(1)] }))
		expect(errorOf(events).error).to.include({ badMessage: 3, code: 'invalid_request' })
		expect(server.requests).to.have.length(2)
	})

	it('a model with a thinking budget gets one only with an effort, and none inside a turn that began without', async () => {
		const client = await start([done], { model: 'claude-haiku-4-5' })
		await all(client, request())
		await all(client, request({ effort: 'high', maxOutput: 20_000 }))
		await all(client, request({ effort: 'high', maxOutput: 20_000, messages: [user('go'), ...turn(1, false)] }))
		const [plain, high, inside] = server.requests.map((r) => r.body)
		expect(plain).to.not.have.property('thinking')
		expect(high.thinking).to.deep.equal({ type: 'enabled', budget_tokens: 16_384 })
		expect(high).to.not.have.property('output_config')
		expect(inside).to.not.have.property('thinking')
	})

	it('learns from refusals: no adaptive thinking, a lower output limit', async () => {
		const client = await start((r) => {
			const no = (message: string) => ({
				status: 400,
				body: JSON.stringify({ error: { type: 'invalid_request_error', message } }),
			})
			if (r.body.thinking) return no('thinking: adaptive thinking is not supported on this model')
			if (r.body.max_tokens > 800)
				return no('max_tokens: 1000 > 800, which is the maximum allowed number of output tokens')
			return done
		})
		expect(textOf(endOf(await all(client)).message)).to.equal('ok')
		await all(client)
		expect(server.requests).to.have.length(4)
		expect(server.requests[3]!.body).to.include({ max_tokens: 800 }).and.not.have.property('thinking')
	})

	it('server tools are told and their blocks kept', async () => {
		const events = anthropicStream({ text: 'found' })
		const blocks = [
			{
				type: 'content_block_start',
				index: 7,
				content_block: { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
			},
			{ type: 'content_block_delta', index: 7, delta: { type: 'input_json_delta', partial_json: '{"query":"x"}' } },
			{ type: 'content_block_stop', index: 7 },
			{
				type: 'content_block_start',
				index: 8,
				content_block: { type: 'web_search_tool_result', tool_use_id: 's1', content: [{ url: 'u' }] },
			},
			{ type: 'content_block_stop', index: 8 },
		].map(anthropicEvent)
		const client = await start([{ body: [...events.slice(0, -2), ...blocks, ...events.slice(-2)] }])
		const got = await all(client)
		expect(only(got, 'server_tool')).to.deep.equal([
			{ type: 'server_tool', id: 's1', name: 'web_search', input: { query: 'x' } },
			{ type: 'server_tool', id: 's1', name: 'web_search', result: [{ url: 'u' }] },
		])
		expect(
			endOf(got)
				.message.blocks.slice(1)
				.map((b) => b.type),
		).to.deep.equal(['opaque', 'opaque'])
	})

	it('unknown events and deltas are ignored; the SDK writes nothing to the terminal', async () => {
		const events = anthropicStream({ text: 'ok' })
		const odd = [
			{ type: 'future_event', x: 1 },
			{ type: 'content_block_delta', index: 99, delta: { type: 'text_delta', text: 'lost' } },
		].map(anthropicEvent)
		const client = await start([{ body: [...events.slice(0, 3), ...odd, ...events.slice(3)] }])
		const { write } = process.stdout
		const writeError = process.stderr.write
		let wrote = ''
		process.env.ANTHROPIC_LOG = 'debug'
		process.stdout.write = ((text: string) => {
			wrote += text
			return true
		}) as typeof write
		process.stderr.write = process.stdout.write
		let end: ReturnType<typeof endOf>
		try {
			end = endOf(await all(client, request({ model: 'claude-sonnet-4-5' })))
		} finally {
			process.stdout.write = write
			process.stderr.write = writeError
			delete process.env.ANTHROPIC_LOG
		}
		expect(textOf(end.message)).to.equal('ok')
		expect(wrote).to.equal('')
	})
})
