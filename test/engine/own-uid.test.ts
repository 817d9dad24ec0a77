// A user that passwd does not know, as containers have: Garuda's own files are checked and used all the same.
import { execFileSync, spawnSync } from 'node:child_process'
import {
	chmodSync,
	chownSync,
	cpSync,
	linkSync,
	mkdirSync,
	mkdtempSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ownUid } from '../../src/engine/own-uid.ts'

const top = new URL('../../', import.meta.url).pathname
const stranger = 12345

describe('files: the own user', () => {
	it('is the user of this process', async () => {
		expect(await ownUid()).to.equal(process.getuid?.() ?? null)
	})

	it('is known without an entry in passwd: the folder, the keys and the sessions of that user are taken, those of others refused', function () {
		if (process.getuid?.() !== 0) {
			console.log('      not root: another user cannot be played')
			this.skip()
		}
		const base = mkdtempSync(join(tmpdir(), 'garuda-uid-'))
		try {
			cpSync(join(top, 'src/engine'), join(base, 'src/engine'), { recursive: true })
			writeFileSync(join(base, 'package.json'), '{"type":"module"}')
			try {
				linkSync(process.execPath, join(base, 'node'))
			} catch {
				cpSync(process.execPath, join(base, 'node'))
			}
			for (const name of ['mine', 'theirs']) {
				const home = join(base, name)
				mkdirSync(join(home, '.garuda'), { recursive: true, mode: 0o700 })
				writeFileSync(join(home, '.garuda/credentials'), '{"A_KEY":"k"}', { mode: 0o600 })
				mkdirSync(join(home, 'project'))
				const owner = name === 'mine' ? stranger : 54321
				for (const path of ['', '.garuda', '.garuda/credentials', 'project']) chownSync(join(home, path), owner, owner)
				for (const path of ['', 'project']) chmodSync(join(home, path), 0o777)
			}
			writeFileSync(
				join(base, 'look.ts'),
				`import { userInfo } from 'node:os'
import { readCredentials } from './src/engine/config/credentials.ts'
import { garudaPaths, prepareHome } from './src/engine/config/paths.ts'
import { ownUid } from './src/engine/own-uid.ts'
import { openSessions } from './src/engine/session/folder.ts'
const answer = {}
try { userInfo(); answer.info = 'known' } catch { answer.info = 'unknown' }
answer.uid = await ownUid()
for (const name of ['mine', 'theirs']) {
	const home = process.argv[2] + '/' + name
	const paths = garudaPaths(home, home + '/project')
	const tell = (promise) => promise.then((value) => value, (error) => error.constructor.name + ': ' + error.message)
	answer[name] = [
		await tell(prepareHome(paths).then(() => 'ok')),
		await tell(readCredentials(paths)),
		await tell(openSessions(paths.project.dir, true).then((folder) => folder.close().then(() => 'ok'))),
	]
}
console.log(JSON.stringify(answer))
`,
			)
			execFileSync('chmod', ['-R', 'a+rX', join(base, 'src'), join(base, 'look.ts')])
			chmodSync(base, 0o755)
			symlinkSync(join(top, 'node_modules'), join(base, 'node_modules'))
			const ran = spawnSync(
				'setpriv',
				[
					`--reuid=${stranger}`,
					`--regid=${stranger}`,
					'--clear-groups',
					join(base, 'node'),
					join(base, 'look.ts'),
					base,
				],
				{ cwd: base, env: { PATH: '/usr/bin:/bin' }, encoding: 'utf8' },
			)
			expect(ran.status, ran.stderr).to.equal(0)
			const { info, uid, mine, theirs } = JSON.parse(ran.stdout)
			expect([info, uid]).to.deep.equal(['unknown', stranger])
			expect(mine).to.deep.equal(['ok', { A_KEY: 'k' }, 'ok'])
			for (const answer of theirs.slice(0, 2)) expect(answer).to.match(/^UserError: .*(?:another user|cannot be read)/)
		} finally {
			rmSync(base, { recursive: true, force: true })
		}
	})
})
