// How a chat finds its first session: a model server of this machine after a yes, else setup or the tour; never a failed start. Used by plain.
import {
	type AgentEvent,
	type EngineOptions,
	type Garuda,
	type OpenOptions,
	oneLine,
	type Problem,
	type Session,
	threeWays,
	UserError,
} from '../engine/index.ts'

export interface StartOptions {
	create(more: Partial<EngineOptions>): Garuda
	open: OpenOptions
	/** The user named a model, so nothing else stands in for it. */
	modelNamed: boolean
	say(text: string): void
	/** Prepares the tour: the engine's options for it. */
	tour?(): Promise<Partial<EngineOptions>>
	/** Runs the setup on this terminal and resolves with whether it came to its end. Throws UserError. */
	setup?(): Promise<boolean>
	/** A yes or no; anything but a yes is a no. */
	confirm(question: string): Promise<boolean>
	/** A typed line; null when nobody answers any more or the person left the question. */
	ask(prompt: string): Promise<string | null>
}

export interface Started {
	garuda: Garuda
	session: Session
	/** Text for the first line. */
	prefill?: string
}

/** Opens a session, asking before a found server is used; null when the person leaves. Throws UserError where a person must mend something. */
export async function openChat(o: StartOptions): Promise<Started | null> {
	for (let offered = false; ; offered = true) {
		const garuda = o.create({})
		let problem: Problem
		try {
			await agreed(o, garuda)
			return { garuda, session: await garuda.open(o.open) }
		} catch (error) {
			if (!(error instanceof UserError) || o.modelNamed) return failed(garuda, error)
			const ready = await garuda.readiness()
			// A broken file, a locked or an unknown session is not "no model".
			if (ready.model !== null || ready.problem === null || ready.problem.code === 'user') return failed(garuda, error)
			if (ready.problem.message !== error.message) return failed(garuda, error)
			problem = ready.problem
		}
		const found = offered ? null : await local(o, garuda)
		if (found) return found
		await garuda.close()
		// A session that goes on needs a model of its own, not the tour's scratch copy.
		const going = o.open.resume !== undefined || o.open.latest === true
		const tour = going ? undefined : o.tour
		if (!o.setup) {
			if (!tour) throw new UserError(problem.message, threeWays)
			return openTour(o, tour, `${problem.message}\n`, `\n${threeWays}`)
		}
		const choice = await menu(o, problem, tour !== undefined)
		if (choice === null) return null
		if (choice.type === 'tour') return { ...(await openTour(o, tour!)), prefill: choice.text }
		try {
			await o.setup()
		} catch (error) {
			if (!(error instanceof UserError)) throw error
			o.say(error.hint ? `${error.message}\n${error.hint}` : error.message)
		}
	}
}

/** A server of this machine that only its name stands for is used after a yes; UserError after a no. One that is not there is `open`'s to say. */
async function agreed(o: StartOptions, garuda: Garuda): Promise<void> {
	const { model, server } = await garuda.readiness()
	if (!server || !(await garuda.models.local()).some((one) => one.url === server.url)) return
	const yes = await o.confirm(
		`${oneLine(server.name)} answers at ${server.url}. Use it for this chat, as ${oneLine(model ?? '')}? ("garuda setup" keeps it, and asks no more.)`,
	)
	if (!yes) throw new UserError(`${oneLine(model ?? '')} is not used.`, 'Choose another model with -m.')
}

/** A model server of this machine, after a yes. No key of the user's ever goes to a server that was only found. */
async function local(o: StartOptions, garuda: Garuda): Promise<Started | null> {
	for (const server of await garuda.models.local()) {
		const name = server.models[0]
		if (name === undefined) continue
		const more = server.models.length > 1 ? ` (and ${server.models.length - 1} more)` : ''
		const yes = await o.confirm(
			`There is no model set up, but ${oneLine(server.name)} answers at ${server.url} with ${oneLine(name)}${more}. Use it for this chat?`,
		)
		if (!yes) continue
		await garuda.close()
		const made = o.create({ model: `${server.provider}/${name}` })
		return { garuda: made, session: await made.open(o.open).catch((problem) => failed(made, problem)) }
	}
	return null
}

/** What to do without a model; null is leaving. Words that are no choice open the tour, which shows what a task looks like. */
async function menu(
	o: StartOptions,
	problem: Problem,
	tour: boolean,
): Promise<{ type: 'setup' } | { type: 'tour'; text: string } | null> {
	const lines = ['  1  set one up now: a provider and its key, or a model server']
	if (tour) lines.push('  2  the tour: a fixed script, not an AI, in a scratch copy of this folder')
	lines.push(`  ${tour ? 3 : 2}  leave`)
	// "No model is chosen." asks for no more words; a missing or broken key does.
	o.say(
		`${problem.message}${problem.message === 'No model is chosen.' ? '' : ` ${problem.hint ?? ''}`}\n${lines.join('\n')}`,
	)
	for (;;) {
		const typed = await o.ask(tour ? '[1/2/3] (Enter: the tour) > ' : '[1/2] > ')
		if (typed === null) return null
		const word = typed.trim().toLowerCase()
		if (word === '1' || word === 'setup') return { type: 'setup' }
		if (word === (tour ? '3' : '2') || /^(?:leave|exit|quit|q|\/exit|\/quit)$/.test(word)) return null
		if (tour) return { type: 'tour', text: word === '2' || word === 'tour' ? '' : typed.trim() }
	}
}

async function openTour(
	o: StartOptions,
	tour: NonNullable<StartOptions['tour']>,
	before = '',
	after = '',
): Promise<Started> {
	const garuda = o.create(await tour())
	const session = await garuda.open({}).catch((fault: unknown) => failed(garuda, fault))
	o.say(
		`${before}This is the tour: a fixed script, not an AI, in a scratch copy of this folder. Say "show me" to see what a task looks like.${after}`,
	)
	return { garuda, session }
}

/** The end of a conversation that goes on, from its last but one prompt; `from` is how many events stand before it. */
export function endOf(history: readonly AgentEvent[]): { events: AgentEvent[]; from: number } {
	const prompts = history.flatMap((event, i) => (event.type === 'user_text' ? [i] : []))
	const from = prompts.at(-2) ?? prompts[0] ?? 0
	return { events: history.slice(from), from }
}

/** The session that -c or -r means: the newest, an id or its beginning, or one of a list when it is empty. */
export async function whichSession(
	o: { resume?: string; open: OpenOptions },
	create: () => Garuda,
	say: (text: string) => void,
	ask: StartOptions['ask'],
): Promise<OpenOptions> {
	if (o.resume === undefined) return o.open
	if (o.resume === 'latest') return { ...o.open, latest: true }
	if (o.resume !== '') return { ...o.open, resume: o.resume }
	const looking = create()
	try {
		const all = (await looking.sessions.list()).sort((a, b) => b.updated - a.updated).slice(0, 20)
		if (all.length === 0) {
			say('There are no sessions yet; this is a new one.')
			return o.open
		}
		const day = (time: number): string => new Date(time).toISOString().slice(0, 16).replace('T', ' ')
		for (const [i, one] of all.entries())
			say(`${String(i + 1).padStart(3)}  ${day(one.updated)}  ${oneLine(one.title || one.id, 80)}`)
		const typed = await ask('which? (number, or nothing for a new session) > ')
		const chosen = all[Number(typed?.trim()) - 1]
		return chosen ? { ...o.open, resume: chosen.id } : o.open
	} finally {
		await looking.close()
	}
}

async function failed(garuda: Garuda, error: unknown): Promise<never> {
	await garuda.close()
	throw error
}
