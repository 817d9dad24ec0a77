// Generated commands against bash: every program that really starts was seen by the reading that the rules use, or it is unsure.
import { expect } from 'chai'
import { readShell } from '../../../src/engine/permission/shell-words.ts'
import { Grammar } from './differential-grammar.ts'
import { type Outcome, Runner } from './differential-run.ts'

const long = process.env.GARUDA_LONG !== undefined
const count = long ? 100_000 : 2_000
const seed = Number(process.env.GARUDA_SEED ?? 20_261_130)

describe('permission: differential', () => {
	let runner: Runner
	before(() => {
		runner = new Runner()
	})
	after(() => runner.close())

	it(`${count.toLocaleString('en')} generated commands: nothing that bash starts was missed`, async function () {
		this.timeout(long ? 0 : 120_000)
		const total: Outcome = { texts: 0, started: 0, unsure: 0, misses: [] }
		const grammar = new Grammar(seed)
		for (let done = 0; done < count; done += 2_000) {
			const part = await runner.compare(Array.from({ length: Math.min(2_000, count - done) }, () => grammar.text()))
			total.texts += part.texts
			total.started += part.started
			total.unsure += part.unsure
			total.misses.push(...part.misses)
			if (long) {
				console.log(
					`${total.texts} texts, ${total.started} programs started, ${total.unsure} unsure, ${total.misses.length} missed`,
				)
				for (const miss of part.misses) console.log(JSON.stringify(miss))
			}
		}
		const share = (100 * total.unsure) / total.texts
		console.log(`      ${total.started} programs started; unsure: ${share.toFixed(1)} % of the generated commands`)
		expect(total.misses.slice(0, 20)).to.deep.equal([])
		expect(total.misses.length).to.equal(0)
		expect(total.started).to.be.greaterThan(count)
		expect(share).to.be.at.most(15)
	})
	it('a shell behind options that take a word, or behind a double hyphen, is read', async () => {
		for (const text of [
			"bash -o pipefail -c 'gaa b'",
			"bash -euo pipefail -c 'gaa b'",
			"bash -c -- 'gaa b'",
			"bash -co pipefail 'gaa b'",
			"bash +O extglob -c +o posix 'gaa b'",
			"sh -c -e -- 'gaa b' name",
		]) {
			const read = await readShell(text, '/home/nobody')
			expect(
				read.commands.map(({ words }) => words.join(' ')),
				text,
			).to.include('gaa b')
			const { misses, started } = await runner.compare([text])
			expect(misses, text).to.deep.equal([])
			expect(started, text).to.be.greaterThan(1)
		}
	})

	it('a program that was not read is found as a miss', async () => {
		const { misses } = await runner.compare(['gaa b'], async () => readShell('gbb b'))
		expect(misses).to.deep.equal([{ text: 'gaa b', argv: ['gaa', 'b'] }])
	})

	it('reading takes linear time: twice the text at most 2.5 times as long', async () => {
		const best = async (size: number) => {
			const text = 'git log --format="%h $x" | grep -v a && echo $(date) > b; '
				.repeat(Math.ceil(size / 58))
				.slice(0, size)
			let least = Number.POSITIVE_INFINITY
			for (let round = 0; round < 12; round++) {
				const begun = performance.now()
				await readShell(text, '/home/nobody')
				least = Math.min(least, performance.now() - begun)
			}
			return least
		}
		await best(60_000)
		await best(200_000)
		for (const [small, large] of [
			[30_000, 60_000],
			[100_000, 200_000],
		] as const) {
			const [half, whole] = [await best(small), await best(large)]
			expect(whole, `${small}: ${half} ms, ${large}: ${whole} ms`).to.be.at.most(2.5 * half)
		}
	})
})
