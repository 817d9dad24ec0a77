import { Script } from 'node:vm'
import { expect } from 'chai'
import { safeEdit, suits } from '../../../src/engine/tour/safe-edit.ts'

const apply = (path: string, text: string): string | null => {
	const found = safeEdit({ path, lines: text.split('\n') })
	if (found === null) return null
	expect(text.split(found.old).length, `${path}: the place must be found once`).to.equal(2)
	return text.replace(found.old, () => found.new)
}
const word = "Garuda's tour was here; /undo takes this line back."

describe('tour: the safe edit', () => {
	const kinds: [string, string, string][] = [
		['a.js', 'let a = 1\n', `// ${word}\nlet a = 1\n`],
		['a.py', 'import os\nprint(1)\n', `# ${word}\nimport os\nprint(1)\n`],
		['a.sql', 'select 1;\n', `-- ${word}\nselect 1;\n`],
		['a.css', 'a { color: red }\n', `/* ${word} */\na { color: red }\n`],
		['page.html', '<p>x</p>\n', `<!-- ${word} -->\n<p>x</p>\n`],
		['Makefile', 'all:\n\techo\n', `# ${word}\nall:\n\techo\n`],
		['README.md', '# Title\n\nText\n', `# Title\n\n*${word}*\n\nText\n`],
		['README.md', 'Title\n=====\n\nText\n', `Title\n=====\n\n*${word}*\n\nText\n`],
		['README.md', '<p align="center">\n</p>\n', `*${word}*\n\n<p align="center">\n</p>\n`],
		['notes.txt', '# no heading here\nb\n', `${word}\n\n# no heading here\nb\n`],
	]
	for (const [path, before, after] of kinds)
		it(`${path} ${JSON.stringify(before.split('\n')[0])} gets one line, and nothing else moves`, () => {
			expect(apply(path, before)).to.equal(after)
		})

	const leads: [string, string][] = [
		['a.sh', '#!/bin/sh\nset -e\n'],
		['a.py', '#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint(1)\n'],
		['a.js', "'use strict'\nlet a\n"],
		['a.ts', '// @ts-nocheck\nlet a\n'],
		['a.xml', '<?xml version="1.0"?>\n<a/>\n'],
		['a.html', '<!DOCTYPE html>\n<html></html>\n'],
		['a.css', '@charset "utf-8";\na {}\n'],
		['a.go', '//go:build linux\n\npackage a\n'],
		['a.php', '<?php\necho 1;\n'],
		['Dockerfile', '# syntax=docker/dockerfile:1\nFROM x\n'],
	]
	for (const [path, text] of leads)
		it(`${path}: what must stand first (${text.split('\n')[0]}) still does`, () => {
			const after = apply(path, text)!
			expect(after).to.include(word)
			expect(after.split('\n')[0]).to.equal(text.split('\n')[0])
			expect(
				after
					.split('\n')
					.filter((line) => !line.includes(word))
					.join('\n'),
			).to.equal(text)
		})

	it('JavaScript stays JavaScript and means the same', () => {
		for (const text of ['let a = 1\na', '"use strict"\nthis === undefined', '`\n${1}`', '/* a\n b */ 1'])
			expect(new Script(apply('a.js', text)!).runInNewContext()).to.equal(new Script(text).runInNewContext())
	})

	it('JSON, locks, generated and unknown files are never chosen', () => {
		for (const path of [
			'package.json',
			'a.json',
			'a.jsonc',
			'yarn.lock',
			'pnpm-lock.yaml',
			'a.min.js',
			'a.snap',
			'x.d.ts',
			'src/generated/a.ts',
			'vendor/a.go',
			'data.csv',
			'LICENSE',
			'.gitignore',
			'a.png',
			'AGENTS.md',
			'CLAUDE.md',
		])
			expect([path, suits(path)]).to.deep.equal([path, null])
		expect(apply('package.json', '{}\n')).to.equal(null)
		expect(apply('a.csv', 'a,b\n1,2\n')).to.equal(null)
	})

	it('where no place is surely safe there is no edit', () => {
		const unsafe: [string, string][] = [
			['post.md', '---\ntitle: x\n---\n\nText\n'],
			['a.yml', '---\na: 1\n'],
			['a.php', '<html>\n<?php echo 1 ?>\n'],
			['a.js', `let a = "${'x'.repeat(500)}"\n`],
			['a.xml', '<?xml version="1.0"\n  encoding="utf-8"?>\n<a/>\n'],
			['a.py', ''],
			['a.md', '\n\n\n\n\n\n\n\ntext\n'],
		]
		for (const [path, text] of unsafe) expect([path, apply(path, text)]).to.deep.equal([path, null])
	})

	it('a README comes before code, code before settings, near before deep', () => {
		const order = ['README.md', 'a.js', 'src/a.py', 'notes.md', 'ci.yml']
		expect([...order].reverse().sort((a, b) => suits(a)! - suits(b)!)).to.deep.equal(order)
	})
})
