// A session's audit log: entries become chained lines, each turn's head goes to the index and the second places. Called by the gate.
import { constants, promises as fs, fstatSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, messageOf, UserError } from '../errors.ts'
import type { Processes } from '../files/atomic.ts'
import { ownUid } from '../own-uid.ts'
import type { AuditEntry, AuditLog, Clock, Redactor } from '../ports.ts'
import type { Git } from '../sandbox/git.ts'
import { genesis, type Handle, type Head, seal, sha256 } from './chain.ts'
import { type IndexHead, readAuditIndex, setHead } from './index-file.ts'
import { scanFile } from './scan.ts'
import { type Scrubbed, scrubEntry } from './scrub.ts'
import { checkpointWitness, placesInside, type WitnessSpec, witness } from './witness.ts'

export interface AuditOptions {
	/** ~/.garuda/audit; made 0700. */
	dir: string
	session: string
	/** The working root, for the index and the first line. */
	root: string
	redactor: Pick<Redactor, 'redact'>
	clock: Clock
	/** Garuda's own version, for the first line. */
	version: string
	/** Absolute paths: `auditPlaces(settings.audit, home)`. */
	witnesses: readonly WitnessSpec[]
	checkpoint?: string | undefined
	/** Garuda's git, asked for when a witness is a repository. */
	git(): Promise<Git>
	/** An entry that cannot be written is a UserError of `append` instead of a report: nothing happens unrecorded. */
	required?: boolean
	processes?: Processes
}

export const auditFile = (dir: string, session: string): string => join(dir, `${session}.jsonl`)

