// Every name on the lists of the sandbox in the policy that a command gets: hidden, protected, passed. masks.test.ts tries them.
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { commandEnvironment } from '../../../src/engine/sandbox/environment.ts'
import { createPolicyBuilder, type Policy } from '../../../src/engine/sandbox/policy.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'

const { names } = JSON.parse(readFileSync(new URL('../../control/lists.json', import.meta.url), 'utf8')) as {
	names: { [list: string]: string[] } & { envFixed: Record<string, string> }
}

describe('sandbox: names in a policy', () => {
	let fixture: Fixture
	afterEach(() => fixture.remove())
	const build = (root: string): Policy =>
		createPolicyBuilder({
			...fixture.options({ root }),
			denyRead: [],
			tmpBytes: 1e6,
			emptyFile: '/e',
			emptyFolder: '/f',
			own: '/o',
			filter: true,
		}).build({ cwd: root, env: {}, readOnly: false, nested: [], sockets: [] })
	const make = (folder: string, paths: readonly string[]) => {
		for (const name of paths)
			if (paths.some((other) => other.startsWith(`${name}/`))) mkdirSync(join(folder, name), { recursive: true })
			else if (!existsSync(join(folder, name))) put(join(folder, name))
	}

	for (const where of ['beside the root', 'root = home'] as const)
		it(`each secret of a home is masked, home ${where}`, () => {
			fixture = makeFixture(where === 'root = home', [])
			make(fixture.home, names.homeSecrets!)
			const masks = build(fixture.root).masks.map(({ path }) => path)
			for (const name of names.homeSecrets!) {
				const path = join(fixture.home, name)
				expect(
					masks.some((mask) => mask === path || path.startsWith(`${mask}/`)),
					name,
				).to.equal(true)
			}
		})

	it('each name that a host obeys in a project is protected, and each part of a git folder', () => {
		fixture = makeFixture(false, [])
		make(fixture.root, names.rootProtected!)
		rmSync(join(fixture.root, '.git/info'))
		mkdirSync(join(fixture.root, '.git/info'))
		make(join(fixture.root, '.git'), ['config.worktree', 'commondir'])
		const { protect } = build(fixture.root)
		for (const name of [...names.rootProtected!, ...names.gitProtected!.map((each) => `.git/${each}`)])
			expect(protect, name).to.include(join(fixture.root, name))
	})

	it('each name that the next login runs is protected in a home that is the root', () => {
		fixture = makeFixture(true, [])
		make(fixture.home, names.homeProtected!)
		const { protect, masks } = build(fixture.home)
		for (const name of names.homeProtected!) {
			const path = join(fixture.home, name)
			const held = [...protect, ...masks.map((mask) => mask.path)]
			expect(
				held.some((one) => one === path),
				name,
			).to.equal(true)
		}
	})

	it('exactly the listed variables pass, under what is set for every command', () => {
		fixture = makeFixture()
		const given = Object.fromEntries(
			[...names.envAllowed!, 'X_TOKEN', 'LD_PRELOAD'].map((name) => [name, `/v/${name}`]),
		)
		expect(commandEnvironment(given, '/h', [])).to.deep.equal({
			LANG: 'C.UTF-8',
			...Object.fromEntries(names.envAllowed!.map((name) => [name, `/v/${name}`])),
			...names.envFixed,
			HOME: '/h',
		})
	})
})
