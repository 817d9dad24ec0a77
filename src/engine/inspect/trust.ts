// `garuda trust list` and `garuda trust forget`: the consents of the user, read and taken back. A service on top of the engine.
import { promises as fs } from 'node:fs'
import { resolve, sep } from 'node:path'
import { systemClock } from '../clock.ts'
import { garudaPaths } from '../config/paths.ts'
import { codeOf, UserError } from '../errors.ts'
import { trustFile } from '../permission/trust.ts'
import { changeTrust, type Entry, readTrust } from '../permission/trust-file.ts'
import { oneLine, visible } from '../text.ts'

/** Where to look: nothing of it comes from a project. */
export interface TrustPlace {
	home: string
	garudaHome?: string | undefined
	cwd: string
}

export interface TrustReport {
	/** For stdout. */
	text: string
	/** For stderr: a file that cannot be taken at its word. */
	problems: string[]
}

const fileOf = (place: TrustPlace): string => trustFile(garudaPaths(place.home, place.home, place.garudaHome))

/** Newest first, as both verbs count them. */
async function consents(place: TrustPlace): Promise<{ entries: Entry[]; problems: string[] }> {
	const problems: string[] = []
	const { entries } = await readTrust(fileOf(place), problems)
	return { entries: entries.toSorted((a, b) => b.time - a.time), problems }
}

/** What is pinned. UserError for a trust file that must not be used (a link, another's, writable by others). */
export async function trustList(place: TrustPlace, flags: { json?: boolean | undefined }): Promise<TrustReport> {
	const { entries, problems } = await consents(place)
	const shown = await Promise.all(entries.map(async (one) => ({ ...one, there: await isThere(one.path) })))
	if (flags.json) return { text: `${JSON.stringify({ version: 1, consents: shown })}\n`, problems }
	if (shown.length === 0)
		return { text: problems.length > 0 ? '' : 'Nothing is trusted: no project was agreed to.\n', problems }
	const width = Math.max(...shown.map(({ kind }) => kind.length))
	const lines = shown.map(({ kind, root, name, path, sha256, time, there }, index) =>
		[
			`${String(index + 1).padStart(3)}  ${oneLine(kind, 40).padEnd(width)}  ${when(time)}  ${sha256.slice(0, 12)}  ${oneLine(root, 300)}`,
			`     ${oneLine(inRoot(path, root), 300)}${path.endsWith(name) ? '' : ` (${oneLine(name, 100)})`}${there ? '' : '  (the file is gone)'}`,
		].join('\n'),
	)
	return { text: `${lines.join('\n')}\n`, problems }
}

/**
 * Takes consents back: all, those of a line of the list, of a hash's beginning (8 digits or more), of a file, or of a folder
 * with all below it. UserError when nothing fits, or the file cannot be changed.
 */
export async function trustForget(place: TrustPlace, what: string | { all: true }): Promise<TrustReport> {
	const { entries, problems } = await consents(place)
	const chosen = typeof what === 'string' ? await chosenOf(entries, what, place) : entries
	const gone = new Set(chosen.map(idOf))
	if (gone.size > 0 || problems.length > 0)
		await changeTrust(fileOf(place), systemClock, problems, (now) => now.filter((one) => !gone.has(idOf(one))))
	if (chosen.length === 0) return { text: 'Nothing was trusted, so there is nothing to forget.\n', problems }
	const lines = chosen.map(
		({ kind, path, sha256 }) => `Forgotten: ${oneLine(kind, 40)}  ${sha256.slice(0, 12)}  ${oneLine(path, 300)}`,
	)
	const again = 'Garuda asks again before it has an effect; a session that is open keeps what it has.'
	return { text: `${visible(lines.join('\n'))}\n${again}\n`, problems }
}

async function chosenOf(entries: readonly Entry[], what: string, place: TrustPlace): Promise<Entry[]> {
	const none = (message: string) => new UserError(message, 'See: garuda trust list')
	if (/^\d{1,4}$/.test(what)) {
		const one = entries[Number(what) - 1]
		if (one) return [one]
		throw none(`There is no consent number ${what}; there are ${entries.length}.`)
	}
	if (/^[0-9a-f]{8,64}$/.test(what)) {
		const found = entries.filter(({ sha256 }) => sha256.startsWith(what))
		if (found.length > 0) return found
	}
	const typed = resolve(place.cwd, what === '~' || what.startsWith('~/') ? place.home + what.slice(1) : what)
	// Consents hold real paths; a folder that is gone has none any more.
	const paths = new Set([typed, await fs.realpath(typed).catch(() => typed)])
	const found = entries.filter(({ root, path }) =>
		[...paths].some((one) => one === root || one === path || path.startsWith(one.endsWith(sep) ? one : one + sep)),
	)
	if (found.length === 0) throw none(`Nothing is trusted of ${oneLine(typed, 300)}.`)
	return found
}

const idOf = ({ kind, root, name, path, sha256 }: Entry): string => JSON.stringify([kind, root, name, path, sha256])

const when = (time: number): string =>
	Math.abs(time) < 8.64e15 ? new Date(time).toISOString().slice(0, 16).replace('T', ' ') : 'unknown when'.padEnd(16)

const inRoot = (path: string, root: string): string =>
	path.startsWith(root + sep) ? path.slice(root.length + 1) : path

const isThere = async (path: string): Promise<boolean> =>
	fs.lstat(path).then(
		() => true,
		(error) => codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR',
	)
