// Setup with a person: from nothing to a default model, again with what is set, and every way out on the way.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { guided } from '../../../src/engine/setup/guided.ts'
import { openRoom, type SetupPlace } from '../../../src/engine/setup/place.ts'
import type { SetupFlags } from '../../../src/engine/setup/unattended.ts'
import { type Handler, startSse } from '../../helpers/sse-server.ts'
import { removeTemp } from '../../helpers/temp.ts'
import { freePort, goodKey, json, models, person, provider, type Scene, scene } from './fixture.ts'

const scenes: Scene[] = []
const open = async (...args: Parameters<typeof scene>) => {
	const made = await scene(...args)
	scenes.push(made)
	return made
}

async function run(place: SetupPlace, answers: (string | boolean)[], flags: SetupFlags = {}) {
	const room = await openRoom(place)
	const answered = [...answers]
	const ask = person(answers)
	let stopped = false
	try {
		await guided(room, ask, flags)
	} catch (error) {
		if ((error as Error).message !== 'stopped') throw error
		stopped = true
	} finally {
		room.close()
	}
	const said = [...ask.said, ...ask.asked].join('\n')
	expect(said).to.not.include(goodKey)
	expect(ask.left(), `answers left over\n${said}`).to.equal(0)
	expect(stopped, 'Stop ends with SetupCancelled').to.equal(answered.at(-1) === 'Stop')
	return said
}

const files = ({ garuda }: Scene) => {
	const read = (name: string) =>
		existsSync(join(garuda, name)) ? JSON.parse(readFileSync(join(garuda, name), 'utf8')) : null
	return { models: read('models.json'), credentials: read('credentials') }
}
const nothing = ({ garuda }: Scene) => !existsSync(garuda) || readdirSync(garuda).length === 0

