import { expect } from 'chai'
import { UserError } from '../../src/engine/errors.ts'
import { completeSlash, parseSlash, runSlash, type SlashContext, slashCommands } from '../../src/engine/slash.ts'
import type { AgentEvent } from '../../src/engine/types.ts'
import { type Fake, type FakeOptions, fakeGaruda, replyOf, spec } from '../chat/fake.ts'

const now = Date.parse('2026-11-30T12:00:00Z')
const summary = (id: string, title: string, hours: number, root = '/project') => ({
	id,
	root,
	title,
	created: now,
	updated: now - hours * 3_600_000,
	size: 10,
})

async function context(options: FakeOptions = {}): Promise<SlashContext & { fake: Fake }> {
	const fake = fakeGaruda(() => {}, {
		sessions: [
			summary('s-old', 'Old work', 100, '/other'),
			summary('s-new', 'New\u001b[2J work', 2),
			summary('s-own', 'This', 0),
		],
		models: [
			{ name: 'fake/one', spec: spec('one'), default: true, problem: null },
			{ name: 'fake/two', spec: spec('two'), default: false, problem: null },
			{ name: 'other/two-big', spec: spec('two-big'), default: false, problem: { code: 'auth', message: 'No key.' } },
		],
		...options,
	})
	const session = await fake.garuda.open({ id: 's-own' })
	return { garuda: fake.garuda, session, fake, now: () => now }
}

const textOf = async (ctx: SlashContext, line: string): Promise<string> => {
	const result = await runSlash(ctx, line)
	expect(result.type).to.equal('text')
	return (result as { text: string }).text
}

const failure = async (work: Promise<unknown>): Promise<UserError> => {
	try {
		await work
	} catch (error) {
		expect(error).to.be.instanceOf(UserError)
		return error as UserError
	}
	throw new Error('it did not fail')
}

