// Tab in the plain chat: slash commands, their arguments, paths for mentions. Called by the line editor; never keeps it waiting.
import { completeSlash, type Garuda, type Session } from '../engine/index.ts'

/** Longer waits belong to the background: the next Tab shows what came. */
const patienceMs = 40
const shown = 60

/** Completions and the part of the line that they replace. */
export type Completed = [hits: string[], part: string]

/**
 * A completer for one session. It answers within `patienceMs`; a slower answer is kept and `late` is called, so the
 * editor may ask again. An error is no completion.
 */
export function createCompleter(garuda: Garuda, session: () => Session, late: (line: string) => void = () => {}) {
	const ready = new Map<string, Completed>()
	return async (line: string): Promise<Completed> => {
		const known = ready.get(line)
		if (known) {
			ready.delete(line)
			return known
		}
		let timer: NodeJS.Timeout | undefined
		let waited = false
		const work = find(garuda, session(), line).catch((): Completed => [[], line])
		void work.then((found) => {
			if (!waited || found[0].length === 0) return
			ready.clear()
			ready.set(line, found)
			late(line)
		})
		const limit = new Promise<null>((done) => {
			timer = setTimeout(() => done(null), patienceMs)
		})
		const found = await Promise.race([work, limit])
		clearTimeout(timer)
		if (found) return found
		waited = true
		return [[], line]
	}
}

async function find(garuda: Garuda, session: Session, line: string): Promise<Completed> {
	if (/^\/[^\s/]*(\s|$)/.test(line)) {
		const hits = await completeSlash({ garuda, session }, line)
		if (hits.length > 0) return [hits.slice(0, shown), line]
	}
	const mention = /(?:^|[\s(])(@(?:"(?:[^"\\]|\\.)*|(?:[^\s"\\]|\\.)*))$/.exec(line)?.[1]
	if (mention !== undefined) {
		const paths = await session.complete(unquote(mention.slice(1)))
		return [paths.slice(0, shown).map((path) => writePath(path, true)), mention]
	}
	// In a command of the user's own the last word may be a path.
	const word = line.startsWith('!') ? /(?:^!|\s)((?:[^\s\\]|\\.)+)$/.exec(line)?.[1] : undefined
	if (word === undefined) return [[], line]
	const paths = await session.complete(word.replace(/\\(.)/g, '$1'))
	return [
		paths.slice(0, shown).map((path) => path.replace(/^@/, '').replace(/[^\p{L}\p{N}_./~+@%=:,-]/gu, '\\$&')),
		word,
	]
}

const unquote = (typed: string): string => typed.replace(/^"/, '').replace(/\\(.)/g, '$1')

/** A path as a mention that reads back as the same path; a folder's quote stays open, so that typing goes on. */
function writePath(path: string, at: boolean): string {
	const sign = at ? '@' : ''
	if (path.startsWith('@')) path = path.startsWith('@"') ? unquote(path.slice(1).replace(/"$/, '')) : path.slice(1)
	if (/^[\p{L}\p{N}_./~+@#%=-]+$/u.test(path) && !/[.,;:!?]$/.test(path)) return sign + path
	return `${sign}"${path.replace(/["\\]/g, '\\$&')}${path.endsWith('/') ? '' : '"'}`
}
