import { expect } from 'chai'
import fc from 'fast-check'
import { createTextFilter, safeText } from '../../src/chat/safe-text.ts'

const esc = '\u001b'
/** Everything a terminal could act on. */
const active = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

const split = (text: string, at: number): string => {
	const filter = createTextFilter()
	return filter.push(text.slice(0, at)) + filter.push(text.slice(at)) + filter.end()
}

describe('text on its way to a terminal', () => {
	it('term-01 an OSC 52 clipboard write is removed, with BEL, with ST and in its 8-bit form', () => {
		for (const text of [
			`a${esc}]52;c;Y3VybA==\u0007b`,
			`a${esc}]52;c;Y3VybA==${esc}\\b`,
			'a\u009d52;c;Y3VybA==\u009cb',
		])
			expect(safeText(text)).to.equal('ab')
	})

	it('term-02 an OSC 8 link with another target leaves only its words', () => {
		expect(safeText(`see ${esc}]8;;https://evil.example\u0007docs${esc}]8;;\u0007.`)).to.equal('see docs.')
		expect(safeText(`see ${esc}]8;id=1;https://evil.example${esc}\\docs${esc}]8;;${esc}\\`)).to.equal('see docs')
	})

	it('term-03 a title and a title report are removed', () => {
		expect(safeText(`${esc}]0;x\u0007${esc}[21t!`)).to.equal('!')
		expect(safeText(`${esc}P$q"p${esc}\\${esc}[c${esc}[6n!`)).to.equal('!')
	})

	it('term-04 a colour or a cursor move cannot rewrite what stands on the screen', () => {
		expect(safeText(`deny${esc}[4D${esc}[8mallow${esc}[0m`)).to.equal('denyallow')
		expect(safeText(`rm -rf /${esc}[2K${esc}[Gls`)).to.equal('rm -rf /ls')
	})

	it('term-05 a carriage return hides nothing: it is shown, and a CRLF is a line end', () => {
		expect(safeText('rm -rf ~\rls      ')).to.equal('rm -rf ~␍ls      ')
		expect(safeText('a\r\nb\r\r\nc')).to.equal('a\nb\nc')
		expect(split('a\r\nb', 2)).to.equal('a\nb')
		expect(split('a\rb', 2)).to.equal('a␍b')
		expect(safeText('end\r')).to.equal('end␍')
	})

	it('term-06 a sequence cut at any place between two chunks is removed as if it came whole', () => {
		const samples = [
			`x${esc}]52;c;Y3VybA==\u0007y`,
			`x${esc}]8;;https://e${esc}\\y`,
			`x${esc}[?1049hy`,
			`x${esc}_Gf=24;AAAA${esc}\\y`,
			`x${esc}(By`,
			'x\u009b31my',
		]
		for (const text of samples)
			for (let at = 0; at <= text.length; at++)
				expect(split(text, at), `${JSON.stringify(text)} at ${at}`).to.equal('xy')
	})

	it('term-07 hidden and direction-changing characters are written out', () => {
		expect(safeText('a\u202eb\u2066c')).to.equal('a[U+202E]b[U+2066]c')
		expect(safeText('pay\u200bload \u{e0041}')).to.equal('pay[U+200B]load [U+E0041]')
	})

	it('term-08 alternate screen, mouse, bracketed paste, kitty graphics and the bell are removed or shown', () => {
		const text = `a${esc}[?1049h${esc}[?1000h${esc}[?2004l${esc}_Gf=100,a=T;AAAA${esc}\\${esc}[>1u${esc}cb\u0007`
		expect(safeText(text)).to.equal('ab␇')
		expect(safeText(`${esc}Ptmux;${esc}${esc}]52;c;eA==\u0007${esc}\\z`)).to.not.match(active)
	})

	it('an OSC without an end hides no more than its own line', () => {
		expect(safeText(`a${esc}]0;title and more\nthe next line`)).to.equal('a\nthe next line')
	})

	it('emoji and joining scripts keep what they need; the same characters elsewhere are shown', () => {
		const woman = '👩\u200d💻'
		expect(safeText(`⚠\ufe0f ok ${woman} 1\ufe0f\u20e3`)).to.equal(`⚠\ufe0f ok ${woman} 1\ufe0f\u20e3`)
		expect(safeText('می\u200cخواهم')).to.equal('می\u200cخواهم')
		expect(safeText('ab\u200dcd\ufe0f')).to.equal('ab[U+200D]cd[U+FE0F]')
		expect(safeText('⚠\ufe0f\ufe0f\ufe0f')).to.equal('⚠\ufe0f[U+FE0F][U+FE0F]')
		expect(split(woman, 2)).to.equal(woman)
		expect(split('😀', 1)).to.equal('😀')
	})

	it('no text, cut anywhere, lets an active character through, and plain text stays as it is', () => {
		const piece = fc.oneof(
			fc.constantFrom(esc, '[', ']', 'P', '_', '\\', '\u0007', '\u009b', '\u009c', '\r', '\n', ';', '1', 'h', '\u0018'),
			fc.string(),
		)
		fc.assert(
			fc.property(fc.array(piece, { maxLength: 12 }), fc.nat(), (pieces, n) => {
				const text = pieces.join('')
				const out = split(text, text.length === 0 ? 0 : n % (text.length + 1))
				return !active.test(out) && out === safeText(text)
			}),
			{ numRuns: 300 },
		)
		fc.assert(
			fc.property(
				fc.array(fc.constantFrom(...'abc äöü 漢字\n\t')),
				(chars) => safeText(chars.join('')) === chars.join(''),
			),
			{ numRuns: 50 },
		)
	})

	it('costs little for each piece of a reply', () => {
		const filter = createTextFilter()
		const begin = process.hrtime.bigint()
		for (let i = 0; i < 20_000; i++) filter.push('some words of text ')
		const each = Number(process.hrtime.bigint() - begin) / 20_000
		expect(each).to.be.below(8000)
	})
})
