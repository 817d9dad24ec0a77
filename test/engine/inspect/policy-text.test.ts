// The text of `garuda policy check` taken apart: what stands in it is what the gate would see.
import { expect } from 'chai'
import { callFrom } from '../../../src/engine/inspect/policy.ts'

describe('inspect: the text of a check', () => {
	const files = { resolve: () => Promise.reject(new Error('no path here')) }
	const command = async (text: string) => (await callFrom(text, files)).info.command

	it('keeps every character that a shell does not take for a blank: carriage return, BOM, no-break space', async () => {
		for (const odd of ['\r', '\ufeff', '\u00a0', '\u2028', '\v'])
			for (const text of [`npm test${odd}`, `${odd}npm test`, `npm${odd}test`])
				for (const before of ['', 'bash ', 'outside ', ' \n']) expect(await command(before + text)).to.equal(text)
		for (const text of ['npm test', ' npm test\n', 'bash  npm test ', 'outside npm test\t'])
			expect(await command(text), text).to.equal('npm test')
	})
})
