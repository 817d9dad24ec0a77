// The lists of the walls against a copy of them: a name that gets lost, and with it its own probe, is seen here.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { protectedReason, sensitiveReason } from '../../src/engine/files/sensitive.ts'
import { readShell } from '../../src/engine/permission/shell-words.ts'
import * as names from '../../src/engine/sandbox/names.ts'
import { seccompFilter } from '../../src/engine/sandbox/seccomp.ts'

const lists = JSON.parse(readFileSync(new URL('lists.json', import.meta.url), 'utf8')) as {
	names: Record<string, string[]> & { envFixed: unknown }
	files: Record<string, string[]>
	denied: Record<string, number[]>
	wrappers: Record<string, { skip: number; valued: string[] }>
	runners: Record<string, string[]>
	shells: string[]
}
const inner = async (text: string) => (await readShell(text)).commands.some(({ words }) => words.join(' ') === 'gaa b')

describe('control: lists', () => {
	it('no name of the sandbox was lost', () => {
		const { homeSecrets, systemSecrets, rootProtected, gitProtected, homeProtected } = names
		for (const [name, list] of Object.entries({
			homeSecrets,
			systemSecrets,
			rootProtected,
			gitProtected,
			homeProtected,
		}))
			expect(list, name).to.include.members(lists.names[name]!)
		// What passes to commands is exactly this: one more is a hole, one less breaks work.
		expect([...names.envAllowed]).to.have.members(lists.names.envAllowed!)
		expect(names.envFixed).to.deep.equal(lists.names.envFixed)
	})

	it('no path of the file tools was lost', () => {
		const sensitive = (path: string) => sensitiveReason(path, '/home/me', ['/home/me/root'])
		const { secretFolders, secretNames, homeSecrets, systemPaths, protectedNames, homeProtected } = lists.files
		for (const name of secretFolders!) expect(sensitive(`/srv/${name}/x`), name).to.be.a('string')
		for (const name of secretNames!) expect(sensitive(`/srv/${name}`), name).to.be.a('string')
		for (const name of homeSecrets!)
			for (const path of [name, `${name}/x`]) expect(sensitive(`/home/me/${path}`), path).to.be.a('string')
		for (const name of systemPaths!) expect(sensitive(`/${name}`), name).to.be.a('string')
		for (const name of protectedNames!)
			expect(protectedReason(`/home/me/root/a/${name}/x`, '/home/me/root', '/home/me'), name).to.be.a('string')
		for (const name of homeProtected!)
			expect(protectedReason(`/home/me/${name}`, '/home/me', '/home/me'), name).to.be.a('string')
	})

	it('no system call was lost', () => {
		for (const [cpu, numbers] of Object.entries(lists.denied)) {
			const program = seccompFilter(cpu, { blockUnix: false })!
			const refused = new Set<number>()
			for (let at = 0; at + 16 <= program.length; at += 8)
				if (
					program.readUInt16LE(at) === 0x15 &&
					program.readUInt16LE(at + 8) === 0x06 &&
					program.readUInt32LE(at + 12) === 0x50001
				)
					refused.add(program.readUInt32LE(at + 4))
			expect([...refused], cpu).to.include.members(numbers)
		}
	})

	it('no program that starts another was lost', async () => {
		for (const [name, { skip, valued }] of Object.entries(lists.wrappers)) {
			// By its path: `time` alone is a word of the shell.
			const program = `/usr/bin/${name}`
			const before = skip > 0 ? '1 ' : ''
			expect(await inner(`${program} ${before}gaa b`), name).to.equal(true)
			for (const option of valued)
				expect(await inner(`${program} ${option} v ${before}gaa b`), `${name} ${option}`).to.equal(true)
		}
		for (const [name, subs] of Object.entries(lists.runners))
			for (const sub of subs) expect(await inner(`${name} ${sub} gaa b`), `${name} ${sub}`).to.equal(true)
		for (const name of lists.shells) expect(await inner(`${name} -c 'gaa b'`), name).to.equal(true)
	})
})
