// From the words of `garuda setup …` to its service: streams, environment and exit codes. Between the command classes and engine/setup.
import { homedir, tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { UserError, visible } from '../engine/index.ts'
import type { Launcher } from '../engine/setup/editor-entries.ts'
import type { EditorFlags } from '../engine/setup/editors.ts'
import { type SetupFlags, type SetupPlace, setup } from '../engine/setup/index.ts'
import { terminalAsk } from './ask.ts'

/** The real user's place. GARUDA_HOME is taken as the chat takes it. */
export function processPlace(): SetupPlace {
	const { env } = process
	return {
		home: env.HOME || homedir(),
		garudaHome: env.GARUDA_HOME ? resolve(process.cwd(), env.GARUDA_HOME) : undefined,
		env,
		platform: process.platform,
	}
}

/**
 * Resolves with the exit code: 0 done, 130 when the person left. Throws UserError; nothing is written then. `inChat`: a chat
 * goes on after it; its signal's abort is a leave.
 */
export async function runSetup(flags: SetupFlags, inChat?: { signal: AbortSignal }): Promise<number> {
	const terminal = process.stdin.isTTY === true && process.stdout.isTTY === true
	const quiet = flags.show || flags['remove-key'] !== undefined
	if (!terminal && !flags.yes && !quiet)
		throw new UserError(
			'There is no terminal to ask on.',
			'Say it all in flags: garuda setup --provider anthropic --key-from-env ANTHROPIC_API_KEY --model claude-sonnet-5-5 --yes',
		)
	const ask = terminal ? askHere(inChat?.signal) : null
	try {
		const text = await setup(processPlace(), flags, ask, inChat !== undefined)
		if (text !== '') await print(`${visible(text)}\n`)
		return 0
	} catch (error) {
		return cancelled(error)
	}
}

/** As `runSetup`, for the editors' entries. */
export async function runEditors(flags: EditorFlags): Promise<number> {
	const { setupEditors } = await import('../engine/setup/editors.ts')
	const terminal = process.stdin.isTTY === true && process.stdout.isTTY === true
	try {
		const say = (text: string) => void process.stdout.write(`${visible(text)}\n`)
		await setupEditors(processPlace(), await launcher(), flags, terminal ? askHere() : null, say)
		return 0
	} catch (error) {
		return cancelled(error)
	}
}

/** The doctor; 1 when something failed. */
export async function runCheck(flags: { json?: boolean | undefined }, version: string): Promise<number> {
	const { doctor, reportText } = await import('../engine/setup/doctor.ts')
	const { stdin, stdout, version: nodeVersion, arch } = process
	const place = processPlace()
	const report = await doctor({
		...place,
		cwd: process.cwd(),
		tmpdir: tmpdir(),
		nodeVersion,
		terminal: { stdin: stdin.isTTY === true, stdout: stdout.isTTY === true, columns: stdout.columns },
		launcher: await launcher(),
	})
	const whole = { garuda: version, node: nodeVersion, platform: `${place.platform}-${arch}`, ...report }
	await print(flags.json ? `${JSON.stringify(whole, null, 2)}\n` : visible(`Garuda ${version}\n${reportText(report)}`))
	return report.ok ? 0 : 1
}

/** `garuda` where a shell finds it, else this Node with this installation. */
export async function launcher(): Promise<Launcher> {
	const { findProgram } = await import('../engine/sandbox/programs.ts')
	if (findProgram('garuda', process.env.PATH, [])) return { command: 'garuda', args: ['acp'] }
	return { command: process.execPath, args: [resolve(process.argv[1] ?? ''), 'acp'] }
}

/** The terminal of this process. */
export const askHere = (signal?: AbortSignal) =>
	terminalAsk({
		...(signal ? { signal } : {}),
		stdin: process.stdin,
		stdout: process.stdout,
		dumb: process.env.TERM === 'dumb' || process.env.TERM === undefined,
	})

/** 130 for a person who left; anything else is thrown on. */
export const cancelled = async (error: unknown): Promise<number> => {
	if (!(error instanceof Error && error.name === 'SetupCancelled')) throw error
	await print('\nStopped; nothing more was changed.\n', process.stderr)
	return 130
}

/** Resolves when it is written; a reader that left is no failure. */
export const print = (text: string, to: NodeJS.WriteStream = process.stdout): Promise<void> =>
	new Promise((done) => {
		to.once('error', () => done())
		to.write(text, () => done())
	})
