// A provider's list, whatever its form: ids, windows, prices; and what of it goes into models.json.
import { expect } from 'chai'
import { factsOf, figures, readList } from '../../../src/engine/setup/listed.ts'

const today = '2026-11-30'
const one = (entry: object) => readList({ data: [entry] }, today)![0]!

describe('setup: lists of models', () => {
	it('reads every known shape of a list, and nothing else', () => {
		for (const body of [{ data: [{ id: 'a' }] }, { models: [{ name: 'a' }] }, [{ id: 'a' }]])
			expect(readList(body, today)!.map((model) => model.id)).to.deep.equal(['a'])
		for (const body of [null, 'text', 3, {}, { data: 'x' }, { error: 'no' }])
			expect(readList(body, today)).to.equal(null)
		expect(readList({ data: [] }, today)).to.deep.equal([])
	})

	it('finds the window under each name that servers use', () => {
		for (const name of ['context_length', 'context_window', 'max_context_length', 'max_model_len', 'max_input_tokens'])
			expect(one({ id: 'a', [name]: 65_536 }).window, name).to.equal(65_536)
		expect(one({ id: 'a', meta: { n_ctx_train: 32_768 } }).window).to.equal(32_768)
		for (const odd of ['many', -1, 0, 1.5, 1e12, null])
			expect(one({ id: 'a', context_length: odd }).window).to.equal(undefined)
	})

	it('prices a token in dollars become dollars a million; a price that is not known stays unknown', () => {
		const priced = (pricing: object) => one({ id: 'a', pricing }).price
		expect(priced({ prompt: '0.000003', completion: '0.000015', input_cache_read: '0.0000003' })).to.deep.equal({
			input: 3,
			output: 15,
			cacheRead: 0.3,
			cacheWrite: 3,
			date: today,
		})
		expect(priced({ prompt: '0', completion: '0' })!.output).to.equal(0)
		for (const odd of [
			{ prompt: '-1', completion: '-1' },
			{ prompt: '0.1' },
			{ prompt: 'x', completion: 'y' },
			{ prompt: '', completion: '' },
		])
			expect(priced(odd), JSON.stringify(odd)).to.equal(undefined)
	})

	it('leaves out what cannot hold a conversation or call tools', () => {
		const ids = readList(
			{
				data: [
					{ id: 'chat-1' },
					{ id: 'text-embedding-3' },
					{ id: 'whisper-large' },
					{ id: 'gpt-image-2' },
					{ id: 'mistral-x', capabilities: { completion_chat: false } },
					{ id: 'no-tools', supported_parameters: ['temperature'] },
					{ id: 'tools', supported_parameters: ['tools'] },
					{ id: 'old', active: false },
				],
			},
			today,
		)!.map((model) => model.id)
		expect(ids).to.have.members(['chat-1', 'tools'])
	})

	it('a hostile list: ids that are no ids are dropped, titles are made visible, no more than 5,000 are taken', () => {
		const list = readList(
			{ data: [{ id: 'a b' }, { id: '\u001b[2J' }, { id: 7 }, null, { id: 'ok', name: 'ok\u001b[31m\u202e!' }] },
			today,
		)!
		expect(list.map((model) => model.id)).to.deep.equal(['ok'])
		expect(list[0]!.title).to.not.match(/[\u001b\u202e]/)
		expect(readList({ data: Array.from({ length: 9_000 }, (_, i) => ({ id: `m${i}` })) }, today)).to.have.length(5_000)
		expect(readList({ data: [{ id: '__proto__' }, { id: 'constructor' }] }, today)).to.have.length(2)
	})

	it('newest first; "models/" before an id is no part of it', () => {
		const list = readList(
			{
				data: [
					{ id: 'models/gemini-9', created: 1 },
					{ id: 'b', created: 3 },
					{ id: 'c', created_at: '2026-01-01T00:00:00Z' },
				],
			},
			today,
		)!
		expect(list.map((model) => model.id)).to.deep.equal(['c', 'b', 'gemini-9'])
	})

	it('shows window and price in a few words, by the catalogue where the list says nothing', () => {
		expect(figures('anthropic', { id: 'claude-sonnet-5-5', created: 0 })).to.equal('1M context · $2 in, $10 out')
		expect(figures('x', { id: 'a', window: 131_072, created: 0 })).to.equal('131k context')
		expect(figures('x', { id: 'a', created: 0 })).to.equal('')
		expect(
			figures('x', { id: 'a', created: 0, price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, date: today } }),
		).to.equal('free')
		expect(figures('x', { id: 'a', created: 0, window: 8192 }, { window: 4096 })).to.equal('4.1k context')
	})

	it('R02 whether a model takes pictures, in the forms of many lists; kept only where the catalogue says nothing', () => {
		const told = (entry: object) => readList({ data: [{ id: 'm', ...entry }] }, today)![0]!.images
		for (const [entry, images] of [
			[{ architecture: { input_modalities: ['text', 'image'] } }, true],
			[{ architecture: { input_modalities: ['text'] } }, false],
			[{ capabilities: { vision: true, completion_chat: true } }, true],
			[{ capabilities: ['completion', 'multimodal'] }, true],
			[{ capabilities: ['completion'] }, false],
			[{ capabilities: { image_input: { supported: true } } }, true],
			[{ supports_image_in: false }, false],
			[{ type: 'vlm' }, true],
			[{ capabilities: 'vision' }, undefined],
			[{}, undefined],
		] as const)
			expect(told(entry), JSON.stringify(entry)).to.equal(images)
		// llama.cpp: two lists.
		const two = {
			data: [{ id: 'a.gguf' }, { id: 'b' }],
			models: [{ name: 'a.gguf', capabilities: ['completion', 'multimodal'] }, 7],
		}
		expect(readList(two, today)!.map((one) => one.images)).to.deep.equal([true, undefined])
		expect(factsOf('x', { id: 'm', images: true, created: 0 }, true)).to.deep.equal({ images: true })
		expect(factsOf('x', { id: 'm', images: false, created: 0 }, true)).to.deep.equal({})
		expect(factsOf('x', { id: 'm', images: false, created: 0 }, false)).to.deep.equal({ images: false })
		expect(factsOf('anthropic', { id: 'claude-sonnet-5-5', images: true, created: 0 }, false)).to.deep.equal({})
	})

	it('keeps only what the catalogue does not know, and leaves room for a conversation', () => {
		expect(factsOf('anthropic', { id: 'claude-sonnet-5-5', window: 200_000, created: 0 }, false)).to.deep.equal({})
		expect(factsOf('x', { id: 'a', window: 100_000, maxOutput: 100_000, created: 0 }, false)).to.deep.equal({
			window: 100_000,
			maxOutput: 25_000,
		})
		// What a local server lists is what the model was made for, not what the server was started with.
		expect(factsOf('ollama', { id: 'a', window: 262_144, created: 0 }, true)).to.deep.equal({})
	})
})
