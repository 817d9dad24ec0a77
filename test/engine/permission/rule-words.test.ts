// Rules word by word: options before a sub-command, hosts, declarations, paths of lists, and what is no rule.
import { expect } from 'chai'
import type { RuleText } from '../../../src/engine/config/settings.ts'
import {
	hostMatches,
	parseRule,
	pathMatches,
	type Rule,
	ruleSet,
	toolMatches,
} from '../../../src/engine/permission/rules.ts'
import { bash, type Place, place } from './helpers.ts'

const valued: Record<string, string> = {
	git: '-C -c --git-dir --work-tree --namespace --exec-path --config-env',
	npm: '--prefix -C -w --workspace --registry',
	pnpm: '-C --dir --filter -F',
	yarn: '--cwd',
	docker: '-H --host --context -c --config -l --log-level',
	podman: '--url --connection -c --log-level',
	kubectl: '-n --namespace --context --cluster --kubeconfig --user -s --server',
	helm: '-n --namespace --kube-context --kubeconfig',
	aws: '--profile --region --output --endpoint-url',
	gcloud: '--project --account --configuration',
	gh: '-R --repo',
	cargo: '--config -Z -C --color',
	terraform: '-chdir',
	make: '-C -f --directory --file',
}
const rule = (text: string): Rule => {
	const parsed = parseRule(text)
	if ('error' in parsed) throw new Error(parsed.error)
	return parsed
}

