// The words of the engine: what a turn is made of. Every room below and every front end above speaks in these.

/** JSON as it crosses a wire or a file. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** How the agent may act: `build` works, `plan` reads and plans; enforced by the gate and a read-only sandbox. */
export type Mode = 'build' | 'plan'
/** How hard the model thinks. `undefined` anywhere means the model's own default. */
export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

// ---------------------------------------------------------------- history

/** A picture as it goes to a model. Made only by `files/image.ts`, which has checked its bytes. */
export interface Image {
	/** What the bytes are, whatever a name or a client said. */
	mime: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
	/** Strict base64, no line breaks. Never printed, logged or exported. */
	data: string
	/** Pixels. */
	width: number
	height: number
	/** Stands in its place wherever it is not shown: "shot.png, PNG 640×480". */
	label: string
}

/**
 * One piece of a message. History is append-only and provider-neutral; `raw` keeps what an adapter must send back
 * unchanged (signatures, ids). Text is already redacted when it enters history.
 */
export type Block =
	| { type: 'text'; text: string }
	| { type: 'thinking'; text: string; provider: string; model: string; raw: Json }
	/** `badInput` is the raw text of arguments that were no JSON object; such a call is answered with an error, never run. */
	| { type: 'tool_call'; id: string; name: string; input: Record<string, unknown>; badInput?: string; raw?: Json }
	| { type: 'tool_result'; callId: string; status: CallStatus; text: string; images?: Image[] }
	/** In a user's message only; its label also stands in the text beside it. */
	| ({ type: 'image' } & Image)
	/** A provider's block that Garuda does not interpret (server tools, unknown types); sent back to the same provider only. */
	| { type: 'opaque'; provider: string; raw: Json }

export interface Message {
	role: 'user' | 'assistant'
	blocks: Block[]
}

export type CallStatus = 'ok' | 'failed' | 'denied' | 'cancelled'

/** Tokens of one or more model calls. `input` excludes cache reads and writes. */
export interface Usage {
	input: number
	output: number
	cacheRead: number
	cacheWrite: number
	/** Part of `output`; 0 where the provider does not say. */
	thinking: number
	requests: number
	/** US dollars; null when a price is unknown: never 0 for unknown. */
	cost: number | null
}

// ---------------------------------------------------------------- a call and its question

export type CallKind = 'read' | 'search' | 'edit' | 'execute' | 'fetch' | 'think' | 'other'
export type Access = 'read' | 'write' | 'run' | 'net' | 'none'

/** A change of one file as text, before and after; `old` is null for a new file. */
export interface FileChange {
	path: string
	old: string | null
	new: string
}

/** What a call will do, in words and data: what is shown is what is done. Text from outside is still raw here. */
export interface CallInfo {
	/** One line. */
	title: string
	kind: CallKind
	access: Access
	/** Absolute real paths that the call reads or writes; empty for commands. */
	paths: string[]
	/** What a "session" answer covers: the same key asks no more. Also counts repeats and denials. */
	key: string
	change?: FileChange
	/** The change is made as a whole or not at all: no front end offers parts of it. */
	whole?: true
	/** For bash: the command as written. */
	command?: string
	/** For bash: the folder it runs in, when that is not the working root. Part of what an answer covers. */
	cwd?: string
	/** For bash: asked by the model to run outside the sandbox. */
	outside?: boolean
	/** Longer text for the question when there is no change or command. */
	preview?: string
	/** Line of the first path an editor may jump to, 1-based. */
	line?: number
}

/** What a pass of the gate decides on besides the call itself: a running call that wants more asks with one of these. */
export type Effect =
	| { type: 'outside_sandbox'; command: string; cwd?: string; wall: Wall; detail: string }
	| { type: 'reach_host'; host: string; port: number }
	/** `paths`: absolute, all of them; `declared`: what the model had declared, one line each, only when all lies within it. */
	| { type: 'apply_changes'; summary: string; paths?: string[]; declared?: string[] }
	/** `hosts`: what the command reaches with it. */
	| { type: 'use_secret'; name: string; command: string; hosts?: string[] }

/** The part of the sandbox that stopped a command. */
export type Wall = 'network' | 'write' | 'read' | 'process' | 'asked'

