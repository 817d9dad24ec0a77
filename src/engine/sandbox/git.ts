// Garuda's own git, for snapshots, branches and diffs: it reads a repository and never runs what a repository says.
import { spawn } from 'node:child_process'
import { isAbsolute, join } from 'node:path'
import { messageOf, ToolError } from '../errors.ts'
import { lstat, smallFile } from './paths.ts'
import { findProgram } from './programs.ts'

export interface GitOptions {
	/** An absolute git; else the first on PATH that is absolute, outside `avoid`, and that others cannot write. */
	git?: string
	env: Record<string, string | undefined>
	/** Working roots: a git in them is none. */
	avoid?: string[]
	/** Of one run; default 30 s. */
	timeoutMs?: number
}

export interface GitRun {
	cwd: string
	/** Without it git looks for a repository from `cwd`; a bare repository is then never taken. */
	gitDir?: string
	workTree?: string
	index?: string
	input?: string | Uint8Array
	/** More settings, below those that are fixed here. */
	config?: readonly [key: string, value: string][]
	signal?: AbortSignal
	timeoutMs?: number
	/** Of stdout; default 64 MiB. More ends git: `code` null and a line in `stderr`. */
	maxBytes?: number
}

export interface GitResult {
	/** null when it was ended: time, abort, too much output. `stderr` says which. */
	code: number | null
	stdout: Buffer
	stderr: string
}

export interface Git {
	/** The version (`2.39.5`), or null when there is no usable git. */
	available(): Promise<string | null>
	/** Arguments without `git`. Throws ToolError when there is no git or it cannot start; a failing git is a result. */
	run(args: string[], options: GitRun): Promise<GitResult>
}

/** Over every configuration file. Names that a repository chooses itself (filters, drivers) are looked up before each run. */
const fixed: [key: string, value: string][] = [
	['core.fsmonitor', 'false'],
	['core.hooksPath', '/dev/null'],
	['core.pager', 'cat'],
	['core.editor', 'false'],
	['sequence.editor', 'false'],
	['core.sshCommand', 'false'],
	['core.gitProxy', ''],
	['core.askPass', 'false'],
	['core.alternateRefsCommand', 'true'],
	['credential.helper', ''],
	['commit.gpgSign', 'false'],
	['tag.gpgSign', 'false'],
	['tag.forceSignAnnotated', 'false'],
	['push.gpgSign', 'false'],
	['log.showSignature', 'false'],
	['merge.verifySignatures', 'false'],
	['gpg.program', 'false'],
	['gpg.ssh.program', 'false'],
	['gpg.x509.program', 'false'],
	['interactive.diffFilter', ''],
	['protocol.allow', 'never'],
	['safe.bareRepository', 'explicit'],
	['submodule.recurse', 'false'],
	['fetch.recurseSubmodules', 'false'],
	['gc.auto', '0'],
	['maintenance.auto', 'false'],
	['color.ui', 'false'],
	['column.ui', 'never'],
	['advice.detachedHead', 'false'],
	['core.untrackedCache', 'keep'],
]

/** Commands that look at no content, so that no filter or driver of the repository can matter. */
const plain = new Set([
	'--version',
	'version',
	'rev-parse',
	'symbolic-ref',
	'update-ref',
	'for-each-ref',
	'show-ref',
	'init',
	'config',
	'write-tree',
	'ls-tree',
	'rev-list',
	'commit-tree',
	'branch',
	'check-ignore',
	'mktree',
])
/** Commands whose content passes through filters on its way into the store, and through nothing else that runs programs. */
const filtering = new Set(['ls-files', 'update-index', 'hash-object', 'add'])

/**
 * Whether a run can meet no program that a configuration names, so that the names need no look-up: it touches no content of
 * files, takes it as it is, or the git folder's own attributes, which stand over all others, switch filters off.
 */
