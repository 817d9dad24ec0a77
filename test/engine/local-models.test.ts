// Models by the name of a server on this machine, and what is used when only a key is there.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { EngineOptions, Garuda } from '../../src/engine/api.ts'
import { localPresets } from '../../src/engine/config/local-presets.ts'
import { loadModels } from '../../src/engine/config/models.ts'
import { garudaPaths } from '../../src/engine/config/paths.ts'
import { threeWays, usualDate, usualModels } from '../../src/engine/config/usual-models.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { UserError } from '../../src/engine/errors.ts'
import { runSlash } from '../../src/engine/slash.ts'
import { openaiStream, type Reply, type SseServer, startSse } from '../helpers/sse-server.ts'
import { removeTemp, tempDir } from '../helpers/temp.ts'

const list = (...ids: string[]): Reply => ({
	headers: { 'content-type': 'application/json' },
	body: [JSON.stringify({ object: 'list', data: ids.map((id) => ({ id })) })],
})

describe('a model server of this machine, by its name', () => {
	let home: string
	const servers: SseServer[] = []
	const engines: Garuda[] = []
	beforeEach(() => {
		home = join(tempDir(), 'home')
		mkdirSync(join(home, 'proj'), { recursive: true })
	})
	afterEach(async () => {
		for (const one of engines.splice(0)) await one.close()
		for (const one of servers.splice(0)) await one.close()
		removeTemp()
	})
	/** Nobody listens there: ports of this machine's own servers are none of a test's business. */
	const nowhere = Object.fromEntries(
		localPresets.map((one) => [`${one.name.replace(/\W/g, '_').toUpperCase()}_BASE_URL`, 'http://127.0.0.1:9']),
	)
	const serve = async (...ids: string[]): Promise<SseServer> => {
		const server = await startSse((request) =>
			request.path.endsWith('/models') ? list(...ids) : { body: openaiStream({ text: 'Hi' }) },
		)
		servers.push(server)
		return server
	}
	const engine = (env: Record<string, string>, more: Partial<EngineOptions> = {}): Garuda => {
		const made = createEngine({
			root: join(home, 'proj'),
			home,
			env: { ...nowhere, ...env },
			approver: { ask: async () => ({ choice: 'deny' }) },
			...more,
		})
		engines.push(made)
		return made
	}
	const failure = async (work: Promise<unknown>): Promise<UserError> => {
		const error = await work.then(
			() => null,
			(fault: unknown) => fault,
		)
		expect(error).to.be.instanceOf(UserError)
		return error as UserError
	}

	it('answers to -m, GARUDA_MODEL and the default of models.json, with no key', async () => {
		const server = await serve('qwen3-coder:latest', 'small')
		const key = { OPENAI_API_KEY: 'sk-mine-1234567890', ANTHROPIC_API_KEY: 'sk-ant-mine-1234567890' }
		const at = { OLLAMA_BASE_URL: server.url, ...key }
		mkdirSync(join(home, '.garuda'), { recursive: true, mode: 0o700 })
		for (const [more, env] of [
			[{ model: 'ollama/qwen3-coder' }, at],
			[{}, { ...at, GARUDA_MODEL: 'ollama/small' }],
			[{}, at],
		] as const) {
			if (!('model' in more) && !('GARUDA_MODEL' in env))
				writeFileSync(join(home, '.garuda', 'models.json'), '{"default":"ollama/small"}', { mode: 0o600 })
			const garuda = engine(env, more)
			const ready = await garuda.readiness()
			expect(ready.server).to.deep.equal({ name: 'Ollama', url: `${server.url}/v1` })
			const session = await garuda.open()
			expect((await session.prompt('hello').end).text).to.equal('Hi')
			expect(session.model).to.equal(ready.model)
		}
		expect(server.requests.map((one) => one.headers.authorization ?? null)).to.deep.equal(
			server.requests.map(() => null),
		)
	})

	it('what is not there is said before the first prompt: no server, no such model, no model named', async () => {
		const server = await serve('one', 'two')
		const at = { VLLM_BASE_URL: server.url }
		const open = (model: string, env: Record<string, string> = at) => failure(engine(env, { model }).open())
		const away = await open('ollama/x')
		expect(away.message).to.equal('Ollama does not answer at http://127.0.0.1:9/v1.')
		expect(away.hint).to.include('OLLAMA_BASE_URL')
		const other = await open('vllm/three')
		expect([other.message, other.hint]).to.deep.equal(['vLLM has no model "three".', 'It has: one, two.'])
		for (const name of ['vllm', 'vllm/']) {
			const none = await open(name)
			expect(none.hint, name).to.equal('Write vllm/one, or vllm/two.')
		}
		expect((await open('lmstudio')).hint).to.include('LM Studio does not answer at')
		const bare = await open('qwen3-coder')
		for (const one of localPresets) expect(bare.hint).to.include(one.name)
		expect(server.requests.every((one) => one.path === '/v1/models')).to.equal(true)
	})

	it('the variable moves it on this machine only; a provider of that name in models.json wins', async () => {
		for (const url of ['https://far.example/v1', 'https://10.0.0.5', 'http://127.0.0.1.evil.example'])
			await failure(engine({ OLLAMA_BASE_URL: url }, { model: 'ollama/x' }).open())
		mkdirSync(join(home, '.garuda'), { recursive: true, mode: 0o700 })
		const file = join(home, '.garuda', 'models.json')
		writeFileSync(file, '{"providers":{"ollama":{"baseURL":"https://mine.example","key":"MINE"}}}', { mode: 0o600 })
		const ready = await engine({ MINE: 'key-1234567890' }, { model: 'ollama/x' }).readiness()
		expect(ready).to.deep.equal({ model: 'ollama/x', problem: null })
	})

	it('/models lists all that it has, and no model that has no key', async () => {
		const server = await serve('one', 'two')
		const garuda = engine({ LMSTUDIO_BASE_URL: server.url }, { model: 'lmstudio/one' })
		const session = await garuda.open()
		const context = { garuda, session, signal: new AbortController().signal }
		const shown = await runSlash(context, '/models')
		expect(shown.type === 'text' && shown.text)
			.to.match(/^\* lmstudio\/one .*\n {2}lmstudio\/two /m)
			.and.not.include('claude')
		const changed = await runSlash(context, '/models two')
		expect(changed.type === 'text' && changed.text).to.equal('The model is now lmstudio/two.')
		const keyed = engine({ ANTHROPIC_API_KEY: 'sk-ant-mine-1234567890' })
		expect((await keyed.models.list()).some((one) => one.name.startsWith('anthropic/claude-'))).to.equal(true)
	})

	it('with one key alone its usual model is taken; another address than the usual one says which models it has', async () => {
		const mine = 'sk-mine-1234567890'
		const ready = async (env: Record<string, string>) => (await engine(env).readiness()).model
		const of = (name: string) => `${name}/${usualModels.find((one) => one.provider === name)!.id}`
		expect(await ready({ OPENAI_API_KEY: mine })).to.equal(of('openai'))
		expect(await ready({ ANTHROPIC_API_KEY: mine })).to.equal(of('anthropic'))
		expect(await ready({ OPENAI_API_KEY: mine, ANTHROPIC_API_KEY: mine })).to.equal(of('anthropic'))
		expect(await ready({ OPENAI_API_KEY: mine, GARUDA_MODEL: 'openai/other' })).to.equal('openai/other')
		expect(await ready({ OPENAI_API_KEY: mine, OPENAI_BASE_URL: 'http://127.0.0.1:9' })).to.equal(null)
		expect(await ready({ OPENAI_API_KEY: ' ' })).to.equal(null)
		expect(usualDate).to.match(/^20\d\d-\d\d-\d\d$/)
		// Every way that is named without a model is one.
		const { providers } = await loadModels(garudaPaths(home, join(home, 'proj')), {})
		for (const name of threeWays.match(/\w+_API_KEY/g)!)
			expect(
				usualModels.some(({ provider }) => providers.find((one) => one.name === provider)!.keyName === name),
			).to.equal(true)
		for (const name of threeWays.match(/\w+(?=\/[<…])/g)!)
			expect(
				localPresets.some((one) => one.name === name),
				name,
			).to.equal(true)
	})
})
