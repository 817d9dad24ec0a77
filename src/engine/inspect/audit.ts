// `garuda audit verify` and `garuda audit show`: the log read for a person or a script. A service on top of the engine.
import { promises as fs } from 'node:fs'
import { type AuditLine, openPlain, rawLines, readLine } from '../audit/chain.ts'
import { type SessionVerdict, type Verification, verifyAudit } from '../audit/verify.ts'
import { auditPlaces, readCheckpoint, readWitness, type WitnessSpec, witnessName, witnessOf } from '../audit/witness.ts'
import { garudaPaths } from '../config/paths.ts'
import { loadPolicy, policyPlaces } from '../config/policy.ts'
import { loadSettings } from '../config/settings.ts'
import { codeOf, UserError } from '../errors.ts'
import { oneLine, visible } from '../text.ts'
import type { Json } from '../types.ts'

/** Where to look: nothing of it comes from a project. */
export interface AuditPlace {
	home: string
	garudaHome?: string | undefined
	cwd: string
	env: Record<string, string | undefined>
	platform: string
	/** Only for tests: another managed policy, and who must own it. */
	managedPolicy?: string
	policyOwner?: number | null
}

const folder = (place: AuditPlace) => {
	const paths = garudaPaths(place.home, place.home, place.garudaHome)
	return { paths, dir: `${paths.home}/audit` }
}

/** The second places of the user's settings and of the team policy, together; not those of any project. */
async function secondPlaces(place: AuditPlace) {
	const { paths } = folder(place)
	// One file for both levels, so that there is no project's.
	const own = { home: paths.home, project: { ...paths.project, dir: paths.home, settings: paths.settings } }
	const { settings } = await loadSettings({ settings: paths.settings, project: own.project })
	const { managedPolicy, policyOwner } = place
	const places = policyPlaces(own, place.platform, managedPolicy)
	const { policy } = await loadPolicy(policyOwner === undefined ? places : { ...places, owner: policyOwner })
	const mine = auditPlaces(settings.audit, place.home)
	const { checkpoint, witness } = policy?.audit ?? { witness: [] }
	const team = auditPlaces(
		{
			enabled: true,
			...(checkpoint ? { checkpoint: checkpoint.value } : {}),
			witness: witness.map((one) => one.value),
		},
		place.home,
	)
	return {
		checkpoints: [...new Set([mine.checkpoint, team.checkpoint].filter((one) => one !== undefined))],
		witnesses: [...mine.witnesses, ...team.witnesses],
	}
}

// ---------------------------------------------------------------- verify

export interface VerifyFlags {
	session?: string | undefined
	/** Folders or repositories besides those of the settings. */
	witness?: readonly string[] | undefined
	json?: boolean | undefined
}

/** The report and whether all is well. A UserError for settings or a policy that cannot be read: what they name would be left out. */
export async function auditVerify(place: AuditPlace, flags: VerifyFlags): Promise<{ text: string; ok: boolean }> {
	const { dir } = folder(place)
	const { checkpoints, witnesses } = await secondPlaces(place)
	const more = await Promise.all((flags.witness ?? []).map((text) => witnessOf(text, place.cwd)))
	const git = async () => (await import('../sandbox/git.ts')).createGit({ env: place.env })
	const places = [
		...(await Promise.all(checkpoints.map(readCheckpoint))),
		...(await Promise.all(unique([...witnesses, ...more]).map((spec) => readWitness(spec, git)))),
	]
	const found = await verifyAudit({
		dir,
		places,
		...(flags.session ? { sessions: [await sessionOf(dir, flags.session)] } : {}),
	})
	return { text: flags.json ? `${JSON.stringify({ version: 1, ...found })}\n` : verifyText(found, dir), ok: found.ok }
}

const unique = (specs: readonly WitnessSpec[]): WitnessSpec[] => [
	...new Map(specs.map((spec) => [witnessName(spec), spec])).values(),
]

