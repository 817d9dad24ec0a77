// Paths of rules and masks that begin with what only a shell would expand: as written they would hold nobody to anything.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { denyReadPaths } from '../../../src/engine/config/deny-read.ts'
import { loadPolicy } from '../../../src/engine/config/policy.ts'
import { UserError } from '../../../src/engine/errors.ts'
import { parseRule, ruleSet } from '../../../src/engine/permission/rules.ts'

const never = ['$HOME/x', '${HOME}/x', '$HOME', '$XDG_CONFIG_HOME/garuda', '~root/x', '~some-one/x/**']
const fine = ['~/x', '~', 'routes/$id.tsx', '$id/x', './~root/x', '~backup', '/srv/$HOME', './$HOME/x']

describe('config: paths that nothing expands', () => {
	it('config-23 a rule with one is an error, in deny and ask one that stops', () => {
		for (const tool of ['read', 'edit', 'write', 'grep'])
			for (const path of never) expect(parseRule(`${tool}(${path})`), path).to.have.property('error')
		for (const path of fine) expect(parseRule(`read(${path})`), path).to.not.have.property('error')
		for (const list of ['deny', 'ask'] as const) {
			const text = { list, text: 'read($HOME/x)', level: 'user' as const, file: 'f', line: 1 }
			expect(ruleSet([text], { root: '/r', home: '/h' }).problems.map(({ fatal }) => fatal)).to.deep.equal([true])
		}
	})

	it('config-23 so is one in sandbox.denyRead and in denyPaths of a policy', async () => {
		const places = { root: '/r', home: '/h' }
		for (const path of never) {
			const error = await denyReadPaths([path], places, async () => []).catch((reason: unknown) => reason)
			expect(error, path).to.be.instanceOf(UserError)
		}
		for (const path of fine.filter((one) => one !== '~')) await denyReadPaths([path], places, async () => [])
		const dir = await mkdtemp(join(tmpdir(), 'garuda-unexpanded-'))
		try {
			const user = join(dir, 'policy.json')
			const load = async (path: string) => {
				await writeFile(user, JSON.stringify({ denyPaths: [path] }), { mode: 0o600 })
				return loadPolicy({ managed: join(dir, 'none'), user, project: join(dir, 'none') })
			}
			for (const path of never) {
				const error = await load(path).catch((reason: unknown) => reason)
				expect((error as Error).message, path).to.include(`${user}:1:15: denyPaths[0]: `)
			}
			for (const path of fine) expect((await load(path)).policy?.denyPaths).to.have.length(1)
		} finally {
			await rm(dir, { recursive: true })
		}
	})

	it('a word of path rules alone says that it needs a path', () => {
		for (const word of ['list', 'search']) {
			const text = { list: 'deny' as const, text: word, level: 'policy' as const, file: 'f', line: 1 }
			expect(ruleSet([text], { root: '/r', home: '/h' }).problems[0]!.text).to.include(`write ${word}(PATH)`)
		}
	})
})
