// Reads git's configuration as text, running nothing: which folders it names, and which keys run programs.
import { dirname, isAbsolute, join } from 'node:path'
import { lstat, real, smallFile } from './paths.ts'

export interface GitConfigEntry {
	/** Section and key in lower case, the subsection as written: `filter.x.clean`. */
	key: string
	value: string
}

/** Every key of a configuration file's text, in order. Lenient: what git would refuse may be read too. */
export const parseGitConfig = (text: string): GitConfigEntry[] => {
	const entries: GitConfigEntry[] = []
	let section = ''
	for (let line of text.replace(/\\\r?\n/g, '').split(/\r?\n/)) {
		const header = /^\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]/.exec(line)
		if (header) {
			const name = header[2]?.replace(/\\(.)/g, '$1')
			section = header[1]!.toLowerCase() + (name === undefined ? '' : `.${name}`)
			line = line.slice(header[0].length)
		}
		const pair = /^\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$/.exec(line)
		if (pair) entries.push({ key: `${section}.${pair[1]!.toLowerCase()}`, value: plainValue(pair[2] ?? 'true') })
	}
	return entries
}

const plainValue = (raw: string): string => {
	let value = ''
	let quoted = false
	for (let index = 0; index < raw.length; index++) {
		const char = raw[index]!
		if (char === '"') quoted = !quoted
		else if (char === '\\') value += raw[++index] ?? ''
		else if (!quoted && (char === '#' || char === ';')) break
		else value += char
	}
	return value.trim()
}

const runsPrograms =
	/^(?:core\.(?:fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand|attributesfile|worktree)|sequence\.editor|include\.path|includeif\..*\.path|filter\..*\.(?:clean|smudge|process)|diff\..*\.(?:textconv|command)|diff\.external|merge\..*\.driver|(?:diff|merge)tool\..*\.(?:cmd|path)|alias\..*|pager\..*|credential\..*helper|gpg\..*program|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)|url\..*\.(?:insteadof|pushinsteadof)|interactive\.difffilter|submodule\..*\.update|trailer\..*\.(?:cmd|command)|uploadpack\.packobjectshook|browser\..*\.cmd|man\..*\.cmd|init\.templatedir|protocol\..*allow)$/

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
