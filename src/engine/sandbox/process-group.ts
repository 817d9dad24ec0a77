// A limit of processes that the kernel holds for root too, who is exempt from every other one. Around the bubblewrap of each command.
import { promises as fs, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ProcessGroup {
	/**
	 * Puts a process, and all that it will start, under the limit. False when that did not work. A promise, for the kernel
	 * may take tens of milliseconds over it.
	 */
	add(pid: number): Promise<boolean>
	/** Removes the group; it must be empty by then, else it stays behind, empty later and harmless. */
	close(): void
}

/** Where groups can be made: the `pids` hierarchy of version 1, or the unified one. */
const places = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup']

/**
 * A control group with at most `max` tasks, or null where none can be made (not root, no `pids` controller): then
 * Garuda's own count is the only limit. `name` must be this executor's alone.
 */
export function processGroup(name: string, max: number): ProcessGroup | null {
	for (const place of places) {
		const folder = join(place, `garuda-${name}`)
		try {
			mkdirSync(folder)
		} catch {
			continue
		}
		try {
			// A thread counts as one; what bubblewrap itself needs comes on top.
			writeFileSync(join(folder, 'pids.max'), String(max + 16))
			if (readFileSync(join(folder, 'pids.max'), 'utf8').trim() !== String(max + 16)) throw new Error('no limit')
			return { add: (pid) => put(folder, pid), close: () => remove(folder) }
		} catch {
			remove(folder)
		}
	}
	return null
}

const put = (folder: string, pid: number): Promise<boolean> =>
	fs.writeFile(join(folder, 'cgroup.procs'), String(pid)).then(
		() => true,
		() => false,
	)

function remove(folder: string): void {
	try {
		rmdirSync(folder)
	} catch {
		// its last process is still leaving
	}
}
