// What a call asks for while it runs: a host, to leave the sandbox, staged changes, a secret; and the edges of commands and files.
import { mkdir } from 'node:fs/promises'
import { expect } from 'chai'
import { askedEachTime, sessionKey } from '../../../src/engine/permission/decide.ts'
import type { CallInfo, Effect } from '../../../src/engine/types.ts'
import { bash, decider, file, type Lists, type Options, type Place, place } from './helpers.ts'

const host = { sandboxed: false }

describe('permission: effects and edges', () => {
	let at: Place
	before(async () => {
		at = await place()
		await mkdir(`${at.home}/other`)
		await mkdir(`${at.root}/.git/modules/m`, { recursive: true })
		await mkdir(`${at.root}/.vscode`)
	})
	after(() => at.close())

	const fetching: CallInfo = { title: 't', kind: 'fetch', access: 'net', paths: [], key: 'fetch:x' }
	const decideFetch = (
		lists: Lists,
		more: { info?: Partial<CallInfo>; effect?: Effect; keys?: string[] } & Omit<Options, 'keys'> = {},
	) => {
		const { info, keys = [], ...rest } = more
		return decider(at, lists).decide({
			tool: 'web_fetch',
			readOnlyTool: false,
			mode: 'build',
			sandboxed: true,
			acceptEdits: false,
			effect: undefined,
			...rest,
			keys: new Set(keys),
			info: { ...fetching, ...info },
		})
	}
	const reach = (name: string, port = 443): Effect => ({ type: 'reach_host', host: name, port })
	const apply = (paths: string[], declared?: string[]): Effect => ({
		type: 'apply_changes',
		summary: 's',
		paths: paths.map((path) => `${at.root}/${path}`),
		...(declared ? { declared } : {}),
	})
	const outside = (command: string, cwd?: string): Effect => ({
		type: 'outside_sandbox',
		command,
		wall: 'network',
		detail: '',
		...(cwd === undefined ? {} : { cwd }),
	})

	it('a host: ask rules beat answers and allow rules, an address that could carry data is asked about each time', async () => {
		const effect = reach('a.com')
		const decided = async (lists: Lists, more: Parameters<typeof decideFetch>[1] = {}) =>
			decideFetch(lists, { effect, ...more })
		expect(await decided({})).to.deep.include({ decision: 'ask', lastingRule: 'allow: host(a.com)' })
		expect(await decided({}, { effect: reach('a.com', 8443) })).to.deep.include({
			lastingRule: 'allow: host(a.com:8443)',
		})
		expect(await decided({}, { effect: reach('a.com', 80) })).to.deep.include({ lastingRule: 'allow: host(a.com)' })
		expect((await decided({ allow: ['host(a.com)'] })).decision).to.equal('allow')
		expect((await decided({ fixed: ['host(a.com)'] })).decision).to.equal('allow')
		expect((await decided({ allow: ['web_fetch'] })).decision).to.equal('allow')
		expect((await decided({ allow: ['web_search', 'bash'] })).decision).to.equal('ask')
		// The whole tool counts for a page, not for a command's connection.
		expect((await decided({ allow: ['web_fetch'] }, { info: { kind: 'execute' } })).decision).to.equal('ask')
		const keys = [sessionKey(fetching, effect)]
		expect((await decided({}, { keys })).decision).to.equal('allow')
		expect((await decided({}, { keys: ['host:a.com:443'] })).decision).to.equal('ask')
		for (const lists of [{ ask: ['host(a.com)'] }, { ask: ['host(a.com)'], allow: ['host(a.com)', 'web_fetch'] }])
			expect(await decided(lists, { keys })).to.deep.include({ decision: 'ask', onceOnly: true })
		expect((await decided({ deny: ['host(a.com)'], allow: ['host(a.com)'] }, { keys })).decision).to.equal('deny')
		const each = { info: { key: `${askedEachTime}x` }, keys: [...keys, `${askedEachTime}x`] }
		expect(await decided({ allow: ['host(a.com)', 'web_fetch'] }, each)).to.deep.include({
			decision: 'ask',
			onceOnly: true,
		})
		// Before it reaches a host a page's call needs no answer of its own; another call that leaves the machine does.
		expect((await decideFetch({})).decision).to.equal('allow')
		expect(await decideFetch({}, { info: { kind: 'search' } })).to.deep.include({
			decision: 'ask',
			lastingRule: 'allow: web_fetch',
		})
		// Looking is part of planning; acting is not.
		expect((await decided({}, { mode: 'plan' })).decision).to.equal('ask')
		expect((await decided({}, { mode: 'plan', effect: apply(['a']) })).decision).to.equal('deny')
	})

	it('staged changes: deny and ask rules of edits hold for each path, a declaration covers only with all of its lines', async () => {
		const decided = (lists: Lists, effect: Effect, keys: string[] = []) =>
			bash(at, 'x', lists, { effect, keys: new Set(keys) })
		const declared = ['change, create dist/**', 'delete old/a']
		expect(await decided({}, apply(['dist/a']))).to.deep.include({ decision: 'ask', onceOnly: true })
		expect(await decided({}, apply(['dist/a'], []))).to.deep.include({ decision: 'ask', onceOnly: true })
		expect((await decided({}, apply(['dist/a'], declared))).decision).to.equal('ask')
		expect((await decided({}, apply(['dist/a'], declared))).onceOnly).to.equal(undefined)
		const rules = ['apply(dist/**)', 'apply(old/a)']
		expect((await decided({ allow: rules }, apply(['dist/a'], declared))).decision).to.equal('allow')
		expect((await decided({ fixed: rules }, apply(['dist/a'], declared))).decision).to.equal('allow')
		expect((await decided({ allow: ['apply(**)'] }, apply(['dist/a'], declared))).decision).to.equal('allow')
		expect((await decided({ allow: ['apply(**)'] }, apply(['dist/a']))).decision).to.equal('ask')
		for (const rule of rules)
			expect((await decided({ allow: [rule] }, apply(['dist/a'], declared))).decision, rule).to.equal('ask')
		const keys = [`apply:${declared.join('\n')}`, 'apply:s']
		expect((await decided({}, apply(['dist/a'], declared), keys)).decision).to.equal('allow')
		expect((await decided({}, apply(['dist/a']), keys)).decision).to.equal('ask')
		expect((await decided({}, apply(['dist/a'], ['change dist/**']), keys)).decision).to.equal('ask')
		for (const list of ['deny', 'ask'] as const) {
			const lists = { [list]: ['edit(dist/b)'], allow: ['apply(**)'] }
			expect((await decided(lists, apply(['dist/a', 'dist/b'], declared), keys)).decision).to.equal(list)
			expect((await decided(lists, apply(['dist/a'], declared), keys)).decision).to.equal('allow')
			const whole = { [list]: ['read(dist/b)'], allow: ['apply(**)'] }
			expect((await decided(whole, apply(['dist/b'], declared), keys)).decision).to.equal(list)
		}
	})

	it('a secret is asked for, by name and command', async () => {
		const effect: Effect = { type: 'use_secret', name: 'N', command: 'x' }
		expect((await bash(at, 'x', { allow: ['bash'] }, { effect })).decision).to.equal('ask')
		expect((await bash(at, 'x', {}, { effect, keys: new Set(['secret:N:x']) })).decision).to.equal('allow')
		for (const key of ['secret:N:y', 'secret:M:x', 'bash:x'])
			expect((await bash(at, 'x', {}, { effect, keys: new Set([key]) })).decision).to.equal('ask')
		expect((await bash(at, 'x', {}, { effect, mode: 'plan' })).decision).to.equal('ask')
	})

	it('out of the sandbox: only the whole command, in the working root, with nothing hidden', async () => {
		const lists = { outside: ['npm i', 'a; b', 'x $y'], allow: ['bash'] }
		for (const more of [{ outside: true }, { effect: outside('npm i') }])
			expect((await bash(at, 'npm i', lists, more)).decision).to.equal('allow')
		expect((await bash(at, ' npm i ', lists, { outside: true })).decision).to.equal('allow')
		for (const command of ['npm i x', 'npm  i', 'npm i\u200b', 'NPM i'])
			expect((await bash(at, command, lists, { outside: true })).decision, command).to.equal('ask')
		expect((await bash(at, 'npm i', lists, { effect: outside('npm i', `${at.root}/sub`) })).decision).to.equal('ask')
		expect((await bash(at, 'npm i', { ...lists, ask: ['bash(npm *)'] }, { outside: true })).decision).to.equal('ask')
		expect((await bash(at, 'npm i', { ...lists, deny: ['bash(npm *)'] }, { outside: true })).decision).to.equal('deny')
		for (const command of ['if (', 'npm i\u200b']) {
			const decision = await bash(
				at,
				command,
				{ outside: [command] },
				{ outside: true, keys: new Set([`outside:${command}`]) },
			)
			expect(decision, command).to.include({ decision: 'ask' })
			expect(decision.lastingRule, command).to.equal(undefined)
		}
		expect(await bash(at, 'npm i', {}, { outside: true })).to.deep.include({ lastingRule: 'outside: npm i' })
		// An answer counts for the very command in the very folder.
		const keys = new Set(['outside:npm i', `outside:npm t\n(in ${at.root}/sub)`])
		expect((await bash(at, 'npm i', {}, { outside: true, keys })).decision).to.equal('allow')
		expect((await bash(at, 'npm t', {}, { outside: true, keys })).decision).to.equal('ask')
		expect((await bash(at, 'npm t', {}, { effect: outside('npm t', `${at.root}/sub`), keys })).decision).to.equal(
			'allow',
		)
		expect((await bash(at, 'npm i', {}, { effect: outside('npm i', `${at.root}/sub`), keys })).lastingRule).to.equal(
			undefined,
		)
		expect((await bash(at, 'npm i', lists, { outside: true, profile: 'strict' })).decision).to.equal('deny')
		expect((await bash(at, 'npm i', lists, { effect: outside('npm i\0') })).decision).to.equal('deny')
		// The answer to a call that asks to run outside is the answer to its effect.
		const call: CallInfo = { title: '', kind: 'execute', access: 'run', paths: [], key: 'bash:x', command: 'x' }
		expect(sessionKey(call)).to.equal('bash:x')
		expect(sessionKey({ ...call, outside: true })).to.equal(sessionKey(call, outside('x')))
		expect(sessionKey({ ...call, outside: true, cwd: '/s' })).to.equal(sessionKey(call, outside('x', '/s')))
		expect(sessionKey({ ...call, outside: true, cwd: '/s' })).to.not.equal(sessionKey(call, outside('x')))
		// What is asked for is the effect's command, not the call's.
		expect((await bash(at, 'npm i', lists, { effect: outside('npm i\u200b') })).warning).to.be.a('string')
	})

	it('a command that writes: what is unknown, protected or outside is asked about, once answered it is not', async () => {
		const key = (command: string) => ({ ...host, keys: new Set([`bash:${command}`]) })
		for (const command of ['a > $x', 'a > .vscode/tasks.json', `a > ${at.home}/w`]) {
			const lists = { allow: ['bash(a *)', 'bash(a)'] }
			expect((await bash(at, command, lists, host)).decision, command).to.equal('ask')
			expect((await bash(at, command, lists, key(command))).decision, command).to.equal('allow')
		}
		expect((await bash(at, 'a > $x', { allow: ['bash'] }, host)).decision).to.equal('allow')
		expect((await bash(at, 'a > $x')).decision).to.equal('allow')
		expect((await bash(at, 'a > .vscode/tasks.json')).warning).to.include('can make other programs run code')
		expect((await bash(at, `a > ${at.home}/w`, { allow: ['bash(a *)', 'edit(~/w)'] }, host)).decision).to.equal('allow')
		expect(
			(await bash(at, `a > ${at.home}/w`, { allow: ['bash(a *)'], fixed: ['edit(~/w)'] }, host)).decision,
		).to.equal('allow')
		expect((await bash(at, `a > ${at.home}/w`, { allow: ['bash(a *)', 'read(~/w)'] }, host)).decision).to.equal('ask')
		expect((await bash(at, 'a > /tmp/w')).decision).to.equal('ask')
	})

	it('an allow rule needs each command, and no doubt; redirections alone need none', async () => {
		const lists = { allow: ['bash(a)', 'bash(a *)', 'bash(sh)'] }
		expect((await bash(at, 'a; > y', lists, host)).decision).to.equal('allow')
		expect((await bash(at, '> y', lists, host)).decision).to.equal('ask')
		expect((await bash(at, 'a | sh', lists, host)).decision).to.equal('ask')
		expect((await bash(at, 'a; b', lists, host)).decision).to.equal('ask')
		expect((await bash(at, 'a | sh', { allow: ['bash(a | sh)'] }, host)).decision).to.equal('ask')
		expect((await bash(at, 'b; c', { allow: ['bash(b; c)'] }, host)).decision).to.equal('allow')
		expect((await bash(at, 'a | sh', { allow: ['bash'] }, host)).decision).to.equal('allow')
		for (const [command, rule] of [
			['a b', 'allow: bash(a b)'],
			['a *', 'allow: bash(a \\*)'],
			['a | sh', undefined],
			['a\nb', undefined],
			[`a ${'x'.repeat(500)}`, undefined],
			['if (', undefined],
			['a\u200b', undefined],
		] as const)
			expect((await bash(at, command, {}, host)).lastingRule, command.slice(0, 20)).to.equal(rule)
		expect((await bash(at, 'a', {}, { ...host, profile: 'strict' })).decision).to.equal('deny')
	})

	it('of /proc only what shows another process’s secrets is refused to commands; devices and /sys are not', async () => {
		for (const name of ['environ', 'mem', 'maps', 'fd/3', 'cmdline', 'auxv'])
			for (const path of [`/proc/1/${name}`, `/proc/1/task/1/${name}`])
				expect((await bash(at, `cat ${path}`)).decision, path).to.equal('deny')
		for (const path of ['/proc/cpuinfo', '/proc/1/status', '/sys/class/net', '/dev/kmsg'])
			expect((await bash(at, `cat ${path}`)).decision, path).to.equal('allow')
		for (const path of ['/etc/shadow', `${at.home}/.ssh/id_rsa`])
			expect((await bash(at, `cat ${path}`)).decision, path).to.equal('deny')
	})

	it('git’s programs and Garuda’s folder are never written, other protected files after a question', async () => {
		for (const path of [
			...['.git/hooks/x', '.git/hooks', '.git/config', '.git/info/attributes', '.git/modules/m/hooks/x'],
			...['.git/modules/m/config', '.garuda/settings.json', 'sub/.git/config'],
		]) {
			expect((await file(at, 'write', `${at.root}/${path}`, { allow: ['edit'] })).decision, path).to.equal('deny')
			expect((await bash(at, `a > ${path}`, { allow: ['bash'] })).decision, path).to.equal('deny')
		}
		for (const path of ['.git/HEAD', '.vscode/tasks.json', '.git/modules/m/HEAD']) {
			const decision = await file(at, 'write', `${at.root}/${path}`, { allow: ['edit'] })
			expect(decision.decision, path).to.equal('ask')
			expect(decision.warning, path).to.include('can make other programs run code')
		}
		expect((await file(at, 'write', `${at.home}/other/.git/config`)).decision).to.equal('ask')
		// It adds one line by a way of its own.
		const remember = { tool: 'remember', keys: new Set<string>() }
		const saving = await file(at, 'write', `${at.root}/.garuda/memory.md`, { allow: ['edit', 'remember'] }, remember)
		expect(saving).to.deep.include({ decision: 'ask', reason: 'it saves a line for later sessions' })
		expect(saving).to.not.have.property('warning')
	})

	it('files: a rule for a whole tool ends at the root, hidden characters are asked about before a change', async () => {
		expect((await file(at, 'write', `${at.root}/a`, { allow: ['edit'] })).decision).to.equal('allow')
		expect((await file(at, 'write', `${at.home}/other/a`, { allow: ['edit'] })).decision).to.equal('ask')
		expect((await file(at, 'write', `${at.root}/a`, { allow: ['edits'] })).decision).to.equal('allow')
		expect((await file(at, 'write', `${at.home}/other/a`, { allow: ['edits'] })).decision).to.equal('ask')
		expect((await file(at, 'read', `${at.root}/a`, { allow: ['edits'] })).decision).to.equal('allow')
		expect((await file(at, 'read', `${at.home}/other/a`)).decision).to.equal('ask')
		expect((await file(at, 'read', `${at.home}/other/a`, { allow: ['read(~/other/**)'] })).decision).to.equal('allow')
		expect((await file(at, 'write', `${at.root}/a`, {}, { acceptEdits: true })).decision).to.equal('allow')
		expect((await file(at, 'write', `${at.home}/other/a`, {}, { acceptEdits: true })).decision).to.equal('ask')
		expect((await file(at, 'read', `${at.root}/a\u200b`)).decision).to.equal('allow')
		const hidden = await file(at, 'write', `${at.root}/a\u200b`, { allow: ['edit'] }, { acceptEdits: true })
		expect(hidden.decision).to.equal('ask')
		expect(hidden.lastingRule).to.equal(undefined)
		for (const [path, access, rule] of [
			[`${at.root}/a`, 'write', 'allow: edit(./a)'],
			[`${at.root}/s/a*`, 'write', 'allow: edit(s/a\\*)'],
			[`${at.home}/other/a`, 'read', `allow: read(${at.home}/other/a)`],
		] as const)
			expect((await file(at, access, path)).lastingRule).to.equal(rule)
		const asking = await file(at, 'read', `${at.root}/a`, { ask: ['read(a)'], allow: ['read'] })
		expect(asking).to.deep.include({ decision: 'ask', onceOnly: true })
	})

	it('a tool without an effect needs no answer when it only reads, another is asked about', async () => {
		const info: CallInfo = { title: 't', kind: 'other', access: 'none', paths: [], key: 'k' } as CallInfo
		const decided = (tool: string, readOnlyTool: boolean, lists: Lists = {}, keys: string[] = []) =>
			decider(at, lists).decide({
				...{ tool, readOnlyTool, info, effect: undefined, mode: 'build' as const, sandboxed: true, acceptEdits: false },
				keys: new Set(keys),
			})
		expect((await decided('x', true)).decision).to.equal('allow')
		expect((await decided('todo_write', false)).decision).to.equal('allow')
		expect(await decided('x', false)).to.deep.include({ decision: 'ask', lastingRule: 'allow: x' })
		expect((await decided('x', false, { allow: ['x'] })).decision).to.equal('allow')
		expect((await decided('x', false, {}, ['k'])).decision).to.equal('allow')
		expect((await decided('x', false, { ask: ['x'], allow: ['x'] }, ['k'])).decision).to.equal('ask')
	})
})
