// The providers that setup knows by name: addresses, key names and where a key is had. Data of guided.ts and unattended.ts.
import { localPresets } from '../config/local-presets.ts'
import type { ProviderConfig } from '../config/models.ts'
import { usualModel } from '../config/usual-models.ts'

export interface Preset {
	/** The provider's name in models.json. */
	name: string
	title: string
	api: ProviderConfig['api']
	baseURL: string
	keyName: string | null
	/** Where a key is made. */
	keyPage?: string
	/** Below the base URL; default `models`. Where that list is public, another that asks for the key. */
	listPath?: string
	/** Taken when none is named and it is on the list. */
	usual?: string
}

const usual = (name: string): { usual?: string } => {
	const id = usualModel(name)
	return id === undefined ? {} : { usual: id }
}

export const presets: readonly Preset[] = [
	{
		name: 'anthropic',
		title: 'Anthropic (Claude)',
		api: 'anthropic',
		baseURL: 'https://api.anthropic.com',
		keyName: 'ANTHROPIC_API_KEY',
		keyPage: 'https://platform.claude.com/settings/keys',
		...usual('anthropic'),
	},
	{
		name: 'openai',
		title: 'OpenAI',
		api: 'openai',
		baseURL: 'https://api.openai.com/v1',
		keyName: 'OPENAI_API_KEY',
		keyPage: 'https://platform.openai.com/api-keys',
		...usual('openai'),
	},
	{
		name: 'openrouter',
		title: 'OpenRouter (many providers, one key)',
		api: 'openai',
		baseURL: 'https://openrouter.ai/api/v1',
		keyName: 'OPENROUTER_API_KEY',
		keyPage: 'https://openrouter.ai/settings/keys',
		// `models` answers without a key, and so with any.
		listPath: 'models/user',
	},
	{
		name: 'gemini',
		title: 'Google Gemini',
		api: 'openai',
		baseURL: 'https://generativelanguage.googleapis.com/v1beta/openai',
		keyName: 'GEMINI_API_KEY',
		keyPage: 'https://aistudio.google.com/apikey',
	},
	{
		name: 'deepseek',
		title: 'DeepSeek',
		api: 'openai',
		baseURL: 'https://api.deepseek.com/v1',
		keyName: 'DEEPSEEK_API_KEY',
		keyPage: 'https://platform.deepseek.com/api_keys',
	},
	{
		name: 'mistral',
		title: 'Mistral',
		api: 'openai',
		baseURL: 'https://api.mistral.ai/v1',
		keyName: 'MISTRAL_API_KEY',
		keyPage: 'https://console.mistral.ai/api-keys',
	},
	{
		name: 'groq',
		title: 'Groq',
		api: 'openai',
		baseURL: 'https://api.groq.com/openai/v1',
		keyName: 'GROQ_API_KEY',
		keyPage: 'https://console.groq.com/keys',
	},
]

/** Servers of this machine by the names that model/local.ts finds them under. */
export const localNames: Readonly<Record<string, string>> = Object.fromEntries(
	localPresets.map((one) => [one.title, one.name]),
)

export const presetOf = (name: string): Preset | undefined => presets.find((one) => one.name === name)

/** The list that shows whether a key is good, for a provider at its usual address. */
export const listPathOf = (provider: Pick<ProviderConfig, 'name' | 'baseURL'>): string => {
	const preset = presetOf(provider.name)
	return preset?.listPath !== undefined && preset.baseURL === provider.baseURL ? preset.listPath : 'models'
}

/** A name for a provider at an address, as models.json takes it. */
export const nameFor = (baseURL: string): string => {
	const { hostname } = new URL(baseURL)
	if (/^[\d.:[\]]+$|^localhost$/.test(hostname)) return 'local'
	const parts = hostname.split('.').filter((part) => part !== 'www' && part !== 'api')
	const name = (parts.length > 1 ? parts.at(-2)! : (parts[0] ?? '')).replace(/[^\w-]/g, '').slice(0, 40)
	return /^[A-Za-z]/.test(name) ? name : `at-${name || 'own'}`
}

/** The variable that a provider's key is kept under. */
export const keyNameFor = (name: string): string => `${name.replace(/\W/g, '_').toUpperCase()}_API_KEY`
