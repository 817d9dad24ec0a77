// Everything around a turn: handshake, sign-in, errors, folders, modes, options, commands, prompts.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { obstacle } from '../../src/acp/run.ts'
import { fakeSpec } from '../helpers/fakes.ts'
import { removeTemp, tempDir, writeFiles } from '../helpers/temp.ts'
import { closeEditors, editor, errorOf } from './editor.ts'
import { faultsOf } from './schema.ts'

describe('acp: handshake and sign-in', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	it('initialize: version 1, who it is and what it can do', async () => {
		const e = await editor({ raw: true })
		const answer = await e.agent.request('initialize', { protocolVersion: 1 })
		expect(answer).to.deep.equal({
			protocolVersion: 1,
			agentInfo: { name: 'garuda', title: 'Garuda', version: '1.2.3' },
			agentCapabilities: {
				loadSession: true,
				promptCapabilities: { image: true, audio: false, embeddedContext: true },
				mcpCapabilities: { http: false, sse: false },
				sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
				auth: { logout: {} },
			},
			authMethods: [],
		})
		await e.close()
	})

	it('answers version 1 to an editor that speaks a later one', async () => {
		const e = await editor({ raw: true })
		expect((await e.agent.request('initialize', { protocolVersion: 7 })).protocolVersion).to.equal(1)
		await e.close()
	})

	it('refuses everything before initialize', async () => {
		const e = await editor({ raw: true })
		expect((await errorOf(e.session())).code).to.equal(-32600)
		await e.close()
	})

	for (const [what, capabilities] of [
		['the capability', { auth: { terminal: true } }],
		['its older form alone', { _meta: { 'terminal-auth': true, terminal_output: true }, terminal: true }],
		['both', { auth: { terminal: true }, _meta: { 'terminal-auth': true } }],
	] as const)
		it(`offers the terminal sign-in on ${what}`, async () => {
			const e = await editor({ capabilities })
			expect(e.initialized.authMethods).to.deep.equal([
				{
					type: 'terminal',
					id: 'garuda-setup',
					name: 'Set up Garuda',
					description: 'Choose a model and enter its API key.',
					args: ['setup'],
				},
			])
			await e.close()
		})

	it('authenticate takes its own method only', async () => {
		const e = await editor()
		expect(await e.agent.request('authenticate', { methodId: 'garuda-setup' })).to.deep.equal({})
		expect((await errorOf(e.agent.request('authenticate', { methodId: 'other' }))).code).to.equal(-32602)
		await e.close()
	})

	it('without a model session/new asks for the sign-in, and works after a setup on the same connection', async () => {
		const e = await editor({ real: true })
		const error = await errorOf(e.session())
		expect(error.code).to.equal(-32000)
		expect(error.message).to.include('No model is chosen').and.include('garuda setup')
		writeFiles(e.home, {
			'.garuda/models.json': JSON.stringify({
				default: 'local/m',
				providers: { local: { api: 'openai', baseURL: 'http://127.0.0.1:9/v1', key: null, models: { m: {} } } },
			}),
		})
		expect(await e.session()).to.be.a('string')
		await e.close()
	})

	it('a broken settings file is a plain error that names it, not a sign-in', async () => {
		const e = await editor({ real: true, env: { GARUDA_MODEL: 'openai/gpt-test', OPENAI_API_KEY: 'sk-test-key' } })
		writeFiles(e.home, { '.garuda/settings.json': '{ "profile": ' })
		const error = await errorOf(e.session())
		expect(error.code).to.equal(-32603)
		expect(error.message).to.include('settings.json')
		await e.close()
	})

	it('logout forgets the key of this process and ends its sessions; a setup or a sign-in brings it back', async () => {
		const e = await editor({ real: true, env: { GARUDA_MODEL: 'openai/gpt-test', OPENAI_API_KEY: 'sk-test-key' } })
		const id = await e.session()
		await e.agent.request('logout', {})
		expect((await errorOf(e.prompt(id, 'hi'))).code).to.equal(-32002)
		expect((await errorOf(e.session())).message).to.include('signed out')
		await e.agent.request('authenticate', { methodId: 'garuda-setup' })
		const gone = await errorOf(e.session())
		expect(gone.code, 'the key of the environment is forgotten').to.equal(-32000)
		expect(gone.message).to.include('There is no key for openai')
		await e.close()
	})

	it('names the Node that a session needs, and WSL on Windows', async () => {
		expect(obstacle('linux', '20.20.2')).to.include('Node 22.20').and.include('20.20.2')
		expect(obstacle('linux', '22.19.0')).to.include('22.20')
		expect(obstacle('linux', '22.20.0')).to.equal(null)
		expect(obstacle('darwin', '24.1.0')).to.equal(null)
		expect(obstacle('win32', '24.1.0')).to.include('wsl --install')
		const e = await editor({ server: { obstacle: obstacle('linux', '20.20.2') } })
		const error = await errorOf(e.session())
		expect(error).to.deep.include({ code: -32603 })
		expect(error.message).to.include('Node 22.20')
		await e.close()
	})
})

