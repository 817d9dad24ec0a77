// The search worker: walks and searches in a thread of its own, so that neither a big tree nor a slow pattern holds the session.
import { parentPort, workerData } from 'node:worker_threads'
import picomatch from 'picomatch'
import { readFileAt, type WalkCounts, type WalkedFile, walk } from '../files/walk.ts'
import { deniedTest } from '../permission/match.ts'
import { compilePattern, type PatternInput } from './pattern.ts'
import { type Row, scanFile } from './scan.ts'

/** What to search. `file` (a name in `base`) searches that one file only. */
export interface SearchJob {
	base: string
	file?: string
	roots: readonly string[]
	home: string
	handles: boolean
	ignore: boolean
	/** Files that a rule keeps from reading. */
	denied: readonly { glob: string; below: boolean }[]
	/** Glob for paths relative to the base; without a "/" for names at any depth when `anyDepth`. */
	glob?: string
	anyDepth?: boolean
	/** Absent: list files. */
	pattern?: PatternInput
	context: number
	/** Files listed, or files and lines of matches kept; the rest is only counted. */
	maxFiles: number
	maxRows: number
	/** Milliseconds; the worker ends itself in good order, the caller terminates it a little later. */
	deadlineMs: number
}

export interface FoundFile {
	path: string
	count: number
	rows: Row[]
}

export interface SearchResult {
	files: FoundFile[]
	/** Files and lines that match in all, and files looked at. */
	fileCount: number
	lineCount: number
	looked: number
	counts: WalkCounts
	binary: number
	tooLarge: number
	/** Files left out by a deny rule. */
	denied: number
	/** Ended by the deadline: the numbers are lower bounds. */
	stopped: boolean
}

const largest = 32 * 1024 * 1024

/** A glob as a test; a leading "!" turns it round. */
const globTest = (glob: string, anyDepth: boolean): ((file: WalkedFile) => boolean) => {
	const negated = glob.startsWith('!')
	const pattern = (negated ? glob.slice(1) : glob).replace(/^\.?\//, '')
	const test = picomatch(pattern, { dot: true })
	const byName = anyDepth && !pattern.includes('/')
	return (file) => test(byName ? file.name : file.path) !== negated
}

/** Runs a job; `report` gets the result so far from time to time. Throws ToolError for a bad pattern. */
export const search = (job: SearchJob, report: (result: SearchResult) => void): SearchResult => {
	const matcher = job.pattern && compilePattern(job.pattern)
	const accepts = job.glob === undefined ? () => true : globTest(job.glob, job.anyDepth ?? false)
	const isDenied = deniedTest(job.denied)
	const result: SearchResult = {
		files: [],
		fileCount: 0,
		lineCount: 0,
		looked: 0,
		counts: { ignored: 0, secret: 0, links: 0, unreadable: 0 },
		binary: 0,
		tooLarge: 0,
		denied: 0,
		stopped: false,
	}
	const buffer = Buffer.allocUnsafe(256 * 1024)
	const end = performance.now() + job.deadlineMs
	let reported = performance.now()
	let rows = 0
	for (const file of walk(job, result.counts, job.file)) {
		if ((++result.looked & 63) === 0 || matcher) {
			const now = performance.now()
			if (now > end) {
				result.stopped = true
				break
			}
			if (now - reported > 200) {
				reported = now
				report(result)
			}
		}
		if (!accepts(file)) continue
		if (job.denied.length > 0 && isDenied(`${job.base === '/' ? '' : job.base}/${file.path}`)) {
			result.denied++
			continue
		}
		if (!matcher) {
			result.fileCount++
			if (result.files.length < job.maxFiles) result.files.push({ path: file.path, count: 0, rows: [] })
			continue
		}
		let bytes: Buffer | null
		try {
			bytes = readFileAt(file.open, largest, buffer)
		} catch {
			result.counts.unreadable++
			continue
		}
		if (bytes === null) {
			result.tooLarge++
			continue
		}
		const scan = scanFile(bytes, matcher, Math.max(0, job.maxRows - rows), job.context)
		if (scan.binary) result.binary++
		if (scan.count === 0) continue
		result.fileCount++
		result.lineCount += scan.count
		rows += scan.rows.length
		if (result.files.length < job.maxFiles) result.files.push({ path: file.path, count: scan.count, rows: scan.rows })
	}
	return result
}

/** Messages to the caller. */
export type SearchMessage = { type: 'part' | 'done'; result: SearchResult } | { type: 'error'; message: string }

if (parentPort && workerData?.garudaSearch) {
	const port = parentPort
	try {
		const result = search(workerData.garudaSearch as SearchJob, (part) =>
			port.postMessage({ type: 'part', result: part } satisfies SearchMessage),
		)
		port.postMessage({ type: 'done', result } satisfies SearchMessage)
	} catch (error) {
		port.postMessage({ type: 'error', message: (error as Error).message } satisfies SearchMessage)
	}
}
