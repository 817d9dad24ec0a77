// What setup works on: the user's files and environment, the network, and what is set now. Shared by the guided and the unattended way.
import { readFile } from 'node:fs/promises'
import { systemClock } from '../clock.ts'
import { readCredentials } from '../config/credentials.ts'
import { keyFor, loadModels, type Models, type ProviderConfig } from '../config/models.ts'
import { type GarudaPaths, garudaPaths } from '../config/paths.ts'
import { loadPolicy, modelProblem, type Policy, policyPlaces } from '../config/policy.ts'
import { loadSettings } from '../config/settings.ts'
import { codeOf, UserError } from '../errors.ts'
import type { LocalPlace } from '../model/local.ts'
import { createHttp, type Http } from '../net/http.ts'
import type { Clock } from '../ports.ts'
import { oneLine } from '../text.ts'

export interface SetupPlace {
	home: string
	garudaHome?: string | undefined
	/** The user's environment; keys in it win over stored ones. */
	env: Record<string, string | undefined>
	platform: string
	clock?: Clock
	/** Only for tests: where model servers of this machine are looked for, how long a check may take, another managed policy. */
	localPlaces?: readonly LocalPlace[]
	checkMs?: number
	managedPolicy?: string
}

export interface SetupRoom {
	place: SetupPlace
	paths: GarudaPaths
	clock: Clock
	http: Http
	policy: Policy | null
	/** For the person, before anything else. */
	notices: string[]
	/** YYYY-MM-DD. */
	today: string
	close(): void
}

/** Opens the room; throws UserError for a broken team policy or an unknown home. Close it at the end. */
export async function openRoom(place: SetupPlace): Promise<SetupRoom> {
	const clock = place.clock ?? systemClock
	// No project has a say here: the home stands in for a root.
	const paths = garudaPaths(place.home, place.home, place.garudaHome)
	const { policy, notices } = await loadPolicy(policyPlaces(paths, place.platform, place.managedPolicy))
	let ca: string | undefined
	try {
		const { settings } = await loadSettings({ ...paths, project: { ...paths.project, settings: paths.settings } })
		if (settings.model.ca !== undefined) ca = await readCa(settings.model.ca)
	} catch (error) {
		// Setup must work just when something is broken; the doctor names it as a failure.
		if (!(error instanceof UserError)) throw error
		notices.push(`${error.message}${error.hint ? ` ${error.hint}` : ''}`)
	}
	const http = createHttp({ env: place.env, ...(ca === undefined ? {} : { ca }) })
	const today = new Date(clock.now()).toISOString().slice(0, 10)
	return { place, paths, clock, http, policy, notices, today, close: () => http.close() }
}

async function readCa(file: string): Promise<string> {
	try {
		return await readFile(file, 'utf8')
	} catch (error) {
		throw new UserError(
			`The certificate file of settings.json (model.ca) cannot be read: ${file} (${codeOf(error) ?? 'unknown error'}).`,
			'Correct the path, or take it out.',
		)
	}
}

export interface KeyState {
	provider: ProviderConfig
	from: 'env' | 'stored' | 'none' | 'not needed'
	/** One is stored too, and the variable wins. */
	shadowed: boolean
	/** For requests, never for a screen. */
	key: string | null
	/** Why the key cannot be right. */
	problem: string | null
}

export interface Current {
	models: Models
	credentials: Record<string, string>
	/** Why the credentials cannot be read. */
	credentialsProblem: UserError | null
	keys: KeyState[]
}

/** What is set now; throws UserError for a broken models.json. */
export async function current({ place, paths }: SetupRoom): Promise<Current> {
	const models = await loadModels(paths, place.env)
	let credentials: Record<string, string> = {}
	let credentialsProblem: UserError | null = null
	try {
		credentials = await readCredentials(paths)
	} catch (error) {
		if (!(error instanceof UserError)) throw error
		credentialsProblem = error
	}
	const keys = models.providers.map((provider) => keyState(provider, place.env, credentials))
	return { models, credentials, credentialsProblem, keys }
}

/** Where a provider's key comes from now. */
export function keyState(
	provider: ProviderConfig,
	env: SetupPlace['env'],
	credentials: Record<string, string>,
): KeyState {
	const name = provider.keyName
	if (name === null) return { provider, from: 'not needed', shadowed: false, key: null, problem: null }
	const inEnv = Object.hasOwn(env, name) && (env[name] ?? '').trim() !== ''
	const stored = Object.hasOwn(credentials, name) && credentials[name]!.trim() !== ''
	const found = keyFor(provider, env, credentials)
	const from = inEnv ? 'env' : stored ? 'stored' : 'none'
	const problem = found && 'problem' in found && from !== 'none' ? found.problem.message : null
	return { provider, from, shadowed: inEnv && stored, key: found && 'key' in found ? found.key : null, problem }
}

/** The end of a key, so that its owner knows which one it is; nothing of a short one. */
export const masked = (key: string): string => (key.length >= 20 ? `ends in …${key.slice(-4)}` : 'not shown')

/** What is set now, in lines; no key is in it. */
export function statusText({ place, paths }: SetupRoom, now: Current): string {
	const named = place.env.GARUDA_MODEL?.trim()
	const lines = [
		`Default model: ${now.models.default ?? 'none'}${named ? ` (GARUDA_MODEL=${oneLine(named, 80)} wins over it)` : ''}`,
	]
	const used = now.keys.filter((one) => one.from !== 'none' || !['anthropic', 'openai'].includes(one.provider.name))
	for (const state of used) lines.push(`  ${state.provider.name.padEnd(12)} ${keyWords(state)}`)
	if (used.length === 0) lines.push('  no provider has a key')
	const { credentialsProblem: problem } = now
	if (problem) lines.push(`${problem.message} ${problem.hint ?? ''}`.trimEnd())
	const others = Object.keys(now.credentials).filter((name) => !now.keys.some((one) => one.provider.keyName === name))
	if (others.length > 0) lines.push(`  stored keys of no provider: ${others.join(', ')}`)
	lines.push(`Files: ${tilde(paths.models, place.home)}, ${tilde(paths.credentials, place.home)}`)
	return lines.join('\n')
}

/** Where the key comes from, in words. */
export function keyWords({ provider, from, shadowed, key, problem }: KeyState): string {
	if (from === 'not needed') return `no key needed · ${provider.baseURL}`
	if (from === 'none') return `no key (${provider.keyName})`
	if (problem !== null) return problem
	const words = key === null ? 'not shown' : masked(key)
	return from === 'env'
		? `key from the variable ${provider.keyName} (${words})${shadowed ? '; a stored one is not used' : ''}`
		: `stored key ${provider.keyName} (${words})`
}

/** A path with the home folder as ~. */
export const tilde = (path: string, home: string): string =>
	path === home ? '~' : path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path

/** Why the team policy forbids a model or its host, or null. */
export const forbidden = (room: SetupRoom, provider: ProviderConfig, id: string): string | null =>
	modelProblem(room.policy, `${provider.name}/${id}`, provider.baseURL)
