// What a command's run came to, in the port's words: codes and signals, the wall that stopped it, notes at its end. Used by executor.ts.
import type { RunResult } from '../ports.ts'
import type { ShellEnd } from './shell.ts'
import type { Outcome } from './supervise.ts'
import { findWall } from './walls.ts'

const signals = [
	'SIGHUP',
	'SIGINT',
	'SIGQUIT',
	'SIGILL',
	'SIGTRAP',
	'SIGABRT',
	'SIGBUS',
	'SIGFPE',
	'SIGKILL',
	'SIGUSR1',
	'SIGSEGV',
	'SIGUSR2',
	'SIGPIPE',
	'SIGALRM',
	'SIGTERM',
] as const

/** `end`: what the shell said of itself, where it did. */
export const toResult = (outcome: Outcome, end: ShellEnd | undefined): RunResult => {
	let { code, signal }: { code: number | null; signal: string | null } = outcome
	// bubblewrap turns a signal into 128 + its number; a shell that itself exits so has said so at its end.
	const meant = code !== null && code > 128 && end?.status !== code ? signalOf(code - 128) : undefined
	if (meant) {
		code = null
		signal = meant
	}
	return {
		code,
		signal,
		timedOut: outcome.timedOut,
		cancelled: outcome.cancelled,
		output: outcome.output,
		stderr: outcome.stderr,
		bytes: outcome.bytes,
		survivors: outcome.timedOut || outcome.cancelled ? 0 : (end?.survivors ?? outcome.left),
		...(end?.cwd === undefined ? {} : { cwd: end.cwd }),
		durationMs: Math.round(outcome.durationMs),
	}
}

const signalOf = (number: number): string | undefined =>
	number === 31 ? 'SIGSYS' : number === 25 ? 'SIGXFSZ' : number === 24 ? 'SIGXCPU' : signals[number - 1]

/** Names the wall that most likely stopped a command that failed in a sandbox. */
export const withWall = (result: RunResult, masked: string[]): RunResult => {
	if (result.code === 0 || result.cancelled) return result
	const wall = findWall(result.stderr === '' ? result.output : `${result.output}\n${result.stderr}`, masked)
	return wall ? { ...result, wall } : result
}

/** At the end of the output; with streams kept apart, of stderr: stdout may be data that someone parses. */
export const withNotes = (result: RunResult, notes: string[], separate: boolean): RunResult => {
	if (notes.length === 0) return result
	const key = separate ? 'stderr' : 'output'
	const text = result[key]
	return { ...result, [key]: `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${notes.join('\n')}\n` }
}
