// Slash commands on what turns did: /undo /redo /diff. Part of the shared table.
import { UserError } from '../errors.ts'
import { list, type SlashCommand, text } from './types.ts'

export const undo: SlashCommand = {
	name: 'undo',
	args: '',
	summary: 'take back the last turn: its files and its messages',
	run: async ({ session }) => {
		const done = await session.undo()
		const files = done.done && done.restored.length > 0 ? `\n${list(done.restored)}` : ''
		return {
			...(text(done.message + files) as { type: 'text'; text: string }),
			...(done.done && done.prompt ? { input: done.prompt } : {}),
		}
	},
}

export const redo: SlashCommand = {
	name: 'redo',
	args: '',
	summary: 'bring back what /undo took',
	run: async ({ session }) => {
		const done = await session.redo()
		return text(done.done && done.restored.length > 0 ? `${done.message}\n${list(done.restored)}` : done.message)
	},
}

export const diff: SlashCommand = {
	name: 'diff',
	args: '[all]',
	summary: 'what the last turn changed, or all turns',
	complete: async () => ['all'],
	run: async ({ session }, args) => {
		if (args !== '' && args !== 'all') throw new UserError('/diff takes nothing, or: all.')
		const diff = await session.diff(args === 'all' ? 'all' : 'last')
		return text(
			diff.trim() === ''
				? args === 'all'
					? 'No turn changed a file.'
					: 'The last turn changed no file.'
				: diff.trimEnd(),
		)
	},
}
