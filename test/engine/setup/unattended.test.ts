// Setup without a terminal: the flags say all, nothing is asked, a mistake writes nothing.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { type SetupFlags, setup } from '../../../src/engine/setup/index.ts'
import { removeTemp } from '../../helpers/temp.ts'
import { goodKey, json, models, provider, type Scene, scene } from './fixture.ts'

const scenes: Scene[] = []
const open = async (...args: Parameters<typeof scene>) => {
	const made = await scene(...args)
	scenes.push(made)
	return made
}
const run = async (at: Scene, flags: SetupFlags, env: Record<string, string> = {}) => {
	const text = await setup({ ...at.place, env: { ...at.place.env, ...env } }, { yes: true, ...flags }, null)
	expect(text).to.not.include(goodKey)
	return text
}
const fails = async (at: Scene, flags: SetupFlags, env: Record<string, string> = {}): Promise<string> => {
	let thrown: any
	await run(at, flags, env).catch((error) => {
		thrown = error
	})
	expect(thrown?.name, String(thrown)).to.equal('UserError')
	expect(`${thrown.message} ${thrown.hint}`).to.not.include(goodKey)
	expect(!existsSync(at.garuda) || readdirSync(at.garuda).length === 0).to.equal(true)
	return `${thrown.message} ${thrown.hint}`
}
const file = ({ garuda }: Scene, name: string) =>
	existsSync(join(garuda, name)) ? JSON.parse(readFileSync(join(garuda, name), 'utf8')) : null

