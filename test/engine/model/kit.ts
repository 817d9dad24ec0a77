// What the tests of this room share: a client of a loopback server, a request, all events of a stream.
import {
	createModelClient,
	defaultTuning,
	type ModelTuning,
	modelSpec,
	type Provider,
} from '../../../src/engine/model/index.ts'
import { createHttp } from '../../../src/engine/net/http.ts'
import type { Clock, ModelClient } from '../../../src/engine/ports.ts'
import type { Message, ModelEvent, ModelRequest, ModelSpec, ToolSpec } from '../../../src/engine/types.ts'

export const tool = (name: string, properties: Record<string, { type: string }> = {}): ToolSpec => ({
	name,
	description: `The tool ${name}.`,
	schema: { type: 'object', properties },
})

export const tools = [
	tool('read_file', { path: { type: 'string' }, limit: { type: 'integer' } }),
	tool('write_file', { path: { type: 'string' }, content: { type: 'string' } }),
	tool('git_status'),
]

export const user = (text: string): Message => ({ role: 'user', blocks: [{ type: 'text', text }] })

export const request = (over: Partial<ModelRequest> = {}): ModelRequest => ({
	model: 'claude-opus-5-5',
	system: 'You are Garuda.',
	tools,
	messages: [user('hello')],
	maxOutput: 1_000,
	purpose: 'turn',
	...over,
})

/** Records the sleeps that were asked for and does not wait. */
export const quickClock = (): Clock & { slept: number[] } => {
	const slept: number[] = []
	return {
		slept,
		now: () => Date.now(),
		async sleep(ms) {
			slept.push(ms)
		},
	}
}

export interface Made {
	client: ModelClient
	clock: ReturnType<typeof quickClock>
	log: object[]
	close(): void
}

export async function make(
	api: Provider['api'],
	url: string,
	over: { provider?: Partial<Provider>; spec?: Partial<ModelSpec>; tuning?: Partial<ModelTuning>; model?: string } = {},
): Promise<Made> {
	const http = createHttp({ env: {} })
	const clock = quickClock()
	const log: object[] = []
	const name = over.provider?.name ?? (api === 'anthropic' ? 'anthropic' : 'local')
	const model = over.model ?? (api === 'anthropic' ? 'claude-opus-5-5' : 'test')
	const client = await createModelClient(
		{ name, api, baseURL: url, apiKey: 'sk-secret-key-123456', ...over.provider },
		modelSpec(name, model, over.spec),
		{
			http,
			clock,
			tuning: { ...defaultTuning, idleMs: 2_000, firstRetryMs: 10, ...over.tuning },
			log: (line) => log.push(line),
		},
	)
	return { client, clock, log, close: () => http.close() }
}

export const all = async (
	client: ModelClient,
	r: ModelRequest = request(),
	signal: AbortSignal = new AbortController().signal,
): Promise<ModelEvent[]> => {
	const events: ModelEvent[] = []
	for await (const event of client.stream(r, signal)) events.push(event)
	return events
}

type Of<T extends ModelEvent['type']> = Extract<ModelEvent, { type: T }>

export const only = <T extends ModelEvent['type']>(events: ModelEvent[], type: T): Of<T>[] =>
	events.filter((event): event is Of<T> => event.type === type)

/** The one `end`, or a failing test that shows what came instead. */
export const endOf = (events: ModelEvent[]): Of<'end'> => {
	const last = events[events.length - 1]
	if (last?.type !== 'end') throw new Error(`no end but ${JSON.stringify(last)}`)
	return last
}

export const errorOf = (events: ModelEvent[]): Of<'error'> => {
	const last = events[events.length - 1]
	if (last?.type !== 'error') throw new Error(`no error but ${JSON.stringify(last)}`)
	return last
}

/** Text shown that counts: what came before a void retry does not. */
export const shown = (events: ModelEvent[]): string => {
	let text = ''
	for (const event of events) {
		if (event.type === 'text_delta') text += event.text
		if (event.type === 'retry' && event.void) text = ''
	}
	return text
}

export const textOf = (message: Message): string =>
	message.blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
export const callsOf = (message: Message) => message.blocks.filter((block) => block.type === 'tool_call')
