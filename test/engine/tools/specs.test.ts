// Tools as the model sees them: small, fixed, and strict about what they are given.
import { expect } from 'chai'
import { builtinTools } from '../../../src/engine/tools/builtin.ts'
import { parseInput } from '../../../src/engine/tools/input.ts'
import type { JsonInput } from '../../../src/engine/tools/json-input.ts'
import { toolSpecs } from '../../../src/engine/tools/specs.ts'
import { webFetchTool } from '../../../src/engine/tools/web-fetch.ts'
import { scene } from './scene.ts'

describe('tools/builtin and specs', () => {
	it('come in a fixed order; todo_write only when asked for', () => {
		const names = (settings = {}) => builtinTools(settings).map(({ name }) => name)
		const usual = ['read_file', 'glob', 'grep', 'edit_file', 'write_file', 'bash', 'remember']
		expect(names()).to.deep.equal(usual)
		expect(names({ todo: true })).to.deep.equal([...usual, 'todo_write'])
		expect(names({ memory: false })).to.deep.equal(usual.slice(0, -1))
	})

	it('all descriptions and schemas together stay under 8 kB', () => {
		const size = Buffer.byteLength(JSON.stringify(toolSpecs(builtinTools({ todo: true }))))
		expect(size).to.be.lessThan(8 * 1024)
	})

	it('the same tools give the same bytes, with no dialect and no bounds that zod adds', () => {
		const first = JSON.stringify(toolSpecs(builtinTools()))
		expect(JSON.stringify(toolSpecs(builtinTools()))).to.equal(first)
		expect(first).not.to.contain('$schema').and.not.contain('9007199254740991')
	})

	it('what the gate holds a call against is what the model was told, keyword by keyword', async () => {
		const tools = [...builtinTools({ todo: true }), webFetchTool()]
		for (const tool of tools) {
			const told = tool.input as unknown as JsonInput
			const type = await told.type()
			const held = toolSpecs([{ ...tool, input: type }])[0]!
			expect(held.schema, tool.name).to.deep.equal(told.schema)
			expect(await told.type(), 'made once').to.equal(type)
		}
	})

	it('a call that breaks one keyword of its schema is refused, with the place', async () => {
		const said = async (name: string, input: Record<string, unknown>) => {
			const result = await parseInput(builtinTools({ todo: true }).find((tool) => tool.name === name)!, input)
			return 'error' in result ? result.error : JSON.stringify(result.value)
		}
		expect(await said('bash', { command: '' })).to.contain('command: Too small')
		expect(await said('bash', {})).to.contain('command: Invalid input')
		expect(await said('bash', { command: 'ls', env: {} })).to.contain('Unrecognized key: "env"')
		expect(await said('read_file', { path: 'a', offset: 0 })).to.contain('offset: Too small')
		expect(await said('read_file', { path: 'a', limit: 1.5 })).to.contain('limit: Invalid input')
		expect(await said('grep', { pattern: 'a', context: 21 })).to.contain('context: Too big')
		expect(await said('grep', { pattern: 'a', output: 'all' })).to.contain('output: Invalid option')
		expect(await said('remember', { fact: 'x'.repeat(1001) })).to.contain('fact: Too big')
		const item = { text: 'a', status: 'open' }
		expect(await said('todo_write', { items: [{ ...item, id: 1 }] })).to.contain('items.0: Unrecognized key')
		expect(await said('todo_write', { items: Array(101).fill(item) })).to.contain('items: Too big')
		expect(await said('read_file', { path: 'a', offset: '3', limit: null })).to.equal('{"path":"a","offset":3}')
	})

	it('schemas name the inputs and forbid others', () => {
		const specs = Object.fromEntries(
			toolSpecs(builtinTools({ todo: true })).map(({ name, schema }) => [
				name,
				schema as { properties: object; required?: string[]; additionalProperties: boolean },
			]),
		)
		const keys = Object.fromEntries(
			Object.entries(specs).map(([name, schema]) => [name, [Object.keys(schema.properties), schema.required ?? []]]),
		)
		expect(keys).to.deep.equal({
			read_file: [['path', 'offset', 'limit'], ['path']],
			glob: [['pattern', 'path'], ['pattern']],
			grep: [['pattern', 'path', 'glob', 'literal', 'ignore_case', 'context', 'output'], ['pattern']],
			edit_file: [
				['path', 'old_string', 'new_string', 'replace_all'],
				['path', 'old_string', 'new_string'],
			],
			write_file: [
				['path', 'content'],
				['path', 'content'],
			],
			bash: [['command', 'timeout_ms', 'description', 'outside_sandbox', 'reason'], ['command']],
			remember: [['fact'], ['fact']],
			todo_write: [['items'], ['items']],
		})
		for (const [name, schema] of Object.entries(specs)) expect(schema.additionalProperties, name).to.equal(false)
		expect(specs.read_file!.properties).to.deep.include({
			offset: { description: 'First line, from 1', type: 'integer', minimum: 1 },
		})
	})

	it('config-10 remember adds one clean line to the project’s memory; nothing else of .garuda can be written', async () => {
		const s = await scene({ marks: { '[redacted:key:abc123]': 'sk-secret' } })
		try {
			const plan = await s.tool('remember').plan({ fact: 'Build:\nnpm run <system-reminder> sk-secret\u202e' }, s.ctx)
			expect(plan.info).to.deep.include({ key: 'remember', access: 'write', paths: [`${s.root}/.garuda/memory.md`] })
			await s.tool('remember').run(plan, s.ctx)
			expect(await s.text('.garuda/memory.md')).to.equal(
				'- Build: ⏎ npm run &lt;system-reminder> [redacted:key:abc123][U+202E]\n',
			)
			await s.call('remember', { fact: 'second' })
			expect((await s.text('.garuda/memory.md')).split('\n')).to.have.length(3)
			expect(await s.fails('remember', { fact: '- second' })).to.contain('already')
			for (const path of ['.garuda/memory.md', '.garuda/trust.json', '.garuda/settings.json'])
				expect(await s.fails('write_file', { path, content: 'x' })).to.contain('protected')
		} finally {
			await s.close()
		}
	})

	it('remember follows no link, neither of the file nor of its folder, and overwrites no change of others', async () => {
		const { promises: fs } = await import('node:fs')
		const s = await scene()
		try {
			await s.put(`${s.outside}/memory.md`, 'theirs\n')
			await fs.symlink(s.outside, `${s.root}/.garuda`)
			expect(await s.fails('remember', { fact: 'x' })).to.contain('link')
			await fs.unlink(`${s.root}/.garuda`)
			await fs.mkdir(`${s.root}/.garuda`)
			await fs.symlink(`${s.outside}/memory.md`, `${s.root}/.garuda/memory.md`)
			expect(await s.fails('remember', { fact: 'x' })).to.contain('link')
			expect(await s.text(`${s.outside}/memory.md`)).to.equal('theirs\n')
			await fs.unlink(`${s.root}/.garuda/memory.md`)
			const plan = await s.tool('remember').plan({ fact: 'x' }, s.ctx)
			await s.put('.garuda/memory.md', '- other\n')
			expect(
				await s
					.tool('remember')
					.run(plan, s.ctx)
					.then(
						() => null,
						(error) => error.name,
					),
			).to.equal('ToolError')
			expect(await s.text('.garuda/memory.md')).to.equal('- other\n')
		} finally {
			await s.close()
		}
	})

	it('todo_write replaces the list of the session', async () => {
		const s = await scene()
		try {
			const result = await s.call('todo_write', {
				items: [
					{ text: 'one\ntwo', status: 'done' },
					{ text: 'b', status: 'doing' },
				],
			})
			expect(result.text).to.equal('2 steps, 1 open.\n[x] one ⏎ two\n[~] b')
			await s.call('todo_write', { items: [] })
			expect(s.ctx.state.todo).to.deep.equal([])
		} finally {
			await s.close()
		}
	})
})
