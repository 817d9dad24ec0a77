// `garuda setup editors`: flags to the setup service. Prints the entry that an editor starts Garuda by, or writes it.
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class SetupEditors extends BaseCommand {
	static override summary = 'Connect editors: Zed, VS Code, JetBrains, Neovim, Emacs'
	static override description =
		`Prints the entry for each editor, or with --write puts it into the configuration of those that are found here: the difference is shown first, and comments and everything else in the file stay as they are. Neovim and Emacs are configured by programs of yours, so their entry is printed.

Exit codes: 0 done · 1 a mistake to mend · 2 wrong usage · 130 left before the end.`
	static override examples = [
		'<%= config.bin %> setup editors',
		'<%= config.bin %> setup editors zed --write',
		'<%= config.bin %> setup editors --write --yes',
	]
	static override strict = false
	static override args = {
		editor: Args.string({ description: 'zed, vscode, jetbrains, neovim, emacs; several may be named' }),
	}
	static override flags = {
		write: Flags.boolean({ description: 'put the entry into the configuration' }),
		yes: Flags.boolean({ char: 'y', description: 'write without asking', dependsOn: ['write'] }),
	}

	async run(): Promise<void> {
		const { argv, flags } = await this.parse(SetupEditors)
		const { runEditors } = await import('../../setup/run.ts')
		process.exitCode = await runEditors({ editors: argv as string[], ...flags })
	}
}