describe('slash commands', () => {
	it('a prompt that begins with a path is no command', () => {
		expect(parseSlash('/etc/hosts is wrong')).to.equal(null)
		expect(parseSlash('//x')).to.equal(null)
		expect(parseSlash('/')).to.equal(null)
		expect(parseSlash('/models  fake/two ')).to.deep.equal({ name: 'models', args: 'fake/two' })
		expect(parseSlash('/plan fix\nthis')).to.deep.equal({ name: 'plan', args: 'fix\nthis' })
	})

	it('has every promised command, each with a summary, and each is in the help', async () => {
		const names =
			'help clear new status context cost permissions models effort plan compact undo redo diff sessions export exit'.split(
				' ',
			)
		expect(slashCommands.map((one) => one.name)).to.have.members(names)
		const help = await textOf(await context(), '/help')
		for (const one of slashCommands) {
			expect(one.summary).to.not.equal('')
			expect(help).to.include(`/${one.name}`)
		}
	})

	it('the help leaves out what the front end has another way for', async () => {
		const help = await textOf({ ...(await context()), elsewhere: new Set(['exit', 'sessions']) }, '/help')
		expect(help).to.include('/undo').and.not.include('/exit').and.not.include('/sessions')
	})

	it('/permissions says what goes unasked where no rule speaks: in the sandbox, without one, in plan mode', async () => {
		const words = async (status: FakeOptions['status']) => textOf(await context({ status: status! }), '/permissions')
		expect(await words({ sandbox: 'bubblewrap' })).to.include('commands in the sandbox go unasked')
		expect(await words({ sandbox: 'not started yet' })).to.include('commands in the sandbox go unasked')
		const host = await words({ sandbox: 'none: commands run on the host and ask first' })
		expect(host).to.include('every command ask').and.not.include('go unasked; edits')
		expect(await words({ sandbox: 'bubblewrap', mode: 'plan' })).to.include('nothing in the project is changed')
	})

	it('an unknown one names the nearest; arguments where there are none are refused', async () => {
		const ctx = await context()
		expect((await failure(runSlash(ctx, '/modles'))).hint).to.include('/models')
		expect((await failure(runSlash(ctx, '/stauts'))).hint).to.include('/status')
		expect((await failure(runSlash(ctx, '/zzz'))).hint).to.include('/help')
		expect((await failure(runSlash(ctx, '/undo 3'))).message).to.include('no arguments')
	})

	it('what only a front end can do comes back as an action', async () => {
		const ctx = await context()
		expect(await runSlash(ctx, '/exit')).to.deep.equal({ type: 'exit' })
		expect(await runSlash(ctx, '/quit')).to.deep.equal({ type: 'exit' })
		expect(await runSlash(ctx, '/new')).to.deep.equal({ type: 'new' })
		expect(await runSlash(ctx, '/clear')).to.deep.equal({ type: 'clear' })
		expect(await runSlash(ctx, '/sessions open s-n')).to.deep.equal({ type: 'open', id: 's-new' })
	})

	it('/plan with a task switches and prompts; without one it toggles; leaving with a plan hands it over', async () => {
		const answered: AgentEvent[] = [replyOf([{ type: 'text', text: '1. do this' }])]
		const ctx = await context({ history: answered })
		expect(await runSlash(ctx, '/plan fix the bug')).to.deep.include({ type: 'prompt', prompt: 'fix the bug' })
		expect(ctx.session.mode).to.equal('plan')
		expect(await runSlash(ctx, '/plan')).to.deep.include({ type: 'prompt', prompt: 'Carry out the plan above.' })
		expect(ctx.session.mode).to.equal('build')

		const empty = await context({ history: [replyOf([{ type: 'text', text: 'old' }]), { type: 'mode', mode: 'plan' }] })
		await runSlash(empty, '/plan')
		expect(empty.session.mode).to.equal('plan')
		expect(await textOf(empty, '/plan')).to.include('no plan yet')

		await runSlash(ctx, '/plan')
		expect(await textOf(ctx, '/plan off')).to.include('off')
		expect(ctx.session.mode).to.equal('build')
	})

	it('/models lists and switches by name, id or a part that fits one', async () => {
		const ctx = await context()
		const list = await textOf(ctx, '/models')
		expect(list)
			.to.match(/\* fake\/one/)
			.and.to.include('not usable: No key.')
		await runSlash(ctx, '/models two')
		expect(ctx.session.model).to.equal('fake/two')
		await runSlash(ctx, '/models big')
		expect(ctx.session.model).to.equal('other/two-big')
		expect((await failure(runSlash(ctx, '/models fake'))).message).to.include('fits 2 models')
		await runSlash(ctx, '/models new/unlisted')
		expect(ctx.session.model).to.equal('new/unlisted')
	})

	it('/effort and /permissions set what they say and refuse the rest', async () => {
		const ctx = await context()
		await runSlash(ctx, '/effort high')
		await runSlash(ctx, '/effort default')
		expect(ctx.fake.calls).to.deep.equal(['effort high', 'effort null'])
		await failure(runSlash(ctx, '/effort huge'))
		expect(await textOf(ctx, '/permissions'))
			.to.include('bash(npm test)')
			.and.to.include('bash:npm test')
		await runSlash(ctx, '/permissions edits on')
		expect(ctx.session.status().acceptEdits).to.equal(true)
		await failure(runSlash(ctx, '/permissions all on'))
	})

	it('/sessions lists newest first, renames, and deletes only after a yes and never the open one', async () => {
		const ctx = await context()
		const lines = (await textOf(ctx, '/sessions')).split('\n')
		expect(lines.map((line) => line.split(/\s+/)[1])).to.deep.equal(['s-own', 's-new', 's-old'])
		expect(lines[0]).to.match(/^\*/)
		expect(lines[2]).to.include('/other')
		expect(lines[1]).to.not.include('\u001b')

		await runSlash(ctx, '/sessions rename s-new A better title')
		await runSlash(ctx, '/sessions rename s-own Mine')
		expect(ctx.fake.calls).to.deep.equal(['rename s-new A better title', 'title Mine'])

		const asked = await runSlash(ctx, '/sessions delete s-old')
		expect(asked.type).to.equal('confirm')
		expect(ctx.fake.calls).to.not.include('remove s-old')
		if (asked.type === 'confirm') await asked.yes()
		expect(ctx.fake.calls).to.include('remove s-old')
		expect((await failure(runSlash(ctx, '/sessions delete s-own'))).message).to.include('open here')
		expect((await failure(runSlash(ctx, '/sessions delete s-'))).message).to.include('3 sessions')
		expect((await failure(runSlash(ctx, '/sessions open'))).message).to.include('needs the id')
		await failure(runSlash(ctx, '/sessions drop s-old'))
	})

	it('/undo gives the prompt back, /cost says when a price is unknown, /context draws', async () => {
		const ctx = await context()
		expect(await runSlash(ctx, '/undo')).to.deep.include({ type: 'text', input: 'the old prompt' })
		expect(await textOf(ctx, '/redo')).to.include('nothing to redo')
		expect(await textOf(ctx, '/context'))
			.to.include('##')
			.and.to.include('5,000 of 100,000')
		const unknown = await context({ status: { usage: { ...ctx.session.status().usage, cost: null }, window: null } })
		expect(await textOf(unknown, '/cost')).to.include('unknown')
		expect(await textOf(unknown, '/context')).to.include('window is unknown')
		expect(await textOf(ctx, '/diff all')).to.include('+++')
		expect(await textOf(ctx, '/diff')).to.include('changed no file')
		expect(await textOf(ctx, '/compact')).to.include('9,000')
		expect(await textOf(ctx, '/export')).to.include('conversation.md')
		expect(await textOf(ctx, '/status'))
			.to.include('s-own')
			.and.to.include('bubblewrap')
	})

	it('completes names, then arguments, as whole lines', async () => {
		const ctx = await context()
		expect(await completeSlash(ctx, '/co')).to.deep.equal(['/context', '/cost', '/compact'])
		expect(await completeSlash(ctx, '/mod')).to.deep.equal(['/models '])
		expect(await completeSlash(ctx, '/models fake/t')).to.deep.equal(['/models fake/two'])
		expect(await completeSlash(ctx, '/sessions delete s-o')).to.deep.equal([
			'/sessions delete s-old',
			'/sessions delete s-own',
		])
		expect(await completeSlash(ctx, '/effort x')).to.deep.equal(['/effort xhigh'])
		expect(await completeSlash(ctx, '/permissions edits o')).to.deep.equal([
			'/permissions edits on',
			'/permissions edits off',
		])
		expect(await completeSlash(ctx, '/exit now')).to.deep.equal([])
		expect(await completeSlash(ctx, 'plain')).to.deep.equal([])
	})
})
