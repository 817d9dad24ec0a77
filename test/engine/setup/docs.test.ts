// The pages that people paste from say what the program does: entries, providers, line names.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { editorEntries } from '../../../src/engine/setup/editor-entries.ts'
import { presets } from '../../../src/engine/setup/presets.ts'

describe('setup: docs', () => {
	it('docs/editors.md has each entry as it is written and printed', () => {
		const page = readFileSync('docs/editors.md', 'utf8')
		const blocks = [...page.matchAll(/```(json|lua|elisp)\n([\s\S]*?)```/g)].map((match) => ({
			language: match[1]!,
			text: match[2]!,
		}))
		for (const entry of editorEntries(
			{ home: '/h', env: {}, platform: 'linux' },
			{ command: 'garuda', args: ['acp'] },
		)) {
			if (entry.code) {
				expect(blocks.find((one) => one.language === entry.code!.language)!.text, entry.name).to.equal(entry.code.text)
				continue
			}
			const found = blocks
				.filter((one) => one.language === 'json')
				.map((one) => JSON.parse(one.text))
				.map((value) => entry.path.reduce((inner, step) => inner?.[step], value))
			expect(found, entry.name).to.deep.include(entry.value)
		}
	})

	it('docs/setup.md and the help name every provider', () => {
		const page = readFileSync('docs/setup.md', 'utf8')
		const command = readFileSync('src/commands/setup/index.ts', 'utf8')
		for (const { title, name } of presets) {
			expect(page).to.match(new RegExp(title.split(' ').at(-1) === 'Gemini' ? 'Gemini' : title.split(' ')[0]!))
			expect(command).to.include(name)
		}
	})
})
