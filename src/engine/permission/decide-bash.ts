// The part of a decision that looks into a command: its simple commands, its paths and its doubts.
import { isAbsolute, relative } from 'node:path'
import { hasHidden, visible } from '../text.ts'
import type { CheckedCommand, NamedPath } from './command-paths.ts'
import type { DecideInput, Decision } from './decide.ts'
import {
	allowMatches,
	denyCouldMatch,
	denyMatches,
	liesBelow,
	type PlacedRule,
	pathMatches,
	type Rule,
	ruleName,
	toolMatches,
} from './rules.ts'
import { DYNAMIC } from './shell-words.ts'

/** The deny rule that a simple command or a named path runs into, with the words that did. */
export function bashDenied(
	{ command }: DecideInput,
	rules: readonly PlacedRule[],
): { rule: PlacedRule; what: string } | null {
	if (!command) return null
	const { spelled, programs, paths } = command
	for (const rule of rules) {
		const simple = denyMatches(rule, spelled)
		if (simple) return { rule, what: simple.words.join(' ').replaceAll(DYNAMIC, '…').slice(0, 200) }
		const program = denyMatches(rule, programs)
		if (program) return { rule, what: program.words[0]! }
		if (!mayTouch(rule, command)) continue
		const path = paths.find(
			(one) =>
				one.resolved && one.via !== 'option' && (pathMatches(rule, one.resolved.path, one.access) || holds(rule, one)),
		)
		if (path) return { rule, what: path.resolved!.shown }
	}
	return null
}

/** A folder in which whatever lies is meant: what a command reads, removes or puts there has no name in it. */
const holds = (rule: PlacedRule, { access, via, resolved }: NamedPath): boolean =>
	resolved !== null &&
	(pathMatches(rule, `${resolved.path}/${DYNAMIC}`, access) ||
		(access === 'write' && via === 'removal' && liesBelow(rule, resolved.path)))

/** False when a path rule means none of the command's paths, seen without looking at each. */
const mayTouch = (rule: PlacedRule, { pathText, removals }: CheckedCommand): boolean =>
	rule.path !== null && (pathText.includes(rule.path.literal) || removals.some((path) => liesBelow(rule, path)))

/** The ask rule that a command, or a path that it names, runs into; an unknown part that could is one. */
export function askRule({ command, rules, tool, info }: DecideInput): PlacedRule | undefined {
	return rules.ask.find(
		(rule) =>
			toolMatches(rule, tool, info.access) ||
			(command !== undefined &&
				(denyMatches(rule, command.spelled) !== null ||
					denyCouldMatch(rule, command.spelled) ||
					(mayTouch(rule, command) &&
						command.paths.some(
							(one) => one.resolved && (pathMatches(rule, one.resolved.path, one.access) || holds(rule, one)),
						)))),
	)
}

/** Everything that makes a command ask whatever allow rules and session answers say; null when there is no doubt. */
export function bashAsked(input: DecideInput): Decision | null {
	const { command, rules } = input
	const ask = (reason: string, rule?: PlacedRule, warning?: string): Decision => ({
		decision: 'ask',
		reason,
		...(rule ? { rule: { text: rule.text, file: rule.file, line: rule.line } } : {}),
		...(warning ? { warning } : {}),
		onceOnly: true,
	})
	if (!command) return null
	const { shell, paths } = command
	if (shell.broken !== null) return ask(`the command cannot be read with certainty (${shell.broken})`)
	const grave = shell.doubts.find((doubt) => doubt.grave)
	if (grave) return ask(grave.reason)
	const asked = askRule(input)
	if (asked)
		return denyMatches(asked, command.spelled) === null && denyCouldMatch(asked, command.spelled)
			? ask(`whether the ask rule ${ruleName(asked)} means it is known only at the run`, asked)
			: ask(`the ask rule ${ruleName(asked)} asks each time`, asked)
	const bashRules = rules.deny.filter((rule) => rule.kind === 'bash')
	for (const rule of bashRules)
		if (denyCouldMatch(rule, command.spelled))
			return ask(`whether the deny rule ${ruleName(rule)} means it is known only at the run`, rule)
	const [doubt] = shell.doubts
	if (doubt && (bashRules.length > 0 || rules.ask.some((rule) => rule.kind === 'bash')))
		return ask(`${doubt.reason}, so the rules for commands cannot be applied`)
	const touching = rules.deny.filter((rule) => mayTouch(rule, command))
	const option = paths.find(
		(one) =>
			one.via === 'option' &&
			one.resolved &&
			(one.resolved.sensitive || touching.some((rule) => pathMatches(rule, one.resolved!.path, one.access))),
	)
	if (option) return ask(`it may hand on ${option.resolved!.shown}, which is refused elsewhere`)
	return outputAsked(input, ask)
}

