// The parts a policy is made of, each alone: placeholders, hidden patterns, git folders, and the mounts of odd roots.
import { once } from 'node:events'
import {
	chownSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readFileSync,
	rmSync,
	symlinkSync,
	unlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { createDenied } from '../../../src/engine/sandbox/denied.ts'
import { commandEnvironment } from '../../../src/engine/sandbox/environment.ts'
import { createConfigReader } from '../../../src/engine/sandbox/git-config.ts'
import type { SandboxOptions } from '../../../src/engine/sandbox/index.ts'
import { Placeholders } from '../../../src/engine/sandbox/placeholders.ts'
import { aliases, createPolicyBuilder, type Policy } from '../../../src/engine/sandbox/policy.ts'
import { nestedParts, repositoryParts } from '../../../src/engine/sandbox/repository.ts'
import { skip } from '../../helpers/skip.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'
import { type Fixture, makeFixture, put } from './fixture.ts'

const isRoot = process.getuid?.() === 0

describe('sandbox: placeholders', () => {
	let dir: string
	let own: string
	beforeEach(() => {
		dir = tempDir()
		own = join(dir, `s-${process.pid}-own-a`)
		mkdirSync(own)
		mkdirSync(join(dir, 'git'))
	})
	afterEach(removeTemp)
	const file = () => join(dir, 'git/commondir')
	const wanted = () => [{ path: file(), text: '.' }]

	it('a file is there while a command needs it, a folder stays', () => {
		const places = new Placeholders(own)
		const release = places.hold([...wanted(), { path: join(dir, 'git/hooks'), text: null }])
		expect(readFileSync(file(), 'utf8')).to.equal('.')
		expect(readFileSync(join(own, 'held'), 'utf8')).to.equal(file())
		release()
		expect(existsSync(file())).to.equal(false)
		expect(lstatSync(join(dir, 'git/hooks')).isDirectory()).to.equal(true)
	})

	it('it goes with the last command that needs it; an end told twice is one', () => {
		const places = new Placeholders(own)
		const first = places.hold(wanted())
		const second = places.hold(wanted())
		first()
		first()
		expect(existsSync(file())).to.equal(true)
		second()
		expect(existsSync(file())).to.equal(false)
		places.hold(wanted())
		expect(existsSync(file())).to.equal(true)
	})

	it('what another living session holds stays, what a dead one held does not', () => {
		for (const [pid, kept] of [
			[process.pid, true],
			[2 ** 22 + 7, false],
		] as const) {
			const other = join(dir, `s-${pid}-own-b`)
			mkdirSync(other)
			writeFileSync(join(other, 'held'), `/else\0${file()}`)
			new Placeholders(own).hold(wanted())()
			expect(existsSync(file()), String(pid)).to.equal(kept)
			rmSync(other, { recursive: true })
			rmSync(file(), { force: true })
		}
		// The session folder itself is none of a session's own.
		mkdirSync(join(dir, `s-${process.pid}-x`))
		writeFileSync(join(dir, `s-${process.pid}-x/held`), file())
		new Placeholders(own).hold(wanted())()
		expect(existsSync(file())).to.equal(false)
		// Held elsewhere at the command's end, it goes at the close.
		const other = join(dir, `s-${process.pid}-own-c`)
		mkdirSync(other)
		writeFileSync(join(other, 'held'), file())
		const places = new Placeholders(own)
		places.hold(wanted())()
		expect(existsSync(file())).to.equal(true)
		rmSync(other, { recursive: true })
		places.close()
		expect([existsSync(file()), existsSync(join(own, 'held'))]).to.deep.equal([false, false])
	})

	it('what is there already is left alone, but for an empty file with which git would not work', () => {
		for (const [text, after] of [
			['../other', '../other'],
			['', null],
		] as const) {
			writeFileSync(file(), text)
			const release = new Placeholders(own).hold(wanted())
			expect(readFileSync(file(), 'utf8')).to.equal(text === '' ? '.' : text)
			release()
			expect(existsSync(file()) ? readFileSync(file(), 'utf8') : null).to.equal(after)
			rmSync(file(), { force: true })
		}
		const release = new Placeholders(own).hold(wanted())
		// The user has made one meanwhile.
		writeFileSync(file(), '../mine')
		release()
		expect(readFileSync(file(), 'utf8')).to.equal('../mine')
		const empty = join(dir, 'git/config.worktree')
		writeFileSync(empty, '')
		const { ino } = lstatSync(empty)
		new Placeholders(own).hold([{ path: empty, text: '' }])
		expect(lstatSync(empty).ino).to.equal(ino)
	})

	it('what a kill left beside it is swept when it is old and small, and nothing else', () => {
		const names = {
			left: '.commondir.0123456789ab.garuda-tmp',
			young: '.commondir.0123456789ac.garuda-tmp',
			large: '.commondir.0123456789ad.garuda-tmp',
			other: '.commondir.0123456789ae.tmp',
		}
		for (const [kind, name] of Object.entries(names)) {
			const path = join(dir, 'git', name)
			writeFileSync(path, kind === 'large' ? 'x'.repeat(17) : '.')
			if (kind !== 'young') utimesSync(path, Date.now() / 1000 - 600, Date.now() / 1000 - 600)
		}
		new Placeholders(own).hold(wanted())()
		expect(
			Object.entries(names).flatMap(([kind, name]) => (existsSync(join(dir, 'git', name)) ? [kind] : [])),
		).to.deep.equal(['young', 'large', 'other'])
	})

	it('in a folder of somebody else’s it belongs to them', function () {
		if (!isRoot) skip(this, 'only root can do this')
		chownSync(join(dir, 'git'), 1234, 2345)
		new Placeholders(own).hold([...wanted(), { path: join(dir, 'git/hooks'), text: null }])
		for (const name of ['commondir', 'hooks'])
			expect([lstatSync(join(dir, 'git', name)).uid, lstatSync(join(dir, 'git', name)).gid]).to.deep.equal([1234, 2345])
	})
})

describe('sandbox: hidden patterns and variables', () => {
	afterEach(removeTemp)

	it('a path is hidden whether it is there or not, a pattern means what is there now', () => {
		const dir = tempDir()
		const denied = createDenied(['vault', '~/k', '/abs', 'd/*.key', 'd/**/*.pem'], dir, '/h')
		put(join(dir, 'd/a.key'))
		put(join(dir, 'd/e/a.pem'))
		const fixed = [join(dir, 'vault'), '/h/k', '/abs']
		expect(denied()).to.deep.equal([...fixed, join(dir, 'd/a.key'), join(dir, 'd/e/a.pem')])
		put(join(dir, 'd/b.key'))
		put(join(dir, 'd/e/b.pem'))
		// A walk of the tree counts for a while; a listing is made each time.
		expect(denied().sort()).to.deep.equal(
			[...fixed, join(dir, 'd/a.key'), join(dir, 'd/b.key'), join(dir, 'd/e/a.pem')].sort(),
		)
		// A name that only looks like a pattern and is there is a name.
		put(join(dir, 'a[1]'))
		expect(createDenied(['a[1]'], dir, '/h')()).to.deep.equal([join(dir, 'a[1]')])
	})

	it('what cannot be hidden is an error', () => {
		const dir = tempDir()
		for (const pattern of ['', ' ', 'a\0b', '!a'])
			expect(() => createDenied([pattern], dir, '/h'), pattern).to.throw(UserError)
		for (let index = 0; index < 501; index++) put(join(dir, `many/${index}.key`))
		expect(createDenied(['many/*.key'], dir, '/h')).to.throw(UserError, /more than 500/)
		unlinkSync(join(dir, 'many/0.key'))
		expect(createDenied(['many/*.key'], dir, '/h')()).to.have.lengthOf(500)
	})

	it('a variable passes by its exact name or as LC_*, with a value, and never an rc file by itself', () => {
		const env = {
			PATH: 'bin:/usr/bin:.',
			LC_TIME: 'x',
			LC: 'x',
			XLC_A: 'x',
			MINE: 'm',
			EMPTY: '',
			NUL: 'a\0',
			'A-B': 'x',
			ENV: '/rc',
			BASH_ENV: '/rc',
		}
		const passed = (allow: string[]) => {
			const { PATH, LC_TIME, LC, XLC_A, MINE, EMPTY, NUL, ENV, BASH_ENV, HOME } = commandEnvironment(env, '/h', allow)
			return { PATH, LC_TIME, LC, XLC_A, MINE, EMPTY, NUL, ENV, BASH_ENV, HOME }
		}
		const none = {
			LC: undefined,
			XLC_A: undefined,
			EMPTY: undefined,
			NUL: undefined,
			HOME: '/h',
			PATH: '/usr/bin',
			LC_TIME: 'x',
		}
		expect(passed([])).to.deep.equal({ ...none, MINE: undefined, ENV: undefined, BASH_ENV: undefined })
		expect(passed(['MINE', 'EMPTY', 'NUL', 'ENV', 'BASH_ENV'])).to.deep.equal({
			...none,
			MINE: 'm',
			ENV: '/rc',
			BASH_ENV: '/rc',
		})
		expect(commandEnvironment(env, '/h', ['A-B'])).to.not.have.property('A-B')
		expect(commandEnvironment({ PATH: 'bin' }, '/h', []).PATH).to.equal('/usr/local/bin:/usr/bin:/bin')
	})
})

describe('sandbox: parts of a repository', () => {
	let base: string
	afterEach(removeTemp)
	beforeEach(() => {
		base = tempDir()
		mkdirSync(join(base, 'home'))
	})
	const at = (...parts: string[]) => join(base, ...parts)
	const gitDir = (path: string, config = '') => {
		for (const name of ['objects', 'refs', 'hooks', 'info']) mkdirSync(join(path, name), { recursive: true })
		writeFileSync(join(path, 'HEAD'), 'ref: refs/heads/main\n')
		writeFileSync(join(path, 'config'), config)
		return path
	}
	const look = (root: string) => repositoryParts(at(root), at('home'), createConfigReader(at('home')))
	const short = (paths: string[]) => paths.map((path) => path.replace(`${base}/`, '')).sort()

	it('a folder of git: its programs are protected, what it lacks is held', () => {
		gitDir(at('r/.git'))
		const parts = look('r')
		expect(short(parts.protect)).to.deep.equal(['r/.git/config', 'r/.git/hooks', 'r/.git/info'])
		expect(parts.writable).to.deep.equal([])
		expect(short(parts.folders)).to.deep.equal(['r/.git'])
		expect(parts.missing.map(({ path, text }) => [path.replace(`${base}/`, ''), text]).sort()).to.deep.equal([
			['r/.git/commondir', '.'],
			['r/.git/config.worktree', ''],
		])
		for (const name of ['hooks', 'info', 'config']) rmSync(at('r/.git', name), { recursive: true })
		expect(look('r').missing.map(({ text }) => text)).to.have.members(['.', '', '', null, null])
		// No git folder: nothing is made in it.
		rmSync(at('r/.git/HEAD'))
		expect(look('r').missing).to.deep.equal([])
		rmSync(at('r/.git'), { recursive: true })
		expect(look('r')).to.deep.equal({
			writable: [],
			protect: [],
			absent: [],
			absentIncludes: [],
			missing: [],
			folders: [],
		})
	})

	it('a commondir that moves the repository is kept from being written; one of Garuda’s, or an empty one, is taken over', () => {
		gitDir(at('r/.git'))
		for (const [text, held] of [
			['.', true],
			['', true],
			['../other', false],
		] as const) {
			writeFileSync(at('r/.git/commondir'), text)
			const parts = look('r')
			expect(short(parts.protect), text).to.include('r/.git/commondir')
			expect(
				parts.missing.some(({ path }) => path.endsWith('/commondir')),
				text,
			).to.equal(held)
		}
		rmSync(at('r/.git/commondir'))
		for (const config of [
			'[core]\nbare = true\n',
			'[core]\nworktree = ../../else\n',
			'[extensions]\nrefStorage = reftable\n',
		]) {
			writeFileSync(at('r/.git/config'), config)
			expect(short(look('r').missing.map(({ path }) => path)), config).to.deep.equal(['r/.git/config.worktree'])
		}
		writeFileSync(at('r/.git/config'), '[core]\nworktree = ..\n')
		expect(look('r').missing).to.have.lengthOf(2)
	})

	it('a parent’s folder is written only from inside its own repository, and the search ends at the home', () => {
		gitDir(at('r/.git'))
		mkdirSync(at('r/a/b'), { recursive: true })
		expect(short(look('r/a/b').writable)).to.deep.equal(['r/.git'])
		expect(short(look('r/a/b').protect)).to.include('r/.git/hooks')
		rmSync(at('r/.git/refs'), { recursive: true })
		expect(look('r/a/b').writable).to.deep.equal([])
		gitDir(at('.git'))
		mkdirSync(at('home/p'))
		expect(look('home/p').folders).to.deep.equal([])
		expect(short(look('r2-not-there').writable)).to.deep.equal(['.git'])
		if (isRoot) {
			chownSync(at('.git'), 1234, 1234)
			expect(look('r2-not-there').writable).to.deep.equal([])
		}
	})

	it('a linked .git counts where it stays in the root', () => {
		gitDir(at('r/real'))
		symlinkSync('real', at('r/.git'))
		expect(short(look('r').folders)).to.deep.equal(['r/real'])
		gitDir(at('elsewhere'))
		rmSync(at('r/.git'))
		symlinkSync(at('elsewhere'), at('r/.git'))
		expect(look('r').folders).to.deep.equal([])
	})

	it('a .git file leads to a folder only when that folder points back', () => {
		mkdirSync(at('r'))
		const point = (text: string) => writeFileSync(at('r/.git'), text)
		gitDir(at('r/in'))
		point('gitdir: in\n')
		expect(short(look('r').folders)).to.deep.equal(['r/in'])
		expect(short(look('r').protect)).to.include.members(['r/.git', 'r/in/config'])
		for (const text of ['gitdir: /\n', 'gitdir: ../none\n', 'gitdir: ../home/f\n', 'in\n']) {
			put(at('home/f'))
			point(text)
			expect(look('r').folders, text).to.deep.equal([])
			expect(short(look('r').protect), text).to.deep.equal(['r/.git'])
		}
		// A submodule: core.worktree is this very folder.
		gitDir(at('out'), '[core]\nworktree = ../r\n')
		point('gitdir: ../out\n')
		expect(short(look('r').writable)).to.deep.equal(['out'])
		expect(short(look('r').protect)).to.include('out/hooks')
		for (const config of ['[core]\nworktree = ../other\n', '']) {
			writeFileSync(at('out/config'), config)
			expect(look('r').writable, config).to.deep.equal([])
		}
		writeFileSync(at('out/config'), '[core]\nworktree = ../r\n')
		rmSync(at('out/HEAD'))
		expect(look('r').writable).to.deep.equal([])
		writeFileSync(at('out/HEAD'), '')
		if (isRoot) {
			chownSync(at('out'), 1234, 1234)
			expect(look('r').writable).to.deep.equal([])
		}
	})

	it('of a linked worktree the common folder is written, and what is another’s or names a place is not', () => {
		gitDir(at('main/.git'), '[extensions]\nworktreeConfig = true\n')
		for (const name of ['wt', 'other']) {
			const folder = at('main/.git/worktrees', name)
			mkdirSync(folder, { recursive: true })
			writeFileSync(join(folder, 'HEAD'), '')
			writeFileSync(join(folder, 'commondir'), '../..\n')
			writeFileSync(join(folder, 'gitdir'), `${at(name, '.git')}\n`)
			put(at(name, '.git'), `gitdir: ${folder}\n`)
		}
		const own = at('main/.git/worktrees/wt')
		const parts = look('wt')
		expect(short(parts.writable)).to.deep.equal(['main/.git'])
		expect(short(parts.protect)).to.deep.equal(
			[
				...['main/.git/config', 'main/.git/hooks', 'main/.git/info', 'main/.git/worktrees/other', 'wt/.git'],
				...['main/.git/worktrees/wt/commondir', 'main/.git/worktrees/wt/gitdir'],
			].sort(),
		)
		expect(short(parts.missing.map(({ path }) => path))).to.include('main/.git/worktrees/wt/config.worktree')
		writeFileSync(join(own, 'config.worktree'), '')
		expect(short(look('wt').protect)).to.include('main/.git/worktrees/wt/config.worktree')
		rmSync(join(own, 'config.worktree'))
		writeFileSync(at('main/.git/config'), '')
		expect(short(look('wt').missing.map(({ path }) => path))).to.not.include('main/.git/worktrees/wt/config.worktree')
		// Seen from the main folder the worktrees are protected as well.
		expect(short(look('main').protect)).to.include('main/.git/worktrees/other/commondir')
		for (const [what, change] of [
			['points back elsewhere', () => writeFileSync(join(own, 'gitdir'), at('other/.git'))],
			['no folder of git', () => rmSync(at('main/.git/HEAD'))],
		] as const) {
			change()
			expect(look('wt').writable, what).to.deep.equal([])
			writeFileSync(join(own, 'gitdir'), `${at('wt/.git')}\n`)
			writeFileSync(at('main/.git/HEAD'), '')
		}
		// A family of its own, made by a command: the common folder is not above it.
		gitDir(at('evil'))
		writeFileSync(join(own, 'commondir'), at('evil'))
		expect(look('wt').writable).to.deep.equal([])
		writeFileSync(join(own, 'commondir'), '../..\n')
		if (isRoot) {
			chownSync(own, 1234, 1234)
			expect(look('wt').writable).to.deep.equal([])
		}
	})

	it('a worktree whose folders lie in the root is protected through its common folder', () => {
		gitDir(at('r/m'))
		mkdirSync(at('r/m/worktrees/w'), { recursive: true })
		writeFileSync(at('r/m/worktrees/w/commondir'), '../..\n')
		writeFileSync(at('r/.git'), 'gitdir: m/worktrees/w\n')
		expect(short(look('r').folders)).to.deep.equal(['r/m'])
		gitDir(at('far'))
		writeFileSync(at('r/m/worktrees/w/commondir'), at('far'))
		expect(short(look('r').folders)).to.deep.equal(['r/m/worktrees/w'])
	})

	it('submodules at any depth are looked at; hooks folders and includes of every configuration count', () => {
		gitDir(at('r/.git'), '[core]\nhooksPath = tools/hooks\n[include]\npath = ../inc\npath = ../none\n')
		gitDir(at('r/.git/modules/a'))
		gitDir(at('r/.git/modules/deep/b'))
		gitDir(at('r/.git/modules/a/modules/c'))
		put(at('r/.git/modules/file'))
		// A link leads out of the repository: nothing behind it is looked at.
		gitDir(at('else/where'))
		symlinkSync(at('else'), at('r/.git/modules/link'))
		put(at('r/inc'), '[core]\nhooksPath = /dev/null\nhooksPath = .\n')
		expect(short(look('r').folders)).to.deep.equal(
			['r/.git', 'r/.git/modules/a', 'r/.git/modules/a/modules/c', 'r/.git/modules/deep/b'].sort(),
		)
		expect(short(look('r').absent)).to.deep.equal(['r/tools/hooks'])
		expect(short(look('r').absentIncludes)).to.deep.equal(['r/none'])
		expect(short(look('r').protect))
			.to.include('r/inc')
			.and.not.include('r')
		mkdirSync(at('r/tools/hooks'), { recursive: true })
		put(at('home/.gitconfig'), '[core]\nhooksPath = ~/gh\n')
		mkdirSync(at('home/gh'))
		expect(short(look('r').protect)).to.include.members(['r/tools/hooks', 'home/gh'])
		expect(look('r').absent).to.deep.equal([])
		// A hooks folder that is a link: what it leads to, or where it will.
		rmSync(at('r/.git/hooks'), { recursive: true })
		symlinkSync('../shared', at('r/.git/hooks'))
		expect(short(look('r').absent)).to.deep.equal(['r/shared'])
		mkdirSync(at('r/shared'))
		expect(short(look('r').protect)).to.include('r/shared')
		rmSync(at('r/.git/info'), { recursive: true })
		symlinkSync('../nowhere', at('r/.git/info'))
		expect(look('r').absent).to.deep.equal([])
	})

	it('a nested repository gives its own parts', () => {
		gitDir(at('r/n/.git'), '[core]\nbare = true\n')
		const parts = nestedParts(at('r/n/.git'), createConfigReader(at('home')))
		expect(short(parts.protect)).to.deep.equal(['r/n/.git/config', 'r/n/.git/hooks', 'r/n/.git/info'])
		expect(short(parts.missing.map(({ path }) => path))).to.deep.equal(['r/n/.git/config.worktree'])
	})
})

describe('sandbox: mounts', () => {
	let fixture: Fixture
	beforeEach(() => {
		fixture = makeFixture()
	})
	afterEach(() => fixture.remove())
	const builder = (more: Partial<SandboxOptions> & { own?: string } = {}) =>
		createPolicyBuilder({
			...fixture.options(more),
			denyRead: more.denyRead ?? [],
			tmpBytes: 1e6,
			emptyFile: '/e',
			emptyFolder: '/f',
			own: more.own ?? '/o',
			filter: true,
		})
	const build = (
		more: Parameters<typeof builder>[0] = {},
		spec: Partial<Parameters<ReturnType<typeof builder>['build']>[0]> = {},
	): Policy => builder(more).build({ cwd: fixture.root, env: {}, readOnly: false, nested: [], sockets: [], ...spec })
	const writable = (policy: Policy) =>
		policy.base.filter(({ kind, source }) => kind === 'write' && !source).map(({ path }) => path)

	it('no device, no secret and not the whole disk can be a root, or be bound writable', () => {
		for (const root of [
			'/',
			'/proc',
			'/sys/kernel',
			'/dev/shm',
			'/dev',
			fixture.base.replace(/[^/]+$/, 'no-such-root'),
		])
			expect(() => builder({ root }), root).to.throw(UserError)
		expect(() => builder({ root: join(fixture.home, '.ssh') })).to.throw(UserError, /secrets/)
		expect(() => builder({ extraDirs: ['/dev'] })).to.throw(UserError)
		symlinkSync(join(fixture.home, '.ssh'), join(fixture.base, 'link'))
		expect(() => builder({ root: join(fixture.base, 'link') })).to.throw(UserError, /secrets/)
		put(join(fixture.base, 'fine/x'))
		const paths = ['/', '/proc', '/sys/kernel', '/dev/shm', fixture.home, fixture.base, join(fixture.base, 'none')]
		expect(writable(build({ caches: [], writePaths: [...paths, join(fixture.base, 'fine')] }))).to.deep.equal([
			join(fixture.base, 'fine'),
			fixture.root,
		])
	})

	it('only what lies below a writable mount is protected, pinned and held', () => {
		const { protect, pins } = build({}, { nested: [join(fixture.root, 'sub/.git')] })
		for (const name of ['.git/config', '.vscode', '.envrc', 'sub/.git/config', 'sub/.git/hooks'])
			expect(protect, name).to.include(join(fixture.root, name))
		expect(pins).to.include.members([
			join(fixture.root, '.git'),
			join(fixture.root, 'sub'),
			join(fixture.root, 'sub/.git'),
		])
		// What a link leads to outside is none of it.
		rmSync(join(fixture.root, '.vscode'), { recursive: true })
		symlinkSync('/usr', join(fixture.root, '.vscode'))
		expect(build().protect).to.not.include('/usr')
		const readOnly = build({}, { readOnly: true })
		expect([readOnly.protect, readOnly.pins, readOnly.absent, readOnly.absentHome]).to.deep.equal([[], [], [], []])
		const held: string[] = []
		build({}, { hold: (wanted) => void held.push(...wanted.map(({ path }) => path)) })
		expect(held).to.include(join(fixture.root, '.git/commondir'))
		held.length = 0
		build({}, { readOnly: true, hold: (wanted) => void held.push(...wanted.map(({ path }) => path)) })
		expect(held).to.deep.equal([])
	})

	it('each hidden path has one mask, none below another, and none for what is not there', () => {
		put(join(fixture.home, '.ssh/deep/k'))
		const policy = build({ denyRead: ['~/.ssh/deep', '~/.ssh', '~/none', 'f.txt', '/tmp/garuda-not-seen'] })
		const paths = policy.masks.map(({ path }) => path)
		expect(paths.filter((path) => path.includes('.ssh'))).to.deep.equal([join(fixture.home, '.ssh')])
		expect(paths).to.include(join(fixture.root, 'f.txt'))
		expect(paths.some((path) => path.endsWith('none') || path.startsWith('/tmp/garuda-not'))).to.equal(false)
		expect(new Set(paths).size).to.equal(paths.length)
		expect(policy.masks.find(({ path }) => path.endsWith('.netrc'))!.folder).to.equal(false)
		expect(policy.masks.find(({ path }) => path.endsWith('.ssh'))!.folder).to.equal(true)
	})

	it('in a home that is the root what could be made is named, and Garuda’s folder is made at once', async () => {
		await fixture.remove()
		fixture = makeFixture(true, ['.ssh'])
		const policy = build({ root: fixture.home })
		expect(existsSync(join(fixture.home, '.garuda'))).to.equal(true)
		expect(lstatSync(join(fixture.home, '.garuda')).mode & 0o777).to.equal(0o700)
		for (const name of ['.aws', '.netrc', '.zshrc']) expect(policy.absentHome).to.include(join(fixture.home, name))
		for (const name of ['.ssh', '.bashrc', '.garuda'])
			expect(policy.absentHome).to.not.include(join(fixture.home, name))
		expect(policy.masks.map(({ path }) => path)).to.include(join(fixture.home, '.garuda'))
		expect(build({ root: fixture.home }).absentHome).to.deep.equal(policy.absentHome)
		await fixture.remove()
		fixture = makeFixture(false, [])
		expect(build().absentHome).to.deep.equal([])
		expect(existsSync(join(fixture.home, '.garuda'))).to.equal(false)
	})

	it('below the session’s own /tmp each mount point is made, and can be no link', () => {
		const { tmp } = fixture
		const at = join(tmp, fixture.base.slice('/tmp'.length))
		symlinkSync('/etc', join(tmp, fixture.base.split('/')[2]!))
		const policy = build()
		if (!fixture.base.startsWith('/tmp/')) return
		expect(lstatSync(at).isDirectory()).to.equal(true)
		expect(lstatSync(join(tmp, fixture.root.slice('/tmp'.length))).isDirectory()).to.equal(true)
		const made = policy.base.filter(({ source }) => source?.startsWith(tmp) && source !== tmp)
		expect(made.map(({ path }) => path)).to.deep.include(fixture.base)
		// The root itself is the root's own mount, not a folder of the session.
		expect(made.map(({ path }) => path)).to.not.include(fixture.root)
		expect(policy.base.find(({ path }) => path === fixture.root)!.source).to.equal(undefined)
	})

	it('sockets of the project are masked as they are told, and no more than a bound', () => {
		const sockets = Array.from({ length: 80 }, (_, index) => join(fixture.root, `s${index}`))
		for (const path of sockets) put(path)
		const masked = build({}, { sockets }).masks.filter(({ path }) => /\/s\d+$/.test(path))
		expect(masked).to.have.lengthOf(64)
	})

	it('a socket that a program of this machine listens at is masked wherever a command would see it', async () => {
		const servers = [join(fixture.home, 'agent.sock'), join(fixture.base, 'hidden.sock')].map((path) =>
			createServer().listen(path),
		)
		try {
			await Promise.all(servers.map((server) => once(server, 'listening')))
			const masks = build().masks.map(({ path }) => path)
			expect(masks).to.include(join(fixture.home, 'agent.sock'))
			// Below the session's own /tmp it is not there at all.
			if (fixture.base.startsWith('/tmp/')) expect(masks).to.not.include(join(fixture.base, 'hidden.sock'))
		} finally {
			for (const server of servers) server.close()
		}
	})

	it('other places of a home are known by the disk, and only where they are the same folder', () => {
		const line = (device: string, root: string, point: string) => `30 1 ${device} ${root} ${point} rw - ext4 /dev/x rw`
		const { home, base } = fixture
		// A second name of the base: the same folder by device and inode.
		symlinkSync(base, `${base}-again`)
		try {
			const all = [line('8:1', '/', '/'), line('8:1', base, `${base}-again`)]
			expect(aliases(home, all.join('\n'))).to.deep.equal([home.replace(base, `${base}-again`)])
			expect(aliases(home, [all[0], line('8:2', base, `${base}-again`)].join('\n'))).to.deep.equal([])
			expect(aliases(home, line('8:1', '/', '/not/above'))).to.deep.equal([])
			expect(aliases(join(base, 'none'), all.join('\n'))).to.deep.equal([])
		} finally {
			unlinkSync(`${base}-again`)
		}
	})
})
