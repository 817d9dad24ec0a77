// The Seatbelt profile of macOS as text: reads everywhere but secrets, writes only where work happens, no network, no way to
// have another program act (LaunchServices, Apple Events). Generated from data and quoted, so that no path can add a rule.
import { join } from 'node:path'
import { homeProtected, homeSecrets, rootProtected } from './names.ts'

export interface SeatbeltOptions {
	/** Real paths: Seatbelt judges the resolved path (/private/tmp, not /tmp). */
	roots: string[]
	home: string
	/** The session folder; the command's TMPDIR. */
	tmp: string
	/** Caches and write paths. */
	writable: string[]
	denyRead: string[]
	/** Git folders' parts and hooks folders, from the repository. */
	protect: string[]
	readOnly: boolean
	blockUnix: boolean
	/** The port of this machine on which Garuda's proxy listens; without it there is no network. */
	proxyPort?: number | undefined
}

/** A path as a string of the profile language. Throws on a control character, which no rule can name safely. */
export const sbplString = (path: string): string => {
	if (/[\u0000-\u001f\u007f]/.test(path))
		throw new Error(`A path with a control character cannot be fenced in: ${JSON.stringify(path)}`)
	return `"${path.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

const subpaths = (paths: string[]): string =>
	[...new Set(paths)].map((path) => `\n  (subpath ${sbplString(path)})`).join('')

const rule = (verdict: string, operations: string, paths: string[]): string =>
	paths.length === 0 ? '' : `(${verdict} ${operations}${subpaths(paths)})\n`

/** Later rules win: allow, then protect, then secrets last. */
export const seatbeltProfile = (options: SeatbeltOptions): string => {
	const { roots, home, tmp } = options
	const work = options.readOnly ? [] : [...roots, ...options.writable]
	const kept = [
		...roots.flatMap((root) =>
			[...rootProtected, '.git/hooks', '.git/config', '.git/config.worktree', '.git/info', '.git/commondir'].map(
				(name) => join(root, name),
			),
		),
		...homeProtected.map((name) => join(home, name)),
		...options.protect,
	]
	const secrets = [...homeSecrets.map((name) => join(home, name)), ...options.denyRead]
	const inSecret = roots.filter((root) => secrets.some((path) => root.startsWith(`${path}/`)))
	return [
		'(version 1)\n(deny default)\n',
		'(allow process-exec process-fork)\n(allow process-info* (target same-sandbox))\n(allow signal (target same-sandbox))\n',
		'(allow sysctl-read)\n(allow file-read*)\n(allow file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))\n',
		'(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/stdout") (literal "/dev/stderr") (regex #"^/dev/fd/"))\n',
		'(allow ipc-posix-sem)\n(allow ipc-posix-shm (ipc-posix-name-prefix "/tmp/"))\n',
		// Only lookups without which ordinary programs do not start; not launchd, LaunchServices, Apple Events, the pasteboard or the keychain.
		`(allow mach-lookup${['com.apple.system.notification_center', 'com.apple.system.opendirectoryd.libinfo', 'com.apple.system.opendirectoryd.membership', 'com.apple.system.logger', 'com.apple.logd', 'com.apple.trustd.agent', 'com.apple.bsd.dirhelper', 'com.apple.dyld.introspection'].map((name) => `\n  (global-name ${sbplString(name)})`).join('')})\n`,
		'(deny appleevent-send)\n(deny lsopen)\n(deny job-creation)\n(deny mach-register)\n(deny system-privilege)\n',
		'(deny network*)\n',
		// Only the proxy, which decides on names. A port is a number: no text of it can end the string.
		options.proxyPort === undefined
			? ''
			: `(allow network-outbound (remote ip "localhost:${Math.trunc(options.proxyPort)}"))\n`,
		...(options.blockUnix ? [] : [rule('allow', 'network-outbound network-bind', [...work, tmp])]),
		rule('allow', 'file-write*', [...work, tmp]),
		rule('deny', 'file-write*', kept),
		// A protected folder must not be swapped by renaming what holds it.
		options.readOnly
			? ''
			: `(deny file-write-unlink${roots.map((root) => `\n  (literal ${sbplString(join(root, '.git'))})`).join('')})\n`,
		rule('deny', 'file-read* file-write*', secrets),
		// A root inside a hidden folder comes back, its protected parts read-only.
		rule('allow', 'file-read*', inSecret),
		options.readOnly ? '' : rule('allow', 'file-write*', inSecret),
		inSecret.length > 0 ? rule('deny', 'file-write*', kept) : '',
	].join('')
}
