// A model that plays a file: for tests, demos and rehearsals of everything around a model. Its format is in docs/testing.md.
import { UserError } from '../errors.ts'
import type { Clock, ModelClient } from '../ports.ts'
import type { Block, Message, ModelEvent, ModelFailure, ModelRequest, ModelStop, Usage } from '../types.ts'
import { cancelled } from './failure.ts'

export interface ScriptStep {
	thinking?: string
	text?: string
	/** Into how many deltas the text is split; default 1. */
	deltas?: number
	calls?: { name: string; input?: Record<string, unknown>; id?: string; badInput?: string }[]
	stop?: ModelStop
	detail?: string
	usage?: Partial<Usage>
	/** Ends the step with this failure, after its text. */
	error?: Partial<ModelFailure> & { message: string }
	delayMs?: number
	/** A text that the last message of the request must hold. */
	expect?: string
	/** Plays the step so many times. */
	repeat?: number
}

export interface Script {
	steps: ScriptStep[]
	/** The answer to each request for a summary; takes no step. */
	summary?: string
}

const stops: ModelStop[] = ['end', 'tool_calls', 'max_tokens', 'refusal', 'pause', 'context_full', 'stop_sequence']
const fields = [
	'thinking',
	'text',
	'deltas',
	'calls',
	'stop',
	'detail',
	'usage',
	'error',
	'delayMs',
	'expect',
	'repeat',
]

/** A client that answers by the script, one step a request; throws UserError for a script that has not the form. */
export function scriptedClient(script: unknown, clock: Clock): ModelClient {
	const { steps, summary } = readScript(script)
	let step = 0
	let played = 0
	let calls = 0
	return {
		async *stream(request, signal) {
			if (request.purpose === 'summary' && summary !== undefined) {
				yield* play({ text: summary }, request, 'summary')
				return
			}
			const now = steps[step]
			if (!now) {
				yield fail({ message: 'The script has ended: it has no step for this request.' })
				return
			}
			played++
			const name = `step ${step + 1}`
			if (played >= (now.repeat ?? 1)) {
				step++
				played = 0
			}
			if (now.expect !== undefined && !textOf(request.messages[request.messages.length - 1]).includes(now.expect)) {
				const last = textOf(request.messages[request.messages.length - 1])
				yield fail({
					message: `The script expected "${now.expect}" in the last message at ${name}; it was: ${last.slice(0, 400) || '(empty)'}`,
				})
				return
			}
			if (now.delayMs) await clock.sleep(now.delayMs, signal)
			if (signal.aborted) {
				yield { type: 'error', error: cancelled() }
				return
			}
			for await (const event of play(now, request, name)) {
				if (signal.aborted && event.type !== 'end' && event.type !== 'error') {
					yield { type: 'error', error: { ...cancelled(), streamed: true } }
					return
				}
				yield event
			}
		},
	}

	function* play(now: ScriptStep, request: ModelRequest, name: string): Generator<ModelEvent> {
		const blocks: Block[] = []
		if (now.thinking) {
			yield { type: 'thinking_delta', text: now.thinking }
			blocks.push({
				type: 'thinking',
				text: now.thinking,
				provider: 'script',
				model: request.model,
				raw: { field: 'script' },
			})
		}
		if (now.text) {
			const size = Math.max(1, Math.ceil(now.text.length / (now.deltas ?? 1)))
			for (let at = 0; at < now.text.length; at += size)
				yield { type: 'text_delta', text: now.text.slice(at, at + size) }
			blocks.push({ type: 'text', text: now.text })
		}
		if (now.error) {
			const usage = now.usage && { ...usageOf(now, request, name), ...now.usage }
			yield { ...fail(now.error, blocks.length > 0), ...(usage && { usage }) }
			return
		}
		let index = 0
		for (const call of now.calls ?? []) {
			const input = call.input ?? {}
			yield { type: 'call_delta', index: index++, name: call.name, chars: JSON.stringify(input).length }
			blocks.push({
				type: 'tool_call',
				id: call.id ?? `script_${++calls}`,
				name: call.name,
				input,
				...(call.badInput !== undefined && { badInput: call.badInput }),
			})
		}
		yield {
			type: 'end',
			message: { role: 'assistant', blocks },
			stop: now.stop ?? (now.calls?.length ? 'tool_calls' : 'end'),
			usage: usageOf(now, request, name),
			...(now.detail && { detail: now.detail }),
		}
	}
}

/** A script played costs nothing, and that is known. */
const usageOf = (now: ScriptStep, request: ModelRequest, _name: string): Usage => ({
	input: Math.ceil(
		(request.system.length + request.messages.reduce((sum, message) => sum + textOf(message).length, 0)) / 4,
	),
	output: Math.ceil(
		((now.text ?? '').length + (now.thinking ?? '').length + JSON.stringify(now.calls ?? '').length) / 4,
	),
	cacheRead: 0,
	cacheWrite: 0,
	thinking: 0,
	requests: 1,
	cost: 0,
	...now.usage,
})

const fail = (
	error: Partial<ModelFailure> & { message: string },
	streamed = false,
): Extract<ModelEvent, { type: 'error' }> => ({
	type: 'error',
	error: {
		code: 'invalid_request',
		retryable: false,
		...error,
		streamed,
	},
})

const textOf = (message: Message | undefined): string =>
	(message?.blocks ?? [])
		.map((block) =>
			'text' in block ? block.text : block.type === 'tool_call' ? `${block.name} ${JSON.stringify(block.input)}` : '',
		)
		.join('\n')

const readScript = (value: unknown): Script => {
	const wrong = (what: string): never => {
		throw new UserError(`The model script ${what}.`, 'The form is described in docs/testing.md.')
	}
	if (typeof value !== 'object' || value === null || !Array.isArray((value as Script).steps))
		wrong('has no list "steps"')
	const script = value as Script
	if (script.summary !== undefined && typeof script.summary !== 'string') wrong('has a "summary" that is no text')
	script.steps.forEach((step, i) => {
		const at = `has in step ${i + 1}`
		if (typeof step !== 'object' || step === null) wrong(`${at} no object`)
		for (const key of Object.keys(step)) if (!fields.includes(key)) wrong(`${at} an unknown field "${key}"`)
		for (const key of ['thinking', 'text', 'expect', 'detail'] as const)
			if (step[key] !== undefined && typeof step[key] !== 'string') wrong(`${at} a "${key}" that is no text`)
		for (const key of ['deltas', 'delayMs', 'repeat'] as const)
			if (step[key] !== undefined && !(typeof step[key] === 'number' && step[key] >= 0))
				wrong(`${at} a "${key}" that is no number`)
		if (step.stop !== undefined && !stops.includes(step.stop)) wrong(`${at} an unknown stop "${step.stop}"`)
		if (step.error !== undefined && typeof step.error?.message !== 'string') wrong(`${at} an "error" without a message`)
		if (step.calls !== undefined && !Array.isArray(step.calls)) wrong(`${at} "calls" that are no list`)
		for (const call of step.calls ?? []) if (typeof call?.name !== 'string') wrong(`${at} a call without a name`)
	})
	return script
}
