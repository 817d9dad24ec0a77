// Anthropic's raw stream events as model events and, at the end, one message. Pure.
import type { Block, Json, ModelEvent, ModelFailure, ModelStop, Usage } from '../types.ts'
import { cutArguments, type DecodeContext } from './adapter.ts'
import { freshId, readArguments, resolveName } from './calls.ts'
import { costOf, searchPrice } from './cost.ts'
import { failureOf } from './failure.ts'
import { addCallDelta, addDelta, type Decoder } from './sse.ts'

interface Open {
	type: string
	raw: Record<string, Json>
	parts: string[]
	chars: number
	/** Place among the calls of the message. */
	call: number
	name: string
	id: string
	closed: boolean
}

const stops: Record<string, ModelStop> = {
	end_turn: 'end',
	tool_use: 'tool_calls',
	max_tokens: 'max_tokens',
	stop_sequence: 'stop_sequence',
	pause_turn: 'pause',
	compaction: 'pause',
	refusal: 'refusal',
	model_context_window_exceeded: 'context_full',
}

export class AnthropicDecoder implements Decoder {
	done = false
	streamed = false
	failure: ModelFailure | undefined
	private readonly blocks: Open[] = []
	private readonly counts: { [key: string]: number } = {}
	private started = false
	private calls = 0
	private stop: string | null = null
	private stopDetail: string | undefined
	private readonly c: DecodeContext
	constructor(context: DecodeContext) {
		this.c = context
	}

	get complete(): boolean {
		return this.done
	}

	push(data: string, out: ModelEvent[]): void {
		let event: any
		try {
			event = JSON.parse(data)
		} catch {
			this.failure = {
				...failureOf({ message: 'an event of the stream was no JSON' }, this.c.provider, this.c.spec.id),
				retryable: true,
			}
			return
		}
		switch (event?.type) {
			case 'content_block_delta':
				this.delta(event.index, event.delta ?? {}, out)
				return
			case 'content_block_start':
				this.start(event.index, event.content_block ?? {}, out)
				return
			case 'content_block_stop':
				this.close(event.index, out)
				return
			case 'message_start':
				this.started = true
				this.count(event.message?.usage)
				return
			case 'message_delta':
				if (event.delta && 'stop_reason' in event.delta) this.stop = event.delta.stop_reason ?? this.stop
				this.stopDetail = event.delta?.stop_details?.category ?? event.stop_details?.category ?? this.stopDetail
				this.count(event.usage)
				return
			case 'message_stop':
				this.done = true
				return
			case 'error':
				this.failure = failureOf(
					{
						type: event.error?.type,
						message: String(event.error?.message ?? 'an error without words'),
						requestId: event.request_id ?? this.c.requestId,
					},
					this.c.provider,
					this.c.spec.id,
				)
		}
	}

	private start(index: number, raw: Record<string, Json>, out: ModelEvent[]): void {
		const type = String(raw.type)
		const open: Open = { type, raw, parts: [], chars: 0, call: -1, name: '', id: '', closed: false }
		this.blocks[index] = open
		if (type === 'text' && raw.text) this.delta(index, { type: 'text_delta', text: raw.text }, out)
		if (type === 'thinking' && raw.thinking) this.delta(index, { type: 'thinking_delta', thinking: raw.thinking }, out)
		if (type === 'tool_use') {
			open.call = this.calls++
			open.name = resolveName(String(raw.name), this.c.tools)
			open.id = freshId(typeof raw.id === 'string' ? raw.id : undefined, this.c.usedIds)
			addCallDelta(out, open.call, open.name, 0)
		}
	}

	private delta(index: number, delta: any, out: ModelEvent[]): void {
		const open = this.blocks[index]
		if (!open) return
		switch (delta.type) {
			case 'text_delta':
				if (!delta.text) return
				this.streamed = true
				open.parts.push(delta.text)
				addDelta(out, 'text_delta', delta.text)
				return
			case 'thinking_delta':
				if (!delta.thinking) return
				this.streamed = true
				open.parts.push(delta.thinking)
				addDelta(out, 'thinking_delta', delta.thinking)
				return
			case 'input_json_delta':
				if (!delta.partial_json) return
				open.parts.push(delta.partial_json)
				open.chars += delta.partial_json.length
				if (open.call >= 0) addCallDelta(out, open.call, open.name, open.chars)
				return
			case 'signature_delta':
				open.raw.signature = String(open.raw.signature ?? '') + delta.signature
				return
			case 'citations_delta':
				return
			default:
				// A delta of a kind that is not known: its texts are added to the block's fields of the same name.
				for (const [key, value] of Object.entries(delta as Record<string, Json>))
					if (key !== 'type' && typeof value === 'string') open.raw[key] = String(open.raw[key] ?? '') + value
		}
	}

