// The engine's events as session updates. Between a session of the engine and its channel.
import type { PlanEntry } from '@agentclientprotocol/sdk'
import {
	type AgentEvent,
	type CallStatus,
	clip,
	cutTail,
	type Json,
	oneLine,
	type Usage,
	visible,
} from '../engine/index.ts'
import type { Call, KnownCalls } from './calls.ts'
import type { SessionChannel } from './channel.ts'
import type { ClientSide } from './client-side.ts'
import { describeCall, fenced, resultContent, textContent } from './tool-calls.ts'

/** A running command's output shows at most so much of its end, and a new state at most so often. */
const outputTail = 8000
const outputMs = 100

export interface MapperDeps {
	channel: SessionChannel
	calls: KnownCalls
	client: ClientSide
	/** The window of the model in use, or null when it is not known. */
	window(): number | null
	/** What the session has used before this turn. */
	usedBefore(): Usage
	/** The options changed by something in the turn (a slash command). */
	optionsChanged(): void
	now(): number
}

export class EventMapper {
	private readonly d: MapperDeps
	private readonly asked = new Map<string, Call>()
	private readonly lastOutput = new Map<string, number>()
	private turnCost: number | null = 0
	private stopping = false
	/** Titles of the calls that the stop ended. */
	private ended = new Set<string>()
	private compactions = 0

	constructor(deps: MapperDeps) {
		this.d = deps
	}

	begin(): void {
		this.turnCost = 0
		this.stopping = false
		this.ended = new Set()
	}

	/** The editor (or an answer) stopped the turn: what ends from here on was ended by it. */
	stop(): void {
		this.stopping = true
	}

	/** After the turn: no call stays open in the editor. Gives the titles of what the stop ended. */
	settle(): string[] {
		for (const call of this.d.calls.open()) this.finish(call, 'cancelled', 'Cancelled.')
		this.d.calls.forget()
		this.asked.clear()
		this.lastOutput.clear()
		return [...this.ended]
	}

	/** Called synchronously as things happen, so that a question never overtakes its call. */
	event(event: AgentEvent): void {
		const { channel, calls } = this.d
		switch (event.type) {
			case 'text_delta':
				channel.text('agent_message_chunk', event.text)
				break
			case 'thinking_delta':
				channel.text('agent_thought_chunk', event.text)
				break
			case 'message':
				channel.endMessage()
				break
			case 'tool_call': {
				const call = calls.add(event.callId, event.name, describeCall(event.name, event.input, event.info))
				const { id, name, shown } = call
				channel.send({ sessionUpdate: 'tool_call', status: 'pending', toolCallId: id, name, ...shown })
				break
			}
			case 'tool_progress': {
				const call = calls.get(event.callId)
				if (call) this.progress(call, event.text)
				break
			}
			case 'question': {
				const call = calls.get(event.request.callId)
				if (!call) break
				this.asked.set(event.request.id, call)
				// A running call that wants more waits for the answer, like one that has not begun.
				if (call.status === 'in_progress') this.status(call, 'pending')
				break
			}
			case 'answer': {
				const call = this.asked.get(event.id)
				this.asked.delete(event.id)
				if (event.choice === 'cancel') this.stop()
				const allowed = event.choice === 'once' || event.choice === 'session'
				if (call && allowed) this.status(call, 'in_progress')
				break
			}
			case 'tool_result': {
				const call = calls.get(event.callId)
				if (!call) break
				this.finish(call, event.status, event.text)
				const steps = event.name === 'todo_write' && event.status === 'ok' ? stepsOf(event.data) : null
				if (steps) channel.send({ sessionUpdate: 'plan', entries: planEntries(steps) })
				break
			}
			case 'server_tool':
				this.serverTool(event)
				break
			case 'notice':
				this.notice(event.level, event.text)
				break
			case 'model_retry': {
				const wait = event.delayMs >= 1000 ? ` in ${Math.round(event.delayMs / 1000)} s` : ''
				const again = event.void ? ' The answer starts again; what stands above of it does not count.' : ''
				this.notice('warning', `${event.reason} Trying again${wait} (${event.attempt} of ${event.of}).${again}`)
				break
			}
			case 'compaction':
				this.compaction(event)
				break
			case 'step_end': {
				const { cost } = event.usage
				this.turnCost = this.turnCost === null || cost === null ? null : this.turnCost + cost
				this.usage(event.contextTokens)
				break
			}
			case 'mode':
				channel.send({ sessionUpdate: 'current_mode_update', currentModeId: event.mode })
				this.d.optionsChanged()
				break
			case 'model':
				this.d.optionsChanged()
				break
			case 'title': {
				const updatedAt = new Date(this.d.now()).toISOString()
				channel.send({ sessionUpdate: 'session_info_update', title: oneLine(event.title), updatedAt })
				break
			}
		}
	}

	/** A word for the person: as a notice where the editor offers that, else as a line. */
	notice(level: 'info' | 'warning' | 'error', text: string): void {
		const { channel, client } = this.d
		if (!client.notices) {
			channel.line(text)
			return
		}
		const [title = '', ...rest] = visible(text).trim().split('\n')
		const description = rest.join('\n').trim()
		channel.send({ sessionUpdate: 'notice', severity: level, title, ...(description ? { description } : {}) })
	}

