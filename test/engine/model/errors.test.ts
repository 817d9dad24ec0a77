// What a person is told when a provider says no, and when it is asked again.
import { expect } from 'chai'
import type { UserError } from '../../../src/engine/errors.ts'
import { failureOf, toldBy } from '../../../src/engine/model/failure.ts'
import {
	createModelClient,
	defaultTuning,
	modelSpec,
	type Provider,
	withRetry,
} from '../../../src/engine/model/index.ts'
import { checkKey, normaliseBaseURL } from '../../../src/engine/model/provider.ts'
import { createHttp } from '../../../src/engine/net/http.ts'
import type { ModelClient } from '../../../src/engine/ports.ts'
import type { ModelEvent, ModelFailure, Usage } from '../../../src/engine/types.ts'
import { openaiStream, startSse } from '../../helpers/sse-server.ts'
import { all, endOf, errorOf, make, only, quickClock, request } from './kit.ts'

const provider: Provider = { name: 'prov', api: 'openai', baseURL: 'http://127.0.0.1', apiKey: 'sk-secret-key-123456' }
const told = (status: number, body: unknown, headers: Record<string, string> = {}): ModelFailure =>
	failureOf(toldBy(status, typeof body === 'string' ? body : JSON.stringify(body), headers), provider, 'm1')

