// Slash commands that tell how a session stands: /status /context /cost /permissions. Part of the shared table.
import { UserError } from '../errors.ts'
import { oneLine } from '../text.ts'
import type { Usage } from '../types.ts'
import { number, type SlashCommand, text } from './types.ts'

export const status: SlashCommand = {
	name: 'status',
	args: '',
	summary: 'session, model, mode, sandbox, use',
	run: async ({ session }) => {
		const s = session.status()
		const rows: [string, string][] = [
			['session', `${s.id}${s.title ? `  "${oneLine(s.title, 80)}"` : ''}`],
			['root', s.root],
			...s.extraDirs.map((dir): [string, string] => ['also', dir]),
			['model', `${s.model}${s.effort ? `, effort ${s.effort}` : ''}`],
			['mode', `${s.mode}${s.acceptEdits ? ', edits accepted' : ''}`],
			['sandbox', s.sandbox],
			['context', contextLine(s.contextTokens, s.window)],
			['used', usage(s.usage)],
			['turns', String(s.turns)],
		]
		return text(rows.map(([name, value]) => `  ${name.padEnd(8)} ${value}`).join('\n'))
	},
}

export const context: SlashCommand = {
	name: 'context',
	args: '',
	summary: 'how full the context window is',
	run: async ({ session }) => {
		const { contextTokens, window } = session.status()
		const line = contextLine(contextTokens, window)
		if (window === null) return text(`  ${line}`)
		const filled = Math.min(40, Math.round((contextTokens / window) * 40))
		return text(
			`  [${'#'.repeat(filled)}${'.'.repeat(40 - filled)}]\n  ${line}\n  /compact makes room: it summarises the conversation so far.`,
		)
	},
}

export const cost: SlashCommand = {
	name: 'cost',
	args: '',
	summary: 'tokens and cost of this session',
	run: async ({ session }) => {
		const { usage: u, turns } = session.status()
		const rows: [string, string][] = [
			['cost', u.cost === null ? 'unknown (no price is known for a model that was used)' : `$${u.cost.toFixed(4)}`],
			['input', number(u.input)],
			['from cache', number(u.cacheRead)],
			['to cache', number(u.cacheWrite)],
			['output', `${number(u.output)}${u.thinking ? ` (${number(u.thinking)} of it thinking)` : ''}`],
			['requests', `${number(u.requests)} in ${turns} turns`],
		]
		return text(rows.map(([name, value]) => `  ${name.padEnd(10)} ${value}`).join('\n'))
	},
}

export const permissions: SlashCommand = {
	name: 'permissions',
	args: '[edits on|off]',
	summary: 'the rules in force; accept edits in the project or ask',
	complete: async (_ctx, args) => (/^\S*$/.test(args) ? ['edits'] : /^edits\s+\S*$/.test(args) ? ['on', 'off'] : []),
	run: async ({ session }, args) => {
		if (args !== '') {
			const match = /^edits\s+(on|off)$/.exec(args)
			if (!match) throw new UserError('/permissions takes nothing, or: edits on, edits off.')
			session.setAcceptEdits(match[1] === 'on')
			return text(
				match[1] === 'on'
					? 'Edits inside the project are accepted without a question.'
					: 'Edits are asked about again.',
			)
		}
		const { rules, session: answers } = session.permissions()
		const out = rules.map((rule) => `  ${rule.kind.padEnd(7)} ${oneLine(rule.text)}  (${oneLine(rule.source)})`)
		if (rules.length === 0) out.push('  no rules')
		const { sandbox, mode } = session.status()
		out.push(`  ${unasked(sandbox.startsWith('host') || sandbox.startsWith('none'), mode)}`)
		if (answers.length > 0) out.push('', '  answered for this session:', ...answers.map((key) => `    ${oneLine(key)}`))
		if (session.status().acceptEdits)
			out.push('', '  edits inside the project are accepted (/permissions edits off ends it)')
		return text(out.join('\n'))
	},
}

/** What no rule speaks of. */
const unasked = (host: boolean, mode: 'build' | 'plan'): string =>
	mode === 'plan'
		? 'else, in plan mode: reading goes unasked, nothing in the project is changed'
		: host
			? 'else: reading in the project goes unasked; edits, hosts and every command ask, for there is no sandbox'
			: 'else: reading in the project and commands in the sandbox go unasked; edits, hosts and what would leave the sandbox ask'

const contextLine = (tokens: number, window: number | null): string =>
	window === null
		? `about ${number(tokens)} tokens; the window is unknown`
		: `about ${number(tokens)} of ${number(window)} tokens (${Math.round((tokens / window) * 100)} %)`

const usage = (u: Usage): string =>
	`${number(u.input + u.cacheRead + u.cacheWrite)} tokens in, ${number(u.output)} out, ${u.cost === null ? 'cost unknown' : `$${u.cost.toFixed(4)}`}`
