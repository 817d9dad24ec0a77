import { expect } from 'chai'
import { factsOf, type Intent, intentOf } from '../../../src/engine/tour/facts.ts'
import { type TourOptions, tourModel } from '../../../src/engine/tour/model.ts'
import type { Block, Message, ModelEvent, ModelRequest } from '../../../src/engine/types.ts'

const user = (text: string): Message => ({ role: 'user', blocks: [{ type: 'text', text }] })
const request = (messages: Message[], purpose: ModelRequest['purpose'] = 'turn'): ModelRequest => ({
	model: 'tour',
	system: 'system',
	tools: [],
	messages,
	maxOutput: 1000,
	purpose,
})

type End = Extract<ModelEvent, { type: 'end' }>

async function ask(
	client: ReturnType<typeof tourModel>['client'],
	messages: Message[],
	signal = new AbortController().signal,
) {
	const events: ModelEvent[] = []
	for await (const event of client.stream(request(messages), signal)) events.push(event)
	return events
}

type Results = (call: Extract<Block, { type: 'tool_call' }>) => { status?: 'ok' | 'failed' | 'denied'; text: string }

/** A whole turn with results made up: all the replies and calls. */
async function converse(
	prompt: string,
	options: TourOptions = {},
	results: Results = () => ({ text: 'No files found.' }),
	before: Message[] = [],
) {
	const { client } = tourModel(options)
	const messages = [...before, user(prompt)]
	const texts: string[] = []
	const calls: Extract<Block, { type: 'tool_call' }>[] = []
	for (let step = 0; step < 20; step++) {
		const end = (await ask(client, messages)).at(-1) as End
		messages.push(end.message)
		texts.push(end.message.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''))
		const made = end.message.blocks.filter((block) => block.type === 'tool_call')
		if (made.length === 0) return { texts, calls, messages, last: end }
		calls.push(...made)
		messages.push({
			role: 'user',
			blocks: made.map((call) => ({ type: 'tool_result', callId: call.id, status: 'ok', ...results(call) })),
		})
	}
	throw new Error('the tour did not end')
}

const commands = (calls: { name: string; input: Record<string, unknown> }[]): string =>
	calls.flatMap((call) => (call.name === 'bash' ? [String(call.input.command)] : [])).join('\n')