export type Choice = 'once' | 'session' | 'deny' | 'cancel'

/** A question to the user. Strings may hold anything; front ends show them through `visible()`. */
export interface ApprovalRequest {
	id: string
	callId?: string
	tool: string
	info: CallInfo
	effect?: Effect
	/** One line: what will happen. */
	title: string
	/** The whole command, diff or text. */
	preview: string
	warning?: string
	choices: Choice[]
	/** Other words for a choice (a consent: `session` means "trust this text from now on"). */
	labels?: Partial<Record<Choice, string>>
	/** The rule that, put into settings, would answer this for good; shown with the answer. */
	lastingRule?: string
}

/** `cancel` ends the turn; abort, error or doubt is `deny`. */
export interface Answer {
	choice: Choice
	/** Indexes of accepted hunks; absent means all. */
	accepted?: number[]
	/** What the user says to the model with a denial. */
	note?: string
}

// ---------------------------------------------------------------- turn

export interface PromptInput {
	text: string
	/** Text of embedded context (an editor's selection, stdin): fenced, after the prompt. */
	context?: { label: string; text: string }[]
	/** A command file to run in the text's place; `text` is then the line as typed, for lists and records. */
	command?: { name: string; args: string }
	/** Pictures that go with the prompt, in the order in which it speaks of them. */
	images?: Image[]
}

export type StopReason =
	| 'done'
	| 'max_tokens'
	| 'refusal'
	| 'max_steps'
	| 'token_budget'
	| 'cost_budget'
	| 'repeated_calls'
	| 'cancelled'
	| 'error'

/** A failure that a person is told: what happened, why and what to do next. */
export interface Problem {
	message: string
	hint?: string
	/** Stable word for scripts: command (a command file was stopped), auth, billing, rate_limit, overloaded, network, timeout, overflow, invalid_request, not_found, refused, internal. */
	code: string
	status?: number
	requestId?: string
}

export interface TurnEnd {
	reason: StopReason
	error?: Problem
	usage: Usage
	steps: number
	/** The last assistant text of the turn. */
	text: string
	/** Calls that were denied and whose key was not allowed later. */
	denials: { callId: string; tool: string; input: Record<string, unknown>; reason: string }[]
	/** Milliseconds: whole turn, and inside model requests. */
	durationMs: number
	modelMs: number
	/** Milliseconds from the prompt to the first text or thinking of the model; null when none came. */
	firstTokenMs: number | null
	structured?: Json
}

/** What happens in a session, in order. `question` and `answer` are for observers only; the Approver answers. */
export type AgentEvent =
	| { type: 'step_start'; step: number }
	| { type: 'text_delta'; text: string }
	| { type: 'thinking_delta'; text: string }
	/** A finished assistant message, before its calls run. Text shown before a `model_retry` with `void` does not count. */
	| { type: 'message'; message: Message; usage: Usage; model: string; stop: ModelStop; requestId?: string }
	| { type: 'tool_call'; callId: string; name: string; input: Record<string, unknown>; info: CallInfo }
	/** Empty text: it is allowed and begins. With a carriage return in front: a line that is not at its end yet; the next text replaces it. */
	| { type: 'tool_progress'; callId: string; text: string }
	/** `denied`: it ran, and something that it wanted besides was denied, with the reason. */
	| {
			type: 'tool_result'
			callId: string
			name: string
			status: CallStatus
			text: string
			data?: Json
			denied?: string
	  }
	| { type: 'server_tool'; id: string; name: string; input?: Json; result?: Json }
	| { type: 'notice'; level: 'info' | 'warning'; text: string }
	| { type: 'model_retry'; attempt: number; of: number; delayMs: number; reason: string; void: boolean }
	| { type: 'compaction'; phase: 'start' | 'done' | 'failed'; before: number; after?: number; text?: string }
	| { type: 'question'; request: ApprovalRequest }
	| { type: 'answer'; id: string; choice: Choice }
	| { type: 'step_end'; step: number; usage: Usage; contextTokens: number }
	| { type: 'turn_end'; end: TurnEnd }
	/** Only in `Session.history()`: what the user (or Garuda on their behalf) said. */
	| { type: 'user_text'; text: string }
	// between turns
	| { type: 'mode'; mode: Mode }
	| { type: 'model'; model: string; effort?: Effort }
	| { type: 'title'; title: string }

