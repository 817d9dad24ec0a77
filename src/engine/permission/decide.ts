// What happens to a call: rules, mode, sensitive paths and session answers made into one decision. Called by the gate.
import { boundPlace, hostListed, type Policy } from '../config/policy.ts'
import type { Settings } from '../config/settings.ts'
import type { ResolvedPath } from '../ports.ts'
import { hasHidden, hiddenWarning, visible } from '../text.ts'
import type { CallInfo, Effect, Json, Mode } from '../types.ts'
import type { CheckedCommand } from './command-paths.ts'
import { askRule, bashAllowed, bashAsked, bashDenied, commandRule } from './decide-bash.ts'
import { escapeGlob } from './match.ts'
import { riskOf } from './risk.ts'
import { applyCovers, hostMatches, type PlacedRule, pathMatches, type RuleSet, ruleName, toolMatches } from './rules.ts'

export interface DecideInput {
	tool: string
	info: CallInfo
	effect?: Effect
	readOnlyTool: boolean
	mode: Mode
	/** Commands run in the OS sandbox. */
	sandboxed: boolean
	profile: Settings['profile']
	rules: RuleSet
	/** The paths of `info.paths`, resolved; none for commands. */
	resolved: ResolvedPath[]
	/** For a command: what `checkCommand` found. Without it a command is never allowed. */
	command?: CheckedCommand
	/** What "session" answers covered. */
	sessionKeys: ReadonlySet<string>
	/** Changes of files inside the root need no question. */
	acceptEdits: boolean
	/** The rules of --allow; only its allow list counts. */
	fixed?: RuleSet
	/** Folders besides the root that sandboxed commands may write to (temp, caches). */
	writable?: readonly string[]
	/** What the team policy says besides its rules. */
	policy?: Pick<Policy, 'allowOutside' | 'hosts'> | undefined
}

export interface Decision {
	decision: 'allow' | 'ask' | 'deny'
	/** For the model and the person. */
	reason: string
	rule?: { text: string; file: string; line: number }
	/** What, put into settings, would answer this for good. */
	lastingRule?: string
	warning?: string
	/** A "session" answer would cover nothing: do not offer it. */
	onceOnly?: boolean
	/** What a record of this decision needs so that it can be decided again under other rules (permission/replay). */
	context?: Json
}

/**
 * Pure and synchronous; it decides, others ask and record. Order: NUL · deny rules · sensitive paths · plan mode · leaving
 * the sandbox and other effects · ask rules · session answers · allow rules · defaults. When in doubt it asks.
 */
export function decide(input: DecideInput): Decision {
	const { info, effect } = input
	const command = effect && 'command' in effect ? effect.command : info.command
	if (command?.includes('\0') || info.paths.some((path) => path.includes('\0')))
		return deny('it holds a NUL byte, which no command or path can have')
	const denied = denyRules(input) ?? sensitive(input) ?? planMode(input)
	if (denied) return denied
	const decided = effect
		? decideEffect(input, effect)
		: info.outside
			? leaveSandbox(input, command ?? '')
			: decideCall(input)
	const decision = withRisk(decided, input)
	const hidden = [command ?? '', info.key, ...info.paths].some(hasHidden)
	if (!hidden || decision.decision === 'deny') return decision
	// What a person could not see they could not have allowed; a plain read changes nothing.
	if (decision.decision === 'allow' && input.readOnlyTool && !effect) return decision
	const warning = [decision.warning, hiddenWarning].filter(Boolean).join('\n')
	const { lastingRule: _, ...rest } = decision
	return { ...rest, decision: 'ask', reason: 'it holds hidden or control characters', warning }
}

/** A question about a change that starts something later says so. */
function withRisk(decision: Decision, { info, effect }: DecideInput): Decision {
	const risk = decision.decision === 'ask' && info.change && !effect ? riskOf(info.change) : null
	return risk === null ? decision : { ...decision, warning: [decision.warning, risk].filter(Boolean).join('\n') }
}

const deny = (reason: string, rule?: PlacedRule): Decision => ({ decision: 'deny', reason, ...origin(rule) })
const ask = (reason: string, more: Partial<Decision> = {}): Decision => ({ decision: 'ask', reason, ...more })
const allow = (reason: string, rule?: PlacedRule): Decision => ({ decision: 'allow', reason, ...origin(rule) })
const origin = (rule: { text: string; file: string; line: number } | undefined): Pick<Decision, 'rule'> =>
	rule ? { rule: { text: rule.text, file: rule.file, line: rule.line } } : {}

