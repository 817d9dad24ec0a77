// `garuda setup`: flags to the setup service, which asks for what they leave open. The first thing a newcomer runs.
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../../base.ts'

export default class Setup extends BaseCommand {
	static override summary = 'Choose a provider, enter its key, choose the default model'
	static override description =
		`On a terminal it asks; the key is not shown, and is checked with one request to the provider's own address. What is set already is shown, and stays unless you change it. It writes ~/.garuda/models.json and ~/.garuda/credentials, closed to other users. A key in the environment wins over a stored one.

With --yes it asks nothing and the flags say all.

Exit codes: 0 done · 1 a mistake to mend, nothing was written · 2 wrong usage · 130 left before the end.`
	static override examples = [
		'<%= config.bin %> setup',
		'<%= config.bin %> setup --provider anthropic --key-from-env ANTHROPIC_API_KEY --model claude-sonnet-5-5 --yes',
		'<%= config.bin %> setup --provider ollama --model qwen3-coder --yes',
		'<%= config.bin %> setup --provider work --base-url https://llm.example.com/v1 --key-from-env WORK_KEY --model big --yes',
		'<%= config.bin %> setup --show',
		'<%= config.bin %> setup --remove-key OPENAI_API_KEY',
	]
	static override flags = {
		provider: Flags.string({
			helpValue: '<name>',
			description:
				'anthropic, openai, openrouter, gemini, deepseek, mistral, groq, a local server (ollama, lmstudio, llamacpp, vllm), one of models.json, or a new name with --base-url',
		}),
		'base-url': Flags.string({
			helpValue: '<url>',
			description: 'where the provider answers, such as https://host/v1',
		}),
		api: Flags.option({
			options: ['openai', 'anthropic'] as const,
			description: 'what a server at --base-url speaks',
		})(),
		'key-from-env': Flags.string({
			helpValue: '<NAME>',
			description: 'store the key that this variable holds (a key itself is never a flag: others could see it)',
		}),
		model: Flags.string({ char: 'm', helpValue: '<model>', description: 'the default model' }),
		'allow-http': Flags.boolean({
			description: 'plain http to another machine: code and key cross that network readable',
		}),
		check: Flags.boolean({ default: true, allowNo: true, description: 'ask the provider whether it takes the key' }),
		yes: Flags.boolean({ char: 'y', description: 'ask nothing' }),
		show: Flags.boolean({ description: 'say what is set, without keys', exclusive: ['remove-key', 'yes'] }),
		json: Flags.boolean({ description: 'with --show: one JSON object', dependsOn: ['show'] }),
		'remove-key': Flags.string({
			helpValue: '<NAME>',
			description: "remove a stored key, by its name or its provider's",
		}),
	}

	async run(): Promise<void> {
		const { flags } = await this.parse(Setup)
		const { runSetup } = await import('../../setup/run.ts')
		process.exitCode = await runSetup(flags)
	}
}
