// The tour where nobody types: what a script reads of it, what it leaves alone, and where it is no answer.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type ChatFlags, run } from '../../src/chat/run.ts'
import { localPresets } from '../../src/engine/config/local-presets.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { removeTemp, tempProject } from '../helpers/temp.ts'
import { fakeIo } from './fake.ts'

describe('the tour without a terminal', () => {
	let place: { root: string; home: string }
	beforeEach(() => {
		place = tempProject({ 'README.md': '# Boat\n', 'src/float.js': '// TODO: sails\nexport const floats = true\n' })
	})
	afterEach(removeTemp)

	async function go(flags: ChatFlags, env: Record<string, string> = {}) {
		const nowhere = Object.fromEntries(
			localPresets.map((one) => [`${one.name.replace(/\W/g, '_').toUpperCase()}_BASE_URL`, 'http://127.0.0.1:9']),
		)
		const io = fakeIo({ env: { PATH: process.env.PATH!, HOME: place.home, ...nowhere, ...env } })
		io.keys.end('')
		let error: (Error & { hint?: string }) | null = null
		const code = await run({
			flags,
			named: new Set(Object.keys(flags)),
			version: '0.1.0',
			clients: {},
			home: place.home,
			cwd: place.root,
			tour: () => import('../../src/engine/tour/index.ts'),
			io,
			createEngine,
		}).catch((thrown: Error & { hint?: string }) => {
			error = thrown
			return -1
		})
		return { code, out: io.out.text, error: error as (Error & { hint?: string }) | null }
	}

	it('-m tour -p "show me" tells what it changed, showed and took back; the folder stays as it was', async () => {
		for (const words of ['show me', 'the tour, please']) {
			const { code, out } = await go({ print: words, model: 'tour' })
			expect(code, out).to.equal(0)
			expect(out).to.match(/What this turn changed[\s\S]*^\+.*Garuda's tour[\s\S]*And taken back \(\/undo\)/m)
			expect(out).to.include('garuda setup').and.include('ollama/<model>')
		}
		expect(readFileSync(join(place.root, 'src/float.js'), 'utf8')).to.equal(
			'// TODO: sails\nexport const floats = true\n',
		)
		expect(readdirSync(place.root).sort()).to.deep.equal(['README.md', 'src'])
	})

	it('other words get their answer alone; in JSON the last words tell what was done', async () => {
		const tests = await go({ print: 'find the tests', model: 'tour' })
		expect(tests.out).to.include('named like a test').and.not.include('And taken back')
		const json = await go({ print: 'show me', model: 'tour', 'output-format': 'json' })
		const { result } = JSON.parse(json.out) as { result: string }
		expect(result)
			.to.match(/changed (?:README\.md|src\/float\.js|garuda-tour\.md), as the diff showed it/)
			.and.include('/undo takes it back')
			.and.include('the record goes with the scratch copy')
	})

	it('with no model it plays; with --continue or -r it is no answer: what is wrong with the session is said', async () => {
		const played = await go({})
		expect([played.code, played.error]).to.deep.equal([0, null])
		expect(played.out).to.include('not an AI')
		for (const flags of [
			{ continue: true },
			{ resume: 'nosuchid' },
			{ resume: 'nosuchid', fork: true },
		] as ChatFlags[]) {
			const { error, out } = await go(flags)
			expect(out, JSON.stringify(flags)).to.equal('')
			expect(error?.name, JSON.stringify(flags)).to.equal('UserError')
			expect(error?.message).to.match(flags.fork ? /No model is chosen/ : /session/i)
		}
	})

	it('a session that is there, but not its model: that is said, and no tour', async () => {
		const script = join(place.root, '..', 'script.json')
		writeFileSync(script, '{"steps":[{"text":"Hello."}]}')
		const { scriptedFromFile } = await import('../../src/engine/index.ts')
		const made = createEngine({
			root: place.root,
			home: place.home,
			hostname: hostname(),
			uid: process.getuid!(),
			env: {},
			model: 'scripted',
			approver: { ask: async () => ({ choice: 'deny' }) },
			clients: { scripted: () => scriptedFromFile(script) },
		})
		await (await made.open()).prompt('hello').end
		await made.close()
		const { error, out } = await go({ continue: true })
		expect([out, error?.name]).to.deep.equal(['', 'UserError'])
		expect(error?.message).to.include('model "scripted"')
	})
})
