// Settings' `sandbox.denyRead` made into the absolute paths that the OS sandbox masks. Used when the executor is made.
import { isAbsolute, join, normalize } from 'node:path'
import { UserError } from '../errors.ts'
import { compileParts, type GlobTest, literal, type Part } from '../glob-parts.ts'

/** Begins with what a shell would expand and nothing here does: another's home, a variable. As written it would hide nothing. */
export const isUnexpanded = (path: string): boolean =>
	/^~[a-z_][\w-]*\//i.test(path) || /^\$\{?[A-Z_][A-Z0-9_]*\}?(?:\/|$)/.test(path)

/**
 * Absolute paths to mask. "~" is the home folder, a relative path lies under the root, a trailing `/**` or `/*` means
 * the whole folder, `*` and `?` elsewhere are expanded by `list` (names in a folder; [] for a missing one).
 * What cannot be enforced is a UserError, never a rule that silently does nothing.
 */
export async function denyReadPaths(
	patterns: readonly string[],
	places: { root: string; home: string },
	list: (dir: string) => Promise<string[]>,
): Promise<string[]> {
	const found = new Set<string>()
	for (const pattern of patterns) {
		const home = pattern === '~' || pattern.startsWith('~/')
		const text = home ? join(places.home, pattern.slice(1)) : isAbsolute(pattern) ? pattern : join(places.root, pattern)
		const path = normalize(text)
			.replace(/(?:\/\*\*?)+$/, '')
			.replace(/\/+$/, '')
		if (path === '' || path.includes('**') || /[[\]{}]/.test(path) || isUnexpanded(pattern))
			throw new UserError(
				`sandbox.denyRead: "${pattern}" cannot be enforced.`,
				'Name a folder, or a path with "*" in single names.',
			)
		if (`${places.root}/`.startsWith(`${path}/`))
			throw new UserError(
				`sandbox.denyRead: "${pattern}" would hide the working root itself.`,
				'Name a folder below it or beside it.',
			)
		let paths = ['']
		for (const part of path.split('/').slice(1)) {
			if (!/[*?]/.test(part)) {
				paths = paths.map((one) => `${one}/${part}`)
				continue
			}
			const match = nameTest(part)
			const next = await Promise.all(
				paths.map(async (one) =>
					(await list(one || '/')).filter((name) => match.test(name)).map((name) => `${one}/${name}`),
				),
			)
			paths = next.flat()
		}
		for (const one of paths) found.add(one)
	}
	return [...found]
}

/** `*` and `?` in one name. */
const nameTest = (pattern: string): GlobTest => {
	const parts = pattern
		.replace(/\*+/g, '*')
		.split('')
		.map((char): Part => (char === '*' ? { many: [{ one: '.' }] } : char === '?' ? { one: '.' } : literal(char)))
	const test = compileParts(parts, 's')
	if (!test) throw new Error(`name pattern lost: ${pattern}`)
	return test
}