const runsNothing = (command: string, rest: string[], run: GitRun): boolean => {
	if (plain.has(command)) return true
	// git also takes the beginning of a long option for the whole.
	const has = (...names: string[]) => rest.some((word) => names.some((name) => word.startsWith(name)))
	if (command === 'cat-file') return !has('--f', '--t', '--p', '--u')
	if (command === 'hash-object' && rest.includes('--no-filters')) return true
	if (command === 'hash-object' && rest.every((word) => word === '-w' || word === '--stdin')) return true
	if (command === 'update-index' && rest.every((word) => word === '-z' || word === '--index-info')) return true
	if (command === 'read-tree' && rest.length === 1 && !rest[0]!.startsWith('-')) return true
	return filtering.has(command) && run.gitDir !== undefined && filtersOff(run.gitDir)
}

/** The last line of `info/attributes` decides over every file; a shared (`commondir`) folder has its own. */
const filtersOff = (gitDir: string): boolean => {
	if (!isAbsolute(gitDir) || lstat(join(gitDir, 'commondir'))) return false
	const lines = (smallFile(join(gitDir, 'info/attributes')) ?? '').split('\n').filter((line) => line.trim() !== '')
	const [pattern, ...attributes] = (lines.at(-1) ?? '').split(' ')
	// Only what is switched off: a name that is set could be a macro.
	return pattern === '*' && attributes.includes('-filter') && attributes.every((each) => /^-[a-z-]+$/.test(each))
}

const diffing = new Set(['diff', 'log', 'show', 'diff-tree', 'diff-index', 'diff-files', 'format-patch'])
const enteringSubmodules = new Set(['status', 'diff', 'diff-index', 'diff-files'])

export const createGit = (options: GitOptions): Git => {
	let found: string | null | undefined
	const locate = (): string | null => {
		found ??= options.git ?? findProgram('git', options.env.PATH, options.avoid ?? []) ?? null
		return found
	}
	const environment = (run: GitRun): Record<string, string> => ({
		// Built anew: no GIT_* of the caller's passes, nor a loader's variable.
		PATH:
			(options.env.PATH ?? '')
				.split(':')
				.filter((entry) => entry.startsWith('/'))
				.join(':') || '/usr/bin:/bin',
		...(options.env.HOME ? { HOME: options.env.HOME } : {}),
		...(options.env.XDG_CONFIG_HOME ? { XDG_CONFIG_HOME: options.env.XDG_CONFIG_HOME } : {}),
		LC_ALL: 'C',
		TERM: 'dumb',
		GIT_TERMINAL_PROMPT: '0',
		GIT_OPTIONAL_LOCKS: '0',
		GIT_PAGER: 'cat',
		GIT_EDITOR: 'false',
		GIT_SEQUENCE_EDITOR: 'false',
		GIT_ASKPASS: 'false',
		SSH_ASKPASS: 'false',
		GIT_SSH_COMMAND: 'false',
		GIT_NO_LAZY_FETCH: '1',
		// An identity of Garuda's own, so that a machine without user.email makes snapshots too.
		GIT_AUTHOR_NAME: 'Garuda',
		GIT_AUTHOR_EMAIL: 'garuda@localhost',
		GIT_COMMITTER_NAME: 'Garuda',
		GIT_COMMITTER_EMAIL: 'garuda@localhost',
		...(run.gitDir === undefined ? {} : { GIT_DIR: run.gitDir }),
		...(run.workTree === undefined ? {} : { GIT_WORK_TREE: run.workTree }),
		...(run.index === undefined ? {} : { GIT_INDEX_FILE: run.index }),
	})

	const start = (config: [string, string][], args: string[], run: GitRun): Promise<GitResult> => {
		const git = locate()
		if (git === null) throw new ToolError('There is no git on this machine that Garuda may use.')
		const before = [
			'--no-optional-locks',
			'--no-pager',
			'--no-replace-objects',
			...config.flatMap(([key, value]) => ['-c', `${key}=${value}`]),
		]
		return collect(git, [...before, ...args], environment(run), run, run.timeoutMs ?? options.timeoutMs ?? 30_000)
	}

	/** Every filter, driver and text converter that any configuration names, made to do nothing. */
	const silenced = async (run: GitRun): Promise<[string, string][]> => {
		const { input: _, maxBytes: __, ...rest } = run
		const listed = await start(
			fixed,
			['config', '--name-only', '-z', '--get-regexp', '^(filter|diff|merge|gpg|credential|trailer|remote)\\..*\\.'],
			rest,
		)
		const names = new Set(
			listed.stdout
				.toString('utf8')
				.split('\0')
				.filter((name) => name !== '' && !name.includes('=')),
		)
		const quiet: [string, string][] = []
		for (const name of names) {
			const section = name.slice(0, name.lastIndexOf('.'))
			if (/^filter\..*\.(?:clean|smudge|process)$/is.test(name))
				quiet.push([name, ''], [`${section}.required`, 'false'])
			else if (/^merge\..*\.driver$/is.test(name)) quiet.push([name, 'git merge-file --marker-size=%L %A %O %B'])
			else if (
				/^diff\..*\.(?:command|textconv)$|^gpg\..*program$|^trailer\..*\.(?:cmd|command)$|^remote\..*\.(?:uploadpack|receivepack|vcs)$/is.test(
					name,
				)
			)
				quiet.push([name, 'false'])
			else if (/^credential\..*\.helper$/is.test(name)) quiet.push([name, ''])
		}
		// A name with `=` cannot be overridden on a command line; git would be run with it live.
		if (
			listed.stdout
				.toString('utf8')
				.split('\0')
				.some((name) => /^(?:filter|merge)\./i.test(name) && name.includes('='))
		)
			throw new ToolError(
				'The git configuration names a filter with "=" in its name, which Garuda does not run git with.',
			)
		return quiet
	}

	return {
		async available() {
			try {
				const { code, stdout } = await start([], ['--version'], { cwd: '/' })
				return code === 0 ? (/(\d+\.\d+(?:\.\d+)?)/.exec(stdout.toString())?.[1] ?? null) : null
			} catch {
				return null
			}
		},
		async run(args, run) {
			const [command = '', ...rest] = args
			if (command.startsWith('-') && command !== '--version')
				throw new ToolError(`git options come after the command: ${command}`)
			const quiet = runsNothing(command, rest, run) ? [] : await silenced(run)
			const flags = [
				...(diffing.has(command) ? ['--no-ext-diff', '--no-textconv'] : []),
				...(enteringSubmodules.has(command) ? ['--ignore-submodules=dirty'] : []),
			]
			return start([...(run.config ?? []), ...fixed, ...quiet], [command, ...flags, ...rest], run)
		},
	}
}

