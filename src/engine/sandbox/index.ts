// The sandbox room's door: the executor of a session, and Garuda's own git.

import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { UserError } from '../errors.ts'
import { upstreamProxy } from '../net/upstream.ts'
import type { Executor } from '../ports.ts'
import {
	createBubblewrapExecutor,
	createHostExecutor,
	createSeatbeltExecutor,
	type ExecutorSettings,
} from './executor.ts'
import { createConfigReader } from './git-config.ts'
import { loopbackNetwork, type NetworkOptions, namespaceNetwork } from './network.ts'
import { stat } from './paths.ts'
import { Placeholders } from './placeholders.ts'
import { createPolicyBuilder } from './policy.ts'
import { type Diagnosis, probe } from './probe.ts'
import { processGroup } from './process-group.ts'
import { endOrphans } from './processes.ts'
import { checkedBubblewrap, findBubblewrap, findNsenter } from './programs.ts'
import { Reaper } from './reaper.ts'
import { repositoryParts } from './repository.ts'
import { seatbeltProfile } from './seatbelt.ts'
import { seccompFilter } from './seccomp.ts'
import { Staging, sweepStages } from './staging.ts'
import { createWatch } from './watch.ts'

export { commandEnvironment } from './environment.ts'
export { createGit, type Git, type GitOptions, type GitResult, type GitRun } from './git.ts'
export { envAllowed, gitProtected, homeProtected, homeSecrets, rootProtected, systemSecrets } from './names.ts'
export type { NetworkOptions } from './network.ts'
export { findProgram } from './programs.ts'
export { findWall } from './walls.ts'

export interface SandboxOptions {
	/** The working root; its real path is taken once. */
	root: string
	extraDirs: string[]
	home: string
	/** The session's scratch folder, made by the caller: /tmp of every command. */
	tmp: string
	/** Garuda's environment; only the allowlist and `envAllow` pass. */
	env: Record<string, string | undefined>
	/** auto: the sandbox, else the host with a notice; sandbox: UserError when it cannot work; host: no sandbox. */
	executor: 'auto' | 'sandbox' | 'host'
	/** strict: no host fallback, no runs outside, no Unix sockets. */
	profile: 'standard' | 'strict'
	/** Further paths that commands may write; secrets in them stay hidden. */
	writePaths: string[]
	envAllow: string[]
	/** Absolute folders writable in build mode when they exist. */
	caches: string[]
	/** Blocks Unix sockets in the standard profile too. */
	blockUnix?: boolean
	/** More paths or globs to hide: absolute, `~/…` or relative to the root. */
	denyRead?: string[]
	/** A host list: commands reach these hosts through Garuda's proxy, in a network namespace of the session. */
	network?: NetworkOptions | undefined
	/** Commands may be asked to run staged (`StagedSpec`); Linux only. `copy`: on a copy, no overlay tried. */
	staging?: boolean | 'copy' | undefined
	platform?: NodeJS.Platform
	/** An absolute bubblewrap instead of the fixed places. */
	bwrap?: string
	limits?: {
		/** At once, for one command. Default 4,096; 0 is no limit. */
		processes?: number
		/** Of each private memory folder (/run, /var/tmp, /dev/shm). Default 1 GiB. */
		tmpBytes?: number
		/** Of one file. Default 16 GiB; 0 is no limit. */
		fileBytes?: number
		/** From TERM to KILL. Default 2,000. */
		graceMs?: number
	}
}

export interface ExecutorChoice {
	executor: Executor
	/** For the user, loud: there is no sandbox, or it is weaker than it should be. Says what to do. */
	notice?: string
	/** Why there is no sandbox, in a line. */
	reason?: string
}

/**
 * Chooses and proves the executor: a sandbox counts only after a command ran in it with the whole set of flags and found
 * itself confined. Throws UserError for options that cannot hold, and where `sandbox` or `strict` cannot be had.
 */
export const createExecutor = async (options: SandboxOptions): Promise<ExecutorChoice> => {
	const own = ownFolder(options.tmp)
	endOrphans(dirname(own))
	try {
		return await choose(options, own)
	} catch (error) {
		rmSync(own, { recursive: true, force: true })
		throw error
	}
}

