// What the two verbs that run an agent share: the flags of a session's model and mode, and what stands in for a model. Between base and chat, acp.
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from './base.ts'

/** Flags of every session, however it is talked to. */
export const agentFlags = {
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

/** The parser's tokens, as far as they are looked at here. */
type Raw = readonly { type: string; flag?: string }[]

/** A verb that runs sessions. */
export abstract class AgentCommand extends BaseCommand {
	/**
	 * What its room gets besides the flags: which of them stand on the command line (the others came from the environment),
	 * the scripted model and the recorder that the environment asks for, the tour.
	 */
	protected async parts(engine: typeof import('./engine/index.ts'), raw: Raw) {
		const { GARUDA_MODEL_SCRIPT: script, GARUDA_MODEL_RECORD: record } = process.env
		return {
			named: new Set(raw.flatMap(({ type, flag }) => (type === 'flag' && flag !== undefined ? [flag] : []))),
			version: this.config.version,
			clients: script ? { scripted: () => engine.scriptedFromFile(script) } : {},
			...(record ? { wrapClient: await engine.recordingTo(record) } : {}),
			tour: () => import('./engine/tour/index.ts'),
		}
	}
}