describe('setup: guided', () => {
	afterEach(async () => {
		for (const one of scenes.splice(0)) await one.close()
		removeTemp()
	})

	it('from nothing: provider, key, model; the catalogue knows its figures; a good key is asked for once', async () => {
		const at = await open(provider(['claude-haiku-5-5', 'claude-sonnet-5-5']))
		const said = await run(at.place, ['Anthropic', goodKey, 'claude-haiku-5-5'])
		expect(files(at)).to.deep.equal({
			models: { default: 'anthropic/claude-haiku-5-5' },
			credentials: { ANTHROPIC_API_KEY: goodKey },
		})
		expect(at.server.requests).to.have.length(1)
		expect(said).to.match(/claude-sonnet-5-5 \(1M context · \$2 in, \$10 out\)/)
		expect(statSync(join(at.garuda, 'credentials')).mode & 0o777).to.equal(0o600)
	})

	it('a wrong key: told, entered again, and only the good one is stored', async () => {
		const at = await open()
		const said = await run(at.place, ['OpenAI', 'sk-wrong-0123456789', 'Enter the key again', goodKey, 'big-1'])
		expect(said).to.include('did not accept the key').and.not.include('sk-wrong')
		expect(files(at).credentials).to.deep.equal({ OPENAI_API_KEY: goodKey })
	})

	it('leaving at any question writes nothing', async () => {
		const all = ['OpenAI', goodKey, 'big-1']
		for (let n = 0; n < all.length; n++) {
			const at = await open()
			let left: unknown
			await run(at.place, all.slice(0, n)).catch((error) => {
				left = error
			})
			expect((left as Error).name, String(left)).to.equal('SetupCancelled')
			expect(nothing(at)).to.equal(true)
		}
	})

	it('a key that cannot be one is told before anything is sent: Z01 line break, quotes, zero-width, Bearer, empty', async () => {
		const odd: [string, RegExp][] = [
			['sk-a\nsk-b', /line break/],
			['"sk-abcdef"', /quotation marks/],
			['sk-\u200babcdef', /invisible character \(U\+200B\)/],
			['sk-äbcdef', /no key has/],
			['Bearer sk-abcdef', /Bearer/],
			['', /empty/],
		]
		const at = await open()
		const said = await run(at.place, ['OpenAI', ...odd.map(([key]) => key), `  ${goodKey}\r\n`, 'big-1'])
		for (const [key, words] of odd) {
			expect(said).to.match(words)
			if (key !== '') expect(said).to.not.include(key)
		}
		expect(files(at).credentials).to.deep.equal({ OPENAI_API_KEY: goodKey })
		expect(at.server.requests).to.have.length(1)
	})

	it('no credit: the key is not asked for again; it can be saved unchecked, with a model by its name', async () => {
		const at = await open([json({ error: { message: 'Insufficient Balance' } }, 402)])
		const said = await run(at.place, ['OpenAI', goodKey, 'Save it unchecked', 'gpt-9'])
		expect(said).to.include('no credit').and.not.include('Enter the key again')
		expect(files(at)).to.deep.equal({ models: { default: 'openai/gpt-9' }, credentials: { OPENAI_API_KEY: goodKey } })
	})

	it('secret-11 a redirect is told and nothing is written; offline and slow servers too', async () => {
		const other = await startSse([models('stolen')])
		const redirect: Handler = () => ({ status: 302, headers: { location: `${other.url}/v1/models` } })
		for (const [steps, words] of [
			[redirect, /redirect/],
			[[{ headersAfter: 'never' }], /did not answer within/],
		] as [Handler, RegExp][]) {
			const at = await open(steps)
			expect(await run({ ...at.place, checkMs: 200 }, ['OpenAI', goodKey, 'Stop'])).to.match(words)
			expect(nothing(at)).to.equal(true)
		}
		const at = await open()
		const away = { ...at.place, env: { OPENAI_BASE_URL: `http://127.0.0.1:${await freePort()}/v1` } }
		expect(await run(away, ['OpenAI', goodKey, 'Try again', 'Stop'])).to.match(/Nothing answers/)
		expect(nothing(at)).to.equal(true)
		expect(other.connections()).to.equal(0)
		await other.close()
	})

	it('a variable of the environment wins: it is said, used for the check, and nothing is stored', async () => {
		const at = await open(provider(), { OPENAI_API_KEY: ` ${goodKey}\n` })
		const said = await run(at.place, ['Set up a provider', 'OpenAI', 'small-1'])
		expect(said).to.include('OPENAI_API_KEY is set').and.include('wins')
		expect(files(at)).to.deep.equal({ models: { default: 'openai/small-1' }, credentials: null })
	})

	it('Z02 an empty variable is none: the stored key counts', async () => {
		const at = await open(provider(), { OPENAI_API_KEY: '' })
		await run(at.place, ['OpenAI', goodKey, 'small-1'])
		const said = await run(at.place, ['Choose another default model', 'openai', true, 'big-1'])
		expect(said).to.include('stored key OPENAI_API_KEY')
		expect(files(at).models.default).to.equal('openai/big-1')
	})

	it('again: shows what is set, keeps the stored key, changes the model only', async () => {
		const at = await open()
		await run(at.place, ['OpenAI', goodKey, 'small-1'])
		const said = await run(at.place, ['Set up a provider', 'OpenAI', true, 'big-1'])
		expect(said).to.include('Default model: openai/small-1').and.include('…cdef')
		expect(files(at)).to.deep.equal({ models: { default: 'openai/big-1' }, credentials: { OPENAI_API_KEY: goodKey } })
		expect(await run(at.place, ['Leave all'])).to.not.include('Written')
	})

	it('what the flags say is not asked: provider, the variable of a new key, model; and no check when it is not wanted', async () => {
		const at = await open(provider(), { MY_KEY: goodKey })
		await run(at.place, [], { provider: 'openai', 'key-from-env': 'MY_KEY', model: 'big-1' })
		expect(files(at)).to.deep.equal({ models: { default: 'openai/big-1' }, credentials: { OPENAI_API_KEY: goodKey } })
		await run(at.place, [true, 'gpt-9'], { provider: 'openai', check: false })
		expect(files(at).models.default).to.equal('openai/gpt-9')
		expect(at.server.requests).to.have.length(1)
	})

	it('a stored key is removed after a yes, never without', async () => {
		const at = await open()
		await run(at.place, ['OpenAI', goodKey, 'small-1'])
		await run(at.place, ['Remove a stored key', 'OPENAI_API_KEY', false])
		expect(files(at).credentials).to.deep.equal({ OPENAI_API_KEY: goodKey })
		await run(at.place, ['Remove a stored key', 'OPENAI_API_KEY', true])
		expect(files(at).credentials).to.deep.equal({})
	})

	it("a server found on this machine needs no key, and gets none of the user's", async () => {
		const at = await open(() => models('qwen3'), { OPENAI_API_KEY: goodKey })
		const port = Number(new URL(at.server.url).port)
		const said = await run({ ...at.place, localPlaces: [{ name: 'Ollama', url: `http://127.0.0.1:${port}/v1` }] }, [
			'Set up a provider',
			'Ollama',
			'qwen3',
		])
		expect(said).to.include('Ollama, found on this machine')
		expect(files(at).models).to.deep.equal({
			default: 'ollama/qwen3',
			providers: { ollama: { baseURL: `http://127.0.0.1:${port}/v1`, key: null } },
		})
		expect(at.server.requests.map((one) => one.headers.authorization)).to.deep.equal([undefined, undefined])
	})

	it('an own server by its address, in each form people write it', async () => {
		const at = await open(provider(['m']))
		const { host } = new URL(at.server.url)
		for (const form of [`http://${host}`, `http://${host}/v1/`, `http://${host}/v1/chat/completions`, host]) {
			await run({ ...at.place, env: {} }, [
				...(files(at).models ? ['Set up a provider'] : []),
				'Another server',
				form,
				'OpenAI',
				...(files(at).models ? [true] : ['mine', true, goodKey]),
				'm',
			])
			expect(files(at).models.providers).to.deep.equal({ mine: { baseURL: `http://${host}/v1`, key: 'MINE_API_KEY' } })
		}
		expect(files(at).credentials).to.deep.equal({ MINE_API_KEY: goodKey })
	})

	it('an address that is none is asked for again; plain http to another machine needs a yes', async () => {
		const at = await open()
		let refused: unknown
		await run(at.place, [
			'Another server',
			'ftp://x',
			'https://u:p@x',
			'http://llm.example.com/v1',
			'OpenAI',
			false,
		]).catch((error) => {
			refused = error
		})
		expect((refused as Error).name, String(refused)).to.equal('UserError')
		expect(nothing(at)).to.equal(true)
	})

	it('the team policy decides which models are offered', async () => {
		const at = await open()
		mkdirSync(at.garuda, { mode: 0o700 })
		writeFileSync(join(at.garuda, 'policy.json'), JSON.stringify({ models: ['openai/small-*'] }), { mode: 0o600 })
		const said = await run(at.place, ['OpenAI', goodKey, 'small-1'])
		expect(said).to.include('leaves 1 of 2 models')
		expect(said.split('default? ').at(-1)).to.not.include('big-1')
	})

	it('Z06 broken credentials are put aside only after a yes, whole', async () => {
		const at = await open()
		mkdirSync(at.garuda, { mode: 0o700 })
		writeFileSync(join(at.garuda, 'credentials'), '{"OLD": "sk-old",}', { mode: 0o600 })
		let refused: unknown
		await run(at.place, [false]).catch((error) => {
			refused = error
		})
		expect((refused as Error).message).to.match(/credentials:1:\d+: /)
		expect(readFileSync(join(at.garuda, 'credentials'), 'utf8')).to.equal('{"OLD": "sk-old",}')
		await run(at.place, [true, 'OpenAI', goodKey, 'small-1'])
		const aside = readdirSync(at.garuda).find((name) => name.startsWith('credentials.broken-'))!
		expect(readFileSync(join(at.garuda, aside), 'utf8')).to.equal('{"OLD": "sk-old",}')
		expect(statSync(join(at.garuda, aside)).mode & 0o777).to.equal(0o600)
	})

	it('credentials open to others: said, and closed with the next key', async () => {
		const at = await open()
		await run(at.place, ['OpenAI', goodKey, 'small-1'])
		chmodSync(join(at.garuda, 'credentials'), 0o644)
		const said = await run(at.place, ['Set up a provider', 'OpenAI', goodKey, 'small-1'])
		expect(said).to.include('open to others').and.include('may know')
		expect(statSync(join(at.garuda, 'credentials')).mode & 0o777).to.equal(0o600)
	})

	it('what a server names its models cannot draw on the screen', async () => {
		const at = await open(() => json({ data: [{ id: 'ok', name: 'x\u001b[2Jy' }, { id: '\u001b]0;t\u0007' }] }))
		const said = await run(at.place, ['OpenAI', goodKey, 'ok'])
		expect(said).to.not.match(/[\u0007\u001b]/)
	})
})
