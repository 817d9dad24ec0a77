// The grammar of rules and how widely each list reads them.
import { expect } from 'chai'
import fc from 'fast-check'
import { compileGlob, couldMatch, deniedTest, matchText } from '../../../src/engine/permission/match.ts'
import { deniedReads, parseRule, ruleSet } from '../../../src/engine/permission/rules.ts'
import { bash, decider, file, type Place, place, ruleTexts } from './helpers.ts'

describe('permission: rules', () => {
	let at: Place
	before(async () => {
		at = await place()
	})
	after(() => at.close())

	it('parses the grammar and says what is wrong with the rest', () => {
		expect(parseRule('bash(npm run *)')).to.deep.equal({
			kind: 'bash',
			text: 'bash(npm run *)',
			tool: 'bash',
			pattern: 'npm run *',
		})
		expect(parseRule('edits')).to.include({ kind: 'edits' })
		expect(parseRule('mcp__github__*')).to.include({ kind: 'tool', pattern: null })
		expect(parseRule('bash(*)')).to.include({ kind: 'bash', pattern: null })
		expect(parseRule('host(*.example.com)')).to.include({ kind: 'host' })
		expect(parseRule('bash(echo (a))')).to.include({ pattern: 'echo (a)' })
		// Nothing expands these, so the rule would hold nobody.
		for (const text of ['read($HOME/x)', 'edit(${HOME}/x)', 'read(~bob/x)'])
			expect(parseRule(text), text)
				.to.have.property('error')
				.that.matches(/nothing expands/)
		expect(
			ruleSet(ruleTexts({ deny: ['list'] }), { root: '/w', home: '/h', real: (path) => path }).problems[0]!.text,
		).to.match(/needs a path/)
		for (const text of [
			'',
			'bash(',
			'npm test',
			'bash()',
			'host(http://x)',
			'host(*)',
			'edit(../x)',
			'read(a[b)',
			'todo_write(x)',
			'web_fetch(a.com)',
			'bash(a\rb)',
		])
			expect(parseRule(text), text).to.have.property('error')
	})

	it('a deny or ask rule that cannot be read stops the start; an allow rule is left out with a notice', () => {
		for (const lists of [{ deny: ['bash('] }, { ask: ['read(a[b)'] }, { deny: ['edits'] }])
			expect(() => decider(at, lists)).to.throw(/settings\.json:1/)
		expect(decider(at, { allow: ['bash('] }).notices.join()).to.include('no effect')
		expect(() => decider(at, { fixed: ['npm test'] })).to.throw(/--allow/)
	})

	it('a name that no tool has is told, for --allow and for each list, with the right spelling where it is one', () => {
		const told = (lists: Parameters<typeof decider>[1]) => decider(at, lists).notices.join('\n')
		expect(told({ fixed: ['wrte_file', 'edits', 'mcp__files__read', 'web_*'] })).to.equal(
			'--allow: "wrte_file" names no tool: there is no tool "wrte_file". It has no effect.',
		)
		expect(told({ fixed: ['BASH'] })).to.include('it is written bash')
		for (const list of ['allow', 'ask', 'deny'] as const)
			expect(told({ [list]: ['edit', 'bsh'] }), list)
				.to.match(/settings\.json:\d+: the (?:allow|ask|deny) rule "bsh" names no tool/)
				.and.not.include('"edit"')
		// A project with hundreds of them does not bury what else is said.
		const many = told({ deny: Array.from({ length: 300 }, (_, i) => `bsh${i}`) }).split('\n')
		expect(many).to.have.length(6)
		expect(many[5]).to.equal('295 more rules have no effect.')
		expect(() => decider(at, { fixed: ['Bash(npm test)'] })).to.throw(
			/names no tool: there is no tool "Bash"; it is written bash/,
		)
	})

	it('allow reads commands as written: exact, with *, and with :*', async () => {
		const host = { sandboxed: false }
		const lists = { allow: ['bash(npm test)', 'bash(npm run *)', 'bash(git push:*)', 'bash(ls \\*.ts)'] }
		for (const command of [
			'npm test',
			'npm run build',
			'npm run',
			'git push',
			'git push origin main',
			'npm test && npm run lint',
			'ls *.ts',
			'npm test > out.txt',
			'npm run "a b"',
		])
			expect((await bash(at, command, lists, host)).decision, command).to.equal('allow')
		for (const command of [
			'npm test x',
			'npm  install',
			'git pushx',
			'npm testing',
			'npm run; rm a',
			'ls a.ts',
			'git -C x push',
			'npm run $(rm a)',
			'npm run build | sh',
		])
			expect((await bash(at, command, lists, host)).decision, command).to.equal('ask')
	})

	it('deny reads commands widely: a word means any arguments, options before the sub-command are looked through', async () => {
		const lists = {
			deny: ['bash(curl)', 'bash(git push:*)', 'bash(npm publish)', 'bash(rm -rf *)', 'bash(docker * rm)'],
		}
		for (const command of [
			'curl',
			'curl x',
			'/usr/bin/curl x',
			'git push',
			'git -C /x -c a=b push origin',
			'git --no-pager push',
			'npm publish',
			'npm --prefix x publish',
			'rm -rf x',
			'docker container rm',
			'GIT PUSH',
		])
			expect((await bash(at, command, lists)).decision, command).to.equal('deny')
		for (const command of ['curlx', 'git pull', 'npm publisher', 'rm -r x', 'echo git push', 'git log push'])
			expect((await bash(at, command, lists)).decision, command).to.equal('allow')
	})

	it('deny wins over allow, ask wins over a session answer, and both name the rule with its line', async () => {
		const decision = await bash(at, 'npm test', {
			allow: ['bash', 'bash(npm test)'],
			deny: ['bash(rm:*)', 'bash(npm:*)'],
		})
		expect(decision).to.deep.include({
			decision: 'deny',
			rule: { text: 'bash(npm:*)', file: 'settings.json', line: 2 },
		})
		expect(decision.reason).to.include('settings.json:2')
		const asked = await bash(
			at,
			'npm test',
			{ allow: ['bash'], ask: ['bash(npm:*)'] },
			{ keys: new Set(['bash:npm test']) },
		)
		expect(asked).to.include({ decision: 'ask', onceOnly: true })
	})

	it('host rules: exact, sub-domains, ports; an empty list is nothing (config-24)', async () => {
		const effect = (host: string, port = 443) => ({ effect: { type: 'reach_host' as const, host, port } })
		const lists = { allow: ['host(a.com)', 'host(*.b.com)', 'host(c.com:8443)'], deny: ['host(evil.b.com)'] }
		for (const [host, port, expected] of [
			['a.com', 443, 'allow'],
			['A.COM.', 443, 'allow'],
			['x.a.com', 443, 'ask'],
			['nota.com', 443, 'ask'],
			['x.b.com', 443, 'allow'],
			['b.com', 443, 'ask'],
			['xb.com', 443, 'ask'],
			['evil.b.com', 443, 'deny'],
			['c.com', 8443, 'allow'],
			['c.com', 443, 'ask'],
		] as const)
			expect((await bash(at, 'curl x', lists, effect(host, port))).decision, `${host}:${port}`).to.equal(expected)
		expect((await bash(at, 'curl x', { allow: ['bash'] }, effect('a.com'))).decision).to.equal('ask')
		expect(await bash(at, 'curl x', {}, effect('a.com'))).to.deep.include({
			decision: 'ask',
			lastingRule: 'allow: host(a.com)',
		})
		expect((await bash(at, 'curl x', {}, { ...effect('a.com'), keys: new Set(['host:a.com:443']) })).decision).to.equal(
			'allow',
		)
	})

	it('config-24 an empty allow list allows nothing', async () => {
		expect((await bash(at, 'npm test', { allow: [], fixed: [] }, { sandboxed: false })).decision).to.equal('ask')
		expect((await file(at, 'write', 'a.txt', { allow: [], fixed: [] })).decision).to.equal('ask')
		expect((await bash(at, 'x', { outside: [] }, { outside: true })).decision).to.equal('ask')
	})

	it('whole-tool rules for other tools, with * for a server', async () => {
		const call = (tool: string, lists = {}) =>
			decider(at, lists).decide({
				tool,
				readOnlyTool: false,
				info: { title: tool, kind: 'other', access: 'net', paths: [], key: tool },
				effect: undefined,
				mode: 'build',
				sandboxed: true,
				keys: new Set(),
				acceptEdits: false,
			})
		expect(await call('mcp__x__y')).to.deep.include({ decision: 'ask', lastingRule: 'allow: mcp__x__y' })
		expect((await call('mcp__x__y', { allow: ['mcp__x__*'] })).decision).to.equal('allow')
		expect((await call('mcp__xx__y', { allow: ['mcp__x__*'] })).decision).to.equal('ask')
		expect((await call('mcp__x__y', { allow: ['mcp__x__*'], deny: ['mcp__x__y'] })).decision).to.equal('deny')
	})

	it('deniedReads gives walkers every rule that keeps from reading, and no other', () => {
		const { rules } = ruleSet(ruleTexts({ deny: ['read(secret/)', 'edit(lock)', 'bash(cat *)'] }), {
			root: '/r',
			home: '/h',
		})
		const denied = deniedReads(rules)
		expect(denied).to.deep.equal([{ glob: '/r/**/secret', below: true }])
		const test = deniedTest(denied)
		expect(['/r/secret', '/r/a/Secret/b', '/r/other'].map(test)).to.deep.equal([true, true, false])
	})

	it('matchText agrees with an expression, and couldMatch never misses a value of the unknown part', () => {
		const letters = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '*'), maxLength: 8 })
		const plain = fc.string({ unit: fc.constantFrom('a', 'b', ' '), maxLength: 8 })
		fc.assert(
			fc.property(letters, plain, (pattern, text) => {
				const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 's')
				expect(matchText(pattern, text)).to.equal(expression.test(text))
			}),
		)
		fc.assert(
			fc.property(letters, plain, plain, plain, (pattern, head, middle, tail) => {
				if (matchText(pattern, head + middle + tail, true))
					expect(couldMatch(pattern, `${head}\0${tail}`)).to.equal(true)
			}),
			{ numRuns: 300 },
		)
	})

	it('path globs: hidden names, folders, classes, braces; hostile ones stay fast', () => {
		const test = (glob: string, path: string) => compileGlob(glob, false)!.test(path)
		expect(test('/r/**/.env*', '/r/a/b/.env.local')).to.equal(true)
		expect(test('/r/**/.env*', '/r/.env')).to.equal(true)
		expect(test('/r/*.ts', '/r/a/b.ts')).to.equal(false)
		expect(test('/r/{a,b}/[!x].t?', '/r/b/y.ts')).to.equal(true)
		expect(test('/r/a.b', '/r/axb')).to.equal(false)
		expect(compileGlob('/r/[a', false)).to.equal(null)
		const began = performance.now()
		test(`${'**/'.repeat(40)}x`, `${'a/'.repeat(500)}y`)
		matchText('*a'.repeat(50), 'a'.repeat(20_000))
		expect(performance.now() - began).to.be.below(2000)
	})
})

