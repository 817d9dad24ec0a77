// Words for how a turn ended and for what stands in the way. Used by every output of the chat room.
import type { Problem, StopReason } from '../engine/index.ts'
import { safeText } from './safe-text.ts'

/** What a turn's end means in words, for the ends that carry no error of their own. */
export const reasonText: Record<StopReason, string> = {
	done: 'Done.',
	max_tokens: "The reply reached the model's output limit.",
	refusal: 'The model refused to go on.',
	max_steps: 'The limit of steps was reached (--max-steps).',
	token_budget: 'The limit of tokens was reached (--max-tokens).',
	cost_budget: 'The limit of cost was reached (--max-cost).',
	repeated_calls: 'The model repeated the same calls with the same results, or asked again for what was denied.',
	cancelled: 'The turn was interrupted.',
	error: 'The turn failed.',
}

/** What nothing caught, for stderr. */
export const crashText = (message: string): string =>
	`\ngaruda: failed by a fault of its own: ${safeText(message)}\nRun it again with --debug and report what the log says.\n`

/** What happened and what to do, in one text. */
export const problemText = ({ message, hint }: Pick<Problem, 'message' | 'hint'>): string =>
	hint ? `${message}${/[.!?:…]["”)]?$/.test(message) ? '' : '.'} ${hint}` : message
