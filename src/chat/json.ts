// Events as the field's JSON messages, one object a line: docs/json-output.md names every field. Used by print.
import type {
	AgentEvent,
	Block,
	Json,
	ModelStop,
	Problem,
	Session,
	StopReason,
	TurnEnd,
	Usage,
} from '../engine/index.ts'
import { problemText, reasonText } from './words.ts'

type Fields = Record<string, unknown>

const stopReasons: Record<ModelStop, string> = {
	end: 'end_turn',
	tool_calls: 'tool_use',
	max_tokens: 'max_tokens',
	refusal: 'refusal',
	pause: 'pause_turn',
	context_full: 'model_context_window_exceeded',
	stop_sequence: 'stop_sequence',
}

const terminalReasons: Partial<Record<StopReason, string>> = {
	done: 'completed',
	max_steps: 'max_turns',
	error: 'model_error',
	cancelled: 'aborted',
}

// Characters that JSON leaves raw and a terminal or an editor might act on: DEL, C1, invisible and direction-changing ones.
const unsafe = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\udb40[\udc00-\udfff]/g

/** One line of JSON with nothing in it that a terminal acts on; every character is kept, as an escape where needed. */
export const jsonText = (value: unknown): string =>
	JSON.stringify(value).replace(unsafe, (chars) => {
		let out = ''
		for (let i = 0; i < chars.length; i++) out += `\\u${chars.charCodeAt(i).toString(16).padStart(4, '0')}`
		return out
	})

export interface JsonOptions {
	/** Also one message for each piece of a reply as it comes. */
	partial: boolean
	/** Names for `init`. */
	slashCommands: readonly string[]
	version: string
	acceptEdits: boolean
	/** For tests: ids and times. */
	uuid?: () => string
	now?: () => Date
}

const tokens = (usage: Usage): Fields => ({
	input_tokens: usage.input,
	cache_creation_input_tokens: usage.cacheWrite,
	cache_read_input_tokens: usage.cacheRead,
	output_tokens: usage.output,
})

/** The subtype of a turn's result: the field's names where it has them. */
const subtype = (end: TurnEnd): string => {
	if (end.reason === 'done') return 'success'
	if (end.reason === 'max_steps') return 'error_max_turns'
	if (end.reason === 'cost_budget') return 'error_max_budget_usd'
	if (end.error?.code === 'invalid_output') return 'error_max_structured_output_retries'
	return 'error_during_execution'
}

/** Turns the events of one process's session into lines (with their line ends). Holds no text; a line is made once. */
export class JsonMessages {
	private readonly o: JsonOptions
	private readonly uuid: () => string
	private readonly now: () => Date
	private id: string | null = null
	private session: Session | null = null
	/** The reply under way, for partial messages: its id, and the open block. */
	private reply: { id: string; index: number; open: 'text' | 'thinking' | null } | null = null
	private models = new Map<string, Usage>()
	private lastStop: string | null = null
	private tail = ''

	constructor(options: JsonOptions) {
		this.o = options
		this.uuid = options.uuid ?? process.getBuiltinModule('node:crypto').randomUUID
		this.now = options.now ?? (() => new Date())
	}

	/** The first line. */
	init(session: Session, own: readonly string[] = []): string {
		this.session = session
		this.id = session.id
		const status = session.status()
		const mode = status.mode === 'plan' ? 'plan' : status.acceptEdits || this.o.acceptEdits ? 'acceptEdits' : 'default'
		const sandbox = /^(bubblewrap|seatbelt)/i.test(status.sandbox) ? true : /^none/i.test(status.sandbox) ? false : null
		this.tail = `,"parent_tool_use_id":null,"session_id":${jsonText(session.id)},"uuid":"`
		return this.message({
			type: 'system',
			subtype: 'init',
			cwd: session.root,
			session_id: session.id,
			tools: session.tools,
			model: session.model,
			permissionMode: mode,
			slash_commands: [...this.o.slashCommands, ...own],
			// Before the first command nothing is known of the sandbox, and then nothing is said.
			...(sandbox === null ? {} : { sandbox_enabled: sandbox }),
			additional_directories: status.extraDirs,
			garuda_version: this.o.version,
		})
	}

