// `garuda policy replay`: flags to options, then the inspectors' room. Says what other rules would have done with what was recorded.
import { homedir } from 'node:os'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class PolicyReplay extends BaseCommand {
	static override summary = 'Decide all recorded calls again, and list what would differ'
	static override description =
		'Takes the decisions that the sessions of this folder recorded and makes them again, by the same code, under the rules of now or under those of a file. Lists what would be asked less, asked more or refused. Nothing runs and nothing is written; a line that holds a mark for a secret is not comparable.'
	static override examples = [
		'<%= config.bin %> policy replay',
		'<%= config.bin %> policy replay --settings draft.json --all',
		'<%= config.bin %> policy replay --policy team-policy.json --json',
		'<%= config.bin %> policy replay --audit ~/.garuda/audit --lines',
	]
	static override flags = {
		settings: Flags.string({ helpValue: '<file>', description: 'this file in place of ~/.garuda/settings.json' }),
		policy: Flags.string({ helpValue: '<file>', description: "this file in place of the machine's team policy" }),
		all: Flags.boolean({ description: 'sessions of all folders, each under its own rules' }),
		session: Flags.string({ char: 's', helpValue: '<id>', description: 'only this session (the beginning of its id)' }),
		audit: Flags.string({
			helpValue: '<path>',
			description: 'an audit log, or the folder of them, instead of journals',
		}),
		lines: Flags.boolean({ description: 'every decision on a line of its own, also those that stay the same' }),
		cd: Flags.string({ char: 'C', helpValue: '<folder>', description: 'the working root instead of this folder' }),
		json: Flags.boolean({ description: 'one JSON object with every line' }),
	}

	async run(): Promise<void> {
		const { flags } = await this.parse(PolicyReplay)
		const { policyReplay } = await import('../../engine/inspect/policy-replay.ts')
		const { env, platform } = process
		const place = { home: env.HOME || homedir(), garudaHome: env.GARUDA_HOME, cwd: process.cwd(), env, platform }
		const text = await policyReplay(place, flags)
		await this.report(text)
	}
}
