// How a run ends and what it leaves on its streams: exit codes, pipes, closed readers, colours, the debug log.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import {
	bin,
	credentials,
	environment,
	garuda,
	lines,
	type Place,
	place,
	type Run,
	start,
	told,
	until,
} from '../helpers/cli.ts'
import { skip } from '../helpers/skip.ts'
import { openaiStream, startSse } from '../helpers/sse-server.ts'
import { removeTemp } from '../helpers/temp.ts'

const say = (text: string, deltas = 1) => ({ steps: [{ text, deltas }] })
const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** The bin within a line of bash; `GARUDA` in it is the command. */
function shell(
	at: Place,
	line: string,
	run: Run = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
	const command = `${quote(process.execPath)} ${quote(bin)}`
	const child = spawn('bash', ['-c', line.replaceAll('GARUDA', command)], {
		cwd: at.root,
		env: environment(at, run),
		stdio: ['ignore', 'pipe', 'pipe'],
	})
	let stdout = ''
	let stderr = ''
	child.stdout.on('data', (chunk: Buffer) => {
		stdout += chunk.toString('latin1')
	})
	child.stderr.on('data', (chunk: Buffer) => {
		stderr += chunk
	})
	return new Promise((done) => child.on('close', (code) => done({ code, stdout, stderr: told(stderr) })))
}

/** Processes whose command line ends with a text. */
const alive = (text: string): string[] =>
	readdirSync('/proc').filter((pid) => {
		try {
			return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').endsWith(`sleep\0${text}\0`)
		} catch {
			return false
		}
	})

