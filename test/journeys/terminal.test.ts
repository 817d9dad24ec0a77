// The chat on a real pseudo-terminal: typed lines, Ctrl-C, the window closed, export, undo.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { inTerminal, journals, place, python, records, type Step, until } from '../helpers/cli.ts'
import { screen } from '../helpers/screen.ts'
import { skip } from '../helpers/skip.ts'
import { removeTemp } from '../helpers/temp.ts'

const prompt = '> '
const enter = '\r'
const ctrlC = '\u0003'

const alive = (text: string): string[] =>
	readdirSync('/proc').filter((pid) => {
		try {
			return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text)
		} catch {
			return false
		}
	})

describe('the chat on a terminal', function () {
	this.timeout(30_000)
	before(function () {
		if (!python) skip(this, 'no python3')
	})
	afterEach(removeTemp)

	it('a prompt, an answer, /export, /exit: exit 0, the export is a file, the terminal is left as it was', async () => {
		const at = place()
		const ran = await inTerminal(
			at,
			[],
			[
				{ expect: prompt, send: `what is here?${enter}` },
				{ expect: 'There is one file.', send: '' },
				{ expect: prompt, send: `/export${enter}` },
				{ expect: '.md', send: '' },
				{ expect: prompt, send: `/exit${enter}` },
			],
			{
				script: {
					steps: [
						{ calls: [{ name: 'read_file', input: { path: 'a.txt' } }] },
						{ text: 'There is one file.', deltas: 6 },
					],
				},
			},
		)
		expect([ran.code, ran.played], ran.output).to.deep.equal([0, 5])
		const made = readdirSync(at.root).filter((name) => name.endsWith('.md'))
		expect(made, ran.output).to.have.length(1)
		const text = readFileSync(join(at.root, made[0]!), 'utf8')
		expect(text).to.include('what is here?').and.include('There is one file.')
		// Modes that were switched on are off again, the cursor is shown.
		for (const mode of ['2004', '1004', '1000', '1049']) {
			const last = ran.output.lastIndexOf(`\u001b[?${mode}h`)
			if (last >= 0) expect(ran.output.lastIndexOf(`\u001b[?${mode}l`), mode).to.be.above(last)
		}
		expect(ran.output.lastIndexOf('\u001b[?25l')).to.be.at.most(ran.output.lastIndexOf('\u001b[?25h'))
	})

	it('a question is answered by a key, the edit is made, /undo takes it back', async () => {
		const at = place()
		const ran = await inTerminal(
			at,
			[],
			[
				{ expect: prompt, send: `change it${enter}` },
				{ expect: 'a.txt', wait: 0.6, send: `y${enter}` },
				{ expect: 'Changed.', send: '' },
				{ expect: prompt, send: `/undo${enter}` },
				{ expect: 'ndid', send: '' },
				// The undone prompt stands in the line again, to be changed.
				{ expect: `${prompt}\u001b[3Gchange it`, send: `\u0015/exit${enter}` },
			],
			{
				script: {
					steps: [
						{ calls: [{ name: 'read_file', input: { path: 'a.txt' } }] },
						{ calls: [{ name: 'edit_file', input: { path: 'a.txt', old_string: 'hello', new_string: 'goodbye' } }] },
						{ expect: 'Edited', text: 'Changed.' },
					],
				},
			},
		)
		expect([ran.code, ran.played], ran.output).to.deep.equal([0, 6])
		expect(readFileSync(join(at.root, 'a.txt'), 'utf8')).to.equal('hello\n')
		const types = records(at.root, journals(at.root)[0]!).map((one) => one.type)
		expect(types).to.include('undo')
	})

	it('Ctrl-C once stops the turn and its command, the chat goes on; twice leaves with 130', async () => {
		const at = place()
		const ran = await inTerminal(
			at,
			[],
			[
				{ expect: prompt, send: `run it${enter}` },
				{ expect: 'sleep 66.5', wait: 0.8, send: ctrlC },
				{ expect: 'stop', send: '' },
				{ expect: prompt, wait: 1.2, send: `are you there?${enter}` },
				{ expect: 'Still here.', send: '' },
				{ expect: prompt, wait: 0.3, send: ctrlC },
				{ expect: 'Ctrl-C again leaves', wait: 0.1, send: ctrlC },
			],
			{ script: { steps: [{ calls: [{ name: 'bash', input: { command: 'sleep 66.5' } }] }, { text: 'Still here.' }] } },
		)
		expect([ran.code, ran.played], ran.output).to.deep.equal([130, 7])
		expect(alive('sleep 66.5')).to.deep.equal([])
		const kept = records(at.root, journals(at.root)[0]!)
		expect(kept.filter((one) => one.type === 'end').map((one) => one.reason ?? one.end?.reason)).to.deep.equal([
			'cancelled',
			'done',
		])
	})

	it('Ctrl-C twice in the middle of a turn leaves within seconds with 130 and leaves no command', async () => {
		const at = place()
		const ran = await inTerminal(
			at,
			[],
			[
				{ expect: prompt, send: `run it${enter}` },
				{ expect: 'sleep 66.7', wait: 0.8, send: ctrlC },
				{ wait: 0.15, send: ctrlC },
			],
			{
				script: {
					steps: [
						{ calls: [{ name: 'bash', input: { command: 'trap "" INT TERM; sleep 66.7; sleep 66.7' } }] },
						{ text: 'no' },
					],
				},
			},
		)
		expect(ran.code, ran.output).to.equal(130)
		expect(ran.endedAfter).to.be.below(5000)
		await until(
			() => alive('sleep 66.7').length === 0,
			() => 'the command runs on',
			3000,
		)
	})

	for (const [what, steps] of [
		['at the prompt', [{ expect: prompt, wait: 0.2, hangup: true }]],
		[
			'in the middle of a turn',
			[
				{ expect: prompt, send: `run it${enter}` },
				{ expect: 'sleep 66.9', wait: 0.6, hangup: true },
			],
		],
	] as [string, Step[]][])
		it(`T09 the window is closed ${what}: it ends soon, with its command, and the session is whole`, async () => {
			const at = place()
			const ran = await inTerminal(at, [], steps, {
				script: { steps: [{ calls: [{ name: 'bash', input: { command: 'sleep 66.9' } }] }, { text: 'no' }] },
				seconds: 9,
			})
			expect(ran.code, 'it was not killed by the test').to.not.equal(null)
			expect(ran.endedAfter).to.be.below(5000)
			expect(alive('sleep 66.9')).to.deep.equal([])
			for (const id of journals(at.root)) {
				const text = readFileSync(join(at.root, '.garuda/sessions', `${id}.jsonl`), 'utf8')
				expect(text.endsWith('\n')).to.equal(true)
				expect(records(at.root, id).at(-1).type).to.equal('end')
			}
		})

	it('T06 T07 TERM=dumb and NO_COLOR: the chat works with no colour', async () => {
		const at = place()
		for (const env of [{ TERM: 'dumb' }, { NO_COLOR: '1' }]) {
			const ran = await inTerminal(
				at,
				[],
				[
					{ expect: prompt, send: `hi${enter}` },
					{ expect: 'Hello you.', send: '' },
					{ expect: prompt, send: `/exit${enter}` },
				],
				{ script: { steps: [{ text: 'Hello you.' }] }, env },
			)
			expect(ran.code, ran.output).to.equal(0)
			expect(ran.output).to.not.match(/\u001b\[[0-9;]*[1-9][0-9;]*m/)
		}
	})

	it('T05 a long answer in a narrow window that is resized is written once', async () => {
		const at = place()
		const text = Array.from({ length: 1500 }, (_, i) => `line ${i} of the answer`).join('\n')
		const ran = await inTerminal(
			at,
			[],
			[
				{ expect: prompt, send: `talk${enter}` },
				{ expect: 'line 10 of', resize: [24, 40] },
				{ expect: 'line 700 of', resize: [24, 120] },
				{ expect: 'line 1499 of', send: '' },
				{ expect: prompt, send: `/exit${enter}` },
			],
			{ script: { steps: [{ text, deltas: 3000 }] } },
		)
		expect([ran.code, ran.played], ran.output.slice(-500)).to.deep.equal([0, 5])
		expect(ran.output.split('line 700 of the answer').length - 1).to.equal(1)
		expect(ran.output.length).to.be.below(text.length * 2)
		expect(ran.output).to.not.include('\u001b[3J')
	})

	it('a command shows its last lines while it runs, without its escape codes, and nothing twice at the end', async () => {
		const at = place()
		const command =
			"for i in $(seq 1 40); do echo out-$i; done; printf '\\033[2J\\033]0;title\\007bar 1'; sleep 0.4; printf '\\rbar 2'; sleep 0.4; printf '\\rbar 3\\n'; sleep 0.4; echo last"
		const ran = await inTerminal(
			at,
			[],
			[
				{ expect: prompt, send: `run${enter}` },
				{ expect: '│ bar 2', send: '' },
				{ expect: 'The end.', send: '' },
				{ expect: prompt, send: `/exit${enter}` },
			],
			{ script: { steps: [{ calls: [{ name: 'bash', input: { command } }] }, { text: 'The end.' }] } },
		)
		expect([ran.code, ran.played], ran.output).to.deep.equal([0, 4])
		const plain = ran.output.replace(/\u001b\[[0-9;]*m/g, '')
		// In the course of it: the newest lines, the bar in its place, a count.
		expect(plain).to.include('│ out-40').and.include('│ bar 1').and.include('41 lines')
		expect(plain).to.not.include('\u001b[2J').and.not.include('title\u0007')
		// What stays: the call and its result, each line once, nothing of the live lines.
		const shown = screen(ran.output)
		expect(shown.filter((line) => line.includes('│'))).to.deep.equal([])
		for (const line of ['out-1', 'out-2'])
			expect(
				shown.filter((one) => one.trim() === line),
				shown.join('\n'),
			).to.have.length(1)
		expect(shown.filter((line) => line.includes('The end.'))).to.have.length(1)
	})

	it('a stopped command leaves nothing of its live lines, and a dumb terminal shows none', async () => {
		const run = { script: { steps: [{ calls: [{ name: 'bash', input: { command: 'echo begun; sleep 30' } }] }] } }
		const ran = await inTerminal(
			place(),
			[],
			[
				{ expect: prompt, send: `run${enter}` },
				{ expect: '│ begun', send: ctrlC },
				{ expect: 'interrupted', send: '' },
				{ expect: prompt, send: `/exit${enter}` },
			],
			run,
		)
		expect([ran.code, ran.played], ran.output).to.deep.equal([0, 4])
		expect(screen(ran.output).filter((line) => line.includes('│'))).to.deep.equal([])
		const dumb = await inTerminal(
			place(),
			[],
			[
				{ expect: prompt, send: `run\n` },
				{ expect: 'Run echo begun', wait: 1, send: ctrlC },
				{ expect: prompt, send: '/exit\n' },
			],
			{ ...run, env: { TERM: 'dumb' } },
		)
		expect(dumb.code, dumb.output).to.equal(0)
		expect(dumb.output).to.not.include('│').and.not.include('\u001b')
	})

	it('end of input (Ctrl-D) leaves with 0', async () => {
		const ran = await inTerminal(place(), [], [{ expect: prompt, wait: 0.1, send: '\u0004' }], {
			script: { steps: [] },
		})
		expect(ran.code, ran.output).to.equal(0)
	})
})
