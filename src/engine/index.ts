// The library: what a front end, or a program that embeds Garuda, imports. Light by itself; rooms load when they are used.
import { unified, unifiedParts } from './files/unified.ts'
import type { ApprovalRequest, FileChange, Image, Json } from './types.ts'

export type {
	CommandInfo,
	CommandList,
	EngineOptions,
	Garuda,
	ModelInfo,
	OpenOptions,
	Profile,
	PromptOptions,
	Readiness,
	Session,
	Status,
	Turn,
	UndoResult,
} from './api.ts'
export { tooManyImages } from './budget.ts'
export { threeWays } from './config/usual-models.ts'
export { createEngine, preload } from './engine.ts'
export { messageOf, ToolError, UserError } from './errors.ts'
export type { Approver, Clock, Executor, ModelClient, SessionRecord, SessionSummary, Snapshots } from './ports.ts'
export { recordingTo, scriptedFromFile } from './scripted-model.ts'
export { leftOut } from './slash/custom.ts'
export {
	completeSlash,
	parseSlash,
	runSlash,
	type SlashCommand,
	type SlashContext,
	type SlashResult,
	slashCommands,
	slashPrompt,
} from './slash.ts'
export { clip, cutHead, cutTail, hasHidden, hiddenWarning, oneLine, stripEscapes, visible } from './text.ts'
export type {
	AgentEvent,
	Answer,
	ApprovalRequest,
	Block,
	CallInfo,
	CallStatus,
	Choice,
	Effect,
	Effort,
	FileChange,
	Image,
	Json,
	Message,
	Mode,
	ModelEvent,
	ModelRequest,
	ModelSpec,
	ModelStop,
	Problem,
	PromptInput,
	StopReason,
	ToolSpec,
	TurnEnd,
	Usage,
} from './types.ts'

/** A change as a unified diff text of about `maxLines` lines at most, for a question or a screen. */
export const unifiedDiff = (change: FileChange, options: { maxLines?: number } = {}): string =>
	unified(change, (options.maxLines ?? 400) * 100)

/** The parts (hunks) of a change as texts, in the order that `Answer.accepted` counts in. */
export const diffHunks = (change: FileChange): string[] => unifiedParts(change)

/** Only these tools write the accepted parts alone; any other would write all of what was asked. */
const byParts = new Set(['edit_file', 'write_file'])

/** The parts that a question may offer one by one; none where the change is one part, or is made as a whole (a notebook). */
export const partsOf = ({ tool, info, effect }: ApprovalRequest): string[] => {
	if (!info.change || info.whole || effect || !byParts.has(tool)) return []
	const parts = diffHunks(info.change)
	return parts.length > 1 ? parts : []
}

/**
 * A picture for a prompt from strict base64; `name` begins its label. Resolves with a sentence for what is no whole PNG, JPEG,
 * GIF or WebP, or is larger than models take; never rejects. The bytes decide what it is, not what a client says of them.
 */
export const imageFromBase64 = async (data: string, name: string): Promise<Image | { refused: string }> =>
	(await import('./files/image.ts')).imageFromBase64(data, name)

/** JSON schemas of the files that people write, for editors and docs. */
export const schemas = async (): Promise<Record<string, Json>> => {
	const [{ settingsJsonSchema }, { modelsJsonSchema }, { policyJsonSchema }, { searchJsonSchema }] = await Promise.all([
		import('./config/settings.ts'),
		import('./config/models.ts'),
		import('./config/policy.ts'),
		import('./web/search-config.ts'),
	])
	return {
		settings: await settingsJsonSchema(),
		models: await modelsJsonSchema(),
		policy: await policyJsonSchema(),
		search: searchJsonSchema(),
	}
}
