// Settings: defaults, the user's ~/.garuda/settings.json and the project's, merged. Read once at the start of a session.
import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UserError } from '../errors.ts'
import type { Effort, Json } from '../types.ts'
import { grantable } from './held-kinds.ts'
import { brokenFile, type JsonFile, readJsonFile } from './json-file.ts'
import { locate } from './json-place.ts'
import type { GarudaPaths } from './paths.ts'
import type { Policy } from './policy.ts'
import type { SettingsFile } from './settings-schema.ts'

export interface Settings {
	/** `auto`: the OS sandbox, or the host with a notice and a question per command where there is none. */
	executor: 'auto' | 'sandbox' | 'host'
	/** `strict`: never outside the sandbox, no AF_UNIX. */
	profile: 'standard' | 'strict'
	/** Rule texts; see docs/permissions.md. `rules` holds the same with their origin. */
	allow: string[]
	ask: string[]
	deny: string[]
	/** Whole commands that may leave the sandbox with no question. */
	outside: string[]
	rules: RuleText[]
	sandbox: { writePaths: string[]; denyRead: string[]; blockUnix: boolean }
	env: { allow: string[] }
	/** Hosts that commands may reach, as written; `expandHosts` gives the names. Empty: no network for commands. */
	network: { allow: string[] }
	/** `enabled`: the web_fetch tool; every new host asks. */
	web: { enabled: boolean; allowLocalhost: boolean }
	/** Commands change a copy of the project first; what they changed is asked about. */
	staging: { enabled: boolean }
	/** Background processes of commands: so many at once, so many lines kept of each. */
	daemons: { enabled: boolean; max: number; lines: number }
	/** Secrets that commands may use by name, never seen by the model. Never from a project. */
	secrets: { handles: boolean; names: Record<string, { hosts: string[]; about?: string }> }
	limits: {
		steps: number
		/** The same call with the same result this often: a hint, then the stop. */
		repeatHint: number
		repeatStop: number
		resultChars: number
		readLines: number
		readBytes: number
		bashTimeoutMs: number
		bashMaxTimeoutMs: number
		/** Tokens a turn may use in all; absent: no limit. */
		turnTokens?: number
	}
	model: {
		/** A stream with no byte for this long has failed. */
		idleMs: number
		/** A notice when nothing came for this long. */
		noticeMs: number
		firstRetryMs: number
		maxRetryMs: number
		/** A file of CA certificates (PEM) trusted besides the built-in ones. */
		ca?: string
		/** Hosts besides this machine that may be reached by plain http. */
		allowHttp?: string[]
	}
	/** Tokens: kept free for a reply, and of the newest messages kept as they are. */
	compaction: { auto: boolean; reserve: number; keep: number }
	audit: AuditSettings
	undo: boolean
	todo: boolean
	effort?: Effort
	/** US dollars for one turn. */
	maxCost?: number
	notifications: boolean
	memory: boolean
	instructions: boolean
	/** What the team policy holds to, whatever the other fields say; set by `applyPolicy`. */
	policy?: Policy
}

export type WitnessSpec = { folder: string } | { git: string; ref?: string | undefined }

/** Paths as written: absolute or with ~/. Never from a project. */
export interface AuditSettings {
	enabled: boolean
	checkpoint?: string
	witness: WitnessSpec[]
}

export type Level = 'policy' | 'user' | 'project' | 'flag'
export type RuleList = 'allow' | 'ask' | 'deny' | 'outside'

/** A rule as written, with the place a message can name. */
export interface RuleText {
	list: RuleList
	text: string
	level: Level
	file: string
	line: number
}

export interface LoadedSettings {
	settings: Settings
	/** For the person, in order. */
	notices: string[]
	sources: { file: string; level: 'user' | 'project' }[]
	/** Parts of the project's file that loosen safety and were left out; null when there are none. */
	held: Record<string, Json> | null
	/** Where `held` stands: the bytes that were parsed, and the notice that says it was left out. */
	heldFrom?: { file: string; bytes: Uint8Array; text: string; notice: string }
}

