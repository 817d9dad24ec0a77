// What stands in front of a message on stdin: a shell's title sequence, a byte order mark. Between stdin and the protocol.

const open = '{'.charCodeAt(0)
const newline = '\n'.charCodeAt(0)
/** More than this in front of a message is no noise of a shell. */
const maxNoise = 4096

/**
 * Drops what stands in a line before its first brace, so that an editor that starts the agent through a talkative shell
 * still gets its first answer. A line without a brace, or with more in front of it, passes as it is.
 */
export function input(): TransformStream<Uint8Array, Uint8Array> {
	let inside = false
	let noise: number[] = []
	return new TransformStream({
		transform(chunk, controller) {
			let from = 0
			while (from < chunk.length) {
				if (inside) {
					const end = chunk.indexOf(newline, from)
					const to = end === -1 ? chunk.length : end + 1
					controller.enqueue(chunk.subarray(from, to))
					inside = end === -1
					from = to
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
						controller.enqueue(Uint8Array.from(noise))
						noise = []
						inside = byte !== newline
					}
				}
			}
		},
		flush(controller) {
			if (noise.length > 0) controller.enqueue(Uint8Array.from(noise))
		},
	})
}
