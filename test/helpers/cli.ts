// The built bin as a process: its own home, a clean environment, what it said and how it ended. For the journeys.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Script } from '../../src/engine/model/scripted.ts'
import { tempProject, writeFiles } from './temp.ts'

export const repository: string = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
export const bin: string = join(repository, 'bin', 'run.js')

/** A working root and a home, both temporary. */
export interface Place {
	root: string
	home: string
}

export interface Run {
	cwd?: string
	/** Added to PATH, HOME, LANG and the pinned Node; undefined takes a name out. */
	env?: Record<string, string | undefined>
	/** Written to stdin, which is then closed; null leaves it open. */
	stdin?: string | null
	/** Plays in place of a model. */
	script?: Script
	/** Arguments of Node itself. */
	node?: string[]
	/** Kills it; a test that waits for ever says where it stood. */
	timeoutMs?: number
}

export interface Ran {
	code: number | null
	signal: NodeJS.Signals | null
	stdout: string
	stderr: string
	ms: number
}

export interface Running {
	child: ChildProcess
	pid: number
	/** So far. */
	stdout(): string
	stderr(): string
	done: Promise<Ran>
}

/** A project in a git repository with one commit, and an empty home. */
export function place(files: Record<string, string | Uint8Array> = { 'a.txt': 'hello\n' }, repo = true): Place {
	const made = tempProject(files)
	if (repo) commit(made.root)
	return made
}

/** `git init` where there is none, then everything committed. */
export function commit(root: string): void {
	if (!existsSync(join(root, '.git'))) git(root, 'init', '-q', '-b', 'main')
	git(root, 'add', '-A')
	git(root, '-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-qm', 'start', '--allow-empty')
}

export const git = (root: string, ...args: string[]): string =>
	execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env: gitEnv() })

const gitEnv = () => ({ PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' })

/** Keys in `~/.garuda/credentials`, as `garuda setup` leaves them. */
export function credentials(home: string, keys: Record<string, string>): void {
	writeFiles(home, { '.garuda/credentials': JSON.stringify(keys) })
	chmodSync(join(home, '.garuda'), 0o700)
	chmodSync(join(home, '.garuda', 'credentials'), 0o600)
}

export function settings(home: string, value: object): void {
	mkdirSync(join(home, '.garuda'), { recursive: true, mode: 0o700 })
	writeFileSync(join(home, '.garuda', 'settings.json'), JSON.stringify(value))
}

let scripts = 0

/** The environment of a run: nothing of the tester's but PATH. */
export function environment(at: Place, run: Run = {}): Record<string, string> {
	const env: Record<string, string | undefined> = {
		PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
		HOME: at.home,
		LANG: 'C.UTF-8',
		...run.env,
	}
	if (run.script) {
		const file = join(dirname(at.home), `script-${++scripts}.json`)
		writeFileSync(file, JSON.stringify(run.script))
		env.GARUDA_MODEL_SCRIPT = file
	}
	return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)) as Record<string, string>
}

/** Starts the built bin. */
export function start(at: Place, args: string[], run: Run = {}): Running {
	const begun = performance.now()
	const child = spawn(process.execPath, [...(run.node ?? []), bin, ...args], {
		cwd: run.cwd ?? at.root,
		env: environment(at, run),
		stdio: ['pipe', 'pipe', 'pipe'],
	})
	let stdout = ''
	let stderr = ''
	child.stdout!.setEncoding('utf8').on('data', (text: string) => {
		stdout += text
	})
	child.stderr!.setEncoding('utf8').on('data', (text: string) => {
		stderr += text
	})
	child.stdin!.on('error', () => {})
	if (run.stdin !== null) child.stdin!.end(run.stdin ?? '')
	const done = new Promise<Ran>((resolve, reject) => {
		const timer = setTimeout(() => child.kill('SIGKILL'), run.timeoutMs ?? 15_000)
		child.on('error', reject)
		child.on('close', (code, signal) => {
			clearTimeout(timer)
			resolve({ code, signal, stdout, stderr, ms: performance.now() - begun })
		})
	})
	return { child, pid: child.pid!, stdout: () => stdout, stderr: () => stderr, done }
}

