// Where an edit's old text stands in a file: exactly first; then, only when one place fits, nearly, and it says so.
import { distance } from '../files/suggest.ts'
import type { Splice } from '../files/text-file.ts'

export type Match =
	| { kind: 'exact'; splices: Splice[] }
	/** One place fits apart from `how`; the result must name it. */
	| { kind: 'near'; splices: [Splice]; how: string }
	| { kind: 'many'; lines: number[]; how?: string }
	| { kind: 'none' }

const lineOf = (text: string, at: number): number => {
	let line = 1
	for (let nl = text.indexOf('\n'); nl !== -1 && nl < at; nl = text.indexOf('\n', nl + 1)) line++
	return line
}

const positions = (text: string, part: string): number[] => {
	const found: number[] = []
	for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at)
	return found
}

/** Finds the old text. Approximations never apply to `all` and never choose among several places. */
export const findMatch = (text: string, from: string, to: string, all: boolean): Match => {
	const exact = positions(text, from)
	if (exact.length === 1 || (exact.length > 1 && all))
		return { kind: 'exact', splices: exact.map((start) => ({ start, end: start + from.length, text: to })) }
	if (exact.length > 1) return { kind: 'many', lines: exact.map((at) => lineOf(text, at)) }
	if (all) return { kind: 'none' }
	for (const attempt of [unmarked, sameSigns, lineWise]) {
		const found = attempt(text, from, to)
		if (found.kind !== 'none') return found
	}
	return { kind: 'none' }
}

const one = (text: string, starts: number[], splice: (start: number) => Splice, how: string): Match => {
	if (starts.length === 0) return { kind: 'none' }
	if (starts.length > 1) return { kind: 'many', lines: starts.map((at) => lineOf(text, at)), how }
	return { kind: 'near', splices: [splice(starts[0]!)], how }
}

const escaped =
	/&lt;(?=\s*[/／]?\s*(?:system-reminder|garuda|tool_result|web_result|mcp_result|memory|instructions|environment|attached|context|plan-mode|summary)\b)/gi

/** Results show Garuda's own tags in files with "&lt;" (see untrusted.ts); the model then repeats that spelling. */
const unmarked = (text: string, from: string, to: string): Match => {
	if (from.search(escaped) === -1) return { kind: 'none' }
	const real = from.replace(escaped, '<')
	const splice = (start: number) => ({ start, end: start + real.length, text: to.replace(escaped, '<') })
	return one(
		text,
		positions(text, real),
		splice,
		'the file has "<" where results show "&lt;" in front of a tag name of Garuda',
	)
}

/** Signs that models and editors exchange, one for one, so that positions stay the same. */
const plainSigns = (text: string): string =>
	text
		.replace(/[\u2018\u2019\u201a\u201b]/g, "'")
		.replace(/[\u201c\u201d\u201e\u201f]/g, '"')
		.replace(/[\u2010-\u2015\u2212]/g, '-')
		.replace(/[\u00a0\u2002-\u200a\u202f\u205f\u3000]/g, ' ')

const sameSigns = (text: string, from: string, to: string): Match => {
	const [plainText, plainFrom] = [plainSigns(text), plainSigns(from)]
	if (plainText === text && plainFrom === from) return { kind: 'none' }
	const splice = (start: number): Splice => keepSame({ start, end: start + from.length, text: to }, text, from)
	return one(
		text,
		positions(plainText, plainFrom),
		splice,
		'quotes, dashes or special spaces in the file differ from old_string',
	)
}

