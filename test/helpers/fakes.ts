// Stand-ins passed as arguments: a model that plays a list of replies, a gate that answers from a table.
import { History } from '../../src/engine/history.ts'
import type { ModelClient } from '../../src/engine/ports.ts'
import type { Call, Gate, Outcome } from '../../src/engine/tools/invoke.ts'
import type {
	AgentEvent,
	Block,
	Message,
	ModelEvent,
	ModelRequest,
	ModelSpec,
	ModelStop,
	Usage,
} from '../../src/engine/types.ts'
import { noUsage } from '../../src/engine/types.ts'

export interface Reply {
	text?: string
	thinking?: string
	calls?: { id?: string; name: string; input?: Record<string, unknown>; badInput?: string }[]
	stop?: ModelStop
	usage?: Partial<Usage>
	detail?: string
	/** Events in front of the end. */
	before?: ModelEvent[]
	error?: Extract<ModelEvent, { type: 'error' }>['error']
	/** Wait for the signal to abort, then end as an abort does. */
	hang?: boolean
}

export interface FakeModel extends ModelClient {
	requests: ModelRequest[]
}

/** Plays replies in order; a function gets the request. Requests are copied as they were sent. */
export function fakeModel(
	replies: (Reply | ((request: ModelRequest) => Reply))[],
	price: { input: number; output: number } | null = { input: 1, output: 2 },
): FakeModel {
	const requests: ModelRequest[] = []
	let calls = 0
	return {
		requests,
		async *stream(request, signal) {
			requests.push(structuredClone(request))
			const next = replies[requests.length - 1]
			if (next === undefined) throw new Error(`no reply for request ${requests.length}`)
			const reply = typeof next === 'function' ? next(request) : next
			for (const event of reply.before ?? []) yield event
			if (reply.thinking) yield { type: 'thinking_delta', text: reply.thinking }
			if (reply.text) yield { type: 'text_delta', text: reply.text }
			if (reply.hang) {
				if (!signal.aborted)
					await new Promise<void>((done) => signal.addEventListener('abort', () => done(), { once: true }))
				yield { type: 'error', error: { code: 'cancelled', message: 'stopped', retryable: false, streamed: true } }
				return
			}
			const tokens = { ...noUsage(), input: 100, output: 10, requests: 1, ...reply.usage }
			// A client prices its own requests; this one by fakeSpec's price, when the request names that model.
			const usage = {
				...tokens,
				cost: price === null ? null : (tokens.input * price.input + tokens.output * price.output) / 1e6,
			}
			if (reply.error) {
				yield { type: 'error', error: reply.error }
				return
			}
			const blocks: Block[] = []
			if (reply.thinking)
				blocks.push({ type: 'thinking', text: reply.thinking, provider: 'fake', model: 'm', raw: { signature: 's' } })
			if (reply.text) blocks.push({ type: 'text', text: reply.text })
			for (const call of reply.calls ?? [])
				blocks.push({
					type: 'tool_call',
					id: call.id ?? `c${++calls}`,
					name: call.name,
					input: call.input ?? {},
					...(call.badInput === undefined ? {} : { badInput: call.badInput }),
				})
			yield {
				type: 'end',
				message: { role: 'assistant', blocks },
				stop: reply.stop ?? (reply.calls?.length ? 'tool_calls' : 'end'),
				usage,
				...(reply.detail === undefined ? {} : { detail: reply.detail }),
			}
		},
	}
}

export const fakeSpec = (more: Partial<ModelSpec> = {}): ModelSpec => ({
	provider: 'fake',
	id: 'm',
	window: 200_000,
	maxOutput: 8_000,
	thinking: 'none',
	efforts: [],
	price: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25, date: '2026-11-30' },
	textToolCalls: 'whole',
	...more,
})

/** A gate whose calls run the given function; `parallel` holds for names that begin with "read". */
export function fakeGate(
	run: (call: Call, signal: AbortSignal) => Promise<Partial<Outcome>> | Partial<Outcome>,
): Gate & { calls: Call[] } {
	const calls: Call[] = []
	return {
		calls,
		parallel: (name) => name.startsWith('read'),
		consent: async () => ({ allowed: false, reason: 'no' }),
		async invoke(call, signal) {
			calls.push(call)
			return {
				status: 'ok',
				text: 'fine',
				name: call.name,
				key: `${call.name}:${JSON.stringify(call.input)}`,
				...(await run(call, signal)),
			}
		},
	}
}

export const user = (text: string): Message => ({ role: 'user', blocks: [{ type: 'text', text }] })

/** A history that keeps what would be recorded. */
export function fakeHistory(messages: Message[] = []): {
	history: History
	records: { message: Message; type: string }[]
} {
	const records: { message: Message; type: string }[] = []
	const history = new History(messages, 400, async (message, record) => {
		records.push({ message, type: record.type })
	})
	return { history, records }
}

/** All events of a kind, in order. */
export const only = <T extends AgentEvent['type']>(events: AgentEvent[], type: T): Extract<AgentEvent, { type: T }>[] =>
	events.filter((event): event is Extract<AgentEvent, { type: T }> => event.type === type)
