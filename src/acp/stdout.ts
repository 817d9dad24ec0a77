// The protocol's way out: stdout carries its messages only, whatever else is written there goes to stderr. First step of `garuda acp`.

type Write = (chunk: Uint8Array | string, ...rest: any[]) => boolean

/** The part of process.stdout and process.stderr that the guard uses. */
export interface Out {
	write: Write & { protocol?: Write }
	end: (...args: any[]) => unknown
	on(event: 'error', listener: (error: Error) => void): unknown
}

/** Resolves when the bytes are handed over; rejects when the reader is gone. */
export type ProtocolWrite = (chunk: Uint8Array) => Promise<void>

/**
 * Takes stdout for the protocol. Every other write (a notice, a library, console.log) reaches stderr with all its
 * arguments, so encodings and callbacks work as before; `end` of a stream piped into stdout ends nothing. bin/run.js may
 * have put the same guard in place before anything was loaded, and left the real `write` as `write.protocol`.
 */
export function protocolOutput(stdout: Out, stderr: Out): ProtocolWrite {
	const real = (stdout.write.protocol ?? stdout.write).bind(stdout)
	stdout.write = ((...args: Parameters<Write>) => stderr.write(...args)) as Write
	stdout.end = (...args: any[]) => {
		const [chunk] = args
		const done = args.find((arg) => typeof arg === 'function') as (() => void) | undefined
		if (chunk === undefined || chunk === null || typeof chunk === 'function') done?.()
		else stderr.write(...(args as Parameters<Write>))
		return stdout
	}
	// An editor that went away is told by the end of stdin; without a listener it would be a crash.
	stdout.on('error', () => {})
	stderr.on('error', () => {})
	return (chunk) =>
		new Promise((done, failed) => {
			real(chunk, (error?: Error | null) => (error ? failed(error) : done()))
		})
}
