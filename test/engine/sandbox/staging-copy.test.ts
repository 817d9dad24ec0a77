// Staging without a sandbox: the copy's lists and limits, and how changes are applied, from a copy and from an overlay.
import { execFileSync } from 'node:child_process'
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
import { StagingCopy, usualLimits } from '../../../src/engine/sandbox/staging-copy.ts'
import { linkInside, listChanges } from '../../../src/engine/sandbox/staging-list.ts'
import { findOverlayTools, OverlayStage } from '../../../src/engine/sandbox/staging-overlay.ts'
import { listOverlay } from '../../../src/engine/sandbox/staging-overlay-list.ts'
import { skip } from '../../helpers/skip.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'
import { leftovers, never, noOverlay, thrown } from './staging-kit.ts'

describe('sandbox: the staging copy', () => {
	let fixture: Fixture
	beforeEach(() => {
		fixture = makeFixture()
	})
	afterEach(() => fixture.remove())
	const at = (path: string) => join(fixture.root, path)
	const _text = (path: string) => readFileSync(at(path), 'utf8')

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
		if (process.getuid?.() !== 0) skip(this, 'only root can do this') // only root makes one
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

	it('a project that is too large is not copied', async () => {
		const copy = new StagingCopy(fixture.root, join(fixture.base, 'stage'), { entries: 5, bytes: 1e9 })
		mkdirSync(copy.path)
		expect((await thrown(copy.sync(new Set(), never))).message).to.include('too large for staged commands')
		const small = new StagingCopy(fixture.root, join(fixture.base, 'stage2'), { entries: 1e5, bytes: 10 })
		mkdirSync(small.path)
		expect((await thrown(small.sync(new Set(), never))).message).to.include('too large')
	})
})

/** A stage whose changes a test makes by itself. */
const stageOf = (way: 'overlay' | 'copy', { root, base }: Fixture) => {
	if (way === 'copy') {
		const tree = new StagingCopy(root, join(base, 'stage'))
		return {
			tree,
			renew: () => tree.sync(new Set(), never),
			list: () => listChanges(tree, () => false),
			gone: (path: string) => rmSync(join(tree.path, path), { recursive: true }),
		}
	}
	const tree = new OverlayStage(root, join(base, 'overlay'), findOverlayTools()!)
	return {
		tree,
		renew: () => tree.begin(),
		list: () => listOverlay(tree, () => false, new Set(), usualLimits),
		gone: (path: string) => void execFileSync('mknod', [join(tree.path, path), 'c', '0', '0']),
	}
}

for (const way of ['overlay', 'copy'] as const)
	describe(`sandbox: applying staged changes (${way})`, () => {
		let fixture: Fixture
		before(function () {
			if (way === 'overlay' && noOverlay()) skip(this, 'no overlay can be mounted here')
		})
		beforeEach(() => {
			fixture = makeFixture()
		})
		afterEach(() => fixture.remove())
		const at = (path: string) => join(fixture.root, path)
		const text = (path: string) => readFileSync(at(path), 'utf8')

		it('a failure midway takes all back', async function () {
			// Only root makes an overlay's white-outs by hand.
			if (way === 'overlay' && process.getuid?.() !== 0) skip(this, 'only root can do this')
			const { tree, ...stage } = stageOf(way, fixture)
			put(at('z/last'), '1')
			await stage.renew()
			put(join(tree.path, 'f.txt'), 'mine')
			stage.gone('rc.sh')
			put(join(tree.path, 'new/x'), 'mine')
			writeFileSync(join(tree.path, 'i386'), readFileSync(at('i386')))
			chmodSync(join(tree.path, 'i386'), 0o700)
			stage.gone('mnt')
			put(join(tree.path, 'z/last'), 'mine')
			const list = await stage.list()
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
					tree,
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
			const { tree, ...stage } = stageOf(way, fixture)
			let applied = 0
			for (let round = 0; round < rounds; round++) {
				await stage.renew()
				put(join(tree.path, 'p/x'), `mine ${round}`)
				// New files and changed ones, and never so many that the copy grows.
				writeFileSync(join(tree.path, `p/n${round % 50}`), `mine ${round}`)
				const { changes: all } = await stage.list()
				const done = applyChanges(tree, all, never).then(
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
	})