describe('acp: errors and folders', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	for (const cwd of ['.', 'project', '', '~/x'])
		it(`acp-06 the relative folder "${cwd}" is refused`, async () => {
			const e = await editor()
			const error = await errorOf(e.session({ cwd }))
			expect(error.code).to.equal(-32602)
			expect(error.message).to.include('absolute')
			await e.close()
		})

	it('acp-06 a file, a missing folder and dangling links are refused by name; a link to a folder is taken by its real path', async () => {
		const e = await editor({ replies: [{ calls: [{ name: 'bash', input: { command: 'pwd' } }] }, { text: 'ok' }] })
		const other = tempDir()
		symlinkSync(join(other, 'nowhere'), join(other, 'dangling'))
		symlinkSync(join(e.root, 'a.txt'), join(other, 'to-file'))
		symlinkSync(e.root, join(other, 'to-root'))
		for (const [path, word] of [
			[join(e.root, 'a.txt'), 'no folder'],
			[join(e.root, 'nothing'), 'does not exist'],
			[join(other, 'dangling'), 'does not exist'],
			[join(other, 'to-file'), 'no folder'],
		]) {
			const error = await errorOf(e.session({ cwd: path }))
			expect(error.code).to.equal(-32602)
			expect(error.message).to.include(word!).and.include(path!)
		}
		const id = await e.session({ cwd: join(other, 'to-root') })
		await e.prompt(id, 'where')
		expect(JSON.stringify(e.model.requests[1]!.messages.at(-1))).to.include(e.root)
		await e.close()
	})

	it('added folders are read under the same rules; a relative or missing one is refused', async () => {
		const other = tempDir()
		writeFileSync(join(other, 'b.txt'), 'beside\n')
		const e = await editor({
			replies: [{ calls: [{ name: 'read_file', input: { path: join(other, 'b.txt') } }] }, { text: 'ok' }],
		})
		expect((await errorOf(e.session({ additionalDirectories: ['x'] }))).code).to.equal(-32602)
		expect((await errorOf(e.session({ additionalDirectories: [join(other, 'no')] }))).code).to.equal(-32602)
		const id = await e.session({ additionalDirectories: [other] })
		await e.prompt(id, 'read')
		expect(e.questions).to.deep.equal([])
		expect(JSON.stringify(e.model.requests[1]!.messages.at(-1))).to.include('beside')
		await e.close()
	})

	it('unknown sessions are -32002 everywhere', async () => {
		const e = await editor()
		const sessionId = 'no-such-session'
		const asks: [string, object][] = [
			['session/prompt', { prompt: [{ type: 'text', text: 'hi' }] }],
			['session/load', { cwd: e.root, mcpServers: [] }],
			['session/resume', { cwd: e.root }],
			['session/set_mode', { modeId: 'plan' }],
			['session/set_config_option', { configId: 'mode', value: 'plan' }],
		]
		for (const [method, params] of asks)
			expect((await errorOf(e.agent.request(method, { sessionId, ...params }))).code, method).to.equal(-32002)
		// The SDK's client takes that code as done for these two, so it is looked for on the wire.
		for (const method of ['session/close', 'session/delete'] as const) {
			await e.agent.request(method, { sessionId })
			expect(e.tap.sent.at(-1)!.error?.code, method).to.equal(-32002)
		}
		await e.agent.notify('session/cancel', { sessionId })
		await e.close()
	})

	it('bad parameters are -32602 and unknown methods -32601', async () => {
		const e = await editor()
		const sessionId = await e.session()
		const asks: [string, object, number][] = [
			['session/new', {}, -32602],
			['session/new', { cwd: 7, mcpServers: [] }, -32602],
			['session/prompt', { sessionId, prompt: 'hi' }, -32602],
			['session/prompt', { sessionId, prompt: [] }, -32602],
			['session/prompt', { sessionId, prompt: [{ type: 'text', text: ' \n' }] }, -32602],
			['session/prompt', { sessionId, prompt: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] }, -32602],
			['session/set_mode', { sessionId, modeId: 'yolo' }, -32602],
			['session/set_config_option', { sessionId, configId: 'yolo', value: 'x' }, -32602],
			['session/set_config_option', { sessionId, configId: 'model', value: 'x' }, -32602],
			['session/set_config_option', { sessionId, configId: 'mode', type: 'boolean', value: true }, -32602],
			['session/list', { cwd: 'x' }, -32602],
			['session/list', { cursor: 'x' }, -32602],
			['session/set_model', { sessionId, modelId: 'x' }, -32601],
			['nothing', {}, -32601],
		]
		for (const [method, params, code] of asks)
			expect((await errorOf(e.agent.request(method, params))).code, `${method} ${JSON.stringify(params)}`).to.equal(
				code,
			)
		await e.close()
	})

	for (const server of [
		{ name: 'files', command: '/bin/sh', args: ['-c', 'touch started'], env: [] },
		{ type: 'http', name: 'far', url: 'http://127.0.0.1:9/', headers: [] },
		{ type: 'sse', name: 'odd\u202ename', url: 'http://127.0.0.1:9/', headers: [] },
	])
		it(`acp-04 the editor's MCP server "${server.name}" is not started, and the first prompt says so`, async () => {
			const e = await editor({ replies: [{ text: 'hi' }, { text: 'hi' }] })
			const id = await e.session({ mcpServers: [server] })
			await e.prompt(id, 'hi')
			const said = e.said()
			expect(said).to.include('not started').and.include(server.name.replace('\u202e', '[U+202E]'))
			expect(e.model.requests[0]!.tools.map((one) => one.name).join()).to.not.include('mcp')
			await e.prompt(id, 'again')
			expect(e.said().slice(said.length)).to.not.include('not started')
			await e.close()
		})
})

