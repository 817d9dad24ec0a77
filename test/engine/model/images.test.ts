// Pictures on both wires: their exact form, how many go, and what happens when a server refuses one.
import { expect } from 'chai'
import { estimateTokens, imageTokens, messageChars, requestImages } from '../../../src/engine/budget.ts'
import { imageOf } from '../../../src/engine/files/image.ts'
import { aboutImages, learnImages } from '../../../src/engine/model/images.ts'
import { modelSpec, validRequest } from '../../../src/engine/model/index.ts'
import type { ProviderQuirks } from '../../../src/engine/model/provider.ts'
import type { Block, Image, Message, ModelEvent, ModelFailure } from '../../../src/engine/types.ts'
import { fatPng, gif, jpeg, png } from '../../helpers/pictures.ts'
import { anthropicStream, type Handler, openaiStream, type SseServer, startSse } from '../../helpers/sse-server.ts'
import { type Made, make, request, user } from './kit.ts'

type Wire = 'anthropic' | 'openai'
const wires: Wire[] = ['anthropic', 'openai']
const good = (wire: Wire) => ({
	body: wire === 'anthropic' ? anthropicStream({ text: 'I see.' }) : openaiStream({ text: 'I see.' }),
})
const refuse = (message: string, status = 400) => ({
	status,
	body: JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }),
})

const picture = (seed = 0, name = `p${seed}.png`): Promise<Image> => imageOf(png(4, 3, seed), name)
const asks = (text: string, ...images: Image[]): Message => ({
	role: 'user',
	blocks: [...images.map((image): Block => ({ type: 'image', ...image })), { type: 'text', text }],
})
const call = (id = 'call_1'): Message => ({
	role: 'assistant',
	blocks: [{ type: 'tool_call', id, name: 'read_file', input: { path: 'p.png' } }],
})
const shows = (id: string, ...images: Image[]): Message => ({
	role: 'user',
	blocks: [
		{
			type: 'tool_result',
			callId: id,
			status: 'ok',
			text: images.map((one) => `[image: ${one.label}]`).join('\n'),
			images,
		},
	],
})
const answered = (text = 'ok'): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })

