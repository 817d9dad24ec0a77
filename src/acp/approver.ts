// Who answers the gate's questions in an editor: the person, by session/request_permission or a form. Called by the engine through the port.
import type {
	AgentContext,
	CreateElicitationRequest,
	PermissionOption,
	RequestPermissionRequest,
	ToolCallContent,
} from '@agentclientprotocol/sdk'
import {
	type Answer,
	type ApprovalRequest,
	type Approver,
	type Choice,
	oneLine,
	partsOf,
	visible,
} from '../engine/index.ts'
import type { Call, KnownCalls } from './calls.ts'
import type { SessionChannel } from './channel.ts'
import type { ClientSide } from './client-side.ts'
import { changeContent, commandTitle, fenced, inFolder, textContent } from './tool-calls.ts'

/** The editor's side of a session, known once it is open. */
export interface Asking {
	sessionId: string
	channel: SessionChannel
	calls: KnownCalls
}

const deny: Answer = { choice: 'deny' }
const words: Record<Choice, string> = {
	once: 'Allow once',
	session: 'Allow for this session',
	deny: 'Deny',
	cancel: 'Stop',
}
const kinds = { once: 'allow_once', session: 'allow_always', deny: 'reject_once', cancel: 'reject_once' } as const
const allowed = (choice: Choice): boolean => choice === 'once' || choice === 'session'

/** An answer that was not offered, or that comes after a stop, is a no. A request that fails ends question and turn. */
export class AcpApprover implements Approver {
	/** Set when the session is open; before that only a form bound to `requestId` can ask. */
	at: Asking | null = null
	private readonly client: AgentContext
	private readonly side: ClientSide
	private readonly requestId: string | number | null

	constructor(client: AgentContext, side: ClientSide, requestId: string | number | null) {
		this.client = client
		this.side = side
		this.requestId = requestId
	}

	async ask(request: ApprovalRequest, signal: AbortSignal): Promise<Answer> {
		if (signal.aborted) return deny
		if (!this.at) return this.side.forms ? this.form(request, { requestId: this.requestId }, signal) : deny
		const { channel, calls } = this.at
		// No turn runs, so nobody is looking at one.
		if (!channel.open) return deny
		const call = calls.get(request.callId)
		const toolCallId = call?.id ?? calls.questionId()
		const shown = { title: questionTitle(request), content: questionContent(request) }
		if (!call) channel.send({ sessionUpdate: 'tool_call', toolCallId, kind: 'other', status: 'pending', ...shown })
		const answer = await this.permission(this.at, request, call, toolCallId, shown, signal)
		if (!call)
			channel.send({
				sessionUpdate: 'tool_call_update',
				toolCallId,
				status: allowed(answer.choice) ? 'completed' : 'failed',
			})
		return answer
	}

	private async permission(
		at: Asking,
		request: ApprovalRequest,
		call: Call | undefined,
		toolCallId: string,
		shown: { title: string; content: ToolCallContent[] },
		signal: AbortSignal,
	): Promise<Answer> {
		const hunks = this.side.forms ? partsOf(request) : []
		const options: PermissionOption[] = request.choices.map((choice) => ({
			optionId: choice,
			name: oneLine(request.labels?.[choice] ?? words[choice]),
			kind: kinds[choice],
		}))
		if (hunks.length > 1)
			options.splice(1, 0, { optionId: 'parts', name: `Choose from its ${hunks.length} parts …`, kind: 'allow_once' })
		const ask: RequestPermissionRequest = {
			sessionId: at.sessionId,
			toolCall: {
				toolCallId,
				status: 'pending',
				kind: call?.shown.kind ?? 'other',
				...(call && call.shown.rawInput !== undefined ? { rawInput: call.shown.rawInput } : {}),
				...(call && call.shown.locations.length > 0 ? { locations: call.shown.locations } : {}),
				...shown,
			},
			options,
		}
		try {
			const stop = { cancellationSignal: signal, stopWaitingOnCancel: true }
			const { outcome } = await this.client.request('session/request_permission', ask, stop)
			if (signal.aborted) return deny
			// The person stopped the turn: that is no answer to this one question.
			if (outcome.outcome === 'cancelled') return { choice: 'cancel' }
			if (outcome.optionId === 'parts' && hunks.length > 1)
				return await this.parts(at.sessionId, toolCallId, request, hunks, call, signal)
			const choice = request.choices.find((one) => one === outcome.optionId)
			return choice === undefined ? deny : { choice }
		} catch {
			return signal.aborted ? deny : { choice: 'cancel' }
		}
	}

