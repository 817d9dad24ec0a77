import { execFileSync } from 'node:child_process'
import {
	chmodSync,
	existsSync,
	lstatSync,
	lutimesSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	symlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { makeScratch, type Scratch } from '../../../src/engine/tour/scratch.ts'
import { removeTemp, tempDir, tempProject, writeFiles } from '../../helpers/temp.ts'

const made: Scratch[] = []
const scratch = async (options: Parameters<typeof makeScratch>[0]): Promise<Scratch> => {
	const one = await makeScratch(options)
	made.push(one)
	return one
}

/** Every regular file below a folder. */
const tree = (folder: string): string[] =>
	readdirSync(folder, { recursive: true, withFileTypes: true })
		.filter((entry) => entry.isFile() || entry.isSymbolicLink())
		.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
		.sort()

const fails = async (work: Promise<unknown>): Promise<Error> => {
	try {
		await work
	} catch (error) {
		return error as Error
	}
	throw new Error('it did not fail')
}

describe('tour: the scratch copy', () => {
	afterEach(async () => {
		for (const one of made.splice(0)) await one.remove()
		removeTemp()
	})

	it('holds the project as it is, in a private folder of the same name, and the user’s folder is not written', async () => {
		const { root, home } = tempProject({
			'README.md': '# X\n',
			'src/a b.js': 'let a\n',
			'run.sh': '#!/bin/sh\n',
			'ä/ü.txt': 'ü',
			'bin.dat': Buffer.from([0, 255, 1]),
		})
		chmodSync(join(root, 'run.sh'), 0o755)
		const before = tree(root)
		const one = await scratch({ root, home, tmpdir: tempDir() })
		expect([one.sample, one.why]).to.deep.equal([false, null])
		expect(one.root.endsWith('/project')).to.equal(true)
		expect(tree(one.root)).to.deep.equal(before)
		expect(readFileSync(join(one.root, 'bin.dat'))).to.deep.equal(Buffer.from([0, 255, 1]))
		expect(lstatSync(join(one.root, 'run.sh')).mode & 0o777).to.equal(0o700)
		expect(lstatSync(join(one.root, 'README.md')).mode & 0o077).to.equal(0)
		expect(lstatSync(dirname(one.root)).mode & 0o777).to.equal(0o700)
		expect(tree(root)).to.deep.equal(before)
	})

	it('holds no secret, in whatever spelling or depth', async () => {
		const secrets = [
			'.env',
			'.env.local',
			'deep/er/.env.production',
			'id_rsa',
			'certs/server.pem',
			'app.KEY',
			'.npmrc',
			'.netrc',
			'.ssh/config',
			'x/.aws/credentials',
			'.ENV',
		]
		const { root, home } = tempProject({
			'a.txt': 'a',
			'.env.example': 'KEY=\n',
			...Object.fromEntries(secrets.map((path) => [path, 'secret'])),
		})
		const one = await scratch({ root, home, tmpdir: tempDir() })
		expect(tree(one.root)).to.deep.equal(['.env.example', 'a.txt'])
	})

	it('holds no secret of the home when the root lies in it', async () => {
		const { home } = tempProject()
		writeFiles(home, { '.config/gh/hosts.yml': 'token', '.config/app.toml': 'x' })
		const one = await scratch({ root: join(home, '.config'), home, tmpdir: tempDir() })
		expect(tree(one.root)).to.deep.equal(['app.toml'])
	})

	it('holds no repository, installed package, ignored file or configuration that programs obey', async () => {
		const { root, home } = tempProject({
			'a.js': 'a',
			'.git/config': '[core]\n',
			'.git/hooks/pre-commit': 'x',
			'node_modules/p/index.js': 'x',
			'sub/node_modules/p/index.js': 'x',
			'.garuda/settings.json': '{}',
			'.claude/settings.json': '{}',
			'.vscode/tasks.json': '{}',
			'.gitignore': 'dist/\n*.log\n',
			'dist/a.js': 'x',
			'sub/b.log': 'x',
		})
		const one = await scratch({ root, home, tmpdir: tempDir() })
		expect(tree(one.root)).to.deep.equal(['.gitignore', 'a.js'])
	})

	it('follows no link and opens nothing but files', async () => {
		const { root, home } = tempProject({ 'a.txt': 'a' })
		const outside = tempDir()
		writeFiles(outside, { 'private.txt': 'private', 'folder/b.txt': 'b' })
		symlinkSync(join(outside, 'private.txt'), join(root, 'link.txt'))
		symlinkSync(join(outside, 'folder'), join(root, 'folder'))
		symlinkSync('/dev/zero', join(root, 'zero'))
		execFileSync('mkfifo', [join(root, 'fifo')])
		const one = await scratch({ root, home, tmpdir: tempDir() })
		expect(tree(one.root)).to.deep.equal(['a.txt'])
	})

	it('above the limit of files or of bytes it is the sample, and nothing of the user’s folder is in it', async () => {
		const { root, home } = tempProject({ 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c'.repeat(1000) })
		const tmpdir = tempDir()
		expect((await scratch({ root, home, tmpdir, limits: { files: 3, bytes: 1002 } })).sample).to.equal(false)
		for (const limits of [
			{ files: 2, bytes: 1e6 },
			{ files: 10, bytes: 1001 },
			{ files: 10, bytes: 10 },
		]) {
			const one = await scratch({ root, home, tmpdir, limits })
			expect([one.sample, one.why]).to.deep.equal([
				true,
				`Your folder has more than ${limits.files} files or ${Math.round(limits.bytes / 1e6)} MB`,
			])
			expect(tree(dirname(one.root))).to.deep.equal([
				'sample/README.md',
				'sample/package.json',
				'sample/src/steep.js',
				'sample/test/steep.test.js',
			])
		}
	})

	it('an empty, missing or unreadable folder, or one with nothing to copy, gives the sample', async () => {
		const { root, home } = tempProject()
		const tmpdir = tempDir()
		const empty = await scratch({ root, home, tmpdir })
		const missing = await scratch({ root: join(root, 'none'), home, tmpdir })
		writeFileSync(join(root, '.env'), 'X=1')
		const secret = await scratch({ root, home, tmpdir })
		const file = await scratch({ root: join(root, '.env'), home, tmpdir })
		for (const one of [empty, missing, secret, file]) {
			expect(one.sample).to.equal(true)
			expect(one.why).to.match(/^(?:Your|This) folder /)
			expect(existsSync(join(one.root, 'package.json'))).to.equal(true)
		}
	})

	it('never copies the home folder, one around it, or one of secrets', async () => {
		const { home } = tempProject()
		writeFiles(home, { 'diary.txt': 'dear', '.ssh/known_hosts': 'x' })
		for (const root of [home, dirname(home), join(home, '.ssh')]) {
			const one = await scratch({ root, home, tmpdir: tempDir() })
			expect([root, one.sample]).to.deep.equal([root, true])
		}
	})

	it('a temp folder inside the root is not copied into itself', async () => {
		const { root, home } = tempProject({ 'a.txt': 'a', 'tmp/b.txt': 'b' })
		const one = await scratch({ root, home, tmpdir: join(root, 'tmp') })
		expect(tree(one.root)).to.deep.equal(['a.txt', 'tmp/b.txt'])
	})

	it('a folder whose name means something gets a plain one, so that the tools work in the copy', async () => {
		const base = tempDir()
		for (const [name, expected] of [
			['id_rsa', 'project'],
			['.hidden', 'project'],
			['garuda', 'project'],
			['My app 2', 'My app 2'],
		] as const) {
			writeFiles(join(base, name), { 'a.txt': 'a' })
			const one = await scratch({ root: join(base, name), home: join(base, 'home'), tmpdir: tempDir() })
			const shown = one.root.split('/').at(-1)
			// A folder that is itself named like a secret is not copied at all.
			expect([name, shown]).to.deep.equal([name, name === 'id_rsa' ? 'sample' : expected])
		}
	})

	it('removes all of it, twice without a word; a stop in the middle leaves nothing', async () => {
		const { root, home } = tempProject({ 'a.txt': 'a' })
		const tmpdir = tempDir()
		const one = await scratch({ root, home, tmpdir })
		mkdirSync(join(one.root, 'made/by/tools'), { recursive: true })
		await one.remove()
		await one.remove()
		const stop = new AbortController()
		stop.abort()
		await fails(makeScratch({ root, home, tmpdir, signal: stop.signal }))
		expect(readdirSync(tmpdir)).to.deep.equal([])
	})

	it('sweeps what a killed process left a day ago: nothing younger, living, foreign or linked', async () => {
		const { root, home } = tempProject({ 'a.txt': 'a' })
		const tmpdir = tempDir()
		const kept = tempDir()
		writeFiles(kept, { 'mine.txt': 'mine' })
		const dead = 4_194_400
		const names = [
			`garuda-tour-${dead}-aaaaaa`,
			`garuda-tour-${dead}-bbbbbb`,
			`garuda-tour-${process.pid}-cccccc`,
			'garuda-tour-notes',
			`other-${dead}-dddddd`,
		]
		writeFiles(tmpdir, Object.fromEntries(names.map((name) => [`${name}/project/a.txt`, 'a'])))
		symlinkSync(kept, join(tmpdir, `garuda-tour-${dead}-eeeeee`))
		const old = new Date(Date.now() - 2 * 86_400_000)
		for (const name of names) if (!name.endsWith('bbbbbb')) utimesSync(join(tmpdir, name), old, old)
		lutimesSync(join(tmpdir, `garuda-tour-${dead}-eeeeee`), old, old)
		const one = await scratch({ root, home, tmpdir })
		expect(readdirSync(tmpdir).sort()).to.deep.equal(
			[...names.slice(1), `garuda-tour-${dead}-eeeeee`, dirname(one.root).split('/').at(-1)!].sort(),
		)
		expect(readdirSync(kept)).to.deep.equal(['mine.txt'])
	})

	it('a temp folder that cannot be written is for the user to mend', async () => {
		const { root, home } = tempProject({ 'a.txt': 'a' })
		const error = await fails(makeScratch({ root, home, tmpdir: join(root, 'none') }))
		expect(error).to.be.instanceOf(UserError)
		expect((error as UserError).hint).to.include('TMPDIR')
	})
})
