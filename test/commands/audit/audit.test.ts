// `garuda audit verify` and `garuda audit show` as processes: what they print and how they end.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import AuditShow from '../../../src/commands/audit/show.ts'
import AuditVerify from '../../../src/commands/audit/verify.ts'
import { one, Place } from '../../engine/audit/fixture.ts'

/** The built bin where it has the verb; mocha sees to it that it is fresh. */
const built = existsSync('dist/commands/audit/verify.js') ? ['bin/run.js'] : ['--import', 'tsx', 'bin/dev.js']

describe('garuda audit', () => {
	let at: Place
	before(async () => {
		at = await Place.make()
		await at.session(one)
	})
	after(() => at.remove())

	const garuda = (args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> => {
		const home = join(at.base, 'home')
		const child = spawn(process.execPath, [...built, 'audit', ...args], {
			stdio: ['ignore', 'pipe', 'pipe'],
			env: { PATH: process.env.PATH, HOME: home, GARUDA_HOME: join(home, '.garuda'), NO_COLOR: '1' },
		})
		const done = { code: null as number | null, stdout: '', stderr: '' }
		child.stdout.on('data', (chunk: Buffer) => {
			done.stdout += chunk
		})
		child.stderr.on('data', (chunk: Buffer) => {
			done.stderr += chunk
		})
		return new Promise((resolve) => child.on('close', (code) => resolve({ ...done, code })))
	}

	it('every flag has a help text', () => {
		for (const command of [AuditShow, AuditVerify])
			for (const [name, flag] of Object.entries(command.flags))
				expect(flag.description, name).to.be.a('string').and.not.equal('')
	})

	it('verify ends with 0 when all is as written, with 1 and the line when not, with 2 for wrong usage', async () => {
		const good = await garuda(['verify'])
		expect(good, good.stderr).to.include({ code: 0, stderr: '' })
		expect(good.stdout).to.include(`${one}  ok  8 lines`)
		const lines = await at.lines(one)
		await at.put(one, lines.toSpliced(2, 1))
		const bad = await garuda(['verify', '--json'])
		await at.put(one, lines)
		expect(bad.code).to.equal(1)
		expect(JSON.parse(bad.stdout).sessions[0]).to.include({ ok: false, line: 3, kind: 'removed' })
		expect((await garuda(['verify', '--nothing'])).code).to.equal(2)
	})

	it('show filters and prints; a filter that means nothing is one line on stderr', async () => {
		const { code, stdout } = await garuda(['show', '--denied', '--tool', 'bash'])
		expect(code).to.equal(0)
		expect(stdout.match(/bash deny/g)).to.have.length(3)
		const wrong = await garuda(['show', '--since', 'soon'])
		expect(wrong.code).to.equal(1)
		expect(wrong.stderr).to.match(/^garuda: "soon" is no time\.\n/)
	})
})
