// The doctor at the sandbox: a command tries each wall for real, and what counts is what the host sees afterwards.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { codeOf, messageOf, UserError } from '../errors.ts'
import type { Executor } from '../ports.ts'
import { createExecutor, homeSecrets, type SandboxOptions } from '../sandbox/index.ts'
import { type CheckLine, fail, pass, skip, warn } from './report.ts'

export interface WallOptions {
	home: string
	/** ~/.garuda or GARUDA_HOME. */
	garudaHome: string
	env: Record<string, string | undefined>
	platform: string
	/** A folder for temporary files. */
	tmpdir: string
	settings: Pick<SandboxOptions, 'executor' | 'profile' | 'writePaths' | 'envAllow' | 'denyRead' | 'blockUnix'>
	/** Where no command may write; default /etc and /usr/local. */
	systemFolders?: string[]
	/** Another executor than the real one: tests show that a fallen wall is seen. */
	make?: (options: SandboxOptions) => Promise<{ executor: Executor; notice?: string; reason?: string }>
}

const names = ['write', 'secrets', 'network', 'processes', 'keys'] as const
const report = 'This must not be: report it, and use the strict profile on another machine meanwhile.'

/** One line for the sandbox and one for each wall. Never throws; leaves nothing behind. */
export async function checkWalls(o: WallOptions): Promise<CheckLine[]> {
	const left = (why: string) => names.map((name) => skip(`sandbox.${name}`, why))
	if (o.settings.executor === 'host')
		return [
			warn(
				'sandbox',
				'switched off by your settings (executor: host): every command asks first',
				'Set "executor": "auto" in ~/.garuda/settings.json.',
			),
			...left('there is no sandbox to try'),
		]
	const base = await realpath(await mkdtemp(join(o.tmpdir, 'garuda-check-')))
	const closing: (() => Promise<unknown>)[] = []
	try {
		const token = randomBytes(9).toString('hex')
		// Names of files get a mark of their own: the token must stand nowhere but where a command must not find it.
		const mark = randomBytes(6).toString('hex')
		const root = join(base, 'root')
		for (const name of ['root', 'tmp', 'tmp2', 'beside']) await mkdir(join(base, name), { mode: 0o700 })
		const common = { root, extraDirs: [], home: o.home, caches: [], ...o.settings }
		// A key in Garuda's own environment, as it is when it was exported.
		const env = { ...o.env, GARUDA_CHECK_API_KEY: token }
		const make = o.make ?? createExecutor
		const { executor, notice } = await make({ ...common, tmp: join(base, 'tmp'), env, executor: 'sandbox' })
		closing.push(() => executor.close())
		const first = notice
			? warn('sandbox', `${executor.kind} works. ${notice.replace(/^Sandbox: /, '')}`)
			: pass('sandbox', `${executor.kind} works, ${o.settings.profile} profile`)

		const host = await createExecutor({
			...common,
			profile: 'standard',
			tmp: join(base, 'tmp2'),
			env: o.env,
			executor: 'host',
		})
		closing.push(() => host.executor.close())
		const ended = new AbortController()
		// A process of the user's with a key in its environment and in its command line.
		const sleeper = host.executor.run(
			{
				argv: ['/bin/sh', '-c', `sleep 30; : ${token}`],
				cwd: base,
				timeoutMs: 30_000,
				env: { GARUDA_CHECK_KEY: token },
				outside: true,
			},
			ended.signal,
		)
		closing.push(async () => {
			ended.abort()
			await sleeper.catch(() => {})
		})
		const listener = await listen()
		closing.push(listener.close)
		const canary = await plant(o.garudaHome, mark, token)
		if (canary) closing.push(() => rm(canary, { force: true }))
		// Files that must not come to be.
		const targets = [o.home, ...(o.systemFolders ?? ['/etc', '/usr/local']), join(base, 'beside')].map((folder) =>
			join(folder, `.garuda-check-${mark}`),
		)
		const secrets = (await Promise.all(homeSecrets.map((name) => existing(join(o.home, name))))).filter(
			(one) => one !== null,
		)

		const others = secrets.filter((path) => path !== o.garudaHome).length

		const result = await executor.run(
			{
				script: script({ targets, secrets, canary, port: listener.port, token }),
				cwd: root,
				timeoutMs: 20_000,
				maxOutput: 20_000,
			},
			AbortSignal.timeout(25_000),
		)
		const said = new Set(result.output.split('\n'))
		if (!said.has('END'))
			return [first, ...left(`the trial did not end (${result.timedOut ? 'too slow' : `exit ${result.code}`})`)]
		const written = []
		for (const path of targets) {
			if (!existsSync(path)) continue
			written.push(dirname(path))
			await rm(path, { force: true })
		}
		const read = [...said].filter((line) => line.startsWith('READ ')).map((line) => line.slice(5))
		return [
			first,
			written.length === 0
				? pass('sandbox.write', 'a command could not write outside the root (home, system, beside the root)')
				: fail('sandbox.write', `a command wrote into ${written.join(', ')}`, report),
			read.length > 0
				? fail(
						'sandbox.secrets',
						`a command could read ${read.join(', ')}`,
						read.includes(canary ?? '') && !canary!.startsWith(`${o.home}/.garuda/`)
							? 'GARUDA_HOME lies where commands can read: unset it, or add it to "sandbox": {"denyRead": […]} in its settings.json.'
							: report,
					)
				: pass(
						'sandbox.secrets',
						`a command could not read Garuda's folder${others === 0 ? '' : `, nor ${others} other ${others === 1 ? 'place' : 'places'} of keys in your home`}`,
					),
			listener.connections() === 0 && !said.has('CONNECTED')
				? pass('sandbox.network', 'a command could not reach a server of this machine')
				: fail('sandbox.network', 'a command reached a server of this machine', report),
			o.platform === 'darwin'
				? skip('sandbox.processes', 'macOS shows the names of processes to every program')
				: said.has('SAW')
					? fail('sandbox.processes', 'a command saw another process of yours', report)
					: pass('sandbox.processes', 'a command saw none of your other processes'),
			said.has('KEY')
				? fail('sandbox.keys', 'a command found a key in the environment or in /proc', report)
				: await ownEnvironment(),
		]
	} catch (error) {
		const hint = error instanceof UserError ? error.hint : undefined
		return [fail('sandbox', messageOf(error), hint), ...left('there is no sandbox to try')]
	} finally {
		for (const close of closing.reverse()) await close().catch(() => {})
		await rm(base, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
	}
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Each line of output is a wall that did not hold, but the last. What searches for the token must not find itself. */
const script = (o: {
	targets: string[]
	secrets: string[]
	canary: string | null
	port: number
	token: string
}): string => {
	const pattern = `${o.token.slice(0, -1)}[${o.token.slice(-1)}]`
	return `
for f in ${o.targets.map(quoted).join(' ')}; do : > "$f"; done 2>/dev/null
${o.canary ? `grep -q ${pattern} ${quoted(o.canary)} 2>/dev/null && echo ${quoted(`READ ${o.canary}`)}` : ''}
for p in ${o.secrets.map(quoted).join(' ')}; do
  if [ -d "$p" ]; then [ -n "$(ls -A "$p" 2>/dev/null)" ]; else head -c 1 "$p" 2>/dev/null | grep -q .; fi && echo "READ $p"
done
(exec 3<>/dev/tcp/127.0.0.1/${o.port}) 2>/dev/null && echo CONNECTED
cat /proc/[0-9]*/cmdline 2>/dev/null | grep -qa 'sleep 30; : ${pattern}' && echo SAW
cat /proc/[0-9]*/environ 2>/dev/null | grep -qa ${pattern} && echo KEY
env | grep -q ${pattern} && echo KEY
echo END
`
}

/** A file with the token in Garuda's own folder; null where there is no such folder yet. */
async function plant(garudaHome: string, mark: string, token: string): Promise<string | null> {
	try {
		const path = join(garudaHome, `check-${mark}`)
		await writeFile(path, token, { mode: 0o600, flag: 'wx' })
		return path
	} catch (error) {
		if (codeOf(error) === 'ENOENT' || codeOf(error) === 'EROFS' || codeOf(error) === 'EACCES') return null
		throw error
	}
}

const existing = async (path: string): Promise<string | null> => {
	const found = await lstat(path).catch(() => null)
	return found?.isFile() || found?.isDirectory() ? path : null
}

async function listen(): Promise<{ port: number; connections(): number; close(): Promise<void> }> {
	let count = 0
	const server = createServer((socket) => {
		count++
		socket.on('error', () => {})
		socket.destroy()
	})
	await new Promise<void>((done, reject) => {
		server.once('error', reject)
		server.listen(0, '127.0.0.1', done)
	})
	const address = server.address()
	return {
		port: typeof address === 'object' && address ? address.port : 0,
		connections: () => count,
		close: () => new Promise((done) => server.close(() => done())),
	}
}

/** Whether this process itself shows a key to the user's other processes: in its first environment, which stays readable. */
async function ownEnvironment(): Promise<CheckLine> {
	const block = await readFile('/proc/self/environ', 'latin1').catch(() => null)
	const shown = (block ?? '')
		.split('\0')
		.filter((entry) => /^\w+_(?:API_KEY|AUTH_TOKEN)=./.test(entry))
		.map((entry) => entry.slice(0, entry.indexOf('=')))
	return shown.length === 0
		? pass(
				'sandbox.keys',
				"a command found no key in its environment or in /proc, and none stands in Garuda's own block",
			)
		: warn(
				'sandbox.keys',
				`commands find no key, but ${shown.join(', ')} stands in the environment block of Garuda's process, where your other programs can read it`,
				'Store the key with "garuda setup" and unset the variable.',
			)
}
