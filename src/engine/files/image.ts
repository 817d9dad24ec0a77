// Pictures on their way to a model: the one check for every way in (files, mentions, editors, JSON input, stored sessions).
import { ToolError } from '../errors.ts'
import { oneLine } from '../text.ts'
import type { Image } from '../types.ts'
import { brokenBody, brokenPixels } from './image-body.ts'
import { kindOf } from './kind.ts'

/** What the strictest of the large providers takes: characters of base64 and pixels a side. There is no resizing. */
export const imageLimits = { base64: 5 * 1024 * 1024, side: 8000 } as const

/** The kinds that every provider with pictures takes, in words. */
export const imageKinds = 'PNG, JPEG, GIF and WebP'

const megabytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MB`
/** The bytes of strict base64 (standard letters, padded, nothing else, nothing hidden behind the last byte); null when it is not that. */
const decoded = (data: string): Buffer | null => {
	const bytes = Buffer.from(data, 'base64')
	return bytes.toString('base64') === data ? bytes : null
}

interface Checked {
	mime: Image['mime']
	width: number
	height: number
	/** PNG, JPEG, GIF or WebP. */
	kind: string
}

/** What the bytes are, or why they cannot go to a model, as words after "It ". */
function check(bytes: Uint8Array): Checked | { wrong: string } {
	const found = kindOf(bytes)
	if (found.kind === 'empty') return { wrong: 'is empty' }
	if (found.kind !== 'image') {
		const svg = found.kind === 'text' && /<svg[\s>]/.test(Buffer.from(bytes.subarray(0, 4096)).toString('latin1'))
		const what = svg
			? 'an SVG image'
			: found.label === 'text'
				? 'text, no image'
				: `no image of a known kind (${found.label})`
		return {
			wrong: `is ${found.label.endsWith('image') ? `${/^[aio]/i.test(found.label) ? 'an' : 'a'} ${found.label}` : what}; only ${imageKinds} can be shown`,
		}
	}
	const { mime, width, height } = found
	const kind = found.label.split(' ', 1)[0]!
	if (found.broken !== undefined || mime === undefined || width === undefined || height === undefined)
		return { wrong: `is a ${found.label}: ${found.broken ?? 'its size is unknown'}` }
	if (width > imageLimits.side || height > imageLimits.side)
		return {
			wrong: `is ${width}×${height} pixels; models take at most ${imageLimits.side} a side. Make it smaller first`,
		}
	if (Math.ceil(bytes.length / 3) * 4 > imageLimits.base64)
		return {
			wrong: `is ${megabytes(bytes.length)}; models take at most ${megabytes((imageLimits.base64 / 4) * 3)} (5 MB as base64). Make it smaller first`,
		}
	const broken = brokenBody(mime as Image['mime'], bytes)
	if (broken !== null) return { wrong: `is a damaged ${kind} image: ${broken}` }
	return { mime: mime as Image['mime'], width, height, kind }
}

/** A whole sentence for a person or the model. */
export interface Refusal {
	refused: string
}

async function inspect(bytes: Uint8Array, name: string): Promise<Image | Refusal> {
	const shown = shownName(name)
	const found = check(bytes)
	if ('wrong' in found) return { refused: `${shown} ${found.wrong}.` }
	const broken = found.mime === 'image/png' ? await brokenPixels(bytes) : null
	if (broken !== null) return { refused: `${shown} is a damaged PNG image: ${broken}.` }
	const { mime, width, height, kind } = found
	const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
	return { mime, data, width, height, label: `${shown}, ${kind} ${width}×${height}` }
}

const shownName = (name: string): string => oneLine(name, 120) || 'The image'

/**
 * A file's bytes as a picture for a model; `name` begins its label. Magic bytes decide the kind, and the file must be
 * whole. Rejects with ToolError that says what is wrong: no picture, a kind that models do not take, too large, damaged.
 */
export async function imageOf(bytes: Uint8Array, name: string): Promise<Image> {
	const image = await inspect(bytes, name)
	if ('refused' in image) throw new ToolError(image.refused)
	return image
}

/**
 * The same for base64 from outside (an editor, JSON input): strictly the standard alphabet, padded, no line breaks, no data
 * URL. Resolves with the reason where it is no picture to send; never rejects.
 */
export async function imageFromBase64(data: string, name: string): Promise<Image | Refusal> {
	const shown = shownName(name)
	if (data === '') return { refused: `${shown} is empty.` }
	if (data.startsWith('data:'))
		return { refused: `${shown} is a data URL; only the base64 behind its comma is wanted.` }
	if (data.length > imageLimits.base64)
		return {
			refused: `${shown} is ${megabytes(data.length)} of base64; models take at most ${megabytes(imageLimits.base64)}. Make it smaller first.`,
		}
	const bytes = decoded(data)
	return bytes ? inspect(bytes, name) : { refused: `${shown} is no valid base64.` }
}

/**
 * Whether a value is a picture that can be sent: the right fields, strict base64, and bytes that are what it says. For
 * what comes out of a stored session, where anybody may have changed it. `seen` keeps the answers, for who asks again.
 */
export function soundImage(value: unknown, seen?: WeakMap<object, boolean>): boolean {
	if (typeof value !== 'object' || value === null) return false
	const known = seen?.get(value)
	if (known !== undefined) return known
	const { mime, data, width, height, label } = value as Partial<Image>
	let good = false
	if (typeof data === 'string' && typeof label === 'string' && data.length <= imageLimits.base64) {
		const bytes = decoded(data)
		const found = bytes && check(bytes)
		good = !!found && !('wrong' in found) && found.mime === mime && found.width === width && found.height === height
	}
	seen?.set(value, good)
	return good
}

/** What stands where a picture is not: one line. */
export const imageLine = (label: unknown, why = ''): string =>
	`[image${why === '' ? '' : ' left out'}: ${oneLine(typeof label === 'string' ? label : 'unknown', 200)}${why === '' ? '' : `. ${why}`}]`
