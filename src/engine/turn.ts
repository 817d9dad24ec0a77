// The loop: model → calls → results, until the model stops, a limit hits or the user does. Called by the session in engine.ts.
import { estimateTokens, messageChars, RepeatWatch, type TokenBudget } from './budget.ts'
import type { Compaction } from './context/compact.ts'
import type { History } from './history.ts'
import type { Clock, ModelClient } from './ports.ts'
import type { Gate } from './tools/invoke.ts'
import { runCalls } from './turn-calls.ts'
import { modelStep } from './turn-model.ts'
import type {
	AgentEvent,
	Effort,
	Json,
	Message,
	ModelFailure,
	ModelSpec,
	Problem,
	StopReason,
	ToolSpec,
	TurnEnd,
	Usage,
} from './types.ts'
import { addUsage, noUsage } from './types.ts'

export interface TurnDeps {
	client: ModelClient
	/** `provider/id`, as shown and recorded. */
	modelName: string
	spec: ModelSpec
	effort?: Effort
	system: string
	tools: ToolSpec[]
	gate: Gate
	history: History
	compaction: Compaction
	budget: TokenBudget
	limits: { steps: number; repeatHint: number; repeatStop: number }
	clock: Clock
	sessionId: string
	emit(event: AgentEvent): void
	/** Checks a final text against a wanted form; an error text goes back to the model, at most twice. */
	check?: (text: string) => { value: Json } | { error: string }
}

/** How long calls that were running at a stop may take to report before they are called cancelled. */
export const settleMs = 3000
const maxContinues = 3

/**
 * Runs one turn on a history that already ends with the user's message. Never throws: failures are the end's `error`.
 * On abort it settles running calls within `settleMs` and leaves a history that every provider accepts.
 */
