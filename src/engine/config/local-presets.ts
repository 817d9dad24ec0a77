// Model servers of this machine that have a name of their own: where each listens. Data of models.ts, model/local.ts and setup.
import { UserError } from '../errors.ts'
import { baseUrl, type Env, isLoopback, type ProviderConfig, set } from './base-url.ts'

export interface LocalPreset {
	/** The provider's name: `-m ollama/<model>`. */
	name: string
	title: string
	port: number
}

export const localPresets: readonly LocalPreset[] = [
	{ name: 'ollama', title: 'Ollama', port: 11434 },
	{ name: 'lmstudio', title: 'LM Studio', port: 1234 },
	{ name: 'llamacpp', title: 'llama.cpp', port: 8080 },
	{ name: 'llamacpp-router', title: 'llama.cpp router', port: 9931 },
	{ name: 'vllm', title: 'vLLM', port: 8000 },
]

/** The variable that moves such a server to another port: OLLAMA_BASE_URL, LLAMACPP_ROUTER_BASE_URL. */
export const localUrlName = (name: string): string => `${name.replace(/\W/g, '_').toUpperCase()}_BASE_URL`

/**
 * The provider that such a name means where models.json has none of that name: on this machine, with no key. Null for another
 * name. UserError when its variable leads to another machine.
 */
export function localProvider(name: string, env: Env): ProviderConfig | null {
	const preset = localPresets.find((one) => one.name === name)
	if (!preset) return null
	const variable = localUrlName(name)
	const given = set(env, variable)
	const baseURL = given ? baseUrl(given, 'openai', variable) : `http://127.0.0.1:${preset.port}/v1`
	if (!isLoopback(new URL(baseURL).hostname))
		throw new UserError(
			`${variable}: a server that needs no more than its name is one of this machine.`,
			'Give another one a name of its own in ~/.garuda/models.json, or run "garuda setup".',
		)
	return { name, api: 'openai', baseURL, keyName: null, server: preset.title }
}

/** Where each of them is looked for. */
export const localPlaces = (env: Env): { provider: string; name: string; url: string }[] =>
	localPresets.map(({ name, title }) => ({ provider: name, name: title, url: localProvider(name, env)!.baseURL }))
