// Language profiles: from file names to commands and caches, with nothing run.
import { access, chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFiles } from '../../../src/engine/files/guard.ts'
import { detectProfiles } from '../../../src/engine/languages/index.ts'
import { languageProfiles } from '../../../src/engine/languages/profiles.ts'

const profiles = (files: Record<string, string>) =>
	languageProfiles({ files: Object.keys(files), home: '/h', read: async (name) => files[name] ?? null })
const tests = async (files: Record<string, string>) =>
	(await profiles(files)).map((one) => `${one.name}: ${one.testCommand}`)

describe('languages: profiles', () => {
	it('finds the build tool and its test command', async () => {
		const script = '{"scripts":{"test":"mocha"}}'
		for (const [files, expected] of [
			[{}, []],
			[{ 'README.md': '' }, []],
			[{ 'package.json': script }, ['Node: npm test']],
			[{ 'package.json': script, 'pnpm-lock.yaml': '' }, ['Node: pnpm test']],
			[{ 'package.json': script, 'yarn.lock': '' }, ['Node: yarn test']],
			[{ 'package.json': script, 'bun.lock': '' }, ['Node: bun run test']],
			[{ 'package.json': '{"packageManager":"pnpm@9.0.0","scripts":{"test":"x"}}' }, ['Node: pnpm test']],
			[{ 'package.json': '{"scripts":{"test":"echo \\"Error: no test specified\\""}}' }, ['Node: null']],
			[{ 'package.json': 'broken' }, ['Node: null']],
			[{ 'package.json': '{"scripts":{"test":["x"]},"packageManager":5}' }, ['Node: null']],
			[{ 'pyproject.toml': '[tool.pytest.ini_options]\n' }, ['Python: python -m pytest']],
			[{ 'setup.py': '' }, ['Python: python -m unittest']],
			[
				{ 'pyproject.toml': '[project]\ndependencies = ["pytest"]', 'uv.lock': '' },
				['Python: uv run python -m pytest'],
			],
			[{ 'pyproject.toml': '[tool.poetry]\n', 'conftest.py': '' }, ['Python: poetry run python -m pytest']],
			[{ 'requirements.txt': 'pytest==8\n', '.venv': '' }, ['Python: .venv/bin/python -m pytest']],
			[{ 'pom.xml': '' }, ['Maven: mvn -o -q test']],
			[{ 'pom.xml': '', mvnw: '' }, ['Maven: ./mvnw -o -q test']],
			[{ 'build.gradle.kts': '', gradlew: '' }, ['Gradle: ./gradlew --offline --no-daemon test']],
			[{ 'go.mod': '' }, ['Go: go test ./...']],
			[{ 'Cargo.toml': '' }, ['Rust: cargo test --offline']],
			[
				{ 'Cargo.toml': '', 'package.json': script, 'go.mod': '' },
				['Node: npm test', 'Go: go test ./...', 'Rust: cargo test --offline'],
			],
		] as [Record<string, string>, string[]][])
			expect(await tests(files), JSON.stringify(files)).to.deep.equal(expected)
	})

	it('caches are absolute, below home, and hold no settings that later runs read', async () => {
		const all = await profiles({
			'package.json': '{}',
			'setup.py': '',
			'pom.xml': '',
			'build.gradle': '',
			'go.mod': '',
			'Cargo.toml': '',
		})
		expect(all).to.have.length(6)
		const settings = [
			'/h',
			'/h/.m2',
			'/h/.gradle',
			'/h/.cargo',
			'/h/.npm',
			'/h/.npmrc',
			'/h/.config',
			'/h/.cache',
			'/h/.local',
			'/h/go',
			'/h/.cargo/bin',
			'/h/.gradle/init.d',
		]
		for (const { caches, note, markers } of all) {
			expect(caches.length).to.be.greaterThan(0)
			expect(note).to.be.a('string').and.not.include('\n')
			expect(markers.length).to.be.greaterThan(0)
			for (const cache of caches) {
				expect(cache).to.match(/^\/h\/./)
				expect(settings).not.to.include(cache)
			}
		}
	})

	it('config-14 planted wrappers and yarn releases are looked at by name, never run', async () => {
		const root = await mkdtemp(join(tmpdir(), 'garuda-lang-'))
		try {
			const ran = join(root, 'ran')
			for (const name of ['mvnw', 'gradlew', 'evil.cjs', 'yarn']) {
				await writeFile(join(root, name), `#!/bin/sh\ntouch ${ran}\n`)
				await chmod(join(root, name), 0o755)
			}
			await writeFile(join(root, '.yarnrc.yml'), 'yarnPath: ./evil.cjs\n')
			await writeFile(join(root, 'yarn.lock'), '')
			await writeFile(join(root, 'package.json'), '{"scripts":{"test":"x"}}')
			await writeFile(join(root, 'pom.xml'), '')
			const files = await createFiles({ root, extraDirs: [], home: root })
			const found = await detectProfiles(files, root, '/h')
			expect(found.map((one) => one.testCommand)).to.deep.equal(['yarn test', './mvnw -o -q test'])
			expect(
				await access(ran).then(
					() => 'ran',
					() => 'not run',
				),
			).to.equal('not run')
		} finally {
			await rm(root, { recursive: true, force: true })
		}
	})

	it('a folder that cannot be listed has no profiles', async () => {
		expect(
			await detectProfiles({ read: () => Promise.reject(new Error('no')) }, '/nowhere/at/all', '/h'),
		).to.deep.equal([])
	})
})
