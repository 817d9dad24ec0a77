// What is done to a log or its index at the edges: a line end, an index that means the same, nesting. Found by verify.
import { appendFile, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { one, Place, two } from './fixture.ts'

describe('audit: edges', () => {
	let at: Place
	beforeEach(async () => {
		at = await Place.make()
		for (const id of [one, two]) await at.session(id)
	})
	afterEach(() => at.remove())

	it('audit-tamper-05 the line end of the last line cut off', async () => {
		await truncate(at.file(one), (await stat(at.file(one))).size - 1)
		expect(await at.verdict(one)).to.include({ ok: false, line: 8, kind: 'cut' })
		expect(await at.verdict(two)).to.include({ ok: true })
		// A second place tells it as well as the index.
		const last = (await at.parsed(one)).at(-1)!
		await appendFile(at.file(one), '\n')
		expect(await at.verdict(one)).to.include({ ok: true })
		await truncate(at.file(one), (await stat(at.file(one))).size - 1)
		await writeFile(at.index(), (await readFile(at.index(), 'utf8')).replace('"lines":8', '"lines":7'))
		const heads = [{ session: one, lines: 8, hash: last.hash, time: '' }]
		const places = [{ name: 'w', kind: 'witness' as const, heads, damaged: 0 }]
		expect((await at.verdict(one, { places })).why).to.include('the witness w')
	})

	it('a whole line without its end that no head knows is what a killed process leaves', async () => {
		const log = await at.log('01j00000000000cc')
		await log.append({ kind: 'decision', decision: 'allow' })
		await log.turnEnd()
		await log.append({ kind: 'decision', decision: 'allow' })
		const file = at.file('01j00000000000cc')
		await truncate(file, (await stat(file)).size - 1)
		expect(await at.verdict('01j00000000000cc')).to.include({ ok: true })
		await appendFile(file, '\n')
	})

	it('an index with a name twice, another version or another type of a field is damaged', async () => {
		const text = await readFile(at.index(), 'utf8')
		const entry = text.split('\n').find((line) => line.includes(one))!
		const older = entry.replace(/,$/, '').replace('"lines":8', '"lines":3')
		for (const changed of [
			text.replace('{\n', `{\n${older},\n`),
			text.replace('\n}}', `,\n${older}\n}}`),
			text.replace('"version": 1', '"version": 2'),
			text.replace('"version": 1, ', ''),
			text.replace('"closed":true', '"closed":"true"'),
			text.replace('"closed":true', '"closed":1'),
			text.replace(/"time":"[^"]*"/, '"time":0'),
			text.replace(/"root":"[^"]*"/, '"root":null'),
			'{"version": 1, "sessions": []}',
		]) {
			expect(changed).to.not.equal(text)
			await writeFile(at.index(), changed)
			expect((await at.verify()).problems.join(), changed).to.include('damaged')
		}
		// A folder's name may look like a part of an entry.
		const odd = text.replace(/"root":"[^"]*"/, `"root":${JSON.stringify('/x/"hash": y')}`)
		await writeFile(at.index(), odd)
		expect((await at.verify()).problems).to.deep.equal([])
	})

	it('a line nested beyond the stack is the bad line, in verify and where it is shown', async () => {
		const deep = `"zz":${'['.repeat(100_000)}${']'.repeat(100_000)},"kind":`
		await at.edit(one, (lines) => lines.with(2, lines[2]!.replace('"kind":', deep)))
		expect(await at.verdict(one)).to.include({ ok: false, line: 3, kind: 'changed' })
	})
})
