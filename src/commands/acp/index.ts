// `garuda acp`: the agent as a child process of an editor. Takes stdout first of all, then one room.
import * as Args from '@oclif/core/args'
import { AgentCommand, agentFlags } from '../../agent-command.ts'

export default class Acp extends AgentCommand {
	static override summary = 'Run as the agent of an editor (Agent Client Protocol on stdin and stdout)'
	static override description =
		'An editor starts this, not a person: see docs/editors.md. Stdout carries the protocol only; words for a person go to stderr.'
	static override examples = ['<%= config.bin %> acp', '<%= config.bin %> acp --model anthropic/claude-sonnet-5-5']
	static override args = {
		// An editor appends the words of the sign-in to the whole of its command, flags and all. Stdin is the protocol's.
		setup: Args.string({ hidden: true, ignoreStdin: true, options: ['setup'] }),
	}
	static override flags = agentFlags

	async run(): Promise<void> {
		const { args, flags, raw } = await this.parse(Acp)
		if (args.setup) return void (await this.config.runCommand('acp:setup', []))
		const { protocolOutput } = await import('../../acp/stdout.ts')
		const write = protocolOutput(process.stdout as never, process.stderr as never)
		const [{ run }, engine] = await Promise.all([import('../../acp/run.ts'), import('../../engine/index.ts')])
		const code = await run({ flags, ...(await this.parts(engine, raw)), write })
		// Whatever still holds the loop open must not outlive the editor.
		process.exit(code)
	}
}
