// Starts one process and stays with it: output, time limit, abort, the way from TERM to KILL, and what is left at its end.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf, ToolError } from '../errors.ts'
import type { RunSpec } from '../ports.ts'
import { BoundedText, decodeInto, throttled } from './output.ts'
import { type Pipes, textDescriptor } from './pipes.ts'

/** A child as it will be spawned; `feeds` are written to descriptors 3, 4, …, and `status` adds one more to read. */
export interface Launch {
	file: string
	args: string[]
	env: Record<string, string>
	cwd: string
	feeds: Uint8Array[]
	status: boolean
}

/** What differs between a sandbox and the host. `pid` is the spawned child, which leads its own group. */
export interface Control {
	/** Asks everything to end. */
	term(pid: number, status: string): void
	/** Ends everything at once. */
	kill(pid: number, status: string): void
	/** The first word on the status pipe. */
	started?(status: string): void
	/** Called about every 200 ms: a reason to end the command, or nothing. */
	check?(pid: number, status: string): string | undefined
	/** After the child ended: ends what it left behind; how many there were. */
	sweep?(pid: number): Promise<number>
}

export interface Outcome {
	code: number | null
	signal: NodeJS.Signals | null
	timedOut: boolean
	cancelled: boolean
	/** Why Garuda ended it besides time and abort. */
	stopped: string | undefined
	output: string
	stderr: string
	bytes: number
	left: number
	status: string
	durationMs: number
}

const checkEveryMs = 200
/** How long output may take to end after the last process: then whoever still holds the pipe is not waited for. */
const drainMs = 1_000

/** Runs to the end. Throws ToolError when the program cannot be started. */
export const supervise = async (
	launch: Launch,
	spec: Pick<RunSpec, 'timeoutMs' | 'maxOutput' | 'onOutput' | 'stdin' | 'separate'>,
	signal: AbortSignal,
	control: Control,
	pipes: Pipes,
	graceMs: number,
): Promise<Outcome> => {
	const started = performance.now()
	const max = spec.maxOutput ?? 30_000
	const out = new BoundedText(max)
	const err = spec.separate ? new BoundedText(max) : out
	const progress = spec.onOutput && throttled(spec.onOutput)
	const outPipe = await pipes.take()
	const errPipe = spec.separate ? await pipes.take() : outPipe
	const stdin = spec.stdin === undefined ? undefined : textDescriptor(spec.stdin)
	let child: ChildProcess
	try {
		child = spawn(launch.file, launch.args, {
			env: launch.env,
			cwd: launch.cwd,
			// A session and group of its own: no terminal to read from, and one signal reaches all of it.
			detached: true,
			stdio: [
				stdin ?? 'ignore',
				outPipe?.write ?? 'pipe',
				errPipe?.write ?? 'pipe',
				...launch.feeds.map(() => 'pipe' as const),
				...(launch.status ? (['pipe'] as const) : []),
			],
		})
	} catch (error) {
		for (const pipe of new Set([outPipe, errPipe])) pipe?.reader.destroy()
		throw new ToolError(`The command could not be started: ${messageOf(error)}`)
	} finally {
		for (const fd of new Set([stdin, outPipe?.write, errPipe?.write])) if (fd !== undefined) closeSync(fd)
	}

	const streams: Promise<void>[] = []
	const readers: Readable[] = []
	const read = (stream: Readable, onData: (bytes: Uint8Array) => void, onEnd?: () => void) => {
		readers.push(stream)
		stream.on('data', onData).on('error', () => {})
		streams.push(new Promise((resolve) => stream.once('close', () => resolve(onEnd?.()))))
	}
	const sinks: { end(): void }[] = []
	const collect = (stream: Readable, into: BoundedText) => {
		const sink = decodeInto(into, progress?.push)
		sinks.push(sink)
		read(stream, sink.chunk)
	}
	collect(outPipe?.reader ?? child.stdout!, out)
	if (!outPipe || errPipe !== outPipe) collect(errPipe?.reader ?? child.stderr!, err)
	launch.feeds.forEach((bytes, index) => {
		const feed = child.stdio[3 + index] as Writable
		feed.on('error', () => {}) // it ended before it had read all: its exit tells
		feed.end(bytes)
	})
	let status = ''
	if (launch.status)
		read(child.stdio[3 + launch.feeds.length] as Readable, (bytes) => {
			const first = status === ''
			if (status.length < 65_536) status += Buffer.from(bytes).toString('latin1')
			if (first) control.started?.(status)
		})

	let timedOut = false
	let cancelled = false
	let stopped: string | undefined
	const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
		child.once('error', (error) => reject(new ToolError(`The command could not be started: ${messageOf(error)}`)))
		child.once('exit', (code, by) => resolve({ code, signal: by }))
	})
	let killer: NodeJS.Timeout | undefined
	const stop = (gently: boolean) => {
		if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
		if (gently) {
			control.term(child.pid, status)
			killer ??= setTimeout(() => control.kill(child.pid!, status), graceMs)
		} else control.kill(child.pid, status)
	}
	const onAbort = () => {
		cancelled = true
		stop(true)
	}
	const timer = setTimeout(
		() => {
			timedOut = true
			stop(true)
		},
		Math.min(spec.timeoutMs, 2 ** 31 - 1),
	)
	const checker = control.check
		? setInterval(() => {
				stopped ??= control.check?.(child.pid!, status)
				if (stopped) stop(false)
			}, checkEveryMs)
		: undefined
	signal.addEventListener('abort', onAbort, { once: true })
	if (signal.aborted) onAbort()
	try {
		const { code, signal: by } = await ended
		const left = (await control.sweep?.(child.pid!)) ?? 0
		await Promise.race([Promise.all(streams), delay(drainMs, undefined, { ref: false })])
		for (const pipe of new Set([outPipe, errPipe])) if (pipe?.reader.readableEnded) pipe.giveBack()
		for (const sink of sinks) sink.end()
		progress?.flush()
		return {
			code,
			signal: by,
			timedOut,
			cancelled,
			stopped,
			output: out.text(),
			stderr: spec.separate ? err.text() : '',
			bytes: out.bytes + (err === out ? 0 : err.bytes),
			left,
			status,
			durationMs: performance.now() - started,
		}
	} finally {
		clearTimeout(timer)
		clearTimeout(killer)
		clearInterval(checker)
		signal.removeEventListener('abort', onAbort)
		for (const reader of readers) reader.destroy()
	}
}
