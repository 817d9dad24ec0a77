// Tools of development, networks and machines that start what stands in their words. Part of shell-inner.
import { DYNAMIC } from './shell-decode.ts'
import { afterOptions, codeText, type Inner, scripts, values } from './shell-options.ts'

type Starter = (args: readonly string[]) => Inner[]

/** A sub-command, then options and a word (the container, the version), or `--`, then the command. */
const under =
	(names: RegExp): Starter =>
	(args) => {
		const at = args.findIndex((word) => names.test(word))
		const rest = at < 0 ? [] : args.slice(at + 1)
		const end = rest.indexOf('--')
		return [...(end < 0 ? [] : [rest.slice(end + 1)]), ...afterOptions(rest, { skip: 1 })].map((argv) => ({ argv }))
	}

/** Each word that is no option is shell text. */
const lines: Starter = (args) => scripts(...args.filter((word) => !word.startsWith('-')))

const valuesOf =
	(...names: string[]): Starter =>
	(args) =>
		scripts(...values(args, ...names))

const container = under(/^(?:run|exec|create)$/)

export const toolStarters: Record<string, Starter> = {
	docker: container,
	podman: container,
	nerdctl: container,
	'docker-compose': container,
	kubectl: container,
	oc: container,
	lxc: container,
	apptainer: container,
	singularity: container,
	rustup: under(/^run$/),
	nvm: under(/^exec$/),
	mise: under(/^x$/),
	'aws-vault': under(/^exec$/),
	// Its options take none, one or two words.
	bwrap: (args) => [
		...args.slice(0, 100).map((_, at) => ({ argv: args.slice(at) })),
		...(args.length > 100 ? [{ argv: [DYNAMIC] }] : []),
	],
	nix: (args) => {
		const at = args.findIndex((word) => /^(?:-c|--command)$/.test(word))
		return at < 0 ? [] : [{ argv: args.slice(at + 1) }]
	},
	cmake: (args) => {
		const at = args.indexOf('-E')
		const rest = at < 0 ? [] : args.slice(at + 1)
		// cmake -E env A=b x, -E time x, -E chdir folder x.
		return [1, 2].flatMap((skip) => afterOptions(rest.slice(skip), { assigns: true })).map((argv) => ({ argv }))
	},
	socat: (args) => args.flatMap((word) => scripts(/^(?:exec|system|shell):(.*)/is.exec(word)?.[1])),
	nc: valuesOf('-e', '-c'),
	ncat: valuesOf('-e', '-c'),
	netcat: valuesOf('-e', '-c'),
	strace: (args) => piped(args),
	ltrace: (args) => piped(args),
	tcpdump: valuesOf('-z'),
	dc: (args) => values(args, '-e').flatMap((text) => scripts(/!(.*)/s.exec(text)?.[1])),
	emacs: (args) => values(args, '--eval', '-eval', '--execute').flatMap((text) => codeText(text)),
	fzf: (args) => [
		...scripts(...values(args, '--preview')),
		...values(args, '--bind').flatMap((text) =>
			scripts(/(?:execute(?:-silent)?|become)[(:](.*?)\)?$/s.exec(text)?.[1]),
		),
	],
	pandoc: valuesOf('--filter', '-F', '--pdf-engine'),
	nodemon: valuesOf('-x'),
	concurrently: lines,
	pee: lines,
	mispipe: lines,
	rpm: (args) => values(args, '-E', '--eval').flatMap((text) => scripts(/%\((.*)\)/s.exec(text)?.[1])),
	apt: (args) => invoked(args),
	'apt-get': (args) => invoked(args),
	mosh: valuesOf('--ssh'),
	just: valuesOf('-c'),
}

/** Hooks of apt's configuration. */
const invoked: Starter = (args) => values(args, '-o').flatMap((text) => scripts(/Invoke[^=]*=(.*)/is.exec(text)?.[1]))

/** A trace that goes to a command. */
const piped: Starter = (args) => values(args, '-o', '--output').flatMap((text) => scripts(/^[|!](.*)/s.exec(text)?.[1]))
