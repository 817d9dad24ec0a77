// A task through the built bin against a model server that misbehaves: it recovers where that is possible, and says so where it is not.
import { expect } from 'chai'
import { credentials, garuda, journals, lines, type Place, place, records, settings } from '../helpers/cli.ts'
import {
	type Action,
	anthropicEvent,
	anthropicStream,
	type Handler,
	openaiStream,
	type Reply,
	type SseServer,
	startSse,
} from '../helpers/sse-server.ts'
import { removeTemp } from '../helpers/temp.ts'

type Wire = 'anthropic' | 'openai'
const answer = 'The task is done, all of it.'

/** What both wires say of a failure, in their own forms. */
const forms = {
	anthropic: {
		model: 'anthropic/claude-sonnet-5-5',
		whole: (text: string): Reply => ({ body: anthropicStream({ text, deltas: 4 }) }),
		/** The beginning of an answer. */
		begin: (text: string): string[] => anthropicStream({ text, deltas: 2 }).slice(0, 3),
		error: (type: string, message: string) => JSON.stringify({ type: 'error', error: { type, message } }),
		inside: anthropicEvent({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
		call: (name: string, input: object): Reply => ({ body: anthropicStream({ calls: [{ name, input }] }) }),
		overloaded: 529,
	},
	openai: {
		model: 'openai/gpt-test',
		whole: (text: string): Reply => ({ body: openaiStream({ text, deltas: 4 }) }),
		begin: (text: string): string[] => openaiStream({ text, deltas: 2 }).slice(0, 2),
		error: (type: string, message: string) => JSON.stringify({ error: { type, message, code: null } }),
		inside: `data: ${JSON.stringify({ error: { message: 'Overloaded', type: 'server_error', code: 503 } })}\n\n`,
		call: (name: string, input: object): Reply => ({ body: openaiStream({ calls: [{ name, input }] }) }),
		overloaded: 503,
	},
}

let server: SseServer | null = null

async function task(
	wire: Wire,
	steps: Handler | Reply[],
	more: { args?: string[]; at?: Place; files?: Record<string, string> } = {},
) {
	server = await startSse(steps)
	const at = more.at ?? place(more.files ?? { 'a.txt': 'hello\n' })
	credentials(at.home, { ANTHROPIC_API_KEY: 'sk-ant-x1y2z3', OPENAI_API_KEY: 'sk-x1y2z3' })
	settings(at.home, { model: { idleMs: 400, noticeMs: 200, firstRetryMs: 20, maxRetryMs: 50 } })
	const ran = await garuda(
		at,
		['-p', 'Do the task.', '-m', forms[wire].model, '--output-format', 'json', ...(more.args ?? [])],
		{ env: { ANTHROPIC_BASE_URL: server.url, OPENAI_BASE_URL: `${server.url}/v1` } },
	)
	expect(ran.stdout, ran.stderr).to.not.equal('')
	const result = JSON.parse(ran.stdout)
	expect(`${ran.stdout}${ran.stderr}`, 'no key is ever shown').to.not.include('x1y2z3')
	return { at, ran, result, requests: server.requests }
}

describe('a model server that misbehaves', function () {
	this.timeout(30_000)
	afterEach(async () => {
		await server?.close()
		server = null
		removeTemp()
	})

	for (const wire of ['anthropic', 'openai'] as Wire[]) {
		const form = forms[wire]
		describe(wire, () => {
			const mended: [string, Reply][] = [
				['stalls without headers', { headersAfter: 'never' }],
				['stalls in the middle of the body', { body: [...form.begin('half of '), { stall: true }] }],
				['resets the connection', { body: [...form.begin('half of '), { reset: true }] }],
				['cuts the body', { body: [...form.begin('half of '), { cut: true }] }],
				['ends the body early, and well-formed', { body: form.begin('half of ') }],
				[
					'answers 429 with retry-after',
					{ status: 429, headers: { 'retry-after-ms': '30' }, body: form.error('rate_limit_error', 'slow down') },
				],
				[`answers ${form.overloaded}`, { status: form.overloaded, body: form.error('overloaded_error', 'Overloaded') }],
				[
					'answers 500 with a page of HTML',
					{ status: 500, headers: { 'content-type': 'text/html' }, body: '<html>oops</html>' },
				],
				['sends an error inside a 200', { body: [...form.begin('half of '), form.inside] }],
				['sends an error first thing inside a 200', { body: [form.inside] }],
				['sends bytes that are no event', { body: ['\u0000\u0001garbage\n\n', { reset: true }] }],
			]
			for (const [what, bad] of mended)
				it(`${what}: the next try succeeds, and only its text counts`, async () => {
					const { ran, result, requests, at } = await task(wire, [bad, form.whole(answer)])
					expect(result, ran.stderr).to.include({ is_error: false, result: answer })
					expect(ran.code).to.equal(0)
					expect(requests).to.have.length(2)
					// The half of the first try is in no record, and both tries asked for the same.
					const said = records(at.root, journals(at.root)[0]!).filter((one) => one.type === 'assistant')
					expect(JSON.stringify(said)).to.include(answer).and.not.include('half of ')
					expect(requests[1]!.text).to.equal(requests[0]!.text)
				})

			it('J02 an error for ever ends the run: exit 1, is_error, a word on stderr, few requests', async () => {
				const kinds: [number, string, string][] = [
					[401, 'authentication_error', 'auth'],
					[400, 'invalid_request_error', 'invalid_request'],
					[404, 'not_found_error', 'not_found'],
				]
				for (const [status, type, code] of kinds) {
					const { ran, result, requests } = await task(wire, [{ status, body: form.error(type, 'no way') }])
					expect(
						[ran.code, result.is_error, result.subtype, result.error.code, result.error.status],
						type,
					).to.deep.equal([1, true, 'error_during_execution', code, status])
					expect(ran.stderr)
						.to.include('no way')
						.and.to.not.match(/\n\s+at /)
					expect(requests, 'not tried again').to.have.length(1)
					await server!.close()
				}
				const { ran, result, requests } = await task(wire, [
					{ status: 429, headers: { 'retry-after-ms': '5' }, body: form.error('rate_limit_error', 'slow down') },
				])
				expect([ran.code, result.error.code, requests.length]).to.deep.equal([1, 'rate_limit', 6])
				expect(ran.stderr).to.include('slow down')
			})

			it('J02 nobody listens: exit 1 with the address', async () => {
				const gone = await startSse([{}])
				await gone.close()
				const at = place()
				credentials(at.home, { ANTHROPIC_API_KEY: 'k-1', OPENAI_API_KEY: 'k-1' })
				settings(at.home, { model: { firstRetryMs: 5, maxRetryMs: 10 } })
				const ran = await garuda(at, ['-p', 'x', '-m', form.model], {
					env: { ANTHROPIC_BASE_URL: gone.url, OPENAI_BASE_URL: `${gone.url}/v1` },
				})
				expect([ran.code, ran.stdout]).to.deep.equal([1, ''])
				expect(ran.stderr)
					.to.include('127.0.0.1')
					.and.to.not.match(/\n\s+at /)
			})

			it('fails between two steps: what was done stays, and -c goes on from it', async () => {
				const first = [
					form.call('write_file', { path: 'new.txt', content: 'made\n' }),
					{ status: 400, body: form.error('invalid_request_error', 'no more') },
				]
				const one = await task(wire, first, { args: ['--allow', 'edits'] })
				expect(one.ran.code).to.equal(1)
				await server!.close()
				const two = await task(wire, [form.whole('Went on.')], { at: one.at, args: ['-c'] })
				expect([two.ran.code, two.result.result]).to.deep.equal([0, 'Went on.'])
				expect(two.result.session_id).to.equal(one.result.session_id)
				const sent = two.requests[0]!.text
				expect(sent).to.include('new.txt').and.include('Do the task.')
			})

			it('a redirect is not followed: the key goes to no other host', async () => {
				const other = await startSse([form.whole('stolen')])
				try {
					const { ran, requests } = await task(wire, [
						{ status: 307, headers: { location: `${other.url}/v1/messages` }, body: '' },
					])
					expect(ran.code).to.equal(1)
					expect(requests.length).to.be.at.least(1)
					expect(other.requests).to.have.length(0)
				} finally {
					await other.close()
				}
			})

			it('a very slow answer that never stops for long is waited for', async () => {
				const parts: Action[] = form.whole(answer).body as string[]
				const slow = parts.flatMap((part): Action[] => [{ wait: 150 }, part])
				const { ran, result, requests } = await task(wire, [{ body: slow }])
				expect([ran.code, result.result, requests.length]).to.deep.equal([0, answer, 1])
			})
		})
	}

	it('the words of a failure inside a stream-json run are on a line of their own', async () => {
		server = await startSse([
			{ status: 503, body: '{"error":{"message":"busy"}}' },
			{ body: openaiStream({ text: answer }) },
		])
		const at = place()
		credentials(at.home, { OPENAI_API_KEY: 'k' })
		settings(at.home, { model: { firstRetryMs: 5, maxRetryMs: 10 } })
		const ran = await garuda(at, ['-p', 'x', '-m', 'openai/gpt-test', '--output-format', 'stream-json'], {
			env: { OPENAI_BASE_URL: `${server.url}/v1` },
		})
		const kinds = lines(ran.stdout).map((one) => `${one.type}${one.subtype ? `/${one.subtype}` : ''}`)
		expect(kinds).to.deep.equal(['system/init', 'system/api_retry', 'assistant', 'result/success'])
	})
})
