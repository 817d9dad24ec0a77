// What the tests of staged commands share.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'

export const never: AbortSignal = new AbortController().signal

export const thrown = (work: Promise<unknown>): Promise<Error> =>
	work.then(
		() => expect.fail('expected a refusal'),
		(error) => error,
	)

/** What an apply that went wrong would leave beside its targets. */
export const leftovers = (root: string): unknown[] =>
	readdirSync(root, { recursive: true }).filter((name) => String(name).includes('garuda-tmp'))

let answer: string | undefined | null = null

/**
 * Why this machine has no overlays for staging (a container's own disk is one), or undefined. Asked of the kernel by hand: a
 * fault of ours must not look like a machine without them.
 */
export const noOverlay = (): string | undefined => {
	if (answer !== null) return answer
	const folder = mkdtempSync(join(tmpdir(), 'garuda-overlay-'))
	try {
		for (const name of ['low/dir', 'up', 'work', 'seen']) mkdirSync(join(folder, name), { recursive: true })
		const space = process.getuid?.() === 0 ? '-m' : '-Urm'
		const mount = 'mount -t overlay -o lowerdir=low,upperdir=up,workdir=work,userxattr o seen'
		const script = `cd '${folder}' && ${mount} && rmdir seen/dir && mkdir seen/dir`
		const { status, stderr, error } = spawnSync('unshare', [space, 'sh', '-c', script], { encoding: 'utf8' })
		answer = status === 0 ? undefined : `${error ?? stderr}`
		return answer
	} finally {
		spawnSync('chmod', ['-R', 'u+rwx', folder])
		rmSync(folder, { recursive: true, force: true })
	}
}

/** A shell command that sets an attribute of a file; perl is there wherever Debian is, setfattr is not. */
export const setAttribute = (name: string, value: string, path: string): string => {
	const number = process.arch === 'arm64' ? 5 : 188
	return `perl -e 'my ($p, $n, $v) = @ARGV; syscall(${number}, $p, $n, $v, length $v, 0)' '${path}' ${name} '${value}'`
}
