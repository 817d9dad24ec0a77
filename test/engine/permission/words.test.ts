// A command's words as bash sees them, and what makes them uncertain: each kind of quoting, expansion and evaluation.
import { expect } from 'chai'
import { DYNAMIC, maxShellText, readShell, type ShellCommand } from '../../../src/engine/permission/shell-words.ts'

const read = (text: string): Promise<ShellCommand> => readShell(text, '/h', '/w')
/** The words of each command, with … for what only the run knows. */
const words = async (text: string): Promise<string[][]> =>
	(await read(text)).commands.map((one) => one.words.map((word) => word.replaceAll(DYNAMIC, '…')))
const sees = async (text: string): Promise<boolean> => (await words(text)).some((one) => one.join('|') === 'gaa|b')
const doubts = async (text: string): Promise<string> =>
	(await read(text)).doubts.map(({ reason, grave }) => `${grave ? 'grave: ' : ''}${reason}`).join('\n')

describe('permission: words of a command', () => {
	it('quotes and expansions are done as bash does them', async () => {
		for (const [text, expected] of [
			['gaa b', ['gaa', 'b']],
			['g"a"\'a\' b', ['gaa', 'b']],
			["$'\\x67aa' b", ['gaa', 'b']],
			['$"gaa" "b$x"', ['gaa', 'b…']],
			['g\\aa b', ['gaa', 'b']],
			['{gaa,b}', ['gaa', 'b']],
			['gaa {1..3}', ['gaa', '…']],
			['gaa {a,{b,c}}', ['gaa', '…']],
			['gaa$IFS"b"', ['gaa', 'b']],
			['gaa "$IFS"b', ['gaa', '…b']],
			['$IFS gaa b', ['gaa', 'b']],
			['gaa ~/b ~', ['gaa', '/h/b', '/h']],
			['gaa "~/b" a~', ['gaa', '~/b', 'a~']],
			['gaa $HOME/b ${HOME}/b', ['gaa', '/h/b', '/h/b']],
			['gaa ${HOME:-x}/b ${!HOME} ${HOME[0]}', ['gaa', '…/b', '…', '…']],
			['gaa $PWD/b ~+/b', ['gaa', '/w/b', '/w/b']],
			['gaa ~-/b', ['gaa', '…/b']],
			['gaa *.b +(b) b?', ['gaa', '*.b', '+(b)', 'b?']],
			['gaa $b `c` <(d) $((1))', ['gaa', '…', '…', '…', '…']],
		] as const)
			expect((await words(text))[0], text).to.deep.equal(expected)
	})

	it('a name that the disk or the run chooses is a doubt', async () => {
		for (const text of ['g?a b', 'ga* b', '[g]aa b', '+(gaa) b', '@(gaa|x) b'])
			expect(await doubts(text), text).to.match(/^grave: the name of a command is a pattern/)
		for (const text of ['$x b', 'g$x b', '`x` b']) expect(await doubts(text), text).to.include('known only at the run')
		for (const text of ['gaa *.b', 'gaa +(b)', '[ a = b ]', '[[ a = b* ]]', 'X=$y', 'a[1]=$y'])
			expect(await doubts(text), text).to.equal('')
	})

	it('a changed HOME or PWD is a doubt, wherever it stands', async () => {
		for (const text of [
			'HOME=/x; cat ~/a',
			'HOME+=x cat ~/a',
			'true; HOME=/x',
			'x && export HOME=/y',
			'for HOME in /x; do a; done',
		])
			expect(await doubts(text), text).to.include('it changes HOME')
		for (const text of [
			'cd s; cat $PWD/a',
			'cd s && cat ${PWD}/a',
			'pushd s; cat ~+/a',
			'PWD=/x; cat $PWD/a',
			'popd; cat $PWD/a',
		])
			expect(await doubts(text), text).to.include('it uses PWD after a change of the folder')
		for (const text of ['for PWD in /x; do a; done', '((PWD=1))'])
			expect(await doubts(text), text).to.include('it changes PWD')
		for (const text of ['cat $PWD/a', 'cd s; cat a', 'echo home', 'cat ~+/a'])
			expect(await doubts(text), text).to.equal('')
	})

	it('a command in text that is evaluated later is seen, and asked about', async () => {
		for (const evaluation of [
			...['-eq', '-ne', '-lt', '-le', '-gt', '-ge'].map((operator) => `[[ x ${operator} 1 ]]`),
			...[
				'let x',
				'unset x',
				'read x',
				'wait -p x',
				'test -v x',
				'[ -v x ]',
				'printf -v x y',
				'[[ -v x ]]',
				'[[ -R x ]]',
			],
			...['declare', 'typeset', 'local', 'export', 'readonly'].flatMap((name) => [`${name} -i x=y`, `${name} x[y]=1`]),
			...['((x))', 'echo $((x))', 'for ((i=x;;)); do a; done', 'echo ${!x}', 'echo ${x:y}', 'echo ${x[y]}', 'x[y]=1'],
		]) {
			const text = `x='$(gaa b)'; ${evaluation}`
			expect(await sees(text), text).to.equal(true)
			expect(await doubts(text), text).to.match(/^grave: .*, and a command stands inside quoted text/m)
		}
		for (const text of [
			"(( x['$(gaa b)'] ))",
			"echo $(( x['$(gaa b)'] ))",
			"[[ 'x[$(gaa b)]' -eq 1 ]]",
			"declare -n y='x[$(gaa b)]'",
			"let 'x[`gaa b`]'",
			"cat <<'E'\n$(gaa b)\nE\nsh",
		])
			expect(await sees(text), text).to.equal(true)
		for (const text of ["x='$(gaa b)'", "x='$(gaa b)'; [[ x = 1 ]]", "x='$(gaa b)'; declare y", 'echo ${x[1]} ${x[@]}'])
			expect(await sees(text), text).to.equal(false)
		expect(await doubts("x='${y@P}'; echo ${x@P}")).to.match(/^grave: it expands a value as a prompt/m)
		expect(await doubts('echo ${x@Q}')).to.equal('')
	})

	it('variables that loops, numbers and streams set stand among the commands, names as loops have them do not', async () => {
		const sets = async (text: string) => (await words(text)).map(([first]) => first)
		for (const [text, expected] of [
			['for PATH in ./b; do a; done', 'PATH=./b'],
			['select PATH in ./b; do a; done', 'PATH=./b'],
			['for PATH do a; done', 'PATH=…'],
			...['path', 'cdpath', 'fpath', 'prompt'].map((name) => [`for ${name} in x; do a; done`, `${name}=x`]),
			['((PATH=1))', 'PATH=…'],
			['((PATH+=1))', 'PATH=…'],
			['((PATH<<=1))', 'PATH=…'],
			['((PATH[1]=1))', 'PATH=…'],
			['((PATH++))', 'PATH=…'],
			['((--PATH))', 'PATH=…'],
			['coproc PATH { a; }', 'PATH=…'],
			['a {PATH}>x', 'PATH=…'],
			['PATH=./b', 'PATH=./b'],
			['PATH=(a b)', 'PATH=…'],
			['export PATH=./b', 'export'],
		] as const)
			expect(await sets(text), text).to.include(expected)
		expect((await words('export PATH=./b x[1]=2 y+=3'))[0]).to.deep.equal(['export', 'PATH=./b', 'x[1]=2', 'y+=3'])
		for (const text of [
			'for file in x; do a; done',
			'for i in 1; do a; done',
			'((i++))',
			'coproc { a; }',
			'((PATH == 1))',
			'((-PATH))',
		])
			expect(
				(await sets(text)).filter((first) => first?.includes('=')),
				text,
			).to.deep.equal([])
	})

	it('redirections are kept with their targets, also where there is no command', async () => {
		const targets = async (text: string) =>
			(await read(text)).commands.flatMap(({ redirects }) =>
				redirects.map(({ op, target }) => `${op} ${target.replaceAll(DYNAMIC, '…')}`),
			)
		for (const [text, expected] of [
			['a > x', ['> x']],
			['> x', ['> x']],
			['X=1 > x', ['> x']],
			['{ a; } >> x', ['>> x']],
			['(a) &> x', ['&> x']],
			['a > *', ['> …']],
			['a > $x/y', ['> …/y']],
			['a > ~/x', ['> /h/x']],
			['a <<< x', []],
			['a <<E\nx\nE', []],
			['while a; do b; done < x', ['< x']],
		] as const)
			expect(await targets(text), text).to.deep.equal(expected)
		expect(await doubts('a >&-b')).to.include('grave: a closed stream has a word behind it')
		expect(await doubts('a 2>&1 >&-')).to.equal('')
	})

	it('text that only a program’s input may be is no cause of doubt; broken text is said', async () => {
		expect((await read("echo 'if (' | cat")).broken).to.equal(null)
		expect((await read('python -c \'exec("if [")\'')).broken).to.equal(null)
		expect((await read('if (')).broken).to.be.a('string')
		expect(await doubts('python -c \'exec("$x y")\'')).to.equal('')
		expect(await doubts('eval "$x"')).to.include('eval is given text that is known only at the run')
	})

	it('what cannot be read whole is read roughly, with every word that may stand before a command', async () => {
		const long = `: ${'x'.repeat(maxShellText)}`
		for (const text of [
			...[
				'then',
				'do',
				'else',
				'if',
				'while',
				'until',
				'time',
				'sudo',
				'exec',
				'command',
				'env',
				'nohup',
				'!',
				'A=1',
			].map((word) => `${long}; ${word} gaa b`),
			`${long}; env A=1 B=2 gaa b`,
			`${long} && "ga"\\a b`,
			`${long} $(gaa b)`,
			`${long} \`gaa b\``,
			`${long}\ngaa b`,
			`${long} | { gaa b; }`,
			`${'$('.repeat(20_000)}gaa b`,
			`${'( '.repeat(300)}gaa b${' )'.repeat(300)}`,
			`${'$( '.repeat(300)}gaa b${' )'.repeat(300)}`,
			'if (; gaa b',
			`echo $((${'1+'.repeat(30_000)}1)); gaa b`,
		]) {
			const found = await read(text)
			expect(
				found.commands.some((one) => one.words.join('|') === 'gaa|b'),
				text.slice(-40),
			).to.equal(true)
			expect(found.broken).to.be.a('string')
			expect(found.commands.every((one) => one.words.length > 0 || one.redirects.length > 0)).to.equal(true)
		}
		// The last word is a command even if it is one of these.
		expect((await read(`${long}; sudo`)).commands.at(-1)!.words).to.deep.equal(['sudo'])
	})

	it('too deep and too many are doubts, never an end', async () => {
		let nested = 'gaa b'
		for (let depth = 0; depth < 12; depth++) nested = `sh -c ${JSON.stringify(nested).replaceAll('$', '\\$')}`
		expect(await doubts(nested)).to.include('grave: it is nested too deeply')
		expect(await doubts(`${'nice '.repeat(30)}gaa b`)).to.include('grave: it is nested too deeply')
		expect(await doubts('a;'.repeat(25_000))).to.include('grave: it holds too many commands')
	})
})
