// Commands inside commands: wrappers, shells, code given as an option. Used while a command is read for the rules.
import { DYNAMIC } from './shell-decode.ts'
import {
	afterOptions,
	baseName,
	codeText,
	type Inner,
	isShell,
	literals,
	scripts,
	splitStrings,
	values,
} from './shell-options.ts'
import { plainShellTexts } from './shell-plain.ts'
import { moreStarters } from './shell-starters.ts'
import { toolStarters } from './shell-tools.ts'
import { fromVariables } from './shell-variables.ts'
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
	lerna: ['exec'],
	nodenv: ['exec'],
	fnm: ['exec'],
	pixi: ['run'],
	mamba: ['run'],
	micromamba: ['run'],
	opam: ['exec'],
	dune: ['exec'],
	stack: ['exec'],
	cabal: ['exec'],
	doppler: ['run'],
	op: ['run'],
	dotenvx: ['run'],
	corepack: ['npm', 'pnpm', 'yarn'],
}

/** Programs that run a language of their own, by base name. */
export const interpreters =
	/^(?:python|pypy|ipython|jython|node|nodejs|deno|bun|tsx|ts-node|perl|ruby|jruby|php|lua|luajit|tclsh|osascript|Rscript)[\d.]*$/

/** What `words` may start. Over-reads rather than misses: it feeds deny rules and doubts, never an allowance. */
export function innerOf(words: readonly string[]): Inner[] {
	const name = baseName(words[0] ?? '')
	const args = words.slice(1)
	if (/^ld-linux|^ld-musl|^ld\.so|^ld64/.test(name))
		return afterOptions(args, { valued: '--library-path --preload --argv0 --audit' }).map((argv) => ({ argv }))
	const found: Inner[] = fromVariables(words)
	if (isShell(name)) return [...found, ...shell(name, args)]
	if (interpreters.test(name)) found.push(...code(name, args))
	const wrapper = wrapperOf(name)
	if (wrapper && !(name === 'command' && /^-[pvV]*[vV]/.test(args[0] ?? '')))
		for (const argv of afterOptions(args, wrapper)) if (argv.length > 0) found.push({ argv })
	const sub = Object.hasOwn(runners, name) ? runners[name]! : []
	const at = args.findIndex((word) => sub.includes(word))
	if (at >= 0) for (const argv of afterOptions(args.slice(at + 1), {})) if (argv.length > 0) found.push({ argv })
	if (/^(?:vim?|nvim|view|gvim|rvim|vimdiff)(?:\.\w+)?$/.test(name)) found.push(...vim(args))
	if (Object.hasOwn(special, name)) found.push(...special[name]!(args))
	if (Object.hasOwn(moreStarters, name)) found.push(...moreStarters[name]!(args))
	if (Object.hasOwn(toolStarters, name)) found.push(...toolStarters[name]!(args))
	found.push(...telling(args))
	return found
}

function shell(name: string, args: readonly string[]): Inner[] {
	const input: Inner[] = [{ stdin: true, reason: 'a shell reads its commands from its input' }]
	const more = values(args, '--command', '--init-command', ...(name === 'fish' ? ['-C'] : []))
	// PowerShell's own spelling.
	const long = args.findIndex((word) => /^-command$/i.test(word))
	if (long >= 0) more.push(args.slice(long + 1).join(' '))
	if (more.length > 0) return scripts(...more)
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
		if (/bash$/.test(name)) return [{ script: text, sure: true }]
		return [{ script: text, sure: true, plain: true }, ...plainShellTexts(text).map((script) => plain(script))]
	}
	const file = args[at]
	if (reads || file === undefined) return input
	// A file that only the run knows may be one that the command makes: <(…).
	return file === DYNAMIC || inputFile.test(file) ? input : scriptFile(args.slice(at))
}

const plain = (script: string): Inner => ({ script, plain: true })

/** A file that a shell runs counts as a command of its own, also where only its name is given. */
const scriptFile = ([file, ...args]: readonly string[]): Inner[] =>
	file!.includes('/') ? [{ argv: [file!, ...args] }] : [file!, `./${file}`].map((name) => ({ argv: [name, ...args] }))

const inputFile = /^(?:-$|\/dev\/(?:stdin|fd\/)|\/proc\/self\/fd\/)/

/** String literals of code in another language that might be handed to a shell. */
function code(name: string, args: readonly string[]): Inner[] {
	// Letters that take no value may stand before; perl's modules are code too.
	const texts = args.flatMap((word, at) => {
		if (/^--(?:eval|print|command|import)$|^eval$/.test(word)) return [args[at + 1] ?? '']
		const joined = /^--(?:eval|print|import)=(.*)/s.exec(word)?.[1]
		if (joined !== undefined) return [joined]
		const after = /^-[A-Za-z0-9]*?[ceErpRBMms](.*)/s.exec(word)?.[1]
		return after === undefined ? [] : [after, args[at + 1] ?? '']
	})
	const file = args.find((word) => !word.startsWith('-') || word === '-')
	const given = args.some((word) => /^-[A-Za-z]*[ceErpm]|^--(?:eval|print)/.test(word))
	if (given || (file !== undefined && !inputFile.test(file) && file !== DYNAMIC))
		return texts.flatMap((text) => codeText(text))
	return [{ stdin: true, reason: `${name} runs code from its input`, code: true }]
}

