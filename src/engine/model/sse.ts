// Reads a streamed answer: bytes → server-sent events → a decoder's model events, with a watch on silence.
import { createParser } from 'eventsource-parser'
import { isHttpError } from '../net/http.ts'
import type { ModelEvent, ModelFailure, Usage } from '../types.ts'
import { brokenStream, cancelled, wireFailure } from './failure.ts'
import type { ModelTuning, Provider } from './provider.ts'

/** One answer being read. Pure: no time, no wire. */
export interface Decoder {
	/** Takes one event's data; pushes what it shows. Neighbouring deltas of one kind are one event. */
	push(data: string, out: ModelEvent[]): void
	/** The answer is whole and nothing more will come: stop reading. */
	readonly done: boolean
	/** Enough came to end well should the connection close now. */
	readonly complete: boolean
	/** An error told inside the stream. */
	readonly failure: ModelFailure | undefined
	/** Text or thinking was shown. */
	readonly streamed: boolean
	usage(): Usage | undefined
	/** Pushes the last text, notices and the `end`. Only when `complete`. */
	finish(out: ModelEvent[]): void
}

/** Adds a delta to a list of events, joined to the one before when it is of the same kind. */
export const addDelta = (out: ModelEvent[], type: 'text_delta' | 'thinking_delta', text: string): void => {
	const last = out[out.length - 1]
	if (last?.type === type) last.text += text
	else out.push({ type, text })
}

/** Adds a call's progress likewise; `chars` is the length so far. */
export const addCallDelta = (out: ModelEvent[], index: number, name: string, chars: number): void => {
	const last = out[out.length - 1]
	if (last?.type === 'call_delta' && last.index === index) last.chars = chars
	else out.push({ type: 'call_delta', index, name, chars })
}

// A gateway may send a megabyte in one event (a whole file in a call); 64 MiB is no event.
const maxEvent = 64 * 1024 * 1024

/**
 * Events of one answer, ending with exactly one `end` or `error`. Never throws. Without a byte for `idleMs` the stream counts
 * as broken; pings are bytes, so a stream of pings alone lives on, and a notice says so after `noticeMs` without content.
 */
export async function* readStream(
	body: AsyncIterable<Uint8Array>,
	decoder: Decoder,
	o: { provider: Provider; tuning: ModelTuning; signal: AbortSignal },
): AsyncGenerator<ModelEvent> {
	let out: ModelEvent[] = []
	let parseError: Error | undefined
	const parser = createParser({
		maxBufferSize: maxEvent,
		onEvent(event) {
			if (decoder.done || decoder.failure || event.data === '') return
			decoder.push(event.data, out)
		},
	})
	const text = new TextDecoder()
	const watch = watchBytes(body, o.tuning, o.signal)
	let failure: ModelFailure | undefined
	const take = (): ModelEvent[] => {
		const events = out
		out = []
		return events
	}
	try {
		while (!decoder.done && !decoder.failure) {
			const got = await watch.next(decoder.complete)
			if (got === 'end') break
			if (got === 'quiet' || got === 'pings') {
				const s = Math.round(watch.quietMs() / 1000)
				const text =
					got === 'pings'
						? `${o.provider.name} is alive but has sent no content for ${s} s`
						: `no byte from ${o.provider.name} for ${s} s`
				yield { type: 'notice', text: `Still waiting: ${text}.` }
				continue
			}
			if (got === 'idle') {
				failure = brokenStream(o.provider, 'stopped coming: the connection was silent for too long', 'timeout')
				break
			}
			if (got === 'aborted') {
				failure = cancelled()
				break
			}
			try {
				parser.feed(text.decode(got, { stream: true }))
			} catch (error) {
				parseError = error as Error
				break
			}
			if (out.length) {
				watch.content()
				yield* take()
			}
		}
	} catch (error) {
		failure =
			o.signal.aborted || (isHttpError(error) && error.code === 'aborted')
				? cancelled()
				: wireFailure(error, o.provider)
	} finally {
		watch.stop(decoder.done)
	}
	if (parseError && !failure)
		failure = brokenStream(o.provider, `could not be read (${parseError.message.slice(0, 80)})`)
	// Some servers leave out the blank line after the last event.
	if (!failure && !decoder.done && !decoder.failure) parser.reset({ consume: true })
	yield* take()
	failure = decoder.failure ?? (decoder.complete && failure?.code !== 'cancelled' ? undefined : failure)
	if (!failure && !decoder.complete) failure = brokenStream(o.provider, 'ended before it was whole')
	if (failure) {
		const usage = decoder.usage()
		yield { type: 'error', error: { ...failure, streamed: decoder.streamed }, ...(usage && { usage }) }
		return
	}
	decoder.finish(out)
	yield* take()
}

type Got = Uint8Array | 'end' | 'quiet' | 'pings' | 'idle' | 'aborted'

// Once all is there but the formal end, a server that keeps the line open is not waited for.
const lingerMs = 5_000

/** Reads with one timer for the whole stream (refreshed, not remade, per chunk) and no promise that outlives its chunk. */
const watchBytes = (body: AsyncIterable<Uint8Array>, tuning: ModelTuning, signal: AbortSignal) => {
	const iterator = body[Symbol.asyncIterator]()
	let reading = false
	let result: { value?: IteratorResult<Uint8Array>; error?: unknown } | undefined
	let told: Got | undefined
	let wake: (() => void) | undefined
	let lastContent = Date.now()
	let lastByte = lastContent
	const tell = (what: Got) => {
		told = told === 'idle' || told === 'aborted' ? told : what
		wake?.()
	}
	const idle = setTimeout(() => tell('idle'), tuning.idleMs)
	const notice = setInterval(
		() => tell(Date.now() - lastByte < tuning.noticeMs / 2 ? 'pings' : 'quiet'),
		tuning.noticeMs,
	)
	const onAbort = () => tell('aborted')
	signal.addEventListener('abort', onAbort, { once: true })
	let linger: NodeJS.Timeout | undefined
	return {
		async next(complete: boolean): Promise<Got> {
			if (signal.aborted) return 'aborted'
			if (complete && !linger) linger = setTimeout(() => tell('idle'), Math.min(lingerMs, tuning.idleMs))
			if (!reading) {
				reading = true
				iterator.next().then(
					(value) => {
						result = { value }
						wake?.()
					},
					(error) => {
						result = { error }
						wake?.()
					},
				)
			}
			if (!result && !told)
				await new Promise<void>((resolve) => {
					wake = resolve
				})
			wake = undefined
			if (told) {
				const what = told
				told = undefined
				return what
			}
			const got = result!
			result = undefined
			reading = false
			idle.refresh()
			lastByte = Date.now()
			if (got.error !== undefined) throw got.error
			return got.value!.done ? 'end' : got.value!.value
		},
		content() {
			lastContent = Date.now()
			notice.refresh()
		},
		quietMs: () => Date.now() - lastContent,
		/** After a `whole` answer the last bytes are taken, so that the connection can be used again; else it is closed. */
		stop(whole: boolean) {
			clearTimeout(idle)
			clearTimeout(linger)
			clearInterval(notice)
			signal.removeEventListener('abort', onAbort)
			const close = () => void iterator.return?.()?.then(undefined, () => {})
			if (!whole || reading || signal.aborted) return close()
			const late = setTimeout(close, 1_000)
			late.unref()
			const rest = async () => {
				for (let i = 0; i < 64; i++) if ((await iterator.next()).done) return
				close()
			}
			void rest()
				.catch(() => {})
				.finally(() => clearTimeout(late))
		},
	}
}
