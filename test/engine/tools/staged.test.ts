// bash with staging on, as the model and the person meet it: one question about what was changed, and declarations that only narrow.
import { join } from 'node:path'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import type { Executor } from '../../../src/engine/ports.ts'
import { createDaemons } from '../../../src/engine/sandbox/daemons.ts'
import type { StagedChanges, StagedSpec } from '../../../src/engine/sandbox/staging.ts'
import { builtinTools } from '../../../src/engine/tools/builtin.ts'
import { toolSpecs } from '../../../src/engine/tools/specs.ts'
import { type ApplyEffect, beyond, checkEffects } from '../../../src/engine/tools/staged.ts'
import { ended, type Scene, type SceneOptions, scene } from './scene.ts'

type Change = StagedChanges['changes'][number]
const change = (text: string): Change => {
	const [kind, path] = text.split(' ') as [Change['kind'], string]
	return { kind, path: path.replace(/\/$/, ''), folder: path.endsWith('/') }
}

describe('tools/bash: staged commands', () => {
	let s: Scene
	const specs: StagedSpec[] = []
	let applied = 0
	let wanted: string[] = []
	let fail: Error | null = null
	let over: Parameters<typeof ended>[0] = {}
	const executor: Executor = {
		kind: 'bubblewrap',
		close: async () => {},
		run: async (spec) => {
			specs.push(spec)
			const staged: StagedChanges = {
				changes: wanted.map(change),
				refused: [{ path: 'dev', why: 'no file, folder or link' }],
				summary: 'THE DIFF',
				apply: async () => {
					if (fail) throw fail
					applied++
				},
			}
			return { ...ended({ output: 'out\n', ...over }), ...((spec as StagedSpec).staged && { staged }) }
		},
	}
	const open = async (more: SceneOptions = {}) => {
		s = await scene({ executor, bash: { staging: true }, ...more })
	}
	beforeEach(() => {
		specs.length = 0
		applied = 0
		wanted = ['change src/a.ts', 'create b']
		fail = null
		over = {}
	})
	afterEach(() => s.close())
	const bash = (more: Record<string, unknown> = {}) => s.call('bash', { command: 'make', ...more })
	const asked = () => s.effects as ApplyEffect[]

	it('asks once with all that would change, and applies after a yes', async () => {
		await open()
		const result = await bash()
		const paths = ['src/a.ts', 'b'].map((path) => join(s.root, path))
		expect(asked()).to.deep.equal([{ type: 'apply_changes', summary: 'THE DIFF', paths }])
		expect([applied, result.status]).to.deep.equal([1, 'ok'])
		expect(result.text).to.include('out\n').and.to.include('[applied to the project: 1 new, 1 changed]')
		expect(result.text).to.include('[never applied: dev (no file, folder or link)]')
	})

	it('after a no nothing is applied, and the model hears it with the reason', async () => {
		await open({ allow: false })
		const result = await bash()
		expect([applied, result.status]).to.deep.equal([0, 'failed'])
		expect(result.text).to.include('the project is as before. the user said no').and.to.include('out\n')
	})

	it('a conflict while applying is told beside the output', async () => {
		await open()
		fail = new ToolError('src/a.ts changed in the project')
		const result = await bash()
		expect(result.status).to.equal('failed')
		expect(result.text).to.include('out\n').and.to.include('[src/a.ts changed in the project]')
	})

	it('no change, no question; a stop throws the changes away unasked', async () => {
		await open()
		wanted = []
		await bash()
		wanted = ['delete a']
		over = { cancelled: true, code: null }
		expect((await bash()).text).to.include('thrown away')
		expect([s.effects, applied]).to.deep.equal([[], 0])
	})

	it('a run outside the sandbox and plan mode are not staged; the changes of the failed first try are dropped', async () => {
		await open()
		await bash({ outside_sandbox: true })
		over = { code: 1, wall: { wall: 'write', detail: 'read-only' } }
		await bash()
		expect(specs.map((spec) => [spec.outside, spec.staged])).to.deep.equal([
			[true, undefined],
			[false, true],
			[true, undefined],
		])
		expect(applied).to.equal(0)
		s.ctx.mode = 'plan'
		over = {}
		await bash()
		expect(specs.at(-1)!.staged).to.equal(undefined)
	})

	it('changes within the declaration say so, in a spelling that an answer can cover', async () => {
		await open()
		const effects = [
			{ path: './src/**', kinds: ['change', 'change'] },
			{ path: 'b', kinds: ['delete', 'create'] },
		]
		await bash({ effects })
		await bash({ effects: effects.toReversed() })
		const declared = ['create, delete b', 'change src/**']
		expect(asked().map((one) => one.declared)).to.deep.equal([declared, declared])
		expect(asked()[0]!.summary)
			.to.match(/^All within what was declared:\n {2}create, delete b\n/)
			.and.to.include('THE DIFF')
	})

	it('anything beyond it is asked with the difference first, and no declaration rides along', async () => {
		await open()
		for (const effects of [
			[{ path: 'src/**', kinds: ['change', 'create', 'delete'] }],
			[{ path: '**', kinds: ['change'] }],
			[{ path: 'b', kinds: ['create'] }],
		])
			await bash({ effects })
		for (const one of asked()) {
			expect(one.declared).to.equal(undefined)
			expect(one.summary).to.match(/^BEYOND what was declared:\n {2}(?:create b|change src\/a\.ts)\n/)
		}
		expect(asked()).to.have.length(3)
	})

	it('a declaration alone never applies anything', async () => {
		await open({ allow: false })
		await bash({ effects: [{ path: '**', kinds: ['create', 'change', 'delete'] }] })
		expect(applied).to.equal(0)
	})

	it('a declaration that leaves the project is refused before anything runs', async () => {
		await open()
		for (const path of ['/etc/**', '../x', 'a/../../b', '~/x', 'a\nb', '[', './'])
			expect(await s.fails('bash', { command: 'make', effects: [{ path, kinds: ['change'] }] }), path).to.include(
				'no path or glob',
			)
		expect(specs).to.deep.equal([])
	})

	it('folders on the way to a declared file are no surprise, an empty one is', async () => {
		await open()
		const effects = checkEffects([{ path: 'out/**/*.js', kinds: ['create'] }])
		expect(beyond(effects, ['create out/', 'create out/x/', 'create out/x/a.js'].map(change))).to.deep.equal([])
		expect(beyond(effects, ['create out/', 'create out/a.js', 'create other/'].map(change))).to.deep.equal([
			change('create other/'),
		])
		expect(beyond(effects, ['create out/', 'create out/evil.sh'].map(change)).map(({ path }) => path)).to.deep.equal([
			'out/evil.sh',
		])
	})

	it('the schema has effects only with staging; a background process then sees the project read-only', async () => {
		await open({ bash: { staging: true, daemons: createDaemons({ max: 1, lines: 100 }) } })
		const schemaOf = (more: object) => JSON.stringify(toolSpecs(builtinTools(more)).find(({ name }) => name === 'bash'))
		expect(schemaOf({})).to.not.include('"effects"')
		expect(schemaOf({ staging: true })).to.include('"effects"')
		await s.call('bash', { command: 'serve', is_daemon: true })
		expect(specs[0]!.readOnly).to.equal(true)
	})
})
