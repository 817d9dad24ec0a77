// The person as setup sees them: what it may say and ask. A terminal, an editor's terminal or a test stands behind it.

export interface Choice<T> {
	value: T
	/** One line. */
	name: string
	/** Said beside it. */
	note?: string
}

/** Every question rejects with `SetupCancelled` when the person leaves (Ctrl-C, the end of input). */
export interface Ask {
	/** Whole lines. */
	say(text: string): void
	choose<T>(question: string, choices: Choice<T>[], initial?: T): Promise<T>
	text(question: string, options?: { initial?: string; check?(text: string): string | null }): Promise<string>
	/** Typed or pasted without being shown, exactly as it came: line breaks of a paste are in it. */
	secret(question: string): Promise<string>
	confirm(question: string, initial: boolean): Promise<boolean>
}

/** The person left before the end; nothing more was written. */
export class SetupCancelled extends Error {
	override name = 'SetupCancelled'
}
