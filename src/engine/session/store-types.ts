// What the store of sessions is given and gives. Beside journal.ts.
import type { Processes } from '../files/atomic.ts'
import type { Clock, Redactor, SessionHeader, SessionRecord, SessionStore } from '../ports.ts'
import type { ListedSession } from './list.ts'
import type { JournalWriter } from './writer.ts'

export interface StoreOptions {
	/** The working root, a real path. */
	root: string
	/** `<root>/.garuda`. */
	projectDir: string
	/** `~/.garuda/sessions.json`. */
	index: string
	/** This machine and user; best with a random part of `~/.garuda`, which a planted file cannot guess. */
	origin: string
	redactor: Redactor | null
	clock: Clock
	/** Garuda's. */
	version: string
	/** How processes are told apart for locks. */
	processes?: Processes
}

export interface OpenSession {
	writer: JournalWriter
	header: SessionHeader
	/** All records from the header on, with a `damaged` entry (see records.ts) for each line that was skipped. */
	records: SessionRecord[]
	problems: string[]
}

/** The store of one project's sessions. Reads, renames and deletes also work on other projects' through the index. */
export interface GarudaSessions extends SessionStore {
	create(header: SessionHeader): Promise<JournalWriter>
	/**
	 * Locks and reads. UserError: open elsewhere (names the process), of another folder (names it), moved, or foreign:
	 * written by another machine or user, or not a private file of this one. Those can be adopted.
	 */
	open(id: string): Promise<OpenSession>
	/**
	 * Goes on with a copy: a new session under `header` (its id, system prompt, tools and model) that takes over the
	 * conversation of `id`, foreign or moved or of another folder; the original is only read. Decisions, modes and
	 * snapshots are not taken over, thinking is dropped. Only after the user's yes.
	 */
	adopt(id: string, header: SessionHeader): Promise<OpenSession>
	/** This folder's first, then other projects' that still exist; newest first in each. */
	list(): Promise<ListedSession[]>
	/** The session that --continue means: the newest of this folder that is ours; null when there is none. */
	latest(): Promise<ListedSession | null>
	/** An id, or the only one that begins with at least four given characters. UserError otherwise. */
	find(text: string): Promise<string>
}
