// `garuda acp setup`: what an editor starts in a terminal for the sign-in; the same as `garuda setup`.
import { BaseCommand } from '../../base.ts'

export default class AcpSetup extends BaseCommand {
	static override summary = 'Choose a model and enter its key, as an editor asks for it'
	static override description = 'The same as garuda setup. Exit code 0 means that Garuda is ready.'

	async run(): Promise<void> {
		await this.parse(AcpSetup)
		await this.config.runCommand('setup', [])
	}
}
