// Process trees as /proc shows them (ps elsewhere): who descends from whom, and ending all of them.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

interface Process {
	pid: number
	parent: number
	group: number
	dead: boolean
}

const list = (): Process[] => (process.platform === 'linux' ? fromProc() : fromPs())

const fromProc = (): Process[] => {
	const found: Process[] = []
	for (const name of readdirSync('/proc')) {
		if (!/^\d+$/.test(name)) continue
		try {
			const text = readFileSync(`/proc/${name}/stat`, 'latin1')
			// The name in parentheses may hold anything, also parentheses.
			const [state, parent, group] = text.slice(text.lastIndexOf(')') + 2).split(' ')
			found.push({
				pid: Number(name),
				parent: Number(parent),
				group: Number(group),
				dead: state === 'Z' || state === 'X',
			})
		} catch {
			// ended meanwhile
		}
	}
	return found
}

const fromPs = (): Process[] => {
	try {
		return execFileSync('/bin/ps', ['-axo', 'pid=,ppid=,pgid=,state='], { encoding: 'utf8', env: {} })
			.split('\n')
			.map((line) => line.trim().split(/\s+/))
			.filter((fields) => fields.length === 4)
			.map(([pid, parent, group, state]) => ({
				pid: Number(pid),
				parent: Number(parent),
				group: Number(group),
				dead: state!.startsWith('Z'),
			}))
	} catch {
		return []
	}
}

/** Living processes below `root` (not itself), by parentage. */
export const descendants = (root: number): number[] => {
	const children = Map.groupBy(list(), ({ parent }) => parent)
	const found: number[] = []
	const queue = [root]
	for (let pid = queue.shift(); pid !== undefined; pid = queue.shift())
		for (const child of children.get(pid) ?? []) {
			queue.push(child.pid)
			if (!child.dead) found.push(child.pid)
		}
	return found
}

/** Whether `pid` lives a few steps below `ancestor`: a handful of reads, however many processes there are. */
export const descendsFrom = (pid: number, ancestor: number): boolean => {
	let at = pid
	for (let steps = 0; steps < 4; steps++) {
		try {
			const text = readFileSync(`/proc/${at}/stat`, 'latin1')
			at = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
		} catch {
			return false
		}
		if (at === ancestor) return true
	}
	return false
}

/**
 * Living processes of a host command: its group, its descendants, and on Linux those that carry its mark in the environment
 * they started with, so that a double fork into a session of its own does not escape.
 */
export const belonging = (leader: number, mark: string): number[] => {
	const found = new Set(descendants(leader))
	for (const { pid, group, dead } of list()) {
		if (dead || pid === process.pid || found.has(pid)) continue
		if (group === leader || (mark !== '' && carries(pid, mark))) {
			found.add(pid)
			for (const child of descendants(pid)) found.add(child)
		}
	}
	found.delete(process.pid)
	found.delete(leader)
	return [...found]
}

const carries = (pid: number, mark: string): boolean => {
	try {
		return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)
	} catch {
		return false
	}
}

/**
 * Ends what a Garuda that was killed left running: orphans whose output still goes to a pipe of its own, in `folder`
 * (`s-<pid>-…-own-…`). The reaper ends them with Garuda; what left its group on the
 * host, or whose reaper was killed too, is met here. Gives how many there were; Linux only.
 */
export const endOrphans = (folder: string): number => {
	if (process.platform !== 'linux') return 0
	let ended = 0
	for (const { pid, parent } of list()) {
		const owner = [1, 2].map((fd) => ownerOf(`/proc/${pid}/fd/${fd}`, folder)).find((each) => each !== undefined)
		if (owner === undefined || owner === process.pid || existsSync(`/proc/${owner}`) || !adopts(parent)) continue
		const all = [pid, ...descendants(pid)]
		signalAll(all, 'SIGKILL')
		ended += all.length
	}
	return ended
}

const ownerOf = (link: string, folder: string): number | undefined => {
	try {
		const target = readlinkSync(link)
		if (!target.startsWith(`${folder}/`)) return undefined
		const owner = /^s-(\d+)-[^/]*-own-[^/]*\/pipe-\d+/.exec(target.slice(folder.length + 1))?.[1]
		return owner === undefined ? undefined : Number(owner)
	} catch {
		return undefined
	}
}

/** Whether orphans come to this process: with any other parent, somebody still looks after it (a Garuda of another pid namespace). */
const adopts = (pid: number): boolean => {
	if (pid <= 1) return true
	try {
		return readFileSync(`/proc/${pid}/comm`, 'latin1') === 'systemd\n'
	} catch {
		return false
	}
}

/**
 * Processes in the pid namespace whose first process is `first`, from outside; undefined when it cannot be seen, and while
 * bubblewrap still builds the sandbox: its `/proc` is the machine's until then.
 */
export const namespaceCount = (first: number): number | undefined => {
	try {
		// In a /proc of a namespace that we are not in, there is no `self` of ours.
		if (existsSync(`/proc/${first}/root/proc/self`)) return undefined
		return readdirSync(`/proc/${first}/root/proc`).filter((name) => /^\d+$/.test(name)).length
	} catch {
		return undefined
	}
}

/** The pid namespace a process is in, to know that a number still means the same process. */
export const namespaceOf = (pid: number): string | undefined => {
	try {
		return readlinkSync(`/proc/${pid}/ns/pid`)
	} catch {
		return undefined
	}
}

/** Before all others on the processor; needs root. */
export const setUrgent = (pid: number): void => {
	try {
		setPriority(pid, -15)
	} catch {
		// gone
	}
}

export const signalAll = (pids: number[], signal: NodeJS.Signals): void => {
	for (const pid of pids)
		try {
			process.kill(pid, signal)
		} catch {
			// gone
		}
}