const denyText = (rule: PlacedRule, what = ''): string =>
	`the deny rule ${ruleName(rule)} refuses it${what && ` (${visible(what)})`}; another tool or spelling will be refused as well`

function denyRules(input: DecideInput): Decision | null {
	const { tool, info, effect, rules, resolved } = input
	for (const rule of rules.deny) {
		if (
			effect?.type === 'reach_host' ? hostMatches(rule, effect.host, effect.port) : toolMatches(rule, tool, info.access)
		)
			return deny(denyText(rule), rule)
		// What may not be edited may not be changed by way of a copy either.
		if (effect?.type === 'apply_changes')
			for (const path of effect.paths ?? [])
				if (pathMatches(rule, path, 'write')) return deny(denyText(rule, path), rule)
		for (const path of resolved)
			if (pathMatches(rule, path.path, info.access)) return deny(denyText(rule, path.shown), rule)
	}
	const found = bashDenied(input, rules.deny)
	return found ? deny(denyText(found.rule, found.what), found.rule) : null
}

function sensitive(input: DecideInput): Decision | null {
	const { info, resolved, command } = input
	const writes = info.access === 'write'
	for (const path of resolved) {
		if (path.sensitive)
			return deny(
				`${path.shown} may hold secrets or is no ordinary file: ${path.sensitive}. Ask the user for what you need from it.`,
			)
		// The remember tool adds one line to memory.md by a way of its own, and asks.
		const hard = writes && input.tool !== 'remember' && neverWritten(path)
		if (hard) return deny(hard)
	}
	for (const path of command?.paths ?? []) {
		if (!path.resolved) continue
		// What a pattern finds is masked for the command; as an argument of find it is only a word.
		if (refusedForCommands(path.resolved) && path.via !== 'option' && path.via !== 'pattern')
			return deny(
				`the command names ${path.resolved.shown}, which may hold secrets: ${path.resolved.sensitive}. Ask the user for what you need from it.`,
			)
		const hard = path.access === 'write' && neverWritten(path.resolved)
		if (hard) return deny(`the command would change it: ${hard}`)
	}
	return null
}

/** Devices and /proc are no files for the file tools, but ordinary for commands, save for what shows another process's secrets. */
const refusedForCommands = ({ sensitive: why, path }: ResolvedPath): boolean =>
	why !== null &&
	(!/^\/(?:proc|sys|dev)(?:\/|$)/.test(path) ||
		/^\/proc\/[^/]+\/(?:task\/[^/]+\/)?(?:environ|mem|maps|fd|cmdline|auxv)/.test(path))

/** Files whose change turns into running code or new rights later, with no question in between. */
function neverWritten({ protected: why, inside, shown }: ResolvedPath): string | null {
	if (!why || !inside) return null
	return /(?:^|\/)(?:\.git\/(?:hooks(?:\/|$)|config$|info(?:\/|$)|modules\/.*(?:hooks(?:\/|$)|config$))|\.garuda(?:\/|$))/i.test(
		shown,
	)
		? `${shown} is protected: ${why}. The user changes it by hand.`
		: null
}

function planMode({ mode, info, effect, sandboxed }: DecideInput): Decision | null {
	if (mode !== 'plan') return null
	if (effect?.type === 'reach_host') return null
	const what = effect ? effect.type !== 'use_secret' : info.access === 'write' || info.outside === true
	if (what)
		return deny('plan mode: nothing is changed. Read, and write the plan; the user leaves plan mode to have it done')
	if (info.access === 'run' && !sandboxed)
		return deny('plan mode without a sandbox: commands do not run, since nothing would keep them from changing files')
	return null
}

function decideEffect(input: DecideInput, effect: Effect): Decision {
	const { rules, fixed, sessionKeys } = input
	const key = sessionKey(input.info, effect)
	switch (effect.type) {
		case 'outside_sandbox':
			return leaveSandbox(input, effect.command)
		case 'reach_host': {
			const beyond = input.policy?.hosts.find((bound) => !hostListed(bound.value, effect.host, effect.port))
			if (beyond) return deny(`the team policy (${boundPlace(beyond)}) has no such host on its list`)
			if (input.info.key.startsWith(askedEachTime))
				return ask('this address could carry data out, so it is asked about each time', { onceOnly: true })
			const asked = rules.ask.find((rule) => hostMatches(rule, effect.host, effect.port))
			if (asked) return ask(`the ask rule ${ruleName(asked)} asks each time`, { ...origin(asked), onceOnly: true })
			if (sessionKeys.has(key)) return allow('allowed for this session')
			const rule = [...rules.allow, ...(fixed?.allow ?? [])].find((one) => hostMatches(one, effect.host, effect.port))
			if (rule) return allow(`the rule ${ruleName(rule)} allows the host`, rule)
			const whole = input.info.kind === 'fetch' ? wholeTool(input) : undefined
			if (whole) return allow(`the rule ${ruleName(whole)} allows the tool`, whole)
			const name = effect.port === 443 || effect.port === 80 ? effect.host : `${effect.host}:${effect.port}`
			return ask('this host is on no list', { lastingRule: `allow: host(${name})` })
		}
		case 'apply_changes':
			return decideApply(input, effect, key)
		case 'use_secret':
			if (sessionKeys.has(key)) return allow('allowed for this session')
			return ask(`the command would get the value of ${effect.name}`)
	}
}

