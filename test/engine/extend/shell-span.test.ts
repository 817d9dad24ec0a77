// A live span with arguments: what bash reads of them is data, whatever they hold and wherever they stand, or the span is refused.
import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { expandCommand } from '../../../src/engine/extend/expand.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'

const spans = (body: string, args = ''): string[] =>
	expandCommand(body, args).pieces.flatMap((piece) => (piece.type === 'shell' ? [piece.command] : []))

describe('extend: arguments in a span', () => {
	afterEach(removeTemp)

	/** Runs each text in a bash of its own; those that left a file HIT. */
	const hits = (texts: readonly string[]): string => {
		const words = texts.map((one) => `'${one.replaceAll("'", "'\\''")}'`)
		const script = `for c in ${words.join(' ')}; do (eval "$c") >/dev/null 2>&1 </dev/null; [ -e HIT ] && { printf '%s\\n' "$c"; rm -f HIT; }; done`
		const ran = spawnSync('bash', ['--noprofile', '--norc'], {
			encoding: 'utf8',
			input: `${script}; echo end`,
			cwd: tempDir(),
			timeout: 100_000,
		})
		expect(ran.stdout, 'all were tried').to.match(/(?:^|\n)end\n$/)
		return ran.stdout.replace(/end\n$/, '')
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
			'; else ',
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
})