export const garuda = (at: Place, args: string[], run: Run = {}): Promise<Ran> => start(at, args, run).done

/** What was said on stderr, without the word on the tester's own rights or sandbox, which comes when it is known. */
export const told = (stderr: string): string =>
	stderr
		.split('\n')
		.filter((line) => !line.startsWith('garuda: Sandbox: '))
		.join('\n')

/** The lines of JSON output. */
export const lines = (text: string): any[] =>
	text
		.split('\n')
		.filter((line) => line !== '')
		.map((line) => JSON.parse(line))

/** Waits for a condition; throws with what `about` says. */
export async function until(test: () => boolean, about: () => string, ms = 10_000): Promise<void> {
	const end = performance.now() + ms
	while (!test()) {
		if (performance.now() > end) throw new Error(`not within ${ms} ms: ${about()}`)
		await new Promise((done) => setTimeout(done, 10))
	}
}

/** Journals of a root, by id. */
export const journals = (root: string): string[] => {
	const folder = join(root, '.garuda', 'sessions')
	if (!existsSync(folder)) return []
	return readdirSync(folder)
		.filter((name) => name.endsWith('.jsonl'))
		.map((name) => name.slice(0, -6))
}

/** The records of a journal; a torn last line is left out. */
export const records = (root: string, id: string): any[] => {
	const text = readFileSync(join(root, '.garuda', 'sessions', `${id}.jsonl`), 'utf8')
	const whole = text.split('\n')
	const last = whole.pop()!
	const out = whole.filter((line) => line !== '').map((line) => JSON.parse(line))
	if (last !== '')
		try {
			out.push(JSON.parse(last))
		} catch {}
	return out
}

/** Processes whose command line or environment holds a text: what a run left behind. Not this process or its shells. */
export function processesWith(text: string): { pid: number; command: string }[] {
	const found: { pid: number; command: string }[] = []
	for (const name of readdirSync('/proc')) {
		if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
		try {
			const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
			const state = /^State:\s+(\S)/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1]
			if (state === 'Z') continue
			if (command.includes(text) || readFileSync(`/proc/${name}/environ`, 'utf8').includes(text))
				found.push({ pid: Number(name), command })
		} catch {
			// ended meanwhile
		}
	}
	return found
}

// ---------------------------------------------------------------- a terminal

export interface Step {
	/** Waits until this stands in the output since the last step. */
	expect?: string
	/** Typed then; \r is Enter, \u0003 Ctrl-C. */
	send?: string
	/** Seconds before it. */
	wait?: number
	/** The terminal goes away (its window is closed). */
	hangup?: boolean
	/** A new size, [rows, columns]. */
	resize?: [number, number]
}

export interface InTerminal {
	/** All that came out. */
	output: string
	/** Exit code, or 128 and the signal; null when it did not end in time and was killed. */
	code: number | null
	pid: number
	/** Steps that were played; fewer than given when an expected text never came. */
	played: number
	/** Milliseconds from the last step to the end. */
	endedAfter: number
}

export const python: string | null =
	['/usr/bin/python3', 'python3'].find((one) => spawnSync(one, ['-c', 'import pty']).status === 0) ?? null

/** Plays steps against the built bin on a pseudo-terminal of 24 rows and 100 columns. */
export function inTerminal(
	at: Place,
	args: string[],
	steps: Step[],
	run: Run & { seconds?: number } = {},
): Promise<InTerminal> {
	const job = {
		argv: [process.execPath, ...(run.node ?? []), bin, ...args],
		env: { TERM: 'xterm-256color', ...environment(at, run) },
		cwd: run.cwd ?? at.root,
		steps,
		seconds: run.seconds ?? 12,
	}
	const child = spawn(python!, [join(repository, 'test', 'helpers', 'pty.py')], { stdio: ['pipe', 'pipe', 'inherit'] })
	child.stdin.end(JSON.stringify(job))
	let text = ''
	child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
		text += chunk
	})
	return new Promise((resolve, reject) => {
		child.on('error', reject)
		child.on('close', () => {
			try {
				resolve(JSON.parse(text) as InTerminal)
			} catch {
				reject(new Error(`the terminal helper said: ${text}`))
			}
		})
	})
}
