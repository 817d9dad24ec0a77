// `garuda chat`, and plain `garuda`: flags to options, then one room. The first step of every prompt.
import * as Flags from '@oclif/core/flags'
import { AgentCommand, agentFlags } from '../agent-command.ts'
import { optionalValues } from '../base.ts'

const positive = (unit: string) =>
	Flags.custom<number>({
		parse: async (text) => {
			const value = Number(text)
			if (!(value > 0 && Number.isFinite(value))) throw new Error(`"${text}" is no number of ${unit} above 0`)
			return value
		},
	})

export default class Chat extends AgentCommand {
	static override summary = 'Talk to the agent, or give it one task with -p'
	static override description =
		`Without -p and with a terminal this opens a chat; the folder it is started in is the working root.
With -p, or with something piped in, it does one task and ends.

Exit codes: 0 done · 1 a mistake to mend, or a failed turn · 2 wrong usage · 3 done, but a call was denied and never allowed later · 130 interrupted.`
	static override usage = ['chat [FLAGS]', 'chat -p <task> [FLAGS]']
	static override examples = [
		'<%= config.bin %>',
		'<%= config.bin %> -p "why does the build fail?"',
		'git diff | <%= config.bin %> -p "review this change" --mode plan',
		'<%= config.bin %> -p "fix the tests" --allow edits --allow "bash(npm test)" --output-format json',
		'<%= config.bin %> --continue',
	]
	static override flags = {
		print: Flags.string({
			char: 'p',
			helpValue: '<task>',
			description: 'do one task and end; what is piped in goes with it, or is the task itself',
			helpGroup: 'ONE TASK',
		}),
		'output-format': Flags.option({
			options: ['text', 'json', 'stream-json'] as const,
			description: 'what goes to stdout (docs/json-output.md)',
			env: 'GARUDA_OUTPUT_FORMAT',
			helpGroup: 'ONE TASK',
		})(),
		'input-format': Flags.option({
			options: ['text', 'stream-json'] as const,
			description: 'what comes on stdin: a text, or a message a line, each a turn',
			helpGroup: 'ONE TASK',
		})(),
		'include-partial-messages': Flags.boolean({
			description: 'with stream-json: also the pieces of a reply as they come',
			helpGroup: 'ONE TASK',
		}),
		verbose: Flags.boolean({
			description: 'more of what happens: on stderr, or all messages in json',
			helpGroup: 'ONE TASK',
		}),
		'json-schema': Flags.string({
			helpValue: '<schema>',
			description: 'the answer must be JSON of this schema (the schema itself, or a file)',
			helpGroup: 'ONE TASK',
		}),
		allow: Flags.string({
			helpValue: '<rule>',
			multiple: true,
			multipleNonGreedy: true,
			description:
				'a call that needs no question (a rule as in settings, or "edits"); all that is not covered is denied',
			helpGroup: 'ONE TASK',
		}),
		'max-steps': Flags.integer({
			min: 1,
			description: 'stop after so many replies of the model',
			env: 'GARUDA_MAX_STEPS',
			helpGroup: 'LIMITS',
		}),
		'max-tokens': positive('tokens')({
			description: 'stop when so many tokens are used',
			env: 'GARUDA_MAX_TOKENS',
			helpGroup: 'LIMITS',
		}),
		'max-cost': positive('dollars')({
			helpValue: '<dollars>',
			description: 'stop before this is spent',
			env: 'GARUDA_MAX_COST',
			helpGroup: 'LIMITS',
		}),
		...agentFlags,
		cd: Flags.string({ char: 'C', helpValue: '<folder>', description: 'the working root instead of this folder' }),
		'add-dir': Flags.string({
			helpValue: '<folder>',
			multiple: true,
			multipleNonGreedy: true,
			description: 'one more folder under the same rules',
		}),
		'append-system-prompt': Flags.string({ helpValue: '<text>', description: 'added to the system prompt' }),
		continue: Flags.boolean({
			char: 'c',
			description: 'go on with the newest session of this folder',
			exclusive: ['resume', 'session-id', 'replay'],
			helpGroup: 'SESSION',
		}),
		resume: Flags.string({
			char: 'r',
			helpValue: '<id>',
			description: 'go on with a session; without an id, choose',
			exclusive: ['session-id', 'replay'],
			helpGroup: 'SESSION',
		}),
		fork: Flags.boolean({
			description: 'with --resume: go on with a copy, also of a session of another folder, machine or user',
			dependsOn: ['resume'],
			helpGroup: 'SESSION',
		}),
		'session-id': Flags.string({ helpValue: '<uuid>', description: 'the id of the new session', helpGroup: 'SESSION' }),
		replay: Flags.string({
			helpValue: '<id>',
			description: 'go through a session again from its record: no model, nothing is written',
			helpGroup: 'SESSION',
		}),
		debug: Flags.boolean({ description: 'keep a log without secrets, named at the end', env: 'GARUDA_DEBUG' }),
	}

	async run(): Promise<void> {
		const { flags, raw } = await this.parse(Chat, optionalValues(this.argv, ['-p', '--print', '-r', '--resume']))
		const [engine, { run }] = await Promise.all([import('../engine/index.ts'), import('../chat/run.ts')])
		process.exitCode = await run({
			flags,
			...(await this.parts(engine, raw)),
			createEngine: engine.createEngine,
			setup: () => import('../setup/run.ts'),
			replay: async (garuda, id) =>
				(await import('../engine/inspect/index.ts')).replayReport(await garuda.sessions.read(id)),
		})
	}
}