// ---------------------------------------------------------------- model

/** A tool as the model sees it. `schema` is JSON schema (draft 7), frozen for the session. */
export interface ToolSpec {
	name: string
	description: string
	schema: Json
	/** Runs at this provider, inside its reply, and is sent in its own form; to no other provider. */
	server?: { provider: string; tool: Json }
}

export interface ModelRequest {
	/** The model's id at its provider, without the provider. */
	model: string
	system: string
	tools: ToolSpec[]
	messages: Message[]
	maxOutput: number
	effort?: Effort
	purpose: 'turn' | 'summary' | 'structured'
	/** Drop thinking blocks: the prefix they are bound to has changed. */
	stripThinking?: boolean
	/** A stable id of the session for providers that route caches by it. */
	sessionId?: string
}

export type ModelStop = 'end' | 'tool_calls' | 'max_tokens' | 'refusal' | 'pause' | 'context_full' | 'stop_sequence'

export type ModelEvent =
	| { type: 'text_delta'; text: string }
	| { type: 'thinking_delta'; text: string }
	/** The model is writing a call; its arguments are not complete and must not be used. */
	| { type: 'call_delta'; index: number; name: string; chars: number }
	| { type: 'server_tool'; id: string; name: string; input?: Json; result?: Json }
	| { type: 'retry'; attempt: number; of: number; delayMs: number; reason: string; void: boolean }
	| { type: 'notice'; text: string }
	| {
			type: 'end'
			message: Message
			stop: ModelStop
			/** All tries together, with their cost. */
			usage: Usage
			/** Tokens of the last try, request and reply: what the conversation weighs now. */
			context?: number
			requestId?: string
			/** leaked_tool_call, empty_reply, context_cut:<window the server really has>, or a refusal's category. */
			detail?: string
	  }
	| { type: 'error'; error: ModelFailure; usage?: Usage }

export interface ModelFailure extends Problem {
	retryable: boolean
	/** Wait at least this long before the next try (from retry-after). */
	retryAfterMs?: number
	/** Any text or thinking had been shown when it failed. */
	streamed: boolean
	/** `messages.N` named by a 400: that item may be neutralised and the request sent once more. */
	badMessage?: number
	/** The refusal speaks of an image: leaving images out may mend it. */
	badImage?: true
	/** The window the server said it has, from an overflow error. */
	window?: number
	/** The exact "thinking block is bound to a different conversation" error. */
	thinkingBinding?: boolean
}

/** What is known of a model. Prices are US dollars per million tokens. */
export interface ModelSpec {
	provider: string
	id: string
	/** Tokens; null when unknown (then 128,000 is assumed and said). */
	window: number | null
	maxOutput: number
	thinking: 'always' | 'adaptive' | 'budget' | 'none'
	efforts: Effort[]
	defaultEffort?: Effort
	price: Price | null
	textToolCalls: 'whole' | 'lines' | 'off'
	/** Whether it takes pictures; absent: not known, so they are sent until the server refuses them. */
	images?: boolean
}

export interface Price {
	input: number
	output: number
	cacheRead: number
	cacheWrite: number
	/** Above this many prompt tokens the second set of prices holds for the whole request. */
	above?: { tokens: number; input: number; output: number; cacheRead: number; cacheWrite: number }
	/** The day the figures were read (YYYY-MM-DD). */
	date: string
}

export const noUsage = (): Usage => ({
	input: 0,
	output: 0,
	cacheRead: 0,
	cacheWrite: 0,
	thinking: 0,
	requests: 0,
	cost: 0,
})

/** Sum of two usages; a cost of null stays null: unknown is not free. */
export const addUsage = (a: Usage, b: Usage): Usage => ({
	input: a.input + b.input,
	output: a.output + b.output,
	cacheRead: a.cacheRead + b.cacheRead,
	cacheWrite: a.cacheWrite + b.cacheWrite,
	thinking: a.thinking + b.thinking,
	requests: a.requests + b.requests,
	cost: a.cost === null || b.cost === null ? null : a.cost + b.cost,
})