describe('permission: ordinary work', () => {
	let at: Place
	before(async () => {
		at = await place()
	})
	after(() => at.close())

	it('everyday commands in the sandbox ask nothing, with deny rules for others in force', async () => {
		const lists = { deny: ['bash(shutdown)', 'bash(git push:*)', 'read(**/*.pem)'] }
		for (const command of [
			'git status',
			'git commit -m "use `x`, it\'s done"',
			'npm test 2>&1 | tail -20',
			'FOO=1 npm test',
			'for f in src/*.ts; do echo "$f"; wc -l "$f"; done',
			"python3 - <<'EOF'\nimport os\nprint(os.getcwd())\nEOF",
			"cat > a.txt <<'EOF'\nhello $(world)\nEOF",
			'i=0; while [ $i -lt 3 ]; do i=$((i+1)); done',
			'find . -name "*.ts" -not -path "*/node_modules/*" | xargs grep foo',
			'source .venv/bin/activate && pytest -q',
			'echo hi > /dev/null 2>&1',
			"awk -F: '{print $1}' f | sort | uniq -c",
			'diff <(sort a) <(sort b)',
			'timeout 60 npm test',
			'cat /proc/cpuinfo',
			'rm -rf dist && mkdir -p dist/a',
			'bash scripts/build.sh',
			'sed -n "1,20p" f',
			'node -e "console.log(1)"',
			'cat .env.example',
		])
			expect((await bash(at, command, lists)).decision, command).to.equal('allow')
	})

	it('any text at all is decided, and denied words stay denied after any text that parses', async () => {
		const pieces = fc.constantFrom(
			'a',
			' ',
			';',
			'&&',
			'|',
			'(',
			')',
			'{ ',
			' }',
			'"',
			"'",
			'`',
			'$(',
			'$((',
			'))',
			'<<E\n',
			'\nE\n',
			'>',
			'<',
			'#',
			'\\',
			'\n',
			'if ',
			' then ',
			' fi',
			'${x',
			'}',
			'[[ ',
			' ]]',
			'=',
			'*',
			'eval ',
			'bash -c ',
		)
		await fc.assert(
			fc.asyncProperty(fc.array(pieces, { maxLength: 14 }), async (parts) => {
				const head = parts.join('')
				const decision = await bash(at, `${head}\ntouch a`, { deny: ['bash(touch:*)'], allow: ['bash(a:*)'] })
				// Where quotes, comments or here-documents swallow the line it is text; then nothing but `a` may be allowed as a rule.
				if (decision.decision === 'allow') expect(swallowed(head), JSON.stringify(head)).to.equal(true)
			}),
			{ numRuns: 400 },
		)
	})
})

/** Whether the end of the text may stand inside quotes, an escape or a here-document. */
const swallowed = (head: string): boolean => /["'`\\]|<<|\(\(|\[\[|\$\{|\(/.test(head)
