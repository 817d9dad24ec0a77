// The bash tool: a command through the executor, from the turn's gate; what came back in words.
import { ToolError } from '../errors.ts'
import { shownPath } from '../files/guard.ts'
import { isFolder } from '../files/open.ts'
import type { RunResult, Tool, ToolContext, ToolResult } from '../ports.ts'
import type { DaemonState, Daemons } from '../sandbox/daemons.ts'
import type { ConfinedSpec } from '../sandbox/executor.ts'
import type { StagedSpec } from '../sandbox/staging.ts'
import { clip, oneLine } from '../text.ts'
import { lineProgress, readable } from './command-output.ts'
import { jsonInput } from './json-input.ts'
import type { SecretHandles } from './secrets.ts'
import { checkEffects, type DeclaredEffect, effectsProperty, settleStaged } from './staged.ts'

interface Input {
	command: string
	timeout_ms?: number | undefined
	description?: string | undefined
	outside_sandbox?: boolean | undefined
	reason?: string | undefined
	is_daemon?: boolean | undefined
	effects?: DeclaredEffect[] | undefined
}

/** What a session's settings add to the tool; with none of them its description and schema keep their bytes. */
export interface BashOptions {
	/** Background processes, where they are on. */
	daemons?: Daemons | undefined
	/** Commands run on a copy; what they change is asked about. */
	staging?: boolean | undefined
	/** Secrets that commands may use by name. */
	secrets?: SecretHandles | undefined
}

const daemonProperty = {
	is_daemon: {
		description: 'Keep it running in the background (a server, a watcher); process_manager shows and ends it',
		type: 'boolean',
	},
}

const schema = {
	type: 'object',
	properties: {
		command: { type: 'string', minLength: 1 },
		timeout_ms: { type: 'integer', minimum: 1 },
		description: { description: 'What it does, a few words', type: 'string' },
		outside_sandbox: { description: 'Only when it cannot work in the sandbox; the user is asked', type: 'boolean' },
		reason: { description: 'Why outside', type: 'string' },
	},
	required: ['command'],
	additionalProperties: false,
}

const inputFor = ({ daemons, staging }: BashOptions) =>
	jsonInput<Input>({
		...schema,
		properties: { ...schema.properties, ...(daemons && daemonProperty), ...(staging && effectsProperty) },
	})

interface Data {
	command: string
	timeoutMs: number
	outside: boolean
	daemon: boolean
	effects: DeclaredEffect[]
	/** Names of the secrets it asks for. */
	secrets: string[]
	notes: string[]
	/** Where it runs: shown, and part of what an answer covers. */
	cwd: string
}

/** How it ended, in words. */
const ending = (result: RunResult, timeoutMs: number): string[] => {
	const lines: string[] = []
	if (result.cancelled) lines.push('stopped by the user')
	else if (result.timedOut)
		lines.push(
			`timed out after ${timeoutMs / 1000} s and was ended; output up to then is above. Give timeout_ms for longer commands`,
		)
	else if (result.signal) lines.push(`ended by signal ${result.signal}`)
	else lines.push(`exit code ${result.code ?? 'unknown'}`)
	if (result.survivors > 0)
		lines.push(
			`${result.survivors} process${result.survivors === 1 ? ' it started was' : 'es it started were'} still running in the background and ${result.survivors === 1 ? 'was' : 'were'} ended: nothing goes on after a call`,
		)
	return lines
}

/** Where the next command starts: where this one ended when that lies inside the roots, else the working folder. */
const keepCwd = async (result: RunResult, ctx: ToolContext): Promise<string[]> => {
	const before = ctx.state.cwd
	if (result.cwd === undefined || result.cwd === before) return []
	const resolved = await ctx.files.resolve(result.cwd).catch(() => null)
	if (resolved?.inside && resolved.exists && !resolved.sensitive && (await isFolder(resolved.path))) {
		ctx.state.cwd = resolved.path
		return resolved.path === before ? [] : [`the next command starts in ${shownPath(resolved.shown)}`]
	}
	ctx.state.cwd = ctx.root
	return [
		`the shell ended in ${oneLine(result.cwd, 200)}, outside the working folder: the next command starts in ${shownPath(ctx.root)}`,
	]
}

/** The folder to run in, with a note when the one before is gone. */
const startCwd = async (ctx: ToolContext): Promise<{ cwd: string; notes: string[] }> => {
	const { cwd } = ctx.state
	const resolved = await ctx.files.resolve(cwd).catch(() => null)
	if (resolved?.inside && resolved.exists && resolved.path === cwd && (await isFolder(cwd))) return { cwd, notes: [] }
	ctx.state.cwd = ctx.root
	return { cwd: ctx.root, notes: [`the previous folder ${shownPath(cwd)} is gone: this ran in ${shownPath(ctx.root)}`] }
}

