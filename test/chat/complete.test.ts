import { expect } from 'chai'
import { createCompleter } from '../../src/chat/complete.ts'
import { fakeGaruda } from './fake.ts'

async function completer(complete: (prefix: string) => Promise<string[]>, late?: (line: string) => void) {
	const fake = fakeGaruda(() => {}, { complete })
	const session = await fake.garuda.open()
	return createCompleter(fake.garuda, () => session, late)
}

const files = ['a b.md', 'c (1).txt', 'foo?bar.txt', "it's.md", 'my folder/', 'plain.ts', 'say "x".md']
const byPrefix = async (prefix: string) => files.filter((name) => name.startsWith(prefix))

describe('Tab in the plain chat', () => {
	it('A01 a path with spaces or signs is completed in its quoted form, from any form it was begun in', async () => {
		const complete = await completer(byPrefix)
		for (const [line, hit, part] of [
			['look at @a', '@"a b.md"', '@a'],
			['@"a b', '@"a b.md"', '@"a b'],
			['@a\\ b', '@"a b.md"', '@a\\ b'],
			['(@c', '@"c (1).txt"', '@c'],
			['@foo', '@"foo?bar.txt"', '@foo'],
			['@it', '@"it\'s.md"', '@it'],
			['@say', '@"say \\"x\\".md"', '@say'],
			['@pl', '@plain.ts', '@pl'],
		] as const)
			expect(await complete(line), line).to.deep.equal([[hit], part])
	})

	it('A01 a folder stays open for what comes after it', async () => {
		const complete = await completer(byPrefix)
		expect(await complete('@my')).to.deep.equal([['@"my folder/'], '@my'])
	})

	it('A01 in a command of the user the last word is completed with backslashes', async () => {
		const complete = await completer(byPrefix)
		expect(await complete('!cat a\\ ')).to.deep.equal([['a\\ b.md'], 'a\\ '])
		expect(await complete('!cat pl')).to.deep.equal([['plain.ts'], 'pl'])
		expect(await complete('cat pl')).to.deep.equal([[], 'cat pl'])
		expect(await complete('mail me@a')).to.deep.equal([[], 'mail me@a'])
	})

	it('slash commands and their arguments are completed', async () => {
		const complete = await completer(byPrefix)
		expect(await complete('/he')).to.deep.equal([['/help'], '/he'])
		expect(await complete('/effort m')).to.deep.equal([['/effort medium', '/effort max'], '/effort m'])
		expect(await complete('/plan look at @pl')).to.deep.equal([['@plain.ts'], '@pl'])
	})

	it('A05 a slow folder keeps no key waiting; what it found is there for the next Tab', async () => {
		const late: string[] = []
		let answer: (paths: string[]) => void = () => {}
		const complete = await completer(
			() => new Promise((done) => (answer = done)),
			(line) => late.push(line),
		)
		const begin = performance.now()
		expect(await complete('@a')).to.deep.equal([[], '@a'])
		expect(performance.now() - begin).to.be.below(200)
		answer(['abc.ts'])
		await new Promise((done) => setImmediate(done))
		expect(late).to.deep.equal(['@a'])
		expect(await complete('@a')).to.deep.equal([['@abc.ts'], '@a'])
	})

	it('A05 a great many hits are bounded, and an error is no completion', async () => {
		const many = await completer(async () => Array.from({ length: 100_000 }, (_, i) => `f${i}`))
		expect((await many('@f'))[0]).to.have.length(60)
		const broken = await completer(() => Promise.reject(new Error('EIO')))
		expect(await broken('@f')).to.deep.equal([[], '@f'])
	})

	it('command files are completed after the built-in ones, with a blank where they take arguments', async () => {
		const file = { description: '', hint: '', source: 'user' as const, path: '~/x.md' }
		const commands = [
			{ ...file, name: 'compare', hint: '<a> <b>' },
			{ ...file, name: 'web:compile' },
		]
		const fake = fakeGaruda(() => {}, { commands: { commands, problems: [] } })
		const session = await fake.garuda.open()
		const complete = createCompleter(fake.garuda, () => session)
		expect(await complete('/comp')).to.deep.equal([['/compact', '/compare '], '/comp'])
		expect(await complete('/web:')).to.deep.equal([['/web:compile'], '/web:'])
		expect(await complete('/compare x')).to.deep.equal([[], '/compare x'])
	})
})
