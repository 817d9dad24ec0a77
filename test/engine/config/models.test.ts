// Providers, the choice of a model and its key; credentials and Garuda's own folder.
import { execFileSync } from 'node:child_process'
import { chmod, link, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readCredentials } from '../../../src/engine/config/credentials.ts'
import { baseUrl, chooseModel, keyFor, loadModels, type ProviderConfig } from '../../../src/engine/config/models.ts'
import { garudaPaths, prepareHome } from '../../../src/engine/config/paths.ts'
import { UserError } from '../../../src/engine/errors.ts'

describe('config: models and keys', () => {
	let home: string
	let root: string
	beforeEach(async () => {
		home = await mkdtemp(join(tmpdir(), 'garuda-models-'))
		root = join(home, 'proj')
		await mkdir(join(root, '.garuda'), { recursive: true })
		await mkdir(join(home, '.garuda'), { mode: 0o700 })
	})
	afterEach(() => rm(home, { recursive: true, force: true }))
	const paths = () => garudaPaths(home, root)
	const failure = async (work: () => unknown): Promise<UserError> => {
		try {
			await work()
		} catch (error) {
			expect(error).to.be.instanceOf(UserError)
			return error as UserError
		}
		throw new Error('it did not fail')
	}
	const models = async (value?: unknown, env = {}) => {
		if (value !== undefined) await writeFile(paths().models, typeof value === 'string' ? value : JSON.stringify(value))
		return loadModels(paths(), env)
	}

	it('two providers are built in; their addresses come from the environment, empty is not set', async () => {
		const { providers } = await models(undefined, { ANTHROPIC_BASE_URL: 'http://127.0.0.1:4010/', OPENAI_BASE_URL: '' })
		expect(providers).to.deep.equal([
			{ name: 'anthropic', api: 'anthropic', baseURL: 'http://127.0.0.1:4010', keyName: 'ANTHROPIC_API_KEY' },
			{ name: 'openai', api: 'openai', baseURL: 'https://api.openai.com/v1', keyName: 'OPENAI_API_KEY' },
		])
	})

	it('base URLs with or without /v1 or a slash mean the same', () => {
		for (const text of [
			'https://a.example',
			'https://a.example/',
			'https://a.example/v1',
			'https://a.example/v1/',
			' https://a.example/v1/chat/completions ',
		])
			expect(baseUrl(text, 'openai', 'x'), text).to.equal('https://a.example/v1')
		for (const text of ['https://a.example', 'https://a.example/v1/', 'https://a.example/v1/messages'])
			expect(baseUrl(text, 'anthropic', 'x'), text).to.equal('https://a.example')
		expect(baseUrl('https://a.example/api/paas/v4/', 'openai', 'x')).to.equal('https://a.example/api/paas/v4')
		expect(baseUrl('https://a.example/proxy/v1', 'anthropic', 'x')).to.equal('https://a.example/proxy')
		expect(baseUrl('http://localhost:11434', 'openai', 'x')).to.equal('http://localhost:11434/v1')
		for (const text of [
			'a.example',
			'ftp://a.example',
			'https://u:p@a.example',
			'https://a.example?x=1',
			'http://a.example',
			'http://127.0.0.1.evil.example',
		])
			expect(() => baseUrl(text, 'openai', 'x'), text).to.throw(UserError)
		expect(baseUrl('http://a.example', 'openai', 'x', true)).to.equal('http://a.example/v1')
	})

	it('models.json adds providers, defaults and facts about models', async () => {
		const loaded = await models({
			default: 'local/qwen3',
			providers: {
				local: { baseURL: 'http://localhost:11434', models: { qwen3: { window: 32768, textToolCalls: 'lines' } } },
				hub: { baseURL: 'https://hub.example/v1/', key: 'HUB_KEY', headers: { 'X-Title': 'Garuda' } },
				anthropic: { models: { 'claude-x': { maxOutput: 5, price: null } } },
			},
		})
		expect(loaded.providers.map((one) => one.name)).to.deep.equal(['local', 'hub', 'anthropic', 'openai'])
		expect(loaded.providers[0]).to.deep.equal({
			name: 'local',
			api: 'openai',
			baseURL: 'http://localhost:11434/v1',
			keyName: null,
		})
		expect(loaded.overrides('local', 'qwen3')).to.deep.equal({ window: 32768, textToolCalls: 'lines' })
		expect(loaded.overrides('anthropic', 'claude-x')).to.deep.equal({ maxOutput: 5, price: null })
		expect(loaded.overrides('local', 'other')).to.deep.equal({})
		expect(loaded.default).to.equal('local/qwen3')
	})

	it('config-04 a project’s models.json and environment file are never read', async () => {
		await writeFile(
			join(root, '.garuda', 'models.json'),
			JSON.stringify({ default: 'evil/x', providers: { evil: { baseURL: 'https://evil.example' } } }),
		)
		await writeFile(join(root, '.garuda', 'credentials'), '{"ANTHROPIC_API_KEY":"evil"}')
		await writeFile(join(root, '.env'), 'ANTHROPIC_BASE_URL=https://evil.example')
		const loaded = await models(undefined, {})
		expect(JSON.stringify(loaded)).not.to.include('evil')
		expect(await readCredentials(paths())).to.deep.equal({})
	})

	it('Z06 a broken models.json is named with line and field and stays untouched', async () => {
		for (const [text, word] of [
			['\ufeff{}', 'BOM'],
			['{ // x\n}', 'comments'],
			['{"default": "a",}', 'comma'],
			['', 'empty'],
			['[]', 'expected object'],
			['{"providers":{"x":{"baseURL":5}}}', ':1:30: providers.x.baseURL'],
			['{"providers":{"x":{}}}', 'providers.x: baseURL is missing'],
			['{"providers":{"x":{"baseURL":"https://a","apiKey":"sk-1"}}}', 'providers.x.apiKey: is not known'],
			['{"providers":{"x":{"baseURL":"https://a","key":"sk-ant-123"}}}', 'never the key itself'],
			['{"providers":{"x":{"baseURL":"http://far.example"}}}', 'plain http'],
			['{"providers":{"anthropic":{"api":"openai"}}}', 'built in'],
			['{"providers":{"x":{"baseURL":"https://a","models":{"m":{"price":{"input":1}}}}}}', 'price'],
		]) {
			const error = await failure(() => models(text))
			expect(error.message, text).to.include(paths().models).and.include(word)
			expect(error.message).not.to.include('sk-')
			expect(await readFile(paths().models, 'utf8')).to.equal(text)
		}
	})

	it('chooses by flag, GARUDA_MODEL, then the default', async () => {
		const loaded = await models({
			default: 'anthropic/claude-d',
			providers: {
				hub: { baseURL: 'https://hub.example', models: { 'meta/llama': {} } },
				two: { baseURL: 'https://two.example', models: { twin: {} } },
				three: { baseURL: 'https://three.example', models: { twin: {} } },
			},
		})
		const choose = (request?: string, env = {}) => {
			const found = chooseModel(request, env, loaded)
			return 'problem' in found
				? `? ${found.problem.message} ${found.problem.hint}`
				: `${found.provider.name} ${found.id}`
		}
		expect(choose('openai/gpt-x', { GARUDA_MODEL: 'hub/y' })).to.equal('openai gpt-x')
		expect(choose(undefined, { GARUDA_MODEL: 'hub/y' })).to.equal('hub y')
		expect(choose(undefined, { GARUDA_MODEL: ' ' })).to.equal('anthropic claude-d')
		expect(choose('claude-z')).to.equal('anthropic claude-z')
		expect(choose('gpt-9')).to.equal('openai gpt-9')
		expect(choose('o3-mini')).to.equal('openai o3-mini')
		expect(choose('meta/llama')).to.equal('hub meta/llama')
		expect(choose('hub/meta/llama')).to.equal('hub meta/llama')
		expect(choose('twin')).to.include('two/twin').and.include('three/twin')
		expect(choose('unheard')).to.include('Known providers').and.include('hub')
		expect(choose('hub/')).to.match(/^\?/)
		expect(choose('a b')).to.match(/^\?/)
		const none = chooseModel(undefined, {}, { ...loaded, default: null })
		expect(none).to.have.nested.property('problem.code', 'auth')
		expect(JSON.stringify(none)).to.include('garuda setup').and.include('ANTHROPIC_API_KEY').and.include('tour')
	})

	const provider: ProviderConfig = {
		name: 'anthropic',
		api: 'anthropic',
		baseURL: 'https://x',
		keyName: 'ANTHROPIC_API_KEY',
	}

	it('Z01 a key is trimmed; quotes and odd characters are named without showing it', () => {
		for (const text of ['sk-x1', 'sk-x1\n', ' sk-x1', 'sk-x1\r\n'])
			expect(keyFor(provider, { ANTHROPIC_API_KEY: text }, {})).to.deep.equal({
				key: 'sk-x1',
				source: 'the variable ANTHROPIC_API_KEY',
			})
		for (const [text, word] of [
			['"sk-x1"', 'quotes'],
			["'sk-x1'", 'quotes'],
			['sk-\u200bx1', 'character'],
			['sk-é1', 'character'],
			['sk-x1 sk-x2', 'white space'],
			['Bearer-sk-x1', 'Bearer'],
		]) {
			const found = JSON.stringify(keyFor(provider, { ANTHROPIC_API_KEY: text! }, {}))
			expect(found, text).to.include('problem').and.include(word).and.include('ANTHROPIC_API_KEY')
			expect(found).not.to.include('x1')
		}
	})

	it('Z02 an empty variable is not set: the file’s key is used, and the variable wins otherwise', () => {
		const file = { ANTHROPIC_API_KEY: 'sk-file' }
		for (const env of [{ ANTHROPIC_API_KEY: '' }, { ANTHROPIC_API_KEY: '  \n' }, {}]) {
			expect(keyFor(provider, env, file)).to.deep.equal({ key: 'sk-file', source: '~/.garuda/credentials' })
			expect(keyFor(provider, env, {})).to.have.nested.property('problem.code', 'auth')
			expect(keyFor(provider, env, { ANTHROPIC_API_KEY: ' ' })).to.have.property('problem')
		}
		expect(keyFor(provider, { ANTHROPIC_API_KEY: 'sk-env' }, file)).to.include({ key: 'sk-env' })
		expect(keyFor({ ...provider, keyName: null }, {}, {})).to.equal(null)
		expect(keyFor({ ...provider, keyName: 'toString' }, {}, {})).to.have.property('problem')
	})

	describe('credentials', () => {
		const write = (text: string, mode = 0o600) => writeFile(paths().credentials, text, { mode })

		it('reads names and keys; a missing file is no keys', async () => {
			expect(await readCredentials(paths())).to.deep.equal({})
			await write('{"ANTHROPIC_API_KEY": "sk-1", "MY_KEY": "x"}')
			expect({ ...(await readCredentials(paths())) }).to.deep.equal({ ANTHROPIC_API_KEY: 'sk-1', MY_KEY: 'x' })
		})

		it('secret-01 a link, a second name, a pipe or an open mode is refused', async () => {
			const other = join(home, 'other')
			await writeFile(other, '{"K": "v"}', { mode: 0o600 })
			await symlink(other, paths().credentials)
			expect((await failure(() => readCredentials(paths()))).message).to.include('is a link')
			await rm(paths().credentials)
			await symlink('/etc/passwd', paths().credentials)
			expect((await failure(() => readCredentials(paths()))).message).to.include('is a link')
			await rm(paths().credentials)
			await link(other, paths().credentials)
			expect((await failure(() => readCredentials(paths()))).message).to.include('hard link')
			await rm(paths().credentials)
			execFileSync('mkfifo', ['-m', '600', paths().credentials])
			expect((await failure(() => readCredentials(paths()))).message).to.include('no regular file')
			await rm(paths().credentials)
			for (const mode of [0o644, 0o640, 0o604, 0o620]) {
				await write('{"K": "v"}')
				await chmod(paths().credentials, mode)
				const error = await failure(() => readCredentials(paths()))
				expect(error.message, mode.toString(8)).to.include(mode.toString(8))
				expect(error.hint).to.include('chmod 600')
			}
		})

		it('Z06 a broken file never shows a key', async () => {
			for (const text of [
				'{"K": sk-secret}',
				'"sk-secret"',
				'{"K": ["sk-secret"]}',
				'{"sk-secret": 1',
				'\ufeff{"K":"sk-secret"}',
				'["sk-secret"]',
			]) {
				await write(text)
				const error = await failure(() => readCredentials(paths()))
				expect(error.message + error.hint, text).not.to.include('secret')
				expect(error.message).to.include(paths().credentials)
				expect(await readFile(paths().credentials, 'utf8')).to.equal(text)
			}
		})
	})

	describe('Garuda’s folder', () => {
		it('is made private', async () => {
			await rm(join(home, '.garuda'), { recursive: true })
			await prepareHome(paths())
			expect((await stat(paths().home)).mode & 0o777).to.equal(0o700)
			await prepareHome(paths())
		})

		it('secret-03 a link, a file, or a folder that others can write to is refused, for credentials as well', async () => {
			const dir = join(home, '.garuda')
			await writeFile(join(dir, 'credentials'), '{}', { mode: 0o600 })
			for (const mode of [0o777, 0o770, 0o702]) {
				await chmod(dir, mode)
				expect((await failure(() => prepareHome(paths()))).hint).to.include('chmod 700')
				await failure(() => readCredentials(paths()))
			}
			await rm(dir, { recursive: true })
			await mkdir(join(home, 'x'))
			await writeFile(join(home, 'x', 'credentials'), '{}', { mode: 0o600 })
			await symlink(join(home, 'x'), dir)
			expect((await failure(() => prepareHome(paths()))).message).to.include('is a link')
			expect((await failure(() => readCredentials(paths()))).message).to.include('is a link')
			await rm(dir)
			await symlink(join(home, 'nowhere'), dir)
			await failure(() => prepareHome(paths()))
			await rm(dir)
			await writeFile(dir, '')
			expect((await failure(() => prepareHome(paths()))).message).to.include('no folder')
		})

		it('Z06 a home that is not known or cannot be written says so', async () => {
			for (const text of ['', 'relative'])
				expect((await failure(() => garudaPaths(text, root))).message).to.include('HOME')
			await writeFile(join(home, 'file'), '')
			expect((await failure(() => prepareHome(garudaPaths(join(home, 'file'), root)))).message).to.include(
				'cannot be made',
			)
		})
	})
})
