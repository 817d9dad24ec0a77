// The engine's face: what a front end or a program that embeds Garuda sees. Types only.
import type {
	Approver,
	Clock,
	Executor,
	ModelClient,
	SessionHeader,
	SessionRecord,
	SessionSummary,
	Snapshots,
} from './ports.ts'
import type {
	AgentEvent,
	ApprovalRequest,
	Effort,
	Json,
	Mode,
	ModelSpec,
	Problem,
	PromptInput,
	TurnEnd,
	Usage,
} from './types.ts'

/** Where the engine runs; everything it may know of the world comes in here. */
export interface EngineOptions {
	/** The working root: an existing folder. Its real path is taken once. */
	root: string
	/** The user's home folder. */
	home: string
	/** Garuda's own folder; default `<home>/.garuda`. */
	garudaHome?: string
	env: Record<string, string | undefined>
	/** Answers the questions of all sessions. */
	approver: Approver
	/** Folders beside the root, under the same rules. */
	extraDirs?: string[]
	/** `[provider/]model`; default GARUDA_MODEL, then the default in models.json. */
	model?: string
	effort?: Effort
	mode?: Mode
	/** A fixed approval list in the grammar of the settings' rules: what it does not cover is denied, never asked. */
	allow?: string[]
	/** Changes of files inside the root need no question. */
	acceptEdits?: boolean
	limits?: { steps?: number; tokens?: number; cost?: number }
	appendSystemPrompt?: string
	version?: string
	platform?: NodeJS.Platform
	hostname?: string
	uid?: number
	/** Folder for session temp folders; default the system's. */
	tmpdir?: string
	/** Models that are no provider's, by name (`tour`, `scripted`): chosen only when asked for by that name. */
	clients?: Record<string, () => Promise<{ client: ModelClient; spec: ModelSpec }>>
	/**
	 * Questions about a project's own configuration: asked, at `open` too; asked only during a prompt (its commands); or
	 * (default) only what was agreed to before counts.
	 */
	consents?: 'ask' | 'prompt' | 'pinned'
	/** The managed policy file; default by platform. */
	managedPolicy?: string
	/** Around every model's client, for recording a run. */
	wrapClient?(client: ModelClient): ModelClient
	/** One object a line for a debug log; nothing in it is secret. */
	debug?(line: Record<string, Json>): void
	ports?: {
		client?: ModelClient
		spec?: ModelSpec
		executor?: Executor
		snapshots?: Snapshots
		clock?: Clock
		/** The text of a file that is open in an editor, or null; asked only for what may be read. */
		buffer?(path: string): Promise<string | null>
	}
}

export interface OpenOptions {
	/** Go on with this session. */
	resume?: string
	/** Go on with the newest session of this root. */
	latest?: boolean
	/** The id of a new session. */
	id?: string
	/** Go on with a session file of another machine or user. */
	trustForeign?: boolean
	/** Keep no journal (a one-off question, a rehearsal). */
	ephemeral?: boolean
}

export interface ModelInfo {
	/** `provider/id`. */
	name: string
	spec: ModelSpec
	default: boolean
	/** Why it cannot be used now (no key), or null. */
	problem: Problem | null
}

/** What a session would be opened with now; a problem is why there is no model. */
export interface Readiness {
	model: string | null
	problem: Problem | null
	/** A server of this machine that only its name stands for: a front end that can ask does so before first use. */
	server?: { name: string; url: string }
}

/** Before any session: what there is, and whether it could start. */
export interface Garuda {
	readonly root: string
	readonly sessions: {
		list(): Promise<SessionSummary[]>
		rename(id: string, title: string): Promise<void>
		/** Refuses the open one. */
		remove(id: string): Promise<void>
		/** The whole record of a session of any folder, by its id or its first characters; only read. */
		read(id: string): Promise<{ header: SessionHeader; records: SessionRecord[] }>
	}
	readonly models: {
		/** `servers` false leaves out the models of servers on this machine, which would be asked for them. */
		list(options?: { servers?: boolean }): Promise<ModelInfo[]>
		/** Model servers found on this machine (asked before first use by the front end). */
		local(signal?: AbortSignal): Promise<{ provider?: string; name: string; url: string; models: string[] }[]>
	}
	/** Whether a session could be opened with the chosen model. Reads the files anew. */
	readiness(): Promise<Readiness>
	/** Throws UserError: no model or key, a broken settings file, a locked or foreign session. */
	open(options?: OpenOptions): Promise<Session>
	/** Ends all sessions and everything they started; idempotent. */
	close(): Promise<void>
}

