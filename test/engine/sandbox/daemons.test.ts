// Background processes: bounded, told about, and gone with the session, whatever they do.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import type { Executor } from '../../../src/engine/ports.ts'
import { createDaemons, LineBuffer } from '../../../src/engine/sandbox/daemons.ts'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import { type Fixture, makeFixture } from './fixture.ts'

const alive = (mark: string): boolean => {
	try {
		return execFileSync('pgrep', ['-f', mark], { encoding: 'utf8' }).trim() !== ''
	} catch {
		return false
	}
}
const until = async (what: () => boolean) => {
	for (let tries = 0; tries < 300 && !what(); tries++) await delay(10)
	return what()
}
let number = 0
/** A number of seconds that no other process sleeps. */
const nap = () => `8${process.pid}.${++number}`

describe('sandbox: background processes', () => {
	let fixture: Fixture
	let executor: Executor
	beforeEach(async () => {
		fixture = makeFixture()
		executor = (await createExecutor(fixture.options({ limits: { graceMs: 200 } }))).executor
	})
	afterEach(async () => {
		await executor.close()
		await fixture.remove()
	})
	const spec = (script: string) => ({ script, cwd: fixture.root })

	it('one goes on after its start; its lines are there, and a kill ends all of it', async () => {
		const daemons = createDaemons({ max: 5, lines: 100 })
		const mark = nap()
		const { id, running } = await daemons.start(executor, spec(`echo up; sh -c 'sleep ${mark}' & echo on; wait`))
		expect([id, running]).to.deep.equal(['d1', true])
		expect(daemons.logs(id, 10)).to.deep.equal({ lines: ['up', 'on'], first: 1 })
		expect(daemons.logs(id, 1)).to.deep.equal({ lines: ['on'], first: 2 })
		expect(alive(`sleep ${mark}`)).to.equal(true)
		expect(await daemons.kill(id)).to.include({ running: false, ending: 'stopped' })
		expect(await until(() => !alive(`sleep ${mark}`))).to.equal(true)
		expect(daemons.news(), 'an end that was asked for is no news').to.deep.equal([])
	})

	it('it has the walls of every command: no secrets, no writing outside', async () => {
		const daemons = createDaemons({ max: 5, lines: 100 })
		const script = `cat ${fixture.home}/.ssh/k; touch ${fixture.base}/out; touch /usr/garuda-x && echo ESCAPED; echo; sleep 60`
		const { id } = await daemons.start(executor, spec(script))
		expect(await until(() => (daemons.logs(id, 9)?.lines.length ?? 0) > 1)).to.equal(true)
		expect(daemons.logs(id, 9)!.lines.join()).to.not.match(/SECRETTOKEN|ESCAPED/)
		expect(existsSync(join(fixture.base, 'out'))).to.equal(false)
	})

	it('an end at once is the answer of the start; a later one is told once, to the person at once', async () => {
		const told: string[] = []
		const daemons = createDaemons({ max: 5, lines: 100 }, (text) => told.push(text))
		expect(await daemons.start(executor, spec('echo no; exit 3'))).to.include({ running: false, ending: 'exit code 3' })
		expect(daemons.news()).to.deep.equal([])
		const late = await daemons.start(executor, spec('sleep 0.9; kill -9 $$'))
		expect(late.running).to.equal(true)
		expect(await until(() => told.length > 0)).to.equal(true)
		expect(told).to.deep.equal(['background process d2 (sleep 0.9; kill -9 $$) ended: signal SIGKILL'])
		expect(daemons.news()).to.deep.equal(told)
		expect(daemons.news()).to.deep.equal([])
	})

	it('a shell that ends with its work in its own background says what became of it', async () => {
		const daemons = createDaemons({ max: 5, lines: 100 })
		const mark = nap()
		const { ending } = await daemons.start(executor, spec(`sleep ${mark} &`))
		expect(ending).to.include('exit code 0; 1 process').and.to.include('without &')
		expect(await until(() => !alive(`sleep ${mark}`))).to.equal(true)
	})

	it('dos-03 as many run as may, and an end makes room', async () => {
		const daemons = createDaemons({ max: 2, lines: 100 })
		await daemons.start(executor, spec('sleep 60'))
		await daemons.start(executor, spec('sleep 60'))
		const error = await daemons.start(executor, spec('sleep 60')).catch((thrown) => thrown)
		expect(error).to.be.instanceOf(ToolError)
		expect(error.message).to.include('d1, d2')
		await daemons.kill('d1')
		expect((await daemons.start(executor, spec('sleep 60'))).running).to.equal(true)
		expect(daemons.list().map((one) => one.running)).to.deep.equal([false, true, true])
	})

	it('dos-03 a flood of output keeps the newest lines, bounded', async () => {
		const daemons = createDaemons({ max: 1, lines: 100 })
		const { id } = await daemons.start(executor, spec('yes | head -n 300000 | cat -n; echo end; sleep 60'))
		expect(await until(() => daemons.logs(id, 1)?.lines[0] === 'end')).to.equal(true)
		expect(daemons.logs(id, 10_000)!.lines).to.have.length(100)
		expect(daemons.get(id)!.lines).to.be.greaterThan(1_000)
	})

	it('the end of the session ends all, also what is in a session of its own and what ignores TERM', async () => {
		const daemons = createDaemons({ max: 5, lines: 100 })
		const [one, two] = [nap(), nap()]
		await daemons.start(executor, spec(`setsid sleep ${one} & sleep 60`))
		await daemons.start(executor, spec(`trap '' TERM; sleep ${two}`))
		await executor.close()
		for (const mark of [one, two]) expect(await until(() => !alive(`sleep ${mark}`)), mark).to.equal(true)
		await daemons.close()
		expect(daemons.list().every((state) => !state.running)).to.equal(true)
		const error = await daemons.start(executor, spec('true')).catch((thrown) => thrown)
		expect(error).to.be.instanceOf(ToolError)
	})

	it('after kill -9 of Garuda nothing of it runs', async () => {
		const mark = nap()
		const driver = join(import.meta.dirname, 'daemon-driver.ts')
		const script = `(setsid sleep ${mark} &); sleep ${mark}`
		const args = ['--import', 'tsx', driver, fixture.root, fixture.home, `${fixture.tmp}-2`, script]
		const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
		let out = ''
		child.stdout.on('data', (bytes) => {
			out += bytes
		})
		expect(await until(() => out.includes('\n') || child.exitCode !== null)).to.equal(true)
		expect(JSON.parse(out)).to.include({ running: true })
		expect(alive(`sleep ${mark}`)).to.equal(true)
		child.kill('SIGKILL')
		expect(await until(() => !alive(`sleep ${mark}`))).to.equal(true)
	})
})

