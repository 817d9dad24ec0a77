// The kinds of tampering, each done to a real log and found, with the first bad line named.
import { copyFile, mkdir, readFile, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readCheckpoint, readWitness } from '../../../src/engine/audit/witness.ts'
import { one, Place, reseal, rewrite, two } from './fixture.ts'

describe('audit: tampering', () => {
	let at: Place
	beforeEach(async () => {
		at = await Place.make()
		await at.session(one)
		await at.session(two)
	})
	afterEach(() => at.remove())

	const finds = async (line: number, kind: string, words?: RegExp) => {
		const { why, ...found } = await at.verdict(one)
		expect(found, why).to.deep.equal({ ok: false, line, kind })
		if (words) expect(why).to.match(words)
		expect((await at.verify()).ok).to.equal(false)
		expect((await at.verdict(two)).ok, 'the other session').to.equal(true)
	}

	it('what nobody touched is ok', async () => {
		const found = await at.verify()
		expect(found.ok).to.equal(true)
		expect(found.sessions.map(({ ok, lines, notes }) => ({ ok, lines, notes }))).to.deep.equal([
			{ ok: true, lines: 8, notes: [] },
			{ ok: true, lines: 8, notes: [] },
		])
	})

	it('audit-tamper-01 a changed field', async () => {
		await at.edit(one, (lines) => lines.map((line, i) => (i === 2 ? line.replace('"deny"', '"allow"') : line)))
		await finds(3, 'changed')
	})
	it('audit-tamper-01 a changed time of the last line', async () => {
		await at.edit(one, (lines) => lines.map((line, i) => (i === 7 ? line.replace('2026', '2025') : line)))
		await finds(8, 'changed')
	})
	it('audit-tamper-01 a changed field with a hash made to fit', async () => {
		await at.edit(one, (lines) =>
			lines.with(
				4,
				reseal(lines[4]!, (line) => {
					line.decision = 'allow'
				}),
			),
		)
		await finds(5, 'changed')
	})
	it('audit-tamper-01 blanks and doubled names that leave the parsed value as it was', async () => {
		await at.edit(one, (lines) => lines.with(1, lines[1]!.replace('"decision":', '"decision": ')))
		await finds(2, 'changed')
		await at.edit(one, (lines) => lines.with(1, lines[1]!.replace('"decision": ', '"decision":"deny","decision":')))
		await finds(2, 'changed')
	})

	it('audit-tamper-02 a changed hash', async () => {
		await at.edit(one, (lines) => lines.with(3, lines[3]!.replace(/"hash":"../, '"hash":"00')))
		await finds(4, 'changed_hash')
	})
	it('audit-tamper-02 a changed hash of the first and of the last line', async () => {
		await at.edit(one, (lines) => lines.with(7, lines[7]!.replace(/"hash":"../, '"hash":"zz'.replace('zz', '0f'))))
		await finds(8, 'changed_hash')
		await at.edit(one, (lines) => lines.with(0, lines[0]!.replace(/"hash":"../, '"hash":"11')))
		await finds(1, 'changed_hash')
	})
	it('audit-tamper-02 a changed link to the line before', async () => {
		await at.edit(one, (lines) => lines.with(3, lines[3]!.replace(/"prev":"../, '"prev":"00')))
		await finds(4, 'changed')
	})

	it('audit-tamper-03 a removed line in the middle', async () => {
		await at.edit(one, (lines) => lines.toSpliced(3, 1))
		await finds(4, 'removed', /line 4 was removed/)
	})
	it('audit-tamper-03 three removed lines', async () => {
		await at.edit(one, (lines) => lines.toSpliced(2, 3))
		await finds(3, 'removed', /lines 3 to 5 were removed/)
	})

	it('audit-tamper-04 the removed first line', async () => {
		await at.edit(one, (lines) => lines.slice(1))
		await finds(1, 'removed_first')
	})
	it('audit-tamper-04 the first two, and all but the last', async () => {
		await at.edit(one, (lines) => lines.slice(2))
		await finds(1, 'removed_first')
		await at.edit(one, (lines) => lines.slice(-1))
		await finds(1, 'removed_first')
	})

	it('audit-tamper-05 a cut tail', async () => {
		await at.edit(one, (lines) => lines.slice(0, 5))
		await finds(6, 'cut', /ends after line 5.*knows 8 lines/)
	})
	it('audit-tamper-05 only the last line cut, half of it, or everything', async () => {
		const lines = await at.lines(one)
		await at.put(one, lines.slice(0, 7))
		await finds(8, 'cut')
		await writeFile(at.file(one), `${lines.slice(0, 7).join('\n')}\n${lines[7]!.slice(0, 50)}`)
		await finds(8, 'cut')
		await writeFile(at.file(one), '')
		await finds(1, 'cut')
	})

	it('audit-tamper-06 an inserted line', async () => {
		await at.edit(one, (lines) => lines.toSpliced(3, 0, lines[3]!.replace('ls 2', 'id 2')))
		await finds(4, 'inserted')
	})
	it('audit-tamper-06 an inserted line that follows the one before, with a fitting hash', async () => {
		await at.edit(one, (lines) =>
			lines.toSpliced(
				3,
				0,
				reseal(lines[3]!, (line) => {
					line.decision = 'once'
				}),
			),
		)
		await finds(4, 'inserted')
	})
	it('audit-tamper-06 the same beside a line, after it', async () => {
		await at.edit(one, (lines) =>
			lines.toSpliced(
				4,
				0,
				reseal(lines[3]!, (line) => {
					line.decision = 'once'
				}),
			),
		)
		await finds(5, 'inserted')
	})
	it('audit-tamper-06 a line that is none, and one of another session', async () => {
		const lines = await at.lines(one)
		await at.put(one, lines.toSpliced(2, 0, 'hello'))
		await finds(3, 'inserted')
		await at.put(one, lines.toSpliced(2, 0, (await at.lines(two))[2]!))
		await finds(3, 'foreign')
	})
	it('audit-tamper-06 a line put after the end', async () => {
		await at.edit(one, (lines) => [
			...lines,
			reseal(lines[7]!, (line) => {
				line.prev = '0'.repeat(64)
				line.n = 9
			}),
		])
		await finds(9, 'changed')
		const lines = (await at.lines(one)).slice(0, 8)
		const last = JSON.parse(lines[7]!)
		await at.put(one, [
			...lines,
			reseal(lines[6]!, (line) => {
				line.prev = last.hash
				line.n = 9
			}),
		])
		await finds(9, 'appended')
	})

	it('audit-tamper-07 swapped lines', async () => {
		await at.edit(one, (lines) => lines.with(3, lines[4]!).with(4, lines[3]!))
		await finds(4, 'swapped')
	})
	it('audit-tamper-07 swapped lines that are no neighbours, and the first two', async () => {
		const lines = await at.lines(one)
		await at.put(one, lines.with(2, lines[6]!).with(6, lines[2]!))
		await finds(3, 'swapped')
		await at.put(one, lines.with(0, lines[1]!).with(1, lines[0]!))
		await finds(1, 'swapped')
	})

	it('audit-tamper-08 a duplicated line', async () => {
		await at.edit(one, (lines) => lines.toSpliced(3, 0, lines[2]!))
		await finds(4, 'duplicated')
	})
	it('audit-tamper-08 a line repeated further down, and the last one', async () => {
		const lines = await at.lines(one)
		await at.put(one, lines.toSpliced(6, 0, lines[1]!))
		await finds(7, 'duplicated')
		await at.put(one, [...lines, lines[7]!])
		await finds(9, 'duplicated')
	})

	it('audit-tamper-09 a deleted file', async () => {
		await unlink(at.file(one))
		const found = await at.verdict(one)
		expect(found).to.include({ ok: false, kind: 'deleted' })
		expect(found.why).to.include('8 lines')
	})
	it('audit-tamper-09 a file and its entry in the index deleted: only a second place knows', async () => {
		const other = await Place.make()
		try {
			const checkpoint = join(other.base, 'heads')
			await other.session(one, { checkpoint })
			await rm(other.dir, { recursive: true })
			expect((await other.verify()).sessions).to.deep.equal([])
			const found = await other.verify({ places: [await readCheckpoint(checkpoint)] })
			expect(found.ok).to.equal(false)
			expect(found.sessions[0]).to.include({ session: one, ok: false, kind: 'deleted' })
		} finally {
			await other.remove()
		}
	})
	it('audit-tamper-09 a link or a folder in the place of a file', async () => {
		await copyFile(at.file(one), join(at.base, 'copy'))
		await unlink(at.file(one))
		await symlink(join(at.base, 'copy'), at.file(one))
		expect(await at.verdict(one)).to.include({ ok: false, kind: 'no_file', why: 'the log is a link' })
		await unlink(at.file(one))
		await mkdir(at.file(one))
		expect(await at.verdict(one)).to.include({ ok: false, kind: 'no_file' })
	})

	it('audit-tamper-10 a file replaced by that of another session', async () => {
		await copyFile(at.file(two), at.file(one))
		await finds(1, 'foreign', new RegExp(two))
	})
	it('audit-tamper-10 the same with the name in its lines changed, with and without new hashes', async () => {
		const renamed = (await at.lines(two)).map((line) => line.replace(two, one))
		await at.put(one, renamed)
		await finds(1, 'changed')
		const [first, ...rest] = await at.lines(two)
		await at.put(one, [
			reseal(first!, (line) => {
				line.session = one
			}),
			...rest,
		])
		await finds(1, 'foreign', /does not begin as the log of this session/)
	})

	it('audit-tamper-11 a chain rewritten from a line on', async () => {
		await at.edit(one, (lines) =>
			rewrite(lines, 5, (line) => {
				line.decision = 'allow'
			}),
		)
		await finds(1, 'rewritten', /one of the lines 1 to 8/)
	})
	it('audit-tamper-11 rewritten from the first line, and rewritten with lines added', async () => {
		const lines = await at.lines(one)
		await at.put(
			one,
			rewrite(lines, 1, (line) => {
				line.reason = 'nothing'
			}),
		)
		await finds(1, 'rewritten')
		const longer = rewrite(lines, 4, (line) => {
			line.tool = 'read_file'
		})
		const last = JSON.parse(longer[7]!)
		await at.put(one, [
			...longer,
			reseal(longer[6]!, (line) => {
				line.n = 9
				line.prev = last.hash
			}),
		])
		await finds(1, 'rewritten')
	})
	it('audit-tamper-11 the heads of earlier turns narrow the place down to one turn', async () => {
		const checkpoint = join(at.base, 'heads')
		const three = '01j00000000000cc'
		await at.session(three, { checkpoint })
		await at.edit(three, (lines) =>
			rewrite(lines, 5, (line) => {
				line.decision = 'allow'
			}),
		)
		const found = await at.verdict(three, { places: [await readCheckpoint(checkpoint)] })
		expect(found).to.include({ ok: false, kind: 'rewritten', line: 4 })
		expect(found.why).to.include('one of the lines 4 to 5')
	})

	describe('with a second place', () => {
		const three = '01j00000000000cc'
		const places = async () => ({
			checkpoint: join(at.base, 'elsewhere', 'heads.jsonl'),
			witnesses: [{ folder: join(at.base, 'witness') }],
		})
		beforeEach(async () => {
			await mkdir(join(at.base, 'elsewhere'))
			await mkdir(join(at.base, 'witness'))
			await at.session(three, await places())
			expect(at.reports).to.deep.equal([])
		})
		const read = async () => {
			const { checkpoint, witnesses } = await places()
			return [await readCheckpoint(checkpoint), await readWitness(witnesses[0]!, at.git)]
		}

		it('audit-tamper-12 file and index rewritten together differ from the checkpoint', async () => {
			await at.edit(three, (lines) =>
				rewrite(lines, 7, (line) => {
					line.decision = 'allow'
				}),
			)
			await at.fixIndex(three)
			expect((await at.verdict(three)).ok, 'without it').to.equal(true)
			const [checkpoint] = await read()
			const found = await at.verdict(three, { places: [checkpoint!] })
			expect(found).to.include({ ok: false, kind: 'rewritten', line: 6 })
			expect(found.why).to.include('the index was rewritten with it').and.include(checkpoint!.name)
		})
		it('audit-tamper-12 a tail cut from file and index, and a file and index put back to an earlier turn', async () => {
			await at.edit(three, (lines) => lines.slice(0, 5))
			await at.fixIndex(three)
			expect((await at.verdict(three)).ok, 'without it').to.equal(true)
			expect(await at.verdict(three, { places: (await read()).slice(0, 1) })).to.include({
				ok: false,
				kind: 'cut',
				line: 6,
			})
		})

		it('audit-tamper-13 file, index and checkpoint rewritten together differ from the witness', async () => {
			await at.edit(three, (lines) =>
				rewrite(lines, 2, (line) => {
					line.decision = 'deny'
				}),
			)
			await at.fixIndex(three)
			const lines = await at.parsed(three)
			const { checkpoint } = await places()
			const heads = (await readFile(checkpoint, 'utf8'))
				.trim()
				.split('\n')
				.map((line) => JSON.parse(line))
			await writeFile(
				checkpoint,
				`${heads.map((head) => JSON.stringify({ ...head, hash: lines[head.lines - 1]!.hash })).join('\n')}\n`,
			)
			const [kept, witness] = await read()
			expect((await at.verdict(three, { places: [kept!] })).ok, 'without it').to.equal(true)
			const found = await at.verdict(three, { places: [kept!, witness!] })
			expect(found).to.include({ ok: false, kind: 'rewritten', line: 1 })
			expect(found.why).to.include('the index and the checkpoint').and.include('witness')
		})
		it('audit-tamper-13 all three cut, and all three deleted', async () => {
			const { checkpoint } = await places()
			await at.edit(three, (lines) => lines.slice(0, 3))
			await at.fixIndex(three)
			await writeFile(checkpoint, `${(await readFile(checkpoint, 'utf8')).split('\n')[0]}\n`)
			const [kept, witness] = await read()
			expect((await at.verdict(three, { places: [kept!] })).ok, 'without it').to.equal(true)
			expect(await at.verdict(three, { places: [kept!, witness!] })).to.include({ ok: false, kind: 'cut', line: 4 })
			await rm(at.dir, { recursive: true })
			await rm(checkpoint)
			expect(await at.verdict(three, { places: [witness!] })).to.include({ ok: false, kind: 'deleted' })
		})
		it('a second place that cannot be read is never ok: nothing was checked against it', async () => {
			await rm(join(at.base, 'witness'), { recursive: true })
			const found = await at.verify({ places: await read() })
			expect(found.ok).to.equal(false)
			expect(found.problems.join()).to.include('could not be read: it is not there')
		})
	})

	it('an index that lost an entry, is gone or is damaged is told', async () => {
		const index = JSON.parse(await readFile(at.index(), 'utf8'))
		delete index.sessions[one]
		await writeFile(at.index(), JSON.stringify(index))
		expect(await at.verdict(one)).to.include({ ok: false, kind: 'unindexed' })
		for (const [text, words] of [
			['{"sessions": 3}', 'damaged'],
			[JSON.stringify({ sessions: { [one]: { lines: -1, hash: 'x' } } }), 'damaged'],
			['', 'damaged'],
		] as const) {
			await writeFile(at.index(), text)
			expect((await at.verify()).problems.join(), text).to.include(words)
		}
		await unlink(at.index())
		const found = await at.verify()
		expect(found.ok).to.equal(false)
		expect(found.problems.join()).to.include('missing')
		expect(found.problems.join()).to.include('could not be written')
		expect(found.notes).to.deep.equal([])
	})

	it('logs that a full disk left without a line are no tampering; one with a line is not excused by them', async () => {
		const ids = ['01j00000000000ee', '01j00000000000ff']
		for (const id of ids) await writeFile(at.file(id), '', { mode: 0o600 })
		for (const { session, ok, notes } of (await at.verify()).sessions)
			expect([ok, notes.join()], session).to.deep.equal([
				true,
				ids.includes(session) ? 'it has no line: the disk took none when it began (it was full)' : '',
			])
		await unlink(at.index())
		expect((await at.verify()).problems.join()).to.include('missing')
		for (const id of [one, two]) await unlink(at.file(id))
		const found = await at.verify()
		expect([found.ok, found.problems]).to.deep.equal([true, []])
		expect(found.notes.join()).to.include('no log has a line')
		// A link is no empty log, nor is one whose line was cut off while it was written.
		await symlink(at.file(ids[1]!), at.file(one))
		expect((await at.verify()).ok).to.equal(false)
		await unlink(at.file(one))
		await writeFile(at.file(one), '{"n":1')
		expect((await at.verify()).ok).to.equal(false)
	})

	it('a folder that is a link, and heads under another session’s name, are told', async () => {
		await mkdir(join(at.base, 'w'))
		const head = { session: two, lines: 8, hash: (await at.parsed(two))[7]!.hash, time: '' }
		await writeFile(join(at.base, 'w', `${one}.heads.jsonl`), `${JSON.stringify(head)}\n`)
		const found = await at.verify({ places: [await readWitness({ folder: join(at.base, 'w') }, at.git)] })
		expect(found.notes.join()).to.include('1 entry')
		expect(found.sessions.flatMap((session) => session.witnessed)).to.deep.equal([])
		await rename(at.dir, join(at.base, 'moved'))
		await symlink(join(at.base, 'moved'), at.dir)
		const linked = await at.verify()
		expect(linked.ok).to.equal(false)
		expect(linked.problems.join()).to.include('is a link')
	})

	it('a line of a mebibyte or of any bytes is named, not read into memory or thrown at', async () => {
		const lines = await at.lines(one)
		await at.put(one, lines.toSpliced(2, 1, 'x'.repeat(3 << 20)))
		await finds(3, 'unreadable')
		await writeFile(
			at.file(one),
			Buffer.from([...Buffer.from(`${lines[0]}\n`), 0xff, 0, 0xfe, 10, ...Buffer.from(lines[1]!), 10]),
		)
		await finds(2, 'inserted')
	})
})
