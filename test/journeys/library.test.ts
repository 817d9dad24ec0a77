// The packed tarball in an empty folder: ten lines run a turn, and nothing of a front end is loaded.
import { execFileSync, spawnSync } from 'node:child_process'
import {
	cpSync,
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { repository } from '../helpers/cli.ts'
import { removeTemp, tempDir } from '../helpers/temp.ts'

/** What a program that embeds the engine writes. */
const program = `
import { createEngine, scriptedFromFile } from 'garuda'

const garuda = createEngine({
	root: process.argv[2], home: process.argv[3], env: process.env, acceptEdits: true, model: 'scripted',
	approver: { ask: async () => ({ choice: 'deny' }) },
	clients: { scripted: () => scriptedFromFile(process.argv[4]) },
})
const session = await garuda.open()
const turn = session.prompt('write it')
for await (const event of turn) if (event.type === 'text_delta') process.stdout.write(event.text)
console.log(JSON.stringify({ reason: (await turn.end).reason, handles: process.getActiveResourcesInfo().length }))
await garuda.close()
`

describe('the engine as a library', function () {
	this.timeout(120_000)
	let folder: string

	before(() => {
		// A copy: another run may pack the checkout at the same time.
		folder = tempDir('garuda-pack-')
		const copy = join(folder, 'checkout')
		mkdirSync(copy)
		const list = readdirSync(repository).filter(
			(name) => !/^(node_modules|pack|\.git|\.garuda|test|bench)$|\.tgz$|^dist-/.test(name),
		)
		for (const name of list) cpSync(join(repository, name), join(copy, name), { recursive: true })
		symlinkSync(join(repository, 'node_modules'), join(copy, 'node_modules'))
		const packed = spawnSync(process.execPath, ['scripts/pack.mjs'], {
			cwd: copy,
			encoding: 'utf8',
			env: { ...process.env, NODE_OPTIONS: '' },
		})
		if (packed.status !== 0) throw new Error(packed.stdout + packed.stderr)
		const tarball = join(copy, packed.stdout.trim().split(' ')[0]!)
		expect(statSync(tarball).size, 'packed tarball').to.be.below(8 * 1024 * 1024)
		// Installed as npm would lay it out, without asking a registry; its two plugins are not the library's.
		mkdirSync(join(folder, 'app/node_modules'), { recursive: true })
		execFileSync('tar', ['xzf', tarball, '-C', join(folder, 'app/node_modules')])
		execFileSync('mv', [join(folder, 'app/node_modules/package'), join(folder, 'app/node_modules/garuda')])
		rmSync(copy, { recursive: true, force: true })
	})
	after(removeTemp)

	it('ten lines run a turn with a scripted model, the file is written, the process ends by itself', () => {
		const app = join(folder, 'app')
		writeFileSync(join(app, 'main.mjs'), program)
		for (const name of ['root', 'home']) mkdirSync(join(app, name))
		writeFileSync(
			join(app, 'script.json'),
			JSON.stringify({
				steps: [
					{ calls: [{ name: 'write_file', input: { path: 'made.txt', content: 'by the library\n' } }] },
					{ expect: 'made.txt', text: 'Written.' },
				],
			}),
		)
		const ran = spawnSync(process.execPath, ['main.mjs', join(app, 'root'), join(app, 'home'), 'script.json'], {
			cwd: app,
			encoding: 'utf8',
			timeout: 15_000,
			env: { PATH: process.env.PATH, HOME: join(app, 'not-here') },
		})
		expect(ran.status, ran.stderr).to.equal(0)
		expect(ran.stdout).to.match(/^Written\.\{"reason":"done"/)
		expect(ran.stderr).to.equal('')
		expect(readFileSync(join(app, 'root/made.txt'), 'utf8')).to.equal('by the library\n')
		expect(existsSync(join(app, 'not-here'))).to.equal(false)
	})

	it('importing it loads no Ink, oclif, ACP, model SDK or schema library, touches no stream and starts nothing', () => {
		const app = join(folder, 'app')
		const loaded = join(app, 'loaded')
		const ran = spawnSync(
			process.execPath,
			[
				'--import',
				join(repository, 'test/helpers/loaded.mjs'),
				'--input-type=module',
				'-e',
				"const all = await import('garuda'); console.log(JSON.stringify([Object.keys(all), process.getActiveResourcesInfo(), process.listenerCount('SIGINT')]))",
			],
			{ cwd: app, encoding: 'utf8', env: { PATH: process.env.PATH, GARUDA_TEST_LOADED: loaded } },
		)
		expect(ran.status, ran.stderr).to.equal(0)
		const [names, resources, listeners] = JSON.parse(ran.stdout)
		expect(names).to.include.members(['createEngine', 'UserError'])
		expect([resources.filter((one: string) => !/Pipe|TTY|Immediate/.test(one)), listeners]).to.deep.equal([[], 0])
		const files = [...new Set(readFileSync(loaded, 'utf8').split('\n'))].filter((url) => url.startsWith('file:'))
		const bytes = files.map((url) => readFileSync(new URL(url), 'utf8')).join('\n')
		expect(files.length).to.be.below(15)
		expect(bytes).to.not.match(/@oclif|react|agentclientprotocol|ZodObject|api\.anthropic\.com\/v1\/oauth/)
		expect(bytes.length, 'light by itself').to.be.below(150_000)
	})

	it('its types are there for a program in TypeScript', () => {
		const app = join(folder, 'app')
		writeFileSync(
			join(app, 'typed.ts'),
			"import { createEngine, type Session } from 'garuda'\nconst g = createEngine({ root: '/', home: '/', env: {}, approver: { ask: async () => ({ choice: 'deny' as const }) } })\nexport const s: Promise<Session> = g.open()\n// @ts-expect-error there is no such option\ncreateEngine({ rooot: 1 })\n",
		)
		const flags = [
			'--noEmit',
			'--strict',
			'--module',
			'nodenext',
			'--target',
			'es2023',
			'--skipLibCheck',
			'--types',
			'',
		]
		const ran = spawnSync(
			process.execPath,
			[join(repository, 'node_modules/typescript7/bin/tsc'), ...flags, 'typed.ts'],
			{ cwd: app, encoding: 'utf8' },
		)
		expect(ran.status, ran.stdout).to.equal(0)
	})

	it('holds what a user needs and nothing of the workshop', () => {
		const root = join(folder, 'app/node_modules/garuda')
		const names = readdirSync(root, { recursive: true }) as string[]
		for (const name of ['bin/run.js', 'dist/oclif.js', 'LICENSE', 'README.md', 'CHANGELOG.md', 'oclif.manifest.json'])
			expect(names).to.include(name)
		expect(
			names.filter((name) => /(^|\/)(test|bench|scripts)\/|\.node$|dev\.js$|stamp\.json$|meta\.json$/.test(name)),
		).to.deep.equal([])
		const { dependencies, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
		expect(Object.keys(dependencies)).to.satisfy((all: string[]) =>
			all.every((name) => name.startsWith('@oclif/plugin-')),
		)
		expect(scripts).to.equal(undefined)
	})
})
