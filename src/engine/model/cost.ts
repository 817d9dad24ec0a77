// What a request cost, by the table of prices; unknown stays unknown.
import type { ModelSpec, Usage } from '../types.ts'

/** US dollars of one web search that the provider runs inside a reply: 10 a thousand (Anthropic's price list, 2026-11-30). */
export const searchPrice = 0.01

/** US dollars of one request's usage (tiers go by one request's prompt), or null when the price is not known. */
export function costOf(usage: Usage, spec: ModelSpec): number | null {
	if (!spec.price) return null
	const prompt = usage.input + usage.cacheRead + usage.cacheWrite
	const price = spec.price.above && prompt > spec.price.above.tokens ? spec.price.above : spec.price
	return (
		(usage.input * price.input +
			usage.output * price.output +
			usage.cacheRead * price.cacheRead +
			usage.cacheWrite * price.cacheWrite) /
		1e6
	)
}
