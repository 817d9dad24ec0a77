// `garuda trust list` and `garuda trust forget` as processes: what they print, what they change, how they end.
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import TrustForget from '../../../src/commands/trust/forget.ts'
import TrustList from '../../../src/commands/trust/list.ts'
import { systemClock } from '../../../src/engine/clock.ts'
import { type Artefact, consentHash, createTrustStore } from '../../../src/engine/permission/trust.ts'
import { garuda as run } from '../../helpers/cli.ts'
import { removeTemp, tempProject, writeFiles } from '../../helpers/temp.ts'

const never = new AbortController().signal

describe('garuda trust', function () {
	this.timeout(20_000)
	let at: { root: string; home: string }
	let file: string
	let time = Date.UTC(2026, 10, 30, 12)
	beforeEach(() => {
		at = tempProject({ 'a.txt': 'x' })
		file = join(at.home, '.garuda', 'trust.json')
		mkdirSync(join(at.home, '.garuda'), { mode: 0o700 })
	})
	afterEach(removeTemp)

	const garuda = (args: string[], more = {}) => run(at, ['trust', ...args], more)
	/** A store as a session has it; `answers` yes for good, or fails the test when it asks. */
	const store = (answer: 'session' | 'nobody') =>
		createTrustStore({
			file,
			clock: { ...systemClock, now: () => (time += 60_000) },
			interactive: answer === 'session',
			approver: { ask: async () => ({ choice: 'session' }) },
		})
	const artefact = (root: string, path: string, text: string, kind: Artefact['kind'] = 'command'): Artefact => {
		writeFiles(root, { [path]: text })
		return { kind, root, name: path.split('/').at(-1)!, path: join(root, path), text, bytes: Buffer.from(text) }
	}
	/** Three consents of two projects, oldest first. */
	const trusted = async (): Promise<Artefact[]> => {
		const other = join(at.root, '..', 'other')
		mkdirSync(other, { recursive: true })
		const all = [
			artefact(at.root, '.garuda/settings.json', '{"executor":"host"}', 'project-settings'),
			artefact(other, '.garuda/commands/review.md', 'Review.'),
			artefact(at.root, '.garuda/commands/ship.md', 'Ship it.'),
		]
		const made = store('session')
		for (const one of all) expect(await made.consent(one, never)).to.equal('granted')
		return all
	}
	const granted = (all: Artefact[]) => Promise.all(all.map((one) => store('nobody').consent(one, never)))
	const consents = () => JSON.parse(readFileSync(file, 'utf8')).consents as { path: string }[]

	it('every flag and argument has a help text', () => {
		type Described = Record<string, { description?: string }>
		for (const { flags, args } of [TrustList, TrustForget] as { flags: Described; args?: Described }[])
			for (const [name, one] of Object.entries({ ...flags, ...args }))
				expect(one.description, name).to.be.a('string').and.not.equal('')
	})

	it('list: nothing yet, then each with its number, kind, moment, hash, folder and file, newest first', async () => {
		const none = await garuda(['list'])
		expect([none.code, none.stdout, none.stderr]).to.deep.equal([
			0,
			'Nothing is trusted: no project was agreed to.\n',
			'',
		])
		expect(existsSync(file), 'a look makes no file').to.equal(false)
		const [first, second, third] = await trusted()
		rmSync(second!.path)
		const { code, stdout } = await garuda(['list'])
		expect(code).to.equal(0)
		const lines = stdout.split('\n')
		expect(lines[0]).to.match(/^ {2}1 {2}command {11}2026-11-30 \d\d:\d\d {2}[0-9a-f]{12} {2}\//)
		expect(lines[0]).to.include(consentHash(third!).slice(0, 12)).and.include(at.root)
		expect(lines[1]).to.equal('     .garuda/commands/ship.md')
		expect(lines[3]).to.equal('     .garuda/commands/review.md  (the file is gone)')
		expect(lines[4]).to.match(/^ {2}3 {2}project-settings /)
		const json = await garuda(['list', '--json'])
		const value = JSON.parse(json.stdout)
		expect(value.version).to.equal(1)
		expect(value.consents.map((one: any) => [one.kind, one.path, one.sha256, one.there])).to.deep.equal([
			['command', third!.path, consentHash(third!), true],
			['command', second!.path, consentHash(second!), false],
			['project-settings', first!.path, consentHash(first!), true],
		])
	})

	for (const [what, arg, left] of [
		['a number', () => '2', [true, false, true]],
		['a file', (all: Artefact[]) => all[2]!.path, [true, true, false]],
		["a project's folder", () => at.root, [false, true, false]],
		['a folder above, relative to here', () => '..', [false, false, false]],
		['a folder within', () => '.garuda/commands', [true, true, false]],
		['the beginning of a hash', (all: Artefact[]) => consentHash(all[0]!).slice(0, 12), [false, true, true]],
		['all', () => '--all', [false, false, false]],
	] as const)
		it(`forget by ${what}: those and no others are asked for again`, async () => {
			const all = await trusted()
			const ran = await garuda(['forget', arg(all)], { cwd: at.root })
			expect(ran.code, ran.stderr).to.equal(0)
			expect(ran.stdout.match(/^Forgotten: /gm)).to.have.length(left.filter((one) => !one).length)
			expect(await granted(all)).to.deep.equal(left.map((one) => (one ? 'granted' : 'left_out')))
			expect(statSync(file).mode & 0o777).to.equal(0o600)
		})

	for (const empty of ['', ' ', '\t\n'])
		it(`forget of an empty text (${JSON.stringify(empty)}) is wrong usage, not the folder it runs in`, async () => {
			const all = await trusted()
			const { code, stdout, stderr } = await garuda(['forget', empty], { cwd: at.root })
			expect([code, stdout]).to.deep.equal([2, ''])
			expect(stderr).to.include('this is empty')
			expect(await granted(all)).to.deep.equal(['granted', 'granted', 'granted'])
		})

	it('what fits nothing is exit 1 and changes nothing; neither or both words, exit 2', async () => {
		await trusted()
		const before = readFileSync(file, 'utf8')
		for (const what of ['4', '0', join(at.root, 'a.txt'), '/nowhere', 'deadbeef00']) {
			const ran = await garuda(['forget', what])
			expect([ran.code, ran.stdout], what).to.deep.equal([1, ''])
			expect(ran.stderr).to.include('garuda trust list')
		}
		for (const args of [['forget'], ['forget', '1', '--all'], ['forget', '1', '2'], ['list', '--all']])
			expect((await garuda(args)).code, args.join(' ')).to.equal(2)
		expect(readFileSync(file, 'utf8')).to.equal(before)
	})

	it('a name next to a folder is not of it', async () => {
		const near = `${at.root}-more`
		mkdirSync(near)
		expect(await store('session').consent(artefact(near, '.garuda/commands/a.md', 'A.'), never)).to.equal('granted')
		expect((await garuda(['forget', at.root])).code).to.equal(1)
		expect(consents()).to.have.length(1)
	})

	it('GARUDA_HOME names the place, and hidden characters of a path are written out', async () => {
		const elsewhere = join(at.home, 'elsewhere')
		mkdirSync(elsewhere, { mode: 0o700 })
		file = join(elsewhere, 'trust.json')
		const name = '.garuda/commands/x\u202e\u001b[2Jy.md'
		expect(await store('session').consent(artefact(at.root, name, 'X.'), never)).to.equal('granted')
		expect((await garuda(['list'])).stdout).to.include('Nothing is trusted')
		const listed = await garuda(['list'], { env: { GARUDA_HOME: elsewhere } })
		expect(listed.stdout)
			.to.include('x[U+202E]␛[2Jy.md')
			.and.not.match(/[\u001b\u202e]/)
		const ran = await garuda(['forget', '1'], { env: { GARUDA_HOME: elsewhere } })
		expect(ran.stdout)
			.to.include('x[U+202E]␛[2Jy.md')
			.and.not.match(/[\u001b\u202e]/)
		expect(consents()).to.deep.equal([])
	})

	it('a damaged file is told and is exit 1; a link, and one that others can write, are not used', async () => {
		writeFileSync(file, '{ half', { mode: 0o600 })
		const damaged = await garuda(['list'])
		expect([damaged.code, damaged.stdout]).to.deep.equal([1, ''])
		expect(damaged.stderr).to.include('damaged')
		await garuda(['forget', '--all'])
		expect(readFileSync(`${file}.damaged`, 'utf8')).to.equal('{ half')
		expect((await garuda(['list'])).code).to.equal(0)
		chmodSync(file, 0o666)
		for (const args of [['list'], ['forget', '--all']]) {
			const ran = await garuda(args)
			expect([ran.code, ran.stdout], args.join()).to.deep.equal([1, ''])
			expect(ran.stderr).to.include('written by others')
		}
		rmSync(file)
		symlinkSync(join(at.home, 'target'), file)
		expect((await garuda(['list'])).stderr).to.include('is a link')
	})
})
