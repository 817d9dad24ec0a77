import { Writable } from 'node:stream'
import { expect } from 'chai'
import { denyAll } from '../../src/chat/approver.ts'
import { exitCode, type PrintOptions, print } from '../../src/chat/print.ts'
import { UserError } from '../../src/engine/errors.ts'
import { noUsage } from '../../src/engine/types.ts'
import { gif, heic, jpeg, png } from '../helpers/pictures.ts'
import {
	end,
	type Fake,
	type FakeIo,
	type FakeOptions,
	fakeGaruda,
	fakeIo,
	noModel,
	replyOf,
	type Script,
} from './fake.ts'
import { isValid, type Line, valid, validLines } from './schema.ts'

interface Run {
	code: number
	io: FakeIo
	fake: Fake
	error: Error | null
}

async function run(
	script: Script,
	more: Partial<PrintOptions> & { stdin?: string | null; options?: FakeOptions; io?: FakeIo } = {},
): Promise<Run> {
	const { stdin = '', options, ...rest } = more
	const io = rest.io ?? fakeIo()
	const fake = fakeGaruda(script, { approver: denyAll, ...options })
	if (stdin !== null && !rest.io) io.keys.end(stdin)
	let error: Error | null = null
	let code = -1
	try {
		code = await print({
			open: async () => ({}),
			prompt: 'do it',
			format: 'text',
			inputLines: false,
			partial: false,
			verbose: false,
			version: '0.1.0',
			slashCommands: ['help'],
			acceptEdits: false,
			...rest,
			io,
			garuda: fake.garuda,
		})
	} catch (thrown) {
		error = thrown as Error
	}
	return { code, io, fake, error }
}

const hello: Script = ({ say }) => say('Hel', 'lo')
const call = (id: string, name = 'bash', input = { command: 'ls' }) => ({ type: 'tool_call', id, name, input }) as const
const info = { title: 'ls', kind: 'execute', access: 'run', paths: [], key: 'bash:ls' } as const

/** A turn with a call that succeeds and one that is denied. */
const working: Script = ({ emit, say }) => {
	emit({ type: 'step_start', step: 1 })
	emit({ type: 'thinking_delta', text: 'hm' })
	emit({ type: 'text_delta', text: 'Looking.' })
	emit(
		replyOf(
			[
				{ type: 'thinking', text: 'hm', provider: 'p', model: 'm', raw: { signature: 'sig' } },
				{ type: 'text', text: 'Looking.' },
				call('c1'),
				call('c2', 'write_file', { command: 'x' }),
			],
			{ stop: 'tool_calls' },
		),
	)
	emit({ type: 'tool_call', callId: 'c1', name: 'bash', input: { command: 'ls' }, info: { ...info, paths: [] } })
	emit({ type: 'tool_result', callId: 'c1', name: 'bash', status: 'ok', text: 'a.txt', data: { code: 0 } })
	emit({ type: 'tool_result', callId: 'c2', name: 'write_file', status: 'denied', text: 'Denied: no rule' })
	say('Could not write.')
	return {
		steps: 2,
		denials: [{ callId: 'c2', tool: 'write_file', input: { path: 'x' }, reason: 'no rule covers it' }],
	}
}

