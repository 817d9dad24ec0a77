// Request and response headers as the SDK handles them. The global class of this name would load all of undici (30 ms) at its first use, so the build gives the SDK this one.

const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/

const keyOf = (name: string): string => {
	const lower = String(name).toLowerCase()
	if (!token.test(lower)) throw new TypeError(`"${lower}" is no name of a header`)
	return lower
}

const fieldOf = (name: string, value: string): string => {
	const text = String(value).replace(/^[\t\r\n ]+|[\t\r\n ]+$/g, '')
	// Not the value: it may be a key.
	if (/[\0\r\n]|[^\0-\xff]/.test(text)) throw new TypeError(`the value of the header ${name} cannot be sent`)
	return text
}

type Source = Iterable<readonly [string, string]> | Record<string, string>

/** The part of the standard's Headers that the SDK uses: names in lower case, repeated ones joined by ", ", entries by name. */
export class Headers implements Iterable<[string, string]> {
	readonly #values = new Map<string, string>()

	/** Throws TypeError, as all methods do, for a name or value that cannot be sent. */
	constructor(from: Source = {}) {
		for (const [name, value] of Symbol.iterator in from ? from : Object.entries(from)) this.append(name, value)
	}

	get(name: string): string | null {
		return this.#values.get(keyOf(name)) ?? null
	}

	has(name: string): boolean {
		return this.#values.has(keyOf(name))
	}

	set(name: string, value: string): void {
		const key = keyOf(name)
		this.#values.set(key, fieldOf(key, value))
	}

	append(name: string, value: string): void {
		const key = keyOf(name)
		const before = this.#values.get(key)
		this.#values.set(key, before === undefined ? fieldOf(key, value) : `${before}, ${fieldOf(key, value)}`)
	}

	delete(name: string): void {
		this.#values.delete(keyOf(name))
	}

	forEach(each: (value: string, name: string, all: Headers) => void): void {
		for (const [name, value] of this) each(value, name, this)
	}

	*entries(): IterableIterator<[string, string]> {
		for (const name of [...this.#values.keys()].sort()) yield [name, this.#values.get(name)!]
	}

	*keys(): IterableIterator<string> {
		for (const [name] of this) yield name
	}

	*values(): IterableIterator<string> {
		for (const [, value] of this) yield value
	}

	[Symbol.iterator](): IterableIterator<[string, string]> {
		return this.entries()
	}
}
