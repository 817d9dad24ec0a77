// The calls of one reply: reads side by side, everything else in the order written. Between the loop and the gate.
import type { Clock } from './ports.ts'
import type { Gate, Outcome } from './tools/invoke.ts'

interface CallBlock {
	id: string
	name: string
	input: Record<string, unknown>
	badInput?: string
}

const width = 8

/**
 * One outcome a call, in the calls' order. After an abort running calls get `settleMs` to report (a result that comes
 * later is dropped) and those not begun are cancelled; a `cancel` answer stops what has not begun.
 */
export async function runCalls(
	gate: Gate,
	calls: readonly CallBlock[],
	signal: AbortSignal,
	clock: Clock,
	settleMs: number,
): Promise<Outcome[]> {
	const outcomes: Outcome[] = []
	let stopped = false
	const cancelled = (call: CallBlock, text: string): Outcome => ({
		status: 'cancelled',
		text,
		name: call.name,
		key: '',
	})

	const one = async (call: CallBlock): Promise<Outcome> => {
		if (stopped || signal.aborted) return cancelled(call, 'Not begun: the user stopped the task.')
		const finished = new AbortController()
		const late = settled(signal, clock, settleMs, finished.signal).then((timeout) =>
			timeout ? cancelled(call, 'Stopped by the user; it did not report in time.') : null,
		)
		const work = gate.invoke(call, signal)
		const outcome = (await Promise.race([work, late])) ?? (await work)
		finished.abort()
		if (outcome.cancelTurn) stopped = true
		return outcome
	}

	for (let i = 0; i < calls.length; ) {
		let next = i + 1
		if (gate.parallel(calls[i]!.name))
			while (next < calls.length && next - i < width && gate.parallel(calls[next]!.name)) next++
		outcomes.push(...(await Promise.all(calls.slice(i, next).map(one))))
		i = next
	}
	return outcomes
}

/** True `ms` after the signal aborts; false when `finished` comes first. */
async function settled(signal: AbortSignal, clock: Clock, ms: number, finished: AbortSignal): Promise<boolean> {
	await new Promise<void>((done) => {
		if (signal.aborted || finished.aborted) return done()
		signal.addEventListener('abort', () => done(), { once: true, signal: finished })
		finished.addEventListener('abort', () => done(), { once: true })
	})
	if (finished.aborted) return false
	await clock.sleep(ms, finished)
	return !finished.aborted
}
