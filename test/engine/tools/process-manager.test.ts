// bash's background processes and process_manager, as the model meets them.
import { expect } from 'chai'
import type { Executor, RunSpec } from '../../../src/engine/ports.ts'
import { createDaemons } from '../../../src/engine/sandbox/daemons.ts'
import { builtinTools } from '../../../src/engine/tools/builtin.ts'
import { toolSpecs } from '../../../src/engine/tools/specs.ts'
import { ended, type Scene, scene } from './scene.ts'

/** Runs until it is stopped, or as long as the script's number of ms. */
const fake = (specs: RunSpec[] = []): Executor => ({
	kind: 'bubblewrap',
	close: async () => {},
	run: (spec, signal) =>
		new Promise((resolve) => {
			specs.push(spec)
			spec.onOutput?.('hello\n\u001b[31mred\u001b[0m\n')
			signal.addEventListener('abort', () => resolve(ended({ code: null, cancelled: true })))
			const ms = Number(/\d+/.exec(spec.script ?? '')?.[0])
			if (ms) setTimeout(() => resolve(ended({ code: 7 })), ms)
		}),
})

describe('tools/process_manager', () => {
	let s: Scene
	const specs: RunSpec[] = []
	beforeEach(async () => {
		specs.length = 0
		s = await scene({ executor: fake(specs), bash: { daemons: createDaemons({ max: 2, lines: 100 }) } })
	})
	afterEach(() => s.close())
	const start = (command = 'serve') => s.call('bash', { command, is_daemon: true })
	const manage = (input: Record<string, unknown>) => s.call('process_manager', input)

	it('is there only when switched on, and bash keeps its bytes without it', () => {
		const plain = toolSpecs(builtinTools())
		expect(plain.map(({ name }) => name)).to.not.include('process_manager')
		expect(JSON.stringify(plain)).to.not.include('is_daemon')
		expect(s.tool('bash').description).to.equal(builtinTools().find(({ name }) => name === 'bash')!.description)
	})

	it('start, list, logs, status, kill', async () => {
		const started = await start()
		expect(started.status).to.equal('ok')
		expect(started.text).to.include('hello\nred\n').and.to.include('in the background as d1')
		expect((await manage({ action: 'list' })).text).to.match(/^d1 runs, for \d+ s; 2 lines of output: serve$/)
		const logs = (await manage({ action: 'logs', id: 'd1', lines: 1 })).text
		expect(logs).to.include('red\n[lines 2-2 of 2]\n[d1 runs').and.to.not.include('hello')
		expect(logs).to.not.include('\u001b')
		expect((await manage({ action: 'status', id: 'd1' })).text).to.include(`in ${s.root}`)
		expect((await manage({ action: 'kill', id: 'd1' })).text).to.equal('d1 was ended: stopped')
		expect((await manage({ action: 'kill', id: 'd1' })).text).to.include('had ended before')
		expect((await manage({ action: 'list' })).text).to.include('d1 ended: stopped')
	})

	it('an id that is none is named before anything is done', async () => {
		expect(await s.fails('process_manager', { action: 'kill', id: '1' })).to.include('None was started')
		await start()
		expect(await s.fails('process_manager', { action: 'logs', id: 'd9' })).to.include('There are: d1.')
		expect(await s.fails('process_manager', { action: 'logs' })).to.include('needs an id')
	})

	it('its end is told with the next result, once', async () => {
		await start('800')
		await new Promise((done) => setTimeout(done, 200))
		const text = (await manage({ action: 'status', id: 'd1' })).text
		expect(text).to.include('[background process d1 (800) ended: exit code 7]')
		expect((await manage({ action: 'logs', id: 'd1' })).text).to.not.include('background process d1 (800)')
	})

	it('runs in the sandbox only, and never in plan mode; its question says that it goes on', async () => {
		const both = { command: 'serve', is_daemon: true, outside_sandbox: true }
		expect(await s.fails('bash', both)).to.include('in the sandbox only')
		const plan = await s.tool('bash').plan({ command: 'serve', is_daemon: true }, s.ctx)
		expect(plan.info.title).to.equal('Run in the background: serve')
		const plain = await s.tool('bash').plan({ command: 'serve' }, s.ctx)
		expect(plan.info.key, 'a yes to a run is none to leaving it running').to.not.equal(plain.info.key)
		s.ctx.mode = 'plan'
		expect(await s.fails('bash', { command: 'serve', is_daemon: true })).to.include('plan mode')
		expect(specs).to.deep.equal([])
	})

	it('asks for a host only while its call runs', async () => {
		await start()
		expect(specs[0]!.outside).to.equal(undefined)
		expect(await specs[0]!.reachHost!('a.example', 443)).to.equal(false)
		expect(s.effects).to.deep.equal([])
	})

	it('a stop of the turn takes back what it has just started', async () => {
		const abort = new AbortController()
		s.ctx.signal = abort.signal
		setTimeout(() => abort.abort(), 50)
		expect((await start()).text).to.include('it ended already: stopped')
		expect((await manage({ action: 'list' })).text).to.include('d1 ended')
	})
})
