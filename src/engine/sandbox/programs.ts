// Finds the few programs that Garuda itself starts, so that nothing planted by a project can stand in for them.
import { accessSync, constants } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { inside, real, stat } from './paths.ts'

const runnable = (path: string): boolean => {
	try {
		accessSync(path, constants.X_OK)
		return stat(path)?.isFile() === true
	} catch {
		return false
	}
}

/** Owned by one of `owners` and none of the mode bits `writers` set: the program, and the folder it is in. */
const trusted = (path: string, owners: number[], writers = 0o022): boolean =>
	[path, dirname(path)].every((each) => {
		const found = stat(each)
		return found !== undefined && owners.includes(found.uid) && (found.mode & writers) === 0
	})

/** bubblewrap at a fixed place, owned by root: PATH has no say. AppArmor's profile names /usr/bin/bwrap, so it comes first. */
export const findBubblewrap = (): string | undefined =>
	['/usr/bin/bwrap', '/bin/bwrap', '/usr/local/bin/bwrap', '/run/current-system/sw/bin/bwrap'].find(
		(path) => runnable(path) && trusted(real(path) ?? path, [0]),
	)

/** util-linux's nsenter, by the same rule. */
export const findNsenter = (): string | undefined => findSystemProgram('nsenter')

/** A program of the system, by the same rule. */
export const findSystemProgram = (name: string): string | undefined =>
	['/usr/bin', '/bin', '/run/current-system/sw/bin']
		.map((folder) => join(folder, name))
		.find((path) => runnable(path) && trusted(real(path) ?? path, [0]))

/** A bubblewrap that the caller names: absolute, and writable only by root or the user. */
export const checkedBubblewrap = (path: string): string | undefined =>
	isAbsolute(path) && runnable(path) && trusted(real(path) ?? path, [0, process.getuid?.() ?? 0]) ? path : undefined

/**
 * A program from the absolute entries of PATH, outside the folders in `avoid` (the working root), in a folder that nobody
 * but root and the user can write.
 */
export const findProgram = (name: string, path: string | undefined, avoid: string[]): string | undefined => {
	const owners = [0, process.getuid?.() ?? 0]
	for (const entry of (path ?? '').split(':')) {
		const candidate = join(entry, name)
		if (!isAbsolute(entry) || !runnable(candidate)) continue
		const target = real(candidate) ?? candidate
		const places = [candidate, target]
		if (places.some((place) => avoid.some((folder) => inside(place, real(folder) ?? folder)))) continue
		// Group writers are let pass: a group of one's own is the rule on many systems.
		if (places.every((place) => trusted(place, owners, 0o002))) return candidate
	}
	return undefined
}
