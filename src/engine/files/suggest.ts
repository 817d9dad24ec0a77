// "Did you mean": the real name behind a near miss, so that a model does not guess again and again.
import { basename, dirname, join, relative } from 'node:path'
import type { ResolvedPath } from '../ports.ts'
import { shownPath } from './guard.ts'
import { listFolder, wayHere } from './open.ts'
import { sensitiveReason } from './sensitive.ts'

const plain = (name: string): string =>
	name
		.replace(/\/$/, '')
		.normalize('NFKD')
		.replace(/[\p{Mn}\s_-]/gu, '')
		.toLowerCase()

/** Edits between two short strings, given up beyond `max`. */
export const distance = (a: string, b: string, max: number): number => {
	if (Math.abs(a.length - b.length) > max) return max + 1
	let row = Array.from({ length: b.length + 1 }, (_, index) => index)
	for (let i = 1; i <= a.length; i++) {
		const next = [i]
		for (let j = 1; j <= b.length; j++)
			next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
		if (Math.min(...next) > max) return max + 1
		row = next
	}
	return row[b.length]!
}

/** A sentence with up to three existing paths near a missing one, or ''. Only inside the roots: names elsewhere are nobody's business. */
export const didYouMean = async (resolved: ResolvedPath, roots: readonly string[]): Promise<string> => {
	if (!resolved.inside || resolved.sensitive) return ''
	const root = roots[0]!
	let folder = dirname(resolved.path)
	let wanted = basename(resolved.path)
	let tail = ''
	for (let climb = 0; climb < 3; climb++) {
		const names = await listFolder(folder, await wayHere()).catch(() => null)
		if (names) {
			const near = names
				.slice(0, 5000)
				.filter((name) => sensitiveReason(join(folder, name), '/', roots) === null)
				.map((name) => ({ name, far: near2(name.replace(/\/$/, ''), wanted) }))
				.filter(({ far }) => far <= 2)
				.sort((a, b) => a.far - b.far)
				.slice(0, 3)
				.map(({ name }) => shownPath(join(relative(root, folder), name, tail)))
			return near.length ? ` Did you mean ${near.join(' or ')}?` : ''
		}
		tail = join(wanted, tail)
		wanted = basename(folder)
		folder = dirname(folder)
	}
	return ''
}

/** 0 for names that differ only in normal form, case or separators; else edits, few for short names; 1.5 for the same stem. */
const near2 = (name: string, wanted: string): number => {
	const [a, b] = [plain(name), plain(wanted)]
	if (a === b) return 0
	const stem = (text: string) => text.replace(/\.[^.]+$/, '')
	if (stem(a) === stem(b) && stem(a) !== '') return 1.5
	return distance(a, b, b.length > 5 ? 2 : 1) <= (b.length > 5 ? 2 : 1) ? 2 : 3
}
