// `garuda audit show`: flags to options, then the inspectors' room. Prints what was decided, done and agreed to.
import { homedir } from 'node:os'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class AuditShow extends BaseCommand {
	static override summary = 'Print lines of the audit logs'
	static override description =
		'What was decided, done and agreed to, by session. Secrets are marks already in the file.'
	static override examples = [
		'<%= config.bin %> audit show --since 1d --denied',
		'<%= config.bin %> audit show --session 01j --tool bash',
		'<%= config.bin %> audit show --json | jq .decision',
	]
	static override flags = {
		session: Flags.string({ char: 's', helpValue: '<id>', description: 'only this session (the beginning of its id)' }),
		tool: Flags.string({ helpValue: '<name>', description: 'only calls of this tool' }),
		decision: Flags.string({
			helpValue: '<word>',
			description: 'allow, deny, once, session, cancel, granted, refused, left_out',
		}),
		kind: Flags.option({
			options: ['session', 'decision', 'action', 'consent', 'policy', 'mode', 'undo'] as const,
			description: 'only lines of this kind',
		})(),
		since: Flags.string({
			helpValue: '<time>',
			description: 'a day, a moment, or how long ago: 2026-11-30, 90m, 12h, 7d',
		}),
		denied: Flags.boolean({ description: 'only what was denied, refused or cancelled' }),
		json: Flags.boolean({ description: 'the lines as they are, one JSON object each' }),
	}

	async run(): Promise<void> {
		const { flags } = await this.parse(AuditShow)
		const { auditShow } = await import('../../engine/inspect/audit.ts')
		const { env, stdout } = process
		let gone = false
		stdout.on('error', () => {
			gone = true
		})
		const place = { home: homedir(), garudaHome: env.GARUDA_HOME, cwd: process.cwd(), env, platform: process.platform }
		for await (const text of auditShow(place, flags, Date.now())) {
			if (!gone && !stdout.write(text))
				await new Promise<void>((done) => {
					for (const event of ['drain', 'error', 'close']) stdout.once(event, () => done())
				})
			if (gone) return
		}
	}
}
