// Command files over the built bin: one task of a script, and an editor's prompt.
import { spawn } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { bin, environment, garuda, journals, lines, type Place, place, records, told, until } from '../helpers/cli.ts'
import { removeTemp, writeFiles } from '../helpers/temp.ts'

const script = { steps: [{ text: 'Answered.' }, { text: 'Again.' }] }
const made = (own: Record<string, string>, project: Record<string, string> = {}): Place => {
	const under = (files: Record<string, string>) =>
		Object.fromEntries(Object.entries(files).map(([name, text]) => [`.garuda/commands/${name}`, text]))
	const at = place({ 'a.txt': 'hello\n', ...under(project) })
	writeFiles(at.home, under(own))
	return at
}
/** What the model was told last, from the journal. */
const sent = (at: Place): string => {
	const users = journals(at.root).flatMap((id) => records(at.root, id).filter((one) => one.type === 'user'))
	return users.flatMap((one) => one.message.blocks.map((block: { text?: string }) => block.text ?? '')).join('\n')
}

describe('journey: command files', () => {
	afterEach(removeTemp)

	it('-p "/name args" runs the user’s command with its span in the sandbox, and exits 0', async () => {
		const at = made({ 'st.md': 'State !`cat a.txt; echo $ARGUMENTS` of $1', 'web/go.md': 'Go $1' })
		const ran = await garuda(at, ['-p', '/st "$(id) x" y'], { script })
		expect(told(ran.stderr)).to.equal('')
		expect(ran.stdout).to.equal('Answered.\n')
		expect(ran.code).to.equal(0)
		expect(sent(at)).to.include('hello\n"$(id) x" y\n</garuda-output> of $(id) x')
		expect((await garuda(at, ['-p', '/web:go there'], { script })).code).to.equal(0)
	})

	it('what is piped in goes with it, and is never a command itself', async () => {
		const at = made({ 'see.md': 'Look:' })
		expect((await garuda(at, ['-p', '/see'], { script, stdin: 'piped text' })).code).to.equal(0)
		expect(sent(at)).to.include('Look:').and.include('piped text')
		const other = made({ 'see.md': 'Look:' })
		expect((await garuda(other, [], { script, stdin: '/see' })).code).to.equal(0)
		expect(sent(other)).to.equal('/see')
	})

	it('exit codes: a failing span 1, a name that there is not 1, a built-in one 1; each says why and asks no model', async () => {
		const at = made({ 'bad.md': '!`echo broken; false`' })
		for (const [line, word] of [
			['/bad', 'broken'],
			['/bda', 'Did you mean /bad?'],
			['/undo', 'works in the chat'],
		] as const) {
			const ran = await garuda(at, ['-p', line], { script })
			expect(ran.code, line).to.equal(1)
			expect(ran.stderr).to.include(word)
			expect(ran.stdout).to.equal('')
		}
	})

	it('a project’s command is left out until it was agreed to, and the word says how', async () => {
		const at = made({}, { 'ship.md': 'Ship !`touch shipped.txt`' })
		const ran = await garuda(at, ['-p', '/ship'], { script })
		expect(ran.code).to.equal(1)
		expect(ran.stderr).to.include('you have not agreed to it').and.include('type /ship there')
		expect(existsSync(join(at.root, 'shipped.txt'))).to.equal(false)
		expect(journals(at.root)).to.deep.equal([])
	})

	it('JSON names them, and a stopped one is a result that says so; lines of input run them too', async () => {
		const at = made({ 'bad.md': '!`false`', 'go.md': 'Go' })
		const ran = await garuda(at, ['-p', '/bad', '--output-format', 'stream-json', '--verbose'], { script })
		const all = lines(ran.stdout)
		expect(all[0].slash_commands).to.include('bad').and.include('go').and.include('help')
		const result = all.at(-1)
		expect(result).to.deep.include({ type: 'result', is_error: true, subtype: 'error_during_execution' })
		expect(JSON.stringify(result)).to.include('/bad was not sent')
		const stdin = ['/go', '/nothing', 'plain']
			.map((content) => JSON.stringify({ type: 'user', message: { role: 'user', content } }))
			.join('\n')
		const input = await garuda(at, ['--input-format', 'stream-json', '--output-format', 'stream-json'], {
			script,
			stdin,
		})
		expect(input.code).to.equal(1)
		expect(
			lines(input.stdout)
				.filter((one) => one.type === 'result')
				.map((one) => one.is_error),
		).to.deep.equal([false, true, false])
	})

	it('link-01 a command that is a link runs nothing and is said', async () => {
		const at = made({ 'ok.md': 'x' })
		symlinkSync(join(at.root, 'a.txt'), join(at.home, '.garuda/commands/leak.md'))
		const ran = await garuda(at, ['-p', '/leak'], { script })
		expect(ran.code).to.equal(1)
		expect(ran.stderr).to.include('it is a link')
	})

	it('an editor: the menu has it, the consent is asked in the prompt, the answer comes', async () => {
		const at = made({ 'st.md': '---\nargument-hint: <what>\n---\nState !`cat a.txt` $1' }, { 'ship.md': 'Ship it' })
		const child = spawn(process.execPath, [bin, 'acp'], {
			cwd: at.root,
			env: environment(at, { script }),
			stdio: ['pipe', 'pipe', 'pipe'],
		})
		try {
			const heard: any[] = []
			let rest = ''
			const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
			child.stdout.setEncoding('utf8').on('data', (text: string) => {
				const whole = (rest + text).split('\n')
				rest = whole.pop()!
				for (const line of whole) {
					const message = JSON.parse(line)
					heard.push(message)
					if (message.method === 'session/request_permission')
						send({ id: message.id, result: { outcome: { outcome: 'selected', optionId: 'session' } } })
				}
			})
			let next = 0
			const ask = async (method: string, params: object): Promise<any> => {
				const id = next++
				send({ id, method, params })
				await until(
					() => heard.some((one) => one.id === id && one.method === undefined),
					() => JSON.stringify(heard),
				)
				const answer = heard.find((one) => one.id === id && one.method === undefined)
				expect(answer.error, JSON.stringify(answer)).to.equal(undefined)
				return answer.result
			}
			await ask('initialize', { protocolVersion: 1, clientCapabilities: {} })
			const { sessionId } = await ask('session/new', { cwd: at.root, mcpServers: [] })
			const updates = () => heard.filter((one) => one.method === 'session/update').map((one) => one.params.update)
			const menu = () =>
				updates().find((one) => one.sessionUpdate === 'available_commands_update')?.availableCommands ?? []
			await until(
				() => menu().length > 0,
				() => JSON.stringify(heard),
			)
			expect(menu().find((one: any) => one.name === 'st').input).to.deep.equal({ hint: '<what>' })
			const say = (text: string) => ask('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
			expect(await say('/st now')).to.deep.equal({ stopReason: 'end_turn' })
			expect(await say('/ship')).to.deep.equal({ stopReason: 'end_turn' })
			const questions = heard.filter((one) => one.method === 'session/request_permission')
			expect(questions).to.have.length(1)
			expect(JSON.stringify(questions[0].params)).to.include('Ship it')
			expect(sent(at)).to.include('hello').and.include('Ship it')
		} finally {
			child.stdin.end()
			child.kill()
			await new Promise((done) => child.on('close', done))
		}
	})
})
