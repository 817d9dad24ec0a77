// Whether a text that stands where a secret could is one: random enough, no word, no code, no example. Used by the patterns and the redactor.

/** Shannon entropy in bits per character. */
export function entropy(text: string): number {
	const counts = new Map<string, number>()
	for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1)
	let bits = 0
	for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
	return bits
}

/** Words that stand where a secret would: examples, templates, references to a variable. */
export const placeholder =
	/^(?:x+|\*+|\.+|-+|_+|0+|your[-_ ].*|my[-_](?:secret|password|token|key).*|change[-_]?me.*|placeholder|example.*|dummy.*|test|none|null|undefined|true|false|secret|password|token|redacted.*|.*\.\.\.|<.*>|\$\{?.*|%.*%|\{\{.*|process\.env.*|os\.environ.*|env\(.*|self\..*|this\..*|[a-z]+[A-Z][A-Za-z]*\(.*)$/i

/** Letters, digits and some disorder: what a key of a known form has at least. */
export const looksRandom = (text: string): boolean => entropy(text) >= 3 && /\d/.test(text) && /[A-Za-z]/.test(text)

const patchwork = (text: string): boolean => {
	const parts = text.match(/[A-Z]+[a-z]*|[a-z]+/g) ?? []
	return (
		parts.length >= 5 &&
		text.length / parts.length < 3.4 &&
		(text.match(/[a-z]/g)?.length ?? 0) >= 5 &&
		entropy(text) >= 3.5
	)
}

/** Letters and digits that change their kind as often as no name in code does. */
export const mixed = (text: string): boolean => {
	if (text.length < 12 || !/\d/.test(text) || !/[a-z]/.test(text) || !/[A-Z]/.test(text)) return false
	const changes = text.match(/[a-z](?=[^a-z])|[A-Z](?=[^A-Z])|\d(?=\D)|[\W_](?=[A-Za-z\d])/g)?.length ?? 0
	return changes / (text.length - 1) >= 0.4 && entropy(text) >= 3
}

/** Long, mixed and without order: for names that say less than "secret" does. */
export const strongValue = (text: string): boolean =>
	text.length >= 20 &&
	text.length <= 512 &&
	/^[\w+/=.~-]+$/.test(text) &&
	/\d/.test(text) &&
	(/^[0-9a-f]{32,}$/i.test(text)
		? entropy(text) >= 3
		: /[A-Z]/.test(text) && /[a-z]/.test(text) && entropy(text) >= 3.8) &&
	!/^(?:sha\d+-|[\w-]+\.[\w-]+\.[\w-]+$|\/)/.test(text)

/** A word of a command line, where nothing is quoted and a name is as likely as a secret. */
export const wordValue = (text: string): boolean =>
	text.length >= 6 &&
	!placeholder.test(text) &&
	!/^(?:[$/~.<{-]|\d+$|https?:)/.test(text) &&
	/\d/.test(text) &&
	/[A-Za-z]/.test(text) &&
	entropy(text) >= 2.5

/** A value after a name that says "secret": random enough, and not a path, a hash of a lock file, a UUID or a word. */
export function secretValue(value: string, quoted = true): boolean {
	if (value.length < 8 || value.length > 512 || /^[\d.,_-]+$/.test(value) || placeholder.test(value)) return false
	if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(value)) return false
	// Letters only, but no words: capitals come as often as a name would never have them.
	if (/^[A-Za-z!#%*^]{16,64}$/.test(value) && patchwork(value)) return true
	// Unquoted code: an identifier, perhaps with a digit or two.
	if (!quoted && /^[A-Za-z_$][\w$.?!]*$/.test(value) && (value.match(/\d/g)?.length ?? 0) < 3 && !mixed(value))
		return false
	// An expression, or a sentence.
	if (/^!\s*[A-Za-z_$]/.test(value) && !quoted) return false
	if (/^['A-Za-z,.;:!?() -]+$/.test(value) && (value.match(/ /g)?.length ?? 0) >= 2) return false
	if (/^(?:https?:|file:|\.{0,2}\/|~\/|[A-Za-z]:\\|sha\d+[-:])/.test(value)) return false
	if (/^[a-z]+(?:[-_. ][a-z]+)*$/i.test(value)) return quoted && entropy(value) >= 4.2 && value.length >= 24
	if (/^[\w$]+(?:\.[\w$]+)+(?:\(.*)?$/.test(value) && entropy(value) < 4) return false
	// Signs of code, unless all of it is without order and nothing in it is a call, a class or a tag.
	if (/[()[\]{}<>;]/.test(value))
		return (
			quoted &&
			value.length >= 24 &&
			!/[\s\\"'`]|\(\?|\w\([^()]*\)|\[[^\]]*\]|=>|<\/|\$\{|\{\{/.test(value) &&
			mixed(value)
		)
	return entropy(value) >= 2.9 && (/\d/.test(value) || /[^\w]/.test(value) || entropy(value) >= 3.8)
}

/** Whether the part before the first dot is the head of a signed or encrypted token. */
export const jwtHead = (text: string): boolean => {
	try {
		return /"alg"|"typ"|"enc"/.test(Buffer.from(text.split('.')[0]!, 'base64url').toString('latin1'))
	} catch {
		return false
	}
}
