// The seams of the engine: what a turn needs from the world, each replaceable by an argument.
import type { ZodType } from 'zod'
import type {
	Answer,
	ApprovalRequest,
	CallInfo,
	Effect,
	Image,
	Json,
	Message,
	Mode,
	ModelEvent,
	ModelRequest,
	Wall,
} from './types.ts'

/** Time, so that tests need no waiting. `sleep` resolves early (never rejects) when the signal aborts. */
export interface Clock {
	now(): number
	sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Answers questions. Never throws; an abort, an error or doubt is `deny`. Called only by the gate and the trust store. */
export interface Approver {
	ask(request: ApprovalRequest, signal: AbortSignal): Promise<Answer>
}

/** A model behind a wire. `stream` never throws and ends with exactly one `end` or `error`; an abort ends it with an error of code `cancelled`. */
export interface ModelClient {
	stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>
}

// ---------------------------------------------------------------- processes

export interface RunSpec {
	/** Bash text, run by a fresh non-interactive `bash` with no rc files; or an argv run as is. */
	script?: string
	argv?: string[]
	/** Absolute; must exist. */
	cwd: string
	timeoutMs: number
	/** Added to the allowlisted environment of the sandbox. */
	env?: Record<string, string>
	/** Run on the host instead of in the sandbox; only after the gate said so. */
	outside?: boolean
	/** Plan mode: the root and the caches are read-only. */
	readOnly?: boolean
	/** Characters of output kept, half from the head and half from the tail. Default 30,000. */
	maxOutput?: number
	/** Called with decoded text as it comes (not bounded; at most every 100 ms). */
	onOutput?(text: string): void
	/** Text for stdin; without it stdin is closed. */
	stdin?: string
	/** Keep stdout and stderr apart in the result. */
	separate?: boolean
	/**
	 * With a host list: may this command (and those running beside it) reach a host that is not on it? Absent: no.
	 * Called by the proxy while the command runs; never throws.
	 */
	reachHost?(host: string, port: number): Promise<boolean>
	/** Stay off the host list's network even where the session has one. */
	offline?: boolean
}

export interface RunResult {
	/** null when a signal ended it. */
	code: number | null
	signal: string | null
	timedOut: boolean
	cancelled: boolean
	/** stdout and stderr as they came (or stdout alone with `separate`), decoded, bounded, with a line that says what was cut. */
	output: string
	stderr: string
	/** Bytes produced in all. */
	bytes: number
	/** Processes still running in the background when the shell ended; they are killed. */
	survivors: number
	/** Where the shell stood at its end, when it said so; untrusted text. */
	cwd?: string
	/** What appeared or changed that programs on the host obey, and what was done about it, one line each; untrusted text. */
	findings?: string[]
	/** The wall that most likely stopped the command, with the line that shows it; only when it failed inside a sandbox. */
	wall?: { wall: Wall; detail: string }
	durationMs: number
}

export interface Executor {
	readonly kind: 'bubblewrap' | 'seatbelt' | 'host'
	/** Rejects only for a bug or a spawn that cannot start (ToolError). Kills whole process trees on abort: TERM, grace, KILL. */
	run(spec: RunSpec, signal: AbortSignal): Promise<RunResult>
	/** Ends everything it started; idempotent. */
	close(): Promise<void>
}

// ---------------------------------------------------------------- files

/** The kind of a file, decided by its bytes. */
export type FileKind = 'text' | 'binary' | 'image' | 'notebook' | 'pdf' | 'empty'

/** A regular file that was read whole through the guard. */
export interface ReadFile {
	/** Absolute real path. */
	path: string
	bytes: Uint8Array
	/** sha256 of the bytes, hex. */
	hash: string
	mode: number
	nlink: number
	mtimeMs: number
	/** These are the bytes of an editor's unsaved buffer; those on the disk differ. */
	unsaved?: true
}

/**
 * The guarded way to the disk for tools: paths decided by real path, opened part by part with no link followed,
 * regular files only, bounded size. Throws ToolError with a text for the model (missing, a folder, a FIFO, too large, refused).
 */
export interface Files {
	/** The working root and the added folders, real paths. */
	readonly roots: readonly string[]
	/** The real absolute path that `path` (relative to the root, absolute or ~) means; for a new file, its parent's real path plus the name. Says where it lies. */
	resolve(path: string): Promise<ResolvedPath>
	/** Whole file, at most `limit` bytes (default 64 MiB). */
	read(path: string, limit?: number): Promise<ReadFile>
	/** The first `length` bytes from `start`, and the size. */
	readPart(path: string, start: number, length: number): Promise<{ path: string; bytes: Uint8Array; size: number }>
	/** Replaces or makes the file atomically in its own folder; refuses when the present content's hash is not `base` (null: must not exist). Keeps mode and link target; makes missing parent folders inside the root. */
	write(path: string, bytes: Uint8Array, base: string | null): Promise<{ path: string; hash: string; note?: string }>
}

export interface ResolvedPath {
	path: string
	/** Relative to the root, or absolute when outside. */
	shown: string
	inside: boolean
	exists: boolean
	/** Why the file tools must not touch it (secrets, devices), or null. */
	sensitive: string | null
	/** Inside the root but protected from writing (.git, .garuda, editor and hook configuration), or null. */
	protected: string | null
}

// ---------------------------------------------------------------- tools

/** What a session's tools remember. */
export interface ToolState {
	/** Real path → hash of the content this agent has seen; `whole` false when only a part was shown. */
	seen: Map<string, { hash: string; whole: boolean }>
	/** Where bash stands; always inside the roots. */
	cwd: string
	todo: { text: string; status: 'open' | 'doing' | 'done' }[]
	/** The session's model takes no pictures: why, for the words of a refusal. Absent: it takes them. */
	noImages?: string | undefined
}

export interface ToolContext {
	callId: string
	root: string
	home: string
	mode: Mode
	signal: AbortSignal
	files: Files
	executor: Executor
	state: ToolState
	limits: { resultChars: number; readLines: number; readBytes: number; bashTimeoutMs: number; bashMaxTimeoutMs: number }
	/** Globs of absolute paths that a deny rule keeps from reading: searches leave them out and say so. `below`: what lies under a match too, in any case of letters. */
	deniedReads: readonly { glob: string; below: boolean }[]
	/**
	 * Whole lines of progress for the user, not for the model; a text that begins with a carriage return is the line that has
	 * not ended yet, as it stands now, in the place of the one before it.
	 */
	progress(text: string): void
	/** Asks the gate for more than the plan said. Never throws; `allowed` false carries the reason for the model. */
	request(effect: Effect): Promise<{ allowed: boolean; reason: string }>
	/** A secret's stable mark back to its value, and text through the redactor. */
	redactor: Redactor
}

/** What is shown and then done. `data` is the tool's own; the gate does not look into it. */
export interface Plan<D = unknown> {
	info: CallInfo
	data: D
}

export interface ToolResult {
	status: 'ok' | 'failed'
	/** For the model; the gate bounds, cleans and redacts it. */
	text: string
	/** For front ends (JSON output), small. */
	data?: Json
	/** The tool has cleaned its text and fenced it by `wrap`: the gate must not take that fence for a forged one. */
	fenced?: true
	/** Pictures for the model, checked; the text holds their labels. Kept only of a result that is `ok`. */
	images?: Image[]
}

/**
 * One tool. `plan` has no effect and may throw ToolError (bad path, no match): the model gets its text and nothing is asked.
 * `run` does exactly what the plan showed and refuses when the base changed meanwhile.
 */
export interface Tool<I = any, D = any> {
	name: string
	description: string
	input: ZodType<I>
	/** Calls of read-only tools in one reply run in parallel. */
	readOnly: boolean
	plan(input: I, ctx: ToolContext): Promise<Plan<D>>
	run(plan: Plan<D>, ctx: ToolContext, accepted?: number[]): Promise<ToolResult>
}

// ---------------------------------------------------------------- secrets

export interface Redactor {
	/** Every known or recognised secret replaced by its stable mark. Idempotent. */
	redact(text: string): string
	/** Marks back to values; an unknown mark is named in `unknown`. */
	restore(text: string): { text: string; unknown: string[] }
	/** A value that must never be seen (a key). */
	add(name: string, value: string): void
}

// ---------------------------------------------------------------- audit

/** One line of the audit log: what was decided, done or agreed to. Texts are redacted by the log. */
export interface AuditEntry {
	kind: 'session' | 'decision' | 'action' | 'consent' | 'policy' | 'mode' | 'undo'
	callId?: string
	tool?: string
	input?: Json
	/** allow, deny, once, session, cancel; for a consent granted, refused, left_out. */
	decision?: string
	reason?: string
	/** The rule's text with its file and line. */
	rule?: string
	key?: string
	/** Of an action: ok, failed, denied, cancelled. */
	status?: string
	detail?: Json
}

/** The session's chained log. Appends are ordered; a log that cannot be written reports once and, where policy demands it, stops the session. */
export interface AuditLog {
	append(entry: AuditEntry): Promise<void>
	/** The end of a turn: the chain's head goes to the witnesses. Never throws; a witness that fails is reported once. */
	turnEnd(): Promise<void>
	onProblem(report: (text: string) => void): void
	close(): Promise<void>
}

// ---------------------------------------------------------------- sessions

export interface SessionHeader {
	version: 1
	id: string
	root: string
	created: number
	/** The system prompt and the tools as first sent: a resume sends the same bytes. */
	system: string
	tools: Json
	model: string
	/** Machine and user that wrote it; a file of another origin is not resumed without a yes. */
	origin: string
	garuda: string
}

/** One line of a journal. Additive: readers keep what they do not know. Every text is redacted before it is written. */
export type SessionRecord =
	| ({ type: 'start' } & SessionHeader)
	| { type: 'resume'; time: number; model: string }
	| { type: 'user'; time: number; message: Message; prompt: string }
	| { type: 'assistant'; time: number; message: Message; usage: Json; model: string; stop: string; requestId?: string }
	| { type: 'results'; time: number; message: Message }
	| {
			type: 'decision'
			time: number
			callId?: string
			tool: string
			input: Json
			decision: string
			reason: string
			rule?: string
			key: string
			/** What it was made on, enough to decide it again. */
			context?: Json
	  }
	| { type: 'model'; time: number; model: string; effort?: string }
	| { type: 'mode'; time: number; mode: Mode }
	| { type: 'title'; time: number; title: string }
	| { type: 'compaction'; time: number; messages: Message[]; before: number; after: number }
	| { type: 'snapshot'; time: number; turn: number; id: string | null; note?: string }
	| { type: 'undo' | 'redo'; time: number; turn: number }
	| { type: 'notice'; time: number; text: string }
	| { type: 'end'; time: number; turn: number; reason: string; usage: Json; error?: Json }

export interface SessionSummary {
	id: string
	root: string
	title: string
	created: number
	updated: number
	/** Bytes of the journal. */
	size: number
}

/**
 * Where sessions live. One writer a session: `open` takes the lock or throws UserError naming the holder.
 * Appends are durable in order (a torn last line is tolerated by `read`).
 */
export interface SessionStore {
	create(header: SessionHeader): Promise<SessionWriter>
	/** Locks and reads a session for going on; `problems` names what was skipped. */
	open(
		id: string,
	): Promise<{ writer: SessionWriter; header: SessionHeader; records: SessionRecord[]; problems: string[] }>
	read(id: string): Promise<{ header: SessionHeader; records: SessionRecord[]; problems: string[] }>
	list(): Promise<SessionSummary[]>
	rename(id: string, title: string): Promise<void>
	/** Refuses a locked (open) session. */
	remove(id: string): Promise<void>
}

export interface SessionWriter {
	readonly id: string
	/** Resolves when the line is in the file. Never throws after a full disk: it reports through `onProblem` once and keeps the record in memory. */
	append(record: SessionRecord): Promise<void>
	onProblem(report: (text: string) => void): void
	close(): Promise<void>
}

// ---------------------------------------------------------------- undo

export interface Snapshots {
	/** Takes the state before a turn; starts at once, awaited before the first write. `id` null with a note when over budget or off. */
	take(turn: number, signal: AbortSignal): Promise<{ id: string | null; note?: string }>
	/** The paths that differ between a snapshot and now. */
	changes(id: string): Promise<string[]>
	/** Restores what changed between `from` and `to` (the turn's start and end). Refuses and names files that the user changed since `to`. */
	restore(from: string, to: string): Promise<{ restored: string[]; conflicts: string[] }>
	close(): Promise<void>
}
