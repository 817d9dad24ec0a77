// The conversation as the model sees it, append-only, and its record in the journal. Between the turn and the session.
import { estimateTokens, messageChars } from './budget.ts'
import { oneLine } from './text.ts'
import type { AgentEvent, Block, Image, Message, Usage } from './types.ts'
import { noUsage } from './types.ts'

/** What kind of record an appended message becomes. */
export type RecordOf =
	| { type: 'user'; prompt: string }
	| { type: 'note' }
	| { type: 'results' }
	| { type: 'assistant'; usage: Usage; model: string; stop: string; requestId?: string }

export class History {
	/** Read by requests; changed only here. */
	messages: Message[]
	/** Tokens of the last measured request and its answer, and how many messages that covered. */
	private base = 0
	private covered = 0
	private readonly fixedChars: number
	private readonly write: (message: Message, record: RecordOf) => Promise<void>

	/** `fixedChars`: system prompt and tools; `write` puts a message into the journal and resolves when it is there. */
	constructor(messages: Message[], fixedChars: number, write: (message: Message, record: RecordOf) => Promise<void>) {
		this.messages = messages
		this.fixedChars = fixedChars
		this.write = write
	}

	async append(message: Message, record: RecordOf): Promise<void> {
		if (message.blocks.length === 0) return
		this.messages.push(message)
		await this.write(message, record)
	}

	/** After a compaction: a new beginning; its record is the caller's. Thinking of kept messages is gone with it. */
	replace(messages: Message[]): void {
		this.messages = messages
		this.base = 0
		this.covered = 0
	}

	/** The provider counted the last request and its answer, which is appended right after: estimates start from that figure. */
	measured(tokens: number): void {
		if (tokens === 0) return
		this.base = tokens
		this.covered = this.messages.length + 1
	}

	/** Tokens that the next request would carry. */
	tokens(): number {
		if (this.base === 0) return estimateTokens(this.fixedChars + messageChars(this.messages))
		return this.base + estimateTokens(messageChars(this.messages.slice(this.covered)))
	}

	/** Drops all thinking kept so far: what it was bound to has changed. New thinking after that is kept. */
	stripThinking(): void {
		for (const message of this.messages) message.blocks = message.blocks.filter((block) => block.type !== 'thinking')
		this.messages = this.messages.filter((message) => message.blocks.length > 0)
	}

	/**
	 * Leaves pictures out, their labels stand: those of one message, or of the newest message that has any. Says which, or
	 * null when there are none.
	 */
	leaveOutImages(index?: number): string | null {
		const has = (message: Message | undefined) => message?.blocks.some((block) => imagesOf(block).length > 0) ?? false
		const message = index === undefined ? this.messages.findLast(has) : this.messages[index]
		if (!message || !has(message)) return null
		const labels = message.blocks.flatMap(imagesOf).map((image) => image.label)
		message.blocks = message.blocks.map((block) => {
			if (block.type === 'image') return { type: 'text', text: leftOut(block) }
			if (block.type !== 'tool_result' || !block.images) return block
			const { images, ...rest } = block
			return { ...rest, text: [block.text, ...images.map(leftOut)].join('\n') }
		})
		return `the image ${labels.join('; ')}`
	}

	/** Leaves out what a provider named as unacceptable, pictures first; says what it was, or null when it cannot be found. */
	neutralise(index: number): string | null {
		const message = this.messages[index]
		if (!message) return null
		let what = this.leaveOutImages(index) ?? ''
		if (what !== '') return what
		message.blocks = message.blocks.map((block) => {
			if (block.type === 'tool_result') {
				what = 'a tool result'
				return { ...block, text: '[left out: the provider refused this result]' }
			}
			if (block.type === 'opaque' || block.type === 'thinking') {
				what ||= 'a provider block'
				return { type: 'text', text: '[left out]' }
			}
			return block
		})
		if (what === '') {
			what = `a message of the ${message.role === 'user' ? 'user' : 'model'}`
			message.blocks = message.blocks.map((block) =>
				block.type === 'text' ? { type: 'text', text: '[left out: the provider refused this text]' } : block,
			)
		}
		return what
	}
}

const imagesOf = (block: Block): readonly Image[] =>
	block.type === 'image' ? [block] : block.type === 'tool_result' ? (block.images ?? []) : []
const leftOut = ({ label }: Image): string => `[image left out: ${oneLine(label)}. The provider refused it.]`

/** A conversation as the events that made it, for a front end that shows it anew. */
export function asEvents(messages: readonly Message[]): AgentEvent[] {
	const names = new Map<string, string>()
	return messages.flatMap((message): AgentEvent[] => {
		if (message.role === 'user')
			return message.blocks.flatMap((block): AgentEvent[] => {
				if (block.type === 'tool_result')
					return [
						{
							type: 'tool_result',
							callId: block.callId,
							name: names.get(block.callId) ?? '',
							status: block.status,
							text: block.text,
						},
					]
				if (block.type === 'image') return [{ type: 'user_text', text: `[image: ${oneLine(block.label)}]` }]
				return block.type === 'text' ? [{ type: 'user_text', text: block.text }] : []
			})
		const calls = message.blocks.flatMap((block): AgentEvent[] => {
			if (block.type !== 'tool_call') return []
			names.set(block.id, block.name)
			const target = block.input.command ?? block.input.path ?? block.input.pattern
			const title = oneLine(`${block.name} ${typeof target === 'string' ? target : ''}`)
			const info = { title, kind: 'other', access: 'none', paths: [], key: '' } as const
			return [
				{ type: 'tool_call', callId: block.id, name: block.name, input: block.input, info: { ...info, paths: [] } },
			]
		})
		return [{ type: 'message', message, usage: noUsage(), model: '', stop: 'end' }, ...calls]
	})
}
