// Chat Completions servers with habits of their own: local ones and hosted ones.
import { expect } from 'chai'
import type { Message } from '../../../src/engine/types.ts'
import { openaiChunk, openaiStream, type Reply, type SseServer, startSse } from '../../helpers/sse-server.ts'
import { all, callsOf, endOf, errorOf, type Made, make, only, request, shown, textOf, tools, user } from './kit.ts'

const done: Reply = { body: openaiStream({ text: 'ok' }) }
const no = (message: string, status = 400, more: object = {}): Reply => ({
	status,
	body: JSON.stringify({ error: { message, type: 'invalid_request_error', ...more } }),
})

describe('local models', () => {
	let server: SseServer
	let made: Made
	const start = async (replies: Parameters<typeof startSse>[0], over: Parameters<typeof make>[2] = {}) => {
		server = await startSse(replies)
		made = await make('openai', server.url, over)
		return made.client
	}
	afterEach(async () => {
		made?.close()
		await server?.close()
	})
	const two = (message: Message): Message[] => [
		user('go'),
		message,
		{
			role: 'user',
			blocks: callsOf(message).map((call) => ({ type: 'tool_result', callId: call.id, status: 'ok', text: 'r' })),
		},
	]

	const leak =
		'<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhi\n</parameter>\n</function>\n</tool_call>'

	it('L01 a reply that is only a call as text runs; none of its markup is shown', async () => {
		const client = await start([{ body: openaiStream({ text: leak, deltas: 20 }) }])
		const events = await all(client)
		const end = endOf(events)
		expect(end.stop).to.equal('tool_calls')
		expect(callsOf(end.message)[0]).to.deep.include({ name: 'write_file', input: { path: 'a.txt', content: 'hi' } })
		expect(end.message.blocks).to.have.length(1)
		expect(shown(events)).to.equal('')
	})

	it('L01 after words it does not run, is not shown as an answer and is told', async () => {
		for (const textToolCalls of ['whole', 'off'] as const) {
			const client = await start([{ body: openaiStream({ text: `I will create it.\n${leak}`, deltas: 30 }) }], {
				spec: { textToolCalls },
			})
			const events = await all(client)
			const end = endOf(events)
			expect(end).to.include({ stop: 'end', detail: 'leaked_tool_call' })
			expect(callsOf(end.message)).to.deep.equal([])
			expect(shown(events)).to.equal('I will create it.\n')
			expect(only(events, 'notice')[0]!.text).to.match(/as text; it was not run/)
			made.close()
			await server.close()
		}
	})

	it('L01 with "lines" it runs and the words around it are the text', async () => {
		const client = await start(
			[{ body: openaiStream({ text: `I will create it.\n${leak}\nThen more.`, deltas: 30 }) }],
			{ spec: { textToolCalls: 'lines' } },
		)
		const events = await all(client)
		const end = endOf(events)
		expect([end.stop, callsOf(end.message).length]).to.deep.equal(['tool_calls', 1])
		expect(textOf(end.message)).to.include('I will create it.').and.include('Then more.').and.not.include('function')
		expect(shown(events)).to.not.include('<')
	})

	it('L01 text that only looked like a call is shown in full at the end', async () => {
		const text = 'The <tool_call> tag begins a call, {"name": "x"} ends it.'
		const client = await start([{ body: openaiStream({ text, deltas: 9 }) }])
		const events = await all(client)
		expect(shown(events)).to.equal(text)
		expect(textOf(endOf(events).message)).to.equal(text)
		expect(endOf(events)).to.not.have.property('detail')
	})

	for (const [name, field, host] of [
		['learned from the 400', 'reasoning_content', {}],
		['known by the quirk', 'reasoning_content', { quirks: { reasoning: 'reasoning_content' as const } }],
	] as const)
		it(`L04 reasoning_content goes back with tool calls where it must (${name})`, async () => {
			const client = await start(
				(r) => {
					const assistant = r.body.messages.find((m: any) => m.role === 'assistant')
					if (assistant && assistant[field] === undefined)
						return no(`The ${field} in the thinking mode must be passed back to the API.`)
					return { body: openaiStream({ thinking: 'because', calls: [{ name: 'git_status' }] }) }
				},
				{ provider: host },
			)
			const first = endOf(await all(client))
			const second = endOf(await all(client, request({ messages: two(first.message) })))
			expect(second.stop).to.equal('tool_calls')
			const last = server.requests[server.requests.length - 1]!.body.messages[2]
			expect(last.reasoning_content).to.equal('because')
			expect(server.requests).to.have.length(name.startsWith('known') ? 2 : 3)
		})

	it('L04 a server that does not know the field never gets it, or gets it once', async () => {
		const client = await start(
			(r) =>
				/reasoning_content/.test(r.text)
					? no('Unknown field: reasoning_content', 422)
					: { body: openaiStream({ thinking: 'because', calls: [{ name: 'git_status' }] }) },
			{
				provider: { quirks: { reasoning: 'reasoning_content' } },
			},
		)
		const first = endOf(await all(client))
		await all(client, request({ messages: two(first.message) }))
		await all(client, request({ messages: two(first.message) }))
		expect(server.requests.filter((r) => /reasoning_content/.test(r.text))).to.have.length(1)
		expect(server.requests).to.have.length(4)
	})

	it('L05 one system message first, users merged, results before words, content never missing', async () => {
		const client = await start([done])
		await all(
			client,
			request({
				messages: [
					{ role: 'assistant', blocks: [{ type: 'text', text: 'left over' }] },
					user('a'),
					user('b'),
					{ role: 'assistant', blocks: [{ type: 'tool_call', id: 'x', name: 'git_status', input: {} }] },
					{
						role: 'user',
						blocks: [
							{ type: 'text', text: 'note' },
							{ type: 'tool_result', callId: 'x', status: 'ok', text: 'r' },
						],
					},
					user('c'),
				],
			}),
		)
		const sent = server.requests[0]!.body.messages
		expect(sent.map((m: any) => m.role)).to.deep.equal([
			'system',
			'user',
			'assistant',
			'user',
			'assistant',
			'tool',
			'user',
		])
		expect(sent[3].content).to.equal('a\n\nb')
		expect(sent[4].content).to.equal('')
		expect(sent[6].content).to.equal('note\n\nc')
	})

	it('L05 learns what a template refuses: developer, empty content, stream_options, max_tokens', async () => {
		const client = await start(
			(r) => {
				const { body } = r
				if (body.messages[0].role === 'developer')
					return no("Unexpected role 'developer': only user, assistant and tool roles are supported")
				if (body.messages.some((m: any) => m.content === '')) return no('assistant content cannot be empty')
				if (body.stream_options) return no('unknown field: stream_options')
				if (body.max_tokens)
					return no(
						"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
					)
				return done
			},
			{ provider: { quirks: { systemRole: 'developer' } } },
		)
		const message: Message = {
			role: 'assistant',
			blocks: [{ type: 'tool_call', id: 'x', name: 'git_status', input: {} }],
		}
		expect(textOf(endOf(await all(client, request({ messages: two(message) }))).message)).to.equal('ok')
		const last = server.requests[server.requests.length - 1]!.body
		expect(last.messages[0].role).to.equal('system')
		expect(last.messages[2].content).to.equal(null)
		expect(last).to.include({ max_completion_tokens: 1_000 }).and.not.have.any.keys('stream_options', 'max_tokens')
		const before = server.requests.length
		await all(client)
		expect(server.requests, 'each lesson once').to.have.length(before + 1)
	})

	it('L06 a server that reads only part of the prompt is noticed, once, with the window it has', async () => {
		const long = request({ messages: [user('word '.repeat(12_000))] })
		const client = await start([
			{
				body: openaiStream({ text: 'hm', usage: { prompt_tokens: 2_051, completion_tokens: 10, total_tokens: 4_096 } }),
			},
		])
		const first = await all(client, long)
		expect(only(first, 'notice')[0]!.text).to.match(/read only ~2k of ~15k tokens.*num_ctx.*OLLAMA_CONTEXT_LENGTH/)
		expect(endOf(first).detail).to.equal('context_cut:4096')
		const second = await all(client, long)
		expect(only(second, 'notice')).to.have.length(0)
		expect(endOf(second).detail).to.equal('context_cut:4096')
	})

	it('L06 a whole reading, a short prompt and a cached count give no notice', async () => {
		for (const [words, prompt_tokens] of [
			[12_000, 13_000],
			[100, 120],
			[12_000, 300],
		] as const) {
			const client = await start([{ body: openaiStream({ text: 'hm', usage: { prompt_tokens } }) }])
			const events = await all(client, request({ messages: [user('word '.repeat(words))] }))
			expect(only(events, 'notice')).to.have.length(0)
			made.close()
			await server.close()
		}
	})

	for (const [text, status] of [
		['no user query found in messages', 500],
		['the request exceeds the available context size (4096 tokens), try increasing it', 400],
		["This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", 400],
		[
			'Trying to keep the first 9000 tokens when context the overflows. The number of tokens to keep from the initial prompt is greater than the context length',
			400,
		],
	] as const)
		it(`L07 "${text.slice(0, 40)}…" is an overflow and not asked again`, async () => {
			const client = await start([no(text, status)])
			const events = await all(client)
			expect(errorOf(events).error.code).to.equal('overflow')
			expect(errorOf(events).error.hint).to.match(/compact/)
			expect(server.requests).to.have.length(1)
			if (/4096/.test(text)) expect(errorOf(events).error.window).to.equal(4_096)
		})

	it('L09 arguments as an object, encoded twice, null or with numbers in quotes are read; history goes as JSON text', async () => {
		const given: unknown[] = [{ path: 'a' }, '"{\\"path\\":\\"a\\"}"', '{"path":"a"}']
		const client = await start((_, n) => {
			const args = n < given.length ? given[n] : n === given.length ? null : '{"path":"7","limit":"10"}'
			return {
				body: [
					openaiChunk({
						delta: { tool_calls: [{ index: 0, id: 'x', function: { name: 'read_file', arguments: args } }] },
						finish_reason: null,
					}),
					openaiChunk({ delta: {}, finish_reason: 'tool_calls' }),
				],
			}
		})
		for (const _ of given) expect(callsOf(endOf(await all(client)).message)[0]!.input).to.deep.equal({ path: 'a' })
		expect(callsOf(endOf(await all(client)).message)[0]!.input).to.deep.equal({})
		const last = endOf(await all(client))
		expect(callsOf(last.message)[0]!.input, 'only what the schema says is a number').to.deep.equal({
			path: '7',
			limit: 10,
		})
		await all(client, request({ messages: two(last.message) }))
		expect(server.requests[5]!.body.messages[2].tool_calls[0].function.arguments).to.equal('{"path":"7","limit":10}')
	})

	it('L09 what is no object is bad input, kept as it came', async () => {
		for (const json of ['[1,2]', '42', '"text"', '{"a":', '{"path":"a"}{"path":"b"}']) {
			const client = await start([{ body: openaiStream({ calls: [{ name: 'read_file', json }] }) }])
			expect(callsOf(endOf(await all(client)).message)[0], json).to.deep.include({ input: {}, badInput: json })
			made.close()
			await server.close()
		}
	})

	it('L10 variants of a name become the one tool they mean; ambiguous or unknown ones stay', async () => {
		const names: [string, string][] = [
			['Read_File', 'read_file'],
			['functions.read_file', 'read_file'],
			['read_file ', 'read_file'],
			['default_api:read_file', 'read_file'],
			['readFile', 'read_file'],
			['delete_all', 'delete_all'],
			['GIT_STATUS', 'GIT_STATUS'],
		]
		const client = await start((_, n) => ({ body: openaiStream({ calls: [{ name: names[n]![0], input: {} }] }) }))
		for (const [given, name] of names) {
			const two = given === 'GIT_STATUS' ? [...tools, { ...tools[2]!, name: 'gitStatus' }] : tools
			const events = await all(client, request({ tools: two }))
			expect(callsOf(endOf(events).message)[0]!.name).to.equal(name)
			expect(only(events, 'call_delta')[0]!.name).to.equal(name)
		}
	})

	it('Z02 sends no authorization header without a key', async () => {
		for (const apiKey of [null, '', ' \n']) {
			const client = await start([done], { provider: { apiKey } })
			await all(client)
			expect(server.requests[0]!.headers).to.not.have.property('authorization')
			made.close()
			await server.close()
		}
	})

	it('OpenRouter: comments, errors after 200, details that go back unchanged, its own cost', async () => {
		const details = [
			{ type: 'reasoning.text', index: 0, text: 'be' },
			{ type: 'reasoning.text', index: 0, text: 'cause', signature: 'S' },
			{ type: 'reasoning.encrypted', index: 1, data: 'xyz' },
		]
		const client = await start(
			[
				{
					body: ': OPENROUTER PROCESSING\n\ndata: {"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream died"}}}\n\n',
				},
				{
					body: [
						...details.map((d) =>
							openaiChunk({ delta: { reasoning: d.text ?? null, reasoning_details: [d] }, finish_reason: null }),
						),
						openaiChunk({
							delta: { tool_calls: [{ index: 0, id: 'x', function: { name: 'git_status', arguments: '{}' } }] },
							finish_reason: 'tool_calls',
						}),
						openaiChunk(null, { usage: { prompt_tokens: 5, completion_tokens: 3, cost: 0.0012 } }),
					],
				},
				done,
			],
			{ provider: { quirks: { reasoning: 'reasoning_details', effort: 'reasoning' } } },
		)
		const events = await all(client, request({ effort: 'high' }))
		expect(only(events, 'retry')[0]!.reason).to.include('upstream died')
		expect(
			only(events, 'thinking_delta')
				.map((e) => e.text)
				.join(''),
		).to.equal('because')
		const end = endOf(events)
		expect(end.usage.cost).to.equal(0.0012)
		await all(client, request({ messages: two(end.message), effort: 'high' }))
		expect(server.requests[2]!.body.reasoning).to.deep.equal({ effort: 'high' })
		expect(server.requests[2]!.body.messages[2].reasoning_details).to.deep.equal([
			{ type: 'reasoning.text', index: 0, text: 'because', signature: 'S' },
			{ type: 'reasoning.encrypted', index: 1, data: 'xyz' },
		])
	})

	it('Gemini: the signature beside a call is echoed, "stop" with calls runs', async () => {
		const extra_content = { google: { thought_signature: 'SIG' } }
		const client = await start([
			{
				body: [
					openaiChunk({
						delta: {
							tool_calls: [
								{ id: 'x', type: 'function', extra_content, function: { name: 'git_status', arguments: '{}' } },
							],
						},
						finish_reason: 'stop',
					}),
				],
			},
			done,
		])
		const end = endOf(await all(client))
		expect(end.stop).to.equal('tool_calls')
		await all(client, request({ messages: two(end.message) }))
		expect(server.requests[1]!.body.messages[2].tool_calls[0].extra_content).to.deep.equal(extra_content)
	})

	it('Groq: a call its server could not read is read from the failed text, else asked again', async () => {
		const failed = (text: string) =>
			no('Failed to call a function.', 400, { code: 'tool_use_failed', failed_generation: text })
		const client = await start([failed('<function=read_file{"path":"a"}</function>'), failed('nonsense'), done])
		const first = endOf(await all(client))
		expect(callsOf(first.message)[0]).to.deep.include({ name: 'read_file', input: { path: 'a' } })
		const events = await all(client)
		expect(only(events, 'retry')).to.have.length(1)
		expect(shown(events)).to.equal('ok')
	})

	it('Mistral: thinking as content parts, ids of nine letters', async () => {
		const client = await start(
			[
				{
					body: [
						openaiChunk({
							delta: {
								content: [
									{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
									{ type: 'text', text: 'Hi' },
								],
							},
							finish_reason: null,
						}),
						openaiChunk({ delta: {}, finish_reason: 'stop' }),
					],
				},
			],
			{ model: 'mistral-small' },
		)
		const message: Message = {
			role: 'assistant',
			blocks: [{ type: 'tool_call', id: 'toolu_01LONG', name: 'git_status', input: {} }],
		}
		const events = await all(client, request({ messages: two(message) }))
		expect(textOf(endOf(events).message)).to.equal('Hi')
		expect(only(events, 'thinking_delta')[0]!.text).to.equal('hm')
		const sent = server.requests[0]!.body.messages
		expect(sent[2].tool_calls[0].id)
			.to.match(/^[a-zA-Z0-9]{9}$/)
			.and.equal(sent[3].tool_call_id)
	})

	it('a server that answers without streaming is read; a web page is told as one', async () => {
		const whole = {
			choices: [
				{
					message: {
						role: 'assistant',
						content: 'Hi',
						tool_calls: [{ id: 'x', function: { name: 'git_status', arguments: '{}' } }],
					},
					finish_reason: 'tool_calls',
				},
			],
			usage: { prompt_tokens: 3, completion_tokens: 2 },
		}
		const client = await start([
			{ headers: { 'content-type': 'application/json' }, body: JSON.stringify(whole) },
			{ headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>log in</html>' },
		])
		const end = endOf(await all(client))
		expect([textOf(end.message), callsOf(end.message).length, end.usage.input]).to.deep.equal(['Hi', 1, 3])
		const events = await all(client)
		expect(errorOf(events).error).to.include({ code: 'invalid_request', retryable: false })
		expect(errorOf(events).error.message).to.match(/web page/)
	})

	it('vLLM: an output limit that shares the window is lowered once and kept', async () => {
		const client = await start((r) =>
			r.body.max_tokens > 600
				? no(
						"'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 1616 tokens and your request has 1000 input tokens",
					)
				: done,
		)
		expect(textOf(endOf(await all(client)).message)).to.equal('ok')
		expect(server.requests[1]!.body.max_tokens).to.equal(600)
	})

	it('the same words in two reasoning fields are shown once; unclosed <think> is kept', async () => {
		const client = await start([
			{
				body: [
					openaiChunk({ delta: { reasoning_content: 'hm', reasoning: 'hm' }, finish_reason: null }),
					openaiChunk({ delta: { content: 'x' }, finish_reason: 'stop' }),
				],
			},
			{ body: openaiStream({ text: '<think>only thought', deltas: 4 }) },
		])
		expect(
			only(await all(client), 'thinking_delta')
				.map((e) => e.text)
				.join(''),
		).to.equal('hm')
		const end = endOf(await all(client))
		expect(end.message.blocks[0]).to.include({ type: 'thinking', text: 'only thought' })
		expect(end.detail).to.equal('empty_reply')
	})
})
