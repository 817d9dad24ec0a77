// What the two wires have in common: the shape of an adapter and what its decoder is told.
import type { Http } from '../net/http.ts'
import type { Message, ModelEvent, ModelRequest, ModelSpec, ToolSpec } from '../types.ts'
import type { ModelTuning, Provider, ProviderQuirks } from './provider.ts'

export interface AdapterDeps {
	http: Http
	tuning: ModelTuning
	log(line: object): void
}

/** What an adapter plays: one try of one request, `messages` already valid for it. Ends like a ModelClient's stream. */
export interface Adapter {
	/** `badMessage` of a failure is an index into `messages`. */
	attempt(request: ModelRequest, messages: Message[], signal: AbortSignal): AsyncIterable<ModelEvent>
	readonly quirks: ProviderQuirks
}

export interface DecodeContext {
	provider: Provider
	spec: ModelSpec
	tools: ToolSpec[]
	/** Ids of calls already in the conversation. */
	usedIds: Set<string>
	maxOutput: number
	requestId?: string | undefined
}

/** What stands for the arguments of a call that was cut before its first letter. */
export const cutArguments = '(cut off by the output limit)'

/** Ids of the calls in a conversation. */
export const idsIn = (messages: Message[]): Set<string> => {
	const ids = new Set<string>()
	for (const message of messages) for (const block of message.blocks) if (block.type === 'tool_call') ids.add(block.id)
	return ids
}
