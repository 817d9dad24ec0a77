// `garuda trust forget`: flags to options, then the inspectors' room. Takes consents back, so that they are asked for again.
import { homedir } from 'node:os'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class TrustForget extends BaseCommand {
	static override summary = 'Take back what you agreed to of projects'
	static override description =
		`By the number that trust list shows, by a file, by a project's folder (all of it), by the beginning of a hash, or all. Nothing of a project is changed: Garuda asks again.

Exit codes: 0 done · 1 there is no such consent, or the file cannot be changed · 2 wrong usage.`
	static override examples = [
		'<%= config.bin %> trust forget 2',
		'<%= config.bin %> trust forget ~/src/somebody/project',
		'<%= config.bin %> trust forget --all',
	]
	static override args = {
		what: Args.string({ description: 'a number of the list, a path, or the beginning of a hash', ignoreStdin: true }),
	}
	static override flags = { all: Flags.boolean({ description: 'all consents' }) }

	async run(): Promise<void> {
		const { args, flags } = await this.parse(TrustForget)
		const { what } = args
		if ((what === undefined) !== (flags.all === true)) return this.misused('Name one consent, or say --all.')
		// An empty text would be the current folder: a variable that is not set forgets nothing.
		if (what?.trim() === '')
			return this.misused('Name one consent: a number of the list, a path, or a hash; this is empty.')
		const { trustForget } = await import('../../engine/inspect/trust.ts')
		const { env } = process
		const place = { home: env.HOME || homedir(), garudaHome: env.GARUDA_HOME, cwd: process.cwd() }
		const { text, problems } = await trustForget(place, what ?? { all: true })
		await this.report(text, problems)
	}
}