/** Options that say in any program that their value is a command. */
const tellingOption =
	/^--?(?:[a-z]+-)*(?:exec|execute|command|cmd|pager|editor|program|askpass|speller|viewer|script-shell|toolexec|run_under|entrypoint)(?:=(.*))?$/is

/** Words that say in any program that a command stands behind the next `--`. */
const tellingWord = /^(?:exec|shell|enter|develop|explore)$/

const telling = (args: readonly string[]): Inner[] => {
	const found = args.flatMap((word, at) => {
		const option = tellingOption.exec(word)
		return option === null ? [] : scripts(option[1] ?? args[at + 1])
	})
	const end = args.indexOf('--')
	if (end > 0 && args.slice(0, end).some((word) => tellingWord.test(word))) found.push({ argv: args.slice(end + 1) })
	return found
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
	/^(?:core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath|alternaterefscommand)|pager\..*|alias\..*|sequence\.editor|diff\.(?:external|.*\.(?:command|textconv))|merge\..*\.driver|filter\..*\.(?:clean|smudge|process)|(?:diff|merge|gui)tool\..*\.(?:cmd|path)|credential(?:\..*)?\.helper|gpg\.(?:.*\.)?(?:program|defaultkeycommand)|remote\..*\.(?:uploadpack|receivepack)|interactive\.difffilter|browser\..*\.cmd|man\..*\.cmd|uploadpack\.packobjectshook|submodule\..*\.update|trailer\..*\.(?:command|cmd)|tar\..*\.command|hook\..*\.command|sendemail\..*(?:cmd|server)|imap\.tunnel|instaweb\.(?:httpd|browser)|init\.templatedir|include\.path|includeif\..*\.path)$/i

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
	complete: (args) => completion(args),
	compgen: (args) => completion(args),
	bind: (args) => values(args, '-x').flatMap((text) => scripts(text.replace(/^.*?:/s, ''))),
	enable: (args) =>
		args.some((word) => /^-[a-z]*f/.test(word)) ? [{ doubt: 'it loads code into the shell (enable -f)' }] : [],
	env: (args) => splitStrings(args),
	su: (args) => [
		...scripts(...values(args, '-c', '--command', '--session-command')),
		...values(args, '-s', '--shell').map((program) => ({ argv: [program] })),
	],
	runuser: (args) => scripts(...values(args, '-c', '--command')),
	script: (args) => [
		...scripts(...values(args, '-c', '--command')),
		// Elsewhere the command stands behind the file.
		...afterOptions(args, { valued: '-t -T', skip: 1 }).map((argv) => ({ argv })),
	],
	flock: (args) => scripts(...values(args, '-c', '--command')),
	watch: (args) => scripts(...afterOptions(args, { valued: '-n --interval' }).map((words) => words.join(' '))),
	hyperfine: (args) => scripts(...args.filter((word) => !word.startsWith('-'))),
	'nix-shell': (args) => scripts(...values(args, '--run')),
	ssh: (args) => [...sshOptions(args), ...remote(args)],
	autossh: (args) => [...sshOptions(args), ...remote(args)],
	scp: (args) => sshOptions(args, '-S'),
	sftp: (args) => sshOptions(args, '-S'),
	npm: (args) => [
		...scripts(...values(args, '-c', '--call')),
		// npm config set KEY VALUE, KEY=VALUE: what a later npm runs.
		...scripts(
			...args.map((word, at) => (/^(?:script-shell|editor|viewer|git)$/.test(word) ? args[at + 1] : undefined)),
		),
		...scripts(...args.map((word) => /^(?:script-shell|editor|viewer|git)=(.*)/s.exec(word)?.[1])),
	],
	npx: (args) => scripts(...values(args, '-c', '--call')),
	find: (args) => execs(args, /^-(?:exec|execdir|ok|okdir)$/),
	gfind: (args) => execs(args, /^-(?:exec|execdir|ok|okdir)$/),
	bfs: (args) => execs(args, /^-(?:exec|execdir|ok|okdir)$/),
	fd: (args) => execs(args, /^(?:-[a-zA-Z]*[xX]|--exec|--exec-batch)$/),
	fdfind: (args) => execs(args, /^(?:-[a-zA-Z]*[xX]|--exec|--exec-batch)$/),
	bun: (args) => (args[0] === 'exec' ? scripts(args[1]) : []),
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
	ex: (args) => [...vim(args), { stdin: true, reason: 'an editor reads its commands from its input' }],
	ed: () => [{ stdin: true, reason: 'an editor reads its commands from its input' }],
	at: () => [{ stdin: true, reason: 'at runs its input later' }],
	batch: () => [{ stdin: true, reason: 'batch runs its input later' }],
	crontab: () => [{ doubt: 'it changes what runs later (crontab)' }],
	make: (args) =>
		values(args, '-f', '--file', '--makefile').some((one) => one === DYNAMIC || inputFile.test(one))
			? [{ stdin: true, reason: 'make reads its rules from its input' }]
			: [],
}

