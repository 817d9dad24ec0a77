// A recorded session as the updates that made it, for an editor that opens it again. Pure; used by session/load.
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { type Block, clip, type SessionRecord, stripEscapes, visible } from '../engine/index.ts'
import type { Call, KnownCalls } from './calls.ts'
import { describeCall, resultContent, textContent } from './tool-calls.ts'
import { planEntries } from './updates.ts'

/**
 * Everything that was said and done, in order: also what a compaction has summarised since, but not what an undo took
 * back. What the user sees is their own words and pictures, not the notes and texts that went with them. A call without a
 * recorded result is shown as `live` knows it, else as broken off.
 */
export function replay(records: readonly SessionRecord[], calls: KnownCalls, live: KnownCalls | null): SessionUpdate[] {
	const kept = standing(records)
	const updates: SessionUpdate[] = []
	const open = new Map<string, { call: Call; input: Record<string, unknown> }>()
	let messages = 0
	const say = (
		kind: 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk',
		text: string,
		id: string,
	) => {
		if (text.trim() !== '')
			updates.push({ sessionUpdate: kind, content: { type: 'text', text: visible(text) }, messageId: id })
	}
	/** Calls of a message that never got their results: the run was broken off there. */
	const close = (): void => {
		for (const [engineId, { call }] of open) {
			const now = live?.get(engineId)
			if (now && now.result === null) {
				// It runs in this very session: the same entry goes on.
				const at = updates.findIndex((one) => 'toolCallId' in one && one.toolCallId === call.id)
				const entry = updates[at]
				if (entry && 'toolCallId' in entry) entry.toolCallId = now.id
				updates.push({ sessionUpdate: 'tool_call_update', toolCallId: now.id, status: now.status })
				continue
			}
			const content = now?.result ?? [textContent('Broken off: there is no result on record.')]
			const status = now?.status ?? 'failed'
			updates.push({ sessionUpdate: 'tool_call_update', toolCallId: call.id, status, content })
		}
		open.clear()
	}

	for (const record of kept) {
		const id = `replay-${++messages}`
		if (record.type === 'user') {
			close()
			if (record.prompt !== '') {
				say('user_message_chunk', record.prompt, id)
				for (const block of record.message.blocks)
					if (block.type === 'image')
						updates.push({
							sessionUpdate: 'user_message_chunk',
							content: { type: 'image', data: block.data, mimeType: block.mime },
							messageId: id,
						})
			} else ownCommand(record.message.blocks, calls, updates)
		} else if (record.type === 'assistant') {
			close()
			for (const block of record.message.blocks)
				if (block.type === 'thinking') say('agent_thought_chunk', block.text, id)
				else if (block.type === 'text') say('agent_message_chunk', block.text, id)
				else if (block.type === 'tool_call') {
					const call = calls.add(block.id, block.name, describeCall(block.name, block.input))
					open.set(block.id, { call, input: block.input })
					updates.push({
						sessionUpdate: 'tool_call',
						status: 'pending',
						toolCallId: call.id,
						name: call.name,
						...call.shown,
					})
				}
		} else if (record.type === 'results') {
			for (const block of record.message.blocks) {
				if (block.type !== 'tool_result') continue
				const found = open.get(block.callId)
				if (!found) continue
				open.delete(block.callId)
				const ok = block.status === 'ok'
				const words =
					ok || block.status === 'failed' ? resultContent(block.text) : [textContent(visible(clip(block.text, 4000)))]
				updates.push({
					sessionUpdate: 'tool_call_update',
					toolCallId: found.call.id,
					status: ok ? 'completed' : 'failed',
					content: [...found.call.shown.content, ...words],
				})
				const { items } = found.input
				if (ok && found.call.name === 'todo_write' && Array.isArray(items))
					updates.push({ sessionUpdate: 'plan', entries: planEntries(items) })
			}
		}
	}
	close()
	return updates
}

/** The records of the turns that stand: what an undo took back is left out, what a redo brought back is in. */
function standing(records: readonly SessionRecord[]): SessionRecord[] {
	let turns: SessionRecord[][] = []
	let undone: SessionRecord[][] = []
	for (const record of records) {
		if (record.type === 'undo') {
			const last = turns.pop()
			if (last) undone.push(last)
		} else if (record.type === 'redo') {
			const again = undone.pop()
			if (again) turns.push(again)
		} else if (record.type === 'user' && record.prompt !== '') {
			undone = []
			turns.push([record])
		} else if (turns.length === 0) turns = [[record]]
		else turns.at(-1)!.push(record)
	}
	return turns.flat()
}

/** A command that the user ran with `!`: shown as a call that ended. */
function ownCommand(blocks: readonly Block[], calls: KnownCalls, updates: SessionUpdate[]): void {
	for (const block of blocks) {
		if (block.type !== 'text') continue
		const match = /^<garuda-user-command status="(\w+)">\n([\s\S]*)\n<\/garuda-user-command>$/.exec(block.text)
		if (!match) continue
		updates.push({
			sessionUpdate: 'tool_call',
			toolCallId: calls.unique('user-command'),
			title: 'Your own command',
			kind: 'execute',
			status: match[1] === 'ok' ? 'completed' : 'failed',
			content: resultContent(stripEscapes(match[2]!)),
		})
	}
}
