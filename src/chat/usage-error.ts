// Wrong words on the command line that only the running command can see. Caught by the base command: exit 2.

/** What is wrong (`message`) and what would be right (`hint`). */
export class UsageError extends Error {
	override name = 'UsageError'
	readonly exitCode = 2
	readonly hint: string | undefined
	constructor(message: string, hint?: string) {
		super(message)
		this.hint = hint
	}
}