describe('permission: rules word by word', () => {
	let at: Place
	before(async () => {
		at = await place()
	})
	after(() => at.close())

	it('a denied sub-command is found behind each option of the program', async () => {
		for (const [program, options] of Object.entries(valued))
			for (const option of options.split(' '))
				for (const command of [`${program} ${option} v push x`, `/usr/bin/${program} -q ${option} v --x push x`])
					expect(
						(await bash(at, command, { deny: [`bash(${program} push)`, `bash(${program} push *)`] })).decision,
						command,
					).to.equal('deny')
		for (const command of ['other -x push', 'tool +x push', 'PUSHER.exe push', '/a/b/pusher push'])
			expect(
				(await bash(at, command, { deny: ['bash(other push)', 'bash(tool push)', 'bash(pusher push)'] })).decision,
				command,
			).to.equal('deny')
		expect((await bash(at, 'git -C push status', { deny: ['bash(git push *)'] })).decision).to.equal('allow')
	})

	it('an allowed word is that word alone, in its own spelling; a denied one is any of both', async () => {
		const allowed = (text: string, command: string) =>
			bash(at, command, { allow: [text] }, { sandboxed: false }).then(({ decision }) => decision)
		for (const [text, command, expected] of [
			['bash(ls)', 'ls', 'allow'],
			['bash(ls)', 'ls x', 'ask'],
			['bash(LS)', 'ls', 'ask'],
			['bash(ls *)', 'ls x', 'allow'],
			['bash(ls *)', 'LS x', 'ask'],
			['bash(ls *)', '/bin/ls x', 'ask'],
		] as const)
			expect(await allowed(text, command), `${text} ${command}`).to.equal(expected)
		for (const command of ['ls', 'ls x', 'LS x', '/bin/ls x'])
			expect((await bash(at, command, { deny: ['bash(ls)'] })).decision, command).to.equal('deny')
	})

	it('what is no rule is told with its reason', () => {
		for (const [text, reason] of [
			['', 'is no rule'],
			['1x', 'is no rule'],
			['bash(a', 'is no rule'],
			['bash()', 'empty pattern'],
			['bash( )', 'empty pattern'],
			['bash(a\rb)', 'control character'],
			['bash(a\0b)', 'control character'],
			['host(a b)', 'host name'],
			['host(*)', 'host name'],
			['host(a.com:x)', 'host name'],
			['apply(/abs)', 'relative to the root'],
			['apply(~/x)', 'relative to the root'],
			['apply(a/../b)', 'relative to the root'],
			['apply(a[)', 'relative to the root'],
			['read(a[)', 'broken path pattern'],
			['edit(a/{b)', 'broken path pattern'],
			['read(../x)', 'may not hold ".."'],
			['web_fetch(x)', 'takes no pattern'],
		] as const) {
			const parsed = parseRule(text)
			expect('error' in parsed ? parsed.error : '', text).to.include(reason)
		}
		for (const [text, kind, pattern] of [
			['edits', 'edits', null],
			['bash', 'tool', null],
			['bash(*)', 'bash', null],
			['bash( a b )', 'bash', 'a b'],
			['host(*.A.com:8443)', 'host', '*.a.com:8443'],
			['apply(./dist/**)', 'apply', 'dist/**'],
			['grep(a/**)', 'path', 'a/**'],
			['mcp__x__*', 'tool', null],
		] as const)
			expect(rule(text), text).to.include({ kind, pattern })
	})

	it('hosts: by name, below a star, at a port', () => {
		for (const [text, host, port, expected] of [
			['host(a.com)', 'a.com', 443, true],
			['host(a.com)', 'A.COM.', 80, true],
			['host(a.com)', 'b.a.com', 443, false],
			['host(*.a.com)', 'b.a.com', 443, true],
			['host(*.a.com)', 'a.com', 443, false],
			['host(*.a.com)', '.a.com', 443, false],
			['host(*.a.com)', 'ba.com', 443, false],
			['host(a.com:8443)', 'a.com', 8443, true],
			['host(a.com:8443)', 'a.com', 443, false],
			['host', 'any.com', 1, true],
			['web_fetch', 'any.com', 443, false],
			['bash(a.com)', 'a.com', 443, false],
		] as const)
			expect(hostMatches(rule(text), host, port), `${text} ${host}`).to.equal(expected)
	})

	it('whole tools: by name, by their kind, by a star', () => {
		for (const [text, tool, access, expected] of [
			['web_fetch', 'web_fetch', 'net', true],
			['web_fetch', 'web_search', 'net', false],
			['read', 'grep', 'read', true],
			['read', 'edit_file', 'write', false],
			['edit', 'write_file', 'write', true],
			['write', 'edit_file', 'write', true],
			['edit', 'grep', 'read', false],
			['mcp__a__*', 'mcp__a__b', 'none', true],
			['mcp__a__*', 'mcp__b__b', 'none', false],
			['bash(x)', 'bash', 'run', false],
			['edits', 'edits', 'write', false],
		] as const)
			expect(toolMatches(rule(text), tool, access), `${text} ${tool}`).to.equal(expected)
	})

	it('paths: names at any depth, folders, the home, the disk; allow is exact, deny covers what is below', () => {
		const places = { root: '/r', home: '/h' }
		const matches = (list: RuleText['list'], text: string, path: string, access: 'read' | 'write' = 'read') =>
			ruleSet([{ list, text, level: 'user', file: 'f', line: 1 }], places).rules[list as 'deny'].some((one) =>
				pathMatches(one, path, access),
			)
		for (const [text, path, deny, allow] of [
			['read(a)', '/r/a', true, true],
			['read(a)', '/r/s/a', true, true],
			['read(a)', '/r/s/a/b', true, false],
			['read(a)', '/x/a', false, false],
			['read(./a)', '/r/a', true, true],
			['read(./a)', '/r/s/a', false, false],
			['read(s/a)', '/r/s/a', true, true],
			['read(s/a)', '/r/t/s/a', false, false],
			['read(s/)', '/r/s/a', true, true],
			['read(s/)', '/r/s', true, false],
			['read(**)', '/r/a/b', true, true],
			['read(**/a)', '/x/a', true, false],
			['read(**/a)', '/r/t/a', true, true],
			['read(~/a)', '/h/a', true, true],
			['read(~)', '/h', true, true],
			['read(~)', '/h/a', true, false],
			['read(/x/*)', '/x/a', true, true],
			['read(/x/*)', '/x/a/b', true, false],
			['read(/X/a)', '/x/A', true, false],
		] as const) {
			expect(matches('deny', text, path), `deny ${text} ${path}`).to.equal(deny)
			expect(matches('allow', text, path), `allow ${text} ${path}`).to.equal(allow)
		}
		// What may not be read may not be changed; a change that is allowed allows no read.
		for (const [list, text, access, expected] of [
			['deny', 'read(a)', 'write', true],
			['deny', 'edit(a)', 'read', false],
			['deny', 'edit(a)', 'write', true],
			['allow', 'read(a)', 'write', false],
			['allow', 'edit(a)', 'read', false],
			['allow', 'edit(a)', 'write', true],
			['deny', 'bash(a)', 'read', false],
		] as const)
			expect(matches(list, text, '/r/a', access), `${list} ${text} ${access}`).to.equal(expected)
	})

	it('texts of the lists: outside is kept as it is, edits is for allow, a broken deny rule is fatal', () => {
		const one = (list: RuleText['list'], text: string, level: RuleText['level'] = 'user'): RuleText => ({
			...{ list, text, level, file: 'f', line: 7 },
		})
		const places = { root: '/r', home: '/h' }
		expect(ruleSet([one('outside', ' npm i ')], places).rules.outside).to.deep.equal([
			{ text: 'npm i', file: 'f', line: 7 },
		])
		for (const [text, list, fatal] of [
			['bash(', 'deny', true],
			['bash(', 'ask', true],
			['bash(', 'allow', false],
			['edits', 'deny', true],
			['edits', 'ask', true],
		] as const)
			expect(
				ruleSet([one(list, text)], places).problems.map((problem) => problem.fatal),
				`${list} ${text}`,
			).to.deep.equal([fatal])
		expect(ruleSet([one('allow', 'edits')], places).problems).to.deep.equal([])
		for (const text of ['no_such_tool', 'list', 'search'])
			expect(
				ruleSet([one('deny', text, 'policy')], places).problems.map(({ fatal }) => fatal),
				text,
			).to.deep.equal([true])
		expect(ruleSet([one('deny', 'no_such_tool', 'policy')], places).rules.deny).to.deep.equal([])
		for (const text of ['list(a)', 'search(a)', 'mcp__a__b', 'web_*', 'bash', 'agent'])
			expect(ruleSet([one('deny', text, 'policy')], places).problems, text).to.deep.equal([])
	})

	it('a declaration is covered by the same glob or a folder that holds it', async () => {
		const { applyCovers } = await import('../../../src/engine/permission/rules.ts')
		for (const [text, line, expected] of [
			['apply(dist/**)', 'change, create dist/**', true],
			['apply(dist/**)', 'delete dist/a', true],
			['apply(dist/**)', 'create dist2/a', false],
			['apply(dist/*)', 'create dist/a', false],
			['apply(a)', 'change a', true],
			['apply(a)', 'create, delete a', true],
			['apply(a)', 'change b', false],
			['apply(**)', 'change b', true],
			['edit(a)', 'change a', false],
			['apply', 'change a', false],
		] as const)
			expect(applyCovers(rule(text), line), `${text} ${line}`).to.equal(expected)
	})
})
