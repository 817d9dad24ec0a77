// A team policy laid over settings: every value becomes at least as strict. Pure; between loading and the session.
import { isAbsolute, join, normalize } from 'node:path'
import { UserError } from '../errors.ts'
import { type Bound, boundPlace, hostListed, type Policy, starMatches } from './policy.ts'
import type { LoadedSettings, RuleText, Settings } from './settings.ts'

export interface ApplyPlaces {
	root: string
	home: string
	/** The hosts that a name of a host list stands for (presets); itself when absent. */
	expandHost?(name: string): readonly string[]
}

const strictness = { host: 0, auto: 1, sandbox: 2 }

/**
 * Settings that hold to the policy, with `settings.policy` set, and one notice for each thing that was tightened. What
 * is given stays as it is. UserError: a value that cannot be enforced here (the root lies in a denied path).
 */
export function applyPolicy(
	loaded: Pick<LoadedSettings, 'settings'>,
	policy: Policy | null,
	places: ApplyPlaces,
): { settings: Settings; notices: string[] } {
	if (!policy) return { settings: loaded.settings, notices: [] }
	const expand = places.expandHost ?? ((name: string) => [name])
	const settings = structuredClone(loaded.settings)
	const notices: string[] = []
	const say = (bound: Bound<unknown>, what: string) =>
		notices.push(`Team policy (${boundPlace(bound)}, ${bound.field}): ${what}.`)

	const executor = policy.allowOutside ? { ...policy.allowOutside, value: 'sandbox' as const } : policy.executor
	if (executor && strictness[settings.executor] < strictness[executor.value]) {
		settings.executor = executor.value
		say(executor, `commands run with executor "${executor.value}"`)
	}
	if (policy.profile?.value === 'strict' && settings.profile !== 'strict') {
		settings.profile = 'strict'
		say(policy.profile, 'the strict profile holds')
	}
	if (policy.blockUnix && !settings.sandbox.blockUnix) {
		settings.sandbox.blockUnix = true
		say(policy.blockUnix, 'commands get no Unix sockets')
	}

	applyRules(settings, policy, places, say)

	const writable = settings.sandbox.writePaths
	settings.sandbox.writePaths = atMost(policy.writePaths, writable, 'may not be writable for commands', say, {
		covers: (most, path) => isBelow(whole(path, places), whole(most, places)),
	})
	settings.env.allow = atMost(policy.envAllow, settings.env.allow, 'does not reach commands', say, {
		covers: (most, name) => most === name || (!name.includes('*') && starMatches(most, name)),
	})
	const { network } = settings as { network?: { allow: string[] } }
	if (network)
		network.allow = atMost(policy.hosts, network.allow, 'is no host for commands', say, {
			covers: (most, entry) => expand(entry).every((host) => expand(most).some((one) => hostCovers(one, host))),
			together: (list, entry) =>
				expand(entry).every((host) => list.flatMap(expand).some((one) => hostCovers(one, host))),
		})
	if (policy.localhostOff && settings.web.allowLocalhost) {
		settings.web.allowLocalhost = false
		say(policy.localhostOff, 'the agent does not fetch from this machine')
	}
	if (policy.webOff) Object.assign(settings.web, { enabled: false })

	applyLimits(settings, policy, say)
	if (policy.undo && !settings.undo) {
		settings.undo = true
		say(policy.undo, 'undo stays on')
	}
	applyAudit(settings, policy, say)
	settings.policy = {
		...policy,
		hosts: policy.hosts.map((bound) => ({ ...bound, value: bound.value.flatMap((name) => [...expand(name)]) })),
	}
	return { settings, notices }
}

type Say = (bound: Bound<unknown>, what: string) => void

function applyRules(settings: Settings, policy: Policy, places: ApplyPlaces, say: Say): void {
	const drop = (bound: Bound<unknown> | undefined, list: 'allow' | 'outside', what: string) => {
		const gone = bound ? settings.rules.filter((rule) => rule.list === list) : []
		if (!bound || gone.length === 0) return
		settings.rules = settings.rules.filter((rule) => rule.list !== list)
		const names = gone.slice(0, 5).map((rule) => `"${rule.text}"`)
		say(bound, `${what}: ${names.join(', ')}${gone.length > 5 ? ` and ${gone.length - 5} more` : ''}`)
	}
	drop(policy.allowRules, 'allow', 'these allow rules have no effect')
	drop(policy.allowOutside, 'outside', 'these commands do not leave the sandbox')
	const own: RuleText[] = [...policy.rules]
	const deny = (bound: Bound<unknown>, text: string) =>
		own.push({ list: 'deny', text, level: 'policy', file: bound.file, line: bound.line })
	for (const bound of policy.denyPaths) {
		const path = bound.value.replace(/(?:\/\*\*?)+$/, '').replace(/(?<=.)\/+$/, '')
		const full = whole(path, places)
		if (path === '' || (!/[*?]/.test(full) && isBelow(places.root, full)))
			throw new UserError(
				`${boundPlace(bound)}: ${bound.field}: "${bound.value}" cannot be enforced here: the working root ${places.root} lies in it.`,
				'Work in another folder, or ask who manages this policy.',
			)
		// A relative name is one below the root, as the sandbox takes it; a rule's bare name would be any depth.
		const fixed = /^[/~]/.test(path) ? path : `./${path.replace(/^\.\//, '')}`
		deny(bound, `read(${fixed})`)
		settings.sandbox.denyRead.push(bound.value)
	}
	if (policy.webOff) for (const tool of ['web_fetch', 'web_search']) deny(policy.webOff, tool)
	// First, so that a denial names the team's rule where both have one.
	settings.rules = [...own, ...settings.rules]
	for (const list of ['allow', 'ask', 'deny', 'outside'] as const)
		settings[list] = settings.rules.filter((rule) => rule.list === list).map((rule) => rule.text)
}

