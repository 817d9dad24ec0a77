// `garuda setup` over the built bin: on a pseudo-terminal against a provider on loopback, without a terminal, and what a chat does after it.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { goodKey, json, provider } from '../engine/setup/fixture.ts'
import { garuda, inTerminal, type Place, place, python, type Step } from '../helpers/cli.ts'
import { skip } from '../helpers/skip.ts'
import { type Handler, openaiStream, type Reply, type SseServer, startSse } from '../helpers/sse-server.ts'
import { removeTemp } from '../helpers/temp.ts'

const enter = '\r'
const down = '\u001b[B'
const servers: SseServer[] = []
const start = async (steps: Handler | Reply[] = provider()) => {
	const server = await startSse(steps)
	servers.push(server)
	return server
}
const env = (server: SseServer) => ({
	OPENAI_BASE_URL: `${server.url}/v1`,
	ANTHROPIC_BASE_URL: server.url,
	TERM: 'xterm-256color',
})
const own = (at: Place, name: string) => join(at.home, '.garuda', name)
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
const value = (at: Place, name: string) => JSON.parse(readFileSync(own(at, name), 'utf8'))
const unset = (at: Place) => !existsSync(own(at, 'credentials')) && !existsSync(own(at, 'models.json'))

/** Chooses OpenAI, the second of the list, and enters a key. */
const key = (text: string): Step[] => [
	{ expect: 'Which provider', wait: 0.2, send: `${down}${enter}` },
	{ expect: '(not shown)', wait: 0.1, send: `${text}${enter}` },
]

