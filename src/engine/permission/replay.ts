// Recorded decisions decided again under the present rules, by the very function of a live session. For `garuda policy replay`.
import type { Json } from '../types.ts'
import { type DecisionContext, effectOf, readContext } from './context.ts'
import type { Decision } from './decide.ts'
import type { Decider } from './decider.ts'

/** A decision as a journal or an audit log keeps it. */
export interface RecordedDecision {
	time: number
	tool: string
	input: Json
	/** allow, deny, or the answer: once, session, deny, cancel. */
	decision: string
	reason: string
	rule?: string
	key: string
	context?: Json
}

/** `start` begins a run of Garuda: no answer of an earlier one counts. */
export type ReplayEvent = { type: 'start' } | { type: 'decision'; decision: RecordedDecision }

export type Change = 'same' | 'asked_less' | 'asked_more' | 'blocked' | 'unblocked' | 'not_comparable'

export interface ReplayLine {
	/** Of the session's decisions, from 1. */
	index: number
	time: number
	tool: string
	/** The command, path or host. */
	what: string
	change: Change
	was: Decision['decision'] | null
	now: Decision['decision'] | null
	/** What the person said then, where someone was asked. */
	answer?: string
	/** Why it is decided so now; for a line that is not comparable, why it is not. */
	reason: string
	rule?: { text: string; file: string; line: number }
	/** The rule of then. */
	ruleThen?: string
}

const mark = /\[redacted:[a-z0-9-]{1,40}:[0-9a-f]{6,16}\]/

/**
 * One session's decisions in order. "Session" answers count as they did: where the present rules still ask, the recorded
 * answer is given. `deciderWith` makes the session's decider with the --allow rules and added folders that a
 * run was started with, as far as its records show them.
 */
export async function replayDecisions(
	events: readonly ReplayEvent[],
	deciderWith: (fixed: readonly string[], extraDirs: readonly string[]) => Promise<Pick<Decider, 'decide'>>,
): Promise<ReplayLine[]> {
	const lines: ReplayLine[] = []
	for (const run of runs(events)) {
		const decider = await deciderWith(flagsOf(run), dirsOf(run))
		const keys = new Set<string>()
		for (const record of run) {
			const line = await replayOne(record, decider, keys)
			if (record.decision === 'session' && line.now !== 'deny') keys.add(record.key)
			lines.push({ index: lines.length + 1, ...line })
		}
	}
	return lines
}

function runs(events: readonly ReplayEvent[]): RecordedDecision[][] {
	const found: RecordedDecision[][] = [[]]
	for (const event of events) {
		if (event.type === 'start') found.push([])
		else found.at(-1)!.push(event.decision)
	}
	return found.filter((run) => run.length > 0)
}

/** The rules of --allow that decided something in a run. */
const flagsOf = (run: readonly RecordedDecision[]): string[] => [
	...new Set(
		run.flatMap(({ rule, context }) =>
			rule !== undefined && readContext(context)?.rule?.file === '--allow' ? [rule] : [],
		),
	),
]

/** The folders that a run had beside the root. */
const dirsOf = (run: readonly RecordedDecision[]): string[] => [
	...new Set(run.flatMap(({ context }) => readContext(context)?.extraDirs ?? [])),
]

async function replayOne(
	record: RecordedDecision,
	decider: Pick<Decider, 'decide'>,
	keys: ReadonlySet<string>,
): Promise<Omit<ReplayLine, 'index'>> {
	const context = readContext(record.context)
	const base = {
		time: record.time,
		tool: record.tool,
		what: whatOf(record, context),
		...(record.rule === undefined ? {} : { ruleThen: record.rule }),
	}
	const skip = (reason: string): Omit<ReplayLine, 'index'> => ({
		...base,
		change: 'not_comparable',
		was: context?.decided ?? null,
		now: null,
		reason,
	})
	if (!context) return skip('the record does not say what it was decided on')
	if (mark.test(JSON.stringify([record.input, record.key, record.context])))
		return skip('a secret in it was replaced by a mark')
	let now: Decision
	try {
		now = await decider.decide(callOf(record, context, keys))
	} catch (error) {
		return skip(`it cannot be decided here: ${error instanceof Error ? error.message : String(error)}`)
	}
	return {
		...base,
		change: compare(context.decided, now.decision),
		was: context.decided,
		now: now.decision,
		...(context.decided === 'ask' ? { answer: record.decision } : {}),
		reason: now.reason,
		...(now.rule ? { rule: now.rule } : {}),
	}
}

function callOf(record: RecordedDecision, context: DecisionContext, keys: ReadonlySet<string>) {
	const command = record.tool === 'bash' ? textOf(record.input, 'command') : undefined
	const effect = effectOf(context, command)
	return {
		tool: record.tool,
		readOnlyTool: context.readOnly === true,
		info: {
			title: '',
			kind: context.fetch ? ('fetch' as const) : ('other' as const),
			access: context.access,
			paths: context.paths ?? [],
			// The key of an effect is its own; the record's is the one that was asked about.
			key: context.callKey ?? (effect || context.outside ? `${record.tool}:${command ?? ''}` : record.key),
			...(command === undefined ? {} : { command }),
			...(context.outside ? { outside: true } : {}),
			...(context.outsideIn === undefined ? {} : { cwd: context.outsideIn }),
		},
		effect,
		mode: context.mode,
		sandboxed: context.sandboxed,
		acceptEdits: context.acceptEdits === true,
		...(context.cwd === undefined ? {} : { cwd: context.cwd }),
		keys,
	}
}

const order = { allow: 0, ask: 1, deny: 2 }

function compare(was: Decision['decision'], now: Decision['decision']): Change {
	if (was === now) return 'same'
	if (now === 'deny') return 'blocked'
	if (was === 'deny') return 'unblocked'
	return order[now] > order[was] ? 'asked_more' : 'asked_less'
}

const textOf = (input: Json, key: string): string | undefined => {
	const value = typeof input === 'object' && input !== null && !Array.isArray(input) ? input[key] : undefined
	return typeof value === 'string' ? value : undefined
}

function whatOf({ input, key }: RecordedDecision, context: DecisionContext | null): string {
	const effect = context?.effect
	if (effect?.type === 'reach_host') return `host ${String(effect.host)}:${String(effect.port)}`
	const text = textOf(input, 'command') ?? textOf(input, 'path') ?? context?.paths?.[0] ?? key
	return effect?.type === 'outside_sandbox' || context?.outside ? `outside the sandbox: ${text}` : text
}
