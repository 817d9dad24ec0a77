// Slash commands on conversations as a whole: /sessions /export. Part of the shared table.
import { UserError } from '../errors.ts'
import { oneLine } from '../text.ts'
import { type SlashCommand, type SlashContext, type SlashResult, text } from './types.ts'

export const sessions: SlashCommand = {
	name: 'sessions',
	args: '[open|rename|delete <id>]',
	summary: 'the sessions; open, rename or delete one',
	complete,
	run,
}

export const exportText: SlashCommand = {
	name: 'export',
	args: '',
	summary: 'write this conversation to a Markdown file',
	run: async ({ session }) => text(`Written to ${await session.export()}`),
}

async function complete({ garuda }: SlashContext, args: string): Promise<string[]> {
	if (/^\S*$/.test(args)) return ['open', 'rename', 'delete', 'list']
	return /^(open|rename|delete)\s+\S*$/.test(args) ? (await garuda.sessions.list()).map((one) => one.id) : []
}

async function run(ctx: SlashContext, args: string): Promise<SlashResult> {
	const { garuda, session } = ctx
	const [verb = 'list', id = '', ...rest] = args === '' ? [] : args.split(/\s+/)
	const all = (await garuda.sessions.list()).sort((a, b) => b.updated - a.updated)
	if (verb === 'list') {
		if (all.length === 0) return text('There are no sessions yet.')
		const lines = all.slice(0, 30).map((one) => {
			const mark = one.id === session.id ? '*' : ' '
			const where = one.root === session.root ? '' : `  ${oneLine(one.root, 60)}`
			return `${mark} ${one.id}  ${age(one.updated, ctx.now?.() ?? Date.now()).padStart(8)}  ${oneLine(one.title || '(no title)', 60)}${where}`
		})
		if (all.length > 30) lines.push(`  … and ${all.length - 30} older`)
		return text(lines.join('\n'))
	}
	if (verb !== 'open' && verb !== 'rename' && verb !== 'delete')
		throw new UserError(`/sessions has no "${oneLine(verb, 40)}".`, 'It has: list, open, rename, delete.')
	if (id === '') throw new UserError(`/sessions ${verb} needs the id of a session.`, 'List them with /sessions.')
	const exact = all.filter((one) => one.id === id)
	const found = exact.length > 0 ? exact : all.filter((one) => one.id.startsWith(id))
	if (found.length !== 1)
		throw new UserError(
			found.length === 0
				? `There is no session "${oneLine(id, 60)}".`
				: `${found.length} sessions begin with "${oneLine(id, 60)}".`,
		)
	const one = found[0]!
	const name = `${one.id}${one.title ? ` ("${oneLine(one.title, 60)}")` : ''}`
	if (verb === 'open') return one.id === session.id ? text('That session is open.') : { type: 'open', id: one.id }
	if (verb === 'rename') {
		const title = rest.join(' ')
		if (title === '') throw new UserError('/sessions rename needs an id and a title.')
		if (one.id === session.id) await session.setTitle(title)
		else await garuda.sessions.rename(one.id, title)
		return text(`${one.id} is now "${oneLine(title, 80)}".`)
	}
	if (one.id === session.id) throw new UserError('That session is open here.', 'Open another first: /new.')
	return {
		type: 'confirm',
		question: `Delete the session ${name} for good?`,
		yes: async () => {
			await garuda.sessions.remove(one.id)
			return text(`Deleted ${one.id}.`)
		},
	}
}

function age(then: number, now: number): string {
	const minutes = Math.max(0, Math.round((now - then) / 60_000))
	if (minutes < 60) return `${minutes} min`
	if (minutes < 48 * 60) return `${Math.round(minutes / 60)} h`
	return `${Math.round(minutes / 1440)} days`
}
