// Chat Completions chunks of many servers as model events and, at the end, one message. Pure.
import type { Block, Json, ModelEvent, ModelFailure, ModelStop, Usage } from '../types.ts'
import { cutArguments, type DecodeContext } from './adapter.ts'
import { coerce, freshId, readArguments, resolveName } from './calls.ts'
import { costOf } from './cost.ts'
import { errorIn, failureOf } from './failure.ts'
import { addCallDelta, addDelta, type Decoder } from './sse.ts'
import { readTextCalls } from './text-calls.ts'
import { TextHold } from './text-hold.ts'

interface Call {
	index: number | undefined
	id: string
	name: string
	parts: string[]
	object?: Record<string, unknown>
	extra?: Json
	chars: number
}

const stops: Record<string, ModelStop> = {
	stop: 'end',
	end_turn: 'end',
	eos: 'end',
	eos_token: 'end',
	stop_sequence: 'stop_sequence',
	length: 'max_tokens',
	max_tokens: 'max_tokens',
	model_length: 'context_full',
	tool_calls: 'tool_calls',
	tool_use: 'tool_calls',
	function_call: 'tool_calls',
	content_filter: 'refusal',
	safety: 'refusal',
	refusal: 'refusal',
}

export interface OpenaiContext extends DecodeContext {
	/** Characters of the whole request, to see that a server read only part of it. */
	sentChars: number
	/** The cut was told before. */
	cutTold: boolean
}

export class OpenaiDecoder implements Decoder {
	done = false
	streamed = false
	failure: ModelFailure | undefined
	/** The text of a call that the server could not read (Groq). */
	failedGeneration: string | undefined
	private readonly calls: Call[] = []
	private readonly hold = new TextHold()
	private readonly thought: string[] = []
	private readonly details: Record<string, Json>[] = []
	private reasoningField: string | undefined
	private finishReason: string | undefined
	private last: any
	private refusal = false
	private readonly c: OpenaiContext
	constructor(context: OpenaiContext) {
		this.c = context
	}

	get complete(): boolean {
		return this.finishReason !== undefined
	}

	push(data: string, out: ModelEvent[]): void {
		if (data.startsWith('[DONE]')) {
			this.done = this.complete
			return
		}
		let chunk: any
		try {
			chunk = JSON.parse(data)
		} catch {
			this.failure = {
				...failureOf({ message: 'a chunk of the stream was no JSON' }, this.c.provider, this.c.spec.id),
				retryable: true,
			}
			return
		}
		const choice = chunk?.choices?.[0]
		if (chunk?.error || choice?.error || (!choice && chunk?.object === 'error')) {
			this.fail(choice?.error ? { error: choice.error } : chunk)
			return
		}
		if (chunk?.usage) this.last = chunk.usage
		if (!choice) return
		if (choice.usage) this.last = choice.usage
		const delta = choice.delta ?? choice.message
		if (delta) this.delta(delta, out)
		const reason = choice.finish_reason
		if (typeof reason === 'string' && reason !== '') {
			if (reason === 'error') {
				this.fail({ error: { message: 'the server ended the answer with an error', code: 502 } })
				return
			}
			this.finishReason = reason
		}
	}

	private fail(chunk: Json): void {
		const told = errorIn(chunk)
		this.failedGeneration = told?.failedGeneration
		this.failure = failureOf(
			{ ...told, message: told?.message ?? 'an error without words', requestId: this.c.requestId },
			this.c.provider,
			this.c.spec.id,
		)
	}

	private delta(delta: any, out: ModelEvent[]): void {
		const { content } = delta
		if (typeof content === 'string') {
			if (content) this.text(content, out)
		} else if (Array.isArray(content))
			for (const part of content) {
				if (part?.type === 'text' && typeof part.text === 'string') this.text(part.text, out)
				else if (part?.type === 'thinking')
					this.think(
						Array.isArray(part.thinking)
							? part.thinking.map((x: any) => x?.text ?? '').join('')
							: String(part.thinking ?? ''),
						'content',
						out,
					)
			}
		if (typeof delta.refusal === 'string' && delta.refusal) {
			this.refusal = true
			this.text(delta.refusal, out)
		}
		for (const field of ['reasoning_content', 'reasoning', 'reasoning_text'])
			if (typeof delta[field] === 'string' && delta[field]) {
				this.think(delta[field], field, out)
				break
			}
		if (Array.isArray(delta.reasoning_details)) for (const detail of delta.reasoning_details) this.detail(detail, out)
		if (Array.isArray(delta.tool_calls)) for (const part of delta.tool_calls) this.call(part, out)
		if (delta.function_call) this.call({ index: 0, function: delta.function_call }, out)
	}

