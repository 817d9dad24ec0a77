// Where the editor shows forms, notices and compactions: parts of an edit, the project's settings; and nothing of it where it does not.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CreateElicitationRequest } from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import type { Reply } from '../helpers/fakes.ts'
import { removeTemp } from '../helpers/temp.ts'
import { closeEditors, editor, texts } from './editor.ts'

const lines = Array.from({ length: 30 }, (_, i) => `line ${i + 1}`)
const before = `${lines.join('\n')}\n`
const after = before.replace('line 2\n', 'LINE 2\n').replace('line 28\n', 'LINE 28\n')
const forms = { elicitation: { form: {} } }
const edit: Reply[] = [
	{ calls: [{ name: 'read_file', input: { path: 'f.txt' } }] },
	{ calls: [{ name: 'write_file', input: { path: 'f.txt', content: after } }] },
	{ text: 'ok' },
]
const accept = (content: object) => ({ action: 'accept', content })

describe('acp: forms', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	for (const [what, answer, expected] of [
		['one part', accept({ parts: ['1'] }), before.replace('line 28\n', 'LINE 28\n')],
		['all parts', accept({ parts: ['0', '1'] }), after],
		['no part', accept({ parts: [] }), before],
		['a part that there is not', accept({ parts: ['7'] }), before],
		['something else', accept({ parts: 'all' }), before],
		['nothing filled in', accept({}), before],
		['a closed form', { action: 'cancel' }, before],
		['a declined form', { action: 'decline' }, before],
	] as const)
		it(`hunk by hunk: ${what}`, async () => {
			const asked: CreateElicitationRequest[] = []
			const e = await editor({
				files: { 'f.txt': before },
				capabilities: forms,
				replies: [...edit],
				answer: () => 'parts',
				form: (params) => {
					asked.push(params)
					return answer
				},
			})
			await e.prompt(await e.session(), 'edit')
			expect(e.questions[0]!.options.map((one) => one.optionId)).to.deep.equal(['once', 'parts', 'session', 'deny'])
			expect(asked).to.have.length(1)
			expect(asked[0]).to.deep.include({ mode: 'form', toolCallId: e.questions[0]!.toolCall.toolCallId })
			expect(asked[0]!.message).to.include('+LINE 2').and.include('+LINE 28')
			expect(readFileSync(join(e.root, 'f.txt'), 'utf8')).to.equal(expected)
			if (what === 'one part') expect(texts(e.only('tool_call_update').at(-1)!.content)).to.include('1 of 2 parts')
			await e.close()
		})

	it('no choice of parts without forms, or where there is one part only', async () => {
		const plain = await editor({ files: { 'f.txt': before }, replies: [...edit], answer: () => 'parts' })
		await plain.prompt(await plain.session(), 'edit')
		expect(plain.questions[0]!.options.map((one) => one.optionId)).to.not.include('parts')
		expect(readFileSync(join(plain.root, 'f.txt'), 'utf8'), 'an answer that was not offered').to.equal(before)
		await plain.close()
		const one = await editor({
			capabilities: forms,
			replies: [{ calls: [{ name: 'write_file', input: { path: 'n.txt', content: 'x\n' } }] }, { text: 'ok' }],
		})
		await one.prompt(await one.session(), 'write')
		expect(one.questions[0]!.options.map((option) => option.optionId)).to.not.include('parts')
		await one.close()
	})

	for (const [tool, path] of [
		['edit_file', 'n.ipynb'],
		['write_file', 'n.ipynb'],
		['edit_file', 'no-name-of-one'],
	] as const)
		it(`no choice of parts where a notebook changes, by ${tool} of ${path}: it is asked as a whole and done as a whole`, async () => {
			const source = Array.from({ length: 30 }, (_, i) => `x${i} = a\n`)
			const changed = source.map((line, i) => (i === 1 || i === 28 ? line.replace('a', 'b') : line))
			const notebook = (lines: string[]) =>
				JSON.stringify(
					{
						cells: [{ cell_type: 'code', metadata: {}, execution_count: null, outputs: [], source: lines }],
						metadata: {},
						nbformat: 4,
						nbformat_minor: 5,
					},
					null,
					1,
				)
			const input =
				tool === 'edit_file'
					? { path, old_string: source.join(''), new_string: changed.join('') }
					: { path, content: notebook(changed) }
			const e = await editor({
				files: { [path]: notebook(source) },
				capabilities: forms,
				replies: [
					{ calls: [{ name: 'read_file', input: { path } }] },
					{ calls: [{ name: tool, input }] },
					{ text: 'ok' },
				],
				answer: () => 'once',
			})
			await e.prompt(await e.session(), 'edit')
			expect(e.questions, JSON.stringify(e.tap.sent)).to.have.length(1)
			expect(e.questions[0]!.options.map((one) => one.optionId)).to.deep.equal(['once', 'session', 'deny'])
			const now = readFileSync(join(e.root, path), 'utf8')
			expect(JSON.parse(now).cells[0].source.join('')).to.equal(changed.join(''))
			await e.close()
		})

	const loosening = {
		'.garuda/settings.json': JSON.stringify({ rules: { allow: ['bash(touch *)'] }, executor: 'host' }),
	}

	it('project settings that loosen safety: asked at session/new, bound to that request', async () => {
		const asked: any[] = []
		const e = await editor({
			files: loosening,
			capabilities: forms,
			form: (params) => {
				asked.push(params)
				return accept({ answer: 'deny' })
			},
		})
		await e.session()
		expect(asked.length).to.be.greaterThan(0)
		expect(asked[0]).to.have.property('requestId')
		expect(asked[0]).to.not.have.property('sessionId')
		expect(asked[0].message).to.include('host')
		await e.close()
	})

	it('without forms they are left out, and the first prompt says how to agree', async () => {
		const e = await editor({ files: loosening, replies: [{ text: 'hi' }] })
		const id = await e.session()
		await e.prompt(id, 'hi')
		expect(e.said()).to.include('left out').and.include('settings.json')
		await e.close()
	})

	it('notices are notices where the editor offers them, else lines', async () => {
		const mcp = [{ name: 'files', command: '/bin/true', args: [], env: [] }]
		const with_ = await editor({ capabilities: { session: { notices: {} } }, replies: [{ text: 'hi' }] })
		await with_.prompt(await with_.session({ mcpServers: mcp }), 'hi')
		expect(
			with_
				.only('notice')
				.map((one) => one.title)
				.join(),
		).to.include('files')
		expect(with_.said()).to.equal('hi')
		await with_.close()
		const without = await editor({ replies: [{ text: 'hi' }] })
		await without.prompt(await without.session({ mcpServers: mcp }), 'hi')
		expect(without.only('notice')).to.deep.equal([])
		expect(without.said()).to.include('Garuda: MCP servers from the editor are not started: files')
		await without.close()
	})

	for (const offered of [true, false])
		it(`a compaction is said ${offered ? 'in its own updates' : 'in words where that was not offered'}`, async () => {
			const e = await editor({
				capabilities: offered ? { session: { compaction: {} } } : {},
				replies: [{ text: 'long '.repeat(30_000) }, { text: 'a summary' }],
			})
			const id = await e.session()
			await e.prompt(id, 'talk')
			await e.prompt(id, '/compact')
			const states = e.only('compaction_update').map((one) => one.status)
			expect(states).to.deep.equal(offered ? ['in_progress', 'completed'] : [])
			if (!offered) expect(e.said()).to.match(/summarised/i)
			await e.close()
		})
})
