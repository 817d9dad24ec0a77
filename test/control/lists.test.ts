// The lists of the sandbox against a copy of them: for names that no command on this machine can try. The control asks this last.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import * as names from '../../src/engine/sandbox/names.ts'

const copy = JSON.parse(readFileSync(new URL('lists.json', import.meta.url), 'utf8')) as {
	names: Record<string, string[]> & { envFixed: unknown }
}

describe('control: lists', () => {
	it('no name of the sandbox was lost', () => {
		const { homeSecrets, systemSecrets, procHidden, privateFolders, rootProtected, gitProtected, homeProtected } = names
		const lists = {
			...{ homeSecrets, systemSecrets, procHidden, privateFolders, rootProtected, gitProtected, homeProtected },
		}
		for (const [name, list] of Object.entries(lists)) expect(list, name).to.include.members(copy.names[name]!)
		// What passes to commands is exactly this: one more is a hole, one less breaks work.
		expect([...names.envAllowed]).to.have.members(copy.names.envAllowed!)
		expect(names.envFixed).to.deep.equal(copy.names.envFixed)
	})
})