export async function runTurn(deps: TurnDeps, signal: AbortSignal): Promise<TurnEnd> {
	const { history, clock, emit } = deps
	const started = clock.now()
	const watch = new RepeatWatch(deps.limits.repeatHint, deps.limits.repeatStop)
	const denials = new Map<string, TurnEnd['denials'][number]>()
	let usage = noUsage()
	let steps = 0
	let text = ''
	let modelMs = 0
	let firstTokenMs: number | null = null
	let structured: Json | undefined
	let continues = 0
	let corrections = 0
	let checks = 0
	const tried = { overflow: false, thinking: false, badMessage: false }
	let outputLimit = deps.spec.maxOutput

	const end = (reason: StopReason, error?: Problem): TurnEnd => ({
		reason,
		...(error ? { error } : {}),
		usage,
		steps,
		text,
		denials: [...denials.values()],
		durationMs: clock.now() - started,
		modelMs,
		firstTokenMs,
		...(structured === undefined ? {} : { structured }),
	})
	/** Text for the model from Garuda itself, as a user message. */
	const tell = (note: string) =>
		history.append({ role: 'user', blocks: [{ type: 'text', text: note }] }, { type: 'note' })

	for (;;) {
		if (signal.aborted) return end('cancelled')
		if (steps >= deps.limits.steps) return end('max_steps')

		if (deps.compaction.due(history.tokens(), outputLimit)) {
			const result = await deps.compaction.run('full', signal)
			usage = addUsage(usage, result.usage)
			if (signal.aborted) return end('cancelled')
			if (result.problem) return end('error', result.problem)
		}

		const input = history.tokens()
		const price = deps.spec.price
		const held = deps.budget.reserve(
			input,
			outputLimit,
			price && { input: price.input / 1e6, output: price.output / 1e6 },
		)
		if (typeof held === 'string') return end(held)
		steps++
		emit({ type: 'step_start', step: steps })
		const before = clock.now()
		const step = await modelStep(
			deps,
			{ maxOutput: held.maxOutput, firstToken: () => (firstTokenMs ??= clock.now() - started) },
			signal,
		)
		modelMs += clock.now() - before
		const spent = step.usage && { ...step.usage, requests: step.usage.requests || 1 }
		const tokens = spent && spent.input + spent.cacheRead + spent.cacheWrite + spent.output
		held.settle(spent ? { tokens: tokens!, cost: spent.cost } : null)
		// A request refused before it said anything costs nothing; of one that broke off the cost is not known.
		const shown = step.type === 'error' ? step.error.streamed : true
		usage = addUsage(usage, spent ?? { ...noUsage(), requests: 1, cost: shown ? null : 0 })
		if (step.type === 'message' && tokens) history.measured(step.context ?? tokens)

		if (step.type === 'cancelled') {
			// What the user saw stays; what the model had not finished does not.
			if (step.text.trim() !== '') {
				text = step.text
				await history.append({ role: 'assistant', blocks: [{ type: 'text', text: step.text }] }, stopped(deps, spent))
			}
			return end('cancelled')
		}
		if (step.type === 'error') {
			const again = await recover(step.error)
			if (again === 'again') continue
			return end(step.error.code === 'refused' ? 'refusal' : 'error', again ?? step.error)
		}

		const { stop } = step
		const message = shallow(step.message)
		const cut = /^context_cut:(\d+)$/.exec(step.detail ?? '')
		if (cut) deps.compaction.learnWindow(Number(cut[1]))
		const said = message.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
		if (said !== '') text = said
		const recorded = { type: 'assistant' as const, usage: spent ?? noUsage(), model: deps.modelName, stop }
		const id = step.requestId === undefined ? {} : { requestId: step.requestId }
		await history.append(message, { ...recorded, ...id })
		emit({ type: 'message', message, usage: spent ?? noUsage(), model: deps.modelName, stop, ...id })

		const calls = message.blocks.filter((block) => block.type === 'tool_call')
		const stepEnd = () =>
			emit({ type: 'step_end', step: steps, usage: spent ?? noUsage(), contextTokens: history.tokens() })

		if (stop === 'max_tokens' || stop === 'context_full') {
			// A cut reply runs nothing: its last call may be half a file.
			if (calls.length > 0)
				await history.append(
					{
						role: 'user',
						blocks: calls.map((call) => ({
							type: 'tool_result',
							callId: call.id,
							status: 'failed',
							text: 'Not run: the reply was cut at the output limit. For a long file, write a part first and add the rest with further edits.',
						})),
					},
					{ type: 'results' },
				)
			stepEnd()
			if (stop === 'context_full') {
				const result = await deps.compaction.run('overflow', signal)
				usage = addUsage(usage, result.usage)
				if (result.problem) return end('max_tokens', result.problem)
			}
			if (++continues > maxContinues || held.maxOutput < outputLimit) return end('max_tokens')
			emit({
				type: 'notice',
				level: 'info',
				text: `The reply was cut at ${held.maxOutput} tokens; asking the model to go on (${continues} of ${maxContinues}).`,
			})
			outputLimit = Math.min(deps.spec.maxOutput, Math.max(outputLimit, 32_000))
			await tell(
				'Your reply was cut at the output limit. Go on exactly where it stopped; do not repeat what you wrote.',
			)
			continue
		}
		if (stop === 'refusal') {
			stepEnd()
			return end('refusal', {
				code: 'refused',
				message: 'The model refused to go on with this request.',
				...(step.detail ? { hint: `It gave the category: ${step.detail}.` } : {}),
			})
		}
		if (stop === 'pause') {
			stepEnd()
			continue
		}
		if (calls.length === 0) {
			stepEnd()
			if (step.detail === 'leaked_tool_call' && corrections++ < 1) {
				await tell(
					'Your last reply held a tool call written as text, so nothing ran. Call tools through the tool interface only.',
				)
				continue
			}
			if (said === '' && message.blocks.every((block) => block.type === 'thinking') && corrections++ < 1) {
				await tell('Your last reply was empty. Finish the task, or say in a sentence what you found.')
				continue
			}
			if (deps.check) {
				const checked = deps.check(said)
				if ('value' in checked) structured = checked.value
				else if (checks++ < 2) {
					await tell(`The answer does not have the wanted form: ${checked.error}\nAnswer again with the JSON alone.`)
					continue
				} else
					return end('error', {
						code: 'invalid_output',
						message: `The model's answer does not fit the JSON schema: ${checked.error}`,
						hint: 'Try again, or a simpler schema.',
					})
			}
			return end('done')
		}

		const outcomes = await runCalls(deps.gate, calls, signal, clock, settleMs)
		let verdict: 'go' | 'hint' | 'stop' = watch.step(
			calls
				.map((call, i) => `${call.name} ${JSON.stringify(call.input)} ${outcomes[i]!.status} ${outcomes[i]!.text}`)
				.join('\n'),
		)
		for (const [i, outcome] of outcomes.entries()) {
			const call = calls[i]!
			if (outcome.denied !== undefined && outcome.status !== 'cancelled') {
				denials.set(`${outcome.key}\n${call.id}`, {
					callId: call.id,
					tool: outcome.name,
					input: call.input,
					reason: outcome.denied,
				})
				if (outcome.status === 'denied' && watch.deniedCall(outcome.name, call.input) === 'stop') verdict = 'stop'
			} else if (outcome.status === 'ok') {
				watch.allowedCall()
				for (const key of denials.keys()) if (key.startsWith(`${outcome.key}\n`)) denials.delete(key)
			}
		}
		const results: Message = {
			role: 'user',
			blocks: outcomes.map((outcome, i) => ({
				type: 'tool_result',
				callId: calls[i]!.id,
				status: outcome.status,
				text: outcome.text,
				...(outcome.images ? { images: outcome.images } : {}),
			})),
		}
		if (verdict === 'hint')
			results.blocks.push({
				type: 'text',
				text: 'The same calls gave the same results again. Do something else, or say what stands in the way.',
			})
		await history.append(results, { type: 'results' })
		stepEnd()
		if (signal.aborted || outcomes.some((outcome) => outcome.cancelTurn)) return end('cancelled')
		if (verdict === 'stop') return end('repeated_calls')
	}

	/** What can be mended once is; `again` means the request is made anew. A returned problem replaces the error shown. */
	async function recover(error: ModelFailure): Promise<'again' | Problem | null> {
		if (signal.aborted) return null
		if (error.thinkingBinding && !tried.thinking) {
			tried.thinking = true
			history.stripThinking()
			emit({
				type: 'notice',
				level: 'info',
				text: 'The provider refused earlier thinking; sending once more without it.',
			})
			return 'again'
		}
		if ((error.badMessage !== undefined || error.badImage) && !tried.badMessage) {
			tried.badMessage = true
			const what = error.badMessage === undefined ? history.leaveOutImages() : history.neutralise(error.badMessage)
			if (!what) return null
			emit({
				type: 'notice',
				level: 'warning',
				text: `The provider refused one item of the conversation (${what}); it is left out from now on.`,
			})
			return 'again'
		}
		if (error.code === 'overflow' && !tried.overflow) {
			tried.overflow = true
			if (error.window) deps.compaction.learnWindow(error.window)
			const result = await deps.compaction.run('overflow', signal)
			usage = addUsage(usage, result.usage)
			return result.problem ? { ...result.problem, message: `${error.message} ${result.problem.message}` } : 'again'
		}
		return null
	}
}

