// The process_manager tool: what bash left running in the background on purpose, from the turn's gate.
import { ToolError } from '../errors.ts'
import type { Tool } from '../ports.ts'
import type { DaemonState, Daemons } from '../sandbox/daemons.ts'
import { clip, oneLine } from '../text.ts'
import { readable } from './command-output.ts'
import { jsonInput } from './json-input.ts'

interface Input {
	action: 'list' | 'logs' | 'status' | 'kill'
	id?: string | undefined
	lines?: number | undefined
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		action: { type: 'string', enum: ['list', 'logs', 'status', 'kill'] },
		id: { description: 'Which one, as bash named it; not for list', type: 'string' },
		lines: {
			description: 'logs: how many of the last lines; default 100',
			type: 'integer',
			minimum: 1,
			maximum: 10_000,
		},
	},
	required: ['action'],
	additionalProperties: false,
})

/** Shows and ends the background processes of this session; no others can be named. */
export const createProcessManager = (daemons: Daemons): Tool<Input, Input> => ({
	name: 'process_manager',
	description:
		'Look at background processes that bash started with is_daemon: list, the last output lines of one (logs), its status, or kill it.',
	input,
	readOnly: false,
	async plan(given) {
		if (given.action !== 'list' && given.id === undefined) throw new ToolError(`${given.action} needs an id.`)
		if (given.id !== undefined && !daemons.get(given.id)) throw unknown(daemons, given.id)
		const what = given.action === 'list' ? 'List background processes' : `${words[given.action]} ${given.id}`
		return {
			info: {
				title: what,
				kind: 'other',
				// It reads what this session's own processes said, and ends what the session itself has started.
				access: 'read',
				paths: [],
				key: `process_manager:${given.action}:${given.id ?? ''}`,
			},
			data: given,
		}
	},
	async run({ data: { action, id = '', lines = 100 } }, ctx) {
		if (action === 'list') {
			const all = daemons.list()
			daemons.news()
			const text = all.length === 0 ? 'There are no background processes.' : all.map(line).join('\n')
			return { status: 'ok', text, data: { running: all.filter((one) => one.running).length } }
		}
		const before = daemons.get(id)
		const state = action === 'kill' ? await daemons.kill(id) : before
		if (!state) throw unknown(daemons, id)
		const news = daemons.news().map((text) => `\n[${text}]`)
		if (action === 'kill') {
			const how = before?.running === false ? 'had ended before' : 'was ended'
			return { status: 'ok', text: `${id} ${how}: ${state.ending}${news.join('')}`, data: { running: false } }
		}
		if (action === 'status')
			return { status: 'ok', text: `${line(state)}\nin ${state.cwd}${news.join('')}`, data: { running: state.running } }
		const found = daemons.logs(id, lines) ?? { lines: [], first: 1 }
		const last = found.first + found.lines.length - 1
		const lost = state.kept > 1 ? `; lines before ${state.kept} are no longer kept` : ''
		const output = clip(
			ctx.redactor.redact(readable(found.lines.join('\n'))),
			Math.max(500, ctx.limits.resultChars - 1500),
			'ask for fewer lines',
		)
		const range =
			found.lines.length === 0 ? '(no output so far)' : `${output}\n[lines ${found.first}-${last} of ${last}${lost}]`
		return { status: 'ok', text: `${range}\n[${word(state)}]${news.join('')}`, data: { running: state.running } }
	},
})

const words = { logs: 'Output of', status: 'Status of', kill: 'End' }

const unknown = (daemons: Daemons, id: string): ToolError => {
	const names = daemons.list().map((one) => one.id)
	return new ToolError(
		`There is no background process "${oneLine(id, 40)}". ${names.length > 0 ? `There are: ${names.join(', ')}.` : 'None was started.'}`,
	)
}

const word = (one: DaemonState): string =>
	one.running ? `${one.id} runs, for ${age(one.ageMs)}` : `${one.id} ended: ${one.ending}`

const line = (one: DaemonState): string =>
	`${word(one)}; ${one.lines} ${one.lines === 1 ? 'line' : 'lines'} of output: ${oneLine(one.command, 200)}`

const age = (ms: number): string =>
	ms < 120_000
		? `${Math.round(ms / 1000)} s`
		: ms < 7_200_000
			? `${Math.round(ms / 60_000)} min`
			: `${Math.round(ms / 3_600_000)} h`
