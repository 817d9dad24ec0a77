// The command files of the user and of the project as one list: who wins, what is left out. Read when a command is asked for.
import { realpath } from 'node:fs/promises'
import type { CommandInfo, CommandList } from './api.ts'
import type { GarudaPaths } from './config/paths.ts'
import { codeOf, UserError } from './errors.ts'
import { readSlashFiles, type SlashFile } from './extend/slash-files.ts'
import { takenNames } from './slash.ts'
import { oneLine } from './text.ts'

export interface Command extends SlashFile {
	source: CommandInfo['source']
}

export interface Commands {
	/** Read anew; never throws. */
	list(): Promise<CommandList>
	/** One of them, its bytes and what was parsed of them. UserError: it is not there (any more). */
	find(name: string): Promise<Command>
}

/** A built-in command wins over a file, the user's file over the project's. Where root and home share a folder it is the user's. */
export function createCommands(place: { paths: GarudaPaths; home: string }): Commands {
	const { paths, home } = place

	async function read(): Promise<{ commands: Command[]; problems: string[] }> {
		const problems: string[] = []
		const real = async (path: string): Promise<string | null> => {
			try {
				return await realpath(path)
			} catch (error) {
				if (codeOf(error) !== 'ENOENT')
					problems.push(`The commands in ${oneLine(path, 300)} cannot be read (${codeOf(error) ?? 'unknown error'}).`)
				return null
			}
		}
		const own = await real(paths.home)
		const shownHome = paths.home.startsWith(`${home}/`) ? `~${paths.home.slice(home.length)}` : paths.home
		const shared = own !== null && own === (await real(paths.project.dir))
		const places = [
			...(own === null ? [] : [{ source: 'user' as const, base: own, shown: shownHome }]),
			// By its plain path: a link in the place of the project's folder is refused, not followed.
			...(shared ? [] : [{ source: 'project' as const, base: paths.project.dir, shown: '.garuda' }]),
		]
		const builtin = takenNames()
		const commands = new Map<string, Command>()
		for (const { source, base, shown } of places) {
			const found = await readSlashFiles(base, shown)
			problems.push(...found.problems)
			for (const file of found.files) {
				const first = commands.get(file.name)
				const out = (why: string) => problems.push(`${oneLine(file.shown, 300)} is left out: ${why}.`)
				if (builtin.has(file.name)) out(`/${file.name} is built in`)
				else if (first) out(`your own ${oneLine(first.shown, 300)} goes before it`)
				else commands.set(file.name, { ...file, source })
			}
		}
		return { commands: [...commands.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), problems }
	}

	return {
		async list() {
			const { commands, problems } = await read()
			return {
				commands: commands.map(({ name, description, hint, source, shown }) => ({
					name,
					description,
					hint,
					source,
					path: shown,
				})),
				problems,
			}
		},
		async find(name) {
			const { commands, problems } = await read()
			const found = commands.find((one) => one.name === name)
			if (found) return found
			const why = problems.filter((one) => one.toLowerCase().includes(`/${name.replaceAll(':', '/')}.md`))
			throw new UserError(`There is no command /${oneLine(name, 60)}. ${why.join(' ')}`.trim(), 'All commands: /help.')
		},
	}
}
