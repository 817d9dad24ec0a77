// Runs commands, inside a sandbox or on the host: the Executor of a session.

import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { ToolError } from '../errors.ts'
import type { Executor, RunResult, RunSpec } from '../ports.ts'
import { planted } from './aftermath.ts'
import { bubblewrapFlags } from './bubblewrap.ts'
import { bubblewrapControl, neverStarted } from './bubblewrap-control.ts'
import { commandEnvironment } from './environment.ts'
import type { Joined, SessionNetwork } from './network.ts'
import { stat } from './paths.ts'
import { Pipes } from './pipes.ts'
import type { Placeholder, Placeholders } from './placeholders.ts'
import type { PolicyBuilder } from './policy.ts'
import type { ProcessGroup } from './process-group.ts'
import { belonging, signalAll } from './processes.ts'
import type { Reaper } from './reaper.ts'
import { toResult, withNotes, withWall } from './run-result.ts'
import { limitedArgv, type ShellCommand, type ShellLimits, sandboxedShell, shellScript } from './shell.ts'
import type { StagedRun, StagedSpec, Staging } from './staging.ts'
import { Standby } from './standby.ts'
import { type Control, type Launch, start, supervise } from './supervise.ts'
import { findingsNote, prepareRoot, type Watch } from './watch.ts'

export interface ExecutorSettings {
	home: string
	tmp: string
	/** A 0700 folder of the executor's own that no sandboxed command sees; removed at the end. */
	own: string
	env: Record<string, string | undefined>
	envAllow: string[]
	limits: ShellLimits
	/** From TERM to KILL. */
	graceMs: number
	/** Runs outside the sandbox are refused. */
	strict: boolean
	reaper: Reaper
}

export interface BubblewrapSettings extends ExecutorSettings {
	bwrap: string
	/** The file of the filter, or null where there is none for this CPU. */
	filter: string | null
	policy: PolicyBuilder
	watch: Watch
	placeholders: Placeholders
	/** The kernel's limit of processes, where Garuda is root and it can be had. */
	group?: ProcessGroup | null
	/** With a list of hosts. */
	network?: SessionNetwork | undefined
	/** A network of its own for one command, with a list of its own; none where namespaces cannot be joined. */
	ownNetwork?: ((hosts: string[]) => SessionNetwork | undefined) | undefined
	/** Where commands may be staged. */
	staging?: Staging | undefined
}

export interface SeatbeltSettings extends ExecutorSettings {
	sandboxExec: string
	/** The profile for one command; `proxyPort` is the one port of this machine that it reaches. */
	profile(spec: { readOnly: boolean; proxyPort?: number }): string
	network?: SessionNetwork | undefined
}

/** Commands in bubblewrap; `outside` runs on the host. */
export const createBubblewrapExecutor = (settings: BubblewrapSettings): Executor =>
	createBase('bubblewrap', settings, (pipes) => {
		// One that waits is in a network namespace already, so there is one for each.
		const standby = new Map<string, Standby>()
		const waiting = (prefix: string[]): Standby => {
			const key = prefix.join(' ')
			const known = standby.get(key)
			if (known) return known
			for (const [other, one] of standby)
				if (other !== '' && key !== '') {
					one.close()
					standby.delete(other)
				}
			const made = new Standby(inBubblewrap(settings, prefix, sandboxedShell()), pipes)
			standby.set(key, made)
			return made
		}
		return {
			stages: settings.staging !== undefined,
			run: (spec, signal) => {
				const run = (joined?: Joined) => runBubblewrap(settings, spec, signal, pipes, waiting, joined)
				const all = () =>
					isConfined(spec) ? withOwnNetwork(settings, spec, run) : withNetwork(settings.network, spec, run)
				return stagedOf(settings, spec)?.alone(all) ?? all()
			},
			close: () => {
				for (const one of standby.values()) one.close()
				settings.network?.close()
				settings.group?.close()
			},
			ended: async () => {
				settings.placeholders.close()
				await settings.staging?.close()
			},
		}
	})

