// The next command's bubblewrap, started while nothing runs: it waits for its flags, so what it does is decided when the
// command comes, from the disk as it is then. Saves the fork of a large process and the loading of the program.
import type { Pipes } from './pipes.ts'
import { discard, type Launch, type Started, start } from './supervise.ts'

/** After a command: whoever waits for its result goes first. */
const quietMs = 15

export class Standby {
	readonly #launch: Launch
	readonly #pipes: Pipes
	#waiting: Started | undefined
	#filling = false
	#closed = false

	/** `launch` is the same for every command that may take it: stdin closed, both outputs in one pipe. */
	constructor(launch: Launch, pipes: Pipes) {
		this.#launch = launch
		this.#pipes = pipes
	}

	/** The waiting one, once, if it still lives. */
	take(): Started | undefined {
		const one = this.#waiting
		this.#waiting = undefined
		if (!one) return undefined
		if (one.child.pid === undefined || one.child.exitCode !== null || one.child.signalCode !== null) {
			discard(one)
			return undefined
		}
		hold(one, true)
		return one
	}

	/** Starts the next one, soon; what goes wrong is left to the command that then starts its own. */
	fill(): void {
		if (this.#waiting || this.#filling || this.#closed) return
		this.#filling = true
		setTimeout(async () => {
			try {
				const one = this.#closed ? undefined : await start(this.#launch, {}, this.#pipes)
				if (one && this.#closed) discard(one)
				else if (one) {
					hold(one, false)
					this.#waiting = one
				}
			} catch {
				// the next command tells
			} finally {
				this.#filling = false
			}
		}, quietMs).unref()
	}

	close(): void {
		this.#closed = true
		if (this.#waiting) discard(this.#waiting)
		this.#waiting = undefined
	}
}

/** Whether it keeps Garuda's own process alive. */
const hold = ({ child, out }: Started, alive: boolean): void => {
	const way = alive ? 'ref' : 'unref'
	child[way]()
	out?.reader[way]()
	for (const stream of child.stdio)
		if (stream && way in stream) (stream as unknown as { ref(): void; unref(): void })[way]()
}
