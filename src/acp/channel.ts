// A session's updates in order, on their way to the editor; between prompts nothing of a turn goes out. Used by updates, approver and session.
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { visible } from '../engine/index.ts'

type TextKind = 'agent_message_chunk' | 'agent_thought_chunk'

export class SessionChannel {
	private readonly notify: (update: SessionUpdate) => Promise<void>
	private readonly newId: () => string
	private turn = false
	/** Messages that the editor has not taken yet. */
	private waiting = 0
	private held: { kind: TextKind; text: string } | null = null
	private id: string | null = null
	/** Pieces of the message that is being written. */
	private spoken: SessionUpdate[] = []
	/** What a piece joins on to: an emoji's parts may come in two, and half a surrogate pair waits for the other. */
	private before = ''
	private half = ''
	/** The text of this prompt so far ends a paragraph (or there is none). */
	private fresh = true

	/** `notify` resolves when the message is handed over; it may reject when the editor is gone. */
	constructor(notify: (update: SessionUpdate) => Promise<void>, newId: () => string) {
		this.notify = notify
		this.newId = newId
	}

	/** A prompt runs: updates of its turn may go out. */
	begin(): void {
		this.turn = true
		this.fresh = true
	}

	/** The prompt is about to be answered: after this, updates of the turn are dropped. */
	end(): void {
		this.endMessage()
		this.turn = false
	}

	get open(): boolean {
		return this.turn
	}

	/** An update of the turn; dropped when no prompt runs. */
	send(update: SessionUpdate): void {
		if (this.turn) this.always(update)
	}

	/** An update that belongs to no turn (modes, commands, a replay). */
	always(update: SessionUpdate): void {
		this.flush()
		this.post(update)
	}

	/**
	 * Streamed text, hidden characters written out. While the editor has not taken what was sent, pieces are joined, so
	 * a slow reader costs no growing queue.
	 */
	text(kind: TextKind, piece: string): void {
		if (!this.turn || piece === '') return
		if (this.held && this.held.kind !== kind) this.flush()
		let text = this.half + piece
		this.half = ''
		const last = text.charCodeAt(text.length - 1)
		if (last >= 0xd800 && last < 0xdc00) {
			this.half = text.slice(-1)
			text = text.slice(0, -1)
		}
		if (text === '') return
		const shown = visible(this.before + text).slice(visible(this.before).length)
		this.before = (this.before + text).slice(-4).replace(/^[\udc00-\udfff]/, '')
		this.held ??= { kind, text: '' }
		this.held.text += shown
		if (this.waiting === 0) this.flush()
	}

	/** The model's message is whole: the next text is another one. */
	endMessage(): void {
		if (this.half !== '') {
			this.held ??= { kind: 'agent_message_chunk', text: '' }
			this.held.text += visible(this.half)
		}
		this.flush()
		this.half = ''
		this.before = ''
		this.id = null
		this.spoken = []
	}

	/** The message under way once more, for an editor that has opened the session anew. */
	again(): void {
		for (const update of this.spoken) this.always(update)
	}

	/** A line from Garuda itself, as a paragraph of its own; `word` false: without Garuda's name. */
	line(text: string, word = true): void {
		if (!this.turn) return
		this.endMessage()
		const said = `${this.fresh ? '' : '\n\n'}${word ? 'Garuda: ' : ''}${visible(text).trim()}\n\n`
		this.post({
			sessionUpdate: 'agent_message_chunk',
			content: { type: 'text', text: said },
			messageId: this.newId(),
		})
		this.fresh = true
	}

	private flush(): void {
		const { held } = this
		if (!held) return
		this.held = null
		this.id ??= this.newId()
		if (held.kind === 'agent_message_chunk') this.fresh = held.text.endsWith('\n\n')
		const update: SessionUpdate = {
			sessionUpdate: held.kind,
			content: { type: 'text', text: held.text },
			messageId: this.id,
		}
		this.spoken.push(update)
		this.post(update)
	}

	private post(update: SessionUpdate): void {
		this.waiting++
		const done = (): void => {
			this.waiting--
			if (this.waiting === 0) this.flush()
		}
		this.notify(update).then(done, done)
	}
}
