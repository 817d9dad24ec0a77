// Which addresses are this machine and which are the public internet; used before every connection that a model or page names.

/** Whether a URL's host (name, IPv4 or IPv6 with or without brackets) is this machine. Names are not looked up. */
export const isLoopback = (host: string): boolean => {
	const name = bare(host)
	if (name === 'localhost' || name.endsWith('.localhost')) return true
	const four = parse4(name)
	// 0.0.0.0 as a target means this machine; users write it because servers print it.
	if (four !== null) return four >>> 24 === 127 || four === 0
	const six = parse6(name)
	if (!six) return false
	const mapped = embedded(six)
	if (mapped !== null && isMapped(six)) return mapped >>> 24 === 127
	return six.every((part, i) => part === (i === 7 ? six[7] : 0)) && (six[7] === 1 || six[7] === 0)
}

/** Whether an IP literal is a public unicast address. Anything special, private, tunnelled to something private or unparsable is not. */
export const isPublic = (ip: string): boolean => {
	const name = bare(ip)
	const four = parse4(name)
	if (four !== null) return public4(four)
	const six = parse6(name)
	if (!six) return false
	const inner = embedded(six)
	if (inner !== null) return public4(inner)
	// Only 2000::/3 is handed out; in it 2001::/23 (protocols), 2001:db8::/32 and 3fff::/20 (examples) are not.
	const [a, b] = [six[0]!, six[1]!]
	if (a < 0x2000 || a > 0x3fff) return false
	if (a === 0x2001 && (b < 0x200 || b === 0xdb8)) return false
	return !(a === 0x3fff && b < 0x1000)
}

/** Whether an address or name matches one entry of a NO_PROXY list (`host`, `.suffix`, `*`, `10.0.0.0/8`, `host:port`). */
export const matchesHost = (entry: string, host: string, port: number): boolean => {
	let rule = entry.trim().toLowerCase()
	if (!rule) return false
	if (rule === '*') return true
	const withPort = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(rule)
	if (withPort) {
		if (Number(withPort[2]) !== port) return false
		rule = withPort[1]!
	}
	const name = bare(host)
	const slash = rule.indexOf('/')
	if (slash > 0) return inRange(name, rule.slice(0, slash), Number(rule.slice(slash + 1)))
	rule = bare(rule).replace(/^\*?\./, '')
	return name === rule || (parse4(name) === null && !name.includes(':') && name.endsWith(`.${rule}`))
}

const bare = (host: string): string =>
	host
		.toLowerCase()
		.replace(/^\[|\]$/g, '')
		.replace(/%.*$/, '')
		.replace(/\.$/, '')

const parse4 = (text: string): number | null => {
	const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
	if (!match) return null
	let value = 0
	for (const part of match.slice(1)) {
		if (Number(part) > 255) return null
		value = value * 256 + Number(part)
	}
	return value >>> 0
}

const parse6 = (text: string): number[] | null => {
	let source = text
	const tail = /:(\d+\.\d+\.\d+\.\d+)$/.exec(source)
	if (tail) {
		const four = parse4(tail[1]!)
		if (four === null) return null
		source = `${source.slice(0, -tail[1]!.length)}${(four >>> 16).toString(16)}:${(four & 0xffff).toString(16)}`
	}
	const halves = source.split('::')
	if (halves.length > 2) return null
	const read = (half: string): number[] | null => {
		if (!half) return []
		const parts = half.split(':')
		return parts.every((part) => /^[0-9a-f]{1,4}$/.test(part)) ? parts.map((part) => Number.parseInt(part, 16)) : null
	}
	const head = read(halves[0]!)
	const end = read(halves[1] ?? '')
	if (!head || !end) return null
	const missing = 8 - head.length - end.length
	if (halves.length === 1 ? missing !== 0 : missing < 1) return null
	return [...head, ...Array<number>(missing).fill(0), ...end]
}

const isMapped = (six: number[]): boolean => six.slice(0, 5).every((part) => part === 0) && six[5] === 0xffff

/** The IPv4 address inside a mapped, NAT64 or 6to4 address, or null. */
const embedded = (six: number[]): number | null => {
	const low = (((six[6]! << 16) >>> 0) + six[7]!) >>> 0
	if (isMapped(six)) return low
	if (six[0] === 0x64 && six[1] === 0xff9b && six.slice(2, 6).every((part) => part === 0)) return low
	if (six[0] === 0x2002) return (((six[1]! << 16) >>> 0) + six[2]!) >>> 0
	return null
}

// Everything of IPv4 that is not public unicast: this network, private, shared, loopback, link-local, protocol, examples, 6to4 relay, benchmarks, multicast and above;
// and one that looks public and is the host of a machine in Azure (0xa83f8110).
const special4: [number, number][] = [
	[0x00000000, 8],
	[0x0a000000, 8],
	[0x64400000, 10],
	[0x7f000000, 8],
	[0xa9fe0000, 16],
	[0xa83f8110, 32],
	[0xac100000, 12],
	[0xc0000000, 24],
	[0xc0000200, 24],
	[0xc0586300, 24],
	[0xc0a80000, 16],
	[0xc6120000, 15],
	[0xc6336400, 24],
	[0xcb007100, 24],
	[0xe0000000, 3],
]

const prefix4 = (address: number, bits: number): number => (bits === 0 ? 0 : (address & (-1 << (32 - bits))) >>> 0)

const public4 = (address: number): boolean => !special4.some(([range, bits]) => prefix4(address, bits) === range >>> 0)

const inRange = (name: string, range: string, bits: number): boolean => {
	const address = parse4(name)
	const base = parse4(range)
	if (address !== null && base !== null)
		return bits >= 0 && bits <= 32 && prefix4(address, bits) === prefix4(base, bits)
	const six = parse6(name)
	const base6 = parse6(bare(range))
	if (!six || !base6 || !(bits >= 0 && bits <= 128)) return false
	for (let i = 0, left = bits; i < 8 && left > 0; i++, left -= 16) {
		const mask = left >= 16 ? 0xffff : (0xffff << (16 - left)) & 0xffff
		if ((six[i]! & mask) !== (base6[i]! & mask)) return false
	}
	return true
}