/** A turn under way: iterate its events, or await its end; it runs either way. `end` never rejects. */
export interface Turn extends AsyncIterable<AgentEvent> {
	readonly end: Promise<TurnEnd>
}

export interface PromptOptions {
	signal?: AbortSignal
	/** JSON schema that the final text must fit. */
	schema?: Json
}

export interface UndoResult {
	done: boolean
	/** Files put back. */
	restored: string[]
	/** Files changed since by someone else: nothing was put back. */
	conflicts: string[]
	/** The prompt of the turn, for the input line. */
	prompt?: string
	message: string
}

/** How tight the sandbox is: `strict` runs nothing outside of it and opens no Unix sockets. */
export type Profile = 'standard' | 'strict'

export interface Status {
	id: string
	root: string
	extraDirs: string[]
	title: string | null
	model: string
	effort: Effort | null
	mode: Mode
	sandbox: string
	profile: Profile
	acceptEdits: boolean
	usage: Usage
	contextTokens: number
	window: number | null
	turns: number
}

/** A slash command that is a Markdown file. Texts come from the file; show them safely. */
export interface CommandInfo {
	/** `name`, or `folder:name`. */
	name: string
	/** Its front matter's, or its first line. */
	description: string
	/** Its arguments as the file describes them; empty when it does not. */
	hint: string
	source: 'user' | 'project'
	/** `~/…` for the user's, relative to the root for the project's. */
	path: string
}

export interface CommandList {
	commands: CommandInfo[]
	/** What was left out and why, one sentence each. */
	problems: string[]
}

/** One conversation in one root. One prompt at a time: a second throws UserError. */
export interface Session {
	readonly id: string
	readonly root: string
	readonly mode: Mode
	readonly model: string
	readonly tools: readonly string[]
	/** Notices of the start (ignored settings, no sandbox), in order; the front end shows them once. */
	readonly notices: readonly string[]
	/** With `input.command` a command file is run first (consent, its commands and files); what stops it ends the turn with the code `command`. */
	prompt(input: PromptInput | string, options?: PromptOptions): Turn
	/** The command files of the user and the project, read anew. Never throws. */
	commands(): Promise<CommandList>
	/** A command of the user's own (`!command`): a bash call through the same gate; its output goes to the model with the next prompt. */
	shell(command: string, options?: { signal?: AbortSignal }): Turn
	setMode(mode: Mode): Promise<void>
	/** Throws UserError when the model cannot be used. */
	setModel(name: string): Promise<void>
	setEffort(effort: Effort | null): Promise<void>
	/** Tightens the sandbox for the rest of the session; ends background processes. UserError while a turn runs, or for a looser one. */
	setProfile(profile: Profile): Promise<void>
	setAcceptEdits(on: boolean): void
	setTitle(title: string): Promise<void>
	compact(signal?: AbortSignal): Promise<{ before: number; after: number } | null>
	undo(): Promise<UndoResult>
	redo(): Promise<UndoResult>
	/** What the last turn changed, or all turns, as a unified diff text. */
	diff(which?: 'last' | 'all'): Promise<string>
	status(): Status
	/** Rules in force with where they come from, and the answers given for this session. */
	permissions(): { rules: { text: string; kind: string; source: string }[]; session: string[] }
	/** The conversation so far as events, for a front end that shows it anew. */
	history(): AgentEvent[]
	/** Markdown in a new file in the root; returns its path. */
	export(): Promise<string>
	/** Paths for a mention or an argument that begins so. */
	complete(prefix: string): Promise<string[]>
	/** Events between turns (title, mode, model, notices). */
	onEvent(listener: (event: AgentEvent) => void): () => void
	/** Ends running work and frees the session; idempotent. */
	close(): Promise<void>
}

export type { AgentEvent, ApprovalRequest }
