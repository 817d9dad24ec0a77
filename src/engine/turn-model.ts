// One model request of a turn: its stream becomes events, its end a message. Called by the loop in turn.ts.
import type { TurnDeps } from './turn.ts'
import type { Message, ModelFailure, ModelStop, Usage } from './types.ts'

export type ModelStepResult =
	| {
			type: 'message'
			message: Message
			stop: ModelStop
			usage: Usage | null
			context?: number
			requestId?: string
			detail?: string
	  }
	| { type: 'error'; error: ModelFailure; usage: Usage | null }
	| { type: 'cancelled'; text: string; usage: Usage | null }

/** Streams one request. Text of a broken stream is void: the `model_retry` event says so and the final message holds only the last stream's. */
export async function modelStep(
	deps: TurnDeps,
	step: { maxOutput: number; firstToken(): void },
	signal: AbortSignal,
): Promise<ModelStepResult> {
	const { emit } = deps
	let parts: string[] = []
	let first = true
	const token = () => {
		if (first) step.firstToken()
		first = false
	}
	const request = {
		model: deps.spec.id,
		system: deps.system,
		tools: deps.tools,
		messages: deps.history.messages,
		maxOutput: step.maxOutput,
		purpose: 'turn' as const,
		sessionId: deps.sessionId,
		...(deps.effort ? { effort: deps.effort } : {}),
	}
	for await (const event of deps.client.stream(request, signal)) {
		switch (event.type) {
			case 'text_delta':
				token()
				parts.push(event.text)
				emit(event)
				break
			case 'thinking_delta':
				token()
				emit(event)
				break
			case 'retry':
				if (event.void) parts = []
				emit({ ...event, type: 'model_retry' })
				break
			case 'notice':
				emit({ type: 'notice', level: 'warning', text: event.text })
				break
			case 'server_tool':
				emit(event)
				break
			case 'call_delta':
				break
			case 'end': {
				const { message, stop, usage, context, requestId, detail } = event
				// An abort that came with the last byte still stops the turn, but a whole message is kept whole.
				return {
					type: 'message',
					message,
					stop,
					usage,
					...(context === undefined ? {} : { context }),
					...(requestId === undefined ? {} : { requestId }),
					...(detail === undefined ? {} : { detail }),
				}
			}
			case 'error':
				if (signal.aborted) return { type: 'cancelled', text: parts.join(''), usage: event.usage ?? null }
				return { type: 'error', error: event.error, usage: event.usage ?? null }
		}
	}
	if (signal.aborted) return { type: 'cancelled', text: parts.join(''), usage: null }
	return {
		type: 'error',
		error: {
			code: 'internal',
			message: 'The model client ended without an answer.',
			retryable: false,
			streamed: parts.length > 0,
		},
		usage: null,
	}
}
