// Paths that a shell command names: redirections, outputs and arguments, found before it runs. Feeds permission/decide.
import { isAbsolute, join } from 'node:path'
import type { ResolvedPath } from '../ports.ts'
import { type Spelled, spell } from './rules.ts'
import { baseName, isShortened, values } from './shell-options.ts'
import { DYNAMIC, readShell, type ShellCommand, type SimpleCommand } from './shell-words.ts'

/** How sure it is that the word is a path: a redirection, an output of a known command (or what it takes away), an argument, a pattern for several, an option's value. */
export type Via = 'redirect' | 'output' | 'removal' | 'argument' | 'pattern' | 'option'

export interface NamedPath {
	access: 'read' | 'write'
	via: Via
	/** As decoded; holds DYNAMIC when it is not known. */
	word: string
	/** Where it lies; null when unknown. */
	resolved: ResolvedPath | null
	/** The command whose program this is: its real name counts for deny rules too. */
	program?: SimpleCommand
}

/** A command read and its paths resolved: what `decide` needs to know of a bash call. */
export interface CheckedCommand {
	shell: ShellCommand
	paths: NamedPath[]
	/** The commands, and those of `paths` that a program's real name makes, ready for rules. */
	spelled: Spelled
	programs: Spelled
	/** All real paths in one text, in lower case: most path rules see at once that they mean none. */
	pathText: string
	/** The real paths that it takes away, with all below them. */
	removals: string[]
}

export interface CheckContext {
	/** Where the command will start. */
	cwd: string
	home: string
	/** The guard's resolver; may throw. */
	resolve(path: string): Promise<ResolvedPath>
}

/** More are not looked at one by one: it asks. */
const maxPaths = 2000

/** Reads a command and resolves the paths that it names. Only looks: no effect on the disk. Never throws. */
export async function checkCommand(text: string, context: CheckContext): Promise<CheckedCommand> {
	const shell = await readShell(text, context.home, context.cwd)
	// After a `cd` a relative path may lie in any of the folders named.
	const bases = [context.cwd]
	for (const folder of shell.folders)
		bases.push(folder.includes(DYNAMIC) ? DYNAMIC : isAbsolute(folder) ? folder : under(context.cwd, folder))
	const wanted = new Map<string, Omit<NamedPath, 'resolved'> & { path: string | null }>()
	for (const command of shell.commands) {
		for (const { access, via, word, program } of namedPaths(command)) {
			const places = word.includes(DYNAMIC)
				? [null]
				: isAbsolute(word)
					? // $PWD stands for where it starts; after a `cd` it means any of the folders.
						word.startsWith(`${context.cwd}/`) && bases.length > 1
						? [
								word,
								...bases
									.slice(1)
									.map((base) => (base === DYNAMIC ? null : under(base, word.slice(context.cwd.length + 1)))),
							]
						: [word]
					: bases.map((base) => (base === DYNAMIC ? null : under(base, word)))
			for (const path of places) {
				const key = `${access} ${via === 'redirect' || via === 'output' ? '!' : via} ${path ?? DYNAMIC} ${program?.words.join(' ') ?? ''}`
				if (!wanted.has(key)) wanted.set(key, { access, via, word, path, ...(program ? { program } : {}) })
			}
		}
	}
	// Outputs first: they must not fall to the cap.
	const list = [...wanted.values()].sort((a, b) => rank(a.via) - rank(b.via)).slice(0, maxPaths)
	if (wanted.size > maxPaths)
		shell.doubts.push({ reason: `it names more than ${maxPaths} paths, too many to look at each`, grave: true })
	// A word may be an argument and an output: looked up once.
	const places = new Map<string, Promise<ResolvedPath | null>>()
	for (const { path } of list)
		if (path !== null && !places.has(path))
			places.set(
				path,
				context.resolve(path).catch(() => null),
			)
	const found = new Map(await Promise.all([...places].map(async ([path, place]) => [path, await place] as const)))
	const paths = list.map(({ path, ...named }) => ({
		...named,
		resolved: path === null ? null : (found.get(path) ?? null),
	}))
	// An argument that is not known is nothing to decide on; an output is.
	const kept = paths.filter((one) => one.resolved !== null || one.access === 'write')
	// A link, or another folder's copy, under its real name.
	const programs = kept.flatMap(({ program, resolved }) =>
		program && resolved ? { ...program, words: [resolved.path, ...program.words.slice(1)] } : [],
	)
	return {
		shell,
		paths: kept,
		spelled: spell(shell.commands),
		programs: spell(programs),
		pathText: kept
			.map(({ resolved }) => `${resolved?.path ?? ''}/`)
			.join('\n')
			.toLowerCase(),
		removals: kept.flatMap(({ via, resolved }) => (via === 'removal' && resolved ? [resolved.path] : [])),
	}
}