/** A declaration only narrows: an answer or rule counts for what lies within one, for all of its lines, and for nothing else. */
function decideApply(
	{ rules, fixed, sessionKeys }: DecideInput,
	{ declared, paths = [] }: Extract<Effect, { type: 'apply_changes' }>,
	key: string,
): Decision {
	const asked = rules.ask.find((rule) => paths.some((path) => pathMatches(rule, path, 'write')))
	if (asked) return ask(`the ask rule ${ruleName(asked)} asks each time`, { ...origin(asked), onceOnly: true })
	if (!declared || declared.length === 0)
		return ask('the staged changes reach the project only after a look', { onceOnly: true })
	if (sessionKeys.has(key)) return allow('allowed for this session: all of it was declared')
	const allowed = [...rules.allow, ...(fixed?.allow ?? [])]
	const covering = declared.map((line) => allowed.find((rule) => applyCovers(rule, line)))
	if (covering.every((rule) => rule !== undefined))
		return allow(`the rule ${ruleName(covering[0]!)} allows what was declared`, covering[0])
	return ask('the staged changes reach the project only after a look')
}

/**
 * What binds even a host that is on the list of commands, for the proxy, which asks nobody about those: deny rules and the team
 * policy refuse it, ask rules ask.
 */
export const hostRule =
	(rules: Pick<RuleSet, 'deny' | 'ask'>, policy?: Pick<Policy, 'hosts'>) =>
	(host: string, port: number): 'deny' | 'ask' | undefined =>
		rules.deny.some((rule) => hostMatches(rule, host, port)) ||
		policy?.hosts.some((bound) => !hostListed(bound.value, host, port))
			? 'deny'
			: rules.ask.some((rule) => hostMatches(rule, host, port))
				? 'ask'
				: undefined

const wholeTool = ({ tool, info, rules, fixed }: DecideInput): PlacedRule | undefined =>
	[...rules.allow, ...(fixed?.allow ?? [])].find((rule) => rule.tool === tool && toolMatches(rule, tool, info.access))

/** Only a rule that is the whole command as written skips this question; allow rules never do. */
function leaveSandbox(input: DecideInput, command: string): Decision {
	const { rules, profile, sessionKeys, command: checked, policy } = input
	if (profile === 'strict') return deny('the strict profile runs nothing outside the sandbox')
	if (policy?.allowOutside)
		return deny(`the team policy (${boundPlace(policy.allowOutside)}) runs nothing outside the sandbox`)
	const text = command.trim()
	// The stricter of two rules: what is asked about each time is asked about here too.
	const asked = askRule(input)
	if (asked)
		return ask(`the ask rule ${ruleName(asked)} asks each time, and it would run outside the sandbox`, {
			...origin(asked),
			onceOnly: true,
		})
	const clean = !hasHidden(text) && (checked === undefined || (checked.shell.broken === null && !checked.shell.rough))
	// What a command does depends on the folder it runs in: a rule names none, so it holds in the working root only.
	const cwd = input.effect?.type === 'outside_sandbox' ? input.effect.cwd : input.info.cwd
	const rule = clean && cwd === undefined ? rules.outside.find((one) => one.text === text) : undefined
	if (rule)
		return { decision: 'allow', reason: `the outside list has this command (${ruleName(rule)})`, ...origin(rule) }
	if (clean && sessionKeys.has(outsideKey(command, cwd)))
		return allow('this very command was allowed outside for this session')
	return ask(
		'it would run outside the sandbox, with everything that you can do',
		clean ? (cwd === undefined ? { lastingRule: `outside: ${text}` } : {}) : { onceOnly: true },
	)
}