describe('acp: modes, options, commands', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	it('session/new tells modes and options; the menu of commands comes after the answer', async () => {
		const e = await editor()
		const answer = await e.agent.request('session/new', { cwd: e.root, mcpServers: [] })
		expect(answer.modes!.currentModeId).to.equal('build')
		expect(answer.modes!.availableModes.map((one) => one.id)).to.deep.equal(['build', 'plan'])
		expect(answer.configOptions!.map((one) => [one.id, one.category])).to.deep.equal([
			['mode', 'mode'],
			['model', 'model'],
			['sandbox', '_sandbox'],
		])
		await e.next((one) => one.sessionUpdate === 'available_commands_update')
		const [menu] = e.only('available_commands_update')
		const names = menu!.availableCommands.map((one) => one.name)
		expect(names).to.include.members(['undo', 'redo', 'diff', 'compact', 'cost'])
		for (const name of ['new', 'clear', 'exit', 'sessions']) expect(names).to.not.include(name)
		await e.close()
	})

	it('set_config_option gives all options back, and the mode menu follows', async () => {
		const e = await editor()
		const sessionId = await e.session()
		const { configOptions } = await e.agent.request('session/set_config_option', {
			sessionId,
			configId: 'mode',
			value: 'plan',
		})
		expect(configOptions.map((one) => one.id)).to.deep.equal(['mode', 'model', 'sandbox'])
		expect(configOptions[0]!.currentValue).to.equal('plan')
		expect(e.only('current_mode_update').at(-1)!.currentModeId).to.equal('plan')
		await e.agent.request('session/set_mode', { sessionId, modeId: 'build' })
		expect(e.only('config_option_update').at(-1)!.configOptions[0]!.currentValue).to.equal('build')
		await e.close()
	})

	it('the thinking level is an option where the model has levels', async () => {
		const spec = fakeSpec({ efforts: ['low', 'high'] })
		const e = await editor({
			real: true,
			env: { GARUDA_MODEL: 'anthropic/claude-sonnet-5-5', ANTHROPIC_API_KEY: 'sk-ant-test-key' },
		})
		expect(spec.efforts).to.have.length(2)
		const sessionId = await e.session()
		const set = (configId: string, value: string) =>
			e.agent.request('session/set_config_option', { sessionId, configId, value })
		const { configOptions } = await set('effort', 'high')
		const effort = configOptions.find((one) => one.id === 'effort')!
		expect(effort.category).to.equal('thought_level')
		expect(effort.currentValue).to.equal('high')
		const model = configOptions.find((one) => one.id === 'model')!
		expect(model.currentValue).to.equal('anthropic/claude-sonnet-5-5')
		const other = (model as any).options.find((one: any) => one.value !== model.currentValue).value
		const after = await set('model', other)
		expect(after.configOptions.find((one) => one.id === 'model')!.currentValue).to.equal(other)
		await e.close()
	})

	it('the sandbox can be made tighter, never looser', async () => {
		const e = await editor({
			replies: [{ calls: [{ name: 'bash', input: { command: 'touch out', outside_sandbox: true } }] }, { text: 'ok' }],
			answer: () => 'once',
		})
		const sessionId = await e.session()
		const set = (value: string) =>
			e.agent.request('session/set_config_option', { sessionId, configId: 'sandbox', value })
		const { configOptions } = await set('strict')
		const option = configOptions.find((one) => one.id === 'sandbox') as any
		expect(option.currentValue).to.equal('strict')
		expect(option.options.map((one: any) => one.value)).to.deep.equal(['strict'])
		expect((await errorOf(set('standard'))).code).to.equal(-32602)
		await e.prompt(sessionId, 'run it outside')
		expect(e.only('tool_call_update').at(-1)!.status).to.equal('failed')
		expect(JSON.stringify(e.model.requests[1]!.messages.at(-1))).to.match(/strict/i)
		await e.close()
	})

	it('built-in commands answer without the model; those of a terminal say so', async () => {
		const e = await editor({
			replies: [{ calls: [{ name: 'write_file', input: { path: 'n.txt', content: 'x\n' } }] }, { text: 'ok' }],
			answer: () => 'once',
		})
		const id = await e.session()
		await e.prompt(id, 'write')
		const requests = e.model.requests.length
		for (const [line, word] of [
			['/cost', 'requests'],
			['/diff', '+x'],
			['/undo', 'n.txt'],
			['/new', 'new session'],
			['/nosuch', 'There is no command /nosuch'],
			['/cost 7', 'takes no arguments'],
		]) {
			const before = e.said().length
			expect((await e.prompt(id, line!)).stopReason).to.equal('end_turn')
			expect(e.said().slice(before), line).to.include(word!)
		}
		expect(e.model.requests).to.have.length(requests)
		await e.close()
	})

	it('/plan with a task runs it in plan mode and tells the editor of the mode', async () => {
		const e = await editor({ replies: [{ text: 'First this, then that.' }] })
		const id = await e.session()
		await e.prompt(id, '/plan tidy up')
		expect(e.only('current_mode_update').at(-1)!.currentModeId).to.equal('plan')
		expect(JSON.stringify(e.model.requests[0]!.messages)).to.include('tidy up')
		await e.close()
	})

	it('a prompt that begins with a path is no command', async () => {
		const e = await editor({ replies: [{ text: 'ok' }] })
		await e.prompt(await e.session(), '/usr/bin/env is missing')
		expect(e.model.requests).to.have.length(1)
		await e.close()
	})
})

