// What of a page a reader does not see, in the many spellings of attributes, styles and plain rules of a style sheet.
import { expect } from 'chai'
import { cleanHtml } from '../../../src/engine/web/clean-html.ts'
import { hidingNames } from '../../../src/engine/web/hidden.ts'

const text = (html: string): string => cleanHtml(`<p>before</p>${html}<p>after</p>`, 'https://ok.example/').html

describe('web: hidden parts of a page', () => {
	it('inject-01 what an element hides by itself is left out, in any spelling', () => {
		const styles = [
			'display:/**/none',
			'DISPLAY: NONE !important',
			'd\\69splay:none',
			'display&#58;none',
			'display:block;display:none',
			'display:none!important;display:block',
			'visibility:collapse',
			'content-visibility:hidden',
			'opacity:0%',
			'opacity:.0',
			'opacity:0.01',
			'opacity:0 !important',
			'filter:opacity(0)',
			'font-size:0px!important',
			'font-size:1px',
			'font-size:.1em',
			'font-size:1%',
			'font:0/0 a',
			'font:italic 1px serif',
			'color:transparent',
			'color:rgba(0,0,0,0)',
			'color:#0000',
			'color:#fff;background:white',
			'color:rgb(255,255,255);background-color:#ffffff',
			'height:0;overflow:hidden',
			'max-height:0px;overflow-y:hidden',
			'position:absolute;width:1px;height:1px;overflow:hidden',
			'position:absolute;clip:rect(0,0,0,0)',
			'clip:rect(1px, 1px, 1px, 1px)',
			'clip-path:inset(50%)',
			'clip-path:polygon(0 0, 0 0, 0 0)',
			'position:absolute;left:-99em',
			'position:fixed;bottom:-9999px',
			'position:absolute;left:9999px',
			'margin-left:-9999px',
			'text-indent:-999px',
			'transform:translateX(-9999px)',
			'transform:scale(0)',
		]
		for (const style of styles) expect(text(`<div style="${style}">unseen</div>`), style).to.not.include('unseen')
		for (const part of [
			'<p aria-hidden=" TRUE ">unseen</p>',
			'<div popover>unseen</div>',
			'<p hidden="until-found">unseen</p>',
			'<img alt="unseen" src="/x" style="display:none">',
			'<img alt="unseen" src="/x" width="1" height="1">',
			'<noembed>unseen</noembed><noframes>unseen</noframes>',
			'<ruby>a<rp>unseen</rp></ruby>',
		])
			expect(text(part), part).to.include('after').and.not.include('unseen')
	})

	it('what is only small, moved or coloured stays', () => {
		for (const style of [
			'opacity:.6',
			'opacity:50%',
			'font-size:1em',
			'font-size:80%',
			'font-size:12px',
			'font:700 14px/1.5 serif',
			'color:#fff',
			'color:white;background:#000',
			'color:rgba(0,0,0,.8)',
			'color:#000000cc',
			'height:0',
			'height:100px;overflow:hidden',
			'position:relative;left:-5px',
			'margin:-10px',
			'transform:translateX(-50%)',
			'transform:scale(0.5)',
			'clip-path:inset(0)',
			'display:none;display:block',
			'width:100%;overflow:hidden',
			'content:"display:none"',
		])
			expect(text(`<div style='${style}'>seen</div>`), style).to.include('seen')
		expect(text('<img alt="seen" src="/x" width="100" height="80">')).to.include('seen')
	})

	it('inject-01 a class or an id that the page’s own rules hide is left out', () => {
		for (const [sheet, part] of [
			['.x{display:none}', '<p class="a x">unseen</p>'],
			['/* .x{} */ p.y , .x { visibility : hidden }', '<p class="x">unseen</p>'],
			['#z{position:absolute;left:-9999px}', '<p id="z">unseen</p>'],
			['.x{color:red}.x{display:none!important}', '<p class="x">unseen</p>'],
			['@media screen{.q{color:red}}.x{opacity:0}', '<p class="x">unseen</p>'],
			['@import url(x.css); .a{color:red} .x{display:none}', '<p class="x">unseen</p>'],
		] as const) {
			expect(text(`<STYLE type="text/css">${sheet}</STYLE>${part}`), sheet).to.not.include('unseen')
			expect(text(`${part}<style>${sheet}</style>`), `${sheet} behind it`).to.not.include('unseen')
		}
	})

	it('rules under a condition, and what a longer rule shows again, hide nothing', () => {
		for (const [sheet, part] of [
			['@media print{.x{display:none}}', '<p class="x">seen</p>'],
			['@media print{.x{display:none}.y{color:red}}', '<p class="x">seen</p>'],
			['.x{display:none}.x.open{display:block}', '<p class="x open">seen</p>'],
			['.x{display:none}.js .x{display:block}', '<p class="x">seen</p>'],
			['.x{display:none}.x{display:block}', '<p class="x">seen</p>'],
			['.menu .x{display:none}', '<p class="x">seen</p>'],
			['.x{display:none', '<p class="other">seen</p>'],
		] as const)
			expect(text(`<style>${sheet}</style>${part}`), sheet).to.include('seen')
	})

	it('a style sheet made to take long does not', () => {
		const began = performance.now()
		for (const sheet of [
			'{'.repeat(300_000),
			'}'.repeat(300_000),
			'.a{'.repeat(100_000),
			'@a{'.repeat(100_000),
			`${'.a,'.repeat(100_000)}{display:none}`,
			'/*'.repeat(150_000),
			'.x{display:none}'.repeat(20_000),
			`.x{${'a:'.repeat(150_000)}}`,
			`.x{${'color:rgba('.repeat(20_000)}}`,
		])
			hidingNames(`<style>${sheet}</style>`)
		hidingNames('<style>'.repeat(200_000))
		hidingNames('<style'.repeat(200_000))
		expect(performance.now() - began).to.be.below(3_000)
	})
})