describe('tour: the model', () => {
	it('says first what it is, once a conversation, and comes in small pieces that make up the message', async () => {
		const { client } = tourModel()
		for (const prompt of ['show me', 'tests', 'write a compiler']) {
			const events = await ask(client, [user(prompt)])
			const deltas = events.flatMap((event) => (event.type === 'text_delta' ? [event.text] : []))
			expect(deltas.join('')).to.match(/^This is Garuda's tour: a fixed script, not an AI\./)
			expect(deltas.length).to.be.greaterThan(5)
			expect(Math.max(...deltas.map((one) => one.length))).to.be.lessThan(100)
			const { message } = events.at(-1) as End
			expect(message.blocks[0]).to.deep.equal({ type: 'text', text: deltas.join('') })
		}
		const { texts, messages } = await converse('help')
		expect(texts.join('').match(/This is Garuda's tour/g)).to.have.length(1)
		expect((await converse('tests', {}, undefined, messages)).texts.join('')).to.not.include("This is Garuda's tour")
	})

	it('is known to cost nothing', async () => {
		const { spec } = tourModel()
		const { last } = await converse('help')
		expect(last.usage.cost).to.equal(0)
		expect(spec).to.deep.include({ provider: 'tour', id: 'tour', window: 200_000, thinking: 'none', efforts: [] })
		expect(spec.price).to.deep.equal({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, date: spec.price!.date })
		expect(spec.price!.date).to.match(/^\d{4}-\d\d-\d\d$/)
	})

	it('the same conversation gives the same words and calls', async () => {
		expect(await converse('show me')).to.deep.equal(await converse('show me'))
	})

	it('every call has an id of its own, in one conversation and over turns', async () => {
		const { client } = tourModel()
		const ids: string[] = []
		for (let turn = 0; turn < 3; turn++) {
			const { message } = (await ask(client, [user('show me')])).at(-1) as End
			ids.push(...message.blocks.flatMap((block) => (block.type === 'tool_call' ? [block.id] : [])))
		}
		expect(ids.length).to.equal(9)
		expect(new Set(ids).size).to.equal(9)
	})

	it('what it cannot do is answered with the three ways to a model, and no call', async () => {
		for (const prompt of [
			'fix the tests',
			'write tests for the parser',
			'Why does the build fail?',
			'explain this change to me',
			'refactor src/a.ts',
			'the login page shows an error when I click twice on the button',
			'quux',
		]) {
			const { texts, calls } = await converse(prompt)
			expect([prompt, calls]).to.deep.equal([prompt, []])
			expect(texts.join(''))
				.to.include('needs a model')
				.and.include('garuda setup')
				.and.include('ANTHROPIC_API_KEY')
				.and.include('Ollama')
		}
	})

	const intents: [string, Intent][] = [
		['show me', 'all'],
		['Show me!', 'all'],
		['tour', 'all'],
		['start the demo, please', 'all'],
		['go', 'all'],
		['show me, then undo it', 'all'],
		['show me the tests', 'tests'],
		['where are the tests?', 'tests'],
		['TODO', 'todo'],
		['find all todos', 'todo'],
		['edit', 'edit'],
		['make a change', 'edit'],
		['danger', 'danger'],
		['try the sandbox', 'danger'],
		['can you read my ssh keys?', 'danger'],
		['undo', 'undo'],
		['diff', 'undo'],
		['help', 'help'],
		['?', 'help'],
		['what can you do?', 'help'],
		['', 'help'],
		['fix the todo in a.js', 'other'],
		['please implement the network layer', 'other'],
		['add a comment', 'edit'],
		['add tests', 'other'],
	]
	for (const [prompt, intent] of intents)
		it(`"${prompt}" means ${intent}`, () => {
			expect(intentOf(prompt)).to.equal(intent)
		})

	it('the prompt is the user’s words only: no note, attachment or context of Garuda’s', () => {
		const noted = user(
			'<garuda-note>The user stopped the task.</garuda-note>\n\nhelp\n\n<garuda-attached path="a">show me the tests</garuda-attached>',
		)
		expect(factsOf([noted]).prompt).to.equal('help')
		// A command of the user's own is no prompt.
		expect(factsOf([user('todo'), user('<garuda-note>The user runs: ls</garuda-note>')]).prompt).to.equal('todo')
		expect(factsOf([]).prompt).to.equal('')
	})

	it('with no sandbox it leaves out the attempts by commands, and says why', async () => {
		for (const sandboxed of [false, undefined, async () => false, () => Promise.reject(new Error('no probe'))])
			for (const prompt of ['show me', 'danger']) {
				const { texts, calls } = await converse(prompt, sandboxed === undefined ? {} : { sandboxed })
				expect(commands(calls)).to.not.match(/HOME|ssh|name=|\/dev\/tcp|192\.0\.2/)
				expect(texts.join('\n')).to.include('no sandbox')
			}
		const { calls } = await converse('danger', { sandboxed: true })
		expect(commands(calls)).to.include('/dev/tcp').and.include('HOME')
	})

	it('its attempts are harmless even where nothing stops them: counts only, and an address of nobody', async () => {
		const { calls } = await converse('danger', { sandboxed: true })
		const text = commands(calls)
		for (const line of text.split('\n').filter((one) => one.includes('HOME'))) expect(line).to.match(/\| wc -[lc] \|/)
		expect(text.match(/\b\d+\.\d+\.\d+\.\d+\b/g)).to.deep.equal(['192.0.2.1'])
	})

	it('tells what came of an attempt from its result, also when it was not stopped', async () => {
		const told = async (hidden: string, net: { status?: 'ok' | 'failed' | 'denied'; text: string }) =>
			(
				await converse('danger', { sandboxed: true }, (call) =>
					call.id.includes('hidden')
						? { text: hidden }
						: call.id.includes('net')
							? net
							: { status: 'failed', text: 'off limits' },
				)
			).texts.join('\n')
		const none = 'files that it can see there: 0\nbytes of keys that it can read: 0\n[exit code 0]'
		const stopped = await told(none, {
			status: 'failed',
			text: 'unreachable. Running it outside was refused: Denied: no',
		})
		expect(stopped).to.include('Nothing was there to see').and.include('Denied: it did not get out')
		const leaky = await told(none.replaceAll(': 0', ': 3'), { status: 'ok', text: '(no output)' })
		expect(leaky).to.include('does not hide it').and.include('It got out').and.not.include('Nothing was there')
		const allowed = await told(none, { status: 'failed', text: '[… it then ran again outside the sandbox:]\nrefused' })
		expect(allowed).to.include('You let it run outside')
	})

	it('a file that cannot take a comment is left alone: it writes one of its own, under a free name', async () => {
		const { calls } = await converse('edit', {}, (call) =>
			call.name === 'glob'
				? { text: 'data.json\ngaruda-tour.md\n[2 files, sorted by path]' }
				: { text: '1\t---\n2\ttitle: x' },
		)
		expect(calls.map((call) => call.name)).to.deep.equal(['glob', 'read_file', 'write_file'])
		expect(calls.at(-1)!.input.path).to.equal('garuda-tour-2.md')
	})

	it('an edit that did not fit is followed by a file of its own; a denied one by nothing', async () => {
		const results =
			(status: 'failed' | 'denied'): Results =>
			(call) =>
				call.name === 'glob'
					? { text: 'a.js\n[1 file]' }
					: call.name === 'read_file'
						? { text: '1\tlet a' }
						: call.name === 'edit_file'
							? { status, text: 'no' }
							: { text: 'ok' }
		expect((await converse('edit', {}, results('failed'))).calls.map((call) => call.name)).to.include('write_file')
		const denied = await converse('edit', {}, results('denied'))
		expect(denied.calls.map((call) => call.name)).to.not.include('write_file')
		expect(denied.texts.at(-1)).to.include('The answer was no')
	})

	it('an abort ends it with one error of code cancelled, before and amid its words', async () => {
		const { client } = tourModel()
		const stop = new AbortController()
		const events: ModelEvent[] = []
		for await (const event of client.stream(request([user('help')]), stop.signal)) {
			events.push(event)
			if (events.length === 3) stop.abort()
		}
		expect(events.slice(0, 3).map((event) => event.type)).to.deep.equal(['text_delta', 'text_delta', 'text_delta'])
		expect(events).to.have.length(4)
		expect(events[3]).to.deep.include({ type: 'error' })
		expect((events[3] as Extract<ModelEvent, { type: 'error' }>).error).to.include({
			code: 'cancelled',
			streamed: true,
		})
		const none = await ask(client, [user('help')], stop.signal)
		expect(none.map((event) => event.type)).to.deep.equal(['error'])
	})

	it('keeps the pace it is given, by the clock', async () => {
		const slept: number[] = []
		const clock = { now: () => 0, sleep: async (ms: number) => void slept.push(ms) }
		const { client } = tourModel({ paceMs: 15, clock })
		const events = await ask(client, [user('help')])
		expect(slept.length).to.equal(events.filter((event) => event.type === 'text_delta').length - 1)
		expect(new Set(slept)).to.deep.equal(new Set([15]))
	})

	it('a summary for a compaction is words and no calls', async () => {
		const { client } = tourModel()
		const events: ModelEvent[] = []
		for await (const event of client.stream(request([user('show me')], 'summary'), new AbortController().signal))
			events.push(event)
		expect((events.at(-1) as End).stop).to.equal('end')
	})
})
