// Why a request got no whole answer, in words that a person may read.

export type HttpErrorCode =
	| 'refused'
	| 'dns'
	| 'reset'
	| 'timeout'
	| 'aborted'
	| 'tls'
	| 'proxy'
	| 'bad_url'
	| 'network'

/** A request that got no (whole) answer. The message names hosts, never headers or passwords. */
export class HttpError extends Error {
	override name = 'HttpError'
	readonly code: HttpErrorCode
	constructor(code: HttpErrorCode, message: string, options?: ErrorOptions) {
		super(message, options)
		this.code = code
	}
}

/** Whether a thrown thing is an HttpError; by name, so that it also holds across two copies of this module. */
export const isHttpError = (error: unknown): error is HttpError => error instanceof Error && error.name === 'HttpError'
