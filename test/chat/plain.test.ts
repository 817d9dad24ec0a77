import { expect } from 'chai'
import { type ChatOptions, chat } from '../../src/chat/plain.ts'
import { UserError } from '../../src/engine/errors.ts'
import type { Approver } from '../../src/engine/ports.ts'
import type { Answer } from '../../src/engine/types.ts'
import { type Fake, type FakeIo, type FakeOptions, fakeGaruda, fakeIo, noModel, replyOf, type Script } from './fake.ts'

const on = '\u001b[?2004h'
const off = '\u001b[?2004l'
const enter = '\r'
const ctrlC = '\u0003'

interface Running {
	io: FakeIo
	fakes: Fake[]
	/** The engine's options of each `create`. */
	made: Parameters<ChatOptions['create']>[0][]
	done: Promise<number>
	error: Error | null
	/** Types a line once the prompt stands there. */
	line(text: string, prompt?: string): Promise<void>
}

let running: Running[] = []

function start(
	script: Script,
	more: Partial<ChatOptions> & { options?: FakeOptions; io?: FakeIo; each?: FakeOptions[] } = {},
): Running {
	const { options = {}, each, ...rest } = more
	const io = rest.io ?? fakeIo({ tty: true })
	const fakes: Fake[] = []
	const made: Running['made'] = []
	let approver: Approver
	const run: Running = {
		io,
		fakes,
		made,
		error: null,
		done: chat({
			tour: async () => ({ model: 'tour' }),
			open: {},
			version: '0.1.0',
			home: '/home/u',
			verbose: false,
			guardMs: 20,
			...rest,
			io,
			create(engine) {
				approver = engine.approver ?? approver
				made.push(engine)
				const fake = fakeGaruda(script, { approver, ...(each?.[fakes.length] ?? options) })
				fakes.push(fake)
				return fake.garuda
			},
		}).catch((error: Error) => {
			run.error = error
			return -1
		}),
		async line(text, prompt = '> ') {
			await io.sees(prompt, mark)
			mark = io.out.text.length
			io.type(text)
			// Enter in a read of its own, as a hand presses it.
			await new Promise((done) => setTimeout(done, 5))
			io.type(enter)
		},
	}
	let mark = 0
	running.push(run)
	return run
}

const answers: Script = ({ text, say }) => say(`you said ${text}`)

/** Does it once the prompt stands there. */
async function at(io: FakeIo, act: () => unknown): Promise<void> {
	await io.sees('> ')
	act()
}

/** The terminal is as it was found: the last mode written is off, raw mode too, and nothing active comes after. */
function restored(io: FakeIo): void {
	expect(io.out.text.lastIndexOf(off), 'bracketed paste is off').to.be.above(io.out.text.lastIndexOf(on))
	expect(io.raw.at(-1), 'raw mode is off').to.equal(false)
}

