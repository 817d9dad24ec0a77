// Staging on an overlay: the kernel shows the project with a command's changes laid over it and keeps them apart, so nothing is
// copied beforehand. One folder for each root; staging.ts decides whether it is used.
import { spawn } from 'node:child_process'
import {
	chmodSync,
	chownSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	statfsSync,
	symlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../errors.ts'
import { below } from './paths.ts'
import { findSystemProgram } from './programs.ts'
import { remove, type Seen, type StagedTree } from './staging-copy.ts'
import { Sight } from './staging-sight.ts'

/** The programs that make an overlay and look into it; absolute. */
export interface OverlayTools {
	unshare: string
	mount: string
	sh: string
	find: string
	xargs: string
}

/** Null where one is missing: then there is no overlay. */
export const findOverlayTools = (): OverlayTools | null => {
	const found = Object.fromEntries(
		['unshare', 'mount', 'sh', 'find', 'xargs'].map((name) => [name, findSystemProgram(name)]),
	)
	return Object.values(found).includes(undefined) ? null : (found as unknown as OverlayTools)
}

/** What begins the output of a command whose overlay could not be mounted; the command itself then did not start. */
export const overlayFailed = 'garuda-overlay-failed'

/**
 * Renames of folders are copies, contents are always whole: what `upper` holds then needs no further reading. Nothing is
 * flushed to the disk, for it lives no longer than the session. Names are relative, so no path has to be escaped.
 */
const options =
	'lowerdir=lower,upperdir=upper,workdir=work,userxattr,redirect_dir=nofollow,metacopy=off,index=off,volatile'

/** Root needs a space of mounts only; anybody else gets the right to mount in a space of users of his own, as its uid 0. */
const space = (): string => (process.getuid?.() === 0 ? '-m' : '-Urm')

/**
 * What goes before a program's words so that it starts where each stage's `merged` is its overlay. The mounts end with the last
 * process that sees them. The process stays the same from the first program to the last.
 */
export const overlayPrefix = ({ unshare, mount, sh }: OverlayTools, stages: readonly string[]): string[] => [
	...[unshare, space(), '--', sh, '-c'],
	`n=$1; shift
while [ "$n" -gt 0 ]; do
	cd "$1" && ${mount} -t overlay -o ${options},nosuid,nodev overlay merged || { echo ${overlayFailed}; exit 1; }
	shift; n=$((n - 1))
done
cd / && exec "$@"`,
	'sh',
	String(stages.length),
	...stages,
]

/** File systems of this machine itself, whose times come from the clock that is asked below. */
const localDisks = new Map([
	[0xef53, 'ext4'],
	[0x58465342, 'xfs'],
	[0x9123683e, 'btrfs'],
	[0x01021994, 'tmpfs'],
	[0xf2f52010, 'f2fs'],
	[0xca451a4e, 'bcachefs'],
	// A container's own: times and numbers are those of what lies below it.
	[0x794c7630, 'overlay'],
])

/** Of one root: what the command changed lies in `path` alone. */
export class OverlayStage implements StagedTree {
	readonly base: string
	/** The executor's own folder for it. */
	readonly folder: string
	readonly path: string
	/** Filled by the list, for the folders that go. */
	known = new Map<string, Seen>()
	/** Whatever of the root changed after this, in the kernel's time, changed while the command ran. */
	began = 0n
	/** Names in the root's folders at that time, as far as they were looked at. */
	readonly sight: Sight
	#wall = 0
	#steady = 0
	#root = ''
	readonly #tools: OverlayTools
	readonly #clock: () => number

	/** `clock`: the wall's, in ms. */
	constructor(base: string, folder: string, tools: OverlayTools, clock: () => number = Date.now) {
		this.base = base
		this.folder = folder
		this.path = join(folder, 'upper')
		this.sight = new Sight(base)
		this.#tools = tools
		this.#clock = clock
	}

	/** What a command gets in the root's place; only there in a process that was started with the prefix. */
	get merged(): string {
		return join(this.folder, 'merged')
	}

	had(path: string): boolean {
		try {
			lstatSync(join(this.base, path))
			return true
		} catch {
			return false
		}
	}

	/** Why this root cannot be the lower part of an overlay, or undefined. A few dozen questions to the disk. */
	unfit(mounts: readonly string[]): string | undefined {
		const inner = mounts.find((path) => below(path, this.base))
		// An overlay shows the folder that such a mount lies on, empty.
		if (inner !== undefined) return `another disk is mounted in the project, at ${inner}`
		if (!localDisks.has(statfsSync(this.base).type)) return 'the project is on a disk whose times cannot be relied on'
		const root = lstatSync(this.base, { bigint: true })
		if (root.ctimeNs % 1_000_000_000n === 0n) return 'the times of the project’s disk are too coarse'
		return process.getuid?.() === 0 ? undefined : this.#othersFile()
	}

	/** An ordinary user's overlay cannot take up a file of another owner or group, so the command could not change it. */
	#othersFile(): string | undefined {
		const [uid, gid] = [process.getuid?.(), process.getgid?.()]
		const mine = (path: string) => {
			const found = lstatSync(path, { throwIfNoEntry: false })
			return !found || (found.uid === uid && found.gid === gid)
		}
		const names = readdirSync(this.base).slice(0, 500)
		return [this.base, ...names.map((name) => join(this.base, name))].every(mine)
			? undefined
			: 'files of the project belong to another owner or group'
	}

	/** Empties the changes of the command before and takes the time. */
	async begin(): Promise<void> {
		mkdirSync(this.folder, { recursive: true, mode: 0o700 })
		for (const name of ['upper', 'work']) await remove(join(this.folder, name))
		for (const name of ['work', 'merged']) mkdirSync(join(this.folder, name), { recursive: true, mode: 0o700 })
		if (!existsSync(join(this.folder, 'lower'))) symlinkSync(this.base, join(this.folder, 'lower'))
		this.known = new Map()
		const clock = join(this.folder, 'clock')
		writeFileSync(clock, '')
		const now = () => {
			utimesSync(clock, 0, 0)
			return lstatSync(clock, { bigint: true }).ctimeNs
		}
		this.began = now()
		this.#wall = this.#clock()
		this.#steady = performance.now()
		this.#root = this.#identity()
		this.sight.look()
		// The merged root has the owner and mode of this one.
		const { mode, uid, gid } = lstatSync(this.base)
		mkdirSync(this.path, { mode: 0o700 })
		if (process.getuid?.() === 0) chownSync(this.path, uid, gid)
		chmodSync(this.path, mode & 0o7777)
		// The kernel's time moves in steps of milliseconds (before 6.13 for all files alike): what happens from here on is after `began`.
		while (now() <= this.began) await delay(1)
	}

	#identity(): string {
		const { dev, ino } = lstatSync(this.base)
		return `${dev} ${ino}`
	}

	/** Why what changed meanwhile can no longer be told, or undefined. */
	lostTrack(): string | undefined {
		// Forwards is no harm: what changed is then all the later.
		const back = performance.now() - this.#steady - (this.#clock() - this.#wall)
		if (back > 50) return 'the clock was set back while the command ran'
		try {
			return this.#identity() === this.#root ? undefined : 'the project’s folder was replaced while the command ran'
		} catch (error) {
			return messageOf(error)
		}
	}

	/** Folder to names as the overlay shows them now: in the end it is the kernel that says what is hidden. Rejects with an Error. */
	names(folders: readonly string[]): Promise<Map<string, Set<string>>> {
		return mergedNames(this.#tools, this.folder, folders)
	}

	/** What the kernel keeps while it is mounted cannot be opened by its owner. */
	async end(): Promise<void> {
		await remove(join(this.folder, 'work'))
	}
}

