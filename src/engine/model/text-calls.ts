// Tool calls that a model wrote as text, because its server did not read them: found, and run only where that is safe.
import type { ModelSpec, ToolSpec } from '../types.ts'
import { atHead, endTokens, markers, type Reader, readerOf, type TextCall } from './text-formats.ts'

export interface TextCalls {
	/** Calls to run; all are to tools of the request. */
	calls: TextCall[]
	/** What is left as words. */
	text: string
	/** Markup of a call was seen that must not run: the reply is not finished work. */
	leaked: boolean
}

interface Segment {
	kind: 'call' | 'noise' | 'broken'
	calls: TextCall[]
	start: number
	end: number
	/** Forms that plain answers use too (bare JSON, a fence, a list): they count only when they are the whole reply. */
	weak?: boolean
}

/**
 * Reads a whole reply. `whole`: calls run only when the reply is nothing but calls to tools of this request. `lines`: also
 * calls that stand on lines of their own outside code fences. `off`: none run. Markup that names a tool of this request and
 * does not run is `leaked`; markup that is no call to one is plain text.
 */
export function readTextCalls(text: string, tools: ToolSpec[], mode: ModelSpec['textToolCalls']): TextCalls {
	const none: TextCalls = { calls: [], text, leaked: false }
	if (!tools.length || !/[<[{`]/.test(text)) return none
	const segments = scan(text, tools)
	if (!segments.some((segment) => segment.kind !== 'noise')) return none

	const known = (call: TextCall) => tools.some((tool) => tool.name === call.name)
	const good = (segment: Segment) => segment.kind === 'call' && segment.calls.every(known)
	const outside = without(
		text,
		segments.filter((segment) => segment.kind !== 'broken'),
	)
	const alone =
		outside.replace(endTokens, '').trim() === '' &&
		segments.every((segment) => segment.kind === 'noise' || good(segment))
	if (alone && mode !== 'off') return { calls: segments.flatMap((segment) => segment.calls), text: '', leaked: false }

	const fences = fencesOf(text)
	const runs = (segment: Segment) =>
		mode === 'lines' && good(segment) && !segment.weak && ownLines(text, segment) && !inside(fences, segment.start)
	const run = segments.filter(runs)
	const leaked = segments.some((segment) => {
		if (run.includes(segment) || segment.kind === 'noise') return false
		if (segment.weak) return segment.calls.some(known) && text.slice(segment.end).trim() === ''
		if (inside(fences, segment.start) || text[segment.start - 1] === '`') return false
		return segment.kind === 'call'
			? segment.calls.some(known)
			: tools.some((tool) => text.slice(segment.start, segment.start + 400).includes(tool.name))
	})
	if (!run.length) return { ...none, leaked }
	const noise = segments.filter((segment) => segment.kind === 'noise')
	return {
		calls: run.flatMap((segment) => segment.calls),
		text: without(text, [...run, ...noise])
			.replace(endTokens, '')
			.trim(),
		leaked,
	}
}

const scan = (text: string, tools: ToolSpec[]): Segment[] => {
	const head = atHead(text, tools)
	if (head) return [{ kind: 'call', ...head, weak: true }]
	const segments: Segment[] = []
	const find = new RegExp(markers)
	// A text of many openers that never close must not cost their number times its length.
	let broken = 0
	for (let match = find.exec(text); match && broken < 64; match = find.exec(text)) {
		const start = match.index
		const marker = match[0]
		if (marker === '</tool_call>') {
			segments.push({ kind: 'noise', calls: [], start, end: start + marker.length })
			continue
		}
		let got: ReturnType<Reader> = null
		try {
			got = readerOf(marker)(text, start, tools)
		} catch {}
		if (got?.calls.length) {
			segments.push({ kind: 'call', start, ...got })
			find.lastIndex = got.end
		} else if (!marker.startsWith('```')) {
			broken++
			segments.push({ kind: 'broken', calls: [], start, end: start + marker.length })
		}
	}
	return segments
}

const without = (text: string, segments: Segment[]): string => {
	const parts: string[] = []
	let at = 0
	for (const segment of [...segments].sort((a, b) => a.start - b.start)) {
		if (segment.start > at) parts.push(text.slice(at, segment.start))
		at = Math.max(at, segment.end)
	}
	parts.push(text.slice(at))
	return parts.join('')
}

const ownLines = (text: string, segment: Segment): boolean => {
	const before = text.slice(text.lastIndexOf('\n', segment.start - 1) + 1, segment.start)
	const newline = text.indexOf('\n', segment.end)
	const after = text.slice(segment.end, newline < 0 ? undefined : newline)
	return (
		before.replace('</tool_call>', '').trim() === '' &&
		after.replace('</tool_call>', '').replace(endTokens, '').trim() === ''
	)
}

/** Spans of fenced code; an open fence reaches to the end. */
const fencesOf = (text: string): [number, number][] => {
	const spans: [number, number][] = []
	let open = -1
	for (const match of text.matchAll(/^[ \t]*(?:```|~~~).*$/gm)) {
		if (open < 0) open = match.index
		else {
			spans.push([open, match.index + match[0].length])
			open = -1
		}
	}
	if (open >= 0) spans.push([open, text.length])
	return spans
}

const inside = (spans: [number, number][], at: number): boolean => spans.some(([start, end]) => at >= start && at < end)

/** Whether a place in a text lies in fenced code. */
export const inFence = (text: string, at: number): boolean => inside(fencesOf(text), at)