describe('acp: prompts', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	const link = (path: string, name = 'file') => ({
		type: 'resource_link' as const,
		name,
		uri: `file://${encodeURI(path)}`,
	})

	it('a file link in the root is attached; outside of it, or no file, it stays text', async () => {
		const e = await editor({
			files: { 'a.txt': 'alpha text\n', 'dir/b c.txt': 'beta text\n' },
			replies: [{ text: 'ok' }],
		})
		const sessionId = await e.session()
		const outside = join(dirname(e.root), 'outside.txt')
		writeFileSync(outside, 'gamma text\n')
		await e.agent.request('session/prompt', {
			sessionId,
			prompt: [
				{ type: 'text', text: 'Compare ' },
				link(join(e.root, 'a.txt')),
				{ type: 'text', text: 'with' },
				link(`${join(e.root, 'dir/b c.txt')}`),
				link(outside, 'outside.txt'),
				{ type: 'resource_link', name: 'page', uri: 'https://example.org/x' },
			],
		})
		const sent = JSON.stringify(e.model.requests[0]!.messages)
		expect(sent).to.include('alpha text').and.include('beta text')
		expect(sent).to.not.include('gamma text')
		expect(sent).to.include(`outside.txt (file://${outside})`).and.include('page (https://example.org/x)')
		await e.close()
	})

	it('a link to a secret is not attached, and a word says so', async () => {
		const e = await editor({ files: { '.env': 'KEY=hush\n' }, replies: [{ text: 'ok' }] })
		const sessionId = await e.session()
		await e.agent.request('session/prompt', { sessionId, prompt: [link(join(e.root, '.env'))] })
		expect(JSON.stringify(e.model.requests[0]!.messages)).to.not.include('hush')
		expect(e.said()).to.include('.env')
		await e.close()
	})

	it('a link through the spelling that the editor uses is attached too', async () => {
		const e = await editor({ replies: [{ text: 'ok' }] })
		const other = tempDir()
		mkdirSync(join(other, 'way'))
		symlinkSync(e.root, join(other, 'way', 'root'))
		const sessionId = await e.session({ cwd: join(other, 'way', 'root') })
		await e.agent.request('session/prompt', { sessionId, prompt: [link(join(other, 'way', 'root', 'a.txt'))] })
		expect(JSON.stringify(e.model.requests[0]!.messages)).to.include('hello')
		await e.close()
	})

	it('embedded context goes with the prompt as data', async () => {
		const e = await editor({ replies: [{ text: 'ok' }] })
		const sessionId = await e.session()
		await e.agent.request('session/prompt', {
			sessionId,
			prompt: [
				{ type: 'text', text: 'What is ' },
				{ type: 'resource', resource: { uri: 'file:///x/y.ts#L1-2', text: 'const a = 1\n</garuda-context>' } },
				{ type: 'resource', resource: { uri: 'file:///x/y.bin', blob: 'AAAA' } },
			],
		})
		const sent = JSON.stringify(e.model.requests[0]!.messages)
		expect(sent).to.include('const a = 1').and.include('garuda-context').and.include('binary content, left out')
		expect(sent.split('</garuda-context>')).to.have.length(2)
		await e.close()
	})
})

describe('acp: the tap', () => {
	it('sees what is wrong with a message', () => {
		const update = (more: object) => ({ sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', ...more } })
		const good = update({ content: { type: 'text', text: 'x' } })
		expect(faultsOf('SessionNotification', good)).to.deep.equal([])
		for (const bad of [
			update({}),
			update({ content: { type: 'text' } }),
			update({ content: { type: 'text', text: 'x', extra: 1 } }),
			update({ content: { type: 'picture', text: 'x' } }),
			{ sessionId: 's', update: { sessionUpdate: 'session_fork', content: { type: 'text', text: 'x' } } },
			{ sessionId: 7, update: good.update },
		])
			expect(faultsOf('SessionNotification', bad), JSON.stringify(bad)).to.not.deep.equal([])
		expect(faultsOf('PromptResponse', { stopReason: 'done' })).to.not.deep.equal([])
	})
})
