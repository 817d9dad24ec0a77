// `garuda acp`: the agent as a child process of an editor. Takes stdout first of all, then one room.
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class Acp extends BaseCommand {
	static override summary = 'Run as the agent of an editor (Agent Client Protocol on stdin and stdout)'
	static override description =
		'An editor starts this, not a person: see docs/editors.md. Stdout carries the protocol only; words for a person go to stderr.'
	static override examples = ['<%= config.bin %> acp', '<%= config.bin %> acp --model anthropic/claude-sonnet-5-5']
	static override args = {
		// An editor appends the words of the sign-in to the whole of its command, flags and all. Stdin is the protocol's.
		setup: Args.string({ hidden: true, ignoreStdin: true, options: ['setup'] }),
	}
	static override flags = {
		model: Flags.string({
			char: 'm',
			helpValue: '<[provider/]model>',
			description: 'the model; "tour" is a guided rehearsal without any',
			env: 'GARUDA_MODEL',
		}),
		effort: Flags.option({
			options: ['low', 'medium', 'high', 'xhigh', 'max'] as const,
			description: 'how hard the model thinks',
			env: 'GARUDA_EFFORT',
		})(),
		mode: Flags.option({
			options: ['build', 'plan'] as const,
			description: 'plan reads and plans only',
			env: 'GARUDA_MODE',
		})(),
	}

	async run(): Promise<void> {
		const { args, flags, raw } = await this.parse(Acp)
		if (args.setup) return void (await this.config.runCommand('acp:setup', []))
		const { protocolOutput } = await import('../../acp/stdout.ts')
		const write = protocolOutput(process.stdout as never, process.stderr as never)
		const named = new Set(raw.flatMap((token) => (token.type === 'flag' ? [token.flag] : [])))
		const [{ run }, engine] = await Promise.all([import('../../acp/run.ts'), import('../../engine/index.ts')])
		const { GARUDA_MODEL_SCRIPT: script, GARUDA_MODEL_RECORD: record } = process.env
		const code = await run({
			flags,
			named,
			version: this.config.version,
			clients: script ? { scripted: () => engine.scriptedFromFile(script) } : {},
			...(record ? { wrapClient: await engine.recordingTo(record) } : {}),
			tour: () => import('../../engine/tour/index.ts'),
			write,
		})
		// Whatever still holds the loop open must not outlive the editor.
		process.exit(code)
	}
}
