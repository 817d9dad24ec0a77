// What counts as a picture for a model, whichever way it came.
import { randomBytes } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import { imageFromBase64, imageLimits, imageOf, soundImage } from '../../../src/engine/files/image.ts'
import { avif, bmp, fatPng, gif, heic, jpeg, png, pngHead, pngPart, svg, webp } from '../../helpers/pictures.ts'

const refusal = async (work: Promise<unknown>): Promise<string> => {
	try {
		await work
	} catch (error) {
		if (error instanceof ToolError) return error.message
		throw error
	}
	throw new Error('it was taken')
}
const base64Refusal = async (data: string): Promise<string> => {
	const image = await imageFromBase64(data, 'a')
	if ('refused' in image) return image.refused
	throw new Error('it was taken')
}
const why = (bytes: Uint8Array): Promise<string> => refusal(imageOf(bytes, 'a.png'))
const flip = (bytes: Buffer, at: number): Buffer => {
	const out = Buffer.from(bytes)
	out[at]! ^= 0xff
	return out
}

describe('pictures', () => {
	it('R02 whole ones of the four kinds are told by their bytes, whatever the name says', async () => {
		for (const [bytes, mime, label] of [
			[png(640, 480), 'image/png', 'x.gif, PNG 640×480'],
			[jpeg(16, 8), 'image/jpeg', 'x.gif, JPEG 16×8'],
			[gif(), 'image/gif', 'x.gif, GIF 1×1'],
			[webp(), 'image/webp', 'x.gif, WebP 1×1'],
		] as const) {
			const image = await imageOf(bytes, 'x.gif')
			expect([image.mime, image.label]).to.deep.equal([mime, label])
			expect(Buffer.from(image.data, 'base64').equals(bytes)).to.equal(true)
		}
	})

	it('R02 empty, garbage behind a PNG header, and a header that lies', async () => {
		expect(await why(Buffer.alloc(0))).to.contain('is empty')
		expect(await why(Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(2048)]))).to.contain('damaged')
		expect(await why(Buffer.concat([pngHead(0, 4), png().subarray(33)]))).to.contain('0×4')
	})

	it('R02 a PNG cut off anywhere, with a broken part or with no picture in it', async () => {
		const whole = png(20, 20)
		for (let length = 8; length < whole.length; length++)
			expect(await why(whole.subarray(0, length)), `${length} bytes`).to.match(/damaged/)
		expect(await why(flip(whole, whole.length - 20))).to.contain('IDAT is damaged')
		expect(await why(flip(whole, 29))).to.contain('IHDR is damaged')
		expect(await why(Buffer.concat([pngHead(2, 2), pngPart('IEND', Buffer.alloc(0))]))).to.contain('no picture data')
	})

	it('R02 a PNG whose parts are whole but whose pixels are not', async () => {
		const end = pngPart('IEND', Buffer.alloc(0))
		expect(await why(Buffer.concat([pngHead(2, 2), pngPart('IDAT', randomBytes(40)), end]))).to.contain(
			'cannot be unpacked',
		)
		expect(await why(Buffer.concat([pngHead(2, 200), pngPart('IDAT', deflateSync(Buffer.alloc(14))), end]))).to.contain(
			'fewer rows',
		)
		// Much more than the header says: a bomb, stopped at the size that was promised.
		const bomb = pngPart('IDAT', deflateSync(Buffer.alloc(8 << 20)))
		expect(await why(Buffer.concat([pngHead(2, 2), bomb, end]))).to.contain('cannot be unpacked')
	})

	it('R02 a JPEG, GIF or WebP that ends too early is refused at every length', async () => {
		for (const whole of [jpeg(), gif(), webp()])
			for (let length = 12; length < whole.length; length++)
				expect(await why(whole.subarray(0, length)), `${length} of ${whole.length}`).to.match(/damaged/)
	})

	it('R02 what stands behind the end of a JPEG is no fault', async () => {
		const image = await imageOf(Buffer.concat([jpeg(), randomBytes(100)]), 'phone.jpg')
		expect(image.mime).to.equal('image/jpeg')
	})

	it('R03 HEIC, AVIF, BMP, SVG and text are refused by name, with the four that are taken', async () => {
		for (const [bytes, name] of [
			[heic(), 'is a HEIC image'],
			[avif(), 'is an AVIF image'],
			[bmp(), 'BMP image'],
			[svg(), 'SVG image'],
			[Buffer.from('<!doctype html><p>404'), 'text, no image'],
			[Buffer.alloc(300, 0x9e), 'no image of a known kind'],
		] as const)
			expect(await why(bytes), name)
				.to.contain(name)
				.and.contain('PNG, JPEG, GIF and WebP')
	})

	it('R02 too large in bytes or pixels: the limit is said', async () => {
		expect(await why(fatPng(4 << 20)))
			.to.contain('4.0 MB')
			.and.contain('at most 3.8 MB')
		expect(await why(png(8001, 1)))
			.to.contain('8001×1')
			.and.contain('8000')
		expect((await imageOf(fatPng(3_900_000), 'big.png')).data.length).to.be.at.most(imageLimits.base64)
	})

	it('R02 base64 is strict: no line break, no other alphabet, no missing padding, no data URL, nothing hidden', async () => {
		const data = png(5, 5).toString('base64')
		expect(await imageFromBase64(data, 'a')).to.deep.include({ data, width: 5 })
		for (const bad of [
			`${data.slice(0, 20)}\n${data.slice(20)}`,
			` ${data}`,
			data.replace(/[+/]/, '-').concat('=='),
			`${data}A`,
			'not base64 at all!',
			'[left out: a text of 9 characters]',
		])
			expect(await base64Refusal(bad), bad.slice(0, 30)).to.contain('no valid base64')
		expect(await base64Refusal(`data:image/png;base64,${data}`)).to.contain('data URL')
		expect(await base64Refusal('')).to.contain('empty')
		// The last letter's spare bits: decoders differ about them.
		const odd = Buffer.concat([jpeg(), Buffer.from([1])]).toString('base64')
		const other = odd.replace(
			/(.)(==?)$/,
			(_, letter: string, pad: string) => `${String.fromCharCode(letter.charCodeAt(0) + 1)}${pad}`,
		)
		expect(odd.endsWith('=')).to.equal(true)
		expect(await base64Refusal(other)).to.contain('no valid base64')
	})

	it('R02 a stored picture is believed only when its fields and bytes agree', async () => {
		const { ...stored } = await imageOf(png(6, 4), 'a.png')
		const copy = (change: object) => ({ ...stored, ...change })
		expect(soundImage(copy({}))).to.equal(true)
		for (const change of [
			{ data: '' },
			{ data: stored.data.slice(0, -4) },
			{ data: '[left out: a text of 900 characters that was stored beside the session is missing]' },
			{ mime: 'image/jpeg' },
			{ mime: 'image/svg+xml' },
			{ width: 7 },
			{ label: undefined },
		])
			expect(soundImage(copy(change)), JSON.stringify(change).slice(0, 40)).to.equal(false)
		expect(soundImage(null)).to.equal(false)
	})

	it('a label is one visible line', async () => {
		const { label } = await imageOf(png(), 'a\nb\u202e.png')
		expect(label).to.equal('a ⏎ b[U+202E].png, PNG 4×3')
	})
})
