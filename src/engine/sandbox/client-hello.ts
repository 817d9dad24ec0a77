// The host name that a TLS client asks for, read from its first message; the proxy compares it with the tunnel's name.

export type HelloName = { state: 'more' } | { state: 'none' } | { state: 'found'; name: string }

const none: HelloName = { state: 'none' }
const more: HelloName = { state: 'more' }
/** A greeting with post-quantum keys is about 1.8 kB. */
const maxHello = 16_384

/**
 * `more`: begins like a greeting and is not complete. `none`: no TLS, or a greeting without a name. Only reading, with every
 * length checked; what it cannot read is `none`, for the name is a second look and the tunnel's own name has been judged.
 */
export const clientHelloName = (bytes: Buffer): HelloName => {
	const parts: Buffer[] = []
	let at = 0
	let length = 0
	// The greeting may lie in several records.
	for (;;) {
		if (bytes.length > at && bytes[at] !== 0x16) return none
		if (bytes.length < at + 5) return more
		if (bytes[at + 1] !== 3) return none
		const size = bytes.readUInt16BE(at + 3)
		if (size === 0 || size > maxHello || length + size > maxHello) return none
		if (bytes.length < at + 5 + size) return more
		parts.push(bytes.subarray(at + 5, at + 5 + size))
		length += size
		at += 5 + size
		const message = Buffer.concat(parts)
		if (message[0] !== 1) return none
		if (message.length < 4) continue
		const want = message.readUIntBE(1, 3)
		if (want > maxHello) return none
		if (message.length >= want + 4) return serverName(message.subarray(4, want + 4))
	}
}

const serverName = (hello: Buffer): HelloName => {
	try {
		let at = 34
		at += 1 + hello.readUInt8(at) // session id
		at += 2 + hello.readUInt16BE(at) // cipher suites
		at += 1 + hello.readUInt8(at) // compression
		const end = at + 2 + hello.readUInt16BE(at)
		at += 2
		while (at + 4 <= end) {
			const type = hello.readUInt16BE(at)
			const size = hello.readUInt16BE(at + 2)
			const body = hello.subarray(at + 4, at + 4 + size)
			at += 4 + size
			if (type !== 0) continue
			if (body.readUInt8(2) !== 0) return none
			const name = body.subarray(5, 5 + body.readUInt16BE(3)).toString('latin1')
			return { state: 'found', name }
		}
	} catch {
		// cut or malformed: no server will take it either
	}
	return none
}
