// A command that is too long or too deep to parse, read roughly. Part of shell-words.

import type { ShellCommand, SimpleCommand } from './shell-command.ts'
import { DYNAMIC } from './shell-decode.ts'

/** Longer commands are not parsed: deny rules see rough pieces, and it asks. */
export const maxShellText = 64 * 1024

/** Cut at every separator: rough, but no deny rule is skipped. Linear. */
export function scan(
	text: string,
	reason = `it is longer than ${maxShellText / 1024} KB and was not read as a whole`,
): ShellCommand {
	const commands: SimpleCommand[] = []
	for (const piece of text.split(/[;&|\n(){}`]+|\$\(/)) {
		const words = piece
			.replace(/["'\\]/g, '')
			.trim()
			.split(/\s+/)
			.filter((word) => word !== '')
		while (
			words.length > 1 &&
			/^(?:[A-Za-z_]\w*=|!$|then$|do$|else$|if$|while$|until$|time$|sudo$|exec$|command$|env$|nohup$)/.test(words[0]!)
		)
			words.shift()
		if (words.length > 0) commands.push({ words, text: words.join(' '), prefixed: true, depth: 1, redirects: [] })
	}
	return { text, commands, doubts: [{ reason, grave: true }], broken: reason, rough: true, folders: [DYNAMIC] }
}