describe('garuda setup', function () {
	this.timeout(30_000)
	afterEach(async () => {
		for (const server of servers.splice(0)) await server.close()
		removeTemp()
	})

	describe('on a terminal', () => {
		before(function () {
			if (!python) skip(this, 'no python3')
		})
		const run = async (at: Place, server: SseServer, steps: Step[], more: Record<string, string> = {}) => {
			const ran = await inTerminal(at, ['setup'], steps, { env: { ...env(server), ...more } })
			expect(ran.output).to.not.include(goodKey)
			expect(ran.played, ran.output).to.equal(steps.length)
			// The terminal is left as it was.
			for (const [on, off] of [
				['\u001b[?2004h', '\u001b[?2004l'],
				['\u001b[?25l', '\u001b[?25h'],
			] as const)
				expect(ran.output.lastIndexOf(on), ran.output).to.be.at.most(ran.output.lastIndexOf(off))
			return ran
		}

		it('a good key: model from the list, both files closed, and the chat answers after it', async () => {
			const at = place()
			const server = await start((seen, n) =>
				seen.path.endsWith('/chat/completions')
					? { body: openaiStream({ text: 'It works.' }) }
					: provider(['big-1', 'small-1'])(seen, n),
			)
			const ran = await run(at, server, [
				...key(goodKey),
				{ expect: 'default?', wait: 0.2, send: `${down}${enter}` },
				{ expect: 'Next:', send: '' },
			])
			expect(ran.code).to.equal(0)
			expect([
				mode(join(at.home, '.garuda')),
				mode(own(at, 'credentials')),
				mode(own(at, 'models.json')),
			]).to.deep.equal(['700', '600', '600'])
			expect(value(at, 'models.json').default).to.equal('openai/small-1')
			expect(value(at, 'credentials')).to.deep.equal({ OPENAI_API_KEY: goodKey })
			const chat = await garuda(at, ['-p', 'hello'], { env: env(server) })
			expect([chat.code, chat.stdout], chat.stderr).to.deep.equal([0, 'It works.\n'])
			expect(server.requests.map((one) => [one.path, one.headers.authorization])).to.deep.equal([
				['/v1/models', `Bearer ${goodKey}`],
				['/v1/chat/completions', `Bearer ${goodKey}`],
			])
		})

		it('the chat with no model: set up in place, left once, and it goes on with the chosen model, with no restart', async () => {
			const at = place()
			const server = await start((seen, n) =>
				seen.path.endsWith('/chat/completions')
					? { body: openaiStream({ text: `I am ${seen.body.model}.` }) }
					: provider(['big-1', 'small-1'])(seen, n),
			)
			const steps: Step[] = [
				{ expect: '(Enter: the tour) > ', wait: 0.5, send: `1${enter}` },
				{ expect: 'Which provider', wait: 0.3, send: '\u0003' },
				{ expect: '(Enter: the tour) > ', wait: 0.5, send: `1${enter}` },
				...key(goodKey),
				{ expect: 'default?', wait: 0.2, send: `${down}${enter}` },
				{ expect: 'openai/small-1  build mode', send: '' },
				{ expect: '> ', wait: 0.2, send: `who are you?${enter}` },
				{ expect: 'I am small-1.', send: '' },
				{ expect: '> ', wait: 0.2, send: `/exit${enter}` },
			]
			const ran = await inTerminal(at, [], steps, { env: env(server), seconds: 25 })
			expect([ran.code, ran.played], ran.output).to.deep.equal([0, steps.length])
			expect(ran.output).to.not.include(goodKey).and.not.include('Next:')
			expect(value(at, 'models.json').default).to.equal('openai/small-1')
			expect(mode(own(at, 'credentials'))).to.equal('600')
			// One chat, one session, and the key went to its provider.
			expect(server.requests.at(-1)!.headers.authorization).to.equal(`Bearer ${goodKey}`)
			expect(ran.output.lastIndexOf('\u001b[?2004h')).to.be.below(ran.output.lastIndexOf('\u001b[?2004l'))
		})

		it('the chat with no model on a dumb terminal: the setup by numbers; a closed window in it ends the chat', async () => {
			const at = place()
			const server = await start((seen, n) =>
				seen.path.endsWith('/chat/completions')
					? { body: openaiStream({ text: 'Here.' }) }
					: provider(['big-1'])(seen, n),
			)
			const steps: Step[] = [
				{ expect: '(Enter: the tour) > ', wait: 0.5, send: '1\n' },
				{ expect: 'Number', wait: 0.2, send: '2\n' },
				{ expect: '(not shown)', wait: 0.2, send: `${goodKey}\n` },
				{ expect: 'Number', wait: 0.2, send: '1\n' },
				{ expect: 'build mode', send: '' },
				{ expect: '> ', wait: 0.2, send: 'hello\n' },
				{ expect: 'Here.', send: '' },
				{ expect: '> ', wait: 0.2, send: '/exit\n' },
			]
			const ran = await inTerminal(at, [], steps, { env: { ...env(server), TERM: 'dumb' }, seconds: 25 })
			expect([ran.code, ran.played], ran.output).to.deep.equal([0, steps.length])
			expect(ran.output).to.not.include('\u001b').and.not.include(goodKey)
			const gone = await inTerminal(
				place(),
				[],
				[
					{ expect: '(Enter: the tour) > ', wait: 0.5, send: `1${enter}` },
					{ expect: 'Which provider', wait: 0.3, hangup: true },
				],
				{ env: env(server), seconds: 12 },
			)
			expect(gone.code, gone.output).to.equal(129)
		})

		it('a bad key, then the good one, pasted with a line break before', async () => {
			const at = place()
			const ran = await run(at, await start(), [
				...key('sk-bad-0123456789'),
				{ expect: 'did not accept', send: '' },
				{ expect: 'What now', wait: 0.2, send: enter },
				{ expect: '(not shown)', wait: 0.1, send: `\u001b[200~${goodKey}\nrest\u001b[201~${enter}` },
				{ expect: 'line break', send: '' },
				{ expect: '(not shown)', wait: 0.1, send: `\u001b[200~${goodKey}\u001b[201~${enter}` },
				{ expect: 'default?', wait: 0.2, send: enter },
				{ expect: 'Written', send: '' },
			])
			expect(ran.code).to.equal(0)
			expect(ran.output).to.not.include('sk-bad')
			expect(value(at, 'credentials')).to.deep.equal({ OPENAI_API_KEY: goodKey })
		})

		it('secret-11 a redirect: told, not followed, nothing written', async () => {
			const at = place()
			const other = await start()
			const server = await start(() => ({ status: 307, headers: { location: `${other.url}/v1/models` } }))
			const ran = await run(at, server, [
				...key(goodKey),
				{ expect: 'redirect', send: '' },
				{ expect: 'What now', wait: 0.2, send: `${down}${down}${down}${enter}` },
				{ expect: 'nothing more was changed', send: '' },
			])
			expect([ran.code, other.connections(), unset(at)]).to.deep.equal([130, 0, true])
		})

		it('a slow provider: given up after ten seconds, nothing written', async () => {
			const at = place()
			const ran = await inTerminal(
				at,
				['setup'],
				[...key(goodKey), { expect: 'within 10 s', send: '' }, { expect: 'What now', wait: 0.2, send: '\u0003' }],
				{
					env: env(await start([{ headersAfter: 'never' }])),
					seconds: 20,
				},
			)
			expect([ran.played, ran.code], ran.output).to.deep.equal([4, 130])
			expect(unset(at)).to.equal(true)
		})

		it('offline: told what to look at; saved unchecked when the person wants it', async () => {
			const at = place()
			const server = await start()
			await server.close()
			const ran = await run(at, server, [
				...key(goodKey),
				{ expect: 'Nothing answers', send: '' },
				{ expect: 'What now', wait: 0.2, send: `${down}${down}${enter}` },
				{ expect: 'Model, as', wait: 0.2, send: `gpt-9${enter}` },
				{ expect: 'Written', send: '' },
			])
			expect(ran.code).to.equal(0)
			expect(value(at, 'models.json').default).to.equal('openai/gpt-9')
		})

		it('a key in the environment: used, not stored', async () => {
			const at = place()
			const ran = await run(
				at,
				await start(),
				[
					{ expect: 'What would you like', wait: 0.2, send: enter },
					{ expect: 'Which provider', wait: 0.2, send: `${down}${enter}` },
					{ expect: 'wins', send: '' },
					{ expect: 'default?', wait: 0.2, send: enter },
					{ expect: 'Written', send: '' },
				],
				{ OPENAI_API_KEY: goodKey },
			)
			expect([ran.code, existsSync(own(at, 'credentials'))]).to.deep.equal([0, false])
		})

		it('Ctrl-C at the list and at the key, and a closed window: 130 or gone, nothing written', async () => {
			const server = await start()
			for (const steps of [
				[{ expect: 'Which provider', wait: 0.2, send: '\u0003' }],
				[key('')[0]!, { expect: '(not shown)', wait: 0.1, send: 'half-a-key\u0003' }],
			]) {
				const at = place()
				const ran = await run(at, server, steps)
				expect(ran.code, ran.output).to.equal(130)
				expect(ran.output).to.not.include('half-a-key').and.not.include(' at ')
				expect(unset(at)).to.equal(true)
			}
			const at = place()
			const ran = await inTerminal(at, ['setup'], [{ expect: 'Which provider', wait: 0.2, hangup: true }], {
				env: env(server),
				seconds: 6,
			})
			expect(ran.code, ran.output).to.not.equal(null)
			expect(unset(at)).to.equal(true)
		})

		it('a long list is typed in to filter it', async () => {
			const at = place()
			const names = Array.from({ length: 60 }, (_, i) => `model-${i}`)
			const ran = await run(at, await start(provider(names)), [
				...key(goodKey),
				{ expect: 'type to filter', wait: 0.2, send: 'model-47' },
				{ expect: 'model-47', wait: 0.4, send: enter },
				{ expect: 'Written', send: '' },
			])
			expect(ran.code).to.equal(0)
			expect(value(at, 'models.json').default).to.equal('openai/model-47')
		})

		it('editors: the difference is shown, a yes writes it', async () => {
			const at = place()
			mkdirSync(join(at.home, '.jetbrains'))
			const ran = await inTerminal(
				at,
				['setup', 'editors', '--write'],
				[
					{ expect: '+', send: '' },
					{ expect: 'Write this to', wait: 0.2, send: enter },
					{ expect: 'Written', send: '' },
				],
			)
			expect([ran.code, ran.played], ran.output).to.deep.equal([0, 3])
			expect(
				JSON.parse(readFileSync(join(at.home, '.jetbrains', 'acp.json'), 'utf8')).agent_servers.Garuda.args.at(-1),
			).to.equal('acp')
		})
	})

	describe('without a terminal', () => {
		it('asks nothing with --yes; the files are closed; again it changes nothing', async () => {
			const at = place()
			const server = await start()
			const words = ['setup', '--provider', 'openai', '--key-from-env', 'MY_KEY', '--model', 'big-1', '--yes']
			const ran = await garuda(at, words, { env: { ...env(server), MY_KEY: goodKey } })
			expect([ran.code, ran.stderr], ran.stdout).to.deep.equal([0, ''])
			expect(ran.stdout).to.include('Default model: openai/big-1').and.not.include(goodKey)
			expect([mode(own(at, 'credentials')), mode(own(at, 'models.json'))]).to.deep.equal(['600', '600'])
			const again = await garuda(at, words, { env: { ...env(server), MY_KEY: goodKey } })
			expect(again.stdout).to.include('no file was changed')
		})

		it('without --yes it says which flags to give; a wrong key is exit 1 and writes nothing', async () => {
			const at = place()
			const server = await start()
			const bare = await garuda(at, ['setup'], { env: env(server) })
			expect([bare.code, bare.stdout]).to.deep.equal([1, ''])
			expect(bare.stderr).to.include('no terminal').and.include('--key-from-env')
			const wrong = await garuda(at, ['setup', '--provider', 'openai', '--key-from-env', 'K', '--yes'], {
				env: { ...env(server), K: 'sk-wrong-0123456789' },
			})
			expect(wrong.code).to.equal(1)
			expect(wrong.stderr).to.include('did not accept the key').and.not.include('sk-wrong')
			expect(unset(at)).to.equal(true)
		})

		it('--show and --remove-key need neither --yes nor a terminal', async () => {
			const at = place()
			const server = await start()
			await garuda(at, ['setup', '--provider', 'openai', '--key-from-env', 'K', '--model', 'big-1', '--yes'], {
				env: { ...env(server), K: goodKey },
			})
			const shown = await garuda(at, ['setup', '--show', '--json'], { env: env(server) })
			expect(JSON.parse(shown.stdout)).to.deep.include({ default: 'openai/big-1', storedKeys: ['OPENAI_API_KEY'] })
			expect((await garuda(at, ['setup', '--remove-key', 'openai'])).stdout).to.include('is removed')
			expect(value(at, 'credentials')).to.deep.equal({})
		})

		it('the doctor: exit 1 with no model, 0 where all is well; JSON for scripts; no key in it', async () => {
			const at = place()
			const server = await start(() => json({ data: [{ id: 'big-1' }] }))
			const bare = await garuda(at, ['setup', 'check'], { env: env(server) })
			expect(bare.code).to.equal(1)
			expect(bare.stdout)
				.to.match(/^FAIL {2}model /m)
				.and.match(/\d+ failed/)
			await garuda(at, ['setup', '--provider', 'openai', '--key-from-env', 'K', '--model', 'big-1', '--yes'], {
				env: { ...env(server), K: goodKey },
			})
			const ran = await garuda(at, ['setup', 'check', '--json'], { env: env(server) })
			expect(ran.stdout).to.not.include(goodKey).and.not.include(at.home)
			const report = JSON.parse(ran.stdout)
			expect(report.lines.find((one: any) => one.id === 'model')).to.include({ status: 'pass' })
			expect(ran.code).to.equal(report.ok ? 0 : 1)
			// A machine with no sandbox fails here for that reason only.
			const failed = report.lines.filter((one: any) => one.status === 'fail').map((one: any) => one.id)
			expect(failed.filter((id: string) => !id.startsWith('sandbox') && !id.startsWith('disk'))).to.deep.equal([])
			expect(readdirSync(join(at.home, '.garuda')).filter((name) => name.startsWith('check-'))).to.deep.equal([])
		})

		it('Z04 through a proxy: CONNECT to the provider, and what to do when it refuses', async () => {
			const at = place()
			const lines: string[] = []
			const proxy = createServer((socket) => {
				socket.on('error', () => {})
				socket.once('data', (bytes) => {
					lines.push(bytes.toString('latin1').split('\r\n')[0]!)
					socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
				})
			})
			await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
			const { port } = proxy.address() as { port: number }
			const ran = await garuda(at, ['setup', '--provider', 'anthropic', '--key-from-env', 'K', '--yes'], {
				env: { K: goodKey, HTTPS_PROXY: `http://me:pass-word-1@127.0.0.1:${port}` },
			})
			proxy.close()
			expect(lines).to.deep.equal(['CONNECT api.anthropic.com:443 HTTP/1.1'])
			expect(ran.code).to.equal(1)
			expect(ran.stderr).to.include('HTTPS_PROXY').and.not.include('pass-word-1')
		})
	})
})
