// Reads git's configuration as text, running nothing: which folders it names, and which keys run programs.
import { dirname, isAbsolute, join } from 'node:path'
import { lstat, real, smallFile } from './paths.ts'

export interface GitConfigEntry {
	/** Section and key in lower case, the subsection as written: `filter.x.clean`. */
	key: string
	value: string
}

const header = /\[\s*([\w.-]+)\s*(?:"((?:[^"\\\n]|\\.)*)")?\s*\]/y
const name = /([A-Za-z][\w-]*)[ \t\r]*(=?)/y

/**
 * Every key of a configuration file's text, in order, character by character as git goes: a comment ends at its line's end
 * whatever stands before that, several headers may share a line. Lenient: what git would refuse may be read too.
 */
export const parseGitConfig = (text: string): GitConfigEntry[] => {
	const entries: GitConfigEntry[] = []
	const all = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
	const lineEnd = (from: number) => (all.indexOf('\n', from) + 1 || all.length + 1) - 1
	const match = (pattern: RegExp) => {
		pattern.lastIndex = at
		return pattern.exec(all)
	}
	let section = ''
	let at = 0
	while (at < all.length) {
		const char = all[at]!
		if (/\s/.test(char)) {
			at++
			continue
		}
		const head = char === '[' ? match(header) : null
		if (head) {
			section = head[1]!.toLowerCase() + (head[2] === undefined ? '' : `.${head[2].replace(/\\(.)/g, '$1')}`)
			at += head[0].length
			continue
		}
		const key = match(name)
		if (!key) {
			at = lineEnd(at)
			continue
		}
		at += key[0].length
		const given = key[2] === '=' ? readValue(all, at) : { value: 'true', end: lineEnd(at) }
		entries.push({ key: `${section}.${key[1]!.toLowerCase()}`, value: given.value })
		at = given.end
	}
	return entries
}

/** A value from the character after its sign to the end of its last line. */
const readValue = (text: string, from: number): { value: string; end: number } => {
	let value = ''
	let quoted = false
	let comment = false
	let index = from
	for (; index < text.length; index++) {
		const char = text[index]!
		if (char === '\n') break
		if (comment) continue
		if (char === '"') quoted = !quoted
		else if (char === '\\') {
			const next = text[++index]
			if (next !== '\n') value += next ?? ''
		} else if (!quoted && (char === '#' || char === ';')) comment = true
		else value += char
	}
	return { value: value.trim(), end: index }
}

const runsPrograms =
	/^(?:core\.(?:fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand|attributesfile|worktree)|sequence\.editor|include\.path|includeif\..*\.path|filter\..*\.(?:clean|smudge|process)|diff\..*\.(?:textconv|command)|diff\.external|merge\..*\.driver|(?:diff|merge)tool\..*\.(?:cmd|path)|alias\..*|pager\..*|credential\..*helper|gpg\.(?:.*program|.*\.defaultkeycommand)|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)|url\..*\.(?:insteadof|pushinsteadof)|interactive\.difffilter|submodule\..*\.update|trailer\..*\.(?:cmd|command)|uploadpack\.packobjectshook|browser\..*\.cmd|man\..*\.cmd|init\.templatedir|tar\..*\.command|hook\..*\.command|imap\.tunnel|sendemail\.(?:.*\.)?(?:smtpserver|sendmailcmd|tocmd|cccmd|headercmd)|guitool\..*\.cmd|instaweb\.httpd|lfs\.customtransfer\..*\.path|lfs\.extension\..*\.(?:clean|smudge)|protocol\..*allow)$/

/** The keys of a configuration that make git run a program or obey another file. */
export const riskyKeys = (text: string): string[] =>
	parseGitConfig(text)
		.filter(
			({ key, value }) =>
				runsPrograms.test(key) &&
				!(key === 'core.fsmonitor' && /^(?:true|false|yes|no|on|off|0|1)?$/i.test(value)) &&
				!(key.startsWith('submodule.') && !value.startsWith('!')),
		)
		.map(({ key }) => key)

export interface ConfigView {
	hooksPaths: string[]
	/** The configuration file and every file it includes, as far as they exist. */
	files: string[]
	/** Files it includes that do not exist. */
	missing: string[]
	/** Of the file itself: core.bare is true, core.worktree as written, extensions.worktreeConfig is true, refs are in a reftable. */
	bare: boolean
	worktree: string | undefined
	worktreeConfig: boolean
	reftable: boolean
}

type Flags = Pick<ConfigView, 'bare' | 'worktree' | 'worktreeConfig' | 'reftable'>

const flagsOf = (keys: GitConfigEntry[]): Flags => {
	const last = (name: string) => keys.findLast(({ key }) => key === name)?.value
	const yes = (name: string) => !/^(?:false|no|off|0*)$/i.test(last(name) ?? '')
	return {
		bare: yes('core.bare'),
		worktree: last('core.worktree'),
		worktreeConfig: yes('extensions.worktreeconfig'),
		reftable: !/^(?:files)?$/i.test(last('extensions.refstorage') ?? ''),
	}
}

/** A reader of hooks folders and includes with a cache by the file's identity, so that a command pays one lstat a file. */
export const createConfigReader = (home: string): ((path: string) => ConfigView) => {
	const cache = new Map<string, { mark: string; hooksPaths: string[]; includes: string[]; flags: Flags }>()
	const expand = (value: string, file: string) =>
		value.startsWith('~/') ? join(home, value.slice(2)) : isAbsolute(value) ? value : join(dirname(file), value)
	const readInto = (named: string, view: ConfigView, depth: number): void => {
		const path = depth === 0 ? named : (real(named) ?? named)
		const found = lstat(path)
		if (!found && depth > 0) view.missing.push(path)
		if (!found?.isFile() || depth > 4 || view.files.includes(path) || view.files.length > 32) return
		const mark = `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`
		let entry = cache.get(path)
		if (entry?.mark !== mark) {
			const keys = parseGitConfig(smallFile(path, 1_000_000) ?? '')
			entry = {
				mark,
				hooksPaths: keys.filter(({ key }) => key === 'core.hookspath').map(({ value }) => value),
				includes: keys
					.filter(({ key }) => /^include(?:if\..*)?\.path$/.test(key))
					.map(({ value }) => expand(value, path)),
				flags: flagsOf(keys),
			}
			cache.set(path, entry)
		}
		if (depth === 0) Object.assign(view, entry.flags)
		view.files.push(path)
		view.hooksPaths.push(...entry.hooksPaths)
		for (const include of entry.includes) readInto(include, view, depth + 1)
	}
	return (path) => {
		const view: ConfigView = { hooksPaths: [], files: [], missing: [], ...flagsOf([]) }
		readInto(path, view, 0)
		return view
	}
}
