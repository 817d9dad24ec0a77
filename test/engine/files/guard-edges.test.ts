// The guard where something changes between two looks, is larger than it may be, or lies where no file can.
import { promises as fs, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import { createFiles, sha256 } from '../../../src/engine/files/guard.ts'
import { removeTemp, tempProject } from '../../helpers/temp.ts'

const refused = (work: Promise<unknown>): Promise<string> =>
	work.then(
		() => expect.fail('it was not refused'),
		(error) => {
			if (error instanceof ToolError) return error.message
			throw error
		},
	)

describe('files/guard: edges', () => {
	afterEach(removeTemp)
	const made = async (files: Record<string, string>, buffer?: (path: string) => Promise<string | undefined>) => {
		const { root, home } = tempProject(files)
		return { root, files: await createFiles({ root, home, ...(buffer ? { buffer } : {}) }) }
	}

	it('a file that changes after it was compared keeps the change, and nothing is written', async () => {
		let late = () => {}
		// An editor is asked between the comparison and the write.
		const { root, files } = await made({ 'a.txt': 'old' }, async () => {
			late()
			return undefined
		})
		late = () => writeFileSync(join(root, 'a.txt'), 'theirs')
		expect(await refused(files.write('a.txt', Buffer.from('mine'), sha256(Buffer.from('old'))))).to.include(
			'changed on the disk',
		)
		expect(await fs.readFile(join(root, 'a.txt'), 'utf8')).to.equal('theirs')
		late = () => writeFileSync(join(root, 'new.txt'), 'theirs')
		expect(await refused(files.write('new.txt', Buffer.from('mine'), null))).to.include('changed on the disk')
		expect(await fs.readFile(join(root, 'new.txt'), 'utf8')).to.equal('theirs')
		expect((await fs.readdir(root)).sort()).to.deep.equal(['a.txt', 'new.txt'])
	})

	it('more bytes than a caller takes are refused, from the disk and from an editor', async () => {
		let unsaved: string | undefined
		const { files } = await made({ 'a.txt': 'x'.repeat(100) }, async () => unsaved)
		expect((await files.read('a.txt', 100)).bytes).to.have.lengthOf(100)
		expect(await refused(files.read('a.txt', 99))).to.include('too large to read whole: 100 bytes')
		unsaved = 'y'.repeat(200)
		expect(await refused(files.read('a.txt', 150))).to.include('too large to read whole: 200 bytes')
		expect((await files.read('a.txt', 200)).bytes).to.have.lengthOf(200)
	})

	it('a file that is too large to compare is not written over, and is said to be', async () => {
		const { root, files } = await made({ big: '' })
		await fs.truncate(join(root, 'big'), 65 * 1024 * 1024)
		expect(await refused(files.write('big', Buffer.from('mine'), sha256(Buffer.from(''))))).to.include('too large')
		expect(await refused(files.read('big'))).to.include('too large')
		expect((await fs.stat(join(root, 'big'))).size).to.equal(65 * 1024 * 1024)
	})

	it('a path that can name nothing is refused with its reason', async () => {
		const { root, files } = await made({ 'a.txt': 'x' })
		for (const [path, reason] of [
			['', 'empty'],
			['a\0b', 'NUL'],
			['a\ud800', 'Unicode'],
			['a/'.repeat(3_000), 'The path is too long'],
			['a.txt/b', 'a part of the path is a file'],
			[`${root}/a.txt/b/c`, 'a part of the path is a file'],
			['b'.repeat(300), 'the name is too long'],
		] as const)
			expect(await refused(files.resolve(path)), path.slice(0, 20)).to.include(reason)
		await fs.symlink('loop', join(root, 'loop'))
		expect(await refused(files.resolve('loop'))).to.include('link loop')
		expect(await refused(files.resolve('loop/x'))).to.include('link loop')
		await fs.symlink('nothing', join(root, 'dangling'))
		expect(await refused(files.resolve('dangling'))).to.include('is a link to something that does not exist')
		for (const [path, shown] of [
			['a.txt', 'a.txt'],
			['new//./b/', 'new/b'],
			['.', '.'],
		] as const)
			expect((await files.resolve(path)).shown, path).to.equal(shown)
	})

	it('many names asked at once are found as they are, whatever their spelling', async () => {
		const names = Array.from({ length: 40 }, (_, index) => `f${index}`)
		const { files } = await made(Object.fromEntries(names.map((name) => [name, name])))
		const found = await Promise.all(
			[...names, ...names.map((name) => `no-${name}`), '..', '.'].map((name) => files.resolve(name)),
		)
		expect(found.map(({ exists }) => exists)).to.deep.equal([
			...names.map(() => true),
			...names.map(() => false),
			true,
			true,
		])
	})

	it('what a dead writer left is swept at the first write beside it', async () => {
		const { root, files } = await made({})
		const left = '.a.txt.ffffffff7fffffff00000000.garuda-tmp'
		await fs.writeFile(join(root, left), 'half')
		const then = Date.now() / 1000 - 600
		await fs.utimes(join(root, left), then, then)
		await files.write('a.txt', Buffer.from('new'), null)
		expect(await fs.readdir(root)).to.deep.equal(['a.txt'])
	})
})
