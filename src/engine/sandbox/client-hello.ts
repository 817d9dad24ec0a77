// The host name that a TLS client asks for, read from its first message; the proxy compares it with the tunnel's name.

export type HelloName = { state: 'more' } | { state: 'none' } | { state: 'odd' } | { state: 'found'; name: string }

const none: HelloName = { state: 'none' }
const odd: HelloName = { state: 'odd' }
const more: HelloName = { state: 'more' }
/** A greeting with post-quantum keys is about 1.8 kB. */
const maxHello = 16_384

/**
 * `more`: begins like a greeting and is not complete. `none`: no TLS, or a greeting without a name. `odd`: begins like a
 * greeting, but is longer than any or not formed like one; a server may read another name in it, so it does not pass.
 */
export const clientHelloName = (bytes: Buffer): HelloName => {
	const parts: Buffer[] = []
	let at = 0
	let length = 0
	// The greeting may lie in several records.
	for (;;) {
		if (bytes.length > at && bytes[at] !== 0x16) return at === 0 ? none : odd
		if (bytes.length < at + 5) return more
		if (bytes[at + 1] !== 3) return at === 0 ? none : odd
		const size = bytes.readUInt16BE(at + 3)
		if (size === 0 || size > maxHello || length + size > maxHello) return odd
		if (bytes.length < at + 5 + size) return more
		parts.push(bytes.subarray(at + 5, at + 5 + size))
		length += size
		at += 5 + size
		const message = Buffer.concat(parts)
		if (message[0] !== 1) return odd
		if (message.length < 4) continue
		const want = message.readUIntBE(1, 3)
		if (want > maxHello) return odd
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
			// Just one name of the one kind there is.
			const length = body.readUInt16BE(3)
			if (body.readUInt8(2) !== 0 || body.readUInt16BE(0) !== length + 3 || size !== length + 5) return odd
			return { state: 'found', name: body.subarray(5).toString('latin1') }
		}
	} catch {
		return odd
	}
	return none
}
