// From a model's name to a client that can be called: files and environment are read anew each time. Used by engine.ts.
import type { EngineOptions, ModelInfo, Readiness } from './api.ts'
import { readCredentials } from './config/credentials.ts'
import { localPlaces, localUrlName } from './config/local-presets.ts'
import { chooseModel, keyFor, loadModels, type Models, type ProviderConfig, providerOf } from './config/models.ts'
import type { GarudaPaths } from './config/paths.ts'
import { modelProblem } from './config/policy.ts'
import type { Settings } from './config/settings.ts'
import { usualModels } from './config/usual-models.ts'
import { UserError } from './errors.ts'
import type { LocalPlace, LocalServer } from './model/local.ts'
import type { Http } from './net/http.ts'
import { specAt } from './pictures.ts'
import type { Clock, Redactor } from './ports.ts'
import type { ModelChoice } from './session-parts.ts'
import type { ModelSpec, Problem } from './types.ts'

/** Milliseconds that a named server of this machine has to tell its models: it may be busy. */
const namedServerMs = 3_000

/** Which of these servers answer; see `localServers`. */
export type LookAt = (places: readonly LocalPlace[], signal?: AbortSignal, limitMs?: number) => Promise<LocalServer[]>

interface Deps {
	options: EngineOptions
	paths: GarudaPaths
	clock: Clock
	http(settings: Settings): Promise<Http>
	lookAt: LookAt
}

interface Found {
	provider: ProviderConfig
	id: string
	name: string
	overrides: Partial<ModelSpec>
	key: string | null
}

