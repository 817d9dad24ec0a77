// The inspectors' door: what `--replay` asks for. A service on top of the engine.
import type { SessionHeader, SessionRecord } from '../ports.ts'
import { replaySession } from './replay.ts'

/** A recorded session gone through again, told in a few lines; `same` is false at the first place that went another way. */
export async function replayReport(session: {
	header: SessionHeader
	records: SessionRecord[]
}): Promise<{ text: string; same: boolean }> {
	const { turns, divergence, problems } = await replaySession(session)
	const lines = [
		`Session ${session.header.id}: ${turns} ${turns === 1 ? 'turn' : 'turns'} replayed from the record, nothing was sent or written.`,
		...problems,
		...(divergence
			? [
					`First difference: turn ${divergence.turn}, step ${divergence.step}.`,
					`  recorded: ${divergence.expected}`,
					`  now:      ${divergence.got}`,
				]
			: ['Every step came out as recorded.']),
	]
	return { text: `${lines.join('\n')}\n`, same: divergence === null }
}