describe('the plain chat', () => {
	afterEach(async () => {
		for (const one of running) {
			one.io.signal('SIGTERM')
			await one.done
		}
		running = []
	})

	it('a line is a prompt, the answer streams, /exit ends with 0', async () => {
		const { io, done, fakes, line } = start(answers)
		await line('hello')
		await io.sees('you said hello')
		await line('/exit')
		expect(await done).to.equal(0)
		expect(fakes[0]!.prompts).to.deep.equal(['hello'])
		expect(io.out.text).to.include('Garuda 0.1.0').and.to.include('fake/one')
	})

	it('many prompts leave no listener on the terminal', async () => {
		const { io, done, line } = start(answers)
		const most: number[] = []
		for (let n = 1; n <= 14; n++) {
			await line(`number ${n}`)
			await io.sees(`you said number ${n}`)
			most.push(io.out.listenerCount('resize'))
		}
		expect(Math.max(...most)).to.be.at.most(most[0]! + 1)
		await line('/exit')
		expect(await done).to.equal(0)
	})

	it('T01 the modes are off after /exit, Ctrl-D, Ctrl-C twice, TERM, HUP and a crash', async () => {
		const ends: [string, number, (run: Running) => Promise<void> | void][] = [
			['/exit', 0, ({ line }) => line('/exit')],
			['Ctrl-D', 0, ({ io }) => at(io, () => io.type('\u0004'))],
			['stdin ends', 0, ({ io }) => at(io, () => io.keys.end())],
			[
				'Ctrl-C twice',
				130,
				async ({ io }) => {
					await io.sees('> ')
					io.type(ctrlC)
					await io.sees('again leaves')
					io.type(ctrlC)
				},
			],
			['SIGTERM', 143, ({ io }) => at(io, () => io.signal('SIGTERM'))],
			['SIGHUP', 129, ({ io }) => at(io, () => io.signal('SIGHUP'))],
			['crash', 1, ({ io }) => at(io, () => io.crash(new Error('render \u001b[31mloop')))],
		]
		for (const [name, code, finish] of ends) {
			const run = start(answers)
			await finish(run)
			expect(await run.done, name).to.equal(code)
			restored(run.io)
			expect(run.fakes[0]!.closed, name).to.be.above(0)
			if (name === 'crash') {
				expect(run.io.err.text)
					.to.include('render loop')
					.and.to.not.match(/\n\s+at /)
				expect(run.io.abandoned).to.deep.equal([1])
			}
		}
	})

	it('T01 the modes are off when the process ends by itself, and at an error while it starts', async () => {
		const run = start(answers)
		await run.io.sees('> ')
		run.io.exit()
		restored(run.io)
		const broken = start(answers, { options: { openFails: new Error('no') } })
		await broken.done
		expect(broken.error?.message).to.equal('no')
		restored(broken.io)
	})

	it('T01 Ctrl-Z gives the shell its terminal back, and going on takes it again', async () => {
		const { io, line } = start(answers)
		await io.sees('> ')
		io.type('half')
		await new Promise((done) => setTimeout(done, 10))
		io.type('\u001a')
		await io.sees(off)
		restored(io)
		io.resume!()
		expect([io.raw.at(-1), io.out.text.lastIndexOf(on) > io.out.text.lastIndexOf(off)]).to.deep.equal([true, true])
		await line(' and more')
		await io.sees('you said half and more')
	})

	it('T06 a dumb terminal, or stdout into a pipe, gets plain lines and no modes at all', async () => {
		for (const io of [fakeIo({ tty: true, env: { TERM: 'dumb' } }), fakeIo({ tty: true, outTty: false })]) {
			const { done, fakes } = start(answers, { io })
			await io.sees('> ')
			io.type('hello\n')
			await io.sees('you said hello')
			io.type('/exit\n')
			expect(await done).to.equal(0)
			expect(fakes[0]!.prompts).to.deep.equal(['hello'])
			expect(io.out.text).to.not.include('\u001b')
			expect(io.raw).to.deep.equal([])
		}
	})

	it('T06 in a dumb terminal Ctrl-C comes as a signal: it stops the turn, and twice leaves', async () => {
		const io = fakeIo({ tty: true, env: { TERM: 'dumb' } })
		const { done } = start(
			async ({ say, stopped }) => {
				say('working')
				await stopped()
			},
			{ io },
		)
		await io.sees('> ')
		io.type('go\n')
		await io.sees('working')
		io.signal('SIGINT')
		await io.sees('The turn was interrupted.')
		await new Promise((done) => setTimeout(done, 20))
		io.signal('SIGINT')
		expect(await done).to.equal(130)
	})

	it('T07 NO_COLOR leaves no colour on the screen, FORCE_COLOR=0 neither; with colour there is some', async () => {
		const sgr = /\u001b\[[\d;]*m/
		for (const [env, wanted] of [
			[{ NO_COLOR: '1' }, false],
			[{ NO_COLOR: '', FORCE_COLOR: '0' }, false],
			[{ NO_COLOR: '' }, true],
		] as const) {
			const { io, line, done } = start(answers, { io: fakeIo({ tty: true, env }) })
			await line('hello')
			await io.sees('you said hello')
			await line('/exit')
			await done
			expect(sgr.test(io.out.text), JSON.stringify(env)).to.equal(wanted)
		}
	})

	it('T05 a long answer is written once, with no redraw, also when the window changes', async () => {
		const text = Array.from({ length: 5000 }, (_, i) => `line ${i}\n`)
		const { io, line } = start(async ({ say }) => {
			say(...text.slice(0, 2500))
			io.out.columns = 40
			io.out.emit('resize')
			say(...text.slice(2500))
			await new Promise((done) => setTimeout(done, 10))
			io.out.columns = 120
			io.out.emit('resize')
		})
		await line('go')
		await io.sees('line 4999\n')
		const size = text.join('').length
		expect(io.out.text.length).to.be.below(size * 1.5)
		expect(io.out.text).to.not.include('\u001b[2J').and.to.not.include('\u001b[3J')
	})

	it('T09 a closed terminal stops the turn, closes the session and does not spin', async () => {
		let stopped = false
		const { io, line, done, fakes } = start(async (stage) => {
			stage.say('working')
			await stage.stopped()
			stopped = true
		})
		await line('go')
		await io.sees('working')
		io.signal('SIGHUP')
		expect(await done).to.equal(129)
		expect([stopped, fakes[0]!.closed > 0]).to.deep.equal([true, true])

		const gone = start(async (stage) => {
			stage.say('working')
			await stage.stopped()
		})
		await gone.line('go')
		await gone.io.sees('working')
		gone.io.out.emit('error', Object.assign(new Error('write EIO'), { code: 'EIO' }))
		expect(await gone.done).to.equal(129)
	})

	it('Ctrl-C once stops the turn and the chat goes on; twice leaves', async () => {
		const { io, line, done } = start(async ({ say, stopped }) => {
			say('working')
			await stopped()
		})
		await line('go')
		await io.sees('working')
		io.type(ctrlC)
		await io.sees('The turn was interrupted.')
		await line('go on')
		await io.sees('working', io.out.text.lastIndexOf('go on'))
		io.type(ctrlC)
		io.type(ctrlC)
		expect(await done).to.equal(130)
	})

	it('Ctrl-C clears a line that is being typed', async () => {
		const { io, line, fakes } = start(answers)
		await io.sees('> ')
		io.type('not this')
		await new Promise((done) => setTimeout(done, 10))
		io.type(ctrlC)
		await new Promise((done) => setTimeout(done, 10))
		await line('but this')
		await io.sees('you said but this')
		expect(fakes[0]!.prompts).to.deep.equal(['but this'])
	})

	it('what is typed during a turn is kept: a finished line runs next, the rest waits in the line', async () => {
		let release = () => {}
		const { io, line, fakes } = start(async ({ text, say }) => {
			say(`on ${text}`)
			if (text === 'one') await new Promise<void>((done) => (release = done))
		})
		await line('one')
		await io.sees('on one')
		io.type('two\u007fo')
		io.type(enter)
		await io.sees('kept for after this turn: two')
		io.type('thr')
		await new Promise((done) => setTimeout(done, 10))
		release()
		await io.sees('on two')
		await io.sees('\u001b[3Gthr')
		io.type('ee')
		await new Promise((done) => setTimeout(done, 10))
		io.type(enter)
		await io.sees('on three')
		expect(fakes[0]!.prompts).to.deep.equal(['one', 'two', 'three'])
	})

	it('after a stopped turn nothing runs by itself: kept lines come back into the line', async () => {
		const { io, line, fakes } = start(async ({ say, stopped }) => {
			say('working')
			await stopped()
		})
		await line('one')
		await io.sees('working')
		io.type('rm it')
		io.type(enter)
		await io.sees('kept for after')
		io.type(ctrlC)
		await io.sees('\u001b[3Grm it')
		expect(fakes[0]!.prompts).to.deep.equal(['one'])
	})

	it('term-10 a paste goes into the line and waits for Enter; many lines are sent whole', async () => {
		const { io, fakes, line } = start(answers)
		await io.sees('> ')
		io.type('\u001b[200~run this\u001b[201~\r')
		io.type('\r')
		await new Promise((done) => setTimeout(done, 60))
		expect(fakes[0]!.prompts).to.deep.equal([])
		io.type(' and \u001b[200~one\r\ntwo\u001b[201~')
		await io.sees('[paste')
		await new Promise((done) => setTimeout(done, 40))
		io.type(enter)
		await io.sees('you said')
		expect(fakes[0]!.prompts[0]).to.match(/^\[?.*and one\ntwo$/s)
		await line('/exit')
	})

	it('term-10 what a paste shows while it is typed has no active characters', async () => {
		const { io } = start(answers)
		await io.sees('> ')
		const from = io.out.text.length
		io.type('\u001b[200~a\u001b]0;title\u0007b\u001b[201~')
		await io.sees('[paste 1', from)
		expect(io.out.text.slice(from)).to.not.include('title')
	})

	it('a line that ends with a backslash goes on', async () => {
		const { io, line, fakes } = start(answers)
		await line('one \\')
		await line('two', '… ')
		await io.sees('you said')
		expect(fakes[0]!.prompts).to.deep.equal(['one \ntwo'])
	})

	it('a thousand command files that are left out do not bury the start: five, and how many more', async () => {
		const problems = Array.from({ length: 1000 }, (_, i) => `.garuda/commands/n${i}.md is left out: it is a link.`)
		const { io, line, done } = start(answers, { options: { commands: { commands: [], problems } } })
		await io.sees('995 more command files are left out; /help names them all.')
		const shown = io.out.text
		expect(shown.match(/n\d+\.md is left out/g)).to.have.length(5)
		await line('/help')
		await io.sees('n999.md is left out')
		await line('/exit')
		expect(await done).to.equal(0)
	})

	it('a command file runs as a prompt of its own; what was left out is said at the start', async () => {
		const file = {
			name: 'fix',
			description: 'Fix\u001b[2J it',
			hint: '',
			source: 'project' as const,
			path: '.garuda/commands/fix.md',
		}
		const { io, fakes, line, done } = start(answers, {
			options: { commands: { commands: [file], problems: ['.garuda/commands/leak.md is left out: it is a link.'] } },
		})
		await io.sees('leak.md is left out: it is a link')
		await line('/help')
		await io.sees('/fix')
		await line('/fix 12 "a b"')
		await io.sees('you said /fix 12 "a b"')
		await line('/exit')
		expect(await done).to.equal(0)
		expect(fakes[0]!.inputs).to.deep.equal([{ text: '/fix 12 "a b"', command: { name: 'fix', args: '12 "a b"' } }])
		expect(io.out.text).to.not.include('\u001b[2J')
	})

	it('!command is a bash call of the user; a slash command is none of the model', async () => {
		const { io, line, fakes } = start(({ text, emit }) => {
			emit({
				type: 'tool_call',
				callId: 'c',
				name: 'bash',
				input: {},
				info: { title: `$ ${text}`, kind: 'execute', access: 'run', paths: [], key: 'k' },
			})
			emit({ type: 'tool_result', callId: 'c', name: 'bash', status: 'ok', text: 'out\u001b[2J put' })
		})
		await line('!ls -l')
		await io.sees('out put')
		await line('/status')
		await io.sees('bubblewrap', io.out.text.indexOf('out put'))
		await line('/nosuch')
		await io.sees('All commands: /help')
		expect(fakes[0]!.prompts).to.deep.equal(['!ls -l'])
	})

	it('term-01 term-03 term-08 nothing active from model, tool, title or notice reaches the terminal', async () => {
		const evil = 'x\u001b]52;c;eA==\u0007\u001b[?1049h\u001b]0;t\u0007\u009b31m\u001b_G1\u001b\\'
		const { io, line, done } = start(
			({ emit, say }) => {
				emit({ type: 'thinking_delta', text: evil })
				say(evil)
				emit({
					type: 'tool_call',
					callId: 'c',
					name: evil,
					input: {},
					info: {
						title: evil,
						kind: 'edit',
						access: 'write',
						paths: [],
						key: 'k',
						change: { path: evil, old: 'a\n', new: `${evil}\n` },
					},
				})
				emit({ type: 'tool_result', callId: 'c', name: 'bash', status: 'ok', text: evil })
				emit({ type: 'tool_result', callId: 'd', name: 'bash', status: 'failed', text: evil })
				emit({ type: 'notice', level: 'warning', text: evil })
				emit({ type: 'model_retry', attempt: 1, of: 3, delayMs: 0, reason: evil, void: true })
				emit({ type: 'server_tool', id: 's', name: evil })
				return { reason: 'error', error: { code: 'x', message: evil, hint: evil } }
			},
			{
				verbose: true,
				options: {
					notices: [evil],
					status: { model: evil, sandbox: evil, title: evil },
					history: [{ type: 'user_text', text: evil }, replyOf([{ type: 'text', text: evil }])],
				},
			},
		)
		await line('go')
		await io.sees('again')
		await line('/status')
		await line('/sessions')
		await line('/exit')
		await done
		const without = io.out.text
			.replaceAll(on, '')
			.replaceAll(off, '')
			.replace(/\u001b\[\d*[GJKCD]/g, '')
		expect(without).to.not.match(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/)
	})

	describe('a question', () => {
		const asking =
			(got: Answer[]): Script =>
			async ({ text, say, ask }) => {
				if (text !== 'go') return say(`you said ${text}`)
				got.push(await ask({ title: 'Run: npm test', preview: 'npm test' }))
				say('answered')
			}

		it('is answered by a line typed after it', async () => {
			const got: Answer[] = []
			const { io, line } = start(asking(got))
			await line('go')
			await line('n use pnpm', '[?] > ')
			await io.sees('answered')
			expect(got).to.deep.equal([{ choice: 'deny', note: 'use pnpm' }])
		})

		it('is never answered by what was typed before it, or by typing that goes on', async () => {
			const got: Answer[] = []
			let release = () => {}
			const { io, line } = start(async (stage) => {
				if (stage.text !== 'go') return stage.say(`you said ${stage.text}`)
				stage.say('soon')
				await new Promise<void>((done) => (release = done))
				got.push(await stage.ask({ title: 'Run: rm' }))
				stage.say('answered')
				return undefined
			})
			await line('go')
			await io.sees('soon')
			io.type('y')
			io.type(enter)
			await io.sees('kept for after')
			release()
			await io.sees('Run: rm')
			// Still typing while the question appears.
			io.type('y\r')
			await io.sees('[?] > ')
			await new Promise((done) => setTimeout(done, 30))
			expect(got).to.deep.equal([])
			io.type('n')
			io.type(enter)
			await io.sees('answered')
			expect(got).to.deep.equal([{ choice: 'deny' }])
			await io.sees('you said y')
		})

		it('a pasted answer is no answer', async () => {
			const got: Answer[] = []
			const { io, line } = start(asking(got))
			await line('go')
			await io.sees('[?] > ')
			io.type('\u001b[200~y\r\u001b[201~')
			await new Promise((done) => setTimeout(done, 50))
			expect(got).to.deep.equal([])
			io.type('c')
			io.type(enter)
			await io.sees('answered')
			expect(got).to.deep.equal([{ choice: 'cancel' }])
		})

		it('Ctrl-C stops the turn; the end of input and a signal deny', async () => {
			for (const [act, choice] of [
				[(io: FakeIo) => io.type(ctrlC), 'cancel'],
				[(io: FakeIo) => void io.keys.end(), 'deny'],
				[(io: FakeIo) => io.signal('SIGHUP'), 'deny'],
			] as const) {
				const got: Answer[] = []
				const { io, line } = start(asking(got))
				await line('go')
				await io.sees('[?] > ')
				act(io)
				await new Promise((done) => setTimeout(done, 30))
				expect(got).to.deep.equal([{ choice }])
			}
		})

		it('"a" turns on accepted edits in the session', async () => {
			const got: Answer[] = []
			const { line, fakes, io } = start(async ({ ask, say }) => {
				got.push(
					await ask({
						title: 'Edit',
						info: {
							title: 'Edit',
							kind: 'edit',
							access: 'write',
							paths: [],
							key: 'e',
							change: { path: 'a', old: 'x\n', new: 'y\n' },
						},
					}),
				)
				say('answered')
			})
			await line('go')
			await line('a', '[?] > ')
			await io.sees('answered')
			expect(got).to.deep.equal([{ choice: 'once' }])
			expect(fakes[0]!.calls).to.include('edits true')
			expect(io.out.text).to.include('-x').and.to.include('+y')
		})
	})

	describe('sessions and the start', () => {
		it('/new and /clear open another session and keep the model; /plan hands the plan over', async () => {
			const { io, line, fakes } = start(answers)
			await line('/models other/two')
			await io.sees('The model is now')
			await line('/new')
			await io.sees('A new session.')
			expect(fakes[0]!.opened).to.have.length(2)
			expect(fakes[0]!.calls.filter((one) => one.startsWith('model'))).to.deep.equal([
				'model other/two',
				'model other/two',
			])
			await line('/plan make it fast')
			await io.sees('you said make it fast')
			await line('/plan', 'plan> ')
			await io.sees('you said Carry out the plan above.')
			expect(fakes[0]!.live!.mode).to.equal('build')
		})

		it('/sessions delete asks; only a yes deletes', async () => {
			const sessions = [{ id: 's1', root: '/project', title: 'Old', created: 1, updated: 1, size: 1 }]
			const { io, line, fakes } = start(answers, { options: { sessions } })
			await line('/sessions delete s1')
			await line('', '[y/n] > ')
			await io.sees('Not done.')
			await line('/sessions delete s1')
			await line('y', '[y/n] > ')
			await io.sees('Deleted s1')
			expect(fakes[0]!.calls).to.deep.equal(['remove s1'])
		})

		it('-r with no id lets choose; a resumed session shows its end', async () => {
			const sessions = [
				{ id: 's1', root: '/project', title: 'Older', created: 1, updated: 1, size: 1 },
				{ id: 's2', root: '/project', title: 'Newer', created: 2, updated: 2, size: 1 },
			]
			const history = [
				{ type: 'user_text', text: 'first ask' },
				replyOf([{ type: 'text', text: 'first answer' }]),
				{ type: 'user_text', text: 'second ask' },
				{ type: 'user_text', text: 'third ask' },
				replyOf([{ type: 'text', text: 'last answer' }]),
			] as const
			const { io, line, fakes } = start(answers, { resume: '', options: { sessions, history: [...history] } })
			await line('2', 'which?')
			await io.sees('last answer')
			expect(fakes.at(-1)!.opened[0]).to.deep.equal({ resume: 's1' })
			expect(io.out.text).to.include('> third ask').and.to.not.include('first answer')
		})

		it('no model: a local server is used only after a yes, and gets no key of the user', async () => {
			const local = [
				{ provider: 'ollama', name: 'Ollama', url: 'http://127.0.0.1:11434/v1', models: ['qwen', 'other'] },
			]
			const { io, line, made } = start(answers, { each: [{ ...noModel, local }, {}] })
			await line('y', '[y/n] > ')
			await io.sees('Garuda 0.1.0')
			expect(made[1]).to.deep.include({ model: 'ollama/qwen' })
			await line('hello', '> ')
		})

		it('-m ollama/…: asked before first use; a no uses nothing, and one that is not there asks nothing', async () => {
			const url = 'http://127.0.0.1:11434/v1'
			const named = { model: 'ollama/qwen', problem: null, server: { name: 'Ollama', url } }
			const local = [{ provider: 'ollama', name: 'Ollama', url, models: ['qwen'] }]
			const yes = start(answers, { model: 'ollama/qwen', options: { problem: named, local } })
			await yes.line('y', '[y/n] > ')
			await yes.line('hello', '> ')
			await yes.io.sees('you said hello')
			expect(yes.io.out.text).to.include(`Ollama answers at ${url}`)
			const no = start(answers, { model: 'ollama/qwen', options: { problem: named, local } })
			await no.line('n', '[y/n] > ')
			await no.done
			expect(no.error!.message).to.equal('ollama/qwen is not used.')
			expect(no.fakes[0]!.opened).to.deep.equal([])
			const away = start(answers, { model: 'ollama/qwen', options: { problem: named, local: [] } })
			await away.line('hello', '> ')
			await away.io.sees('you said hello')
			expect(away.io.out.text).to.not.include('[y/n]')
		})

		it('no model and no yes: the tour opens, says that it is no AI, and names the three ways', async () => {
			const local = [{ provider: 'ollama', name: 'Ollama', url: 'http://127.0.0.1:11434/v1', models: ['qwen'] }]
			for (const found of [local, []]) {
				const { io, line, made, done } = start(answers, { each: [{ ...noModel, local: found }, {}] })
				if (found.length > 0) await line('n', '[y/n] > ')
				await io.sees('not an AI')
				expect(made[1]).to.deep.include({ model: 'tour' })
				for (const way of ['garuda setup', 'ANTHROPIC_API_KEY', 'Ollama']) expect(io.out.text).to.include(way)
				io.signal('SIGTERM')
				await done
			}
		})

		/** The choice without a model stands there for the nth time. */
		const again = async (io: FakeIo, nth: number): Promise<void> => {
			for (let i = 0; i < 500; i++) {
				const shown = io.out.text.split('  3  leave\n')
				if (shown.length > nth && shown.at(-1)!.includes('(Enter: the tour) > ')) return
				await new Promise((done) => setTimeout(done, 10))
			}
			throw new Error(io.out.text)
		}

		it('no model, with a setup: it runs on the terminal as the shell left it, and the chat goes on with the model', async () => {
			let io: FakeIo
			const seen: string[] = []
			const setup = async (): Promise<number> => {
				seen.push(io.out.text.endsWith(off) ? 'modes off' : 'modes on', `${io.stdin.listenerCount('data')} readers`)
				return seen.length > 2 ? 0 : 130
			}
			const { line, made, ...one } = start(answers, { setup, each: [noModel, noModel, {}] })
			io = one.io
			await line('1', '(Enter: the tour) > ')
			// Left before its end: the choice comes again.
			await again(io, 2)
			await line('1', '> ')
			await io.sees('Garuda 0.1.0')
			expect(seen).to.deep.equal(['modes off', '0 readers', 'modes off', '0 readers'])
			expect(made).to.have.length(3)
			expect(made[2]).to.not.have.property('model')
			await line('hello')
			await io.sees('you said hello')
			expect(io.out.text.lastIndexOf(on)).to.be.above(io.out.text.lastIndexOf(off))
		})

		it('no model, with a setup that fails: its words, then the choice again; a missing key is named', async () => {
			const setup = async (): Promise<number> => {
				throw new UserError('models.json is broken.', 'Mend line 3.')
			}
			const problem = {
				model: null,
				problem: { code: 'auth', message: 'There is no key for near.', hint: 'Set NEAR_KEY.' },
			}
			const { io, line, done } = start(answers, {
				setup,
				options: { openFails: new UserError(problem.problem.message), problem },
			})
			await io.sees('There is no key for near. Set NEAR_KEY.')
			await line('1', '(Enter: the tour) > ')
			await io.sees('models.json is broken.\nMend line 3.')
			await again(io, 2)
			await line('3', '> ')
			expect(await done).to.equal(0)
		})

		it('no model, with a setup: Enter and words open the tour, words stand in its line; Ctrl-C and Ctrl-D leave', async () => {
			const setup = async (): Promise<number> => 0
			for (const [typed, code] of [
				['', null],
				['2', null],
				['show me', null],
				['leave', 0],
				['\u0004', 0],
				[ctrlC, 130],
			] as const) {
				const { io, line, made, done } = start(answers, { setup, each: [noModel, {}] })
				const key = typed === ctrlC || typed === '\u0004'
				if (key) {
					await io.sees('(Enter: the tour) > ')
					io.type(typed)
				} else await line(typed, '(Enter: the tour) > ')
				if (code !== null) {
					expect(await done, typed).to.equal(code)
					expect(made).to.have.length(1)
					continue
				}
				await io.sees('This is the tour')
				expect(made[1]).to.deep.include({ model: 'tour' })
				if (typed === 'show me') {
					await io.sees('> show me')
					io.type(enter)
					await io.sees('you said show me')
				}
				io.signal('SIGTERM')
				await done
			}
		})

		it('no model and a session to go on with: the tour is no choice', async () => {
			const { io, line, done } = start(answers, { setup: async () => 0, resume: 'latest', options: noModel })
			await io.sees('2  leave')
			expect(io.out.text).to.not.include('tour')
			await line('what', '[1/2] > ')
			await io.sees('[1/2] > what\n\n[1/2] > ')
			await line('2', '> ')
			expect(await done).to.equal(0)
		})

		it('a model that was named, or a broken file, is told and not replaced', async () => {
			const named = start(answers, { model: 'x/y', options: noModel })
			await named.done
			expect(named.error?.message).to.equal('No model is set.')
			const broken = start(answers, {
				options: { ...noModel, problem: { model: null, problem: { code: 'user', message: 'settings.json:3' } } },
			})
			await broken.done
			expect(broken.error?.name).to.equal('UserError')
			expect(broken.made).to.have.length(1)
		})
	})
})