describe('setup: unattended', () => {
	afterEach(async () => {
		for (const one of scenes.splice(0)) await one.close()
		removeTemp()
	})

	it('stores the key of a variable, checks it, sets the model', async () => {
		const at = await open()
		const flags = { provider: 'openai', 'key-from-env': 'MY_KEY', model: 'big-1' }
		const text = await run(at, flags, { MY_KEY: `${goodKey}\n` })
		expect(text).to.include('takes the key: 2 models').and.include('Default model: openai/big-1')
		expect(file(at, 'credentials')).to.deep.equal({ OPENAI_API_KEY: goodKey })
		expect(file(at, 'models.json')).to.deep.equal({ default: 'openai/big-1' })
		expect(await run(at, flags, { MY_KEY: goodKey })).to.include('no file was changed')
	})

	it('the usual model where the provider lists it, the only one where there is one, else it asks for --model', async () => {
		const usual = await open(provider(['claude-sonnet-5-5', 'claude-haiku-5-5']))
		await run(usual, { provider: 'anthropic' }, { ANTHROPIC_API_KEY: goodKey })
		expect(file(usual, 'models.json').default).to.equal('anthropic/claude-sonnet-5-5')
		expect(file(usual, 'credentials')).to.equal(null)
		const only = await open(provider(['alone']))
		await run(only, { provider: 'openai' }, { OPENAI_API_KEY: goodKey })
		expect(file(only, 'models.json').default).to.equal('openai/alone')
		expect(await fails(await open(), { provider: 'openai' }, { OPENAI_API_KEY: goodKey })).to.match(
			/--model is missing.*small-1/,
		)
	})

	it('a new provider at its own address, with its own name for the key', async () => {
		const at = await open(provider(['m']))
		await run(
			at,
			{ provider: 'work', 'base-url': `${at.server.url}/v1/`, 'key-from-env': 'K', model: 'work/m' },
			{ K: goodKey },
		)
		expect(file(at, 'models.json')).to.deep.equal({
			default: 'work/m',
			providers: { work: { baseURL: `${at.server.url}/v1`, key: 'WORK_API_KEY' } },
		})
		expect(file(at, 'credentials')).to.deep.equal({ WORK_API_KEY: goodKey })
	})

	it("a server of one's own without a key; an Anthropic-compatible one", async () => {
		const at = await open(() => models('m'))
		await run(at, { provider: 'box', 'base-url': at.server.url, model: 'm' }, { OPENAI_API_KEY: goodKey })
		expect(file(at, 'models.json').providers).to.deep.equal({ box: { baseURL: `${at.server.url}/v1`, key: null } })
		expect(at.server.requests[0]!.headers).to.not.have.property('authorization')
		await run(at, { provider: 'claudish', 'base-url': `${at.server.url}/v1/messages`, api: 'anthropic', model: 'm' })
		expect(file(at, 'models.json').providers.claudish).to.deep.equal({
			api: 'anthropic',
			baseURL: at.server.url,
			key: null,
		})
		expect(at.server.requests[1]!.path).to.equal('/v1/models?limit=1000')
	})

	const wrong: [string, SetupFlags, Record<string, string>, RegExp][] = [
		['no provider', {}, {}, /--provider is missing.*anthropic/],
		['an unknown provider', { provider: 'nope' }, {}, /No provider "nope".*--base-url/],
		[
			'a variable that is not there',
			{ provider: 'openai', 'key-from-env': 'NOPE' },
			{},
			/no variable NOPE.*never the key itself/,
		],
		['a key in place of the name', { provider: 'openai', 'key-from-env': 'toString' }, {}, /no variable toString/],
		['Z02 an empty variable', { provider: 'openai', 'key-from-env': 'K' }, { K: ' \n' }, /K is empty/],
		[
			'Z01 a line break in it',
			{ provider: 'openai', 'key-from-env': 'K' },
			{ K: `${goodKey}\nx` },
			/key in K holds a line break/,
		],
		[
			'Z01 a zero-width character in it',
			{ provider: 'openai', 'key-from-env': 'K' },
			{ K: `${goodKey}\u200b` },
			/invisible/,
		],
		['Z01 quotes around it', { provider: 'openai' }, { OPENAI_API_KEY: `"${goodKey}"` }, /quotes/],
		['no key at all', { provider: 'openai' }, {}, /no key for openai.*--key-from-env/],
		[
			'a wrong key',
			{ provider: 'openai', 'key-from-env': 'K' },
			{ K: 'sk-wrong-0123456789' },
			/did not accept.*Nothing was written/s,
		],
		[
			'a model that is not listed',
			{ provider: 'openai', model: 'big-2' },
			{ OPENAI_API_KEY: goodKey },
			/no model "big-2".*Near it: big-1/,
		],
		['plain http to another machine', { provider: 'x', 'base-url': 'http://llm.example.com' }, {}, /plain http/],
		['a login in the address', { provider: 'x', 'base-url': 'https://a:b@llm.example.com' }, {}, /no user name/],
		['an address that is none', { provider: 'x', 'base-url': 'llm' }, {}, /is no URL/],
		['a name that is none', { provider: '../x', 'base-url': 'https://llm.example.com' }, {}, /no name for a provider/],
		[
			'another wire for a built-in name',
			{ provider: 'openai', api: 'anthropic' },
			{ OPENAI_API_KEY: goodKey },
			/built in/,
		],
	]
	for (const [name, flags, env, words] of wrong)
		it(`${name}: says what to do, writes nothing`, async () => {
			expect(await fails(await open(), flags, env)).to.match(words)
		})

	it('Z06 no HOME, and a home that cannot be written: said, with what to do', async () => {
		const at = await open()
		const flags = { provider: 'openai', 'key-from-env': 'K', model: 'big-1' }
		const failing = async (more: { home?: string; garudaHome?: string }) => {
			let thrown: any
			await setup({ ...at.place, ...more, env: { ...at.place.env, K: goodKey } }, { yes: true, ...flags }, null).catch(
				(error) => {
					thrown = error
				},
			)
			expect(thrown?.name, String(thrown)).to.equal('UserError')
			return `${thrown.message} ${thrown.hint}`
		}
		expect(await failing({ home: '' })).to.match(/HOME is not set.*Set HOME/)
		expect(await failing({ garudaHome: '/proc/nowhere' })).to.match(/cannot be made.*GARUDA_HOME/)
		expect(await failing({ garudaHome: 'relative' })).to.include('absolute')
	})

	it('--no-check sends nothing and takes any model', async () => {
		const at = await open()
		await run(at, { provider: 'openai', 'key-from-env': 'K', model: 'unheard-of', check: false }, { K: goodKey })
		expect(at.server.connections()).to.equal(0)
		expect(file(at, 'models.json').default).to.equal('openai/unheard-of')
	})

	it('the team policy stops a forbidden model', async () => {
		const at = await open()
		mkdirSync(at.garuda, { mode: 0o700 })
		writeFileSync(join(at.garuda, 'policy.json'), JSON.stringify({ models: ['openai/small-*'] }), { mode: 0o600 })
		let thrown: any
		await run(at, { provider: 'openai', model: 'big-1' }, { OPENAI_API_KEY: goodKey }).catch((error) => {
			thrown = error
		})
		expect(thrown.message).to.include('does not allow')
		expect(readdirSync(at.garuda)).to.deep.equal(['policy.json'])
	})

	it("a project's files have no say: models.json and settings of the folder it runs in are not read", async () => {
		const at = await open()
		mkdirSync(join(at.home, 'project', '.garuda'), { recursive: true })
		writeFileSync(join(at.home, 'project', '.garuda', 'models.json'), '{broken')
		writeFileSync(join(at.home, 'project', '.garuda', 'settings.json'), '{broken')
		const cwd = process.cwd()
		process.chdir(join(at.home, 'project'))
		try {
			await run(at, { provider: 'openai', model: 'big-1' }, { OPENAI_API_KEY: goodKey })
		} finally {
			process.chdir(cwd)
		}
		expect(file(at, 'models.json').default).to.equal('openai/big-1')
	})

	it('--show tells what is set, as text and as JSON, without a key', async () => {
		const at = await open()
		await run(at, { provider: 'openai', 'key-from-env': 'K', model: 'big-1' }, { K: goodKey })
		expect(await run(at, { show: true }, { OPENAI_API_KEY: 'sk-other-0123456789abc', GARUDA_MODEL: 'x/y' })).to.match(
			/Default model: openai\/big-1 \(GARUDA_MODEL=x\/y wins.*variable OPENAI_API_KEY.*a stored one is not used/s,
		)
		const value = JSON.parse(await run(at, { show: true, json: true }))
		expect(value.default).to.equal('openai/big-1')
		expect(value.providers.find((one: any) => one.name === 'openai')).to.include({
			key: 'stored',
			keyName: 'OPENAI_API_KEY',
		})
		expect(value.storedKeys).to.deep.equal(['OPENAI_API_KEY'])
		expect(JSON.stringify(value)).to.not.include('cdef')
	})

	it("--remove-key by the key's or the provider's name; a variable that still holds one is said", async () => {
		const at = await open()
		for (const name of ['OPENAI_API_KEY', 'openai']) {
			await run(at, { provider: 'openai', 'key-from-env': 'K', model: 'big-1' }, { K: goodKey })
			const text = await run(at, { 'remove-key': name }, { OPENAI_API_KEY: goodKey })
			expect(text).to.include('is removed').and.include('still set in your environment')
			expect(file(at, 'credentials')).to.deep.equal({})
		}
		for (const name of ['OPENAI_API_KEY', 'NO_SUCH_KEY', 'mistral']) {
			const none = await run(at, { 'remove-key': name }).catch((error: unknown) => error)
			expect((none as Error).name, String(none)).to.equal('UserError')
			expect((none as Error).message).to.match(/^No key \w+ is stored\.$/)
		}
	})

	it('a key from another variable: the name that it is kept under is said', async () => {
		const at = await open()
		const flags = { provider: 'work', 'base-url': at.server.url, 'key-from-env': 'WORK_KEY', model: 'big-1' }
		expect(await run(at, flags, { WORK_KEY: goodKey })).to.include('The key is kept as WORK_API_KEY.')
		expect(file(at, 'credentials')).to.deep.equal({ WORK_API_KEY: goodKey })
	})

	it("OpenRouter's figures are kept with the model, dated", async () => {
		const at = await open(() =>
			json({
				data: [
					{
						id: 'a/b',
						context_length: 200_000,
						pricing: { prompt: '0.000001', completion: '0.000002' },
						top_provider: { max_completion_tokens: 200_000 },
					},
				],
			}),
		)
		await run(
			at,
			{ provider: 'router', 'base-url': `${at.server.url}/api/v1`, 'key-from-env': 'K', model: 'a/b' },
			{ K: goodKey },
		)
		expect(file(at, 'models.json').providers.router.models).to.deep.equal({
			'a/b': {
				window: 200_000,
				maxOutput: 32_000,
				price: { input: 1, output: 2, cacheRead: 1, cacheWrite: 1, date: '2026-11-30' },
			},
		})
	})
})
