// Seeded random shell commands for the differential test: every construct that can start a program, in odd spellings.

/** Programs that exist only as stubs of the test, so that no path to the real ones can matter. */
export const leaves = ['gaa', 'gbb', 'gcc9', 'gdd', 'gno'] as const
/** Always fails; the others succeed. */
export const failing = 'gno'
/** Real programs that start others; they run behind a stub that records them first. */
export const starters = ['env', 'xargs', 'nice', 'timeout', 'nohup', 'setsid', 'find', 'sh', 'bash', 'cat'] as const

/** mulberry32: small, and the same on every machine. */
export const random = (seed: number): (() => number) => {
	let state = seed >>> 0
	return () => {
		state = (state + 0x6d2b79f5) >>> 0
		let mixed = Math.imul(state ^ (state >>> 15), state | 1)
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
	}
}

const single = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const double = (text: string): string => `"${text.replace(/["\\$`]/g, '\\$&')}"`
const ansi = (text: string): string =>
	`$'${text
		.replace(/[\\']/g, '\\$&')
		.replaceAll('\n', '\\n')
		.replace(/[aeg]/g, (one) => `\\x${one.charCodeAt(0).toString(16)}`)}'`

type Make = () => string

/** One generator of texts; `broken` is the share of them that get a random cut, copy or stray piece. */
export class Grammar {
	readonly #next: () => number
	readonly #broken: number

	constructor(seed: number, broken = 0.08) {
		this.#next = random(seed)
		this.#broken = broken
	}

	text(): string {
		const count = 1 + this.#below(3)
		let text = this.#list(count, 0)
		if (this.#chance(0.04)) text = `${text} # ${this.#of(leaves)} "`
		if (this.#chance(0.03)) text = text.replaceAll(' ', this.#of(['  ', '\t', ' \\\n']))
		if (this.#chance(0.005)) {
			const at = this.#below(text.length + 1)
			text = `${text.slice(0, at)}\\\n${text.slice(at)}`
		}
		return this.#chance(this.#broken) ? this.#damage(text) : text
	}

	#below(limit: number): number {
		return Math.floor(this.#next() * limit)
	}

	#chance(share: number): boolean {
		return this.#next() < share
	}

	#of<T>(all: readonly T[]): T {
		return all[this.#below(all.length)]!
	}

	/** One of the makers; a number before one is its weight. */
	#pick(...weighted: [number, Make][]): string {
		let at = this.#next() * weighted.reduce((sum, [weight]) => sum + weight, 0)
		for (const [weight, make] of weighted) {
			at -= weight
			if (at < 0) return make()
		}
		return weighted.at(-1)![1]()
	}

