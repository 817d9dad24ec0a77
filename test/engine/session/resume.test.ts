import { promises as fs } from 'node:fs'
import { expect } from 'chai'
import type { SessionRecord } from '../../../src/engine/ports.ts'
import { messagesBefore, rebuild, toUsage } from '../../../src/engine/session/resume.ts'
import { titleOf } from '../../../src/engine/session/title.ts'
import type { Message } from '../../../src/engine/types.ts'
import {
	assistant,
	call,
	cleanFolders,
	end,
	header,
	journalOf,
	note,
	place,
	reply,
	results,
	say,
	snapshot,
	start,
	storeOf,
	time,
	turn,
	user,
} from './help.ts'

const compaction = (...messages: Message[]): SessionRecord => ({
	type: 'compaction',
	time: time(),
	messages,
	before: 100,
	after: 10,
})
const undo = (number: number): SessionRecord => ({ type: 'undo', time: time(), turn: number })
const redo = (number: number): SessionRecord => ({ type: 'redo', time: time(), turn: number })
const words = (messages: Message[]) =>
	messages.map((message) => message.blocks.map((block) => ('text' in block ? block.text : block.type)).join())
const damaged = { type: 'damaged' as const, line: 9, reason: 'is no JSON' }

describe('session: resume', () => {
	afterEach(cleanFolders)

	it('rebuilds messages, turns, model, mode, title and usage', () => {
		const state = rebuild([
			start(),
			...turn(1, 'Fix the   build\nplease'),
			{ type: 'model', time: 1, model: 'test/two', effort: 'high' },
			{ type: 'mode', time: 1, mode: 'plan' },
			user('second'),
			call('c1'),
			results('c1', 'ok'),
			note('Go on.'),
			assistant('done'),
			end(2, 'max_steps'),
		])
		expect(words(state.messages)).to.deep.equal([
			'Fix the   build\nplease',
			'answer to Fix the   build\nplease',
			'second',
			'tool_call',
			'ok',
			'Go on.',
			'done',
		])
		expect(state).to.deep.include({
			title: 'Fix the build',
			mode: 'plan',
			model: 'test/two',
			effort: 'high',
			stoppedMidway: false,
			nextTurn: 3,
			problems: [],
			undone: [],
		})
		expect(
			state.turns.map(({ turn: number, messages, from, to, prompt, ended }) => ({
				number,
				messages,
				from,
				to,
				prompt,
				ended,
			})),
		).to.deep.equal([
			{ number: 1, messages: 0, from: 's1a', to: 's1b', prompt: 'Fix the   build\nplease', ended: 'done' },
			{ number: 2, messages: 2, from: null, to: null, prompt: 'second', ended: 'max_steps' },
		])
		expect(state.usage).to.deep.include({ input: 20, requests: 2 })
		expect(state.usage.cost).to.be.closeTo(0.02, 1e-9)
	})

	it('a given title wins over the first prompt, the last one over earlier ones', () => {
		const title = (text: string): SessionRecord => ({ type: 'title', time: 1, title: text })
		expect(rebuild([start(), title('A'), ...turn(1, 'x'), title('B')]).title).to.equal('B')
		expect(rebuild([start()]).title).to.equal(null)
	})

	it('undo and redo move turns; a new prompt ends redo', () => {
		const three = [start(), ...turn(1, 'a'), ...turn(2, 'b'), ...turn(3, 'c')]
		const once = rebuild([...three, undo(3)])
		expect(words(once.messages)).to.deep.equal(['a', 'answer to a', 'b', 'answer to b'])
		expect(once.undone.map((mark) => mark.turn)).to.deep.equal([3])
		const twice = rebuild([...three, undo(3), undo(2)])
		expect(words(twice.messages)).to.deep.equal(['a', 'answer to a'])
		expect(twice.undone.map((mark) => mark.turn)).to.deep.equal([3, 2])
		const back = rebuild([...three, undo(3), undo(2), redo(2)])
		expect(words(back.messages)).to.deep.equal(words(once.messages))
		expect(back.undone.map((mark) => mark.turn)).to.deep.equal([3])
		expect(words(back.undoneMessages.at(-1)!)).to.have.length(6)
		const all = rebuild([...three, undo(3), undo(2), redo(2), redo(3), undo(3), redo(3)])
		expect(words(all.messages)).to.deep.equal(words(rebuild(three).messages))
		expect(all.turns.map((mark) => [mark.turn, words(messagesBefore(mark)).length])).to.deep.equal([
			[1, 0],
			[2, 2],
			[3, 4],
		])
		const fresh = rebuild([...three, undo(3), undo(2), ...turn(4, 'd')])
		expect(words(fresh.messages)).to.deep.equal(['a', 'answer to a', 'd', 'answer to d'])
		expect(fresh.undone).to.deep.equal([])
		expect(fresh.turns.map((mark) => [mark.turn, mark.from, words(messagesBefore(mark)).length])).to.deep.equal([
			[1, 's1a', 0],
			[4, 's4a', 2],
		])
		expect(fresh.usage.requests, 'undone turns were paid').to.equal(4)
		expect(fresh.problems).to.deep.equal([])
	})

	it('undo goes back across a compaction to the words as they were', () => {
		const records = [
			start(),
			...turn(1, 'a'),
			user('b'),
			assistant('b1'),
			compaction(say('summary'), reply('b1')),
			assistant('b2'),
			end(2),
		]
		const state = rebuild(records)
		expect(words(state.messages)).to.deep.equal(['summary', 'b1', 'b2'])
		expect(words(messagesBefore(state.turns[1]!))).to.deep.equal(['a', 'answer to a'])
		const undone = rebuild([...records, undo(2)])
		expect(words(undone.messages)).to.deep.equal(['a', 'answer to a'])
		expect(words(rebuild([...records, undo(2), redo(2)]).messages)).to.deep.equal(['summary', 'b1', 'b2'])
		const later = rebuild([...records, ...turn(3, 'c'), undo(3), undo(2)])
		expect(words(later.messages)).to.deep.equal(['a', 'answer to a'])
	})

	it('K06 a compaction that was killed leaves the old history and no half summary', () => {
		const state = rebuild([start(), ...turn(1, 'a'), user('b'), assistant('b1')])
		expect(words(state.messages)).to.deep.equal(['a', 'answer to a', 'b', 'b1'])
		expect(state.stoppedMidway).to.equal(true)
	})

	it('K06 half of a compaction record in the file counts for nothing, and undo of its turn still works', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		for (const record of turn(1, 'a')) await writer.append(record)
		await writer.close()
		const line = JSON.stringify(compaction(say('summary')))
		const path = journalOf(at, writer.id)
		const whole = await fs.readFile(path, 'utf8')
		for (const cut of [10, line.length - 5]) {
			await fs.writeFile(path, whole + line.slice(0, cut))
			const back = await store.open(writer.id)
			const state = rebuild(back.records)
			expect(words(state.messages)).to.deep.equal(['a', 'answer to a'])
			expect(state.turns[0]?.blocked).to.equal(undefined)
			await back.writer.close()
		}
	})

	it('K06 a compaction record of the wrong shape is skipped, not obeyed', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		for (const record of turn(1, 'a')) await writer.append(record)
		await writer.close()
		await fs.appendFile(
			journalOf(at, writer.id),
			`{"type":"compaction","time":1,"messages":[{"role":"user"}],"before":1,"after":1}\n${JSON.stringify(assistant('more'))}\n`,
		)
		const { records, problems } = await store.read(writer.id)
		expect(problems.join()).to.match(/no whole "compaction"/)
		expect(words(rebuild(records).messages)).to.deep.equal(['a', 'answer to a', 'more'])
	})

	it('a turn without its end was broken off, and only the last one counts', () => {
		expect(rebuild([start(), user('a'), call('c1')])).to.deep.include({ stoppedMidway: true })
		const state = rebuild([
			start(),
			user('a'),
			call('c1'),
			{ type: 'resume', time: 1, model: 'test/three' },
			...turn(2, 'b'),
		])
		expect(state).to.deep.include({ stoppedMidway: false, model: 'test/three' })
		expect(state.turns.map((mark) => mark.ended)).to.deep.equal([null, 'done'])
		expect(rebuild([start(), snapshot(1, 'x'), user('a'), undo(1)]).stoppedMidway).to.equal(false)
		expect(state.usage.requests).to.equal(2)
	})

	it('a snapshot of a broken-off turn that is taken at resume is its end', () => {
		const state = rebuild([
			start(),
			snapshot(1, 'from'),
			user('a'),
			call('c1'),
			{ type: 'resume', time: 1, model: 'm' },
			snapshot(1, 'to'),
		])
		expect(state.turns[0]).to.include({ from: 'from', to: 'to', ended: null })
		expect(rebuild([start(), user('a'), snapshot(1, null), snapshot(1, 'to')]).turns[0]).to.include({
			from: null,
			to: 'to',
		})
	})

	it('X02 a bad line makes the turns before it not undoable, with the reason, and those after it stay so', () => {
		const state = rebuild([start(), ...turn(1, 'a'), ...turn(2, 'b'), damaged, ...turn(3, 'c')])
		expect(state.turns.map((mark) => mark.blocked?.includes('line 9') ?? false)).to.deep.equal([true, true, false])
		expect(words(state.messages)).to.have.length(6)
	})

	it('X02 a bad line blocks redo too', () => {
		const state = rebuild([start(), ...turn(1, 'a'), ...turn(2, 'b'), undo(2), damaged])
		expect(state.undone[0]?.blocked).to.match(/line 9/)
		expect(state.turns[0]?.blocked).to.match(/line 9/)
	})

	for (const [name, record] of [
		['an undo of a turn that is not the last', undo(1)],
		['an undo of no turn', undo(9)],
		['a redo of what was not undone', redo(2)],
		['a snapshot of a turn that is not there', snapshot(7, 'x')],
	] as const)
		it(`X02 ${name} is a problem, moves nothing, and makes undo refuse`, () => {
			const state = rebuild([start(), ...turn(1, 'a'), ...turn(2, 'b'), record])
			expect(state.problems).to.have.length(1)
			expect(state.turns.map((mark) => mark.turn)).to.deep.equal([1, 2])
			expect(state.turns.every((mark) => mark.blocked !== undefined)).to.equal(true)
			expect(words(state.messages)).to.have.length(4)
		})

	it('X02 a snapshot or undo line of the wrong shape in a file blocks undo', async () => {
		const at = await place()
		for (const bad of [
			'{"type":"snapshot","time":1,"turn":"1","id":"x"}',
			'{"type":"undo","time":1}',
			'{"type":"snapshot","time":1,"turn":1,"id":{"a":1}}',
		]) {
			const store = storeOf(at)
			const writer = await store.create(header(at))
			for (const record of turn(1, 'a')) await writer.append(record)
			await writer.close()
			await fs.appendFile(journalOf(at, writer.id), `${bad}\n`)
			expect(rebuild((await store.read(writer.id)).records).turns[0]?.blocked, bad).to.match(
				/line 7 of the session's file is no whole/,
			)
		}
	})

	it('usage from a record of any shape is never NaN, negative, or free when unknown', () => {
		expect(toUsage({ input: -1, output: 'x', requests: 2, cost: null })).to.deep.equal({
			input: 0,
			output: 0,
			cacheRead: 0,
			cacheWrite: 0,
			thinking: 0,
			requests: 2,
			cost: null,
		})
		expect(toUsage({ requests: 1 }).cost).to.equal(null)
		for (const value of [null, 3, 'x', [1], { input: Number.POSITIVE_INFINITY }])
			expect(toUsage(value).input).to.equal(0)
	})

	it("titles are one short visible line of the prompt's words", () => {
		expect(titleOf('\n\n## Fix the login\n\nwith details')).to.equal('Fix the login')
		expect(titleOf('> - quoted item')).to.equal('quoted item')
		expect(titleOf('```js\nlet a\n```')).to.equal('let a')
		expect(titleOf('   ')).to.equal('(no words)')
		expect(titleOf('---\n…\nwords')).to.equal('words')
		expect(titleOf('a \u001b[31mred\u202e x')).to.equal('a ␛[31mred[U+202E] x')
		const long = titleOf('word '.repeat(40))
		expect(long.length).to.be.at.most(60)
		expect(long).to.match(/word…$/)
		expect(titleOf('😀'.repeat(100)).isWellFormed()).to.equal(true)
	})
})