describe('sandbox: lines of a background process', () => {
	it('dos-03 bounds lines in number and length, and all of them in size', () => {
		const lines = new LineBuffer(10)
		for (let index = 1; index <= 1000; index++) lines.push(`line ${index}\n`)
		expect(lines.last(99)).to.deep.equal({
			lines: Array.from({ length: 10 }, (_, index) => `line ${991 + index}`),
			first: 991,
		})
		expect([lines.total, lines.first]).to.deep.equal([1000, 991])
		for (let index = 0; index < 1000; index++) lines.push('x'.repeat(10_000))
		expect(lines.last(1).lines[0]!.length).to.be.below(2_100)
		const wide = new LineBuffer(100_000)
		for (let index = 0; index < 10_000; index++) wide.push(`${'y'.repeat(1_999)}\n`)
		const kept = wide.last(100_000)
		expect(kept.lines.length).to.be.within(1_500, 2_600)
		expect(kept.first).to.equal(wide.total - kept.lines.length + 1)
	})

	it('a line comes in pieces, the last one without its end', () => {
		const lines = new LineBuffer(10)
		for (const piece of ['a', 'b\nc', '', '\n\nd']) lines.push(piece)
		expect(lines.last(9)).to.deep.equal({ lines: ['ab', 'c', '', 'd'], first: 1 })
		lines.end()
		lines.end()
		expect([lines.total, lines.last(1).lines]).to.deep.equal([4, ['d']])
	})
})
