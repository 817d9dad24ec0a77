// Which records of another's session a copy takes over. Used by the store after the user's yes.
import type { SessionRecord } from '../ports.ts'

/** What a copy takes over: the conversation, never what was allowed, no state of files, no thinking bound to another beginning. */
export function adopted(record: SessionRecord): SessionRecord | null {
	const plain = <T extends { blocks: { type: string }[] }>(message: T): T => ({
		...message,
		blocks: message.blocks.filter((block) => block.type !== 'thinking' && block.type !== 'opaque'),
	})
	switch (record.type) {
		case 'user':
		case 'assistant':
		case 'results':
			return { ...record, message: plain(record.message) }
		case 'compaction':
			return { ...record, messages: record.messages.map(plain) }
		case 'title':
		case 'undo':
		case 'redo':
		case 'end':
			return record
		default:
			return null
	}
}
