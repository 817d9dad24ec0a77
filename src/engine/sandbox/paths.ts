// Small questions about paths and the disk that policy, repository and watch share; all by lstat, no link followed unasked.
import { lstatSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname, sep } from 'node:path'

/** `path` is `folder` or lies below it; both absolute and normalised. */
export const inside = (path: string, folder: string): boolean =>
	path === folder || folder === '/' || path.startsWith(folder + sep)

export const below = (path: string, folder: string): boolean => path !== folder && inside(path, folder)

export const lstat = (path: string): Stats | undefined => {
	try {
		return lstatSync(path, { throwIfNoEntry: false })
	} catch {
		return undefined // ENOTDIR, EACCES, ELOOP: not there for us
	}
}

export const stat = (path: string): Stats | undefined => {
	try {
		return statSync(path, { throwIfNoEntry: false })
	} catch {
		return undefined
	}
}

/** The real path of something that exists, or undefined. */
export const real = (path: string): string | undefined => {
	try {
		return realpathSync.native(path)
	} catch {
		return undefined
	}
}

/** A small regular file's text (a link or a FIFO is none), or undefined. */
export const smallFile = (path: string, limit = 65_536): string | undefined => {
	const found = lstat(path)
	if (!found?.isFile() || found.size > limit) return undefined
	try {
		return readFileSync(path, 'utf8')
	} catch {
		return undefined
	}
}

/** The folders strictly between `folder` and `path`, outermost first. */
export const between = (path: string, folder: string): string[] => {
	const found: string[] = []
	for (let at = dirname(path); below(at, folder); at = dirname(at)) found.unshift(at)
	return found
}
