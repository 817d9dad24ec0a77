// Background processes of a session: started by bash, looked at by process_manager. Between the tools and the executor.
import { messageOf, ToolError } from '../errors.ts'
import { cutWords } from '../files/tokens.ts'
import type { Executor, RunResult, RunSpec } from '../ports.ts'
import { oneLine } from '../text.ts'

export interface DaemonLimits {
	/** Running at once. */
	max: number
	/** Lines kept of each. */
	lines: number
}

export interface DaemonState {
	id: string
	command: string
	cwd: string
	running: boolean
	/** How it ended, in words; empty while it runs. */
	ending: string
	ageMs: number
	/** Lines written in all, and the number of the first one that is still kept (1-based). */
	lines: number
	kept: number
}

export interface Daemons {
	/**
	 * Starts a script in the sandbox and waits a moment, so that one that fails at once says so. Throws ToolError when as many
	 * run as may. It outlives the call and the turn, not the session: the executor's `close` ends it, and with the sandbox's
	 * process space it dies when Garuda is killed.
	 */
	start(
		executor: Executor,
		spec: Pick<RunSpec, 'script' | 'cwd' | 'env' | 'readOnly' | 'reachHost'>,
	): Promise<DaemonState>
	list(): DaemonState[]
	/** Undefined for an id that never was, or that ended so long ago that it is forgotten. */
	get(id: string): DaemonState | undefined
	/** The last `count` lines that are kept, as they came; the number of the first one. */
	logs(id: string, count: number): { lines: string[]; first: number } | undefined
	/** TERM, grace, KILL; resolves when it has ended. */
	kill(id: string): Promise<DaemonState | undefined>
	/** What ended by itself since the last call of this, one line each: for the model, with its next result. */
	news(): string[]
	/** Ends all. */
	close(): Promise<void>
}

/** So long a start waits for an early end. */
const firstMs = 700
/** A line without an end is cut here: a progress bar must not fill the memory. */
const lineChars = 2_000
/** Characters kept of one process, whatever its lines are. */
const allChars = 4_000_000

/** `onEnd` hears of each end that nobody asked for, for a notice to the person. */
export const createDaemons = (limits: DaemonLimits, onEnd: (text: string) => void = () => {}): Daemons => {
	const all = new Map<string, Running>()
	let count = 0
	let news: string[] = []
	let closed = false

	/** Ended ones stay for their logs, as many as may run. */
	const forget = (): void => {
		const ended = [...all.values()].filter((one) => one.ending !== '')
		for (const one of ended.slice(0, Math.max(0, ended.length - limits.max))) all.delete(one.id)
	}

	return {
		async start(executor, spec) {
			if (closed) throw new ToolError('The session is closed.')
			const running = [...all.values()].filter((one) => one.ending === '')
			if (running.length >= limits.max)
				throw new ToolError(
					`${running.length} background processes run, the most that may: ${running.map((one) => one.id).join(', ')}. End one with process_manager first.`,
				)
			const one = new Running(`d${++count}`, executor, spec, limits.lines)
			all.set(one.id, one)
			let early = true
			one.ended.then(() => {
				if (!early && !one.asked && !closed) {
					const text = `background process ${one.id} (${oneLine(one.command, 100)}) ended: ${one.ending}`
					news.push(text)
					onEnd(text)
				}
				forget()
			})
			await Promise.race([one.ended, new Promise((done) => setTimeout(done, firstMs))])
			early = false
			return one.state()
		},
		list: () => [...all.values()].map((one) => one.state()),
		get: (id) => all.get(id)?.state(),
		logs: (id, count) => all.get(id)?.lines.last(count),
		async kill(id) {
			const one = all.get(id)
			await one?.stop()
			return one?.state()
		},
		news() {
			const told = news
			news = []
			return told
		},
		async close() {
			closed = true
			await Promise.all([...all.values()].map((one) => one.stop()))
		},
	}
}

class Running {
	readonly id: string
	readonly command: string
	readonly lines: LineBuffer
	readonly ended: Promise<void>
	/** Somebody ended it on purpose. */
	asked = false
	ending = ''
	readonly #cwd: string
	readonly #since = performance.now()
	readonly #abort = new AbortController()

	constructor(
		id: string,
		executor: Executor,
		spec: Pick<RunSpec, 'script' | 'cwd' | 'env' | 'readOnly' | 'reachHost'>,
		lines: number,
	) {
		this.id = id
		this.command = spec.script ?? ''
		this.#cwd = spec.cwd
		this.lines = new LineBuffer(lines)
		const run = executor.run(
			{ ...spec, timeoutMs: Number.MAX_SAFE_INTEGER, maxOutput: 1_000, onOutput: (text) => this.lines.push(text) },
			this.#abort.signal,
		)
		this.ended = run.then(
			(result) => this.#end(words(result)),
			(error) => this.#end(`it could not run: ${oneLine(messageOf(error), 300)}`),
		)
	}

	#end(text: string): void {
		this.lines.end()
		this.ending = text
	}

	async stop(): Promise<void> {
		if (this.ending === '') this.asked = true
		this.#abort.abort()
		await this.ended
	}

	state(): DaemonState {
		const { id, command, ending, lines } = this
		return {
			id,
			command,
			cwd: this.#cwd,
			running: ending === '',
			ending,
			ageMs: Math.round(performance.now() - this.#since),
			lines: lines.total,
			kept: lines.first,
		}
	}
}

const words = (result: RunResult): string => {
	const left =
		result.survivors > 0
			? `; ${result.survivors} ${result.survivors === 1 ? 'process' : 'processes'} that it had put into the background ended with it: start the program itself, without &`
			: ''
	if (result.cancelled) return 'stopped'
	return `${result.signal ? `signal ${result.signal}` : `exit code ${result.code ?? 'unknown'}`}${left}`
}

/** The newest lines of a stream, bounded in number and size. */
export class LineBuffer {
	total = 0
	readonly #max: number
	#lines: string[] = []
	#chars = 0
	#rest = ''
	#cut = false

	constructor(max: number) {
		this.#max = max
	}

	/** The number of the oldest line that is kept. */
	get first(): number {
		return this.total - Math.min(this.#lines.length, this.#max) + 1
	}

	push(text: string): void {
		const parts = text.split('\n')
		for (const [index, part] of parts.entries()) {
			if (!this.#cut) this.#rest += part
			if (this.#rest.length > lineChars) {
				this.#rest = `${cutWords(this.#rest, lineChars)}…`
				this.#cut = true
			}
			if (index < parts.length - 1) this.#add()
		}
	}

	/** A line without its end counts too. */
	end(): void {
		if (this.#rest !== '') this.#add()
	}

	#add(): void {
		this.#lines.push(this.#rest)
		this.#chars += this.#rest.length
		this.total++
		this.#rest = ''
		this.#cut = false
		// Now and then and not for each line: a flood must stay cheap.
		if (this.#lines.length <= this.#max * 1.25 && this.#chars <= allChars * 1.25) return
		let drop = 0
		while (this.#lines.length - drop > this.#max || this.#chars > allChars) this.#chars -= this.#lines[drop++]!.length
		this.#lines = this.#lines.slice(drop)
	}

	last(count: number): { lines: string[]; first: number } {
		const kept = this.#lines.slice(-this.#max)
		const lines = [...kept, ...(this.#rest === '' ? [] : [this.#rest])].slice(-count)
		return { lines, first: this.total + (this.#rest === '' ? 0 : 1) - lines.length + 1 }
	}
}
