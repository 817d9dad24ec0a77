// What a list of sessions shows, from the first and last bytes of each journal only. Under the store.
import type { Folder } from '../files/open.ts'
import { readBytes } from '../files/open.ts'
import type { SessionHeader, SessionSummary } from '../ports.ts'
import { oneLine } from '../text.ts'
import { isSessionId } from './ids.ts'
import { openJournal } from './journal-file.ts'
import { titleOf } from './title.ts'

/** A session as a list shows it. */
export interface ListedSession extends SessionSummary {
	/** Another machine's or user's, or a planted file: only read and adopted, never opened or continued. */
	foreign?: true
}

const edge = 64 << 10
const known = (bytes: Buffer, whole: boolean): Record<string, unknown>[] => {
	const lines = bytes.toString('utf8').split('\n')
	if (!whole) lines.shift()
	return lines.flatMap((line) => {
		// Only what a list needs: a tool result of 200 KB is not parsed for a title.
		if (!/^\{"type":"(?:title|user)"/.test(line)) return []
		try {
			return [JSON.parse(line) as Record<string, unknown>]
		} catch {
			return []
		}
	})
}

/** The small fields of a header; they stand before the system prompt in the line. */
function headOf(text: string): Partial<SessionHeader> | null {
	if (!text.startsWith('{"type":"start"')) return null
	const end = text.indexOf(',"system":"')
	try {
		return JSON.parse(
			end === -1 ? text.slice(0, text.indexOf('\n')) : `${text.slice(0, end)}}`,
		) as Partial<SessionHeader>
	} catch {
		return null
	}
}

/** Null when the file is no session of that name. */
export async function summarise(
	folder: Folder,
	id: string,
	root: string,
	origin: string,
	indexed?: string,
): Promise<ListedSession | null> {
	const file = await openJournal(folder, id, false).catch(() => null)
	if (!file) return null
	try {
		const { mtimeMs } = await file.handle.stat()
		const head = await readBytes(file.handle, 0, Math.min(edge, file.size))
		const header = headOf(head.toString('utf8', 0, Math.min(head.length, 16 << 10)))
		if (!header || header.id !== id) return null
		const first = known(head, true)
		const tail =
			file.size <= edge
				? []
				: known(await readBytes(file.handle, Math.max(edge, file.size - edge), Math.min(edge, file.size - edge)), false)
		const title = (records: Record<string, unknown>[]) =>
			records.findLast((record) => record.type === 'title' && typeof record.title === 'string')?.title as
				| string
				| undefined
		const prompt = first.find(
			(record) => record.type === 'user' && typeof record.prompt === 'string' && record.prompt !== '',
		)?.prompt as string | undefined
		const foreign = file.foreign !== null || header.origin !== origin
		return {
			id,
			root,
			title: oneLine(
				title(tail) ?? indexed ?? title(first) ?? (prompt === undefined ? '(no prompt)' : titleOf(prompt)),
				200,
			),
			created: typeof header.created === 'number' ? header.created : mtimeMs,
			updated: mtimeMs,
			size: file.size,
			...(foreign ? { foreign } : {}),
		}
	} catch {
		return null
	} finally {
		await file.handle.close()
	}
}

/** `each` over the items, at most `width` at a time. */
export async function inTurns<T, R>(items: readonly T[], width: number, each: (item: T) => Promise<R>): Promise<R[]> {
	const results: R[] = []
	for (let i = 0; i < items.length; i += width)
		results.push(...(await Promise.all(items.slice(i, i + width).map(each))))
	return results
}

/** The ids of the journals among a folder's names. */
export const idsIn = (names: readonly string[]): string[] =>
	names.flatMap((name) => (name.endsWith('.jsonl') && isSessionId(name.slice(0, -6)) ? [name.slice(0, -6)] : []))