const shownFolder = async (cwd: string, ctx: ToolContext): Promise<string> =>
	shownPath((await ctx.files.resolve(cwd)).shown)

const secretsNote = (secrets: SecretHandles | undefined): string =>
	secrets && secrets.names.length > 0
		? ` These secrets can be used by name, never seen; write the handle where the value belongs, and the user is asked: ${secrets.names.map(({ name, about }) => `{{secret:${name}}}${about ? ` (${oneLine(about, 200)})` : ''}`).join(', ')}.`
		: ''

/** Starts a command that goes on after the call; the sandbox only, since outside it would outlive a kill of Garuda. */
const startDaemon = async (
	daemons: Daemons,
	{ command, cwd, notes }: Data,
	ctx: ToolContext,
	readOnly: boolean,
): Promise<ToolResult> => {
	let calling = true
	let state: DaemonState
	try {
		state = await daemons.start(ctx.executor, {
			script: command,
			cwd,
			readOnly,
			// After the call there is nobody who could be asked for it: only the list counts then.
			reachHost: async (host, port) =>
				calling && (await ctx.request({ type: 'reach_host', host, port })).allowed && !ctx.signal.aborted,
		})
	} finally {
		calling = false
	}
	// A stop of the turn takes back what it has just started.
	if (ctx.signal.aborted) state = (await daemons.kill(state.id)) ?? state
	const seen = daemons.logs(state.id, 50)?.lines.join('\n') ?? ''
	const output = clip(ctx.redactor.redact(readable(seen)), Math.max(500, ctx.limits.resultChars - 1500))
	const told = [
		state.running
			? `it runs in the background as ${state.id}; process_manager shows its output and ends it. It ends with the session at the latest`
			: `it ended already: ${state.ending}`,
		...notes,
		...daemons.news(),
	]
	return {
		status: state.running ? 'ok' : 'failed',
		text: `${output === '' ? '(no output so far)' : output}\n${told.map((note) => `[${note}]`).join('\n')}`,
		data: { daemon: state.id, running: state.running },
	}
}

