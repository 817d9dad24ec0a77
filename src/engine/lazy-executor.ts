// The executor of a session, made when the first command needs it: a chat that runs nothing starts nothing. Between the gate and the sandbox.
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { procProcesses } from './files/atomic.ts'
import type { Executor } from './ports.ts'

export interface LazyExecutor extends Executor {
	/** Whether commands run in the OS sandbox; probes it for real the first time. */
	sandboxed(): Promise<boolean>
	/** For /status: what is known so far. */
	word(): string
	/** Begins the probe; never throws. */
	warmUp(): void
	/** Ends what runs in it; the next command gets one that is made anew. */
	renew(): Promise<void>
}

type Made = { executor: Executor; notice?: string }

/**
 * `make` gets the session's private temp folder (made in `folder`, removed on close, swept when its process died).
 * A notice of the sandbox goes to `say` once. A sandbox that is demanded and cannot work rejects each run with its UserError.
 */
export function lazyExecutor(
	folder: string,
	make: (tmp: string) => Promise<Made>,
	say: (text: string) => void,
): LazyExecutor {
	let made: Promise<Made> | null = null
	let known: Made | null = null
	let tmp: string | null = null
	let closed = false

	const get = (): Promise<Made> => {
		made ??= (async () => {
			tmp ??= await privateFolder(folder)
			const one = await make(tmp)
			known = one
			if (closed) await one.executor.close()
			if (one.notice) say(one.notice)
			return one
		})()
		return made
	}

	return {
		get kind() {
			return known?.executor.kind ?? 'bubblewrap'
		},
		run: async (spec, signal) => (await get()).executor.run(spec, signal),
		sandboxed: async () => (await get()).executor.kind !== 'host',
		word: () =>
			known
				? known.executor.kind === 'host'
					? 'none: commands run on the host and ask first'
					: known.executor.kind
				: 'not started yet',
		warmUp: () => void get().catch(() => {}),
		renew: async () => {
			const old = made
			made = null
			known = null
			await old?.then((one) => one.executor.close()).catch(() => {})
		},
		close: async () => {
			closed = true
			await made?.then((one) => one.executor.close()).catch(() => {})
			if (tmp) await rm(tmp, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
		},
	}
}

/** A 0700 folder of this process; those of processes that died without closing are removed first. */
async function privateFolder(folder: string): Promise<string> {
	await mkdir(folder, { recursive: true, mode: 0o700 })
	const { pid } = await procProcesses.self()
	for (const name of await readdir(folder).catch(() => [])) {
		const owner = Number(/^s-(\d+)-/.exec(name)?.[1])
		if (!owner || owner === pid || (await procProcesses.alive(owner, '')) !== false) continue
		await rm(join(folder, name), { recursive: true, force: true }).catch(() => {})
	}
	return mkdtemp(join(folder, `s-${pid}-`))
}
