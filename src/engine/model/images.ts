// Which pictures of a conversation go with a request, and what a refusal says about them. Pure; used by valid-request.ts and index.ts.
import { imageTokens, requestImages } from '../budget.ts'
import { imageLine, soundImage } from '../files/image.ts'
import type { Block, Image, Message, ModelFailure } from '../types.ts'
import type { ProviderQuirks } from './provider.ts'

/** What the target does with pictures. */
export interface ImageRules {
	/** False: it takes none. */
	taken: boolean
	/** The most in one request; default `requestImages.count`. */
	max?: number
	/** Pictures that were refused before. */
	refused?: WeakSet<Image>
	/** Answers about pictures that were looked at before, so that each is looked at once. */
	seen?: WeakMap<object, boolean>
}

export const imagesOf = (block: Block): readonly Image[] =>
	block.type === 'image' ? [block] : block.type === 'tool_result' ? (block.images ?? []) : []

/** The pictures that messages carry, in order. */
export const imagesIn = (messages: readonly Message[]): Image[] =>
	messages.flatMap((message) => (message.role === 'user' ? message.blocks.flatMap(imagesOf) : []))

/** Characters of base64 above what the pictures count as in tokens: a request looks that much longer than it is. */
export const beyondTokens = (images: readonly Image[]): number =>
	images.reduce((sum, image) => sum + Math.max(0, image.data.length - imageTokens(image) * 4), 0)

const words = {
	none: 'This model takes no images.',
	old: 'Only the newest images of a conversation are sent; it can be read again.',
	refused: 'The provider refused it.',
	broken: 'It is damaged.',
}

export interface Selection {
	/** Why a picture is not sent, as the line that stands in its place; null when it is. */
	leftOut(image: Image): string | null
	/**
	 * Messages before this one have changed since their thinking was made (an old picture went); 0 when none has. Thinking
	 * is bound to what stands before it, so it must not be sent with them.
	 */
	changedUpTo: number
}

/**
 * Chooses by walking the history from its start: when one picture more would pass a limit, the oldest go until a quarter of
 * the room is free. The same history gives the same choice, and most requests only add to the one before, so caches hold.
 */
export function selectImages(messages: readonly Message[], rules: ImageRules): Selection {
	const left = new Map<Image, string>()
	let changedUpTo = 0
	const kept: Image[] = []
	let size = 0
	const most = Math.max(1, rules.max ?? requestImages.count)
	messages.forEach((message, i) => {
		if (message.role !== 'user') return
		for (const image of message.blocks.flatMap(imagesOf)) {
			const why = !rules.taken
				? words.none
				: rules.refused?.has(image)
					? words.refused
					: soundImage(image, rules.seen)
						? null
						: words.broken
			if (why !== null) {
				left.set(image, why)
				continue
			}
			kept.push(image)
			size += image.data.length
			if (kept.length <= most && size <= requestImages.base64) continue
			const few = Math.max(1, Math.floor(most * 0.75))
			while (kept.length > 1 && (kept.length > few || size > requestImages.base64 * 0.75)) {
				const old = kept.shift()!
				size -= old.data.length
				left.set(old, words.old)
			}
			changedUpTo = i
		}
	})
	return {
		changedUpTo,
		leftOut(image) {
			const why = left.get(image)
			return why === undefined ? null : imageLine(image.label, why)
		},
	}
}

const speaks =
	/\bimages?\b|image_url|input_image|\b(?:png|jpe?g|gif|webp)\b|media_type|base64|multi-?modal|\bvision\b|mmproj/i

/** Whether a refusal's words are about pictures. */
export const aboutImages = (text: string): boolean => speaks.test(text)

const none =
	/(?:not|n't|no|without)\b.{0,60}\b(?:support|accept|take|allow|have|handle).{0,60}(?:\bimages?\b|image_url|multi-?modal|vision)|(?:images?|image input|image_url|multi-?modal|vision)\b.{0,60}(?:not (?:supported|enabled|allowed|available)|unsupported|is disabled)|image_url.{0,20}only supported by|unknown variant .{0,3}image_url|no endpoints? .{0,40}image|not a (?:multi-?modal|vision)|only (?:supports?|accepts?) text|mmproj|missing data required for image/i
// A kind or a size that is refused is about one picture.
const oneOnly =
	/image\/\w+|format|media.?type|\bpng\b|\bjpe?g\b|\bwebp\b|\bgif\b|too (?:large|big|small)|exceeds?|dimension|pixels?|role/i

/**
 * Learns from a refusal that the server takes no pictures, or fewer than were sent. True when the same request, made
 * anew, is worth sending.
 */
export function learnImages(quirks: ProviderQuirks, failure: ModelFailure, sent: number): boolean {
	if (
		failure.streamed ||
		sent === 0 ||
		(failure.status !== undefined && [401, 402, 403, 429, 529].includes(failure.status))
	)
		return false
	const text = failure.message
	const count =
		/at most (\d+) images?\b/i.exec(text) ??
		/(?:maximum|max|up to|limit)(?: number)?(?: of| is|:)? (\d+) images?\b/i.exec(text) ??
		/images?\b.{0,60}(?:at most|maximum(?: of)?|limit(?: is| of)?|up to|exceeds?)\D{0,20}?(\d+)\b(?! ?(?:px|pixels?|[kmg]?b|bytes|x|×))/i.exec(
			text,
		)
	const most = count ? Number(count[1]) : undefined
	if (most !== undefined && most < sent && most < 1000) {
		if (most === 0) quirks.images = false
		else quirks.maxImages = most
		return true
	}
	if (quirks.images !== false && none.test(text) && !oneOnly.test(text)) {
		quirks.images = false
		return true
	}
	return false
}
