// A bug in a project that nobody here wrote is found and mended through the built bin, against others' model server in both wire forms.
import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LLMock } from '@copilotkit/aimock'
import { expect } from 'chai'
import {
	commit,
	credentials,
	garuda,
	git,
	journals,
	lines,
	type Place,
	place,
	records,
	repository,
} from '../helpers/cli.ts'
import { removeTemp } from '../helpers/temp.ts'

const file = 'lib/types/urlencoded.js'
const right = 'if (++this._fields >= this.fieldsLimit) {'
const wrong = 'if (++this._fields > this.fieldsLimit) {'
const test = 'node test/test-types-urlencoded.js'

/** The form parser of a published package with its tests, in a repository of its own, with a limit that is off by one. */
function project(): Place {
	const at = place({ '.gitignore': 'node_modules/\n', 'AGENTS.md': 'Run the tests with: node test/test.js\n' }, false)
	cpSync(join(repository, 'node_modules/busboy'), at.root, { recursive: true })
	cpSync(join(repository, 'node_modules/streamsearch'), join(at.root, 'node_modules/streamsearch'), { recursive: true })
	const text = readFileSync(join(at.root, file), 'utf8')
	writeFileSync(join(at.root, file), text.replaceAll(right, wrong))
	commit(at.root)
	return at
}

interface Turn {
	text?: string
	calls?: { name: string; input: Record<string, unknown> }[]
	/** What the last result must hold for the model to go on so. */
	sees?: RegExp
}

const call = (name: string, input: Record<string, unknown>) => ({ name, input })

/** What a model would do: look, run, one edit too narrow, run, read why, mend all places, run all. */
const work: Turn[] = [
	{ text: 'I run the failing tests first.', calls: [call('bash', { command: test })] },
	{
		sees: /fieldsLimit|deepStrictEqual|Expected|AssertionError/,
		text: 'The limit of fields is not kept. Where is it counted?',
		calls: [
			call('grep', { pattern: 'fieldsLimit', path: 'lib' }),
			call('read_file', { path: file, offset: 50, limit: 90 }),
		],
	},
	{
		sees: /this\._fields > this\.fieldsLimit/,
		text: 'One comparison is off by one.',
		calls: [
			call('edit_file', {
				path: file,
				old_string: `              this._bytesVal = 0;\n              ${wrong}\n                this.emit('fieldsLimit');\n                return cb();\n              }\n              continue;`,
				new_string: `              this._bytesVal = 0;\n              ${right}\n                this.emit('fieldsLimit');\n                return cb();\n              }\n              continue;`,
			}),
		],
	},
	{ sees: /Edited|Nothing was changed/, calls: [call('bash', { command: `${test}; echo "code $?"` })] },
	{
		sees: /code [1-9]/,
		text: 'Still red: it stands at more than one place.',
		calls: [call('edit_file', { path: file, old_string: wrong, new_string: right, replace_all: true })],
	},
	{ sees: /Edited/, calls: [call('bash', { command: `${test} && node test/test.js` })] },
	{
		sees: /test-types-multipart\.js[\s\S]*exit code 0/,
		text: 'Mended: the limit of fields holds again, and all tests pass.',
	},
]

/** Others' server plays the turns; one that does not see what it waits for says so in its last word. */
async function server(): Promise<LLMock> {
	const mock = new LLMock({ port: 0, host: '127.0.0.1', chunkSize: 7 })
	let turn = 0
	mock.on({ predicate: () => true }, (request) => {
		const now = work[turn++]
		if (!now) return { content: 'too many requests' }
		const last = JSON.stringify(request.messages.filter((one) => one.role === 'tool').slice(-2)).replaceAll('\\n', '\n')
		if (now.sees && !now.sees.test(last))
			return { content: `turn ${turn} did not see ${now.sees}: ${last.slice(-1500)}` }
		const calls = (now.calls ?? []).map((one, i) => ({
			id: `call_${turn}_${i}`,
			name: one.name,
			arguments: JSON.stringify(one.input),
		}))
		if (calls.length === 0) return { content: now.text ?? '' }
		return now.text === undefined ? { toolCalls: calls } : { content: now.text, toolCalls: calls }
	})
	await mock.start()
	return mock
}

const bytes = (root: string): number =>
	(readdirSync(root, { recursive: true }) as string[])
		.filter((name) => /^(lib|test)\/.*\.js$/.test(name))
		.reduce((sum, name) => sum + readFileSync(join(root, name), 'utf8').split('\n').length, 0)

describe('a bug fix on a real project', function () {
	this.timeout(60_000)
	afterEach(removeTemp)

	for (const [wire, model, path] of [
		['Anthropic', 'anthropic/claude-sonnet-5-5', '/v1/messages'],
		['OpenAI', 'openai/gpt-test', '/v1/chat/completions'],
	] as const)
		it(`in ${wire} form: one wrong edit, then the failing test is green`, async () => {
			const at = project()
			expect(bytes(at.root), 'a project of some size').to.be.above(1500)
			const broken = readFileSync(join(at.root, file), 'utf8')
			expect(
				spawnSync(process.execPath, ['test/test-types-urlencoded.js'], { cwd: at.root }).status,
				'red before',
			).to.not.equal(0)
			const mock = await server()
			credentials(at.home, { ANTHROPIC_API_KEY: 'sk-ant-journey', OPENAI_API_KEY: 'sk-journey' })
			try {
				const ran = await garuda(
					at,
					[
						'-p',
						'The urlencoded tests fail. Mend the bug.',
						'-m',
						model,
						'--allow',
						'edits',
						'--output-format',
						'stream-json',
					],
					{ env: { ANTHROPIC_BASE_URL: mock.url, OPENAI_BASE_URL: `${mock.url}/v1` }, timeoutMs: 45_000 },
				)
				const messages = lines(ran.stdout)
				const result = messages.at(-1)
				expect(result.result, ran.stderr).to.equal(work.at(-1)!.text)
				expect(ran.code).to.equal(0)
				expect(result).to.include({ subtype: 'success', is_error: false, num_turns: work.length })

				// The world, not the words: the tests are green and only that file changed, to what was published.
				expect(spawnSync(process.execPath, ['test/test.js'], { cwd: at.root }).status, 'green after').to.equal(0)
				expect(git(at.root, 'diff', '--name-only').trim()).to.equal(file)
				expect(readFileSync(join(at.root, file), 'utf8')).to.equal(
					readFileSync(join(repository, 'node_modules/busboy', file), 'utf8'),
				)

				// The wrong edit was made and was seen to be wrong.
				const results = messages
					.filter((one) => one.type === 'user')
					.map((one) => one.message.content[0].content as string)
				expect(results.filter((text) => /^Edited /.test(text))).to.have.length(2)
				expect(results.some((text) => /code [1-9]/.test(text))).to.equal(true)

				const requests = mock.getRequests()
				expect(requests.map((one) => one.path)).to.deep.equal(work.map(() => path))
				const [id] = journals(at.root)
				expect(id).to.equal(result.session_id)
				const journal = JSON.stringify(records(at.root, id!))
				expect(journal).to.not.include('sk-journey').and.not.include('sk-ant-journey')
				expect(records(at.root, id!).at(-1).type).to.equal('end')
				expect(statSync(join(at.root, '.garuda/sessions', `${id}.jsonl`)).mode & 0o777).to.equal(0o600)
				expect(broken).to.not.equal(readFileSync(join(at.root, file), 'utf8'))
			} finally {
				await mock.stop()
			}
		})
})
