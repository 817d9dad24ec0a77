// Real pipes for a command's output. Node gives a child socket pairs, and `echo x > /dev/stderr` or `tee /dev/stdout`
// fail on a socket (ENXIO); a FIFO made once and used again behaves as a shell's own pipe does.
import { execFile } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface OutputPipe {
	/** Ends when every writer is gone. */
	reader: Socket
	/** For the child's stdio; close it after the spawn. */
	write: number
	/** Back into the store, after the reader saw the end: no writer is left then. */
	giveBack(): void
}

/** A store of FIFOs in `folder`, which no sandboxed command sees. `take` gives undefined where FIFOs cannot be made. */
export class Pipes {
	readonly #folder: string
	#free: string[] = []
	#count = 0
	#closed = false
	#broken = false
	#making: Promise<void> | undefined

	constructor(folder: string) {
		this.#folder = folder
	}

	async take(): Promise<OutputPipe | undefined> {
		while (this.#free.length === 0 && !this.#broken && !this.#closed) {
			this.#making ??= this.#make().finally(() => {
				this.#making = undefined
			})
			await this.#making
		}
		const path = this.#free.pop()
		if (!path) return undefined
		// The reading end first and without waiting, else each open would wait for the other.
		const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
		let write: number
		try {
			write = openSync(path, constants.O_WRONLY)
		} catch (error) {
			closeSync(read)
			throw error
		}
		const reader = new Socket({ fd: read, readable: true, writable: false })
		reader.on('error', () => {})
		return {
			reader,
			write,
			giveBack: () => {
				if (!this.#closed) this.#free.push(path)
			},
		}
	}

	async #make(): Promise<void> {
		try {
			const paths = Array.from({ length: 4 }, () => join(this.#folder, `pipe-${this.#count++}`))
			await promisify(execFile)('mkfifo', ['-m', '600', ...paths], { env: { PATH: '/usr/bin:/bin' }, cwd: '/' })
			this.#free.push(...paths)
		} catch {
			this.#broken = true
		}
	}

	close(): void {
		this.#closed = true
		this.#free = []
	}
}

/** A file descriptor to read `text` from: a file without a name, which `cat /dev/stdin` can open again, unlike a socket. */
export const textDescriptor = (text: string): number => {
	const folder = mkdtempSync(join(tmpdir(), 'garuda-stdin-'))
	const path = join(folder, 'stdin')
	try {
		writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
		const fd = openSync(path, constants.O_RDONLY)
		unlinkSync(path)
		return fd
	} finally {
		rmSync(folder, { recursive: true, force: true })
	}
}
