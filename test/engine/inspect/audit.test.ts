// `audit verify` and `audit show` as a person and a script see them.
import { appendFile, chmod, mkdir, readFile, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { auditShow, auditVerify, type ShowFlags } from '../../../src/engine/inspect/audit.ts'
import { decision, one, Place, rewrite, two } from '../audit/fixture.ts'

describe('inspect: audit', () => {
	let at: Place
	beforeEach(async () => {
		at = await Place.make()
	})
	afterEach(() => at.remove())

	const place = () => ({
		home: join(at.base, 'home'),
		cwd: at.root,
		platform: 'linux',
		managedPolicy: join(at.base, 'policy.json'),
		policyOwner: null,
		env: { PATH: process.env.PATH, HOME: at.base },
	})
	const settings = (value: object) =>
		writeFile(join(at.base, 'home', '.garuda', 'settings.json'), JSON.stringify(value))
	const show = async (flags: ShowFlags = {}, now = Date.UTC(2026, 0, 2, 4)) => {
		let text = ''
		for await (const part of auditShow(place(), flags, now)) text += part
		return text
	}

	it('verify lists each session, and ends with what it was checked against', async () => {
		await at.session(one)
		await at.session(two)
		const { text, ok } = await auditVerify(place(), {})
		expect(ok).to.equal(true)
		expect(text).to.match(new RegExp(`^${one}  ok  8 lines, the last of 2026-01-02T03:.*\n${two}  ok`))
		expect(text).to.include('All 2 logs are as Garuda wrote them.').and.include('against the index only')
		await at.edit(two, (lines) => lines.toSpliced(3, 1))
		const bad = await auditVerify(place(), {})
		expect(bad.ok).to.equal(false)
		expect(bad.text).to.include(`${one}  ok`).and.include(`${two}  BAD line 4: line 4 was removed before it [removed]`)
		expect(bad.text).to.include('1 of 2 logs')
		expect((await auditVerify(place(), { session: one })).ok).to.equal(true)
		expect((await auditVerify(place(), { session: two.slice(0, 15) })).ok).to.equal(false)
	})

	it('verify reads the second places of the user’s settings, and those it is given', async () => {
		await mkdir(join(at.base, 'home', 'w'))
		await mkdir(join(at.base, 'w2'))
		const witnesses = [{ folder: join(at.base, 'home', 'w') }, { folder: join(at.base, 'w2') }]
		await at.session(one, { witnesses, checkpoint: join(at.base, 'heads') })
		await at.edit(one, (lines) =>
			rewrite(lines, 4, (line) => {
				line.decision = 'deny'
			}),
		)
		await at.fixIndex(one)
		expect((await auditVerify(place(), {})).ok, 'index only').to.equal(true)
		expect((await auditVerify(place(), { witness: ['../w2'] })).ok, 'given').to.equal(false)
		await settings({ audit: { witness: [{ folder: '~/w' }] } })
		const found = await auditVerify(place(), {})
		expect(found.ok, 'settings').to.equal(false)
		expect(found.text).to.include('Checked against the index and witness ')
		await settings({ audit: { checkpoint: join(at.base, 'heads') } })
		expect((await auditVerify(place(), {})).text).to.include('the index was rewritten with it')
		await settings({ audit: { checkpoint: join(at.base, 'heads', 'none') } })
		expect((await auditVerify(place(), {})).text).to.include('Nothing was checked against it')
	})

	it('verify reads the second places of the team policy too, and stops at one it cannot read', async () => {
		await mkdir(join(at.base, 'team'))
		await at.session(one, { witnesses: [{ folder: join(at.base, 'team') }] })
		await at.edit(one, (lines) => lines.slice(0, 4))
		await at.fixIndex(one)
		expect((await auditVerify(place(), {})).ok).to.equal(true)
		await writeFile(place().managedPolicy, JSON.stringify({ audit: { witness: [{ folder: join(at.base, 'team') }] } }))
		expect((await auditVerify(place(), {})).text)
			.to.include('BAD line 5')
			.and.include('the witness')
		await writeFile(place().managedPolicy, '{')
		expect(await auditVerify(place(), {}).catch((error: unknown) => error)).to.be.instanceOf(UserError)
	})

	it('verify takes no word of a project, and stops at settings it cannot read', async () => {
		await at.session(one)
		await mkdir(join(at.root, '.garuda'))
		await writeFile(join(at.root, '.garuda', 'settings.json'), '{ broken')
		expect((await auditVerify(place(), {})).ok).to.equal(true)
		await settings({ audit: { witness: 'x' } })
		const error = await auditVerify(place(), {}).catch((reason: unknown) => reason)
		expect(error).to.be.instanceOf(UserError)
	})

	it('verify --json is one object, with hidden characters of a log written out in text', async () => {
		await at.session(one)
		const { text } = await auditVerify(place(), { json: true })
		const found = JSON.parse(text)
		expect(found).to.include({ version: 1, ok: true })
		expect(found.sessions[0]).to.include({ session: one, ok: true, lines: 8 })
		await at.edit(one, (lines) => [...lines.slice(0, 2), lines[2]!.replace(one, '\\u001b[2J\\u202e')])
		await at.edit(one, (lines) => rewrite(lines, 3, () => {}))
		const bad = await auditVerify(place(), {})
		expect(bad.ok).to.equal(false)
		expect(bad.text)
			.to.match(/^[^\u001b\u202e]*$/)
			.and.include('␛[2J[U+202E]')
	})

	it('verify of nothing is ok, of an unknown session it is not', async () => {
		expect(await auditVerify(place(), {})).to.include({ ok: true })
		expect((await auditVerify(place(), { session: 'nope' })).ok).to.equal(false)
		await at.session(one)
		await at.session(two)
		expect(await auditVerify(place(), { session: '01j' }).catch((error: unknown) => error)).to.be.instanceOf(UserError)
		await unlink(at.file(one))
		expect((await auditVerify(place(), { session: one })).text).to.include('the file was deleted')
	})

	it('a file that is open to others or no log’s is told', async () => {
		await at.session(one)
		await chmod(at.file(one), 0o644)
		const { text, ok } = await auditVerify(place(), {})
		expect(ok).to.equal(true)
		expect(text).to.include('note: the file is open to others (mode 644)')
		await writeFile(join(at.dir, 'Other file.jsonl'), '')
		expect((await auditVerify(place(), {})).text).to.include("no session's log lies in the folder")
	})

	it('show prints sessions in the order of their time, with each line’s decision, input and rule', async () => {
		await at.session(two)
		await at.session(one)
		const text = await show()
		expect(text.indexOf(`session ${two}`)).to.be.below(text.indexOf(`session ${one}`))
		expect(text).to.match(
			/ {2}2026-01-02 03:\d\d:\d\d #3 +decision bash deny\n +rm -rf 1\n +because: rule\n +rule: deny bash/,
		)
		expect(text.match(/^session /gm)).to.have.length(2)
	})

	it('show filters by session, tool, decision, kind, time and denial', async () => {
		await at.session(one)
		const log = await at.log(two)
		await log.append({ ...decision('x', 'cancel'), tool: 'edit_file' })
		await log.append({ kind: 'action', tool: 'read_file', status: 'denied' })
		await log.append({ kind: 'consent', decision: 'left_out', reason: 'mcp' })
		await log.close()
		const count = async (flags: ShowFlags, now?: number) =>
			(await show({ ...flags, json: true }, now)).split('\n').filter((line) => line !== '').length
		expect(await count({})).to.equal(13)
		expect(await count({ session: one })).to.equal(8)
		expect(await count({ session: two.slice(0, 15) })).to.equal(5)
		expect(await count({ tool: 'bash' })).to.equal(6)
		expect(await count({ decision: 'deny' })).to.equal(3)
		expect(await count({ kind: 'session' })).to.equal(4)
		expect(await count({ denied: true })).to.equal(6)
		expect(await count({ denied: true, tool: 'edit_file' })).to.equal(1)
		expect(await count({ since: '2026-01-02' })).to.equal(13)
		expect(await count({ since: '2026-01-03' })).to.equal(0)
		const times = (await at.parsed(one)).map((line) => Date.parse(line.time))
		expect(await count({ session: one, since: '1m' }, times[5]! + 60_000)).to.equal(3)
		expect(await count({ session: one, since: new Date(times[6]!).toISOString() })).to.equal(2)
		expect(await show({ tool: 'nothing' })).to.equal('No line of the audit log matches.\n')
		for (const wrong of ['yesterday', '5', '99999999999999d', '', '2026-99-99'])
			expect(await show({ since: wrong }).catch((error: unknown) => error), wrong).to.be.instanceOf(UserError)
		expect(await show({ session: '../../etc' }).catch((error: unknown) => error)).to.be.instanceOf(UserError)
	})

	it('show --json gives the very lines of the file', async () => {
		await at.session(one)
		expect(await show({ json: true })).to.equal(await readFile(at.file(one), 'utf8'))
	})

	it('show never lets a log act on the terminal, and tells of lines it cannot read', async () => {
		const log = await at.log(one)
		await log.append({ ...decision('echo \u001b]0;x\u0007 \u202e\nrm', 'allow'), reason: 'a\rb', rule: '\u009b2J' })
		await log.close()
		await appendFile(at.file(one), '\u001b[2Jforged\n')
		const lines = await at.lines(one)
		await appendFile(at.file(one), `${lines[1]!.replace('"reason":"', '"reason":"\u001b[31m')}\n`)
		const text = await show()
		expect(text).to.match(/^[\n\x20-\x7e\u2400-\u2426⏎…]*$/u)
		expect(text).to.include('␛]0;x␇ [U+202E] ⏎ rm').and.include('line 4 cannot be read')
		const json = await show({ json: true })
		expect(json).to.match(/^[\n\x20-\x7e]*$/)
		expect(json).to.include(`{"session":"${one}","unreadable":4}`)
		expect(await show({ tool: 'none' })).to.include('line 4 cannot be read')
	})

	it('show of nothing', async () => {
		expect(await show()).to.include('There are no audit logs')
		expect(await show({ json: true })).to.equal('')
		await at.session(one)
		await rm(at.file(one))
		expect(await show({ session: one }).catch((error: unknown) => error)).to.be.instanceOf(UserError)
	})
})
