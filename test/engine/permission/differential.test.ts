// Generated commands against bash: every program that really starts was seen by the reading that the rules use, or it is unsure.
import { expect } from 'chai'
import { readShell } from '../../../src/engine/permission/shell-words.ts'
import { groups } from '../sandbox/ordinary.ts'
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
	it('texts that were once missed: options of shells, what only a plain sh runs, variables of env, a trap', async () => {
		for (const text of [
			"bash -o pipefail -c 'gaa b'",
			"bash -euo pipefail -c 'gaa b'",
			"bash -c -- 'gaa b'",
			"bash -co pipefail 'gaa b'",
			"bash +O extglob -c +o posix 'gaa b'",
			"sh -c -e -- 'gaa b' name",
			"bash +xc 'gaa b'",
			"sh -c '((gaa b))'",
			"sh -c 'gbb &> o gaa b'",
			"sh -c '[[ a || gaa b ]]'",
			"sh -c \"gbb \\$'\\\\'; gaa b # '\"",
			'<&-gaa b',
			'>&-gaa b',
			'env \r=1 a-b=2 gaa b',
		]) {
			const read = await readShell(text, '/home/nobody')
			expect(
				[...read.commands.map(({ words }) => words.slice(0, 2).join(' ')), ...read.doubts.map(({ reason }) => reason)],
				text,
			).to.satisfy((all: string[]) => all.includes('gaa b') || all.includes('a closed stream has a word behind it'))
			const { misses, started } = await runner.compare([text])
			expect(misses, text).to.deep.equal([])
			expect(started, text).to.be.greaterThan(0)
		}
	})

	it('texts that were once missed: patterns, lines that go on, strings and braces in odd forms, files that a shell runs', async () => {
		for (const text of [
			'gaa [a$b]? x',
			"bash -O extglob -c 'gaa @(a|$X) b'",
			"sh -c 'eval gaa $'\\''t\\x61b'\\'' x/y'",
			"sh -c \"gaa '[[' \\$'b' {a,b}\"",
			'sh -c "eval gaa {a,b} c"',
			'sh -c "eval \'gaa {a,b} <<E\nE\'"',
			'gaa "${\\\nX:-$(gbb)}"',
			'gaa ${X\\\n:-$(gbb)}',
			'gaa $H\\\nOME/a',
			'gaa <\\\n(gbb)',
			'gaa 2\\\n>o',
			'gaa "$$(g""no \'\n\')}"',
			"gaa $'\\x{61 b' .",
			"gaa $'\\U110000'",
			'gaa {a},b}',
			'x=($(gaa))y',
			'x=($(gaa a))\\\n',
			'gaa {a,b}{c},d}',
			'gaa {a,~}',
			'bash gaa -c b',
			"sh -c '. gaa % [ab]? !'",
		]) {
			const { misses, started } = await runner.compare([text])
			expect(misses, text).to.deep.equal([])
			expect(started, text).to.be.greaterThan(0)
		}
		const programs = async (text: string) =>
			(await readShell(text, '/home/nobody')).commands.map(({ words }) => words.join(' '))
		expect(await programs('sh ./deploy.sh a')).to.deep.equal(['sh ./deploy.sh a', './deploy.sh a'])
		expect(await programs('. deploy.sh a')).to.include.members(['deploy.sh a', './deploy.sh a', './deploy.sh'])
		expect((await readShell('{g?a,x} y')).doubts).not.to.deep.equal([])
		expect((await readShell("echo $((1+2)) '$(gaa)'")).doubts).to.deep.equal([])
		expect((await readShell("echo $((x+2)) '$(gaa)'")).doubts).not.to.deep.equal([])
		expect((await readShell('gaa |\\\n  gbb && \\\n gno')).doubts).to.deep.equal([])
	})

	it('ordinary commands are read with certainty: unsure on at most 2 %', async () => {
		const all = groups.flatMap(({ commands }) => commands)
		const read = await Promise.all(all.map((text) => readShell(text, '/home/nobody')))
		const unsure = all.filter((_, index) => read[index]!.broken !== null || read[index]!.doubts.length > 0)
		expect(all.length).to.be.at.least(200)
		expect(unsure.length, unsure.join('\n')).to.be.at.most(0.02 * all.length)
	})

	it('a doubt within the text of a trap is a doubt', async () => {
		for (const text of ["trap '$x' EXIT", "trap 'gaa | sh' EXIT", "trap '. /dev/stdin <<< gaa' EXIT"])
			expect((await readShell(text)).doubts, text).not.to.deep.equal([])
		expect((await readShell("trap 'rm a' EXIT; trap - INT; trap '' HUP")).doubts).to.deep.equal([])
	})

	it('a program that was not read is found as a miss', async () => {
		const { misses } = await runner.compare(['gaa b'], async () => readShell('gbb b'))
		expect(misses).to.deep.equal([{ text: 'gaa b', argv: ['gaa', 'b'] }])
	})

	it('reading takes linear time: twice the text at most 2.5 times as long', async () => {
		const text = 'git log --format="%h $x" | grep -v a && echo $(date) > b; '.repeat(4_000)
		const time = async (size: number) => {
			const part = text.slice(0, size)
			// Time of the processor: a machine with other work to do must not count as slow reading.
			const begun = process.cpuUsage()
			await readShell(part, '/home/nobody')
			const { user, system } = process.cpuUsage(begun)
			return (user + system) / 1000
		}
		for (const [small, large] of [
			[30_000, 60_000],
			[100_000, 200_000],
		] as const) {
			let half = Number.POSITIVE_INFINITY
			let whole = Number.POSITIVE_INFINITY
			// In turns, so that both meet the same noise; the first ones warm up.
			for (let round = 0; round < 40; round++) {
				half = Math.min(half, await time(small))
				whole = Math.min(whole, await time(large))
			}
			expect(whole, `${small}: ${half} ms, ${large}: ${whole} ms`).to.be.at.most(2.5 * half)
		}
	})
})
