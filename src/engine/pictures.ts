// What is known of a model and pictures, and what the person is told of a prompt's. Used by live-session.ts.
import { isLoopback } from './net/addresses.ts'
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