	/** The lines of one event; empty for events that JSON output does not carry. */
	event(event: AgentEvent): string {
		switch (event.type) {
			case 'step_start':
				return this.begin()
			case 'text_delta':
			case 'thinking_delta':
				return this.o.partial ? this.delta(event.type === 'text_delta' ? 'text' : 'thinking', event.text) : ''
			case 'message':
				return this.assistant(event)
			case 'tool_result':
				return this.toolResult(event)
			case 'model_retry': {
				const again = event.void ? this.begin() : ''
				return (
					this.message({
						type: 'system',
						subtype: 'api_retry',
						attempt: event.attempt,
						max_retries: event.of,
						retry_delay_ms: event.delayMs,
						error: event.reason,
						session_id: this.id,
					}) + again
				)
			}
			case 'compaction':
				if (event.phase !== 'done') return ''
				return this.message({
					type: 'system',
					subtype: 'compact_boundary',
					compact_metadata: { trigger: 'auto', pre_tokens: event.before },
					session_id: this.id,
				})
			default:
				return ''
		}
	}

	/** The last line of a turn. */
	result(end: TurnEnd): string {
		const ok = end.reason === 'done'
		const error = end.error
		const line = this.message({
			type: 'result',
			subtype: subtype(end),
			is_error: !ok,
			...(ok ? { result: end.text } : { errors: [error ? problemText(error) : reasonText[end.reason]] }),
			...(error ? { error: errorFields(error) } : {}),
			num_turns: end.steps,
			duration_ms: end.durationMs,
			duration_api_ms: end.modelMs,
			ttft_ms: end.firstTokenMs,
			session_id: this.id,
			total_cost_usd: end.usage.cost,
			stop_reason: this.lastStop,
			usage: tokens(end.usage),
			modelUsage: this.modelUsage(),
			permission_denials: end.denials.map((one) => ({
				tool_name: one.tool,
				tool_use_id: one.callId,
				tool_input: one.input,
			})),
			terminal_reason: terminalReasons[end.reason] ?? end.reason,
			...(end.structured === undefined ? {} : { structured_output: end.structured }),
		})
		this.models = new Map()
		this.lastStop = null
		this.reply = null
		return line
	}

