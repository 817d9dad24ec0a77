// The shell text round a command: its limits before, and what it says about itself at its end.
import { randomBytes } from 'node:crypto'
import {
	closeSync,
	constants,
	existsSync,
	fstatSync,
	openSync,
	readSync,
	rmSync,
	unlinkSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { ToolError } from '../errors.ts'

export interface ShellLimits {
	/** Processes of one command; 0 is no limit. */
	processes: number
	/** Bytes of one file a command writes; 0 is no limit. */
	fileBytes: number
}

/** What the shell wrote as it ended. A command can forge it: to be shown and checked, never trusted. */
export interface ShellEnd {
	status: number
	survivors: number
	cwd: string | undefined
}

/** /bin/bash, without rc files, aliases and history; where there is none, /bin/sh. */
export const shellPath = (): string => (existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh')

const shellArguments = (shell: string): string[] => (shell.endsWith('bash') ? ['--noprofile', '--norc'] : [])

/**
 * Limits that bind the command and its children. Processes are counted for each user namespace, so the sandbox's own; global
 * root is exempt, for whom the executor counts.
 */
const limitText = (limits: ShellLimits, shell: string, sandboxed: boolean): string => {
	const unit = shell.endsWith('bash') ? 1024 : 512
	const parts = ['ulimit -c 0']
	// Not every sh names it -u.
	if (sandboxed && limits.processes > 0) parts.push(`ulimit -u ${limits.processes} || ulimit -p ${limits.processes}`)
	if (sandboxed && limits.fileBytes > 0) parts.push(`ulimit -f ${Math.ceil(limits.fileBytes / unit)}`)
	return `{ ${parts.join('; ')}; } 2>/dev/null; `
}

/** Above this a command goes by file: the kernel takes at most 128 KiB for one argument. */
const argumentLimit = 100_000

/** Carries a sandboxed script to its shell, which may be started before the script is known. Never seen by the script. */
const carrier = 'GARUDA_SCRIPT'

/** The descriptor by which a command asks Garuda whether it may begin. */
export const lifeline = (sandboxed: boolean): number => (sandboxed ? 6 : 3)

/**
 * Nothing begins for a Garuda that is gone. What ends a command with Garuda is set up along the way (the kernel's signals
 * between bubblewrap and its first process, the reaper's list), and a kill in those milliseconds would leave a command that
 * nobody ends. By the time this asks, all of it is there: whoever answers lives, and what happens to it later ends the command.
 */
const askToBegin = (sandboxed: boolean): string => {
	const fd = lifeline(sandboxed)
	return `echo >&${fd} && read -r garuda_go <&${fd} || exit 125; exec ${fd}>&-; `
}

/** The shell of every sandboxed script; the script itself comes with the environment that `shellScript` gives. */
export const sandboxedShell = (): string[] => {
	const shell = shellPath()
	return [shell, ...shellArguments(shell), '-c', `${askToBegin(true)}eval "unset ${carrier} garuda_go; $${carrier}"`]
}

export interface ShellCommand {
	argv: string[]
	/** To set over everything else. */
	env: Record<string, string>
	/** Reads what the shell said at its end and removes the files. Once. */
	end(): ShellEnd | undefined
}

/**
 * A script as an argv. `tmp` is the session folder and `seenTmp` its path for the command. A script that sets its own EXIT
 * trap, or replaces the shell by `exec`, says nothing at its end.
 */
export const shellScript = (
	script: string,
	options: { limits: ShellLimits; tmp: string; seenTmp: string; sandboxed: boolean },
): ShellCommand => {
	if (script.includes('\0')) throw new ToolError('A command cannot hold a NUL character.')
	const shell = shellPath()
	const name = `.garuda-${randomBytes(6).toString('hex')}`
	const endFile = join(options.tmp, `${name}.end`)
	const scriptFile = join(options.tmp, `${name}.sh`)
	// Builtins only: a fork here would cost a millisecond in each command. A zombie has no exe.
	const count = options.sandboxed
		? 'for garuda_p in /proc/[0-9]*; do case $garuda_p in /proc/1|/proc/$$) ;; *) [ -e "$garuda_p/exe" ] && garuda_n=$((garuda_n+1));; esac; done; '
		: ''
	const report = `garuda_s=$?; garuda_n=0; { ${count}echo "$garuda_s $garuda_n"; pwd -P; } >|${quote(join(options.seenTmp, `${name}.end`))} 2>/dev/null`
	let body = script
	if (Buffer.byteLength(script) > argumentLimit) {
		writeFileSync(scriptFile, script, { mode: 0o600, flag: 'wx' })
		body = `. ${quote(join(options.seenTmp, `${name}.sh`))}`
	}
	const ask = options.sandboxed ? '' : `${askToBegin(false)}unset garuda_go; `
	const text = `${ask}${limitText(options.limits, shell, options.sandboxed)}trap ${quote(report)} EXIT; ${body}`
	return {
		argv: options.sandboxed ? sandboxedShell() : [shell, ...shellArguments(shell), '-c', text],
		env: options.sandboxed ? { [carrier]: text } : {},
		end() {
			if (body !== script) rmSync(scriptFile, { force: true })
			return readEnd(endFile)
		},
	}
}

/** A program run as it is, under the same limits. */
export const limitedArgv = (argv: string[], limits: ShellLimits, sandboxed: boolean): string[] => {
	if (argv.length === 0 || argv[0] === '' || argv.some((word) => word.includes('\0')))
		throw new ToolError('The program to run has no name or holds a NUL character.')
	if (argv[0]!.startsWith('-')) throw new ToolError(`Not the name of a program: ${argv[0]}`)
	// Not bash: it starts a millisecond slower.
	const before = `${askToBegin(sandboxed)}${limitText(limits, '/bin/sh', sandboxed)}`
	return ['/bin/sh', '-c', `${before}exec "$@"`, 'garuda', ...argv]
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const readEnd = (path: string): ShellEnd | undefined => {
	let fd: number
	try {
		// The command may have put a link or a FIFO there: neither is followed or waited for.
		fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
	} catch {
		return undefined
	}
	try {
		if (!fstatSync(fd).isFile()) return undefined
		const buffer = Buffer.alloc(8192)
		const text = buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0))
		const match = /^(\d{1,3}) (\d{1,7})\n(?:(\/[^\0]*)\n)?$/.exec(text)
		if (!match) return undefined
		return { status: Number(match[1]), survivors: Number(match[2]), cwd: match[3] }
	} finally {
		closeSync(fd)
		try {
			unlinkSync(path)
		} catch {
			rmSync(path, { force: true, recursive: true })
		}
	}
}