	private text(text: string, out: ModelEvent[]): void {
		const got = this.hold.push(text)
		if (got.thinking) this.show('thinking_delta', got.thinking, out)
		if (got.text) this.show('text_delta', got.text, out)
	}

	private think(text: string, field: string, out: ModelEvent[]): void {
		if (!text) return
		this.reasoningField ??= field
		// Some servers send the same words in two fields.
		if (field !== this.reasoningField) return
		this.thought.push(text)
		this.show('thinking_delta', text, out)
	}

	private show(type: 'text_delta' | 'thinking_delta', text: string, out: ModelEvent[]): void {
		this.streamed = true
		addDelta(out, type, text)
	}

	/** Details must go back unchanged: pieces of one (same index and type) are joined, all else is kept as it came. */
	private detail(detail: any, out: ModelEvent[]): void {
		if (typeof detail !== 'object' || detail === null) return
		const last = this.details[this.details.length - 1]
		const same =
			last &&
			last.type === detail.type &&
			last.index === detail.index &&
			(detail.id == null || last.id == null || last.id === detail.id)
		if (!same) this.details.push({ ...detail })
		else
			for (const [key, value] of Object.entries(detail as Record<string, Json>)) {
				const joins =
					(key === 'text' || key === 'summary' || key === 'data') &&
					typeof value === 'string' &&
					typeof last[key] === 'string'
				if (joins) last[key] = String(last[key]) + value
				else if (value !== null && value !== undefined) last[key] = value
			}
		if (this.reasoningField === undefined || this.reasoningField === 'details') {
			const text = detail.text ?? detail.summary
			if (typeof text === 'string') this.think(text, 'details', out)
		}
	}

	private call(part: any, out: ModelEvent[]): void {
		const fn = part?.function ?? {}
		const index = typeof part?.index === 'number' ? part.index : undefined
		const id = typeof part?.id === 'string' ? part.id : ''
		const name = typeof fn.name === 'string' ? fn.name : ''
		let call: Call | undefined
		if (index !== undefined) call = this.calls.findLast((each) => each.index === index)
		else if (id) call = this.calls.find((each) => each.id === id)
		else if (!name) call = this.calls[this.calls.length - 1]
		// Some servers give each call of a reply the index 0 and an id of its own.
		if (call && id && call.id && id !== call.id && name) call = undefined
		if (!call) {
			call = { index, id, name: '', parts: [], chars: 0 }
			this.calls.push(call)
		}
		if (id && !call.id) call.id = id
		if (name && !call.name) call.name = name
		if (part?.extra_content != null) call.extra = part.extra_content
		const args = fn.arguments
		if (typeof args === 'string') {
			call.parts.push(args)
			call.chars += args.length
		} else if (typeof args === 'object' && args !== null) call.object = args
		addCallDelta(out, this.calls.indexOf(call), resolveName(call.name, this.c.tools), call.chars)
	}

	/** The last usage that was told; cached tokens are part of the prompt's, so they are taken out of `input`. */
	usage(): Usage | undefined {
		const u = this.last
		if (typeof u !== 'object' || u === null) return undefined
		const n = (...values: unknown[]): number =>
			(values.find((value) => typeof value === 'number' && value > 0) as number) ?? 0
		const prompt = n(u.prompt_tokens, u.input_tokens)
		const cacheRead = Math.min(
			prompt,
			n(u.prompt_tokens_details?.cached_tokens, u.prompt_cache_hit_tokens, u.cached_tokens),
		)
		const cacheWrite = Math.min(prompt - cacheRead, n(u.prompt_tokens_details?.cache_write_tokens))
		const usage: Usage = {
			input: prompt - cacheRead - cacheWrite,
			output: n(u.completion_tokens, u.output_tokens),
			cacheRead,
			cacheWrite,
			thinking: n(u.completion_tokens_details?.reasoning_tokens),
			requests: 1,
			cost: null,
		}
		// OpenRouter tells what it took, in dollars.
		return { ...usage, cost: costOf(usage, this.c.spec) ?? (typeof u.cost === 'number' && u.cost >= 0 ? u.cost : null) }
	}

