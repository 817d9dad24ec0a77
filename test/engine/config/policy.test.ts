// Team policy: what is read, what stops Garuda, the stricter value field by field, and what a policy does to settings.
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { applyPolicy, capLimits } from '../../../src/engine/config/apply-policy.ts'
import { garudaPaths } from '../../../src/engine/config/paths.ts'
import {
	hostListed,
	loadPolicy,
	modelAllowed,
	modelProblem,
	type Policy,
	policyJsonSchema,
	policyPlaces,
} from '../../../src/engine/config/policy.ts'
import { defaultSettings, type Settings } from '../../../src/engine/config/settings.ts'
import { UserError } from '../../../src/engine/errors.ts'

describe('config: team policy', () => {
	let dir: string
	let places: { managed: string; user: string; project: string; owner: number }
	beforeEach(async () => {
		dir = await realpath(await mkdtemp(join(tmpdir(), 'garuda-policy-')))
		places = {
			managed: join(dir, 'etc/garuda/policy.json'),
			user: join(dir, 'home/.garuda/policy.json'),
			project: join(dir, 'home/proj/.garuda/policy.json'),
			owner: process.getuid!(),
		}
		for (const file of [places.managed, places.user, places.project])
			await mkdir(dirname(file), { recursive: true, mode: 0o755 })
	})
	afterEach(() => rm(dir, { recursive: true, force: true }))

	const put = (file: string, value: unknown) =>
		writeFile(file, typeof value === 'string' ? value : JSON.stringify(value, null, 2), { mode: 0o644 })
	const load = async (managed: unknown, user?: unknown): Promise<Policy> => {
		if (managed !== undefined) await put(places.managed, managed)
		if (user !== undefined) await put(places.user, user)
		return (await loadPolicy(places)).policy!
	}
	const failure = async (work: Promise<unknown>): Promise<UserError> => {
		const error = await work.then(
			() => null,
			(reason: unknown) => reason,
		)
		expect(error).to.be.instanceOf(UserError)
		return error as UserError
	}
	const applied = (policy: Policy, change: (settings: Settings) => void = () => {}) => {
		const settings = defaultSettings()
		change(settings)
		return applyPolicy({ settings }, policy, { root: join(dir, 'home/proj'), home: join(dir, 'home') })
	}

	it('without files there is no policy, and nothing is said', async () => {
		expect(await loadPolicy(places)).to.deep.equal({ policy: null, notices: [] })
		const settings = defaultSettings()
		expect(applyPolicy({ settings }, null, { root: '/r', home: '/h' })).to.deep.equal({ settings, notices: [] })
	})

	it('the place of the managed file is the platform’s, and an argument replaces it', () => {
		const paths = garudaPaths('/home/u', '/r')
		expect(policyPlaces(paths, 'linux')).to.deep.equal({
			managed: '/etc/garuda/policy.json',
			user: '/home/u/.garuda/policy.json',
			project: '/r/.garuda/policy.json',
		})
		expect(policyPlaces(paths, 'darwin').managed).to.equal('/Library/Application Support/Garuda/policy.json')
		expect(policyPlaces(paths, 'linux', '/x.json').managed).to.equal('/x.json')
	})

	it('a project’s policy is ignored with a notice, whatever it says, and whether or not another exists', async () => {
		for (const [text, managed] of [
			['{"executor":"auto"}', undefined],
			['{ broken', undefined],
			['{"nonsense":1}', { profile: 'strict' }],
		] as const) {
			await put(places.project, text)
			if (managed) await put(places.managed, managed)
			const { policy, notices } = await loadPolicy(places)
			expect(policy?.executor).to.equal(undefined)
			expect(policy === null).to.equal(managed === undefined)
			expect(notices).to.have.length(1)
			expect(notices[0]).to.include(places.project).and.include('ignored')
		}
		// A link is something there as well.
		await rm(places.project)
		await symlink(join(dir, 'missing'), places.project)
		expect((await loadPolicy(places)).notices).to.have.length(1)
	})

	it('root = home: the one file is the user’s, and counts', async () => {
		await put(places.user, { profile: 'strict' })
		const { policy, notices } = await loadPolicy({ ...places, project: places.user })
		expect(policy!.profile?.value).to.equal('strict')
		expect(notices).to.deep.equal([])
	})

	it('a broken file, an unknown field or a bad value stops Garuda with file, line, column and field', async () => {
		for (const [text, place, word] of [
			['{\n "executor": "sandbox",\n}', ':2:', 'comma'],
			['{\n "executer": "sandbox"\n}', ':2:', 'executer'],
			['{\n "sandbox": {\n  "writePath": []\n }\n}', ':3:', 'sandbox.writePath'],
			['{\n "executor": "host"\n}', ':2:', 'executor'],
			['{\n "allow": ["bash"]\n}', ':2:', 'allow'],
			['{\n "undo": false\n}', ':2:', 'undo'],
			['{\n "maxCost": "5"\n}', ':2:', 'maxCost'],
			['{\n "denyPaths": ["~/a",\n "**/x/y"]\n}', ':3:', 'denyPaths[1]'],
			['{\n "denyPaths": ["../x"]\n}', ':2:', 'denyPaths[0]'],
			['{\n "sandbox": { "writePaths": ["build"] }\n}', ':2:', 'writePaths[0]'],
			['{\n "network": { "allow": ["https://x.example/"] }\n}', ':2:', 'network.allow[0]'],
			['[]', ':1:1', ''],
			['\ufeff{}', ':1:1', 'BOM'],
		] as const)
			for (const file of [places.managed, places.user]) {
				await put(file, text)
				const error = await failure(loadPolicy(places))
				expect(error.message, text)
					.to.include(file + place)
					.and.include(word)
				await rm(file)
			}
	})

	it('who could have written the managed file decides whether it counts: owner, mode, folder, links', async () => {
		await put(places.managed, { profile: 'strict' })
		expect((await loadPolicy(places)).policy!.profile?.value).to.equal('strict')
		const { owner: _, ...asRoot } = places
		const mine = process.getuid!()
		if (mine !== 0) expect((await failure(loadPolicy(asRoot))).message).to.include('must belong to root')
		expect((await failure(loadPolicy({ ...places, owner: mine + 1 }))).message).to.include(`uid ${mine + 1}`)
		for (const [path, mode] of [
			[places.managed, 0o666],
			[places.managed, 0o664],
			[dirname(places.managed), 0o777],
		] as const) {
			const before = path === places.managed ? 0o644 : 0o755
			await chmod(path, mode)
			expect((await failure(loadPolicy(places))).message, path)
				.to.include(path)
				.and.include('by others')
			await chmod(path, before)
		}
		await put(places.user, {})
		await chmod(places.user, 0o622)
		expect((await failure(loadPolicy(places))).message).to.include(places.user)
		await rm(places.user)
		for (const file of [places.managed, places.user]) {
			await rm(file, { force: true })
			await put(join(dir, 'real.json'), {})
			await symlink(join(dir, 'real.json'), file)
			expect((await failure(loadPolicy(places))).message)
				.to.include(file)
				.and.include('link')
			await rm(file)
		}
		const folder = dirname(places.managed)
		await rm(folder, { recursive: true })
		await mkdir(join(dir, 'elsewhere'))
		await put(join(dir, 'elsewhere/policy.json'), {})
		await symlink(join(dir, 'elsewhere'), folder)
		expect((await failure(loadPolicy(places))).message)
			.to.include(folder)
			.and.include('link')
	})

	describe('the stricter value, field by field, whichever file says it', () => {
		// [field, one file, the other, what both together mean]
		const fields: [string, object, object, (policy: Policy) => unknown, unknown][] = [
			['executor', { executor: 'auto' }, { executor: 'sandbox' }, (p) => p.executor?.value, 'sandbox'],
			['profile', { profile: 'standard' }, { profile: 'strict' }, (p) => p.profile?.value, 'strict'],
			['allowRules', { allowRules: true }, { allowRules: false }, (p) => p.allowRules?.value, false],
			['allowOutside', { allowOutside: true }, { allowOutside: false }, (p) => p.allowOutside?.value, false],
			['maxCost', { maxCost: 5 }, { maxCost: 2 }, (p) => p.maxCost?.value, 2],
			['steps', { limits: { steps: 9 } }, { limits: { steps: 100 } }, (p) => p.steps?.value, 9],
			['turnTokens', { limits: { turnTokens: 9 } }, { limits: {} }, (p) => p.turnTokens?.value, 9],
			['undo', {}, { undo: true }, (p) => p.undo?.value, true],
			['blockUnix', { sandbox: { blockUnix: true } }, {}, (p) => p.blockUnix?.value, true],
			['web', { web: { enabled: false } }, {}, (p) => p.webOff?.value, false],
			['audit', { audit: { required: false } }, { audit: { required: true } }, (p) => p.audit.required?.value, true],
			[
				'deny',
				{ deny: ['bash(a)'] },
				{ deny: ['bash(b)'] },
				(p) => p.rules.map((r) => r.text).sort(),
				['bash(a)', 'bash(b)'],
			],
			[
				'denyPaths',
				{ denyPaths: ['~/a'] },
				{ denyPaths: ['~/b'] },
				(p) => p.denyPaths.map((b) => b.value).sort(),
				['~/a', '~/b'],
			],
			[
				'models',
				{ models: ['a/*', 'b/*'] },
				{ models: ['b/*', 'c/*'] },
				(p) => ['a/x', 'b/x', 'c/x'].filter((name) => modelAllowed(p, name)),
				['b/x'],
			],
			[
				'env',
				{ env: { allow: ['A', 'B'] } },
				{ env: { allow: ['B', 'C'] } },
				(p) => applied(p, (s) => s.env.allow.push('A', 'B', 'C')).settings.env.allow,
				['B'],
			],
		]
		for (const [field, one, other, read, expected] of fields)
			it(`${field}`, async () => {
				expect(read(await load(one, other))).to.deep.equal(expected)
				expect(read(await load(other, one))).to.deep.equal(expected)
			})
	})

	it('rules of a policy have level policy and their place; those of both files stand first', async () => {
		const policy = await load({ deny: ['bash(curl)'] }, { ask: ['bash(git push:*)'] })
		const { settings } = applied(policy, (s) => {
			s.rules.push({ list: 'deny', text: 'bash(x)', level: 'user', file: 's', line: 1 })
		})
		expect(settings.rules).to.deep.equal([
			{ list: 'deny', text: 'bash(curl)', level: 'policy', file: places.managed, line: 3 },
			{ list: 'ask', text: 'bash(git push:*)', level: 'policy', file: places.user, line: 3 },
			{ list: 'deny', text: 'bash(x)', level: 'user', file: 's', line: 1 },
		])
		expect(settings.deny).to.deep.equal(['bash(curl)', 'bash(x)'])
	})

	it('tightens settings and says each thing once with its line; what is strict enough is left alone', async () => {
		const policy = await load({
			executor: 'sandbox',
			profile: 'strict',
			sandbox: { writePaths: ['~/cache', '/srv'], blockUnix: true },
			env: { allow: ['CI_*'] },
			web: { allowLocalhost: false },
			maxCost: 2,
			limits: { steps: 50, bashMaxTimeoutMs: 60_000 },
			undo: true,
			audit: { required: true, checkpoint: '/mnt/c' },
		})
		const loose = (s: Settings) => {
			s.executor = 'host'
			s.sandbox.writePaths = ['~/cache/x', '~/cache-of-mine', '/srv/../etc', '/srv', '~']
			s.env.allow = ['CI_TOKEN', 'AWS_KEY', '*']
			s.web.allowLocalhost = true
			s.maxCost = 10
			s.undo = false
			s.audit.enabled = false
		}
		const { settings, notices } = applied(policy, loose)
		expect(settings).to.deep.include({ executor: 'sandbox', profile: 'strict', maxCost: 2, undo: true })
		expect(settings.sandbox).to.deep.include({ writePaths: ['~/cache/x', '/srv'], blockUnix: true })
		expect(settings.env.allow).to.deep.equal(['CI_TOKEN'])
		expect(settings.web.allowLocalhost).to.equal(false)
		expect(settings.limits).to.include({ steps: 50, bashMaxTimeoutMs: 60_000, bashTimeoutMs: 60_000 })
		expect(settings.audit).to.deep.include({ enabled: true, checkpoint: '/mnt/c' })
		for (const word of [
			'executor',
			'strict',
			'Unix',
			'writable',
			'reach commands',
			'this machine',
			'$2',
			'steps',
			'ms at most',
			'undo',
			'audit',
		])
			expect(
				notices.filter((text) => text.includes(word)),
				word,
			).to.have.length.at.least(1)
		for (const text of notices) expect(text).to.include(`${places.managed}:`)
		// Applied to its own result nothing is left to tighten.
		expect(applyPolicy({ settings }, policy, { root: '/r', home: join(dir, 'home') }).notices).to.deep.equal([])
		const strict = applied(policy, (s) => {
			Object.assign(s, { executor: 'sandbox', profile: 'strict', maxCost: 1 })
			Object.assign(s.limits, { steps: 5, bashMaxTimeoutMs: 1000, bashTimeoutMs: 1000 })
			s.sandbox.blockUnix = true
		})
		expect(strict.settings).to.deep.include({ maxCost: 1 })
		expect(strict.settings.limits.steps).to.equal(5)
		expect(strict.notices).to.deep.equal([])
	})

	it('does not change what it is given', async () => {
		const policy = await load({ deny: ['bash(x)'], allowRules: false, profile: 'strict' })
		const settings = defaultSettings()
		settings.rules.push({ list: 'allow', text: 'bash', level: 'user', file: 's', line: 1 })
		const before = structuredClone(settings)
		applyPolicy({ settings }, policy, { root: '/r', home: '/h' })
		expect(settings).to.deep.equal(before)
	})

	it('allowRules and allowOutside empty the lists by name; no way out means the sandbox or nothing', async () => {
		const policy = await load({ allowRules: false, allowOutside: false })
		const { settings, notices } = applied(policy, (s) => {
			s.rules.push({ list: 'allow', text: 'bash', level: 'user', file: 's', line: 1 })
			s.rules.push({ list: 'outside', text: 'npm publish', level: 'project', file: 's', line: 2 })
			s.rules.push({ list: 'deny', text: 'bash(x)', level: 'user', file: 's', line: 3 })
		})
		expect(settings.rules.map((rule) => rule.text)).to.deep.equal(['bash(x)'])
		expect(settings).to.deep.include({ allow: [], outside: [], executor: 'sandbox' })
		expect(notices.join('\n')).to.include('"bash"').and.include('"npm publish"')
	})

	it('denyPaths bind the file tools and the commands; one that holds the root cannot be enforced', async () => {
		const policy = await load({ denyPaths: ['~/secret/', 'private/**', '/srv/*.key'] })
		const { settings } = applied(policy)
		expect(settings.deny).to.deep.equal(['read(~/secret)', 'read(./private)', 'read(/srv/*.key)'])
		expect(settings.sandbox.denyRead).to.deep.equal(['~/secret/', 'private/**', '/srv/*.key'])
		for (const path of ['~', '/', join('~', 'proj'), '~/**']) {
			await put(places.managed, { denyPaths: [path] })
			const { policy: bad } = await loadPolicy(places)
			expect(() => applied(bad!), path).to.throw(UserError, 'cannot be enforced here')
			expect(() => applied(bad!), path).to.throw(UserError, `${places.managed}:3: denyPaths[0]`)
		}
	})

	it('config-24 a host list is at most what the policy has; an empty one is nothing', async () => {
		const presets = (name: string) => (name === 'npm' ? ['registry.npmjs.org', 'nodejs.org'] : [name])
		const hosts = (policy: Policy, allow: string[]) => {
			const settings = { ...defaultSettings(), network: { allow } }
			const { settings: made } = applyPolicy({ settings }, policy, { root: '/r', home: '/h', expandHost: presets })
			return { list: (made as typeof settings).network.allow, bound: made.policy!.hosts }
		}
		const policy = await load({ network: { allow: ['npm', '*.example.com', 'x.org:443'] } })
		const asked = [
			'npm',
			'nodejs.org',
			'a.example.com',
			'*.b.example.com',
			'example.com',
			'*.org',
			'x.org',
			'x.org:443',
			'evil.com',
		]
		const { list, bound } = hosts(policy, asked)
		expect(list).to.deep.equal(['npm', 'nodejs.org', 'a.example.com', '*.b.example.com', 'x.org:443'])
		expect(bound[0]!.value).to.include('registry.npmjs.org')
		expect(hosts(await load({ network: { allow: [] } }), ['npm', 'a.b']).list).to.deep.equal([])
		// A preset of the user is covered by its hosts as well.
		expect(hosts(await load({ network: { allow: ['nodejs.org', '*.npmjs.org'] } }), ['npm']).list).to.deep.equal([
			'npm',
		])
		expect(hosts(await load({ network: { allow: ['nodejs.org'] } }), ['npm']).list).to.deep.equal([])
	})

	it('host names: exact, sub-domains only, ports, case and the last dot', () => {
		for (const [list, host, port, expected] of [
			[['a.b'], 'A.B.', 443, true],
			[['a.b'], 'x.a.b', 443, false],
			[['*.a.b'], 'x.a.b', 443, true],
			[['*.a.b'], 'a.b', 443, false],
			[['*.a.b'], 'xa.b', 443, false],
			[['a.b:8443'], 'a.b', 443, false],
			[['a.b:8443'], 'a.b', 8443, true],
			[[], 'a.b', 443, false],
		] as const)
			expect(hostListed(list, host, port), `${list} ${host}:${port}`).to.equal(expected)
	})

	it('models: at most those named, and at most at those hosts; what has no provider is not bound', async () => {
		const policy = await load({ models: ['anthropic/*', 'gpt-5*'], modelHosts: ['api.anthropic.com'] })
		for (const [name, expected] of [
			['anthropic/claude-x', true],
			['openai/gpt-5-mini', true],
			['openai/gpt-4', false],
			['evil/anthropic/claude', false],
			['xanthropic/claude', false],
			['tour', true],
		] as const)
			expect(modelAllowed(policy, name), name).to.equal(expected)
		expect(modelAllowed(null, 'any/thing')).to.equal(true)
		expect(modelProblem(policy, 'anthropic/c', 'https://api.anthropic.com/v1')).to.equal(null)
		expect(modelProblem(policy, 'anthropic/c', 'https://api.anthropic.com.evil.example/v1')).to.include(places.managed)
		expect(modelProblem(policy, 'openai/gpt-4')).to.include(`${places.managed}:`).and.include('anthropic/*')
		expect(modelAllowed(await load({ models: [] }), 'a/b')).to.equal(false)
	})

	it('the command line does not get above a limit', async () => {
		const policy = await load({ maxCost: 2, limits: { steps: 10, turnTokens: 1000 } })
		expect(capLimits(policy, { steps: 50, tokens: 5, cost: 3 })).to.deep.equal({ steps: 10, tokens: 5, cost: 2 })
		expect(capLimits(policy, {})).to.deep.equal({})
		expect(capLimits(null, { steps: 50 })).to.deep.equal({ steps: 50 })
	})

	it('the witnesses of a policy come on top of the user’s', async () => {
		const policy = await load({ audit: { witness: [{ folder: '/mnt/w' }, { git: '/repo', ref: 'refs/garuda/w' }] } })
		const { settings } = applied(policy, (s) => {
			s.audit = { enabled: false, witness: [{ folder: '/mnt/w' }, { folder: '/mine' }] }
		})
		expect(settings.audit).to.deep.equal({
			enabled: true,
			witness: [{ folder: '/mnt/w' }, { folder: '/mine' }, { git: '/repo', ref: 'refs/garuda/w' }],
		})
	})

	it('the JSON schema of a policy file names every field with words', async () => {
		const schema = (await policyJsonSchema()) as { properties: Record<string, object>; additionalProperties: boolean }
		expect(schema.additionalProperties).to.equal(false)
		expect(Object.keys(schema.properties)).to.include.members(['executor', 'deny', 'denyPaths', 'models', 'audit'])
	})
})
