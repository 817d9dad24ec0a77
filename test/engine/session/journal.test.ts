import { execFileSync, spawnSync } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { isSessionId, newSessionId } from '../../../src/engine/session/ids.ts'
import { rebuild } from '../../../src/engine/session/resume.ts'
import {
	allThrown,
	assistant,
	call,
	cleanFolders,
	end,
	header,
	journalOf,
	place,
	redactorOf,
	reply,
	results,
	say,
	storeOf,
	thrown,
	time,
	turn,
	user,
} from './help.ts'

const helper = pathToFileURL(fileURLToPath(new URL('./help.ts', import.meta.url))).href
/** Runs a piece of TypeScript in a process of its own, with the helpers at hand. */
const child = (code: string, wrap?: (argv: string[]) => string[]) => {
	const argv = [
		process.execPath,
		'--import',
		'tsx',
		'--input-type=module',
		'-e',
		`import * as h from ${JSON.stringify(helper)}\n${code}`,
	]
	const [command, ...args] = wrap ? wrap(argv) : argv
	return spawnSync(command!, args, { encoding: 'utf8', cwd: fileURLToPath(new URL('../../..', import.meta.url)) })
}

describe('session: journal', () => {
	afterEach(cleanFolders)

	it('gives back what was appended, in order, with the same system prompt and tools', async () => {
		const at = await place()
		const store = storeOf(at)
		const given = header(at, {
			system: 'line one\n"two" \u2028 three',
			tools: [{ name: 'x', schema: { a: [1, null] } }],
		})
		const writer = await store.create(given)
		const records = [...turn(1, 'hello'), ...turn(2, 'again')]
		for (const record of records) await writer.append(record)
		await writer.close()
		const back = await store.open(given.id)
		expect(back.header).to.deep.equal(given)
		expect(back.records.slice(1)).to.deep.equal(records)
		expect(back.problems).to.deep.equal([])
		await back.writer.append(user('third'))
		await back.writer.close()
		expect((await store.read(given.id)).records.at(-1)).to.include({ type: 'user', prompt: 'third' })
	})

	it('makes the folder private and invisible to git, whatever the project ignores', async () => {
		const at = await place()
		execFileSync('git', ['init', '-q'], { cwd: at.root })
		await fs.mkdir(join(at.root, '.garuda'))
		await fs.writeFile(join(at.root, '.garuda', '.gitignore'), '!sessions/\n!sessions/*\n')
		await fs.writeFile(join(at.root, '.garuda', 'settings.json'), '{}')
		const writer = await storeOf(at).create(header(at))
		await writer.append(user('a secret plan'))
		await writer.close()
		execFileSync('git', ['add', '-A'], { cwd: at.root })
		const listed = execFileSync('git', ['ls-files'], { cwd: at.root, encoding: 'utf8' }).trim().split('\n')
		expect(listed).to.deep.equal(['.garuda/.gitignore', '.garuda/settings.json'])
		expect((await fs.stat(join(at.root, '.garuda', 'sessions'))).mode & 0o777).to.equal(0o700)
		expect((await fs.stat(journalOf(at, writer.id))).mode & 0o777).to.equal(0o600)
		const fresh = await place()
		const other = await storeOf(fresh).create(header(fresh))
		await other.append(user('x'))
		await other.close()
		expect(await fs.readFile(join(fresh.root, '.garuda', '.gitignore'), 'utf8'))
			.to.match(/^\/sessions\/$/m)
			.and.not.match(/settings|memory|commands/)
	})

	it('leaves no file of a session that never got a prompt, and its lock is gone', async () => {
		const at = await place()
		const writer = await storeOf(at).create(header(at))
		await writer.append({ type: 'mode', time: time(), mode: 'plan' })
		await writer.close()
		expect(
			(await fs.readdir(join(at.root, '.garuda', 'sessions'))).filter((name) => name !== '.gitignore'),
		).to.deep.equal([])
	})

	it('writes U+2028, U+0085, NUL and half surrogates in one line and gives them back', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		const text = 'a\u2028b\u2029c\u0085d\0e\ud800f\r\ng'
		await writer.append(user(text))
		await writer.close()
		const raw = await fs.readFile(journalOf(at, writer.id), 'utf8')
		expect(raw).to.not.match(/[\u2028\u2029\u0085\0\r]/)
		expect(raw.split('\n')).to.have.length(3)
		expect((await store.read(writer.id)).records[1]).to.include({ prompt: text })
	})

	it('secret-04 no secret reaches a line: prompts, results, inputs, keys, titles, the header', async () => {
		const at = await place()
		const secret = 'hunter2-"quoted"\n-and-long'
		const store = storeOf(at, { redactor: redactorOf(secret) })
		const writer = await store.create(header(at, { system: `key ${secret}`, tools: [{ description: secret }] }))
		await writer.append(user(`my key is ${secret}`))
		await writer.append(call('c1', 'bash', { command: `echo ${secret}`, nested: [{ [`a long ${secret}`]: secret }] }))
		await writer.append(results('c1', `out ${secret}`))
		await writer.append({
			type: 'decision',
			time: time(),
			tool: 'bash',
			input: { command: secret },
			decision: 'once',
			reason: secret,
			key: `bash:${secret}`,
		})
		await writer.append({ type: 'title', time: time(), title: `about ${secret}` })
		await writer.append({ type: 'compaction', time: time(), messages: [say(secret)], before: 1, after: 1 })
		await writer.append({ type: 'end', time: time(), turn: 1, reason: 'error', usage: {}, error: { message: secret } })
		await writer.close()
		const raw = await fs.readFile(journalOf(at, writer.id), 'utf8')
		expect(raw).to.not.include('hunter2').and.not.include('-and-long')
		expect(raw.match(/\[secret:KEY\]/g)).to.have.length.greaterThan(9)
		expect(await fs.readFile(join(at.home, 'sessions.json'), 'utf8')).to.not.include('hunter2')
	})

	it('secret-04 a long text is redacted before it is stored beside the journal', async () => {
		const at = await place()
		const store = storeOf(at, { redactor: redactorOf('hunter2') })
		const writer = await store.create(header(at))
		await writer.append(user(`${'x'.repeat(300_000)} hunter2`))
		await writer.close()
		const dir = join(at.root, '.garuda', 'sessions', `${writer.id}.d`)
		for (const name of await fs.readdir(dir))
			expect(await fs.readFile(join(dir, name), 'utf8'))
				.to.include('[secret:KEY]')
				.and.not.include('hunter2')
	})

	it('secret-04 a signed block that redaction would change is left out, one that it does not change stays', async () => {
		const at = await place()
		const store = storeOf(at, { redactor: redactorOf('hunter2') })
		const writer = await store.create(header(at))
		await writer.append(user('x'))
		const thinking = (raw: string) => ({
			type: 'thinking' as const,
			text: 'hm',
			provider: 'p',
			model: 'm',
			raw: { signature: raw },
		})
		await writer.append({
			type: 'assistant',
			time: time(),
			usage: {},
			model: 'm',
			stop: 'end',
			message: { role: 'assistant', blocks: [thinking('abc'), thinking('hunter2'), { type: 'text', text: 'hello' }] },
		})
		await writer.close()
		const record = (await store.read(writer.id)).records[2]!
		expect(record.type === 'assistant' && record.message.blocks).to.deep.equal([
			thinking('abc'),
			{ type: 'text', text: 'hello' },
		])
	})

	it('X03 a text of 12 MB lies beside the record, private, and comes back whole; a missing one is named', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		await writer.append(user('x'))
		const big = 'é\u2028"\\'.repeat(1_700_000)
		await writer.append(call('c1', 'write_file', { path: 'a', content: big, $stored: 'not ours' }))
		await writer.append(results('c1', big))
		await writer.close()
		expect((await fs.stat(journalOf(at, writer.id))).size).to.be.lessThan(10_000)
		const dir = `${journalOf(at, writer.id).slice(0, -6)}.d`
		const names = await fs.readdir(dir)
		expect(names).to.have.length(1)
		expect((await fs.stat(join(dir, names[0]!))).mode & 0o777).to.equal(0o600)
		const back = await store.read(writer.id)
		expect(back.problems).to.deep.equal([])
		const [, , called, result] = back.records
		expect(called?.type === 'assistant' && called.message.blocks[0]).to.deep.include({
			input: { path: 'a', content: big, $stored: 'not ours' },
		})
		expect(result?.type === 'results' && result.message.blocks[0]).to.deep.include({ text: big })
		await fs.writeFile(join(dir, names[0]!), '"something else"')
		const changed = await store.read(writer.id)
		expect(changed.problems.join()).to.match(/2 long text/)
		expect(JSON.stringify(changed.records[3])).to.include('stored beside the session is missing')
	}).timeout(20_000)

	it('X03 many long texts in one record do not make a line that cannot be read again', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		const record = user('x')
		if (record.type === 'user')
			record.message.blocks = Array.from({ length: 60 }, (_, i) => ({ type: 'text', text: `${i} `.repeat(60_000) }))
		await writer.append(record)
		await writer.close()
		expect((await store.read(writer.id)).records[1]).to.deep.equal(record)
	})

	it('X03 a list reads heads and tails only: 300 sessions of 300 kB in a moment, with their titles', async () => {
		const at = await place()
		const store = storeOf(at)
		const first = await store.create(header(at))
		await first.append(user('the first prompt of all'))
		for (let i = 0; i < 30; i++) await first.append(assistant('y'.repeat(10_000)))
		await first.append({ type: 'title', time: time(), title: 'Named late' })
		await first.close()
		const text = await fs.readFile(journalOf(at, first.id), 'utf8')
		for (let i = 0; i < 300; i++) {
			const id = newSessionId(Date.now() + i)
			await fs.writeFile(journalOf(at, id), text.replaceAll(first.id, id).replace('Named late', `Named ${i}`), {
				mode: 0o600,
			})
		}
		const before = performance.now()
		const list = await store.list()
		const took = performance.now() - before
		console.log(`        list of 301 sessions: ${took.toFixed(0)} ms`)
		expect(list).to.have.length(301)
		expect(new Set(list.map((one) => one.title)))
			.to.include('Named 299')
			.and.include('Named late')
		expect(took).to.be.lessThan(3000)
	}).timeout(20_000)

	it('session-02 an id is an id: nothing with a path in it reaches the disk', async () => {
		const at = await place()
		const store = storeOf(at)
		for (const id of [
			'../../x',
			'..',
			'',
			'a/b',
			'/etc/passwd',
			'0123456789abcde',
			'ABCDEFGHIJKLMNOP',
			'0123456789abcdef.jsonl',
			'x\0y',
			'0123456789abcde\n',
			'01234567-89AB-cdef-0123-456789abcdef',
		]) {
			expect(isSessionId(id), id).to.equal(false)
			for (const error of await allThrown(
				store.read(id),
				store.open(id),
				store.remove(id),
				store.rename(id, 'x'),
				store.create(header(at, { id })),
				store.find(id),
				store.adopt(id, header(at)),
			))
				expect(error, id).to.be.instanceOf(UserError)
		}
		expect(isSessionId('01234567-89ab-cdef-0123-456789abcdef')).to.equal(true)
		expect(await fs.readdir(at.root)).to.deep.equal([])
	})

	it('makes ids that sort by time', () => {
		const ids = [1, 1000, 1e12, 1.7e12, 1.7e12 + 1, 2e13].map(newSessionId)
		expect([...ids].sort()).to.deep.equal(ids)
		expect(ids.every(isSessionId)).to.equal(true)
		expect(newSessionId(5)).to.not.equal(newSessionId(5))
	})

	it('find takes the beginning of an id when it means one session', async () => {
		const at = await place()
		const store = storeOf(at)
		for (const id of ['aaaa000000000001', 'aaaa000000000002', 'bbbb000000000001']) {
			const writer = await store.create(header(at, { id }))
			await writer.append(user(id))
			await writer.close()
		}
		expect(await store.find('bbbb')).to.equal('bbbb000000000001')
		expect((await thrown(store.find('aaaa'))).message).to.match(/2 sessions begin/)
		expect((await thrown(store.find('cccc'))).message).to.match(/No session/)
		expect(await thrown(store.find('bbb'))).to.be.instanceOf(UserError)
	})

	it('rename and delete: the open session is renamed through its writer and never deleted', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		for (const record of turn(1, 'hello')) await writer.append(record)
		await store.rename(writer.id, 'While\nopen \u202e!')
		expect((await thrown(store.remove(writer.id))).message).to.match(/open one/)
		expect((await thrown(storeOf(at).remove(writer.id))).message).to.match(new RegExp(`process ${process.pid}`))
		expect((await thrown(storeOf(at).rename(writer.id, 'x'))).message).to.match(/open in process/)
		await writer.close()
		expect((await store.list())[0]?.title).to.equal('While ⏎ open [U+202E]!')
		await store.rename(writer.id, 'Later')
		expect((await store.list()).map((one) => one.title)).to.deep.equal(['Later'])
		expect(await thrown(store.rename(writer.id, ' \n'))).to.be.instanceOf(UserError)
		await store.remove(writer.id)
		expect(await store.list()).to.deep.equal([])
		expect(await fs.readdir(join(at.root, '.garuda', 'sessions'))).to.deep.equal(['.gitignore'])
		expect(await fs.readFile(join(at.home, 'sessions.json'), 'utf8')).to.not.include(writer.id)
		expect((await thrown(store.remove(writer.id))).message).to.match(/no session/)
	})

	it('session-03 broken, huge, NUL and duplicate lines are skipped and named; the rest is there', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		for (const record of turn(1, 'one')) await writer.append(record)
		await writer.close()
		const path = journalOf(at, writer.id)
		const lines = (await fs.readFile(path, 'utf8')).trimEnd().split('\n')
		const two = JSON.stringify(user('two'))
		const bad = [
			'{"type":"user","time":1',
			'a\0b',
			`"${'x'.repeat(10 << 20)}"`,
			'[]',
			'{"type":"user","time":1,"prompt":"p","message":{"role":"system","blocks":[]}}',
			'{"type":"assistant","time":1,"model":"m","stop":"s","message":{"role":"assistant","blocks":[{"type":"text"}]}}',
			lines[0]!,
		]
		await fs.writeFile(
			path,
			`${[...lines, ...bad, two, two, '{"type":"from_the_future","time":1}', JSON.stringify(assistant('fine'))].join('\n')}\n`,
		)
		const back = await store.read(writer.id)
		expect(back.problems).to.have.length(1)
		expect(back.problems[0])
			.to.match(/line 7 is no JSON/)
			.and.match(/line 8 holds NUL/)
			.and.match(/line 9 is longer/)
			.and.match(/and 3 more/)
		expect(back.records.filter((record) => (record.type as string) === 'damaged')).to.have.length(bad.length)
		expect(
			back.records.filter((record) => record.type === 'user').map((record) => record.type === 'user' && record.prompt),
		).to.deep.equal(['one', 'two'])
		expect(rebuild(back.records).messages.at(-1)).to.deep.equal(reply('fine'))
		expect(back.records.some((record) => (record.type as string) === 'from_the_future')).to.equal(true)
	})

	it('session-03 a file with no header, of a later version, or of another name is refused and left alone', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		await writer.append(user('x'))
		await writer.close()
		const path = journalOf(at, writer.id)
		const good = await fs.readFile(path, 'utf8')
		for (const [text, why] of [
			['', /no readable first line/],
			[good.slice(good.indexOf('\n') + 1), /no readable first line/],
			[good.replace('"version":1', '"version":2'), /later version/],
			[good.replace(writer.id, newSessionId(1)), /another name/],
		] as const) {
			await fs.writeFile(path, text)
			expect((await thrown(store.open(writer.id))).message).to.match(why)
			expect(await fs.readFile(path, 'utf8')).to.equal(text)
		}
		await fs.writeFile(path, good)
		await (await store.open(writer.id)).writer.close()
	})

	it('a torn last line is cut off at resume, a whole one without its newline is kept', async () => {
		const at = await place()
		const store = storeOf(at)
		const writer = await store.create(header(at))
		for (const record of turn(1, 'one')) await writer.append(record)
		await writer.close()
		const path = journalOf(at, writer.id)
		const whole = await fs.readFile(path, 'utf8')
		const last = JSON.stringify(user('two'))
		// Every place where a write can have ended.
		for (const cut of [1, 20, last.length - 1]) {
			await fs.writeFile(path, whole + last.slice(0, cut))
			const back = await store.open(writer.id)
			expect(back.problems.join()).to.match(/cut off by a crash/)
			expect(
				rebuild(back.records).turns.map((mark) => mark.blocked),
				'undo still works',
			).to.deep.equal([undefined])
			await back.writer.append(user('three'))
			await back.writer.close()
			expect((await store.read(writer.id)).problems).to.deep.equal([])
			expect(rebuild((await store.read(writer.id)).records).turns.map((mark) => mark.prompt)).to.deep.equal([
				'one',
				'three',
			])
		}
		await fs.writeFile(path, whole + last)
		const back = await store.open(writer.id)
		expect(back.problems).to.deep.equal([])
		await back.writer.append(assistant('ok'))
		await back.writer.close()
		expect(rebuild((await store.read(writer.id)).records).messages.slice(-2)).to.deep.equal([say('two'), reply('ok')])
		// A machine that lost power can leave NULs.
		await fs.writeFile(path, `${whole}\0\0\0\0`)
		const zeros = await store.open(writer.id)
		expect(zeros.problems.join()).to.match(/cut off/)
		await zeros.writer.close()
		expect(await fs.readFile(path, 'utf8')).to.equal(whole)
	})

	it('kill -9 at any moment loses no record that was appended, and the lock is taken over', () => {
		// In the process's own words: what append resolved for is in the file.
		return (async () => {
			const at = await place()
			const id = newSessionId(Date.now())
			for (const at9 of [1, 7, 23]) {
				const code = `
const at = ${JSON.stringify(at)}
const store = h.storeOf(at)
const open = ${at9} === 1 ? { writer: await store.create(h.header(at, { id: ${JSON.stringify(id)} })) } : await store.open(${JSON.stringify(id)})
for (let i = 0; i < ${at9}; i++) { await open.writer.append(h.user(${at9} + ' prompt ' + i)); if (i === ${at9 - 1}) process.kill(process.pid, 'SIGKILL') }`
				const run = child(code)
				expect(run.signal, run.stderr).to.equal('SIGKILL')
			}
			const store = storeOf(at)
			const back = await store.open(id)
			expect(back.records.filter((record) => record.type === 'user')).to.have.length(31)
			expect(rebuild(back.records)).to.include({ stoppedMidway: true, nextTurn: 32 })
			await back.writer.close()
		})()
	}).timeout(20_000)

	it('a deleted journal is told, once, not written to in silence', async () => {
		const at = await place()
		const writer = await storeOf(at).create(header(at))
		const told: string[] = []
		writer.onProblem((text) => told.push(text))
		for (const record of turn(1, 'one')) await writer.append(record)
		await fs.rm(journalOf(at, writer.id))
		for (const record of turn(2, 'two')) await writer.append(record)
		await writer.append(end(2))
		await writer.close()
		expect(told).to.have.length(1)
		expect(told[0]).to.match(/deleted while it was open/)
	})

	describe('X06 a full disk', () => {
		it('X06 warns once, keeps records in memory, leaves no torn line, and saves all of it when there is room again', () => {
			return (async () => {
				const at = await place()
				const id = newSessionId(Date.now())
				// A limit on file size makes the system itself write half a line and then refuse.
				const code = `
const at = ${JSON.stringify(at)}
const { spawnSync } = await import('node:child_process')
const { readFileSync } = await import('node:fs')
const writer = await h.storeOf(at).create(h.header(at, { id: ${JSON.stringify(id)} }))
const told = []
writer.onProblem((text) => told.push(text))
for (let i = 0; i < 12; i++) await writer.append(h.user(i + ' ' + 'x'.repeat(9000)))
const text = readFileSync(h.journalOf(at, ${JSON.stringify(id)}), 'utf8')
const whole = text.endsWith('\\n') && text.trimEnd().split('\\n').every((line) => JSON.parse(line))
const before = { told: [...told], unsaved: writer.unsaved, lines: text.split('\\n').length, whole }
const raised = spawnSync('prlimit', ['--fsize=unlimited', '--pid', String(process.pid)]).status
await writer.append(h.user('after'))
await writer.close()
console.log(JSON.stringify({ ...before, raised, after: writer.unsaved, toldAfter: told.length }))`
				const run = child(code, (argv) => ['bash', '-c', 'trap "" XFSZ; ulimit -Sf 48; exec "$@"', 'bash', ...argv])
				const out = JSON.parse(run.stdout.trim() || `{"error":${JSON.stringify(run.stderr)}}`)
				expect(out).to.deep.include({ whole: true, raised: 0, after: 0, toldAfter: 1 })
				expect(out.told[0]).to.match(/cannot be saved.*EFBIG.*full/)
				expect(out.unsaved).to.be.greaterThan(3)
				expect(out.lines).to.be.lessThan(8)
				const back = await storeOf(at).read(id)
				expect(back.problems).to.deep.equal([])
				expect(back.records.filter((record) => record.type === 'user')).to.have.length(13)
			})()
		}).timeout(20_000)

		it('X06 what is never saved is counted and said at the end', async () => {
			const at = await place()
			const id = newSessionId(Date.now())
			const code = `
const at = ${JSON.stringify(at)}
const writer = await h.storeOf(at).create(h.header(at, { id: ${JSON.stringify(id)} }))
const told = []
writer.onProblem((text) => told.push(text))
for (let i = 0; i < 8; i++) await writer.append(h.user(i + ' ' + 'x'.repeat(9000)))
await writer.close()
console.log(JSON.stringify({ told, unsaved: writer.unsaved }))`
			const run = child(code, (argv) => ['bash', '-c', 'trap "" XFSZ; ulimit -Sf 48; exec "$@"', 'bash', ...argv])
			const out = JSON.parse(run.stdout.trim() || `{"error":${JSON.stringify(run.stderr)}}`)
			expect(out.told).to.have.length(2)
			expect(out.told[1]).to.match(/^\d record\(s\) .* could not be saved/)
			expect(out.unsaved).to.be.greaterThan(2)
			expect(rebuild((await storeOf(at).read(id)).records).turns.length).to.equal(8 - out.unsaved)
		}).timeout(20_000)

		it('X06 a folder that cannot be made does not stop the conversation', async () => {
			const at = await place()
			// A file where ~/.garuda/sessions.json's folder would be, and a root that is gone: no place to write at all.
			await fs.rm(at.root, { recursive: true })
			const writer = await storeOf(at).create(header(at))
			const told: string[] = []
			writer.onProblem((text) => told.push(text))
			for (const record of turn(1, 'hello')) await writer.append(record)
			await writer.close()
			expect(told[0]).to.match(/is not saved/)
			expect(writer.unsaved).to.equal(6)
		})
	})
})
