// `garuda setup check`: the doctor. Flags to the setup service; tries everything that a session needs.
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class SetupCheck extends BaseCommand {
	static override summary = 'Try everything that a session needs, and say what is wrong'
	static override description =
		`Named lines: PASS, WARN, FAIL, SKIP, with what to do. Each wall of the sandbox is tried by a command that tries to get out; the model server is asked for its models with your key. Nothing is changed. The report holds no key and no home folder, so it may be shared; host names of servers of yours are in it.

Exit codes: 0 nothing failed · 1 something failed · 2 wrong usage.`
	static override examples = ['<%= config.bin %> setup check', '<%= config.bin %> setup check --json | jq .lines']
	static override flags = { json: Flags.boolean({ description: 'one JSON object' }) }

	async run(): Promise<void> {
		const { flags } = await this.parse(SetupCheck)
		const { runCheck } = await import('../../setup/run.ts')
		process.exitCode = await runCheck(flags, this.config.version)
	}
}
