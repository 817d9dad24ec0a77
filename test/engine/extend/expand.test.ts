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

	it('C04 random spans: what bash reads is the argument, or the span is refused', () => {
		let seed = 7
		const pick = <T>(from: readonly T[]): T => {
			seed = (seed * 1103515245 + 12345) & 0x7fffffff
			return from[(seed >> 8) % from.length]!
		}
		const parts = [
			'$1',
			'"$1"',
			"'$1'",
			'"a $1 b"',
			'"\\$1"',
			'\\$1',
			'"',
			"'",
			'\\',
			'\\\\',
			' ',
			'$(echo ',
			')',
			'`',
			'${x:-',
			'}',
			'#',
			'((',
			'))',
			'<<E',
			'$[',
			"$'",
			'x',
			'"$(',
			'; ',
			'[',
			']',
			'a[',
		]
		const run = '$(: >>HIT)'
		const evil = [
			run,
			'`: >>HIT`',
			`'${run}'`,
			`"${run}"`,
			`';${run};'`,
			`";${run};"`,
			'\\',
			`b[${run}]`,
			`\${x:-${run}}`,
			';>HIT;',
			'\n>HIT\n',
			')>HIT',
		]
		const commands: string[] = []
		let refused = 0
		for (let i = 0; i < 6000; i++) {
			const body = `!\`echo ${Array.from({ length: 1 + (i % 6) }, () => pick(parts))
				.join('')
				.replaceAll('`', '')}\``
			try {
				commands.push(...spans(body, `"${pick(evil).replace(/["\\]/g, '\\$&')}"`))
			} catch (error) {
				expect(error).to.be.instanceOf(UserError)
				refused++
			}
		}
		const folder = tempDir()
		const shell = (...texts: string[]) => {
			const quoted = texts.map((one) => `'${one.replaceAll("'", "'\\''")}'`)
			const script = `for c in ${quoted.join(' ')}; do (eval "$c") >/dev/null 2>&1 </dev/null; [ -e HIT ] && { printf '%s\\n' "$c"; rm -f HIT; }; done`
			return spawnSync('bash', ['--noprofile', '--norc'], { encoding: 'utf8', input: script, cwd: folder }).stdout
		}
		expect(shell('echo ok', `echo "${run}"`), 'a run is seen').to.include(run)
		expect(shell(...commands)).to.equal('')
		expect(commands.length).to.be.greaterThan(2000)
		expect(refused).to.be.greaterThan(100)
	}).timeout(60_000)

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
