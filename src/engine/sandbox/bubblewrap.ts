// From a policy to bubblewrap's flags: a pure function, so that the order of mounts can be tested without running anything.
import type { Mask, Mount, Policy } from './policy.ts'

/** Where a file descriptor of the flags, of the filter and of the status lies in the child. */
export const descriptors = { flags: 3, filter: 4, status: 5 } as const

/**
 * The flags in the one right order; each line names what fails without it.
 * Never on a command line (paths and values would show in /proc): they go through `--args`, separated by NUL.
 */
export const bubblewrapFlags = (policy: Policy): string[] => {
	const flags = [
		// An own user namespace, and none inside it: no way back to capabilities.
		...['--unshare-user', '--unshare-all', '--disable-userns'],
		// Only for a command that was started in the session's own network namespace: the one thing it must not leave.
		...(policy.network ? ['--share-net'] : []),
		// As uid 0 bubblewrap keeps every capability: remounting / writable would reach the host.
		...['--cap-drop', 'ALL'],
		...['--die-with-parent', '--new-session', '--hostname', 'sandbox'],
		...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
		// The kernel lets global root write /proc/sys without capabilities (core_pattern runs programs on the host), and
		// more of /proc by the file modes alone; so all of it is read-only.
		...['--remount-ro', '/proc'],
		...policy.procHidden.flatMap((path) => ['--ro-bind', '/dev/null', path]),
	]
	// Shallow before deep: each path then belongs to its nearest mount, whatever contains what. Pins are among them: a mount
	// point cannot be renamed, so `mv .git x; mkdir .git` cannot swap a protected folder. Of one path the read-only one wins.
	for (const mount of sorted([...policy.base, ...asMounts('write', policy.pins), ...asMounts('read', policy.protect)]))
		flags.push(...mountFlags(mount, policy.tmpBytes))
	// Last, over every bind: the read-only bind of a protected folder would show again what a mask has hidden.
	for (const mask of policy.masks) flags.push(...maskFlags(mask, policy))
	// A root inside a masked folder comes back; then whatever is protected or secret inside it.
	for (const back of policy.back) {
		flags.push(back.write ? '--bind' : '--ro-bind', back.path, back.path)
		for (const mount of sorted([...asMounts('write', back.pins), ...asMounts('read', back.protect)]))
			flags.push(...mountFlags(mount, policy.tmpBytes))
		for (const mask of back.masks) flags.push(...maskFlags(mask, policy))
	}
	// Only now: a folder to come back needs its mount point made inside the mask.
	for (const mask of policy.masks) if (mask.holds) flags.push('--remount-ro', mask.path)
	flags.push('--chdir', policy.cwd, '--clearenv')
	for (const [name, value] of Object.entries(policy.env)) flags.push('--setenv', name, value)
	if (policy.filter) flags.push('--seccomp', String(descriptors.filter))
	flags.push('--json-status-fd', String(descriptors.status))
	return flags
}

const asMounts = (kind: Mount['kind'], paths: string[]): Mount[] => paths.map((path) => ({ kind, path }))

const sorted = (mounts: Mount[]): Mount[] => mounts.sort((a, b) => depth(a.path) - depth(b.path))

const mountFlags = (mount: Mount, bytes: number): string[] =>
	mount.kind === 'private'
		? ['--size', String(bytes), '--tmpfs', mount.path]
		: [mount.kind === 'write' ? '--bind' : '--ro-bind', mount.source ?? mount.path, mount.path]

/** One mount for each hidden path; a device such as /dev/null would be refused, and tools fail on that where they take an empty file. */
const maskFlags = (mask: Mask, policy: Policy): string[] =>
	mask.holds
		? ['--size', '65536', '--tmpfs', mask.path]
		: ['--ro-bind', mask.folder ? policy.emptyFolder : policy.emptyFile, mask.path]

const depth = (path: string): number => (path === '/' ? 0 : path.split('/').length)
