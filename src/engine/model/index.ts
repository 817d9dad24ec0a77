// The model room's door: a provider and a model become one ModelClient; the turn sees nothing else of it.
import { UserError } from '../errors.ts'
import { isLoopback } from '../net/addresses.ts'
import type { Http } from '../net/http.ts'
import type { Clock, ModelClient } from '../ports.ts'
import type { Block, Message, ModelFailure, ModelRequest, ModelSpec } from '../types.ts'
import type { Adapter } from './adapter.ts'
import { imagesIn, learnImages } from './images.ts'
import { pictureMender } from './picture-mender.ts'
import { checkKey, type ModelTuning, normaliseBaseURL, type Provider } from './provider.ts'
import { withRetry } from './retry.ts'
import { validate } from './valid-request.ts'

export { catalogueDate, knownModels, modelSpec } from './catalogue.ts'
export { costOf } from './cost.ts'
export {
	checkKey,
	defaultTuning,
	type ModelTuning,
	normaliseBaseURL,
	type Provider,
	type ProviderQuirks,
} from './provider.ts'
export { type RecordedEntry, recordingClient, scriptOf } from './recording.ts'
export { type RecordedAnswer, replayClient } from './replay.ts'
export { withRetry } from './retry.ts'
export { type Script, type ScriptStep, scriptedClient } from './scripted.ts'
export { type Target, validRequest } from './valid-request.ts'

export interface ClientDeps {
	http: Http
	clock: Clock
	tuning: ModelTuning
	/** What the client learned or mended, as data for a debug log; never a key, never a prompt. */
	log?(line: object): void
}

/**
 * The client of a model: every request made valid first, asked with retries, thinking left out where it was refused, a message
 * that the provider names as bad sent once more as plain words. Rejects with UserError for a key or address that cannot work.
 * The adapter (and the SDK, for Anthropic) loads here.
 */
export async function createModelClient(provider: Provider, spec: ModelSpec, deps: ClientDeps): Promise<ModelClient> {
	const own = checked(provider)
	const adapterDeps = { http: deps.http, tuning: deps.tuning, log: deps.log ?? (() => {}) }
	const adapter: Adapter =
		own.api === 'anthropic'
			? (await import('./anthropic.ts')).anthropicAdapter(own, spec, adapterDeps)
			: (await import('./openai.ts')).openaiAdapter(own, spec, adapterDeps)
	return withRetry(repairing(adapter, own, spec, adapterDeps.log), deps.tuning, deps.clock)
}

const checked = (provider: Provider): Provider => {
	const key = provider.apiKey?.trim() || null
	const wrong = key && checkKey(key)
	if (wrong) throw new UserError(`${provider.name}: ${wrong.message}`, wrong.hint)
	const baseURL = normaliseBaseURL(provider.baseURL, provider.api)
	if (!URL.canParse(baseURL))
		throw new UserError(
			`The base URL of ${provider.name} is not a URL.`,
			'Write it as https://host/path in models.json.',
		)
	const url = new URL(baseURL)
	if (url.username || url.password)
		throw new UserError(
			`The base URL of ${provider.name} holds a user or password.`,
			'Give the key by its variable, or a header in models.json.',
		)
	if (url.protocol !== 'https:' && url.protocol !== 'http:')
		throw new UserError(`The base URL of ${provider.name} must begin with https:// or http://.`)
	if (url.protocol === 'http:' && !provider.allowHttp && !isLoopback(url.hostname))
		throw new UserError(
			`${provider.name} is at ${url.host} over plain http: your code and key would cross the network readable.`,
			'Use https, or set "allowHttp": true for this provider in ~/.garuda/models.json if the network is yours.',
		)
	return { ...provider, apiKey: key, baseURL }
}

/** A tool that runs at another provider is nothing that this one knows. */
const withToolsOf = (request: ModelRequest, provider: string): ModelRequest =>
	request.tools.every(({ server }) => server === undefined || server.provider === provider)
		? request
		: { ...request, tools: request.tools.filter(({ server }) => !server || server.provider === provider) }

/** One try, mended on the spot where a known error says how: each mend once per request, remembered for the requests after it. */
const repairing = (adapter: Adapter, provider: Provider, spec: ModelSpec, log: (line: object) => void): ModelClient => {
	const refused = new WeakSet<Block>()
	const bad = new WeakSet<Message>()
	const pictures = pictureMender()
	const seen = new WeakMap<object, boolean>()
	return {
		async *stream(given, signal) {
			const request = withToolsOf(given, provider.name)
			let [unbound, neutralised, learned] = [false, false, 0]
			const pictureRounds = pictures.begin()
			// Once dropped, thinking stays dropped: what came after it is bound to the history without it.
			if (request.stripThinking) refuse(request.messages, refused)

			/** What is done about a failure, in words, or undefined when nothing can be. */
			function mendFor(error: ModelFailure, messages: Message[], named: number | undefined): string | undefined {
				if (error.thinkingBinding && !unbound) {
					unbound = true
					refuse(request.messages, refused)
					return 'The provider refused earlier thinking (the history before it has changed); the request goes on without it.'
				}
				const { quirks } = adapter
				const sent = imagesIn(messages).length
				if (sent > 0) {
					if (learned < 2 && learnImages(quirks, error, sent)) {
						learned++
						const model = `${provider.name}/${spec.id}`
						return quirks.images === false
							? `${model} takes no images: their names are sent instead. (${error.message})`
							: `${model} takes ${quirks.maxImages} images at most; older ones are left out.`
					}
					const without = pictureRounds.next(error, messages, named)
					if (without !== undefined) return without
				}
				if (error.badMessage === undefined || error.code !== 'invalid_request' || neutralised) return undefined
				neutralised = true
				bad.add(request.messages[error.badMessage]!)
				return `The provider refused message ${error.badMessage + 1} of the conversation; it is sent as plain words. (${error.message})`
			}

			for (;;) {
				const { quirks } = adapter
				const { messages, origin } = validate(request.messages, {
					provider: provider.name,
					model: spec.id,
					shortIds: quirks.shortIds ?? false,
					refused,
					bad,
					images: {
						taken: spec.images !== false && quirks.images !== false,
						...(quirks.maxImages !== undefined && { max: quirks.maxImages }),
						refused: pictures.refused,
						seen,
					},
				})
				let mend: string | undefined
				for await (const event of adapter.attempt(request, messages, signal)) {
					if (event.type !== 'error') {
						if (event.type === 'end') pictures.taken(messages)
						yield event
						continue
					}
					const { error } = event
					const named = error.badMessage
					if (named !== undefined) {
						const at = origin[named] ?? -1
						if (at >= 0) error.badMessage = at
						else delete error.badMessage
					}
					mend = mendFor(error, messages, named)
					if (mend === undefined) {
						pictureRounds.giveUp(error)
						yield event
					}
				}
				if (mend === undefined) return
				log({ mended: mend })
				yield { type: 'notice', text: mend }
			}
		},
	}
}

const refuse = (messages: Message[], refused: WeakSet<Block>): void => {
	for (const message of messages) for (const block of message.blocks) if (block.type === 'thinking') refused.add(block)
}
