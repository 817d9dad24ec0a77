// Claude's own search in a session: asked once, sent to Anthropic alone, its blocks kept and sent back, its cost counted.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { EngineOptions } from '../../src/engine/api.ts'
import { createEngine } from '../../src/engine/engine.ts'
import type { Answer, ApprovalRequest } from '../../src/engine/types.ts'
import {
	anthropicEvent,
	anthropicStream,
	openaiStream,
	type Reply,
	type Seen,
	startSse,
} from '../helpers/sse-server.ts'
import { removeTemp, tempProject } from '../helpers/temp.ts'

const config = { claude: { maxUses: 2, allowedDomains: ['docs.example'] } }
const tool = { type: 'web_search_20250305', name: 'web_search', max_uses: 2, allowed_domains: ['docs.example'] }
const use = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'a word' } }
const found = {
	type: 'web_search_tool_result',
	tool_use_id: 'srvtoolu_1',
	content: [{ type: 'web_search_result', url: 'https://docs.example/a', title: 'A', encrypted_content: 'xyz' }],
}

/** A reply that searched once and says what it found. */
const searched = (): string[] => {
	const block = (index: number, content_block: object) => [
		anthropicEvent({ type: 'content_block_start', index, content_block }),
		anthropicEvent({ type: 'content_block_stop', index }),
	]
	return [
		anthropicEvent({
			type: 'message_start',
			message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 100 } },
		}),
		...block(0, use),
		...block(1, found),
		anthropicEvent({ type: 'content_block_start', index: 2, content_block: { type: 'text', text: '' } }),
		anthropicEvent({ type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text: 'It says A.' } }),
		anthropicEvent({ type: 'content_block_stop', index: 2 }),
		anthropicEvent({
			type: 'message_delta',
			delta: { stop_reason: 'end_turn' },
			usage: { output_tokens: 10, server_tool_use: { web_search_requests: 1 } },
		}),
		anthropicEvent({ type: 'message_stop' }),
	]
}

