// `garuda policy check`: flags to options, then the inspectors' room. Says what a call would be decided, and by which rule.
import { homedir } from 'node:os'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class PolicyCheck extends BaseCommand {
	static override summary = 'Say what the rules decide on a call, and which rule from which line'
	static override description =
		`A text is a command; the first word may say otherwise: read PATH, edit PATH, host NAME, outside COMMAND, or a tool's name. The decision is made by the code that decides in a session, on your settings, the project's (what you agreed to) and the team policy. Nothing runs.

Exit codes: 0 allowed or asked · 1 a mistake to mend · 2 wrong usage · 3 denied.`
	static override examples = [
		"<%= config.bin %> policy check 'git push origin main'",
		"<%= config.bin %> policy check 'read ~/.ssh/id_rsa'",
		"<%= config.bin %> policy check 'edit src/a.ts' --mode plan",
		"<%= config.bin %> policy check 'host example.com' --json",
	]
	static override args = {
		call: Args.string({ required: true, description: 'the command, or a tool and its input, as one text' }),
	}
	static override flags = {
		mode: Flags.option({ options: ['build', 'plan'] as const, description: 'the mode of the session' })(),
		allow: Flags.string({
			helpValue: '<rule>',
			multiple: true,
			multipleNonGreedy: true,
			description: 'as with chat --allow',
		}),
		sandbox: Flags.boolean({
			allowNo: true,
			description: 'as if commands ran in a sandbox, or in none; this machine is asked by default',
		}),
		cd: Flags.string({ char: 'C', helpValue: '<folder>', description: 'the working root instead of this folder' }),
		json: Flags.boolean({ description: 'one JSON object' }),
	}

	async run(): Promise<void> {
		const { args, flags } = await this.parse(PolicyCheck)
		const { policyCheck } = await import('../../engine/inspect/policy.ts')
		const { env, platform } = process
		const place = { home: env.HOME || homedir(), garudaHome: env.GARUDA_HOME, cwd: process.cwd(), env, platform }
		const { text, denied } = await policyCheck(place, args.call, flags)
		process.exitCode = denied ? 3 : 0
		await this.report(text)
	}
}