export function createModelChoice({ options, paths, clock, http, lookAt }: Deps) {
	/** The provider, model and key that a name (or none) means now. */
	async function find(name: string | undefined): Promise<Found | { problem: Problem }> {
		const [models, credentials] = await Promise.all([loadModels(paths, options.env), readCredentials(paths)])
		let chosen = chooseModel(name, options.env, models)
		if ('problem' in chosen && !name && !options.env.GARUDA_MODEL && models.default === null) {
			for (const { provider: name, id, at } of usualModels) {
				const provider = models.providers.find((one) => one.name === name)!
				const key = keyFor(provider, options.env, credentials)
				if (!key || !('key' in key) || (at !== undefined && provider.baseURL !== at)) continue
				chosen = { provider, id }
				break
			}
		}
		if ('problem' in chosen)
			return { problem: await withModels(chosen.problem, name ?? options.env.GARUDA_MODEL, models) }
		const key = keyFor(chosen.provider, options.env, credentials)
		if (key && 'problem' in key) return key
		const { provider, id } = chosen
		return {
			provider,
			id,
			name: `${provider.name}/${id}`,
			overrides: models.overrides(provider.name, id),
			key: key?.key ?? null,
		}
	}

	/** Only a name asks for these: the tour and a scripted model never stand in for a real one. */
	const special = (name: string | undefined) => {
		const wanted = name ?? options.env.GARUDA_MODEL
		return wanted !== undefined && wanted !== '' ? options.clients?.[wanted] : undefined
	}

	/** Where only a server of this machine was named: which models it has. */
	async function withModels(problem: Problem, wanted: string | undefined, models: Models): Promise<Problem> {
		const provider = wanted && providerOf(models, wanted.trim().replace(/\/$/, ''), options.env)
		if (!provider || provider.server === undefined) return problem
		const [server] = await lookAt([{ name: provider.server, url: provider.baseURL }])
		if (!server)
			return { ...problem, hint: `${problem.hint} ${provider.server} does not answer at ${provider.baseURL}.` }
		const [first, ...more] = server.models.slice(0, 12).map((id) => `${provider.name}/${id}`)
		return first === undefined
			? { ...problem, hint: `${provider.server} has no models yet.` }
			: { ...problem, hint: `Write ${[first, ...more].join(', or ')}.` }
	}

	/** Throws UserError unless the server answers and has the model. */
	async function answers(provider: ProviderConfig, id: string): Promise<void> {
		const place = { name: provider.server!, url: provider.baseURL }
		const [server] = await lookAt([place], undefined, namedServerMs)
		if (!server)
			throw new UserError(
				`${place.name} does not answer at ${place.url}.`,
				`Start it there, move it with ${localUrlName(provider.name)}, or choose another model.`,
			)
		const { models } = server
		// A long list is cut, and a list may be empty where any name is taken.
		if (models.length === 0 || models.length >= 50 || models.includes(id) || models.includes(`${id}:latest`)) return
		throw new UserError(`${place.name} has no model "${id}".`, `It has: ${models.slice(0, 12).join(', ')}.`)
	}

	/** Servers of this machine that answer now, without those that models.json names already. */
	async function servers(): Promise<LocalServer[]> {
		const models = await loadModels(paths, options.env)
		const places = localPlaces(options.env).filter((place) =>
			models.providers.every((one) => one.name !== place.provider && one.baseURL !== place.url),
		)
		return lookAt(places)
	}

	async function connected(name: string | undefined, settings: Settings, redactor: Redactor): Promise<ModelChoice> {
		const { client, spec } = options.ports ?? {}
		if (client && spec) return { name: `${spec.provider}/${spec.id}`, client, spec }
		const builtIn = special(name)
		if (builtIn) {
			const made = await builtIn()
			return { name: name ?? made.spec.id, ...made }
		}
		const found = await find(name)
		if ('problem' in found) throw new UserError(found.problem.message, found.problem.hint)
		const { provider, id, key } = found
		const forbidden = modelProblem(settings.policy, found.name, provider.baseURL)
		if (forbidden) throw new UserError(forbidden, 'Choose another model with -m; the team policy decides which.')
		if (provider.server !== undefined) await answers(provider, id)
		if (key !== null && provider.keyName !== null) redactor.add(provider.keyName, key)
		const [{ createModelClient, defaultTuning, modelSpec }, transport] = await Promise.all([
			import('./model/index.ts'),
			http(settings),
		])
		const made = specAt(modelSpec(provider.name, id, found.overrides), provider.baseURL)
		const { idleMs, noticeMs, firstRetryMs, maxRetryMs, allowHttp = [] } = settings.model
		const { name: providerName, api, baseURL, headers } = provider
		const client_ = await createModelClient(
			{
				name: providerName,
				api,
				baseURL,
				apiKey: key,
				...(headers ? { headers } : {}),
				...(provider.allowHttp || allowHttp.includes(new URL(baseURL).hostname) ? { allowHttp: true } : {}),
			},
			made,
			{
				http: transport,
				clock,
				// A server that reads a long prompt sends no headers meanwhile: the limit is one, of silence.
				tuning: { ...defaultTuning, idleMs, headerTimeoutMs: idleMs, noticeMs, firstRetryMs, maxRetryMs },
				...(options.debug ? { log: (line: object) => options.debug!(line as never) } : {}),
			},
		)
		return { name: found.name, client: client_, spec: made }
	}

	return {
		async readiness(): Promise<Readiness> {
			if (options.ports?.client) return { model: options.model ?? 'given', problem: null }
			if (special(options.model)) return { model: options.model ?? options.env.GARUDA_MODEL ?? null, problem: null }
			try {
				const found = await find(options.model)
				if ('problem' in found) return { model: null, problem: found.problem }
				const { server, baseURL } = found.provider
				return {
					model: found.name,
					problem: null,
					...(server === undefined ? {} : { server: { name: server, url: baseURL } }),
				}
			} catch (error) {
				if (!(error instanceof UserError)) throw error
				return {
					model: null,
					problem: { code: 'user', message: error.message, ...(error.hint ? { hint: error.hint } : {}) },
				}
			}
		},

		/** Throws UserError with the way out when there is no such model or no key. */
		async connect(name: string | undefined, settings: Settings, redactor: Redactor): Promise<ModelChoice> {
			const choice = await connected(name, settings, redactor)
			return options.wrapClient ? { ...choice, client: options.wrapClient(choice.client) } : choice
		},

		/**
		 * Models that could be used: those named in models.json, the known ones of providers with a key, the default, and those
		 * of servers of this machine unless `servers` is false: asking them takes up to 400 ms.
		 */
		async list({ servers: asked = true }: { servers?: boolean } = {}): Promise<ModelInfo[]> {
			const [models, credentials, { knownModels, modelSpec }] = await Promise.all([
				loadModels(paths, options.env),
				readCredentials(paths),
				import('./model/catalogue.ts'),
			])
			const withKey = (name: string): boolean => {
				const key = keyFor(models.providers.find((one) => one.name === name)!, options.env, credentials)
				return key === null || 'key' in key
			}
			const known = knownModels().filter((one) => withKey(one.provider))
			const names = new Set([...models.named, ...known.map((one) => `${one.provider}/${one.id}`)])
			const found = await find(options.model)
			const current = 'problem' in found ? null : found.name
			if (current) names.add(current)
			if (asked)
				for (const server of await servers()) for (const id of server.models) names.add(`${server.provider}/${id}`)
			return [...names].flatMap((name) => {
				const slash = name.indexOf('/')
				const provider = providerOf(models, name.slice(0, slash), options.env)
				if (!provider) return []
				const id = name.slice(slash + 1)
				const key = keyFor(provider, options.env, credentials)
				const problem = key && 'problem' in key ? key.problem : null
				return [
					{
						name,
						spec: specAt(modelSpec(provider.name, id, models.overrides(provider.name, id)), provider.baseURL),
						default: name === current,
						problem,
					},
				]
			})
		},
	}
}
