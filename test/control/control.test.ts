// A fixed sample of the negative control (`npm run control` is the whole): what is taken away is noticed, and nothing else is.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { alternatives } from './alternatives.ts'
import { type Element, elements } from './elements.ts'
import { Copy } from './mutate.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const permission = 'engine/permission/'
/** One of each kind: the file, a piece of the id, and the test that must notice. */
const sample = [
	['a name', 'sandbox/names.ts', "homeSecrets '.ssh'", 'engine/sandbox/masks'],
	['a variable', 'sandbox/names.ts', 'envFixed PAGER:', 'engine/sandbox/masks'],
	['a flag', 'sandbox/bubblewrap.ts', "'--cap-drop', 'ALL'", 'engine/sandbox/flags'],
	['a number of a call', 'sandbox/seccomp.ts', 'calls 101', 'engine/sandbox/filter'],
	['a rule of the filter', 'sandbox/seccomp.ts', 'when(table.clone3,', 'engine/sandbox/filter'],
	['a setting of git', 'sandbox/git.ts', "['core.fsmonitor', 'false']", 'engine/sandbox/git-asked'],
	['a variable of git', 'sandbox/git.ts', 'GIT_SSH_COMMAND:', 'engine/sandbox/git-asked'],
	['a path', 'files/sensitive.ts', "secretNames '.netrc'", 'engine/files/sensitive'],
	['a pattern of paths', 'files/sensitive.ts', '|pem|', 'engine/files/sensitive'],
	['a range of addresses', 'net/addresses.ts', '[0xa9fe0000, 16]', 'engine/net/addresses'],
	['a program that starts others', 'permission/shell-wrappers.ts', 'wrappers sudo:', `${permission}inner-words`],
	['an option that takes a word', 'permission/shell-wrappers.ts', 'valued -u of sudo', `${permission}inner-words`],
	['a reader of a program', 'permission/shell-inner.ts', 'special find:', `${permission}inner-words`],
	['an option that holds a command', 'permission/shell-inner.ts', "'--rsh' of rsync", `${permission}inner-words`],
	['a key of git', 'permission/shell-inner.ts', '|sshcommand|', `${permission}inner-words`],
	['a kind of text', 'permission/shell-words.ts', "case 'HereDoc'", `${permission}words`],
	['a file that is written', 'permission/command-paths.ts', "everyPlain 'tee'", `${permission}paths`],
	['a condition', 'permission/decide-bash.ts', 'if (sandboxed || once', `${permission}effects`],
	['a choice', 'permission/decide.ts', 'inside ?', `${permission}effects`],
] as const

// A mutated copy tests itself with everything but this.
const inside = process.env.GARUDA_CONTROL !== undefined
;(inside ? describe.skip : describe)('control: a sample', function () {
	this.timeout(60_000)
	const all = elements(root)
	const find = (file: string, part: string): Element => {
		const found = all.find((one) => one.file === file && one.id.includes(part))
		if (!found) throw new Error(`no such element: ${file} ${part}`)
		return found
	}
	let copy: Copy
	before(() => {
		copy = new Copy(root)
	})
	after(() => copy.close())

	it('the list is made from the source, each element by a name of its own', () => {
		expect(all.length).to.be.at.least(2_000)
		expect(new Set(all.map(({ id }) => id)).size).to.equal(all.length)
		for (const { id, tests } of all) expect(tests.at(-1), id).to.equal('control/lists')
	})

	it('each entry of the second walls names elements that there are', () => {
		const entries = JSON.parse(readFileSync(new URL('second-walls.json', import.meta.url), 'utf8')) as {
			[id: string]: { with?: string[] }
		}
		const ids = new Set(all.map(({ id }) => id))
		for (const [id, { with: others = [] }] of Object.entries(entries))
			for (const one of [id, ...others]) expect(ids.has(one), one).to.equal(true)
	})

	it('the alternatives of a pattern are found with their bars', () => {
		const left = (literal: string) =>
			alternatives(literal).map(({ from, to }) => literal.slice(0, from) + literal.slice(to))
		expect(left('/^(?:ab|cd|ef)$/i')).to.deep.equal(['/^(?:cd|ef)$/i', '/^(?:ab|ef)$/i', '/^(?:ab|cd)$/i'])
		expect(left('/^ab(?=x)|cd[|(]\\|$/')).to.deep.equal(['/cd[|(]\\|$/', '/^ab(?=x)/'])
		expect(left('/(a|b)/')).to.deep.equal([])
	})

	it('the tests are green when nothing is taken away', async () =>
		expect(await copy.unfit([...new Set(sample.map(([, , , test]) => test))])).to.deep.equal([]))

	for (const [kind, file, part, test] of sample)
		it(`without ${kind} (${part}) a test fails`, async () => {
			const { noticed, loads } = await copy.judge([find(file, part)], [test])
			expect(noticed?.test).to.equal(test)
			expect(loads).to.equal(true)
		})

	it('a second wall holds alone, and without both a test fails', async () => {
		const one = find('permission/command-paths.ts', "outputs '--output' of")
		const other = find('permission/command-paths.ts', "outputs '--output-file' of")
		const probe = [`${permission}paths`]
		expect((await copy.judge([one], probe)).noticed).to.equal(null)
		expect((await copy.judge([one, other], probe)).noticed).to.not.equal(null)
		// The copy is whole again.
		expect((await copy.judge([], probe)).noticed).to.equal(null)
	})
})
