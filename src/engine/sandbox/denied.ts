// The setting sandbox.denyRead: paths and globs of the user's to hide, as they are on the disk at each command.
import { globSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { UserError } from '../errors.ts'
import { lstat } from './paths.ts'

const maxGlobMatches = 500

/**
 * The user's further paths to hide. Patterns are expanded anew for each command (with `**` at most every 10 s, for it walks
 * the tree). A relative pattern starts at the root, `~/` at the home.
 */
export const createDenied = (patterns: string[], root: string, home: string): (() => string[]) => {
	const all = patterns.map((pattern) => {
		if (pattern.includes('\0') || pattern.trim() === '' || pattern.startsWith('!'))
			throw new UserError(
				`sandbox.denyRead has a pattern that cannot be used: ${JSON.stringify(pattern)}`,
				'Name a path or a glob like ~/vault/*.key.',
			)
		const path = pattern.startsWith('~/')
			? join(home, pattern.slice(2))
			: isAbsolute(pattern)
				? pattern
				: resolve(root, pattern)
		return {
			pattern,
			path,
			glob: /[*?[\]{}()!+@]/.test(pattern) && !lstat(path),
			at: Number.NEGATIVE_INFINITY,
			found: [] as string[],
		}
	})
	return () =>
		all.flatMap((each) => {
			if (!each.glob) return [each.path]
			if (each.path.includes('**') && performance.now() - each.at < 10_000) return each.found
			try {
				each.found = globSync(each.path)
			} catch (error) {
				throw new UserError(
					`sandbox.denyRead cannot expand ${each.pattern}: ${error}`,
					'Name a path or a simpler glob.',
				)
			}
			if (each.found.length > maxGlobMatches)
				throw new UserError(
					`sandbox.denyRead: ${each.pattern} matches ${each.found.length} paths, more than ${maxGlobMatches}`,
					'Name the folder that holds them.',
				)
			each.at = performance.now()
			return each.found
		})
}
