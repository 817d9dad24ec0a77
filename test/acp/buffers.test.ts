// The editor's unsaved text: read under the same rules, marked, never written over.
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Reply } from '../helpers/fakes.ts'
import { removeTemp, tempDir } from '../helpers/temp.ts'
import { closeEditors, type EditorOptions, editor } from './editor.ts'

const read = (path: string): Reply => ({ calls: [{ name: 'read_file', input: { path } }] })
const write = (path: string, content: string): Reply => ({ calls: [{ name: 'write_file', input: { path, content } }] })
const capabilities = { fs: { readTextFile: true } }

/** What the model was told by the request after the n-th. */
const told = (e: { model: { requests: { messages: unknown[] }[] } }, n: number) =>
	JSON.stringify(e.model.requests[n]!.messages.at(-1))

describe('acp: unsaved buffers', () => {
	afterEach(async () => {
		await closeEditors()
		removeTemp()
	})

	const open = (buffers: Record<string, string>, more: EditorOptions = {}) => {
		const asked: string[] = []
		return editor({
			capabilities,
			buffer: (path) => {
				asked.push(path)
				const name = path.split('/').at(-1)!
				if (!(name in buffers)) throw new Error('not open')
				return buffers[name]!
			},
			answer: () => 'once',
			...more,
		}).then((e) => Object.assign(e, { asked }))
	}

	it('an unsaved text is read in place of the disk, and marked', async () => {
		const e = await open({ 'a.txt': 'typed, not saved\n' }, { replies: [read('a.txt'), { text: 'ok' }] })
		await e.prompt(await e.session(), 'read')
		expect(told(e, 1)).to.include('typed, not saved').and.include('unsaved').and.not.include('hello')
		expect(e.asked).to.deep.equal([join(e.root, 'a.txt')])
		await e.close()
	})

	it('a mention attaches it too', async () => {
		const e = await open({ 'a.txt': 'typed, not saved\n' }, { replies: [{ text: 'ok' }] })
		await e.prompt(await e.session(), 'look at @a.txt')
		expect(told(e, 0)).to.include('typed, not saved').and.include('unsaved')
		await e.close()
	})

	for (const [what, disk, buffer] of [
		['the same', 'hello\n', 'hello\n'],
		['line ends that the editor keeps to itself', 'one\r\ntwo\r\n', 'one\ntwo\n'],
		['a byte order mark that the editor keeps to itself', '\ufeffhello\n', 'hello\n'],
	] as const)
		it(`a saved text is the disk's: ${what}`, async () => {
			const e = await open({ 'a.txt': buffer }, { files: { 'a.txt': disk }, replies: [read('a.txt'), { text: 'ok' }] })
			await e.prompt(await e.session(), 'read')
			expect(told(e, 1)).to.not.include('unsaved')
			await e.close()
		})

	it('an edit is refused while they differ, and works once it is saved', async () => {
		const buffers: Record<string, string> = { 'a.txt': 'typed\n' }
		const save: Reply = { text: 'Please save it.' }
		const e = await open(buffers, {
			replies: [read('a.txt'), write('a.txt', 'mine\n'), save, write('a.txt', 'mine\n'), { text: 'done' }],
		})
		const id = await e.session()
		await e.prompt(id, 'change it')
		expect(told(e, 2)).to.include('unsaved changes')
		expect(e.questions).to.deep.equal([])
		expect(readFileSync(join(e.root, 'a.txt'), 'utf8')).to.equal('hello\n')
		writeFileSync(join(e.root, 'a.txt'), 'typed\n')
		await e.prompt(id, 'saved')
		expect(readFileSync(join(e.root, 'a.txt'), 'utf8')).to.equal('mine\n')
		await e.close()
	})

	it('what is typed while the question stands is not written over', async () => {
		const buffers: Record<string, string> = { 'a.txt': 'hello\n' }
		const e = await open(buffers, {
			replies: [read('a.txt'), write('a.txt', 'mine\n'), { text: 'ok' }],
			answer: () => {
				buffers['a.txt'] = 'hello and more\n'
				return 'once'
			},
		})
		await e.prompt(await e.session(), 'change it')
		expect(told(e, 2)).to.include('unsaved changes')
		expect(readFileSync(join(e.root, 'a.txt'), 'utf8')).to.equal('hello\n')
		await e.close()
	})

	it('the editor is never asked for what is off limits, outside, or no text', async () => {
		const outside = tempDir()
		writeFileSync(join(outside, 'o.txt'), 'outside\n')
		const e = await open(
			{ '.env': 'x', 'o.txt': 'x', 'b.bin': 'x', link: 'x' },
			{
				files: { '.env': 'KEY=hush\n', 'b.bin': new Uint8Array([1, 0, 2, 255]) },
				replies: [read('.env'), read(join(outside, 'o.txt')), read('b.bin'), read('link'), { text: 'ok' }],
			},
		)
		symlinkSync(join(outside, 'o.txt'), join(e.root, 'link'))
		await e.prompt(await e.session(), 'read them')
		expect(e.asked).to.deep.equal([])
		await e.close()
	})

	it('it is not asked at all where it did not offer that', async () => {
		const e = await open({ 'a.txt': 'typed\n' }, { capabilities: {}, replies: [read('a.txt'), { text: 'ok' }] })
		await e.prompt(await e.session(), 'read')
		expect(e.asked).to.deep.equal([])
		expect(told(e, 1)).to.include('hello')
		await e.close()
	})

	it('it is asked by the path as the editor spells it', async () => {
		const e = await open({ 'a.txt': 'typed\n' }, { replies: [read('a.txt'), { text: 'ok' }] })
		const other = tempDir()
		symlinkSync(e.root, join(other, 'way'))
		await e.prompt(await e.session({ cwd: join(other, 'way') }), 'read')
		expect(e.asked).to.deep.equal([join(other, 'way', 'a.txt')])
		expect(told(e, 1)).to.include('typed')
		await e.close()
	})

	it('the tour asks for none: its scratch copy is open in no editor', async () => {
		const scratch = tempDir()
		writeFileSync(join(scratch, 'a.txt'), 'a copy\n')
		const e = await open(
			{ 'a.txt': 'typed\n' },
			{
				replies: [read('a.txt'), { text: 'ok' }],
				server: { tour: async () => ({ options: { root: scratch }, remove: async () => {} }) },
			},
		)
		await e.prompt(await e.session(), 'show me')
		expect(told(e, 1)).to.include('a copy')
		expect(e.asked).to.deep.equal([])
		await e.close()
	})

	it("only what lies in the session's own folders is asked for: the working one and the added ones", async () => {
		const [added, other] = [tempDir(), tempDir()]
		writeFileSync(join(added, 'a.txt'), 'disk\n')
		writeFileSync(join(other, 'o.txt'), 'disk\n')
		const e = await open(
			{ 'a.txt': 'typed\n', 'o.txt': 'typed\n' },
			{
				engine: { extraDirs: [other] },
				replies: [read(join(added, 'a.txt')), { text: 'ok' }, read(join(other, 'o.txt')), { text: 'ok' }],
			},
		)
		await e.prompt(await e.session({ additionalDirectories: [added] }), 'read')
		expect(e.asked).to.deep.equal([join(added, 'a.txt')])
		await e.prompt(await e.session(), 'read')
		expect(told(e, 3)).to.include('disk')
		expect(e.asked).to.deep.equal([join(added, 'a.txt')])
		await e.close()
	})
})
