// Whether the sandbox really works here: the whole set of flags is run once, and a failure is told with its cause and cure.
import { existsSync } from 'node:fs'
import { messageOf } from '../errors.ts'
import type { Executor } from '../ports.ts'
import { oneLine } from '../text.ts'
import { smallFile } from './paths.ts'

export interface Diagnosis {
	/** What is wrong, one line. */
	reason: string
	/** What to do about it. */
	fix: string
}

// Each line must hold inside; a bubblewrap that starts but does not confine is as good as none.
const script = `
while read -r name value _; do case $name in CapEff:|Seccomp:|NoNewPrivs:) echo "$name$value";; esac; done </proc/self/status
set -- /proc/[0-9]*; [ $# -lt 16 ] && [ -e /proc/1/status ] && echo pids
[ -w /usr ] || [ -w "$HOME" ] || echo sealed
[ -w /proc/sys/kernel/core_pattern ] || echo kernel
[ -e /run/systemd ] || [ -e /run/user ] || echo run
`

/** Undefined when the sandbox works. */
export const probe = async (executor: Executor, cwd: string, hasFilter: boolean): Promise<Diagnosis | undefined> => {
	try {
		const result = await executor.run(
			{ script, cwd, timeoutMs: 10_000, readOnly: true, offline: true },
			AbortSignal.timeout(15_000),
		)
		const lines = new Set(result.output.split('\n'))
		const wanted = [
			'CapEff:0000000000000000',
			'NoNewPrivs:1',
			...(hasFilter ? ['Seccomp:2'] : []),
			'pids',
			'sealed',
			'kernel',
			'run',
		]
		const missing = wanted.filter((line) => !lines.has(line))
		return missing.length === 0 && result.code === 0
			? undefined
			: {
					reason: `bubblewrap starts but does not confine (${missing.join(', ') || oneLine(result.output)})`,
					fix: 'Report this with `garuda setup check`.',
				}
	} catch (error) {
		return diagnose(messageOf(error), machine())
	}
}

/** What of the machine explains a failure. */
export interface Machine {
	appArmorLimit: boolean
	cloneForbidden: boolean
	noNamespaces: boolean
	container: boolean
}

const machine = (): Machine => {
	const value = (path: string) => smallProc(path)
	return {
		appArmorLimit: value('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1',
		cloneForbidden: value('/proc/sys/kernel/unprivileged_userns_clone') === '0',
		noNamespaces: value('/proc/sys/user/max_user_namespaces') === '0',
		container:
			existsSync('/.dockerenv') ||
			existsSync('/run/.containerenv') ||
			/docker|kubepods|containerd|lxc|podman/.test(smallProc('/proc/1/cgroup') ?? ''),
	}
}

const smallProc = (path: string): string | undefined => smallFile(path)?.trim()

/** From bubblewrap's complaint and the machine to a cause and a cure. */
export const diagnose = (complaint: string, at: Machine): Diagnosis => {
	const said = oneLine(complaint, 300)
	if (/unknown option/i.test(complaint))
		return { reason: `bubblewrap is older than 0.8.0 (${said})`, fix: 'Install bubblewrap 0.8.0 or newer.' }
	if (/can't mount proc/i.test(complaint))
		return {
			reason: `this container does not let bubblewrap mount /proc (${said})`,
			fix: 'Start the container with --security-opt systempaths=unconfined --security-opt seccomp=unconfined (Docker, Podman), or run Garuda on the host.',
		}
	if (
		/creating new namespace|no permissions|uid map|setting up .* map|operation not permitted|user namespace|no space left/i.test(
			complaint,
		)
	) {
		if (at.appArmorLimit)
			return {
				reason: `AppArmor does not let bubblewrap make user namespaces (${said})`,
				fix: 'Ubuntu 24.04 and newer: sudo apt install apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo systemctl reload apparmor. For all programs: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0.',
			}
		if (at.cloneForbidden)
			return {
				reason: `this kernel forbids user namespaces (${said})`,
				fix: 'sudo sysctl kernel.unprivileged_userns_clone=1',
			}
		if (at.noNamespaces)
			return {
				reason: `no user namespace may be made here (${said})`,
				fix: 'sudo sysctl user.max_user_namespaces=15000, or run Garuda outside the surrounding sandbox.',
			}
		if (at.container)
			return {
				reason: `this container forbids user namespaces (${said})`,
				fix: 'Start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined (Docker, Podman), or run Garuda on the host.',
			}
		return {
			reason: `user namespaces are not allowed here (${said})`,
			fix: 'Run Garuda outside the surrounding sandbox or container, or allow user namespaces in it.',
		}
	}
	return { reason: said, fix: 'Run `bwrap --unshare-all --ro-bind / / true` to see it by hand.' }
}
