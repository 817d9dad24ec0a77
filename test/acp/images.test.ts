// Pictures from an editor: checked, sent, shown again; a bad one is refused and costs nothing.
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import type { Image, Message } from '../../src/engine/types.ts'
import { fakeModel, fakeSpec } from '../helpers/fakes.ts'
import { heic, jpeg, png } from '../helpers/pictures.ts'
import { removeTemp } from '../helpers/temp.ts'
import { closeEditors, type Editor, editor, errorOf } from './editor.ts'

const block = (bytes: Buffer, more: object = {}) => ({
	type: 'image' as const,
	data: bytes.toString('base64'),
	mimeType: 'image/png',
	...more,
})
const text = (words: string) => ({ type: 'text' as const, text: words })
const imagesIn = (messages: readonly Message[]): Image[] =>
	messages.flatMap((message) => message.blocks.flatMap((one) => (one.type === 'image' ? [one] : [])))
const ask = (e: Editor, sessionId: string, ...prompt: ContentBlock[]): Promise<{ stopReason: string }> =>
	e.agent.request('session/prompt', { sessionId, prompt })

describe('acp: pictures', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	it('offers to take images, and no sound', async () => {
		const e = await editor()
		expect(e.initialized.agentCapabilities?.promptCapabilities).to.deep.equal({
			image: true,
			audio: false,
			embeddedContext: true,
		})
		await e.close()
	})

	it('R02 image blocks and embedded image files go to the model by what their bytes are, named by their address', async () => {
		const e = await editor({ replies: [{ text: 'I see.' }] })
		const id = await e.session()
		const resource = { uri: 'file:///x/my%20photo.jpg', mimeType: 'image/png', blob: jpeg().toString('base64') }
		const done = await ask(e, id, text('compare'), block(png(8, 6)), { type: 'resource', resource })
		expect(done.stopReason).to.equal('end_turn')
		expect(imagesIn(e.model.requests[0]!.messages)).to.deep.equal([
			{
				type: 'image',
				mime: 'image/png',
				data: png(8, 6).toString('base64'),
				width: 8,
				height: 6,
				label: 'image 1, PNG 8×6',
			},
			{
				type: 'image',
				mime: 'image/jpeg',
				data: jpeg().toString('base64'),
				width: 16,
				height: 8,
				label: 'my photo.jpg, JPEG 16×8',
			},
		])
		await e.close()
	})

	it('R02 a picture alone is a prompt', async () => {
		const e = await editor({ replies: [{ text: 'I see.' }] })
		const id = await e.session()
		expect((await ask(e, id, block(png()))).stopReason).to.equal('end_turn')
		await e.close()
	})

	for (const [what, bad, words] of [
		['empty', block(Buffer.alloc(0)), 'empty'],
		['no base64', block(png(), { data: 'hello there' }), 'no valid base64'],
		['a data URL', block(png(), { data: `data:image/png;base64,${png().toString('base64')}` }), 'data URL'],
		['cut off', block(png(30, 30).subarray(0, 80)), 'cut off'],
		['a web page', block(Buffer.from('<!doctype html><p>404')), 'PNG, JPEG, GIF and WebP'],
		['HEIC', block(heic(), { mimeType: 'image/heic', uri: 'file:///a/photo.heic' }), 'photo.heic is a HEIC image'],
		['too large', block(png(8001, 2)), '8000'],
	] as const)
		it(`R02 R03 a picture that is ${what}: -32602 with words, and the session goes on as if nothing was`, async () => {
			const e = await editor({ replies: [{ text: 'first' }, { text: 'second' }] })
			const id = await e.session()
			await e.prompt(id, 'hello')
			const error = await errorOf(ask(e, id, text('look'), block(png(2, 2)), bad))
			expect([error.code, error.message], error.message).to.satisfy(
				([code, message]: [number, string]) => code === -32602 && message.includes(words),
			)
			expect(e.model.requests).to.have.length(1)
			expect((await e.prompt(id, 'go on')).stopReason).to.equal('end_turn')
			const said = JSON.stringify(e.model.requests[1]!.messages)
			expect(said).to.include('hello').and.include('go on').and.not.include('look')
			await e.close()
		})

	it('R02 more pictures than one request takes are refused by their number', async () => {
		const e = await editor({ replies: [{ text: 'ok' }] })
		const id = await e.session()
		const error = await errorOf(ask(e, id, ...Array.from({ length: 21 }, () => block(png()))))
		expect([error.code, error.message]).to.deep.equal([
			-32602,
			'Invalid params: 21 images are too many for one prompt; 20 go at most.',
		])
		expect((await ask(e, id, ...Array.from({ length: 20 }, () => block(png())))).stopReason).to.equal('end_turn')
		await e.close()
	})

	it('R02 a model that takes none: the prompt runs, the person is told, the label stands', async () => {
		const client = fakeModel([{ text: 'ok' }])
		const blind = await editor({ engine: { ports: { client, spec: fakeSpec({ images: false }) } } })
		const id = await blind.session()
		expect((await ask(blind, id, text('look'), block(png(8, 6)))).stopReason).to.equal('end_turn')
		expect(JSON.stringify(blind.updates())).to.include('Not shown to the model: image 1, PNG 8×6')
		await blind.close()
	})

	it('session/load shows the pictures of prompts again, after the words', async () => {
		const first = await editor({ replies: [{ text: 'I see.' }] })
		const id = await first.session()
		await ask(first, id, text('what is this?'), block(png(8, 6)))
		const { root, home } = first
		await first.close()
		const e = await editor({ place: { root, home } })
		await e.agent.request('session/load', { sessionId: id, cwd: root, mcpServers: [] })
		expect(e.only('user_message_chunk').map((one) => one.content)).to.deep.equal([
			{ type: 'text', text: 'what is this?' },
			{ type: 'image', data: png(8, 6).toString('base64'), mimeType: 'image/png' },
		])
		await e.close()
	})
})
