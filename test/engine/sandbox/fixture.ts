// A home full of secrets, a project with a repository, and services of the host, made anew for each setting.
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import {
	chmodSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import type { SandboxOptions } from '../../../src/engine/sandbox/index.ts'
import { homeSecrets } from '../../../src/engine/sandbox/names.ts'

export const token = 'SECRETTOKEN'
export type Setting = 'build' | 'plan' | 'root = home' | 'user'

export interface Fixture {
	base: string
	home: string
	root: string
	tmp: string
	cache: string
	/** For scripts: H, R, M … */
	vars: Record<string, string>
	/** The environment Garuda has, with keys in it. */
	env: Record<string, string>
	options(more?: Partial<SandboxOptions>): SandboxOptions
	remove(): Promise<void>
}

export const put = (path: string, text = '', mode = 0o644): void => {
	mkdirSync(dirname(path), { recursive: true })
	writeFileSync(path, text, { mode })
}

/** A tiny i386 program: exit(42) by int 0x80. */
const i386 = (): Buffer => {
	const code = Buffer.from('b801000000bb2a000000cd80', 'hex')
	const elf = Buffer.alloc(84 + code.length)
	Buffer.from('7f454c46010101', 'hex').copy(elf)
	elf.writeUInt16LE(2, 16)
	elf.writeUInt16LE(3, 18)
	elf.writeUInt32LE(1, 20)
	elf.writeUInt32LE(0x8048054, 24)
	elf.writeUInt32LE(52, 28)
	elf.writeUInt16LE(52, 40)
	elf.writeUInt16LE(32, 42)
	elf.writeUInt16LE(1, 44)
	;[1, 0, 0x8048000, 0x8048000, elf.length, elf.length, 5, 0x1000].forEach((word, index) => {
		elf.writeUInt32LE(word, 52 + 4 * index)
	})
	code.copy(elf, 84)
	return elf
}

let repository: Map<string, Buffer> | undefined

/** A git folder with one commit of f.txt and a hooks folder of its own; git makes it once, for it takes longer than most tests. */
const copyRepository = (to: string): void => {
	repository ??= made()
	for (const [name, bytes] of repository) {
		mkdirSync(dirname(join(to, name)), { recursive: true })
		writeFileSync(join(to, name), bytes)
	}
	mkdirSync(join(to, 'refs/tags'), { recursive: true })
}

const made = (): Map<string, Buffer> => {
	const root = mkdtempSync(join(tmpdir(), 'garuda-repository-'))
	try {
		const git = (...args: string[]) =>
			execFileSync('git', args, {
				cwd: root,
				env: { PATH: '/usr/bin:/bin', HOME: root, GIT_CONFIG_NOSYSTEM: '1' },
				stdio: 'ignore',
			})
		git('init', '-q')
		put(join(root, 'f.txt'), 'x\n')
		git('add', 'f.txt')
		git('-c', 'user.name=a', '-c', 'user.email=b', 'commit', '-qm', 'one')
		git('config', 'core.hooksPath', '.githooks')
		const top = join(root, '.git')
		const entries = readdirSync(top, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
		return new Map(
			entries.map((entry) => {
				const path = join(entry.parentPath, entry.name)
				return [relative(top, path), readFileSync(path)]
			}),
		)
	} finally {
		rmSync(root, { recursive: true, force: true })
	}
}

/** Of each kind one; the corpus takes all. */
const someSecrets = ['.ssh', '.garuda', '.aws', '.config/gh', '.netrc', '.npmrc', '.vault-token', '.bash_history']

/** Plain folders with nothing running; `homeIsRoot` puts the project into the home itself. */
export const makeFixture = (homeIsRoot = false, secrets: readonly string[] = someSecrets): Fixture => {
	const base = mkdtempSync(join(tmpdir(), 'garuda-sandbox-'))
	const home = join(base, 'home')
	const root = homeIsRoot ? home : join(base, 'project')
	const tmp = join(base, 'session')
	const cache = join(home, '.npm/_cacache')
	for (const path of [home, root, tmp, cache]) mkdirSync(path, { recursive: true })
	const folders = new Set(['.ssh', '.config/gh', '.garuda', '.aws'])
	for (const name of secrets) {
		const path = join(home, name)
		const isFolder = folders.has(name) || homeSecrets.some((other) => other.startsWith(`${name}/`))
		put(isFolder ? join(path, 'k') : path, token, 0o600)
	}
	for (const name of ['.bashrc', '.profile', '.config/autostart/a.desktop', '.local/bin/tool'])
		put(join(home, name), '# mine\n')
	put(join(root, 'f.txt'), 'x\n')
	copyRepository(join(root, '.git'))
	put(join(root, '.githooks/post-checkout'), '#!/bin/sh\n', 0o755)
	for (const name of [
		'.vscode/tasks.json',
		'.idea/workspace.xml',
		'.mcp.json',
		'.envrc',
		'.husky/pre-commit',
		'.zed/tasks.json',
		'sub/.git/config',
		'sub/.git/HEAD',
		'sub/.git/hooks/x.sample',
		'sub/.git/objects/.k',
		'sub/.git/refs/.k',
	])
		put(join(root, name), '')
	mkdirSync(join(root, 'shared-info'))
	rmSync(join(root, '.git/info'), { recursive: true, force: true })
	symlinkSync('../shared-info', join(root, '.git/info'))
	mkdirSync(join(root, 'mnt'))
	writeFileSync(join(root, 'i386'), i386(), { mode: 0o755 })
	put(join(root, 'rc.sh'), 'export FROM_RC=1\n')
	chmodSync(join(root, 'i386'), 0o755)
	const keys = [
		'ANTHROPIC_API_KEY',
		'OPENAI_API_KEY',
		'AWS_SECRET_ACCESS_KEY',
		'GITHUB_TOKEN',
		'NODE_OPTIONS',
		'npm_config_script_shell',
		'GIT_SSH_COMMAND',
		'GIT_CEILING_DIRECTORIES',
		'LD_LIBRARY_PATH',
		'SSH_AUTH_SOCK',
		'DBUS_SESSION_BUS_ADDRESS',
		'DOCKER_HOST',
		'PROMPT_COMMAND',
		'PYTHONSTARTUP',
		'PERL5OPT',
	]
	const values: Record<string, string> = {
		PERL5OPT: '-w',
		GIT_CEILING_DIRECTORIES: '/nowhere',
		NODE_OPTIONS: '--no-warnings',
	}
	const env = {
		PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
		HOME: home,
		...Object.fromEntries(keys.map((key) => [key, values[key] ?? `${token}-${key}`])),
	}
	return {
		base,
		home,
		root,
		tmp,
		cache,
		vars: { H: home, R: root, CACHE: cache },
		env,
		options: (more) => ({
			root,
			extraDirs: [],
			home,
			tmp,
			env,
			executor: 'sandbox',
			profile: 'standard',
			writePaths: [],
			envAllow: [],
			caches: [cache],
			...more,
		}),
		async remove() {
			rmSync(base, { recursive: true, force: true })
		},
	}
}

/** Services of the host that a command must not reach, and a process that holds a key. */
export const withServices = async (fixture: Fixture): Promise<Fixture> => {
	const servers: Server[] = []
	const listen = async (at: string | { port: number; host: string }) => {
		const server = createServer((socket) => {
			socket.on('error', () => {})
			socket.end('ESCAPED\n')
		})
		servers.push(server)
		await new Promise<void>((resolve, reject) => {
			server.once('error', reject)
			if (typeof at === 'string') server.listen(at, resolve)
			else server.listen(at, resolve)
		})
		return server.address()
	}
	const mark = fixture.base.split('-').at(-1)!
	const tcp = (await listen({ port: 0, host: '127.0.0.1' })) as { port: number }
	const abstract = `garuda-${mark}`
	await listen(`\0${abstract}`)
	const hostTmp = join('/tmp', `garuda-${mark}.sock`)
	for (const path of [
		hostTmp,
		join(fixture.home, 'agent.sock'),
		join(fixture.root, 'dev.sock'),
		join(fixture.root, 'sub/deep.sock'),
	])
		await listen(path)
	const udp = createSocket('udp4')
	udp.on('message', (_, from) => udp.send('ESCAPED', from.port, from.address))
	await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve))
	const left = [`/tmp/garuda-${mark}.txt`, `/var/tmp/garuda-${mark}.txt`, `/dev/shm/garuda-${mark}.txt`]
	for (const path of left) writeFileSync(path, token)
	const holder = spawn('/bin/sleep', ['600'], {
		argv0: `sleep-${token}-ARGV`,
		env: { KEY: `${token}-ENVIRON` },
		stdio: 'ignore',
	})
	Object.assign(fixture.vars, {
		PORT: String(tcp.port),
		UDPPORT: String(udp.address().port),
		ABSTRACT: abstract,
		HOSTSOCK: hostTmp,
		HOSTPID: String(holder.pid),
		MARK: mark,
	})
	const remove = fixture.remove
	fixture.remove = async () => {
		holder.kill('SIGKILL')
		udp.close()
		await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
		for (const path of left) rmSync(path, { force: true })
		await remove()
	}
	return fixture
}