const choose = async (options: SandboxOptions, own: string): Promise<ExecutorChoice> => {
	const platform = options.platform ?? process.platform
	const strict = options.profile === 'strict'
	const settings: ExecutorSettings = {
		own,
		home: options.home,
		tmp: options.tmp,
		env: options.env,
		envAllow: options.envAllow,
		limits: { processes: options.limits?.processes ?? 4_096, fileBytes: options.limits?.fileBytes ?? 16 * 2 ** 30 },
		graceMs: options.limits?.graceMs ?? 2_000,
		strict,
		// A sandbox ends by itself but for its first milliseconds, and the first one is Garuda's own proof.
		reaper: new Reaper(options.executor !== 'host' && platform === 'linux' ? 20 : 0),
	}
	if (options.executor === 'host') {
		if (strict)
			throw new UserError(
				'The strict profile does not run commands without a sandbox.',
				'Set sandbox.executor to auto or sandbox.',
			)
		return {
			executor: createHostExecutor(settings),
			notice:
				'Commands run WITHOUT a sandbox, with all your rights, as the settings say (executor: host). Garuda asks before each one.',
			reason: 'executor is host',
		}
	}
	const tried =
		platform === 'linux'
			? await tryBubblewrap(options, settings, strict)
			: platform === 'darwin'
				? await trySeatbelt(options, settings, strict)
				: { reason: `there is no sandbox for ${platform}`, fix: 'Use Linux, macOS or WSL 2.' }
	if ('executor' in tried) return tried
	const why = `Commands cannot run in a sandbox: ${tried.reason}.`
	if (strict || options.executor === 'sandbox') throw new UserError(why, tried.fix)
	return {
		executor: createHostExecutor(settings),
		notice: `NO SANDBOX: ${tried.reason}. Commands would run with all your rights, so Garuda asks before each one. To mend it: ${tried.fix}`,
		reason: tried.reason,
	}
}

const tryBubblewrap = async (
	options: SandboxOptions,
	settings: ExecutorSettings,
	strict: boolean,
): Promise<ExecutorChoice | Diagnosis> => {
	const filter = filterFile(settings.own, strict || options.blockUnix === true)
	const policy = createPolicyBuilder({
		...options,
		denyRead: options.denyRead ?? [],
		own: settings.own,
		...emptyThings(settings.own),
		tmpBytes: options.limits?.tmpBytes ?? 2 ** 30,
		filter: filter !== null,
	})
	const bwrap = options.bwrap === undefined ? findBubblewrap() : checkedBubblewrap(options.bwrap)
	if (!bwrap)
		return {
			reason: options.bwrap === undefined ? 'bubblewrap is not installed' : `no safe bubblewrap at ${options.bwrap}`,
			fix: 'Install it: sudo apt install bubblewrap (Debian, Ubuntu), sudo dnf install bubblewrap (Fedora), sudo pacman -S bubblewrap (Arch).',
		}
	const watch = createWatch(policy.roots, policy.gitFolders)
	const listed = hostList(options)
	const nsenter = listed && findNsenter()
	const network = listed && nsenter ? namespaceNetwork(listed, { bwrap, nsenter }) : undefined
	const max = settings.limits.processes ?? 0
	const group = process.getuid?.() === 0 && max > 0 ? processGroup(basename(settings.own), max) : null
	if (options.staging) await sweepStages(dirname(settings.own))
	const staging = options.staging
		? new Staging({ folder: settings.own, roots: policy.roots, copyOnly: options.staging === 'copy' })
		: undefined
	// Looked for when a command with a secret needs it, not at each start.
	const ownNetwork = (hosts: string[]) => {
		const joinable = nsenter ?? findNsenter()
		const own = { upstream: upstreamProxy(options.env), ...options.network, hosts }
		return joinable ? namespaceNetwork(own, { bwrap, nsenter: joinable }) : undefined
	}
	const executor = createBubblewrapExecutor({
		staging,
		ownNetwork,
		...settings,
		bwrap,
		filter,
		placeholders: new Placeholders(settings.own),
		policy,
		watch,
		network,
		group,
	})
	const failed = await probe(executor, policy.roots[0]!, filter !== null)
	if (failed) return failed
	const weak = [
		listed && !nsenter ? 'the host list has no effect, for nsenter (util-linux) is not installed' : '',
		filter === null ? `there is no system-call filter for ${process.arch}` : '',
		process.getuid?.() === 0
			? 'Garuda runs as root: the sandbox holds, but what you allow outside it has all rights'
			: '',
	].filter(Boolean)
	return { executor, ...(weak.length > 0 ? { notice: `Sandbox: ${weak.join('; ')}.` } : {}) }
}

