// The last stop before a wire: history as it is stored becomes history that the target takes. Pure; runs before every request.
import { wellFormed } from '../text.ts'
import type { Block, Message } from '../types.ts'
import { type ImageRules, type Selection, selectImages } from './images.ts'

/** What the request goes to. */
export interface Target {
	provider: string
	model: string
	/** Call ids: nine letters and digits (Mistral), or up to 64 of letters, digits, _ and -. */
	shortIds?: boolean
	/** Leave all thinking out. */
	stripThinking?: boolean
	/** Thinking blocks that were refused before. */
	refused?: WeakSet<Block>
	/** Messages that were refused before: only plain words of them go. */
	bad?: WeakSet<Message>
	/** What it does with pictures; default: it takes them. */
	images?: ImageRules
}

type Call = Extract<Block, { type: 'tool_call' }>
type Result = Extract<Block, { type: 'tool_result' }>

export const emptyResult = '(no output)'
const cancelledResult = 'The call was cancelled: it did not run to its end, and its effect is not known.'
const opening = '(The beginning of the conversation was left out.)'
const goOn = 'Go on.'

/**
 * Messages that any target takes: a user's first and last, roles in turn, no empty text, each call followed by exactly one
 * result (in order; a missing one is `cancelled`), no result without its call, unique ids of the allowed form, valid Unicode,
 * thinking and opaque blocks only of the target itself, pictures as the target takes them. Pairing goes by position, so an id used again later is its own call.
 * The given messages are not changed; blocks that need no change are the same objects.
 */
export const validRequest = (messages: Message[], target: Target): Message[] => validate(messages, target).messages

/** The same, and for each message the index of the first given message that it holds (-1 for one that was added). */
export function validate(messages: Message[], target: Target): { messages: Message[]; origin: number[] } {
	const merged: Message[] = []
	const from: number[] = []
	const pictures = selectImages(messages, target.images ?? { taken: true })
	messages.forEach((message, i) => {
		const moved = i < pictures.changedUpTo
		const blocks = message.blocks.flatMap((block) =>
			block.type === 'thinking' && moved ? [] : cleaned(block, message, target, pictures),
		)
		if (!blocks.length) return
		const last = merged[merged.length - 1]
		if (last?.role === message.role) last.blocks.push(...blocks)
		else {
			merged.push({ role: message.role, blocks })
			from.push(i)
		}
	})

	const out: Message[] = []
	const origin: number[] = []
	const add = (message: Message, at: number) => {
		if (!message.blocks.length) return
		// Dropping orphans can leave two of one role in a row.
		const last = out[out.length - 1]
		if (last?.role === message.role) last.blocks.push(...message.blocks)
		else {
			out.push(message)
			origin.push(at)
		}
	}
	const ids = new Ids(target.shortIds ?? false)
	for (let i = 0; i < merged.length; i++) {
		const message = merged[i]!
		if (message.role === 'user') {
			// Results that belong to a call were taken with it below; the rest answer nothing.
			add({ role: 'user', blocks: message.blocks.filter((block) => block.type !== 'tool_result') }, from[i]!)
			continue
		}
		const next = merged[i + 1]
		const open: (Result | null)[] = (next?.blocks ?? []).filter(
			(block): block is Result => block.type === 'tool_result',
		)
		const results: Result[] = []
		const blocks = closeServerTools(
			message.blocks,
			i === merged.length - 1 && !message.blocks.some((block) => block.type === 'tool_call'),
		).map((block) => {
			if (block.type !== 'tool_call') return block
			const at = open.findIndex((result) => result?.callId === block.id)
			const found = at < 0 ? undefined : open[at]!
			if (at >= 0) open[at] = null
			const id = ids.next(block.id)
			results.push(
				found
					? found.callId === id
						? found
						: { ...found, callId: id }
					: { type: 'tool_result', callId: id, status: 'cancelled', text: cancelledResult },
			)
			return block.id === id ? block : ({ ...block, id } satisfies Call)
		})
		add({ role: 'assistant', blocks }, from[i]!)
		add({ role: 'user', blocks: results }, from[i + 1] ?? -1)
	}

	if (out[0]?.role === 'assistant') {
		out.unshift({ role: 'user', blocks: [{ type: 'text', text: opening }] })
		origin.unshift(-1)
	}
	const last = out[out.length - 1]
	// New models refuse an answer begun for them; a paused server tool must go back as the last message.
	if (!last || (last.role === 'assistant' && !last.blocks.some((block) => block.type === 'opaque'))) {
		out.push({ role: 'user', blocks: [{ type: 'text', text: goOn }] })
		origin.push(-1)
	}
	return { messages: out, origin }
}

