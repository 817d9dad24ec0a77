// How a chat finds its first session: a model server of this machine after a yes, else the tour; never a failed start. Used by plain.
import { type EngineOptions, type Garuda, type OpenOptions, oneLine, type Session, UserError } from '../engine/index.ts'
import { threeWays } from './words.ts'

export interface StartOptions {
	create(more: Partial<EngineOptions>): Garuda
	open: OpenOptions
	/** The user named a model, so nothing else stands in for it. */
	modelNamed: boolean
	say(text: string): void
	/** Prepares the tour: the engine's options for it. */
	tour?(): Promise<Partial<EngineOptions>>
	/** A yes or no; anything but a yes is a no. */
	confirm(question: string): Promise<boolean>
}

/** Opens a session, asking before a found server is used. Throws UserError where a person must mend something. */
export async function openChat(o: StartOptions): Promise<{ garuda: Garuda; session: Session }> {
	const garuda = o.create({})
	try {
		return { garuda, session: await garuda.open(o.open) }
	} catch (error) {
		if (!(error instanceof UserError) || o.modelNamed) return failed(garuda, error)
		const { model, problem } = await garuda.readiness()
		// A broken file or a locked session is not "no model".
		if (model !== null || problem === null || problem.code === 'user') return failed(garuda, error)
		const going = o.open.resume !== undefined || o.open.latest === true
		for (const server of await garuda.models.local()) {
			const name = server.models[0]
			if (name === undefined) continue
			const more = server.models.length > 1 ? ` (and ${server.models.length - 1} more)` : ''
			const yes = await o.confirm(
				`There is no model set up, but ${oneLine(server.name)} answers at ${server.url} with ${oneLine(name)}${more}. Use it for this chat?`,
			)
			if (!yes) continue
			await garuda.close()
			// No key of the user's ever goes to a server that was only found.
			const local = o.create({ model: `openai/${name}`, env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'none' } })
			return { garuda: local, session: await local.open(o.open).catch((problem) => failed(local, problem)) }
		}
		await garuda.close()
		if (going) throw new UserError(problem.message, threeWays)
		if (!o.tour) throw new UserError(problem.message, threeWays)
		const tour = o.create(await o.tour())
		const session = await tour.open({}).catch((fault: unknown) => failed(tour, fault))
		o.say(
			`${problem.message}\nThis is the tour: a fixed script, not an AI, in a scratch copy of this folder. Say "show me" to see what a task looks like.\n${threeWays}`,
		)
		return { garuda: tour, session }
	}
}

async function failed(garuda: Garuda, error: unknown): Promise<never> {
	await garuda.close()
	throw error
}
