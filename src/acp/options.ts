// Modes and the options of a session as the editor's menus: model, mode, thinking, sandbox. Between a session and its requests.
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk'
import type { Effort, Mode, ModelInfo, Profile, Session } from '../engine/index.ts'
import { invalidParams } from './errors.ts'

const modes: { id: Mode; name: string; description: string }[] = [
	{ id: 'build', name: 'Build', description: 'Edits ask first; commands run in the sandbox.' },
	{ id: 'plan', name: 'Plan', description: 'Reads and plans. No edits; commands cannot write the project.' },
]
const efforts: Record<Effort, string> = {
	low: 'Low',
	medium: 'Medium',
	high: 'High',
	xhigh: 'Very high',
	max: 'Highest',
}
const usual = 'default'
/** From loose to tight. */
const profiles: { value: Profile; name: string; description: string }[] = [
	{
		value: 'standard',
		name: 'Standard',
		description: 'What the sandbox stops may run outside of it, after a question.',
	},
	{ value: 'strict', name: 'Strict', description: 'Nothing runs outside the sandbox, and no Unix socket is opened.' },
]

export const modeState = (session: Session): SessionModeState => ({
	currentModeId: session.mode,
	availableModes: modes,
})

/** -32602 for a mode that there is not. */
export function modeOf(id: string): Mode {
	const mode = modes.find((one) => one.id === id)
	if (!mode) throw invalidParams(`there is no mode "${id}"; the modes are ${modes.map((one) => one.id).join(', ')}`)
	return mode.id
}

/** All options with their present values: every answer about options must hold them all. */
export function configOptions(session: Session, models: readonly ModelInfo[]): SessionConfigOption[] {
	const current = session.model
	const usable = models.filter((one) => one.problem === null || one.name === current)
	const list = usable.map((one) => ({ value: one.name, name: one.name, description: modelWords(one) }))
	if (!list.some((one) => one.value === current)) list.unshift({ value: current, name: current, description: '' })
	const options: SessionConfigOption[] = [
		{
			type: 'select',
			id: 'mode',
			name: 'Mode',
			category: 'mode',
			currentValue: session.mode,
			options: modes.map(({ id, name, description }) => ({ value: id, name, description })),
		},
		{ type: 'select', id: 'model', name: 'Model', category: 'model', currentValue: current, options: list },
	]
	const levels = effortsOf(session, models)
	if (levels.length > 0)
		options.push({
			type: 'select',
			id: 'effort',
			name: 'Thinking',
			description: 'How hard the model thinks.',
			category: 'thought_level',
			currentValue: session.status().effort ?? usual,
			options: [
				{ value: usual, name: "The model's default" },
				...levels.map((level) => ({ value: level, name: efforts[level] })),
			],
		})
	const { profile } = session.status()
	options.push({
		type: 'select',
		id: 'sandbox',
		name: 'Sandbox',
		description: 'It can be made tighter for this session, not looser.',
		category: '_sandbox',
		currentValue: profile,
		options: profiles.slice(profiles.findIndex((one) => one.value === profile)),
	})
	return options
}

/** Sets one option. -32602 for an unknown one or an unknown value; UserError where the engine refuses. */
export async function setOption(
	session: Session,
	models: readonly ModelInfo[],
	id: string,
	value: string | boolean,
): Promise<void> {
	const option = configOptions(session, models).find((one) => one.id === id)
	if (!option) throw invalidParams(`there is no option "${id}"`)
	const values = option.type === 'select' ? option.options.flatMap((one) => ('value' in one ? [one.value] : [])) : []
	if (typeof value !== 'string' || !values.includes(value))
		throw invalidParams(`the option "${id}" has no value "${value}"; it takes ${values.join(', ')}`)
	if (id === 'mode') await session.setMode(modeOf(value))
	else if (id === 'model') await session.setModel(value)
	else if (id === 'sandbox') await session.setProfile(value as Profile)
	else if (id === 'effort') await session.setEffort(value === usual ? null : (value as Effort))
}

const effortsOf = (session: Session, models: readonly ModelInfo[]): Effort[] =>
	models.find((one) => one.name === session.model)?.spec.efforts ?? []

const modelWords = ({ spec }: ModelInfo): string => {
	// By hand: the first toLocaleString of a process loads the languages of the world, 7 ms.
	const window =
		spec.window === null ? 'window unknown' : `${String(spec.window).replace(/\B(?=(?:\d{3})+$)/g, ',')} tokens`
	const price = spec.price ? `$${spec.price.input} in, $${spec.price.output} out per million tokens` : 'price unknown'
	return `${window}, ${price}`
}
