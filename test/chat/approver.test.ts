import { expect } from 'chai'
import { createAsker, createDenier, type QuestionLine, questionText } from '../../src/chat/approver.ts'
import { painter } from '../../src/chat/style.ts'
import type { ApprovalRequest } from '../../src/engine/types.ts'

const paint = painter(false)
const request = (more: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
	id: 'q',
	tool: 'bash',
	title: 'Run: npm test',
	preview: 'npm test',
	choices: ['once', 'session', 'deny'],
	info: { title: 'npm test', kind: 'execute', access: 'run', paths: [], key: 'bash:npm test' },
	...more,
})
const edit = request({
	tool: 'edit_file',
	title: 'Edit a.txt',
	preview: '',
	info: {
		title: 'Edit a.txt',
		kind: 'edit',
		access: 'write',
		paths: ['/p/a.txt'],
		key: 'edit:a.txt',
		change: { path: 'a.txt', old: 'one\ntwo\n', new: 'one\n2\u202e\n' },
	},
})

function asker(...answers: (string | { interrupt: true } | null)[]) {
	const seen = { shown: '', prompts: [] as string[], edits: 0 }
	const terminal: QuestionLine = {
		show: (text) => {
			seen.shown += text
		},
		ask: async (prompt) => {
			seen.prompts.push(prompt)
			const next = answers.shift()
			return typeof next === 'string' ? { line: next } : (next ?? null)
		},
		acceptEdits: () => {
			seen.edits++
		},
	}
	return { seen, ask: (what = request()) => createAsker(terminal, paint).ask(what, new AbortController().signal) }
}

