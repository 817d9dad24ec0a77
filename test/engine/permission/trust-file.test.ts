// The file of consents as it lies on the disk: whose it must be, and what counts as damaged.
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { readTrust } from '../../../src/engine/permission/trust-file.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'

const entry = { kind: 'settings', root: '/r', name: 'n', path: '/r/p', sha256: 'a'.repeat(64), time: 1 }

describe('trust: the file of consents', () => {
	afterEach(removeTemp)
	const put = (text: string, mode = 0o600): string => {
		const file = join(tempDir(), 'trust.json')
		writeFileSync(file, text, { mode })
		chmodSync(file, mode)
		return file
	}
	const read = async (file: string) => {
		const told: string[] = []
		return { ...(await readTrust(file, told)), told }
	}
	const good = JSON.stringify({ version: 1, consents: [entry] })

	it('whole entries count, and nothing is told', async () => {
		expect(await read(put(good))).to.deep.equal({ entries: [entry], damaged: false, newer: false, told: [] })
		expect(await read(join(tempDir(), 'none'))).to.deep.equal({ entries: [], damaged: false, newer: false, told: [] })
		for (const change of [{ sha256: 'x' }, { time: '1' }, { root: 1 }, { kind: null }])
			expect(
				(await read(put(JSON.stringify({ consents: [{ ...entry, ...change }, null, 'x'] })))).entries,
			).to.deep.equal([])
	})

	it('what is no list of consents is damaged, once told; a later version is left alone', async () => {
		for (const text of [
			'',
			'{',
			'null',
			'[]',
			'{"version":1}',
			'{"consents":"x"}',
			'{"consents":{"0":1}}',
			`${good}${' '.repeat(4 << 20)}`,
			`{"version":1,"consents":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
			good.replace('}]', `,"x":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}]`),
		]) {
			const state = await read(put(text))
			expect(state, text.slice(0, 30)).to.deep.include({ entries: [], damaged: true, newer: false })
			expect(state.told.join(), text.slice(0, 30)).to.include('is damaged')
		}
		const later = await read(put(JSON.stringify({ version: 2, consents: [entry] })))
		expect(later).to.deep.include({ entries: [], damaged: false, newer: true })
		expect(later.told.join()).to.include('newer Garuda')
		const told: string[] = []
		const file = put('{')
		await readTrust(file, told)
		await readTrust(file, told)
		expect(told).to.have.lengthOf(1)
	})

	it('a link, a folder, another user’s file and one that others write are refused', async () => {
		const dir = tempDir()
		symlinkSync(put(good), join(dir, 'link'))
		mkdirSync(join(dir, 'folder'))
		const others = [join(dir, 'link'), join(dir, 'folder'), put(good, 0o620), put(good, 0o602)]
		if (process.getuid?.() === 0) {
			const file = put(good)
			chownSync(file, 1234, 1234)
			others.push(file)
		}
		for (const file of others) expect(await read(file).catch((error) => error), file).to.be.instanceOf(UserError)
	})
})
