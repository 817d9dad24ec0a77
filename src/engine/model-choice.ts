// From a model's name to a client that can be called: files and environment are read anew each time. Used by engine.ts.
import type { EngineOptions, ModelInfo } from './api.ts'
import { readCredentials } from './config/credentials.ts'
import { chooseModel, keyFor, loadModels, type ProviderConfig } from './config/models.ts'
import type { GarudaPaths } from './config/paths.ts'
import { modelProblem } from './config/policy.ts'
import type { Settings } from './config/settings.ts'
import { UserError } from './errors.ts'
import type { Http } from './net/http.ts'
import { specAt } from './pictures.ts'
import type { Clock, Redactor } from './ports.ts'
import type { ModelChoice } from './session-parts.ts'
import type { ModelSpec, Problem } from './types.ts'

/** Used when only an Anthropic key is there and no model was named anywhere. */
const usualAnthropic = 'claude-sonnet-5-5'

interface Deps {
	options: EngineOptions
	paths: GarudaPaths
	clock: Clock
	http(settings: Settings): Promise<Http>
}

interface Found {
	provider: ProviderConfig
	id: string
	name: string
	overrides: Partial<ModelSpec>
	key: string | null
}

export function createModelChoice({ options, paths, clock, http }: Deps) {
	/** The provider, model and key that a name (or none) means now. */
	async function find(name: string | undefined): Promise<Found | { problem: Problem }> {
		const [models, credentials] = await Promise.all([loadModels(paths, options.env), readCredentials(paths)])
		let chosen = chooseModel(name, options.env, models)
		if ('problem' in chosen && !name && !options.env.GARUDA_MODEL && models.default === null) {
			const provider = models.providers.find((one) => one.name === 'anthropic')!
			const key = keyFor(provider, options.env, credentials)
			if (key && 'key' in key) chosen = { provider, id: usualAnthropic }
		}
		if ('problem' in chosen) return chosen
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
		async readiness(): Promise<{ model: string | null; problem: Problem | null }> {
			if (options.ports?.client) return { model: options.model ?? 'given', problem: null }
			if (special(options.model)) return { model: options.model ?? options.env.GARUDA_MODEL ?? null, problem: null }
			try {
				const found = await find(options.model)
				return 'problem' in found ? { model: null, problem: found.problem } : { model: found.name, problem: null }
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

		/** Models that could be used: those named in models.json, the known ones of providers with a key, and the default. */
		async list(): Promise<ModelInfo[]> {
			const [models, credentials, { knownModels, modelSpec }] = await Promise.all([
				loadModels(paths, options.env),
				readCredentials(paths),
				import('./model/catalogue.ts'),
			])
			const names = new Set([...models.named, ...knownModels().map((one) => `${one.provider}/${one.id}`)])
			const chosen = chooseModel(options.model, options.env, models)
			const current = 'problem' in chosen ? null : `${chosen.provider.name}/${chosen.id}`
			if (current) names.add(current)
			return [...names].flatMap((name) => {
				const slash = name.indexOf('/')
				const provider = models.providers.find((one) => one.name === name.slice(0, slash))
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