/**
 * A command that holds a secret: never on the host, and with a network namespace and proxy of its own, whose list nobody is
 * asked to widen. No hosts: no network at all.
 */
export interface ConfinedSpec extends RunSpec {
	confined?: { hosts: string[] }
}

const isConfined = (spec: ConfinedSpec): boolean => spec.confined !== undefined

const withOwnNetwork = async (
	{ ownNetwork }: BubblewrapSettings,
	spec: ConfinedSpec,
	run: (joined?: Joined) => Promise<RunResult>,
): Promise<RunResult> => {
	const { reachHost: _, ...alone } = spec
	const hosts = spec.confined?.hosts ?? []
	const network = hosts.length > 0 ? ownNetwork?.(hosts) : undefined
	try {
		return await withNetwork(network, alone, run)
	} finally {
		network?.close()
	}
}

const isStaged = (spec: RunSpec): boolean => (spec as StagedSpec).staged === true

const stagedOf = (settings: BubblewrapSettings, spec: RunSpec): Staging | undefined =>
	isStaged(spec) && spec.readOnly !== true ? settings.staging : undefined

/** Lets a command join the session's network where there is one, and says afterwards what it was refused. */
const withNetwork = async (
	network: SessionNetwork | undefined,
	spec: RunSpec,
	run: (joined?: Joined) => Promise<RunResult>,
): Promise<RunResult> => {
	if (!network || spec.offline) return run()
	const joined = await network.join(spec)
	if ('reason' in joined) {
		const note = `[note: it ran without the network of the host list: ${joined.reason}]`
		return withNotes(await run(), [note], spec.separate === true)
	}
	try {
		const result = await run(joined)
		const { refused } = joined.client
		if (refused.length === 0) return result
		const told = withNotes(result, [`[note: the network refused ${refused.join('; ')}]`], spec.separate === true)
		if (result.code === 0 || result.cancelled) return told
		return { ...told, wall: { wall: 'network', detail: refused.join('; ').slice(0, 300) } }
	} finally {
		joined.client.end()
	}
}

export const createSeatbeltExecutor = (settings: SeatbeltSettings): Executor =>
	createBase('seatbelt', settings, (pipes) => ({
		run: (spec, signal) =>
			withNetwork(isConfined(spec) ? undefined : settings.network, spec, async (joined) => {
				const readOnly = spec.readOnly === true
				const profile = settings.profile({ readOnly, ...(joined && { proxyPort: joined.port }) })
				const told = joined ? { ...spec, env: { ...joined.env, ...spec.env } } : spec
				const result = await runOnHost(settings, told, signal, pipes, [settings.sandboxExec, '-p', profile])
				return withWall(result, [])
			}),
		close: () => settings.network?.close(),
	}))

/** Commands with the user's rights, in process groups of their own, with the allowlisted environment. */
export const createHostExecutor = (settings: ExecutorSettings): Executor =>
	createBase('host', settings, (pipes) => ({ run: (spec, signal) => runOnHost(settings, spec, signal, pipes) }))

/** What one kind of executor does with a command that is not to run outside. */
interface Inside {
	/** It can run a command on a staging copy. */
	stages?: boolean
	run(spec: RunSpec, signal: AbortSignal): Promise<RunResult>
	close?(): void
	/** When nothing runs any more. */
	ended?(): Promise<void>
}

