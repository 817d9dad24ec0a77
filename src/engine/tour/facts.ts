// What the tour's model can know: the user's last words, and what its own calls since then gave. Read from the request's messages.
import type { CallStatus, Message } from '../types.ts'

/** A call that the script made after the last prompt, with its result. */
export interface Done {
	/** `step-part`, as the script named it. */
	part: string
	input: Record<string, unknown>
	status: CallStatus
	text: string
}

export interface Facts {
	prompt: string
	/** Has it said what it is in this conversation? */
	introduced: boolean
	done: ReadonlyMap<string, Done>
}

const idOf = /^tour_\w+_([a-z]+-[a-z]+)$/
/** Unique in a session for one client; the part is read back from it. */
export const callId = (number: string, part: string): string => `tour_${number}_${part}`

export const notAnAi = 'not an AI'

/** Garuda's own notes and fenced context are no words of the user. */
const own = /<(garuda-[a-z-]+)\b[^>]*>[\s\S]*?<\/\1>/g

export function factsOf(messages: readonly Message[]): Facts {
	let at = messages.length - 1
	let prompt = ''
	for (; at >= 0; at--) {
		const { role, blocks } = messages[at]!
		if (role !== 'user' || blocks.some((block) => block.type === 'tool_result')) continue
		prompt = blocks
			.flatMap((block) => (block.type === 'text' ? [block.text.replace(own, '')] : []))
			.join('\n')
			.trim()
		if (prompt !== '') break
	}
	const done = new Map<string, Done>()
	const parts = new Map<string, string>()
	for (const { blocks } of messages.slice(Math.max(0, at)))
		for (const block of blocks) {
			if (block.type === 'tool_call') {
				const part = idOf.exec(block.id)?.[1]
				if (part === undefined) continue
				parts.set(block.id, part)
				done.set(part, { part, input: block.input, status: 'cancelled', text: '' })
			} else if (block.type === 'tool_result') {
				const found = done.get(parts.get(block.callId) ?? '')
				if (found) Object.assign(found, { status: block.status, text: block.text })
			}
		}
	const introduced = messages.some(
		({ role, blocks }) =>
			role === 'assistant' && blocks.some((block) => block.type === 'text' && block.text.includes(notAnAi)),
	)
	return { prompt, introduced, done }
}

/** The paths of a glob result, without its last line in brackets. */
export const pathsOf = (done: Done | undefined): string[] =>
	done?.status === 'ok'
		? done.text.split('\n').filter((line) => line !== '' && !line.startsWith('[') && line !== 'No files found.')
		: []

/** The lines of a read_file result: number, tab, text. */
export const linesOf = (done: Done | undefined): string[] =>
	done?.status === 'ok'
		? done.text.split('\n').flatMap((line) => {
				const found = /^\s*\d+\t(.*)$/.exec(line)
				return found ? [found[1]!] : []
			})
		: []

export type Intent = 'all' | 'tests' | 'todo' | 'edit' | 'danger' | 'undo' | 'help' | 'other'

const intents: [Exclude<Intent, 'other'>, RegExp][] = [
	['undo', /^(?:please )?(?:undo|redo|revert|diff|take (?:it|that) back)\b/],
	['danger', /\b(?:danger(?:ous)?|sandbox|secrets?|ssh|network|attack|safe(?:ty)?|security|keys?)\b/],
	['all', /\b(?:show|tour|demo|start|begin|everything|all)\b|^(?:go|yes|ok|okay|next|hi|hello|hey|try it)$/],
	['todo', /\b(?:todos?|fixmes?)\b/],
	['tests', /\btests?\b/],
	['edit', /\b(?:edit|change|a comment)\b/],
	['help', /^(?:help|\?|what|who|how)\b|\b(?:options|menu|what can you)\b/],
]
/** Work that only a model could do: a script that pretended to understand it would lie. */
const work =
	/^(?:please |can you |could you |now )*(?:fix|write|implement|refactor|explain|why|rewrite|review|debug|translate|migrate|add(?! a comment)|create|build|make(?! a change| an edit)|update|upgrade|remove|delete|summari[sz]e|optimi[sz]e|document)\b/

/** Whether the words ask for the whole tour. */
export const asksForAll = (prompt: string): boolean => intentOf(prompt) === 'all'

/** What the words ask of the tour; long or real work is `other`. */
export function intentOf(prompt: string): Intent {
	const text = prompt
		.toLowerCase()
		.replace(/[\s.!,;:"'’]+/g, ' ')
		.trim()
	if (text === '') return 'help'
	const words = text.split(' ').length
	if (words > 9 || work.test(text)) return 'other'
	// "show me the tests" is about the tests, "show me" about all.
	const found = intents.filter(([, pattern]) => pattern.test(text)).map(([name]) => name)
	const particular = found.find((name) => name !== 'all' && name !== 'help')
	return particular ?? found[0] ?? (/^\?+$/.test(text) ? 'help' : 'other')
}
