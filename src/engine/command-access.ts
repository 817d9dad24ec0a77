// A session's way to its command files: the list, loaded when it is asked for, and the consents of one run. Made by assemble.ts.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { EngineOptions } from './api.ts'
import type { Commands } from './commands.ts'
import type { GarudaPaths } from './config/paths.ts'
import { codeOf } from './errors.ts'
import { createTrustStore, type TrustStore, trustFile } from './permission/trust.ts'
import type { AuditEntry, Clock } from './ports.ts'

export interface CommandAccess {
	/** Null where there is no folder of commands: who has none pays for nothing more. */
	commands(): Promise<Commands | null>
	/** For one run of a project's command: a no, or a yes for this time, holds for that run alone. */
	trust(): TrustStore
}

export function commandAccess(o: {
	options: Pick<EngineOptions, 'approver' | 'consents' | 'home'>
	paths: GarudaPaths
	clock: Clock
	record(entry: AuditEntry): void
}): CommandAccess {
	const { options, paths, clock, record } = o
	let room: Promise<Commands> | null = null
	return {
		async commands() {
			const folders = [join(paths.home, 'commands'), join(paths.project.dir, 'commands')]
			if (!(await Promise.all(folders.map(there))).includes(true)) return null
			room ??= import('./commands.ts').then(({ createCommands }) => createCommands({ paths, home: options.home }))
			return room
		},
		trust: () =>
			createTrustStore({
				file: trustFile(paths),
				clock,
				approver: options.approver,
				interactive: (options.consents ?? 'pinned') !== 'pinned',
				record,
			}),
	}
}

/** Anything at all, a link that leads nowhere too: it is told of when it cannot be used. */
const there = (path: string): Promise<boolean> =>
	lstat(path).then(
		() => true,
		(error) => !['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? ''),
	)
