// How a running sandbox is told to end, and watched: by its first process, whose end is the end of all in it. Used by executor.ts.
import { writeFileSync } from 'node:fs'
import { descendants, descendsFrom, namespaceCount, setUrgent, signalAll } from './processes.ts'
import type { ShellLimits } from './shell.ts'
import type { Control, Outcome } from './supervise.ts'

/** The first process of the sandbox as the host counts, from the status that bubblewrap writes. */
const firstProcess = (status: string): number | undefined => {
	const found = /"child-pid": (\d+)\D/.exec(status)?.[1]
	return found === undefined ? undefined : Number(found)
}

/** bubblewrap says an exit code only when the command really started. */
export const neverStarted = (outcome: Outcome): boolean =>
	!outcome.status.includes('"exit-code"') && !outcome.timedOut && !outcome.cancelled && !outcome.stopped

/** `limits.processes` is held by a count as well: the kernel exempts global root. */
export const bubblewrapControl = (limits: ShellLimits): Control => ({
	started(status) {
		const first = firstProcess(status)
		if (first === undefined) return false
		// While bubblewrap still mounts, before the command is there: short of memory, the kernel then ends the command
		// and not the user's editor.
		try {
			writeFileSync(`/proc/${first}/oom_score_adj`, '800')
		} catch {
			// a kernel without it, or ended already
		}
		return true
	},
	term(pid, status) {
		const first = firstProcess(status)
		// Not bubblewrap itself: it would take the sandbox down before the command could clean up after itself. Its first
		// process has no handler, and the kernel drops TERM for it.
		const inside = first === undefined ? [] : descendants(first)
		// Before the command is there, nobody has anything to clean up.
		if (inside.length === 0) this.kill(pid, status)
		else signalAll(inside, 'SIGTERM')
	},
	kill(pid, status) {
		// With its first process, a namespace ends as a whole, daemons in sessions of their own too.
		const first = firstProcess(status)
		// No look at all processes: a fork bomb makes more of them while one looks.
		const whole = first !== undefined && descendsFrom(first, pid) ? [first] : []
		// Its end is what ends all others, so it must not queue behind them. Root only; others have the kernel's limit.
		if (process.getuid?.() === 0) for (const each of whole) setUrgent(each)
		signalAll([...whole, -pid], 'SIGKILL')
	},
	// The kernel exempts global root from the limit, so it is counted here as well; and often, for a bomb doubles in milliseconds.
	checkEveryMs: process.getuid?.() === 0 ? 25 : 200,
	check(_pid, status) {
		const first = limits.processes > 0 ? firstProcess(status) : undefined
		const count = first === undefined ? undefined : namespaceCount(first)
		return count !== undefined && count > limits.processes + 8
			? `more than ${limits.processes} processes at once`
			: undefined
	},
})
