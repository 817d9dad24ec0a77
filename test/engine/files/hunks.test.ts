// Hunks: what is shown is what is applied, whatever subset is chosen.
import { execFileSync } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { applyHunks, countChange, hunksOf } from '../../../src/engine/files/hunks.ts'
import { applySplices, decodeText, encodeSpliced, lineSplices } from '../../../src/engine/files/text-file.ts'
import { unified } from '../../../src/engine/files/unified.ts'

const text = fc
	.array(fc.constantFrom('a', 'b', 'c', '', '  x', '\\ No newline'), { maxLength: 60 })
	.chain((lines) => fc.boolean().map((end) => lines.join('\n') + (end && lines.length ? '\n' : '')))

describe('files/hunks', () => {
	it('all hunks give the new text, none the old one, and each alone changes only its own lines', () => {
		fc.assert(
			fc.property(text, text, (old, now) => {
				const change = { old, new: now }
				const hunks = hunksOf(change)
				expect(
					applyHunks(
						change,
						hunks.map(({ index }) => index),
					),
				).to.equal(now)
				expect(applyHunks(change, [])).to.equal(old)
				for (const hunk of hunks) {
					const part = applyHunks(change, [hunk.index])
					const inner = countChange({ old, new: part })
					expect(inner.added).to.be.at.most(hunk.lines.filter((line) => line.startsWith('+')).length)
				}
				// The lines of a hunk are the file's own.
				for (const { lines, oldStart, oldLines } of hunks) {
					const shown = lines.filter((line) => line[0] === ' ' || line[0] === '-').map((line) => line.slice(1))
					const own = old.split('\n').slice(oldStart - 1, oldStart - 1 + oldLines)
					if (oldLines > 0) expect(shown).to.deep.equal(own)
				}
			}),
			{ numRuns: 300 },
		)
	})

	it('the unified text of any change is one that patch applies', async () => {
		const dir = await fs.mkdtemp(join(tmpdir(), 'garuda-diff-'))
		try {
			execFileSync('git', ['init', '-q', dir])
			for (const [old, now] of fc.sample(fc.tuple(text, text), 15)) {
				if (old === now || old === '' || now === '') continue
				await fs.writeFile(join(dir, 'f'), old!)
				const diff = unified({ path: 'f', old: old!, new: now! })
					.replace('--- f', '--- a/f')
					.replace('+++ f', '+++ b/f')
				execFileSync('git', ['-C', dir, 'apply', '--whitespace=nowarn', '-'], { input: diff })
				expect(await fs.readFile(join(dir, 'f'), 'utf8')).to.equal(now)
			}
		} finally {
			await fs.rm(dir, { recursive: true, force: true })
		}
	})

	it('a long diff is cut with a count of what is left; a new file has no old side', () => {
		const lines = Array.from({ length: 2000 }, (_, index) => `line ${index}\n`)
		const cut = unified({ path: 'f', old: null, new: lines.join('') }, 2000)
		expect(cut.length).to.be.lessThan(2300)
		expect(cut).to.match(/^--- \/dev\/null\n\+\+\+ f\n@@ -0,0 \+1,2000 @@\n\+line 0\n/)
		const shown = cut.split('\n').filter((line) => line.startsWith('+line')).length
		expect(cut).to.contain(`[… ${2000 - shown} more lines not shown …]`)
		expect(unified({ path: 'f', old: 'a\n', new: 'a\n' })).to.contain('no difference')
	})

	it('an index that no hunk has is an error', () => {
		expect(() => applyHunks({ old: 'a\n', new: 'b\n' }, [1])).to.throw(RangeError)
	})

	it('hopeless pairs end soon, give the same hunks each time, and are still right', () => {
		const make = (seed: number) => Array.from({ length: 30_000 }, (_, index) => `${(index * seed) % 7919}\n`).join('')
		const change = { old: make(31), new: make(37) }
		const hunks = hunksOf(change)
		expect(hunksOf(change)).to.deep.equal(hunks)
		const began = performance.now()
		expect(
			applyHunks(
				change,
				hunks.map(({ index }) => index),
			) === change.new,
		).to.equal(true)
		expect(performance.now() - began).to.be.lessThan(6000)
	})
})

describe('files/text-file', () => {
	const ends = fc.constantFrom('\n', '\r\n')
	const mixed = fc
		.array(fc.tuple(fc.constantFrom('a', 'b', 'ü', 'c d', ''), ends), { maxLength: 30 })
		.map((lines) => lines.map(([line, end]) => line + end).join(''))

	it('decoding and encoding without a change gives the same bytes', () => {
		fc.assert(
			fc.property(mixed, fc.constantFrom('utf8', 'utf16le', 'utf16be'), fc.boolean(), (content, encoding, mark) => {
				const bom = mark || encoding !== 'utf8' ? '\ufeff' : ''
				const bytes = encoding === 'utf8' ? Buffer.from(bom + content) : Buffer.from(bom + content, 'utf16le')
				if (encoding === 'utf16be') bytes.swap16()
				const file = decodeText(bytes, 'f')
				expect(Buffer.from(encodeSpliced(file, [])).equals(bytes)).to.equal(true)
				expect(file.text).not.to.match(/\r\n|\ufeff/)
			}),
		)
	})

	it('a change keeps the bytes of every line that it does not touch', () => {
		fc.assert(
			fc.property(mixed, mixed, (from, to) => {
				const file = decodeText(Buffer.from(from), 'f')
				const wanted = to.replaceAll('\r\n', '\n')
				const splices = lineSplices(file.text, wanted)
				expect(applySplices(file.text, splices)).to.equal(wanted)
				const after = Buffer.from(encodeSpliced(file, splices)).toString()
				expect(after.replaceAll('\r\n', '\n')).to.equal(wanted)
				// Head and tail that both share.
				let head = 0
				const [a, b] = [file.text.split(/(?<=\n)/), wanted.split(/(?<=\n)/)]
				while (head < a.length && head < b.length && a[head] === b[head]) head++
				const shared = (lines: string) =>
					lines
						.split(/(?<=\n)/)
						.slice(0, head)
						.join('')
				expect(shared(after)).to.equal(shared(from))
			}),
		)
	})
})
