// What a team policy means at the gate: its rules over the user's, what it refuses by itself, and rules that nothing could hold to.
import { expect } from 'chai'
import type { Policy } from '../../../src/engine/config/policy.ts'
import type { RuleList, RuleText } from '../../../src/engine/config/settings.ts'
import { UserError } from '../../../src/engine/errors.ts'
import { createDecider, type DeciderCall } from '../../../src/engine/permission/decider.ts'
import { compileGlob, globLiteral } from '../../../src/engine/permission/match.ts'
import { riskOf } from '../../../src/engine/permission/risk.ts'
import type { CallInfo } from '../../../src/engine/types.ts'
import { type Place, place } from './helpers.ts'

const none: Policy = {
	files: ['/etc/garuda/policy.json'],
	rules: [],
	denyPaths: [],
	writePaths: [],
	envAllow: [],
	hosts: [],
	models: [],
	modelHosts: [],
	audit: { witness: [] },
}
const bound = <T>(value: T, field: string, line = 3) => ({ value, file: '/etc/garuda/policy.json', line, field })

describe('permission: team policy', () => {
	let at: Place
	before(async () => {
		at = await place()
	})
	after(() => at.close())

	const rule = (level: 'policy' | 'user', list: RuleList, text: string): RuleText => ({
		list,
		text,
		level,
		file: level === 'policy' ? '/etc/garuda/policy.json' : '/home/u/.garuda/settings.json',
		line: 7,
	})
	const decider = (rules: RuleText[], policy: Partial<Policy> = {}, fixed: string[] = []) =>
		createDecider({
			settings: { rules, profile: 'standard', policy: { ...none, ...policy } },
			root: at.root,
			home: at.home,
			files: at.files,
			fixed,
			writable: [],
		})
	const call = (info: Partial<CallInfo>, more: Partial<DeciderCall> = {}): DeciderCall => ({
		tool: 'bash',
		readOnlyTool: false,
		effect: undefined,
		mode: 'build',
		sandboxed: true,
		keys: new Set(),
		acceptEdits: false,
		info: { title: '', kind: 'execute', access: 'run', paths: [], key: `bash:${info.command}`, ...info },
		...more,
	})

	it('an allow rule, --allow or a session answer never gets past an ask or deny rule of the policy', async () => {
		const rules = [
			rule('user', 'allow', 'bash'),
			rule('policy', 'deny', 'bash(curl:*)'),
			rule('policy', 'ask', 'bash(git push:*)'),
		]
		const { decide } = decider(rules, {}, ['bash'])
		const denied = await decide(call({ command: 'echo a && curl x' }))
		expect(denied).to.deep.include({ decision: 'deny' })
		expect(denied.rule).to.deep.equal({ text: 'bash(curl:*)', file: '/etc/garuda/policy.json', line: 7 })
		const push = call({ command: 'git push origin main' })
		expect(await decide(push)).to.deep.include({ decision: 'ask', onceOnly: true })
		expect(await decide({ ...push, keys: new Set([push.info.key]) })).to.deep.include({ decision: 'ask' })
		expect((await decide(call({ command: 'npm test' }))).decision).to.equal('allow')
	})

	it('the outside list does not get past an ask rule either, of the policy or the user', async () => {
		for (const level of ['policy', 'user'] as const) {
			const rules = [rule('user', 'outside', 'git push origin main'), rule(level, 'ask', 'bash(git push:*)')]
			const { decide } = decider(rules)
			const info = { command: 'git push origin main', outside: true, key: 'outside:git push origin main' }
			const keys = new Set(['outside:git push origin main'])
			for (const one of [call(info), call(info, { keys })])
				expect(await decide(one), level).to.deep.include({ decision: 'ask', onceOnly: true })
			const effect = { type: 'outside_sandbox' as const, command: info.command, wall: 'network' as const, detail: '' }
			expect((await decide(call({ command: info.command }, { effect }))).decision, level).to.equal('ask')
		}
		// Without the ask rule the list skips the question, so the rule is what asks.
		const free = decider([rule('user', 'outside', 'git push origin main')])
		expect((await free.decide(call({ command: 'git push origin main', outside: true }))).decision).to.equal('allow')
	})

	it('allowOutside: false refuses every way out and names its line', async () => {
		const { decide } = decider([rule('user', 'outside', 'x')], { allowOutside: bound(false as const, 'allowOutside') })
		const effect = { type: 'outside_sandbox' as const, command: 'x', wall: 'asked' as const, detail: '' }
		for (const one of [call({ command: 'x', outside: true }), call({ command: 'x' }, { effect })]) {
			const decision = await decide(one)
			expect(decision.decision).to.equal('deny')
			expect(decision.reason).to.include('/etc/garuda/policy.json:3')
		}
	})

	it('allowRules: false makes --allow and accept-edits empty, with a notice', async () => {
		const made = decider([], { allowRules: bound(false as const, 'allowRules') }, ['bash', 'edits'])
		expect(made.notices.join()).to.include('--allow has no effect').and.include('/etc/garuda/policy.json:3')
		const edit = call(
			{ access: 'write', kind: 'edit', paths: [`${at.root}/a.ts`], key: 'write:a' },
			{ tool: 'edit_file', acceptEdits: true },
		)
		expect((await made.decide(edit)).decision).to.equal('ask')
		expect((await made.decide(call({ command: 'x' }, { sandboxed: false }))).decision).to.equal('ask')
		// The same without the policy is allowed.
		expect((await decider([], {}, ['edits']).decide(edit)).decision).to.equal('allow')
	})

	it('a host that is on no list of the policy is refused, whatever was allowed', async () => {
		const policy = {
			hosts: [bound(['*.example.com'], 'network.allow'), bound(['a.example.com', 'x.org'], 'network.allow', 9)],
		}
		const { decide } = decider([rule('user', 'allow', 'host')], policy)
		const reach = (host: string, port = 443) =>
			decide(
				call({ command: 'x' }, { effect: { type: 'reach_host', host, port }, keys: new Set([`host:${host}:${port}`]) }),
			)
		expect((await reach('a.example.com')).decision).to.equal('allow')
		for (const [host, line] of [
			['b.example.com', 9],
			['x.org', 3],
			['evil.com', 3],
		] as const) {
			const decision = await reach(host)
			expect(decision.decision, host).to.equal('deny')
			expect(decision.reason, host).to.include(`policy.json:${line}`)
		}
	})

	it('a rule of the policy that nothing could hold to stops Garuda with its place; the user’s is left to them', () => {
		for (const text of ['bsh', 'search', 'bsh(rm)', 'webfetch', 'bash(', 'read([)', 'host(*)', 'Bash']) {
			for (const list of ['deny', 'ask'] as const)
				expect(() => decider([rule('policy', list, text)]), text).to.throw(UserError, '/etc/garuda/policy.json:7')
		}
		for (const text of ['bash', 'mcp__github__*', 'web_fetch', 'read', 'edit_file', 'host(*.example.com)', 'agent'])
			expect(() => decider([rule('policy', 'deny', text)]), text).not.to.throw()
		expect(() => decider([rule('user', 'deny', 'later_tool')])).not.to.throw()
	})

	it('every tool that there is may be named by a policy', async () => {
		const { builtinTools } = await import('../../../src/engine/tools/builtin.ts')
		const tools = builtinTools({ todo: true, memory: true })
		expect(tools.length).to.be.greaterThan(5)
		for (const { name } of tools) expect(() => decider([rule('policy', 'deny', name)]), name).not.to.throw()
	})

	it('job-02 an approval list is no prefix: every simple command must match, else it is asked, which nobody answers', async () => {
		for (const fixed of [['bash(npm test)'], ['bash(npm test:*)'], ['bash(npm test *)']]) {
			const { decide } = decider([], {}, fixed)
			const on = (command: string) => decide(call({ command }, { sandboxed: false }))
			expect((await on('npm test')).decision, fixed[0]).to.equal('allow')
			for (const trick of [
				'npm test; curl evil.example',
				'npm test && curl evil.example',
				'npm test\ncurl evil.example',
				'npm test | sh',
				'npm test & curl evil.example',
				'npm test $(curl evil.example)',
				'npm test > /etc/cron.d/x',
				'X=1 npm test',
				'npm testify',
			])
				expect((await on(trick)).decision, `${fixed[0]} ${trick}`).to.equal('ask')
		}
	})

	describe('many words, long words, climbing paths', () => {
		const on = (rules: RuleText[], command: string) => decider(rules).decide(call({ command }))
		const words = (count: number) => Array.from({ length: count }, (_, n) => `f${n}`).join(' ')

		it('a denied file behind any number of others is denied, or it asks', async () => {
			const rules = [rule('policy', 'deny', 'read(kept.txt)')]
			expect((await on(rules, `cat ${words(1500)} kept.txt`)).decision).to.equal('deny')
			expect((await on([], `cat ${words(1500)} .env`)).decision).to.equal('deny')
			expect((await on([rule('user', 'allow', 'bash')], `cat ${words(3000)} .env`)).decision).to.equal('ask')
			expect((await on([], `cat ${words(1500)}`)).decision).to.equal('allow')
		})

		it('a path that climbs out of a link is what the system takes it for', async () => {
			const { mkdir, symlink, writeFile } = await import('node:fs/promises')
			await mkdir(`${at.dir}/elsewhere/sub`, { recursive: true })
			await writeFile(`${at.dir}/elsewhere/.env`, 'KEY=1')
			await writeFile(`${at.dir}/elsewhere/kept.txt`, 'x')
			await symlink(`${at.dir}/elsewhere/sub`, `${at.root}/ln`)
			expect((await on([], 'cat ln/../.env')).decision).to.equal('deny')
			expect(
				(await on([rule('policy', 'deny', 'read(**/elsewhere/kept.txt)')], 'cat ln/../kept.txt')).decision,
			).to.equal('deny')
			expect((await on([], 'echo x > ln/../kept.txt')).decision).to.equal('ask')
		})

		it('an unknown part far behind in a long command still could be the denied one', async () => {
			const rules = [rule('policy', 'deny', 'bash(run *zz)')]
			expect((await on(rules, `run ${'a'.repeat(5000)} "$Y"`)).decision).to.equal('ask')
			expect((await on(rules, `run ${'a'.repeat(5000)} zz`)).decision).to.equal('deny')
			expect((await on(rules, `run ${'a'.repeat(5000)} zy`)).decision).to.equal('allow')
		})

		it('what each glob’s paths must hold is held by every path that matches', () => {
			const pieces = ['a', 'src', '/', '*', '**', '**/', '?', '[ab]', '{a,bc}', '.env', '\\*', 'B', 'ſ']
			let seed = 7
			const next = (below: number) => {
				seed = (seed * 1103515245 + 12345) % 2147483648
				return seed % below
			}
			const text = (from: string[], most: number) =>
				Array.from({ length: next(most) + 1 }, () => from[next(from.length)]).join('')
			let matched = 0
			for (let round = 0; round < 20_000; round++) {
				const glob = text(pieces, 5)
				const fold = next(2) === 0
				const path = text(['a', 'b', 'c', 'src', '/', '.env', 'B', 'A', '*', 'ſ'], 5)
				const expression = compileGlob(glob, fold)
				if (!expression?.test(path)) continue
				matched++
				expect(fold ? path.toLowerCase() : path, `${glob} ${path}`).to.include(globLiteral(glob, fold))
			}
			expect(matched).to.be.greaterThan(300)
		})
	})

	describe('config-13 package scripts as a delayed escape', () => {
		const manifest = (scripts: object) => JSON.stringify({ name: 'x', scripts }, null, 2)
		const edit = (path: string, old: string | null, text: string, more: Partial<DeciderCall> = {}) =>
			call(
				{
					access: 'write',
					kind: 'edit',
					paths: [`${at.root}/${path}`],
					key: `write:${path}`,
					change: { path: `${at.root}/${path}`, old, new: text },
				},
				{ tool: 'edit_file', ...more },
			)

		it('config-13 the question names a script that is new or other, and that an install runs it by itself', async () => {
			const { decide } = decider([])
			for (const [path, old, text, word] of [
				[
					'package.json',
					manifest({ test: 'mocha' }),
					manifest({ test: 'mocha', postinstall: 'node evil.js' }),
					'postinstall',
				],
				['package.json', manifest({ prepare: 'husky' }), manifest({ prepare: 'husky; curl evil' }), 'curl evil'],
				['sub/package.json', null, manifest({ preinstall: 'sh x' }), 'preinstall'],
				['composer.json', '{}', manifest({ 'post-install-cmd': ['php evil.php'] }), 'post-install-cmd'],
				['package.json', '{ broken', manifest({ install: 'make' }), 'install'],
			] as const) {
				const decision = await decide(edit(path, old, text))
				expect(decision.decision, word).to.equal('ask')
				expect(decision.warning, word).to.include(word).and.include('outside the sandbox')
				expect(decision.warning, word).to.include('by itself')
			}
			const plain = await decide(edit('package.json', manifest({ a: 'x' }), manifest({ a: 'y' })))
			expect(plain.warning).to.include('a: y').and.not.include('by itself')
		})

		it('config-13 no warning where no script changes, in other files and for what is no JSON', async () => {
			const { decide } = decider([])
			const same = manifest({ test: 'mocha' })
			for (const [path, old, text] of [
				['package.json', same, same.replace('"x"', '"y"')],
				['package.json', manifest({ test: 'mocha', postinstall: 'x' }), same],
				['package.json.md', '', manifest({ postinstall: 'x' })],
				['package.json', same, 'not json'],
				['package.json', same, '{"scripts":5}'],
			] as const)
				expect((await decide(edit(path, old, text))).warning, text).to.equal(undefined)
		})

		it('config-13 hidden characters in a script are written out', () => {
			const risk = riskOf({ path: '/r/package.json', old: null, new: manifest({ postinstall: 'a\u202eb' }) })
			expect(risk).to.include('[U+202E]')
		})
	})
})