type Ask = (reason: string, rule?: PlacedRule, warning?: string) => Decision

/** Writes that the command's own words show: outside the root, or to files that others run. */
function outputAsked(
	{ command, sandboxed, writable = [], info, sessionKeys, rules, fixed }: DecideInput,
	ask: Ask,
): Decision | null {
	const once = sessionKeys.has(info.key)
	for (const path of command?.paths ?? []) {
		if (path.access !== 'write') continue
		const { resolved } = path
		if (resolved === null) {
			// In the sandbox an unknown target can only be a writable one.
			if (sandboxed || once || wholeTool([...rules.allow, ...(fixed?.allow ?? [])])) continue
			return ask('where it writes is known only at the run')
		}
		if (resolved.protected && resolved.inside) {
			if (once) continue
			const decision = ask(
				`it changes ${resolved.shown}, which is protected: ${resolved.protected}`,
				undefined,
				`${visible(resolved.shown)} can make other programs run code or change their settings: ${resolved.protected}`,
			)
			return sessionMay(decision)
		}
		if (resolved.inside || once || (sandboxed && writable.some((folder) => isBelow(folder, resolved.path)))) continue
		if ([...rules.allow, ...(fixed?.allow ?? [])].some((rule) => pathMatches(rule, resolved.path, 'write'))) continue
		return sessionMay(ask(`it writes outside the working root (${resolved.shown})`))
	}
	return null
}

/** A session answer covers this very command. */
const sessionMay = ({ onceOnly: _, ...decision }: Decision): Decision => decision

const isBelow = (folder: string, path: string): boolean => {
	const way = relative(folder, path)
	return way === '' || (!way.startsWith('..') && !isAbsolute(way))
}

const wholeTool = (rules: readonly Rule[]): boolean =>
	rules.some((rule) => rule.tool === 'bash' && rule.pattern === null)

/** An allow rule for a command: the whole tool, the whole command as written, or one for each simple command in it. */
export function bashAllowed({ command, rules, fixed, info, tool }: DecideInput): Decision | null {
	if (!command) return null
	const lists = [...rules.allow, ...(fixed?.allow ?? [])]
	const whole = lists.find(
		(rule) => toolMatches(rule, tool, info.access) || (rule.tool === 'bash' && rule.pattern === null),
	)
	if (whole) return allowed(whole)
	// With a doubt the words say too little of what runs.
	if (command.shell.doubts.length > 0) return null
	const text = (info.command ?? '').trim()
	const exact = lists.find((rule) => rule.plain !== null && rule.plain === text)
	if (exact) return allowed(exact)
	let last: PlacedRule | undefined
	for (const one of command.shell.commands) {
		// Redirections alone have no command; their targets were looked at before.
		if (one.words.length === 0) continue
		last = lists.find((rule) => allowMatches(rule, one))
		if (!last) return null
	}
	return last ? allowed(last) : null
}

const allowed = (rule: PlacedRule): Decision => ({
	decision: 'allow',
	reason: `the rule ${ruleName(rule)} allows it`,
	rule: { text: rule.text, file: rule.file, line: rule.line },
})

/** The rule that would allow this very command for good, when one can. */
export function commandRule(text: string, { shell }: CheckedCommand): string | null {
	const whole = text.trim()
	if (
		shell.broken !== null ||
		shell.doubts.length > 0 ||
		hasHidden(whole) ||
		whole.includes('\n') ||
		whole.length > 500
	)
		return null
	return `allow: bash(${whole.replace(/[\\*]/g, '\\$&')})`
}