/** What holds without any file. Fresh at each call. */
export const defaultSettings = (): Settings => ({
	executor: 'auto',
	profile: 'standard',
	allow: [],
	ask: [],
	deny: [],
	outside: [],
	rules: [],
	sandbox: { writePaths: [], denyRead: [], blockUnix: false },
	env: { allow: [] },
	network: { allow: [] },
	web: { enabled: true, allowLocalhost: false },
	staging: { enabled: false },
	daemons: { enabled: false, max: 5, lines: 10_000 },
	secrets: { handles: false, names: {} },
	limits: {
		steps: 200,
		repeatHint: 3,
		repeatStop: 5,
		resultChars: 30_000,
		readLines: 2000,
		readBytes: 256 * 1024,
		bashTimeoutMs: 120_000,
		bashMaxTimeoutMs: 600_000,
	},
	model: { idleMs: 300_000, noticeMs: 120_000, firstRetryMs: 1000, maxRetryMs: 60_000 },
	compaction: { auto: true, reserve: 13_000, keep: 20_000 },
	audit: { enabled: true, witness: [] },
	undo: true,
	todo: false,
	notifications: true,
	memory: true,
	instructions: true,
})

/**
 * User settings, then the project's on top. The project may only tighten: what loosens safety is left out with one
 * notice and returned in `held`. Where both files are one real path (root = home) it is the user's. A broken file is a
 * UserError with file, line, column and field; no file is ever written. zod loads only when a file exists.
 */
export async function loadSettings(
	paths: Pick<GarudaPaths, 'settings' | 'project'>,
	_root?: string,
): Promise<LoadedSettings> {
	const user = await readJsonFile(paths.settings)
	const same = (await realFile(paths.settings)) === (await realFile(paths.project.settings))
	// The project's file is untrusted: a link could point the parser at any file.
	const project = same ? null : await readJsonFile(paths.project.settings, { noFollow: true })
	const settings = defaultSettings()
	const notices: string[] = []
	const sources: LoadedSettings['sources'] = []
	let held: LoadedSettings['held'] = null
	let heldFrom: LoadedSettings['heldFrom']
	if (user) {
		sources.push({ file: user.file, level: 'user' })
		const values = await check(user, notices)
		overlay(settings, values)
		addRules(settings, values, user, 'user')
	}
	if (project) {
		sources.push({ file: project.file, level: 'project' })
		const values = await check(project, notices)
		// Where the record of what was done goes is never a project's word, not even a trusted one's.
		if (values.audit) {
			notices.push(`${project.file}: "audit" has no effect here; it belongs into ${paths.settings}.`)
			delete values.audit
		}
		// Nor which of the user's secrets commands get, and for which hosts.
		if (values.secrets) {
			notices.push(`${project.file}: "secrets" has no effect here; it belongs into ${paths.settings}.`)
			delete values.secrets
		}
		held = holdBack(values, settings)
		if (held) {
			const parts = Object.entries(held)
			const never = parts.filter(([key]) => grantable[key] === undefined)
			const asked = parts.filter(([key]) => grantable[key] !== undefined)
			if (never.length > 0)
				notices.push(
					`${project.file}: never taken from a project: ${describe(never)}. It belongs into ${paths.settings}.`,
				)
			const notice = `${project.file}: left out, since it loosens safety: ${describe(asked)}. It counts once you agree to it, or from ${paths.settings}.`
			if (asked.length > 0) notices.push(notice)
			heldFrom = { file: project.file, bytes: project.bytes, text: project.text, notice }
		}
		if (values.undo === false && settings.undo) notices.push(`${project.file} turns undo off.`)
		tighten(settings, values)
		addRules(settings, values, project, 'project')
	}
	const { limits } = settings
	if (limits.bashTimeoutMs > limits.bashMaxTimeoutMs)
		throw new UserError(
			`limits.bashTimeoutMs (${limits.bashTimeoutMs}) is above limits.bashMaxTimeoutMs (${limits.bashMaxTimeoutMs}).`,
			`Change one of them in ${sources.map((one) => one.file).join(' or ')}.`,
		)
	for (const list of ['allow', 'ask', 'deny', 'outside'] as const)
		settings[list] = settings.rules.filter((rule) => rule.list === list).map((rule) => rule.text)
	return { settings, notices, sources, held, ...(heldFrom ? { heldFrom } : {}) }
}

/** The JSON schema (draft 7) of a settings file, for docs and editors. */
export async function settingsJsonSchema(): Promise<Json> {
	const { jsonSchema } = await import('./settings-schema.ts')
	return jsonSchema()
}

async function check(file: JsonFile, notices: string[]): Promise<SettingsFile> {
	const { checkSettings } = await import('./settings-schema.ts')
	return checkSettings(file, notices, brokenFile)
}

