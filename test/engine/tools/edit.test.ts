// What an edit must keep and what it must refuse.
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Scene, scene } from './scene.ts'

const latin = (text: string): Buffer => Buffer.from(text, 'latin1')

describe('edit_file and write_file', () => {
	let s: Scene
	beforeEach(async () => {
		s = await scene()
	})
	afterEach(() => s.close())

	const edit = (path: string, old_string: string, new_string: string, more = {}) =>
		s.call('edit_file', { path, old_string, new_string, ...more })
	const read = (path: string) => s.call('read_file', { path })

	it('E01 a multi-line edit of a CRLF file keeps CRLF', async () => {
		await s.put('a.txt', 'one\r\n\ttwo\r\nthree\r\n')
		await read('a.txt')
		await edit('a.txt', 'one\n\ttwo', 'one\n\tTWO')
		expect(await s.text('a.txt')).to.equal('one\r\n\tTWO\r\nthree\r\n')
	})

	it('E01 text sent with CRLF, lines added and lines removed keep CRLF as well', async () => {
		await s.put('a.txt', 'a\r\nb\r\nc\r\nd\r\n')
		await read('a.txt')
		await edit('a.txt', 'a\r\nb', 'a\r\nx\r\ny\r\nb')
		await edit('a.txt', 'c\nd\n', 'd\n')
		expect(await s.text('a.txt')).to.equal('a\r\nx\r\ny\r\nb\r\nd\r\n')
	})

	it('E01 a whole-file write keeps CRLF; a file of LF gets CRLF only when the content has it', async () => {
		await s.put('w.txt', 'a\r\nb\r\n')
		await s.put('u.txt', 'a\nb\n')
		await read('w.txt')
		await read('u.txt')
		const result = await s.call('write_file', { path: 'w.txt', content: 'a\nnew\nb\n' })
		expect(result.text).to.contain('CRLF')
		await s.call('write_file', { path: 'u.txt', content: 'a\r\nb\r\n' })
		expect(await s.text('w.txt')).to.equal('a\r\nnew\r\nb\r\n')
		expect(await s.text('u.txt')).to.equal('a\r\nb\r\n')
	})

	it('E02 untouched lines keep their own ends and mixed files stay mixed', async () => {
		await s.put('crlf.txt', 'foo\r\nbar\r\nbaz\r\n')
		await s.put('mixed.txt', 'a\r\nb\nc\r\n')
		await read('crlf.txt')
		await read('mixed.txt')
		await edit('crlf.txt', 'foo\nbar\n', 'foo\nqux\n')
		await edit('mixed.txt', 'b', 'B')
		expect(await s.text('crlf.txt')).to.equal('foo\r\nqux\r\nbaz\r\n')
		expect(await s.text('mixed.txt')).to.equal('a\r\nB\nc\r\n')
	})

	it('E02 a whole-file write and an edit over lines of both kinds keep a mixed file mixed', async () => {
		await s.put('mixed.txt', 'a\r\nb\nc\r\nd\n')
		await read('mixed.txt')
		await s.call('write_file', { path: 'mixed.txt', content: 'a\nb\nC\nd\n' })
		expect(await s.text('mixed.txt')).to.equal('a\r\nb\nC\r\nd\n')
		await edit('mixed.txt', 'a\nb\nC', 'a\nb2\nC')
		expect(await s.text('mixed.txt')).to.equal('a\r\nb2\nC\r\nd\n')
	})

	it('E02 a lone CR inside a line is a character; a file of lone CRs keeps them', async () => {
		await s.put('odd.txt', 'a\rb\nc\n')
		await s.put('mac.txt', 'a\rb\rc\r')
		await read('odd.txt')
		await read('mac.txt')
		await edit('odd.txt', 'c', 'C')
		await edit('mac.txt', 'a\nb', 'a\nx\nb')
		expect(await s.text('odd.txt')).to.equal('a\rb\nC\n')
		expect(await s.text('mac.txt')).to.equal('a\rx\rb\rc\r')
	})

	it('E03 a UTF-8 mark survives an edit at line 1 and a whole-file write', async () => {
		await s.put('bom.txt', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('hello\n中文\n')]))
		expect((await read('bom.txt')).text).to.match(/^1\thello\n2\t中文\n/)
		await edit('bom.txt', 'hello\n中', 'hello2\n中')
		expect(await s.text('bom.txt')).to.equal('\ufeffhello2\n中文\n')
		const result = await s.call('write_file', { path: 'bom.txt', content: 'new\n' })
		expect(await s.text('bom.txt')).to.equal('\ufeffnew\n')
		expect(result.text).to.contain('byte order mark kept')
	})

	it('E03 a mark sent by the model is not doubled, and a new file gets exactly what was sent', async () => {
		await s.put('bom.txt', '\ufeffa\n')
		await read('bom.txt')
		await s.call('write_file', { path: 'bom.txt', content: '\ufeffb\n' })
		await s.call('write_file', { path: 'new.txt', content: '\ufeffb\n' })
		expect(await s.text('bom.txt')).to.equal('\ufeffb\n')
		expect(await s.text('new.txt')).to.equal('\ufeffb\n')
	})

	it('E05 UTF-16 files with a mark are read and keep encoding, mark and line ends', async () => {
		const le = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('key=1\r\nü=😀\r\n', 'utf16le')])
		await s.put('le.ini', le)
		await s.put('be.ini', Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from('key=1\r\n', 'utf16le').swap16()]))
		expect((await read('le.ini')).text)
			.to.contain('1\tkey=1\n2\tü=😀')
			.and.contain('UTF-16')
		await read('be.ini')
		await edit('le.ini', 'key=1', 'key=2')
		await edit('be.ini', 'key=1', 'key=2')
		expect((await s.bytes('le.ini')).toString('hex')).to.equal(
			Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('key=2\r\nü=😀\r\n', 'utf16le')]).toString('hex'),
		)
		expect((await s.bytes('be.ini')).toString('hex')).to.equal(
			Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from('key=2\r\n', 'utf16le').swap16()]).toString('hex'),
		)
	})

	it('E05 broken UTF-16 and Latin-1 are refused with the true reason and stay as they are', async () => {
		await s.put('odd.txt', Buffer.from([0xff, 0xfe, 0x41, 0x00, 0x42]))
		await s.put('latin.c', latin('/* Gr\xfc\xdfe */\nint a;\n'))
		expect(await s.fails('read_file', { path: 'odd.txt' })).to.contain('not valid UTF-16')
		expect((await read('latin.c')).text)
			.to.contain('Grüße')
			.and.contain('not UTF-8')
		expect(await s.fails('edit_file', { path: 'latin.c', old_string: 'int a', new_string: 'int b' })).to.contain(
			'not UTF-8',
		)
		expect((await s.bytes('latin.c')).equals(latin('/* Gr\xfc\xdfe */\nint a;\n'))).to.equal(true)
	})

	it('E06 the mode survives: executable, private and setgid', async () => {
		for (const [name, mode] of [
			['run.sh', 0o755],
			['key.txt', 0o600],
			['sg.sh', 0o2755],
			['ro.txt', 0o444],
		] as const) {
			await s.put(name, '#!/bin/sh\necho a\n', mode)
			await read(name)
			await edit(name, 'echo a', 'echo b')
			expect((await fs.stat(join(s.root, name))).mode & 0o7777, name).to.equal(mode)
			await s.call('write_file', { path: name, content: 'echo c\n' })
			expect((await fs.stat(join(s.root, name))).mode & 0o7777, name).to.equal(mode)
		}
	})

	it('E06 a link in the path stays a link and its target gets the change', async () => {
		await s.put('real/t.txt', 'one\n')
		await fs.symlink('real/t.txt', join(s.root, 'link.txt'))
		await read('link.txt')
		await edit('link.txt', 'one', 'two')
		expect((await fs.lstat(join(s.root, 'link.txt'))).isSymbolicLink()).to.equal(true)
		expect(await s.text('real/t.txt')).to.equal('two\n')
	})

	it('E08 a hard-linked file is replaced, the other name keeps the old content, and the result says so', async () => {
		await s.put('a', 'one\n')
		await fs.link(join(s.root, 'a'), join(s.root, 'b'))
		await read('a')
		const result = await edit('a', 'one', 'two')
		expect(result.text).to.contain('1 other hard link')
		expect(await s.text('b')).to.equal('one\n')
		expect((await edit('a', 'two', 'three')).text).not.to.contain('hard link')
	})

	it('E08 the note counts all other links, for write_file too', async () => {
		await s.put('a', 'one\n')
		for (const name of ['b', 'c']) await fs.link(join(s.root, 'a'), join(s.root, name))
		await read('a')
		expect((await s.call('write_file', { path: 'a', content: 'x\n' })).text).to.contain('2 other hard links')
	})

	for (const sequence of ["x=$'y", '$$', '$&_dup', 'a$`b', '^[sv]d[a-z]$', '$1$<n>'])
		it(`E09 ${sequence} is inserted as it is`, async () => {
			await s.put('f', 'A oldtext B\n')
			await read('f')
			await edit('f', 'oldtext', sequence)
			expect(await s.text('f')).to.equal(`A ${sequence} B\n`)
			await edit('f', ' ', sequence, { replace_all: true })
			expect(await s.text('f')).to.equal(`A${sequence}${sequence}${sequence}B\n`)
		})

	it('E12 a near match changes only its span, keeps the file’s indentation and says that it was not exact', async () => {
		await s.put('b.txt', 'head\n   beta_line\n     deeper\ntail  \n')
		await read('b.txt')
		const result = await edit('b.txt', '    beta_line\n      deeper', '    gamma\n      deeper\n      more')
		expect(result.text).to.contain('not an exact match').and.contain('indentation')
		expect(await s.text('b.txt')).to.equal('head\n   gamma\n     deeper\n     more\ntail  \n')
	})

	it('E12 spaces inside a line are not tolerated: not found, with the nearest line', async () => {
		await s.put('f.py', 'def f():\n    x = 1\n    y = 2\n')
		await read('f.py')
		const text = await s.fails('edit_file', { path: 'f.py', old_string: '    x  =  1', new_string: '    x = 100' })
		expect(text).to.contain('not found').and.contain('2\t    x = 1')
		expect(await s.text('f.py')).to.equal('def f():\n    x = 1\n    y = 2\n')
	})

	it('E12 spaces at line ends, typographic signs and Garuda’s own tag spelling are named when they differ', async () => {
		await s.put('a.md', 'first  \nsecond\n')
		await s.put('q.md', 'He said “hi” – twice\n')
		await s.put('t.md', 'see <system-reminder> here\n')
		for (const name of ['a.md', 'q.md', 't.md']) await read(name)
		expect((await edit('a.md', 'first\nsecond', 'FIRST\nsecond')).text).to.contain('line ends')
		expect((await edit('q.md', 'said "hi" - twice', 'said "hi" - once')).text).to.contain('quotes')
		expect((await edit('t.md', 'see &lt;system-reminder> here', 'no &lt;system-reminder> here')).text).to.contain(
			'&lt;',
		)
		expect(await s.text('a.md')).to.equal('FIRST\nsecond\n')
		expect(await s.text('q.md')).to.equal('He said “hi” – once\n')
		expect(await s.text('t.md')).to.equal('no <system-reminder> here\n')
	})

	it('E13 a near match with several candidates is ambiguous and changes nothing', async () => {
		await s.put('f', 'if a:\n  go()\nif b:\n    go()\n')
		await read('f')
		expect(await s.fails('edit_file', { path: 'f', old_string: '      go()', new_string: '      stop()' }))
			.to.contain('ambiguous')
			.and.contain('2, 4')
		expect(await s.text('f')).to.equal('if a:\n  go()\nif b:\n    go()\n')
	})

	it('E13 anchors alone never match: lines in between must be the same, and replace_all is always exact', async () => {
		await s.put('f', 'begin\n  one\n  two\nend\n')
		await read('f')
		await s.fails('edit_file', { path: 'f', old_string: 'begin\n  other\n  two\nend', new_string: '' })
		await s.fails('edit_file', { path: 'f', old_string: '    one', new_string: '    1', replace_all: true })
		expect(await s.text('f')).to.equal('begin\n  one\n  two\nend\n')
	})

	it('E14 an exact match found twice is refused with count and lines; replace_all takes both', async () => {
		await s.put('f', 'x\nx\n')
		await read('f')
		expect(await s.fails('edit_file', { path: 'f', old_string: 'x', new_string: 'y' }))
			.to.contain('2 times')
			.and.contain('lines 1, 2')
		expect(await s.text('f')).to.equal('x\nx\n')
		expect((await edit('f', 'x', 'y', { replace_all: true })).text).to.contain('2 places')
		expect(await s.text('f')).to.equal('y\ny\n')
	})

	it('E14 empty, equal and line-numbered old text is refused with the reason', async () => {
		await s.put('f', 'x\ny\n')
		await read('f')
		expect(await s.fails('edit_file', { path: 'f', old_string: '', new_string: 'y' })).to.contain('empty')
		expect(await s.fails('edit_file', { path: 'f', old_string: 'x', new_string: 'x' })).to.contain('same')
		expect(await s.fails('edit_file', { path: 'f', old_string: '1\tx\n2\ty', new_string: 'z' })).to.contain(
			'line numbers',
		)
	})

	it('E19 a file that changed since it was read is not overwritten; the refusal brings the content, so that a repeat works', async () => {
		await s.put('f', 'a=1\n')
		await read('f')
		await s.put('f', 'a=1\nb=2\n')
		const text = await s.fails('write_file', { path: 'f', content: 'a=2\n' })
		expect(text).to.contain('changed on the disk').and.contain('2\tb=2')
		expect(await s.text('f')).to.equal('a=1\nb=2\n')
		await s.call('write_file', { path: 'f', content: 'a=2\nb=2\n' })
		expect(await s.text('f')).to.equal('a=2\nb=2\n')
	})

	it('E19 staleness is by content: a touched file is fine, an edit of a changed one is refused, a deleted one is named', async () => {
		await s.put('f', 'a=1\n')
		await read('f')
		await fs.utimes(join(s.root, 'f'), 1, 1)
		await edit('f', 'a=1', 'a=2')
		await s.put('f', 'a=2\nc=3\n')
		expect(await s.fails('edit_file', { path: 'f', old_string: 'a=2', new_string: 'a=3' })).to.contain('2\tc=3')
		await fs.unlink(join(s.root, 'f'))
		expect(await s.fails('edit_file', { path: 'f', old_string: 'a=2', new_string: 'a=3' })).to.contain('does not exist')
	})

	it('E19 a file that was never read is not changed and its content is not told', async () => {
		await s.put('f', 'hidden=1\n')
		for (const call of [
			s.fails('write_file', { path: 'f', content: 'x' }),
			s.fails('edit_file', { path: 'f', old_string: 'no', new_string: 'x' }),
		]) {
			const text = await call
			expect(text).to.contain('not read yet').and.not.contain('hidden')
		}
		expect(await s.text('f')).to.equal('hidden=1\n')
	})

	it('E20 backslash-u stays six characters and a real quote becomes its UTF-8', async () => {
		await s.put('f', 'A\nB\n')
		await read('f')
		await edit('f', 'A', '\\u201c')
		await edit('f', 'B', '\u201c')
		expect((await s.bytes('f')).toString('hex')).to.equal(`${Buffer.from('\\u201c\n').toString('hex')}e2809c0a`)
	})

	it('E20 entities, escapes and backslashes of every kind are written as sent', async () => {
		const text = '&lt;b&gt; \\n \\\\ %20 \\x41 &amp;\n'
		await s.call('write_file', { path: 'f', content: text })
		expect(await s.text('f')).to.equal(text)
	})

	it('the plan changes nothing and its change is what the run writes', async () => {
		await s.put('f', 'a\nb\n')
		await read('f')
		const plan = await s.tool('edit_file').plan({ path: 'f', old_string: 'b', new_string: 'c' }, s.ctx)
		expect(await s.text('f')).to.equal('a\nb\n')
		expect(plan.info).to.deep.equal({
			title: 'Edit f',
			kind: 'edit',
			access: 'write',
			paths: [join(s.root, 'f')],
			key: `write:${join(s.root, 'f')}`,
			change: { path: join(s.root, 'f'), old: 'a\nb\n', new: 'a\nc\n' },
			line: 2,
		})
		await s.tool('edit_file').run(plan, s.ctx)
		expect(await s.text('f')).to.equal('a\nc\n')
	})

	it('link-05 a file changed between the question and the yes is refused', async () => {
		await s.put('f', 'a\n')
		await read('f')
		const plan = await s.tool('edit_file').plan({ path: 'f', old_string: 'a', new_string: 'b' }, s.ctx)
		await s.put('f', 'a\nfrom a command\n')
		const failure = await s
			.tool('edit_file')
			.run(plan, s.ctx)
			.then(
				() => null,
				(error) => error,
			)
		expect(failure?.name).to.equal('ToolError')
		expect(await s.text('f')).to.equal('a\nfrom a command\n')
	})

	it('link-05 a file that appeared meanwhile is not overwritten by a planned new one, a deleted one not made again', async () => {
		const plan = await s.tool('write_file').plan({ path: 'n', content: 'mine\n' }, s.ctx)
		await s.put('n', 'theirs\n')
		expect(
			await s
				.tool('write_file')
				.run(plan, s.ctx)
				.then(
					() => null,
					(error) => error.name,
				),
		).to.equal('ToolError')
		expect(await s.text('n')).to.equal('theirs\n')
		await s.put('f', 'a\n')
		await read('f')
		const second = await s.tool('edit_file').plan({ path: 'f', old_string: 'a', new_string: 'b' }, s.ctx)
		await fs.unlink(join(s.root, 'f'))
		expect(
			await s
				.tool('edit_file')
				.run(second, s.ctx)
				.then(
					() => null,
					(error) => error.name,
				),
		).to.equal('ToolError')
		expect(await fs.readdir(s.root)).to.deep.equal(['n'])
	})

	it('a part of a notebook’s change is refused: it would break the file’s form', async () => {
		const cell = (source: string[]) => ({ cell_type: 'code', metadata: {}, execution_count: null, outputs: [], source })
		const many = Array.from({ length: 30 }, (_, i) => `x${i} = a\n`)
		const notebook = JSON.stringify({ cells: [cell(many)], metadata: {}, nbformat: 4, nbformat_minor: 5 }, null, 1)
		await s.put('n.ipynb', notebook)
		await read('n.ipynb')
		const to = many.map((line, i) => (i === 1 || i === 28 ? line.replace('a', 'b') : line)).join('')
		const args = { path: 'n.ipynb', old_string: many.join(''), new_string: to }
		const plan = await s.tool('edit_file').plan(args, s.ctx)
		let text = ''
		try {
			text = (await s.tool('edit_file').run(plan, s.ctx, [0])).text
		} catch (error) {
			text = String(error)
		}
		expect(text).to.include('a notebook changes as a whole')
		expect(await s.text('n.ipynb')).to.equal(notebook)
		await s.tool('edit_file').run(plan, s.ctx, [0, 1])
		expect(await s.text('n.ipynb')).to.include('x28 = b')
	})

	it('only accepted hunks reach the disk, in the file’s own line ends, and the result says what was left', async () => {
		const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`)
		await s.put('f', `${lines.join('\r\n')}\r\n`)
		await read('f')
		const wanted = lines.map((line, index) => (index === 1 || index === 30 ? `${line} changed` : line))
		const result = await s.call('write_file', { path: 'f', content: `${wanted.join('\n')}\n` }, [1])
		lines[30] += ' changed'
		expect(await s.text('f')).to.equal(`${lines.join('\r\n')}\r\n`)
		expect(result.text)
			.to.contain('1 of 2 parts')
			.and.to.match(/not written: the changes at old lines 1-5/)
		expect(result.data).to.deep.include({ parts: { taken: 1, of: 2 } })
		expect((await s.call('edit_file', { path: 'f', old_string: 'line 5', new_string: 'no' }, [])).status).to.equal(
			'failed',
		)
		expect(await s.text('f')).to.equal(`${lines.join('\r\n')}\r\n`)
	})

	it('marks of known secrets are turned back, an unknown mark is refused', async () => {
		await s.close()
		s = await scene({ marks: { '[redacted:key:abc123]': 'sk-real' } })
		await s.put('f', 'key=sk-real\nb\n')
		await read('f')
		await edit('f', 'key=[redacted:key:abc123]\nb', 'key=[redacted:key:abc123]\nc')
		expect(await s.text('f')).to.equal('key=sk-real\nc\n')
		expect(await s.fails('edit_file', { path: 'f', old_string: 'c', new_string: '[redacted:key:ffffff]' })).to.contain(
			'[redacted:key:ffffff]',
		)
		expect(await s.fails('write_file', { path: 'g', content: '[redacted:key:ffffff]' })).to.contain(
			'stands for no secret',
		)
	})

	it('a new file in missing folders is made, and one edit after another in the same file works without reading again', async () => {
		await s.call('write_file', { path: 'deep/er/f.txt', content: 'a\nb' })
		await edit('deep/er/f.txt', 'a', 'A')
		await edit('deep/er/f.txt', 'b', 'B')
		expect(await s.text('deep/er/f.txt')).to.equal('A\nB')
	})

	it('a change leaves no temporary file behind, also when it fails', async () => {
		await s.put('f', 'a\n')
		await read('f')
		await edit('f', 'a', 'b')
		const plan = await s.tool('edit_file').plan({ path: 'f', old_string: 'b', new_string: 'c' }, s.ctx)
		await s.put('f', 'x\n')
		await s
			.tool('edit_file')
			.run(plan, s.ctx)
			.catch(() => {})
		expect(await fs.readdir(s.root)).to.deep.equal(['f'])
	})
})
