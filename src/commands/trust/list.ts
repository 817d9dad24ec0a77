// `garuda trust list`: flags to options, then the inspectors' room. Says what of which project was agreed to.
import { homedir } from 'node:os'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class TrustList extends BaseCommand {
	static override summary = 'List what you agreed to of projects'
	static override description =
		`Newest first: a number, the kind, when, the beginning of the hash that it is pinned to, the project's folder and the file. A text that changed since is asked about again (docs/trust.md).

Exit codes: 0 done · 1 the file cannot be read, or is damaged · 2 wrong usage.`
	static override examples = ['<%= config.bin %> trust list', '<%= config.bin %> trust list --json']
	static override flags = { json: Flags.boolean({ description: 'one JSON object' }) }

	async run(): Promise<void> {
		const { flags } = await this.parse(TrustList)
		const { trustList } = await import('../../engine/inspect/trust.ts')
		const { env } = process
		const place = { home: env.HOME || homedir(), garudaHome: env.GARUDA_HOME, cwd: process.cwd() }
		const { text, problems } = await trustList(place, flags)
		await this.report(text, problems)
	}
}
