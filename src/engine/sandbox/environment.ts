// The environment of a command: an allowlist, so that a key that nobody thought of does not pass either.
import { isAbsolute } from 'node:path'
import { envAllowed, envFixed } from './names.ts'

/**
 * What passes of Garuda's environment: the allowlist, LC_*, and the names in `allow`. Empty values and values with a NUL are
 * left out, PATH keeps absolute entries only, HOME is the given home, and pagers and editors can never wait for a person.
 */
export const commandEnvironment = (
	env: Record<string, string | undefined>,
	home: string,
	allow: string[],
): Record<string, string> => {
	const passed: Record<string, string> = {}
	const extra = new Set(allow)
	for (const [name, value] of Object.entries(env)) {
		if (!value || value.includes('\0') || !/^[A-Za-z_]\w*$/.test(name)) continue
		if (extra.has(name) || envAllowed.has(name) || name.startsWith('LC_')) passed[name] = value
	}
	const path = (passed.PATH ?? '').split(':').filter((entry) => isAbsolute(entry))
	passed.PATH = path.length > 0 ? path.join(':') : '/usr/local/bin:/usr/bin:/bin'
	return { LANG: 'C.UTF-8', ...passed, ...envFixed, HOME: home }
}