function applyLimits(settings: Settings, policy: Policy, say: Say): void {
	const { limits } = settings
	const { maxCost, steps, turnTokens, bashMaxTimeoutMs } = policy
	if (maxCost && (settings.maxCost ?? Number.POSITIVE_INFINITY) > maxCost.value) {
		settings.maxCost = maxCost.value
		say(maxCost, `a turn may cost $${maxCost.value} at most`)
	}
	if (steps && limits.steps > steps.value) {
		limits.steps = steps.value
		say(steps, `a turn has ${steps.value} steps at most`)
	}
	if (turnTokens && (limits.turnTokens ?? Number.POSITIVE_INFINITY) > turnTokens.value) {
		limits.turnTokens = turnTokens.value
		say(turnTokens, `a turn may use ${turnTokens.value} tokens at most`)
	}
	if (bashMaxTimeoutMs && limits.bashMaxTimeoutMs > bashMaxTimeoutMs.value) {
		limits.bashMaxTimeoutMs = bashMaxTimeoutMs.value
		limits.bashTimeoutMs = Math.min(limits.bashTimeoutMs, bashMaxTimeoutMs.value)
		say(bashMaxTimeoutMs, `a command runs for ${bashMaxTimeoutMs.value} ms at most`)
	}
}

function applyAudit({ audit }: Settings, policy: Policy, say: Say): void {
	const { required, checkpoint, witness } = policy.audit
	const wanted = required ?? checkpoint ?? witness[0]
	if (wanted && !audit.enabled) {
		audit.enabled = true
		say(wanted, 'the audit log stays on')
	}
	if (checkpoint && audit.checkpoint !== checkpoint.value) {
		if (audit.checkpoint !== undefined) say(checkpoint, `the checkpoint is ${checkpoint.value}`)
		audit.checkpoint = checkpoint.value
	}
	const known = new Set(audit.witness.map((one) => JSON.stringify(one)))
	audit.witness.push(...witness.map((one) => one.value).filter((one) => !known.has(JSON.stringify(one))))
}

/** Of a list, what each bound has; one notice for a bound that took something out. */
function atMost(
	bounds: readonly Bound<string[]>[],
	list: readonly string[],
	what: string,
	say: Say,
	{
		covers,
		together = (most, entry) => most.some((one) => covers(one, entry)),
	}: { covers(most: string, entry: string): boolean; together?(most: readonly string[], entry: string): boolean },
): string[] {
	let left = [...list]
	for (const bound of bounds) {
		const out = left.filter((entry) => !together(bound.value, entry))
		if (out.length === 0) continue
		left = left.filter((entry) => !out.includes(entry))
		say(bound, `${out.join(', ')} ${what}`)
	}
	return left
}

const whole = (path: string, { root, home }: ApplyPlaces): string => {
	const full =
		path === '~' || path.startsWith('~/') ? join(home, path.slice(1)) : isAbsolute(path) ? path : join(root, path)
	return normalize(full).replace(/(?<=.)\/+$/, '')
}

const isBelow = (path: string, folder: string): boolean =>
	path === folder || folder === '/' || path.startsWith(`${folder}/`)

/** Whether an entry of a policy's host list covers an entry of a user's. */
function hostCovers(most: string, entry: string): boolean {
	const a = most.toLowerCase()
	const b = entry.toLowerCase()
	if (a === b) return true
	const [name = '', port] = b.split(':')
	if (a.includes(':') && a.split(':')[1] !== port) return false
	// "*.x" of a user: each sub-domain of it must be one of the policy's.
	if (name.startsWith('*.')) return a.startsWith('*.') && name.endsWith(a.split(':')[0]!.slice(1))
	return hostListed([a], name, port === undefined ? 443 : Number(port))
}

/** What a command line asks for, no higher than the policy lets it; absent stays absent. */
export function capLimits(
	policy: Policy | null | undefined,
	asked: { steps?: number; tokens?: number; cost?: number },
): { steps?: number; tokens?: number; cost?: number } {
	const least = (value: number | undefined, bound: Bound<number> | undefined) =>
		value === undefined || !bound ? value : Math.min(value, bound.value)
	const found = {
		steps: least(asked.steps, policy?.steps),
		tokens: least(asked.tokens, policy?.turnTokens),
		cost: least(asked.cost, policy?.maxCost),
	}
	return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))
}
