// --debug: what happened, a JSON object a line, without secrets. Written by the engine's debug hook and by the front end's events.
import { appendFileSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentEvent, Json } from '../engine/index.ts'

export interface DebugLog {
	readonly path: string
	write(line: Record<string, Json>): void
	/** The parts of an event that help to find a fault: ids, sizes, times, errors; no text of the conversation. */
	event(event: AgentEvent): void
}

/** Makes the file, for its user only, in Garuda's own folder. Throws what the file system says. */
export function createDebugLog(garudaHome: string, version: string, now: () => Date = () => new Date()): DebugLog {
	let folder = garudaHome
	for (const part of ['', 'logs']) {
		folder = part === '' ? folder : join(folder, part)
		try {
			mkdirSync(folder, 0o700)
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
		}
	}
	const path = join(folder, `${now().toISOString().replace(/[:.]/g, '-')}-${process.pid}.jsonl`)
	// Exclusive: never through a link that somebody put there.
	const file = openSync(path, 'ax', 0o600)
	const write = (line: Record<string, Json>) => {
		try {
			appendFileSync(file, `${JSON.stringify({ time: now().toISOString(), ...line })}\n`)
		} catch {
			// A full disk must not end the work that is being looked at.
		}
	}
	write({ at: 'start', version, node: process.version, platform: process.platform })
	return {
		path,
		write,
		event(event) {
			const line = eventLine(event)
			if (line) write(line)
		},
	}
}

function eventLine(event: AgentEvent): Record<string, Json> | null {
	switch (event.type) {
		case 'message': {
			const { requestId, model, stop, usage } = event
			return { at: 'message', model, stop, usage: { ...usage }, ...(requestId === undefined ? {} : { requestId }) }
		}
		case 'tool_call':
			return { at: 'call', id: event.callId, tool: event.name }
		case 'tool_result':
			return { at: 'result', id: event.callId, tool: event.name, status: event.status, chars: event.text.length }
		case 'model_retry':
			return { at: 'retry', attempt: event.attempt, of: event.of, delayMs: event.delayMs, reason: event.reason }
		case 'compaction':
			return { at: 'compaction', phase: event.phase, before: event.before }
		case 'answer':
			return { at: 'answer', id: event.id, choice: event.choice }
		case 'turn_end': {
			const { reason, error, steps, durationMs, modelMs, firstTokenMs } = event.end
			const problem = error
				? {
						code: error.code,
						message: error.message,
						...(error.status === undefined ? {} : { status: error.status }),
						...(error.requestId === undefined ? {} : { requestId: error.requestId }),
					}
				: null
			return { at: 'end', reason, steps, durationMs, modelMs, firstTokenMs, ...(problem ? { error: problem } : {}) }
		}
		default:
			return null
	}
}
