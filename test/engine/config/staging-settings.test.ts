// Settings of staged commands, background processes and secret handles: off by default, and a project only tightens.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { garudaPaths } from '../../../src/engine/config/paths.ts'
import { loadSettings } from '../../../src/engine/config/settings.ts'
import { UserError } from '../../../src/engine/errors.ts'
import { removeTemp, tempProject } from '../../helpers/temp.ts'

describe('settings of staging, daemons and secrets', () => {
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

	it('all are off by default', async () => {
		const { staging, daemons, secrets } = (await load(undefined)).settings
		expect([staging, daemons, secrets]).to.deep.equal([
			{ enabled: false },
			{ enabled: false, max: 5, lines: 10_000 },
			{ handles: false, names: {} },
		])
	})

	it('a project may turn staging on, never off', async () => {
		expect((await load(undefined, { staging: { enabled: true } })).settings.staging.enabled).to.equal(true)
		const off = await load({ staging: { enabled: true } }, { staging: { enabled: false } })
		expect(off.settings.staging.enabled).to.equal(true)
		expect(off.held).to.deep.equal({ 'staging.enabled': false })
	})

	it('a project may turn background processes off and lower their numbers, not the other way', async () => {
		const on = await load(undefined, { daemons: { enabled: true, max: 50, lines: 100 } })
		expect(on.settings.daemons).to.deep.equal({ enabled: false, max: 5, lines: 100 })
		expect(on.held).to.deep.equal({ 'daemons.enabled': true })
		const off = await load({ daemons: { enabled: true } }, { daemons: { enabled: false, max: 2 } })
		expect(off.settings.daemons).to.deep.equal({ enabled: false, max: 2, lines: 10_000 })
	})

	it('secret-04 which secrets commands get is never a project’s word; values never stand in settings', async () => {
		const names = { DEPLOY_TOKEN: { hosts: ['api.example.com'] }, LOCAL_KEY: { about: 'signs' } }
		const user = await load({ secrets: { handles: true, names } }, { secrets: { handles: true, names: { OTHER: {} } } })
		expect(user.settings.secrets).to.deep.equal({
			handles: true,
			names: { DEPLOY_TOKEN: { hosts: ['api.example.com'] }, LOCAL_KEY: { hosts: [], about: 'signs' } },
		})
		expect(user.notices.join()).to.include('"secrets" has no effect here')
		expect((await load(undefined, { secrets: { handles: true } })).settings.secrets.handles).to.equal(false)
		for (const bad of [{ 'a-b': {} }, { A: { value: 'x' } }, { PATH2: 'x' }]) {
			const error = await load({ secrets: { names: bad } }).then(
				({ notices }) => notices.join(),
				(thrown) => thrown,
			)
			if (typeof error === 'string') expect(error).to.include('"secrets.names.A.value" is not known')
			else expect(error).to.be.instanceOf(UserError)
		}
	})
})
