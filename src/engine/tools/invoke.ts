// THE gate: every effect of every call passes here, before it runs and again when it wants more. Between the turn and the tools.
import { messageOf, ToolError } from '../errors.ts'
import { type Decision, sessionKey } from '../permission/decide.ts'
import type { Approver, Executor, Files, Plan, Redactor, Tool, ToolContext, ToolState } from '../ports.ts'
import { clip, oneLine } from '../text.ts'
import type {
	AgentEvent,
	Answer,
	ApprovalRequest,
	CallInfo,
	CallStatus,
	Choice,
	Effect,
	Image,
	Json,
	Mode,
} from '../types.ts'
import { clean } from '../untrusted.ts'
import { parseInput, resolveTool } from './input.ts'
import { question } from './question.ts'

export interface Call {
	id: string
	name: string
	input: Record<string, unknown>
	badInput?: string
}

export interface Outcome {
	status: CallStatus
	/** For the model: cleaned, redacted, bounded. */
	text: string
	data?: Json
	/** The resolved tool's name. */
	name: string
	key: string
	/** Why it was denied, or what it wanted besides was, for the turn's list. A result that is not `denied` may have it too. */
	denied?: string
	/** Pictures of a good result: checked by the tool, for text is cleaned and redacted here, a picture is not. */
	images?: Image[]
	/** Cleaned and fenced by the tool itself. */
	fenced?: true
	/** The user's answer was `cancel`: the turn ends. */
	cancelTurn?: boolean
}

/** What one decision was, for the journal and the audit log; `input` is already redacted. */
export interface DecisionEntry {
	callId: string
	tool: string
	input: Json
	decision: 'allow' | Choice
	reason: string
	rule?: string
	key: string
	/** What it was made on, enough to decide it again. */
	context?: Json
}

export interface GateDeps {
	tools: readonly Tool[]
	approver: Approver
	files: Files
	executor: Executor
	state: ToolState
	redactor: Redactor
	root: string
	home: string
	limits: ToolContext['limits']
	deniedReads: ToolContext['deniedReads']
	mode(): Mode
	/** Rules, mode and session answers applied to a plan, or to more that a running call wants. */
	decide(
		tool: Pick<Tool, 'name' | 'readOnly'>,
		info: CallInfo,
		effect: Effect | undefined,
		mode: Mode,
	): Promise<Decision>
	/** A "session" answer: this key asks no more. */
	remember(key: string): void
	emit(event: AgentEvent): void
	record(entry: DecisionEntry): Promise<void>
	/** What became of an allowed call, for the audit log. */
	done(outcome: Outcome, call: Call): Promise<void>
	/** Resolves when the turn's snapshot is taken; awaited before the first call that can change something. */
	beforeChange(info: CallInfo): Promise<void>
}

export interface Gate {
	/** Never throws: a bug in a tool becomes a failed result that says so. On abort the call ends `cancelled`. */
	invoke(call: Call, signal: AbortSignal): Promise<Outcome>
	/**
	 * A question of the session itself, before any call: decided by the same rules, asked and recorded as a call's would be.
	 * Never throws; doubt and abort are no.
	 */
	consent(tool: string, info: CallInfo, signal: AbortSignal): Promise<{ allowed: boolean; reason: string }>
	/** Whether the call may run beside others of its kind. */
	parallel(name: string): boolean
}

interface Verdict {
	allowed: boolean
	reason: string
	note?: string
	accepted?: number[]
	cancel?: boolean
}

const unknownInfo = (call: Call): CallInfo => ({
	title: oneLine(call.name),
	kind: 'other',
	access: 'none',
	paths: [],
	key: `unknown:${call.name}`,
})

const denialText = (reason: string, note?: string): string =>
	`Denied: ${reason}${note ? `\nThe user says: ${note}` : ''}\nThis was not done. Do not try the same by another way: go on without it, or ask the user.`

