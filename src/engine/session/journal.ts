// Sessions as JSONL files in <root>/.garuda/sessions. The engine opens one a conversation; slash commands list, rename, delete.
import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { codeOf, messageOf, UserError } from '../errors.ts'
import { type Lock, lock } from '../files/atomic.ts'
import type { Folder } from '../files/open.ts'
import type { SessionHeader, SessionRecord } from '../ports.ts'
import { oneLine } from '../text.ts'
import { adopted } from './adopt.ts'
import { openSessions } from './folder.ts'
import { checkSessionId } from './ids.ts'
import { changeIndex, type IndexEntry, readIndex } from './index-file.ts'
import { type JournalFile, journalName, openJournal, readJournal, storeName } from './journal-file.ts'
import { idsIn, inTurns, type ListedSession, summarise } from './list.ts'
import type { GarudaSessions, OpenSession, StoreOptions } from './store-types.ts'
import { titleOf } from './title.ts'
import { createWriter, type JournalWriter } from './writer.ts'

export type { GarudaSessions, OpenSession, StoreOptions } from './store-types.ts'

/** The store of one root. Makes nothing until a session is created. */
export function createSessionStore(o: StoreOptions): GarudaSessions {
	const redact = (text: string): string => (o.redactor ? o.redactor.redact(text) : text)
	const writers = new Map<string, JournalWriter>()
	/** Changes of the index that run beside the conversation; waited for at a writer's close. */
	let indexing: Promise<unknown> = Promise.resolve()

	const index = (id: string, change: Partial<IndexEntry> | null): void => {
		const run = () =>
			changeIndex(
				o.index,
				o.clock,
				(entries) => {
					const old = entries.get(id)
					if (change === null) entries.delete(id)
					else
						entries.set(id, {
							root: o.root,
							title: '',
							created: o.clock.now(),
							...old,
							updated: o.clock.now(),
							...change,
						})
				},
				o.processes,
			)
		// The index is a map: without it a session is still found in its own folder.
		indexing = indexing.then(run, run).catch(() => {})
	}

	const makeWriter = (
		id: string,
		folder: Folder | null,
		held: Lock | null,
		more: { header?: SessionHeader; file?: JournalFile; problem?: string; titled?: boolean },
	) => {
		let titled = more.titled ?? false
		const writer = createWriter({
			id,
			folder,
			redact,
			...(more.file ? { file: more.file } : {}),
			...(more.header ? { header: { type: 'start', ...more.header } } : {}),
			...(more.problem === undefined ? {} : { problem: more.problem }),
			changed: ({ title, prompt }) => {
				if (title === undefined && titled) return
				titled = true
				index(id, {
					root: o.root,
					title: oneLine(title ?? titleOf(prompt ?? '')),
					...(more.header ? { created: more.header.created } : {}),
				})
			},
			release: async () => {
				writers.delete(id)
				if (held?.held) await held.release()
				await folder?.close()
				await indexing
			},
		})
		writers.set(id, writer)
		return writer
	}

	const takeLock = async (folder: Folder, id: string): Promise<Lock & { held: true }> => {
		const held = await lock(folder.at(`${id}.lock`), o.clock.now(), o.processes)
		if (held.held) return held
		const who = held.holder
			? `process ${held.holder.pid}${held.holder.since ? `, since ${new Date(held.holder.since).toISOString().slice(0, 16).replace('T', ' ')} UTC` : ''}`
			: 'another process'
		throw new UserError(
			`The session ${id} is open in ${who}.`,
			'End it there, start a new session, or go on with a copy (--fork).',
		)
	}

	/** Where the journal of an id lies: here, or where the index says. Null: nowhere. */
	const place = async (id: string): Promise<{ root: string; projectDir: string } | null> => {
		const has = async (projectDir: string) => {
			const folder = await openSessions(projectDir, false)
			if (!folder) return false
			try {
				return await fs.lstat(folder.at(journalName(id))).then(
					() => true,
					() => false,
				)
			} finally {
				await folder.close()
			}
		}
		if (await has(o.projectDir)) return { root: o.root, projectDir: o.projectDir }
		const entry = (await readIndex(o.index)).entries.get(id)
		if (!entry || entry.root === o.root) return null
		const projectDir = join(entry.root, '.garuda')
		return (await has(projectDir).catch(() => false)) ? { root: entry.root, projectDir } : null
	}

	const unknown = async (id: string): Promise<UserError> => {
		const entry = (await readIndex(o.index)).entries.get(id)
		if (entry && entry.root !== o.root)
			return new UserError(
				`The session ${id} belongs to ${entry.root}, and its file is not there any more.`,
				'If the folder was moved, start Garuda in its new place.',
			)
		return new UserError(
			`There is no session ${id} in this folder.`,
			'The list of sessions shows the ids: garuda chat --resume',
		)
	}

	const openAt = async (projectDir: string): Promise<Folder> => {
		const folder = await openSessions(projectDir, false)
		if (!folder) throw new UserError(`${projectDir} has no sessions.`)
		return folder
	}

	async function read(id: string) {
		checkSessionId(id)
		const where = await place(id)
		if (!where) throw await unknown(id)
		const folder = await openAt(where.projectDir)
		try {
			const file = await openJournal(folder, id, false)
			if (!file) throw await unknown(id)
			try {
				const { header, records, problems } = await readJournal(folder, id, file.handle)
				return { header, records: records as SessionRecord[], problems }
			} finally {
				await file.handle.close()
			}
		} finally {
			await folder.close()
		}
	}

	async function create(given: SessionHeader): Promise<JournalWriter> {
		checkSessionId(given.id)
		const header = { ...given, root: o.root, origin: o.origin, garuda: o.version }
		let folder: Folder | null = null
		let held: Lock | null = null
		try {
			folder = await openSessions(o.projectDir, true)
			held = await takeLock(folder!, given.id)
			if (await fs.lstat(folder!.at(journalName(given.id))).catch(() => null))
				throw new UserError(
					`There is a session ${given.id} already.`,
					`Go on with it: garuda chat --resume ${given.id}`,
				)
			return makeWriter(given.id, folder, held, { header })
		} catch (error) {
			if (held?.held) await held.release()
			// A read-only folder or a full disk does not stop the conversation; a link or a stranger's folder does.
			if (error instanceof UserError || codeOf(error) === undefined) {
				await folder?.close()
				throw error
			}
			const problem = `This session is not saved: ${o.projectDir}/sessions cannot be written (${codeOf(error)}).`
			if (codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT')
				return makeWriter(given.id, folder, null, { header, problem })
			await folder?.close()
			return makeWriter(given.id, null, null, { header, problem })
		}
	}

	async function open(id: string): Promise<OpenSession> {
		checkSessionId(id)
		const where = await place(id)
		if (!where) throw await unknown(id)
		if (where.projectDir !== o.projectDir)
			throw new UserError(
				`The session ${id} belongs to ${where.root}.`,
				`Resume it there: cd ${where.root} && garuda chat --resume ${id} — or go on here with a copy (--fork).`,
			)
		const folder = await openAt(o.projectDir)
		let held: (Lock & { held: true }) | undefined
		let file: JournalFile | null = null
		try {
			held = await takeLock(folder, id)
			file = await openJournal(folder, id, true)
			if (!file) throw await unknown(id)
			const strange = (why: string) =>
				new UserError(
					`The session ${id} was not written here by you: ${why}. It may have been planted to steer the agent.`,
					'Read it first (--replay, /export); to go on with a copy of its conversation, say so: --fork.',
				)
			if (file.foreign) throw strange(file.foreign)
			const { header, records, problems, whole, open: noNewline } = await readJournal(folder, id, file.handle)
			if (header.origin !== redact(o.origin)) throw strange('it comes from another machine or user')
			if (header.root !== redact(o.root))
				throw new UserError(
					`The session ${id} was made in ${oneLine(header.root)}, and this is ${o.root}.`,
					'If the folder was moved or renamed, go on with a copy here: --fork.',
				)
			if (noNewline) {
				await file.handle.write('\n')
				file.size += 1
			} else if (whole < file.size) {
				await file.handle.truncate(whole)
				file.size = whole
			}
			const writer = makeWriter(id, folder, held ?? null, { file, titled: true })
			return { writer, header, records: records as SessionRecord[], problems }
		} catch (error) {
			await file?.handle.close()
			await held?.release()
			await folder.close()
			throw error
		}
	}

	async function adopt(id: string, given: SessionHeader): Promise<OpenSession> {
		const source = await read(id)
		const writer = await create(given)
		const header = { ...given, root: o.root, origin: o.origin, garuda: o.version }
		const records: SessionRecord[] = [{ type: 'start', ...header }]
		for (const record of source.records) {
			const copy = adopted(record)
			if (!copy) continue
			records.push(copy)
			await writer.append(copy)
		}
		const note: SessionRecord = {
			type: 'notice',
			time: o.clock.now(),
			text: `A copy of the session ${id} of ${oneLine(source.header.root)}.`,
		}
		records.push(note)
		await writer.append(note)
		return { writer, header, records, problems: source.problems }
	}

	async function list(): Promise<ListedSession[]> {
		const { entries } = await readIndex(o.index)
		const byTime = (a: ListedSession, b: ListedSession) => b.updated - a.updated || (a.id < b.id ? 1 : -1)
		const folder = await openSessions(o.projectDir, false)
		let here: ListedSession[] = []
		if (folder) {
			try {
				const ids = idsIn(await fs.readdir(join(folder.path)))
				here = (
					await inTurns(ids, 16, (id) =>
						summarise(folder, id, o.root, redact(o.origin), entries.get(id)?.title || undefined),
					)
				).filter((one) => one !== null)
			} finally {
				await folder.close()
			}
		}
		const elsewhere = await inTurns(
			[...entries].filter(([, entry]) => entry.root !== o.root),
			32,
			async ([id, entry]): Promise<ListedSession | null> => {
				const stat = await fs.lstat(join(entry.root, '.garuda', 'sessions', journalName(id))).catch(() => null)
				if (!stat?.isFile()) return null
				return {
					id,
					root: entry.root,
					title: oneLine(entry.title),
					created: entry.created,
					updated: stat.mtimeMs,
					size: stat.size,
				}
			},
		)
		return [...here.sort(byTime), ...elsewhere.filter((one) => one !== null).sort(byTime)]
	}

	async function rename(id: string, title: string): Promise<void> {
		checkSessionId(id)
		const record: SessionRecord = { type: 'title', time: o.clock.now(), title: oneLine(title) }
		if (title.trim() === '') throw new UserError('A session needs a title of at least one character.')
		const mine = writers.get(id)
		if (mine) return mine.append(record)
		const { writer } = await open(id)
		await writer.append(record)
		await writer.close()
	}

	async function remove(id: string): Promise<void> {
		checkSessionId(id)
		if (writers.has(id))
			throw new UserError(
				`The session ${id} is the open one and cannot be deleted.`,
				'Start or resume another one first.',
			)
		const where = await place(id)
		if (!where) throw await unknown(id)
		const folder = await openAt(where.projectDir)
		try {
			const held = await takeLock(folder, id)
			try {
				await fs.unlink(folder.at(journalName(id)))
				const stored = folder.at(storeName(id))
				const stat = await fs.lstat(stored).catch(() => null)
				if (stat?.isDirectory()) await fs.rm(stored, { recursive: true, force: true })
				else if (stat) await fs.unlink(stored)
			} catch (error) {
				throw new UserError(`The session ${id} could not be deleted: ${messageOf(error)}`)
			} finally {
				await held.release()
			}
		} finally {
			await folder.close()
		}
		index(id, null)
		await indexing
	}

	return {
		create,
		open,
		adopt,
		read,
		list,
		rename,
		remove,
		async latest() {
			return (await list()).find((one) => one.root === o.root && !one.foreign) ?? null
		},
		async find(text) {
			const wanted = text.trim()
			if (/^[0-9a-z]{16}$|^[0-9a-f-]{36}$/.test(wanted)) return checkSessionId(wanted)
			if (!/^[0-9a-z-]{4,35}$/.test(wanted)) return checkSessionId(wanted)
			const found = (await list()).filter((one) => one.id.startsWith(wanted))
			if (found.length === 1) return found[0]!.id
			if (found.length === 0)
				throw new UserError(
					`No session begins with "${wanted}".`,
					'The list of sessions shows the ids: garuda chat --resume',
				)
			throw new UserError(
				`${found.length} sessions begin with "${wanted}": ${found
					.slice(0, 5)
					.map((one) => one.id)
					.join(', ')}.`,
				'Give more characters.',
			)
		},
	}
}
