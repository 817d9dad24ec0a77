// Settings of the network: off by default, the user's by the user, a project's only by consent.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { grantHeld, heldParts } from '../../../src/engine/config/held.ts'
import { garudaPaths } from '../../../src/engine/config/paths.ts'
import { loadSettings } from '../../../src/engine/config/settings.ts'
import { removeTemp, tempProject } from '../../helpers/temp.ts'

describe('settings of the network', () => {
	afterEach(removeTemp)
	const load = async (user: unknown, project?: unknown) => {
		const { root, home } = tempProject()
		for (const [folder, value] of [
			[home, user],
			[root, project],
		] as const) {
			if (value === undefined) continue
			mkdirSync(join(folder, '.garuda'), { mode: 0o700 })
			writeFileSync(join(folder, '.garuda/settings.json'), JSON.stringify(value))
		}
		return loadSettings(garudaPaths(home, root), root)
	}

	it('config-24 is off by default, and an empty list is none', async () => {
		expect((await load(undefined)).settings.network.allow).to.deep.equal([])
		expect((await load({ network: {} })).settings.network.allow).to.deep.equal([])
		expect((await load({ network: { allow: [] } })).settings.network.allow).to.deep.equal([])
		expect((await load({ network: { allow: ['npm'] } })).settings.network.allow).to.deep.equal(['npm'])
	})

	it("a project's list is left out with a notice, held for a consent of its own kind; it comes after the user's", async () => {
		const loaded = await load({ network: { allow: ['npm'] } }, { network: { allow: ['evil.example'] } })
		expect(loaded.settings.network.allow).to.deep.equal(['npm'])
		expect(loaded.notices.join()).to.include('evil.example')
		expect(heldParts(loaded).map(({ kind }) => kind)).to.deep.equal(['network'])
		expect(grantHeld(loaded, ['project-settings']).settings.network.allow).to.deep.equal(['npm'])
		expect(grantHeld(loaded, ['network']).settings.network.allow).to.deep.equal(['npm', 'evil.example'])
	})

	it('a project can turn web_fetch off, not on, and neither opens this machine', async () => {
		expect((await load(undefined)).settings.web).to.deep.equal({ enabled: true, allowLocalhost: false })
		expect((await load(undefined, { web: { enabled: false } })).settings.web.enabled).to.equal(false)
		const on = await load({ web: { enabled: false } }, { web: { enabled: true, allowLocalhost: true } })
		expect(on.settings.web).to.deep.equal({ enabled: false, allowLocalhost: false })
		expect(Object.keys(on.held ?? {})).to.have.members(['web.enabled', 'web.allowLocalhost'])
	})
})
