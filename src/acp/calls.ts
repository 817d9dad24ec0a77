// The tool calls that the editor knows, by the engine's ids. Used by updates, approver and replay.
import type { ToolCallContent } from '@agentclientprotocol/sdk'
import type { Shown } from './tool-calls.ts'

export interface Call {
	/** As the editor knows it: never used twice in a session, whatever a provider does with its ids. */
	id: string
	name: string
	shown: Shown
	status: 'pending' | 'in_progress' | 'completed' | 'failed'
	/** The end of a running command's output. */
	output: string
	/** Shown at its end; null while it runs. */
	result: ToolCallContent[] | null
	/** Only some parts of its change were accepted. */
	partly: boolean
}

export class KnownCalls {
	private readonly calls = new Map<string, Call>()
	private readonly ids = new Set<string>()
	private questions = 0

	get(engineId: string | undefined): Call | undefined {
		return engineId === undefined ? undefined : this.calls.get(engineId)
	}

	add(engineId: string, name: string, shown: Shown): Call {
		const id = this.unique(engineId)
		const call: Call = { id, name, shown, status: 'pending', output: '', result: null, partly: false }
		this.calls.set(engineId, call)
		return call
	}

	/** An id for a question that is about no call the editor knows. */
	questionId(): string {
		return this.unique(`garuda-question-${++this.questions}`)
	}

	/** Calls without an end. */
	open(): Call[] {
		return [...this.calls.values()].filter((call) => call.result === null)
	}

	/** At a turn's end: what was shown stays, only its ids must not come again. */
	forget(): void {
		this.calls.clear()
	}

	/** Ids that a replay gave out must not come again either. */
	reserve(other: KnownCalls): void {
		for (const id of other.ids) this.ids.add(id)
	}

	unique(wanted: string): string {
		let id = wanted
		for (let n = 2; this.ids.has(id); n++) id = `${wanted}-${n}`
		this.ids.add(id)
		return id
	}
}
