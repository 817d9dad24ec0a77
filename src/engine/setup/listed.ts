// What a provider's list says of its models, whatever its form: ids, windows, limits, prices. Read by check-provider.ts.
import { modelSpec } from '../model/catalogue.ts'
import { oneLine } from '../text.ts'
import type { ModelSpec, Price } from '../types.ts'

export interface Listed {
	id: string
	/** As the provider calls it for people; made visible, one line. */
	title?: string
	window?: number
	maxOutput?: number
	price?: Price
	/** Whether it takes pictures, when the list says. */
	images?: boolean
	/** Milliseconds; 0 when it does not say. */
	created: number
}

type Entry = Record<string, unknown>

const idForm = /^[\w.:@+/~-]{1,200}$/
// Lists name all that a provider serves.
const otherKinds =
	/embed|whisper|\btts\b|-tts|audio|realtime|transcri|moderation|dall-?e|image|imagen|\bveo\b|\bsora\b|rerank|guard|\bocr\b|speech|davinci|babbage|\baqa\b|lyria/i

const object = (value: unknown): Entry | null =>
	typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Entry) : null

const count = (...values: unknown[]): number | undefined =>
	values.find(
		(value): value is number =>
			typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 100_000_000,
	)

/**
 * The models in a list's body (`{data: […]}`, `{models: […]}` or the list alone) that can hold a conversation; null when it
 * is no list of models. `today` (YYYY-MM-DD) dates the prices.
 */