describe('exit codes', function () {
	this.timeout(30_000)
	afterEach(removeTemp)

	it('0 when it is done; the answer alone on stdout', async () => {
		const ran = await garuda(place(), ['-p', 'hi'], { script: say('All fine.') })
		expect([ran.code, ran.stdout]).to.deep.equal([0, 'All fine.\n'])
		expect(told(ran.stderr)).to.equal('')
	})

	it('1 when the turn failed, with the reason on stderr and nothing on stdout', async () => {
		const ran = await garuda(place(), ['-p', 'hi'], {
			script: { steps: [{ error: { message: 'the model is gone' } }] },
		})
		expect([ran.code, ran.stdout]).to.deep.equal([1, ''])
		expect(ran.stderr).to.include('the model is gone')
		const steps = await garuda(place(), ['-p', 'hi', '--max-steps', '1'], {
			script: { steps: [{ calls: [{ name: 'read_file', input: { path: 'a.txt' } }] }, { text: 'never' }] },
		})
		expect([steps.code, steps.stdout]).to.deep.equal([1, ''])
	})

	it('2 for wrong usage, before anything is read or made', async () => {
		const at = place()
		for (const args of [
			['-p', 'x', '--output-format', 'yaml'],
			['-p', 'x', '--no-such-flag'],
			['-p', 'x', '-c', '-r', 'abc'],
			['nosuchverb'],
			['-p', 'x', '--max-cost', 'many'],
		]) {
			const ran = await garuda(at, args, { script: say('no') })
			expect([ran.code, ran.stdout], args.join(' ')).to.deep.equal([2, ''])
		}
		expect(readdirSync(at.root)).to.not.include('.garuda')
	})

	it('J03 3 when what a running call wanted was denied: to leave the sandbox, to reach a host; said in every form', async () => {
		const calls = [
			{ name: 'bash', input: { command: 'echo > /usr/share/garuda-not-there' } },
			{ name: 'web_fetch', input: { url: 'https://a.invalid/page' } },
		]
		const steps = [{ calls }, { text: 'It went another way.' }]
		const plain = await garuda(place(), ['-p', 'x'], { script: { steps } })
		expect([plain.code, plain.stdout]).to.deep.equal([3, 'It went another way.\n'])
		expect(plain.stderr).to.include('denied: bash').and.include('denied: web_fetch')
		const json = await garuda(place(), ['-p', 'x', '--output-format', 'json'], { script: { steps } })
		const denials = JSON.parse(json.stdout).permission_denials
		expect(denials.map((one: { tool_name: string }) => one.tool_name)).to.deep.equal(['bash', 'web_fetch'])
		const stream = await garuda(place(), ['-p', 'x', '--output-format', 'stream-json', '--verbose'], {
			script: { steps },
		})
		expect(stream.stdout.match(/"permission_denied"/g)).to.have.length(2)
		// What was not asked for anything more is no denial.
		const missing = { steps: [{ calls: [{ name: 'bash', input: { command: 'ls /no/such' } }] }, { text: 'x' }] }
		expect((await garuda(place(), ['-p', 'x'], { script: missing })).code).to.equal(0)
	})

	it('J03 3 when a call was denied and never allowed later; 0 when a narrower one then did it', async () => {
		const write = { name: 'write_file', input: { path: 'b.txt', content: 'x\n' } }
		const script = { steps: [{ calls: [write] }, { text: 'I could not.' }] }
		const at = place()
		const denied = await garuda(at, ['-p', 'x', '--output-format', 'json'], { script })
		expect(denied.code).to.equal(3)
		const result = JSON.parse(denied.stdout)
		expect(result).to.include({ is_error: false, result: 'I could not.' })
		expect(result.permission_denials).to.deep.equal([
			{ tool_name: 'write_file', tool_use_id: 'script_1', tool_input: write.input },
		])
		expect(readdirSync(at.root)).to.not.include('b.txt')
		const allowed = await garuda(at, ['-p', 'x', '--allow', 'edits'], { script })
		expect(allowed.code).to.equal(0)
		expect(readdirSync(at.root)).to.include('b.txt')
	})

	it('an --allow rule that names no tool, and a mention of what is not there, are told and do no harm', async () => {
		const ran = await garuda(
			place(),
			['-p', 'see @nope and me@example.com', '--allow', 'wrte_file', '--allow', 'edits'],
			{
				script: {
					steps: [{ calls: [{ name: 'write_file', input: { path: 'b.txt', content: 'x\n' } }] }, { text: 'ok' }],
				},
			},
		)
		expect([ran.code, ran.stdout], ran.stderr).to.deep.equal([0, 'ok\n'])
		expect(ran.stderr).to.include('--allow: "wrte_file" names no tool').and.include('is called @nope;')
		expect(ran.stderr).to.not.include('example.com')
	})

	it('1 wins over 3; a reader learns of both', async () => {
		const ran = await garuda(place(), ['-p', 'x', '--output-format', 'json'], {
			script: {
				steps: [{ calls: [{ name: 'write_file', input: { path: 'b', content: '' } }] }, { error: { message: 'gone' } }],
			},
		})
		expect(ran.code).to.equal(1)
		expect(JSON.parse(ran.stdout).permission_denials).to.have.length(1)
	})

	for (const [name, code] of [
		['SIGINT', 130],
		['SIGTERM', 143],
		['SIGHUP', 129],
	] as const)
		it(`${code} after ${name} in the middle of an answer; the result line is there, no child is left`, async () => {
			const at = place()
			const running = start(at, ['-p', 'x', '--output-format', 'stream-json'], {
				script: {
					steps: [
						{ calls: [{ name: 'bash', input: { command: 'sleep 77.125 & echo begun; sleep 77.125' } }] },
						{ text: 'no' },
					],
				},
			})
			await until(() => running.stdout().includes('tool_use'), running.stderr)
			await until(() => alive('77.125').length >= 2, running.stderr)
			running.child.kill(name)
			const ran = await running.done
			expect([ran.code, ran.signal]).to.deep.equal([code, null])
			const last = lines(ran.stdout).at(-1)
			expect(last).to.include({ type: 'result', is_error: true, terminal_reason: 'aborted' })
			expect(alive('77.125')).to.deep.equal([])
		})

	it('U04 P06 nobody answers: every question is a denial at once, listed, and the turn goes on', async () => {
		const calls = [
			{ name: 'write_file', input: { path: 'made.txt', content: 'x' } },
			{ name: 'bash', input: { command: 'echo x', outside_sandbox: true, reason: 'because' } },
			{ name: 'read_file', input: { path: '/etc/hostname' } },
			{ name: 'remember', input: { text: 'a thing' } },
			{ name: 'bash', input: { command: 'sudo -n true; echo "sudo $?"' } },
			{ name: 'bash', input: { command: 'read -t 5 answer; echo "read $?"' } },
		]
		const ran = await garuda(place(), ['-p', 'x', '--output-format', 'json', '--verbose'], {
			script: { steps: [{ calls }, { text: 'Went on.' }] },
			stdin: '',
		})
		const messages = JSON.parse(ran.stdout) as any[]
		const result = messages.at(-1)
		expect([ran.code, result.result]).to.deep.equal([3, 'Went on.'])
		expect(result.permission_denials.map((one: any) => one.tool_name)).to.include.members([
			'write_file',
			'bash',
			'read_file',
		])
		expect(ran.ms, 'no wait').to.be.below(8000)
		const read = messages.filter((one) => one.type === 'user').find((one) => JSON.stringify(one).includes('read 1'))
		expect(read, 'a command that asks gets an end of input').to.not.equal(undefined)
	})

	it('an unknown verb names the nearest; no verb and a leading flag mean the chat', async () => {
		const at = place()
		const [verb, none, flag] = await Promise.all([
			garuda(at, ['chatt']),
			garuda(at, [], { stdin: 'hello from stdin', script: say('From no verb.') }),
			garuda(at, ['--mode', 'plan', '-p', 'x'], { script: say('From a flag.') }),
		])
		expect([verb.code, verb.stdout]).to.deep.equal([2, ''])
		expect(verb.stderr).to.include('garuda chat')
		expect([none.code, none.stdout, flag.stdout]).to.deep.equal([0, 'From no verb.\n', 'From a flag.\n'])
	})
})

