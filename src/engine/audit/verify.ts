// All logs of the audit folder against their chains, the index and the second places. Behind `garuda audit verify`.
import { promises as fs } from 'node:fs'
import { codeOf, messageOf } from '../errors.ts'
import { openPlain } from './chain.ts'
import { type AuditIndex, type IndexHead, readAuditIndex } from './index-file.ts'
import { auditFile } from './log.ts'
import { type Bad, type KeptHead, scanFile, type Tampering } from './scan.ts'
import type { WitnessedHeads } from './witness.ts'

export interface SessionVerdict {
	session: string
	file: string
	/** Sound lines when `ok`; else lines before the first bad one. */
	lines: number
	ok: boolean
	/** Of the file; absent where the file itself is the matter. */
	line?: number
	kind?: Tampering | 'deleted' | 'unindexed' | 'no_file' | 'unread'
	why?: string
	notes: string[]
	/** Second places with a head of this session. */
	witnessed: string[]
	first: string
	last: string
}

export interface Verification {
	ok: boolean
	sessions: SessionVerdict[]
	/** What concerns the folder or a second place as a whole. */
	problems: string[]
	notes: string[]
	/** Names of the second places that were read. */
	against: string[]
}

export interface VerifyOptions {
	/** ~/.garuda/audit */
	dir: string
	/** What the second places know, read before the files, so that a session that runs meanwhile is only ahead of them. */
	places: readonly WitnessedHeads[]
	/** Only these; all without. */
	sessions?: readonly string[]
}

const isId = (text: string): boolean => /^[0-9a-z][0-9a-z-]{0,99}$/.test(text)

/**
 * Reads everything, changes nothing. Each session is ok or has one first bad line (or no file). What could not be looked
 * at is a problem, never ok.
 */
export async function verifyAudit(o: VerifyOptions): Promise<Verification> {
	const problems: string[] = []
	const notes: string[] = []
	const index = await readAuditIndex(o.dir)
	const files = await listFiles(o.dir, problems)
	if (index.state === 'damaged')
		problems.push('The index is damaged or was changed: index.json is not as Garuda writes it.')
	if (await fs.lstat(`${o.dir}/index.json.damaged`).catch(() => null))
		problems.push(
			'A damaged index was found earlier and kept as index.json.damaged: sessions that only it knew are not missed. Remove that file once you have looked.',
		)

	const kept = new Map<string, KeptHead[]>()
	for (const place of o.places) {
		if (place.failure !== undefined) {
			problems.push(
				`The ${place.kind} ${place.name} could not be read: ${place.failure}. Nothing was checked against it.`,
			)
			continue
		}
		if (place.damaged > 0)
			notes.push(
				`The ${place.kind} ${place.name} has ${place.damaged} ${place.damaged === 1 ? 'entry that is no head' : 'entries that are no heads'} of its place.`,
			)
		for (const head of place.heads) {
			const list = kept.get(head.session) ?? []
			list.push({ ...head, source: `the ${place.kind} ${place.name}` })
			kept.set(head.session, list)
		}
	}

	const all = [...new Set([...files, ...index.heads.keys(), ...kept.keys()])].sort()
	const wanted = o.sessions === undefined ? all : all.filter((id) => o.sessions!.includes(id))
	for (const id of o.sessions ?? []) if (!all.includes(id)) problems.push(`There is no log of a session ${id}.`)
	const sessions: SessionVerdict[] = []
	for (const id of wanted) sessions.push(await verifySession(o.dir, id, index.heads, kept.get(id) ?? [], index.state))
	if (index.state === 'missing' && files.length > 0)
		if (await noneHasBytes(o.dir, files))
			notes.push('There is no index, and no log has a line: the disk took nothing when they began (it was full).')
		else
			problems.push(
				'The index is missing, though there are logs. It was deleted, or it could not be written while they were (a full disk; the session then said so): the logs do not tell which. What else was deleted cannot be told.',
			)
	return {
		ok: problems.length === 0 && sessions.every((one) => one.ok),
		sessions,
		problems,
		notes,
		against: o.places.filter((one) => one.failure === undefined).map((one) => `${one.kind} ${one.name}`),
	}
}

/** Logs that were made and then got no line. Emptying them hides no more than deleting them, which nothing here could tell. */
async function noneHasBytes(dir: string, ids: readonly string[]): Promise<boolean> {
	for (const id of ids) {
		const stat = await fs.lstat(auditFile(dir, id)).catch(() => null)
		if (!stat?.isFile() || stat.size > 0) return false
	}
	return true
}