function verifyText(found: Verification, dir: string): string {
	const line = (one: SessionVerdict): string => {
		const name = `${one.session}  `
		const notes = one.notes.map((note) => `${' '.repeat(name.length)}note: ${note}`)
		const count = `${one.lines} ${one.lines === 1 ? 'line' : 'lines'}`
		if (one.ok) return [`${name}ok  ${count}${one.last ? `, the last of ${one.last}` : ''}`, ...notes].join('\n')
		return [`${name}BAD ${one.line === undefined ? '' : `line ${one.line}: `}${one.why} [${one.kind}]`, ...notes].join(
			'\n',
		)
	}
	const bad = found.sessions.filter((one) => !one.ok).length
	const parts = [
		...found.sessions.map(line),
		...found.problems.map((text) => `BAD ${text}`),
		...found.notes.map((text) => `note: ${text}`),
		found.sessions.length === 0
			? `There are no audit logs in ${dir}.`
			: bad > 0
				? `${bad} of ${found.sessions.length} logs are not as Garuda wrote them.`
				: found.problems.length > 0
					? `The chains of all ${found.sessions.length} logs hold, but see above.`
					: `All ${found.sessions.length} logs are as Garuda wrote them.`,
		found.against.length > 0
			? `Checked against the index and ${found.against.join(', ')}.`
			: 'Checked against the index only: a log and the index rewritten together would not be seen. A second place (audit.witness) closes that.',
	]
	return `${visible(parts.join('\n'))}\n`
}

/** The one session whose id begins so. */
async function sessionOf(dir: string, text: string): Promise<string> {
	const names = (await fs.readdir(dir).catch(() => []))
		.filter((name) => name.endsWith('.jsonl'))
		.map((name) => name.slice(0, -6))
	if (names.includes(text)) return text
	const matching = names.filter((name) => name.startsWith(text))
	if (matching.length > 1)
		throw new UserError(
			`"${oneLine(text, 60)}" is the beginning of ${matching.length} sessions.`,
			'Give more of the id.',
		)
	// A deleted file has no name here; verify says what the index knows of it.
	return matching[0] ?? text
}

// ---------------------------------------------------------------- show

export interface ShowFlags {
	session?: string | undefined
	tool?: string | undefined
	decision?: string | undefined
	kind?: string | undefined
	/** A day, a moment, or how long ago: 2026-11-30, 2026-11-30T15:00, 90m, 12h, 7d. */
	since?: string | undefined
	/** Only what was denied, refused or cancelled. */
	denied?: boolean | undefined
	/** The lines as they are, one JSON object each. */
	json?: boolean | undefined
}

/**
 * The matching lines, a piece at a time: sessions by the time of their first line, lines in order. Reads only; does not
 * verify. UserError for a filter that cannot be understood.
 */
export async function* auditShow(place: AuditPlace, flags: ShowFlags, now: number): AsyncGenerator<string> {
	const { dir } = folder(place)
	const since = flags.since === undefined ? null : sinceTime(flags.since, now)
	let names: string[]
	try {
		names = (await fs.readdir(dir))
			.filter((name) => /^[0-9a-z][0-9a-z-]*\.jsonl$/.test(name))
			.map((name) => name.slice(0, -6))
	} catch (error) {
		if (codeOf(error) !== 'ENOENT') throw new UserError(`${dir} cannot be read (${codeOf(error)}).`)
		names = []
	}
	if (flags.session !== undefined) {
		const id = await sessionOf(dir, flags.session)
		if (!names.includes(id)) throw new UserError(`There is no audit log of a session ${oneLine(flags.session, 60)}.`)
		names = [id]
	}
	const files: { id: string; first: string }[] = []
	for (const id of names) files.push({ id, first: (await firstLine(`${dir}/${id}.jsonl`))?.time ?? '' })
	files.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : a.id < b.id ? -1 : 1))
	const matches = filter(flags, since)
	let shown = 0
	for (const { id } of files) {
		let head = false
		for await (const text of linesOf(`${dir}/${id}.jsonl`)) {
			if (text.line && !matches(text.line)) continue
			// What cannot be read may be what was asked for: it is never left out in silence.
			shown++
			if (flags.json) {
				yield text.line ? `${text.raw}\n` : `${JSON.stringify({ session: id, unreadable: text.at })}\n`
				continue
			}
			if (!head) yield `${shown > 1 ? '\n' : ''}session ${id}\n`
			head = true
			yield `${text.line ? showLine(text.line) : `  line ${text.at} cannot be read; see garuda audit verify`}\n`
		}
	}
	if (shown === 0 && !flags.json)
		yield names.length === 0 ? `There are no audit logs in ${dir}.\n` : 'No line of the audit log matches.\n'
}

