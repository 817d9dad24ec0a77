// The tour's door: a start with no key and no network ends here, never in an error. Called by a command class, which hands it to its front end.
import type { ModelClient } from '../ports.ts'
import type { ModelSpec } from '../types.ts'
import { tourModel } from './model.ts'
import { makeScratch, type Scratch, type ScratchOptions } from './scratch.ts'

export { asksForAll } from './facts.ts'
export { type TourOptions, tourModel, tourSpec } from './model.ts'
export { playTour, type TourResult, type TourSink } from './play.ts'
export { makeScratch, type Scratch, type ScratchOptions } from './scratch.ts'
export { threeWays } from './words.ts'

export interface PrepareOptions extends ScratchOptions {
	/** Garuda's environment, for the proof of the sandbox. */
	env?: Record<string, string | undefined>
	/** Whether the session's commands will run in the OS sandbox; without it this is tried out when the tour gets there. */
	sandboxed?: boolean | (() => Promise<boolean>)
	/** How a model is had, where the tour is not played in a terminal. */
	ways?: string
	/** Milliseconds between two pieces of text; for a terminal 15 is easy to read. Default 0. */
	paceMs?: number
}

export interface PreparedTour extends Scratch {
	client: ModelClient
	spec: ModelSpec
}

/**
 * A scratch copy and the model to play in it. Open the session with
 * `createEngine({ ...options, root, garudaHome, model: 'tour', clients: { tour: async () => ({ client, spec }) } })`:
 * with its own `garudaHome` nothing of the tour stays behind, and no rule of the user's settings leads it astray.
 * After the engine's `close`, call `remove`. Throws UserError when the temp folder cannot be written.
 *
 * For a script: open with `acceptEdits: true` and an approver that denies, then `playTour`. The stopped network command
 * asks to leave the sandbox and is denied; that is part of the show, so the exit code comes from `playTour`'s `ok`.
 */
export async function prepareTour(options: PrepareOptions): Promise<PreparedTour> {
	const scratch = await makeScratch(options)
	const { sandboxed = () => proveSandbox(scratch, options), paceMs = 0, ways } = options
	const words = ways === undefined ? {} : { ways }
	return { ...scratch, ...tourModel({ sampleWhy: scratch.why, sandboxed, paceMs, ...words }) }
}

/** A sandbox counts only when a command has run in it: the same proof that a session's first command makes. */
async function proveSandbox(scratch: Scratch, { home, env = {} }: PrepareOptions): Promise<boolean> {
	const [{ createExecutor }, { mkdtemp }, { join }] = await Promise.all([
		import('../sandbox/index.ts'),
		import('node:fs/promises'),
		import('node:path'),
	])
	const { executor } = await createExecutor({
		root: scratch.root,
		extraDirs: [],
		home,
		tmp: await mkdtemp(join(scratch.garudaHome, 'proof-')),
		env,
		executor: 'auto',
		profile: 'standard',
		writePaths: [],
		envAllow: [],
		caches: [],
	})
	await executor.close()
	return executor.kind !== 'host'
}
