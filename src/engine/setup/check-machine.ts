// The doctor at the machine: Node, files and their modes, git, disk, clock, terminal.
import { lstat, readdir, readFile, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { readCredentials } from '../config/credentials.ts'
import { loadModels } from '../config/models.ts'
import { checkHome, type GarudaPaths } from '../config/paths.ts'
import { loadPolicy, policyPlaces } from '../config/policy.ts'
import { loadSettings, type Settings } from '../config/settings.ts'
import { UserError } from '../errors.ts'
import { ownUid } from '../own-uid.ts'
import { createGit } from '../sandbox/git.ts'
import { type CheckLine, fail, pass, skip, warn } from './report.ts'

type Env = Record<string, string | undefined>

export interface Terminal {
	stdin: boolean
	stdout: boolean
	columns: number | undefined
}

export function checkNode(version: string, platform: string): CheckLine[] {
	const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
	const fits = major > 22 || (major === 22 && minor >= 20)
	const lines = [
		fits
			? pass('node', `${version} on ${platform}`)
			: fail(
					'node',
					`${version} is too old`,
					'Install Node 22.20 or newer; in a checkout "npm start" brings one along.',
				),
	]
	if (platform === 'win32')
		lines.push(
			fail('platform', 'native Windows is not supported', 'Run "wsl --install", then install Garuda inside WSL.'),
		)
	return lines
}

/** WSL 1 has no namespaces, so no sandbox can be had there. */
export async function checkWsl(read = () => readFile('/proc/version', 'latin1')): Promise<CheckLine[]> {
	const version = await read().catch(() => '')
	if (!/microsoft/i.test(version)) return []
	return [
		/WSL2|microsoft-standard/i.test(version)
			? pass('platform', 'WSL 2')
			: fail('platform', 'WSL 1 has no sandbox', 'Move the distribution to WSL 2: wsl --set-version <name> 2'),
	]
}

/** Garuda's own files: can they be read, are they closed. Resolves with the user's settings where they can be read. */
export async function checkFiles(
	paths: GarudaPaths,
	env: Env,
	platform: string,
	managedPolicy?: string,
): Promise<{ lines: CheckLine[]; settings: Settings | null }> {
	const lines: CheckLine[] = []
	const tried = async <T>(id: string, work: () => Promise<T>, good: (value: T) => string): Promise<T | null> => {
		try {
			const value = await work()
			lines.push(pass(id, good(value)))
			return value
		} catch (error) {
			if (!(error instanceof UserError)) throw error
			lines.push(fail(id, error.message, error.hint))
			return null
		}
	}
	const there = await lstat(paths.home).catch(() => null)
	if (!there)
		lines.push(
			warn('files.folder', `${paths.home} is not there yet`, 'It is made at the first start, or by "garuda setup".'),
		)
	else {
		const before = lines.length
		await tried(
			'files.folder',
			() => checkHome(paths.home),
			() => `${paths.home} is yours and closed`,
		)
		if (lines[before]?.status === 'pass' && there.mode & 0o077)
			lines[before] = warn(
				'files.folder',
				`others can look into ${paths.home} (mode ${octal(there.mode)})`,
				`chmod 700 ${paths.home}`,
			)
	}
	await tried(
		'files.credentials',
		() => readCredentials(paths),
		(keys) =>
			Object.keys(keys).length === 0 ? 'no key is stored' : `${Object.keys(keys).join(', ')}; closed to others`,
	)
	await tried(
		'files.models',
		() => loadModels(paths, env),
		(models) => `default ${models.default ?? 'none'}`,
	)
	const own = { ...paths, project: { ...paths.project, settings: paths.settings } }
	const settings = await tried(
		'files.settings',
		() => loadSettings(own),
		({ sources }) => (sources.length > 0 ? 'settings.json can be read' : 'no settings.json, all is as by default'),
	)
	const places = policyPlaces(paths, platform, managedPolicy)
	await tried(
		'files.policy',
		() => loadPolicy(places),
		({ policy }) => (policy ? 'a team policy is in force' : 'no team policy'),
	)
	if (there?.isDirectory()) lines.push(await modes(paths.home))
	return { lines, settings: settings?.settings ?? null }
}

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0')

/** Nothing in ~/.garuda may be another's to change. */
async function modes(home: string): Promise<CheckLine> {
	const uid = await ownUid()
	const wrong: string[] = []
	for (const name of await readdir(home).catch(() => [])) {
		const found = await lstat(join(home, name)).catch(() => null)
		if (!found || found.isSymbolicLink()) continue
		if ((uid !== null && found.uid !== uid) || found.mode & 0o022)
			wrong.push(`${name} (${octal(found.mode)}${found.uid === uid ? '' : `, uid ${found.uid}`})`)
	}
	return wrong.length === 0
		? pass('files.modes', 'all in it is yours, and only you can write to it')
		: fail(
				'files.modes',
				`others can change ${wrong.join(', ')} in ${home}`,
				`chmod -R go-w ${home} (and chown it to you)`,
			)
}

export async function checkGit(env: Env, cwd: string): Promise<CheckLine> {
	const version = await createGit({ env, avoid: [cwd], timeoutMs: 5_000 })
		.available()
		.catch(() => null)
	if (version === null)
		return warn(
			'git',
			'there is no git that Garuda may use',
			'Install git: without it /undo covers edits only, and /diff needs it. A git inside the project, or that others can write, is not used.',
		)
	const [major = 0, minor = 0] = version.split('.').map(Number)
	return major > 2 || (major === 2 && minor >= 31)
		? pass('git', version)
		: warn('git', `${version} is old`, 'Install git 2.31 or newer.')
}

/** Room for journals and snapshots, and in the temporary folder. */
export async function checkDisk(places: { home: string; tmp: string }): Promise<CheckLine[]> {
	const lines: CheckLine[] = []
	for (const [id, path] of [
		['disk.home', places.home],
		['disk.tmp', places.tmp],
	] as const) {
		const found = await statfs(path).catch(() => null)
		if (!found) {
			lines.push(warn(id, `${path} cannot be looked at`))
			continue
		}
		const free = found.bavail * found.bsize
		const words = `${free >= 1e9 ? `${(free / 1e9).toFixed(1)} GB` : `${Math.round(free / 1e6)} MB`} free at ${path}`
		// Some file systems count no inodes.
		const full = found.files > 0 && found.ffree < 1_000
		lines.push(
			free < 100e6 || full
				? fail(
						id,
						full ? `no file can be made at ${path}: no inodes are left` : words,
						'Free some space: sessions and snapshots could not be written.',
					)
				: free < 1e9
					? warn(id, words, 'Free some space soon; "du -sh ~/.garuda/snapshots" shows what undo keeps.')
					: pass(id, words),
		)
	}
	return lines
}

/** Against a provider's own clock; null when none answered. */
export function checkClock(now: number, date: string | null): CheckLine {
	const theirs = date === null ? Number.NaN : Date.parse(date)
	if (now < Date.UTC(2025, 0))
		return fail(
			'clock',
			`it says ${new Date(now).toISOString().slice(0, 10)}`,
			'Set the clock: certificates and logs depend on it.',
		)
	if (Number.isNaN(theirs)) return skip('clock', 'no server to compare with answered')
	const off = Math.round(Math.abs(now - theirs) / 1000)
	if (off > 300)
		return (off > 86_400 ? fail : warn)(
			'clock',
			`${off} s away from the provider's`,
			'Set the clock, or switch time synchronisation on (timedatectl set-ntp true).',
		)
	return pass('clock', off < 5 ? "as the provider's" : `${off} s away from the provider's`)
}

export function checkTerminal({ stdin, stdout, columns }: Terminal, env: Env): CheckLine {
	if (!stdin || !stdout) return skip('terminal', 'this run has none')
	const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || ''
	if (!env.TERM || env.TERM === 'dumb')
		return warn(
			'terminal',
			`TERM is ${env.TERM || 'not set'}: no line editing, no colours`,
			'Start Garuda in a full terminal.',
		)
	if (!/utf-?8/i.test(locale))
		return warn(
			'terminal',
			`the locale ${locale ? `"${locale.slice(0, 40)}"` : '(LANG)'} is not UTF-8: some characters cannot be shown`,
			'export LANG=C.UTF-8',
		)
	if (columns !== undefined && columns < 60)
		return warn('terminal', `${columns} columns are narrow`, 'Widen the window: diffs are hard to read in it.')
	return pass('terminal', `${env.TERM.slice(0, 40)}, ${columns ?? '?'} columns, UTF-8`)
}

/** What stands between here and the providers: proxies and certificates, by the variables. */
export async function checkNetworkVariables(env: Env): Promise<CheckLine[]> {
	const lines: CheckLine[] = []
	const { pickProxy, shown } = await import('../net/proxy.ts')
	try {
		const proxy = pickProxy(env, new URL('https://api.anthropic.com/'))
		if (proxy) lines.push(pass('network.proxy', `requests go through ${shown(proxy)}`))
	} catch (error) {
		lines.push(
			fail(
				'network.proxy',
				error instanceof Error ? error.message : String(error),
				'Write it as http://host:port, with http://user:password@host:port where it wants a login.',
			),
		)
	}
	const extra = env.NODE_EXTRA_CA_CERTS
	if (extra) {
		const text = await readFile(extra, 'utf8').catch(() => null)
		lines.push(
			text?.includes('-----BEGIN CERTIFICATE-----')
				? pass('network.certificates', `NODE_EXTRA_CA_CERTS adds ${extra}`)
				: fail(
						'network.certificates',
						`NODE_EXTRA_CA_CERTS names ${extra}, which ${text === null ? 'cannot be read' : 'holds no PEM certificate'}`,
						'Correct the path.',
					),
		)
	}
	return lines
}

/** Whether a path names a program: absolute, or on PATH. */
export async function isProgram(command: string, env: Env): Promise<boolean> {
	const places = command.includes('/')
		? [command]
		: (env.PATH ?? '')
				.split(':')
				.filter((dir) => dir.startsWith('/'))
				.map((dir) => join(dir, command))
	for (const place of places) {
		const found = await stat(place).catch(() => null)
		if (found?.isFile() && found.mode & 0o111) return true
	}
	return false
}
