// The entry for the ACP Registry: true to the package, and its icon as the Registry wants it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { repository } from '../helpers/cli.ts'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

describe('acp: the Registry', () => {
	it('the entry names this very version, and starts the agent', () => {
		const { name, version, license } = JSON.parse(read('package.json'))
		const entry = JSON.parse(read('docs/registry/agent.json'))
		expect(entry.version).to.equal(version)
		expect(entry.license).to.equal(license)
		expect(entry.id).to.match(/^[a-z][a-z0-9-]*$/)
		expect(entry.description).to.be.a('string').and.not.equal('')
		expect(entry.distribution).to.deep.equal({ npx: { package: `${name}@${version}`, args: ['acp'] } })
	})

	it('the icon is 16 by 16 and of the current colour only', () => {
		const icon = read('docs/registry/icon.svg')
		expect(icon).to.match(/<svg[^>]* width="16" height="16" viewBox="0 0 16 16"/)
		const colours = [...icon.matchAll(/\b(?:fill|stroke)="([^"]+)"/g)].map((one) => one[1])
		expect(colours).to.include('currentColor')
		expect(colours.filter((one) => one !== 'currentColor' && one !== 'none')).to.deep.equal([])
		expect(icon).to.not.match(/style=|#[0-9a-f]{3}|<style/i)
	})
})
