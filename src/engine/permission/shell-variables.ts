// Variables whose value is a command, or shell text, for the program that reads them. Part of shell-inner.
import { type Inner, scripts } from './shell-options.ts'

/** Programs run their value: git's, pagers, editors, askers for passwords. */
const commandNames =
	/^(?:(?:[A-Z]+_)*(?:PAGER|EDITOR|BROWSER|ASKPASS|SSH|RSH|SHELL|SSH_COMMAND)|MANPAGER|VISUAL|FCEDIT|GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|GIT_CONFIG_VALUE_\d+|LESSOPEN|LESSCLOSE|PROMPT_COMMAND|BASH_(?:ALIASES|CMDS)|BASH_FUNC_.*)$/
/** The shell expands their value. */
const expandedNames = /^(?:PS[0-4]|ENV|BASH_ENV)$/
/** Their value is options of a program. */
const optionNames: Record<string, string> = { TAR_OPTIONS: 'tar', MAKEFLAGS: 'make', GNUMAKEFLAGS: 'make' }

/** What a word `NAME=value` makes a later program start. */
function ofVariable(word: string): Inner[] {
	const [, name, value] = /^([A-Za-z_][\w%]*)(?:\[[^\]]*\])?\+?=(.*)$/s.exec(word) ?? []
	if (name === undefined || !value) return []
	// A function that is handed on; less tells a pipe by a bar.
	if (commandNames.test(name)) return scripts(value.replace(/^(?:\(\)\s*|;|\|-?)/, ''))
	if (expandedNames.test(name)) return [{ script: `: "${value.replace(/["\\]/g, '\\$&')}"` }]
	return Object.hasOwn(optionNames, name) ? [{ script: `${optionNames[name]} ${value}` }] : []
}

/** The variables that a command sets: its own words that are assignments, those of export, env, sudo. */
export const fromVariables = (words: readonly string[]): Inner[] =>
	words.flatMap((word) => (word.includes('=') ? ofVariable(word) : []))
