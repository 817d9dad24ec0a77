// Pictures in a conversation: brought in, kept, resumed, shown by their labels, and never able to stop it.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { EngineOptions, OpenOptions, Session } from '../../src/engine/api.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { imageOf } from '../../src/engine/files/image.ts'
import { History } from '../../src/engine/history.ts'
import { replaySession } from '../../src/engine/inspect/replay.ts'
import { validRequest } from '../../src/engine/model/index.ts'
import { specAt } from '../../src/engine/pictures.ts'
import { scrub } from '../../src/engine/session/records.ts'
import type { AgentEvent, Block, Image, Message, ModelFailure, PromptInput } from '../../src/engine/types.ts'
import { type FakeModel, fakeModel, fakeSpec, only, type Reply } from '../helpers/fakes.ts'
import { fatPng, jpeg, png } from '../helpers/pictures.ts'
import { removeTemp, tempProject } from '../helpers/temp.ts'

const closing: (() => Promise<void>)[] = []
const target = { provider: 'p', model: 'm' }
const blocksOf = (messages: readonly Message[]): Block[] => messages.flatMap((message) => message.blocks)
const imagesIn = (messages: readonly Message[]): Image[] =>
	blocksOf(messages).flatMap((block): Image[] =>
		block.type === 'image' ? [block] : block.type === 'tool_result' ? (block.images ?? []) : [],
	)
const textIn = (messages: readonly Message[]): string =>
	blocksOf(messages)
		.map((block) => ('text' in block ? block.text : ''))
		.join('\n')
const read = (path: string): Reply => ({ calls: [{ name: 'read_file', input: { path } }] })

function place(files: Record<string, string | Uint8Array>) {
	const at = tempProject(files)
	return {
		...at,
		async open(
			replies: Parameters<typeof fakeModel>[0],
			how?: OpenOptions,
			more: Partial<EngineOptions> = {},
		): Promise<{ session: Session; model: FakeModel; garuda: ReturnType<typeof createEngine> }> {
			const model = fakeModel(replies)
			const garuda = createEngine({
				...at,
				env: { PATH: process.env.PATH },
				approver: { ask: async () => ({ choice: 'deny' }) },
				hostname: 'test',
				uid: process.getuid!(),
				ports: { client: model, spec: fakeSpec() },
				...more,
			})
			closing.push(() => garuda.close())
			return { session: await garuda.open(how), model, garuda }
		},
		sessions: join(at.root, '.garuda', 'sessions'),
	}
}

const say = async (session: Session, prompt: PromptInput | string) => {
	const events: AgentEvent[] = []
	const turn = session.prompt(prompt)
	for await (const event of turn) events.push(event)
	return { end: await turn.end, events }
}

/** Everything below a folder, as one text. */
const allText = (folder: string): string =>
	existsSync(folder)
		? readdirSync(folder, { recursive: true, withFileTypes: true })
				.filter((one) => one.isFile())
				.map((one) => readFileSync(join(one.parentPath, one.name), 'latin1'))
				.join('\n')
		: ''

