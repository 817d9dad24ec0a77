// Command files in an editor: the menu, a run, the consent as a question of its own, and a stop that is shown.
import { readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { removeTemp, tempProject, writeFiles } from '../helpers/temp.ts'
import { closeEditors, type Editor, type EditorOptions, editor, texts } from './editor.ts'

const folder = '.garuda/commands'

async function open(
	o: EditorOptions & { own?: Record<string, string>; project?: Record<string, string> },
): Promise<{ e: Editor; id: string }> {
	const place = tempProject({ 'a.txt': 'hello\n' })
	const under = (files: Record<string, string> = {}) =>
		Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]))
	writeFiles(place.home, under(o.own))
	writeFiles(place.root, under(o.project))
	const e = await editor({ place, replies: [{ text: 'Answer.' }, { text: 'Answer.' }], ...o })
	return { e, id: await e.session() }
}
const menu = (e: Editor) => e.only('available_commands_update').at(-1)!.availableCommands
const sent = (e: Editor, request = 0): string =>
	JSON.stringify(e.model.requests[request]!.messages.filter((one) => one.role === 'user'))

describe('acp: command files', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	it('the menu lists them after the built-in ones, with where they come from and their arguments', async () => {
		const { e } = await open({
			own: { 'fix.md': '---\ndescription: Fix\u202e it\nargument-hint: <issue>\n---\nFix $1' },
			project: { 'web/go.md': 'Go there' },
		})
		await e.next((one) => one.sessionUpdate === 'available_commands_update')
		const names = menu(e).map((one) => one.name)
		expect(names.slice(-2)).to.deep.equal(['fix', 'web:go'])
		expect(names[0]).to.equal('help')
		const [fix, go] = menu(e).slice(-2)
		expect(fix!.description).to.equal('Fix[U+202E] it (yours, ~/.garuda/commands/fix.md)')
		expect(fix!.input).to.deep.equal({ hint: '<issue>' })
		expect(go!.description).to.include("the project's")
		expect(go!.input).to.equal(undefined)
		await e.close()
	})

	it('the menu follows the files between prompts, and is not sent when nothing changed', async () => {
		const { e, id } = await open({ own: { 'a.md': 'A' } })
		await e.prompt(id, 'hi')
		const count = e.only('available_commands_update').length
		writeFiles(e.home, { [`${folder}/b.md`]: 'B' })
		await e.prompt(id, '/status')
		expect(menu(e).map((one) => one.name)).to.include('b')
		expect(e.only('available_commands_update')).to.have.length(count + 1)
		rmSync(join(e.home, folder, 'a.md'))
		await e.prompt(id, '/status')
		expect(menu(e).map((one) => one.name)).to.not.include('a')
		await e.prompt(id, '/status')
		expect(e.only('available_commands_update')).to.have.length(count + 2)
		await e.close()
	})

	it('/name runs the user’s command, spans as calls that the editor sees', async () => {
		const { e, id } = await open({ own: { 'st.md': 'State: !`cat a.txt` for $ARGUMENTS' } })
		expect((await e.prompt(id, '/st "x y" z')).stopReason).to.equal('end_turn')
		expect(sent(e)).to.include('hello').and.include('for \\"x y\\" z')
		expect(e.only('tool_call').map((one) => one.title)).to.deep.equal(['$ cat a.txt'])
		expect(e.questions).to.deep.equal([])
		expect(e.said()).to.match(/Answer\.$/)
		await e.close()
	})

	for (const forms of [false, true])
		it(`a project's command is asked about by an entry of its own, in the prompt (${forms ? 'with' : 'without'} forms)`, async () => {
			const { e, id } = await open({
				project: { 'go.md': 'Go\u202e there !`touch went.txt`' },
				answer: () => 'session',
				...(forms ? { capabilities: { elicitation: { form: {} } } } : {}),
			})
			expect(e.questions, 'not at session/new').to.deep.equal([])
			await e.prompt(id, '/go')
			const [question] = e.questions
			expect(question!.toolCall.toolCallId).to.match(/^garuda-question-/)
			expect(question!.options.map((one) => one.name)).to.deep.equal([
				'this time only',
				'trust this exact text',
				'leave it out',
			])
			expect(texts(question!.toolCall.content)).to.include('Go[U+202E] there !`touch went.txt`').and.include('hidden')
			expect(sent(e)).to.include('Go[U+202E] there')
			await e.prompt(id, '/go')
			expect(e.questions).to.have.length(1)
			await e.close()
		})

	it('a no, a stop and an answer that was not offered send nothing and run nothing', async () => {
		for (const answer of ['deny', 'cancelled', 'always'] as const) {
			const { e, id } = await open({ project: { 'go.md': 'Go !`touch went.txt`' }, answer: () => answer })
			const stopped = answer === 'cancelled'
			expect((await e.prompt(id, '/go')).stopReason).to.equal(stopped ? 'cancelled' : 'end_turn')
			expect(e.said()).to.include(stopped ? 'cancelled' : '/go was not run')
			expect(e.model.requests).to.deep.equal([])
			expect(() => readFileSync(join(e.root, 'went.txt'))).to.throw()
			await e.close()
		}
	})

	it('C06 a failing span is shown and ends the prompt without the model; the session goes on', async () => {
		const { e, id } = await open({ own: { 'bad.md': 'x !`echo why; exit 4`' } })
		expect((await e.prompt(id, '/bad')).stopReason).to.equal('end_turn')
		expect(e.said()).to.include('/bad was not sent to the model').and.include('exit code 4')
		expect(e.model.requests).to.deep.equal([])
		await e.prompt(id, 'hi')
		expect(e.said()).to.include('Answer.')
		await e.close()
	})

	it('link-01 a linked file is not in the menu, and the first prompt says so once', async () => {
		const { e, id } = await open({ own: { 'ok.md': 'fine' } })
		symlinkSync(join(e.root, 'a.txt'), join(e.home, folder, 'leak.md'))
		await e.prompt(id, 'hi')
		await e.prompt(id, 'hi')
		expect(menu(e).map((one) => one.name))
			.to.include('ok')
			.and.not.include('leak')
		expect(e.said().split('leak.md is left out: it is a link')).to.have.length(2)
		await e.prompt(id, '/leak')
		expect(e.said()).to.include('/leak is not there')
		expect(e.model.requests).to.have.length(2)
		await e.close()
	})

	it('a session that is loaded again shows the command as it was typed', async () => {
		const { e, id } = await open({ own: { 'fix.md': 'Fix $1 !`cat a.txt`' } })
		await e.prompt(id, '/fix 12')
		await e.agent.request('session/close', { sessionId: id })
		await e.agent.request('session/load', { sessionId: id, cwd: e.root, mcpServers: [] })
		const users = e.only('user_message_chunk').map((one) => (one.content.type === 'text' ? one.content.text : ''))
		expect(users).to.deep.equal(['/fix 12'])
		await e.close()
	})
})