/** As text where it climbs: "link/.." is not nothing for the system, though it looks so. */
const under = (base: string, word: string): string => (word.includes('..') ? `${base}/${word}` : join(base, word))

const rank = (via: Via): number => (/^(?:argument|pattern|option)$/.test(via) ? 1 : 0)

/** Not files, though they look like paths. */
const harmless = /^\/dev\/(?:null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd\/\d+)$/

export function namedPaths(command: SimpleCommand): Omit<NamedPath, 'resolved'>[] {
	const found: Omit<NamedPath, 'resolved'>[] = []
	const add = (access: 'read' | 'write', via: Via, word: string | undefined) => {
		if (word && word.length <= 4096 && !harmless.test(word) && word !== '-') found.push({ access, via, word })
	}
	for (const { op, target } of command.redirects) {
		if (/^[<>]&$/.test(op) && /^(?:\d+-?|-)$/.test(target)) continue
		add(op === '<' || op === '<&' ? 'read' : 'write', 'redirect', target)
	}
	const [first, ...args] = command.words
	if (first === undefined || /^[A-Za-z_]\w*\+?=/.test(first)) return found
	const name = baseName(first)
	const via = /^(?:rm|mv|shred)$/.test(name) || (name === 'git' && args.some((word) => /^(?:rm|mv|clean)$/.test(word)))
	for (const word of outputs(name, args)) add('write', via ? 'removal' : 'output', word)
	// A program's path in a folder of secrets or through a link is looked at as well.
	if (first.includes('/') && !harmless.test(first))
		found.push({ access: 'read', via: 'argument', word: first, program: command })
	if (/^(?:echo|printf|print|:|true|false|test|\[|export|declare|local|alias|kill|sleep|cd|pushd|seq|expr)$/.test(name))
		return found
	for (const word of args) {
		if (word.includes('\n') || word === '') continue
		if (/[*?]/.test(word)) {
			if (!word.startsWith('-')) add('read', 'pattern', word)
			continue
		}
		if (word.startsWith('-')) {
			const value = /^--?[\w-]+=(.+)$/s.exec(word)?.[1]
			if (value) add('read', 'option', value.replace(/^@/, ''))
			// -f.env, -C/dir
			else if (/^-[A-Za-z][./~]/.test(word)) add('read', 'option', word.slice(2))
		} else {
			add('read', 'argument', word.replace(/^@(?=.)/, ''))
			const value = /^[\w.-]+[=:]@?([./~\w].*)$/s.exec(word)?.[1]
			if (value && !/:\/\//.test(word)) add('read', 'option', value)
		}
	}
	return found
}

const plain = (args: readonly string[]): string[] => {
	const end = args.indexOf('--')
	return end < 0
		? args.filter((word) => !word.startsWith('-'))
		: [...args.slice(0, end).filter((word) => !word.startsWith('-')), ...args.slice(end + 1)]
}

/** `-o x`, `-ox`, `--output x`, `--output=x`, and a long one by its beginning. */
const option = (args: readonly string[], ...names: string[]): string[] =>
	args.flatMap((word, index) =>
		names.flatMap((name) => {
			if (word === name || isShortened(word, name)) return args[index + 1] ?? []
			if (name.startsWith('--')) {
				const end = word.indexOf('=')
				const given = word.slice(0, end)
				return end > 0 && (given === name || isShortened(given, name)) ? word.slice(end + 1) : []
			}
			return name.length === 2 && word.startsWith(name) ? word.slice(2) : []
		}),
	)

const everyPlain = new Set([
	'tee',
	'touch',
	'mkdir',
	'rm',
	'rmdir',
	'truncate',
	'unlink',
	'shred',
	'mkfifo',
	'mknod',
	'sponge',
	'chattr',
	'gzip',
	'gunzip',
	'bzip2',
	'bunzip2',
	'xz',
	'unxz',
])
const lastPlain = new Set(['cp', 'mv', 'install', 'ln', 'rsync', 'scp', 'objcopy', 'uniq'])
const ownerFirst = new Set(['chmod', 'chown', 'chgrp', 'setfacl'])
const shortOutput = new Set([
	'sort',
	'gcc',
	'cc',
	'g++',
	'c++',
	'clang',
	'clang++',
	'ld',
	'curl',
	'patch',
	'pandoc',
	'go',
	'rustc',
	'strip',
	'objcopy',
	'tsc',
	'esbuild',
	'shuf',
	'uniq',
	'xmllint',
	'yacc',
	'bison',
])

/** Files that well-known commands write besides their redirections. The sandbox holds for all the others. */
function outputs(name: string, args: readonly string[]): string[] {
	const found = option(args, '--output', '--output-file', '--outfile', '--out', '--out-file')
	if (shortOutput.has(name)) found.push(...option(args, '-o'))
	// Letters of sort that take no value may stand before the o.
	if (name === 'sort' || name === 'shuf')
		args.forEach((word, index) => {
			const joined = /^-[bdfgiMhnRrVcCmsuzer]+o(.*)$/s.exec(word)?.[1]
			if (joined !== undefined) found.push(joined || (args[index + 1] ?? ''))
		})
	if (everyPlain.has(name)) found.push(...plain(args))
	if (ownerFirst.has(name)) found.push(...plain(args).slice(1))
	if (lastPlain.has(name)) {
		// Of rsync and scp -t is another option.
		const target = [...option(args, '--target-directory'), ...(/^(?:rsync|scp)$/.test(name) ? [] : values(args, '-t'))]
		const words = plain(args)
		if (name === 'install' && args.some((word) => /^-[a-zA-Z]*d|^--d/.test(word))) found.push(...words)
		else found.push(...(target.length > 0 ? target : words.length > 1 ? words.slice(-1) : []))
		// A move takes its sources away.
		if (name === 'mv') found.push(...words.slice(0, -1))
	}
	switch (name) {
		case 'dd':
			found.push(...args.filter((word) => word.startsWith('of=')).map((word) => word.slice(3)))
			break
		case 'wget':
			found.push(...option(args, '-O', '-P', '--output-document', '--directory-prefix', '-o', '-a', '--append-output'))
			break
		case 'curl':
			found.push(
				...option(
					args,
					'--output-dir',
					'-D',
					'--dump-header',
					'-c',
					'--cookie-jar',
					// Its beginning, --trace, is an option of its own and is read with it.
					'--trace-ascii',
					'--stderr',
				),
			)
			break
		case 'tar':
		case 'bsdtar':
		case 'gtar': {
			// The first word may do without a dash.
			const groups = args.filter((word, at) => (at === 0 ? /^-?[a-zA-Z]+$/ : /^-[a-zA-Z]+$/).test(word))
			if (
				/[cru]/.test(groups.join('')) ||
				args.some((word) =>
					['--create', '--append', '--update'].some((name) => word === name || isShortened(word, name)),
				)
			) {
				found.push(...option(args, '--file'))
				for (const group of groups) if (group.includes('f')) found.push(args[args.indexOf(group) + 1] ?? '')
				found.push(...option(args, '-f'))
			} else found.push(...option(args, '-C', '--directory'))
			break
		}
		case 'unzip':
			found.push(...option(args, '-d'))
			break
		case 'zip':
			found.push(...plain(args).slice(0, 1))
			break
		case 'find':
			found.push(
				...args.flatMap((word, index) => (/^-f(?:printf?|print0|ls)$/.test(word) ? (args[index + 1] ?? []) : [])),
			)
			if (args.includes('-delete')) found.push(...args.slice(0, 1).filter((word) => !word.startsWith('-')))
			break
		case 'sed':
		case 'gsed': {
			const scripts = option(args, '-e', '--expression')
			const words = plain(args)
			for (const script of scripts.length > 0 ? scripts : words.slice(0, 1))
				for (const match of script.matchAll(
					/(?:^|[;{}\n\s\d$/,!])[wW]\s+([^\n;}]+)|s(.).*?\2.*?\2[gpiImM0-9]*w\s*([^\n;}]+)/g,
				))
					found.push((match[1] ?? match[3] ?? '').trim())
			if (args.some((word) => /^-[a-zA-Z]*i|^--i(?:n(?:-[a-z]*)?)?(?:=|$)/.test(word)))
				found.push(...(scripts.length > 0 ? words : words.slice(1)))
			break
		}
		case 'awk':
		case 'gawk':
		case 'mawk':
		case 'nawk':
			for (const word of plain(args).slice(0, 1))
				for (const match of word.matchAll(/>>?\s*"([^"]+)"/g)) found.push(match[1]!)
			break
		case 'patch':
			if (found.length === 0) found.push(...plain(args).slice(0, 1))
			break
		case 'perl':
		case 'ruby':
			if (args.some((word) => /^-[a-zA-Z0-9]*i/.test(word))) found.push(...plain(args))
			break
		case 'strace':
		case 'ltrace':
			found.push(...option(args, '-o'))
			break
		case 'openssl':
			found.push(...option(args, '-out'))
			break
		case 'git': {
			found.push(...option(args, '--separate-git-dir'))
			const at = args.findIndex((word) => /^(?:checkout|restore|rm|mv|clean)$/.test(word))
			if (at >= 0) found.push(...plain(args.slice(at + 1)))
			if (args.includes('format-patch') || args.includes('archive'))
				found.push(...option(args, '-o', '--output-directory'))
			break
		}
	}
	return found.filter((word) => word !== '')
}
