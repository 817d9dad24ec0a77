// A fixed sample of the negative control (`npm run control` is the whole): what is taken away is noticed, and nothing else is.
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { elements } from './elements.ts'
import { Copy } from './mutate.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** One of each kind; each by a piece of its id. */
const sample = [
	['sandbox/names.ts', "'.ssh'"],
	['sandbox/bubblewrap.ts', "'--cap-drop', 'ALL'"],
	['sandbox/seccomp.ts', ' 101'],
	['files/sensitive.ts', "'.netrc'"],
	['permission/shell-', ' xargs: {'],
	['permission/shell-', ' find: (args)'],
	['permission/shell-words.ts', "'HereDoc'"],
	['permission/decide-bash.ts', 'if (shell.broken !== null)'],
] as const

// A mutated copy tests itself with everything but this.
const inside = process.env.GARUDA_CONTROL !== undefined
;(inside ? describe.skip : describe)('control: a sample', function () {
	this.timeout(60_000)
	const all = elements(root)
	let copy: Copy
	before(() => {
		copy = new Copy(root)
	})
	after(() => copy.close())

	it('the list is made from the source and holds every kind', () => {
		expect(all.length).to.be.at.least(1_000)
		expect(new Set(all.map(({ id }) => id)).size).to.be.at.least(all.length - 20)
	})

	it('the first fitting tests are green when nothing is taken away', async () =>
		expect(await copy.unfit(['control/lists', 'engine/permission/parse-attacks'])).to.deep.equal([]))

	for (const [file, part] of sample)
		it(`without ${part.trim()} of ${file} a test fails`, async () => {
			const element = all.find(({ id, file: of }) => of.startsWith(file) && id.includes(part))
			expect(element, `no such element: ${part}`).to.not.equal(undefined)
			const { noticed } = await copy.judge(element!)
			expect(noticed).to.be.a('string')
			expect(noticed).to.not.match(/it does not load$/)
		})
})
