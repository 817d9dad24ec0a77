// What leaves for a provider is always a conversation that it takes, whatever history holds.
import { expect } from 'chai'
import fc from 'fast-check'
import { type Target, validRequest } from '../../../src/engine/model/valid-request.ts'
import type { Block, Message } from '../../../src/engine/types.ts'
import { user } from './kit.ts'

const target: Target = { provider: 'anthropic', model: 'm' }
const thinking = (over: object = {}): Block => ({
	type: 'thinking',
	text: 'hm',
	provider: 'anthropic',
	model: 'm',
	raw: { type: 'thinking', thinking: 'hm', signature: 'S1' },
	...over,
})
const call = (id: string, name = 'read_file'): Block => ({ type: 'tool_call', id, name, input: {} })
const result = (callId: string, text = 'ok'): Block => ({ type: 'tool_result', callId, status: 'ok', text })
const says = (...blocks: Block[]): Message => ({ role: 'assistant', blocks })
const gives = (...blocks: Block[]): Message => ({ role: 'user', blocks })

describe('valid request', () => {
	it('closes a call with no result, drops a result with no call, orders results as the calls', () => {
		const out = validRequest(
			[user('a'), says(call('1'), call('2'), call('3')), gives(result('3'), result('9'), result('1'))],
			target,
		)
		expect(out[2]!.blocks.map((block) => block.type === 'tool_result' && [block.callId, block.status])).to.deep.equal([
			['1', 'ok'],
			['2', 'cancelled'],
			['3', 'ok'],
		])
	})

	it('S13 pairs by place: an id used again is its own call', () => {
		const out = validRequest(
			[user('a'), says(call('1')), gives(result('1', 'first')), says(call('1')), user('go on')],
			target,
		)
		expect(out[4]!.blocks[0]).to.include({ type: 'tool_result', status: 'cancelled' })
		expect(out[2]!.blocks[0]).to.include({ text: 'first', status: 'ok' })
		const ids = out.flatMap((m) => m.blocks.flatMap((b) => (b.type === 'tool_call' ? [b.id] : [])))
		expect(new Set(ids).size).to.equal(2)
	})

	it('S13 the same id twice in one reply gets both results, in order', () => {
		const out = validRequest([user('a'), says(call('1'), call('1')), gives(result('1', 'x'), result('1', 'y'))], target)
		expect(out[2]!.blocks.map((block) => block.type === 'tool_result' && block.text)).to.deep.equal(['x', 'y'])
	})

	it('S16 foreign, incomplete and refused thinking is left out; the own is the same object', () => {
		const own = thinking()
		const out = validRequest(
			[
				user('a'),
				says(
					own,
					thinking({ model: 'other' }),
					thinking({ provider: 'local' }),
					thinking({ raw: { type: 'thinking', thinking: 'x' } }),
					thinking({ raw: null }),
					{ type: 'text', text: 'b' },
				),
				user('c'),
			],
			target,
		)
		expect(out[1]!.blocks).to.have.length(2)
		expect(out[1]!.blocks[0]).to.equal(own)
		const stripped = validRequest([user('a'), says(own, { type: 'text', text: 'b' }), user('c')], {
			...target,
			stripThinking: true,
		})
		expect(stripped[1]!.blocks.map((block) => block.type)).to.deep.equal(['text'])
	})

	it('S16 thinking whose words were not shown has a signature and stays as it is', () => {
		const omitted = thinking({ text: '', raw: { type: 'thinking', thinking: '', signature: 'S2' } })
		const redacted = thinking({ text: '', raw: { type: 'redacted_thinking', data: 'abc' } })
		const out = validRequest([user('a'), says(omitted, redacted, call('1')), gives(result('1'))], target)
		expect(out[1]!.blocks.slice(0, 2)).to.deep.equal([omitted, redacted])
	})

	it('S17 blank texts go, an empty result says so, an empty message joins its neighbours', () => {
		const out = validRequest(
			[user('a'), says({ type: 'text', text: ' \n' }), user(' '), user('b'), says(call('1')), gives(result('1', ''))],
			target,
		)
		expect(out.map((m) => m.role)).to.deep.equal(['user', 'assistant', 'user'])
		expect(out[0]!.blocks).to.have.length(2)
		expect(out[2]!.blocks[0]).to.include({ text: '(no output)' })
	})

	it('S20 a text cut inside an emoji is whole Unicode again, in names and nested inputs too', () => {
		const half = '🌍'.slice(0, 1)
		const input = { [`k${half}`]: ['\0', { deep: half }] }
		const out = validRequest(
			[user(`x${half}`), says({ type: 'tool_call', id: '1', name: 'f', input }), gives(result('1', half))],
			target,
		)
		const text = JSON.stringify(out)
		expect(text).to.not.match(/\\ud83c|\\u0000/)
		expect(text).to.include('\ufffd')
	})

	it('ids become what the target allows, always the same ones', () => {
		const history = [
			user('a'),
			says(call('toolu_01ABCDEFGH'), call('weird id!')),
			gives(result('toolu_01ABCDEFGH'), result('weird id!')),
		]
		const short = validRequest(history, { ...target, shortIds: true })
		for (const block of short[1]!.blocks)
			expect(block)
				.to.have.property('id')
				.that.matches(/^[a-zA-Z0-9]{9}$/)
		expect(validRequest(history, { ...target, shortIds: true })).to.deep.equal(short)
		const plain = validRequest(history, target)
		expect(plain[1]!.blocks.map((block) => block.type === 'tool_call' && block.id)).to.deep.equal([
			'toolu_01ABCDEFGH',
			'weird_id_',
		])
		expect(plain[2]!.blocks.map((block) => block.type === 'tool_result' && block.callId)).to.deep.equal([
			'toolu_01ABCDEFGH',
			'weird_id_',
		])
	})

	it('a server tool that was never answered stays only where the provider paused', () => {
		const begun: Block = {
			type: 'opaque',
			provider: 'anthropic',
			raw: { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
		}
		const paused = validRequest([user('a'), says(begun)], target)
		expect(paused.map((m) => m.role)).to.deep.equal(['user', 'assistant'])
		const later = validRequest([user('a'), says(begun, { type: 'text', text: 'b' }), user('c')], target)
		expect(later[1]!.blocks.map((block) => block.type)).to.deep.equal(['text'])
	})

	const text = fc.oneof(
		fc.constantFrom('', ' ', 'hello', '\ud83c', 'a\0b'),
		fc.string({ maxLength: 8, unit: 'binary' }),
	)
	const id = fc.constantFrom('call_1', 'call_1', 'call_2', 'x y', '', 'toolu_01')
	const block: fc.Arbitrary<Block> = fc.oneof(
		text.map((t): Block => ({ type: 'text', text: t })),
		fc.tuple(id, text, text).map(([i, name, value]): Block => ({ type: 'tool_call', id: i, name, input: { value } })),
		fc.tuple(id, text).map(([i, t]) => result(i, t)),
		fc.constantFrom(thinking(), thinking({ model: 'x' }), thinking({ raw: {} })),
		fc.constantFrom<Block>(
			{ type: 'opaque', provider: 'anthropic', raw: { type: 'server_tool_use', id: 'q' } },
			{ type: 'opaque', provider: 'other', raw: 1 },
		),
	)
	const messages = fc.array(
		fc.record({
			role: fc.constantFrom('user' as const, 'assistant' as const),
			blocks: fc.array(block, { maxLength: 5 }),
		}),
		{ maxLength: 8 },
	)

	it('any history becomes a conversation with every rule kept, twice is the same as once', () => {
		fc.assert(
			fc.property(messages, fc.boolean(), (history, shortIds) => {
				const before = JSON.stringify(history)
				const to = { ...target, shortIds }
				const out = validRequest(history, to)
				expect(JSON.stringify(history)).to.equal(before)
				expect(out[0]!.role).to.equal('user')
				const seen = new Set<string>()
				out.forEach((message, i) => {
					expect(message.role).to.equal(i % 2 ? 'assistant' : 'user')
					expect(message.blocks.length).to.be.greaterThan(0)
					const calls = message.blocks.flatMap((b) => (b.type === 'tool_call' ? [b.id] : []))
					for (const one of calls) {
						expect(seen.has(one)).to.equal(false)
						seen.add(one)
						expect(one).to.match(shortIds ? /^[a-zA-Z0-9]{9}$/ : /^[a-zA-Z0-9_-]{1,64}$/)
					}
					const results = (out[i + 1]?.blocks ?? []).flatMap((b) => (b.type === 'tool_result' ? [b.callId] : []))
					if (message.role === 'assistant') expect(results).to.deep.equal(calls)
					let words = false
					for (const b of message.blocks) {
						if (b.type === 'text') expect(b.text.trim()).to.not.equal('')
						if (b.type === 'tool_result') expect(words, 'results come first').to.equal(false)
						else words = true
						if (b.type === 'tool_call') expect(b.name).to.match(/^[a-zA-Z0-9_-]{1,128}$/)
					}
				})
				const last = out[out.length - 1]!
				if (last.role === 'assistant') expect(last.blocks.some((b) => b.type === 'opaque')).to.equal(true)
				expect(JSON.stringify(out)).to.not.match(/\\ud[89a-f]|\\u0000/i)
				expect(validRequest(out, to)).to.deep.equal(out)
			}),
			{ seed: 20261130, numRuns: 400 },
		)
	})
})
