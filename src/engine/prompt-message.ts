// The user's words as a message for the model: Garuda's notes in front, mentions attached, outside text wrapped. Called at a turn's start.
import { type ExpandContext, expandMentions } from './context/mentions.ts'
import { imageLine } from './files/image.ts'
import type { Image, Json, Mode, PromptInput } from './types.ts'
import { neutralise, wrap } from './untrusted.ts'

export interface PromptState {
	/** The user stopped the task before. */
	stopped: boolean
	/** A mode that the model has not been told of yet. */
	newMode: Mode | null
	/** The JSON schema that the answer must fit. */
	schema?: Json
	/** What goes to the model in the place of the prompt's text: a command file's, already safe. Mentions are looked for in the text alone. */
	instead?: string
}

const notes = {
	stopped: 'The user stopped the task before this message. Do not go on with it unless asked.',
	plan: 'Plan mode is on. Read, search and think; files cannot be changed and commands cannot write the project. End with a plan: what to change where, how to check it, what is uncertain.',
	build: 'Plan mode is off: you may change files and run commands again.',
}
const note = (text: string): string => `<garuda-note>${text}</garuda-note>`

/**
 * The text, not yet redacted, the pictures that go with it (those of the prompt, then those mentioned), and a word for
 * the person about each mention that could not be attached. The text names each picture by its label, in their order.
 */
export async function promptText(
	prompt: PromptInput,
	state: PromptState,
	mentions: ExpandContext,
): Promise<{ text: string; images: Image[]; notices: string[] }> {
	const parts: string[] = []
	if (state.stopped) parts.push(note(notes.stopped))
	if (state.newMode) parts.push(note(notes[state.newMode]))
	const said = neutralise(prompt.text)
	parts.push(state.instead ?? said)
	const { attachments, images, notices } = said.includes('@')
		? await expandMentions(said, mentions)
		: { attachments: [], images: [], notices: [] }
	for (const one of prompt.images ?? []) parts.push(wrap('garuda-attached', {}, imageLine(one.label)))
	for (const one of attachments) parts.push(wrap('garuda-attached', { path: one.path }, one.text))
	for (const one of prompt.context ?? []) parts.push(wrap('garuda-context', { source: one.label }, one.text))
	if (state.schema !== undefined)
		parts.push(
			note(
				`End with one JSON value alone, no prose and no code fence, that fits this JSON schema: ${JSON.stringify(state.schema)}`,
			),
		)
	return { text: parts.join('\n\n'), images: [...(prompt.images ?? []), ...images], notices }
}