function decideCall(input: DecideInput): Decision {
	const { tool, info, rules, resolved, sessionKeys, fixed, acceptEdits, readOnlyTool } = input
	for (const rule of rules.ask)
		if (toolMatches(rule, tool, info.access) || resolved.some((path) => pathMatches(rule, path.path, info.access)))
			return ask(`the ask rule ${ruleName(rule)} asks each time`, { ...origin(rule), onceOnly: true })
	if (info.access === 'run' || info.command !== undefined) {
		const doubt = bashAsked(input)
		if (doubt) return doubt
		if (sessionKeys.has(info.key)) return allow('allowed for this session')
		return bashAllowed(input) ?? commandDefault(input)
	}
	const guarded = info.access === 'write' ? resolved.find((path) => path.protected) : undefined
	if (sessionKeys.has(info.key)) return allow('allowed for this session')
	if (tool === 'remember') return ask('it saves a line for later sessions')
	if (guarded)
		return ask(`${guarded.shown} is protected: ${guarded.protected}`, {
			warning: `${visible(guarded.shown)} can make other programs run code or change their settings: ${guarded.protected}`,
		})
	for (const rule of [...rules.allow, ...(fixed?.allow ?? [])]) {
		if (rule.kind === 'edits') {
			if (info.access === 'write' && resolved.length > 0 && resolved.every((path) => path.inside))
				return allow('changes inside the root are accepted', rule)
			continue
		}
		// A whole-tool rule for files ends at the root: outside it a path must be named.
		const covers = toolMatches(rule, tool, info.access)
			? resolved.every((path) => path.inside)
			: resolved.length > 0 && resolved.every((path) => pathMatches(rule, path.path, info.access))
		if (covers) return allow(`the rule ${ruleName(rule)} allows it`, rule)
	}
	const outside = resolved.find((path) => !path.inside)
	const more =
		resolved.length === 1
			? { lastingRule: `allow: ${info.access === 'write' ? 'edit' : 'read'}(${pathText(resolved[0]!)})` }
			: {}
	switch (info.access) {
		case 'write':
			if (outside) return ask(`${outside.shown} lies outside the working root`, more)
			if (acceptEdits && resolved.length > 0) return allow('changes inside the root are accepted')
			return ask('it changes a file', more)
		case 'read':
			if (outside) return ask(`${outside.shown} lies outside the working root`, more)
			return allow('reading inside the root')
		case 'none':
			// The list of steps is the session's own; only for its order among the calls it is no reading tool.
			return readOnlyTool || tool === 'todo_write'
				? allow('it has no effect')
				: ask('what it does is not known here', { lastingRule: `allow: ${tool}` })
		default:
			// Its host is decided when it is about to be reached, hop by hop.
			if (tool === 'web_fetch' && info.kind === 'fetch') return allow('each host is decided before it is reached')
			return ask('it reaches beyond this machine', { lastingRule: `allow: ${tool}` })
	}
}

const pathText = ({ inside, shown, path }: ResolvedPath): string => {
	const text = escapeGlob(inside ? shown : path)
	return inside && !text.includes('/') ? `./${text}` : text
}

/** No rule spoke: in the sandbox a command needs none, on the host it always asks. */
function commandDefault(input: DecideInput): Decision {
	const { sandboxed, profile, info } = input
	if (!input.command) return ask('the command was not checked')
	if (sandboxed) return allow('it runs in the sandbox')
	if (profile === 'strict') return deny('the strict profile runs commands in the sandbox only, and there is none')
	const lastingRule = commandRule(info.command ?? '', input.command)
	return ask('it runs with no sandbox', lastingRule ? { lastingRule } : {})
}

/** What a "session" answer to an effect covers: exactly what was shown. */
export const effectKey = (effect: Effect): string => {
	switch (effect.type) {
		case 'outside_sandbox':
			return outsideKey(effect.command, effect.cwd)
		case 'reach_host':
			return `host:${effect.host}:${effect.port}`
		case 'apply_changes':
			return `apply:${effect.declared ? effect.declared.join('\n') : effect.summary}`
		case 'use_secret':
			return `secret:${effect.name}:${effect.command}`
	}
}

const outsideKey = (command: string, cwd: string | undefined): string =>
	`outside:${command}${cwd === undefined ? '' : `\n(in ${cwd})`}`

/** A call whose key begins so is asked about whenever it reaches a host: no rule and no earlier answer covers it. */
export const askedEachTime = 'each-time:'

/** The key to remember after a "session" answer to a call or an effect. What a page fetch may reach, a command may not. */
export const sessionKey = (info: CallInfo, effect?: Effect): string =>
	effect
		? `${effect.type === 'reach_host' && info.kind === 'fetch' ? 'fetch:' : ''}${effectKey(effect)}`
		: info.outside && info.command !== undefined
			? outsideKey(info.command, info.cwd)
			: info.key