describe('model/images', () => {
	let server: SseServer
	let made: Made
	afterEach(async () => {
		made?.close()
		await server?.close()
	})

	const open = async (wire: Wire, steps: Handler, over: Parameters<typeof make>[2] = {}) => {
		server = await startSse(steps)
		made = await make(wire, server.url, over)
	}
	const run = async (messages: Message[], model = 'test') => {
		const events: ModelEvent[] = []
		for await (const event of made.client.stream(request({ messages, model }), new AbortController().signal))
			events.push(event)
		return { last: events.at(-1)!, notices: events.flatMap((event) => (event.type === 'notice' ? [event.text] : [])) }
	}
	const sent = (n = server.requests.length - 1) => server.requests[n]!.body.messages as any[]

	it('R02 Anthropic gets image blocks in the user’s content and inside a tool result, and the cache marks stay', async () => {
		await open('anthropic', () => good('anthropic'))
		const [a, b] = [await picture(1), await imageOf(jpeg(), 'b.jpg')]
		await run([asks('look', a), call(), shows('call_1', b)])
		expect(sent()).to.deep.equal([
			{
				role: 'user',
				content: [
					{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: a.data } },
					{ type: 'text', text: 'look', cache_control: { type: 'ephemeral' } },
				],
			},
			{ role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'read_file', input: { path: 'p.png' } }] },
			{
				role: 'user',
				content: [
					{
						type: 'tool_result',
						tool_use_id: 'call_1',
						content: [
							{ type: 'text', text: '[image: b.jpg, JPEG 16×8]' },
							{ type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: b.data } },
						],
						cache_control: { type: 'ephemeral' },
					},
				],
			},
		])
	})

	it('R02 Chat Completions gets data URLs in user messages only; a tool’s pictures follow all tool messages', async () => {
		await open('openai', () => good('openai'))
		const [a, b, c] = [await picture(1), await imageOf(gif(), 'b.gif'), await picture(3)]
		const calls: Message = { role: 'assistant', blocks: [...call('one').blocks, ...call('two').blocks] }
		const results: Message = {
			role: 'user',
			blocks: [...shows('one', b).blocks, ...shows('two', c).blocks, { type: 'text', text: 'and now?' }],
		}
		await run([asks('look', a), calls, results])
		const url = (image: Image) => ({ type: 'image_url', image_url: { url: `data:${image.mime};base64,${image.data}` } })
		expect(sent().slice(1)).to.deep.equal([
			{ role: 'user', content: [url(a), { type: 'text', text: 'look' }] },
			{
				role: 'assistant',
				content: '',
				tool_calls: ['one', 'two'].map((id) => ({
					id,
					type: 'function',
					function: { name: 'read_file', arguments: '{"path":"p.png"}' },
				})),
			},
			{ role: 'tool', tool_call_id: 'one', content: '[image: b.gif, GIF 1×1]' },
			{ role: 'tool', tool_call_id: 'two', content: '[image: p3.png, PNG 4×3]' },
			{
				role: 'user',
				content: [
					{ type: 'text', text: 'Shown by the tools: b.gif, GIF 1×1; p3.png, PNG 4×3' },
					url(b),
					url(c),
					{ type: 'text', text: 'and now?' },
				],
			},
		])
	})

	it('a server that takes no user’s message after a tool’s gets a word of the assistant between, and keeps it', async () => {
		await open('openai', (_, n) => (n === 0 ? refuse("Unexpected role 'user' after role 'tool'") : good('openai')))
		const messages = [asks('look'), call('a12345678'), shows('a12345678', await picture())]
		for (const count of [2, 3]) {
			expect((await run(messages)).last.type).to.equal('end')
			expect(server.requests).to.have.length(count)
			expect(sent().map((one) => one.role)).to.deep.equal(['system', 'user', 'assistant', 'tool', 'assistant', 'user'])
		}
	})

	it('a picture’s base64 is no proof that a server read only part of a request', async () => {
		await open('openai', () => ({
			body: openaiStream({
				text: 'I see.',
				usage: { prompt_tokens: 2_000, completion_tokens: 5, total_tokens: 2_005 },
			}),
		}))
		const { last, notices } = await run([asks('look', await imageOf(fatPng(1_000_000), 'big.png'))])
		expect(last).to.not.have.property('detail')
		expect(notices).to.deep.equal([])
		// Words of that length are one.
		const words = await run([user('word '.repeat(200_000))])
		expect(words.last).to.have.property('detail', 'context_cut:2005')
	})

	it('where marks are set in parts, a text carries it, never a picture', async () => {
		await open('openai', () => good('openai'), { provider: { quirks: { cacheMarks: true } } })
		await run([asks('look'), call(), shows('call_1', await picture())])
		const { content } = sent().at(-1)
		expect(content.map((part: any) => [part.type, 'cache_control' in part])).to.deep.equal([
			['text', true],
			['image_url', false],
		])
	})

	it('without pictures the content stays a plain string, as servers want that take nothing else', async () => {
		await open('openai', () => good('openai'))
		await run([user('hi'), call(), shows('call_1')])
		for (const one of sent()) expect(one.content).to.be.a('string')
	})

	for (const wire of wires) {
		it(`R02 ${wire}: a model that takes none gets the label and a sentence, never base64`, async () => {
			await open(wire, () => good(wire), { spec: { images: false } })
			const image = await picture(1)
			await run([asks('look', image), call(), shows('call_1', image)])
			expect(server.requests[0]!.text).to.not.include(image.data)
			expect(server.requests[0]!.text.match(/p1\.png, PNG 4×3\. This model takes no images/g)).to.have.length(2)
		})

		it(`R02 ${wire}: a poisoned picture that the server names is left out, and the session goes on`, async () => {
			const [bad, fine] = [await picture(1), await picture(2)]
			await open(wire, (seen) =>
				seen.text.includes(bad.data)
					? refuse(`messages.${wire === 'openai' ? 1 : 0}.content.0.image.source.base64: invalid base64 data`)
					: good(wire),
			)
			const messages = [asks('look', bad), answered(), asks('and this', fine)]
			const { last, notices } = await run(messages)
			expect(last.type).to.equal('end')
			expect(server.requests).to.have.length(2)
			expect(notices.join()).to.contain('p1.png, PNG 4×3').and.not.contain('p2.png')
			expect(server.requests[1]!.text).to.include(fine.data)
			expect(server.requests[1]!.text).to.include('image left out: p1.png, PNG 4×3. The provider refused it.')
			// The next prompt is not refused once more.
			await run([...messages, answered(), asks('go on')])
			expect(server.requests).to.have.length(3)
			expect(server.requests[2]!.text).to.include(fine.data).and.not.include(bad.data)
		})

		for (const words of ['Could not process image', 'Invalid PNG image.', 'Image format image/png not supported'])
			it(`R02 ${wire}: "${words}" without a place: the newest goes, in a tool’s result too`, async () => {
				const [old, bad] = [await picture(1), await picture(2)]
				await open(wire, (seen) => (seen.text.includes(bad.data) ? refuse(words) : good(wire)))
				await run([asks('look', old)])
				const { last } = await run([asks('look', old), call(), shows('call_1', bad)])
				expect(last.type).to.equal('end')
				expect(server.requests).to.have.length(3)
				expect(server.requests[2]!.text).to.include(old.data).and.not.include(bad.data)
			})

		it(`R02 ${wire}: a refusal that says nothing of images: once without the new ones, and they are kept when it was not them`, async () => {
			const [bad, fine] = [await picture(1), await picture(2)]
			await open(wire, (seen, n) =>
				n === 0 || seen.text.includes(fine.data) ? refuse('Invalid request.') : good(wire),
			)
			expect((await run([asks('look', bad)])).last.type).to.equal('end')
			expect(server.requests).to.have.length(2)
			const { last } = await run([asks('look', bad), answered(), asks('again', fine)])
			expect(last.type).to.equal('end')
			await server.close()
			made.close()
			await open(wire, () => refuse('Invalid request.'))
			const failed = await run([asks('look', fine)])
			expect(failed.last.type).to.equal('error')
			expect(server.requests, 'one more try, not a loop').to.have.length(2)
			await run([asks('look', fine)])
			expect(server.requests[2]!.text, 'it was not the picture: sent again').to.include(fine.data)
		})

		it(`R02 ${wire}: whatever is refused, the tries end`, async () => {
			await open(wire, () => refuse('Could not process image'))
			const { last } = await run([asks('look', await picture(1)), answered(), asks('look', await picture(2))])
			expect(last.type).to.equal('error')
			expect((last as { error: ModelFailure }).error.badImage).to.equal(undefined)
			expect(server.requests.length).to.be.within(2, 4)
		})

		it(`R02 ${wire}: a server that takes no pictures at all is believed once`, async () => {
			await open(wire, (seen) =>
				/image_url|"source"/.test(seen.text) ? refuse('This model does not support image input.') : good(wire),
			)
			const messages = [asks('look', await picture(1), await picture(2))]
			const { last, notices } = await run(messages)
			expect(last.type).to.equal('end')
			expect(notices.join()).to.contain('takes no images')
			await run(messages)
			expect(server.requests).to.have.length(3)
		})

		it(`R02 ${wire}: never more than ${requestImages.count} pictures; the oldest become labels, in steps that leave the rest unchanged`, async () => {
			await open(wire, () => good(wire))
			const messages: Message[] = []
			const images: Image[] = []
			const counts: number[] = []
			for (let i = 0; i < 30; i++) {
				images.push(await picture(i + 1))
				messages.push(asks(`look ${i}`, images[i]!))
				await run(messages)
				counts.push(images.filter((image) => server.requests.at(-1)!.text.includes(image.data)).length)
				messages.push(answered())
			}
			expect(Math.max(...counts)).to.equal(requestImages.count)
			expect(counts.at(-1)).to.be.at.least(requestImages.count * 0.75 - 1)
			expect(server.requests.at(-1)!.text).to.include('image left out: p1.png').and.include(images[29]!.data)
			const changes = counts.filter((count, i) => i > 0 && count < counts[i - 1]!)
			expect(changes.length, 'the beginning changes seldom').to.be.at.most(2)
		})
	}

	it('R02 never more than 16 MB of base64 together', async () => {
		await open('anthropic', () => good('anthropic'))
		const images = await Promise.all([1, 2, 3, 4, 5].map((n) => imageOf(fatPng(3_800_000 + n), `big${n}.png`)))
		await run([asks('look', ...images)])
		expect(server.requests[0]!.text.length).to.be.below(17 << 20)
		expect(server.requests[0]!.text).to.include('big1.png').and.include('Only the newest')
		expect(server.requests[0]!.text.endsWith('}')).to.equal(true)
	}).timeout(60_000)

	it('thinking made before an old picture went is not sent: it is bound to what stood there', () => {
		const image = (n: number): Image => ({
			mime: 'image/png',
			data: png(4, 3, n).toString('base64'),
			width: 4,
			height: 3,
			label: `p${n}`,
		})
		const thought = (text: string): Message => ({
			role: 'assistant',
			blocks: [
				{
					type: 'thinking',
					text,
					provider: 'p',
					model: 'm',
					raw: { type: 'thinking', thinking: text, signature: 's' },
				},
				{ type: 'text', text: 'ok' },
			],
		})
		const target = { provider: 'p', model: 'm', images: { taken: true, max: 2 } }
		const kept = (messages: Message[]) =>
			validRequest(messages, target).flatMap(({ blocks }) =>
				blocks.flatMap((one) => (one.type === 'thinking' ? [one.text] : [])),
			)
		const two = [asks('a', image(1)), thought('one'), asks('b', image(2)), thought('two')]
		expect(kept([...two, user('go on')])).to.deep.equal(['one', 'two'])
		const three = [...two, asks('c', image(3)), thought('three'), user('go on')]
		expect(kept(three)).to.deep.equal(['three'])
	})

	it('R02 pictures that were changed in a stored history become labels before any request', async () => {
		await open('anthropic', () => good('anthropic'))
		const image = await picture(1)
		const broken = [
			{ ...image, data: '' },
			{ ...image, data: '[left out: a text that is missing]' },
			{ ...image, mime: 'image/heic' as 'image/png' },
			{ ...image, data: image.data.slice(0, 40) },
		]
		await run([asks('look', ...broken), call(), shows('call_1', ...broken)])
		expect(server.requests[0]!.text.match(/It is damaged/g)).to.have.length(8)
		expect(server.requests[0]!.text).to.not.match(/"type":"image"/)
	})

	it('a failed result carries words only', () => {
		const block: Block = { type: 'tool_result', callId: 'call_1', status: 'failed', text: 'no', images: [] }
		const image: Image = { mime: 'image/gif', data: gif().toString('base64'), width: 1, height: 1, label: 'x' }
		const [, , results] = validRequest([user('a'), call(), { role: 'user', blocks: [{ ...block, images: [image] }] }], {
			provider: 'p',
			model: 'm',
		})
		expect(results!.blocks[0]).to.not.have.property('images')
	})

	it('learns from the words of many servers', () => {
		const failure = (message: string, status = 400): ModelFailure => ({
			code: 'invalid_request',
			message,
			status,
			retryable: false,
			streamed: false,
		})
		const learnt = (message: string, status?: number, count = 30): ProviderQuirks | null => {
			const quirks: ProviderQuirks = {}
			return learnImages(quirks, failure(message, status), count) ? quirks : null
		}
		for (const [text, status] of [
			['image input is not supported - hint: if this is unexpected, you may need to provide the mmproj', 500],
			['messages[1]: unknown variant `image_url`, expected `text` at line 1 column 90', 400],
			['No endpoints found that support image input', 404],
			['Invalid content type. image_url is only supported by certain models.', 400],
			['this model is missing data required for image input', 500],
			['This model does not support images', 400],
			['m is not a multimodal model', 400],
		] as const)
			expect(learnt(text, status), text).to.deep.equal({ images: false })
		expect(learnt('At most 1 image(s) may be provided in one prompt.')).to.deep.equal({ maxImages: 1 })
		expect(learnt('Too many images: the maximum number of 12 images is exceeded')).to.deep.equal({ maxImages: 12 })
		for (const text of [
			'messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes',
			'At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels',
			'messages.11.content.8.image.source.base64.data: Image format image/png not supported',
			'Could not process image',
			'prompt is too long: 300 tokens > 200 maximum',
		])
			expect(learnt(text), text).to.equal(null)
		expect(learnt('This model does not support images', 429)).to.equal(null)
		expect(learnt('This model does not support images', 400, 0)).to.equal(null)
		expect(aboutImages('tools.3.name: too long')).to.equal(false)
	})

	it('which models take pictures is data, and models.json wins', () => {
		expect(modelSpec('anthropic', 'claude-sonnet-5-5').images).to.equal(true)
		expect(modelSpec('openai', 'gpt-5.2').images).to.equal(true)
		expect(modelSpec('openai', 'o3-mini').images).to.equal(false)
		expect(modelSpec('ollama', 'qwen3-coder').images).to.equal(undefined)
		expect(modelSpec('openai', 'gpt-5.2', { images: false }).images).to.equal(false)
		expect(modelSpec('ollama', 'qwen3-vl', { images: true }).images).to.equal(true)
	})

	it('weighs a picture by its pixels, not by its base64', async () => {
		const big = await imageOf(fatPng(3_000_000), 'big.png')
		expect(estimateTokens(messageChars([asks('', big)]))).to.be.below(100)
		expect(imageTokens({ width: 1500, height: 1000 })).to.equal(2000)
		expect(imageTokens({ width: 8000, height: 8000 })).to.be.below(5000)
		expect(messageChars([shows('c', big)])).to.be.below(1000)
	})
})
