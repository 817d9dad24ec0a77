// @mentions: what is one, what gets attached, and what only gets a word.
import { execFileSync } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { expandMentions, parseMentions } from '../../../src/engine/context/mentions.ts'
import { complete } from '../../../src/engine/files/complete.ts'
import { type Scene, scene } from '../tools/scene.ts'

describe('mentions', () => {
	let s: Scene
	beforeEach(async () => {
		s = await scene()
	})
	afterEach(() => s.close())
	const expand = (text: string) =>
		expandMentions(text, { files: s.ctx.files, limits: s.ctx.limits, state: s.ctx.state })

	it('A01 spaces, brackets, signs and quotes in names are attached, quoted or escaped', async () => {
		for (const name of ['a b.md', 'c (1).txt', 'foo?bar.txt', "it's.md", 'x"y.md', 'ü ñ.md'])
			await s.put(name, `in ${name}\n`)
		const { attachments, notices } = await expand(
			`see @"a b.md", @c\\ (1).txt and @foo?bar.txt; @it's.md! (@"x\\"y.md") @'ü ñ.md'`,
		)
		expect(attachments.map(({ path }) => path)).to.deep.equal([
			'a b.md',
			'c (1).txt',
			'foo?bar.txt',
			"it's.md",
			'x"y.md',
			'ü ñ.md',
		])
		expect(attachments[0]!.text).to.equal('1\tin a b.md\n[lines 1-1 of 1: the whole file]')
		expect(notices).to.deep.equal([])
	})

	it('A01 what Tab writes is read back as the same path', async () => {
		const names = [
			'a b.md',
			'c (1).txt',
			'foo?bar.txt',
			"it's.md",
			'x"y.md',
			'back\\slash',
			'plain.ts',
			'dot.',
			'ümlaut',
			'a,b',
			'@x',
			'#1',
		]
		for (const name of names) await s.put(`d/${name}`, 'x')
		const offered = await complete(s.ctx.files, 'd/')
		expect(offered).to.have.length(names.length)
		for (const { insert, path } of offered) {
			const [mention] = parseMentions(`see ${insert} please`)
			expect(mention?.paths[0], insert).to.equal(path)
		}
	})

	it('A02 e-mails, decorators and noise stay text, without a word', async () => {
		const text = `mail me@example.com, <me@example.com>, use @Component(...) @app.route("/x"), git@github.com:x/y.git, see a@b @${'x'.repeat(400)} @ @@ @... @"" @{upstream} \`@Injectable()\``
		expect(await expand(text)).to.deep.equal({ attachments: [], images: [], notices: [] })
	})

	it('A02 handles, scopes and slips stay text, with one line for all of them', async () => {
		const told = async (text: string) => {
			const { attachments, notices } = await expand(text)
			expect(attachments).to.deep.equal([])
			return notices
		}
		expect(await told('look at @nope')).to.deep.equal(['No file or folder is called @nope; the text stays as it is.'])
		expect(await told('use @types/node, ping @alice and @alice; mail me@example.com')).to.deep.equal([
			'No file or folder is called @types/node, @alice; the text stays as it is.',
		])
		expect(await told(Array.from({ length: 30 }, (_, i) => `@u${i}`).join(' '))).to.deep.equal([
			'No file or folder is called @u0, @u1, @u2, @u3, @u4 and 25 more; the text stays as it is.',
		])
		expect((await told('@no\u202epe'))[0]).to.include('[U+202E]')
		// A file's marks get a line of their own.
		expect(await told('@nope.md and @./nope')).to.have.length(2)
	})

	it('A02 the file decides: a handle that is a file is attached, inside a word never', async () => {
		await s.put('alice', 'hi\n')
		await s.put('types/node/x', '1\n')
		const { attachments } = await expand('ping @alice, not x@alice nor a.@alice; @types/node.')
		expect(attachments.map(({ path }) => path)).to.deep.equal(['alice', 'types/node'])
		expect((await expand('@alice @alice (@./alice)')).attachments).to.have.length(1)
	})

	it('A03 folders are listed, big files cut with their size in lines, binaries and misses are notices', async () => {
		await s.put('src/a.ts', 'x\n')
		await s.put('big.txt', 'line of text\n'.repeat(400_000))
		await s.put('big.bin', Buffer.alloc(5_000_000, 0xfe))
		await s.put('doc.pdf', '%PDF-1.7\n\u00ff')
		await fs.symlink(join(s.outside, 'x'), join(s.root, 'link-out'))
		await s.put(join(s.outside, 'x'), 'theirs\n')
		const { attachments, notices } = await expand(
			'@. @src/ @big.txt @big.bin @doc.pdf @missing.txt @/etc/passwd @link-out @~/none.md',
		)
		expect(attachments.map(({ path }) => path)).to.deep.equal(['.', 'src', 'big.txt'])
		expect(attachments[1]!.text).to.contain('folder, 1 entries').and.contain('a.ts')
		expect(attachments[2]!.text.length).to.be.lessThan(30_000)
		expect(attachments[2]!.text).to.contain('of 400000; go on with offset')
		expect(notices).to.have.length(6)
		expect(notices[0]).to.contain('big.bin').and.contain('not text')
		expect(notices[1]).to.contain('PDF')
		expect(notices[2]).to.contain('missing.txt: no such file')
		expect(notices[3]).to.contain('/etc/passwd').and.contain('outside the working folder')
		expect(notices[4]).to.contain('outside the working folder')
		expect(notices[5]).to.contain('none.md')
	})

	it('A03 a permission rule decides for every path when there is one; FIFOs never hang', async () => {
		await s.put('a.md', 'x\n')
		await s.put(join(s.outside, 'y.md'), 'y\n')
		execFileSync('mkfifo', [join(s.root, 'p')])
		const asked: string[] = []
		const result = await expandMentions(`@a.md @${join(s.outside, 'y.md')} @p`, {
			files: s.ctx.files,
			limits: s.ctx.limits,
			permit: async ({ path }) => {
				asked.push(path)
				return path.endsWith('a.md') ? { allowed: false, reason: 'denied by a rule' } : { allowed: true, reason: '' }
			},
		})
		expect(result.attachments.map(({ path }) => path)).to.deep.equal([join(s.outside, 'y.md')])
		expect(result.notices).to.have.length(2)
		expect(result.notices[0]).to.contain('denied by a rule')
		expect(result.notices[1]).to.contain('FIFO')
		expect(asked).to.have.length(3)
	})

	it('path-15 secrets and links to them are never attached', async () => {
		await s.put('.env', 'TOKEN=1\n')
		await s.put(join(s.home, '.ssh/id_rsa'), 'KEY')
		await s.put(join(s.home, '.ssh/other'), 'KEY')
		await fs.symlink(join(s.home, '.ssh/id_rsa'), join(s.root, 'link-to-ssh-key'))
		const { attachments, notices } = await expand('@.env @link-to-ssh-key @~/.ssh/other @/proc/self/environ')
		expect(attachments).to.deep.equal([])
		expect(notices).to.have.length(4)
		for (const notice of notices) expect(notice).to.contain('off limits')
	})

	it('E10 text with $ sequences is attached once and unchanged', async () => {
		const text = "price $& and $' and $` and $$ and $<n>\n"
		await s.put('SKILL.md', text)
		expect((await expand('@SKILL.md')).attachments[0]!.text).to.equal(`1\t${text}[lines 1-1 of 1: the whole file]`)
	})

	it('an attached file counts as read for an edit; many mentions share a bounded room', async () => {
		await s.put('a.md', 'x\n')
		await expand('@a.md')
		await s.call('edit_file', { path: 'a.md', old_string: 'x', new_string: 'y' })
		for (let index = 0; index < 30; index++) await s.put(`f${index}`, 'z'.repeat(80).concat('\n').repeat(200))
		const { attachments, notices } = await expand(Array.from({ length: 30 }, (_, index) => `@f${index}`).join(' '))
		expect(attachments.reduce((sum, { text }) => sum + text.length, 0)).to.be.lessThan(
			s.ctx.limits.resultChars * 3 + 1000,
		)
		expect(attachments.length + notices.length).to.equal(30)
	})

	it('A05 completion reads one folder: it is fast beside a tree of thousands, and leaves secrets and hidden names out', async () => {
		const work: Promise<unknown>[] = []
		for (let index = 0; index < 3000; index++) work.push(s.put(`node_modules/p${index % 60}/f${index}.js`, ''))
		for (const name of ['.env', '.eslintrc', 'src/App.tsx', 'src/api.ts', 'server.pem', 'setup.cfg'])
			work.push(s.put(name, ''))
		await Promise.all(work)
		await complete(s.ctx.files, 's')
		const began = performance.now()
		const found = await complete(s.ctx.files, 's')
		expect(performance.now() - began).to.be.lessThan(50)
		expect(found.map(({ path }) => path)).to.deep.equal(['setup.cfg', 'src/'])
		expect((await complete(s.ctx.files, 'src/ap')).map(({ path }) => path)).to.deep.equal(['src/App.tsx', 'src/api.ts'])
		expect((await complete(s.ctx.files, 'src/Ap')).map(({ path }) => path)).to.deep.equal(['src/App.tsx'])
		expect((await complete(s.ctx.files, '.e')).map(({ path }) => path)).to.deep.equal(['.eslintrc'])
		expect(await complete(s.ctx.files, '../')).to.deep.equal([])
		expect(await complete(s.ctx.files, 'nowhere/x')).to.deep.equal([])
	})
})
