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

	it('takes grep for the program where it has more than a path, for the tool else', async () => {
		const found = {
			resolve: async (path: string) => ({
				path,
				shown: path,
				inside: true,
				exists: true,
				sensitive: null,
				protected: null,
			}),
		}
		expect((await callFrom('grep -r x secret', found)).info.command).to.equal('grep -r x secret')
		expect((await callFrom('grep -rx', found)).info.command).to.equal('grep -rx')
		expect((await callFrom('grep secret', found)).tool).to.equal('grep')
		expect((await callFrom('read_file a b.txt', found)).tool).to.equal('read_file')
	})
})
