// A command file's text with arguments: one pass, exact words, live spans only, and nothing of an argument that a shell would run.
import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { expandCommand, splitArguments } from '../../../src/engine/extend/expand.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'

/** The text as a model would read it, spans shown as they would run. */
const plain = (body: string, args = ''): string =>
	expandCommand(body, args)
		.pieces.map((piece) => (piece.type === 'shell' ? `<run>${piece.command}</run>` : piece.text))
		.join('')
const spans = (body: string, args = ''): string[] =>
	expandCommand(body, args).pieces.flatMap((piece) => (piece.type === 'shell' ? [piece.command] : []))

describe('extend: a command with its arguments', () => {
	afterEach(removeTemp)
	const demo = 'Costs $0.01, $1.2M. ```awk "!seen[$0]++"``` and awk \'{print $1}\''

	it('C03 prices, awk programs and code stay, with arguments and without', () => {
		expect(plain(demo, '')).to.equal(demo)
		// No placeholder in it: the arguments are not lost.
		expect(plain(demo, 'A B')).to.equal(`${demo}\n\nArguments: A B`)
		expect(plain('$1 costs $0.01, $1.2M or $10', 'A B')).to.equal('A costs $0.01, $1.2M or $10')
	})

	for (const [what, body, args, expected] of [
		['all of the arguments, as typed', 'Fix $ARGUMENTS.', '"a b"  c', 'Fix "a b"  c.'],
		['one by one, quotes taken off', '$1|$2|$3', '"a b" c \'d "e\'', 'a b|c|d "e'],
		['a number that no argument has stays', '$1 and $2', 'A', 'A and $2'],
		['$ARGUMENTS is empty without any', 'Do $ARGUMENTS now', '', 'Do  now'],
		[
			'longer names are no placeholders',
			'$ARGUMENTS_X $1st $12 $1,000 $1.50 $$ $0 $x',
			'A',
			'$ARGUMENTS_X $1st $12 $1,000 $1.50 $$ $0 $x\n\nArguments: A',
		],
		['a full stop ends a sentence', 'See $1. And $1, then.', 'A', 'See A. And A, then.'],
		['a backslash keeps it', '\\$1 \\$ARGUMENTS $1', 'A', '$1 $ARGUMENTS A'],
		['two backslashes are one', '\\\\$1 \\\\\\$1', 'A', '\\A \\$1'],
		['other backslashes stay', 'C:\\dir \\d+ \\$x $1', 'A', 'C:\\dir \\d+ \\$x A'],
		['a path is made', 'src/$1/index.ts', 'web', 'src/web/index.ts'],
		['inline code takes arguments', 'run `git show $1`', 'HEAD', 'run `git show HEAD`'],
		['a comment stays', '<!-- $1 !`id` --> $1', 'A', '<!-- $1 !`id` --> A'],
	] as const)
		it(`C03 ${what}`, () => expect(plain(body, args)).to.equal(expected))

	for (const [what, fence] of [
		['backquotes', '```sh\necho $1 $ARGUMENTS !`id`\n```'],
		['tildes', '~~~\necho $1 !`id`\n~~~'],
		['four backquotes round three', '````\n```\n$1\n```\n!`id`\n````'],
		['in a list', '- step\n  ```\n  $1 !`id`\n  ```'],
		['in a quotation', '> ```\n> $1 !`id`\n> ```'],
		['never closed', '```\n$1 !`id`'],
		['two backquotes in a line', 'like ``!`id` $1`` here'],
	] as const)
		it(`C03 C06 code stays: ${what}`, () => {
			const closed = what === 'never closed' ? `$1\n${fence}` : `${fence}\n$1`
			expect(plain(closed, 'A')).to.equal(closed.replace(what === 'never closed' ? /^\$1/ : /\$1$/, 'A'))
			expect(spans(closed, 'A')).to.deep.equal([])
		})

	const hard = [
		'$100',
		"don't",
		'"a b" c',
		'$&',
		'$(id)',
		'`id`',
		'你好',
		'$1',
		'$ARGUMENTS',
		'\\$1',
		'!`id`',
		"$'",
		'$$',
		'*',
		'~',
		'-n',
	]

	for (const args of hard)
		it(`C04 the text is exactly the argument: ${args}`, () => {
			expect(plain('Price: $ARGUMENTS', args)).to.equal(`Price: ${args}`)
			expect(plain('Price: $ARGUMENTS, $ARGUMENTS!', args)).to.equal(`Price: ${args}, ${args}!`)
			expect(spans('Price: $ARGUMENTS', args)).to.deep.equal([])
			const [first] = splitArguments(args)
			expect(plain('$1', args)).to.equal(first)
		})

	/** What bash makes of a span's words. */
	const bash = (command: string): string => {
		const ran = spawnSync('bash', ['--noprofile', '--norc', '-c', command], { encoding: 'utf8' })
		expect(ran.stderr, command).to.equal('')
		return ran.stdout
	}

	for (const args of [
		...hard,
		'a\'b"c',
		'a\nb',
		'\\',
		'\\\\"',
		'$(touch /nowhere/x)',
		'{a,b}',
		'; id',
		'| id',
		'&& id',
		'> /nowhere/x',
		'#',
		'!!',
		'$((1+1))',
		'${HOME}',
	])
		it(`C04 in a span the value is one word and nothing of it runs: ${JSON.stringify(args)}`, () => {
			for (const body of ["!`printf '<%s>' $ARGUMENTS`", '!`printf "<%s>" "$ARGUMENTS"`'])
				expect(bash(spans(body, args)[0]!)).to.equal(`<${args}>`)
			// In a substitution too.
			expect(bash(spans('!`echo $(: $ARGUMENTS; echo k)`', args)[0]!)).to.equal('k\n')
			const [both] = spans('!`printf \'<%s>\' x$ARGUMENTS"y $ARGUMENTS z"`', args)
			expect(bash(both!)).to.equal(`<x${args}y ${args} z>`)
		})

	/** Runs each text in a bash of its own; those that left a file HIT. */
	const hits = (texts: readonly string[]): string => {
		const words = texts.map((one) => `'${one.replaceAll("'", "'\\''")}'`)
		const script = `for c in ${words.join(' ')}; do (eval "$c") >/dev/null 2>&1 </dev/null; [ -e HIT ] && { printf '%s\\n' "$c"; rm -f HIT; }; done`
		return spawnSync('bash', ['--noprofile', '--norc'], { encoding: 'utf8', input: script, cwd: tempDir() }).stdout
	}
	const run = '$(: >>HIT)'

	/** What a template with words of a test makes: each placeholder stands where some shells would run it. */
	const oldParts = [
		...['$1', '"$1"', "'$1'", '"a $1 b"', '"\\$1"', '\\$1', '"', "'", '\\', '\\\\', ' ', '$(echo ', ')', '`', '${x:-'],
		...['}', '#', '((', '))', '<<E', '$[', "$'", 'x', '"$(', '; ', '[', ']', 'a[', '$', '$$', '$x', '"$$1"', '"$x$1"'],
	]
	const newParts = [
		...[
			'$1',
			'$2',
			'"$1"',
			'"$2"',
			'x$1',
			'{-v,$1}',
			'-v$1',
			'-v',
			'-v ',
			'!',
			'-a',
			'=',
			'x',
			'-n',
			'-i',
			'-eq',
			'1',
			']',
		],
		...['; ', '; ', ' && ', ' | ', '<<<', '(', ')', '{ ', '}', 'a=', 'a=(', '[', ']=', 'x[', '=x)', 'a=$1', '%s', '--'],
		...['test ', '[ ', '[ -v ', 'unset ', 'printf ', 'printf -v ', 'read ', 'declare ', 'export ', 'local -n ', 'let '],
		...[
			'eval ',
			'trap ',
			'command ',
			'builtin ',
			'env ',
			'bash -c ',
			'sh -c ',
			'bash ',
			'sh',
			'set ',
			'wait -p ',
			'exec ',
		],
		...[
			'mapfile ',
			'getopts ',
			'SECONDS=',
			'$(',
			'$(echo ',
			'if ',
			'; then ',
			'; fi',
			'while ',
			'; do ',
			'; done',
			'case ',
		],
		...[
			' in ',
			'f() ',
			'f ',
			'for x in ',
			'$x',
			'"$x"',
			'$_',
			'. ',
			'awk ',
			'xargs ',
			'time ',
			'exit ',
			'hash ',
			'ulimit ',
		],
	]
	const evil = [
		...[run, '`: >>HIT`', `'${run}'`, `"${run}"`, `';${run};'`, `";${run};"`, '\\', `b[${run}]`, `\${x:-${run}}`],
		...[
			';>HIT;',
			'\n>HIT\n',
			')>HIT',
			`(: >>HIT)`,
			`\\'; : >HIT #`,
			`-vx[${run}]`,
			`x[${run}]=1`,
			'-v',
			'eval',
			': >HIT',
		],
		...['eval : >HIT', `x[${run}]+1`, 'BEGIN{system(": >HIT")}', '-c', '-o', '='],
	]

	it('C04 random spans: what bash reads is the argument, or the span is refused', () => {
		let seed = 7
		const pick = <T>(from: readonly T[]): T => {
			seed = (seed * 1103515245 + 12345) & 0x7fffffff
			return from[(seed >> 8) % from.length]!
		}
		const arg = () => `"${pick(evil).replace(/["\\]/g, '\\$&')}"`
		const commands = new Set<string>()
		let refused = 0
		for (let i = 0; i < 8000; i++) {
			const old = i % 2 === 0
			const parts = Array.from({ length: 1 + (i % 7) }, () => pick(old ? oldParts : newParts))
			const text = old ? `echo ${parts.join('')}` : `${pick(newParts)}${parts.join(pick(['', ' ']))}`
			try {
				for (const one of spans(`!\`${text.replaceAll('`', '')}\``, `${arg()} ${arg()}`)) commands.add(one)
			} catch (error) {
				expect(error).to.be.instanceOf(UserError)
				refused++
			}
		}
		expect(hits(['echo ok', `echo "${run}"`]), 'a run is seen').to.include(run)
		expect(hits([...commands])).to.equal('')
		expect(commands.size).to.be.greaterThan(1500)
		expect(refused).to.be.greaterThan(100)
	}).timeout(120_000)

	const index = `x[${run}]`
	for (const [span, ...values] of [
		['echo "price $$1"', '(: >HIT)'],
		['echo "price $$ARGUMENTS"', '(: >HIT)'],
		['echo price $$1', "\\'; : >HIT #"],
		['echo "${HOME##*/} $$1"', '(: >HIT)'],
		['a=([$1]=x)', index],
		['a=(x [$1]=x)', index],
		['a+=(["$1"]=x)', index],
		['declare -a b=([$1]=x)', index],
		['declare "$1"', `${index}=1`],
		['declare -i n=$1', index],
		['export $1', `${index}=1`],
		['readonly "$1"', `${index}=1`],
		['unset $1', index],
		['unset a[$1]', run],
		['command unset $1', index],
		['builtin unset "$1"', index],
		['printf -v $1 x', index],
		['printf $1 x', `-v${index}`],
		['printf {-v,$1} x', index],
		['printf -v"$1" x', index],
		['echo v | read $1', index],
		['mapfile $1 < /dev/null', index],
		['test -v $1', index],
		['[ -v "$1" ]', index],
		['[ ! -v $1 ]', index],
		['[ $1 $2 ]', '-v', index],
		['[ -f $1 -o $1 $2 ]', '-v', index],
		['[ {-v,$1} ]', index],
		['if [ a = a -a -v $1 ]; then :; fi', index],
		['let $1', index],
		['let "n=$1"', index],
		['SECONDS=$1', index],
		['x=$1; test -v "$x"', index],
		['x=$1; echo $((x))', index],
		['f() { test -v "$2"; }; f a $1', index],
		['set -- $1; unset "$X$@"', index],
		['for x in $1; do unset "$x"; done', index],
		['eval $1', ': >HIT'],
		['eval "echo $1"', run],
		['trap $1 EXIT', ': >HIT'],
		['$1 $2', 'eval', ': >HIT'],
		['command $1 $2', 'eval', ': >HIT'],
		['e$1 $2', 'val', ': >HIT'],
		['$x $1 $2', 'eval', ': >HIT'],
		['env $1', '-Stouch HIT'],
		['bash -c $1', ': >HIT'],
		['bash -c "echo $1"', run],
		["bash -c 'eval $1' _ $1", ': >HIT'],
		['sh -ec "$1"', ': >HIT'],
		['env X=1 sh -c "$1"', ': >HIT'],
		['echo $1 | bash', ': >HIT'],
		['bash <<<$1', ': >HIT'],
		['echo $1 | xargs -I{} sh -c {}', ': >HIT'],
		['find . -maxdepth 0 -exec sh -c $1 \\;', ': >HIT'],
		['awk "BEGIN { x = \\"$1\\" }"', '"; system(": >HIT"); y = "'],
		['git -c alias.x="$1" x', '!: >HIT'],
		['GIT_PAGER=$1 git --paginate --version', ': >HIT'],
		['PS4=$1; set -x; :', run],
		[': $1; eval "$_"', ': >HIT'],
		['coproc $1', 'x'],
		['case x in $1) ;; esac', 'x'],
	] as const)
		it(`C04 an argument that a shell would run is refused: ${span}`, () => {
			const args = values.map((one) => `"${one.replace(/["\\]/g, '\\$&')}"`).join(' ')
			const all = span.includes('$ARGUMENTS') ? values[0] : args
			// Whatever the argument is.
			for (const one of [all, 'a b']) expect(() => expandCommand(`!\`${span}\``, one)).to.throw(UserError, 'safely')
			if (all === args) expect(spans(`!\`${span}\``, '')).to.deep.equal([span])
		})

	for (const span of [
		'git log --oneline $1..HEAD -- "$2"',
		'GIT_PAGER=cat git log $1 2>&1 | head -5',
		'grep -rn --include=*.{ts,js} "$1" src || echo none',
		'if [ -f $1 ]; then cat "$1"; else echo "no $1"; fi',
		'[ ! -d "$1" ] && test "$1" != x && [ $2 = y ]',
		'cd packages/$1 && npm test -- $2',
		'for f in a b; do grep "$1" $f; done',
		'diff <(git show main:$1) <(git show $2:"$1") >/dev/null',
		'(cd $1; ls) | wc -l',
		"printf '%s' $1 $2",
		'node scripts/x.mjs $1 --fast',
		'bash scripts/x.sh "$1" $2',
		"python3 -c 'import sys; print(sys.argv)' $1",
		"awk -v x=$1 '/x/' f",
		"sed -n '1,5p' $1",
		'timeout 5 git show $1',
		'command -v $1',
		"find . -name '*.ts' -exec grep -l $1 {} +",
		'sort < $1 > /dev/null',
		'npx eslint $1',
		'cat $1 | python3 -m json.tool',
		'! grep -q "\\$$1" f',
	])
		it(`C04 an ordinary command takes an argument: ${span}`, () => {
			expect(spans(`!\`${span}\``, 'a b')).to.have.length(1)
		})

	for (const span of [
		'echo "$(cat $1)"',
		'cat <<E $1',
		'echo $((1 + $1))',
		'[[ $1 -eq 3 ]]',
		"echo $'$1' $1",
		'echo ${x:-$1}',
		'a[$1]=3',
		'echo # $1',
	])
		it(`C04 an argument that cannot be quoted is refused: ${span}`, () => {
			expect(() => expandCommand(`!\`${span}\``, 'A')).to.throw(UserError, 'cannot be passed safely')
			// Without an argument it is an ordinary command.
			expect(spans(`!\`${span}\``, '')).to.deep.equal([span])
		})

	it('C04 an empty argument is an empty word; only all of the arguments may be none', () => {
		expect(bash(spans('!`printf "<%s>" $1 $2`', '"" b')[0]!)).to.equal('<><b>')
		expect(bash(spans('!`printf "<%s>" $1 x$2 "$1"`', '"" ""')[0]!)).to.equal('<><x><>')
		expect(bash(spans('!`printf "<%s>" a $ARGUMENTS`', '')[0]!)).to.equal('<a>')
		expect(bash(spans('!`printf "<%s>" a "$ARGUMENTS"`', '')[0]!)).to.equal('<a><>')
	})

	it('C04 single quotes and backslashes keep a placeholder, as in a shell', () => {
		expect(spans("!`awk '{print $1}' $1`", 'f.txt')).to.deep.equal(["awk '{print $1}' 'f.txt'"])
		expect(spans('!`echo \\$1 "\\$1" $1`', 'A')).to.deep.equal(['echo \\$1 "\\$1" \'A\''])
		expect(spans('!`cat <<<$1`', 'A')).to.deep.equal(["cat <<<'A'"])
	})

	for (const [what, body, expected] of [
		['at the start and after words', '!`a`\nx !`b` (!`c`)', ['a', 'b', 'c']],
		['not after a letter, a backquote or in code', 'wow!`a` `!`b`` ``!`c`​``', []],
		['not escaped', '\\!`a` !`b`', ['b']],
		['not over lines, not empty', '!`a\nb` !` ` !``', []],
		['not in an argument', '$ARGUMENTS', []],
	] as const)
		it(`C06 which spans are live: ${what}`, () => expect(spans(body, '!`evil`')).to.deep.equal(expected))

	it('C06 an escaped span is shown without its backslash', () => {
		expect(plain('write \\!`cmd` to run it')).to.equal('write !`cmd` to run it')
	})

	it('names the arguments that nothing took', () => {
		expect(expandCommand('$1', 'a b "c d"').unused).to.deep.equal(['b', 'c d'])
		expect(expandCommand('$2', 'a').unused).to.deep.equal([])
		expect(expandCommand('$ARGUMENTS $1', 'a b').unused).to.deep.equal([])
	})

	it('long texts take linear time', () => {
		const time = (n: number) => {
			const body = `${"``x ` <!-- !` '{ \\\\\\ $9 ".repeat(n)}`
			const start = performance.now()
			expandCommand(body, 'a')
			return performance.now() - start
		}
		time(2000)
		const [one, four] = [time(2500), time(10_000)]
		expect(four).to.be.lessThan(one * 12 + 200)
	})
})
