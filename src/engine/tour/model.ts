// The tour as a model: deterministic, behind the same port as any other, and called only where it was asked for by name.

import { estimateTokens, messageChars } from '../budget.ts'
import { systemClock } from '../clock.ts'
import { cancelled } from '../model/failure.ts'
import type { Clock, ModelClient } from '../ports.ts'
import type { Block, ModelEvent, ModelRequest, ModelSpec, Usage } from '../types.ts'
import { callId, factsOf, intentOf } from './facts.ts'
import { nextReply, type Reply } from './script.ts'
import { introduction, threeWays } from './words.ts'

export interface TourOptions {
	/** Why the tour works in the sample project; null where it works in a copy of the user's folder. */
	sampleWhy?: string | null
	/**
	 * Whether commands run in the OS sandbox. Where they do not, or where this is not said, the steps that reach for
	 * secrets and the network by commands are left out: nothing would stop them but an answer.
	 */
	sandboxed?: boolean | (() => Promise<boolean>)
	/** How a model is had, from where the tour is played; default: from a terminal. */
	ways?: string
	/** Milliseconds between two pieces of text, for a reader's eye. Default 0. */
	paceMs?: number
	clock?: Clock
}

export const tourSpec: ModelSpec = {
	provider: 'tour',
	id: 'tour',
	window: 200_000,
	maxOutput: 8_192,
	thinking: 'none',
	efforts: [],
	price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, date: '2026-11-30' },
	textToolCalls: 'off',
}

/**
 * The model and what is known of it. The same conversation gives the same words and calls; it keeps no state but the
 * number of the next call's id.
 */
export function tourModel(options: TourOptions = {}): { client: ModelClient; spec: ModelSpec } {
	const { sampleWhy = null, sandboxed = false, ways = threeWays, paceMs = 0, clock = systemClock } = options
	let known: Promise<boolean> | null = null
	const setting = {
		sampleWhy,
		ways,
		sandboxed: () => {
			// A check that fails is no sandbox.
			known ??= typeof sandboxed === 'boolean' ? Promise.resolve(sandboxed) : sandboxed().catch(() => false)
			return known
		},
	}
	let calls = 0

	async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
		if (signal.aborted) {
			yield { type: 'error', error: cancelled() }
			return
		}
		const reply: Reply =
			request.purpose === 'summary'
				? { text: `${introduction} There is nothing to sum up but its steps.`, calls: [] }
				: await answer(request)
		let said = ''
		for (const piece of pieces(reply.text)) {
			if (paceMs > 0 && said !== '') await clock.sleep(paceMs, signal)
			if (signal.aborted) {
				yield { type: 'error', error: { ...cancelled(), streamed: said !== '' } }
				return
			}
			said += piece
			yield { type: 'text_delta', text: piece }
		}
		const blocks: Block[] = [{ type: 'text', text: said }]
		for (const [index, { part, name, input }] of reply.calls.entries()) {
			yield { type: 'call_delta', index, name, chars: JSON.stringify(input).length }
			blocks.push({ type: 'tool_call', id: callId(String(++calls), part), name, input })
		}
		yield {
			type: 'end',
			message: { role: 'assistant', blocks },
			stop: reply.calls.length > 0 ? 'tool_calls' : 'end',
			usage: usageOf(request, blocks),
		}
	}

	const answer = (request: ModelRequest): Promise<Reply> => {
		const facts = factsOf(request.messages)
		return nextReply(intentOf(facts.prompt), facts, setting)
	}

	return { client: { stream }, spec: tourSpec }
}

/** A few words at a time, as a model's text comes. */
const pieces = (text: string): string[] => text.match(/\S*\s*(?:\S+\s*)?/g)?.filter((piece) => piece !== '') ?? []

/** Its own rough count; it costs nothing, and that is known. */
const usageOf = (request: ModelRequest, blocks: Block[]): Usage => ({
	input: estimateTokens(request.system.length + messageChars(request.messages)),
	output: estimateTokens(messageChars([{ role: 'assistant', blocks }])),
	cacheRead: 0,
	cacheWrite: 0,
	thinking: 0,
	requests: 1,
	cost: 0,
})
