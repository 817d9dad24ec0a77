// Starts one process and stays with it: output, time limit, abort, the way from TERM to KILL, and what is left at its end.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setPriority } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf, ToolError } from '../errors.ts'
import type { RunSpec } from '../ports.ts'
import { BoundedText, decodeInto, throttled } from './output.ts'
import { type OutputPipe, type Pipes, textDescriptor } from './pipes.ts'
import type { ProcessGroup } from './process-group.ts'
import type { Reaper } from './reaper.ts'
import { lifeline } from './shell.ts'

/** A child as it will be spawned. */
export interface Launch {
	file: string
	args: string[]
	env: Record<string, string>
	cwd: string
	/** For a sandbox: descriptor 3 takes its flags, 4 is this file (the filter), 5 gives its status. */
	filter?: string
	/** Joined before the sandbox gets its flags, so that nothing in it is outside. */
	group?: ProcessGroup
	/** Told of each child that leads a group. */
	reaper?: Reaper
}

/** A child that was spawned; one of a sandbox waits for its flags. */
export interface Started {
	child: ChildProcess
	out: OutputPipe | undefined
	err: OutputPipe | undefined
	/** It is where its limits hold; never rejects. Until then it must not begin. */
	placed: Promise<unknown> | undefined
	/** Rejects with a ToolError when the program could not be started. */
	ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** What differs between a sandbox and the host. `pid` is the spawned child, which leads its own group. */
export interface Control {
	/** Asks everything to end. */
	term(pid: number, status: string): void
	/** Ends everything at once. */
	kill(pid: number, status: string): void
	/** New text on the status pipe; true when it needs no more. */
	started?(status: string): boolean
	/** Called now and then: a reason to end the command, or nothing. */
	check?(pid: number, status: string): string | undefined
	/** Between two checks; default 200. */
	checkEveryMs?: number
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

/** How long output may take to end after the last process: then whoever still holds the pipe is not waited for. */
const drainMs = 1_000

/** Spawns. Throws ToolError when that fails at once; what fails later is in `ended`. */
export const start = async (
	launch: Launch,
	spec: Pick<RunSpec, 'stdin' | 'separate'>,
	pipes: Pipes,
): Promise<Started> => {
	const out = await pipes.take()
	const err = spec.separate ? await pipes.take() : out
	const opened = new Set([out?.write, err?.write])
	try {
		const open = (fd: number): number => {
			opened.add(fd)
			return fd
		}
		const child = spawn(launch.file, launch.args, {
			env: launch.env,
			cwd: launch.cwd,
			// A session and group of its own: no terminal to read from, and one signal reaches all of it.
			detached: true,
			stdio: [
				spec.stdin === undefined ? 'ignore' : open(textDescriptor(spec.stdin)),
				out?.write ?? 'pipe',
				err?.write ?? 'pipe',
				...(launch.filter === undefined
					? (['pipe'] as const)
					: (['pipe', open(openSync(launch.filter, 'r')), 'pipe', 'pipe'] as const)),
			],
		})
		const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
			child.once('error', (error) => reject(new ToolError(`The command could not be started: ${messageOf(error)}`)))
			child.once('exit', (code, signal) => resolve({ code, signal }))
		})
		ended.catch(() => {}) // heard by whoever supervises it
		const { pid } = child
		const placed = pid === undefined ? undefined : launch.group?.add(pid)
		if (pid !== undefined) {
			launch.reaper?.add(pid)
			child.once('exit', () => launch.reaper?.ended(pid))
		}
		if (launch.filter !== undefined && process.getuid?.() === 0) yieldTo(child.pid)
		return { child, out, err, ended, placed }
	} catch (error) {
		for (const pipe of new Set([out, err])) pipe?.reader.destroy()
		throw new ToolError(`The command could not be started: ${messageOf(error)}`)
	} finally {
		for (const fd of opened) if (fd !== undefined) closeSync(fd)
	}
}

/** The kernel sets root no limit of processes: whoever counts them must still get a turn among a thousand of a bomb. */
const yieldTo = (pid: number | undefined): void => {
	try {
		if (pid !== undefined) setPriority(pid, 10)
	} catch {
		// ended already
	}
}

/** Ends a child that nobody will supervise. */
export const discard = ({ child, out, err }: Started): void => {
	// Before its pipes close: without flags it would only fail, but it shall not even try.
	child.kill('SIGKILL')
	for (const stream of [...child.stdio, out?.reader, err?.reader]) stream?.destroy()
}

/** Stays to the end. `flags` is what a sandbox waits for. Throws ToolError when the program could not be started. */
export const supervise = async (
	{ child, out: outPipe, err: errPipe, ended, placed }: Started,
	flags: Uint8Array | undefined,
	spec: Pick<RunSpec, 'timeoutMs' | 'maxOutput' | 'onOutput' | 'separate'>,
	signal: AbortSignal,
	control: Control,
	graceMs: number,
): Promise<Outcome> => {
	const started = performance.now()
	const max = spec.maxOutput ?? 30_000
	const out = new BoundedText(max)
	const err = spec.separate ? new BoundedText(max) : out
	const progress = spec.onOutput && throttled(spec.onOutput)
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
	const life = child.stdio[lifeline(flags !== undefined)] as unknown as Writable & Readable
	life.on('error', () => {}).once('data', () => life.write('\n'))
	readers.push(life)
	let status = ''
	if (flags !== undefined) {
		const [, , , feed, , words] = child.stdio as readonly unknown[] as (Writable & Readable)[]
		feed!.on('error', () => {}) // it ended before it had read all: its exit tells
		void Promise.resolve(placed).then(() => feed!.end(flags))
		let known = false
		read(words!, (bytes) => {
			if (status.length < 65_536) status += Buffer.from(bytes).toString('latin1')
			if (!known) known = control.started?.(status) ?? true
		})
	}

	let timedOut = false
	let cancelled = false
	let stopped: string | undefined
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
			}, control.checkEveryMs ?? 200)
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
