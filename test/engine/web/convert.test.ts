// A page's HTML to Markdown: what a reader needs of it, and pages that are made to hang or to overflow.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import { cleanHtml } from '../../../src/engine/web/clean-html.ts'
import { convert, convertWorkerUrl } from '../../../src/engine/web/convert.ts'
import { toMarkdown } from '../../../src/engine/web/convert-worker.ts'
import { tempDir } from '../../helpers/temp.ts'

const never = new AbortController().signal
const md = (html: string) => toMarkdown({ html, url: 'https://ok.example/docs/a' }).markdown

describe('html to markdown', () => {
	it('keeps headings, lists, code with its language, links made absolute, images as words', () => {
		expect(
			md(
				'<h2>A</h2><ul><li>one<li>two <code>x &lt; y</code></ul><ol start="3"><li>c</ol><pre><code class="hl language-ts">const a = 1\n\n  b()</code></pre>' +
					'<p><a href="../b">rel</a> <a href="javascript:alert(1)">js</a> <a href="#x">here</a> <img src="p.png" alt="a plan"></p><blockquote>said</blockquote><p><del>old</del></p>',
			),
		).to.equal(
			[
				'## A',
				'',
				'-   one',
				'-   two `x < y`',
				'',
				'3.  c',
				'',
				'```ts',
				'const a = 1',
				'',
				'  b()',
				'```',
				'',
				'[rel](https://ok.example/b) js here \\[image: a plan\\]',
				'',
				'> said',
				'',
				'~~old~~',
			].join('\n'),
		)
	})

	it('writes tables whose cells hold bars, breaks and nothing', () => {
		expect(
			md(
				'<table><tr><th>n</th><th>v</th></tr><tr><td>a|b</td><td>1<br>2</td></tr><tr><td></td><td><p>x</p><p>y</p></td></tr></table>',
			),
		).to.equal('| n | v |\n| --- | --- |\n| a\\|b | 1 2 |\n|  | x y |')
	})

	it('code without <code>, in coloured spans, with its language on a wrapper, and a layout of tables in tables', () => {
		expect(
			md('<div class="highlight highlight-source-ts"><pre><span class="k">const</span> a<br>b &amp; c</pre></div>'),
		).to.equal('```ts\nconst a\nb & c\n```')
		expect(md('<pre class="lang-js"><b>x</b> <table></pre>')).to.include('```js\nx')
		const layout = md('<table><tr><td><table><tr><td>in</td><td>ner</td></tr></table></td><td>b</td></tr></table>')
		expect(layout).to.include('in').and.include('ner').and.include('| --- | --- |')
		expect(md('<table></table><table><tr></tr></table><p>after</p>')).to.include('after')
	})

	it('takes the main part of a page where there is one of some size, else all of it', () => {
		const text = 'words of the article '.repeat(30)
		expect(md(`<header>top</header><div>ads</div><main><h1>T</h1><p>${text}</p></main><div>more ads</div>`))
			.to.match(/^# T\n\nwords/)
			.and.not.include('ads')
		expect(md('<main>short</main><p>the rest</p>')).to.include('the rest')
	})

	it('attributes and text cannot bring markup in', () => {
		const { html } = cleanHtml(
			'<p title="<script>">&lt;script&gt;x&lt;/script&gt;</p><a href="https://a.example/&quot;><img onerror=x>">l</a>',
			'https://ok.example/',
		)
		expect(html).to.not.match(/<script|<img|onerror=x>/)
	})

	it('bounds depth and size, and stays balanced', () => {
		const deep = cleanHtml(`${'<div>'.repeat(20_000)}inner`, 'https://ok.example/')
		expect(deep.html.match(/<div>/g)!.length).to.be.at.most(120)
		expect(deep.html).to.include('inner')
		const long = cleanHtml('<p>aaaaaaaaaa</p>'.repeat(1_000), 'https://ok.example/', { depth: 100, size: 2_000 })
		expect(long.cut).to.equal(true)
		expect(long.html.match(/<p>/g)).to.have.length(long.html.match(/<\/p>/g)!.length)
		expect(deep.cut).to.equal(false)
	})

	it('pages made to hang other converters end within their time', async () => {
		const start = performance.now()
		for (const html of [
			'<div>'.repeat(50_000),
			'<table>'.repeat(5_000),
			`${'<b><i>'.repeat(20_000)}x`,
			`<p>${'*_`['.repeat(50_000)}</p>`,
			`<a href="${'x'.repeat(900_000)}">${'&nbsp;'.repeat(50_000)}</a>`,
			'<'.repeat(200_000),
			`<ul>${'<li>'.repeat(20_000)}`,
			'<!--'.repeat(50_000),
		])
			await convert({ html, url: 'https://ok.example/' }, never, 8_000).catch((error) =>
				expect(error).to.be.instanceOf(ToolError),
			)
		expect(performance.now() - start).to.be.below(18_000)
	})

	it('a converter that never returns is ended at the deadline, or by an abort', async () => {
		const file = join(tempDir(), 'hang.mjs')
		writeFileSync(file, 'for (;;);')
		const url = pathToFileURL(file)
		const start = performance.now()
		const failed = async (signal: AbortSignal, ms: number) =>
			convert({ html: '', url: 'x' }, signal, ms, url).then(
				() => null,
				(error: Error) => error,
			)
		expect(await failed(never, 200))
			.to.be.instanceOf(ToolError)
			.with.property('message')
			.that.includes('within 0.2 s')
		const stop = new AbortController()
		setTimeout(() => stop.abort(), 50)
		expect(await failed(stop.signal, 10_000)).to.be.instanceOf(ToolError)
		expect(performance.now() - start).to.be.below(3_000)
		writeFileSync(file, 'const a = []; for (;;) a.push(new Array(1e6).fill(1))')
		expect(await failed(never, 10_000), 'memory is bounded too').to.be.instanceOf(ToolError)
	})

	it('the worker is found beside its source and in the folder of a build', () => {
		expect(convertWorkerUrl('file:///a/src/engine/web/convert.ts').pathname).to.equal(
			'/a/src/engine/web/convert-worker.ts',
		)
		expect(convertWorkerUrl('file:///a/dist/chunks/x.js').pathname).to.equal('/a/dist/workers/convert-worker.js')
	})
})
