// web_fetch and web_search through the gate and the real rules: what is asked, what an answer covers, what never runs.
import { expect } from 'chai'
import type { RuleText } from '../../../src/engine/config/settings.ts'
import { createDecider } from '../../../src/engine/permission/decider.ts'
import type { Tool } from '../../../src/engine/ports.ts'
import { bashTool } from '../../../src/engine/tools/bash.ts'
import { createGate, type Gate } from '../../../src/engine/tools/invoke.ts'
import { webFetchTool } from '../../../src/engine/tools/web-fetch.ts'
import { webSearchTool } from '../../../src/engine/tools/web-search.ts'
import type { Answer, ApprovalRequest, Mode } from '../../../src/engine/types.ts'
import { type Origin, startOrigin } from '../web/origin.ts'
import { ended, type Scene, scene } from './scene.ts'

describe('web tools and the gate', () => {
	let origin: Origin
	let at: Scene
	let asked: ApprovalRequest[]
	let searched: string[]
	let answer: Answer['choice']
	/** Hosts that the next command tries, and whether each was let through. */
	let tries: string[]
	let let_: boolean[]
	const gate = (lists: Partial<Record<RuleText['list'], string[]>> = {}, mode: Mode = 'build'): Gate => {
		const rules = (['deny', 'ask', 'allow'] as const).flatMap((list) =>
			(lists[list] ?? []).map(
				(text, line): RuleText => ({ list, text, level: 'user', file: 'settings.json', line: line + 1 }),
			),
		)
		const decider = createDecider({
			settings: { rules, profile: 'standard' },
			root: at.root,
			home: at.home,
			files: at.ctx.files,
		})
		const keys = new Set<string>()
		const http = {
			request: async ({ url }: { url: string }) => {
				searched.push(url)
				const body = '{"results":[]}'
				return { status: 200, headers: {}, text: async () => body, body: (async function* () {})() }
			},
		}
		const tools: Tool[] = [
			bashTool,
			webFetchTool(origin.options),
			webSearchTool({ name: 'searxng', url: 'https://s.example', key: null, maxResults: 5 }, http),
		]
		return createGate({
			...at.ctx,
			tools,
			approver: {
				ask: async (request) => {
					asked.push(request)
					return { choice: answer }
				},
			},
			executor: {
				kind: 'bubblewrap',
				close: async () => {},
				run: async (spec) => {
					for (const host of tries) let_.push((await spec.reachHost?.(host, 443)) ?? false)
					return ended(
						let_.at(-1) === false
							? { code: 1, wall: { wall: 'network', detail: `${tries.at(-1)}:443 (not allowed)` } }
							: {},
					)
				},
			},
			mode: () => mode,
			decide: (tool, info, effect, now) =>
				decider.decide({
					tool: tool.name,
					readOnlyTool: tool.readOnly,
					info,
					effect,
					mode: now,
					sandboxed: true,
					keys,
					acceptEdits: false,
				}),
			remember: (key) => keys.add(key),
			emit: () => {},
			record: async () => {},
			done: async () => {},
			beforeChange: async () => {},
		})
	}
	let id = 0
	const call = (made: Gate, name: string, input: Record<string, unknown>) =>
		made.invoke({ id: `c${++id}`, name, input }, new AbortController().signal)
	const fetch = (made: Gate, url: string) => call(made, 'web_fetch', { url })
	const bash = (made: Gate) => call(made, 'bash', { command: 'curl x' })

	beforeEach(async () => {
		asked = []
		searched = []
		tries = []
		let_ = []
		answer = 'once'
		at = await scene()
		origin = await startOrigin((_, response) => response.setHeader('content-type', 'text/plain').end('page text'))
	})
	afterEach(async () => {
		await origin.close()
		await at.close()
	})

	it('a new host asks once a call, with the whole address in view; a session answer covers the host, not its neighbours', async () => {
		const made = gate()
		expect((await fetch(made, 'https://ok.example/a?b=c')).text).to.include('page text')
		expect(asked).to.have.length(1)
		expect(asked[0]!.preview).to.include('GET https://ok.example/a?b=c')
		expect(asked[0]!.effect).to.deep.equal({ type: 'reach_host', host: 'ok.example', port: 443 })
		answer = 'session'
		await fetch(made, 'https://ok.example/b')
		await fetch(made, 'https://ok.example/c')
		expect(asked).to.have.length(2)
		answer = 'deny'
		expect((await fetch(made, 'https://docs.ok.example/')).status).to.equal('failed')
		expect(asked).to.have.length(3)
		expect(origin.requests).to.have.length(3)
	})

	it('net-22 an unusual address asks each time, in spite of a session answer and an allow rule, and offers no more than once', async () => {
		const odd = `https://ok.example/?q=${Buffer.from('API_KEY=sk-12345 and more').toString('base64')}`
		answer = 'session'
		const made = gate({ allow: ['host(ok.example)', 'web_fetch', 'host(*.ok.example)'] })
		await fetch(made, 'https://ok.example/plain')
		expect(asked, 'the rule covers an ordinary one').to.have.length(0)
		answer = 'once'
		for (const url of [odd, odd, 'https://ok.example:8443/', `https://docs.ok.example/${'61'.repeat(20)}`])
			await fetch(made, url)
		expect(asked).to.have.length(4)
		for (const request of asked) expect(request.choices).to.deep.equal(['once', 'deny'])
		expect(asked[0]!.preview).to.include(odd).and.include('could carry data out')
		answer = 'deny'
		const before = origin.looked.length
		expect((await fetch(made, odd)).status).to.equal('failed')
		expect(origin.looked.length, 'not even the name was looked up').to.equal(before)
	})

	it('a deny rule for the host or the tool beats every allow and every answer, in plan mode too', async () => {
		answer = 'session'
		for (const mode of ['build', 'plan'] as const)
			for (const deny of [['host(ok.example)'], ['host(*.example)'], ['web_fetch'], ['host']]) {
				const outcome = await fetch(
					gate({ deny, allow: ['web_fetch', 'host(ok.example)'] }, mode),
					'https://ok.example/',
				)
				expect(outcome.status, `${deny}`).to.be.oneOf(['denied', 'failed'])
			}
		expect([asked, origin.looked]).to.deep.equal([[], []])
		answer = 'once'
		expect(
			(await fetch(gate({ ask: ['host(ok.example)'], allow: ['host(ok.example)'] }), 'https://ok.example/')).status,
		).to.equal('ok')
		expect(asked).to.have.length(1)
	})

	it('plan mode reads the web with the same questions', async () => {
		expect((await fetch(gate({}, 'plan'), 'https://ok.example/')).text).to.include('page text')
		expect(asked).to.have.length(1)
	})

	it('what a fetch may reach a command may not, and the other way round; a host rule lets both', async () => {
		answer = 'session'
		tries = ['ok.example']
		const made = gate()
		await fetch(made, 'https://ok.example/')
		await bash(made)
		expect(asked).to.have.length(2)
		await bash(made)
		await fetch(made, 'https://ok.example/')
		expect(asked, 'both are remembered, each for itself').to.have.length(2)
		const ruled = gate({ allow: ['host(ok.example)'] })
		await bash(ruled)
		await fetch(ruled, 'https://ok.example/')
		expect(asked).to.have.length(2)
	})

	it('bash asks for the host that its command tries; a no is told, and is no reason to ask for all of the network', async () => {
		answer = 'deny'
		tries = ['new.example']
		const outcome = await bash(gate())
		expect(let_).to.deep.equal([false])
		expect(asked.map(({ effect }) => effect?.type)).to.deep.equal(['reach_host'])
		expect(outcome.text).to.include('new.example was not reached. Denied:')
		answer = 'once'
		let_ = []
		expect((await bash(gate())).status).to.equal('ok')
		expect(let_).to.deep.equal([true])
	})

	it('a command in plan mode may ask for a host; a deny rule refuses it with no question', async () => {
		tries = ['new.example']
		await bash(gate({}, 'plan'))
		expect(let_).to.deep.equal([true])
		asked = []
		await bash(gate({ deny: ['host(*.example)'] }))
		expect([let_.at(-1), asked]).to.deep.equal([false, []])
	})

	it('each search asks with its query; a session answer or a rule covers the tool, a deny rule beats them', async () => {
		const made = gate()
		await call(made, 'web_search', { query: 'first words' })
		await call(made, 'web_search', { query: 'other words' })
		expect(asked.map(({ preview }) => preview.split('\n')[0])).to.deep.equal(['first words', 'other words'])
		answer = 'session'
		await call(made, 'web_search', { query: 'third' })
		await call(made, 'web_search', { query: 'fourth' })
		expect(asked).to.have.length(3)
		answer = 'deny'
		expect((await call(gate(), 'web_search', { query: 'no' })).status).to.equal('denied')
		await call(gate({ allow: ['web_search'] }), 'web_search', { query: 'fifth' })
		expect(asked).to.have.length(4)
		expect(
			(await call(gate({ deny: ['web_search'], allow: ['web_search'] }), 'web_search', { query: 'x' })).status,
		).to.equal('denied')
		expect(searched).to.have.length(5)
	})

	it('a result is marked as fenced by its tool', async () => {
		const tool = webFetchTool(origin.options)
		const result = await tool.run(await tool.plan({ url: 'https://ok.example/' }, at.ctx), at.ctx)
		expect(result).to.include({ fenced: true })
		expect(result.text).to.match(
			/^<web_result url="https:\/\/ok\.example\/" untrusted="true">\npage text\n<\/web_result>$/,
		)
	})
})
