// Pictures between tools, model and history: what a result shows goes beside its words, past the gate. Used by live-session.ts.
import { isLoopback } from './net/addresses.ts'
import type { Tool } from './ports.ts'
import type { ModelChoice } from './session-parts.ts'
import type { Image, ModelSpec } from './types.ts'

/** Why this model is shown no pictures, as a sentence with the way out; undefined when it takes them, or may. */
export const noImages = ({ name, spec }: Pick<ModelChoice, 'name' | 'spec'>): string | undefined =>
	spec.images === false
		? `${name} takes no images; "images": true for this model in models.json says that it does.`
		: undefined

/**
 * What is known of a model at an address: of a model server on this machine (or at a plain http address) that nothing says
 * anything about, most take no pictures, and some answer with nonsense instead of a refusal.
 */
export const specAt = (spec: ModelSpec, baseURL: string): ModelSpec => {
	if (spec.images !== undefined || !URL.canParse(baseURL)) return spec
	const { protocol, hostname } = new URL(baseURL)
	return protocol === 'http:' || isLoopback(hostname) ? { ...spec, images: false } : spec
}

/**
 * The tool, with the pictures of each good result handed to `show` under the call's id. The gate carries words only: it
 * bounds, cleans and redacts them, and would do none of that to a picture.
 */
export const imagesBeside = (tool: Tool, show: (callId: string, images: Image[]) => void): Tool => ({
	...tool,
	async run(plan, ctx, accepted) {
		const result = await tool.run(plan, ctx, accepted)
		if (result.status === 'ok' && result.images?.length) show(ctx.callId, result.images)
		return result
	},
})

/**
 * A word for the person about the pictures of a prompt (`all`, with those that were `given`): which mentions became one, or that
 * the model is shown none. Null when there is nothing to say: what a person put in by hand they see themselves.
 */
export function aboutImages(
	given: readonly Image[],
	all: readonly Image[],
	noImages: string | undefined,
): { level: 'info' | 'warning'; text: string } | null {
	const labels = (images: readonly Image[]): string => images.map((image) => image.label).join('; ')
	if (noImages !== undefined && all.length > 0)
		return { level: 'warning', text: `Not shown to the model: ${labels(all)}. ${noImages}` }
	const mentioned = all.filter((image) => !given.includes(image))
	return mentioned.length > 0 ? { level: 'info', text: `Attached: ${labels(mentioned)}.` } : null
}