/** Real path of a file that may be missing: its folder's real path and its name. */
async function realFile(file: string): Promise<string> {
	try {
		return await realpath(file)
	} catch {
		const dir = await realpath(dirname(file)).catch(() => dirname(file))
		return join(dir, file.slice(dirname(file).length + 1))
	}
}

const groups = [
	'sandbox',
	'env',
	'network',
	'web',
	'staging',
	'daemons',
	'secrets',
	'limits',
	'model',
	'compaction',
	'audit',
] as const
const plain = [
	'executor',
	'profile',
	'undo',
	'todo',
	'effort',
	'maxCost',
	'notifications',
	'memory',
	'instructions',
] as const

/** The file's values over what is there, group by group; rule lists go by `addRules`. */
function overlay(settings: Settings, values: SettingsFile): void {
	for (const key of plain) if (values[key] !== undefined) Object.assign(settings, { [key]: values[key] })
	for (const key of groups) if (values[key]) Object.assign(settings[key], values[key])
}

/** Lists of the project come on top of the user's; limits on money only fall. */
function tighten(settings: Settings, values: SettingsFile): void {
	const { denyRead } = settings.sandbox
	const { maxCost } = settings
	const daemons = { ...settings.daemons }
	overlay(settings, values)
	settings.sandbox.denyRead = [...new Set([...denyRead, ...(values.sandbox?.denyRead ?? [])])]
	for (const key of ['max', 'lines'] as const) settings.daemons[key] = Math.min(daemons[key], settings.daemons[key])
	if (maxCost !== undefined && values.maxCost !== undefined) settings.maxCost = Math.min(maxCost, values.maxCost)
}

const strictness = { host: 0, auto: 1, sandbox: 2 }

/** Takes what loosens safety out of a project's values. Everything not listed here either tightens or is no matter of safety. */
function holdBack(values: SettingsFile, user: Settings): Record<string, Json> | null {
	const held: Record<string, Json> = {}
	if (values.executor !== undefined && strictness[values.executor] < strictness[user.executor]) {
		held.executor = values.executor
		delete values.executor
	}
	if (values.profile === 'standard' && user.profile === 'strict') {
		held.profile = values.profile
		delete values.profile
	}
	for (const list of ['allow', 'outside'] as const) {
		if (values[list]?.length) held[list] = values[list]
		delete values[list]
	}
	const take = (
		group: 'sandbox' | 'env' | 'network' | 'web' | 'staging' | 'daemons' | 'model',
		key: string,
		loosens: (value: unknown) => boolean,
	) => {
		const part = values[group] as Record<string, unknown> | undefined
		if (part?.[key] === undefined) return
		if (loosens(part[key])) held[`${group}.${key}`] = part[key] as Json
		delete part[key]
	}
	const filled = (value: unknown) => Array.isArray(value) && value.length > 0
	take('sandbox', 'writePaths', filled)
	if (values.sandbox?.blockUnix === false) take('sandbox', 'blockUnix', () => user.sandbox.blockUnix)
	take('env', 'allow', filled)
	take('network', 'allow', filled)
	if (values.web?.enabled === true && !user.web.enabled) take('web', 'enabled', () => true)
	if (values.staging?.enabled === false && user.staging.enabled) take('staging', 'enabled', () => true)
	if (values.daemons?.enabled === true && !user.daemons.enabled) take('daemons', 'enabled', () => true)
	if (values.web?.allowLocalhost === true) take('web', 'allowLocalhost', () => true)
	// Who is trusted on the way to the model is never a project's word.
	take('model', 'ca', () => true)
	take('model', 'allowHttp', filled)
	return Object.keys(held).length > 0 ? held : null
}

const describe = (held: readonly [string, Json][]): string =>
	held
		.map(([key, value]) => {
			const text = JSON.stringify(value).replace(
				/[^\x20-\x7e]/g,
				(char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
			)
			return `${key}: ${text.length > 200 ? `${text.slice(0, 199)}…` : text}`
		})
		.join('; ')

/** Rule lists of a file, with the line of each; a policy's too. */
export function addRules(
	settings: Pick<Settings, 'rules'>,
	values: Partial<Record<RuleList, string[] | undefined>>,
	{ file, text }: Pick<JsonFile, 'file' | 'text'>,
	level: Level,
): void {
	for (const list of ['deny', 'ask', 'allow', 'outside'] as const)
		for (const [index, rule] of (values[list] ?? []).entries()) {
			const line = Number(locate(text, [list, index]).split(':')[0])
			settings.rules.push({ list, text: rule, level, file, line })
		}
}