	/** How full the context is, and what the session has cost so far. */
	usage(contextTokens: number): void {
		const before = this.d.usedBefore().cost
		const amount = before === null || this.turnCost === null ? null : before + this.turnCost
		this.d.channel.send({
			sessionUpdate: 'usage_update',
			used: contextTokens,
			// The protocol wants a size: without a known window it is the one that the engine assumes.
			size: this.d.window() ?? 128_000,
			...(amount === null ? {} : { cost: { amount, currency: 'USD' } }),
		})
	}

	/** `in_progress` is never said before a call is allowed: some editors would hide the question then. */
	private status(call: Call, status: 'pending' | 'in_progress'): void {
		if (call.status === status || call.result) return
		call.status = status
		this.d.channel.send({ sessionUpdate: 'tool_call_update', toolCallId: call.id, status })
	}

	private progress(call: Call, text: string): void {
		if (call.result) return
		if (text === '') {
			this.status(call, 'in_progress')
			return
		}
		// A line that is not at its end yet comes again.
		if (text.startsWith('\r')) return
		call.output = cutTail(call.output === '' ? text : `${call.output}\n${text}`, outputTail)
		call.status = 'in_progress'
		const now = this.d.now()
		if (now - (this.lastOutput.get(call.id) ?? 0) < outputMs) return
		this.lastOutput.set(call.id, now)
		// `content` replaces what was there: all of it each time.
		const content = [...call.shown.content, textContent(fenced(visible(call.output)))]
		this.d.channel.send({ sessionUpdate: 'tool_call_update', toolCallId: call.id, status: 'in_progress', content })
	}

	private finish(call: Call, status: CallStatus, text: string): void {
		if (call.result) return
		// What reports after a stop was ended by it, whatever it says of itself.
		const stopped = this.stopping || status === 'cancelled'
		if (stopped) this.ended.add(call.shown.title)
		const ok = status === 'ok' && !stopped
		const words =
			status === 'ok' || status === 'failed' ? resultContent(text) : [textContent(visible(clip(text, 4000)))]
		// A change that was made keeps its diff; any other end says why.
		const diff = call.shown.content.some((one) => one.type === 'diff')
		call.result = diff && ok && !call.partly ? call.shown.content : [...call.shown.content, ...words]
		call.status = ok ? 'completed' : 'failed'
		this.d.channel.send({
			sessionUpdate: 'tool_call_update',
			toolCallId: call.id,
			status: call.status,
			content: call.result,
		})
	}

	private serverTool({ id, name, input, result }: Extract<AgentEvent, { type: 'server_tool' }>): void {
		const { channel, calls } = this.d
		let call = calls.get(`server-${id}`)
		if (!call) {
			const query = typeof input === 'object' && input !== null && !Array.isArray(input) ? input.query : undefined
			const title = typeof query === 'string' ? `Search the web: ${query}` : name
			call = calls.add(`server-${id}`, name, { title: oneLine(title), kind: 'fetch', locations: [], content: [] })
			call.status = 'in_progress'
			channel.send({ sessionUpdate: 'tool_call', status: 'in_progress', toolCallId: call.id, name, ...call.shown })
		}
		if (result !== undefined)
			this.finish(call, 'ok', typeof result === 'string' ? result : JSON.stringify(result, null, 1))
	}

	private compaction(event: Extract<AgentEvent, { type: 'compaction' }>): void {
		const { channel, client } = this.d
		if (client.compaction) {
			if (event.phase === 'start') this.compactions++
			const status = { start: 'in_progress', done: 'completed', failed: 'failed' }[event.phase]
			const error = event.phase === 'failed' && event.text ? { error: visible(event.text) } : {}
			const compactionId = `compaction-${this.compactions}`
			channel.send({ sessionUpdate: 'compaction_update', compactionId, status, ...error })
			return
		}
		const tokens = (count: number) => count.toLocaleString('en')
		channel.line(
			event.phase === 'start'
				? 'The conversation is summarised to make room …'
				: event.phase === 'done'
					? `Summarised: from about ${tokens(event.before)} to ${tokens(event.after ?? 0)} tokens.`
					: `The conversation could not be summarised${event.text ? `: ${event.text}` : '.'}`,
		)
	}
}

const stepsOf = (data: Json | undefined): Json[] | null =>
	typeof data === 'object' && data !== null && !Array.isArray(data) && Array.isArray(data.todo) ? data.todo : null

/** The list of steps as the editor's plan. */
export const planEntries = (data: readonly Json[]): PlanEntry[] =>
	data.flatMap((item): PlanEntry[] => {
		if (typeof item !== 'object' || item === null || Array.isArray(item) || typeof item.text !== 'string') return []
		const status = item.status === 'done' ? 'completed' : item.status === 'doing' ? 'in_progress' : 'pending'
		return [{ content: visible(item.text), priority: 'medium', status }]
	})