const source = (args: readonly string[]): Inner[] =>
	args[0] === undefined || args[0].includes(DYNAMIC) || /^\/dev\/|^\/proc\//.test(args[0])
		? [{ stdin: true, reason: 'it sources text that is not known before the run' }]
		: // A plain sh hands no arguments on.
			[...scriptFile(args), ...(args.length > 1 ? scriptFile(args.slice(0, 1)) : [])]

const completion = (args: readonly string[]): Inner[] => [
	...scripts(...values(args, '-C', '-F')),
	// Its words are expanded like a line of the shell.
	...values(args, '-W').map((text) => ({ script: `: ${text}` })),
]

/** Settings of ssh that hold a command. */
const sshOptions = (args: readonly string[], ...names: string[]): Inner[] => [
	...values(args, '-o').flatMap((text) =>
		scripts(/^\s*(?:Proxy|Local|Remote|KnownHosts)Command\s*[=\s]\s*(.*)/is.exec(text)?.[1]),
	),
	...scripts(...(names.length > 0 ? values(args, ...names) : [])),
]

/** What ssh runs on the other side: the words behind the host. */
const remote = (args: readonly string[]): Inner[] => {
	const valued = '-B -b -c -D -E -e -F -I -i -J -L -l -M -m -O -o -P -p -Q -R -S -W -w'
	return afterOptions(args, { valued, skip: 1 }).flatMap((words) =>
		afterOptions(words, { valued }).flatMap((command) => scripts(command.join(' '))),
	)
}

function sed(args: readonly string[]): Inner[] {
	if (values(args, '-f', '--file').some((one) => one === DYNAMIC || inputFile.test(one)))
		return [{ stdin: true, reason: 'sed reads its script from its input' }]
	const own = values(args, '-e', '--expression')
	const texts = own.length > 0 ? own : args.filter((word) => !word.startsWith('-')).slice(0, 1)
	return texts.flatMap((text) => {
		const found: Inner[] = []
		for (const match of text.matchAll(/(?:^|[;{}\n\s\d$/,!I])e\s*([^\n]+)/g)) found.push({ script: match[1]! })
		if (/(?:^|[;{}\n\s\d$/,!I])e\s*(?:$|[;}\n])/.test(text) || /s(.).*?\1.*?\1[gpiImM0-9]*e/s.test(text))
			found.push({ stdin: true, reason: 'sed runs its input (the e command or flag)' })
		return found
	})
}

function awk(args: readonly string[]): Inner[] {
	const files = values(args, '-f', '--file')
	if (files.some((one) => one === DYNAMIC || inputFile.test(one)))
		return [{ stdin: true, reason: 'awk runs code from its input', code: true }]
	const own = values(args, '-e', '--source')
	// An option's value may stand before the program: the first two words count.
	const texts = own.length > 0 ? own : args.filter((word) => !word.startsWith('-')).slice(0, 3)
	return texts.flatMap((text) => (/system\s*\(|\|/.test(text) ? literals(text) : []))
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
			...(args.includes('shell') ? values(args, '-c') : []),
			...values(args, '--access-hook', '--authors-prog', '--smtp-server', '--httpd', '--browser'),
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
						'--setup',
					)
				: []),
		),
	)
	for (const word of args) if (/^ext::/.test(word)) found.push(...scripts(word.slice(5)))
	const after = (name: string) =>
		args.includes(name) ? args.slice(args.indexOf(name) + 1).filter((word) => !/^--|^-q$/.test(word)) : []
	if (args.includes('submodule')) found.push(...scripts(after('foreach').join(' ')))
	if (args.includes('bisect')) found.push({ argv: after('run') })
	return found.filter((one) => !('argv' in one) || one.argv.length > 0)
}

function tar(args: readonly string[]): Inner[] {
	const actions = values(args, '--checkpoint-action').flatMap((text) =>
		text.startsWith('exec=') ? [text.slice(5)] : [],
	)
	// Letters without a dash take their values from the words behind them, in order.
	const old = /^[A-Za-z]*[IF][A-Za-z]*$/.exec(args[0] ?? '')?.[0].length ?? 0
	return scripts(
		...actions,
		...args.slice(1, old),
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

const vim = (args: readonly string[]): Inner[] => {
	if (values(args, '-S', '-s').some((one) => one === DYNAMIC || inputFile.test(one)))
		return [{ stdin: true, reason: 'an editor reads its commands from its input' }]
	const texts = [
		...values(args, '-c', '--cmd'),
		...args.filter((word) => word.startsWith('+')).map((word) => word.slice(1)),
	]
	return texts.flatMap((text) => [
		// Behind each `!`, whatever range or command stands before it; in strings of the editor's own language too.
		...scripts(...[...text.matchAll(/!/g)].slice(0, 10).map(({ index }) => text.slice(index + 1))),
		...scripts(/(?:^|[|:\s])te(?:rm(?:inal)?)?\s+(.*)/s.exec(text)?.[1]),
		...literals(text).map((one) => ('script' in one ? { script: one.script.replace(/^[:\s]*!/, '') } : one)),
	])
}