/** Ids that have a file in the folder; what has no business there is a problem. */
async function listFiles(dir: string, problems: string[]): Promise<string[]> {
	try {
		const folder = await fs.lstat(dir)
		if (!folder.isDirectory()) {
			problems.push(`${dir} is a link or no folder.`)
			return []
		}
		const names = (await fs.readdir(dir)).filter((name) => name.endsWith('.jsonl')).map((name) => name.slice(0, -6))
		for (const name of names)
			if (!isId(name)) problems.push(`A file that is no session's log lies in the folder: ${name}.jsonl`)
		return names.filter(isId)
	} catch (error) {
		if (codeOf(error) !== 'ENOENT') problems.push(`${dir} cannot be read (${codeOf(error) ?? messageOf(error)}).`)
		return []
	}
}

async function verifySession(
	dir: string,
	session: string,
	index: AuditIndex,
	placed: readonly KeptHead[],
	indexState: string,
): Promise<SessionVerdict> {
	const file = auditFile(dir, session)
	const known = index.get(session)
	const base: SessionVerdict = {
		session,
		file,
		lines: 0,
		ok: false,
		notes: [],
		witnessed: [...new Set(placed.map((one) => one.source.replace(/^the /, '')))],
		first: '',
		last: '',
	}
	const heads = (entry: IndexHead | undefined): KeptHead[] => [
		...(entry ? [{ ...entry, session, source: 'the index' }] : []),
		...placed,
	]
	let handle: Awaited<ReturnType<typeof openPlain>>
	try {
		if (!isId(session)) throw Object.assign(new Error('no id of a session'), { code: 'ENOENT' })
		handle = await openPlain(file)
	} catch (error) {
		if (codeOf(error) !== 'ENOENT')
			return {
				...base,
				kind: 'no_file',
				why:
					codeOf(error) === 'ELOOP'
						? 'the log is a link'
						: `the log cannot be read (${codeOf(error) ?? messageOf(error)})`,
			}
		const most = heads(known).sort((a, b) => b.lines - a.lines)[0]
		// The index is written first: killed in between, a session leaves an entry of no lines.
		if (!most || most.lines === 0) return { ...base, ok: true, notes: ['it was stopped before its first line'] }
		return {
			...base,
			kind: 'deleted',
			why: `the file was deleted: ${most.source} knows ${most.lines} lines (${most.time || 'no time'})`,
		}
	}
	try {
		const stat = await handle.stat()
		let scan = await scanFile(handle, session, heads(known))
		// A session that was closed goes on: the index says so by now.
		if (scan.bad?.kind === 'appended' && known) {
			const again = (await readAuditIndex(dir)).heads.get(session)
			if (again && !again.closed) scan = await scanFile(handle, session, heads(again))
		}
		const verdict = { ...base, first: scan.first, last: scan.last }
		if (stat.mode & 0o077) verdict.notes.push(`the file is open to others (mode ${(stat.mode & 0o777).toString(8)})`)
		if (stat.nlink !== 1) verdict.notes.push('the file has a second name (a hard link)')
		if (scan.bad) return { ...verdict, lines: scan.bad.line - 1, line: scan.bad.line, ...badWords(scan.bad) }
		if (!known && stat.size === 0) {
			verdict.notes.push('it has no line: the disk took none when it began (it was full)')
			return { ...verdict, ok: true }
		}
		if (!known && indexState === 'ok')
			return {
				...verdict,
				lines: scan.lines,
				kind: 'unindexed',
				why: 'the index does not know this log: its entry was removed, or the file was put here',
			}
		if (scan.torn) verdict.notes.push('the last line was cut off while it was written (the process was killed)')
		if (scan.mended > 0)
			verdict.notes.push(
				`${scan.mended} unfinished ${scan.mended === 1 ? 'line' : 'lines'} of a killed process, told by the line after`,
			)
		const most = Math.max(0, ...heads(known).map((one) => one.lines))
		if (scan.lines > most)
			verdict.notes.push(
				`${scan.lines - most} ${scan.lines - most === 1 ? 'line' : 'lines'} after the last head: the session runs, or was killed`,
			)
		return { ...verdict, ok: true, lines: scan.lines }
	} catch (error) {
		return { ...base, kind: 'unread', why: `the log cannot be read (${codeOf(error) ?? messageOf(error)})` }
	} finally {
		await handle.close()
	}
}

const badWords = ({ kind, why }: Bad): { kind: Tampering; why: string } => ({ kind, why })