	finish(out: ModelEvent[]): void {
		this.hold.end()
		const usage = this.usage() ?? {
			input: 0,
			output: 0,
			cacheRead: 0,
			cacheWrite: 0,
			thinking: 0,
			requests: 1,
			cost: null,
		}
		let stop: ModelStop | undefined = this.refusal ? 'refusal' : stops[this.finishReason ?? '']
		let calls = this.nativeCalls(stop === 'max_tokens' || stop === 'context_full')
		let text = this.hold.text
		let detail: string | undefined
		if (stop !== 'max_tokens' && usage.output >= this.c.maxOutput && calls.some((call) => call.badInput !== undefined))
			stop = 'max_tokens'
		if (!stop)
			out.push({
				type: 'notice',
				text: `The model stopped for a reason that Garuda does not know (${this.finishReason}).`,
			})
		stop ??= calls.length ? 'tool_calls' : 'end'
		if (stop === 'refusal') calls = []
		else if (calls.length && (stop === 'end' || stop === 'stop_sequence')) stop = 'tool_calls'
		if (stop === 'tool_calls' && !calls.length) stop = 'end'

		if (!calls.length && stop === 'end') {
			const found = readTextCalls(text, this.c.tools, this.c.spec.textToolCalls)
			if (found.calls.length) {
				calls = found.calls.map((call) => ({ type: 'tool_call', id: freshId(undefined, this.c.usedIds), ...call }))
				text = found.text
				stop = 'tool_calls'
			}
			if (found.leaked) {
				detail = 'leaked_tool_call'
				out.push({
					type: 'notice',
					text: 'The model wrote a tool call as text; it was not run. "textToolCalls": "lines" for this model in models.json lets such calls run.',
				})
			}
		}
		const markup = calls.length > 0 && text !== this.hold.text
		if (!markup && detail !== 'leaked_tool_call' && this.hold.rest) this.show('text_delta', this.hold.rest, out)
		if (markup && text && text.length > this.hold.text.length - this.hold.rest.length) {
			// Words after a call on its own lines were held with it.
			const shown = this.hold.text.slice(0, this.hold.text.length - this.hold.rest.length).trimEnd()
			if (text.startsWith(shown)) this.show('text_delta', text.slice(shown.length), out)
		}

		const window = this.seenWindow(usage)
		if (window) {
			detail ??= `context_cut:${window}`
			if (!this.c.cutTold) out.push({ type: 'notice', text: cutNotice(usage, this.c.sentChars) })
		}
		const blocks: Block[] = [
			...this.thinkingBlock(),
			...(text.trim() ? [{ type: 'text' as const, text }] : []),
			...calls,
		]
		if (!text.trim() && !calls.length) detail ??= stop === 'end' ? 'empty_reply' : undefined
		out.push({
			type: 'end',
			message: { role: 'assistant', blocks },
			stop,
			usage,
			...(this.c.requestId && { requestId: this.c.requestId }),
			...(detail && { detail }),
		})
	}

	private nativeCalls(cut: boolean): Extract<Block, { type: 'tool_call' }>[] {
		const origin = { provider: this.c.provider.name, model: this.c.spec.id }
		return this.calls.map((call, i) => {
			const name = resolveName(call.name, this.c.tools)
			const text = call.parts.join('')
			const got = readArguments(call.object ?? text)
			if (cut && i === this.calls.length - 1 && !call.object && text === '') got.badInput = cutArguments
			got.input = coerce(
				got.input,
				this.c.tools.find((tool) => tool.name === name),
			)
			return {
				type: 'tool_call',
				id: freshId(call.id || undefined, this.c.usedIds),
				name,
				...got,
				...(call.extra !== undefined && { raw: { ...origin, extra_content: call.extra } }),
			}
		})
	}

	private thinkingBlock(): Block[] {
		const text = this.thought.join('') || this.hold.thinking
		if (!text && !this.details.length) return []
		const field = this.reasoningField ?? (this.details.length ? 'details' : 'think')
		return [
			{
				type: 'thinking',
				text,
				provider: this.c.provider.name,
				model: this.c.spec.id,
				raw: { field, ...(this.details.length && { details: this.details }) },
			},
		]
	}

	/**
	 * The window of a server that silently read only part of a long prompt; even dense text has fewer than eight characters
	 * a token. Short prompts prove nothing: some servers do not count the tools.
	 */
	private seenWindow(usage: Usage): number | undefined {
		const prompt = usage.input + usage.cacheRead + usage.cacheWrite
		if (prompt < 1_000 || this.c.sentChars < 30_000 || prompt * 8 >= this.c.sentChars) return undefined
		const total = Number(this.last?.total_tokens) || prompt + usage.output
		return Math.max(total, prompt)
	}
}

const cutNotice = (usage: Usage, chars: number): string => {
	const k = (tokens: number) => `~${Math.max(1, Math.round(tokens / 1000))}k`
	return `The server read only ${k(usage.input + usage.cacheRead + usage.cacheWrite)} of ${k(chars / 4)} tokens: it cut the conversation. Raise its context (num_ctx, OLLAMA_CONTEXT_LENGTH, -c).`
}
