// `garuda policy check` and `garuda policy replay`: what the rules say, told by the session's own decider. A service on top of the engine.
import { readdir, realpath } from 'node:fs/promises'
import { isAbsolute, join, normalize, relative, resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { denyReadPaths } from '../config/deny-read.ts'
import { garudaPaths, prepareHome } from '../config/paths.ts'
import type { RuleText } from '../config/settings.ts'
import { codeOf, messageOf, ToolError, UserError } from '../errors.ts'
import { createFiles, refuseWrite } from '../files/guard.ts'
import { isFolder } from '../files/open.ts'
import { protectedReason, sensitiveReason, under } from '../files/sensitive.ts'
import { languageProfiles } from '../languages/profiles.ts'
import { lazyExecutor } from '../lazy-executor.ts'
import { askedEachTime, type Decision } from '../permission/decide.ts'
import { createDecider, type Decider } from '../permission/decider.ts'
import { type Effective, effectiveSettings } from '../permission/effective.ts'
import { readShell } from '../permission/shell-words.ts'
import { createTrustStore, trustFile } from '../permission/trust.ts'
import type { Files } from '../ports.ts'
import { oneLine, visible } from '../text.ts'
import type { CallInfo, Effect, Mode } from '../types.ts'
import { webTarget } from '../web/target.ts'

/** Where to look; nothing of it comes from a project. */
export interface PolicyPlace {
	home: string
	garudaHome?: string | undefined
	cwd: string
	env: Record<string, string | undefined>
	platform: NodeJS.Platform
	/** Only for tests: another managed file, and who must own it. */
	managedPolicy?: string
	policyOwner?: number | null
}

/** Other files than the user's own, to try rules out. */
export interface Drafts {
	/** In place of ~/.garuda/settings.json. */
	settings?: string | undefined
	/** In place of the managed policy. */
	policy?: string | undefined
}

/** The rules of a root, and what a session there decides with. Nothing is asked: only what was agreed to before counts. */
export interface RuleRoom {
	root: string
	effective: Effective
	files: Pick<Files, 'resolve'>
	caches: string[]
	deciderWith(fixed: readonly string[], extraDirs?: readonly string[]): Promise<Decider>
}

/** Throws UserError, as opening a session there would. `gone`: the root may be missing; paths are then taken as written. */
export async function ruleRoom(
	place: PolicyPlace,
	folder: string,
	drafts: Drafts = {},
	gone = false,
): Promise<RuleRoom> {
	const root = await realpath(folder).catch((error: unknown) => {
		if (gone && codeOf(error) === 'ENOENT') return null
		throw new UserError(`The folder cannot be opened: ${folder} (${codeOf(error) ?? messageOf(error)})`)
	})
	const at = root ?? normalize(folder)
	const own = garudaPaths(place.home, at, place.garudaHome)
	const paths = drafts.settings === undefined ? own : { ...own, settings: await fileAt(place.cwd, drafts.settings) }
	const trust = createTrustStore({
		file: trustFile(own),
		clock: systemClock,
		approver: { ask: async () => ({ choice: 'deny' }) },
		interactive: false,
	})
	const managed =
		drafts.policy === undefined
			? {
					...(place.managedPolicy === undefined ? {} : { managedPolicy: place.managedPolicy }),
					...(place.policyOwner === undefined ? {} : { policyOwner: place.policyOwner }),
				}
			: { managedPolicy: await fileAt(place.cwd, drafts.policy), policyOwner: null }
	const { home, platform } = place
	const options = { paths, root: at, home, platform, trust, ...managed }
	const effective = await effectiveSettings(options, new AbortController().signal)
	const guard = root === null ? null : await createFiles({ root, home })
	const files = guard ?? asWritten(at, home)
	const names = root === null ? [] : await readdir(root).catch(() => [])
	const read = async (path: string) => {
		const found = await guard?.read(path, 1 << 20).catch(() => null)
		return found ? new TextDecoder().decode(found.bytes) : null
	}
	const profiles = await languageProfiles({ files: names, home, read })
	const caches = profiles.flatMap((one) => one.caches)
	const { settings } = effective
	const writable = ['/tmp', '/var/tmp', '/dev/shm', ...settings.sandbox.writePaths, ...caches]
	return {
		root: at,
		effective,
		files,
		caches,
		async deciderWith(fixed, extraDirs = []) {
			const there: string[] = []
			if (root !== null) for (const dir of extraDirs) if (await isFolder(dir)) there.push(dir)
			const all = there.length > 0 ? await createFiles({ root: at, extraDirs: there, home }) : files
			return createDecider({ settings, root: at, home, files: all, fixed, writable })
		},
	}
}

/** A file that is named must be there: an empty rule set would say that nothing asks. */
async function fileAt(cwd: string, file: string): Promise<string> {
	const path = resolve(cwd, file)
	return realpath(path).catch((error: unknown) => {
		throw new UserError(`${path} cannot be read (${codeOf(error) ?? messageOf(error)}).`)
	})
}

/** Paths of a folder that is gone: by their words alone. */
const asWritten = (root: string, home: string): Pick<Files, 'resolve'> => ({
	async resolve(path) {
		const full = normalize(
			path.startsWith('~/') ? join(home, path.slice(2)) : isAbsolute(path) ? path : join(root, path),
		)
		const inside = under(full, root)
		return {
			path: full,
			shown: inside ? relative(root, full) || '.' : full,
			inside,
			exists: false,
			sensitive: sensitiveReason(full, home, [root]),
			protected: inside ? protectedReason(full, root, home) : null,
		}
	},
})

// ---------------------------------------------------------------- check

export interface CheckFlags {
	mode?: Mode | undefined
	cd?: string | undefined
	/** As with `chat --allow`. */
	allow?: string[] | undefined
	/** As if commands ran in a sandbox or not; the machine is asked when absent. */
	sandbox?: boolean | undefined
	json?: boolean | undefined
}

interface Asked {
	tool: string
	input: string
	readOnly: boolean
	info: CallInfo
	effect?: Effect
	/** A refusal of the tool itself, before any rule. */
	refused?: string
}

const reading = new Set(['read', 'read_file', 'grep', 'glob', 'list', 'search'])
const writing = new Set(['edit', 'write', 'edit_file', 'write_file'])

/** What a session there would decide, by which rule, in words or JSON. `denied` for the exit code. */
export async function policyCheck(
	place: PolicyPlace,
	text: string,
	flags: CheckFlags,
): Promise<{ text: string; denied: boolean }> {
	if (text.trim() === '')
		throw new UserError('There is nothing to check.', `For example: garuda policy check 'npm test'`)
	const { home } = place
	const room = await ruleRoom(place, resolve(place.cwd, flags.cd ?? '.'))
	const { effective, root } = room
	const { settings } = effective
	const mode = flags.mode ?? 'build'
	const decider = await room.deciderWith(flags.allow ?? [])
	// As at the start of a session: what cannot be enforced is an error.
	await denyReadPaths(settings.sandbox.denyRead, { root, home }, (dir) => readdir(dir).catch(() => []))
	const asked = await callFrom(text, room.files).catch((error: unknown) => impossible(text, error))
	const runs = asked.info.access === 'run'
	const sandbox = runs ? (flags.sandbox ?? (await sandboxOf(place, room))) : true
	const { tool, info, effect, readOnly } = asked
	const call = { tool, readOnlyTool: readOnly, info, effect, mode, sandboxed: sandbox, keys: new Set<string>() }
	let decided = await decider.decide({ ...call, acceptEdits: false })
	// The tools' own refusals come before a question, never before a rule that refuses.
	if (asked.refused !== undefined && decided.decision !== 'deny') decided = { decision: 'deny', reason: asked.refused }
	const rule = decided.rule && placed(decided.rule, settings.rules)
	const notices = [...effective.notices, ...decider.notices]
	const seen = info.command === undefined ? [] : (await readShell(info.command, home)).commands.map((one) => one.text)
	const commands = seen.filter((one) => one !== '')
	const { decision, reason, warning, lastingRule } = decided
	const denied = decision === 'deny'
	if (flags.json) {
		const report = {
			version: 1,
			decision,
			reason,
			...(rule ? { rule } : {}),
			...(warning ? { warning } : {}),
			...(lastingRule ? { lastingRule } : {}),
			tool,
			input: asked.input,
			mode,
			...(runs ? { sandboxed: sandbox, commands } : {}),
			profile: settings.profile,
			root,
			policies: effective.policy?.files ?? [],
			notices,
		}
		return { text: `${JSON.stringify(report)}\n`, denied }
	}
	const where = runs ? (sandbox ? ', in the sandbox' : ', with no sandbox') : ''
	const lines = [
		`${decision}  ${effect ? '' : `${tool}: `}${oneLine(asked.input, 500)}`,
		`  ${visible(reason)}`,
		...(rule
			? [
					`  rule    ${rule.list} ${visible(rule.text)}   ${rule.file}${rule.line > 0 ? `:${rule.line}` : ''} (${rule.level})`,
				]
			: []),
		...(commands.length > 1 ? [`  runs    ${commands.map((one) => oneLine(one, 80)).join(' · ')}`] : []),
		...(warning ? [`  warning ${visible(warning).replaceAll('\n', '\n          ')}`] : []),
		...(lastingRule ? [`  for good, in settings: ${visible(lastingRule)}`] : []),
		`  mode ${mode}${where}, profile ${settings.profile}, root ${oneLine(root)}`,
		...notices.map((notice) => `note: ${visible(notice)}`),
	]
	return { text: `${lines.join('\n')}\n`, denied }
}

/** The deciding rule with its list and level. */
export function placed(
	rule: NonNullable<Decision['rule']>,
	rules: readonly RuleText[],
): { text: string; file: string; line: number; list: string; level: string } {
	const found = rules.find((one) => one.file === rule.file && one.line === rule.line && one.text.trim() === rule.text)
	return { ...rule, list: found?.list ?? 'allow', level: found?.level ?? 'flag' }
}

/** The machine's answer, by the probe that a session makes. */
async function sandboxOf(place: PolicyPlace, { root, effective, caches }: RuleRoom): Promise<boolean> {
	const { settings } = effective
	if (settings.executor === 'host') return false
	const paths = garudaPaths(place.home, root, place.garudaHome)
	await prepareHome(paths)
	const executor = lazyExecutor(
		paths.tmp,
		async (tmp) => {
			const { createExecutor } = await import('../sandbox/index.ts')
			return createExecutor({
				root,
				extraDirs: [],
				home: place.home,
				tmp,
				env: place.env,
				executor: settings.executor,
				profile: settings.profile,
				writePaths: settings.sandbox.writePaths,
				envAllow: settings.env.allow,
				caches,
				blockUnix: settings.sandbox.blockUnix,
			})
		},
		() => {},
	)
	try {
		return await executor.sandboxed()
	} finally {
		await executor.close()
	}
}

/** What the tool itself would refuse, as no call it could make: a path through what is not there, an address that is none. */
function impossible(text: string, error: unknown): Asked {
	if (!(error instanceof ToolError)) throw error
	const [tool = ''] = text.trim().split(/\s/, 1)
	const info: CallInfo = { title: text, kind: 'other', access: 'none', paths: [], key: text }
	return { tool, input: text.trim().slice(tool.length).trim(), readOnly: true, info, refused: error.message }
}

/** `read PATH`, `edit_file PATH`, `host NAME[:PORT]`, `outside COMMAND`, `bash COMMAND`, a tool's name; all else is a command. */
export async function callFrom(text: string, files: Pick<Files, 'resolve'>): Promise<Asked> {
	// Blanks of a shell only: any other is a part of the command, and is asked about.
	const [, word = '', rest = ''] = /^[ \t\n]*(\S+)(?:[ \t\n]+([\s\S]*?))?[ \t\n]*$/.exec(text) ?? []
	const run = (command: string, outside = false): Asked => ({
		tool: 'bash',
		input: command,
		readOnly: false,
		info: {
			title: `Run ${oneLine(command, 160)}`,
			kind: 'execute',
			access: 'run',
			paths: [],
			key: `${outside ? 'outside' : 'bash'}:${command}`,
			command,
			...(outside ? { outside } : {}),
		},
	})
	// A program of that name too: the tool's form is `grep PATH`.
	const program = word === 'grep' && /\s|^-/.test(rest)
	if (rest !== '' && !program && (reading.has(word) || writing.has(word))) {
		const access = reading.has(word) ? 'read' : 'write'
		const resolved = await files.resolve(rest)
		const tool =
			word === 'read' || word === 'list' || word === 'search'
				? 'read_file'
				: word === 'edit'
					? 'edit_file'
					: word === 'write'
						? 'write_file'
						: word
		const refused = access === 'write' ? refusal(() => refuseWrite(resolved)) : null
		return {
			tool,
			input: rest,
			readOnly: access === 'read',
			info: {
				title: rest,
				kind: access === 'read' ? 'read' : 'edit',
				access,
				paths: [resolved.path],
				key: `${access}:${resolved.path}`,
			},
			...(refused === null || resolved.sensitive ? {} : { refused }),
		}
	}
	if (word === 'host' && /^[\w.*-]+(?::\d{1,5})?$/.test(rest)) {
		const [host = '', port] = rest.split(':')
		const effect: Effect = { type: 'reach_host', host, port: port === undefined ? 443 : Number(port) }
		const info: CallInfo = { title: rest, kind: 'execute', access: 'net', paths: [], key: `host:${rest}` }
		return { tool: 'bash', input: `host ${rest}`, readOnly: false, info, effect }
	}
	if (word === 'web_fetch' && rest !== '') {
		const target = webTarget(rest)
		const key = target.unusual ? `${askedEachTime}${target.url.href}` : `fetch:${target.host}:${target.port}`
		const info: CallInfo = { title: rest, kind: 'fetch', access: 'net', paths: [], key }
		const effect: Effect = { type: 'reach_host', host: target.host, port: target.port }
		return { tool: word, input: `web_fetch ${rest}`, readOnly: true, info, effect }
	}
	if (word === 'outside' && rest !== '') return run(rest, true)
	// "bash -c …" and "bash x.sh" are commands themselves; "bash npm test" hands npm test to the tool.
	if (word === 'bash' && rest !== '' && !/^-|^\S+\.(?:ba)?sh\b|^\//.test(rest)) return run(rest)
	if (rest === '' && /^(?:mcp__\w+|web_fetch|web_search|remember|todo_write|process_manager)$/.test(word)) {
		const web = word.startsWith('web_')
		const access = web || word.startsWith('mcp__') ? 'net' : 'none'
		const info: CallInfo = { title: word, kind: web ? 'fetch' : 'other', access, paths: [], key: word }
		return { tool: word, input: word, readOnly: web || word === 'todo_write', info }
	}
	return run(text.replace(/^[ \t\n]+|[ \t\n]+$/g, ''))
}

/** The message of a ToolError, or null. */
function refusal(check: () => void): string | null {
	try {
		check()
		return null
	} catch (error) {
		return messageOf(error)
	}
}
