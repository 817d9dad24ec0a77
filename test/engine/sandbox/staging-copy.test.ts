// The staging copy by itself, without a sandbox: its lists, its limits, and how changes are applied.
import {
	chmodSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	symlinkSync,
	unlinkSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { applyChanges } from '../../../src/engine/sandbox/staging-apply.ts'
import { StagingCopy } from '../../../src/engine/sandbox/staging-copy.ts'
import { linkInside, listChanges } from '../../../src/engine/sandbox/staging-list.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'
import { leftovers, never, thrown } from './staging-kit.ts'

describe('sandbox: the staging copy', () => {
	let fixture: Fixture
	beforeEach(() => {
		fixture = makeFixture()
	})
	afterEach(() => fixture.remove())
	const at = (path: string) => join(fixture.root, path)
	const text = (path: string) => readFileSync(at(path), 'utf8')

	it('job-09 a link can leave the project by no spelling', () => {
		for (const [path, target, ok] of [
			['a', 'b', true],
			['a', 'd/./b', true],
			['d/a', '../b', true],
			['d/e/a', '../../b', true],
			['a', '/r/x', true],
			['a', '/r', true],
			['a', '..', false],
			['d/a', '../..', false],
			['a', '/r/../etc', false],
			['a', '/rx', false],
			['a', '/etc', false],
			// d/l may be a link to the root: then d/l/.. is above it.
			['d/a', 'l/../x', false],
			['d/a', '../d/l/../../x', false],
			['a', '', false],
			['a', '/r/\0', false],
		] as const)
			expect(linkInside('/r', path, target), `${path} -> ${target}`).to.equal(ok)
	})

	it('job-10 an overlay’s white-out in the copy is a device, not a deletion', async function () {
		if (process.getuid?.() !== 0) this.skip() // only root makes one
		const { execFileSync } = await import('node:child_process')
		const copy = new StagingCopy(fixture.root, join(fixture.base, 'stage'))
		mkdirSync(copy.path)
		await copy.sync(new Set(), never)
		rmSync(join(copy.path, 'f.txt'))
		for (const [name, kind, ...numbers] of [
			['f.txt', 'c', '0', '0'],
			['null', 'c', '1', '3'],
			['disk', 'b', '7', '99'],
		] as const)
			execFileSync('mknod', [join(copy.path, name), kind, ...numbers])
		const list = await listChanges(copy, () => false)
		expect(list.changes).to.deep.equal([])
		expect(list.refused.map(({ path }) => path)).to.deep.equal(['disk', 'f.txt', 'null'])
	})

	it('a failure midway takes all back', async () => {
		const copy = new StagingCopy(fixture.root, join(fixture.base, 'stage'))
		put(at('z/last'), '1')
		mkdirSync(copy.path)
		await copy.sync(new Set(), never)
		writeFileSync(join(copy.path, 'f.txt'), 'mine')
		rmSync(join(copy.path, 'rc.sh'))
		put(join(copy.path, 'new/x'), 'mine')
		chmodSync(join(copy.path, 'i386'), 0o700)
		rmSync(join(copy.path, 'mnt'), { recursive: true })
		writeFileSync(join(copy.path, 'z/last'), 'mine')
		const list = await listChanges(copy, () => false)
		// The last step meets a name that was taken after all was prepared.
		const last = list.changes.find(({ path }) => path === 'z/last')!
		const steps = [...list.changes.filter((one) => one !== last), last]
		const slow = {
			...last.old!,
			get key() {
				if (existsSync(at('new'))) writeFileSync(at('z/last'), 'theirs')
				return last.old!.key
			},
		}
		const error = await thrown(
			applyChanges(
				copy,
				steps.map((one) => (one === last ? { ...last, old: slow } : one)),
				never,
			),
		)
		expect(error.message).to.include('z/last')
		expect([text('f.txt'), text('rc.sh').length > 0, existsSync(at('new')), text('z/last')]).to.deep.equal([
			'x\n',
			true,
			false,
			'theirs',
		])
		expect([lstatSync(at('i386')).mode & 0o777, existsSync(at('mnt')), leftovers(fixture.root)]).to.deep.equal([
			0o755,
			true,
			[],
		])
	})

	it('job-09 link swaps while applying: nothing is ever written outside', async function () {
		const victim = join(fixture.base, 'victim')
		put(join(victim, 'x'), 'theirs')
		put(at('p/x'), '0')
		const rounds = Number(process.env.GARUDA_RACE_ROUNDS ?? 60)
		this.timeout(60_000 + rounds * 200)
		const copy = new StagingCopy(fixture.root, join(fixture.base, 'stage'))
		mkdirSync(copy.path)
		let applied = 0
		for (let round = 0; round < rounds; round++) {
			await copy.sync(new Set(), never)
			writeFileSync(join(copy.path, 'p/x'), `mine ${round}`)
			writeFileSync(join(copy.path, `p/n${round}`), 'mine')
			const { changes: all } = await listChanges(copy, () => false)
			const done = applyChanges(copy, all, never).then(
				() => applied++,
				() => {},
			)
			let swapping = true
			const swap = (async () => {
				for (let turn = 0; swapping; turn++) {
					await new Promise((next) => (turn % 3 === 0 ? setTimeout(next, Math.random() * 4) : setImmediate(next)))
					if (!swapping || round % 4 === 0) continue
					renameSync(at('p'), at('q'))
					symlinkSync(victim, at('p'))
					await new Promise((next) => setImmediate(next))
					unlinkSync(at('p'))
					renameSync(at('q'), at('p'))
				}
			})()
			await done
			swapping = false
			await swap
		}
		expect([readdirSync(victim), readFileSync(join(victim, 'x'), 'utf8')]).to.deep.equal([['x'], 'theirs'])
		expect(applied, 'some rounds apply').to.be.greaterThan(0)
	})

	it('a project that is too large is not copied', async () => {
		const copy = new StagingCopy(fixture.root, join(fixture.base, 'stage'), { entries: 5, bytes: 1e9 })
		mkdirSync(copy.path)
		expect((await thrown(copy.sync(new Set(), never))).message).to.include('too large for staged commands')
		const small = new StagingCopy(fixture.root, join(fixture.base, 'stage2'), { entries: 1e5, bytes: 10 })
		mkdirSync(small.path)
		expect((await thrown(small.sync(new Set(), never))).message).to.include('too large')
	})
})
