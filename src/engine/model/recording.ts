// Writes a live run as a script that scriptedClient plays: a model's answers kept for a test, without its wire.
import type { ModelClient } from '../ports.ts'
import type { Message } from '../types.ts'
import type { Script, ScriptStep } from './scripted.ts'

export type RecordedEntry = { kind: 'step'; step: ScriptStep } | { kind: 'summary'; text: string }

/** Passes everything through; `write` gets one entry per request when it has ended. Text is given as it came: redact before keeping it. */
export function recordingClient(inner: ModelClient, write: (entry: RecordedEntry) => void): ModelClient {
	return {
		async *stream(request, signal) {
			let deltas = 0
			for await (const event of inner.stream(request, signal)) {
				if (event.type === 'text_delta') deltas++
				if (event.type === 'retry' && event.void) deltas = 0
				if (event.type === 'end') {
					const step = stepOf(event.message)
					if (request.purpose === 'summary') write({ kind: 'summary', text: step.text ?? '' })
					else
						write({
							kind: 'step',
							step: {
								...step,
								...(deltas > 1 && { deltas }),
								stop: event.stop,
								usage: event.usage,
								...(event.detail && { detail: event.detail }),
							},
						})
				}
				if (event.type === 'error') {
					const { streamed: _, ...error } = event.error
					write({ kind: 'step', step: { error, ...(event.usage && { usage: event.usage }) } })
				}
				yield event
			}
		},
	}
}

const stepOf = ({ blocks }: Message): ScriptStep => {
	const join = (type: 'text' | 'thinking') =>
		blocks.flatMap((block) => (block.type === type ? [block.text] : [])).join('\n\n')
	const calls = blocks.flatMap((block) =>
		block.type === 'tool_call'
			? [
					{
						id: block.id,
						name: block.name,
						input: block.input,
						...(block.badInput !== undefined && { badInput: block.badInput }),
					},
				]
			: [],
	)
	const [thinking, text] = [join('thinking'), join('text')]
	return { ...(thinking && { thinking }), ...(text && { text }), ...(calls.length && { calls }) }
}

/** The script of a run's entries; the last summary stands for all. */
export function scriptOf(entries: RecordedEntry[]): Script {
	const steps = entries.flatMap((entry) => (entry.kind === 'step' ? [entry.step] : []))
	const summary = entries.findLast((entry) => entry.kind === 'summary')
	return { steps, ...(summary?.kind === 'summary' && { summary: summary.text }) }
}
