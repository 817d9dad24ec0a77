import { expect } from 'chai'
import fc from 'fast-check'
import { Keys, Pastes, type Typed } from '../../src/chat/keys.ts'

const start = '\u001b[200~'
const stop = '\u001b[201~'
/** Keys with a clock that stands still unless moved. */
const keysAt = () => {
	const clock = { now: 0 }
	return { clock, keys: new Keys(() => clock.now) }
}
const pasted = (typed: Typed[]) => typed.flatMap((one) => (one.type === 'paste' ? [one.text] : [])).join('')
const sendsKeys = (typed: Typed[]) => typed.some((one) => one.type === 'text' && /[\r\n]/.test(one.text))

describe('keys of a terminal', () => {
	it('typed text, Ctrl-C and a paste are told apart', () => {
		const { keys, clock } = keysAt()
		expect(keys.feed('ab\r')).to.deep.equal([{ type: 'text', text: 'ab\r' }])
		expect(keys.feed('x\u0003')).to.deep.equal([{ type: 'text', text: 'x' }, { type: 'interrupt' }])
		expect(keys.feed(`${start}one\r\ntwo\u0003${stop}`)).to.deep.equal([{ type: 'paste', text: 'one\ntwo\u0003' }])
		clock.now += 100
		expect(keys.feed('\r')).to.deep.equal([{ type: 'text', text: '\r' }])
	})

	it('term-10 a paste that holds the end of a paste and an Enter presses nothing', () => {
		for (const chunks of [
			[`${start}rm -rf ~${stop}\r more${stop}`],
			[`${start}rm -rf ~${stop}\r`, `more${stop}`],
			[`${start}rm -rf ~`, `${stop}\r`, 'y\r', stop],
		]) {
			const { keys, clock } = keysAt()
			const typed = chunks.flatMap((chunk) => {
				clock.now += 5
				return keys.feed(chunk)
			})
			expect(sendsKeys(typed), JSON.stringify(chunks)).to.equal(false)
			expect(pasted(typed)).to.include('rm -rf ~')
			expect(pasted(typed)).to.not.include('\u001b')
		}
	})

	it('term-10 after the quiet time a key is a key again', () => {
		const { keys, clock } = keysAt()
		keys.feed(`${start}text${stop}`)
		clock.now += 31
		expect(sendsKeys(keys.feed('\r'))).to.equal(true)
	})

	it('marks that are cut between two reads are still marks', () => {
		const whole = `${start}a\nb${stop}`
		for (let at = 1; at < whole.length; at++) {
			const { keys } = keysAt()
			const typed = [...keys.feed(whole.slice(0, at)), ...keys.feed(whole.slice(at))]
			expect(pasted(typed), `cut at ${at}`).to.equal('a\nb')
			expect(sendsKeys(typed)).to.equal(false)
		}
	})

	it('several lines in one read are a paste even where the terminal does not mark it', () => {
		const { keys } = keysAt()
		expect(keys.feed('first\nsecond\n')).to.deep.equal([{ type: 'paste', text: 'first\nsecond\n' }])
		expect(keys.feed('only\n')).to.deep.equal([{ type: 'text', text: 'only\n' }])
	})

	it('no bytes inside a paste ever become a key', () => {
		fc.assert(
			fc.property(
				fc.array(fc.constantFrom('a', '\r', '\n', stop, start, '\u0003', '\u001b'), { maxLength: 12 }),
				(parts) => {
					const { keys } = keysAt()
					const typed = keys.feed(start + parts.join('') + stop)
					return typed.every((one) => one.type === 'paste')
				},
			),
			{ numRuns: 200 },
		)
	})

	it('a long or many-lined paste is a mark in the line and whole in the prompt', () => {
		const pastes = new Pastes()
		const plain = (text: string) => !text.includes('\u001b')
		expect(pastes.take('short', plain)).to.equal('short')
		const mark = pastes.take('one\ntwo', plain)
		expect(mark).to.equal('[paste 1: 2 lines]')
		expect(new Pastes().take('a\nb\nc\n', () => true)).to.equal('[paste 1: 3 lines]')
		const other = pastes.take('a\u001b[31mb', plain)
		expect(pastes.expand(`look: ${mark} and ${other} [paste 9: 2 lines]`)).to.equal(
			'look: one\ntwo and a\u001b[31mb [paste 9: 2 lines]',
		)
	})
})
