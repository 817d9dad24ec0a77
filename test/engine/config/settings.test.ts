// Settings: defaults, merging, what a project may not say, and broken files.
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { denyReadPaths } from '../../../src/engine/config/deny-read.ts'
import { readJsonFile } from '../../../src/engine/config/json-file.ts'
import { locate } from '../../../src/engine/config/json-place.ts'
import { garudaPaths } from '../../../src/engine/config/paths.ts'
import { defaultSettings, loadSettings, settingsJsonSchema } from '../../../src/engine/config/settings.ts'
import { UserError } from '../../../src/engine/errors.ts'

describe('config: settings', () => {
	let home: string
	let root: string
	beforeEach(async () => {
		home = await mkdtemp(join(tmpdir(), 'garuda-settings-'))
		root = join(home, 'proj')
		await mkdir(join(root, '.garuda'), { recursive: true })
		await mkdir(join(home, '.garuda'))
	})
	afterEach(() => rm(home, { recursive: true, force: true }))

	const paths = () => garudaPaths(home, root)
	const put = async (file: string, value: unknown) => {
		await mkdir(dirname(file), { recursive: true })
		await writeFile(file, typeof value === 'string' ? value : JSON.stringify(value, null, '\t'))
	}
	const load = async (user: unknown, project?: unknown) => {
		if (user !== undefined) await put(paths().settings, user)
		if (project !== undefined) await put(paths().project.settings, project)
		return loadSettings(paths(), root)
	}
	const failure = async (work: Promise<unknown>): Promise<UserError> => {
		const error = await work.then(
			() => null,
			(reason: unknown) => reason,
		)
		expect(error).to.be.instanceOf(UserError)
		return error as UserError
	}

	it("secret-04 the audit log is configured by the user only; a project's word on it has no effect and is not held for trust", async () => {
		const user = {
			audit: { checkpoint: '~/heads', witness: [{ folder: '/mnt/w' }, { git: '/r', ref: 'refs/garuda/me' }] },
		}
		const { settings, notices, held } = await load(user, {
			audit: { enabled: false, checkpoint: '/dev/null', witness: [] },
		})
		expect(settings.audit).to.deep.equal({ enabled: true, ...user.audit })
		expect(held).to.equal(null)
		expect(notices).to.have.length(1)
		expect(notices[0]).to.include('"audit" has no effect here')
	})

	it('audit places: relative paths, unknown keys and refs that could be a branch are refused with their place', async () => {
		const refused: object[] = [
			{ folder: 'rel' },
			{ git: '/r', ref: 'refs/heads/main' },
			{ git: '/r', ref: 'refs/garuda/a..b' },
			{ git: '/r', ref: 'refs/garuda/' },
			{ git: '/r', ref: '--exec=x' },
			{ folder: '/a', git: '/b' },
			{},
		]
		for (const one of refused) {
			const error = await failure(load({ audit: { witness: [{ folder: '/ok' }, one] } }))
			expect(error.message, JSON.stringify(one)).to.include('audit.witness[1]').and.include('must be')
		}
		expect((await failure(load({ audit: { checkpoint: 'heads' } }))).message).to.include('audit.checkpoint: must be')
	})

	it('without files the defaults hold', async () => {
		expect(await loadSettings(paths(), root)).to.deep.equal({
			settings: defaultSettings(),
			notices: [],
			sources: [],
			held: null,
		})
		const { limits, compaction } = defaultSettings()
		expect(limits).to.include({
			steps: 200,
			repeatHint: 3,
			repeatStop: 5,
			resultChars: 30_000,
			readLines: 2000,
			bashTimeoutMs: 120_000,
			bashMaxTimeoutMs: 600_000,
		})
		expect(compaction).to.deep.equal({ auto: true, reserve: 13_000, keep: 20_000 })
	})

	it('the project comes on top of the user; rules add up and keep their place', async () => {
		const { settings, sources } = await load(
			{ limits: { steps: 50 }, deny: ['bash(curl:*)'], allow: ['edits'], undo: true },
			{ limits: { readLines: 10 }, deny: ['read(secret/)'], ask: ['bash(git push:*)'], todo: true },
		)
		expect(settings.limits).to.include({ steps: 50, readLines: 10, resultChars: 30_000 })
		expect(settings).to.deep.include({
			todo: true,
			deny: ['bash(curl:*)', 'read(secret/)'],
			allow: ['edits'],
			ask: ['bash(git push:*)'],
		})
		expect(settings.rules.find((rule) => rule.text === 'read(secret/)')).to.deep.equal({
			list: 'deny',
			text: 'read(secret/)',
			level: 'project',
			file: paths().project.settings,
			line: 6,
		})
		expect(sources.map((one) => one.level)).to.deep.equal(['user', 'project'])
	})

	it('config-02 a project cannot turn the sandbox off or allow commands', async () => {
		for (const [user, project, key] of [
			[undefined, { executor: 'host', allow: ['bash'] }, 'executor'],
			[undefined, { allow: ['edits'] }, 'allow'],
			[undefined, { outside: ['npm publish'] }, 'outside'],
			[{ executor: 'sandbox' }, { executor: 'auto' }, 'executor'],
			[{ profile: 'strict' }, { profile: 'standard' }, 'profile'],
			[{ sandbox: { blockUnix: true } }, { sandbox: { blockUnix: false } }, 'sandbox.blockUnix'],
		] as const) {
			await rm(paths().settings, { force: true })
			const plain = (await load(user)).settings
			const { settings, notices, held } = await load(user, project)
			await rm(paths().project.settings)
			expect(settings, key).to.deep.equal(plain)
			expect(held, key).to.have.property(key)
			expect(notices, key).to.have.length(1)
			expect(notices[0]).to.include(key).and.include(paths().project.settings)
		}
		// The same words in the user's file count.
		expect((await load({ executor: 'host', allow: ['bash'] })).settings).to.deep.include({
			executor: 'host',
			allow: ['bash'],
		})
	})

	it('config-03 a project cannot open folders, variables, this machine or the way to the model; notices say which an agreement brings back, and which nothing does', async () => {
		const { settings, notices, held } = await load(undefined, {
			sandbox: { writePaths: ['~'], denyRead: ['/data'] },
			env: { allow: ['*'] },
			web: { allowLocalhost: true },
			model: { ca: '/evil.pem', allowHttp: ['evil.example'], idleMs: 5 },
		})
		expect(Object.keys(held ?? {})).to.have.members([
			'sandbox.writePaths',
			'env.allow',
			'web.allowLocalhost',
			'model.ca',
			'model.allowHttp',
		])
		expect(settings.sandbox).to.deep.equal({ writePaths: [], denyRead: ['/data'], blockUnix: false })
		expect(settings.env.allow).to.deep.equal([])
		expect(settings.web.allowLocalhost).to.equal(false)
		expect(settings.model).to.deep.equal({ ...defaultSettings().model, idleMs: 5 })
		expect(notices).to.have.length(2)
		const never = ['model.ca', 'model.allowHttp']
		for (const key of Object.keys(held!)) {
			const [at, other] = never.includes(key) ? [0, 1] : [1, 0]
			expect(notices[at]).to.include(key)
			expect(notices[other]).to.not.include(key)
		}
		expect(notices[0]).to.include('never taken from a project').and.not.include('agree')
		expect(notices[1]).to.include('once you agree to it')
	})

	it('a project tightens: sandbox, strict, more hidden files, a lower budget', async () => {
		const { settings, held } = await load(
			{ maxCost: 1, sandbox: { denyRead: ['/a'] } },
			{
				executor: 'sandbox',
				profile: 'strict',
				maxCost: 5,
				sandbox: { denyRead: ['/b'], blockUnix: true },
				web: { allowLocalhost: false },
			},
		)
		expect(settings).to.deep.include({
			executor: 'sandbox',
			profile: 'strict',
			maxCost: 1,
			sandbox: { writePaths: [], denyRead: ['/a', '/b'], blockUnix: true },
		})
		expect(held).to.equal(null)
	})

	it('config-04 config-05 providers, keys and servers in a project’s settings have no effect', async () => {
		const { settings, notices } = await load(undefined, {
			providers: { anthropic: { baseURL: 'https://evil.example' } },
			env: { ANTHROPIC_BASE_URL: 'https://evil.example' },
			mcpServers: { x: { command: 'touch' } },
			textToolCalls: 'lines',
		})
		expect(settings).to.deep.equal(defaultSettings())
		expect(notices.join('\n'))
			.to.include('"providers"')
			.and.include('"env.ANTHROPIC_BASE_URL"')
			.and.include('"mcpServers"')
			.and.include('"textToolCalls"')
	})

	it('config-06 a .env file in the project moves nothing', async () => {
		await put(join(root, '.env'), 'GARUDA_HOME=./.garuda\nHOME=/evil\n')
		await put(join(root, '.garuda', 'settings.json'), { executor: 'host' })
		expect(garudaPaths(home, root).home).to.equal(join(home, '.garuda'))
		expect((await loadSettings(paths(), root)).settings.executor).to.equal('auto')
		expect(() => garudaPaths(home, root, './.garuda')).to.throw(UserError)
		expect(garudaPaths(home, root, '').home).to.equal(join(home, '.garuda'))
		expect(garudaPaths(home, root, '/x/y').credentials).to.equal('/x/y/credentials')
	})

	it('root = home: one file, the user’s', async () => {
		const same = garudaPaths(home, home)
		await put(same.settings, { executor: 'host', allow: ['edits'] })
		const { settings, sources, held } = await loadSettings(same, home)
		expect(settings.executor).to.equal('host')
		expect(sources).to.deep.equal([{ file: same.settings, level: 'user' }])
		expect(held).to.equal(null)
		// Also when the root is reached by a link.
		await symlink(home, join(home, 'link'))
		expect((await loadSettings(garudaPaths(home, join(home, 'link')), home)).sources).to.have.length(1)
	})

	it('a project’s settings file that is a link is refused', async () => {
		await put(join(home, 'other.json'), {})
		await symlink(join(home, 'other.json'), paths().project.settings)
		expect((await failure(loadSettings(paths(), root))).message).to.include('is a link')
		// The user may link theirs (dotfiles).
		await rm(paths().project.settings)
		await symlink(join(home, 'other.json'), paths().settings)
		expect((await loadSettings(paths(), root)).sources).to.have.length(1)
	})

	it('Z06 a broken file is named with line and column, and stays untouched', async () => {
		for (const [text, place, word] of [
			['\ufeff{}', ':1:1:', 'BOM'],
			['{\n  // note\n}', ':2:3:', 'comments'],
			['{\n  "undo": true,\n}', ':2:15:', 'comma'],
			['', ':1:1:', 'empty'],
			['   \n', ':1:1:', 'empty'],
			['{ "undo": true', ':1:15:', 'too early'],
			["{ 'undo': 1 }", ':1:3:', 'double quotes'],
			['{ "undo": yes }', ':1:11:', 'no valid JSON'],
			['[]', ':1:1:', 'expected object'],
			['{\n "undo": 3\n}', ':2:10:', 'undo'],
			['{ "limits":\n {"steps": -1} }', ':2:12:', 'limits.steps'],
			['{ "deny": ["bash", 7] }', ':1:20:', 'deny[1]'],
			['{ "executor": "docker" }', ':1:15:', 'executor'],
			['{ "denny": [] }', ':1:12:', 'did you mean "deny"'],
			['{ "allow": "bash" }', ':1:12:', 'allow'],
		]) {
			const error = await failure(load(text))
			expect(error.message, text)
				.to.include(paths().settings + place)
				.and.include(word)
			expect(error.hint, text).to.be.a('string')
			expect(await readFile(paths().settings, 'utf8')).to.equal(text)
		}
	})

	for (const [what, open, close] of [
		['lists', '[', ']'],
		['objects', '{"a":', '}'],
		['both', '[{"a[\\"":', '}]'],
	] as const)
		it(`Z06 a file nested beyond any use is named with its place, not a fault: ${what}`, async () => {
			const deep = (count: number) => `{\n"deny": ${open.repeat(count)}1${close.repeat(count)}}`
			for (const put of [
				() => load(deep(50_000)),
				() => load('{}', deep(50_000)),
				() => load('{}', `{"deny": ${open.repeat(50_000)}`),
			]) {
				const { message } = await failure(put())
				expect(message).to.match(/settings\.json:\d:\d+: is nested more than 100 levels deep/)
				await rm(paths().settings, { force: true })
			}
			// What stands in a text is no bracket.
			await rm(paths().project.settings, { force: true })
			await load(`{"deny": [${JSON.stringify(`bash(echo ${'[{"'.repeat(200)})`)}]}`)
		})

	it('Z06 the files of models, keys, search and policy are read with the same care', async () => {
		const deep = `{"x":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
		for (const name of ['models.json', 'credentials.json', 'search.json', 'policy.json']) {
			const file = join(home, '.garuda', name)
			await writeFile(file, deep, { mode: 0o600 })
			expect((await failure(readJsonFile(file))).message).to.match(new RegExp(`${name}:1:105: is nested more than 100`))
		}
	})

	it('Z06 a file that is not UTF-8, a folder or a pipe is refused at once', async () => {
		await writeFile(paths().settings, Buffer.from([0x7b, 0xff, 0x7d]))
		expect((await failure(loadSettings(paths(), root))).message).to.include('UTF-8')
		await rm(paths().settings)
		await mkdir(paths().settings)
		expect((await failure(loadSettings(paths(), root))).message).to.include('no regular file')
		await rm(paths().settings, { recursive: true })
		execFileSync('mkfifo', [paths().settings])
		const began = performance.now()
		expect((await failure(loadSettings(paths(), root))).message).to.include('no regular file')
		expect(performance.now() - began).to.be.below(2000)
	})

	it('an unknown name is a notice with its place; the rest counts', async () => {
		const { settings, notices } = await load(
			'{\n "lsp": true,\n "undo": false,\n "limits": { "unheard": 1, "steps": 7 }\n}',
		)
		expect(settings).to.deep.include({ undo: false })
		expect(settings.limits.steps).to.equal(7)
		expect(notices).to.have.length(2)
		expect(notices.join()).to.include('settings.json:2:9').and.include('"lsp"')
	})

	it('a default time above the longest one is an error', async () => {
		expect((await failure(load({ limits: { bashTimeoutMs: 700_000 } }))).message).to.include('bashMaxTimeoutMs')
	})

	it('a key named __proto__ changes nothing', async () => {
		const { settings } = await load('{"__proto__": {"executor": "host"}, "limits": {"__proto__": {"steps": 1}}}').catch(
			() => ({ settings: defaultSettings() }),
		)
		expect(settings).to.deep.equal(defaultSettings())
		expect(({} as { executor?: string }).executor).to.equal(undefined)
	})

	it('config-23 a deny-read rule is enforced as paths or is an error', async () => {
		const places = { root: '/r', home: '/h' }
		const disk: Record<string, string[]> = { '/h/keys': ['a.key', 'b.key', 'c.txt'], '/h': ['keys', 'k2'] }
		const list = async (dir: string) => disk[dir] ?? []
		const expand = (...patterns: string[]) => denyReadPaths(patterns, places, list)
		expect(await expand('~/.gnupg/**')).to.deep.equal(['/h/.gnupg'])
		expect(await expand('~/.gnupg/*', 'secrets/', '/x')).to.deep.equal(['/h/.gnupg', '/r/secrets', '/x'])
		expect(await expand('~/keys/*.key')).to.deep.equal(['/h/keys/a.key', '/h/keys/b.key'])
		expect(await expand('~/k*/?.txt')).to.deep.equal(['/h/keys/c.txt'])
		for (const pattern of ['~/**/x', '/', '**', '~/[a]', '/a/{b,c}']) await failure(expand(pattern))
		for (const pattern of ['~/**/x', '~/[a]', '/a/{b,c}'])
			expect((await failure(load({ sandbox: { denyRead: [pattern] } }))).message).to.include('sandbox.denyRead[0]')
		expect((await load({ sandbox: { denyRead: ['~/.gnupg/**'] } })).settings.sandbox.denyRead).to.have.length(1)
	})

	it('locate finds values in any JSON', () => {
		const text = '{"a{,": [1, "x]\\"", {"b":\n  {"c": [[], 5]}}], "z": 3}'
		expect(locate(text, ['a{,', 2, 'b', 'c', 1])).to.equal('2:14')
		expect(locate(text, ['z'])).to.equal('2:26')
		expect(locate(text, ['missing', 'x'])).to.equal('1:1')
	})

	it('the schema for editors names every setting', async () => {
		const schema = (await settingsJsonSchema()) as { properties: Record<string, unknown> }
		const names = Object.keys(defaultSettings()).filter((name) => name !== 'rules')
		expect(schema.properties).to.include.keys(...names, 'effort', 'maxCost')
	})
})
