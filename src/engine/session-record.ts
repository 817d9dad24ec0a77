// What a session writes down: its journal, begun with the first record, and each decision in the audit log too. Used by live-session.ts.
import type { RecordOf } from './history.ts'
import type { AuditLog, Clock, SessionRecord, SessionWriter } from './ports.ts'
import type { DecisionEntry } from './tools/invoke.ts'
import type { Message } from './types.ts'

export interface RecorderDeps {
	/** Makes or continues the journal; null: none is kept. */
	openJournal: (() => Promise<SessionWriter>) | null
	audit: AuditLog
	clock: Clock
	/** A trouble of the journal, for the person. */
	note(text: string): void
}

export class Recorder {
	private readonly d: RecorderDeps
	private writer: Promise<SessionWriter> | null = null
	private failed = false
	private held: DecisionEntry[] | null = null

	constructor(deps: RecorderDeps) {
		this.d = deps
	}

	/** Whether there is a journal already. */
	get begun(): boolean {
		return this.writer !== null
	}

	/** Rejects when the journal cannot be begun (a lock, a link in its place): once, then nothing is kept. */
	async write(record: SessionRecord): Promise<void> {
		if (!this.d.openJournal || this.failed) return
		this.writer ??= this.d.openJournal().then((writer) => {
			writer.onProblem((text) => this.d.note(text))
			return writer
		})
		let writer: SessionWriter
		try {
			writer = await this.writer
		} catch (error) {
			// Told once, by the turn that wanted to begin it.
			this.failed = true
			this.writer = null
			throw error
		}
		await writer.append(record)
	}

	async message(message: Message, record: RecordOf): Promise<void> {
		const time = this.d.clock.now()
		if (record.type === 'user') return this.write({ type: 'user', time, message, prompt: record.prompt })
		if (record.type === 'note') return this.write({ type: 'user', time, message, prompt: '' })
		if (record.type === 'results') return this.write({ type: 'results', time, message })
		const { usage, model, stop, requestId } = record
		const id = requestId === undefined ? {} : { requestId }
		return this.write({ type: 'assistant', time, message, usage: { ...usage }, model, stop, ...id })
	}

	/** In the journal and the audit log. Rejects where the audit log is demanded and cannot be written. */
	async decision(entry: DecisionEntry): Promise<void> {
		if (this.held) return void this.held.push(entry)
		await this.write({ type: 'decision', time: this.d.clock.now(), ...entry })
		const { context, ...rest } = entry
		const detail = context === undefined ? {} : { detail: { context } }
		await this.d.audit.append({ kind: 'decision', ...rest, ...detail })
	}

	/** Decisions of `work` are written after it: the journal's first line holds what they decide on. */
	async after(work: () => Promise<void>): Promise<void> {
		const held: DecisionEntry[] = []
		this.held = held
		try {
			await work()
		} finally {
			this.held = null
		}
		for (const entry of held) await this.decision(entry)
	}

	async close(): Promise<void> {
		if (this.writer) await (await this.writer).close()
	}
}