describe('questions in the plain chat', () => {
	it('each key is its answer; a note goes with a no', async () => {
		for (const [typed, answer] of [
			['y', { choice: 'once' }],
			['YES ', { choice: 'once' }],
			['s', { choice: 'session' }],
			['n', { choice: 'deny' }],
			['n use the other file', { choice: 'deny', note: 'use the other file' }],
			['c', { choice: 'cancel' }],
		] as const)
			expect(await asker(typed).ask(), typed).to.deep.equal(answer)
	})

	it('doubt is asked again, never taken for a yes', async () => {
		const { ask, seen } = asker('', 'yy', 'y but not the last line', 'ok', '?', 'a', 'n')
		expect(await ask()).to.deep.equal({ choice: 'deny' })
		expect(seen.prompts).to.have.length(7)
	})

	it('"session" counts only where it is offered', async () => {
		const { ask, seen } = asker('s', 'y')
		expect(await ask(request({ choices: ['once', 'deny'] }))).to.deep.equal({ choice: 'once' })
		expect(seen.prompts[0]).to.not.include('[s]')
	})

	it('T09 the end of input, an abort and an error are a no; Ctrl-C stops the turn', async () => {
		expect(await asker(null).ask()).to.deep.equal({ choice: 'deny' })
		expect(await asker({ interrupt: true }).ask()).to.deep.equal({ choice: 'cancel' })
		const broken: QuestionLine = { show: () => {}, ask: () => Promise.reject(new Error('EIO')), acceptEdits: () => {} }
		expect(await createAsker(broken, paint).ask(request(), new AbortController().signal)).to.deep.equal({
			choice: 'deny',
		})
		expect(await createAsker(broken, paint).ask(request(), AbortSignal.abort())).to.deep.equal({ choice: 'deny' })
	})

	it('"a" accepts edits for the session, on an edit only', async () => {
		const one = asker('a')
		expect(await one.ask(edit)).to.deep.equal({ choice: 'once' })
		expect([one.seen.edits, one.seen.prompts[0]!.includes('[a] accept edits')]).to.deep.equal([1, true])
		const outside = asker('a', 'n')
		await outside.ask({ ...edit, effect: { type: 'apply_changes', summary: 'x' } })
		expect(outside.seen.edits).to.equal(0)
	})

	it('shows the whole diff or command and the warning, with every hidden character written out', () => {
		const text = questionText(edit, paint)
		expect(text).to.include('-two').and.to.include('+2[U+202E]')
		const command = `echo ok\n${'x'.repeat(5000)}\nrm -rf ~ # \u001b[8m`
		const shown = questionText(
			request({ preview: command, title: 'Run: \u001b]0;x\u0007', warning: 'Outside!\nReally' }),
			paint,
		)
		expect(shown).to.include('x'.repeat(5000)).and.to.include('rm -rf ~ # ␛[8m').and.to.include('! Outside!\n! Really')
		expect(shown).to.not.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
	})

	it('a yes also names the rule that would cover it for good', async () => {
		const { ask, seen } = asker('y')
		await ask(request({ lastingRule: 'bash(npm test)' }))
		expect(seen.shown).to.include('a rule for good, in settings: bash(npm test)')
	})

	it('two questions at once are asked one after the other', async () => {
		const order: string[] = []
		let release: (() => void) | null = null
		const terminal: QuestionLine = {
			show: (text) => void order.push(text.split('\n')[0]!),
			ask: () =>
				new Promise((done) => {
					release = () => done({ line: 'y' })
				}),
			acceptEdits: () => {},
		}
		const one = createAsker(terminal, paint)
		const signal = new AbortController().signal
		const both = [one.ask(request({ title: 'first' }), signal), one.ask(request({ title: 'second' }), signal)]
		const turn = () => new Promise((done) => setTimeout(done, 5))
		await turn()
		expect(order).to.deep.equal(['? first'])
		release!()
		await both[0]
		await turn()
		release!()
		expect(await Promise.all(both)).to.deep.equal([{ choice: 'once' }, { choice: 'once' }])
		expect(order).to.deep.equal(['? first', '? second'])
	})

	describe('parts of an edit', () => {
		const lines = Array.from({ length: 60 }, (_, i) => `line ${i}`)
		const with3 = (mark: string) => lines.map((line, i) => (i % 20 === 5 ? mark + line : line)).join('\n')
		const parted = (tool = 'edit_file', path = '/p/a.txt', more: Partial<ApprovalRequest> = {}) =>
			request({
				...edit,
				...more,
				tool,
				info: { ...edit.info, change: { path, old: with3(''), new: with3('new ') } },
			})

		it('[h] shows one part after another and answers with what was taken', async () => {
			const { ask, seen } = asker('h', 'y', 'n', 'y')
			expect(await ask(parted())).to.deep.equal({ choice: 'once', accepted: [0, 2] })
			const shown = seen.shown.slice(seen.shown.indexOf('part 1 of 3'))
			for (const [part, line] of [
				[1, 5],
				[2, 25],
				[3, 45],
			] as const)
				expect(shown.indexOf(`+new line ${line}\n`)).to.be.greaterThan(shown.indexOf(`part ${part} of 3`))
		})

		it('a rest that is taken or left unseen is shown first and then confirmed', async () => {
			const all = asker('h', 'n', 'a', 'y')
			expect(await all.ask(parted())).to.deep.equal({ choice: 'once', accepted: [1, 2] })
			expect(all.seen.shown).to.include('part 3 of 3: taken')
			const some = asker('h', 'y', 'd', '', 'y')
			expect(await some.ask(parted())).to.deep.equal({ choice: 'once', accepted: [0] })
			expect(some.seen.shown).to.include('part 3 of 3: left out')
			expect(some.seen.prompts.filter((one) => one.includes('take 1 of 3'))).to.have.length(2)
			const unsure = asker('h', 'a', 'b', 'n')
			expect(await unsure.ask(parted())).to.deep.equal({ choice: 'deny' })
			const last = asker('h', 'n', 'n', 'a')
			expect(await last.ask(parted()), 'nothing unseen: no second question').to.deep.equal({
				choice: 'once',
				accepted: [2],
			})
		})

		it('no answer counts before every part was shown; none taken is a no', async () => {
			for (const [typed, answer] of [
				[['h', 'y', null], { choice: 'deny' }],
				[['h', 'y', 'y', { interrupt: true }], { choice: 'cancel' }],
				[['h', 'a', null], { choice: 'deny' }],
				[['h', 'y', 'c'], { choice: 'cancel' }],
				[['h', 'n', 'n', 'n'], { choice: 'deny', note: 'none of the 3 parts of the change was taken' }],
			] as const)
				expect(await asker(...typed).ask(parted()), JSON.stringify(typed)).to.deep.equal(answer)
		})

		it('doubt about a part shows it again; words are no yes', async () => {
			const { ask, seen } = asker('h', 'y but', 'yes', 's', 'y', 'n', 'n')
			expect(await ask(parted())).to.deep.equal({ choice: 'once', accepted: [0] })
			expect(seen.shown.split('part 1 of 3')).to.have.length(5)
		})

		const whole = (tool: string, path: string): ApprovalRequest => {
			const made = parted(tool, path)
			return { ...made, info: { ...made.info, whole: true } }
		}

		it('is offered for edits by parts only: not one part, a notebook, another tool, another question', async () => {
			for (const what of [
				edit,
				whole('edit_file', '/p/a.ipynb'),
				whole('write_file', '/p/by-any-name'),
				parted('remember'),
				parted('mcp__x__write'),
				parted('write_file', '/p/a.txt', { effect: { type: 'apply_changes', summary: 'x' } }),
			]) {
				const { ask, seen } = asker('h', 'n')
				expect(await ask(what)).to.deep.equal({ choice: 'deny' })
				expect(seen.prompts[0]).to.not.include('[h]')
				expect(seen.prompts).to.have.length(2)
			}
			expect((await asker('h', 'y', 'y', 'y').ask(parted('write_file'))).accepted).to.deep.equal([0, 1, 2])
		})

		it('hidden characters of a part are written out', async () => {
			const { ask, seen } = asker('h', 'n', 'n', 'n')
			const what = parted()
			what.info.change!.new = with3('\u202e\u001b[2J')
			await ask(what)
			expect(seen.shown.slice(seen.shown.indexOf('part 1'))).to.include('+[U+202E]␛[2Jline 5')
			expect(seen.shown).to.not.match(/[\u0000-\u0008\u000b-\u001f\u202e]/)
		})
	})

	it('nobody there: a no, and what would have covered it', async () => {
		const denier = createDenier()
		const signal = new AbortController().signal
		for (const [more, cover] of [
			[{ callId: 'a', tool: 'edit_file', lastingRule: 'allow: edit(a.txt)' }, '--allow edits would cover it'],
			[{ callId: 'b', lastingRule: 'allow: host(a.example)' }, '--allow "host(a.example)" would cover it'],
			[{ callId: 'c', lastingRule: 'outside: git push' }, '"outside": ["git push"] in your settings would cover it'],
			[{ callId: 'd' }, undefined],
		] as const) {
			expect(await denier.ask(request(more), signal)).to.deep.equal({ choice: 'deny' })
			expect(denier.cover(more.callId)).to.equal(cover)
		}
	})
})
