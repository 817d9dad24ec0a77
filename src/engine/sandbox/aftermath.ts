// After a command: names that did not exist before it, that no mount could keep from being made, and that the host obeys.
import { randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '../errors.ts'
import { riskyKeys } from './git-config.ts'
import { lstat, real, smallFile } from './paths.ts'
import { type Policy, writableIn } from './policy.ts'

/**
 * What the command made of the policy's absent names, one line each. A startup file or a place of secrets in the home, and
 * an included git configuration that runs programs, is moved to `~/.garuda/quarantine`, which no command sees: it is out
 * of effect, and not lost should the user have made it in the same moment.
 */
export const planted = (policy: Policy, home: string): string[] => {
	const lines = policy.absent.filter((path) => lstat(path)).map((path) => `${path} (a hooks folder that git obeys)`)
	for (const path of policy.absentIncludes) {
		if (!lstat(path)) continue
		const text = smallFile(path, 1_000_000)
		const keys = text === undefined ? ['more than can be read'] : riskyKeys(text)
		lines.push(
			keys.length > 0
				? moved(
						path,
						policy,
						home,
						`included by git's configuration, sets ${[...new Set(keys)].slice(0, 5).join(', ')}`,
					)
				: `${path} (included by git's configuration)`,
		)
	}
	for (const path of policy.absentHome)
		if (lstat(path)) lines.push(moved(path, policy, home, 'obeyed or trusted by your programs'))
	return lines
}

/** A link on the way there must not lead to what the command could not have made. */
const moved = (path: string, policy: Policy, home: string, what: string): string => {
	const parent = real(dirname(path))
	const target = parent && join(parent, basename(path))
	if (!target || !writableIn(policy.base, target)) return `${path} (${what}; reached through a link)`
	try {
		return `${path} (${what}; moved to ${quarantine(target, home)})`
	} catch (error) {
		return `${path} (${what}; it could NOT be moved away: ${codeOf(error) ?? error})`
	}
}

const quarantine = (path: string, home: string): string => {
	const folder = join(
		home,
		'.garuda/quarantine',
		`${new Date().toISOString().slice(0, 10)}-${randomBytes(4).toString('hex')}`,
	)
	mkdirSync(folder, { recursive: true, mode: 0o700 })
	const to = join(folder, basename(path))
	try {
		renameSync(path, to)
	} catch (error) {
		if (codeOf(error) !== 'EXDEV') throw error
		cpSync(path, to, { recursive: true, verbatimSymlinks: true })
		rmSync(path, { recursive: true, force: true })
	}
	return to
}
