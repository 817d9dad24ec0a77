// The log as it is written: chained, redacted, bounded, in order, and honest about what went wrong.
import { spawn } from 'node:child_process'
import {
	appendFile,
	chmod,
	lstat,
	mkdir,
	readdir,
	readFile,
	rm,
	stat,
	symlink,
	unlink,
	writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { genesis, sha256 } from '../../../src/engine/audit/chain.ts'
import { readAuditIndex, setHead } from '../../../src/engine/audit/index-file.ts'
import { UserError } from '../../../src/engine/errors.ts'
import type { AuditEntry } from '../../../src/engine/ports.ts'
import { clock, decision, one, Place, two } from './fixture.ts'

const fakeKey = () => `sk-ant-api03-${'aB3dE5gH7jK9mN2pQ4sT6vW8'.repeat(3)}`

describe('audit: log', () => {
	let at: Place
	beforeEach(async () => {
		at = await Place.make()
	})
	afterEach(() => at.remove())

	it('is made with the first entry, closed to others; a session that did nothing leaves nothing', async () => {
		const quiet = await at.log(two)
		await quiet.turnEnd()
		await quiet.close()
		expect(await lstat(at.dir).catch(() => null)).to.equal(null)
		const log = await at.log(one)
		await log.append(decision('ls', 'allow'))
		expect((await stat(at.dir)).mode & 0o777).to.equal(0o700)
		expect((await stat(at.file(one))).mode & 0o777).to.equal(0o600)
		await log.close()
		expect((await stat(at.index())).mode & 0o777).to.equal(0o600)
		expect((await readdir(at.dir)).sort()).to.deep.equal(['01j00000000000aa.jsonl', 'index.json'])
	})

	it('each line points to the one before and hashes its own bytes: sha256 of the line without its last member', async () => {
		await at.session(one)
		const texts = await at.lines(one)
		let prev = genesis(one)
		for (const [index, text] of texts.entries()) {
			const line = JSON.parse(text)
			expect(line).to.include({ n: index + 1, session: one, prev })
			expect(line.time).to.match(/^2026-01-02T03:\d\d:\d\d\.000Z$/)
			expect(sha256(text.replace(/,"hash":"[0-9a-f]{64}"\}$/, '}'))).to.equal(line.hash)
			prev = line.hash
		}
		const lines = await at.parsed(one)
		expect(lines.map((line) => line.reason)).to.deep.equal(['start', ...Array(6).fill('rule'), 'end'])
		expect(lines[0]!.detail).to.deep.equal({ format: 1, garuda: '1.2.3', root: at.root })
		const { heads } = await readAuditIndex(at.dir)
		expect(heads.get(one)).to.include({ lines: 8, hash: prev, closed: true, root: at.root })
	})

	it('any text stays on its line and is plain ASCII: U+2028, U+0085, NUL, escapes, lone surrogates, direction marks', async () => {
		const odd = 'a\u2028b\u2029c\u0085d\ne\r\0\u001b[2Jf\u009b31m\ud800g\u202eh\u200bé漢😀'
		const log = await at.log(one)
		await log.append({ ...decision(odd, 'allow'), reason: odd, detail: { [odd]: odd } })
		await log.close()
		const bytes = await readFile(at.file(one))
		expect(bytes.every((byte) => byte === 10 || (byte >= 0x20 && byte < 0x7f))).to.equal(true)
		const line = (await at.parsed(one))[1]!
		expect(line.input).to.deep.equal({ command: odd })
		expect(line.detail).to.deep.equal({ [odd]: odd })
		expect((await at.verify()).ok).to.equal(true)
	})

	it('secret-04 a key in a command, a reason, a name or under a telling name is nowhere: log, index, checkpoint, witness', async () => {
		const key = fakeKey()
		const password = 'tr0ub4dor3x'
		await mkdir(join(at.base, 'w'))
		const log = await at.log(one, { witnesses: [{ folder: join(at.base, 'w') }], checkpoint: join(at.base, 'heads') })
		await log.append({
			...decision(`curl -H "x-api-key: ${key}"`, 'once'),
			reason: `because ${key}`,
			rule: key,
			detail: { output: [`found ${key}`], password, nested: { db_password: password, [key]: 1 } },
		})
		await log.turnEnd()
		await log.close()
		for (const file of [at.file(one), at.index(), join(at.base, 'heads'), join(at.base, 'w', `${one}.heads.jsonl`)]) {
			const text = await readFile(file, 'utf8')
			expect(text, file).not.to.include(key.slice(0, 30)).and.not.to.include(password)
		}
		expect(await readFile(at.file(one), 'utf8')).to.match(/\[redacted:anthropic-key:[0-9a-f]{6}\]/)
	})

	it('secret-04 a key where a long text is cut is redacted first: no half of it stays', async () => {
		const key = fakeKey()
		const log = await at.log(one)
		// The cut keeps 8 KiB from the head: the key lies across it.
		await log.append(decision(`${'x '.repeat(4096 - 10)}${key} ${'y '.repeat(9000)}`, 'allow'))
		await log.close()
		const text = await readFile(at.file(one), 'utf8')
		expect(text)
			.to.include('characters left out here')
			.and.not.to.include(key.slice(0, 20))
			.and.not.to.include(key.slice(-20))
	})

	it('secret-04 a value known by name (credentials) is redacted in every form, also in the root of the first line', async () => {
		const { createRedactor } = await import('../../../src/engine/config/redact.ts')
		const redactor = createRedactor('seed')
		redactor.add('MY_KEY', 'hunter2-hunter2')
		const log = await at.log(one, { redactor, root: '/home/hunter2-hunter2/x' })
		await log.append(decision(`echo ${Buffer.from('hunter2-hunter2').toString('base64')} hunter2-hunter2`, 'deny'))
		await log.close()
		for (const file of [at.file(one), at.index()]) {
			const text = await readFile(file, 'utf8')
			expect(text).to.include('[redacted:my-key:')
			expect(text)
				.not.to.include('hunter2')
				.and.not.to.include(Buffer.from('hunter2-hunter2').toString('base64').slice(0, 16))
		}
	})

	it('large and strange entries are bounded, say so, and still verify', async () => {
		let deep: any = 'end'
		for (let i = 0; i < 5000; i++) deep = [deep]
		const log = await at.log(one)
		await log.append(decision('x'.repeat(5 << 20), 'allow'))
		await log.append({ kind: 'action', detail: deep })
		await log.append({ kind: 'action', input: Array.from({ length: 200_000 }, (_, i) => i) })
		await log.append({ kind: 'action', detail: { a: Number.NaN, b: undefined, c: () => 1, 9: 1, 10: 2 } as never })
		await log.append({ kind: 'action', detail: JSON.parse('{"__proto__": {"x": 1}}') })
		await log.close()
		const [, long, nested, wide, odd, proto] = await at.parsed(one)
		// The command and the key that holds it.
		expect(JSON.stringify(long)).to.have.length.below(40_000)
		expect([long!.cut, nested!.cut, wide!.cut, odd!.cut]).to.deep.equal([2, 1, 1, undefined])
		expect(wide!.input).to.have.keys('leftOut', 'sha256')
		expect(odd!.detail).to.deep.equal({ 9: 1, 10: 2, a: null, c: null })
		expect(Object.getOwnPropertyNames(proto!.detail)).to.deep.equal(['__proto__'])
		expect((await at.verify()).ok).to.equal(true)
	})

	it('an entry cannot set what is the log’s own', async () => {
		const log = await at.log(one)
		const entry = { ...decision('ls', 'allow'), n: 99, time: 'never', session: two, prev: 'x', hash: 'y', cut: 7 }
		await log.append(entry as AuditEntry)
		await log.close()
		const line = (await at.parsed(one))[1]!
		expect(line).to.include({ n: 2, session: one }).and.not.have.property('cut')
		expect((await at.verify()).ok).to.equal(true)
	})

	it('entries stand in the order of the calls, also when nobody waits', async () => {
		const log = await at.log(one)
		const all = Array.from({ length: 60 }, (_, i) => log.append(decision(`c${i}`, 'allow')))
		const end = log.turnEnd()
		await Promise.all([...all, end, log.close()])
		const lines = await at.parsed(one)
		expect(lines.slice(1, -1).map((line) => (line.input as { command: string }).command)).to.deep.equal(
			Array.from({ length: 60 }, (_, i) => `c${i}`),
		)
		await log.append(decision('late', 'allow'))
		expect(await at.lines(one)).to.have.length(62)
		expect((await at.verify()).ok).to.equal(true)
	})

	it('sessions side by side share the index and lose no head', async () => {
		const ids = Array.from({ length: 6 }, (_, i) => `01j000000000000${i}`)
		await Promise.all(ids.map((id) => at.session(id)))
		expect([...(await readAuditIndex(at.dir)).heads.keys()].sort()).to.deep.equal(ids)
		const found = await at.verify()
		expect(found.ok).to.equal(true)
		expect(found.sessions.every((session) => session.lines === 8)).to.equal(true)
	})

	it('a session that goes on continues the chain', async () => {
		await at.session(one)
		await at.session(one)
		const lines = await at.parsed(one)
		expect(lines).to.have.length(16)
		expect(lines[8]).to.include({ kind: 'session', reason: 'resume', n: 9, prev: lines[7]!.hash })
		expect((await at.verify()).ok).to.equal(true)
		expect(at.reports).to.deep.equal([])
	})

	it('a running session is ok, with what is not yet in the index told', async () => {
		const log = await at.log(one)
		await log.append(decision('ls', 'allow'))
		await log.turnEnd()
		await log.append(decision('pwd', 'allow'))
		const found = await at.verify()
		expect(found.ok).to.equal(true)
		expect(found.sessions[0]).to.deep.include({
			lines: 3,
			notes: ['1 line after the last head: the session runs, or was killed'],
		})
		await log.close()
	})

	describe('killed', () => {
		/** As after kill -9: no end, the index at the last turn, half a line. */
		const killed = async (tail: string) => {
			const log = await at.log(one)
			await log.append(decision('ls', 'allow'))
			await log.turnEnd()
			await log.append(decision('pwd', 'allow'))
			await appendFile(at.file(one), tail)
		}

		it('a torn last line is no tampering, and the next start tells of it in the chain', async () => {
			await killed('{"n":4,"time":"2026')
			const found = await at.verify()
			expect(found.ok).to.equal(true)
			expect(found.sessions[0]!.notes.join()).to.include('cut off while it was written')
			await at.session(one)
			const again = await at.verify()
			expect(again.ok, again.sessions[0]!.why).to.equal(true)
			expect(again.sessions[0]!.notes.join()).to.include('1 unfinished line of a killed process')
			const line = (await at.lines(one)).find((text) => text.includes('"resume"'))!
			expect(JSON.parse(line).detail.torn).to.deep.equal({ bytes: 19, sha256: sha256('{"n":4,"time":"2026') })
			// What is said to be torn must be those very bytes.
			const text = await readFile(at.file(one), 'utf8')
			await writeFile(at.file(one), text.replace('{"n":4,"time":"2026', '{"n":4,"time":"2025'))
			expect(await at.verdict(one)).to.include({ ok: false, line: 4, kind: 'inserted' })
		})

		it('bytes of any kind, or a whole line without its newline, go on too', async () => {
			await killed('\0\0\0\u00ff')
			await at.session(one)
			expect((await at.verify()).ok).to.equal(true)
			const text = await readFile(at.file(one), 'latin1')
			const other = await Place.make()
			try {
				// A line that no head knows yet: one that a head knows had its end.
				const log = await other.log(one)
				await log.append(decision('ls', 'allow'))
				await log.turnEnd()
				await log.append(decision('pwd', 'allow'))
				const whole = await readFile(other.file(one), 'latin1')
				await writeFile(other.file(one), whole.trimEnd(), 'latin1')
				await other.session(one)
				expect((await other.verify()).ok).to.equal(true)
				expect(await other.lines(one)).to.have.length(11)
			} finally {
				await other.remove()
			}
			expect(text).to.include('"resume"')
		})

		it('a torn line where the session had ended, or a tail cut below the head, is tampering', async () => {
			await at.session(one)
			await appendFile(at.file(one), '{"n":9')
			expect(await at.verdict(one)).to.include({ ok: false, line: 9, kind: 'appended' })
			await at.session(two)
			await at.edit(two, (lines) => lines.slice(0, 4))
			await appendFile(at.file(two), '{"n":5')
			expect(await at.verdict(two)).to.include({ ok: false, line: 5, kind: 'cut' })
		})

		it('kill -9 of a process that writes all the time leaves a log that is ok', async () => {
			const source = (name: string) =>
				JSON.stringify(fileURLToPath(new URL(`../../../src/engine/${name}`, import.meta.url)))
			const script = `
				const { createAuditLog } = await import(${source('audit/log.ts')})
				const { createRedactor } = await import(${source('config/redact.ts')})
				const { systemClock } = await import(${source('clock.ts')})
				const log = await createAuditLog({ dir: ${JSON.stringify(at.dir)}, session: ${JSON.stringify(one)}, root: '/r',
					redactor: createRedactor('s'), clock: systemClock, version: '1', witnesses: [], git: async () => null })
				for (let i = 0; ; i++) {
					await log.append({ kind: 'decision', tool: 'bash', input: { command: 'x'.repeat(3000) }, decision: 'allow' })
					if (i % 10 === 9) await log.turnEnd()
					if (i === 50) console.log('going')
				}`
			const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
				stdio: ['ignore', 'pipe', 'inherit'],
			})
			const ended = new Promise((done) => child.on('close', done))
			await new Promise((done) => {
				child.stdout.once('data', done)
				child.once('close', done)
			})
			child.kill('SIGKILL')
			await ended
			const found = await at.verify()
			expect(found.ok, JSON.stringify(found)).to.equal(true)
			expect(found.sessions[0]!.lines).to.be.above(50)
			const log = await at.log(one)
			await log.append(decision('after', 'allow'))
			await log.close()
			expect((await at.verify()).ok).to.equal(true)
		})
	})

	it('a session that goes on after its log was cut says so in the chain; a new head does not heal it', async () => {
		await at.session(one)
		await at.edit(one, (lines) => lines.slice(0, 4))
		await at.session(one)
		expect(at.reports.join()).to.include('not as it was left')
		const found = await at.verdict(one)
		expect(found).to.include({ ok: false, line: 5, kind: 'broken' })
		expect(found.why).to.include('the index knows 8 lines')
		// The same for a log that the index does not know.
		await at.session(two)
		await unlink(at.index())
		await at.session(two)
		expect(await at.verdict(two)).to.include({ ok: false, kind: 'broken' })
	})

	it('a log that cannot be written is told once, and written when it can be', async () => {
		await writeFile(at.dir, 'in the way')
		const log = await at.log(one)
		for (let i = 0; i < 5; i++) await log.append(decision(`c${i}`, 'allow'))
		await log.turnEnd()
		expect(at.reports).to.have.length(1)
		expect(at.reports[0]).to.include('cannot be written')
		await rm(at.dir)
		await log.append(decision('c5', 'allow'))
		await log.close()
		expect((await at.parsed(one)).map((line) => (line.input as any)?.command ?? line.reason)).to.deep.equal([
			'start',
			'c0',
			'c1',
			'c2',
			'c3',
			'c4',
			'c5',
			'end',
		])
		expect((await at.verify()).ok).to.equal(true)
	})

	it('more than can be kept meanwhile is counted as lost, in the chain', async () => {
		await writeFile(at.dir, 'in the way')
		const log = await at.log(one)
		await Promise.all(Array.from({ length: 1007 }, () => log.append({ kind: 'action' })))
		await rm(at.dir)
		await log.close()
		const lost = (await at.parsed(one)).find((line) => line.reason === 'lost')
		expect(lost?.detail).to.deep.equal({ entries: 7 })
	})

	it('where a log is demanded, an entry that cannot be written is an error and nothing goes on', async () => {
		await writeFile(at.dir, 'in the way')
		const log = await at.log(one, { required: true })
		const error = await log.append(decision('ls', 'allow')).catch((reason: unknown) => reason)
		expect(error).to.be.instanceOf(UserError)
		expect((error as UserError).message).to.include('the policy demands one')
		await log.turnEnd()
		await log.close()
	})

	it('no link is followed: in place of the folder, of the file, or a second name of it', async () => {
		const elsewhere = join(at.base, 'elsewhere')
		await mkdir(elsewhere)
		await symlink(elsewhere, at.dir)
		const log = await at.log(one)
		await log.append(decision('ls', 'allow'))
		await log.close()
		expect(await readdir(elsewhere)).to.deep.equal([])
		expect(at.reports.join()).to.include('a link')
		await unlink(at.dir)
		await mkdir(at.dir, { mode: 0o700 })
		await writeFile(join(elsewhere, 'target'), 'mine\n')
		await symlink(join(elsewhere, 'target'), at.file(one))
		await at.session(one)
		await unlink(at.file(one))
		const { link } = await import('node:fs/promises')
		await link(join(elsewhere, 'target'), at.file(one))
		await at.session(one)
		expect(await readFile(join(elsewhere, 'target'), 'utf8')).to.equal('mine\n')
	})

	it('what was left open to others is closed before anything is added', async () => {
		await at.session(one)
		await chmod(at.dir, 0o755)
		await chmod(at.file(one), 0o666)
		await at.session(one)
		expect((await stat(at.dir)).mode & 0o777).to.equal(0o700)
		expect((await stat(at.file(one))).mode & 0o777).to.equal(0o600)
	})

	it('what somebody else does to the file meanwhile is told, and verify names it', async () => {
		const log = await at.log(one)
		await log.append(decision('ls', 'allow'))
		await appendFile(at.file(one), '{"forged":true}\n')
		await log.append(decision('pwd', 'allow'))
		expect(at.reports.join()).to.include('changed by somebody else')
		expect(await at.verdict(one)).to.include({ ok: false, line: 3, kind: 'inserted' })
		await unlink(at.file(one))
		await log.append(decision('id', 'allow'))
		await log.close()
		expect(at.reports.join()).to.include('removed while the session runs')
		expect(await at.verdict(one)).to.include({ ok: false, line: 1, kind: 'removed_first' })
	})

	it('a damaged index is kept beside, and a locked one does not stop the session', async () => {
		await at.session(one)
		await writeFile(at.index(), 'broken')
		await at.session(two)
		expect(await readFile(`${at.index()}.damaged`, 'utf8')).to.equal('broken')
		expect((await at.verify()).problems.join()).to.include('index.json.damaged')
		// A holder on another machine never counts as dead.
		await writeFile(
			`${at.index()}.lock`,
			JSON.stringify({ pid: 1, start: '1', host: 'elsewhere', token: 'x', since: 0 }),
		)
		let waits = 0
		const impatient = { now: clock().now, sleep: async () => void waits++ }
		expect(
			await setHead(at.dir, one, { lines: 1, hash: 'a'.repeat(64), time: '', root: '', closed: false }, impatient),
		).to.equal(false)
		expect(waits).to.equal(400)
		const log = await at.log('01j00000000000dd', { clock: impatient })
		await log.append(decision('ls', 'allow'))
		await log.close()
		expect(at.reports.filter((text) => text.includes('locked by another process'))).to.have.length(1)
		expect(await at.lines('01j00000000000dd')).to.have.length(3)
	})
})