	private close(index: number, out: ModelEvent[]): void {
		const open = this.blocks[index]
		if (!open || open.closed) return
		open.closed = true
		if (open.type === 'server_tool_use') {
			if (open.parts.length) open.raw.input = readArguments(open.parts.join('')).input as Json
			out.push({
				type: 'server_tool',
				id: String(open.raw.id),
				name: String(open.raw.name),
				input: open.raw.input ?? {},
			})
		} else if (open.type.endsWith('_tool_result') && open.raw.tool_use_id)
			out.push({
				type: 'server_tool',
				id: String(open.raw.tool_use_id),
				name: open.type.replace(/_tool_result$/, ''),
				result: open.raw.content ?? null,
			})
	}

	/** Usage is cumulative: each figure is set, never added; an absent or zero one erases nothing. */
	private count(usage: any): void {
		if (typeof usage !== 'object' || usage === null) return
		const set = (key: string, value: unknown) => {
			if (typeof value === 'number' && value > 0) this.counts[key] = value
		}
		set('input', usage.input_tokens)
		set('output', usage.output_tokens)
		set('cacheRead', usage.cache_read_input_tokens)
		set('cacheWrite', usage.cache_creation_input_tokens)
		set('thinking', usage.output_tokens_details?.thinking_tokens)
		set('searches', usage.server_tool_use?.web_search_requests)
	}

	usage(): Usage | undefined {
		if (!this.started) return undefined
		const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, thinking = 0, searches = 0 } = this.counts
		const usage: Usage = { input, output, cacheRead, cacheWrite, thinking, requests: 1, cost: null }
		const cost = costOf(usage, this.c.spec)
		return { ...usage, cost: cost === null ? null : cost + searches * searchPrice }
	}

	finish(out: ModelEvent[]): void {
		let stop: ModelStop | undefined = this.stop === null ? undefined : stops[this.stop]
		const usage = this.usage() ?? {
			input: 0,
			output: 0,
			cacheRead: 0,
			cacheWrite: 0,
			thinking: 0,
			requests: 1,
			cost: null,
		}
		const opens = this.blocks.filter(Boolean)
		let cut = stop === 'max_tokens' || stop === 'context_full'
		let blocks = opens.flatMap((open, i) => this.block(open, cut && i === opens.length - 1))
		// Some gateways say tool_use although the limit cut the arguments.
		if (
			!cut &&
			usage.output >= this.c.maxOutput &&
			blocks.some((block) => block.type === 'tool_call' && block.badInput !== undefined)
		) {
			cut = true
			stop = 'max_tokens'
		}
		const called = blocks.some((block) => block.type === 'tool_call')
		if (!stop) {
			stop = called ? 'tool_calls' : 'end'
			out.push({
				type: 'notice',
				text: `The model stopped for a reason that Garuda does not know (${this.stop ?? 'none given'}).`,
			})
		}
		if (stop === 'refusal' && called) blocks = blocks.filter((block) => block.type !== 'tool_call')
		else if (called && (stop === 'end' || stop === 'stop_sequence')) stop = 'tool_calls'
		const detail = stop === 'refusal' ? this.stopDetail : blocks.length === 0 ? 'empty_reply' : undefined
		out.push({
			type: 'end',
			message: { role: 'assistant', blocks },
			stop,
			usage,
			...(this.c.requestId && { requestId: this.c.requestId }),
			...(detail && { detail }),
		})
	}

	private block(open: Open, cut: boolean): Block[] {
		const origin = { provider: this.c.provider.name, model: this.c.spec.id }
		const text = open.parts.join('')
		switch (open.type) {
			case 'text':
				return text.trim() === '' ? [] : [{ type: 'text', text }]
			case 'thinking':
				return [{ type: 'thinking', text, ...origin, raw: { ...open.raw, thinking: text } }]
			case 'redacted_thinking':
				return [{ type: 'thinking', text: '', ...origin, raw: open.raw }]
			case 'tool_use': {
				const whole = open.parts.length === 0 && typeof open.raw.input === 'object' && !cut
				const got = whole ? readArguments(open.raw.input) : readArguments(text)
				if (cut && (got.badInput !== undefined || text === '')) got.badInput = text || cutArguments
				const { type: _t, id: _i, name, input: _in, ...extra } = open.raw
				const kept = { ...extra, ...(name !== open.name && { name: name as Json }) }
				const raw = Object.keys(kept).length ? { ...origin, ...kept } : undefined
				return [{ type: 'tool_call', id: open.id, name: open.name, ...got, ...(raw && { raw }) }]
			}
			default:
				return [{ type: 'opaque', provider: origin.provider, raw: open.raw }]
		}
	}
}