	/** Which parts of a change are taken; no part is a no. */
	private async parts(
		sessionId: string,
		toolCallId: string,
		request: ApprovalRequest,
		hunks: string[],
		call: Call | undefined,
		signal: AbortSignal,
	): Promise<Answer> {
		const parts = hunks.map((text, i) => ({ const: String(i), title: partTitle(i, text) }))
		const answer = await this.elicit(
			{
				mode: 'form',
				sessionId,
				toolCallId,
				message: `${oneLine(request.title)}\n\nWhich of its ${hunks.length} parts shall be done?\n\n${hunks
					.map((text, i) => `Part ${i + 1}\n${fenced(visible(text), 'diff')}`)
					.join('\n\n')}`,
				requestedSchema: {
					type: 'object',
					properties: {
						parts: { type: 'array', title: 'Parts', items: { anyOf: parts }, default: parts.map((one) => one.const) },
					},
					required: ['parts'],
				},
			},
			signal,
		)
		const chosen = answer?.parts
		if (!Array.isArray(chosen)) return deny
		const accepted = parts.flatMap((one, i) => (chosen.includes(one.const) ? [i] : []))
		if (accepted.length === 0) return deny
		if (accepted.length === hunks.length) return { choice: 'once' }
		if (call) call.partly = true
		return { choice: 'once', accepted }
	}

	/** A question outside a session (the project's own settings at its start), as a form of one choice. */
	private async form(request: ApprovalRequest, scope: { requestId: string | number | null }, signal: AbortSignal) {
		const message = [oneLine(request.title), request.warning, visible(request.preview)].filter(Boolean).join('\n\n')
		const choices = request.choices.map((choice) => ({
			const: choice,
			title: oneLine(request.labels?.[choice] ?? words[choice]),
		}))
		const answer = await this.elicit(
			{
				mode: 'form',
				...scope,
				message,
				requestedSchema: {
					type: 'object',
					properties: { answer: { type: 'string', title: 'Answer', oneOf: choices, default: 'deny' } },
					required: ['answer'],
				},
			},
			signal,
		)
		const choice = request.choices.find((one) => one === answer?.answer)
		return choice === undefined ? deny : { choice }
	}

	/** What was filled in; null when it was declined, closed or failed. */
	private async elicit(form: CreateElicitationRequest, signal: AbortSignal): Promise<Record<string, unknown> | null> {
		try {
			const stop = { cancellationSignal: signal, stopWaitingOnCancel: true }
			const answer = await this.client.request('elicitation/create', form, stop)
			if (signal.aborted || answer.action !== 'accept' || !('content' in answer)) return null
			return (answer.content as Record<string, unknown> | null | undefined) ?? null
		} catch {
			return null
		}
	}
}

const partTitle = (index: number, text: string): string => {
	const header = /^@@ .*/m.exec(text)?.[0] ?? ''
	return `Part ${index + 1}${header ? ` ${oneLine(header, 80)}` : ''}`
}

/** The whole command where a command is asked about: a title that leaves a part out would hide what runs. */
function questionTitle({ effect, info, title }: ApprovalRequest): string {
	const outside =
		effect?.type === 'outside_sandbox' ? effect.command : info.outside && !effect ? info.command : undefined
	if (outside !== undefined) return `Run outside the sandbox: ${commandTitle(outside)}`
	if (effect === undefined && info.command !== undefined) return commandTitle(info.command)
	return oneLine(title)
}

/** Everything that will happen: the warning first, then the command, the text or the change. */
export function questionContent(request: ApprovalRequest): ToolCallContent[] {
	const { effect, info } = request
	const content: ToolCallContent[] = []
	if (request.warning) content.push(textContent(visible(request.warning)))
	const command = effect && 'command' in effect ? effect.command : info.command
	const cwd = effect && 'cwd' in effect ? effect.cwd : info.cwd
	if (command !== undefined && cwd !== undefined) content.push(textContent(inFolder(cwd)))
	// The preview is all of it: the command, what staged changes come to, a secret with the hosts that get it.
	if (request.preview.trim() !== '')
		content.push(textContent(fenced(visible(request.preview), request.preview === command ? 'sh' : '')))
	if (command !== undefined && info.preview && !effect) content.push(textContent(visible(info.preview)))
	if (info.change && effect === undefined) content.push(...changeContent(info.change))
	if (request.lastingRule)
		content.push(textContent(`To answer this for good, in settings.json: ${fencedLine(request.lastingRule)}`))
	return content
}

const fencedLine = (text: string): string => `\`${oneLine(text, 500).replaceAll('`', "'")}\``
