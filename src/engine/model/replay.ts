// A recorded session's answers as a ModelClient: the turn runs again with no model, and the first difference is named.
import type { ModelClient } from '../ports.ts'
import { type Message, type ModelStop, noUsage, type Usage } from '../types.ts'

export interface RecordedAnswer {
	message: Message
	stop?: ModelStop
	usage?: Usage
	/** The user's message that this answered; when given, a request that ends otherwise is a divergence. */
	after?: Message
}

/** The answers of a plain history, each with the message before it. */
export const answersOf = (messages: Message[]): RecordedAnswer[] =>
	messages.flatMap((message, i) => {
		const before = messages[i - 1]
		return message.role === 'assistant' ? [{ message, ...(before?.role === 'user' && { after: before }) }] : []
	})

/** Answers in order. Past the last, or where the request's last message is not the recorded one, it ends with an error of code `diverged`. */
export function replayClient(answers: RecordedAnswer[]): ModelClient {
	let next = 0
	return {
		async *stream(request, signal) {
			const fail = (message: string, code = 'diverged') => ({
				type: 'error' as const,
				error: { code, message, retryable: false, streamed: false },
			})
			if (signal.aborted) {
				yield fail('The request was cancelled.', 'cancelled')
				return
			}
			const answer = answers[next]
			if (!answer) {
				yield fail(`The record has ${answers.length} answers; this is request ${next + 1}.`)
				return
			}
			next++
			const last = request.messages[request.messages.length - 1]
			const difference = answer.after && last && firstDifference(answer.after, last)
			if (difference) {
				yield fail(`Request ${next} differs from the record: ${difference}`)
				return
			}
			for (const block of answer.message.blocks) {
				if (block.type === 'thinking' && block.text) yield { type: 'thinking_delta', text: block.text }
				if (block.type === 'text') yield { type: 'text_delta', text: block.text }
			}
			const called = answer.message.blocks.some((block) => block.type === 'tool_call')
			yield {
				type: 'end',
				message: answer.message,
				stop: answer.stop ?? (called ? 'tool_calls' : 'end'),
				usage: answer.usage ?? { ...noUsage(), requests: 1 },
			}
		},
	}
}

const firstDifference = (recorded: Message, now: Message): string | null => {
	const shown = (message: Message) => message.blocks.map((block) => JSON.stringify(block))
	const [a, b] = [shown(recorded), shown(now)]
	for (let i = 0; i < Math.max(a.length, b.length); i++)
		if (a[i] !== b[i]) return `recorded ${(a[i] ?? 'nothing').slice(0, 200)}, now ${(b[i] ?? 'nothing').slice(0, 200)}`
	return null
}
