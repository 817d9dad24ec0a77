// The question that a person is asked about a call: everything that will happen, in full. Used by the gate.
import type { Decision } from '../permission/decide.ts'
import { hasHidden, hiddenWarning, oneLine } from '../text.ts'
import type { ApprovalRequest, CallInfo, Effect, Wall } from '../types.ts'

const walls: Record<Wall, string> = {
	network: 'there is no network in the sandbox',
	write: 'in the sandbox only the project, the temp folder and caches can be written',
	read: 'the sandbox hides secrets',
	process: 'the sandbox does not allow this system call',
	asked: 'the model asks for it',
}

/** Where a secret could go from there. */
const secretHosts = (effect: Effect & { hosts?: string[] }): string =>
	effect.type !== 'use_secret' || !effect.hosts
		? ''
		: effect.hosts.length > 0
			? `\n\nWith it, it reaches only: ${effect.hosts.join(', ')}`
			: '\n\nWith it, it has no network.'

interface QuestionParts {
	id: string
	call: { id: string; input: Record<string, unknown> }
	tool: string
	info: CallInfo
	effect: Effect | undefined
	decision: Decision
}

/** Shows the whole command, diff or input; names the wall for a run outside, and says when hidden characters are in it. */
export function question({ id, call, tool, info, effect, decision }: QuestionParts): ApprovalRequest {
	const outside = effect?.type === 'outside_sandbox'
	const cwd = outside ? effect.cwd : info.cwd
	const where = cwd === undefined ? '' : ` (in ${oneLine(cwd, 200)})`
	const title = outside
		? `Run outside the sandbox${where}: ${oneLine(effect.command)}`
		: effect?.type === 'reach_host'
			? info.kind === 'fetch'
				? `${info.title} (${effect.host}:${effect.port})`
				: `Let this command reach ${effect.host}:${effect.port}`
			: effect?.type === 'apply_changes'
				? 'Apply these changes to the project'
				: effect?.type === 'use_secret'
					? `Give the secret ${effect.name} to this command`
					: info.outside
						? `Run outside the sandbox${where}: ${oneLine(info.command ?? '')}`
						: info.title
	const preview =
		effect?.type === 'apply_changes'
			? effect.summary
			: effect && 'command' in effect
				? `${effect.command}${secretHosts(effect)}`
				: (info.command ?? info.preview ?? (info.change ? '' : JSON.stringify(call.input, null, 2)))
	const free = 'Outside it, this command can read and change everything that you can.'
	const warnings: string[] = []
	if (outside) warnings.push(`The sandbox stopped it: ${walls[effect.wall]} (${oneLine(effect.detail, 300)}). ${free}`)
	else if (info.outside) warnings.push(free)
	if (decision.warning) warnings.push(decision.warning)
	if (cwd !== undefined && (outside || info.outside))
		warnings.push(`It runs in ${oneLine(cwd, 300)}, not in the working root.`)
	if (
		!decision.warning?.includes(hiddenWarning) &&
		hasHidden([title, preview, info.change?.new ?? '', info.change?.path ?? ''].join('\n'))
	)
		warnings.push(hiddenWarning)
	return {
		id,
		callId: call.id,
		tool,
		info,
		...(effect ? { effect } : {}),
		title,
		preview,
		...(warnings.length > 0 ? { warning: warnings.join('\n') } : {}),
		choices: decision.onceOnly ? ['once', 'deny'] : ['once', 'session', 'deny'],
		...(decision.lastingRule ? { lastingRule: decision.lastingRule } : {}),
	}
}
