// What stands in front of a message on stdin, and messages too large to be read. Between stdin and the protocol.

const open = '{'.charCodeAt(0)
const newline = '\n'.charCodeAt(0)
/** More than this in front of a message is no noise of a shell. */
const maxNoise = 4096
/** Bytes of one message. The SDK ends the connection at a larger one, and every session with it. */
export const maxMessage: number = 32 * 1024 * 1024
/** Kept of a message that is too large, from each end: its id is looked for there. */
const kept = 64 * 1024

/**
 * Drops what stands in a line before its first brace, so that an editor that starts the agent through a talkative shell
 * still gets its first answer. A line without a brace, or with more in front of it, passes as it is. A message larger than
 * `limit` does not pass: `tooLarge` is told its id (null when none was found) and its size.
 */
export function input(
	tooLarge: (id: string | number | null, bytes: number) => void,
	limit: number = maxMessage,
): TransformStream<Uint8Array, Uint8Array> {
	let inside = false
	let noise: number[] = []
	/** Of the message that is being read: its parts, or its two ends when it is too large. */
	let parts: Uint8Array[] = []
	let size = 0
	let head: Buffer | null = null
	let tail = Buffer.alloc(0)

	const take = (part: Uint8Array): void => {
		size += part.length
		if (head === null && size <= limit) return void parts.push(part)
		if (head === null) {
			const all = Buffer.concat(parts)
			head = Buffer.from(Buffer.concat([all.subarray(0, kept), part.subarray(0, kept)]).subarray(0, kept))
			tail = Buffer.from(all.subarray(-kept))
			parts = []
		}
		tail = Buffer.from(Buffer.concat([tail, part.subarray(-kept)]).subarray(-kept))
	}

	return new TransformStream({
		transform(chunk, controller) {
			let from = 0
			while (from < chunk.length) {
				if (inside) {
					const end = chunk.indexOf(newline, from)
					const to = end === -1 ? chunk.length : end + 1
					take(chunk.subarray(from, to))
					from = to
					if (end === -1) continue
					if (head) tooLarge(idOf(head.toString('utf8'), tail.toString('utf8')), size)
					else for (const part of parts) controller.enqueue(part)
					inside = false
					parts = []
					size = 0
					head = null
					continue
				}
				const byte = chunk[from]!
				if (byte === open) {
					noise = []
					inside = true
				} else {
					noise.push(byte)
					from++
					if (byte === newline || noise.length > maxNoise) {
						const passed = Uint8Array.from(noise)
						noise = []
						inside = byte !== newline
						if (inside) take(passed)
						else controller.enqueue(passed)
					}
				}
			}
		},
		flush(controller) {
			for (const part of parts) controller.enqueue(part)
			if (noise.length > 0) controller.enqueue(Uint8Array.from(noise))
		},
	})
}

const idPattern = '"id"\\s*:\\s*(-?\\d{1,15}|"(?:[^"\\\\]|\\\\.){0,200}")'
const idBefore = new RegExp(`^\\{(?:[^{}"]|"(?:[^"\\\\]|\\\\.)*"(?!\\s*:\\s*[{[]))*?${idPattern}`)
const idBehind = new RegExp(`${idPattern}(?:\\s*,\\s*"(?:jsonrpc|method)"\\s*:\\s*"[^"]{0,100}"){0,2}\\s*\\}\\s*$`)

/** The id of a message of which only both ends are known: it stands before the parameters, or behind them. */
function idOf(head: string, tail: string): string | number | null {
	const found = idBefore.exec(head)?.[1] ?? idBehind.exec(tail)?.[1]
	return found === undefined ? null : (JSON.parse(found) as string | number)
}