/** An empty list is no network. Garuda's own environment says how it gets out itself. */
const hostList = ({ network, env }: SandboxOptions): NetworkOptions | undefined =>
	network && network.hosts.length > 0 ? { upstream: upstreamProxy(env), ...network } : undefined

/**
 * Beside the session folder, never in it: commands write that one. Its name begins like the session folder's, so whoever
 * sweeps what a killed Garuda left takes both.
 */
const ownFolder = (tmp: string): string => {
	const beside = stat(tmp)?.isDirectory() ? realpathSync.native(tmp) : undefined
	return realpathSync.native(mkdtempSync(beside === undefined ? join(tmpdir(), 'garuda-own-') : `${beside}-own-`))
}

/** The system-call filter as a file, or null for a CPU without a table. */
const filterFile = (folder: string, blockUnix: boolean): string | null => {
	const filter = seccompFilter(process.arch, { blockUnix })
	if (filter === null) return null
	const path = join(folder, 'filter')
	writeFileSync(path, filter, { mode: 0o400, flag: 'wx' })
	return path
}

/** What lies over hidden files and folders. */
const emptyThings = (folder: string): { emptyFile: string; emptyFolder: string } => {
	const things = { emptyFile: join(folder, 'empty-file'), emptyFolder: join(folder, 'empty-folder') }
	writeFileSync(things.emptyFile, '', { mode: 0o444 })
	mkdirSync(things.emptyFolder, { mode: 0o555 })
	return things
}

const sandboxExec = '/usr/bin/sandbox-exec'

const trySeatbelt = async (
	options: SandboxOptions,
	settings: ExecutorSettings,
	strict: boolean,
): Promise<ExecutorChoice | Diagnosis> => {
	if (!existsSync(sandboxExec))
		return { reason: `there is no ${sandboxExec}`, fix: 'Use a Mac with its own system tools.' }
	const resolved = (paths: string[]) =>
		paths.filter((path) => existsSync(path)).map((path) => realpathSync.native(path))
	const roots = resolved([options.root, ...options.extraDirs])
	const home = resolved([options.home])[0] ?? options.home
	const config = createConfigReader(home)
	const profile = ({ readOnly, proxyPort }: { readOnly: boolean; proxyPort?: number }) => {
		const repositories = roots.map((root) => repositoryParts(root, home, config))
		return seatbeltProfile({
			roots: [...roots, ...repositories.flatMap(({ writable }) => writable)],
			home,
			tmp: resolved([options.tmp])[0] ?? options.tmp,
			writable: resolved([...options.caches, ...options.writePaths]),
			denyRead: [
				...(options.denyRead ?? []).map((path) => seatbeltPath(path, roots[0]!, home)),
				// Journals quote every command: a search of the project would find itself.
				...roots.map((root) => join(root, '.garuda/sessions')),
			],
			protect: repositories.flatMap(({ protect, missing }) => [...protect, ...missing.map(({ path }) => path)]),
			readOnly,
			blockUnix: strict || options.blockUnix === true,
			proxyPort,
		})
	}
	try {
		await promisify(execFile)(sandboxExec, ['-p', profile({ readOnly: true }), '/usr/bin/true'], { env: {}, cwd: '/' })
	} catch (error) {
		if (error instanceof UserError) throw error
		return {
			reason: `sandbox-exec does not work here (${String(error).split('\n')[0]})`,
			fix: 'Start Garuda outside the sandbox or container it runs in.',
		}
	}
	const listed = hostList(options)
	const network = listed && loopbackNetwork(listed)
	return { executor: createSeatbeltExecutor({ ...settings, sandboxExec, profile, network }) }
}

const seatbeltPath = (pattern: string, root: string, home: string): string => {
	if (/[*?[\]{}]/.test(pattern))
		throw new UserError(`sandbox.denyRead cannot use a pattern on macOS: ${pattern}`, 'Name the folder or file.')
	const path = pattern.startsWith('~/')
		? join(home, pattern.slice(2))
		: isAbsolute(pattern)
			? pattern
			: join(root, pattern)
	return existsSync(path) ? realpathSync.native(path) : path
}
