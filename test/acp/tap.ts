// Everything that crosses the wire, judged: the schema, what the editor offered, one open prompt, known calls. For all tests of ACP.
import { faultsOf, paramTypes, resultTypes } from './schema.ts'

export interface Message {
	jsonrpc?: string
	id?: number | string | null
	method?: string
	params?: any
	result?: any
	error?: { code: number; message: string; data?: unknown }
}

/** Updates that belong to a turn, so must not come without one. */
const ofTurn = [
	'user_message_chunk',
	'agent_message_chunk',
	'agent_thought_chunk',
	'tool_call',
	'tool_call_update',
	'plan',
	'usage_update',
	'notice',
	'compaction_update',
	'compaction_summary_chunk',
]

/** Looks at every message of both sides in the order they pass; `faults` collects what is wrong with the agent's. */
export class Tap {
	readonly faults: string[] = []
	readonly sent: Message[] = []
	private readonly asked = new Map<string, Message>()
	private readonly prompts = new Map<string, Set<string>>()
	private readonly loading = new Set<string>()
	private readonly calls = new Map<string, string>()
	private readonly known = new Set<string>()
	private capabilities: any = {}

	/** A message from the editor. */
	fromClient(message: Message): void {
		if (message.method !== undefined && message.id !== undefined) {
			this.asked.set(key(message.id), message)
			const { sessionId } = message.params ?? {}
			if (message.method === 'initialize') this.capabilities = message.params?.clientCapabilities ?? {}
			if (message.method === 'session/prompt') {
				const open = this.prompts.get(sessionId) ?? new Set()
				open.add(key(message.id))
				this.prompts.set(sessionId, open)
			}
			if (message.method === 'session/load') this.loading.add(sessionId)
		}
	}

	/** A message from the agent. */
	fromAgent(message: Message): void {
		this.sent.push(message)
		const wrong = (text: string) => this.faults.push(`${text}: ${JSON.stringify(message).slice(0, 400)}`)
		if (message.jsonrpc !== '2.0') wrong('no jsonrpc 2.0')
		if (message.method === undefined) {
			const request = this.asked.get(key(message.id!))
			if (message.id === null) return
			if (!request) return void wrong('answers nothing that was asked')
			this.asked.delete(key(message.id!))
			const { sessionId } = request.params ?? {}
			if (request.method === 'session/prompt') this.prompts.get(sessionId)?.delete(key(message.id!))
			if (request.method === 'session/load') this.loading.delete(sessionId)
			if (message.error) {
				for (const fault of faultsOf('Error', message.error)) wrong(fault)
				return
			}
			const type = resultTypes[request.method!]
			if (!type) return void wrong(`answers the unknown ${request.method}`)
			for (const fault of faultsOf(type, message.result)) wrong(fault)
			const id = message.result?.sessionId ?? sessionId
			if (['session/new', 'session/load', 'session/resume'].includes(request.method!)) this.known.add(id)
			for (const option of message.result?.configOptions ?? []) this.option(option, wrong)
			return
		}
		const type = paramTypes[message.method]
		if (!type) return void wrong('a method that no editor knows')
		for (const fault of faultsOf(type, message.params)) wrong(fault)
		if (message.method === 'elicitation/create' && !this.capabilities.elicitation?.form) wrong('a form was not offered')
		if (message.method === 'fs/read_text_file' && !this.capabilities.fs?.readTextFile) wrong('reading was not offered')
		if (message.method === 'session/request_permission') this.permission(message.params, wrong)
		if (message.method === 'session/update') this.update(message.params, wrong)
	}

	private permission({ sessionId, toolCall, options }: any, wrong: (text: string) => void): void {
		const state = this.calls.get(`${sessionId}/${toolCall.toolCallId}`)
		if (state === undefined) wrong('a question about a call that was not announced')
		if (state !== 'pending') wrong(`a question about a call that is ${state}`)
		if ((toolCall.content ?? []).filter((one: any) => one.type === 'diff').length > 1)
			wrong('more than one file in a question')
		if (!options.some((one: any) => one.kind === 'reject_once')) wrong('no way to say no')
	}

	private update({ sessionId, update }: any, wrong: (text: string) => void): void {
		const kind = update.sessionUpdate
		const open = (this.prompts.get(sessionId)?.size ?? 0) > 0 || this.loading.has(sessionId)
		if (ofTurn.includes(kind) && !open) wrong('an update of a turn, but no prompt is open')
		if (!this.known.has(sessionId) && !this.loading.has(sessionId))
			wrong('an update of a session that the editor does not know yet')
		if (kind === 'notice' && !this.capabilities.session?.notices) wrong('notices were not offered')
		if (kind.startsWith('compaction_') && !this.capabilities.session?.compaction) wrong('compaction was not offered')
		for (const option of update.configOptions ?? []) this.option(option, wrong)
		if (/_chunk$/.test(kind) && update.content?.text === '') wrong('an empty chunk')
		if (kind !== 'tool_call' && kind !== 'tool_call_update') return
		const id = `${sessionId}/${update.toolCallId}`
		const before = this.calls.get(id)
		if (kind === 'tool_call' && before !== undefined && !this.loading.has(sessionId)) wrong('a call announced twice')
		if (kind === 'tool_call_update' && before === undefined) wrong('an update of an unknown call')
		if ((before === 'completed' || before === 'failed') && !this.loading.has(sessionId))
			wrong(`an update of a call that is ${before}`)
		for (const one of update.content ?? [])
			if (one.type === 'terminal') wrong('a terminal that the editor did not make')
		if (/[\n\r]/.test(update.title ?? '')) wrong('a title of more than one line')
		this.calls.set(id, update.status ?? before ?? 'pending')
	}

	private option(option: any, wrong: (text: string) => void): void {
		if (option.type === 'boolean' && !this.capabilities.session?.configOptions?.boolean)
			wrong('boolean options were not offered')
		if (option.type === 'select' && !option.options.some((one: any) => one.value === option.currentValue))
			wrong(`the present value of ${option.id} is none of its values`)
	}

	/** Calls without an end; to be empty after each prompt. */
	openCalls(): string[] {
		return [...this.calls].filter(([, status]) => status === 'pending' || status === 'in_progress').map(([id]) => id)
	}
}

const key = (id: number | string | null): string => JSON.stringify(id)