describe('one task (-p)', () => {
	it('prints the answer on stdout, nothing else, and ends with 0', async () => {
		const { code, io, fake } = await run(hello)
		expect([code, io.out.text, io.err.text, fake.closed]).to.deep.equal([0, 'Hello\n', '', 1])
	})

	it('through a pipe only the last answer goes; on a terminal the words stream', async () => {
		const script: Script = ({ say }) => {
			say('First I look.')
			say('Done ', 'now.')
		}
		expect((await run(script)).io.out.text).to.equal('Done now.\n')
		const io = fakeIo({ outTty: true })
		io.keys.end()
		expect((await run(script, { io })).io.out.text).to.equal('First I look.\nDone now.\n')
	})

	it('takes the prompt from -p, from stdin, and both together', async () => {
		expect((await run(hello)).fake.inputs).to.deep.equal([{ text: 'do it' }])
		const { prompt: _, ...none } = { prompt: undefined }
		const alone = await run(hello, { ...none, prompt: '', stdin: 'from the pipe\n' })
		expect(alone.fake.inputs).to.deep.equal([{ text: 'from the pipe\n' }])
		const both = await run(hello, { stdin: 'some diff' })
		expect(both.fake.inputs).to.deep.equal([{ text: 'do it', context: [{ label: 'stdin', text: 'some diff' }] }])
	})

	it('T06 no prompt and nothing on stdin is a usage error with a clear line, not a crash', async () => {
		for (const stdin of ['', '  \n']) {
			const { error, io, fake } = await run(hello, { prompt: '', stdin })
			expect(error).to.include({ name: 'UsageError', exitCode: 2 })
			expect(error!.message).to.equal('No prompt was given and nothing came on stdin.')
			expect([io.out.text, fake.prompts]).to.deep.equal(['', []])
		}
		const lines = await run(hello, { format: 'stream-json', inputLines: true, stdin: '' })
		expect(lines.error).to.include({ exitCode: 2 })
	})

	it('does not wait for ever on a stdin that a parent left open', async () => {
		const io = fakeIo({ kind: 'socket' })
		const { code } = await run(hello, { io, patienceMs: 20 })
		expect(code).to.equal(0)
		expect(io.err.text).to.include('nothing came on stdin')
		// A pipe's writer may be slow: it is waited for, with a word.
		const slow = fakeIo({ kind: 'pipe' })
		setTimeout(() => slow.keys.end('late'), 60)
		const waited = await run(hello, { io: slow, patienceMs: 20 })
		expect(waited.fake.inputs[0]!.context).to.deep.equal([{ label: 'stdin', text: 'late' }])
		expect(slow.err.text).to.include('waiting for stdin')
	})

	it('refuses what is no text or too long on stdin', async () => {
		const binary = await run(hello, { stdin: 'a\0b' })
		expect(binary.error).to.be.instanceOf(UserError)
		const io = fakeIo()
		io.keys.end(Buffer.alloc(9 * 1024 * 1024, 97))
		expect((await run(hello, { io })).error?.message).to.include('8 MB')
	})

	it('term-01 term-06 model text loses its escape sequences in text mode too, cut or whole', async () => {
		const script: Script = ({ say }) => say('a\u001b', ']52;c;Y3VybA==\u0007b\u001b[?1049', 'hc\u202e')
		for (const outTty of [false, true]) {
			const io = fakeIo({ outTty })
			io.keys.end()
			expect((await run(script, { io })).io.out.text).to.equal('abc[U+202E]\n')
		}
	})

	it('J02 a failed turn: exit 1, the message on stderr, stdout empty; in JSON is_error and error_*', async () => {
		const problems = [
			{ code: 'auth', message: 'The key was refused (401).', status: 401, requestId: 'req_1' },
			{ code: 'rate_limit', message: 'Too many requests (429).', status: 429 },
			{ code: 'invalid_request', message: 'Bad request (400).', status: 400 },
			{ code: 'network', message: 'Connection refused.', hint: 'Is the server up?' },
			{ code: 'not_found', message: 'There is no such model.' },
		]
		for (const error of problems) {
			const failing: Script = () => ({ reason: 'error', error, text: 'an earlier text' })
			const text = await run(failing)
			expect([text.code, text.io.out.text]).to.deep.equal([1, ''])
			expect(text.io.err.text).to.include(error.message)
			for (const format of ['json', 'stream-json'] as const) {
				const { code, io } = await run(failing, { format })
				const last = validLines(io.out.text).at(-1)!
				expect(code).to.equal(1)
				expect(last).to.include({ type: 'result', subtype: 'error_during_execution', is_error: true })
				expect(last.errors[0]).to.include(error.message)
				expect(last.error.code).to.equal(error.code)
				expect(last).to.not.have.property('result')
				expect(io.err.text).to.include(error.message)
			}
		}
	})

	it('J02 every kind of end has its code and its word', async () => {
		const cases: [Parameters<typeof end>[0], number, string][] = [
			[{ reason: 'max_steps' }, 1, 'error_max_turns'],
			[{ reason: 'cost_budget' }, 1, 'error_max_budget_usd'],
			[{ reason: 'token_budget' }, 1, 'error_during_execution'],
			[{ reason: 'repeated_calls' }, 1, 'error_during_execution'],
			[
				{ reason: 'error', error: { code: 'invalid_output', message: 'no fit' } },
				1,
				'error_max_structured_output_retries',
			],
			[{ reason: 'refusal' }, 1, 'error_during_execution'],
			[{ reason: 'max_tokens' }, 1, 'error_during_execution'],
			[{ reason: 'cancelled' }, 130, 'error_during_execution'],
		]
		for (const [more, code, subtype] of cases) {
			const done = await run(() => more, { format: 'json' })
			expect(done.code, more!.reason).to.equal(code)
			expect(valid(JSON.parse(done.io.out.text))).to.include({ subtype, is_error: true })
		}
		expect(exitCode(end({ reason: 'error', denials: [{ callId: '', tool: 't', input: {}, reason: '' }] }))).to.equal(1)
	})

	it('J03 what nobody was there to answer is told as that, with what would cover it; another reason as it is', async () => {
		const denials = [
			{ callId: 'c1', tool: 'edit_file', input: {}, reason: 'the answer was no' },
			{ callId: 'c2', tool: 'bash', input: {}, reason: 'the answer was no' },
			{ callId: 'c3', tool: 'bash', input: {}, reason: 'a rule denies it' },
		]
		const cover = (callId: string) => (callId === 'c1' ? '--allow edits would cover it' : undefined)
		const { io } = await run(() => ({ denials }), { cover })
		expect(io.err.text)
			.to.include('denied: edit_file: it asks, and nobody is there to answer; --allow edits would cover it\n')
			.and.include('denied: bash: it asks, and nobody is there to answer\n')
			.and.include('denied: bash: a rule denies it\n')
	})

	it('J03 a denied call is seen: exit 3, listed in the result, a message of its own, a line on stderr', async () => {
		const text = await run(working)
		expect(text.code).to.equal(3)
		expect(text.io.err.text).to.include('denied: write_file: no rule covers it')
		const { code, io } = await run(working, { format: 'stream-json' })
		const lines = validLines(io.out.text)
		expect(code).to.equal(3)
		expect(lines.map((line) => line.subtype ?? line.type)).to.deep.equal([
			'init',
			'assistant',
			'assistant',
			'assistant',
			'assistant',
			'user',
			'permission_denied',
			'user',
			'assistant',
			'success',
		])
		expect(lines.at(-1)!.permission_denials).to.deep.equal([
			{ tool_name: 'write_file', tool_use_id: 'c2', tool_input: { path: 'x' } },
		])
	})

	it('J03 with -p every question that still arrives is denied', async () => {
		const answers: string[] = []
		const { code } = await run(async ({ ask, say }) => {
			answers.push((await ask({})).choice, (await ask({ choices: ['once', 'deny'] })).choice)
			say('no')
			return { denials: [{ callId: 'c', tool: 'bash', input: {}, reason: 'nobody there' }] }
		})
		expect([answers, code]).to.deep.equal([['deny', 'deny'], 3])
	})

	it('J04 stdout is one JSON document; notices of any kind are on stderr', async () => {
		const noisy: Script = ({ emit, say }) => {
			emit({ type: 'notice', level: 'warning', text: 'hook said: \u001b[31moops' })
			emit({ type: 'tool_progress', callId: 'c', text: 'noise' })
			emit({ type: 'compaction', phase: 'done', before: 9, after: 3 })
			say('ok')
		}
		const { io } = await run(noisy, {
			format: 'json',
			options: { notices: ['No sandbox here.', 'settings.json: ignored "x"'] },
		})
		expect(valid(JSON.parse(io.out.text))).to.include({ type: 'result', result: 'ok' })
		expect(io.out.text.trimEnd()).to.not.include('\n')
		for (const word of ['No sandbox here.', 'ignored "x"', 'hook said: oops']) expect(io.err.text).to.include(word)
		const all = await run(noisy, { format: 'json', verbose: true })
		const list = JSON.parse(all.io.out.text) as Line[]
		expect(list.map((line) => valid(line).type)).to.deep.equal(['system', 'system', 'assistant', 'result'])
		expect((await run(noisy, { options: { notices: ['n'] } })).io.out.text).to.equal('ok\n')
	})

	it('J06 a run that fails before its first turn has a result and an exit code too', async () => {
		for (const openFails of [
			new UserError('The session is open in process 12.', 'Close it.'),
			new Error('EIO: disk'),
		]) {
			for (const format of ['json', 'stream-json'] as const) {
				const { error, io } = await run(hello, { format, options: { openFails } })
				expect(error).to.equal(openFails)
				expect(validLines(io.out.text).at(-1)).to.deep.include({ is_error: true, session_id: null })
			}
			const text = await run(hello, { options: { openFails } })
			expect([text.error, text.io.out.text]).to.deep.equal([openFails, ''])
		}
		const locked = new UserError('locked')
		const choosing = await run(hello, { format: 'json', open: () => Promise.reject(locked) })
		expect(choosing.error).to.equal(locked)
		expect(validLines(choosing.io.out.text)[0]).to.include({ subtype: 'error_during_execution' })
	})

	it('J06 a full disk under stdout is told and is no success', async () => {
		const io = fakeIo()
		io.keys.end()
		const full = new Writable({
			write: (_chunk, _encoding, done) => done(Object.assign(new Error('no space left'), { code: 'ENOSPC' })),
		})
		io.stdout = full
		const { code } = await run(hello, { io })
		expect(code).to.equal(1)
		expect(io.err.text).to.include('no space left')
	})

	it('with no model the three ways to get one are named', async () => {
		const { error } = await run(hello, { options: noModel })
		expect(error).to.be.instanceOf(UserError)
		const { hint } = error as UserError
		for (const way of ['garuda setup', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'Ollama']) expect(hint).to.include(way)
	})

	it('SIGINT stops the turn and ends with 130; TERM and HUP with 143 and 129; a result is still there', async () => {
		for (const [name, code] of [
			['SIGINT', 130],
			['SIGTERM', 143],
			['SIGHUP', 129],
		] as const) {
			const io = fakeIo()
			io.keys.end()
			const done = await run(
				async ({ stopped, say }) => {
					say('part')
					io.signal(name)
					await stopped()
				},
				{ io, format: 'json' },
			)
			expect(done.code).to.equal(code)
			expect(valid(JSON.parse(io.out.text))).to.include({ terminal_reason: 'aborted', is_error: true })
			expect(done.fake.closed).to.equal(1)
		}
	})

	it('130 wins over 1 and 3, 1 over 3, over several turns', async () => {
		const line = (text: string) => `${JSON.stringify({ type: 'user', message: { role: 'user', content: text } })}\n`
		const script: Script = ({ text, say }) => {
			say(text)
			if (text === 'denied') return { denials: [{ callId: 'c', tool: 't', input: {}, reason: 'r' }] }
			if (text === 'fails') return { reason: 'error', error: { code: 'internal', message: 'x' } }
			return undefined
		}
		const codes = async (...texts: string[]) =>
			(await run(script, { format: 'stream-json', inputLines: true, prompt: '', stdin: texts.map(line).join('') })).code
		expect(await codes('fine', 'fine')).to.equal(0)
		expect(await codes('denied', 'fine')).to.equal(3)
		expect(await codes('denied', 'fails', 'denied')).to.equal(1)
	})

	it('stream-json input: each line is a turn of one session, a bad line is told and the rest goes on', async () => {
		const stdin = [
			'{"type":"user","message":{"role":"user","content":"one"}}',
			'',
			'not json',
			'{"type":"user","message":{"role":"user","content":[{"type":"text","text":"two"},{"type":"text","text":"more"}]}}\r',
			'{"type":"user","message":{"role":"user","content":[{"type":"image"}]}}',
			'{"type":"user","message":{"role":"user","content":"three"}}',
		].join('\n')
		const { code, io, fake } = await run(hello, { format: 'stream-json', inputLines: true, prompt: '', stdin })
		expect(fake.prompts).to.deep.equal(['one', 'two\nmore', 'three'])
		expect(fake.opened).to.have.length(1)
		const results = validLines(io.out.text).filter((line) => line.type === 'result')
		expect(results.map((line) => line.is_error)).to.deep.equal([false, true, false, true, false])
		expect(io.err.text).to.include('Line 3 of stdin is no JSON')
		expect(code).to.equal(1)
	})

	it('R02 stream-json input: pictures come with the words, or alone; what is none is told by line and reason', async () => {
		const picture = (bytes: Buffer, more: object = {}) => ({
			type: 'image',
			source: { type: 'base64', media_type: 'image/png', data: bytes.toString('base64'), ...more },
		})
		const line = (...content: object[]) => JSON.stringify({ type: 'user', message: { role: 'user', content } })
		const stdin = [
			line({ type: 'text', text: 'look' }, picture(png(8, 6)), picture(gif())),
			line(picture(jpeg())),
			line({ type: 'text', text: 'a' }, picture(Buffer.alloc(0))),
			line({ type: 'text', text: 'b' }, picture(heic())),
			line({ type: 'text', text: 'c' }, picture(png(), { data: 'x y' })),
			line({ type: 'text', text: 'd' }, { type: 'document', source: {} }),
			line(...Array.from({ length: 21 }, () => picture(gif()))),
		].join('\n')
		const { io, fake } = await run(hello, { format: 'stream-json', inputLines: true, prompt: '', stdin })
		expect(fake.inputs.map((one) => [one.text, one.images?.map((image) => image.label)])).to.deep.equal([
			['look', ['image 1, PNG 8×6', 'image 2, GIF 1×1']],
			['', ['image 1, JPEG 16×8']],
		])
		for (const words of [
			'Line 3 of stdin has a bad image: image 1 is empty.',
			'Line 4 of stdin has a bad image: image 1 is a HEIC image',
			'Line 5 of stdin has a bad image: image 1 is no valid base64.',
			'Line 6 of stdin has a content block that is no text and no image',
			'Line 7 of stdin has too many images: 21 images are too many for one prompt',
		])
			expect(io.err.text).to.include(words)
	})

	it('a reader that leaves ends the run without a word', async () => {
		const io = fakeIo({ outTty: true, errTty: false })
		io.keys.end()
		const broken = new Writable({
			write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
		}) as Writable & { isTTY?: boolean }
		broken.isTTY = true
		io.stdout = broken
		let aborted = false
		const { code, error } = await run(
			async ({ say, stopped }) => {
				say('text')
				await stopped()
				aborted = true
			},
			{ io },
		)
		expect([code, error, aborted]).to.deep.equal([1, null, true])
		expect(io.err.text).to.not.include('EPIPE')
	})

	it('waits for a slow reader: nothing is cut and nothing is left when it resolves', async () => {
		const io = fakeIo()
		io.keys.end()
		let received = 0
		io.stdout = new Writable({
			highWaterMark: 16,
			write(chunk: Buffer, _encoding, done) {
				setTimeout(() => {
					received += chunk.length
					done()
				}, 5)
			},
		})
		const big = 'x'.repeat(300_000)
		await run(({ say }) => say(big), { io, format: 'stream-json' })
		expect(received).to.be.above(600_000)
	})

	it('partial messages have the form of a stream, whole replies follow, and pieces add up to the text', async () => {
		const { io } = await run(working, { format: 'stream-json', partial: true })
		const lines = validLines(io.out.text)
		const events = lines.filter((line) => line.type === 'stream_event').map((line) => line.event)
		expect(events.slice(0, 7).map((event) => event.type)).to.deep.equal([
			'message_start',
			'content_block_start',
			'content_block_delta',
			'content_block_stop',
			'content_block_start',
			'content_block_delta',
			'content_block_stop',
		])
		const args = events.find((event) => event.delta?.type === 'input_json_delta')
		expect(JSON.parse(args.delta.partial_json)).to.deep.equal({ command: 'ls' })
		const text = events.flatMap((event) => event.delta?.text ?? []).join('')
		expect(text).to.equal('Looking.Could not write.')
		const ids = new Set(lines.flatMap((line) => (line.type === 'assistant' ? [line.message.id] : [])))
		const started = events.filter((event) => event.type === 'message_start').map((event) => event.message.id)
		expect([...ids]).to.deep.equal(started)
	})

	it('a structured answer: the JSON alone on stdout, structured_output in the result', async () => {
		const script: Script = ({ say }) => {
			say('```json\n{"ok":true}\n```')
			return { structured: { ok: true } }
		}
		for (const outTty of [false, true]) {
			const io = fakeIo({ outTty })
			io.keys.end()
			expect((await run(script, { io, schema: { type: 'object' } })).io.out.text).to.equal('{"ok":true}\n')
		}
		const json = await run(script, { format: 'json', schema: { type: 'object' } })
		expect(JSON.parse(json.io.out.text).structured_output).to.deep.equal({ ok: true })
	})

	it('an unknown price is null, never 0; a line holds nothing that a terminal acts on', async () => {
		const { io } = await run(
			({ say }) => {
				say('a\u009b31m\u202e\u0007\u{e0041}')
				return { usage: { ...noUsage(), requests: 1, cost: null } }
			},
			{ format: 'stream-json' },
		)
		expect(io.out.text).to.not.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
		const lines = validLines(io.out.text)
		expect(lines.at(-1)!.result).to.equal('a\u009b31m\u202e\u0007\u{e0041}')
		expect(lines.at(-1)!.total_cost_usd).to.equal(null)
	})

	it('the schema refuses what is not documented', () => {
		expect(isValid({ type: 'result' })).to.equal(false)
		expect(
			isValid({ type: 'stream_event', event: { type: 'nope' }, parent_tool_use_id: null, session_id: '', uuid: '' }),
		).to.equal(false)
	})

	it('costs little for each piece, with and without partial messages', async () => {
		const count = 20_000
		const script: Script = ({ emit }) => {
			for (let i = 0; i < count; i++) emit({ type: 'text_delta', text: 'some words of text ' })
			// The channel joins what nobody reads; read one by one the sink itself is measured.
		}
		const { JsonMessages } = await import('../../src/chat/json.ts')
		const messages = new JsonMessages({ partial: true, slashCommands: [], version: '0', acceptEdits: false })
		const begin = process.hrtime.bigint()
		for (let i = 0; i < count; i++) messages.event({ type: 'text_delta', text: 'some words of text ' })
		expect(Number(process.hrtime.bigint() - begin) / count).to.be.below(25_000)
		const { io } = await run(script, { format: 'stream-json', partial: true })
		expect(io.out.writes).to.be.below(count / 10)
	})
})
