// Links swapped in by another thread, without a pause, while the file tools read, write and edit: nothing outside is touched or seen.
// GARUDA_RACE_ROUNDS=10000 for the long run.
import { promises as fs, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { type Scene, scene } from '../tools/scene.ts'

const rounds = Number(process.env.GARUDA_RACE_ROUNDS ?? 150)

/** Puts a link in the place of the folder `p`, then of the file `p/x`, and takes it away again, until told to stop. */
const swapper = `
const { renameSync, symlinkSync, unlinkSync, lstatSync, rmSync } = require('node:fs')
const { join } = require('node:path')
const { root, victim, flag } = require('node:worker_threads').workerData
const at = (name) => join(root, name)
const quiet = (work) => { try { work() } catch {} }
const isLink = (path) => { try { return lstatSync(path).isSymbolicLink() } catch { return false } }
const there = (path) => { try { lstatSync(path); return true } catch { return false } }
const spin = (n) => { for (let i = 0, x = 0; i < n; i++) x += i }
function swap(name, aside, target) {
	quiet(() => renameSync(at(name), at(aside)))
	quiet(() => symlinkSync(target, at(name)))
	spin(Math.random() * 20000)
	if (isLink(at(name))) quiet(() => unlinkSync(at(name)))
	// Somebody made it anew meanwhile.
	else if (there(at(aside))) quiet(() => rmSync(at(name), { recursive: true }))
	quiet(() => renameSync(at(aside), at(name)))
	spin(Math.random() * 400000)
}
for (let turn = 0; Atomics.load(flag, 0) === 0; turn++) {
	if (turn % 2) swap('p', 'q', victim)
	else swap('p/x', 'p/y', join(victim, 'x'))
}
`

describe('files: link swaps by another thread', () => {
	let s: Scene
	let victim: string
	beforeEach(async () => {
		s = await scene()
		victim = join(s.outside, 'victim')
		await fs.mkdir(victim)
		await fs.writeFile(join(victim, 'x'), 'theirs\n')
		await s.put('p/x', 'mine 0\n')
	})
	afterEach(() => s.close())

	/** Runs `work` while links are swapped. */
	async function whileSwapped(work: () => Promise<void>): Promise<void> {
		const flag = new Int32Array(new SharedArrayBuffer(4))
		const worker = new Worker(swapper, { eval: true, workerData: { root: s.root, victim, flag } })
		const ended = new Promise((done) => worker.once('exit', done))
		try {
			await new Promise((done) => worker.once('online', done))
			await work()
		} finally {
			Atomics.store(flag, 0, 1)
			await ended
		}
	}
	/** As the gate with a yes to what lies in the root only: the plan says where a call goes. */
	async function call(name: string, input: Record<string, unknown>): Promise<{ status: string; text: string }> {
		const tool = s.tool(name)
		const plan = await tool.plan(input, s.ctx)
		if (!plan.info.paths.every((path) => path.startsWith(`${s.root}/`))) return { status: 'failed', text: 'asks' }
		return tool.run(plan, s.ctx)
	}
	const untouched = () => [readdirSync(victim), readFileSync(join(victim, 'x'), 'utf8')]

	it(`link-04 link-05 in ${rounds} rounds of each: no write outside, nothing of outside read`, async function () {
		this.timeout(60_000 + rounds * 100)
		const count = { ok: 0, refused: 0 }
		await whileSwapped(async () => {
			for (let round = 1; round <= rounds; round++) {
				const calls = [
					() => call('read_file', { path: 'p/x' }),
					() => call('write_file', { path: 'p/x', content: `mine ${round}\n` }),
					() => call('read_file', { path: 'p/x' }),
					() => call('edit_file', { path: 'p/x', old_string: 'mine', new_string: 'mine' + ' too' }),
					() => call('write_file', { path: `p/n${round}`, content: 'new\n' }),
					() => call('grep', { pattern: 'mine|th[e]irs', path: round % 2 ? '.' : 'p' }),
				]
				for (const one of calls) {
					const result = await one().catch((error: Error) => ({ status: 'failed', text: error.message }))
					count[result.status === 'ok' ? 'ok' : 'refused']++
					expect(result.text).to.not.include('theirs')
				}
			}
		})
		expect(untouched()).to.deep.equal([['x'], 'theirs\n'])
		console.log(`      ${count.ok} done, ${count.refused} refused`)
		expect(count.ok, 'some calls hit the file').to.be.above(0)
		expect(count.refused, 'some calls meet a link').to.be.above(0)
	})

	it('the same swaps reach outside through a look before the write', async function () {
		this.timeout(60_000)
		await whileSwapped(async () => {
			const path = join(s.root, 'p/x')
			for (let round = 0; round < 20_000 && untouched()[1] === 'theirs\n'; round++)
				try {
					if ((await fs.realpath(path)) === path) await fs.writeFile(path, 'naive\n')
				} catch {
					// not there at this moment
				}
		})
		expect(readFileSync(join(victim, 'x'), 'utf8')).to.equal('naive\n')
	})
})
