// Commands inside commands: wrappers, shells, code given as an option. Used while a command is read for the rules.
import { DYNAMIC } from './shell-decode.ts'
import { afterOptions, baseName, type Inner, literals, scripts, shells, splitStrings, values } from './shell-options.ts'
import { moreStarters } from './shell-starters.ts'
import { wrapperOf } from './shell-wrappers.ts'

/** Tools whose sub-command starts another command: `uv run pytest`. */
const runners: Record<string, string[]> = {
	npm: ['exec', 'x'],
	pnpm: ['exec', 'dlx'],
	yarn: ['exec', 'dlx'],
	bun: ['x'],
	uv: ['run'],
	poetry: ['run'],
	pipenv: ['run'],
	pipx: ['run'],
	pdm: ['run'],
	hatch: ['run'],
	rye: ['run'],
	conda: ['run'],
	bundle: ['exec'],
	rbenv: ['exec'],
	pyenv: ['exec'],
	mise: ['exec', 'x'],
	asdf: ['exec'],
	rustup: ['run'],
	devbox: ['run'],
}

/** Programs that run a language of their own, by base name. */
export const interpreters = /^(?:python|pypy|node|nodejs|deno|bun|perl|ruby|php|lua|tclsh|osascript|Rscript)[\d.]*$/

/** What `words` may start. Over-reads rather than misses: it feeds deny rules and doubts, never an allowance. */
export function innerOf(words: readonly string[]): Inner[] {
	const name = baseName(words[0] ?? '')
	const args = words.slice(1)
	if (/^ld-linux|^ld-musl|^ld\.so|^ld64/.test(name))
		return afterOptions(args, { valued: '--library-path --preload --argv0 --audit' }).map((argv) => ({ argv }))
	if (shells.has(name)) return shell(name, args)
	const found: Inner[] = interpreters.test(name) ? code(args) : []
	const wrapper = wrapperOf(name)
	if (wrapper && !(name === 'command' && /^-[pvV]*[vV]/.test(args[0] ?? '')))
		for (const argv of afterOptions(args, wrapper)) if (argv.length > 0) found.push({ argv })
	const sub = Object.hasOwn(runners, name) ? runners[name]! : []
	const at = args.findIndex((word) => sub.includes(word))
	if (at >= 0) for (const argv of afterOptions(args.slice(at + 1), {})) if (argv.length > 0) found.push({ argv })
	if (Object.hasOwn(special, name)) found.push(...special[name]!(args))
	if (Object.hasOwn(moreStarters, name)) found.push(...moreStarters[name]!(args))
	return found
}

function shell(name: string, args: readonly string[]): Inner[] {
	const input: Inner[] = [{ stdin: true, reason: 'a shell reads its commands from its input' }]
	let given = false
	let reads = false
	let at = 0
	for (; at < args.length; at++) {
		const word = args[at]!
		if (word === '--' || word === '-') {
			at++
			break
		}
		if (!/^[-+]/.test(word)) break
		if (word.startsWith('--')) {
			if (/^--(?:rcfile|init-file)$/.test(word)) at++
			continue
		}
		if (/^[-+].*c/.test(word)) given = true
		if (/^[-+].*s/.test(word)) reads = true
		// Each -o and -O takes a word, also within `-euo pipefail` and after -c.
		at += word.match(/[oO]/g)?.length ?? 0
	}
	if (given) {
		const text = args[at]
		if (text === undefined) return []
		const other = /bash$/.test(name) ? text : asPlainShell(text)
		return [{ script: text, sure: true }, ...(other === text ? [] : [{ script: other }])]
	}
	const file = args[at]
	if (reads || file === undefined) return input
	return /^(?:\/dev\/(?:stdin|fd\/)|\/proc\/self\/fd\/)/.test(file) ? input : []
}