/** Makes the gate of one session. It holds no answers itself: `decide` and `remember` do. */
export function createGate(deps: GateDeps): Gate {
	let questions = 0
	const named = (image: Image): Image => ({ ...image, label: deps.redactor.redact(image.label) })

	/** Nothing runs whose decision could not be recorded where a record is demanded. */
	async function pass(...args: Parameters<typeof decideAndAsk>): Promise<Verdict> {
		try {
			return await decideAndAsk(...args)
		} catch (error) {
			return { allowed: false, reason: messageOf(error) }
		}
	}

	/** One pass: decide, ask if need be, record. */
	async function decideAndAsk(
		tool: Pick<Tool, 'name' | 'readOnly'>,
		call: Call,
		info: CallInfo,
		effect: Effect | undefined,
		mode: Mode,
		signal: AbortSignal,
	): Promise<Verdict> {
		const decision = await deps.decide(tool, info, effect, mode)
		const key = sessionKey(info, effect)
		const entry = {
			callId: call.id,
			tool: tool.name,
			input: JSON.parse(deps.redactor.redact(JSON.stringify(call.input))) as Json,
			reason: decision.reason,
			key,
			...(decision.rule ? { rule: decision.rule.text } : {}),
			...(decision.context === undefined ? {} : { context: decision.context }),
		}
		if (decision.decision !== 'ask') {
			await deps.record({ ...entry, decision: decision.decision })
			return { allowed: decision.decision === 'allow', reason: decision.reason }
		}
		const request = question({ id: `q${++questions}`, call, tool: tool.name, info, effect, decision })
		deps.emit({ type: 'question', request })
		const answer = await askSafely(deps.approver, request, signal)
		deps.emit({ type: 'answer', id: request.id, choice: answer.choice })
		await deps.record({ ...entry, decision: answer.choice })
		if (answer.choice === 'session') deps.remember(key)
		const allowed = answer.choice === 'once' || answer.choice === 'session'
		return {
			allowed,
			reason: allowed ? '' : answer.choice === 'cancel' ? 'the user stopped the task' : 'the answer was no',
			...(answer.note === undefined ? {} : { note: answer.note }),
			...(answer.accepted === undefined ? {} : { accepted: answer.accepted }),
			...(answer.choice === 'cancel' ? { cancel: true } : {}),
		}
	}

	/** Redact before clipping: a secret cut in half would no longer be recognised. */
	function finish(outcome: Outcome, call: Call): Outcome {
		const text =
			clip(deps.redactor.redact(outcome.fenced ? outcome.text : clean(outcome.text)), deps.limits.resultChars + 2000) ||
			'(no output)'
		const { status, name, data } = outcome
		// A reason may name a path, and a path may hold a secret.
		const reason = outcome.denied === undefined ? {} : { denied: deps.redactor.redact(outcome.denied) }
		const denied = status !== 'denied' ? reason : {}
		deps.emit({
			type: 'tool_result',
			callId: call.id,
			name,
			status,
			text,
			...(data === undefined ? {} : { data }),
			...denied,
		})
		return { ...outcome, ...reason, text }
	}

	async function invoke(call: Call, signal: AbortSignal): Promise<Outcome> {
		const outcome = await attempt(call, signal)
		if (outcome.status !== 'denied') await deps.done(outcome, call)
		return outcome
	}

	async function attempt(call: Call, signal: AbortSignal): Promise<Outcome> {
		const tool = resolveTool(deps.tools, call.name)
		const name = tool?.name ?? call.name
		const announce = (info: CallInfo) =>
			deps.emit({ type: 'tool_call', callId: call.id, name, input: call.input, info })
		const refuse = (text: string, status: CallStatus = 'failed'): Outcome => {
			const info = unknownInfo(call)
			announce(info)
			return finish({ status, text, name, key: info.key }, call)
		}
		if (!tool) {
			const names = deps.tools.map((one) => one.name).join(', ')
			return refuse(`There is no tool "${oneLine(call.name, 80)}". The tools are: ${names}.`)
		}
		if (call.badInput !== undefined) {
			const began = oneLine(call.badInput, 200)
			return refuse(
				`The arguments were not a JSON object, so nothing was done. They began: ${began}\nCall ${name} again with valid JSON.`,
			)
		}
		const parsed = await parseInput(tool, call.input)
		if ('error' in parsed) return refuse(parsed.error)

		const mode = deps.mode()
		let info: CallInfo | undefined
		let cancelTurn = false
		/** The last no to what the running call wanted besides; a later yes to the same takes it back. */
		const refused = new Map<string, string>()
		const besides = () => (refused.size > 0 ? { denied: [...refused.values()].join('; ') } : {})
		const ctx: ToolContext = {
			callId: call.id,
			root: deps.root,
			home: deps.home,
			mode,
			signal,
			files: deps.files,
			executor: deps.executor,
			state: deps.state,
			limits: deps.limits,
			deniedReads: deps.deniedReads,
			redactor: deps.redactor,
			// Seen while it runs: what a command prints is redacted here as in its result.
			progress: (text) => deps.emit({ type: 'tool_progress', callId: call.id, text: deps.redactor.redact(text) }),
			request: async (effect) => {
				if (!info) return { allowed: false, reason: 'A plan may not ask for more.' }
				const verdict = await pass(tool, call, info, effect, mode, signal)
				if (verdict.cancel) cancelTurn = true
				const wanted = sessionKey(info, effect)
				if (verdict.allowed) refused.delete(wanted)
				else refused.set(wanted, verdict.reason)
				return { allowed: verdict.allowed, reason: verdict.allowed ? '' : denialText(verdict.reason, verdict.note) }
			},
		}
		const fault = (error: unknown): string =>
			error instanceof ToolError ? error.message : `${name} failed by a fault of its own: ${messageOf(error)}`

		let plan: Plan
		try {
			plan = await tool.plan(parsed.value, ctx)
		} catch (error) {
			return signal.aborted ? refuse('Stopped by the user before it began.', 'cancelled') : refuse(fault(error))
		}
		info = plan.info
		announce(info)
		const base = { name, key: info.key }

		const verdict = signal.aborted
			? { allowed: false, reason: 'stopped' }
			: await pass(tool, call, info, undefined, mode, signal)
		if (signal.aborted || verdict.cancel) {
			const end = verdict.cancel ? { cancelTurn: true } : {}
			return finish({ ...base, ...end, status: 'cancelled', text: 'Stopped by the user; it was not done.' }, call)
		}
		if (!verdict.allowed) {
			const text = denialText(verdict.reason, verdict.note)
			return finish({ ...base, status: 'denied', text, denied: verdict.reason }, call)
		}
		try {
			// No text: it is allowed and begins.
			deps.emit({ type: 'tool_progress', callId: call.id, text: '' })
			if (info.access === 'write' || info.access === 'run') await deps.beforeChange(info)
			const result = await tool.run(plan, ctx, verdict.accepted)
			const status = signal.aborted && result.status === 'failed' ? 'cancelled' : result.status
			const data = result.data === undefined ? {} : { data: result.data }
			const fenced = result.fenced ? { fenced: true as const } : {}
			const images = status === 'ok' && result.images?.length ? { images: result.images.map(named) } : {}
			return finish(
				{
					...base,
					status,
					text: result.text,
					...data,
					...fenced,
					...images,
					...besides(),
					...(cancelTurn ? { cancelTurn } : {}),
				},
				call,
			)
		} catch (error) {
			if (signal.aborted) return finish({ ...base, status: 'cancelled', text: 'Stopped by the user.' }, call)
			return finish({ ...base, ...besides(), status: 'failed', text: fault(error) }, call)
		}
	}

	async function consent(tool: string, info: CallInfo, signal: AbortSignal) {
		const call = { id: '', name: tool, input: {} }
		const { allowed, reason } = await pass({ name: tool, readOnly: true }, call, info, undefined, deps.mode(), signal)
		return { allowed, reason }
	}

	return { invoke, consent, parallel: (name) => resolveTool(deps.tools, name)?.readOnly ?? true }
}

/** An approver must not throw; one that does, that answers after an abort, or with a word not offered, has said no. */
async function askSafely(approver: Approver, request: ApprovalRequest, signal: AbortSignal): Promise<Answer> {
	const no: Answer = { choice: 'deny' }
	if (signal.aborted) return no
	const stop = new AbortController()
	try {
		const aborted = new Promise<Answer>((done) => {
			signal.addEventListener('abort', () => done(no), { once: true, signal: stop.signal })
		})
		const answer = await Promise.race([approver.ask(request, signal), aborted])
		if (signal.aborted) return no
		return answer.choice === 'cancel' || request.choices.includes(answer.choice) ? answer : no
	} catch {
		return no
	} finally {
		stop.abort()
	}
}