/** Runs one command. Never waits for background children, never leaves one but a background process that was asked for. */
export const createBashTool = (options: BashOptions = {}): Tool<Input, Data> => ({
	name: 'bash',
	description:
		'Run a command in bash (no rc files, stdin closed, no pager or editor). It runs in the sandbox: writes only in the project, temp and caches, no network unless allowed. The folder is kept between calls while it lies inside the project. Processes left in the background are ended with the call. Long output keeps head and tail.' +
		secretsNote(options.secrets),
	input: inputFor(options),
	readOnly: false,
	async plan(given, ctx) {
		const { command, outside_sandbox: outside = false, reason } = given
		const daemon = options.daemons !== undefined && given.is_daemon === true
		if (daemon && outside)
			throw new ToolError('A background process runs in the sandbox only: leave out outside_sandbox or is_daemon.')
		if (daemon && ctx.mode === 'plan') throw new ToolError('In plan mode nothing is left running in the background.')
		if (command.trim() === '') throw new ToolError('The command is empty.')
		if (command.includes('\0')) throw new ToolError('The command holds a NUL character.')
		if (outside && ctx.mode === 'plan') throw new ToolError('In plan mode nothing runs outside the sandbox.')
		const { bashTimeoutMs, bashMaxTimeoutMs } = ctx.limits
		const asked = given.timeout_ms ?? bashTimeoutMs
		const timeoutMs = Math.min(asked, bashMaxTimeoutMs)
		const secrets = options.secrets?.find(command) ?? []
		if (secrets.length > 0 && (outside || daemon))
			throw new ToolError(
				'A command with a secret runs in the sandbox and to its end: no outside_sandbox, no is_daemon.',
			)
		const effects = options.staging && given.effects ? checkEffects(given.effects) : []
		const start = await startCwd(ctx)
		const inFolder = start.cwd === ctx.root ? {} : { cwd: start.cwd }
		const notes = asked > timeoutMs ? [`the time limit was ${timeoutMs / 1000} s, the most that is allowed`] : []
		notes.push(...start.notes)
		return {
			info: {
				// The command itself: a description is only the model's word for it.
				title: `${daemon ? 'Run in the background:' : 'Run'} ${oneLine(command, 160)}${start.cwd === ctx.root ? '' : ` (in ${await shownFolder(start.cwd, ctx)})`}`,
				kind: 'execute',
				access: 'run',
				paths: [],
				key: `${daemon ? 'daemon' : outside ? 'outside' : 'bash'}:${command}${start.cwd === ctx.root ? '' : `\n(in ${start.cwd})`}`,
				command,
				...inFolder,
				...(outside && { outside }),
				...(reason && { preview: `The model's reason: ${oneLine(reason, 300)}` }),
			},
			data: { command, timeoutMs, outside, daemon, effects, secrets, notes, cwd: start.cwd },
		}
	},
	async run({ data }, ctx): Promise<ToolResult> {
		const { command, timeoutMs } = data
		const notes = [...data.notes]
		const checkFolder = async (): Promise<void> => {
			// What was shown is what is done: the folder too.
			if ((await startCwd(ctx)).cwd !== data.cwd)
				throw new ToolError('The folder that this command was to run in is gone, so it was not run. Call it again.')
		}
		if (options.daemons && data.daemon) {
			await checkFolder()
			// Nobody could be asked about what it changes later.
			return startDaemon(options.daemons, data, ctx, options.staging === true)
		}
		const secret = data.secrets.length > 0 ? options.secrets?.use(command, data.secrets) : undefined
		for (const name of data.secrets) {
			const effect = { type: 'use_secret' as const, name, command, hosts: secret?.hosts ?? [] }
			const { allowed, reason } = await ctx.request(effect)
			if (!allowed)
				return { status: 'failed', text: `${reason}\n[the command was not run: it needs the secret ${name}]` }
		}
		/** Hosts that the person or a rule said no to, and why. */
		const refused = new Map<string, string>()
		const run = async (outside: boolean): Promise<RunResult> => {
			await checkFolder()
			const progress = lineProgress(ctx)
			const spec: StagedSpec & ConfinedSpec = {
				script: secret?.command ?? command,
				cwd: data.cwd,
				timeoutMs,
				outside,
				readOnly: ctx.mode === 'plan',
				// Progress bars shrink to a fraction when shown: keep more than will be passed on.
				maxOutput: Math.max(30_000, ctx.limits.resultChars) * 8,
				onOutput: progress.take,
				reachHost: async (host, port) => {
					const { allowed, reason } = await ctx.request({ type: 'reach_host', host, port })
					if (!allowed) refused.set(port === 443 ? host : `${host}:${port}`, reason)
					return allowed
				},
				...(secret && { env: secret.env, confined: { hosts: secret.hosts } }),
				...(options.staging && !outside && ctx.mode !== 'plan' && { staged: true }),
			}
			const result = await ctx.executor.run(spec, ctx.signal)
			progress.end()
			return result
		}
		// Before it is cut: half a secret is no longer known as one.
		const shown = (result: RunResult, room: number): string =>
			clip(ctx.redactor.redact(readable(result.output)).replace(/\n+$/, ''), room, 'use head, tail or grep to see them')
		const room = Math.max(500, ctx.limits.resultChars - 1500)
		let result = await run(data.outside)
		const findings = [...(result.findings ?? [])]
		let first = ''
		if (result.wall && !data.outside && !result.cancelled && !ctx.signal.aborted) {
			const { wall, detail } = result.wall
			if (ctx.mode === 'plan') notes.push(`the sandbox stopped it (${wall}): in plan mode commands only read`)
			// Outside, nothing would keep the secret to its hosts.
			else if (secret)
				notes.push(`the sandbox stopped it (${wall}: ${oneLine(detail, 200)}); a command with a secret never leaves it`)
			// A no to a host is no reason to ask for all of them.
			else if (wall === 'network' && refused.size > 0)
				for (const [host, reason] of refused) notes.push(`${host} was not reached. ${reason}`)
			else {
				const answer = await ctx.request({
					type: 'outside_sandbox',
					command,
					...(data.cwd === ctx.root ? {} : { cwd: data.cwd }),
					wall,
					detail,
				})
				if (answer.allowed && !ctx.signal.aborted) {
					first = `[in the sandbox it failed (${wall}: ${oneLine(detail, 200)}); with the user's consent it then ran again outside the sandbox:]\n`
					result = await run(true)
					findings.push(...(result.findings ?? []))
				} else
					notes.push(
						`the sandbox stopped it (${wall}: ${oneLine(detail, 200)}). Running it outside was refused: ${answer.reason || 'stopped'}`,
					)
			}
		}
		notes.unshift(...ending(result, timeoutMs))
		const settled = await settleStaged(result, data.effects, ctx)
		notes.push(...settled.notes)
		notes.push(...(await keepCwd(result, ctx)), ...(options.daemons?.news() ?? []))
		const output = shown(result, room)
		const failed = result.code !== 0 || result.timedOut || result.cancelled || !settled.applied
		return {
			status: failed ? 'failed' : 'ok',
			text: `${first}${output === '' ? '(no output)' : output}\n${notes.map((note) => `[${note}]`).join('\n')}`,
			data: {
				exitCode: result.code,
				signal: result.signal,
				timedOut: result.timedOut,
				outside: data.outside || first !== '',
				...(findings.length > 0 && {
					findings: findings.slice(0, 50).map((line) => oneLine(ctx.redactor.redact(line), 400)),
				}),
			},
		}
	},
})

/** The tool with nothing switched on. */
export const bashTool = createBashTool()