describe('model errors', () => {
	const cases: [string, number, unknown, string, boolean, RegExp][] = [
		[
			'a wrong key',
			401,
			{ error: { type: 'authentication_error', message: 'invalid x-api-key' } },
			'auth',
			false,
			/garuda setup/,
		],
		['a missing right', 403, { error: { message: 'no access to model' } }, 'auth', false, /permissions|model/],
		['no credit', 402, { error: { message: 'Insufficient Balance' } }, 'billing', false, /Top up/],
		[
			'no credit as a 400',
			400,
			{ error: { message: 'Your credit balance is too low to access the API.' } },
			'billing',
			false,
			/Top up/,
		],
		[
			'a quota as a 429',
			429,
			{ error: { code: 'insufficient_quota', message: 'You exceeded your current quota' } },
			'billing',
			false,
			/Top up/,
		],
		[
			'a model that is not there',
			404,
			{ error: 'model "m1" not found, try pulling it first' },
			'not_found',
			false,
			/ollama pull/,
		],
		['a rate limit', 429, { error: { type: 'rate_limit_error', message: 'slow down' } }, 'rate_limit', true, /Wait/],
		[
			'overload',
			529,
			{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
			'overloaded',
			true,
			/another model/,
		],
		[
			'a model that is loading',
			503,
			{ error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
			'overloaded',
			true,
			/Wait/,
		],
		['a server fault', 500, { error: { message: 'oops' } }, 'internal', true, /provider/],
		['a gateway page', 502, '<html><body>Bad gateway</body></html>', 'internal', true, /provider/],
		['a gateway timeout', 504, 'upstream timeout', 'timeout', true, /again/],
		['a redirect', 307, '', 'invalid_request', false, /base URL/],
		[
			'no tools',
			400,
			{ error: { message: 'registry/gemma does not support tools' } },
			'invalid_request',
			false,
			/cannot call tools/,
		],
		[
			'vLLM without its flag',
			400,
			{
				object: 'error',
				message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
				code: 400,
			},
			'invalid_request',
			false,
			/Start vLLM/,
		],
	]
	for (const [name, status, body, code, retryable, hint] of cases)
		it(`${name}: ${code}, ${retryable ? 'asked again' : 'not asked again'}, with what to do`, () => {
			const failure = told(status, body, { 'request-id': 'r1' })
			expect(failure).to.include({ code, retryable, status, requestId: 'r1', streamed: false })
			expect(failure.hint).to.match(hint)
			expect(failure.message).to.not.match(/[{}]|<html/)
		})

	it('the key never appears, nor one that the server half echoes', () => {
		const failure = told(401, {
			error: { message: 'Incorrect API key provided: sk-secret-key-123456, or sk-proj-abcdefghijklmnop.\u001b[31m' },
		})
		expect(failure.message)
			.to.include('[key]')
			.and.not.match(/sk-secret|sk-proj-abc|\u001b/)
	})

	it('a key of any form that a server echoes is taken out', () => {
		const own = { ...provider, apiKey: ' plainKeyOfAnotherForm ' }
		const failure = failureOf(toldBy(403, '{"detail":"key plainKeyOfAnotherForm is not allowed"}', {}), own, 'm1')
		expect(failure.message).to.include('key [key] is not allowed')
	})

	it('retry-after in every form', () => {
		expect(told(429, {}, { 'retry-after': '7' }).retryAfterMs).to.equal(7_000)
		expect(told(429, {}, { 'retry-after-ms': '250', 'retry-after': '7' }).retryAfterMs).to.equal(250)
		expect(
			told(429, {}, { 'retry-after': 'Mon, 30 Nov 2026 10:00:30 GMT', date: 'Mon, 30 Nov 2026 10:00:00 GMT' })
				.retryAfterMs,
		).to.equal(30_000)
		expect(told(429, { error: { message: 'Please try again in 7.66s.' } }).retryAfterMs).to.equal(7_660)
		expect(told(429, { error: { message: 'Please try again in 2m5s.' } }).retryAfterMs).to.equal(125_000)
		expect(
			told(429, [
				{
					error: {
						code: 429,
						message: 'You exceeded your current quota, please check your plan and billing details.',
						status: 'RESOURCE_EXHAUSTED',
						details: [{ retryDelay: '21s' }],
					},
				},
			]),
		).to.include({ code: 'rate_limit', retryAfterMs: 21_000 })
		expect(told(529, {}, { 'x-should-retry': 'false' }).retryable).to.equal(false)
	})

	it('plain http to another machine is refused before anything is sent, unless allowed', async () => {
		const http = createHttp({ env: {} })
		const deps = { http, clock: quickClock(), tuning: defaultTuning }
		const made = (over: Partial<Provider>) =>
			createModelClient({ ...provider, ...over }, modelSpec('prov', 'm1'), deps).then(
				() => null,
				(error: Error) => error,
			)
		expect((await made({ baseURL: 'http://192.168.1.9:11434' }))?.message).to.match(/plain http/)
		expect((await made({ baseURL: 'http://localhost.evil.com' }))?.message).to.match(/plain http/)
		expect(await made({ baseURL: 'http://192.168.1.9:11434', allowHttp: true })).to.equal(null)
		expect(await made({ baseURL: 'http://localhost:11434' })).to.equal(null)
		expect((await made({ baseURL: 'https://user:pw@host.test' }))?.message).to.match(/user or password/)
		expect((await made({ baseURL: 'file:///x' }))?.message).to.match(/https/)
		http.close()
	})

	it('a redirect gets neither the body nor the key', async () => {
		const other = await startSse([{ body: openaiStream({ text: 'stolen' }) }])
		const server = await startSse([{ status: 307, headers: { location: `${other.url}/v1/chat/completions` } }])
		for (const api of ['openai', 'anthropic'] as const) {
			const made = await make(api, server.url)
			expect(errorOf(await all(made.client)).error.message).to.match(/redirect/)
			made.close()
		}
		expect(other.requests).to.have.length(0)
		await other.close()
		await server.close()
	})
})

describe('Z01 keys', () => {
	it('Z01 white space around a key is trimmed before it is sent', async () => {
		for (const apiKey of ['sk-x12345\n', ' sk-x12345', 'sk-x12345\r\n', '\tsk-x12345 ']) {
			const server = await startSse([{ body: openaiStream({ text: 'ok' }) }])
			const made = await make('openai', server.url, { provider: { apiKey } })
			endOf(await all(made.client))
			expect(server.requests[0]!.headers.authorization).to.equal('Bearer sk-x12345')
			made.close()
			await server.close()
		}
	})

	it('Z01 a key that cannot work is named by its fault, never shown', async () => {
		const wrong: [string, RegExp][] = [
			['"sk-x12345"', /quotation/],
			["'sk-x12345'", /quotation/],
			['sk-x\u200b12345', /invisible.*U\+200B/],
			['sk-xé12345', /U\+00E9/],
			['sk-x 12345', /space/],
			['sk-x\n12345', /line break/],
			['sk-x\u000712345', /control.*U\+0007/],
			['Bearer sk-x12345', /Bearer/],
			[' ', /empty/],
		]
		for (const [key, fault] of wrong) {
			const problem = checkKey(key)
			expect(problem?.message, key).to.match(fault)
			expect(`${problem?.message} ${problem?.hint}`).to.not.match(/sk-x|12345/)
			if (!key.trim()) continue
			const error = await make('anthropic', 'http://127.0.0.1:1', { provider: { apiKey: key } }).then(
				() => null,
				(e) => e,
			)
			expect((error as UserError).name).to.equal('UserError')
			expect(String(error)).to.not.match(/sk-x|12345/)
		}
		expect(checkKey('sk-x12345')).to.equal(null)
	})
})

describe('base URLs', () => {
	it('with or without version, slash or endpoint, the same address', () => {
		for (const url of [
			'https://api.anthropic.com',
			'https://api.anthropic.com/',
			'https://api.anthropic.com/v1',
			'https://api.anthropic.com/v1/',
			'https://api.anthropic.com/v1/messages',
		])
			expect(normaliseBaseURL(url, 'anthropic'), url).to.equal('https://api.anthropic.com')
		for (const url of [
			'http://localhost:11434',
			'localhost:11434/',
			'http://localhost:11434/v1',
			'http://localhost:11434/v1/chat/completions',
			'http://localhost:11434/v1/models',
		])
			expect(normaliseBaseURL(url, 'openai'), url).to.equal('http://localhost:11434/v1')
		const same = [
			'https://openrouter.ai/api/v1',
			'https://api.groq.com/openai/v1',
			'https://generativelanguage.googleapis.com/v1beta/openai',
			'https://api.z.ai/api/paas/v4',
		]
		for (const url of same) expect(normaliseBaseURL(url, 'openai')).to.equal(url)
		expect(normaliseBaseURL('https://api.groq.com/openai', 'openai')).to.equal('https://api.groq.com/openai/v1')
		expect(normaliseBaseURL('https://gw.test/llm/#', 'openai')).to.equal('https://gw.test/llm')
	})
})

describe('retries', () => {
	const usage = (output: number): Usage => ({
		input: 100,
		output,
		cacheRead: 0,
		cacheWrite: 0,
		thinking: 0,
		requests: 1,
		cost: 1,
	})
	const failing = (
		failures: (Partial<ModelFailure> & { usage?: Usage })[],
		calls = { n: 0 },
	): ModelClient & { calls: { n: number } } => ({
		calls,
		async *stream() {
			const failure = failures[calls.n++]
			if (!failure) {
				yield {
					type: 'end',
					message: { role: 'assistant', blocks: [] },
					stop: 'end',
					usage: usage(5),
				} satisfies ModelEvent
				return
			}
			const { usage: spent, ...rest } = failure
			yield {
				type: 'error',
				error: { code: 'network', message: 'broke', retryable: true, streamed: false, ...rest },
				...(spent && { usage: spent }),
			}
		},
	})
	const tuning = { ...defaultTuning }

	it('waits 1 s·2ⁿ, at most a minute, a little less at random, five times before the first byte', async () => {
		const clock = quickClock()
		const inner = failing(Array(9).fill({}))
		const events = await all(withRetry(inner, tuning, clock, () => 0))
		expect(clock.slept).to.deep.equal([1_000, 2_000, 4_000, 8_000, 16_000])
		expect(only(events, 'retry').map((e) => `${e.attempt}/${e.of}`)).to.deep.equal(['1/5', '2/5', '3/5', '4/5', '5/5'])
		expect(errorOf(events).error.code).to.equal('network')
		const random = quickClock()
		await all(withRetry(failing([{}]), tuning, random, () => 1))
		expect(random.slept).to.deep.equal([750])
		const capped = quickClock()
		await all(withRetry(failing(Array(8).fill({})), { ...tuning, retriesBefore: 8 }, capped, () => 0))
		expect(Math.max(...capped.slept)).to.equal(60_000)
	})

	it('counts tries before and after text apart: three after', async () => {
		const events = await all(
			withRetry(
				failing([{ streamed: true }, {}, { streamed: true }, { streamed: true }, { streamed: true }]),
				tuning,
				quickClock(),
			),
		)
		expect(only(events, 'retry').map((e) => [e.of, e.void])).to.deep.equal([
			[3, true],
			[5, false],
			[3, true],
			[3, true],
		])
		expect(errorOf(events).error.streamed).to.equal(true)
	})

	it('waits as long as the server asks, but not for ever', async () => {
		const clock = quickClock()
		endOf(await all(withRetry(failing([{ retryAfterMs: 90_000 }]), tuning, clock)))
		expect(clock.slept).to.deep.equal([90_000])
		const long = failing([{ retryAfterMs: 3_600_000, hint: 'x' }])
		const events = await all(withRetry(long, tuning, clock))
		expect(errorOf(events).error.hint).to.match(/wait 60 minutes/)
		expect(long.calls.n).to.equal(1)
	})

	it('never asks again for auth, billing, overflow or a bad request, nor after an abort in the wait', async () => {
		for (const code of ['auth', 'billing', 'overflow', 'invalid_request', 'not_found', 'cancelled']) {
			const inner = failing([{ code, retryable: false }])
			expect(errorOf(await all(withRetry(inner, tuning, quickClock()))).error.code).to.equal(code)
			expect(inner.calls.n).to.equal(1)
		}
		const stop = new AbortController()
		const inner = failing([{}, {}])
		const clock = { now: () => 0, sleep: async () => stop.abort() }
		expect(errorOf(await all(withRetry(inner, tuning, clock), request(), stop.signal)).error.code).to.equal('cancelled')
		expect(inner.calls.n).to.equal(1)
	})

	it('V03 the usage of every try is in the end, once each; the context is the last one alone', async () => {
		const end = endOf(await all(withRetry(failing([{ streamed: true, usage: usage(300) }, {}]), tuning, quickClock())))
		expect(end.usage).to.include({ input: 200, output: 305, requests: 2, cost: 2 })
		expect((end as unknown as { context: number }).context).to.equal(105)
		const failed = errorOf(
			await all(
				withRetry(
					failing([
						{ streamed: true, usage: usage(300) },
						{ retryable: false, usage: usage(7) },
					]),
					tuning,
					quickClock(),
				),
			),
		)
		expect(failed.usage).to.include({ output: 307, requests: 2 })
	})
})
