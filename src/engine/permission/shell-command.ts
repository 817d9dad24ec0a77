// What reading a shell command gives: its simple commands and its doubts. Types only.

export interface ShellRedirect {
	op: string
	/** The decoded target; DYNAMIC stands for its unknown parts. */
	target: string
}

/** One command that could run: written, or found inside another one's words. */
export interface SimpleCommand {
	/** After quote removal; DYNAMIC stands for parts that only the run knows. Empty for redirections alone. */
	words: string[]
	/** The words as written, joined by single spaces. Allow rules match this. */
	text: string
	/** NAME=value stands before it: allow rules do not match. */
	prefixed: boolean
	/** 0: written as a command in the text or a substitution; more: inside a wrapper, a string or a here-document. */
	depth: number
	redirects: ShellRedirect[]
}

export interface Doubt {
	reason: string
	/** Grave: asks always. Else: asks when a deny or ask rule might be evaded, and no allow rule with a pattern matches. */
	grave: boolean
}

export interface ShellCommand {
	text: string
	commands: SimpleCommand[]
	doubts: Doubt[]
	/** It does not parse (or is too long to): `commands` may be incomplete. */
	broken: string | null
	/** Over the size limit: only a scan of the words was done; `commands` holds rough pieces. */
	rough: boolean
	/** Folders that `cd` and `pushd` name; DYNAMIC inside means unknown. */
	folders: string[]
}