const refusals = new Set(['deny', 'cancel', 'refused', 'left_out'])

const filter =
	(flags: ShowFlags, since: string | null) =>
	(line: AuditLine): boolean =>
		(flags.tool === undefined || line.tool === flags.tool) &&
		(flags.decision === undefined || line.decision === flags.decision) &&
		(flags.kind === undefined || line.kind === flags.kind) &&
		(since === null || line.time >= since) &&
		(flags.denied !== true || refusals.has(line.decision ?? '') || line.status === 'denied')

async function firstLine(path: string): Promise<AuditLine | null> {
	for await (const { line } of linesOf(path)) return line
	return null
}

/** A file that is gone meanwhile, or is none, has no lines here: verify is who complains. */
async function* linesOf(path: string): AsyncGenerator<{ at: number; raw: string; line: AuditLine | null }> {
	const handle = await openPlain(path).catch(() => null)
	if (!handle) return
	try {
		let at = 0
		for await (const raw of rawLines(handle)) {
			const text = raw.bytes.toString('latin1')
			const read = raw.long ? null : readLine(text)
			// Bytes that Garuda did not write must not reach a terminal.
			yield { at: ++at, raw: text.replace(/[^\x20-\x7e]/g, '?'), line: read?.line ?? null }
		}
	} finally {
		await handle.close()
	}
}

function showLine(line: AuditLine): string {
	const what = line.decision ?? line.status ?? line.reason ?? ''
	const parts = [
		line.time.slice(0, 19).replace('T', ' '),
		`#${line.n}`.padEnd(5),
		line.kind.padEnd(8),
		[line.tool, what].filter(Boolean).join(' '),
	]
	const rest = [
		line.input === undefined ? '' : brief(line.input),
		line.decision !== undefined && line.reason ? `because: ${line.reason}` : '',
		line.rule ? `rule: ${line.rule}` : '',
		line.decision !== undefined && line.status ? `status: ${line.status}` : '',
		line.detail === undefined ? '' : brief(line.detail),
		line.cut ? `(${line.cut} parts shortened)` : '',
	].filter((text) => text !== '')
	return `  ${oneLine(parts.join(' '), 200)}${rest.map((text) => `\n        ${oneLine(text, 1000)}`).join('')}`
}

/** The words of an input: a command as it is, else name and value. */
function brief(input: Json): string {
	if (typeof input !== 'object' || input === null || Array.isArray(input))
		return typeof input === 'string' ? input : JSON.stringify(input)
	const entries = Object.entries(input)
	if (entries.length === 1 && typeof entries[0]![1] === 'string') return entries[0]![1]
	return entries
		.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
		.join('  ')
}

const units: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

function sinceTime(text: string, now: number): string {
	const ago = /^(\d{1,6})\s*([mhdw])$/.exec(text.trim())
	const time = ago
		? now - Number(ago[1]) * units[ago[2]!]!
		: /^\d{4}-\d\d-\d\d/.test(text.trim())
			? Date.parse(text.trim())
			: Number.NaN
	if (Number.isNaN(time) || Math.abs(time) > 8.64e15)
		throw new UserError(
			`"${oneLine(text, 60)}" is no time.`,
			'Give a day (2026-11-30), a moment (2026-11-30T15:00Z), or how long ago: 90m, 12h, 7d, 2w.',
		)
	return new Date(time).toISOString()
}