export function readList(body: unknown, today: string): Listed[] | null {
	const outer = object(body)
	const list = Array.isArray(body) ? body : (outer?.data ?? outer?.models)
	if (!Array.isArray(list)) return null
	const found = new Map<string, Listed>()
	const beside = capabilitiesBeside(outer)
	for (const value of list.slice(0, 5_000)) {
		const entry = object(value)
		const raw = entry && (typeof entry.id === 'string' ? entry.id : entry.name)
		if (!entry || typeof raw !== 'string' || !idForm.test(raw)) continue
		const id = raw.replace(/^models\//, '')
		const whole =
			entry.capabilities === undefined && beside.has(raw) ? { ...entry, capabilities: beside.get(raw) } : entry
		if (!found.has(id) && !otherKinds.test(id) && talks(entry)) found.set(id, read(whole, id, today))
	}
	return [...found.values()].sort(order)
}

/** llama.cpp tells what its models can in a second list, beside the one that names them. */
function capabilitiesBeside(outer: Entry | null): Map<string, unknown> {
	const lists = Array.isArray(outer?.data) && Array.isArray(outer.models) ? outer.models.slice(0, 5_000) : []
	return new Map(
		lists.flatMap((value: unknown): [string, unknown][] => {
			const entry = object(value)
			const name = entry?.model ?? entry?.name
			return typeof name === 'string' && Array.isArray(entry?.capabilities) ? [[name, entry.capabilities]] : []
		}),
	)
}

/** Whether the entry itself says that it cannot be talked to, or cannot call tools. */
const talks = (entry: Entry): boolean => {
	const capabilities = object(entry.capabilities)
	if (capabilities?.completion_chat === false) return false
	const parameters = entry.supported_parameters
	if (Array.isArray(parameters) && parameters.length > 0 && !parameters.includes('tools')) return false
	return entry.active !== false && entry.archived !== true
}

/** Whether an entry says that its model takes pictures: by kinds of input (OpenRouter), by capabilities, by its type (LM Studio). */
function readImages(entry: Entry): boolean | undefined {
	const inputs = object(entry.architecture)?.input_modalities ?? entry.input_modalities
	if (Array.isArray(inputs)) return inputs.includes('image')
	const { capabilities } = entry
	// llama.cpp and Ollama list what there is.
	if (Array.isArray(capabilities)) return capabilities.includes('vision') || capabilities.includes('multimodal')
	const named = object(capabilities)
	if (typeof named?.vision === 'boolean') return named.vision
	const supported = object(named?.image_input)?.supported ?? entry.supports_image_in
	if (typeof supported === 'boolean') return supported
	return entry.type === 'vlm' ? true : entry.type === 'llm' ? false : undefined
}

function read(entry: Entry, id: string, today: string): Listed {
	const top = object(entry.top_provider)
	const meta = object(entry.meta)
	const window = count(
		entry.context_length,
		entry.context_window,
		entry.max_context_length,
		entry.max_model_len,
		entry.max_input_tokens,
		entry.loaded_context_length,
		meta?.n_ctx,
		meta?.n_ctx_train,
	)
	const maxOutput = count(
		top?.max_completion_tokens,
		entry.max_completion_tokens,
		entry.max_output_tokens,
		entry.max_tokens,
	)
	const price = readPrice(object(entry.pricing), today)
	const images = readImages(entry)
	const title =
		typeof entry.display_name === 'string' ? entry.display_name : typeof entry.name === 'string' ? entry.name : ''
	const created = typeof entry.created === 'number' ? entry.created * 1000 : Date.parse(String(entry.created_at ?? ''))
	return {
		id,
		...(title !== '' && title !== id ? { title: oneLine(title, 60) } : {}),
		...(window !== undefined && window >= 1024 ? { window } : {}),
		...(maxOutput === undefined ? {} : { maxOutput }),
		...(price ? { price } : {}),
		...(images === undefined ? {} : { images }),
		created: Number.isFinite(created) ? created : 0,
	}
}

/** Dollars a token as text (OpenRouter's form). A model that goes by another's price says -1: not known. */
function readPrice(pricing: Entry | null, today: string): Price | null {
	const dollars = (value: unknown): number | null => {
		const number = typeof value === 'string' && value !== '' ? Number(value) : Number.NaN
		return number >= 0 && number < 0.1 ? Math.round(number * 1e12) / 1e6 : null
	}
	const input = dollars(pricing?.prompt)
	const output = dollars(pricing?.completion)
	if (input === null || output === null) return null
	// Without a price of its own a cached token costs what any other does.
	const cacheRead = dollars(pricing?.input_cache_read) ?? input
	const cacheWrite = dollars(pricing?.input_cache_write) ?? input
	return { input, output, cacheRead, cacheWrite, date: today }
}

const order = (a: Listed, b: Listed): number => b.created - a.created || a.id.localeCompare(b.id)

/** Window and price in a few words, the provider's own figures before the catalogue's. */
export function figures(provider: string, listed: Listed, overrides: Partial<ModelSpec> = {}): string {
	const spec = modelSpec(provider, listed.id, overrides)
	const window = overrides.window ?? listed.window ?? spec.window
	const price = overrides.price ?? listed.price ?? spec.price
	const parts = [
		window === null || window === undefined ? '' : `${tokens(window)} context`,
		price
			? price.input === 0 && price.output === 0
				? 'free'
				: `$${money(price.input)} in, $${money(price.output)} out`
			: '',
	].filter(Boolean)
	return parts.join(' · ')
}

const tokens = (value: number): string => {
	if (value >= 1_000_000) return `${trim(value / 1_000_000)}M`
	return `${value >= 10_000 ? Math.round(value / 1000) : trim(value / 1000)}k`
}
const trim = (value: number): string => value.toFixed(1).replace(/\.0$/, '')
const money = (value: number): string =>
	value === 0 || value >= 0.01 ? String(Math.round(value * 100) / 100) : String(value)

/** What models.json should keep of a chosen model: only what the catalogue does not know. */
export function factsOf(provider: string, listed: Listed, local: boolean): Partial<ModelSpec> {
	const spec = modelSpec(provider, listed.id)
	const facts: Partial<ModelSpec> = {}
	// A local server's list tells what the model was trained for, not what the server was started with.
	if (spec.window === null && listed.window !== undefined && !local) facts.window = listed.window
	// Lists often give the whole window as the output's limit; so much kept free would leave no room for the conversation.
	if (spec.window === null && listed.maxOutput !== undefined && !local)
		facts.maxOutput = Math.min(listed.maxOutput, 32_000, Math.max(1024, Math.floor((listed.window ?? 128_000) / 4)))
	if (spec.price === null && listed.price) facts.price = listed.price
	// Of a local server "no" is what is assumed anyway, and may be another tomorrow (llama.cpp with --mmproj).
	if (spec.images === undefined && listed.images !== undefined && (listed.images || !local))
		facts.images = listed.images
	return facts
}
