// What a decision was made on, as a record keeps it: with the call's input enough to decide again. Written by decider, read by replay.
import { isAbsolute, normalize } from 'node:path'
import type { Access, Effect, Json, Mode } from '../types.ts'
import type { Decision } from './decide.ts'
import type { DeciderCall } from './decider.ts'

/** Small: the command and texts stand in the call's input, the answer and the key in the record itself. */
export interface DecisionContext {
	/** What was decided, before anyone was asked. */
	decided: Decision['decision']
	mode: Mode
	sandboxed: boolean
	access: Access
	readOnly?: true
	paths?: string[]
	outside?: true
	/** The folder that a command outside the sandbox runs in, when it is not the root. */
	outsideIn?: string
	/** What tools of the web plan with. */
	fetch?: true
	acceptEdits?: true
	/** Folders added beside the root. */
	extraDirs?: string[]
	/** Where bash stood; absent: the root. */
	cwd?: string
	/** Without its command, which is the call's. */
	effect?: Record<string, Json>
	/** Of an effect: the key of the call that wants it, where the command does not give it. */
	callKey?: string
	/** The deciding rule's place. */
	rule?: { file: string; line: number }
}

/** As JSON, for `Decision.context`. */
export function decisionContext(
	call: Omit<DeciderCall, 'keys'>,
	decision: Decision,
	root: string,
	extraDirs: readonly string[] = [],
): Json {
	const { info, effect, cwd } = call
	const { command, ...rest } = effect && 'command' in effect ? effect : { ...effect, command: undefined }
	const context: DecisionContext = {
		decided: decision.decision,
		mode: call.mode,
		sandboxed: call.sandboxed,
		access: info.access,
		...(call.readOnlyTool ? { readOnly: true } : {}),
		...(info.paths.length > 0 ? { paths: info.paths } : {}),
		...(info.outside ? { outside: true } : {}),
		...(info.cwd === undefined ? {} : { outsideIn: info.cwd }),
		...(info.kind === 'fetch' ? { fetch: true } : {}),
		...(call.acceptEdits ? { acceptEdits: true } : {}),
		...(extraDirs.length > 0 ? { extraDirs: [...extraDirs] } : {}),
		...(cwd !== undefined && cwd !== root ? { cwd } : {}),
		...(effect
			? { effect: { ...rest, ...(command === undefined || command === info.command ? {} : { command }) } as never }
			: {}),
		...(effect && info.key !== `bash:${info.command ?? ''}` ? { callKey: info.key } : {}),
		...(decision.rule ? { rule: { file: decision.rule.file, line: decision.rule.line } } : {}),
	}
	return context as unknown as Json
}

const decisions = new Set(['allow', 'ask', 'deny'])
const accesses = new Set(['read', 'write', 'run', 'net', 'none'])
const effects = new Set(['outside_sandbox', 'reach_host', 'apply_changes', 'use_secret'])

/** A record's context, checked: a journal may hold anything. Null when it is none. */
export function readContext(value: unknown): DecisionContext | null {
	if (typeof value !== 'object' || value === null) return null
	const found = value as Record<string, unknown>
	if (!decisions.has(found.decided as string) || !accesses.has(found.access as string)) return null
	if (found.mode !== 'build' && found.mode !== 'plan') return null
	if (typeof found.sandboxed !== 'boolean') return null
	if (found.extraDirs !== undefined && !Array.isArray(found.extraDirs)) return null
	const paths = found.paths ?? []
	if (!Array.isArray(paths) || !paths.every((path) => typeof path === 'string' && isAbsolute(path))) return null
	for (const one of [found.cwd, found.outsideIn, ...((found.extraDirs as unknown[] | undefined) ?? [])])
		if (one !== undefined && !(typeof one === 'string' && isAbsolute(one))) return null
	if (found.callKey !== undefined && typeof found.callKey !== 'string') return null
	const effect = found.effect as Record<string, unknown> | undefined
	if (effect !== undefined && !effects.has(effect?.type as string)) return null
	return {
		...(found as unknown as DecisionContext),
		paths: paths.map((path: string) => normalize(path)),
	}
}

/** The effect of a context with the call's own command put back. */
export function effectOf(context: DecisionContext, command: string | undefined): Effect | undefined {
	const { effect } = context
	if (!effect) return undefined
	const text = (key: string) => (typeof effect[key] === 'string' ? (effect[key] as string) : '')
	const texts = (key: string) => {
		const list = effect[key]
		return Array.isArray(list) && list.every((one) => typeof one === 'string') ? (list as string[]) : undefined
	}
	switch (effect.type) {
		case 'outside_sandbox':
			return {
				type: 'outside_sandbox',
				command: text('command') || command || '',
				...(text('cwd') ? { cwd: text('cwd') } : {}),
				wall: 'asked',
				detail: text('detail'),
			}
		case 'reach_host':
			return { type: 'reach_host', host: text('host'), port: Number(effect.port) || 443 }
		case 'use_secret':
			return { type: 'use_secret', name: text('name'), command: text('command') || command || '' }
		default:
			return {
				type: 'apply_changes',
				summary: text('summary'),
				...(texts('paths') && { paths: texts('paths')! }),
				...(texts('declared') && { declared: texts('declared')! }),
			}
	}
}