describe('engine: Claude’s own search', () => {
	const closing: (() => Promise<void>)[] = []
	afterEach(async () => {
		for (const close of closing.splice(0).reverse()) await close()
		removeTemp()
	})

	/** An engine whose Anthropic is a loopback server; `answer` to every question. */
	async function make(answer: Answer['choice'], more: { search?: object | null; settings?: object } = {}) {
		const { root, home } = tempProject()
		mkdirSync(join(home, '.garuda'), { mode: 0o700 })
		const write = (name: string, value: object) =>
			writeFileSync(join(home, '.garuda', name), JSON.stringify(value), { mode: 0o600 })
		const replies: Reply[] = []
		const fine = (path: string) => (path.includes('/messages') ? anthropicStream : openaiStream)({ text: 'fine' })
		const server = await startSse(({ path }: Seen, n: number) => ({
			headers: { 'content-type': 'text/event-stream' },
			body: n < replies.length ? (replies[n]!.body as string[]) : fine(path),
		}))
		closing.push(() => server.close())
		const asked: ApprovalRequest[] = []
		const open = async (
			how: Parameters<ReturnType<typeof createEngine>['open']>[0] = {},
			options: Partial<EngineOptions> = {},
		) => {
			if (more.search !== null) write('search.json', more.search ?? config)
			if (more.settings) write('settings.json', more.settings)
			const garuda = createEngine({
				root,
				home,
				env: { PATH: process.env.PATH, ANTHROPIC_API_KEY: 'sk-ant-test', ANTHROPIC_BASE_URL: server.url },
				model: 'anthropic/claude-sonnet-5-5',
				hostname: 'test',
				uid: process.getuid!(),
				approver: {
					ask: async (request) => {
						asked.push(request)
						return { choice: answer }
					},
				},
				...options,
			})
			closing.push(() => garuda.close())
			return garuda.open(how)
		}
		return { root, server, asked, replies, open }
	}
	const tools = (seen: Seen): any[] => seen.body.tools
	const sent = (seen: Seen) => tools(seen).filter((one) => one.name === 'web_search')

	it('is asked about once a session, with its limits, and then sent byte for byte the same each time', async () => {
		const { server, asked, open } = await make('session')
		const session = await open()
		for (const text of ['one', 'two']) expect((await session.prompt(text).end).reason).to.equal('done')
		expect(asked.map(({ tool, title }) => [tool, title])).to.deep.equal([
			['web_search', 'Let Claude search the web by itself in this session'],
		])
		expect(asked[0]!.preview).to.include('At most 2 searches').and.include('docs.example')
		for (const request of server.requests) {
			const { cache_control, ...rest } = sent(request)[0]
			expect(rest).to.deep.equal(tool)
			expect(cache_control, 'the last tool carries the breakpoint').to.deep.equal({ type: 'ephemeral' })
		}
		expect(JSON.stringify(tools(server.requests[1]!))).to.equal(JSON.stringify(tools(server.requests[0]!)))
	})

	for (const [what, answer, more] of [
		['after a no', 'deny', {}],
		['when a rule denies it', 'session', { settings: { deny: ['web_search'] } }],
		['when the file does not name it', 'session', { search: {} }],
		['beside a service, also one whose key is missing', 'session', { search: { ...config, backend: 'brave' } }],
	] as const)
		it(`is not sent ${what}`, async () => {
			const { server, open } = await make(answer, more)
			const session = await open()
			const events = []
			const turn = session.prompt('one')
			for await (const event of turn) events.push(event)
			expect((await turn.end).reason).to.equal('done')
			expect(sent(server.requests[0]!)).to.deep.equal([])
			const notices = events.filter(({ type }) => type === 'notice').map((event) => (event as { text: string }).text)
			expect(notices.some((text) => text.includes('cannot search the web'))).to.equal(!('search' in more))
		})

	it('an allow rule of the user needs no question', async () => {
		const { server, asked, open } = await make('deny', { settings: { allow: ['web_search'] } })
		await (await open()).prompt('one').end
		expect(asked).to.deep.equal([])
		expect(sent(server.requests[0]!)).to.have.length(1)
	})

	it('what it did is shown, kept and sent back unchanged, and its price is counted', async () => {
		const { server, replies, open } = await make('once')
		replies.push({ body: searched() })
		const session = await open()
		const shown = []
		const turn = session.prompt('look it up')
		for await (const event of turn) if (event.type === 'server_tool') shown.push(event)
		const end = await turn.end
		expect(end.text).to.equal('It says A.')
		expect(shown.map(({ name }) => name)).to.deep.equal(['web_search', 'web_search'])
		expect(end.usage.cost, 'a cent for the search, and the tokens').to.be.above(0.01).and.below(0.02)
		await session.prompt('go on').end
		const back = server.requests[1]!.body.messages.find(({ role }: { role: string }) => role === 'assistant').content
		expect(back.slice(0, 2)).to.deep.equal([use, found])
	})

	it('a resumed session asks again: an answer is never taken from a file', async () => {
		const first = await make('session')
		const session = await first.open()
		await session.prompt('one').end
		const { id } = session
		await session.close()
		const journal = readFileSync(join(first.root, '.garuda/sessions', `${id}.jsonl`), 'utf8').split('\n')
		expect(journal[0], 'the tools of the first line hold it').to.include('web_search_20250305')
		expect(journal.some((line) => line.includes('"decision"') && line.includes('web_search'))).to.equal(true)
		const again = await first.open({ resume: id }, { approver: { ask: async () => ({ choice: 'deny' }) } })
		await again.prompt('two').end
		expect(sent(first.server.requests[0]!)).to.have.length(1)
		expect(sent(first.server.requests[1]!)).to.deep.equal([])
	})

	it('another provider is neither asked about it nor sent it', async () => {
		const { server, asked, open } = await make('session')
		const session = await open(
			{},
			{
				model: 'openai/gpt-test',
				env: { PATH: process.env.PATH, OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: `${server.url}/v1` },
			},
		)
		expect((await session.prompt('one').end).reason).to.equal('done')
		expect(asked).to.deep.equal([])
		expect(JSON.stringify(server.requests[0]!.body)).to.not.include('web_search')
	})
})