describe('output through pipes', function () {
	this.timeout(30_000)
	afterEach(removeTemp)
	const big = `${'0123456789abcde\n'.repeat(327_680)}the end`

	it('an answer of 5 MB is whole through a pipe, into a file, and with a slow reader', async () => {
		const at = place()
		const script = say(big, 50)
		const runs = await Promise.all([
			shell(at, 'GARUDA -p x | cat | wc -c', { script }),
			shell(at, 'GARUDA -p x > out.txt; echo "code $?"; tail -n 1 out.txt; wc -c < out.txt', { script }),
			shell(at, 'GARUDA -p x | { sleep 1; head -c 1000 >/dev/null; sleep 0.5; wc -c; }', { script }),
		])
		const size = big.length + 1
		expect(runs[0]!.stdout.trim()).to.equal(String(size))
		expect(runs[1]!.stdout.split('\n').map((line) => line.trim())).to.deep.equal([
			'code 0',
			'the end',
			String(size),
			'',
		])
		expect(runs[2]!.stdout.trim()).to.equal(String(size - 1000))
		for (const run of runs) expect(run.stderr).to.equal('')
	})

	it('stream-json of a long answer with pieces ends with its result line through a pipe', async () => {
		const run = await shell(
			place(),
			'GARUDA -p x --output-format stream-json --include-partial-messages | { sleep 0.5; tail -n 1; }',
			{
				script: say(big, 5000),
			},
		)
		expect(JSON.parse(run.stdout)).to.include({ type: 'result', subtype: 'success' })
	})

	it('a reader that leaves ends it without a word: no EPIPE, no stack', async () => {
		const at = place()
		const script = say(big, 500)
		for (const line of [
			'GARUDA -p x | head -c 10; echo "${PIPESTATUS[0]}" >&2',
			'GARUDA -p x --output-format stream-json --include-partial-messages | head -n 1; echo "${PIPESTATUS[0]}" >&2',
			'GARUDA --help | head -n 1; echo "${PIPESTATUS[0]}" >&2',
			'GARUDA --version | true; echo "${PIPESTATUS[0]}" >&2',
		]) {
			const run = await shell(at, line, { script })
			expect(run.stderr.trim(), line).to.match(/^[01]$/)
		}
	})

	it('a full disk behind stdout is said and is exit 1', async function () {
		try {
			statSync('/dev/full')
		} catch {
			skip(this, 'no /dev/full')
		}
		const run = await shell(place(), 'GARUDA -p x > /dev/full; echo "code $?"', { script: say('lost') })
		expect(run.stdout.trim()).to.equal('code 1')
		expect(run.stderr).to.include('ENOSPC')
	})

	for (const words of [
		'--version',
		'-v',
		'--help',
		'chat --help',
		'trust',
		'trust list --help',
		'trust list --json',
		'trust list',
		'audit show --help',
		'audit verify',
		'policy check "bash(ls)" --json',
	])
		it(`J06 a full disk behind ${words} is one line on stderr and exit 1`, async function () {
			if (!existsSync('/dev/full')) skip(this, 'no /dev/full')
			const run = await shell(place(), `GARUDA ${words} > /dev/full; echo "code $?"`)
			expect(run.stdout.trim()).to.equal('code 1')
			expect(run.stderr.match(/^garuda: the output could not be written: ENOSPC.*$/gm), run.stderr).to.have.length(1)
			expect(run.stderr).to.not.match(/\n\s+at |Node\.js v/)
			// Both streams: nobody can be told.
			const both = await shell(place(), `GARUDA ${words} > /dev/full 2>&1; echo "code $?"`)
			expect(both.stdout.trim()).to.equal('code 1')
		})

	it('closed streams: no stdout, no stderr, no stdin', async () => {
		const at = place()
		const script = say('fine')
		const runs = await Promise.all([
			shell(at, 'GARUDA -p x >&-; echo "code $?"', { script }),
			shell(at, 'GARUDA -p x 2>&-; echo "code $?"', { script }),
			shell(at, 'GARUDA -p x <&-; echo "code $?"', { script }),
		])
		expect(runs[1]!.stdout).to.equal('fine\ncode 0\n')
		expect(runs[2]!.stdout).to.equal('fine\ncode 0\n')
		for (const run of runs) expect(run.stderr).to.not.match(/\n\s+at /)
	})

	it('T06 T07 without a terminal there is no escape sequence, whatever TERM says; FORCE_COLOR asks for them, NO_COLOR wins', async () => {
		const at = place()
		const script = {
			steps: [
				{ calls: [{ name: 'bash', input: { command: "printf '\\033[31mred\\n'; ls --color=always" } }] },
				{ text: 'a \u001b[31mred\u001b[0m word' },
			],
		}
		const env = (more: Record<string, string>): Run => ({ script, env: { TERM: 'xterm-256color', ...more } })
		const [plain, dumb, off, forced, both] = await Promise.all([
			garuda(at, ['-p', 'x', '--verbose'], env({})),
			garuda(at, ['-p', 'x', '--verbose'], env({ TERM: 'dumb', CI: '1' })),
			garuda(at, ['-p', 'x', '--verbose'], env({ FORCE_COLOR: '0' })),
			garuda(at, ['-p', 'x', '--verbose'], env({ FORCE_COLOR: '1' })),
			garuda(at, ['-p', 'x', '--verbose'], env({ FORCE_COLOR: '1', NO_COLOR: '1' })),
		])
		for (const one of [plain, dumb, off, both]) {
			expect(one.code).to.equal(0)
			expect(`${one.stdout}${one.stderr}`).to.not.include('\u001b')
		}
		expect(forced.stderr).to.include('\u001b[')
		expect(forced.stdout, "the model's own sequences never").to.not.include('\u001b')
	})
})

