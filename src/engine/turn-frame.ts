// The frame of every turn: one at a time, its events to whoever listens, snapshots round it, a record at its end. Used by live-session.ts.
import type { Turn } from './api.ts'
import { Channel } from './channel.ts'
import { messageOf, UserError } from './errors.ts'
import type { AgentEvent, TurnEnd } from './types.ts'
import { noUsage } from './types.ts'
import type { UndoStack } from './undo-stack.ts'

export interface FrameDeps {
	undo: UndoStack
	/** Starts what the first command will need, beside the first request. */
	warmUp(): void
	/** Before the work of each turn. */
	before(signal: AbortSignal): Promise<void>
	/** Right after the work: its usage, its reason. */
	worked(end: TurnEnd): void
	/** The turn's last record. */
	record(turn: number, end: TurnEnd): Promise<void>
}

export class TurnFrame {
	private readonly d: FrameDeps
	private readonly listeners = new Set<(event: AgentEvent) => void>()
	private running: { abort: AbortController; end: Promise<TurnEnd> } | null = null
	/** What a stopped turn still does after its answer. */
	private settling: Promise<void> = Promise.resolve()
	private channel: Channel | null = null
	private shut = false

	constructor(deps: FrameDeps) {
		this.d = deps
	}

	/** Throws UserError while another turn runs, or after `stop`. An abort of `outer` stops the turn. */
	begin(outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<TurnEnd>): Turn {
		if (this.shut) throw new UserError('This session is closed.')
		this.free('Wait for its end, or stop it first.')
		const abort = new AbortController()
		const stop = () => abort.abort()
		if (outer?.aborted) stop()
		outer?.addEventListener('abort', stop, { once: true })
		const channel = new Channel()
		this.channel = channel
		const run = async (): Promise<TurnEnd> => {
			let end: TurnEnd
			await this.settling
			const turn = this.d.undo.begin(this.d.warmUp)
			try {
				await this.d.before(abort.signal)
				end = await work(abort.signal)
			} catch (error) {
				end = failed(error)
			}
			this.d.worked(end)
			const recorded = this.recordEnd(turn, end)
			// Who stops a turn is answered at once; its last snapshot is waited for by whatever comes next.
			if (end.reason === 'cancelled') this.settling = recorded
			else await recorded
			outer?.removeEventListener('abort', stop)
			this.running = null
			this.emit({ type: 'turn_end', end })
			this.channel = null
			channel.close()
			return end
		}
		const end = run()
		this.running = { abort, end }
		return { end, [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator]() }
	}

	/** UserError while a turn runs. */
	free(hint: string): void {
		if (this.running) throw new UserError('A turn is running in this session.', hint)
	}

	/** The same, and what a stopped turn still records is waited for. */
	async idle(hint: string): Promise<void> {
		this.free(hint)
		await this.settling
		this.free(hint)
	}

	/** Resolves when the last turn is on record. */
	settled(): Promise<void> {
		return this.settling
	}

	emit(event: AgentEvent): void {
		this.channel?.push(event)
		for (const listener of this.listeners) listener(event)
	}

	onEvent(listener: (event: AgentEvent) => void): () => void {
		this.listeners.add(listener)
		return () => this.listeners.delete(listener)
	}

	/** Ends the running turn and takes no other. */
	async stop(): Promise<void> {
		this.shut = true
		this.running?.abort.abort()
		await this.running?.end
		await this.settling
	}

	/** Never rejects. */
	private async recordEnd(turn: number, end: TurnEnd): Promise<void> {
		try {
			await this.d.undo.finish(turn, end.reason)
			await this.d.record(turn, end)
		} catch (error) {
			const text = `The end of this turn could not be recorded: ${messageOf(error)}`
			this.emit({ type: 'notice', level: 'warning', text })
		}
	}
}

const failed = (error: unknown): TurnEnd => ({
	reason: 'error',
	error:
		error instanceof UserError
			? { code: 'user', message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }
			: {
					code: 'internal',
					message: `Garuda failed by a fault of its own: ${messageOf(error)}`,
					hint: 'Run again with --debug and report what its log says.',
				},
	usage: noUsage(),
	steps: 0,
	text: '',
	denials: [],
	durationMs: 0,
	modelMs: 0,
	firstTokenMs: null,
})