/** What old and new text share at both ends stays as the file has it. */
const keepSame = (splice: Splice, text: string, from: string): Splice => {
	const to = splice.text
	const max = Math.min(from.length, to.length)
	let head = 0
	while (head < max && from[head] === to[head]) head++
	let tail = 0
	while (tail < max - head && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail++
	const kept = text.slice(splice.start, splice.end)
	// Equal lengths on both sides make offsets carry over.
	return { start: splice.start + head, end: splice.start + kept.length - tail, text: to.slice(head, to.length - tail) }
}

const indentOf = (line: string): string => /^[ \t]*/.exec(line)![0]

/** Whole lines that differ only in spaces at their end, or in one and the same indentation on every line. */
const lineWise = (text: string, from: string, to: string): Match => {
	const wanted = from.replace(/\n$/, '').split('\n')
	if (wanted.every((line) => line.trim() === '')) return { kind: 'none' }
	const lines = text.split('\n')
	const starts: number[] = []
	let offset = 0
	for (const line of lines) {
		starts.push(offset)
		offset += line.length + 1
	}
	const found: { line: number; shift: Shift }[] = []
	for (let at = 0; at + wanted.length <= lines.length; at++) {
		if (lines[at]!.trim() !== wanted[0]!.trim()) continue
		const shift = shiftOf(wanted, lines.slice(at, at + wanted.length))
		if (shift) found.push({ line: at, shift })
	}
	// The ends alone are a smaller difference than the indentation.
	const best = found.some(({ shift }) => shift.add === '' && shift.drop === '')
		? found.filter(({ shift }) => shift.add === '' && shift.drop === '')
		: found
	if (best.length === 0) return { kind: 'none' }
	const { line, shift } = best[0]!
	const indented = shift.add !== '' || shift.drop !== ''
	const how = indented
		? 'the indentation in the file differs from old_string; new_string was indented as the file is'
		: 'spaces at line ends in the file differ from old_string'
	const start = starts[line]!
	const last = line + wanted.length - 1
	const end = starts[last]! + lines[last]!.length
	const body = from.endsWith('\n') && to.endsWith('\n') ? to.slice(0, -1) : to
	// Old text that took its line end with it, new text without one: the line end goes too.
	const stop = from.endsWith('\n') && !to.endsWith('\n') ? Math.min(text.length, end + 1) : end
	const moved = body.split('\n').map((one) => shifted(one, shift))
	if (moved.includes(null)) return { kind: 'none' }
	return one(
		text,
		best.map((place) => starts[place.line]!),
		() => ({ start, end: stop, text: moved.join('\n') }),
		how,
	)
}

/** From the model's lines to the file's: `drop` comes off the front, `add` goes on. */
interface Shift {
	drop: string
	add: string
}

const shiftOf = (wanted: string[], actual: string[]): Shift | null => {
	let shift: Shift | null = null
	for (let index = 0; index < wanted.length; index++) {
		const [a, b] = [wanted[index]!, actual[index]!]
		if (a.trim() !== b.trim()) return null
		if (a.trim() === '') continue
		const [ia, ib] = [indentOf(a), indentOf(b)]
		const here: Shift | null = ib.endsWith(ia)
			? { drop: '', add: ib.slice(0, ib.length - ia.length) }
			: ia.endsWith(ib)
				? { drop: ia.slice(0, ia.length - ib.length), add: '' }
				: null
		if (!here || (shift && (shift.add !== here.add || shift.drop !== here.drop))) return null
		shift = here
	}
	return shift
}

const shifted = (line: string, { drop, add }: Shift): string | null => {
	if (line.trim() === '') return line
	if (!line.startsWith(drop)) return null
	return add + line.slice(drop.length)
}

/** The place in a file most like a text that was not found: its first line number, or null when nothing comes near. */
export const nearestLine = (text: string, from: string): number | null => {
	const key = from
		.split('\n')
		.find((line) => line.trim().length > 2)
		?.trim()
		.replace(/\s+/g, ' ')
		.slice(0, 200)
	if (!key) return null
	let best = { line: 0, score: 0.55 }
	const words = new Set(key.split(/\W+/).filter((word) => word.length > 1))
	const lines = text.split('\n')
	for (let index = 0; index < Math.min(lines.length, 50_000); index++) {
		const line = lines[index]!.trim().replace(/\s+/g, ' ').slice(0, 200)
		if (line === '') continue
		// Shared words are a cheap first test; the edit distance then decides.
		const shared = words.size === 0 ? 1 : line.split(/\W+/).filter((word) => words.has(word)).length / words.size
		if (shared < 0.4) continue
		const longer = Math.max(line.length, key.length)
		const score = 1 - distance(line, key, Math.floor(longer * 0.6)) / longer
		if (score > best.score) best = { line: index + 1, score }
	}
	return best.line || null
}
