// What /undo says of the commands of a turn, once a session. Between live-session and the turns' marks.
import type { Turnmark } from './session/resume.ts'

/** Whether the turn's messages hold a command; of a compacted conversation too, for the mark keeps the messages. */
export const ranCommands = ({ base, messages }: Pick<Turnmark, 'base' | 'messages'>): boolean =>
	base.slice(messages).some(({ blocks }) => blocks.some((block) => block.type === 'tool_call' && block.name === 'bash'))

/** A person who undid a turn must not believe more is undone than is. */
export const commandsStay =
	'Commands ran in it: files that your ignore rules leave out, git commits and what lies outside the project stay as they made them.'
