// Team policy: what a team holds its users to. Read once at the start of a session, after the settings and before any rule is made.
import { lstat, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, UserError } from '../errors.ts'
import { ownUid } from '../own-uid.ts'
import type { Json } from '../types.ts'
import { type JsonFile, readJsonFile } from './json-file.ts'
import { locate } from './json-place.ts'
import type { GarudaPaths } from './paths.ts'
import type { PolicyFile } from './policy-schema.ts'
import { addRules, type RuleText, type WitnessSpec } from './settings.ts'

/** A value of a policy with the place that a message names. */
export interface Bound<T> {
	value: T
	file: string
	line: number
	field: string
}

/** All policy files in one. Where a field is a list of bounds, every one of them must hold. */
export interface Policy {
	files: string[]
	/** Deny and ask rules, of level `policy`. */
	rules: RuleText[]
	executor?: Bound<'auto' | 'sandbox'>
	profile?: Bound<'standard' | 'strict'>
	allowRules?: Bound<false>
	allowOutside?: Bound<false>
	denyPaths: Bound<string>[]
	writePaths: Bound<string[]>[]
	blockUnix?: Bound<true>
	envAllow: Bound<string[]>[]
	hosts: Bound<string[]>[]
	webOff?: Bound<false>
	localhostOff?: Bound<false>
	models: Bound<string[]>[]
	modelHosts: Bound<string[]>[]
	maxCost?: Bound<number>
	steps?: Bound<number>
	turnTokens?: Bound<number>
	bashMaxTimeoutMs?: Bound<number>
	undo?: Bound<true>
	audit: { required?: Bound<true>; checkpoint?: Bound<string>; witness: Bound<WitnessSpec>[] }
}

export interface PolicyPlaces {
	/** The machine's, from an administrator. */
	managed: string
	/** The user's own. */
	user: string
	/** Never read: only told of. */
	project: string
	/** Who must own the managed file; root when absent. null: a draft that is only tried out, whoever's it is. */
	owner?: number | null
}

/** Where policy files lie. `managed` replaces the place of the platform. */
export const policyPlaces = (
	paths: Pick<GarudaPaths, 'home' | 'project'>,
	platform: string,
	managed?: string,
): PolicyPlaces => ({
	managed:
		managed ?? (platform === 'darwin' ? '/Library/Application Support/Garuda/policy.json' : '/etc/garuda/policy.json'),
	user: join(paths.home, 'policy.json'),
	project: join(paths.project.dir, 'policy.json'),
})

const whole = 'A policy that cannot be read whole is not skipped: mend it, or ask who manages this machine.'
const broken = (message: string): never => {
	throw new UserError(message, whole)
}

/**
 * The managed file and the user's, merged so that the stricter value wins field by field; null when there is none. A
 * project's file is ignored with a notice. UserError, which must stop Garuda: a broken file or an unknown field (with
 * file, line, column and field), a link, a file or folder that another user could have written.
 */
export async function loadPolicy(places: PolicyPlaces): Promise<{ policy: Policy | null; notices: string[] }> {
	const notices: string[] = []
	const managed = await readJsonFile(places.managed, {
		noFollow: true,
		check: async (handle) => {
			const owner = places.owner === undefined ? 0 : places.owner
			if (owner === null) return
			heldBy(places.managed, await handle.stat(), owner)
			// Who can write to the folder can put another file there.
			const folder = dirname(places.managed)
			heldBy(folder, await lstat(folder), owner)
		},
	})
	const user = await readJsonFile(places.user, {
		noFollow: true,
		check: async (handle) => {
			heldBy(places.user, await handle.stat(), await ownUid())
		},
	})
	if (await isOther(places.project, places.user))
		notices.push(
			`${places.project} is ignored: a team policy comes from ${places.managed} or ${places.user}, never from a project.`,
		)
	const files = [managed, user].filter((one) => one !== null)
	if (files.length === 0) return { policy: null, notices }
	const { checkPolicy } = await import('./policy-schema.ts')
	const policy = emptyPolicy()
	for (const file of files) merge(policy, checkPolicy(file, broken), file)
	return { policy, notices }
}

/** The JSON schema (draft 7) of a policy file, for docs and editors. */
export async function policyJsonSchema(): Promise<Json> {
	const { policySchema } = await import('./policy-schema.ts')
	return policySchema()
}

function heldBy(
	path: string,
	stat: { uid: number; mode: number; isSymbolicLink(): boolean },
	owner: number | null,
): void {
	if (stat.isSymbolicLink()) broken(`${path} is a link; a policy is read through none.`)
	if (owner !== null && stat.uid !== owner)
		broken(`${path} must belong to ${owner === 0 ? 'root' : `uid ${owner}`}, not to uid ${stat.uid}.`)
	if (stat.mode & 0o022)
		broken(`${path} can be written by others (mode ${(stat.mode & 0o777).toString(8).padStart(4, '0')}).`)
}

/** Something is there under the project's name, and it is not the user's own file (root = home). */
async function isOther(project: string, user: string): Promise<boolean> {
	try {
		await lstat(project)
	} catch (error) {
		return codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR'
	}
	const [a, b] = await Promise.all([realpath(project).catch(() => project), realpath(user).catch(() => user)])
	return a !== b
}

