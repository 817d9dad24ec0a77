// A name twice in one object of a file that people write: JSON readers take the last, so the first would be lost in silence.
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { twiceAt } from '../../../src/engine/config/json-place.ts'
import { garudaPaths } from '../../../src/engine/config/paths.ts'
import { loadPolicy, policyPlaces } from '../../../src/engine/config/policy.ts'
import { loadSettings } from '../../../src/engine/config/settings.ts'
import { UserError } from '../../../src/engine/errors.ts'

describe('config: a name twice', () => {
	let dir: string
	beforeEach(async () => {
		dir = await realpath(await mkdtemp(join(tmpdir(), 'garuda-twice-')))
	})
	afterEach(() => rm(dir, { recursive: true, force: true }))

	const failure = async (work: Promise<unknown>): Promise<string> => {
		const error = await work.then(
			() => null,
			(reason: unknown) => reason,
		)
		expect(error).to.be.instanceOf(UserError)
		return (error as UserError).message
	}

	it('Z06 stops a policy and settings with file, line, column and name, however it is written', async () => {
		const paths = garudaPaths(join(dir, 'home'), join(dir, 'proj'))
		for (const [file, load] of [
			[
				join(paths.home, 'policy.json'),
				() => loadPolicy({ ...policyPlaces(paths, 'linux'), managed: join(dir, 'none') }),
			],
			[paths.settings, () => loadSettings(paths, join(dir, 'proj'))],
		] as const) {
			await mkdir(dirname(file), { recursive: true })
			for (const [text, place] of [
				['{\n "deny": ["bash(rm:*)"],\n "deny": []\n}', ':3:2: deny: stands here a second time'],
				['{"deny": ["bash(rm:*)"], "den\\u0079": []}', ':1:26: deny: stands'],
				['{"limits": {"steps": 5, "steps": 9000}}', ':1:25: steps: stands'],
				['{"sandbox": {}, "env": {}, "sandbox": {"writePaths": []}}', ':1:28: sandbox: stands'],
			] as const) {
				await writeFile(file, text, { mode: 0o600 })
				expect(await failure(load()), text).to.include(file + place)
				expect(await readFile(file, 'utf8')).to.equal(text)
			}
			await rm(file)
		}
	})

	it('is seen in its own object only, in linear time', () => {
		for (const text of [
			'{"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 1}]}',
			'{"a": "a", "b": ["a", "a"]}',
			'{"a": "\\"b\\": {", "b": "}, \\"a\\":"}',
			'[]',
			'"a"',
			'{}',
			'{"a": [1, 2, {"b": 3}], "b": 4}',
		])
			expect(twiceAt(text), text).to.equal(null)
		expect(twiceAt('{"a": [{"b": 1}, {"c": 1, "c": 2}]}')).to.deep.equal({ offset: 26, name: 'c' })
		expect(twiceAt('{"a": {"b": [1]}, "c": 2, "a": 3}')).to.deep.equal({ offset: 26, name: 'a' })
		const many = `{${Array.from({ length: 50_000 }, (_, at) => `"n${at}": [{}]`).join(',')}}`
		const started = performance.now()
		expect(twiceAt(many)).to.equal(null)
		expect(performance.now() - started).to.be.below(2000)
	})
})