const createBase = (kind: Executor['kind'], settings: ExecutorSettings, make: (pipes: Pipes) => Inside): Executor => {
	const pipes = new Pipes(settings.own)
	const inside = make(pipes)
	const closing = new AbortController()
	const running = new Set<Promise<unknown>>()
	return {
		kind,
		async run(spec, signal) {
			if (closing.signal.aborted) throw new ToolError('The session is closed.')
			if (spec.script === undefined && spec.argv === undefined) throw new ToolError('There is no command to run.')
			// Never silently without: it would change the project unasked.
			if (isStaged(spec) && !spec.outside && spec.readOnly !== true && !inside.stages)
				throw new ToolError('Staged commands need the Linux sandbox with staging on, so this was not run.')
			if (isConfined(spec) && (kind === 'host' || spec.outside))
				throw new ToolError('A command with a secret runs in the sandbox only, so this was not run.')
			if (spec.outside && settings.strict) throw new ToolError('The strict profile runs nothing outside the sandbox.')
			if (!stat(spec.cwd)?.isDirectory()) throw new ToolError(`The working folder is gone: ${spec.cwd}`)
			const both = AbortSignal.any([signal, closing.signal])
			const run = spec.outside && kind !== 'host' ? runOnHost(settings, spec, both, pipes) : inside.run(spec, both)
			running.add(run)
			try {
				return await run
			} finally {
				running.delete(run)
			}
		},
		async close() {
			closing.abort()
			inside.close?.()
			await Promise.allSettled(running)
			await inside.ended?.()
			settings.reaper.close()
			pipes.close()
			rmSync(settings.own, { recursive: true, force: true })
		},
	}
}

// ---------------------------------------------------------------- bubblewrap

const inBubblewrap = (settings: BubblewrapSettings, prefix: string[], argv: string[]): Launch => ({
	file: [...prefix, settings.bwrap][0]!,
	args: [...prefix, settings.bwrap, '--args', '3', '--', ...argv].slice(1),
	// Its first process keeps this environment, readable inside as /proc/1/environ.
	env: {},
	cwd: '/',
	filter: settings.filter ?? '/dev/null',
	reaper: settings.reaper,
	...(settings.group ? { group: settings.group } : {}),
})

const runBubblewrap = async (
	settings: BubblewrapSettings,
	spec: RunSpec,
	signal: AbortSignal,
	pipes: Pipes,
	waiting: (prefix: string[]) => Standby,
	joined: Joined | undefined,
): Promise<RunResult> => {
	const releases: (() => void)[] = []
	const hold = (wanted: Placeholder[]) => {
		const shut: string[] = []
		releases.push(settings.placeholders.hold(wanted, (folder) => shut.push(folder)))
		return shut
	}
	try {
		return await runHolding(settings, spec, signal, pipes, waiting, joined, hold)
	} finally {
		for (const release of releases) release()
	}
}

const runHolding = async (
	settings: BubblewrapSettings,
	spec: RunSpec,
	signal: AbortSignal,
	pipes: Pipes,
	waiting: (prefix: string[]) => Standby,
	joined: Joined | undefined,
	hold: (wanted: Placeholder[]) => string[],
): Promise<RunResult> => {
	const prefix = joined?.prefix ?? []
	const standby = waiting(prefix)
	const readOnly = spec.readOnly === true
	if (!readOnly) prepareRoot(settings.policy.roots[0]!)
	// The disk's clock, not ours: a change in the same tick must count.
	const since = Date.now() - 20
	// A path may vanish between the look at the disk and its mount (a socket, a build's folder): then look again.
	for (let attempt = 1; ; attempt++) {
		const shell =
			spec.script === undefined
				? undefined
				: shellScript(spec.script, { limits: settings.limits, tmp: settings.tmp, seenTmp: '/tmp', sandboxed: true })
		const known = settings.watch.known()
		const env = { ...joined?.env, ...spec.env, ...shell?.env }
		const whole = settings.policy.build({
			cwd: spec.cwd,
			env,
			readOnly,
			...known,
			network: joined !== undefined,
			hold,
		})
		const staging = stagedOf(settings, spec)
		const stage = await staging?.begin(whole, signal)
		const policy = stage?.policy ?? whole
		const flags = Buffer.from(`${[...(stage?.flags ?? []), ...bubblewrapFlags(policy)].join('\0')}\0`)
		const argv = shell?.argv ?? limitedArgv(spec.argv!, settings.limits, true)
		const alike =
			shell !== undefined &&
			!isConfined(spec) &&
			spec.stdin === undefined &&
			!spec.separate &&
			attempt === 1 &&
			// One that waits would have the overlay of the time when it began to wait.
			!stage?.wrap
		const before = stage?.wrap?.(prefix) ?? prefix
		const child =
			(alike ? standby.take() : undefined) ?? (await start(inBubblewrap(settings, before, argv), spec, pipes))
		const outcome = await supervise(child, flags, spec, signal, bubblewrapControl(settings.limits), settings.graceMs)
		if (alike) standby.fill()
		const end = shell?.end()
		if (neverStarted(outcome)) {
			const said = `${outcome.output}\n${outcome.stderr}`.trim()
			staging?.failed(said)
			if (attempt < 3 && !signal.aborted) continue
			throw new ToolError(
				`The sandbox could not start the command: ${said.slice(0, 1_000) || `bubblewrap ended with ${outcome.code ?? outcome.signal}`}`,
			)
		}
		const result = toResult(outcome, end)
		const notes = [...(staging?.notes(`${outcome.output}${outcome.stderr}`) ?? [])]
		if (policy.shut?.length) notes.push(shutNote(policy.shut))
		if (outcome.stopped) notes.push(`[note: ended by Garuda: ${outcome.stopped}]`)
		// Out of effect first, then the look at what is left.
		const moved = readOnly ? [] : planted(policy, settings.home)
		const findings = readOnly ? [] : [...settings.watch.findings(since), ...moved]
		if (findings.length > 0) {
			notes.push(findingsNote(findings))
			result.findings = findings
		}
		const walled = withWall(
			result,
			policy.masks.map(({ path }) => path),
		)
		if (outcome.stopped) walled.wall = { wall: 'process', detail: outcome.stopped }
		const told = withNotes(walled, notes, spec.separate === true)
		const staged: StagedRun = staging ? { ...told, staged: await staging.end(whole) } : told
		return staged
	}
}

