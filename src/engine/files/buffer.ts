// The editor's unsaved texts over the guarded files: what the user sees is what is read, and an edit waits until it is saved.
import { createHash } from 'node:crypto'
import { sep } from 'node:path'
import { ToolError } from '../errors.ts'
import type { Files, ReadFile } from '../ports.ts'

/** The text of an open buffer, or null when the file is not open or nobody can say. Never throws. */
export type BufferPort = (path: string) => Promise<string | null>

/** Longer files are read from the disk alone. */
const maxBytes = 2 << 20

/**
 * The editor is asked only about a text file in one of the roots that the guard has just read, so no path that is off
 * limits ever reaches it. A text that differs from the disk comes with `unsaved`; writing over such a file is refused.
 */
export function withBuffers(files: Files, buffer: BufferPort): Files {
	const unsaved = async (read: ReadFile): Promise<Uint8Array | null> => {
		const inside = files.roots.some((root) => read.path.startsWith(root.endsWith(sep) ? root : root + sep))
		const disk = inside && read.bytes.length <= maxBytes ? plainText(read.bytes) : null
		if (disk === null) return null
		const open = await buffer(read.path)
		// Editors keep line ends and the byte order mark to themselves.
		if (open === null || normal(open) === normal(disk)) return null
		const windows = disk.includes('\r\n') && !/(?<!\r)\n/.test(disk) && !open.includes('\r')
		return Buffer.from((windows ? open.replaceAll('\n', '\r\n') : open).toWellFormed())
	}
	return {
		get roots() {
			return files.roots
		},
		resolve: (path) => files.resolve(path),
		readPart: (path, start, length) => files.readPart(path, start, length),
		read: async (path, limit) => {
			const read = await files.read(path, limit)
			const bytes = await unsaved(read)
			if (!bytes) return read
			return { ...read, bytes, hash: createHash('sha256').update(bytes).digest('hex'), unsaved: true }
		},
		write: async (path, bytes, base) => {
			// The user may have typed since the plan.
			if (base !== null && (await unsaved(await files.read(path)))) throw new ToolError(unsavedText(path))
			return files.write(path, bytes, base)
		},
	}
}

/** Why a file with an unsaved text is not changed. */
export const unsavedText = (shown: string): string =>
	`${shown} has unsaved changes in the user's editor. Nothing was changed. Ask the user to save or discard them, then read the file again.`

const normal = (text: string): string => text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n')

const plainText = (bytes: Uint8Array): string | null => {
	try {
		const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
		return text.includes('\0') ? null : text
	} catch {
		return null
	}
}
