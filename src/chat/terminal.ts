// The terminal's modes: switched on for the chat, switched off on every kind of end. Owned by plain.
import type { Stdio } from './stdio.ts'

const on = '\u001b[?2004h'
const off = '\u001b[?2004l'

export interface TerminalModes {
	/** Raw keys and bracketed paste. */
	enter(): void
	/** As the shell left it. Idempotent, synchronous; never throws. */
	leave(): void
}

/** Modes for a real terminal; `leave` also runs at the process's end, whatever ended it. */
export function createTerminal(io: Stdio): TerminalModes & { dispose(): void } {
	let active = false
	const leave = () => {
		if (!active) return
		active = false
		try {
			io.stdin.setRawMode?.(false)
		} catch {
			// The terminal is gone: nothing is left to restore.
		}
		try {
			io.stdout.write(off)
		} catch {
			// As above.
		}
	}
	const forget = io.onExit(leave)
	return {
		enter() {
			if (active) return
			active = true
			io.stdin.setRawMode?.(true)
			io.stdout.write(on)
		},
		leave,
		dispose() {
			leave()
			forget()
		},
	}
}
