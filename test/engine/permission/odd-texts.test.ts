// Texts that bash, a plain sh and the parser take apart in different ways: what is read all the same, and what is a doubt.
import { expect } from 'chai'
import { plainShellTexts } from '../../../src/engine/permission/shell-plain.ts'
import { DYNAMIC, readShell } from '../../../src/engine/permission/shell-words.ts'

const read = (text: string) => readShell(text, '/h', '/w')
const programs = async (text: string) => (await read(text)).commands.map(({ words }) => words.join(' '))
const words = async (text: string) => (await read(text)).commands[0]?.words.slice(1)
const doubts = async (text: string) => (await read(text)).doubts.map(({ reason }) => reason)

describe('permission: odd texts', () => {
	it('a plain sh knows no strings with a dollar, no braces of several words, no [[, &> and ((', () => {
		for (const [text, ...expected] of [
			['gaa b "c" $x ${y} $(z) $((1)) { gbb; }'],
			["gaa $'b'", "gaa \\$'b'"],
			['gaa $"b"', 'gaa \\$"b"'],
			['gaa {b,c}', 'gaa \\{b,c}'],
			['[[ b || gaa ]]', '[ b || gaa ]]'],
			['gaa &> o', 'gaa & > o'],
			['((gaa))', '( (gaa))'],
			// In quotes, behind a backslash and in a comment they are text; the second reading minds none of that.
			["gaa '[[' {b,c}", "gaa '[[' \\{b,c}", "gaa '[' {b,c}"],
			['gaa "((" {b,c}', 'gaa "((" \\{b,c}', 'gaa "( (" {b,c}'],
			['gaa \\[[ {b,c}', 'gaa \\[[ \\{b,c}', 'gaa \\[ {b,c}'],
			['gaa "\\"((" {b,c}', 'gaa "\\"((" \\{b,c}', 'gaa "\\"( (" {b,c}'],
			['gaa # [[\n{b,c}', 'gaa # [[\n\\{b,c}', 'gaa # [\n{b,c}'],
			['gaa a#[[ {b,c}', 'gaa a#[ \\{b,c}', 'gaa a#[ {b,c}'],
			// A substitution in quotes has quotes of its own.
			['gaa "$(gbb "{b" {c,d})" [[', 'gaa "$(gbb "{b" \\{c,d})" [', 'gaa "$(gbb "{b" {c,d})" ['],
			['gaa $((1)) "{b" [[', 'gaa $((1)) "{b" ['],
			["((gaa)) '[['", "( (gaa)) '[['", "( (gaa)) '['"],
			["gaa &> o '[['", "gaa & > o '[['", "gaa & > o '['"],
			['gaa "$(gbb $((1)) "{b" {c,d})" [[', 'gaa "$(gbb $((1)) "{b" \\{c,d})" [', 'gaa "$(gbb $((1)) "{b" {c,d})" ['],
			['(gaa "{b") [[', '(gaa "{b") ['],
			// A here-document's stray quote leads the first reading astray.
			["gaa <<E\nit's\nE\n((gbb))", "gaa <<E\nit's\nE\n( (gbb))"],
		] as [string, ...string[]][])
			expect(plainShellTexts(text), text).to.deep.equal(expected)
	})

	it('what such a shell evaluates is read as it reads, however deep', async () => {
		expect(await programs("sh -c 'eval gaa {b,c}'")).to.include.members(['gaa b c', 'gaa {b,c}'])
		expect(await programs("bash -c 'eval gaa {b,c}'")).not.to.include('gaa {b,c}')
		expect(await programs('sh -c "eval \'gaa {b,c}\'"')).to.include.members(['gaa b c', 'gaa {b,c}'])
		expect(await programs("sh -c 'gaa'; eval 'gbb {b,c}'")).not.to.include('gbb {b,c}')
		expect(await programs("sh -c 'eval gaa $'\\''t\\x61b'\\'''")).to.include(`gaa ${DYNAMIC}x61b`)
	})

	it('a file that a shell runs is a command of its own', async () => {
		expect(await programs('sh -e ./d.sh b')).to.deep.equal(['sh -e ./d.sh b', './d.sh b'])
		expect(await programs('bash d.sh b')).to.deep.equal(['bash d.sh b', 'd.sh b', './d.sh b'])
		// A plain sh hands a sourced file no arguments.
		expect(await programs('. /x/d.sh b')).to.deep.equal(['. /x/d.sh b', '/x/d.sh b', '/x/d.sh'])
		expect(await programs('source /x/d.sh')).to.deep.equal(['source /x/d.sh', '/x/d.sh'])
	})

	it('expansions between the brackets of a pattern are unknown text, patterns without are as they stand', async () => {
		expect(await words('gaa [a$b]? @(a|$X) [a{b,c}] [ab]')).to.deep.equal([`${DYNAMIC}?`, DYNAMIC, DYNAMIC, '[ab]'])
		expect(await words('gaa @(a|b) [`gbb`]')).to.deep.equal(['@(a|b)', DYNAMIC])
	})

	it('braces that the parser does not see, or whose words mean more, are unknown text', async () => {
		for (const text of ['{a},b}', 'x{},y}', '{a,b}{c},d}', '{a,~}', '{a,*}', '{a,b?}', '{a,[b]}'])
			expect(await words(`gaa ${text}`), text).to.deep.equal([DYNAMIC])
		for (const text of ['{a,b', 'a,b}', '{ab}', '{a\\,b}', '{"a,b"}', '},{'])
			expect(await words(`gaa ${text}`), text).to.not.include(DYNAMIC)
		expect(await words('gaa {a,b}}')).to.deep.equal(['a}', 'b}'])
		// Nothing unquoted is no word, nothing quoted is one.
		expect(await words('gaa {a,}')).to.deep.equal(['a'])
		for (const quoted of ['""', "''", '$""', "$''"])
			expect(await words(`gaa {a,}${quoted}`), quoted).to.deep.equal(['a', ''])
	})

	it('strings that bash decodes in ways of its own are unknown text', async () => {
		for (const text of ["$'a\\x{61}'", "$'\\uD800'", "$'\\ud800'", "$'\\U110000'", "$'a\\\nb'"])
			expect(await words(`gaa ${text}`), text).to.deep.equal([DYNAMIC])
		expect(await words("gaa $'\\x61\\u0062\\n'")).to.deep.equal(['ab\n'])
	})

	it('a line that goes on between two marks is a doubt, at a blank and within a word it is none', async () => {
		for (const text of [
			'gbb $\\\n(gaa)',
			'gbb $X\\\nY',
			'gbb ${\\\nX:-$(gaa)}',
			'gbb ${X\\\n:-$(gaa)}',
			'gbb ${X:-${Y}\\\n}',
			'gbb <\\\n(gaa)',
			'(\\\n( 1 ))',
			'gbb 2\\\n>o',
			'gbb ~\\\n/x',
			'gaa b\\',
			'gaa b\\\\\\',
		])
			expect(await doubts(text), JSON.stringify(text)).to.include('a line goes on in the middle of a mark')
		expect(await doubts("eval 'gbb $\\\n(gaa)'")).to.include('a line goes on in the middle of a mark')
		for (const text of [
			'gaa \\\n  --b |\\\n  gbb && \\\n{ gcc; }',
			'ga\\\na',
			'gaa ${x} \\\n}',
			'gaa ${x}\\\n b',
			'gaa a/\\\nb',
			"gaa '$X' \\\nb",
			'gaa b\\\\',
			'gaa b\\\\\ngbb',
		])
			expect(await doubts(text), JSON.stringify(text)).to.deep.equal([])
	})

	it('more text behind an array, a word that hides its parts, a $$ before a bracket in quotes are doubts', async () => {
		for (const text of ['a=($(gaa))b', 'a[1]=(b)c', 'a+=($(gaa))\\\n', 'declare -a a=($(gaa))b']) {
			expect(await doubts(text), text).to.include('more text stands behind an array')
			if (text.includes('gaa')) expect(await programs(text), text).to.include('gaa')
		}
		expect(await doubts('a=($(gaa))b')).to.include('a word could not be taken apart')
		for (const text of ['a=(b $(gaa))', 'a="(b)"', "gaa 'a=(b)c'", 'gaa "a=(b)c"'])
			expect(await doubts(text), text).to.deep.equal([])
		for (const text of ['gaa "$$(b"', 'gaa "$${b}"', 'gaa "x $$[b]"'])
			expect(await doubts(text), text).to.include('a $$ stands before a bracket in a quoted text')
		for (const text of ['gaa $$', 'gaa "$$"', 'gaa "$$-(b)"', "gaa '$$(b)'"])
			expect(await doubts(text), text).to.deep.equal([])
	})

	it('numbers alone evaluate nothing', async () => {
		for (const text of ["gaa $((1+2)) '$(gbb)'", "gaa $[1] '$(gbb)'", "((1)); gaa '$(gbb)'"])
			expect(await doubts(text), text).to.deep.equal([])
		for (const text of [
			"gaa $((x)) '$(gbb)'",
			"gaa $((1+$1)) '$(gbb)'",
			"((`gbb`)); gaa '$(gbb)'",
			"for ((i=0;i<1;i++)); do gaa '$(gbb)'; done",
		])
			expect(await doubts(text), text).not.to.deep.equal([])
	})
})
