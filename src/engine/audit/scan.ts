// One log file gone through from its first line: where the chain breaks first, and how. Under verify, and under a session that goes on.
import {
	type AuditLine,
	genesis,
	type Handle,
	type Head,
	type RawLine,
	type ReadLine,
	rawLines,
	readLine,
	sha256,
} from './chain.ts'

/** What was done to a log. */
export type Tampering =
	| 'changed'
	| 'changed_hash'
	| 'inserted'
	| 'duplicated'
	| 'swapped'
	| 'removed'
	| 'removed_first'
	| 'foreign'
	| 'unreadable'
	| 'cut'
	| 'rewritten'
	| 'appended'
	| 'broken'

export interface Bad {
	/** Of the file, 1-based; where a line is missing, the place where it should stand. */
	line: number
	kind: Tampering
	why: string
}

/** A head that somebody kept, with who. */
export interface KeptHead extends Head {
	/** `the index`, `the checkpoint PATH`, `the witness NAME`. */
	source: string
	/** Nothing may come after it. */
	closed?: boolean
}

export interface Scan {
	/** The number and hash of the last line that could be read; a log that goes on follows it. */
	lines: number
	hash: string
	bad: Bad | null
	/** The bytes of a last line that was never finished. */
	torn: Buffer | null
	/** The file does not end with a newline. */
	open: boolean
	/** Lines that a killed process left half written, each followed by the line that says so. */
	mended: number
	/** The last line says that the session ended. */
	ended: boolean
	first: string
	last: string
}

interface Item {
	raw: RawLine
	at: number
	read: ReadLine | null
}

/** Never throws but for the disk. A file with no lines is a log that has not begun. */
export async function scanFile(handle: Handle, session: string, kept: readonly KeptHead[]): Promise<Scan> {
	const scan: Scan = {
		lines: 0,
		hash: genesis(session),
		bad: null,
		torn: null,
		open: false,
		mended: 0,
		ended: false,
		first: '',
		last: '',
	}
	const heads = new Map(kept.map((head) => [head.lines, head.hash]))
	/** By line number; [0] is what the first one points back to. */
	const hashes: (string | undefined)[] = [scan.hash]
	const fail = (line: number, kind: Tampering, why: string) => {
		if (!scan.bad || line < scan.bad.line) scan.bad = { line, kind, why }
	}

	const source = rawLines(handle)
	const ahead: Item[] = []
	let read = 0
	const fill = async (count: number): Promise<void> => {
		while (ahead.length < count) {
			const { value } = (await source.next()) as { value: RawLine | undefined }
			if (!value) return
			const text = value.long ? '' : value.bytes.toString('latin1')
			ahead.push({ raw: value, at: ++read, read: readLine(text) })
		}
	}
	try {
		for (;;) {
			await fill(3)
			const item = ahead.shift()
			if (!item) break
			scan.open = !item.raw.whole
			const [next, third] = ahead
			if (!item.read) {
				if (!item.raw.whole) scan.torn = item.raw.bytes
				else if (isMended(item, next?.read, scan.hash)) scan.mended++
				else if (!scan.bad) fail(item.at, ...unreadable(item, next?.read, scan))
				continue
			}
			const { line } = item.read
			if (!scan.bad) {
				const wrong = judge(item.read, next?.read, third?.read, { session, scan, hashes, heads, at: item.at })
				if (wrong === 'ahead') {
					const moved = await comesLater(ahead, source, scan)
					fail(
						item.at,
						moved ? 'swapped' : 'removed',
						moved
							? `line ${line.n} of the log stands here, and line ${scan.lines + 1} further down: their order was changed`
							: `${missing(scan.lines + 1, line.n - 1)} removed before it`,
					)
				} else if (wrong) fail(item.at + (wrong.next ? 1 : 0), wrong.kind, wrong.why)
				else if (line.kind === 'session' && line.reason === 'broken')
					fail(item.at, 'broken', `the session went on here although its log was not as it was left: ${said(line)}`)
			}
			if (!scan.bad || scan.bad.line > item.at) hashes[line.n] = line.hash
			scan.lines = line.n
			scan.hash = line.hash
			scan.first ||= line.time
			scan.last = line.time
			scan.ended = line.kind === 'session' && line.reason === 'end'
		}
	} finally {
		await source.return(undefined)
	}
	checkHeads(kept, hashes, scan, fail)
	return scan
}

const missing = (from: number, to: number): string => (from === to ? `line ${from} was` : `lines ${from} to ${to} were`)
const short = (hash: string): string => hash.slice(0, 12)
const said = (line: AuditLine): string => {
	const why = (line.detail as { broken?: { why?: unknown } } | undefined)?.broken?.why
	return typeof why === 'string' ? why : 'no reason is given'
}

/** The half line of a killed process, as the next line tells: how long it is and what it hashes to. */
function isMended(item: Item, next: ReadLine | null | undefined, hash: string): boolean {
	if (item.raw.long || !next || next.line.prev !== hash || next.line.kind !== 'session') return false
	const torn = (next.line.detail as { torn?: { bytes?: unknown; sha256?: unknown } } | undefined)?.torn
	return torn?.bytes === item.raw.bytes.length && torn.sha256 === sha256(item.raw.bytes)
}

function unreadable(item: Item, next: ReadLine | null | undefined, scan: Scan): [Tampering, string] {
	const follows = next && next.line.n === scan.lines + 1 && next.line.prev === scan.hash
	if (follows) return ['inserted', 'this is no line of the log, and the next one goes on without it']
	return ['unreadable', item.raw.long ? 'a line of this length was never written' : 'this is no line of the log']
}

interface Around {
	session: string
	scan: Scan
	hashes: readonly (string | undefined)[]
	heads: ReadonlyMap<number, string>
	at: number
}

