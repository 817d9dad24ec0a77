import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import Chat from '../../src/commands/chat.ts'
import { skip } from '../helpers/skip.ts'

interface Done {
	code: number | null
	stdout: string
	stderr: string
}

let home: string
/** The built bin where there is one; mocha sees to it that it is fresh. */
const start = existsSync('dist/oclif.js') ? ['bin/run.js'] : ['--import', 'tsx', 'bin/dev.js']

/** The verbs from their sources, with a home of their own and no key. */
function garuda(args: string[], more: { env?: Record<string, string>; stdout?: number } = {}): Promise<Done> {
	const child = spawn(process.execPath, [...start, ...args], {
		stdio: ['pipe', more.stdout ?? 'pipe', 'pipe'],
		env: {
			...more.env,
			PATH: process.env.PATH,
			HOME: home,
			GARUDA_HOME: join(home, '.garuda'),
			NO_COLOR: '1',
		},
	})
	child.stdin!.end()
	const done: Done = { code: null, stdout: '', stderr: '' }
	child.stdout?.on('data', (chunk: Buffer) => {
		done.stdout += chunk
	})
	child.stderr!.on('data', (chunk: Buffer) => {
		done.stderr += chunk
	})
	return new Promise((resolve) => child.on('close', (code) => resolve({ ...done, code })))
}

describe('garuda chat', () => {
	before(() => {
		home = mkdtempSync(join(tmpdir(), 'garuda-chat-'))
	})
	after(() => rmSync(home, { recursive: true, force: true }))

	it('every flag has a help text, and what scripts set has an env name', () => {
		for (const [name, flag] of Object.entries(Chat.flags))
			expect(flag.description, name).to.be.a('string').and.not.equal('')
		for (const name of [
			'model',
			'effort',
			'mode',
			'output-format',
			'max-cost',
			'max-steps',
			'max-tokens',
			'debug',
		] as const)
			expect(Chat.flags[name].env, name).to.match(/^GARUDA_/)
		// What grants something is said each time, never inherited.
		expect(Chat.flags.allow.env).to.equal(undefined)
	})

	it('T06 started with nothing on stdin it says what it needs: exit 2, no stack', async () => {
		const { code, stdout, stderr } = await garuda(['chat', '-m', 'anthropic/claude-opus-5-5'])
		expect([code, stdout]).to.deep.equal([2, ''])
		expect(stderr)
			.to.include('No prompt was given')
			.and.to.include('garuda -p')
			.and.to.not.match(/\n\s+at /)
	})

	it('wrong usage is exit 2 with the way to the right one', async () => {
		const runs = await Promise.all([
			garuda(['chat', '-p', 'x', '--modle', 'y']),
			garuda(['chat', '-p', 'x', '--output-format', 'xml']),
			garuda(['chat', '-p', 'x', '--max-cost', '-3']),
			garuda(['chat', '-p', 'x', '--include-partial-messages']),
			garuda(['chat', '-p', 'x', '--session-id', '../../x']),
			garuda(['caht']),
		])
		expect(runs.map((one) => one.code)).to.deep.equal([2, 2, 2, 2, 2, 2])
		expect(runs[0]!.stderr).to.include('Did you mean --model?')
		expect(runs[1]!.stderr).to.include('stream-json')
		expect(runs[2]!.stderr).to.include('max-cost')
		expect(runs[4]!.stderr).to.include('UUID')
		expect(runs[5]!.stderr).to.include('Did you mean "garuda chat"?')
		for (const one of runs) {
			expect(one.stdout).to.equal('')
			expect(one.stderr).to.not.match(/\n\s+at /)
		}
	})

	it('J02 with no model it ends with 1 and the three ways; json has its result', async () => {
		const [text, json] = await Promise.all([
			garuda(['chat', '-p', 'hello']),
			garuda(['chat', '-p', 'hello', '--output-format', 'json']),
		])
		expect([text.code, text.stdout]).to.deep.equal([1, ''])
		for (const way of ['garuda setup', 'ANTHROPIC_API_KEY', 'Ollama']) expect(text.stderr).to.include(way)
		expect(json.code).to.equal(1)
		expect(JSON.parse(json.stdout)).to.include({ type: 'result', is_error: true })
	})

	it('J06 a full disk under stdout is one line and exit 1, no crash', async function () {
		if (!existsSync('/dev/full')) skip(this, 'no /dev/full')
		const script = join(home, 'script.json')
		writeFileSync(script, '{"steps":[{"text":"hello"}]}')
		const full = openSync('/dev/full', 'w')
		try {
			const { code, stderr } = await garuda(['chat', '-p', 'x', '-C', home], {
				env: { GARUDA_MODEL_SCRIPT: script },
				stdout: full,
			})
			expect(code).to.equal(1)
			expect(stderr)
				.to.include('the output could not be written')
				.and.to.not.match(/\n\s+at /)
		} finally {
			closeSync(full)
		}
	})
})