	#list(count: number, depth: number): string {
		let text = ''
		for (let at = 0; at < count; at++) {
			if (at > 0) {
				const breaks = /<<-?\\?'?E\d/.test(text)
				text += breaks
					? '\n'
					: this.#of([' && ', ' || ', '; ', ' | ', ' & ', '\n', ';', '&&', '|', ' |& ', '||', ' \n\n '])
			}
			text += this.#command(depth)
		}
		return text
	}

	/** A list that ends so that a closing word may follow. */
	#body(depth: number): string {
		return `${this.#list(1 + this.#below(2), depth + 1)}\n`
	}

	#command(depth: number): string {
		if (depth >= 3) return this.#simple(depth)
		return this.#pick([60, () => this.#simple(depth)], [22, () => this.#wrapped()], [24, () => this.#compound(depth)])
	}

	#simple(depth: number): string {
		const before = this.#chance(0.08) ? `${this.#of(['X=1', 'A=', 'B="a b"', 'C+=1'])} ` : ''
		const name = this.#name(depth)
		const words = Array.from({ length: this.#below(4) }, () => this.#word(depth))
		const all = [name, ...words]
		// A redirection may stand before, between and after the words.
		if (this.#chance(0.12)) all.splice(this.#below(all.length + 1), 0, this.#redirect(depth))
		const text = before + all.join(' ')
		return this.#chance(0.05) ? this.#hereDoc(text, depth) : text
	}

	/** What is always unsure (a name or a text known only at the run) is rare, here and below: it can show no miss. */
	#name(depth: number): string {
		const leaf = this.#of(leaves)
		return this.#pick(
			[80, () => leaf],
			[3, () => `${leaf.slice(0, 1)}""${leaf.slice(1)}`],
			[2, () => `\\${leaf}`],
			[2, () => single(leaf)],
			[2, () => double(leaf)],
			[2, () => ansi(leaf)],
			[1, () => `${leaf.slice(0, 2)}\\\n${leaf.slice(2)}`],
			[1, () => `{${leaf},a}`],
			[1, () => `$'\\147'${leaf.slice(1)}`],
			[0.5, () => `$IFS ${leaf}`],
			[0.1, () => `\${NOTHING}${leaf}`],
			[0.1, () => `$(printf ${leaf})`],
			[0.1, () => `\${X:-${leaf}}`],
			[0.5, () => `""${leaf}`],
			[1, () => `{,}${leaf}`],
			[0.1, () => `g?${leaf.slice(2)}`],
			[0.4, () => `$"${leaf}"`],
			[1, () => `<(${this.#command(depth + 2)}) ${leaf}`],
		)
	}

	#word(depth: number): string {
		return this.#pick(
			[
				30,
				() =>
					this.#of([
						'a',
						'-f',
						'--all',
						'x/y',
						'a=b',
						'-n1',
						'@',
						':',
						'%',
						'.',
						'--',
						'-',
						'1',
						'then',
						'do',
						'{',
						'}',
						'!',
					]),
			],
			[8, () => single(this.#of(['a b', '; gaa', '$(gaa)', '', '#', '\n']))],
			[8, () => double(this.#of(['a b', '; gbb x', '', '#', "it's"]))],
			[2, () => ansi(this.#of(['a b', "it's", 'tab']))],
			[2, () => '\\;'],
			[2, () => 'a\\ b'],
			[2, () => '{a,b}'],
			[
				3,
				() =>
					this.#of(['$X', '"$X"', '${X:-d}', '$$', '$?', '"${X%.*}"', '${#X}', '$HOME/a', '~', '~/a', '"$@"', '$#']),
			],
			[3, () => this.#of(['*', '*.none', '[ab]?', '[a$X]?', '"*"'])],
			[2.5, () => (depth > 2 ? 'b' : `$(${this.#command(depth + 1)})`)],
			[2, () => (depth > 2 ? 'b' : `"$(${this.#command(depth + 1)})"`)],
			[1.2, () => (depth > 1 ? 'b' : `\`${this.#simple(3).replace(/[`\\$]/g, '')}\``)],
			[1, () => (depth > 2 ? 'b' : `<(${this.#command(depth + 1)})`)],
			[0.7, () => (depth > 2 ? 'b' : `"\${X:-$(${this.#command(depth + 1)})}"`)],
			[0.7, () => this.#of(['$((1+2))', '$[1+1]', '$((X))'])],
			[0.1, () => (depth > 1 ? 'b' : `$(($(${this.#simple(3)}) 1))`)],
			[0.1, () => (depth > 1 ? 'b' : `$((a[$(${this.#simple(3)})]))`)],
		)
	}

	#redirect(depth: number): string {
		return this.#pick(
			[5, () => this.#of(['> o', '>>o', '2>&1', '2> o', '&> o', '>| o', '< i', '<&-', '>&2', '3<> o', '2>/dev/null'])],
			[1, () => `<<< ${this.#word(depth + 1)}`],
			[1, () => `< <(${this.#simple(3)})`],
			[1, () => `> >(${this.#simple(3)})`],
			[0.5, () => `<<< "$(${this.#simple(3)})"`],
			[0.3, () => `> $(${this.#simple(3)})`],
		)
	}

	#hereDoc(text: string, depth: number): string {
		const mark = `E${this.#below(9)}`
		const body = this.#pick(
			[2, () => `plain ${this.#of(leaves)} text`],
			[2, () => `$(${this.#simple(3)})`],
			[1, () => `\`${this.#of(leaves)}\``],
			[1, () => this.#simple(depth + 2)],
			[0.2, () => `"$(${this.#of(leaves)} '`],
		)
		const quoted = this.#of([mark, mark, single(mark), `\\${mark}`])
		return this.#of([`${text} <<${quoted}\n${body}\n${mark}`, `${text} <<-${quoted}\n\t${body}\n\t${mark}`])
	}

	/** A command that starts another. */
	#wrapped(): string {
		const inner = (): string => this.#simple(3)
		const script = (): string => this.#of([single, single, double, ansi])(this.#list(1 + this.#below(2), 2))
		return this.#pick(
			[3, () => `env ${this.#of(['', 'X=1 ', '-u X ', '-- ', 'A=1 B=2 ', '-uX '])}${inner()}`],
			[2, () => `nice ${this.#of(['', '-n 5 ', '-n5 ', '--adjustment=5 '])}${inner()}`],
			[2, () => `timeout ${this.#of(['5 ', '-s KILL 5 ', '-k 1 5 ', '--foreground 5 ', '-sKILL 5 '])}${inner()}`],
			[1, () => `nohup ${inner()}`],
			[1, () => `setsid ${this.#of(['', '-w '])}${inner()}`],
			[2, () => `command ${this.#of(['', '-- '])}${inner()}`],
			[1, () => `( exec ${this.#of(['', '-a n ', '-- ', '-c '])}${inner()} )`],
			[2, () => `time ${this.#of(['', '-p '])}${inner()}`],
			[1, () => `! ${inner()}`],
			[
				4,
				() =>
					`${this.#of(['sh', 'bash', '/bin/sh', 'sh -e', 'bash -x', 'bash --norc', 'bash -o pipefail', 'bash +x', 'bash -euo pipefail'])} -c ${script()}`,
			],
			[
				2,
				() =>
					`${this.#of(['bash -ec', 'sh -xc', 'bash -c --', 'bash -ce', 'bash -co pipefail', 'bash -c +o posix'])} ${script()}`,
			],
			[1, () => `bash -c ${script()} name a b`],
			[0.5, () => `${this.#of(['bash', 'sh -e', '.', 'source'])} ${inner()}`],
			[3, () => `eval ${this.#of([script(), inner(), `${single(`${this.#of(leaves)} a`)} b`])}`],
			[1, () => `builtin eval ${script()}`],
			[1, () => `trap ${script()} ${this.#of(['EXIT', '0', 'DEBUG', 'ERR'])}`],
			[
				2,
				() =>
					`echo a | xargs ${this.#of(['', '-n1 ', '-I{} ', '-0 ', '-r ', '-n 1 -P 2 ', '-t '])}${this.#of(leaves)} ${this.#of(['', '{}', 'b'])}`,
			],
			[
				2,
				() =>
					`find . -maxdepth 0 ${this.#of(['-exec', '-execdir', '-type d -exec'])} ${this.#of(leaves)} ${this.#of(['{} \\;', "{} ';'", '{} +', 'x {} ";"'])}`,
			],
			[1, () => `find . -maxdepth 0 -exec ${this.#of(leaves)} {} \\; -exec ${this.#of(leaves)} b \\;`],
			[0.15, () => `${this.#of(['sh', 'bash', 'bash -s', 'sh -'])} <<'E7'\n${this.#list(1, 3)}\nE7\n`],
			[0.15, () => `echo ${single(inner())} | ${this.#of(['sh', 'bash', 'bash -s a'])}`],
			[0.15, () => `bash <<< ${single(inner())}`],
			[0.15, () => `. /dev/stdin <<< ${single(inner())}`],
			[0.15, () => `source <(echo ${single(inner())})`],
			[0.4, () => `mapfile -C ${single(this.#of(leaves))} -c 1 arr <<< a`],
			[0.15, () => `printf -v 'a[$(${this.#of(leaves)})]' x`],
			[0.15, () => `[[ a -eq 'a[$(${this.#of(leaves)})]' ]]`],
			[0.15, () => `declare -i n='a[$(${this.#of(leaves)})]'`],
			[0.2, () => `v='$(${this.#of(leaves)})'; : "\${v@P}"`],
			[0.2, () => `v=${this.#of(leaves)}; $v a`],
			[0.4, () => `env -S ${double(`${this.#of(leaves)} a`)}`],
			[0.4, () => `shopt -s expand_aliases\nalias al=${single(`${this.#of(leaves)} a`)}\nal b`],
		)
	}

	#compound(depth: number): string {
		const body = () => this.#body(depth)
		const command = () => this.#command(depth + 1)
		return this.#pick(
			[3, () => `( ${body()})`],
			[1, () => `(${this.#name(3)} ${this.#word(3)})`],
			[3, () => `{ ${body()}}`],
			[3, () => `if ${command()}\nthen ${body()}fi`],
			[2, () => `if ${failing}; then ${body()}elif ${command()}\nthen ${body()}else ${body()}fi`],
			[3, () => `for x in a ${this.#word(depth + 1)}; do ${body()}done`],
			[1, () => `for ((i = 0; i < 1; i++)); do ${body()}done`],
			[1, () => `for x in a\n{ ${body()}}`],
			[2, () => `while ${failing} && ${command()}\ndo ${body()}done`],
			[1, () => `until ! ${failing}; do ${body()}done`],
			[1, () => `while :; do ${body()}break; done`],
			[
				3,
				() =>
					`case a in ${this.#of(['(a)', 'a)', 'b|a)', '*)'])} ${body()}${this.#of([';;', ';&', ';;&'])}\n *) ${body()};; esac`,
			],
			[2, () => `fun${this.#below(9)}() { ${body()}}`],
			[2, () => `function fun1 { ${this.#simple(3)}\n}; fun1 a`],
			[1, () => `fun2() ( ${this.#simple(3)}\n)\nfun2`],
			[1, () => `coproc ${this.#of(['', 'NAME '])}{ ${body()}}`],
			[
				1,
				() =>
					`[[ ${this.#of(['-n a', 'a == a', 'a =~ ^a(b|c)?', '! -e x', `-n $(${this.#simple(3)})`])} ]] && ${command()}`,
			],
			[1, () => `(( 1 )) && ${command()}`],
			[0.15, () => `(( $(${this.#simple(3)}) + 1 ))`],
			[1, () => `[ -n a ] || ${command()}`],
			[1, () => `test "$(${this.#simple(3)})" = a`],
			[1, () => `x=$(${command()})`],
			[1, () => `arr=(a "$(${this.#simple(3)})" b)`],
			[1, () => `export X="$(${this.#simple(3)})"`],
			[1, () => `select x in a; do ${body()}break; done < /dev/null`],
			[1, () => `{ ${body()}} > o 2>&1`],
			[1, () => `time { ${body()}}`],
			[1, () => `! { ${body()}}`],
		)
	}

	/** As a typing error would leave it: still often a command, seldom a sensible one. */
	#damage(text: string): string {
		const at = this.#below(text.length)
		const to = at + 1 + this.#below(4)
		return this.#pick(
			[2, () => text.slice(0, at) + text.slice(to)],
			[2, () => text.slice(0, at) + this.#of(strays) + text.slice(at)],
			[1, () => text.slice(0, at) + text.slice(at, to) + text.slice(at)],
			[1, () => text.slice(0, at)],
		)
	}
}

const strays = [
	'"',
	"'",
	'`',
	'\\',
	'\n',
	';',
	'&',
	'|',
	'(',
	')',
	'{',
	'}',
	'$',
	'$(',
	'${',
	'<',
	'>',
	'<<',
	'#',
	' ',
	'=',
	'!',
	'*',
	'~',
	'\r',
	'\t',
	'gaa',
	' gbb ',
	'\\\n',
	'$((',
	'))',
	'[[ ',
	"$'",
	'&>',
	'<(',
	';;',
	'\u00a0',
]
