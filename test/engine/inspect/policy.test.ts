// `garuda policy check` and `replay` on real files: settings, policy, trust, and journals that the real gate wrote.
import { promises as fs } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { systemClock as clock } from '../../../src/engine/clock.ts'
import { createRedactor } from '../../../src/engine/config/redact.ts'
import { UserError } from '../../../src/engine/errors.ts'
import { createFiles } from '../../../src/engine/files/guard.ts'
import { type PolicyPlace, policyCheck, ruleRoom } from '../../../src/engine/inspect/policy.ts'
import { policyReplay, replayReport } from '../../../src/engine/inspect/policy-replay.ts'
import type { Decision } from '../../../src/engine/permission/decide.ts'
import { createTrustStore } from '../../../src/engine/permission/trust.ts'
import type { SessionRecord } from '../../../src/engine/ports.ts'
import { newSessionId } from '../../../src/engine/session/ids.ts'
import { createSessionStore } from '../../../src/engine/session/journal.ts'
import { builtinTools } from '../../../src/engine/tools/builtin.ts'
import { createGate } from '../../../src/engine/tools/invoke.ts'
import type { Answer, CallInfo, Mode } from '../../../src/engine/types.ts'
import { fakeExecutor } from '../tools/scene.ts'

describe('inspect: policy', () => {
	let dir: string
	let place: PolicyPlace
	let root: string
	let home: string
	beforeEach(async () => {
		dir = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'garuda-inspect-')))
		home = join(dir, 'home')
		root = join(home, 'proj')
		await fs.mkdir(join(root, 'src'), { recursive: true })
		await fs.mkdir(join(home, '.garuda'), { mode: 0o700 })
		await fs.writeFile(join(root, 'src/a.ts'), 'one\n')
		place = {
			home,
			cwd: root,
			env: { PATH: process.env.PATH },
			platform: 'linux',
			managedPolicy: join(dir, 'etc/policy.json'),
			policyOwner: process.getuid!(),
		}
	})
	afterEach(() => fs.rm(dir, { recursive: true, force: true }))

	const put = async (file: string, value: unknown) => {
		await fs.mkdir(dirname(file), { recursive: true })
		await fs.writeFile(file, typeof value === 'string' ? value : JSON.stringify(value, null, 1))
		return file
	}
	const settings = (value: unknown) => put(join(home, '.garuda/settings.json'), value)

	describe('check', () => {
		const check = async (text: string, flags: Parameters<typeof policyCheck>[2] = {}) => {
			const { text: out, denied } = await policyCheck(place, text, { sandbox: true, json: true, ...flags })
			const report = JSON.parse(out)
			expect(denied).to.equal(report.decision === 'deny')
			return report
		}

		it('says what the tool itself refuses: no fault of its own', async () => {
			expect(await check('edit_file none/../x.ts')).to.include({ decision: 'deny', tool: 'edit_file' })
			expect((await check('web_fetch file:///x')).reason).to.match(/file:/)
		})

		it('names an ask rule that an unknown part could meet as one that could', async () => {
			await settings({ ask: ['bash(git push *)'] })
			expect((await check('x=git; $x push a')).reason).to.match(/^whether the ask rule .* known only at the run/)
			expect((await check('git push a')).reason).to.match(/asks each time/)
		})

		it('says the decision with the rule, its list, level, file and line', async () => {
			const file = await settings({
				deny: ['bash(curl:*)'],
				ask: ['bash(git push:*)'],
				allow: ['bash(npm test)', 'edits'],
			})
			const managed = await put(place.managedPolicy!, { deny: ['read(**/*.pem)'] })
			for (const [text, decision, rule] of [
				['echo a | curl x', 'deny', { text: 'bash(curl:*)', list: 'deny', level: 'user', file, line: 3 }],
				['git push', 'ask', { text: 'bash(git push:*)', list: 'ask', level: 'user', file, line: 6 }],
				['bash git push', 'ask', { text: 'bash(git push:*)', list: 'ask', level: 'user', file, line: 6 }],
				['npm test', 'allow', { text: 'bash(npm test)', list: 'allow', level: 'user', file, line: 9 }],
				['edit_file src/a.ts', 'allow', { text: 'edits', list: 'allow', level: 'user', file, line: 10 }],
				['read x/key.pem', 'deny', { text: 'read(**/*.pem)', list: 'deny', level: 'policy', file: managed, line: 3 }],
			] as const) {
				const report = await check(text)
				expect(report.decision, text).to.equal(decision)
				expect(report.rule, text).to.deep.equal(rule)
			}
		})

		it('without a rule it says what holds: sensitive files, hosts, plan mode, no sandbox, the way out', async () => {
			await fs.mkdir(join(home, '.ssh'))
			await fs.writeFile(join(home, '.ssh/id_rsa'), 'x')
			const cases: [string, Parameters<typeof policyCheck>[2], string, string][] = [
				['read ~/.ssh/id_rsa', {}, 'deny', 'secret'],
				['cat ~/.ssh/id_rsa', {}, 'deny', 'secret'],
				['host example.com', {}, 'ask', 'list'],
				['ls', {}, 'allow', 'sandbox'],
				['ls', { sandbox: false }, 'ask', 'no sandbox'],
				['ls', { sandbox: false, mode: 'plan' }, 'deny', 'plan mode'],
				['edit src/a.ts', {}, 'ask', 'changes a file'],
				['edit src/a.ts', { mode: 'plan' }, 'deny', 'plan mode'],
				['edit src/a.ts', { allow: ['edits'] }, 'allow', 'accepted'],
				['write .git/config', {}, 'deny', 'protected'],
				['edit /etc/hosts', {}, 'deny', 'outside'],
				['outside npm publish', {}, 'ask', 'outside the sandbox'],
				['read src/a.ts', {}, 'allow', 'inside the root'],
				['grep src', {}, 'allow', 'inside the root'],
				['mcp__x__y', {}, 'ask', ''],
				['web_fetch', {}, 'allow', 'each host'],
				['web_fetch https://example.com/a', {}, 'ask', 'no list'],
				['web_fetch https://example.com/a', { allow: ['host(example.com)'] }, 'allow', 'host(example.com)'],
				['web_fetch https://example.com:8443/a', { allow: ['host(example.com:8443)'] }, 'ask', 'each time'],
				["bash -c 'x", {}, 'ask', 'certainty'],
			]
			for (const [text, flags, decision, word] of cases) {
				const report = await check(text, flags)
				expect(report.decision, text).to.equal(decision)
				expect(report.reason, text).to.include(word)
				expect(report, text).not.to.have.property('rule', undefined)
			}
		})

		it('a text for people names the place, the mode and the commands it saw; controls are written out', async () => {
			const file = await settings({ deny: ['bash(curl:*)'] })
			const { text, denied } = await policyCheck(place, 'echo a && curl \u001b[2Kx', { sandbox: true })
			expect(denied).to.equal(true)
			expect(text).to.match(/^deny {2}bash: echo a && curl ␛\[2Kx\n/)
			expect(text).to.include(`deny bash(curl:*)   ${file}:3 (user)`)
			expect(text).to.include('echo a · curl').and.include('mode build, in the sandbox')
			expect(text).not.to.include('\u001b')
		})

		it('only what was agreed to before counts of a project, and a notice says what is left out', async () => {
			const file = await put(join(root, '.garuda/settings.json'), { allow: ['host(evil.example)'], deny: ['bash(x)'] })
			expect((await check('host evil.example')).decision).to.equal('ask')
			expect((await check('x')).rule).to.include({ level: 'project', file })
			expect((await check('ls')).notices.join())
				.to.include(file)
				.and.include('host(evil.example)')
			const bytes = await fs.readFile(file)
			const trust = createTrustStore({
				file: join(home, '.garuda/trust.json'),
				clock,
				interactive: true,
				approver: { ask: async () => ({ choice: 'session' }) },
			})
			const artefact = { kind: 'project-settings' as const, root, name: 'settings.json', path: file, text: '', bytes }
			expect(await trust.consent(artefact, new AbortController().signal)).to.equal('granted')
			expect((await check('host evil.example')).rule).to.include({ level: 'project', file, line: 3 })
		})

		it('the policy’s bounds are told: no way out, hosts at most, and its file', async () => {
			await settings({ outside: ['npm publish'], allow: ['host'] })
			const managed = await put(place.managedPolicy!, { allowOutside: false, network: { allow: ['npm'] } })
			const out = await check('outside npm publish')
			expect(out.decision).to.equal('deny')
			expect(out.reason).to.include(`${managed}:2`)
			expect(out.policies).to.deep.equal([managed])
			expect(out.notices.join()).to.include('"npm publish"')
			expect((await check('host registry.npmjs.org')).decision).to.equal('allow')
			expect((await check('host example.com')).decision).to.equal('deny')
		})

		it('what would stop a session stops the check: a broken rule, an unenforceable one, no folder, nothing asked', async () => {
			const fails = async (text: string, word: string, flags = {}) => {
				const error = await check(text, flags).then(
					() => null,
					(reason: unknown) => reason,
				)
				expect(error, word).to.be.instanceOf(UserError)
				expect((error as UserError).message).to.include(word)
			}
			await fails('  ', 'nothing to check')
			await fails('ls', 'cannot be opened', { cd: join(dir, 'missing') })
			await settings({ deny: ['bash('] })
			await fails('ls', 'settings.json:3')
			await settings({ sandbox: { denyRead: ['~'] } })
			await fails('ls', 'denyRead')
			await settings({})
			await put(place.managedPolicy!, { deny: ['bsh'] })
			await fails('ls', 'policy.json:3')
		})

		it('asks the machine for its sandbox when no flag says; executor host has none', async () => {
			await settings({ executor: 'host' })
			const { text } = await policyCheck(place, 'ls', { json: true })
			expect(JSON.parse(text)).to.include({ sandboxed: false, decision: 'ask' })
		})
	})

	describe('replay', () => {
		interface Step {
			tool: string
			input: Record<string, unknown>
			answer?: Answer['choice']
			mode?: Mode
			sandboxed?: boolean
			acceptEdits?: boolean
			/** The command wants out while it runs. */
			wall?: boolean
		}

		/** Plays calls through the real gate, tools and decider; the journal holds what a session's would. */
		const record = async (runs: { steps: Step[]; allow?: string[] }[], secret?: string, extraDirs: string[] = []) => {
			const id = newSessionId(clock.now())
			const redactor = createRedactor(id)
			if (secret) redactor.add('KEY', secret)
			const store = createSessionStore({
				root,
				projectDir: join(root, '.garuda'),
				index: join(home, '.garuda/sessions.json'),
				origin: 'here',
				redactor,
				clock,
				version: '0',
			})
			const writer = await store.create({
				version: 1,
				id,
				root,
				created: clock.now(),
				system: '',
				tools: [],
				model: 'm',
				origin: 'here',
				garuda: '0',
			})
			const text = 'do it'
			const message = { role: 'user' as const, blocks: [{ type: 'text' as const, text }] }
			await writer.append({ type: 'user', time: clock.now(), message, prompt: text })
			const live: string[] = []
			for (const [n, { steps, allow = [] }] of runs.entries()) {
				if (n > 0) await writer.append({ type: 'resume', time: clock.now(), model: 'm' })
				const room = await ruleRoom(place, root)
				const decider = await room.deciderWith(allow, extraDirs)
				const keys = new Set<string>()
				const files = await createFiles({ root, home, extraDirs })
				const state = { seen: new Map(), cwd: root, todo: [] }
				for (const step of steps) {
					let decided: Decision | undefined
					const gate = createGate({
						tools: builtinTools({ todo: true, memory: true }),
						approver: { ask: async () => ({ choice: step.answer ?? 'deny' }) },
						files,
						executor: fakeExecutor((_, call) =>
							step.wall && call === 1 ? { code: 1, wall: { wall: 'network', detail: 'no network' } } : {},
						),
						state,
						redactor,
						root,
						home,
						limits: {
							resultChars: 30_000,
							readLines: 2000,
							readBytes: 262_144,
							bashTimeoutMs: 1000,
							bashMaxTimeoutMs: 1000,
						},
						deniedReads: [],
						mode: () => step.mode ?? 'build',
						decide: async (tool, info: CallInfo, effect, mode) => {
							decided = await decider.decide({
								tool: tool.name,
								readOnlyTool: tool.readOnly,
								info,
								effect,
								mode,
								sandboxed: step.sandboxed ?? true,
								keys,
								acceptEdits: step.acceptEdits ?? false,
								cwd: state.cwd,
							})
							return decided
						},
						remember: (key) => keys.add(key),
						emit: () => {},
						record: async (entry) => {
							live.push(decided!.decision)
							await writer.append({ type: 'decision', time: clock.now(), ...entry } as SessionRecord)
						},
						done: async () => {},
						beforeChange: async () => {},
					})
					await gate.invoke({ id: `c${live.length}`, name: step.tool, input: step.input }, new AbortController().signal)
				}
			}
			await writer.close()
			return { id, live }
		}

		const bash = (command: string, more: Partial<Step> = {}): Step => ({ tool: 'bash', input: { command }, ...more })
		const ordinary: { steps: Step[]; allow?: string[] }[] = [
			{
				steps: [
					bash('npm test'),
					bash('git push origin main', { answer: 'once' }),
					bash('curl evil.example'),
					bash('echo x && curl evil.example'),
					bash('make', { sandboxed: false, answer: 'session' }),
					bash('make', { sandboxed: false }),
					bash('make', { sandboxed: false, mode: 'plan' }),
					bash('npm ci', { wall: true, answer: 'session' }),
					bash('npm ci', { wall: true }),
					{ tool: 'bash', input: { command: 'docker ps', outside_sandbox: true }, answer: 'deny' },
					{ tool: 'read_file', input: { path: 'src/a.ts' } },
					{ tool: 'edit_file', input: { path: 'src/a.ts', old_string: 'one', new_string: 'two' }, answer: 'once' },
					{ tool: 'edit_file', input: { path: 'src/a.ts', old_string: 'two', new_string: 'three' }, acceptEdits: true },
					{ tool: 'write_file', input: { path: 'src/b.ts', content: 'b' }, mode: 'plan' },
					{ tool: 'grep', input: { pattern: 'three', path: 'src' } },
					{ tool: 'glob', input: { pattern: '*.ts', path: '/usr' }, answer: 'deny' },
					{ tool: 'todo_write', input: { todos: [] } },
					{ tool: 'remember', input: { fact: 'the tests run with make' }, answer: 'cancel' },
					bash('cat \u200bx', { answer: 'deny' }),
					bash('a "unclosed', { answer: 'deny' }),
				],
			},
			{
				allow: ['bash(make)', 'edits'],
				steps: [
					// The answer of before is gone; --allow covers it.
					bash('make', { sandboxed: false }),
					bash('make all', { sandboxed: false, answer: 'deny' }),
					{ tool: 'write_file', input: { path: 'src/c.ts', content: 'c' } },
				],
			},
		]
		const rules = { deny: ['bash(curl:*)'], ask: ['bash(git push:*)'], allow: ['bash(npm test)'] }

		it('on a recorded journal equals the live decisions, line by line', async () => {
			await settings(rules)
			const { id, live } = await record(ordinary)
			expect(live.length).to.be.greaterThan(20)
			// All three decisions are in it, many times.
			for (const decision of ['allow', 'ask', 'deny'])
				expect(live.filter((one) => one === decision).length).to.be.greaterThan(3)
			const { sessions, counts, problems } = await replayReport(place, {})
			expect(problems).to.deep.equal([])
			expect(sessions.map((one) => one.session)).to.deep.equal([id])
			const { lines } = sessions[0]!
			expect(lines.map((line) => line.now)).to.deep.equal(live)
			expect(lines.map((line) => line.was)).to.deep.equal(live)
			expect(lines.map((line) => line.index)).to.deep.equal(live.map((_, i) => i + 1))
			expect(counts).to.deep.equal({
				same: live.length,
				asked_less: 0,
				asked_more: 0,
				blocked: 0,
				unblocked: 0,
				not_comparable: 0,
			})
			const text = await policyReplay(place, { lines: true })
			expect(text).to.include(`${live.length} recorded decisions of 1 session`)
			expect(text.split('\n').filter((line) => line.includes(' #'))).to.have.length(live.length)
		})

		it('a changed rule shows exactly the expected differences, and no other', async () => {
			await settings(rules)
			await record(ordinary)
			const changes = async (value: object) => {
				const file = await put(join(dir, 'draft.json'), value)
				const { sessions } = await replayReport(place, { settings: file })
				return sessions[0]!.lines.flatMap((line) => (line.change === 'same' ? [] : [`${line.change} ${line.what}`]))
			}
			expect(await changes(rules)).to.deep.equal([])
			expect(await changes({ ...rules, ask: [] })).to.deep.equal(['asked_less git push origin main'])
			expect(await changes({ ...rules, deny: [] })).to.deep.equal([
				'unblocked curl evil.example',
				'unblocked echo x && curl evil.example',
			])
			expect(await changes({ ...rules, deny: ['bash(curl:*)', 'bash(npm:*)'] })).to.deep.equal([
				'blocked npm test',
				'blocked npm ci',
				'blocked outside the sandbox: npm ci',
				'blocked npm ci',
				'blocked outside the sandbox: npm ci',
			])
			expect(await changes({ ...rules, ask: ['bash(git push:*)', 'read(src/**)'] })).to.deep.equal([
				`asked_more src/a.ts`,
				'asked_more src/a.ts',
				'asked_more src/c.ts',
			])
			expect(await changes({ ...rules, outside: ['docker ps'] })).to.deep.equal([
				'asked_less outside the sandbox: docker ps',
			])
			expect(await changes({ ...rules, allow: ['bash(npm test)', 'edits'] })).to.deep.equal(['asked_less src/a.ts'])
			// The session answer that followed the question is gone with the question: later lines stay as they were.
			expect(await changes({ ...rules, allow: ['bash(npm test)', 'bash(make)'] })).to.deep.equal(['asked_less make'])
			// An ask rule asks each time, also where an answer covered it then.
			expect(await changes({ ...rules, ask: ['bash(git push:*)', 'bash(make:*)'] })).to.deep.equal([
				'asked_more make',
				'asked_more make',
			])
			expect(await changes({ ...rules, profile: 'strict' })).to.include('blocked outside the sandbox: docker ps')
		})

		it('a changed team policy is tried out from a file of anybody', async () => {
			await settings(rules)
			await record(ordinary)
			const policy = await put(join(dir, 'draft-policy.json'), { deny: ['bash(make)'], allowOutside: false })
			await fs.chmod(policy, 0o666)
			const text = await policyReplay(place, { policy })
			expect(text).to.include('blocked').and.include(`${policy}:3`)
			expect(text).to.match(/blocked: would be refused now\n[\s\S]*bash: make\n/)
			const { counts } = await replayReport(place, {})
			expect(counts.blocked).to.equal(0)
		})

		it('a line with a mark for a secret is not comparable; the others still are', async () => {
			await settings({})
			const secret = 'correct-horse-battery-staple-9'
			const { live } = await record([{ steps: [bash(`echo ${secret}`), bash('ls')] }], secret)
			const { sessions, counts } = await replayReport(place, {})
			expect(live).to.have.length(2)
			expect(counts).to.include({ same: 1, not_comparable: 1 })
			const [line] = sessions[0]!.lines
			expect(line).to.deep.include({ change: 'not_comparable', was: 'allow', now: null })
			expect(JSON.stringify(sessions)).not.to.include(secret)
		})

		it('added folders, the folder of a command outside, and hosts of the web are decided as they were', async () => {
			await settings({ outside: ['npm publish'] })
			const extra = join(dir, 'extra')
			await fs.mkdir(extra)
			const { live } = await record(
				[
					{
						steps: [
							{ tool: 'write_file', input: { path: join(extra, 'x.ts'), content: 'x' }, acceptEdits: true },
							{ tool: 'bash', input: { command: 'npm publish', outside_sandbox: true } },
							{ tool: 'bash', input: { command: 'docker ps', outside_sandbox: true }, answer: 'session' },
							{ tool: 'bash', input: { command: 'docker ps', outside_sandbox: true } },
						],
					},
				],
				undefined,
				[extra],
			)
			expect(live).to.deep.equal(['allow', 'allow', 'ask', 'allow'])
			const { sessions, counts } = await replayReport(place, {})
			expect(sessions[0]!.lines.map((line) => line.now)).to.deep.equal(live)
			expect(counts.same).to.equal(4)
		})

		it('paths and a folder that are gone are still decided', async () => {
			await settings({ deny: ['read(src/**)'] })
			await settings({})
			const { id, live } = await record([
				{
					steps: [
						{ tool: 'read_file', input: { path: 'src/a.ts' } },
						{ tool: 'write_file', input: { path: 'src/b.ts', content: 'x' }, answer: 'once' },
						bash('cat src/a.ts'),
					],
				},
			])
			await fs.rm(join(root, 'src'), { recursive: true })
			expect((await replayReport(place, {})).sessions[0]!.lines.map((line) => line.now)).to.deep.equal(live)
			// An audit log outlives the folder.
			const journal = (await fs.readFile(join(root, '.garuda/sessions', `${id}.jsonl`), 'utf8')).trim().split('\n')
			const log = await put(join(dir, `audit/${id}.jsonl`), await audit(id, journal))
			await fs.rm(root, { recursive: true })
			const away = { ...place, cwd: dir }
			await settings({ deny: ['read(src/**)'] })
			const { sessions, problems } = await replayReport(away, { audit: dirname(log) })
			expect(problems).to.deep.equal([])
			expect(sessions[0]).to.include({ session: id, root })
			expect(sessions[0]!.lines.map((line) => [line.was, line.now])).to.deep.equal([
				['allow', 'deny'],
				// What may not be read may not be changed either.
				['ask', 'deny'],
				['allow', 'deny'],
			])
		})

		it('what the audit log shortened, and what an older Garuda recorded, is not comparable', async () => {
			await settings({})
			const { id } = await record([{ steps: [bash('ls')] }])
			const file = join(root, '.garuda/sessions', `${id}.jsonl`)
			const lines = (await fs.readFile(file, 'utf8')).trim().split('\n')
			const old = lines.map((line) => {
				const { context: _, ...rest } = JSON.parse(line)
				return JSON.stringify(rest)
			})
			await fs.writeFile(file, `${old.join('\n')}\n`)
			expect((await replayReport(place, {})).counts).to.include({ same: 0, not_comparable: 1 })
			for (const context of [
				{ decided: 'maybe', access: 'run', mode: 'build', sandboxed: true },
				{ decided: 'allow', access: 'run', mode: 'build' },
				{ decided: 'allow', access: 'read', mode: 'build', sandboxed: true, paths: ['relative'] },
				{ decided: 'allow', access: 'run', mode: 'build', sandboxed: true, effect: { type: 'fly' } },
			]) {
				const bad = old.map((line) =>
					JSON.stringify({ ...JSON.parse(line), ...(line.includes('"decision"') ? { context } : {}) }),
				)
				await fs.writeFile(file, `${bad.join('\n')}\n`)
				expect((await replayReport(place, {})).counts, JSON.stringify(context)).to.include({ not_comparable: 1 })
			}
		})

		it('--all takes every folder under its own rules; --session one; nothing recorded is said', async () => {
			await settings({})
			expect(await policyReplay(place, {})).to.equal('No decisions are recorded here.\n')
			const first = await record([{ steps: [bash('ls')] }])
			const there = { ...place }
			const otherRoot = join(home, 'other')
			await put(join(otherRoot, '.garuda/settings.json'), { deny: ['bash(ls)'] })
			root = otherRoot
			place = { ...place, cwd: otherRoot }
			const second = await record([{ steps: [bash('ls')] }])
			expect(second.live).to.deep.equal(['deny'])
			const all = await replayReport(there, { all: true })
			expect(all.counts).to.include({ same: 2 })
			expect(all.sessions.map((one) => one.session).sort()).to.deep.equal([first.id, second.id].sort())
			expect((await replayReport(there, {})).sessions.map((one) => one.session)).to.deep.equal([first.id])
			const one = await replayReport(there, { session: second.id.slice(0, 14), all: true })
			expect(one.sessions.map((found) => found.session)).to.include(second.id)
			const error = await replayReport(there, { session: 'zzzz' }).then(
				() => null,
				(reason: unknown) => reason,
			)
			expect(error).to.be.instanceOf(UserError)
		})

		it('a rule set that cannot be read, or is not there, is an error and never "no difference"', async () => {
			const missing = join(dir, 'missing.json')
			for (const flags of [{ settings: missing }, { policy: missing }, { audit: missing }]) {
				const error = await replayReport(place, flags).then(
					() => null,
					(reason: unknown) => reason,
				)
				expect(error, JSON.stringify(flags)).to.be.instanceOf(UserError)
			}
			await settings('{ broken')
			const error = await replayReport(place, {}).then(
				() => null,
				(reason: unknown) => reason,
			)
			expect(error).to.be.instanceOf(UserError)
		})

		it('writes nothing', async () => {
			await settings(rules)
			await record(ordinary)
			const all = async () => {
				const names = (await fs.readdir(dir, { recursive: true })).sort()
				const stats = await Promise.all(names.map((name) => fs.lstat(join(dir, name))))
				return names.map((name, i) => `${name} ${stats[i]!.size} ${stats[i]!.mtimeMs}`)
			}
			const before = await all()
			await policyReplay(place, { all: true, json: true })
			expect(await all()).to.deep.equal(before)
		})
	})
})

/** The journal's decisions as the audit log holds them. */
async function audit(id: string, journal: string[]): Promise<string> {
	const { genesis, seal } = await import('../../../src/engine/audit/chain.ts')
	const lines: string[] = []
	let prev = genesis(id)
	const add = (entry: object) => {
		const line = seal({ n: lines.length + 1, time: new Date(0).toISOString(), session: id, prev, ...entry } as never)
		lines.push(line.text)
		prev = line.hash
	}
	const header = JSON.parse(journal[0]!)
	add({ kind: 'session', reason: 'start', detail: { root: header.root } })
	for (const text of journal.slice(1)) {
		const { type, tool, input, decision, reason, rule, key, context } = JSON.parse(text)
		if (type !== 'decision') continue
		add({ kind: 'decision', tool, input, decision, reason, ...(rule ? { rule } : {}), key, detail: { context } })
	}
	return `${lines.join('\n')}\n`
}
