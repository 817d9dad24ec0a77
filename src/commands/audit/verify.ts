// `garuda audit verify`: flags to options, then the inspectors' room. Says whether the audit logs are as Garuda wrote them.
import { homedir } from 'node:os'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class AuditVerify extends BaseCommand {
	static override summary = 'Check that the audit logs are as Garuda wrote them'
	static override description =
		`Goes through the chain of every session's log and checks it against the index, the checkpoints and the witnesses that your settings and the team policy name. For each session: ok, or the first bad line and why.

Exit codes: 0 all is as written · 1 something is not, or could not be looked at · 2 wrong usage.`
	static override examples = [
		'<%= config.bin %> audit verify',
		'<%= config.bin %> audit verify --witness /mnt/backup/garuda',
		'<%= config.bin %> audit verify --witness ~/notes.git#refs/garuda/laptop --json',
	]
	static override flags = {
		session: Flags.string({ char: 's', helpValue: '<id>', description: 'only this session (the beginning of its id)' }),
		witness: Flags.string({
			char: 'w',
			helpValue: '<folder|repository[#ref]>',
			multiple: true,
			multipleNonGreedy: true,
			description: 'one more second place to check against',
		}),
		json: Flags.boolean({ description: 'one JSON object' }),
	}

	async run(): Promise<void> {
		const { flags } = await this.parse(AuditVerify)
		const { auditVerify } = await import('../../engine/inspect/audit.ts')
		const { env } = process
		const place = { home: homedir(), garudaHome: env.GARUDA_HOME, cwd: process.cwd(), env, platform: process.platform }
		const { text, ok } = await auditVerify(place, flags)
		process.exitCode = ok ? 0 : 1
		await this.report(text)
	}
}
