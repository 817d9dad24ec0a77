// Stops: wherever the turn stands, the prompt is answered soon, everything open is closed, and the next prompt works.
import { expect } from 'chai'
import type { Reply } from '../helpers/fakes.ts'
import { startSse } from '../helpers/sse-server.ts'
import { removeTemp, writeFiles } from '../helpers/temp.ts'
import { closeEditors, type Editor, editor, texts } from './editor.ts'

const bash = (command: string): Reply => ({ calls: [{ name: 'bash', input: { command } }] })
const wait = (ms: number) => new Promise((done) => setTimeout(done, ms))
const until = async (test: () => boolean) => {
	for (let i = 0; i < 1000 && !test(); i++) await wait(5)
	if (!test()) throw new Error('it never came')
}

/** Milliseconds from the stop to the answer. */
async function stopAt(e: Editor, id: string, ready: () => boolean, times = 1): Promise<number> {
	const prompt = e.prompt(id, 'go')
	await until(ready)
	const begun = performance.now()
	for (let i = 0; i < times; i++) await e.agent.notify('session/cancel', { sessionId: id })
	expect(await prompt).to.deep.equal({ stopReason: 'cancelled' })
	return performance.now() - begun
}

describe('acp: cancel', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	/** The command has printed its "on". */
	const running = (e: Editor) => e.only('tool_call_update').some((one) => /`\non\n`/.test(texts(one.content)))

	for (const [where, replies, ready, said] of [
		[
			'while the model streams',
			[{ text: 'I am', hang: true }],
			(e: Editor) => e.said().includes('I am'),
			'Garuda: the turn was cancelled.',
		],
		[
			'before the model has said a word',
			[{ hang: true }],
			(e: Editor) => e.model.requests.length === 1,
			'Garuda: the turn was cancelled.',
		],
		[
			'in a question',
			[{ calls: [{ name: 'write_file', input: { path: 'n.txt', content: 'x' } }] }],
			(e: Editor) => e.questions.length === 1,
			'Garuda: Create n.txt cancelled.',
		],
		[
			'in a command that ends on TERM',
			[bash('echo on; sleep 300')],
			running,
			'Garuda: $ echo on; sleep 300 cancelled.',
		],
	] as [string, Reply[], (e: Editor) => boolean, string][])
		it(`D01 ${where}`, async () => {
			const e = await editor({
				replies: [...replies, { text: 'next' }],
				answer: () => new Promise<string>(() => {}),
			})
			const id = await e.session()
			expect(await stopAt(e, id, () => ready(e))).to.be.lessThan(1000)
			expect(e.said()).to.include(said)
			expect(e.tap.openCalls()).to.deep.equal([])
			expect(await e.prompt(id, 'next')).to.deep.equal({ stopReason: 'end_turn' })
			await e.close()
		})

	it('D01 in a command that ignores TERM: within the settle time, and the call is failed', async () => {
		const e = await editor({ replies: [bash('trap "" TERM; echo on; sleep 300'), { text: 'next' }] })
		const id = await e.session()
		const ms = await stopAt(e, id, () => running(e))
		expect(ms).to.be.lessThan(4500)
		expect(e.only('tool_call_update').at(-1)!.status).to.equal('failed')
		expect(await e.prompt(id, 'next')).to.deep.equal({ stopReason: 'end_turn' })
		await e.close()
	})

	it('D01 while a retry waits, and while the provider is silent', async () => {
		const server = await startSse((_, n) => (n === 0 ? { status: 503, body: '{}' } : { headersAfter: 'never' }))
		try {
			const e = await editor({
				real: true,
				env: { GARUDA_MODEL: 'openai/gpt-test', OPENAI_API_KEY: 'sk-test-key', OPENAI_BASE_URL: `${server.url}/v1` },
			})
			// A first wait that only a stop ends.
			writeFiles(e.home, {
				'.garuda/settings.json': JSON.stringify({ model: { firstRetryMs: 60_000, maxRetryMs: 60_000 } }),
			})
			const id = await e.session()
			expect(await stopAt(e, id, () => e.said().includes('Trying again'))).to.be.lessThan(1000)
			expect(await stopAt(e, id, () => server.requests.length === 2)).to.be.lessThan(1000)
			await e.close()
		} finally {
			await server.close()
		}
	})

	it('D01 twice, and once more after the answer', async () => {
		const e = await editor({ replies: [{ text: 'I am', hang: true }, { text: 'next' }] })
		const id = await e.session()
		await stopAt(e, id, () => e.said().includes('I am'), 3)
		await e.agent.notify('session/cancel', { sessionId: id })
		expect(await e.prompt(id, 'next')).to.deep.equal({ stopReason: 'end_turn' })
		await e.close()
	})

	it('D01 at once, before anything has begun', async () => {
		const e = await editor({ replies: [{ hang: true }, { text: 'next' }] })
		const id = await e.session()
		const prompt = e.prompt(id, 'go')
		await e.agent.notify('session/cancel', { sessionId: id })
		expect(await prompt).to.deep.equal({ stopReason: 'cancelled' })
		await e.close()
	})

	it('D01 in a compaction', async () => {
		const e = await editor({ replies: [{ text: 'long '.repeat(30_000) }, { hang: true }, { text: 'next' }] })
		const id = await e.session()
		await e.prompt(id, 'talk')
		const prompt = e.prompt(id, '/compact')
		await until(() => e.model.requests.length === 2)
		await e.agent.notify('session/cancel', { sessionId: id })
		expect(await prompt).to.deep.equal({ stopReason: 'cancelled' })
		expect(await e.prompt(id, 'next')).to.deep.equal({ stopReason: 'end_turn' })
		await e.close()
	})

	it('$/cancel_request of the prompt does the same', async () => {
		const e = await editor({ replies: [{ text: 'I am', hang: true }, { text: 'next' }] })
		const id = await e.session()
		const abort = new AbortController()
		const prompt = e.agent.request(
			'session/prompt',
			{ sessionId: id, prompt: [{ type: 'text', text: 'go' }] },
			{ cancellationSignal: abort.signal },
		)
		await until(() => e.said().includes('I am'))
		abort.abort()
		expect(await prompt).to.deep.equal({ stopReason: 'cancelled' })
		expect(await e.prompt(id, 'next')).to.deep.equal({ stopReason: 'end_turn' })
		await e.close()
	})

	it('a result that comes after the stop is failed, and named', async () => {
		const e = await editor({ replies: [bash('trap "exit 0" TERM; echo on; while :; do sleep 0.05; done')] })
		const id = await e.session()
		await stopAt(e, id, () => running(e))
		expect(e.only('tool_call_update').at(-1)!.status).to.equal('failed')
		expect(e.said()).to.match(/Garuda: \$ trap .* cancelled\./)
		await e.close()
	})

	it('the editor is told that the open question is void', async () => {
		let seen: AbortSignal | undefined
		const e = await editor({
			replies: [{ calls: [{ name: 'write_file', input: { path: 'n.txt', content: 'x' } }] }],
			answer: (_, signal) => {
				seen = signal
				return new Promise<string>(() => {})
			},
		})
		const id = await e.session()
		await stopAt(e, id, () => e.questions.length === 1)
		await until(() => seen!.aborted)
		await e.close()
	})
})