const collect = (
	git: string,
	args: string[],
	env: Record<string, string>,
	run: GitRun,
	timeoutMs: number,
): Promise<GitResult> =>
	new Promise((resolve, reject) => {
		const maxBytes = run.maxBytes ?? 64 * 2 ** 20
		const child = spawn(git, args, {
			env,
			cwd: run.cwd,
			detached: true,
			stdio: [run.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
		})
		const chunks: Buffer[] = []
		let bytes = 0
		let stderr = ''
		let ended = ''
		const end = (why: string) => {
			if (ended !== '') return
			ended = why
			try {
				process.kill(-child.pid!, 'SIGKILL')
			} catch {
				child.kill('SIGKILL')
			}
		}
		const timer = setTimeout(() => end(`git took longer than ${timeoutMs} ms`), timeoutMs)
		const onAbort = () => end('git was cancelled')
		run.signal?.addEventListener('abort', onAbort, { once: true })
		const clear = () => {
			clearTimeout(timer)
			run.signal?.removeEventListener('abort', onAbort)
		}
		child.once('error', (error) => {
			clear()
			reject(new ToolError(`git could not be started: ${messageOf(error)}`))
		})
		child.stdout!.on('data', (chunk: Buffer) => {
			bytes += chunk.length
			if (bytes > maxBytes) end(`git wrote more than ${maxBytes} bytes`)
			else chunks.push(chunk)
		})
		child.stderr!.setEncoding('utf8').on('data', (text: string) => {
			if (stderr.length < 65_536) stderr += text
		})
		child.once('close', (code) => {
			clear()
			resolve({
				code: ended === '' ? code : null,
				stdout: Buffer.concat(chunks),
				stderr: ended === '' ? stderr : `${stderr}${ended}\n`,
			})
		})
		if (child.stdin) {
			child.stdin.on('error', () => {}) // git ended before it had read all
			child.stdin.end(run.input)
		}
		if (run.signal?.aborted) onAbort()
	})