const emptyPolicy = (): Policy => ({
	files: [],
	rules: [],
	denyPaths: [],
	writePaths: [],
	envAllow: [],
	hosts: [],
	models: [],
	modelHosts: [],
	audit: { witness: [] },
})

/** One more file on top: nothing that is there gets weaker. */
function merge(policy: Policy, values: PolicyFile, file: JsonFile): void {
	const at = <T>(value: T, ...steps: (string | number)[]): Bound<T> => ({
		value,
		file: file.file,
		line: Number(locate(file.text, steps).split(':')[0]),
		field: steps.join('.').replace(/\.(\d+)/g, '[$1]'),
	})
	const { sandbox = {}, env = {}, network = {}, web = {}, limits = {}, audit = {} } = values
	policy.files.push(file.file)
	addRules(policy, { deny: values.deny, ask: values.ask }, file, 'policy')
	// The only stricter words.
	if (values.executor && policy.executor?.value !== 'sandbox') policy.executor = at(values.executor, 'executor')
	if (values.profile && policy.profile?.value !== 'strict') policy.profile = at(values.profile, 'profile')
	if (values.allowRules === false) policy.allowRules ??= at(false, 'allowRules')
	if (values.allowOutside === false) policy.allowOutside ??= at(false, 'allowOutside')
	for (const [i, path] of (values.denyPaths ?? []).entries()) policy.denyPaths.push(at(path, 'denyPaths', i))
	if (sandbox.writePaths) policy.writePaths.push(at(sandbox.writePaths, 'sandbox', 'writePaths'))
	if (sandbox.blockUnix) policy.blockUnix ??= at(true, 'sandbox', 'blockUnix')
	if (env.allow) policy.envAllow.push(at(env.allow, 'env', 'allow'))
	if (network.allow) policy.hosts.push(at(network.allow, 'network', 'allow'))
	if (web.enabled === false) policy.webOff ??= at(false, 'web', 'enabled')
	if (web.allowLocalhost === false) policy.localhostOff ??= at(false, 'web', 'allowLocalhost')
	if (values.models) policy.models.push(at(values.models, 'models'))
	if (values.modelHosts) policy.modelHosts.push(at(values.modelHosts, 'modelHosts'))
	const least = (key: 'maxCost' | 'steps' | 'turnTokens' | 'bashMaxTimeoutMs', value: number | undefined) => {
		if (value === undefined || value >= (policy[key]?.value ?? Number.POSITIVE_INFINITY)) return
		policy[key] = key === 'maxCost' ? at(value, key) : at(value, 'limits', key)
	}
	least('maxCost', values.maxCost)
	for (const key of ['steps', 'turnTokens', 'bashMaxTimeoutMs'] as const) least(key, limits[key])
	if (values.undo) policy.undo ??= at(true, 'undo')
	if (audit.required) policy.audit.required ??= at(true, 'audit', 'required')
	if (audit.checkpoint) policy.audit.checkpoint ??= at(audit.checkpoint, 'audit', 'checkpoint')
	for (const [i, one] of (audit.witness ?? []).entries()) policy.audit.witness.push(at(one, 'audit', 'witness', i))
}

// ---------------------------------------------------------------- questions to a policy

/** "file:line", for a message. */
export const boundPlace = ({ file, line }: Pick<Bound<unknown>, 'file' | 'line'>): string => `${file}:${line}`

/** `*` stands for any characters; the whole text must match. */
export const starMatches = (pattern: string, text: string): boolean =>
	new RegExp(`^${pattern.replace(/[\\^$.+?()[\]{}|]/g, '\\$&').replace(/\*+/g, '.*')}$`, 's').test(text)

/** Whether a host is on a list of names (`x.y`, `*.y`, `x.y:8443`; without a port any). An empty list has none. */
export function hostListed(list: readonly string[], host: string, port: number): boolean {
	const asked = host.toLowerCase().replace(/\.$/, '')
	return list.some((entry) => {
		const [name = '', only] = entry.toLowerCase().split(':')
		if (only !== undefined && Number(only) !== port) return false
		return name.startsWith('*.') ? asked.endsWith(name.slice(1)) && asked.length >= name.length : asked === name
	})
}

/**
 * Whether a model may be used. A pattern with `/` is matched against provider/model, one without against the model. What
 * sends nothing anywhere (the tour, a script) has no provider in its name and is always allowed.
 */
export const modelAllowed = (policy: Policy | null | undefined, name: string): boolean =>
	modelProblem(policy, name) === null

/** Why a model, or the host that answers as it, may not be used; null when it may. */
export function modelProblem(policy: Policy | null | undefined, name: string, baseURL?: string): string | null {
	if (!policy) return null
	const slash = name.indexOf('/')
	if (slash < 0) return null
	for (const bound of policy.models)
		if (!bound.value.some((pattern) => starMatches(pattern, pattern.includes('/') ? name : name.slice(slash + 1))))
			return `The team policy (${boundPlace(bound)}) does not allow the model ${name}. It allows: ${bound.value.join(', ') || 'none'}.`
	if (baseURL === undefined) return null
	const url = new URL(baseURL)
	const port = Number(url.port) || (url.protocol === 'http:' ? 80 : 443)
	for (const bound of policy.modelHosts)
		if (!hostListed(bound.value, url.hostname, port))
			return `The team policy (${boundPlace(bound)}) does not allow ${url.host} to answer as a model. It allows: ${bound.value.join(', ') || 'none'}.`
	return null
}
