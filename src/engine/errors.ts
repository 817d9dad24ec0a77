// Two kinds of failure besides a bug: one that the model is told, one that a person is told.

/** A tool could not do what was asked; the text goes to the model as a failed result. */
export class ToolError extends Error {
	override name = 'ToolError'
}

/** A person must do something: what happened (`message`) and what to try (`hint`). Printed without a stack; exit 1. */
export class UserError extends Error {
	override name = 'UserError'
	readonly hint: string | undefined
	constructor(message: string, hint?: string) {
		super(message)
		this.hint = hint
	}
}

/** The message of anything thrown, for a log or a last resort. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The errno code of a file system or socket error, or undefined. */
export const codeOf = (error: unknown): string | undefined =>
	typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
		? error.code
		: undefined
