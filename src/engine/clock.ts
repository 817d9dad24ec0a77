// The real clock; tests pass their own.
import type { Clock } from './ports.ts'

export const systemClock: Clock = {
	now: () => Date.now(),
	sleep: (ms, signal) =>
		new Promise((done) => {
			if (signal?.aborted) return done()
			const finish = () => {
				clearTimeout(timer)
				signal?.removeEventListener('abort', finish)
				done()
			}
			const timer = setTimeout(finish, ms)
			signal?.addEventListener('abort', finish, { once: true })
		}),
}
