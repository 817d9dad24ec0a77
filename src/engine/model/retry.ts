// The one owner of retries: asks again when a request failed in a way that may pass, and says so each time.
import type { Clock, ModelClient } from '../ports.ts'
import { addUsage, type ModelEvent, type ModelFailure, type Usage } from '../types.ts'
import { cancelled } from './failure.ts'
import type { ModelTuning } from './provider.ts'

/**
 * A client that tries again: `retriesBefore` times when nothing had been shown, `retriesMid` times when text had (that text is
 * void and the event says so). Waits firstRetryMs·2ⁿ up to maxRetryMs, less up to a quarter at random, and at least the server's
 * own retry-after up to five times maxRetryMs; a longer one ends at once and the hint tells when. The usage of the `end` or
 * `error` is the sum of all tries (`requests` counts those that reported any); `end` carries `context`, the tokens of the last try alone.
 */
export function withRetry(
	inner: ModelClient,
	tuning: ModelTuning,
	clock: Clock,
	random: () => number = Math.random,
): ModelClient {
	return {
		async *stream(request, signal) {
			let [before, mid] = [0, 0]
			let spent: Usage | undefined
			for (;;) {
				let failure: ModelFailure | undefined
				for await (const event of inner.stream(request, signal)) {
					if (event.type === 'end') {
						const { usage } = event
						const context = usage.input + usage.cacheRead + usage.cacheWrite + usage.output
						const whole = { ...event, usage: spent ? addUsage(spent, usage) : usage, context }
						yield whole
						return
					}
					if (event.type !== 'error') {
						yield event
						continue
					}
					failure = event.error
					if (event.usage) spent = spent ? addUsage(spent, event.usage) : event.usage
				}
				failure ??= {
					code: 'internal',
					message: 'The model adapter ended without a result.',
					retryable: false,
					streamed: false,
				}
				const of = failure.streamed ? tuning.retriesMid : tuning.retriesBefore
				const tries = failure.streamed ? mid : before
				const wait = failure.retryAfterMs ?? 0
				if (!failure.retryable || signal.aborted || tries >= of || wait > tuning.maxRetryMs * 5) {
					if (wait > tuning.maxRetryMs * 5)
						failure = { ...failure, hint: `The provider asks to wait ${minutes(wait)}. ${failure.hint ?? ''}`.trim() }
					yield fail(failure, spent)
					return
				}
				if (failure.streamed) mid++
				else before++
				const backoff = Math.min(tuning.firstRetryMs * 2 ** tries, tuning.maxRetryMs)
				const delayMs = Math.round(Math.max(backoff * (1 - 0.25 * random()), wait))
				yield { type: 'retry', attempt: tries + 1, of, delayMs, reason: failure.message, void: failure.streamed }
				await clock.sleep(delayMs, signal)
				if (signal.aborted) {
					yield fail({ ...cancelled(), streamed: failure.streamed }, spent)
					return
				}
			}
		},
	}
}

const fail = (error: ModelFailure, usage: Usage | undefined): ModelEvent => ({
	type: 'error',
	error,
	...(usage && { usage }),
})

const minutes = (ms: number): string =>
	ms < 120_000 ? `${Math.round(ms / 1000)} seconds` : `${Math.round(ms / 60_000)} minutes`
