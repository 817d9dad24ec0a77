// Garuda's request as the body of Anthropic's Messages API. Pure: the same history gives the same bytes, so caches and signatures hold.
import type { Block, Effort, Image, Json, Message, ModelRequest, ModelSpec } from '../types.ts'
import type { ProviderQuirks } from './provider.ts'

export interface AnthropicBody {
	model: string
	max_tokens: number
	stream: true
	system?: Json
	tools?: Json
	messages: { role: 'user' | 'assistant'; content: Record<string, Json>[] }[]
	thinking?: Json
	output_config?: Json
}

const mark = { cache_control: { type: 'ephemeral' } }

/** `messages` are already valid (validRequest). */
export function encodeAnthropic(
	request: ModelRequest,
	messages: Message[],
	spec: ModelSpec,
	quirks: ProviderQuirks,
): AnthropicBody {
	const wire = messages.map((message) => ({ role: message.role, content: message.blocks.map(encodeBlock) }))
	markMessages(wire)
	const max = Math.min(request.maxOutput, quirks.maxOutput ?? Number.POSITIVE_INFINITY)
	const thinking = thinkingFor(request.effort, max, messages, spec, quirks)
	return {
		model: request.model,
		max_tokens: max,
		stream: true,
		...(request.system && { system: [{ type: 'text', text: request.system, ...mark }] }),
		...(request.tools.length && {
			tools: request.tools.map((tool, i) => ({
				...(tool.server
					? (tool.server.tool as Record<string, Json>)
					: { name: tool.name, description: tool.description, input_schema: tool.schema }),
				...(i === request.tools.length - 1 && mark),
			})),
		}),
		messages: wire,
		...(thinking && { thinking }),
		...(request.effort &&
			quirks.effort !== 'none' &&
			spec.thinking !== 'budget' &&
			spec.efforts.includes(request.effort) && { output_config: { effort: request.effort } }),
	}
}

const encodeBlock = (block: Block): Record<string, Json> => {
	switch (block.type) {
		case 'text':
			return { type: 'text', text: block.text }
		case 'thinking':
		case 'opaque':
			return block.raw as Record<string, Json>
		case 'tool_call': {
			// What the model itself wrote goes back: the name before Garuda read it, and who called.
			const { provider: _p, model: _m, ...kept } = (block.raw ?? {}) as Record<string, Json>
			return { type: 'tool_use', id: block.id, name: block.name, input: block.input as Json, ...kept }
		}
		case 'tool_result':
			return {
				type: 'tool_result',
				tool_use_id: block.callId,
				content: block.images?.length
					? [{ type: 'text', text: block.text }, ...block.images.map(encodeImage)]
					: block.text,
				...(block.status !== 'ok' && { is_error: true }),
			}
		case 'image':
			return encodeImage(block)
	}
}

const encodeImage = ({ mime, data }: Image): Record<string, Json> => ({
	type: 'image',
	source: { type: 'base64', media_type: mime, data },
})

// Breakpoints: system and last tool (above), the last message, and the user's message before it: the server looks back only 20
// blocks for an older entry, and one reply with many calls is longer than that. Thinking cannot carry a mark.
const markMessages = (wire: AnthropicBody['messages']): void => {
	let marks = 0
	for (let i = wire.length - 1; i >= 0 && marks < 2; i--) {
		const { role, content } = wire[i]!
		if (marks > 0 && role !== 'user') continue
		const last = content[content.length - 1]!
		if (last.type !== 'text' && last.type !== 'tool_result' && last.type !== 'image') continue
		content[content.length - 1] = { ...last, ...mark }
		marks++
	}
}

const budgets: Record<Effort, number> = { low: 2_048, medium: 8_192, high: 16_384, xhigh: 24_576, max: 32_768 }

const thinkingFor = (
	effort: Effort | undefined,
	max: number,
	messages: Message[],
	spec: ModelSpec,
	quirks: ProviderQuirks,
): Json | undefined => {
	if (quirks.noThinking || spec.thinking === 'none') return undefined
	// Without `summarized` the words between calls arrive empty and the screen is silent.
	if (spec.thinking !== 'budget') return { type: 'adaptive', display: 'summarized' }
	if (!effort) return undefined
	const budget = Math.min(budgets[effort], max - 1_024)
	// Inside a tool turn that began without thinking, thinking cannot be switched on.
	const turn = messages.findLast((message) => message.role === 'assistant')
	const inTools = messages[messages.length - 1]?.blocks.some((block) => block.type === 'tool_result') ?? false
	if (budget < 1_024 || (inTools && turn?.blocks[0]?.type !== 'thinking')) return undefined
	return { type: 'enabled', budget_tokens: budget }
}
