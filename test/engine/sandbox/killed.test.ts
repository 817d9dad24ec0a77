// kill -9 of Garuda in the first milliseconds of a command, while bubblewrap still builds the sandbox: nothing is left.
// GARUDA_ORPHAN_ROUNDS=300 for the long run.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const program = fileURLToPath(new URL('killed-child.ts', import.meta.url))
const rounds = Number(process.env.GARUDA_ORPHAN_ROUNDS ?? 16)

/** Living processes whose output goes below a folder, or whose words hold a text. */
const left = (folder: string, words: string): string[] =>
	readdirSync('/proc').filter((pid) => {
		if (!/^\d+$/.test(pid)) return false
		try {
			if (/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return false
			if (readlinkSync(`/proc/${pid}/fd/1`).startsWith(folder)) return true
			return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words)
		} catch {
			return false
		}
	})
const said = (pid: string): string => {
	try {
		return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').slice(0, 100)
	} catch {
		return 'gone by now'
	}
}

for (const where of ['auto', 'host', 'staged'] as const)
	describe(`sandbox: Garuda killed as a command begins (${where})`, function () {
		this.timeout(20_000 + rounds * 3_000)
		let base: string
		before(() => {
			base = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-killed-')))
			for (const name of ['root', 'home', 'tmp']) mkdirSync(join(base, name))
		})
		after(() => rmSync(base, { recursive: true, force: true }))

		it('nothing runs on, not even a sandbox half built', async () => {
			let begun = 0
			for (let round = 0; round < rounds; round++) {
				const seconds = `77.${process.pid}${round}${['auto', 'host', 'staged'].indexOf(where)}`
				const child = spawn(process.execPath, ['--import', 'tsx', program, base, seconds, where], {
					stdio: ['ignore', 'pipe', 'inherit'],
				})
				const ended = new Promise((done) => child.once('exit', done))
				const ready = await Promise.race([new Promise((done) => child.stdout.once('data', () => done(true))), ended])
				if (ready === true) begun++
				// Spread over the time in which a sandbox is built.
				await delay((round * (where === 'staged' ? 30 : 9)) / rounds)
				child.kill('SIGKILL')
				await ended
				let found = left(base, `sleep\0${seconds}`)
				for (const end = performance.now() + 3_000; found.length > 0 && performance.now() < end; ) {
					await delay(20)
					found = left(base, `sleep\0${seconds}`)
				}
				expect(
					found.map((pid) => `${pid} ${said(pid)}`),
					`round ${round}`,
				).to.deep.equal([])
			}
			expect(begun, 'the command was begun').to.equal(rounds)
		})
	})