describe('the debug log', function () {
	this.timeout(20_000)
	afterEach(removeTemp)

	it('is named at the end, is private, holds request ids and no secret or text of the conversation', async () => {
		const server = await startSse([{ body: openaiStream({ text: 'The secret word is xyzzy-answer.' }) }])
		try {
			const at = place()
			credentials(at.home, { OPENAI_API_KEY: 'sk-debug-1234567890' })
			const ran = await garuda(
				at,
				['-p', 'say xyzzy-prompt with sk-debug-1234567890', '-m', 'openai/gpt-test', '--debug'],
				{
					env: { OPENAI_BASE_URL: `${server.url}/v1`, SOME_TOKEN: 'tok-0987654321' },
				},
			)
			expect(ran.code).to.equal(0)
			const path = /the debug log is (\S+)/.exec(ran.stderr)?.[1]
			expect(path, ran.stderr)
				.to.be.a('string')
				.and.satisfy((one: string) => one.startsWith(join(at.home, '.garuda/logs/')))
			expect(statSync(path!).mode & 0o777).to.equal(0o600)
			const text = readFileSync(path!, 'utf8')
			for (const secret of ['sk-debug-1234567890', 'tok-0987654321', 'xyzzy']) expect(text).to.not.include(secret)
			const entries = lines(text)
			expect(entries[0]).to.include({ at: 'start' })
			expect(entries.find((one) => one.at === 'message')).to.include({ requestId: 'req_1' })
			expect(entries.at(-1)).to.include({ at: 'exit' })
		} finally {
			await server.close()
		}
	})

	it('of a failed run holds the request id and the status of the failure', async () => {
		const server = await startSse([{ status: 400, body: '{"error":{"message":"bad"}}' }])
		try {
			const at = place()
			credentials(at.home, { OPENAI_API_KEY: 'sk-debug-1234567890' })
			const ran = await garuda(at, ['-p', 'x', '-m', 'openai/gpt-test', '--debug'], {
				env: { OPENAI_BASE_URL: `${server.url}/v1` },
			})
			expect(ran.code).to.equal(1)
			const entries = lines(readFileSync(/the debug log is (\S+)/.exec(ran.stderr)![1]!, 'utf8'))
			expect(entries.find((one) => one.at === 'end').error).to.include({ status: 400, requestId: 'req_1' })
		} finally {
			await server.close()
		}
	})
})
