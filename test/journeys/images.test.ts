// A picture through the built bin: mentioned, read by the model, resumed, refused by the server; on both wires.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { credentials, garuda, journals, lines, type Place, place, settings } from '../helpers/cli.ts'
import { png } from '../helpers/pictures.ts'
import {
	anthropicStream,
	type Handler,
	openaiStream,
	type Reply,
	type SseServer,
	startSse,
} from '../helpers/sse-server.ts'
import { removeTemp, writeFiles } from '../helpers/temp.ts'

const shot = png(64, 48)
const data = shot.toString('base64')
const wires = {
	anthropic: { model: 'anthropic/claude-sonnet-5-5', stream: anthropicStream },
	openai: { model: 'openai/gpt-5.2', stream: openaiStream },
}
type Wire = keyof typeof wires

let server: SseServer | null = null

async function task(wire: Wire, steps: Handler, args: string[], more: { at?: Place; stdin?: string } = {}) {
	await server?.close()
	server = await startSse(steps)
	const at = more.at ?? place({})
	writeFiles(at.root, { 'shot.png': shot })
	credentials(at.home, { ANTHROPIC_API_KEY: 'sk-ant-x1y2z3', OPENAI_API_KEY: 'sk-x1y2z3' })
	settings(at.home, { model: { firstRetryMs: 20, maxRetryMs: 50 } })
	const ran = await garuda(at, [...args, '-m', wires[wire].model], {
		env: { ANTHROPIC_BASE_URL: server.url, OPENAI_BASE_URL: `${server.url}/v1` },
		...(more.stdin === undefined ? {} : { stdin: more.stdin }),
	})
	return { ...ran, at, requests: server.requests }
}

const says = (wire: Wire, text: string): Reply => ({ body: wires[wire].stream({ text }) })
const calls = (wire: Wire, path: string): Reply => ({
	body: wires[wire].stream({ calls: [{ name: 'read_file', input: { path } }] }),
})

describe('journey: pictures', () => {
	afterEach(async () => {
		await server?.close()
		server = null
		removeTemp()
	})

	for (const wire of Object.keys(wires) as Wire[]) {
		it(`R02 ${wire}: -p "look @shot.png" sends the picture in the wire’s own form`, async () => {
			const { code, stdout, stderr, requests } = await task(wire, () => says(wire, 'A square.'), [
				'-p',
				'look @shot.png',
			])
			expect([code, stdout], stderr).to.deep.equal([0, 'A square.\n'])
			expect(stderr).to.include('shot.png, PNG 64×48').and.not.include(data.slice(0, 60))
			const content = requests[0]!.body.messages.at(-1).content
			expect(content[0]).to.deep.equal(
				wire === 'anthropic'
					? { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
					: { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
			)
			expect(content[1].text).to.include('look @shot.png').and.include('[image: shot.png, PNG 64×48]')
		})

		it(`R02 ${wire}: the model reads a picture; stream-json, export of the journal’s words and a resume`, async () => {
			const args = ['-p', 'what is in shot.png?', '--output-format', 'stream-json', '--debug']
			const first = await task(wire, (_, n) => (n === 0 ? calls(wire, 'shot.png') : says(wire, 'A square.')), args)
			expect(first.code, first.stderr).to.equal(0)
			expect(first.stdout).to.not.include(data.slice(0, 60))
			const [result] = lines(first.stdout).filter((one) => one.type === 'user')
			expect(result.message.content[0].content).to.equal('[image: shot.png, PNG 64×48]')
			expect(first.requests[1]!.text).to.include(data)
			for (const folder of ['audit', 'logs']) {
				const dir = join(first.at.home, '.garuda', folder)
				const text = readdirSync(dir, { recursive: true, withFileTypes: true })
					.filter((one) => one.isFile())
					.map((one) => readFileSync(join(one.parentPath, one.name), 'utf8'))
					.join()
				expect(text, folder).to.not.equal('').and.not.include(data.slice(0, 60))
			}
			const [id] = journals(first.at.root)
			const again = await task(wire, () => says(wire, 'Still a square.'), ['-p', 'sure?', '--resume', id!], {
				at: first.at,
			})
			expect(again.code, again.stderr).to.equal(0)
			expect(again.requests[0]!.text).to.include(data)
		})

		it(`R02 ${wire}: a server that cannot read the picture gets the request once more without it, and the run succeeds`, async () => {
			const message = 'Could not process image'
			const { code, stdout, stderr, requests } = await task(
				wire,
				(seen) =>
					seen.text.includes(data)
						? {
								status: 400,
								body: JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }),
							}
						: says(wire, 'I could not see it.'),
				['-p', 'look @shot.png'],
			)
			expect([code, stdout], stderr).to.deep.equal([0, 'I could not see it.\n'])
			expect(requests).to.have.length(2)
			expect(stderr).to.include('without the image shot.png')
		})
	}

	it('R02 stream-json input: image blocks in the field’s form; bad ones are told, the next line runs', async () => {
		const line = (content: unknown) => JSON.stringify({ type: 'user', message: { role: 'user', content } })
		const image = (source: object) => ({ type: 'image', source })
		const stdin = [
			line([{ type: 'text', text: 'look' }, image({ type: 'base64', media_type: 'image/jpeg', data })]),
			line([
				{ type: 'text', text: 'look' },
				image({ type: 'base64', media_type: 'image/png', data: data.slice(0, 80) }),
			]),
			line([{ type: 'text', text: 'look' }, image({ type: 'url', url: 'http://127.0.0.1/x.png' })]),
			line('go on'),
		].join('\n')
		const args = ['--input-format', 'stream-json', '--output-format', 'stream-json']
		const { stdout, stderr, requests } = await task('anthropic', () => says('anthropic', 'ok'), args, { stdin })
		const results = lines(stdout).filter((one) => one.type === 'result')
		expect(
			results.map((one) => one.is_error),
			stderr,
		).to.deep.equal([false, true, true, false])
		expect(JSON.stringify(results[1])).to.include('Line 2').and.include('cut off')
		expect(JSON.stringify(results[2])).to.include('Line 3').and.include('addresses are not fetched')
		expect(requests).to.have.length(2)
		expect(requests[0]!.body.messages[0].content[0].source).to.deep.equal({
			type: 'base64',
			media_type: 'image/png',
			data,
		})
		expect(stdout).to.not.include(data.slice(0, 60))
	})

	it('R02 a local model is shown none unless models.json says so', async () => {
		for (const images of [undefined, true]) {
			const at = place({})
			const base = await startSse(() => ({ body: openaiStream({ text: 'ok' }) }))
			try {
				const local = { baseURL: `${base.url}/v1`, key: null, models: { m: images === undefined ? {} : { images } } }
				writeFiles(at.home, { '.garuda/models.json': JSON.stringify({ providers: { mine: local } }) })
				writeFiles(at.root, { 'shot.png': shot })
				const ran = await garuda(at, ['-p', 'look @shot.png', '-m', 'mine/m'], {})
				expect(ran.code, ran.stderr).to.equal(0)
				expect(base.requests[0]!.text.includes(data)).to.equal(images === true)
				if (images === undefined) expect(ran.stderr).to.include('mine/m takes no images').and.include('"images": true')
			} finally {
				await base.close()
			}
		}
	})
})