const stopped = (deps: TurnDeps, usage: Usage | null | undefined) => ({
	type: 'assistant' as const,
	usage: usage ?? noUsage(),
	model: deps.modelName,
	stop: 'cancelled',
})

/** Tokens that a request of these messages would carry, before any answer has been measured. */
export const roughTokens = (system: string, tools: readonly ToolSpec[], messages: readonly Message[]): number =>
	estimateTokens(
		system.length +
			tools.reduce((sum, tool) => sum + tool.description.length + JSON.stringify(tool.schema).length + 40, 0) +
			messageChars(messages),
	)

const maxDepth = 100

/** Arguments nested so deeply that they cannot be shown or recorded are no arguments: the call is answered, never run. */
function shallow(message: Message): Message {
	if (!message.blocks.some((block) => block.type === 'tool_call' && deeper(block.input, maxDepth))) return message
	const blocks = message.blocks.map((block) =>
		block.type === 'tool_call' && deeper(block.input, maxDepth)
			? { ...block, input: {}, badInput: `(nested more than ${maxDepth} levels deep)` }
			: block,
	)
	return { ...message, blocks }
}

const deeper = (value: unknown, levels: number): boolean =>
	typeof value === 'object' &&
	value !== null &&
	(levels === 0 || Object.values(value).some((inner) => deeper(inner, levels - 1)))
