// Starts the search worker for glob and grep and ends it: by its answer, a cancel, or a deadline it cannot ignore.
import { basename, dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ToolError } from '../errors.ts'
import { shownPath } from '../files/guard.ts'
import { isFolder, wayHere } from '../files/open.ts'
import type { ResolvedPath, ToolContext } from '../ports.ts'
import type { SearchJob, SearchMessage, SearchResult } from './grep-worker.ts'

/** Where the worker's code is: its source beside this file, or `dist/workers/grep-worker.js` of a build, whatever chunk this is in. */
export const searchWorkerUrl = (here: string = import.meta.url): URL => {
	if (here.endsWith('.ts')) return new URL('./grep-worker.ts', here)
	const dist = here.lastIndexOf('/dist/')
	return dist === -1 ? new URL('./grep-worker.js', here) : new URL(`${here.slice(0, dist)}/dist/workers/grep-worker.js`)
}

export interface SearchOptions {
	/** Milliseconds a search may take. */
	deadlineMs: number
	workerUrl?: URL
}

/** Time between the worker's own deadline and its end by force, for a pattern that never returns. */
const force = 500

/**
 * Runs a job. Past the deadline it resolves with what was found so far and `stopped`. Rejects with ToolError for a bad
 * pattern or when the signal aborts.
 */
export const runSearch = async (
	job: Omit<SearchJob, 'deadlineMs' | 'handles'>,
	options: SearchOptions,
	signal: AbortSignal,
): Promise<SearchResult> => {
	const handles = (await wayHere()) === 'handles'
	if (signal.aborted) throw stopped()
	const url = options.workerUrl ?? searchWorkerUrl()
	const worker = new Worker(url, {
		workerData: { garudaSearch: { ...job, handles, deadlineMs: options.deadlineMs } satisfies SearchJob },
		// Sources run by Node's own type stripping; nothing of the session's flags, environment or streams goes in.
		execArgv: url.pathname.endsWith('.ts') ? ['--disable-warning=ExperimentalWarning'] : [],
		env: {},
		stdin: false,
		stdout: true,
		stderr: true,
		resourceLimits: { maxOldGenerationSizeMb: 768 },
	})
	let last: SearchResult | null = null
	let timer: NodeJS.Timeout | undefined
	let onAbort = (): void => {}
	try {
		return await new Promise<SearchResult>((resolve, reject) => {
			onAbort = () => reject(stopped())
			signal.addEventListener('abort', onAbort)
			timer = setTimeout(
				() => (last ? resolve({ ...last, stopped: true }) : reject(tooSlow(options.deadlineMs))),
				options.deadlineMs + force,
			)
			worker.on('message', (message: SearchMessage) => {
				if (message.type === 'error') reject(new ToolError(message.message))
				else if (message.type === 'done') resolve(message.result)
				else last = message.result
			})
			worker.on('error', (error) => reject(new ToolError(`The search failed: ${error.message}`)))
			worker.on('exit', () => reject(new ToolError('The search ended without a result.')))
		})
	} finally {
		clearTimeout(timer)
		signal.removeEventListener('abort', onAbort)
		worker.removeAllListeners()
		worker.on('error', () => {})
		await worker.terminate()
	}
}

const stopped = (): ToolError => new ToolError('The search was stopped by the user.')

const tooSlow = (ms: number): ToolError =>
	new ToolError(
		`The search took longer than ${ms / 1000} s and found nothing by then: the pattern may be too slow for these files. Simplify it, or name a smaller folder as path.`,
	)

/** Base, file and paths of a search below a resolved path; ToolError when it is missing or off limits. */
export const searchBase = async (
	resolved: ResolvedPath,
	ctx: ToolContext,
): Promise<Pick<SearchJob, 'base' | 'file' | 'roots' | 'home' | 'denied'>> => {
	if (resolved.sensitive)
		throw new ToolError(`${shownPath(resolved.shown)} is off limits for the file tools: ${resolved.sensitive}.`)
	const common = { roots: ctx.files.roots, home: ctx.home, denied: ctx.deniedReads }
	if (await isFolder(resolved.path)) return { ...common, base: resolved.path }
	// Not a folder: the guard says whether it is a file, and if not, what it is.
	await ctx.files.readPart(resolved.path, 0, 0)
	return { ...common, base: dirname(resolved.path), file: basename(resolved.path) }
}

/** What was left out, in brackets, so that a short list is not taken for the whole truth; '' when nothing was. */
export const leftOut = (result: SearchResult, extra: string[] = []): string => {
	const { counts } = result
	const some = (n: number, what: string) => (n > 0 ? [`${n.toLocaleString('en')} ${what}`] : [])
	const parts = [
		...extra,
		...some(counts.ignored, `skipped by .gitignore`),
		...some(result.denied, 'files left out by a deny rule of the user'),
		...some(counts.secret, 'secret files or folders not searched'),
		...some(counts.links, 'links not followed'),
		...some(counts.unreadable, 'paths not readable'),
		...some(result.binary, 'binary files skipped'),
		...some(result.tooLarge, 'files over 32 MB skipped'),
	]
	return parts.length ? `[${parts.join('; ')}]` : ''
}
