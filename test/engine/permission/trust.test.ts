// The trust store: what is asked, what is pinned, what is refused; and what a granted file brings into a session.
import { spawn } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { systemClock as clock } from '../../../src/engine/clock.ts'
import { grantHeld } from '../../../src/engine/config/held.ts'
import { garudaPaths } from '../../../src/engine/config/paths.ts'
import { defaultSettings, loadSettings } from '../../../src/engine/config/settings.ts'
import { UserError } from '../../../src/engine/errors.ts'
import { effectiveSettings } from '../../../src/engine/permission/effective.ts'
import { type Artefact, consentHash, createTrustStore, trustFile } from '../../../src/engine/permission/trust.ts'
import type { AuditEntry } from '../../../src/engine/ports.ts'
import type { ApprovalRequest, Choice } from '../../../src/engine/types.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))
const never = new AbortController().signal

describe('permission: trust store', () => {
	let dir: string
	let root: string
	let home: string
	let file: string
	beforeEach(async () => {
		dir = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'garuda-trust-')))
		root = join(dir, 'proj')
		home = join(dir, 'home')
		await fs.mkdir(join(root, '.garuda'), { recursive: true })
		await fs.mkdir(join(home, '.garuda'), { recursive: true, mode: 0o700 })
		file = join(home, '.garuda/trust.json')
	})
	afterEach(() => fs.rm(dir, { recursive: true, force: true }))

	/** A store whose questions are answered from a list; `asked` keeps them. */
	const store = (
		answers: (Choice | ((request: ApprovalRequest) => Choice | Promise<Choice>))[] | 'nobody' = 'nobody',
	) => {
		const asked: ApprovalRequest[] = []
		const audit: AuditEntry[] = []
		const made = createTrustStore({
			file,
			clock,
			interactive: answers !== 'nobody',
			record: (entry) => audit.push(entry),
			approver: {
				async ask(request) {
					asked.push(request)
					const next = answers === 'nobody' ? undefined : answers[asked.length - 1]
					if (next === undefined) throw new Error('nobody expected this question')
					return { choice: typeof next === 'function' ? await next(request) : next }
				},
			},
		})
		return Object.assign(made, { asked, audit })
	}
	const artefact = async (text: string, more: Partial<Artefact> = {}): Promise<Artefact> => {
		const path = more.path ?? join(root, '.garuda/mcp.json')
		await fs.writeFile(path, text)
		return { kind: 'mcp', root, name: 'server', path, text, bytes: Buffer.from(text), ...more }
	}
	const written = async () => JSON.parse(await fs.readFile(file, 'utf8')) as { consents: { sha256: string }[] }

	it('asks once, shows the whole text, pins the bytes in a private file, and asks no more', async () => {
		const one = await artefact('{"command":"node server.js"}')
		const first = store(['session'])
		expect(await first.consent(one, never)).to.equal('granted')
		expect(first.asked).to.have.length(1)
		const [request] = first.asked
		expect(request!.tool).to.equal('trust')
		expect(request!.preview).to.include('{"command":"node server.js"}')
		expect(request!.choices).to.deep.equal(['once', 'session', 'deny'])
		expect(request!.labels).to.deep.equal({
			once: 'this time only',
			session: 'trust this exact text',
			deny: 'leave it out',
		})
		expect((await fs.stat(file)).mode & 0o777).to.equal(0o600)
		expect((await written()).consents[0]!.sha256).to.equal(consentHash(one))
		// The same store, another one, and one where nobody can be asked.
		expect(await first.consent(one, never)).to.equal('granted')
		expect(await store([]).consent(one, never)).to.equal('granted')
		expect(await store().consent(one, never)).to.equal('granted')
		expect(first.asked).to.have.length(1)
	})

	it('config-05 nothing counts before the answer; where nobody can be asked it is left out, with the way to agree', async () => {
		const one = await artefact('{"command":"sh -c evil"}')
		const alone = store()
		expect(await alone.consent(one, never)).to.equal('left_out')
		expect(alone.asked).to.deep.equal([])
		expect(alone.notices().join()).to.include(one.path).and.include('Start garuda once in a terminal').and.include(root)
		expect(alone.notices()).to.deep.equal([])
		for (const answer of ['deny', 'cancel'] as const) {
			const no = store([answer])
			expect(await no.consent(one, never)).to.equal('refused')
			// A no of this run is not asked again, and is kept nowhere.
			expect(await no.consent(one, never)).to.equal('refused')
			expect(no.asked).to.have.length(1)
		}
		expect(
			await fs.access(file).then(
				() => true,
				() => false,
			),
		).to.equal(false)
	})

	it('"this time only" holds for this run and is written nowhere', async () => {
		const one = await artefact('x')
		const run = store(['once'])
		expect(await run.consent(one, never)).to.equal('granted')
		expect(await run.consent(one, never)).to.equal('granted')
		expect(run.asked).to.have.length(1)
		expect(await store().consent(one, never)).to.equal('left_out')
	})

	it('config-07 any change of the bytes asks again and says so: command, arguments, blanks, one invisible character', async () => {
		const text = '{"command":"node","args":["server.js"]}'
		expect(await store(['session']).consent(await artefact(text), never)).to.equal('granted')
		for (const changed of [
			text.replace('server', 'evil'),
			text.replace('"node"', '"bash"'),
			`${text} `,
			text.replace('node', 'no\u200bde'),
			text.replace('{', '{"env":{"A":"1"},'),
		]) {
			const one = await artefact(changed)
			expect(await store().consent(one, never), changed).to.equal('left_out')
			const again = store(['deny'])
			expect(await again.consent(one, never), changed).to.equal('refused')
			expect(again.asked[0]!.title, changed).to.include('Changed since you agreed')
		}
		// What was agreed to still is.
		expect(await store().consent(await artefact(text), never)).to.equal('granted')
	})

	it('config-07 a consent is for one kind, root, name and path', async () => {
		const one = await artefact('same bytes')
		expect(await store(['session']).consent(one, never)).to.equal('granted')
		const other = join(root, '.garuda/other.json')
		await fs.writeFile(other, 'same bytes')
		for (const more of [{ kind: 'hooks' as const }, { root: dir }, { name: 'another' }, { path: other }])
			expect(await store().consent({ ...one, ...more }, never), JSON.stringify(more)).to.equal('left_out')
	})

	it('config-08 files of the project that it runs are pinned with it, and shown', async () => {
		const script = join(root, 'server.js')
		const withScript = async (text: string, name = script) => ({
			...(await artefact('{"command":"node server.js"}')),
			files: [{ path: name, bytes: Buffer.from(text) }],
		})
		const asking = store(['session'])
		expect(await asking.consent(await withScript('serve()'), never)).to.equal('granted')
		expect(asking.asked[0]!.preview).to.include('serve()').and.include(script)
		expect(await store().consent(await withScript('serve()'), never)).to.equal('granted')
		expect(await store().consent(await withScript('steal()'), never)).to.equal('left_out')
		expect(await store().consent(await withScript('serve()', join(root, 'x.js')), never)).to.equal('left_out')
		expect(await store().consent(await artefact('{"command":"node server.js"}'), never)).to.equal('left_out')
		// Two files swapped are not the same.
		const two = (a: string, b: string) =>
			consentHash({
				bytes: Buffer.from('x'),
				files: [
					{ path: '/a', bytes: Buffer.from(a) },
					{ path: '/b', bytes: Buffer.from(b) },
				],
			})
		expect(two('1', '2')).not.to.equal(two('2', '1'))
	})

	it('hidden characters in the text, the name or a script are warned of', async () => {
		for (const [text, more] of [
			['echo \u202egnissecorp', {}],
			['echo \u001b[2Khi', {}],
			['plain', { files: [{ path: '/r/x', bytes: Buffer.from('a\u200bb') }] }],
		] as const) {
			const run = store(['deny'])
			await run.consent({ ...(await artefact(text)), ...more }, never)
			expect(run.asked[0]!.warning, JSON.stringify(text)).to.include('hidden or control characters')
		}
		const plain = store(['deny'])
		await plain.consent(await artefact('plain'), never)
		expect(plain.asked[0]!.warning).not.to.include('hidden')
	})

	it('what is hashed is always shown: words that say something else do not replace it', async () => {
		const run = store(['deny'])
		await run.consent({ ...(await artefact('rm -rf ~')), text: 'a harmless server' }, never)
		expect(run.asked[0]!.preview).to.include('a harmless server').and.include('rm -rf ~')
	})

	it('what nobody can read is refused with no question: no text, or too long', async () => {
		const run = store([])
		const one = await artefact('x')
		expect(await run.consent({ ...one, bytes: Buffer.from([0x66, 0xff, 0xfe]) }, never)).to.equal('refused')
		const long = 'a'.repeat(300 * 1024)
		expect(await run.consent({ ...one, text: long, bytes: Buffer.from(long) }, never)).to.equal('refused')
		expect(run.notices().join('\n')).to.include('UTF-8').and.include('too long')
	})

	it('a link, a folder on the way that is one, and what is no file are refused with no question', async () => {
		const real = join(dir, 'real.json')
		await fs.writeFile(real, 'x')
		const link = join(root, '.garuda/link.json')
		await fs.symlink(real, link)
		const folder = join(dir, 'linked')
		await fs.symlink(join(root, '.garuda'), folder)
		await artefact('x')
		const run = store([])
		for (const path of [link, join(folder, 'mcp.json'), join(root, '.garuda'), join(root, 'missing')])
			expect(
				await run.consent({ kind: 'mcp', root, name: 's', path, text: 'x', bytes: Buffer.from('x') }, never),
				path,
			).to.equal('refused')
		expect(run.notices()).to.have.length(4)
	})

	it('a file replaced while the question stands is refused, whatever is put there; nothing is pinned', async () => {
		const one = await artefact('good')
		const swaps: [string, () => Promise<unknown>][] = [
			['other text', () => fs.writeFile(one.path, 'evil')],
			[
				'the same text in a new file',
				async () => {
					await fs.writeFile(`${one.path}.new`, 'good')
					await fs.rename(`${one.path}.new`, one.path)
				},
			],
			[
				'a link',
				async () => {
					await fs.writeFile(join(dir, 'good'), 'good')
					await fs.rm(one.path)
					await fs.symlink(join(dir, 'good'), one.path)
				},
			],
			['nothing', () => fs.rm(one.path)],
			[
				'the folder by a link',
				async () => {
					await fs.rename(join(root, '.garuda'), join(root, 'moved'))
					await fs.symlink('moved', join(root, '.garuda'))
				},
			],
		]
		for (const [what, swap] of swaps) {
			await fs.rm(join(root, '.garuda'), { recursive: true, force: true })
			await fs.rm(join(root, 'moved'), { recursive: true, force: true })
			await fs.mkdir(join(root, '.garuda'))
			await artefact('good')
			const run = store([
				async (): Promise<Choice> => {
					await swap()
					return 'session'
				},
			])
			expect(await run.consent(one, never), what).to.equal('refused')
			expect(await run.list(), what).to.deep.equal([])
			expect(run.notices(), what).to.have.length(1)
		}
	})

	it('an abort, an answer that was not offered and an approver that throws are a no', async () => {
		const one = await artefact('x')
		const stop = new AbortController()
		const aborted = store([
			() => {
				stop.abort()
				return 'session'
			},
		])
		expect(await aborted.consent(one, stop.signal)).to.equal('refused')
		expect(await store([]).consent(one, stop.signal)).to.equal('refused')
		expect(await store(['always' as Choice]).consent(one, never)).to.equal('refused')
		expect(await store([() => Promise.reject(new Error('gone'))]).consent(one, never)).to.equal('refused')
		expect(await store().list()).to.deep.equal([])
	})

	it('each outcome is recorded for the audit log with the hash', async () => {
		const one = await artefact('x')
		const run = store(['session'])
		await run.consent(one, never)
		const out = store()
		await out.consent(await artefact('y'), never)
		expect([...run.audit, ...out.audit].map((entry) => [entry.kind, entry.decision])).to.deep.equal([
			['consent', 'granted'],
			['consent', 'left_out'],
		])
		expect(run.audit[0]!.detail).to.deep.include({ kind: 'mcp', root, sha256: consentHash(one) })
	})

	it('list and forget: a consent taken back is asked for again, in this run too', async () => {
		const one = await artefact('x')
		const run = store(['session', 'session', 'deny'])
		await run.consent(one, never)
		await run.consent({ ...one, name: 'second' }, never)
		expect((await run.list()).map((entry) => entry.name).sort()).to.deep.equal(['second', 'server'])
		expect(await run.forget('mcp', '/elsewhere')).to.equal(0)
		expect(await run.forget('mcp', root, 'server')).to.equal(1)
		expect((await run.list()).map((entry) => entry.name)).to.deep.equal(['second'])
		expect(await run.consent(one, never)).to.equal('refused')
		expect(await run.forget('mcp', root)).to.equal(1)
		expect(await run.list()).to.deep.equal([])
	})

	describe('the file', () => {
		it('X08 a damaged file counts for nothing, is said, kept once and replaced; never a loop', async () => {
			for (const text of ['{"version":1,"conse', '', '[1]', '{"version":1,"consents":{}}']) {
				await fs.rm(`${file}.damaged`, { force: true })
				await fs.writeFile(file, text, { mode: 0o600 })
				const one = await artefact('x')
				const run = store(['session'])
				expect(await run.consent(one, never)).to.equal('granted')
				expect(
					run.notices().filter((told) => told.includes('damaged')),
					text,
				).to.have.length(1)
				expect(await fs.readFile(`${file}.damaged`, 'utf8')).to.equal(text)
				expect((await written()).consents).to.have.length(1)
				// A second damage does not overwrite the first copy.
				await fs.writeFile(file, 'again')
				expect(await store(['session']).consent(one, never)).to.equal('granted')
				expect(await fs.readFile(`${file}.damaged`, 'utf8')).to.equal(text)
			}
			expect((await fs.readdir(dirname(file))).sort()).to.deep.equal(['trust.json', 'trust.json.damaged'])
		})

		it('entries that are none do not count, and others beside them do', async () => {
			const one = await artefact('x')
			const good = { kind: 'mcp', root, name: 'server', path: one.path, sha256: consentHash(one), time: 1 }
			const put = (consents: unknown[]) => fs.writeFile(file, JSON.stringify({ version: 1, consents }), { mode: 0o600 })
			for (const bad of [{ ...good, sha256: 'short' }, { ...good, time: 'x' }, { ...good, root: 5 }, null, 'x']) {
				await put([bad])
				expect(await store().consent(one, never), JSON.stringify(bad)).to.equal('left_out')
				await put([bad, good])
				expect(await store().consent(one, never)).to.equal('granted')
			}
		})

		it('a file of a newer Garuda is not read as this one’s and not written', async () => {
			const text = '{"version":2,"consents":[]}'
			await fs.writeFile(file, text, { mode: 0o600 })
			const run = store(['session'])
			expect(await run.consent(await artefact('x'), never)).to.equal('granted')
			expect(run.notices().join()).to.include('newer').and.include('this run only')
			expect(await fs.readFile(file, 'utf8')).to.equal(text)
		})

		it('a link, or a file that others can write, is never used', async () => {
			const one = await artefact('x')
			const fails = async (word: string) => {
				const error = await store([])
					.consent(one, never)
					.then(
						() => null,
						(reason: unknown) => reason,
					)
				expect(error).to.be.instanceOf(UserError)
				expect((error as UserError).message).to.include(word)
			}
			await fs.writeFile(file, '{"version":1,"consents":[]}')
			await fs.chmod(file, 0o666)
			await fails('by others')
			await fs.rm(file)
			await fs.writeFile(join(dir, 'elsewhere'), '{"version":1,"consents":[]}', { mode: 0o600 })
			await fs.symlink(join(dir, 'elsewhere'), file)
			await fails('link')
			await fs.rm(file)
			await fs.mkdir(file)
			await fails('regular file')
		})

		it('X08 five processes that pin 10 each at the same time lose nothing, and every read parses', async () => {
			await artefact('x')
			const module = (name: string) => pathToFileURL(join(repository, 'src/engine', name)).href
			const code = (n: number) => `
const { createTrustStore } = await import(${JSON.stringify(module('permission/trust.ts'))})
const { systemClock } = await import(${JSON.stringify(module('clock.ts'))})
const trust = createTrustStore({ file: ${JSON.stringify(file)}, clock: systemClock, interactive: true, approver: { ask: async () => ({ choice: 'session' }) } })
for (let i = 0; i < 10; i++) {
	const artefact = { kind: 'mcp', root: ${JSON.stringify(root)}, name: '${n}-' + i, path: ${JSON.stringify(join(root, '.garuda/mcp.json'))}, text: 'x', bytes: Buffer.from('x') }
	if ((await trust.consent(artefact, new AbortController().signal)) !== 'granted') console.log('lost')
}
for (const told of trust.notices()) console.log(told)`
			await fs.writeFile(file, '{"version":1,"consents":[]}', { mode: 0o600 })
			const runs = [0, 1, 2, 3, 4].map((n) => child(code(n)))
			let reads = 0
			let done = false
			const all = Promise.all(runs).finally(() => {
				done = true
			})
			while (!done) {
				JSON.parse(await fs.readFile(file, 'utf8'))
				reads++
				await clock.sleep(2)
			}
			for (const run of await all) expect(run).to.deep.equal({ code: 0, out: '' })
			expect(reads).to.be.greaterThan(10)
			expect((await written()).consents).to.have.length(50)
			expect(await fs.readdir(dirname(file))).to.deep.equal(['trust.json'])
		}).timeout(40_000)
	})

	describe('what a consent to a project’s settings does', () => {
		const paths = () => garudaPaths(home, root)
		const loose = {
			executor: 'host',
			allow: ['bash(npm test)', 'edits'],
			sandbox: { writePaths: ['/srv/build'] },
			env: { allow: ['CI'] },
			web: { allowLocalhost: true },
			model: { ca: '/evil.pem' },
			todo: true,
		}
		const put = async (name: string, value: unknown) => {
			await fs.mkdir(dirname(name), { recursive: true })
			await fs.writeFile(name, typeof value === 'string' ? value : JSON.stringify(value, null, 1))
		}
		const effective = (trust: ReturnType<typeof store>, managedPolicy = join(dir, 'etc/policy.json')) =>
			effectiveSettings(
				{ paths: paths(), root, home, platform: 'linux', managedPolicy, policyOwner: process.getuid!(), trust },
				never,
			)

		it('config-02 config-03 each loosening key has no effect before the answer, and its value after', async () => {
			await put(paths().project.settings, loose)
			const plain = defaultSettings()
			const keys = (settings: typeof plain) => ({
				executor: settings.executor,
				allow: settings.allow,
				writePaths: settings.sandbox.writePaths,
				env: settings.env.allow,
				localhost: settings.web.allowLocalhost,
				ca: settings.model.ca,
			})
			for (const trust of [store(), store(['deny'])]) {
				const { settings, notices } = await effective(trust)
				expect(keys(settings)).to.deep.equal(keys(plain))
				expect(settings.todo).to.equal(true)
				for (const key of ['executor', 'allow', 'sandbox.writePaths', 'env.allow', 'web.allowLocalhost'])
					expect(notices.join('\n')).to.include(key)
			}
			const asking = store(['session'])
			const { settings, notices, held } = await effective(asking)
			expect(keys(settings)).to.deep.equal({
				executor: 'host',
				allow: ['bash(npm test)', 'edits'],
				writePaths: ['/srv/build'],
				env: ['CI'],
				localhost: true,
				// Who is trusted on the way to the model is never a project's word.
				ca: undefined,
			})
			expect(held).to.deep.equal({ 'model.ca': '/evil.pem' })
			expect(notices.join('\n')).to.include('model.ca').and.not.include('writePaths')
			expect(settings.rules).to.deep.equal([
				{ list: 'allow', text: 'bash(npm test)', level: 'project', file: paths().project.settings, line: 4 },
				{ list: 'allow', text: 'edits', level: 'project', file: paths().project.settings, line: 5 },
			])
			// The question shows the whole file, byte for byte.
			expect(asking.asked[0]!.preview).to.include(await fs.readFile(paths().project.settings, 'utf8'))
			// Unattended it counts from now on; after one more blank it does not.
			expect((await effective(store())).settings.executor).to.equal('host')
			await put(paths().project.settings, `${JSON.stringify(loose, null, 1)} `)
			expect((await effective(store())).settings.executor).to.equal('auto')
		})

		it('where nobody can be asked, one notice says what is left out, why and how; what never counts is not offered', async () => {
			const words = ' It counts once you agree to it, or from here.'
			const network = { network: { allow: ['a.example'] } }
			const tricky = { allow: [`bash(echo${words})`] }
			for (const [value, kept] of [
				[loose, ['executor', 'web.allowLocalhost']],
				[{ ...loose, ...network }, ['executor', 'network.allow']],
				[tricky, [words]],
			] as const) {
				await put(paths().project.settings, value)
				const { notices } = await effective(store())
				const about = notices.filter((one) => !one.includes('never taken from a project'))
				expect(about, JSON.stringify(notices)).to.have.length(1)
				for (const key of kept) expect(about[0]).to.include(key)
				expect(about[0])
					.to.include('You have not agreed to it, and nobody can be asked here. Start garuda once in a terminal')
					.and.not.include('model.ca')
			}
			// A pinned one that was changed says so; with one kind granted the other is still told.
			await put(paths().project.settings, loose)
			await effective(store(['session']))
			await put(paths().project.settings, { ...loose, todo: false })
			expect((await effective(store())).notices.join('\n')).to.include('It was changed since you agreed to it')
			await put(paths().project.settings, { ...loose, ...network })
			const half = await effective(store(['session', 'deny']))
			expect(half.settings.network.allow).to.deep.equal([])
			const later = await effective(store())
			expect(later.settings.executor).to.equal('host')
			expect(later.notices.filter((one) => one.includes('nobody can be asked'))).to.have.length(1)
			expect(later.notices.join('\n')).to.include('network.allow')
		})

		it('the bytes that are pinned are the bytes that were parsed: a swap between reading and asking changes nothing', async () => {
			await put(paths().project.settings, loose)
			const loaded = await loadSettings(paths(), root)
			await put(paths().project.settings, { executor: 'host', allow: ['bash'], outside: ['evil'] })
			expect(Buffer.from(loaded.heldFrom!.bytes).toString()).to.equal(JSON.stringify(loose, null, 1))
			const granted = grantHeld(loaded, ['project-settings'])
			expect(granted.settings.allow).to.deep.equal(loose.allow)
			// And what lies there now is another text: not covered by a consent to the first.
			const run = store(['session'])
			const { file: path, bytes, text } = loaded.heldFrom!
			await run.consent({ kind: 'project-settings', root, name: 'settings.json', path, bytes, text }, never)
			const now = await effective(store())
			expect(now.settings).to.deep.include({ executor: 'auto', allow: [], outside: [] })
		})

		it('granting changes nothing of what was loaded, and without a held part is the same', async () => {
			await put(paths().project.settings, loose)
			const loaded = await loadSettings(paths(), root)
			const before = structuredClone(loaded)
			grantHeld(loaded, ['project-settings'])
			expect(loaded).to.deep.equal(before)
			expect(grantHeld(loaded, [])).to.equal(loaded)
			// A consent to the host list is not one to the settings.
			expect(grantHeld(loaded, ['network']).settings).to.deep.equal(loaded.settings)
		})

		it('the team policy binds what was agreed to as well', async () => {
			await put(paths().project.settings, loose)
			await put(join(dir, 'etc/policy.json'), {
				executor: 'sandbox',
				allowRules: false,
				sandbox: { writePaths: [] },
				env: { allow: [] },
				web: { allowLocalhost: false },
			})
			const { settings, policy } = await effective(store(['session']))
			expect(policy!.files).to.have.length(1)
			expect(settings).to.deep.include({ executor: 'sandbox', allow: [], env: { allow: [] } })
			expect(settings.sandbox.writePaths).to.deep.equal([])
			expect(settings.web.allowLocalhost).to.equal(false)
		})

		it('a broken policy stops before anything is asked', async () => {
			await put(paths().project.settings, loose)
			await put(join(dir, 'etc/policy.json'), '{"nope":1}')
			const run = store([])
			const error = await effective(run).then(
				() => null,
				(reason: unknown) => reason,
			)
			expect(error).to.be.instanceOf(UserError)
			expect(run.asked).to.deep.equal([])
		})

		it('a host list of a policy that is none stops with its line', async () => {
			for (const name of ['npn', '10.0.0.1', 'a.b:443.c']) {
				await put(join(dir, 'etc/policy.json'), { network: { allow: [name] } })
				const error = await effective(store()).then(
					() => null,
					(reason: unknown) => reason,
				)
				expect(error, name).to.be.instanceOf(UserError)
				expect((error as UserError).message, name)
					.to.include('policy.json:')
					.and.include('network.allow')
			}
			await put(join(dir, 'etc/policy.json'), { network: { allow: ['npm', 'x.org:8443'] } })
			const { settings } = await effective(store())
			expect(settings.policy!.hosts[0]!.value).to.include('registry.npmjs.org').and.include('x.org:8443')
		})
	})

	it('the file lies in Garuda’s own folder', () => {
		expect(trustFile(garudaPaths(home, root))).to.equal(file)
		expect(trustFile(garudaPaths(home, root, '/other'))).to.equal('/other/trust.json')
	})
})

function child(code: string): Promise<{ code: number | null; out: string }> {
	const run = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
		cwd: repository,
		stdio: ['ignore', 'pipe', 'pipe'],
	})
	let out = ''
	run.stdout.on('data', (text) => {
		out += text
	})
	run.stderr.on('data', (text) => {
		out += text
	})
	return new Promise((done) => run.on('close', (end) => done({ code: end, out })))
}
