// A session's decisions: settings' rules parsed once, each call's command read and its paths resolved, then `decide`.
import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { boundPlace } from '../config/policy.ts'
import type { RuleText, Settings } from '../config/settings.ts'
import { UserError } from '../errors.ts'
import type { Files } from '../ports.ts'
import { fewOf } from '../text.ts'
import type { CallInfo, Effect, Mode } from '../types.ts'
import { checkCommand } from './command-paths.ts'
import { decisionContext } from './context.ts'
import { type Decision, decide } from './decide.ts'
import { type PlacedRule, type RuleSet, ruleSet } from './rules.ts'

export interface DeciderDeps {
	settings: Pick<Settings, 'rules' | 'profile' | 'policy'>
	root: string
	home: string
	files: Pick<Files, 'resolve'> & Partial<Pick<Files, 'roots'>>
	/** The texts of --allow. */
	fixed?: readonly string[]
	/** Folders besides the root that sandboxed commands may write to; the temp folders when absent. */
	writable?: readonly string[]
}

export interface DeciderCall {
	tool: string
	readOnlyTool: boolean
	info: CallInfo
	effect: Effect | undefined
	mode: Mode
	sandboxed: boolean
	/** What "session" answers covered. */
	keys: ReadonlySet<string>
	acceptEdits: boolean
	/** Where bash stands; the root when absent. */
	cwd?: string
}

export interface Decider {
	/** About rules that were left out. */
	notices: string[]
	decide(call: DeciderCall): Promise<Decision>
	/** All rules in force, for the person. */
	rules(): { text: string; kind: string; source: string }[]
	/** The parsed set, for walkers (`deniedPath`). */
	set: RuleSet
}

/** The real path, links resolved as far as it is there; a link to nothing leads where something may come to be. */
function realOf(path: string, links = 0): string {
	try {
		return realpathSync(path)
	} catch {
		const folder = dirname(path)
		if (folder === path) return path
		const real = realOf(folder, links)
		try {
			const target = resolve(real, readlinkSync(path))
			return links > 40 ? path : realOf(target, links + 1)
		} catch {
			return join(real, basename(path))
		}
	}
}

/** Throws UserError for a deny or ask rule, or a flag, that cannot be read: skipping it would loosen what the user wrote. */
export function createDecider(deps: DeciderDeps): Decider {
	const { settings, root, home, files } = deps
	const places = { root, home, real: (path: string) => realOf(path) }
	const { rules, problems } = ruleSet(settings.rules, places)
	const flags: RuleText[] = (deps.fixed ?? []).map((text) => ({
		list: 'allow',
		text,
		level: 'flag',
		file: '--allow',
		line: 0,
	}))
	const fixed = ruleSet(flags, places)
	const fatal = problems.find((one) => one.fatal)
	if (fatal) throw new UserError(fatal.text, 'Mend the rule; docs/permissions.md has the grammar.')
	const broken = fixed.problems.find((one) => !one.unknown)
	if (broken)
		throw new UserError(
			broken.text.replace('--allow:0: the allow rule', '--allow:'),
			'For example --allow "bash(npm test)" or --allow edits.',
		)
	const { writable = ['/tmp', '/var/tmp', '/private/tmp'] } = deps
	const { policy } = settings
	const named = fixed.problems.map(({ text }) => ({ text: text.replace('--allow:0: the allow rule', '--allow:') }))
	const notices = fewOf(
		[...problems, ...named].map((one) => `${one.text} It has no effect.`),
		(more) => `${more} more rules have no effect.`,
	)
	// What the command line or a session answer allows is the user's word as well.
	const noAllow = policy?.allowRules
	if (noAllow && flags.length > 0) {
		fixed.rules.allow = []
		notices.push(`Team policy (${boundPlace(noAllow)}, ${noAllow.field}): --allow has no effect.`)
	}

	return {
		notices,
		set: rules,
		async decide({ keys, cwd, effect, ...call }) {
			const { info } = call
			const command = effect ? ('command' in effect ? effect.command : undefined) : info.command
			const [checked, resolved] = await Promise.all([
				command === undefined || command.includes('\0')
					? undefined
					: checkCommand(command, { cwd: cwd ?? root, home, resolve: (path) => files.resolve(path) }),
				Promise.all(info.paths.map((path) => files.resolve(path))),
			])
			const decision = decide({
				...call,
				acceptEdits: call.acceptEdits && !noAllow,
				...(effect ? { effect } : {}),
				...(checked ? { command: checked } : {}),
				profile: settings.profile,
				rules,
				fixed: fixed.rules,
				resolved,
				sessionKeys: keys,
				writable,
				policy,
			})
			return {
				...decision,
				context: decisionContext({ ...call, effect, cwd: cwd ?? root }, decision, root, files.roots?.slice(1)),
			}
		},
		rules() {
			const list = (kind: string, placed: readonly (PlacedRule | RuleSet['outside'][number])[]) =>
				placed
					.filter((rule) => !('alias' in rule))
					.map((rule) => ({
						text: rule.text,
						kind,
						source: rule.line > 0 ? `${rule.file}:${rule.line}` : rule.file,
					}))
			return [
				...list('deny', rules.deny),
				...list('ask', rules.ask),
				...list('allow', [...rules.allow, ...fixed.rules.allow]),
				...list('outside', rules.outside),
			]
		},
	}
}
