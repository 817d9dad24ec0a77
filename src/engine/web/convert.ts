// Runs the worker that turns a page into Markdown, and ends it at its deadline. Between web_fetch and the worker.
import { Worker } from 'node:worker_threads'
import { ToolError } from '../errors.ts'
import type { ConvertJob, ConvertResult } from './convert-worker.ts'

/** The source beside this file, or `dist/workers/convert-worker.js` of a build. */
export const convertWorkerUrl = (here: string = import.meta.url): URL => {
	if (here.endsWith('.ts')) return new URL('./convert-worker.ts', here)
	const dist = here.lastIndexOf('/dist/')
	return dist === -1
		? new URL('./convert-worker.js', here)
		: new URL(`${here.slice(0, dist)}/dist/workers/convert-worker.js`)
}

/** Rejects with ToolError past the deadline, when the page breaks the converter, and on abort. */
export const convert = async (
	job: ConvertJob,
	signal: AbortSignal,
	deadlineMs = 8_000,
	url: URL = convertWorkerUrl(),
): Promise<ConvertResult> => {
	signal.throwIfAborted()
	const worker = new Worker(url, {
		workerData: { garudaConvert: job },
		execArgv: url.pathname.endsWith('.ts') ? ['--disable-warning=ExperimentalWarning'] : [],
		env: {},
		stdin: false,
		stdout: true,
		stderr: true,
		resourceLimits: { maxOldGenerationSizeMb: 384, stackSizeMb: 4 },
	})
	let timer: NodeJS.Timeout | undefined
	let onAbort = (): void => {}
	try {
		return await new Promise<ConvertResult>((resolve, reject) => {
			onAbort = () => reject(new ToolError('The fetch was stopped by the user.'))
			signal.addEventListener('abort', onAbort)
			timer = setTimeout(
				() => reject(new ToolError(`The page could not be turned into text within ${deadlineMs / 1000} s.`)),
				deadlineMs,
			)
			worker.on('message', (message: { result?: ConvertResult; error?: string }) =>
				message.result
					? resolve(message.result)
					: reject(new ToolError(`The page could not be turned into text: ${message.error}`)),
			)
			worker.on('error', (error) => reject(new ToolError(`The page could not be turned into text: ${error.message}`)))
			worker.on('exit', () => reject(new ToolError('The page could not be turned into text.')))
		})
	} finally {
		clearTimeout(timer)
		signal.removeEventListener('abort', onAbort)
		worker.removeAllListeners()
		worker.on('error', () => {})
		await worker.terminate()
	}
}
