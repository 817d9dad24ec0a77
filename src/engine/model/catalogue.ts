// What Garuda knows of models by name. Prices and limits are data with a date; the user's models.json overrides each field.
import type { Effort, ModelSpec, Price } from '../types.ts'

/** The day the figures below were read. */
export const catalogueDate = '2026-11-30'

interface Entry {
	window: number
	maxOutput: number
	thinking: ModelSpec['thinking']
	efforts: Effort[]
	defaultEffort?: Effort
	/** input, output, cache read, 5-minute cache write. */
	price: [number, number, number, number]
	above?: [number, number, number, number, number]
}

const all: Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']
const upToHigh: Effort[] = ['low', 'medium', 'high', 'max']
const big = { window: 1_000_000, maxOutput: 128_000 }

const claude: Record<string, Entry> = {
	'claude-fable-5-2': { ...big, thinking: 'always', efforts: all, defaultEffort: 'high', price: [8, 40, 0.2, 10] },
	'claude-fable-5-1': { ...big, thinking: 'always', efforts: all, defaultEffort: 'high', price: [10, 50, 0.25, 12.5] },
	'claude-opus-5-5': { ...big, thinking: 'always', efforts: all, defaultEffort: 'medium', price: [4, 20, 0.2, 5] },
	'claude-opus-5': { ...big, thinking: 'adaptive', efforts: all, defaultEffort: 'high', price: [5, 25, 0.5, 6.25] },
	'claude-sonnet-5-5': { ...big, thinking: 'adaptive', efforts: all, defaultEffort: 'high', price: [2, 10, 0.1, 2.5] },
	'claude-sonnet-5': { ...big, thinking: 'adaptive', efforts: all, defaultEffort: 'high', price: [2, 10, 0.2, 2.5] },
	'claude-haiku-5-5': {
		...big,
		thinking: 'adaptive',
		efforts: all,
		defaultEffort: 'medium',
		price: [0.1, 0.5, 0.01, 0.125],
		above: [100_000, 0.5, 2.5, 0.05, 0.625],
	},
	'claude-haiku-4-5': {
		window: 200_000,
		maxOutput: 64_000,
		thinking: 'budget',
		efforts: ['low', 'medium', 'high'],
		price: [1, 5, 0.1, 1.25],
	},
	'claude-opus-4-8': { ...big, thinking: 'adaptive', efforts: upToHigh, price: [5, 25, 0.5, 6.25] },
	'claude-opus-4-7': { ...big, thinking: 'adaptive', efforts: upToHigh, price: [5, 25, 0.5, 6.25] },
	'claude-opus-4-6': { ...big, thinking: 'adaptive', efforts: upToHigh, price: [5, 25, 0.5, 6.25] },
	'claude-sonnet-4-6': { ...big, thinking: 'adaptive', efforts: upToHigh, price: [3, 15, 0.3, 3.75] },
}

/** Families that are known to take pictures, and those that are known not to; the first that fits. Another name says nothing. */
const sees: [RegExp, boolean][] = [
	[/^claude-/, true],
	[/^(?:o1-mini|o1-preview|o3-mini|gpt-3|gpt-4(?:-\d{4})?$|gpt-4-32k|gpt-oss)/, false],
	[/^(?:gpt-4o|gpt-4\.|gpt-4-turbo|gpt-[5-9]|chatgpt-|codex-|o[1-9])/, true],
	[/^(?:gemini-|pixtral-|grok-[4-9])/, true],
	[/^(?:deepseek-|codestral|devstral-small-2505)/, false],
]

const takesImages = (id: string): boolean | undefined => sees.find(([name]) => name.test(id))?.[1]

/** The names that the catalogue knows, for lists and completion. */
export const knownModels = (): { provider: string; id: string }[] =>
	Object.keys(claude).map((id) => ({ provider: 'anthropic', id }))

const priceOf = (entry: Entry): Price => {
	const [input, output, cacheRead, cacheWrite] = entry.price
	const above = entry.above && {
		tokens: entry.above[0],
		input: entry.above[1],
		output: entry.above[2],
		cacheRead: entry.above[3],
		cacheWrite: entry.above[4],
	}
	return { input, output, cacheRead, cacheWrite, ...(above && { above }), date: catalogueDate }
}

/**
 * What is known of a model. A name outside the catalogue gets an unknown window and price (null), never a guess. Prices hold for
 * the provider `anthropic` only: another one that serves the same model sets its own. `images` is told by families of names,
 * and absent for the rest. Overrides win field by field.
 */
export function modelSpec(provider: string, id: string, overrides: Partial<ModelSpec> = {}): ModelSpec {
	const name = id.replace(/-\d{8}$/, '')
	const entry = Object.hasOwn(claude, name) ? claude[name] : undefined
	// A newer Claude than the table: it thinks adaptively; a server that refuses that is learned from.
	const newer = /^claude-[a-z]+-(\d+)(?:-(\d+))?$/.exec(name)
	const thinks = newer && Number(newer[1]) + Number(newer[2] ?? 0) / 10 >= 4.6
	const spec: ModelSpec = entry
		? {
				provider,
				id,
				window: entry.window,
				maxOutput: entry.maxOutput,
				thinking: entry.thinking,
				efforts: entry.efforts,
				...(entry.defaultEffort && { defaultEffort: entry.defaultEffort }),
				price: provider === 'anthropic' ? priceOf(entry) : null,
				textToolCalls: 'off',
			}
		: {
				provider,
				id,
				window: null,
				maxOutput: thinks ? 32_000 : 8_192,
				thinking: thinks ? 'adaptive' : 'none',
				efforts: thinks ? all : ['low', 'medium', 'high'],
				price: null,
				textToolCalls: 'whole',
			}
	const images = takesImages(id)
	if (images !== undefined) spec.images = images
	const given = Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== undefined))
	return { ...spec, ...given, provider, id }
}
