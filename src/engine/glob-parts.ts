// Globs as parts, matched in time linear in the text whatever they hold: rules, ignore files and hidden paths are a repository's.

/** `one`: the expression of a single character; `many`: none or more in a row; `either`: one of these. */
export type Part = { one: string } | { many: Part[] } | { either: Part[][] }

export interface GlobTest {
	/** Whether the whole text matches. */
	test(text: string): boolean
}

/** One character as itself. */
export const literal = (char: string): Part => ({ one: char.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&') })

interface Node {
	id: number
	/** A character and where it leads; without: the ways on, none at the end. */
	set?: RegExp
	to: Node[]
}

interface State {
	sets: Node[]
	end: boolean
	next: Map<string, State | null>
}

/** A short text and few repeats: the engine's own expressions are faster, and cannot take long. */
const shortText = 4096
const fewRepeats = 2
/** `*` of a name in most globs: it ends at a "/". */
export const inName: Part = { one: '[^/]' }
/** Kept of an automaton before it is begun anew. */
const maxSteps = 20_000

/**
 * The parts as a test. Null: a set that is none, such as [z-a], or nesting beyond any use.
 * @param flags of an expression: `s`, `is`
 */
export function compileParts(parts: readonly Part[], flags: string): GlobTest | null {
	try {
		if (!isQuick(parts)) return new Automaton(parts, flags)
		const expression = new RegExp(`^${source(parts)}$`, flags)
		let automaton: Automaton | undefined
		return {
			test(text) {
				if (text.length <= shortText) return expression.test(text)
				automaton ??= new Automaton(parts, flags)
				return automaton.test(text)
			},
		}
	} catch (error) {
		if (error instanceof SyntaxError || error instanceof RangeError) return null
		throw error
	}
}

const source = (parts: readonly Part[]): string =>
	parts
		.map((part) =>
			'one' in part
				? part.one
				: 'many' in part
					? `${/^(?:\.|\[\^\/\])$/.test(source(part.many)) ? source(part.many) : `(?:${source(part.many)})`}*`
					: `(?:${part.either.map(source).join('|')})`,
		)
		.join('')

/** How often matching by trial may turn back: the exponent of its time. What a repeat holds ends at a "/". */
const repeats = (parts: readonly Part[]): number =>
	parts.reduce(
		(sum, part) =>
			sum + ('one' in part ? 0 : 'many' in part ? 1 : 1 + part.either.reduce((all, one) => all + repeats(one), 0)),
		0,
	)

/** `any folder, then *a*` too: within names trying costs the square of a name's length. */
const isQuick = (parts: readonly Part[]): boolean => {
	const all = repeats(parts)
	if (all <= fewRepeats) return true
	const names = parts.filter((part) => 'many' in part && part.many.length === 1 && part.many[0] === inName).length
	return names <= fewRepeats && all - names <= 1 && !parts.some((part) => 'either' in part)
}

/** All ways at once, each step remembered: a character costs one look-up, at worst as much as the glob is long. */
class Automaton implements GlobTest {
	readonly #begin: Node
	readonly #flags: string
	readonly #expressions = new Map<string, RegExp>()
	#count = 0
	#steps = 0
	#start: State | null = null
	#states = new Map<string, State>()

	constructor(parts: readonly Part[], flags: string) {
		this.#flags = flags
		this.#begin = this.#build(parts, { id: this.#count++, to: [] })
	}

	test(text: string): boolean {
		this.#start ??= this.#state([this.#begin])
		let state = this.#start
		for (let at = 0; at < text.length; at++) {
			const char = text[at]!
			const known: State | null | undefined = state.next.get(char)
			const next = known === undefined ? this.#step(state, char) : known
			if (next === null) return false
			state = next
		}
		return state.end
	}

	#build(parts: readonly Part[], end: Node): Node {
		let next = end
		for (const part of parts.toReversed()) {
			const node: Node = { id: this.#count++, to: [] }
			if ('one' in part) {
				node.set = this.#set(part.one)
				node.to = [next]
			} else if ('many' in part) node.to = [this.#build(part.many, node), next]
			else node.to = part.either.map((one) => this.#build(one, next))
			next = node
		}
		return next
	}

	#set(one: string): RegExp {
		let found = this.#expressions.get(one)
		if (!found) {
			found = new RegExp(`^(?:${one})$`, this.#flags)
			this.#expressions.set(one, found)
		}
		return found
	}

	#step(from: State, char: string): State | null {
		const reached = from.sets.flatMap((node) => (node.set!.test(char) ? node.to : []))
		if (++this.#steps > maxSteps) {
			this.#steps = 0
			this.#states = new Map()
			this.#start = null
		}
		const next = reached.length === 0 ? null : this.#state(reached)
		from.next.set(char, next)
		return next
	}

	#state(nodes: readonly Node[]): State {
		const seen = new Set(nodes)
		const sets: Node[] = []
		let end = false
		// A set takes on what is added while it is walked.
		for (const node of seen) {
			if (node.set) sets.push(node)
			else if (node.to.length === 0) end = true
			else for (const one of node.to) seen.add(one)
		}
		sets.sort((a, b) => a.id - b.id)
		const key = `${end}${sets.map(({ id }) => id).join()}`
		let found = this.#states.get(key)
		if (!found) {
			found = { sets, end, next: new Map() }
			this.#states.set(key, found)
		}
		return found
	}
}