/** What the parser reads as bash means something else to a plain sh: groups, a background command, a string's end. */
const asPlainShell = (text: string): string =>
	text
		.replaceAll("$'", "'")
		.replaceAll('[[', '[')
		.replaceAll('&>', '& >')
		.replace(/(?<!\$)\(\(/g, '( (')

/** String literals of code in another language that might be handed to a shell. */
function code(args: readonly string[]): Inner[] {
	const at = args.findIndex((word) => /^-[A-Za-z]*[cer]$|^--(?:eval|print|command)$|^-p$|^eval$/.test(word))
	const text = (at >= 0 ? args[at + 1] : args.find((word) => word.startsWith('--eval='))?.slice(7)) ?? ''
	return /system|exec|spawn|subprocess|run|`|qx|open|Process/.test(text) ? literals(text) : []
}

/** The words of find's or fd's -exec up to its end. */
function execs(args: readonly string[], names: RegExp): Inner[] {
	return args.flatMap((word, index) => {
		if (!names.test(word)) return []
		const rest = args.slice(index + 1)
		const end = rest.findIndex((one) => one === ';' || one === '+' || one === '\\;')
		return [{ argv: end < 0 ? rest : rest.slice(0, end) }]
	})
}

/** git's configuration keys whose value is a command. */
const gitCommandKey =
	/^(?:core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath)|pager\..*|alias\..*|sequence\.editor|diff\.(?:external|.*\.(?:command|textconv))|merge\..*\.driver|filter\..*\.(?:clean|smudge|process)|(?:diff|merge)tool\..*\.cmd|credential(?:\..*)?\.helper|gpg\.(?:.*\.)?program|remote\..*\.(?:uploadpack|receivepack)|interactive\.difffilter|browser\..*\.cmd|man\..*\.cmd|uploadpack\.packobjectshook|init\.templatedir|include\.path|includeif\..*\.path)$/i

const special: Record<string, (args: readonly string[]) => Inner[]> = {
	eval: (args) => [{ script: args[0] === '--' ? args.slice(1).join(' ') : args.join(' '), sure: true }],
	trap: (args) => {
		const text = args.find((word) => !/^-[lp-]?/.test(word))
		return text ? [{ script: text, sure: true }] : []
	},
	alias: (args) =>
		args.filter((word) => word.includes('=')).flatMap((word) => scripts(word.slice(word.indexOf('=') + 1))),
	source: (args) => source(args),
	'.': (args) => source(args),
	mapfile: (args) => scripts(...values(args, '-C')),
	readarray: (args) => scripts(...values(args, '-C')),
	complete: (args) => scripts(...values(args, '-C', '-F')),
	bind: (args) => values(args, '-x').flatMap((text) => scripts(text.replace(/^.*?:/s, ''))),
	enable: (args) =>
		args.some((word) => /^-[a-z]*f/.test(word)) ? [{ doubt: 'it loads code into the shell (enable -f)' }] : [],
	env: (args) => splitStrings(args),
	su: (args) => scripts(...values(args, '-c', '--command', '--session-command')),
	runuser: (args) => scripts(...values(args, '-c', '--command')),
	script: (args) =>
		scripts(
			...values(args, '-c', '--command'),
			...args.filter((word) => /^-[a-z]+c$/.test(word)).map((word) => args[args.indexOf(word) + 1]),
		),
	flock: (args) => scripts(...values(args, '-c', '--command')),
	watch: (args) => scripts(afterOptions(args, { valued: '-n --interval' })[0]?.join(' ')),
	hyperfine: (args) => scripts(...args.filter((word) => !word.startsWith('-'))),
	'nix-shell': (args) => scripts(...values(args, '--run', '--command')),
	ssh: (args) => [
		...values(args, '-o').flatMap((text) => scripts(/^(?:Proxy|Local|Remote)Command=(.*)/is.exec(text)?.[1])),
		...scripts(
			args
				.filter((word) => !word.startsWith('-'))
				.slice(1)
				.join(' '),
		),
	],
	npm: (args) => scripts(...values(args, '-c', '--call')),
	npx: (args) => scripts(...values(args, '-c', '--call')),
	find: (args) => execs(args, /^-(?:exec|execdir|ok|okdir)$/),
	fd: (args) => execs(args, /^(?:-x|-X|--exec|--exec-batch)$/),
	fdfind: (args) => execs(args, /^(?:-x|-X|--exec|--exec-batch)$/),
	sed: (args) => sed(args),
	gsed: (args) => sed(args),
	awk: (args) => awk(args),
	gawk: (args) => awk(args),
	mawk: (args) => awk(args),
	nawk: (args) => awk(args),
	git: (args) => git(args),
	tar: (args) => tar(args),
	gtar: (args) => tar(args),
	bsdtar: (args) => tar(args),
	man: (args) => scripts(...values(args, '-P', '--pager', '-H', '--html')),
	rg: (args) => scripts(...values(args, '--pre', '--hostname-bin')),
	rsync: (args) => scripts(...values(args, '-e', '--rsh', '--rsync-path')),
	sort: (args) => scripts(...values(args, '--compress-program')),
	zip: (args) => scripts(...values(args, '-TT', '--unzip-command')),
	less: (args) => args.filter((word) => word.startsWith('+!')).flatMap((word) => scripts(word.slice(1))),
	vim: (args) => vim(args),
	vi: (args) => vim(args),
	nvim: (args) => vim(args),
	ex: (args) => [...vim(args), { stdin: true, reason: 'an editor reads its commands from its input' }],
	ed: () => [{ stdin: true, reason: 'an editor reads its commands from its input' }],
	at: () => [{ stdin: true, reason: 'at runs its input later' }],
	batch: () => [{ stdin: true, reason: 'batch runs its input later' }],
	crontab: () => [{ doubt: 'it changes what runs later (crontab)' }],
	make: (args) =>
		values(args, '-f', '--file', '--makefile').some((one) => one === '-' || one === '/dev/stdin')
			? [{ stdin: true, reason: 'make reads its rules from its input' }]
			: [],
}

const source = (args: readonly string[]): Inner[] =>
	args[0] === undefined || args[0].includes(DYNAMIC) || /^\/dev\/|^\/proc\//.test(args[0])
		? [{ stdin: true, reason: 'it sources text that is not known before the run' }]
		: []

function sed(args: readonly string[]): Inner[] {
	const own = values(args, '-e', '--expression')
	const texts = own.length > 0 ? own : args.filter((word) => !word.startsWith('-')).slice(0, 1)
	return texts.flatMap((text) => {
		const found: Inner[] = []
		for (const match of text.matchAll(/(?:^|[;{}\n\s\d$/,!])e\s+([^\n]+)/g)) found.push({ script: match[1]! })
		if (/(?:^|[;{}\n\s\d$/,!])e\s*(?:$|[;}\n])/.test(text) || /s(.).*?\1.*?\1[gpiImM0-9]*e/s.test(text))
			found.push({ stdin: true, reason: 'sed runs its input (the e command or flag)' })
		return found
	})
}

function awk(args: readonly string[]): Inner[] {
	const program =
		args.filter((word, index) => !word.startsWith('-') && !/^-[vFf]$/.test(args[index - 1] ?? ''))[0] ?? ''
	return /system\s*\(|\|/.test(program) ? literals(program) : []
}

function git(args: readonly string[]): Inner[] {
	const settings = [...values(args, '-c'), ...values(args, '--config')].concat(
		// git config KEY VALUE sets what a later git runs.
		args.flatMap((word, index) =>
			gitCommandKey.test(word) && args[index + 1] !== undefined ? [`${word}=${args[index + 1]}`] : [],
		),
	)
	const found = settings.flatMap((text) => {
		const at = text.indexOf('=')
		return at > 0 && gitCommandKey.test(text.slice(0, at)) ? scripts(text.slice(at + 1)) : []
	})
	found.push(
		...scripts(
			...values(
				args,
				'--upload-pack',
				'--receive-pack',
				'--open-files-in-pager',
				'--extcmd',
				// Its beginning, --exec, is an option of its own and is read with it.
				'--exec-path',
				'--upload-archive',
			),
			...(args.includes('grep') ? values(args, '-O') : []),
			...(args.includes('rebase') || args.includes('difftool') ? values(args, '-x') : []),
			...(args.includes('clone') || args.includes('ls-remote') ? values(args, '-u') : []),
			...(args.includes('filter-branch')
				? values(
						args,
						'--tree-filter',
						'--index-filter',
						'--msg-filter',
						'--env-filter',
						'--parent-filter',
						'--commit-filter',
						'--tag-name-filter',
					)
				: []),
		),
	)
	for (const word of args) if (/^ext::/.test(word)) found.push(...scripts(word.slice(5)))
	const after = (name: string) =>
		args.includes(name) ? args.slice(args.indexOf(name) + 1).filter((word) => !word.startsWith('--')) : []
	if (args.includes('submodule')) found.push(...scripts(after('foreach').join(' ')))
	if (args.includes('bisect')) found.push({ argv: after('run') })
	return found.filter((one) => !('argv' in one) || one.argv.length > 0)
}

function tar(args: readonly string[]): Inner[] {
	const actions = values(args, '--checkpoint-action').flatMap((text) =>
		text.startsWith('exec=') ? [text.slice(5)] : [],
	)
	return scripts(
		...actions,
		...values(
			args,
			'--to-command',
			'--use-compress-program',
			'--rsh-command',
			'--info-script',
			'--new-volume-script',
			'--rmt-command',
			'-I',
			'-F',
		),
	)
}

const vim = (args: readonly string[]): Inner[] =>
	[...values(args, '-c', '--cmd'), ...args.filter((word) => word.startsWith('+')).map((word) => word.slice(1))].flatMap(
		(text) => {
			const shellPart = /(?:^|[|:])\s*(?:r(?:ead)?\s*|w(?:rite)?\s*)?!(.*)/s.exec(text)?.[1]
			return shellPart === undefined ? literals(text) : scripts(shellPart)
		},
	)
