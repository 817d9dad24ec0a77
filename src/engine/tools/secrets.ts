// Secret handles: `{{secret:NAME}}` in a command becomes a reference to a variable that only this command's sandbox has. Used by bash.
import { ToolError } from '../errors.ts'
import { expandHosts } from '../net/host-names.ts'
import type { Redactor } from '../ports.ts'
import { oneLine } from '../text.ts'

export interface SecretHandles {
	/** For the tool's description; the model never sees more of them. */
	readonly names: { name: string; about?: string }[]
	/** The names in a command, each once. Throws ToolError for one that is not there, or a handle that cannot be read. */
	find(command: string): string[]
	/** The command as it runs, its environment and the hosts that all of its secrets may go to. */
	use(command: string, names: readonly string[]): { command: string; env: Record<string, string>; hosts: string[] }
}

/** Shorter ones could not be told from ordinary words in output. */
const shortest = 8

/** Variables that change what a shell or a program loads; a secret by such a name would be a way to run code. */
const reserved =
	/^(?:PATH|HOME|SHELL|USER|LOGNAME|PWD|TMPDIR|IFS|ENV|PS4|LANG|TERM|BASH\w*|LD_\w+|DYLD_\w+|GIT_\w*|GARUDA\w*|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|PYTHON(?:PATH|HOME|STARTUP)|PERL5?(?:LIB|OPT|DB)|RUBYOPT|RUBYLIB|\w+_PROXY|SHELLOPTS)$/

/**
 * The handles of a session. `lookUp` looks into the credentials file and the environment; what has no usable value is left
 * out with a notice. Every value goes to the redactor first.
 */
export const createSecretHandles = (
	wanted: Readonly<Record<string, { hosts: readonly string[]; about?: string }>>,
	lookUp: (name: string) => string | undefined,
	redactor: Pick<Redactor, 'add'>,
): { handles: SecretHandles; notices: string[] } => {
	const notices: string[] = []
	const known = new Map<string, { value: string; hosts: string[]; about: string | undefined }>()
	for (const [name, { hosts, about }] of Object.entries(wanted)) {
		const value = lookUp(name)?.trim() ?? ''
		const expanded = expandHosts([...hosts])
		const problem = reserved.test(name)
			? 'this name means something to shells or programs; take another'
			: value === ''
				? 'it has no value in the credentials file or the environment'
				: value.length < shortest
					? `its value is shorter than ${shortest} characters, so it could not be kept out of outputs`
					: value.includes('\0')
						? 'its value holds a NUL character'
						: 'error' in expanded
							? `hosts: ${expanded.error}`
							: null
		if (problem !== null || 'error' in expanded) {
			notices.push(`secrets.names.${name} is left out: ${problem}.`)
			continue
		}
		redactor.add(name, value)
		known.set(name, { value, hosts: expanded, about })
	}
	return {
		notices,
		handles: {
			names: [...known].map(([name, { about }]) => ({ name, ...(about !== undefined && { about }) })),
			find(command) {
				const found = new Set<string>()
				for (const [whole, name = ''] of command.matchAll(/\{\{\s*secret:([^}]*)\}\}/g)) {
					if (!known.has(name) || whole !== `{{secret:${name}}}`)
						throw new ToolError(
							`There is no secret handle "${oneLine(whole, 80)}". There are: ${[...known.keys()].map((one) => `{{secret:${one}}}`).join(', ') || 'none'}. Nothing was run.`,
						)
					found.add(name)
				}
				return [...found]
			},
			use(command, names) {
				const all = names.map((name) => known.get(name)!)
				// What one secret must not reach, the other may not take along.
				const hosts = all[0]?.hosts.filter((host) => all.every((one) => one.hosts.includes(host))) ?? []
				return {
					command: withReferences(command),
					env: Object.fromEntries(names.map((name, index) => [name, all[index]!.value])),
					hosts,
				}
			},
		},
	}
}

const handle = /^\{\{secret:([A-Z][A-Z0-9_]*)\}\}/

/**
 * Each handle as a quoted reference in whatever quotes it stands. The value itself is never put into the text, so a quote that is
 * read wrongly makes a command fail, not a secret show. Throws ToolError where no reference would be expanded.
 */
export const withReferences = (command: string): string => {
	let out = ''
	/** What the text is in: plain shell text (p), double quotes (d), a substitution inside them (s), single quotes (q). */
	const inside: ('p' | 'd' | 's' | 'q')[] = ['p']
	for (let at = 0; at < command.length; ) {
		const state = inside.at(-1)!
		const rest = command.slice(at)
		const name = handle.exec(rest)?.[1]
		if (name !== undefined) {
			out += state === 'd' ? `\${${name}}` : state === 'q' ? `'"\${${name}}"'` : `"\${${name}}"`
			at += `{{secret:${name}}}`.length
			continue
		}
		const char = command[at]!
		const two = rest.slice(0, 2)
		if (state === 'q') {
			if (char === "'") inside.pop()
		} else if (char === '\\') {
			out += two
			at += 2
			continue
		} else if (state === 'd') {
			if (char === '"') inside.pop()
			else if (two === '$(') {
				inside.push('s')
				out += two
				at += 2
				continue
			}
		} else {
			if (rest.startsWith('<<<')) {
				out += '<<<'
				at += 3
				continue
			}
			if (two === '<<' && /\{\{secret:/.test(rest))
				throw new ToolError(
					'A secret handle cannot stand in or after a here-document. Give it as an argument or by printf and a pipe. Nothing was run.',
				)
			if (two === "$'") {
				const end = /^\$'(?:[^'\\]|\\[\s\S])*'?/.exec(rest)![0]
				if (end.includes('{{secret:')) throw new ToolError("A secret handle cannot stand in $'…'. Nothing was run.")
				out += end
				at += end.length
				continue
			}
			if (char === "'") inside.push('q')
			else if (char === '"') inside.push('d')
			else if (char === '(') inside.push('s')
			else if (char === ')' && state === 's') inside.pop()
		}
		out += char
		at++
	}
	return out
}
