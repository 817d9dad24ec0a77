// Whether a picture's bytes are whole from the first part to the last. Pure, by the formats' own part lists; used by image.ts.
import type { Image } from '../types.ts'

const cut = 'it ends before its last part (it was cut off)'
const letters = (bytes: Uint8Array, at: number, length = 4): string =>
	String.fromCharCode(...bytes.subarray(at, at + length))
const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
	let c = n
	for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
	return c
})

/** The checksum of PNG parts. By hand: zlib has it, but loading zlib would cost every start 2 ms. */
function crc32(bytes: Uint8Array): number {
	let crc = 0xffffffff
	for (let at = 0; at < bytes.length; at++) crc = crcTable[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8)
	return (crc ^ 0xffffffff) >>> 0
}

/** Of a PNG: every part with its checksum, picture data, and IEND. What stands behind IEND is nobody's business. */
function png(bytes: Uint8Array): string | null {
	const view = viewOf(bytes)
	let data = false
	for (let at = 8; ; ) {
		if (at + 12 > bytes.length) return cut
		const length = view.getUint32(at)
		if (at + 12 + length > bytes.length) return cut
		const name = letters(bytes, at + 4)
		if (!/^[A-Za-z]{4}$/.test(name)) return 'a part has no name'
		if (crc32(bytes.subarray(at + 4, at + 8 + length)) !== view.getUint32(at + 8 + length))
			return `the part ${name} is damaged (its checksum is wrong)`
		if (name === 'IDAT') data = true
		if (name === 'IEND') return data ? null : 'it holds no picture data'
		at += 12 + length
	}
}

/** Of a JPEG: its segments, at least one scan, and the end marker. Data behind that (a second picture) stays. */
function jpeg(bytes: Uint8Array): string | null {
	let scans = 0
	for (let at = 2; ; ) {
		if (at + 1 >= bytes.length) return cut
		if (bytes[at] !== 0xff) return 'a segment does not begin where it should'
		const marker = bytes[at + 1]!
		if (marker === 0xff) {
			at++
			continue
		}
		if (marker === 0xd9) return scans > 0 ? null : 'it holds no picture data'
		if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
			at += 2
			continue
		}
		if (at + 3 >= bytes.length) return cut
		const length = bytes[at + 2]! * 256 + bytes[at + 3]!
		if (length < 2) return 'a segment has no length'
		at += 2 + length
		if (marker !== 0xda) continue
		scans++
		// The scan's own bytes: FF is followed by 00 or a restart marker until the next segment.
		for (;;) {
			at = bytes.indexOf(0xff, at)
			if (at === -1 || at + 1 >= bytes.length) return cut
			const next = bytes[at + 1]!
			if (next !== 0 && !(next >= 0xd0 && next <= 0xd7)) break
			at += 2
		}
	}
}

/** Of a GIF: its blocks, at least one picture, and the trailer. */
function gif(bytes: Uint8Array): string | null {
	const table = (packed: number): number => (packed & 0x80 ? 3 * 2 ** ((packed & 7) + 1) : 0)
	let at = 13 + table(bytes[10] ?? 0)
	let pictures = 0
	/** Past a chain of sub-blocks; false when it has no end. */
	const skip = (): boolean => {
		for (;;) {
			const size = bytes[at]
			if (size === undefined) return false
			at += size + 1
			if (size === 0) return true
		}
	}
	for (;;) {
		const block = bytes[at]
		if (block === undefined) return cut
		if (block === 0x3b) return pictures > 0 ? null : 'it holds no picture data'
		if (block === 0x21) {
			at += 2
			if (!skip()) return cut
		} else if (block === 0x2c) {
			if (at + 10 > bytes.length) return cut
			at += 10 + table(bytes[at + 9]!) + 1
			if (!skip()) return cut
			pictures++
		} else return 'a block is of no known kind'
	}
}

/** Of a WebP: the length that it says, its parts, and picture data among them. */
function webp(bytes: Uint8Array): string | null {
	const view = viewOf(bytes)
	const end = view.getUint32(4, true) + 8
	if (end > bytes.length) return cut
	let data = false
	for (let at = 12; at < end; ) {
		if (at + 8 > end) return cut
		const name = letters(bytes, at)
		const length = view.getUint32(at + 4, true)
		if (at + 8 + length > end) return cut
		if (name === 'VP8 ' || name === 'VP8L' || name === 'ANMF') data ||= length > 0
		at += 8 + length + (length & 1)
	}
	return data ? null : 'it holds no picture data'
}

const walkers: Record<Image['mime'], (bytes: Uint8Array) => string | null> = {
	'image/png': png,
	'image/jpeg': jpeg,
	'image/gif': gif,
	'image/webp': webp,
}

/** What is wrong with the body of a picture whose header holds, in words that follow "It is broken:"; null when it is whole. */
export const brokenBody = (mime: Image['mime'], bytes: Uint8Array): string | null => walkers[mime](bytes)

const channels: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }
/** More than this unpacked is not tried: it would cost more time than a provider's refusal. */
const unpackMax = 64 << 20

/**
 * Whether a PNG's compressed picture data can be unpacked to as many rows as its header promises. Resolves with what is
 * wrong, or null; null also for pictures too large to try.
 */
export async function brokenPixels(bytes: Uint8Array): Promise<string | null> {
	const view = viewOf(bytes)
	const [width, height] = [view.getUint32(16), view.getUint32(20)]
	const bits = bytes[24]! * (channels[bytes[25]!] ?? 4)
	const expected = height * (1 + Math.ceil((width * bits) / 8))
	// An interlaced picture has up to seven passes, each with rows of its own.
	const most = bytes[28] === 0 ? expected + 65_536 : expected * 2 + 65_536
	if (most > unpackMax) return null
	const parts: Uint8Array[] = []
	for (let at = 8; at < bytes.length; ) {
		const length = view.getUint32(at)
		const name = letters(bytes, at + 4)
		if (name === 'IDAT') parts.push(bytes.subarray(at + 8, at + 8 + length))
		if (name === 'IEND') break
		at += 12 + length
	}
	const { inflate } = await import('node:zlib')
	return new Promise((done) => {
		inflate(Buffer.concat(parts), { maxOutputLength: most }, (error, rows) => {
			if (error) done('its picture data cannot be unpacked')
			else done(bytes[28] === 0 && rows.length < expected ? 'it holds fewer rows than its header says' : null)
		})
	})
}
