// Ends the groups of running commands when Garuda is killed outright: nobody else would know of them. Beside the executor.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

/** Reads `+ pid` and `- pid`; the end of its input is the end of Garuda, however that came. */
const script = `
trap '' HUP INT TERM
list=' '
while read -r op pid; do
	case $op in
	+) list="$list$pid " ;;
	-) case $list in *" $pid "*) list="\${list%% $pid *} \${list#* $pid }" ;; esac ;;
	esac
done
for pid in $list; do kill -s KILL -- "-$pid"; done
`

/**
 * A small shell that outlives Garuda by a moment. A sandbox ends with its parent by the kernel's own signals, but not in
 * the milliseconds in which bubblewrap builds it, and a command on the host never does. Each pid is a group's leader.
 */
export class Reaper {
	readonly #running = new Set<number>()
	#child: ChildProcess | undefined
	#timer: NodeJS.Timeout | undefined
	#closed = false
	readonly #startMs: number

	/** `startMs` after the first command begins: 0 where only the reaper ends one, later where its start must not hold that up. */
	constructor(startMs: number) {
		this.#startMs = startMs
	}

	add(pid: number): void {
		this.#running.add(pid)
		if (this.#child) this.#tell('+', pid)
		else if (this.#startMs === 0) this.#start()
		else if (!this.#closed) this.#timer ??= setTimeout(() => this.#start(), this.#startMs).unref()
	}

	/** It ended: its number may soon be another's. */
	ended(pid: number): void {
		if (this.#running.delete(pid)) this.#tell('-', pid)
	}

	/** Nothing runs any more, or what does is to be ended. */
	close(): void {
		this.#closed = true
		clearTimeout(this.#timer)
		this.#child?.stdin?.end()
	}

	#start(): void {
		if (this.#closed) return
		const child = spawn('/bin/sh', ['-c', script], {
			cwd: '/',
			env: {},
			// A session of its own: Ctrl-C in the terminal is not for it.
			detached: true,
			stdio: ['pipe', 'ignore', 'ignore'],
		})
		child.on('error', () => {})
		child.stdin!.on('error', () => {})
		child.unref()
		;(child.stdin as Writable & { unref?(): void }).unref?.()
		this.#child = child
		for (const pid of this.#running) this.#tell('+', pid)
	}

	#tell(op: '+' | '-', pid: number): void {
		const stdin = this.#child?.stdin
		if (stdin?.writable) stdin.write(`${op} ${pid}\n`)
	}
}
