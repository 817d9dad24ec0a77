// Events on their way from the turn to whoever watches: emit inside, async-iterable outside.
import type { AgentEvent } from './types.ts'

/**
 * A queue for one reader. Consecutive text (or thinking) deltas that nobody has read yet are joined, so a reader
 * that stops reading costs no growing list of deltas and loses nothing but their boundaries.
 */
export class Channel implements AsyncIterable<AgentEvent> {
	private queue: AgentEvent[] = []
	private next = 0
	private wake: (() => void) | null = null
	private closed = false
	private joined: string[] = []

	push(event: AgentEvent): void {
		if (this.closed) return
		const last = this.next < this.queue.length ? this.queue[this.queue.length - 1] : undefined
		if (
			last &&
			(event.type === 'text_delta' || event.type === 'thinking_delta') &&
			last.type === event.type &&
			this.queue.length - this.next > 256
		) {
			this.joined.push(event.text)
			return
		}
		this.flush()
		this.queue.push(event)
		this.wake?.()
	}

	close(): void {
		this.flush()
		this.closed = true
		this.wake?.()
	}

	private flush(): void {
		if (this.joined.length === 0) return
		const last = this.queue[this.queue.length - 1]
		if (last?.type === 'text_delta' || last?.type === 'thinking_delta')
			this.queue[this.queue.length - 1] = { ...last, text: last.text + this.joined.join('') }
		this.joined = []
	}

	/** One reader at a time; ends after `close` when all was read. */
	async *[Symbol.asyncIterator](): AsyncIterator<AgentEvent> {
		for (;;) {
			if (this.next < this.queue.length) {
				if (this.next === this.queue.length - 1) this.flush()
				const event = this.queue[this.next++]!
				if (this.next > 1024) {
					this.queue = this.queue.slice(this.next)
					this.next = 0
				}
				yield event
			} else if (this.closed) return
			else {
				await new Promise<void>((done) => {
					this.wake = done
				})
				this.wake = null
			}
		}
	}
}