const cleaned = (block: Block, message: Message, target: Target, pictures: Selection): Block[] => {
	const bad = target.bad?.has(message) ?? false
	switch (block.type) {
		case 'text': {
			const text = wellFormed(block.text)
			return text.trim() === '' ? [] : [text === block.text ? block : { ...block, text }]
		}
		case 'thinking': {
			const own = block.provider === target.provider && block.model === target.model
			const kept = own && message.role === 'assistant' && !bad && !target.stripThinking && !target.refused?.has(block)
			return kept && isWhole(block) ? [block] : []
		}
		case 'opaque':
			return block.provider === target.provider && message.role === 'assistant' && !bad ? [block] : []
		case 'tool_call': {
			if (message.role !== 'assistant') return []
			const name = callName(block.name)
			const input = bad ? {} : (deepWellFormed(block.input) as Record<string, unknown>)
			const raw = foreign(block.raw, target) || bad ? undefined : block.raw
			if (name === block.name && input === block.input && raw === block.raw) return [block]
			const { raw: _, ...rest } = block
			return [{ ...rest, name, input, ...(raw !== undefined && { raw }) }]
		}
		case 'tool_result': {
			if (message.role !== 'user') return []
			const text = bad ? '(The provider refused this result; it was left out.)' : wellFormed(block.text)
			const filled = text.trim() === '' ? emptyResult : text
			if (!block.images) return [filled === block.text ? block : { ...block, text: filled }]
			// A failed result carries words only.
			const { images, ...rest } = block
			const [sent, lines] = [[] as typeof images, [] as string[]]
			for (const image of images) {
				const line = pictures.leftOut(image)
				if (line !== null) lines.push(line)
				else if (!bad && block.status === 'ok') sent.push(image)
			}
			if (sent.length === images.length && filled === block.text) return [block]
			return [{ ...rest, text: [filled, ...lines].join('\n'), ...(sent.length > 0 && { images: sent }) }]
		}
		case 'image': {
			if (message.role !== 'user') return []
			const line = bad ? '(The provider refused this image; it was left out.)' : pictures.leftOut(block)
			return [line === null ? block : { type: 'text', text: line }]
		}
		default:
			return []
	}
}

const callName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 128) || 'unknown'

/** A signed block without its signature would be refused; an empty text with a signature is a whole block (its words were not shown). */
const isWhole = (block: Extract<Block, { type: 'thinking' }>): boolean => {
	const raw = block.raw
	if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return false
	if (raw.type === 'thinking')
		return typeof raw.signature === 'string' && raw.signature !== '' && typeof raw.thinking === 'string'
	if (raw.type === 'redacted_thinking') return typeof raw.data === 'string' && raw.data !== ''
	return typeof raw.field === 'string'
}

const foreign = (raw: Call['raw'], target: Target): boolean => {
	if (raw === undefined) return false
	if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return true
	return raw.provider !== target.provider || raw.model !== target.model
}

/** A server tool that was begun and never answered is only right at the very end, where the provider paused. */
const closeServerTools = (blocks: Block[], last: boolean): Block[] => {
	if (last || !blocks.some((block) => block.type === 'opaque')) return blocks
	const answered = new Set<unknown>()
	for (const block of blocks)
		if (block.type === 'opaque') answered.add((block.raw as { tool_use_id?: string } | null)?.tool_use_id)
	return blocks.filter((block) => {
		const raw = block.type === 'opaque' ? (block.raw as { type?: string; id?: string } | null) : null
		return raw?.type !== 'server_tool_use' || answered.has(raw.id)
	})
}

const deepWellFormed = (value: unknown): unknown => {
	if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0') ? value : wellFormed(value)
	if (Array.isArray(value)) {
		const items = value.map(deepWellFormed)
		return items.some((item, i) => item !== value[i]) ? items : value
	}
	if (typeof value !== 'object' || value === null) return value
	let changed = false
	const entries = Object.entries(value).map(([key, item]) => {
		const pair: [string, unknown] = [
			key.isWellFormed() && !key.includes('\0') ? key : wellFormed(key),
			deepWellFormed(item),
		]
		changed ||= pair[0] !== key || pair[1] !== item
		return pair
	})
	return changed ? Object.fromEntries(entries) : value
}

/** Ids in order of appearance, each once; the same history gives the same ids, so caches hold. */
class Ids {
	private readonly used = new Set<string>()
	private readonly short: boolean
	constructor(short: boolean) {
		this.short = short
	}
	next(id: string): string {
		const allowed = this.short ? /^[a-zA-Z0-9]{9}$/ : /^[a-zA-Z0-9_-]{1,64}$/
		let name = allowed.test(id)
			? id
			: this.short
				? hash9(id)
				: id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 56) || 'call'
		for (let n = 2; this.used.has(name); n++)
			name = this.short ? hash9(`${id}#${n}`) : `${id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 56) || 'call'}_${n}`
		this.used.add(name)
		return name
	}
}

const hash9 = (text: string): string => {
	let [a, b] = [0x811c9dc5, 0x1000193]
	for (let i = 0; i < text.length; i++) {
		a = Math.imul(a ^ text.charCodeAt(i), 0x01000193)
		b = Math.imul(b ^ text.charCodeAt(i), 0x5bd1e995) + i
	}
	return ((a >>> 0).toString(36) + (b >>> 0).toString(36)).padStart(9, '0').slice(0, 9)
}