	/** A result for what failed outside a turn: no model, a locked session, a bad input line. */
	failure(problem: Problem): string {
		return this.message({
			type: 'result',
			subtype: 'error_during_execution',
			is_error: true,
			errors: [problemText(problem)],
			error: errorFields(problem),
			num_turns: 0,
			duration_ms: 0,
			duration_api_ms: 0,
			ttft_ms: null,
			session_id: this.id,
			total_cost_usd: 0,
			stop_reason: null,
			usage: { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
			modelUsage: {},
			permission_denials: [],
			terminal_reason: 'error',
		})
	}

	private message(fields: Fields): string {
		return `${jsonText({ ...fields, uuid: this.uuid() })}\n`
	}

	private modelUsage(): Fields {
		const status = this.session?.status()
		return Object.fromEntries(
			[...this.models].map(([name, usage]) => [
				name,
				{
					inputTokens: usage.input,
					outputTokens: usage.output,
					cacheReadInputTokens: usage.cacheRead,
					cacheCreationInputTokens: usage.cacheWrite,
					costUSD: usage.cost,
					...(status?.model === name && status.window !== null ? { contextWindow: status.window } : {}),
				},
			]),
		)
	}

	// ------------------------------------------------------------ whole messages

	private assistant(event: Extract<AgentEvent, { type: 'message' }>): string {
		const { message, usage, model } = event
		const known = this.models.get(model)
		this.models.set(model, known ? sum(known, usage) : usage)
		this.lastStop = stopReasons[event.stop]
		const reply = this.reply ?? { id: this.uuid(), index: -1, open: null }
		let out = this.o.partial ? this.close(reply, message.blocks, usage) : ''
		this.reply = null
		const head = {
			id: `msg_${reply.id}`,
			type: 'message',
			role: 'assistant',
			model,
		}
		for (const block of message.blocks) {
			const content = asContent(block)
			if (content === null) continue
			out += this.message({
				type: 'assistant',
				message: { ...head, content: [content], stop_reason: this.lastStop, usage: tokens(usage) },
				parent_tool_use_id: null,
				session_id: this.id,
				timestamp: this.now().toISOString(),
			})
		}
		return out
	}

	private toolResult(event: Extract<AgentEvent, { type: 'tool_result' }>): string {
		let out = ''
		if (event.status === 'denied' || event.denied !== undefined)
			out = this.message({
				type: 'system',
				subtype: 'permission_denied',
				tool_name: event.name,
				tool_use_id: event.callId,
				message: event.denied === undefined ? event.text : `Denied: ${event.denied}`,
				session_id: this.id,
			})
		const failed = event.status === 'ok' ? {} : { is_error: true }
		return (
			out +
			this.message({
				type: 'user',
				message: {
					role: 'user',
					content: [{ type: 'tool_result', tool_use_id: event.callId, content: event.text, ...failed }],
				},
				parent_tool_use_id: null,
				session_id: this.id,
				timestamp: this.now().toISOString(),
				...(event.data === undefined ? {} : { tool_use_result: event.data }),
			})
		)
	}

	// ------------------------------------------------------------ partial messages

	/** By template: this runs once for every piece of a reply. */
	private stream(event: string): string {
		return `{"type":"stream_event","event":${event}${this.tail}${this.uuid()}"}\n`
	}

	private begin(): string {
		this.reply = { id: this.uuid(), index: -1, open: null }
		if (!this.o.partial) return ''
		const message = {
			id: `msg_${this.reply.id}`,
			type: 'message',
			role: 'assistant',
			model: this.session?.model ?? '',
			content: [],
			stop_reason: null,
			usage: { input_tokens: 0, output_tokens: 0 },
		}
		return this.stream(jsonText({ type: 'message_start', message }))
	}

	private delta(kind: 'text' | 'thinking', text: string): string {
		let out = this.reply === null ? this.begin() : ''
		const reply = this.reply!
		if (reply.open !== kind) {
			out += this.stopBlock(reply)
			reply.index++
			reply.open = kind
			out += this.stream(
				`{"type":"content_block_start","index":${reply.index},"content_block":{"type":"${kind}","${kind}":""}}`,
			)
		}
		return (
			out +
			this.stream(
				`{"type":"content_block_delta","index":${reply.index},"delta":{"type":"${kind}_delta","${kind}":${jsonText(text)}}}`,
			)
		)
	}

	private stopBlock(reply: { index: number; open: string | null }): string {
		if (reply.open === null) return ''
		reply.open = null
		return this.stream(`{"type":"content_block_stop","index":${reply.index}}`)
	}

	/** Calls come whole: their arguments are one delta. Then the message's end. */
	private close(
		reply: { id: string; index: number; open: 'text' | 'thinking' | null },
		blocks: Block[],
		usage: Usage,
	): string {
		let out = this.stopBlock(reply)
		for (const block of blocks) {
			if (block.type !== 'tool_call') continue
			reply.index++
			const { index } = reply
			const start = { type: 'tool_use', id: block.id, name: block.name, input: {} }
			const delta = { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
			out += this.stream(jsonText({ type: 'content_block_start', index, content_block: start }))
			out += this.stream(jsonText({ type: 'content_block_delta', index, delta }))
			out += this.stream(`{"type":"content_block_stop","index":${index}}`)
		}
		out += this.stream(jsonText({ type: 'message_delta', delta: { stop_reason: this.lastStop }, usage: tokens(usage) }))
		return out + this.stream('{"type":"message_stop"}')
	}
}

const sum = (a: Usage, b: Usage): Usage => ({
	input: a.input + b.input,
	output: a.output + b.output,
	cacheRead: a.cacheRead + b.cacheRead,
	cacheWrite: a.cacheWrite + b.cacheWrite,
	thinking: a.thinking + b.thinking,
	requests: a.requests + b.requests,
	cost: a.cost === null || b.cost === null ? null : a.cost + b.cost,
})

/** A block in the field's form; null for what no reader could use. */
function asContent(block: Block): Json | null {
	switch (block.type) {
		case 'text':
			return block.text === '' ? null : { type: 'text', text: block.text }
		case 'thinking': {
			const { raw } = block
			const signature = raw !== null && typeof raw === 'object' && !Array.isArray(raw) ? raw.signature : undefined
			return { type: 'thinking', thinking: block.text, ...(typeof signature === 'string' ? { signature } : {}) }
		}
		case 'tool_call':
			return { type: 'tool_use', id: block.id, name: block.name, input: block.input as Json }
		case 'opaque': {
			const { raw } = block
			return raw !== null && typeof raw === 'object' && !Array.isArray(raw) && typeof raw.type === 'string' ? raw : null
		}
		case 'tool_result':
		case 'image':
			return null
	}
}

const errorFields = (problem: Problem): Fields => ({
	code: problem.code,
	...(problem.status === undefined ? {} : { status: problem.status }),
	...(problem.requestId === undefined ? {} : { request_id: problem.requestId }),
})
