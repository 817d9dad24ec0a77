// glob and grep: what they find, what they leave out and that they say so.
import { execFileSync } from 'node:child_process'
import { existsSync, promises as fs } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { search } from '../../../src/engine/tools/grep-worker.ts'
import { searchWorkerUrl } from '../../../src/engine/tools/search.ts'
import { skip } from '../../helpers/skip.ts'
import { type Scene, scene } from './scene.ts'

describe('glob and grep', () => {
	let s: Scene
	beforeEach(async () => {
		s = await scene()
	})
	afterEach(() => s.close())
	const grep = async (pattern: string, more = {}) => (await s.call('grep', { pattern, ...more })).text
	const glob = async (pattern: string, more = {}) => (await s.call('glob', { pattern, ...more })).text
	const files = (text: string) => text.split('\n').filter((line) => !line.startsWith('['))

	it('G01 an ignored path that is named is searched, and the result says that it is ignored', async () => {
		await s.put('.gitignore', 'scripts/*\n')
		await s.put('scripts/w.py', 'example_writer = 1\n')
		expect(await grep('example_writer', { path: 'scripts/' }))
			.to.contain('scripts/w.py:1:example_writer')
			.and.contain('.gitignore excludes')
		expect(await glob('scripts/*.py'))
			.to.contain('scripts/w.py')
			.and.contain('.gitignore')
		expect(await glob('*.py', { path: 'scripts' })).to.contain('scripts/w.py')
	})

	it('G01 without a named path an ignored file is not searched, but the result counts what was skipped', async () => {
		await s.put('.gitignore', 'build/\n*.log\n')
		await s.put('build/a.js', 'needle\n')
		await s.put('x.log', 'needle\n')
		expect(await grep('needle'))
			.to.contain('No matches')
			.and.contain('2 skipped by .gitignore')
		expect(await glob('**/*.js'))
			.to.contain('No files found')
			.and.contain('skipped by .gitignore')
		// A folder that an outer rule ignores as a whole, named itself.
		expect(await grep('needle', { path: 'build' })).to.contain('build/a.js:1:needle')
		expect(await grep('needle', { path: 'x.log' })).to.contain('x.log:1:needle')
	})

	it('G03 a nested ignore file may take a file back, as in git', async () => {
		await s.put('.gitignore', '*.log\n')
		await s.put('sub/.gitignore', '!keep.log\n')
		for (const path of ['a.log', 'sub/keep.log', 'sub/x.log']) await s.put(path, 'x')
		expect(files(await glob('**/*.log'))).to.deep.equal(['sub/keep.log'])
	})

	it('G03 rules of outer folders, info/exclude and the user’s ignore file hold; an ignored folder’s own rules do not', async () => {
		await fs.mkdir(join(s.root, '.git/info'), { recursive: true })
		await s.put('.git/info/exclude', 'secretplan.txt\n')
		await s.put(join(s.home, '.config/git/ignore'), '*.swp\n')
		await s.put('.gitignore', '/sub/deep/gone.txt\nout/\n')
		await s.put('out/.gitignore', '!kept.txt\n')
		for (const path of ['secretplan.txt', 'a.swp', 'sub/deep/gone.txt', 'sub/deep/here.txt', 'out/kept.txt'])
			await s.put(path, 'x')
		expect(files(await glob('**/*'))).to.deep.equal(['.gitignore', 'sub/deep/here.txt'])
		expect(files(await glob('*.txt', { path: 'sub/deep' }))).to.deep.equal(['sub/deep/here.txt'])
	})

	it('G03 random trees and rules: the same files as git itself', async function () {
		this.timeout(60_000)
		let seed = 7
		const random = (n: number) => {
			seed = (seed * 1103515245 + 12345) & 0x7fffffff
			return seed % n
		}
		const pick = <T>(list: readonly T[]): T => list[random(list.length)]!
		const names = ['a', 'b', 'ab', 'a.c', 'b.log', '#x', '!y', 'z z', 'Ä', 'a-b', '[k]']
		const parts = [
			'a',
			'b',
			'*',
			'?',
			'a*',
			'*.log',
			'**',
			'[ab]',
			'[!a]',
			'*.c',
			'\\#x',
			'\\!y',
			'z\\ z',
			'Ä',
			'[a-c]*',
			'ab',
			'\\[k\\]',
			'[[:alpha:]]',
			'a\\*',
		]
		for (let round = 0; round < 20; round++) {
			const root = join(s.root, `r${round}`)
			const lines = () =>
				Array.from(
					{ length: 1 + random(5) },
					() =>
						`${pick(['', '', '!'])}${pick(['', '', '/'])}${Array.from({ length: 1 + random(3) }, () => pick(parts)).join('/')}${pick(['', '', '/', ' '])}`,
				)
			for (let file = 0; file < 40; file++) {
				const path = Array.from({ length: 1 + random(4) }, () => pick(names)).join('/')
				await s.put(join(root, path), 'x').catch(() => {})
			}
			for (const where of ['', 'a/', 'b/a/'])
				if (random(3) > 0 || where === '')
					await s.put(join(root, where, '.gitignore'), `${lines().join('\n')}\n`).catch(() => {})
			execFileSync('git', ['init', '-q', root])
			const git = execFileSync('git', [
				'-c',
				'core.excludesFile=/dev/null',
				'-C',
				root,
				'ls-files',
				'-z',
				'--others',
				'--exclude-standard',
			]).toString()
			const expected = git.split('\0').filter(Boolean).sort()
			const found = files(await glob('**', { path: `r${round}` })).map((path) => path.replace(`r${round}/`, ''))
			const rules = execFileSync('sh', ['-c', 'find . -name .gitignore | xargs tail -n +1'], { cwd: root }).toString()
			// When every file is ignored, the named folder is searched without rules.
			if (expected.length > 0) expect(found.sort(), `round ${round}\n${rules}`).to.deep.equal(expected)
		}
	})

	it('G05 matches in a line of 1 MB come as windows with columns', async () => {
		const text = Buffer.alloc(1_000_000, 'x')
		for (const at of [1000, 500_000, 999_000]) text.write('NEEDLE', at)
		await s.put('min.js', text)
		const result = await grep('NEEDLE')
		expect(result.length).to.be.lessThan(2500)
		for (const column of [1001, 500_001, 999_001]) expect(result).to.contain(`min.js:1:${column}:`)
	})

	it('G05 many matches in one long line are counted, near ones share a window, and context lines are cut too', async () => {
		await s.put('a.js', `${`${'y'.repeat(1000)}HIT`.repeat(20)}\n`)
		await s.put('b.js', `${'c'.repeat(5000)}\nHIT here\n`)
		const result = await grep('HIT', { context: 1 })
		expect(result).to.contain('15 more matches in this line')
		expect(result.length).to.be.lessThan(4000)
		expect(result).to.match(/b\.js-1-c{400}…\n/)
	})

	for (const [pattern, word] of [
		['(', 'regex error'],
		['cy\\\\.visit\\(', ''],
		['cy\\\\.visit(', 'regex error'],
		['*bar', 'regex error'],
		['[z-a]', 'regex error'],
		['a++', 'regex error'],
		['\\Afoo', '\\A'],
		['\\<foo\\>', '\\b'],
		['(?>a)', 'regex error'],
	] as const)
		it(`G07 ${pattern} is ${word ? 'an error that names literal mode' : 'valid'}, never "no matches"`, async () => {
			await s.put('f', 'cy.visit(x)\n')
			if (!word) return void expect(await grep(pattern)).to.contain('No matches')
			expect(await s.fails('grep', { pattern }))
				.to.contain(word)
				.and.contain('literal: true')
		})

	it('G07 look-behind, look-ahead over a line end, other dialects’ classes, names and flags work', async () => {
		await s.put('f', 'ab\nfoo\nbar\nx y\nFoo9\n')
		expect(await grep('(?<=a)b')).to.contain('f:1:ab')
		expect(await grep('foo(?!\\s*bar)')).to.contain('f:2:foo')
		expect(await grep('x[[:space:]]y')).to.contain('f:4:x y')
		expect(await grep('(?P<w>o)(?P=w)')).to.contain('f:2:foo')
		expect(await grep('(?i)FOO'))
			.to.contain('f:2:foo')
			.and.contain('f:5:Foo9')
		expect(await grep('a.*$\\nfoo'))
			.to.contain('No matches')
			.and.contain('within one line')
		expect(await grep('cy.visit(', { literal: true })).to.contain('No matches')
	})

	it('G07 what a line alone matches is found, whatever the other lines hold', async () => {
		await s.put('f', 'start {\n  a\n}\nstart { end\nlast')
		expect(await grep('start[^}]*end'))
			.to.contain('f:4:')
			.and.contain('1 matching line')
		expect(await grep('^last$')).to.contain('f:5:last')
		expect(await grep('x*')).to.contain('5 matching lines')
		expect(await grep('a|start')).to.contain('4 matching lines')
		expect(await grep('st?art|end')).to.contain('2 matching lines')
		expect(await grep('la?st\\b.?')).to.contain('f:5:last')
	})

	it('G08 broken links and unreadable folders do not hide the rest', async () => {
		await s.put('real.txt', 'text\n')
		await fs.symlink('/nonexistent', join(s.root, 'dangling.txt'))
		await s.put('secret/x.txt', 'text\n')
		await fs.chmod(join(s.root, 'secret'), 0)
		try {
			const list = await glob('**/*.txt')
			expect(list).to.contain('real.txt').and.contain('1 links not followed')
			expect(await grep('.')).to.contain('real.txt:1:text')
			// The superuser can read it all the same.
			const readable = await fs.readdir(join(s.root, 'secret')).then(
				() => true,
				() => false,
			)
			if (!readable) expect(list).to.contain('1 paths not readable')
		} finally {
			await fs.chmod(join(s.root, 'secret'), 0o700)
		}
	})

	it('G08 a folder that vanishes or is a file is told; a missing one is not "no matches"', async () => {
		await s.put('f', 'x')
		expect(await s.fails('grep', { pattern: 'x', path: 'nope' })).to.contain('does not exist')
		expect(await s.fails('glob', { pattern: '*', path: 'nope' })).to.contain('does not exist')
		expect(await s.fails('glob', { pattern: '*', path: 'f' })).to.contain('is a file')
		expect(await glob('nope/*.ts')).to.contain('folder nope does not exist')
	})

	it('G09 loops and links out of the root are not followed; no file comes twice', async () => {
		await s.put('sub/opencode.txt', 'x')
		await s.put(join(s.outside, 'opencode-out.txt'), 'x')
		await fs.symlink('.', join(s.root, 'loop'))
		await fs.symlink('/', join(s.root, 'rootlink'))
		await fs.symlink(s.outside, join(s.root, 'sub/out'))
		await fs.symlink('opencode.txt', join(s.root, 'sub/opencode2.txt'))
		expect(files(await glob('**/*opencode*'))).to.deep.equal(['sub/opencode.txt'])
	})

	it('G09 a search past its deadline ends with what it has, and a cancel ends it at once', async () => {
		await s.close()
		s = await scene({ deadlineMs: 60 })
		for (let folder = 0; folder < 20; folder++)
			for (let file = 0; file < 15; file++) await s.put(`d${folder}/f${file}.txt`, `${'a'.repeat(25)}!\n`)
		const began = Date.now()
		const result = await s.call('grep', { pattern: '(a+)+$' }).then(
			({ text }) => text,
			(error) => error.message,
		)
		expect(Date.now() - began).to.be.lessThan(4000)
		expect(result).to.match(/stopped after|took longer/)
		const stop = new AbortController()
		setTimeout(() => stop.abort(), 20)
		s.ctx.signal = stop.signal
		const cancelled = Date.now()
		expect(await s.fails('grep', { pattern: '(a+)+$' })).to.contain('stopped by the user')
		expect(Date.now() - cancelled).to.be.lessThan(500)
	})

	it('G10 long results are capped, sorted, counted and the same each time', async () => {
		for (let index = 0; index < 1200; index++) await s.put(`s${index % 7}/file-${index}.ts`, `import x${index}\n`)
		const first = await glob('**/*.ts')
		expect(files(first)).to.have.length(500)
		expect(files(first)).to.deep.equal([...files(first)].sort())
		expect(first).to.contain('1,200 files, sorted by path; 700 more not shown')
		expect(await glob('**/*.ts')).to.equal(first)
		const lines = await grep('import')
		expect(lines).to.contain('1,200 matching lines in 1,200 files').and.contain('not all shown')
		expect(lines.length).to.be.lessThan(30_000)
		expect(await grep('import')).to.equal(lines)
		expect(await grep('import', { output: 'count' })).to.contain('s0/file-0.ts:1')
		expect(files(await grep('import', { output: 'files', glob: '*-11.ts' }))).to.deep.equal(['s4/file-11.ts'])
	})

	it('G10 a name without a folder is found at any depth when the top has none; braces and exclusion work', async () => {
		await s.put('a/b/x.test.ts', 'k\n')
		await s.put('a/x.js', 'k\n')
		expect(await glob('x.js'))
			.to.contain('a/x.js')
			.and.contain('none at the top')
		expect(files(await glob('a/**/*.{ts,js}'))).to.deep.equal(['a/b/x.test.ts', 'a/x.js'])
		expect(files(await grep('k', { output: 'files', glob: '!*.test.ts' }))).to.deep.equal(['a/x.js'])
		expect(files(await grep('k', { output: 'files', glob: 'a/b/**' }))).to.deep.equal(['a/b/x.test.ts'])
	})

	it('secret-07 secrets are not searched or listed, and the result says how many', async () => {
		await s.put('.env', 'TOKEN=needle\n')
		await s.put('.env.example', 'TOKEN=needle\n')
		await s.put('deploy/key.pem', 'needle\n')
		await s.put('.ssh/config', 'needle\n')
		const result = await grep('needle')
		expect(result).to.contain('.env.example:1:').and.contain('3 secret files')
		expect(result).not.to.contain('.env:').and.not.contain('key.pem')
		expect(files(await glob('**/*'))).to.deep.equal(['.env.example'])
		expect(await s.fails('grep', { pattern: 'needle', path: '.env' })).to.contain('off limits')
		expect(await s.fails('grep', { pattern: 'needle', path: '.ssh' })).to.contain('off limits')
	})

	it('link-04 a folder swapped for a link during a search is never followed', async function () {
		this.timeout(60_000)
		if (process.platform !== 'linux') skip(this, 'Linux only')
		for (let index = 0; index < 5; index++) {
			await s.put(`src/in/f${index}`, 'mine\n')
			await s.put(join(s.outside, `in/f${index}`), 'theirs\n')
		}
		await fs.symlink(s.outside, join(s.root, 'src.link'))
		const stop = new Int32Array(new SharedArrayBuffer(4))
		const worker = new Worker(
			`const { renameSync: mv } = require('node:fs'); const { workerData: { root, stop } } = require('node:worker_threads')
			const p = (n) => root + '/' + n
			while (!Atomics.load(stop, 0)) { mv(p('src'), p('src.real')); mv(p('src.link'), p('src')); mv(p('src'), p('src.link')); mv(p('src.real'), p('src')) }`,
			{ eval: true, workerData: { root: s.root, stop } },
		)
		const job = {
			base: s.root,
			roots: [s.root],
			home: s.home,
			ignore: true,
			denied: [],
			pattern: { pattern: 'mine|theirs' },
			context: 0,
			maxFiles: 50,
			maxRows: 50,
			deadlineMs: 5000,
		}
		const leaked = (handles: boolean): boolean => {
			const { files: found } = search({ ...job, handles }, () => {})
			return found.some(({ rows }) => rows.some(({ text }) => text === 'theirs'))
		}
		let leaks = 0
		let naive = 0
		try {
			for (let round = 0; round < 1500; round++) if (leaked(true)) leaks++
			// The control: by path, the same swaps get through.
			for (let round = 0; round < 30_000 && naive === 0; round++) if (leaked(false)) naive++
		} finally {
			Atomics.store(stop, 0, 1)
			await new Promise((done) => worker.once('exit', done))
		}
		expect([leaks, naive]).to.deep.equal([0, 1])
	})

	it('UTF-16, CRLF and a byte order mark are searched as text; binaries are counted', async () => {
		await s.put(
			'u.txt',
			Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('erste\r\nzweite Zeile\r\n', 'utf16le')]),
		)
		await s.put('w.txt', '\ufeffzweite\r\nx\r\n')
		await s.put('b.bin', Buffer.from([0, 1, 2, ...Buffer.from('zweite')]))
		const result = await grep('^zweite( Zeile)?$')
		expect(result).to.contain('u.txt:2:zweite Zeile').and.contain('w.txt:1:zweite\n').and.contain('1 binary')
	})

	it('context shows the lines around, without a line twice', async () => {
		await s.put('f', 'a\nb\nHIT1\nc\nHIT2\nd\ne\nf\ng\nHIT3\n')
		const rows = (await grep('HIT', { context: 1 })).split('\n').slice(0, -1)
		expect(rows).to.deep.equal(['f-2-b', 'f:3:HIT1', 'f-4-c', 'f:5:HIT2', 'f-6-d', '--', 'f-9-g', 'f:10:HIT3'])
	})

	it('the worker is found beside the sources and in a build, whatever chunk asks', () => {
		expect(searchWorkerUrl('file:///p/src/engine/tools/search.ts').href).to.equal(
			'file:///p/src/engine/tools/grep-worker.ts',
		)
		expect(searchWorkerUrl('file:///p/dist/chunks/chunk-AB12.js').href).to.equal(
			'file:///p/dist/workers/grep-worker.js',
		)
		expect(searchWorkerUrl('file:///p/dist/engine/index.js').href).to.equal('file:///p/dist/workers/grep-worker.js')
		// Where the build really puts it.
		const built = searchWorkerUrl(new URL('../../../dist/chunks/chunk-X.js', import.meta.url).href)
		expect(existsSync(built), built.href).to.equal(true)
	})
})

describe('a deny rule on reading', () => {
	it('P04: keeps files out of grep and glob, and says how many', async () => {
		const denied = { glob: '/**/{private,notes.txt}', below: true }
		const s = await scene({ deniedReads: [denied] })
		await s.put('a.txt', 'needle\n')
		await s.put('notes.txt', 'needle\n')
		await s.put('private/b.txt', 'needle\n')
		const grep = await s.call('grep', { pattern: 'needle' })
		expect(grep.text).to.contain('a.txt:1:needle').and.to.contain('2 files left out by a deny rule')
		expect(grep.text).not.to.match(/notes\.txt|private\/b/)
		const glob = await s.call('glob', { pattern: '**/*.txt' })
		expect(glob.text).to.contain('a.txt').and.to.contain('2 files left out by a deny rule')
		expect(glob.text).not.to.match(/notes\.txt|private\/b/)
		await s.close()
		const free = await scene({})
		await free.put('notes.txt', 'needle\n')
		expect((await free.call('grep', { pattern: 'needle' })).text).to.contain('notes.txt:1:needle')
		await free.close()
	})
})
