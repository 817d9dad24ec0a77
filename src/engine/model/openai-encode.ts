// Garuda's request as a Chat Completions body, in the dialect of the server. Pure: the same history gives the same bytes.
import type { Block, Effort, Image, Json, Message, ModelRequest, ModelSpec } from '../types.ts'
import type { ProviderQuirks } from './provider.ts'

type Wire = { [key: string]: Json }

export interface OpenaiBody {
	body: Wire
	/** For each wire message, the index of the message it came from; -1 for the system message. */
	origin: number[]
}

/**
 * `messages` are already valid (validRequest). One system message, first; tool results as messages of their own, before the
 * user's words. A tool's message holds text only, so its pictures go at the head of the user's message behind all of them.
 */
export function encodeOpenai(
	request: ModelRequest,
	messages: Message[],
	spec: ModelSpec,
	quirks: ProviderQuirks,
): OpenaiBody {
	const wire: Wire[] = []
	const origin: number[] = []
	if (request.system) {
		wire.push({ role: quirks.systemRole ?? 'system', content: marked(request.system, quirks) })
		origin.push(-1)
	}
	messages.forEach((message, i) => {
		const items = message.role === 'assistant' ? [assistant(message, quirks)] : user(message, quirks)
		for (const item of items) {
			wire.push(item)
			origin.push(i)
		}
	})
	const last = wire[wire.length - 1]
	if (quirks.cacheMarks && last && typeof last.content === 'string' && last.content)
		last.content = marked(last.content, quirks)
	else if (quirks.cacheMarks && last && Array.isArray(last.content)) {
		// Of several parts only a text takes a mark.
		const at = (last.content as Wire[]).findLastIndex((part) => part.type === 'text')
		if (at >= 0) last.content[at] = { ...(last.content[at] as Wire), cache_control: { type: 'ephemeral' } }
	}
	const max = Math.min(request.maxOutput, quirks.maxOutput ?? Number.POSITIVE_INFINITY)
	const effort = request.effort && effortFor(request.effort, spec)
	return {
		origin,
		body: {
			model: request.model,
			messages: wire,
			...(request.tools.length && {
				tools: request.tools.map((tool) => ({
					type: 'function',
					function: { name: tool.name, description: tool.description, parameters: parameters(tool.schema) },
				})),
			}),
			stream: true,
			...(quirks.streamUsage !== false && { stream_options: { include_usage: true } }),
			[quirks.maxTokens ?? 'max_tokens']: max,
			...(effort && quirks.effort === 'reasoning_effort' && { reasoning_effort: effort }),
			...(effort && quirks.effort === 'reasoning' && { reasoning: { effort } }),
			...(quirks.cacheKey && request.sessionId && { prompt_cache_key: request.sessionId }),
		},
	}
}

const marked = (text: string, quirks: ProviderQuirks): Json =>
	quirks.cacheMarks ? [{ type: 'text', text, cache_control: { type: 'ephemeral' } }] : text

const effortFor = (effort: Effort, spec: ModelSpec): Effort => {
	if (spec.efforts.includes(effort)) return effort
	return effort === 'max' && spec.efforts.includes('xhigh')
		? 'xhigh'
		: effort === 'xhigh' || effort === 'max'
			? 'high'
			: effort
}

// Gemini's endpoint refuses `$schema`; the others do not need it.
const parameters = (schema: Json): Json => {
	if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return { type: 'object', properties: {} }
	const { $schema: _, ...rest } = schema
	return rest
}

const textOf = (blocks: Block[]): string =>
	blocks
		.filter((block) => block.type === 'text')
		.map((block) => block.text)
		.join('\n\n')

const user = (message: Message, quirks: ProviderQuirks): Wire[] => {
	const results = message.blocks.filter((block) => block.type === 'tool_result')
	const items: Wire[] = results.map((block) => ({ role: 'tool', tool_call_id: block.callId, content: block.text }))
	const content = userContent(
		results.flatMap((block) => block.images ?? []),
		message.blocks,
	)
	if (content === null) return items
	if (items.length > 0 && quirks.wordAfterTools) items.push({ role: 'assistant', content: 'I have the results.' })
	items.push({ role: 'user', content })
	return items
}

/** A plain string where there are only words: some servers take nothing else. Null when there is nothing to say. */
const userContent = (shown: Image[], blocks: Block[]): Json => {
	if (shown.length === 0 && !blocks.some((block) => block.type === 'image')) return textOf(blocks) || null
	const parts: Json[] = []
	if (shown.length > 0) parts.push(textPart(`Shown by the tools: ${shown.map((image) => image.label).join('; ')}`))
	parts.push(...shown.map(imagePart))
	for (const block of blocks)
		if (block.type === 'image') parts.push(imagePart(block))
		else if (block.type === 'text') parts.push(textPart(block.text))
	return parts
}

const textPart = (text: string): Json => ({ type: 'text', text })
const imagePart = ({ mime, data }: Image): Json => ({
	type: 'image_url',
	image_url: { url: `data:${mime};base64,${data}` },
})

const assistant = (message: Message, quirks: ProviderQuirks): Wire => {
	const calls = message.blocks.filter((block) => block.type === 'tool_call')
	const text = textOf(message.blocks)
	const item: Wire = { role: 'assistant' }
	if (text || !calls.length) item.content = text
	else if (quirks.emptyContent === 'null') item.content = null
	else if (quirks.emptyContent !== 'omit') item.content = ''
	Object.assign(item, reasoning(message, calls.length > 0, quirks))
	if (calls.length)
		item.tool_calls = calls.map((call) => {
			const { provider: _p, model: _m, ...extra } = (call.raw ?? {}) as Wire
			return {
				id: call.id,
				type: 'function',
				function: { name: call.name, arguments: JSON.stringify(call.input) },
				...extra,
			}
		})
	return item
}

/** Thinking goes back only where the server wants it, on turns that call tools. */
const reasoning = (message: Message, calls: boolean, quirks: ProviderQuirks): Wire => {
	if (!quirks.reasoning || quirks.reasoning === 'never') return {}
	const blocks = message.blocks.filter((block) => block.type === 'thinking')
	if (quirks.reasoning === 'reasoning_details') {
		const details = blocks.flatMap((block) => {
			const raw = block.raw as { details?: Json[] } | null
			return raw?.details ?? []
		})
		if (details.length) return { reasoning_details: details }
		const text = blocks.map((block) => block.text).join('')
		return text ? { reasoning: text } : {}
	}
	if (!calls) return {}
	// A server that must have the field takes an empty one for a turn that had no thinking.
	return { [quirks.reasoning]: blocks.map((block) => block.text).join('') }
}