/** Where the audit log is off. */
export const noAudit: AuditLog = {
	append: async () => {},
	turnEnd: async () => {},
	onProblem: () => {},
	close: async () => {},
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants
/** Entries kept in memory while the disk takes none. */
const maxPending = 1000

/**
 * The log of one session; nothing is on the disk before the first entry. The caller holds the session's lock: one writer
 * a session. `append` resolves when the line is in the file; the order of calls is the order of lines. A session that
 * goes on continues its chain, and says in a line of its own when what it finds is not what the index knew.
 */
export async function createAuditLog(o: AuditOptions): Promise<AuditLog> {
	const path = auditFile(o.dir, o.session)
	const places = [
		...(o.checkpoint === undefined ? [] : [checkpointWitness(o.checkpoint)]),
		...o.witnesses.map((spec) => witness(spec, o.git)),
	]
	let handle: Handle | null = null
	let size = 0
	/** The last line in the file. */
	let lines = 0
	let hash = genesis(o.session)
	/** What the index and the places know. */
	let told = -1
	let pending: Scrubbed[] = []
	let lost = 0
	let failing = false
	let closed = false
	let queue: Promise<unknown> = Promise.resolve()
	let indexing: Promise<void> = Promise.resolve()
	let listener: ((text: string) => void) | undefined
	const unheard: string[] = []
	const reported = new Set<string>()

	/** Each kind of trouble once. */
	const report = (kind: string, text: string): void => {
		if (reported.has(kind)) return
		reported.add(kind)
		if (listener) listener(text)
		else unheard.push(text)
	}
	const now = () => new Date(o.clock.now()).toISOString()

	/** Whole lines only: a part that a full disk took is taken back. */
	async function put(text: string, looked?: number): Promise<void> {
		const bytes = Buffer.from(text)
		const before = looked ?? fstatSync(handle!.fd).size
		if (before !== size)
			report(
				'foreign',
				`The audit log ${path} was changed by somebody else while the session runs; "garuda audit verify" names the place.`,
			)
		try {
			// Without a wait, as the journal: a line is short, and a step has several.
			for (let done = 0; done < bytes.length; ) done += writeSync(handle!.fd, bytes, done, bytes.length - done)
		} catch (error) {
			await handle!.truncate(before).catch(() => {})
			throw error
		}
		size = before + bytes.length
	}

	const scrub = (entry: AuditEntry) => scrubEntry(entry, (text) => o.redactor.redact(text))

	async function add(entry: Scrubbed, lead = '', looked?: number): Promise<void> {
		const sealed = seal({ n: lines + 1, time: now(), session: o.session, prev: hash, ...entry })
		await put(`${lead}${sealed.text}\n`, looked)
		lines++
		hash = sealed.hash
	}

	async function openFile(): Promise<void> {
		await fs.mkdir(o.dir, { mode: 0o700 }).catch((error: unknown) => {
			if (codeOf(error) !== 'EEXIST') throw error
		})
		const folder = await fs.lstat(o.dir)
		const uid = await ownUid()
		if (!folder.isDirectory()) throw new Error(`${o.dir} is a link or no folder`)
		if (uid !== null && folder.uid !== uid) throw new Error(`${o.dir} belongs to another user`)
		if (folder.mode & 0o077) await fs.chmod(o.dir, 0o700)
		const { heads } = await readAuditIndex(o.dir)
		const known = heads.get(o.session)
		// Before the file: a log that the index does not know is never Garuda's own doing.
		if (!known) await tell(false)
		else if (known.closed) await index({ ...known, closed: false })
		// O_APPEND: whatever else writes there, no line of ours goes over another.
		const file = await fs.open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
		try {
			const stat = await file.stat()
			if (!stat.isFile() || stat.nlink !== 1) throw new Error(`${path} is no regular file with one name`)
			if (uid !== null && stat.uid !== uid) throw new Error(`${path} belongs to another user`)
			if (stat.mode & 0o077) await file.chmod(0o600)
			size = stat.size
		} catch (error) {
			await file.close()
			throw error
		}
		handle = file
		await begin(known)
	}

	/** The log's own line at a start, and all that is odd about what was there before. */
	async function begin(known: IndexHead | undefined): Promise<void> {
		const about = { root: o.root, garuda: o.version, format: 1 }
		if (size === 0 && (known?.lines ?? 0) === 0) return add(scrub({ kind: 'session', reason: 'start', detail: about }))
		const scan = await scanFile(
			handle!,
			o.session,
			known ? [{ ...known, session: o.session, source: 'the index' }] : [],
		)
		lines = scan.lines
		hash = scan.hash
		const torn = scan.torn ? { bytes: scan.torn.length, sha256: sha256(scan.torn) } : null
		const bad = scan.bad ?? (known ? null : { line: 1, kind: 'unindexed', why: 'the index did not know this log' })
		if (bad)
			report(
				'broken',
				`The audit log of this session is not as it was left (line ${bad.line}: ${bad.why}). It goes on; "garuda audit verify" tells more.`,
			)
		await add(
			scrub({
				kind: 'session',
				reason: bad ? 'broken' : 'resume',
				detail: {
					...about,
					...(torn ? { torn } : {}),
					...(bad ? { broken: { line: bad.line, kind: bad.kind, why: bad.why, known: known?.lines ?? 0 } } : {}),
				},
			}),
			scan.open ? '\n' : '',
		)
	}

	/** All entries that wait, in order. Throws with the first that cannot be written. */
	async function flush(): Promise<void> {
		if (pending.length === 0 && handle) return
		let looked = handle ? fstatSync(handle.fd) : undefined
		if (handle && looked?.nlink === 0) {
			looked = undefined
			report(
				'gone',
				`The audit log ${path} was removed while the session runs; it goes on in a new file, and "garuda audit verify" will miss the lines before.`,
			)
			await handle.close().catch(() => {})
			handle = await fs.open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)
			size = (await handle.stat()).size
		}
		const first = handle === null
		if (first) await openFile()
		while (pending.length > 0) {
			await add(pending[0]!, '', looked?.size)
			looked = undefined
			pending.shift()
		}
		if (lost > 0) {
			await add(scrub({ kind: 'session', reason: 'lost', detail: { entries: lost } }))
			lost = 0
		}
		failing = false
		if (first) indexing = tell(false)
	}

	/** Does not reject unless `required`. */
	async function save(): Promise<void> {
		try {
			await flush()
		} catch (error) {
			const why = codeOf(error) ?? messageOf(error)
			if (o.required) {
				pending = []
				throw new UserError(
					`The audit log cannot be written (${why}), and the policy demands one: nothing goes on.`,
					`Look at ${path} and the disk it is on.`,
				)
			}
			if (!failing)
				report(
					`write ${why}`,
					`The audit log cannot be written (${why}); what is done goes on without a record until it can.`,
				)
			failing = true
			if (pending.length > maxPending) {
				lost += pending.length - maxPending
				pending = pending.slice(0, maxPending)
			}
		}
	}

	async function index(head: IndexHead): Promise<void> {
		if (!(await setHead(o.dir, o.session, head, o.clock, o.processes)))
			report('lock', `The index of the audit logs is locked by another process: ${o.dir}/index.json.lock`)
	}

	/** The head to the index; `closed` says that nothing comes after it. */
	async function tell(done: boolean): Promise<void> {
		try {
			await index({ lines, hash, time: now(), root: o.redactor.redact(o.root), closed: done })
		} catch (error) {
			report('index', `The index of the audit logs cannot be written: ${codeOf(error) ?? messageOf(error)}`)
		}
	}

	async function anchor(done: boolean): Promise<void> {
		await indexing
		if (!handle || (told === lines && !done)) return
		const fresh = told !== lines
		await handle.sync().catch(() => {})
		await tell(done)
		if (!fresh) return
		told = lines
		const head: Head = { session: o.session, lines, hash, time: now() }
		for (const place of places)
			await place
				.put(head)
				.catch((error: unknown) =>
					report(
						`place ${place.name}`,
						`The audit log's head could not be put to ${place.name}: ${codeOf(error) ?? messageOf(error)}`,
					),
				)
	}

	/** One thing after the other, whatever came of the one before. */
	const inTurn = (work: () => Promise<void>): Promise<void> => {
		const next = queue.then(work, work)
		queue = next.catch(() => {})
		return next
	}

	for (const place of await placesInside(o.root, o.checkpoint, o.witnesses))
		report(
			`inside ${place}`,
			`${place} lies in the working root, where the agent can write: as a second place for the audit log it proves nothing.`,
		)

	return {
		append: (entry) =>
			inTurn(async () => {
				if (closed) return
				pending.push(scrub(entry))
				await save()
			}),
		turnEnd: () =>
			inTurn(async () => {
				if (closed) return
				if (pending.length > 0) await save()
				await anchor(false)
			}).catch((error: unknown) => report('turn', messageOf(error))),
		onProblem(report) {
			listener = report
			for (const text of unheard.splice(0)) report(text)
		},
		close: () =>
			inTurn(async () => {
				if (closed) return
				closed = true
				// A session that did nothing leaves no log.
				if (handle || pending.length > 0) {
					pending.push({ kind: 'session', reason: 'end' })
					await save()
					await anchor(pending.length === 0)
				}
				for (const place of places) await place.close()
				await handle?.close()
				handle = null
			}).catch((error: unknown) => report('close', messageOf(error))),
	}
}
