// Programs that start other programs in a way of their own: options that hold a command, input that names it. Part of shell-inner.
import { DYNAMIC } from './shell-decode.ts'
import { afterOptions, baseName, type Inner, isShell, literals, scripts, values } from './shell-options.ts'
import { wrapperOf } from './shell-wrappers.ts'

const fromInput = (what: string): Inner[] => [{ stdin: true, reason: `${what} takes a command from its input` }]

/** An option's value that is a command by itself. */
const holding =
	(...names: string[]) =>
	(args: readonly string[]): Inner[] =>
		scripts(...values(args, ...names))

/** A client of a data base with a way out to the shell: `\! x`, `system x`, `.shell x`. */
const escapes = (texts: readonly string[]): Inner[] =>
	texts.flatMap((text) =>
		text.split(/\n/).flatMap((line) => [
			...scripts(/^\s*(?:\.s[hy]\w*|system)\s+(.*)/s.exec(line)?.[1]),
			...scripts(/\\!\s*(.*)/s.exec(line)?.[1]),
			// .once |x, .output |x, .import "|x" t, \o |x, \copy … program 'x'
			...(/^\s*[.\\]/.test(line) ? scripts(/\|\s*([^"']*)/s.exec(line)?.[1]) : []),
			...(/\bprogram\s+'/i.test(line) ? literals(line) : []),
		]),
	)

const plainWords = (args: readonly string[]): string[] => args.filter((word) => !word.startsWith('-'))

export const moreStarters: Record<string, (args: readonly string[]) => Inner[]> = {
	// The architecture may be left out.
	setarch: (args) => afterOptions(args, {}).map((argv) => ({ argv })),
	hash: (args) => values(args, '-p').flatMap((program) => (program === '' ? [] : [{ argv: [program] }])),
	xargs: (args) => overInput(args, 'xargs'),
	parallel: (args) => overInput(args, 'parallel'),
	split: holding('--filter'),
	csplit: holding('--filter'),
	make: (args) => makeText(args),
	gmake: (args) => makeText(args),
	sg: (args) => [...holding('-c')(args), ...scripts(plainWords(args)[1])],
	newgrp: (args) => holding('-c')(args),
	'start-stop-daemon': (args) => {
		const end = args.indexOf('--')
		const rest = end < 0 ? [] : args.slice(end + 1)
		return values(end < 0 ? args : args.slice(0, end), '--exec', '-x', '--startas', '-a').map((program) => ({
			argv: [program, ...rest],
		}))
	},
	daemonize: (args) => afterOptions(args, { valued: '-c -e -o -p -u -l -E' }).map((argv) => ({ argv })),
	gdb: (args) => debuggerText(args),
	lldb: (args) => debuggerText(args),
	sqlite3: (args) => [...escapes(args), ...(plainWords(args).length < 2 ? fromInput('sqlite3') : [])],
	'.shell': (args) => [{ argv: [...args] }],
	'.system': (args) => [{ argv: [...args] }],
	psql: (args) => escapes(args),
	mysql: (args) => escapes(args),
	mariadb: (args) => escapes(args),
	expect: (args) => values(args, '-c').flatMap((text) => scripts(text.replace(/^\s*(?:spawn|system)\s+/gm, ''))),
	perf: (args) => {
		const at = args.findIndex((word) => /^(?:stat|record|trace)$/.test(word))
		return at < 0 ? [] : afterOptions(args.slice(at + 1), { valued: '-e -o -p -F -c -C -r' }).map((argv) => ({ argv }))
	},
	tmux: (args) => scripts(...plainWords(args).slice(1)),
	screen: (args) => afterOptions(args, { valued: '-S -t -c -T -p' }).map((argv) => ({ argv })),
	capsh: (args) => {
		const at = args.findIndex((word) => word === '--' || word === '==')
		return at < 0 ? [] : [{ argv: ['bash', ...args.slice(at + 1)] }]
	},
}

/** xargs and parallel whose command, or a shell's text in it, is what they read. */
function overInput(args: readonly string[], name: 'xargs' | 'parallel'): Inner[] {
	const readings = name === 'xargs' ? [afterXargs(args)] : afterOptions(args, { valued: '-j -N -n -a --jobs' })
	const listed = args.findIndex((word) => /^:::\+?$/.test(word))
	const own = listed < 0 ? [] : scripts(...args.slice(listed + 1))
	const marks = new Set(values(args, '-I', '--replace', '-J').filter((word) => word !== ''))
	if (name === 'parallel' || args.some((word) => /^(?:-i|--replace)$/.test(word))) marks.add('{}')
	const marked = (word: string | undefined) => word !== undefined && [...marks].some((mark) => word.includes(mark))
	for (const argv of readings) {
		const end = argv.findIndex((word) => word.startsWith(':::'))
		const command = end < 0 ? argv : argv.slice(0, end)
		if (isOpen(command, name === 'xargs') || marked(command[0]) || (runsText(command) && command.some(marked)))
			return [...fromInput(name), ...own]
	}
	return own
}

/** The command of xargs, whose options are few and fixed. */
function afterXargs(args: readonly string[]): string[] {
	let at = 0
	for (; at < args.length && args[at]!.startsWith('-'); at++) {
		const word = args[at]!
		if (/^-[rt0pxo]*[ILnPsdEaJRS]$|^--(?:max-(?:args|procs|chars)|delimiter|arg-file)$/.test(word)) at++
	}
	return args.slice(at)
}

/** Whether a command starts whatever words follow it. */
function isOpen(argv: readonly string[], echoes: boolean): boolean {
	const [first, ...rest] = argv
	// xargs alone is echo, parallel alone runs its input.
	if (first === undefined) return !echoes
	const name = baseName(first)
	const wrapper = wrapperOf(name)
	if (!wrapper) return false
	return afterOptions(rest, wrapper).some((inner) => isOpen(inner, false))
}

const runsText = (argv: readonly string[]): boolean =>
	argv.some((word) => isShell(baseName(word)) || /^(?:eval|su|ssh|env|sudo)$/.test(word))

/** What a recipe starts by a variable of make's. */
const makeProgram = /^(?:CC|CXX|LD|AR|RM|INSTALL|MAKE)=(.*)/s

/** make's own language in an option: what it gives to a shell. */
function makeText(args: readonly string[]): Inner[] {
	const evaluated = values(args, '--eval', '-E')
	const texts = [...evaluated, ...args.filter((word) => /^[\w.]+[:?+!]*=/.test(word))]
	const found = texts.flatMap((text) => {
		const called = [...text.matchAll(/\$[({]shell\s+([^)}]*)/g)].map((match) => match[1])
		const assigned = /^[\w.\s]+!=(.*)/s.exec(text)?.[1] ?? /^SHELL\s*[:?]*=(.*)/s.exec(text)?.[1]
		const recipes = text
			.split('\n')
			.flatMap((line) => [/^[^;]*:[^;]*;(.*)/s.exec(line)?.[1], /^\t[@+-]*(.*)/.exec(line)?.[1]])
		return scripts(...called, assigned, ...recipes.map((one) => one?.replace(/^\s*[@+-]*/, '')))
	})
	const unknown = evaluated.filter((text) => text.includes(DYNAMIC))
	return [...found, ...scripts(...args.map((word) => makeProgram.exec(word)?.[1]), ...unknown)]
}

/** A debugger's commands, and the program that it runs. */
function debuggerText(args: readonly string[]): Inner[] {
	const texts = values(
		args,
		'-ex',
		'-iex',
		'-eval-command',
		'--eval-command',
		'--init-eval-command',
		'-o',
		'-O',
		'--one-line',
		'--ex',
		'--iex',
	)
	for (const word of args) texts.push(/^-i?ex=(.*)/s.exec(word)?.[1] ?? '')
	const at = args.findIndex((word) => /^--?args$|^--$/.test(word))
	const program = at < 0 ? plainWords(args).slice(0, 1) : args.slice(at + 1)
	return [
		...texts.flatMap((text) => {
			const shell = /^\s*(?:!|(?:she\w*|plat\w*\s+shell|pipe\s[^|]*\||make)\s)(.*)/s.exec(text)?.[1]
			return shell === undefined ? literals(text) : scripts(shell)
		}),
		...(program.length > 0 ? [{ argv: [...program] }] : []),
	]
}
