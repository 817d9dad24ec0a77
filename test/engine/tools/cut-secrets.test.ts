// Where a tool shows a part of a text, no part of a key is left at the edge: it would no longer be known as one.
import { expect } from 'chai'
import { createRedactor } from '../../../src/engine/config/redact.ts'
import { cutWords, wordEnd, wordStart } from '../../../src/engine/files/tokens.ts'
import { LineBuffer } from '../../../src/engine/sandbox/daemons.ts'
import { lineProgress } from '../../../src/engine/tools/command-output.ts'
import { fakeExecutor, type Scene, scene } from './scene.ts'

const secret = `canary${'q7W3'.repeat(12)}end`
const pieces = (text: string): string[] =>
	Array.from({ length: secret.length - 11 }, (_, at) => secret.slice(at, at + 12)).filter((one) => text.includes(one))

describe('tools: what is cut and secret', () => {
	let one: Scene
	const begin = async (output = '', findings: string[] = []): Promise<Scene> => {
		one = await scene({ executor: fakeExecutor(() => ({ output, findings })) })
		const redactor = createRedactor('seed')
		redactor.add('CANARY', secret)
		one.ctx.redactor = redactor
		return one
	}
	const result = async (name: string, input: Record<string, unknown>): Promise<string> =>
		one.ctx.redactor.redact((await one.call(name, input)).text)
	afterEach(() => one.close())

	it('secret-04 an output that is cut in the middle of a known value shows no half of it', async () => {
		for (const before of [14_200, 14_220, 14_240]) {
			await begin(`${'y '.repeat(before / 2)}${secret} ${'z '.repeat(9_000)}${secret} ${'y '.repeat(7_110)}`)
			const text = await result('bash', { command: 'x' })
			expect(text).to.include('characters left out here')
			expect(pieces(text), `${before}`).to.deep.equal([])
			await one.close()
		}
		await begin()
	})

	it('secret-04 what a command planted under a known value is named by its mark, for programs too', async () => {
		await begin('', [`/root/${secret}/.envrc is new`])
		const { data } = await one.call('bash', { command: 'x' })
		expect(JSON.stringify(data)).to.include('[redacted:canary:')
		expect(pieces(JSON.stringify(data))).to.deep.equal([])
	})

	it('secret-04 a long line that is cut in a key shows none of it, in read_file and around a match of grep', async () => {
		await begin()
		for (const before of [1950, 1970, 1990]) {
			await one.put('long.txt', `${'y '.repeat(before / 2)}"${secret}" ${'z '.repeat(2000)}\nshort\n`)
			expect(pieces(await result('read_file', { path: 'long.txt' })), `${before}`).to.deep.equal([])
		}
		await one.put('match.js', `${'a,'.repeat(400)}x="${secret}",needle,y="${secret}"${',b'.repeat(400)}\n`)
		for (const fill of [60, 80, 100]) {
			await one.put(
				'match.js',
				`${'a,'.repeat(400)}x="${secret}"${','.repeat(fill)}needle${','.repeat(fill)}"${secret}"${',b'.repeat(400)}\n`,
			)
			const text = await result('grep', { pattern: 'needle' })
			expect(text).to.include('needle')
			expect(pieces(text), `${fill}`).to.deep.equal([])
		}
		await one.put('match.js', `needle\n${'c,'.repeat(190)}"${secret}"${',d'.repeat(200)}\n`)
		expect(pieces(await result('grep', { pattern: 'needle', context: 1 }))).to.deep.equal([])
	})

	it('secret-04 a line of a background process that is cut in a key shows none of it', async () => {
		await begin()
		const buffer = new LineBuffer(10)
		buffer.push(`${'y '.repeat(985)}${secret} and more\nnext\n`)
		const { lines } = buffer.last(5)
		expect(lines).to.have.length(2)
		expect(lines[0]).to.have.length.below(2002)
		expect(pieces(lines.join('\n'))).to.deep.equal([])
	})

	it('secret-04 of a known value that comes in pieces no piece is shown while its line is open', async () => {
		await begin()
		let time = 0
		const told: string[] = []
		const progress = lineProgress(
			{ progress: (text) => told.push(one.ctx.redactor.redact(text)) },
			() => (time += 1_000),
		)
		for (const part of ['loading 10%', ' 20% ', secret.slice(0, 20), secret.slice(20, 45), secret.slice(45), ' done\n'])
			progress.take(part)
		for (let count = 0; count < 3; count++) progress.take(`${'y '.repeat(2_010)}${secret}`)
		progress.end()
		expect(told[1]).to.equal('\rloading 10% 20% ')
		expect(told.join('\n')).to.include('[redacted:canary:').and.to.include(' done')
		expect(pieces(told.join('\n'))).to.deep.equal([])
	})

	it('a text is cut between words; data longer than any key is cut where it must be', async () => {
		await begin()
		expect(cutWords('one two-three', 10)).to.equal('one ')
		expect(cutWords('one two', 7)).to.equal('one two')
		expect(cutWords('one two,three', 8)).to.equal('one two,')
		expect(cutWords('x'.repeat(3000), 2000)).to.have.length(2000)
		expect(cutWords(`ab \u{1f600}`, 4)).to.equal('ab ')
		expect([wordStart('a bcd e', 4), wordEnd('a bcd e', 4)]).to.deep.equal([2, 5])
		expect([wordStart('a b', 1), wordEnd('a b', 2), wordEnd('abc', 0)]).to.deep.equal([1, 2, 0])
	})
})
