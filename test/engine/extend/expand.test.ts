// A command file's text with arguments: one pass, exact words, live spans only, and nothing of an argument that a shell would run.
import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { expandCommand, splitArguments } from '../../../src/engine/extend/expand.ts'

/** The text as a model would read it, spans shown as they would run. */
const plain = (body: string, args = ''): string =>
	expandCommand(body, args)
		.pieces.map((piece) => (piece.type === 'shell' ? `<run>${piece.command}</run>` : piece.text))
		.join('')
const spans = (body: string, args = ''): string[] =>
	expandCommand(body, args).pieces.flatMap((piece) => (piece.type === 'shell' ? [piece.command] : []))

describe('extend: a command with its arguments', () => {
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