describe('pictures in a session', () => {
	afterEach(async () => {
		for (const close of closing.splice(0)) await close()
		removeTemp()
	})

	it('R02 read_file gives the picture with its result; words, events and the audit log hold the label only', async () => {
		const at = place({ 'shot.png': png(20, 10) })
		const { session, model } = await at.open([read('shot.png'), { text: 'A square.' }])
		const { end, events } = await say(session, 'look')
		expect(end.reason).to.equal('done')
		const [result] = blocksOf(model.requests[1]!.messages).filter((block) => block.type === 'tool_result')
		expect(result).to.deep.include({ status: 'ok', text: '[image: shot.png, PNG 20×10]' })
		expect(imagesIn(model.requests[1]!.messages).map((one) => one.data)).to.deep.equal([png(20, 10).toString('base64')])
		const data = png(20, 10).toString('base64')
		expect(JSON.stringify(only(events, 'tool_result')))
			.to.include('PNG 20×10')
			.and.not.include(data)
		await session.close()
		expect(allText(join(at.home, '.garuda')))
			.to.include('read_file')
			.and.not.include(data)
	})

	it('A01 a mentioned picture goes with the prompt, and the person is told which', async () => {
		const at = place({ 'shots/a b.png': png(8, 8), 'photo.jpg': jpeg(), 'n.txt': 'words\n' })
		const { session, model } = await at.open([{ text: 'ok' }])
		const { events } = await say(session, 'compare @"shots/a b.png" with @photo.jpg and @n.txt')
		const { messages } = model.requests[0]!
		expect(imagesIn(messages).map((one) => one.label)).to.deep.equal(['shots/a b.png, PNG 8×8', 'photo.jpg, JPEG 16×8'])
		expect(textIn(messages)).to.match(/<garuda-attached path="photo.jpg">\n\[image: photo.jpg, JPEG 16×8\]/)
		expect(only(events, 'notice').map((one) => one.text)).to.deep.equal([
			'Attached: shots/a b.png, PNG 8×8; photo.jpg, JPEG 16×8.',
		])
	})

	it('what a person put in by hand is not told back to them; only what a mention became', async () => {
		const at = place({ 'shot.png': png(8, 8) })
		const { session, model } = await at.open([{ text: 'ok' }, { text: 'ok' }])
		const image = await imageOf(png(5, 5), 'mine.png')
		const { events } = await say(session, { text: 'look', images: [image] })
		expect(only(events, 'notice')).to.deep.equal([])
		const both = await say(session, { text: 'and @shot.png', images: [image] })
		expect(only(both.events, 'notice').map((one) => one.text)).to.deep.equal(['Attached: shot.png, PNG 8×8.'])
		expect(imagesIn(model.requests[1]!.messages).map((one) => one.width)).to.deep.equal([5, 5, 8])
		const [first, second] = [
			textIn(model.requests[1]!.messages).indexOf('image: mine.png', 50),
			textIn(model.requests[1]!.messages).indexOf('image: shot.png'),
		]
		expect(first, 'the text names them in their order').to.be.below(second)
	})

	it('R02 a damaged picture in a prompt, mentioned or given, sends nothing of it', async () => {
		const at = place({ 'cut.png': png(30, 30).subarray(0, 60) })
		const { session, model } = await at.open([{ text: 'ok' }])
		const { events } = await say(session, 'look at @cut.png')
		expect(only(events, 'notice')[0]!.text).to.contain('cut.png').and.contain('cut off')
		expect(imagesIn(model.requests[0]!.messages)).to.deep.equal([])
		const image = await imageOf(png(), 'x.png')
		expect(() => session.prompt({ text: 'a', images: [{ ...image, data: image.data.slice(8) }] })).to.throw('damaged')
		expect(() => session.prompt({ text: ' ', images: [] })).to.throw('empty')
		expect(() => session.prompt({ text: 'a', images: Array(21).fill(image) })).to.throw('21 images are too many')
		const big = await imageOf(fatPng(3_800_000), 'big.png')
		expect(() => session.prompt({ text: 'a', images: [big, big, big, big] })).to.throw('16 MB')
	})

	it('a prompt of a picture alone is a turn, named by it', async () => {
		const at = place({})
		const { session } = await at.open([{ text: 'ok' }])
		const { end } = await say(session, { text: '', images: [await imageOf(png(), 'shot.png')] })
		expect(end.reason).to.equal('done')
		expect(session.status().title).to.contain('shot.png')
		expect(session.history().filter((one) => one.type === 'user_text')[0]).to.deep.equal({
			type: 'user_text',
			text: '[image: shot.png, PNG 4×3]',
		})
	})

	it('R02 a model that takes none: read_file refuses with the reason, a prompt’s picture is named to both', async () => {
		const at = place({ 'shot.png': png() })
		const model = fakeModel([read('shot.png'), { text: 'I cannot.' }, { text: 'ok' }])
		const spec = fakeSpec({ images: false })
		const { session } = await at.open([], undefined, { ports: { client: model, spec } })
		const { events } = await say(session, { text: 'look', images: [await imageOf(png(9, 9), 'mine.png')] })
		expect(only(events, 'notice')[0]).to.deep.include({ level: 'warning' })
		expect(only(events, 'notice')[0]!.text).to.contain('mine.png, PNG 9×9').and.contain('fake/m takes no images')
		expect(only(events, 'tool_result')[0]).to.deep.include({ status: 'failed' })
		expect(only(events, 'tool_result')[0]!.text).to.contain('takes no images')
		const mention = await say(session, 'and @shot.png?')
		expect(
			only(mention.events, 'notice')
				.map((one) => one.text)
				.join(),
		)
			.to.contain('not attached')
			.and.contain('no images')
	})

	it('after a change of model the new one counts', async () => {
		const at = place({ 'shot.png': png(8, 8) })
		const blind = fakeModel([read('shot.png'), { text: 'no' }])
		const sees = fakeModel([read('shot.png'), { text: 'yes' }])
		const clients = {
			blind: async () => ({ client: blind, spec: fakeSpec({ id: 'blind', images: false }) }),
			sees: async () => ({ client: sees, spec: fakeSpec({ id: 'sees', images: true }) }),
		}
		const { session } = await at.open([], undefined, { ports: {}, clients, model: 'blind' })
		const first = await say(session, 'look')
		expect(only(first.events, 'tool_result')[0]!.status).to.equal('failed')
		await session.setModel('sees')
		const second = await say(session, 'look again')
		expect(only(second.events, 'tool_result')[0]!.status).to.equal('ok')
		expect(imagesIn(sees.requests[1]!.messages)).to.have.length(1)
		await session.setModel('blind')
	})

	it('a model of a server on this machine is shown none where nothing is known of it; others are tried', () => {
		const spec = fakeSpec()
		for (const url of [
			'http://127.0.0.1:11434/v1',
			'http://localhost:1234/v1',
			'http://box.lan:8080/v1',
			'https://[::1]/v1',
		])
			expect(specAt(spec, url).images, url).to.equal(false)
		expect(specAt(spec, 'https://api.example.com/v1').images).to.equal(undefined)
		expect(specAt({ ...spec, images: true }, 'http://127.0.0.1:11434/v1').images).to.equal(true)
	})

	it('a resume sends the same pictures again, large ones from beside the journal', async () => {
		const big = fatPng(600_000)
		const at = place({ 'big.png': big, 'small.png': png(5, 5) })
		const first = await at.open([read('big.png'), { text: 'seen' }])
		await say(first.session, 'look at @small.png')
		await first.garuda.close()
		const journal = readFileSync(join(at.sessions, `${first.session.id}.jsonl`), 'utf8')
		expect(journal.length, 'the large one is not in a line').to.be.below(100_000)
		const second = await at.open([{ text: 'still there' }], { resume: first.session.id })
		await say(second.session, 'and now?')
		expect(imagesIn(second.model.requests[0]!.messages).map((one) => one.data)).to.deep.equal([
			png(5, 5).toString('base64'),
			big.toString('base64'),
		])
	})

	for (const [how, spoil] of [
		['gone', (file: string) => rmSync(file)],
		['changed', (file: string) => writeFileSync(file, JSON.stringify('AAAA'))],
		['cut', (file: string) => writeFileSync(file, readFileSync(file).subarray(0, 1000))],
	] as const)
		it(`R02 a stored picture that is ${how}: its label stands, nothing else is lost`, async () => {
			const at = place({ 'big.png': fatPng(600_000) })
			const first = await at.open([read('big.png'), { text: 'seen' }])
			await say(first.session, 'look')
			await first.garuda.close()
			const store = join(at.sessions, `${first.session.id}.d`)
			for (const name of readdirSync(store)) spoil(join(store, name))
			const second = await at.open([{ text: 'ok' }], { resume: first.session.id })
			const { end } = await say(second.session, 'go on')
			expect(end.reason).to.equal('done')
			const { messages } = second.model.requests[0]!
			expect(imagesIn(messages)).to.deep.equal([])
			expect(textIn(messages)).to.include('image left out: big.png, PNG 4×3').and.include('look').and.include('seen')
			expect(second.session.notices.join()).to.include('missing or changed')
		})

	it('R02 a picture block of a journal that somebody wrote by hand is never sent', async () => {
		const at = place({})
		const first = await at.open([{ text: 'seen' }])
		await say(first.session, { text: 'look', images: [await imageOf(png(7, 7), 'a.png')] })
		await first.garuda.close()
		const file = join(at.sessions, `${first.session.id}.jsonl`)
		const data = png(7, 7).toString('base64')
		writeFileSync(file, readFileSync(file, 'utf8').replace(data, 'PGh0bWw+'))
		const second = await at.open([{ text: 'ok' }], { resume: first.session.id })
		await say(second.session, 'go on')
		expect(JSON.stringify(second.model.requests[0]!.messages)).to.not.include('PGh0bWw+')
		expect(textIn(second.model.requests[0]!.messages)).to.include('image left out: a.png')
	})

	it('a session from before pictures reads as ever', async () => {
		const at = place({ 'a.txt': 'hello\n' })
		const first = await at.open([read('a.txt'), { text: 'hello' }])
		await say(first.session, 'read')
		await first.garuda.close()
		expect(readFileSync(join(at.sessions, `${first.session.id}.jsonl`), 'utf8')).to.not.include('"images"')
		const second = await at.open([{ text: 'ok' }], { resume: first.session.id })
		await say(second.session, 'more')
		expect(textIn(second.model.requests[0]!.messages)).to.include('hello')
	})

	it('redaction leaves a picture’s bytes alone, and finds what only stands in a picture’s place', () => {
		const image: Image = {
			mime: 'image/png',
			data: png(3, 3).toString('base64'),
			width: 3,
			height: 3,
			label: 'sk-key.png',
		}
		const secret = image.data.slice(10, 30)
		const redact = (text: string) => text.replaceAll(secret, '[gone]').replaceAll('sk-key', '[key]')
		const record = (blocks: Block[]) => ({
			type: 'user' as const,
			time: 1,
			prompt: 'p',
			message: { role: 'user' as const, blocks },
		})
		const result: Block = { type: 'tool_result', callId: 'c', status: 'ok', text: secret, images: [image] }
		const clean = JSON.stringify(scrub(record([{ type: 'image', ...image }, result]), redact))
		expect(clean.split(image.data)).to.have.length(3)
		expect(clean).to.include('"text":"[gone]"').and.include('[key].png').and.not.include('sk-key')
		// Not a picture: a field of the same name, a block that only says it is one, a call's arguments.
		for (const blocks of [
			[{ type: 'image', ...image, mime: 'image/png', data: `${secret}AA==` }],
			[{ type: 'tool_result', callId: 'c', status: 'ok', text: '', images: [{ ...image, data: secret }] }],
			[{ type: 'tool_call', id: 'c', name: 'n', input: { type: 'image', ...image } }],
			[{ type: 'tool_call', id: 'c', name: 'n', input: { images: [image], data: image.data } }],
		] as Block[][])
			expect(JSON.stringify(scrub(record(blocks), redact)), JSON.stringify(blocks).slice(0, 60)).to.not.include(secret)
	})

	it('an export and a replay: labels in the one, the same conversation in the other', async () => {
		const at = place({ 'shot.png': png(20, 10) })
		const { session, garuda } = await at.open([read('shot.png'), { text: 'A square.' }])
		await say(session, { text: 'look', images: [await imageOf(png(6, 6), 'mine.png')] })
		const markdown = readFileSync(await session.export(), 'utf8')
		expect(markdown).to.include('mine.png, PNG 6×6').and.include('shot.png, PNG 20×10')
		expect(markdown).to.not.match(/[A-Za-z0-9+/]{60}/)
		const { header, records } = await garuda.sessions.read(session.id)
		const replayed = await replaySession({ header, records })
		expect(replayed.divergence).to.equal(null)
		expect(replayed.turns).to.equal(1)
	})

	it('R02 a refusal that a client could not mend: the picture is left out of the history and the turn goes on', async () => {
		const refusal: ModelFailure = {
			code: 'invalid_request',
			message: 'Could not process image',
			retryable: false,
			streamed: false,
			badImage: true,
		}
		const at = place({ 'shot.png': png(20, 10) })
		const { session, model } = await at.open([
			read('shot.png'),
			{ error: refusal },
			{ text: 'Without it, then.' },
			{ text: 'ok' },
		])
		const { end, events } = await say(session, { text: 'look', images: [await imageOf(png(6, 6), 'mine.png')] })
		expect(end.reason).to.equal('done')
		expect(only(events, 'notice').at(-1)!.text).to.contain('shot.png, PNG 20×10')
		expect(imagesIn(model.requests[2]!.messages).map((one) => one.label)).to.deep.equal(['mine.png, PNG 6×6'])
		await say(session, 'more')
		expect(imagesIn(model.requests[3]!.messages)).to.have.length(1)
	})

	it('R02 what a provider names is left out picture first, then as words', async () => {
		const image = await imageOf(png(), 'a.png')
		const result: Block = { type: 'tool_result', callId: 'c', status: 'ok', text: '[image: a.png]', images: [image] }
		const history = new History([{ role: 'user', blocks: [result] }], 0, async () => {})
		expect(history.neutralise(0)).to.equal('the image a.png, PNG 4×3')
		expect(history.messages[0]!.blocks[0]).to.deep.equal({
			type: 'tool_result',
			callId: 'c',
			status: 'ok',
			text: '[image: a.png]\n[image left out: a.png, PNG 4×3. The provider refused it.]',
		})
		expect(history.neutralise(0)).to.equal('a tool result')
		expect(history.leaveOutImages()).to.equal(null)
	})

	it('a summary never holds base64, also where the conversation is cut down to a text', async () => {
		const at = place({})
		const filler = 'word '.repeat(3000)
		const model = fakeModel([
			{ text: filler },
			{ text: filler },
			{ error: { code: 'overflow', message: 'too long', retryable: false, streamed: false } },
			{ text: 'Summary: a picture was shown.' },
			{ text: 'done' },
		])
		const { session } = await at.open([], undefined, {
			ports: { client: model, spec: fakeSpec({ window: 20_000, maxOutput: 1000 }) },
		})
		const image = await imageOf(fatPng(300_000), 'shot.png')
		await say(session, { text: 'look', images: [image] })
		await say(session, 'more')
		await say(session, 'and more')
		const summary = model.requests.find((one) => one.purpose === 'summary')!
		expect(textIn(summary.messages)).to.include('shot.png, PNG 4×3').and.not.include(image.data.slice(100, 200))
		for (const one of model.requests) expect(textIn(one.messages)).to.not.include(image.data.slice(0, 100))
		validRequest(model.requests.at(-1)!.messages, target)
	})
})
