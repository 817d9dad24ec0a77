// The process's streams as a front end sees them: writes that never cut, closed pipes, colours, signals. Below print and plain.
import type { Readable, Writable } from 'node:stream'

/** An input stream; the TTY parts are there on a terminal only. */
export type InputStream = Readable & { isTTY?: boolean; setRawMode?(on: boolean): unknown }
/** An output stream; the TTY parts are there on a terminal only. */
export type OutputStream = Writable & { isTTY?: boolean; columns?: number; rows?: number }

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** What a front end may touch of its process; tests give their own. */
export interface Stdio {
	stdin: InputStream
	stdout: OutputStream
	stderr: OutputStream
	env: Record<string, string | undefined>
	/** Hears a signal until the returned function is called. */
	onSignal(name: SignalName, listener: () => void): () => void
	/** Hears what nothing caught, and the very end of the process (for the terminal's modes). */
	onCrash(listener: (error: unknown) => void): () => void
	onExit(listener: () => void): () => void
	/** Leaves at once after a crash; the only exit that is not the event loop's own end. */
	abandon(code: number): void
	/** Stops the whole job as the shell's Ctrl-Z does; `resumed` runs when it goes on. */
	suspend(resumed: () => void): void
	/** What stdin is: a socket left open by a parent is not waited for without end. */
	stdinKind(): 'terminal' | 'file' | 'pipe' | 'socket'
}

/** The real process. */
export function processStdio(): Stdio {
	const on = (event: string, listener: (...args: never[]) => void) => {
		process.on(event, listener as () => void)
		return () => void process.off(event, listener as () => void)
	}
	// oclif's listener throws whatever is not EPIPE: a closed terminal or a full disk would be a crash.
	process.stdout.removeAllListeners('error')
	return {
		stdin: process.stdin,
		stdout: process.stdout,
		stderr: process.stderr,
		env: process.env,
		onSignal: on,
		onCrash: (listener) => {
			const one = on('uncaughtException', listener)
			const two = on('unhandledRejection', listener)
			return () => {
				one()
				two()
			}
		},
		onExit: (listener) => on('exit', listener),
		abandon: (code) => process.exit(code),
		suspend(resumed) {
			process.once('SIGCONT', resumed)
			process.kill(0, 'SIGTSTP')
		},
		stdinKind() {
			if (process.stdin.isTTY) return 'terminal'
			try {
				const stat = process.getBuiltinModule('node:fs').fstatSync(0)
				return stat.isFIFO() ? 'pipe' : stat.isSocket() ? 'socket' : 'file'
			} catch {
				// A closed stdin: there is nothing to wait for.
				return 'file'
			}
		},
	}
}

// The other end is gone: a closed pipe, a closed terminal.
const gone = new Set(['EPIPE', 'EIO', 'ECONNRESET', 'ENXIO', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END'])

/** Whether an error says only that the terminal or the reader is gone. */
export const isGone = (error: unknown): boolean =>
	error instanceof Error && gone.has((error as NodeJS.ErrnoException).code ?? '')

/** Writes to one stream, joined to one write per chunk of events. */
export class Output {
	/** The reader is gone: further writes go nowhere. */
	closed = false
	/** A write failed for another reason (a full disk): the output is not whole. */
	failure: NodeJS.ErrnoException | null = null
	/** Nothing was written yet, or the last character was a line end. */
	atLineStart = true
	/** Lines on the screen that the next write erases. */
	private covered = 0
	private readonly stream: OutputStream
	private readonly onClosed: () => void
	private parts: string[] = []
	private timer: NodeJS.Immediate | null = null
	private readonly onError = (error: NodeJS.ErrnoException) => {
		if (!isGone(error)) this.failure ??= error
		this.shut()
	}

	constructor(stream: OutputStream, onClosed: () => void = () => {}) {
		this.stream = stream
		this.onClosed = onClosed
		stream.on('error', this.onError)
	}

	get isTTY(): boolean {
		return this.stream.isTTY === true
	}

	get columns(): number {
		return this.stream.columns ?? 80
	}

	get rows(): number {
		return this.stream.rows ?? 24
	}

	/**
	 * Shows whole lines for now, on a terminal: whatever is written next takes their place, another cover too. Each must fit
	 * its line; the terminal is told not to wrap what does not.
	 */
	cover(text: string, lines: number): void {
		this.write(`\u001b[?7l${text}\u001b[?7h`)
		this.covered = lines
		this.atLineStart = true
	}

	/** Takes the cover away. */
	uncover(): void {
		const lines = this.covered
		this.covered = 0
		if (lines > 0) this.write(`\r\u001b[${lines}A\u001b[J`)
		if (lines > 0) this.atLineStart = true
	}

	/** Joins what comes before the event loop turns into one write. */
	write(text: string): void {
		if (text === '' || this.closed) return
		if (this.covered > 0) this.uncover()
		this.parts.push(text)
		this.atLineStart = text.endsWith('\n')
		this.timer ??= setImmediate(() => this.flush())
	}

	/** The text on a line of its own. */
	line(text: string): void {
		this.write(`${this.atLineStart ? '' : '\n'}${text}\n`)
	}

	/** Hands over everything now, so that another stream may write next. */
	flush(): void {
		if (this.timer) clearImmediate(this.timer)
		this.timer = null
		if (this.parts.length === 0) return
		const text = this.parts.length === 1 ? this.parts[0]! : this.parts.join('')
		this.parts = []
		if (this.closed) return
		try {
			this.stream.write(text)
		} catch (error) {
			this.onError(error as NodeJS.ErrnoException)
		}
	}

	/** Resolves when the stream takes more; at once when the reader is gone. For a slow reader. */
	async ready(): Promise<void> {
		if (this.stream.writableNeedDrain) await this.settled('drain')
	}

	/** Resolves when all is with the system, however slow the reader is. To be awaited before the process may end. */
	async end(): Promise<void> {
		this.flush()
		while (!this.closed && this.stream.writableLength > 0) await this.settled('drain')
		// A write that failed is reported a moment after it.
		if (!this.closed) await new Promise((done) => setImmediate(done))
	}

	private settled(event: string): Promise<void> {
		if (this.closed) return Promise.resolve()
		return new Promise((done) => {
			const finish = () => {
				clearInterval(timer)
				for (const name of [event, 'error', 'close']) this.stream.off(name, finish)
				done()
			}
			for (const name of [event, 'error', 'close']) this.stream.on(name, finish)
			// `drain` comes only when a write returned false; a short last write is seen by its length.
			const timer = setInterval(() => this.stream.writableLength === 0 && finish(), 5)
		})
	}

	private shut(): void {
		if (this.closed) return
		this.closed = true
		this.parts = []
		this.onClosed()
	}
}

/** Whether escape sequences may be sent: NO_COLOR and a dumb terminal win over FORCE_COLOR=0/1; else a terminal decides. */
export function wantsColor(stream: OutputStream, env: Record<string, string | undefined>): boolean {
	if (env.NO_COLOR !== undefined && env.NO_COLOR !== '') return false
	if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
	return stream.isTTY === true && env.TERM !== 'dumb'
}

/** Exit codes of interruption: 128 and the signal's number. */
export const signalCodes: Record<SignalName, number> = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }
