// Which model answers, where it lives and which key it takes: ~/.garuda/models.json and the environment, never the project.
import { UserError } from '../errors.ts'
import { oneLine } from '../text.ts'
import type { Json, ModelSpec, Problem } from '../types.ts'
import { baseUrl, type Env, type ProviderConfig, set } from './base-url.ts'
import { brokenFile, readJsonFile } from './json-file.ts'
import { localPresets, localProvider } from './local-presets.ts'
import type { GarudaPaths } from './paths.ts'

export { baseUrl, type Env, type ProviderConfig } from './base-url.ts'

export interface ModelChoice {
	provider: ProviderConfig
	id: string
	overrides: Partial<ModelSpec>
}

export interface Models {
	/** The user's providers first, then the built-in ones. */
	providers: ProviderConfig[]
	/** "provider/model" or a bare model id. */
	default: string | null
	/** What models.json says of a model; {} when nothing. */
	overrides(provider: string, id: string): Partial<ModelSpec>
	/** Model ids that models.json names, as "provider/id". */
	named: string[]
	notices: string[]
}

/**
 * Providers and model facts. A broken models.json is a UserError with file, line and field.
 * @param env the user's environment: ANTHROPIC_BASE_URL and OPENAI_BASE_URL move the built-in providers
 */
export async function loadModels(paths: Pick<GarudaPaths, 'models'>, env: Env): Promise<Models> {
	const file = await readJsonFile(paths.models)
	const notices: string[] = []
	const values = file ? (await import('./models-schema.ts')).checkModels(file, brokenFile) : { providers: {} }
	const providers: ProviderConfig[] = []
	const specs = new Map<string, Partial<ModelSpec>>()
	const named: string[] = []
	for (const [name, one] of Object.entries(values.providers)) {
		const api = one.api ?? (name === 'anthropic' ? 'anthropic' : 'openai')
		const built = builtIn(name, env)
		if (built && api !== built.api)
			throw new UserError(
				`${paths.models}: "${name}" is built in and speaks ${built.api}.`,
				'Give your provider another name.',
			)
		if (!built && one.baseURL === undefined)
			throw new UserError(
				`${paths.models}: providers.${name}: baseURL is missing.`,
				'For example "baseURL": "http://localhost:11434/v1".',
			)
		const base =
			one.baseURL === undefined
				? built!.baseURL
				: baseUrl(one.baseURL, api, `${paths.models}: providers.${name}.baseURL`, one.allowHttp)
		providers.push({
			name,
			api,
			baseURL: base,
			keyName: one.key === undefined ? (built?.keyName ?? null) : one.key,
			...(one.headers ? { headers: one.headers } : {}),
			...(one.allowHttp ? { allowHttp: true } : {}),
		})
		for (const [id, spec] of Object.entries(one.models ?? {})) {
			named.push(`${name}/${id}`)
			specs.set(`${name}/${id}`, spec as Partial<ModelSpec>)
		}
	}
	for (const name of ['anthropic', 'openai']) {
		if (providers.some((one) => one.name === name)) continue
		providers.push(builtIn(name, env)!)
	}
	return {
		providers,
		default: values.default ?? null,
		overrides: (provider, id) => ({ ...specs.get(`${provider}/${id}`) }),
		named,
		notices,
	}
}

function builtIn(name: string, env: Env): ProviderConfig | null {
	if (name !== 'anthropic' && name !== 'openai') return null
	const upper = name.toUpperCase()
	const given = set(env, `${upper}_BASE_URL`)
	const usual = name === 'anthropic' ? 'https://api.anthropic.com' : 'https://api.openai.com/v1'
	return {
		name,
		api: name,
		baseURL: given ? baseUrl(given, name, `${upper}_BASE_URL`) : usual,
		keyName: `${upper}_API_KEY`,
	}
}

/** The provider of that name: the user's, a built-in one, or a server of this machine. UserError for one that is led elsewhere. */
export const providerOf = (models: Models, name: string, env: Env): ProviderConfig | undefined =>
	models.providers.find((one) => one.name === name) ?? localProvider(name, env) ?? undefined

/**
 * The model that was asked for: the flag, then GARUDA_MODEL, then the default of models.json. "provider/model" when the
 * first part is a provider's name; a bare id goes to the provider that names it, or by its family.
 */
export function chooseModel(
	request: string | undefined,
	env: Env,
	models: Models,
): { provider: ProviderConfig; id: string } | { problem: Problem } {
	const wanted = request?.trim() || set(env, 'GARUDA_MODEL') || models.default?.trim()
	if (!wanted) {
		return {
			problem: {
				code: 'auth',
				message: 'No model is chosen.',
				hint: 'Run "garuda setup", or set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a server of this machine (-m ollama/<model>), or try "-m tour" (no key needed).',
			},
		}
	}
	const own = models.providers.map((one) => one.name)
	const here = localPresets.map((one) => one.name).filter((name) => !own.includes(name))
	const known = `Known providers: ${own.join(', ')}${here.length > 0 ? `; servers on this machine: ${here.join(', ')}` : ''}.`
	if (!/^[\w.:@+/~-]{1,200}$/.test(wanted))
		return {
			problem: {
				code: 'not_found',
				message: `"${oneLine(wanted, 80)}" is no model name.`,
				hint: 'It looks like provider/model.',
			},
		}
	const provider = (name: string) => providerOf(models, name, env)
	const slash = wanted.indexOf('/')
	if (slash > 0) {
		const first = provider(wanted.slice(0, slash))
		const id = wanted.slice(slash + 1)
		if (first && id) return { provider: first, id }
		if (first)
			return {
				problem: { code: 'not_found', message: `"${wanted}" names no model.`, hint: `Write ${first.name}/<model>.` },
			}
	}
	const naming = models.named.filter((one) => one.slice(one.indexOf('/') + 1) === wanted)
	if (naming.length > 1)
		return {
			problem: {
				code: 'not_found',
				message: `More than one provider has "${wanted}".`,
				hint: `Choose one: ${naming.join(', ')}.`,
			},
		}
	if (naming[0]) return { provider: provider(naming[0].slice(0, naming[0].indexOf('/')))!, id: wanted }
	const alone = provider(wanted)
	if (alone)
		return {
			problem: { code: 'not_found', message: `"${wanted}" names no model.`, hint: `Write ${alone.name}/<model>.` },
		}
	if (/^claude-/.test(wanted)) return { provider: provider('anthropic')!, id: wanted }
	if (/^(?:gpt-|chatgpt-|o\d|codex-)/.test(wanted)) return { provider: provider('openai')!, id: wanted }
	return {
		problem: {
			code: 'not_found',
			message: `It is not known which provider has the model "${wanted}".`,
			hint: `Write provider/model. ${known}`,
		},
	}
}

/**
 * The provider's key: the variable of the environment, else the credentials file; an empty variable is not set.
 * White space around it is cut off. Null when the provider needs none. Problems never show the key.
 */
export function keyFor(
	provider: ProviderConfig,
	env: Env,
	credentials: Readonly<Record<string, string>>,
): { key: string; source: string } | { problem: Problem } | null {
	const name = provider.keyName
	if (name === null) return null
	const fromEnv = set(env, name)
	const key = fromEnv ?? (Object.hasOwn(credentials, name) ? credentials[name]?.trim() : undefined)
	if (!key) {
		return {
			problem: {
				code: 'auth',
				message: `There is no key for ${provider.name}.`,
				hint: `Run "garuda setup", or set ${name}.`,
			},
		}
	}
	const source = fromEnv ? `the variable ${name}` : '~/.garuda/credentials'
	const odd = /^(["'`]).*\1$/s.test(key)
		? 'it stands in quotes'
		: /\s/.test(key)
			? 'it holds white space'
			: /[^\x21-\x7e]/.test(key)
				? 'it holds a character that no key has (invisible or not Latin)'
				: /^Bearer/i.test(key)
					? 'it begins with "Bearer"'
					: null
	if (odd)
		return {
			problem: {
				code: 'auth',
				message: `The key for ${provider.name} from ${source} cannot be right: ${odd}.`,
				hint: 'Copy it again, alone.',
			},
		}
	return { key, source }
}

/** The JSON schema (draft 7) of models.json, for docs and editors. */
export async function modelsJsonSchema(): Promise<Json> {
	const { modelsSchema } = await import('./models-schema.ts')
	return modelsSchema()
}
