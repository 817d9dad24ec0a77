// The tour in a script or a pipe: the real loop on a scratch copy, shown as text, ended by its undo. Between run and the tour service.
import type { AgentEvent, EngineOptions, Garuda, Session } from '../engine/index.ts'
import { Renderer } from './render.ts'
import { safeText } from './safe-text.ts'
import { Output, type Stdio, wantsColor } from './stdio.ts'
import { painter } from './style.ts'

/** What the command class passes in of the tour service; its own types stay on its side. */
export interface TourRoom {
	prepareTour(options: {
		root: string
		home: string
		tmpdir: string
		env: Record<string, string | undefined>
		paceMs?: number
	}): Promise<PreparedTour>
	/** Whether the words ask for the whole tour. */
	asksForAll(prompt: string): boolean
	playTour(
		session: Session,
		sink: { event(event: AgentEvent): void; say(text: string): void },
		signal?: AbortSignal,
	): Promise<{ ok: boolean }>
}

export interface PreparedTour {
	root: string
	garudaHome: string
	client: NonNullable<NonNullable<EngineOptions['ports']>['client']>
	spec: NonNullable<NonNullable<EngineOptions['ports']>['spec']>
	remove(): Promise<void>
}

/** The engine options of a tour: its own root, its own home folder, its own model. */
export const tourOptions = (tour: PreparedTour): Partial<EngineOptions> => ({
	root: tour.root,
	garudaHome: tour.garudaHome,
	model: 'tour',
	clients: { tour: async () => tour },
})

/** Plays the whole tour on stdout and resolves with the exit code: 0 when something was changed, shown and taken back. */
export async function play(o: {
	io: Stdio
	room: TourRoom
	tour: PreparedTour
	create(more: Partial<EngineOptions>): Garuda
}): Promise<number> {
	const { io, room, tour } = o
	const abort = new AbortController()
	const out = new Output(io.stdout, () => abort.abort())
	const renderer = new Renderer({ paint: painter(wantsColor(io.stdout, io.env)) })
	const stop = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((name) => io.onSignal(name, () => abort.abort()))
	// Edits happen in the scratch copy only, so they need no question; all else that asks is denied.
	const garuda = o.create({ ...tourOptions(tour), acceptEdits: true })
	let ok = false
	try {
		const session = await garuda.open()
		const sink = {
			event: (event: AgentEvent) => {
				const { answer, about } = renderer.event(event)
				if (about !== '' && !out.atLineStart) out.write('\n')
				out.write(about)
				out.write(answer)
			},
			say: (text: string) => {
				if (!out.atLineStart) out.write('\n')
				out.line(safeText(text).trimEnd())
			},
		}
		ok = (await room.playTour(session, sink, abort.signal)).ok
	} finally {
		await garuda.close()
		await out.end()
		for (const off of stop) off()
	}
	return abort.signal.aborted ? 130 : ok ? 0 : 1
}