const listMs = 30_000

/** A second look, for reading only, with what the command made as one more lower part. */
const mergedNames = async (
	{ unshare, mount, sh, find, xargs }: OverlayTools,
	stage: string,
	folders: readonly string[],
): Promise<Map<string, Set<string>>> => {
	const script = `cd "$1" && ${mount} -t overlay -o ro,lowerdir=upper:lower,userxattr,redirect_dir=nofollow,metacopy=off,index=off overlay merged &&
cd merged && exec ${xargs} -0 ${sh} -c 'exec ${find} "$@" -mindepth 1 -maxdepth 1 -print0' sh`
	const child = spawn(unshare, [space(), '--', sh, '-c', script, 'sh', stage], {
		env: {},
		cwd: '/',
		stdio: 'pipe',
		timeout: listMs,
		killSignal: 'SIGKILL',
	})
	const output: Buffer[] = []
	let said = ''
	const { stdin: input, stdout: out, stderr: err } = child
	input.on('error', () => {})
	out.on('data', (bytes: Buffer) => output.push(bytes))
	err.on('data', (bytes: Buffer) => {
		said = (said + bytes.toString('utf8')).slice(0, 500)
	})
	const ended = new Promise<number | null>((resolve, reject) => {
		child.once('error', reject)
		child.once('close', (code) => resolve(code))
	})
	input.end(folders.map((folder) => `${folder === '' ? '.' : `./${folder}`}\0`).join(''))
	const code = await ended
	if (code !== 0) throw new Error(`the overlay could not be looked at: ${said.trim() || `it ended with ${code}`}`)
	const found = new Map(folders.map((folder) => [folder, new Set<string>()]))
	for (const path of Buffer.concat(output).toString('utf8').split('\0')) {
		if (path === '') continue
		const slash = path.lastIndexOf('/')
		found.get(path.slice(2, Math.max(2, slash)))?.add(path.slice(slash + 1))
	}
	return found
}

/** Mount points of this process, real paths. */
export const mountPoints = (): string[] =>
	readFileSync('/proc/self/mountinfo', 'utf8')
		.split('\n')
		.flatMap((line) => {
			const path = line.split(' ')[4]
			return path === undefined
				? []
				: [path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))]
		})
