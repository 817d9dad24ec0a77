// What a file is, told by its bytes and never by its name.
import type { FileKind } from '../ports.ts'

export interface Kind {
	kind: FileKind
	/** In words, for a message: "PNG image, 640×480". */
	label: string
	/** image/png, image/jpeg, image/gif or image/webp, only when the header holds. */
	mime?: string
	width?: number
	height?: number
	/** Why an image's header does not hold. */
	broken?: string
}

const ascii = (bytes: Uint8Array, start: number, end: number): string =>
	Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1', start, end)

const starts = (bytes: Uint8Array, ...magic: number[]): boolean => magic.every((value, index) => bytes[index] === value)

const image = (name: string, mime: string, size: { width: number; height: number } | string): Kind => {
	if (typeof size === 'string') return { kind: 'image', label: `${name} image with a damaged header`, broken: size }
	if (size.width < 1 || size.height < 1 || size.width > 65_535 || size.height > 65_535)
		return {
			kind: 'image',
			label: `${name} image with a damaged header`,
			broken: `it says ${size.width}×${size.height} pixels`,
		}
	return { kind: 'image', label: `${name} image, ${size.width}×${size.height}`, mime, ...size }
}

const png = (view: DataView): { width: number; height: number } | string => {
	if (view.byteLength < 33) return 'it ends inside the header'
	if (view.getUint32(8) !== 13 || view.getUint32(12) !== 0x49484452) return 'its first part is not IHDR'
	const [depth, colour] = [view.getUint8(24), view.getUint8(25)]
	if (![1, 2, 4, 8, 16].includes(depth) || ![0, 2, 3, 4, 6].includes(colour)) return 'its colour format does not exist'
	return { width: view.getUint32(16), height: view.getUint32(20) }
}

const jpeg = (view: DataView): { width: number; height: number } | string => {
	let at = 2
	while (at + 9 < view.byteLength) {
		if (view.getUint8(at) !== 0xff) return 'a segment does not begin where it should'
		const marker = view.getUint8(at + 1)
		if (marker === 0xff) {
			at++
			continue
		}
		// Start of frame, but not the tables that share its range.
		if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
			return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
		if (marker === 0xd9 || marker === 0xda) return 'it has no frame header'
		at += 2 + view.getUint16(at + 2)
	}
	return 'it has no frame header'
}

const webp = (bytes: Uint8Array, view: DataView): { width: number; height: number } | string => {
	if (bytes.length < 30) return 'it ends inside the header'
	const format = ascii(bytes, 12, 16)
	if (format === 'VP8X') {
		const at = (offset: number) => view.getUint16(offset, true) + (view.getUint8(offset + 2) << 16) + 1
		return { width: at(24), height: at(27) }
	}
	if (format === 'VP8 ') return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
	if (format === 'VP8L') {
		const bits = view.getUint32(21, true)
		return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 }
	}
	return 'its format is unknown'
}

const otherMagic: [RegExp, string][] = [
	[/^PK(?:\x03\x04|\x05\x06)/, 'ZIP archive (or office document, JAR)'],
	[/^\x1f\x8b/, 'gzip data'],
	[/^BZh/, 'bzip2 data'],
	[/^\xfd7zXZ/, 'xz data'],
	[/^\x28\xb5\x2f\xfd/, 'zstd data'],
	[/^7z\xbc\xaf/, '7-zip archive'],
	[/^\x7fELF/, 'ELF program'],
	[/^MZ[\s\S]{2,}/, 'Windows program'],
	[/^(?:\xcf\xfa\xed\xfe|\xfe\xed\xfa[\xce\xcf])/, 'macOS program'],
	[/^\xca\xfe\xba\xbe/, 'Java class or macOS program'],
	[/^\0asm/, 'WebAssembly module'],
	[/^SQLite format 3\0/, 'SQLite database'],
	[/^(?:OggS|fLaC|ID3|RIFF....WAVE)/s, 'sound file'],
	[/^....ftyp(?:hei[cfsmx]|mif1|msf1)/s, 'HEIC image'],
	[/^....ftypavi[fs]/s, 'AVIF image'],
	[/^....ftyp/s, 'video file'],
	[/^BM[\s\S]{4}\0\0\0\0/, 'BMP image'],
	[/^(?:II\*\0|MM\0\*)/, 'TIFF image'],
	[/^\0\0\x01\0/, 'icon image'],
]

/** Share of bytes that text never holds, in a sample. */
const controls = (bytes: Uint8Array): number => {
	let count = 0
	for (const byte of bytes) if (byte < 9 || (byte > 13 && byte < 32 && byte !== 27) || byte === 127) count++
	return bytes.length === 0 ? 0 : count / bytes.length
}

const validUtf8 = (bytes: Uint8Array): boolean => {
	try {
		new TextDecoder('utf-8', { fatal: true }).decode(bytes)
		return true
	} catch {
		return false
	}
}

const isNotebook = (bytes: Uint8Array): boolean => {
	const head = ascii(bytes, 0, 200).trimStart()
	if (!head.startsWith('{') || bytes.length > 32 * 1024 * 1024) return false
	const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
	if (!text.includes('"nbformat"')) return false
	try {
		const value = JSON.parse(text.toString('utf8'))
		return typeof value?.nbformat === 'number' && (Array.isArray(value.cells) || Array.isArray(value.worksheets))
	} catch {
		return false
	}
}

/** The kind of a whole file. Text may be UTF-8, or UTF-16 with a byte order mark; NULs in valid UTF-8 stay text when few. */
export const kindOf = (bytes: Uint8Array): Kind => {
	if (bytes.length === 0) return { kind: 'empty', label: 'empty' }
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
	if (starts(bytes, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return image('PNG', 'image/png', png(view))
	if (starts(bytes, 0xff, 0xd8, 0xff)) return image('JPEG', 'image/jpeg', jpeg(view))
	const head = ascii(bytes, 0, 32)
	if (/^GIF8[79]a/.test(head))
		return image(
			'GIF',
			'image/gif',
			bytes.length < 13
				? 'it ends inside the header'
				: { width: view.getUint16(6, true), height: view.getUint16(8, true) },
		)
	if (/^RIFF....WEBP/s.test(head)) return image('WebP', 'image/webp', webp(bytes, view))
	if (head.startsWith('%PDF-')) return { kind: 'pdf', label: 'PDF document' }
	if (starts(bytes, 0xff, 0xfe) || starts(bytes, 0xfe, 0xff)) return { kind: 'text', label: 'UTF-16 text' }
	if (validUtf8(bytes)) {
		// In a short file a few odd characters are a large share.
		if (controls(bytes) > (bytes.length < 512 ? 0.3 : 0.05)) return { kind: 'binary', label: 'binary data' }
		if (isNotebook(bytes)) return { kind: 'notebook', label: 'Jupyter notebook' }
		return { kind: 'text', label: 'text' }
	}
	const known = otherMagic.find(([magic]) => magic.test(head))
	return { kind: 'binary', label: known ? known[1] : 'binary data' }
}

/** Not UTF-8, but it may be text of an older encoding (Latin-1, Windows-1252): no NUL, hardly a control character, mostly ASCII. */
export const looksLatin = (bytes: Uint8Array): boolean => {
	if (bytes.includes(0) || controls(bytes) > 0.001) return false
	let high = 0
	for (const byte of bytes) if (byte > 127) high++
	return high / bytes.length < 0.3
}
