import { expect } from 'chai'
import { cutToCells, Live } from '../../src/chat/live.ts'
import { Output } from '../../src/chat/stdio.ts'
import { painter } from '../../src/chat/style.ts'
import type { AgentEvent } from '../../src/engine/types.ts'
import { screen } from '../helpers/screen.ts'
import { type FakeIo, fakeIo } from './fake.ts'

const call = (callId = 'c', kind: 'execute' | 'read' = 'execute'): AgentEvent => ({
	type: 'tool_call',
	callId,
	name: 'bash',
	input: {},
	info: { title: 'Run it', kind, access: 'run', paths: [], key: 'k' },
})
const says = (text: string, callId = 'c'): AgentEvent => ({ type: 'tool_progress', callId, text })
const ends = (callId = 'c'): AgentEvent => ({ type: 'tool_result', callId, name: 'bash', status: 'ok', text: 'x' })

interface Stage {
	io: FakeIo
	out: Output
	/** Passes events, each so many milliseconds after the one before. */
	hear(events: AgentEvent[], ms?: number): void
	shown(): string[]
	pass(ms: number): void
}

const stages: Live[] = []

function stage(): Stage {
	const io = fakeIo({ tty: true })
	const out = new Output(io.stdout)
	let time = 0
	const live = new Live({ out, paint: painter(false), now: () => time })
	stages.push(live)
	return {
		io,
		out,
		hear(events, ms = 1000) {
			for (const event of events) {
				time += ms
				live.event(event)
			}
		},
		pass: (ms) => {
			time += ms
		},
		shown() {
			out.flush()
			return screen(io.out.text).filter((line) => line !== '')
		},
	}
}

describe('what a command prints, live', () => {
	afterEach(() => {
		for (const live of stages.splice(0)) live.stop()
	})

	it('shows the last five lines below the call and counts the rest', () => {
		const s = stage()
		s.out.line('● Run it')
		s.hear([call(), says('')])
		s.hear([says('one'), says('two\nthree'), says('four'), says('five'), says('six\nseven')], 150)
		expect(s.shown()).to.deep.equal([
			'● Run it',
			'  │ three',
			'  │ four',
			'  │ five',
			'  │ six',
			'  │ seven',
			'  7 lines',
		])
	})

	it('is gone when the result comes, and nothing of it stays above', () => {
		const s = stage()
		s.out.line('● Run it')
		s.hear([call(), says(''), ...Array.from({ length: 60 }, (_, i) => says(`line ${i}`))])
		s.hear([ends()])
		s.out.line('  the summary')
		expect(s.shown()).to.deep.equal(['● Run it', '  the summary'])
	})

	it('a line that has not ended is rewritten in its place, and ends as one line', () => {
		const s = stage()
		s.hear([call(), says(''), says('start'), says('\r10 %'), says('\r55 %')], 400)
		expect(s.shown()).to.deep.equal(['  │ start', '  │ 55 %'])
		s.hear([says('100 %')], 400)
		expect(s.shown().slice(0, 2)).to.deep.equal(['  │ start', '  │ 100 %'])
	})

	it('whatever else is written takes its place, and it comes again below', () => {
		const s = stage()
		s.hear([call(), says(''), says('one')], 300)
		s.out.line('! a notice')
		expect(s.shown()).to.deep.equal(['! a notice'])
		s.hear([says('two')], 300)
		expect(s.shown()).to.deep.equal(['! a notice', '  │ one', '  │ two'])
	})

	it('draws at most every tenth of a second, and the last state all the same', async () => {
		const s = stage()
		s.hear([call(), says('')])
		s.hear(
			Array.from({ length: 500 }, (_, i) => says(`line ${i}`)),
			0.1,
		)
		s.out.flush()
		const drawings = s.io.out.text.split('\u001b[?7l').length - 1
		expect(drawings).to.equal(1)
		for (let i = 0; i < 200 && !s.io.out.text.includes('line 499'); i++)
			await new Promise((done) => setTimeout(done, 20))
		expect(s.shown().at(-2)).to.equal('  │ line 499')
		expect(s.io.out.text.split('\u001b[?7l').length - 1).to.equal(2)
	})

	it('sends no escape sequence of a command, whatever it prints', () => {
		const s = stage()
		s.hear([
			call(),
			says(''),
			says('\u001b[2Jwiped \u001b]0;title\u0007\u009b31m red\r\n\u202eabc\ttab'),
			says('\r\u001b[1A'),
		])
		s.out.flush()
		const text = s.io.out.text
		expect(text.match(/\u001b\[(?!\?7[lh]|\d+A|J)|\u001b(?!\[)|[\u0007\u009b\u202e]/g)).to.equal(null)
		expect(text).to.include('␛[2Jwiped').and.include('[U+202E]abc tab')
	})

	it('long and wide lines keep to one line each: nothing is left when they go', () => {
		const s = stage()
		s.out.line('● Run it')
		s.hear([
			call(),
			says(''),
			says('x'.repeat(5000)),
			says('漢字'.repeat(300)),
			says('👍🏽'.repeat(200)),
			says('é'.repeat(300)),
		])
		for (const line of s.shown()) expect(line.length).to.be.at.most(110)
		s.hear([ends()])
		expect(s.shown()).to.deep.equal(['● Run it'])
	})

	it('while a question is open it waits, and a second try begins anew', () => {
		const s = stage()
		s.hear([call(), says(''), says('first try')])
		s.hear([{ type: 'question', request: { id: 'q' } as never }])
		s.out.write('? Run outside [y] > ')
		s.hear([says('late word')])
		expect(s.shown()).to.deep.equal(['? Run outside [y] >'])
		s.out.line('')
		s.hear([{ type: 'answer', id: 'q', choice: 'once' }, says('second try')])
		expect(s.shown().join()).to.include('second try').and.not.include('first try')
	})

	it('says how long a silent command has run; what only reads shows nothing', async () => {
		const s = stage()
		s.hear([call('r', 'read'), says('', 'r')])
		s.pass(9000)
		expect(s.shown()).to.deep.equal([])
		s.hear([call(), says('')])
		s.pass(12_000)
		for (let i = 0; i < 200 && s.shown().length === 0; i++) await new Promise((done) => setTimeout(done, 20))
		expect(s.shown()).to.deep.equal(['  12 s'])
	})

	it('cuts at cells and never in a character', () => {
		expect(cutToCells('abcdef', 6)).to.equal('abcdef')
		expect(cutToCells('abcdefg', 6)).to.equal('abcde…')
		expect(cutToCells('漢字漢字', 5)).to.equal('漢字…')
		expect(cutToCells('👍👍👍', 4)).to.equal('👍…')
	})
})
