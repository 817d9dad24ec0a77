// Slash commands that change how the model works: /models /effort /plan /compact. Part of the shared table.
import type { ModelInfo, Session } from '../api.ts'
import { UserError } from '../errors.ts'
import { oneLine } from '../text.ts'
import type { Effort } from '../types.ts'
import { number, type SlashCommand, type SlashContext, type SlashResult, text } from './types.ts'

const efforts: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

export const models: SlashCommand = {
	name: 'models',
	args: '[name]',
	summary: 'the models, or change to one',
	complete: async ({ garuda }) => (await garuda.models.list()).map((one) => one.name),
	run: async ({ garuda, session }, args) => {
		const all = await garuda.models.list()
		if (args !== '') {
			await session.setModel(whichModel(all, args))
			return text(`The model is now ${session.model}.`)
		}
		if (all.length === 0) return text('  no models are known: garuda setup')
		const width = Math.max(...all.map((one) => one.name.length))
		const price = (one: ModelInfo) =>
			one.spec.price ? `$${one.spec.price.input} in, $${one.spec.price.output} out` : 'price unknown'
		const lines = all.map((one) => {
			const note = one.problem
				? `not usable: ${oneLine(one.problem.message, 80)}`
				: `${one.spec.window === null ? 'window unknown' : `${number(one.spec.window)} tokens`}, ${price(one)}`
			return `${one.name === session.model ? '*' : ' '} ${one.name.padEnd(width)}  ${note}`
		})
		return text([...lines, '  prices are per million tokens'].join('\n'))
	},
}

export const effort: SlashCommand = {
	name: 'effort',
	args: '[low|medium|high|xhigh|max|default]',
	summary: 'how hard the model thinks',
	complete: async () => [...efforts, 'default'],
	run: async ({ session }, args) => {
		if (args === '') return text(`  effort: ${session.status().effort ?? "the model's default"}`)
		const effort = args === 'default' ? null : efforts.find((one) => one === args)
		if (effort === undefined)
			throw new UserError(`There is no effort "${oneLine(args, 40)}".`, `It is one of: ${efforts.join(', ')}, default.`)
		await session.setEffort(effort)
		return text(`Effort is now ${effort ?? "the model's default"}.`)
	},
}

export const plan: SlashCommand = {
	name: 'plan',
	args: '[task|off]',
	summary: 'plan mode: read and plan only; again to leave it and carry the plan out',
	complete: async () => ['off'],
	run: runPlan,
}

export const compact: SlashCommand = {
	name: 'compact',
	args: '',
	summary: 'summarise the conversation to make room',
	run: async ({ session, signal }) => {
		const done = await session.compact(signal)
		return text(
			done
				? `From about ${number(done.before)} to ${number(done.after)} tokens.`
				: 'There is nothing to summarise yet.',
		)
	},
}

/** A model by its name, its id alone, or a part of it that only one model has. */
function whichModel(all: readonly ModelInfo[], typed: string): string {
	const exact = all.find((one) => one.name === typed)
	if (exact || typed.includes('/')) return exact?.name ?? typed
	const byId = all.filter((one) => one.spec.id === typed)
	const found = byId.length > 0 ? byId : all.filter((one) => one.name.includes(typed))
	if (found.length === 1) return found[0]!.name
	if (found.length > 1)
		throw new UserError(
			`"${oneLine(typed, 60)}" fits ${found.length} models.`,
			found
				.slice(0, 8)
				.map((one) => one.name)
				.join(', '),
		)
	// Not in the list is not "does not exist": the engine knows best.
	return typed
}

async function runPlan({ session }: SlashContext, args: string): Promise<SlashResult> {
	if (args === 'off') {
		await session.setMode('build')
		return text('Plan mode is off.')
	}
	if (args !== '') {
		await session.setMode('plan')
		return { type: 'prompt', prompt: args, text: 'Plan mode is on: nothing is changed.' }
	}
	if (session.mode !== 'plan') {
		await session.setMode('plan')
		return text(
			'Plan mode is on: the model reads and plans, nothing is changed. /plan again carries the plan out; /plan off just leaves.',
		)
	}
	const made = madePlan(session)
	await session.setMode('build')
	if (!made) return text('Plan mode is off. There was no plan yet.')
	return { type: 'prompt', prompt: 'Carry out the plan above.', text: 'Plan mode is off; the plan is handed over.' }
}

/** Whether the model has answered since plan mode was entered (or at all, where the history does not say when). */
function madePlan(session: Session): boolean {
	let made = false
	for (const event of session.history()) {
		if (event.type === 'mode') made = false
		else if (event.type === 'message' && event.message.role === 'assistant')
			made = event.message.blocks.some((block) => block.type === 'text' && block.text.trim() !== '')
	}
	return made
}
