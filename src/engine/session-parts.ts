// What an open session is made of: the parts that assemble.ts brings and live-session.ts runs on. Types only.
import type { Profile } from './api.ts'
import type { CommandAccess } from './command-access.ts'
import type { Decider } from './permission/decider.ts'
import type { AuditLog, Clock, ModelClient, Redactor, SessionWriter, Tool, ToolState } from './ports.ts'
import type { Turnmark } from './session/resume.ts'
import type { GateDeps } from './tools/invoke.ts'
import type { ServerSearch } from './tools/web-tools.ts'
import type { Effort, Message, Mode, ModelSpec, ToolSpec, Usage } from './types.ts'
import type { SessionSnapshots } from './undo-stack.ts'

/** A model ready to be called. */
export interface ModelChoice {
	name: string
	client: ModelClient
	spec: ModelSpec
}

/** What a session starts from: rebuilt from a journal, or new and empty. */
export interface SessionStart {
	messages: Message[]
	turns: Turnmark[]
	/** The redo stack: each turn and the whole conversation after its redo. */
	undone: { mark: Turnmark; messages: Message[] }[]
	nextTurn: number
	title: string | null
	usage: Usage
	stoppedMidway: boolean
}

export interface SessionParts extends CommandAccess {
	id: string
	root: string
	extraDirs: string[]
	start: SessionStart
	model: ModelChoice
	effort: Effort | undefined
	mode: Mode
	acceptEdits: boolean
	system: string
	tools: Tool[]
	/** Grows once, before the first request, by the provider's search when the user agrees. */
	specs: ToolSpec[]
	serverSearch: ServerSearch | null
	gate: Omit<
		GateDeps,
		| 'mode'
		| 'emit'
		| 'record'
		| 'done'
		| 'beforeChange'
		| 'decide'
		| 'remember'
		| 'tools'
		| 'state'
		| 'redactor'
		| 'root'
	>
	decider: Pick<Decider, 'decide' | 'rules'>
	/** Whether commands run in the OS sandbox. */
	sandboxed(): Promise<boolean>
	redactor: Redactor
	audit: AuditLog
	state: ToolState
	snapshots: SessionSnapshots | null
	limits: { steps: number; repeatHint: number; repeatStop: number; tokens: number | null; cost: number | null }
	compaction: { auto: boolean; reserve: number; keep: number }
	clock: Clock
	notices: string[]
	/** Makes or continues the journal; called at the first record. Null: keep none. */
	openJournal: (() => Promise<SessionWriter>) | null
	chooseModel(name: string): Promise<ModelChoice>
	sandboxWord(): string
	/** The sandbox profile in force; it can only be made tighter. */
	profile(): Profile
	tighten(): Promise<void>
	/** Starts what the first command will need, beside the first request. */
	warmUp(): void
	exportText(): Promise<string>
	complete(prefix: string): Promise<string[]>
	onClose(): Promise<void>
}
