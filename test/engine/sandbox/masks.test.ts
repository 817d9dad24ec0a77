// Every name on the lists of the sandbox, tried by a real command: secrets are hidden, what the host obeys stays, keys do not pass.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { createExecutor, type SandboxOptions } from '../../../src/engine/sandbox/index.ts'
import { skip } from '../../helpers/skip.ts'
import { type Fixture, makeFixture, put, token } from './fixture.ts'

const lists = JSON.parse(readFileSync(new URL('../../control/lists.json', import.meta.url), 'utf8')) as {
	names: {
		[list in
			| 'homeSecrets'
			| 'systemSecrets'
			| 'procHidden'
			| 'privateFolders'
			| 'rootProtected'
			| 'gitProtected'
			| 'homeProtected'
			| 'envAllowed']: string[]
	} & { envFixed: Record<string, string> }
}
const { names } = lists
const never = new AbortController().signal

describe('sandbox: every name', () => {
	let fixture: Fixture
	afterEach(() => fixture.remove())
	const run = async (script: string, more: Partial<SandboxOptions> = {}) => {
		const { executor } = await createExecutor(fixture.options(more))
		try {
			const { output } = await executor.run(
				{ script, cwd: more.root ?? fixture.root, timeoutMs: 30_000, maxOutput: 1_000_000 },
				never,
			)
			return output.split('\n')
		} finally {
			await executor.close()
		}
	}

	it('exactly the variables on the list pass, and what is set for every command is set', async () => {
		fixture = makeFixture()
		const given = Object.fromEntries(
			[
				...names.envAllowed,
				...['LD_PRELOAD', 'BASH_ENV', 'ENV', 'NODE_OPTIONS', 'GIT_DIR', 'npm_config_x', 'MY_KEY', 'CI', 'PYTHONPATH'],
			].map((name) => [name, `/given/${name}`]),
		)
		const output = await run('/usr/bin/env -0 | tr "\\0" "\\1"', {
			env: { ...given, PATH: '/usr/bin:/bin', HOME: fixture.home },
		})
		const seen = new Map(
			output
				.join('\n')
				.split('\u0001')
				.filter((line) => line.includes('='))
				.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
		)
		for (const name of names.envAllowed) if (name !== 'PATH') expect(seen.get(name), name).to.equal(`/given/${name}`)
		for (const [name, value] of Object.entries(names.envFixed)) expect(seen.get(name), name).to.equal(value)
		const own = new Set(['HOME', 'TMPDIR', 'PWD', 'OLDPWD', 'SHLVL', '_'])
		expect(
			[...seen.keys()].filter(
				(name) => !own.has(name) && !names.envAllowed.includes(name) && !(name in names.envFixed),
			),
		).to.deep.equal([])
	})

	for (const where of ['beside the root', 'root = home'] as const)
		it(`no file of a home that holds secrets can be read, home ${where}`, async () => {
			fixture = makeFixture(where === 'root = home', [])
			const inner = (name: string) => names.homeSecrets.some((other) => other.startsWith(`${name}/`))
			for (const name of names.homeSecrets)
				if (!existsSync(join(fixture.home, name)))
					put(join(fixture.home, inner(name) ? `${name}/k` : name), `${token} ${name}`)
			put(join(fixture.home, 'open'), `${token} open`)
			const output = await run(
				`cd ~; perl -e 'while (<STDIN>) { chomp; for my $f ($_, "$_/k") { open(my $h, "<", $f) or next; print <$h>, "\n" } }' <<'E'\nopen\n${names.homeSecrets.join('\n')}\nE`,
			)
			expect(output.filter((line) => line.includes(token)).flatMap((line) => line.split(token).slice(1))).to.deep.equal(
				[' open'],
			)
		})

	it('no file of the system that holds secrets can be read, where this machine has it', async function () {
		fixture = makeFixture()
		const there = names.systemSecrets.filter((path) => existsSync(path))
		if (there.length === 0) skip(this, 'none of these files is here')
		const output = await run(
			`for f in ${there.join(' ')}; do if [ -d $f ]; then ls -A $f | head -1; elif [ -s $f ]; then echo "$f has text"; fi; done; echo end`,
		)
		expect(output.filter((line) => line !== '' && !/denied/i.test(line))).to.deep.equal(['end'])
	})

	it('the same where the machine has all of them', function () {
		if (process.getuid?.() !== 0) skip(this, 'only root can do this')
		fixture = makeFixture()
		const { base, root, home, tmp } = fixture
		const driver = new URL('./driver.ts', import.meta.url).pathname
		// In a mount namespace of its own, where /etc and /var/lib get one more layer.
		const layer = (path: string, name: string) =>
			`mkdir ${base}/o/${name} ${base}/o/${name}-w && mount -t overlay overlay -o lowerdir=${path},upperdir=${base}/o/${name},workdir=${base}/o/${name}-w ${path}`
		const files = names.systemSecrets.map((path) =>
			/\/(?:private|system-connections|wireguard|docker|kubelet)$/.test(path) ? `${path}/k` : path,
		)
		const make = files.map((path) => `mkdir -p ${dirname(path)} && echo ${token} ${path} > ${path}`).join(' && ')
		const inner = [
			`mount --make-rprivate / && mkdir ${base}/o && mount -t tmpfs tmpfs ${base}/o`,
			`${layer('/etc', 'etc')} && ${layer('/var/lib', 'lib')} && ${make} && echo ready`,
			`exec "${process.execPath}" "${driver}" run "${root}" "${home}" "${tmp}" 'echo begun; cat ${files.join(' ')} 2>/dev/null; echo done'`,
		].join(' && ')
		const { stdout } = spawnSync('unshare', ['-m', 'bash', '-c', inner], {
			encoding: 'utf8',
			env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
		})
		// No namespaces, or no overlay: this machine cannot show it.
		if (!stdout.startsWith('ready\n')) skip(this, 'no namespace or overlay to lay them in')
		const { kind, reason, result } = JSON.parse(stdout.slice('ready\n'.length)) as {
			kind: string
			reason?: string
			result: { output: string }
		}
		expect(kind, reason).to.equal('bubblewrap')
		expect(result.output.split('\n').filter((line) => line !== '')).to.deep.equal(['begun', 'done'])
	})

	it('what daemons and other programs keep in shared folders, and what /proc tells of keys, is not there', async function () {
		fixture = makeFixture()
		const folders = names.privateFolders.filter((path) => existsSync(path) && existsSync(realpathSync(path)))
		const left = folders.map((path) => join(path, `garuda-mask-${process.pid}`))
		try {
			for (const path of left) put(path, token)
			const proc = names.procHidden.map((name) => `/proc/${name}`).filter((path) => existsSync(path))
			const output = await run(
				`cat ${left.join(' ')} ${proc.join(' ')} 2>/dev/null; echo x > /dev/shm/y && cat /dev/shm/y`,
			)
			expect(output.join('')).to.equal('x')
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code === 'EACCES') skip(this, 'this user may not')
			throw error
		} finally {
			for (const path of left) rmSync(path, { force: true })
		}
	})

	it('what editors, agents and git obey beside the home cannot be changed either', async () => {
		fixture = makeFixture()
		for (const name of names.rootProtected) if (!existsSync(join(fixture.root, name))) put(join(fixture.root, name))
		const output = await run(
			`perl -e 'while (<STDIN>) { chomp; my $f = -d $_ ? "$_/new" : $_; if (open(my $h, ">>", $f)) { print "changed $_\n" } }' <<'E'\nfree\n${names.rootProtected.join('\n')}\nE`,
		)
		expect(output.filter((line) => line !== '')).to.deep.equal(['changed free'])
	})

	it('what editors, agents and git obey in a project, and what the next login runs, cannot be changed', async () => {
		fixture = makeFixture(true)
		const paths = [
			...names.rootProtected,
			...names.homeProtected,
			...names.gitProtected.map((name) => `.git/${name}`),
		].filter((path) => !names.homeSecrets.includes(path))
		// A link to a folder of the project stands there in the fixture.
		rmSync(join(fixture.root, '.git/info'))
		for (const name of paths) {
			const path = join(fixture.home, name)
			if (existsSync(path)) continue
			if (/hooks$|info$/.test(name) || paths.some((other) => other.startsWith(`${name}/`)))
				mkdirSync(path, { recursive: true })
			else put(path, name.endsWith('commondir') ? '.\n' : '')
		}
		const output = await run(
			`cd ~; perl -e 'while (<STDIN>) { chomp; my $f = -d $_ ? "$_/new" : $_; if (open(my $h, ">>", $f)) { print "changed $_\n" } if (rename($_, "$_.old")) { print "moved $_\n" } }' <<'E'\nfree\n${paths.join('\n')}\nE`,
		)
		expect(output.filter((line) => /^(?:changed|moved) /.test(line))).to.deep.equal(['changed free', 'moved free'])
	})

	it('parts that a git folder lacks are not there after a command that makes them', async () => {
		for (const name of names.gitProtected) {
			fixture = makeFixture()
			rmSync(join(fixture.root, '.git', name), { recursive: true, force: true })
			const config = name === 'config' ? '' : readFileSync(join(fixture.root, '.git/config'), 'utf8')
			await run(
				`cd .git; for n in ${name}; do rm -rf $n; mkdir $n 2>/dev/null; echo evil > $n/made 2>/dev/null || echo evil > $n; done; true`,
			)
			const path = join(fixture.root, '.git', name)
			expect(existsSync(join(path, 'made')), name).to.equal(false)
			const text = existsSync(path) && !/hooks|info/.test(name) ? readFileSync(path, 'utf8') : ''
			expect(text, name).to.not.include('evil')
			if (name !== 'config') expect(readFileSync(join(fixture.root, '.git/config'), 'utf8')).to.equal(config)
			await fixture.remove()
		}
	})
})
