// Small pictures of each kind, whole ones; tests break them as they need.
import { crc32, deflateSync } from 'node:zlib'

export const pngPart = (name: string, data: Uint8Array): Buffer => {
	const out = Buffer.alloc(12 + data.length)
	out.writeUInt32BE(data.length)
	out.write(name, 4, 'latin1')
	out.set(data, 8)
	out.writeUInt32BE(crc32(out.subarray(4, 8 + data.length)), 8 + data.length)
	return out
}

export const pngHead = (width: number, height: number): Buffer => {
	const head = Buffer.alloc(13)
	head.writeUInt32BE(width)
	head.writeUInt32BE(height, 4)
	head.set([8, 2], 8)
	return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), pngPart('IHDR', head)])
}

/** A picture of one colour; another `seed` gives other bytes of the same size. */
export const png = (width = 4, height = 3, seed = 0): Buffer => {
	const rows = Buffer.alloc(height * (1 + width * 3), seed)
	for (let y = 0; y < height; y++) rows[y * (1 + width * 3)] = 0
	return Buffer.concat([pngHead(width, height), pngPart('IDAT', deflateSync(rows)), pngPart('IEND', Buffer.alloc(0))])
}

/** A whole PNG whose file has at least so many bytes (a text part fills it). */
export const fatPng = (bytes: number): Buffer => {
	const plain = png()
	const fill = pngPart('teXt', Buffer.alloc(Math.max(0, bytes - plain.length), 65))
	return Buffer.concat([plain.subarray(0, -12), fill, plain.subarray(-12)])
}

export const jpeg = (width = 16, height = 8): Buffer => {
	const frame = Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0])
	frame.writeUInt16BE(height, 5)
	frame.writeUInt16BE(width, 7)
	return Buffer.concat([
		Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0]),
		frame,
		Buffer.from([0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0]),
		Buffer.from([0x12, 0xff, 0, 0x34, 0xff, 0xd0, 0x56, 0xff, 0xd9]),
	])
}

export const gif = (): Buffer => Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
export const webp = (): Buffer => Buffer.from('UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA=', 'base64')

/** A picture of a kind that models do not take. */
export const heic = (): Buffer =>
	Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypheic'), Buffer.alloc(40, 0xff)])
export const avif = (): Buffer =>
	Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypavif'), Buffer.alloc(40, 0xff)])
export const bmp = (): Buffer => Buffer.concat([Buffer.from('BM'), Buffer.alloc(60, 0), Buffer.alloc(20, 0xfe)])
export const svg = (): Buffer => Buffer.from('<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>\n')