type Verdict = { kind: Tampering; why: string; next?: boolean } | 'ahead' | null

/** One line between its neighbours. `ahead`: a later line of the log stands here. */
function judge(
	{ line, computed, written }: ReadLine,
	next: ReadLine | null | undefined,
	third: ReadLine | null | undefined,
	{ session, scan, hashes, heads, at }: Around,
): Verdict {
	const expected = scan.lines + 1
	const fits = line.hash === computed
	const nextTakesItsPlace = next && next.line.n === expected && next.line.prev === scan.hash
	if (!fits) {
		if (nextTakesItsPlace)
			return { kind: 'inserted', why: 'its hash does not fit it, and the next line goes on without it' }
		const kept = next ? next.line.prev : heads.get(line.n)
		return kept === computed
			? { kind: 'changed_hash', why: 'its hash was changed; its content is what the rest of the chain knows' }
			: { kind: 'changed', why: 'its content was changed: it does not fit its hash' }
	}
	if (line.session !== session)
		return {
			kind: 'foreign',
			why:
				at === 1
					? `the file holds the log of another session, ${line.session.slice(0, 60)}`
					: `it belongs to another session, ${line.session.slice(0, 60)}`,
		}
	if (!written) return { kind: 'changed', why: 'it is not written the way the log writes lines' }
	if (line.n < expected)
		return hashes[line.n] === line.hash
			? { kind: 'duplicated', why: `it is line ${line.n} once more` }
			: { kind: 'inserted', why: `it says that it is line ${line.n}, which is another one` }
	if (line.n > expected) {
		if (nextTakesItsPlace)
			return {
				kind: 'swapped',
				why: `line ${line.n} of the log stands before line ${expected}: their order was changed`,
			}
		return at === 1 || scan.lines === 0
			? { kind: 'removed_first', why: `the file begins with line ${line.n} of the log: the first was removed` }
			: 'ahead'
	}
	if (line.prev !== scan.hash)
		return at === 1
			? { kind: 'foreign', why: 'it does not begin as the log of this session does' }
			: { kind: 'changed', why: 'it does not follow the line before it' }
	if (!next || next.line.hash !== next.computed) return null
	// The line is sound by itself. Whether it belongs here, its neighbours tell.
	const nextGoesOn = third ? third.line.prev === next.line.hash : heads.get(next.line.n) === next.line.hash
	if (nextTakesItsPlace && next.line.hash !== line.hash)
		return nextGoesOn
			? { kind: 'inserted', why: 'the next line goes on without it' }
			: { kind: 'inserted', why: `it stands beside line ${line.n}, after which the log goes on without it`, next: true }
	if (next.line.n === expected + 1 && next.line.prev !== line.hash && next.line.session === session && nextGoesOn)
		return { kind: 'changed', why: 'its content and hash were changed: the next line follows another one' }
	return null
}

/** Whether the line that should have come next stands further down. */
async function comesLater(ahead: readonly Item[], source: AsyncGenerator<RawLine>, scan: Scan): Promise<boolean> {
	const is = (read: ReadLine | null) => read?.line.n === scan.lines + 1 && read.line.prev === scan.hash
	if (ahead.some((item) => is(item.read))) return true
	for await (const raw of source) if (!raw.long && is(readLine(raw.bytes.toString('latin1')))) return true
	return false
}

/** Every head that somebody kept must be in the file. The line named is the first that no matching head vouches for. */
function checkHeads(
	kept: readonly KeptHead[],
	hashes: readonly (string | undefined)[],
	scan: Scan,
	fail: (line: number, kind: Tampering, why: string) => void,
): void {
	const sound = hashes.length - 1
	const matching = kept.filter((head) => hashes[head.lines] === head.hash)
	const wrong = kept.filter((head) => hashes[head.lines] !== head.hash).sort((a, b) => a.lines - b.lines)
	for (const head of wrong) {
		// What comes after the first break says nothing about the heads.
		if (head.lines > sound && scan.bad && scan.bad.line <= sound + scan.mended + 1) break
		if (head.lines > sound) {
			fail(
				sound + scan.mended + 1,
				'cut',
				`the file ends after line ${sound}, and ${head.source} knows ${head.lines} lines (${head.time || 'no time'}): the rest was cut off`,
			)
			break
		}
		const from = Math.max(0, ...matching.filter((one) => one.lines < head.lines).map((one) => one.lines)) + 1
		const agree = matching.filter((one) => one.lines >= head.lines).map((one) => one.source)
		fail(
			from,
			'rewritten',
			`the log was written anew from ${from === head.lines ? `line ${from}` : `one of the lines ${from} to ${head.lines}`} on: ${head.source} knows line ${head.lines} as ${short(head.hash)}… (${head.time || 'no time'}), the file has ${short(hashes[head.lines] ?? '')}…` +
				(agree.length > 0 ? `; ${[...new Set(agree)].join(' and ')} was rewritten with it` : ''),
		)
		break
	}
	// A head is told after its whole line: what a killed process left open no head knows.
	const last = matching.find((head) => head.lines === sound && sound > 0)
	if (last && scan.open && !scan.torn)
		fail(
			sound + scan.mended,
			'cut',
			`its line end was cut off: ${last.source} knows the whole line (${last.time || 'no time'})`,
		)
	for (const head of matching.filter((one) => one.closed)) {
		if (head.lines < sound)
			fail(head.lines + scan.mended + 1, 'appended', `the session had ended before it (${head.source}, ${head.time})`)
		else if (scan.torn)
			fail(
				sound + scan.mended + 1,
				'appended',
				`bytes that are no line stand after the end of the session (${head.source})`,
			)
	}
}