const shutNote = (folders: string[]): string =>
	`[note: the disk is full or takes no new file: ${folders.slice(0, 5).join(', ')} ${folders.length === 1 ? 'was' : 'were'} read-only while this command ran. When there is room, git can write there again.]`

// ---------------------------------------------------------------- host

const runOnHost = async (
	settings: ExecutorSettings,
	spec: RunSpec,
	signal: AbortSignal,
	pipes: Pipes,
	prefix: string[] = [],
): Promise<RunResult> => {
	const run = randomBytes(8).toString('hex')
	const mark = `GARUDA_RUN=${run}`
	const shell: ShellCommand | undefined =
		spec.script === undefined
			? undefined
			: shellScript(spec.script, {
					limits: settings.limits,
					tmp: settings.tmp,
					seenTmp: settings.tmp,
					sandboxed: false,
				})
	const [file, ...args] = [...prefix, ...(shell?.argv ?? limitedArgv(spec.argv!, settings.limits, false))]
	const all = (pid: number) => belonging(pid, mark)
	const control: Control = {
		term: (pid) => signalAll([pid, ...all(pid)], 'SIGTERM'),
		kill: (pid) => signalAll([...all(pid), -pid], 'SIGKILL'),
		async sweep(pid) {
			const left = all(pid)
			if (left.length === 0) return 0
			signalAll(left, 'SIGTERM')
			for (let waited = 0; waited < 100 && all(pid).length > 0; waited += 20) await delay(20)
			// Whoever forks on while being killed is met again.
			for (let round = 0; round < 5; round++) {
				const alive = all(pid)
				if (alive.length === 0) break
				signalAll(alive, 'SIGKILL')
				await delay(5)
			}
			return left.length
		},
	}
	const launch: Launch = {
		file: file!,
		args,
		env: {
			...commandEnvironment(settings.env, settings.home, settings.envAllow),
			TMPDIR: settings.tmp,
			...spec.env,
			GARUDA_RUN: run,
		},
		cwd: spec.cwd,
		reaper: settings.reaper,
	}
	const outcome = await supervise(await start(launch, spec, pipes), undefined, spec, signal, control, settings.graceMs)
	return { ...toResult(outcome, shell?.end()), survivors: outcome.left }
}
