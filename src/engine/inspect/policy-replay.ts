// `garuda policy replay`: every recorded decision under the present rules, or others, and what would differ. Beside policy.ts.
import { promises as fs } from 'node:fs'
import { join, resolve } from 'node:path'
import { openPlain, rawLines, readLine } from '../audit/chain.ts'
import { systemClock } from '../clock.ts'
import { garudaPaths } from '../config/paths.ts'
import { codeOf, messageOf, UserError } from '../errors.ts'
import {
	type Change,
	type RecordedDecision,
	type ReplayEvent,
	type ReplayLine,
	replayDecisions,
} from '../permission/replay.ts'
import type { SessionRecord } from '../ports.ts'
import { createSessionStore } from '../session/journal.ts'
import { oneLine, visible } from '../text.ts'
import type { Json } from '../types.ts'
import { type Drafts, type PolicyPlace, type RuleRoom, ruleRoom } from './policy.ts'

export interface ReplayFlags extends Drafts {
	cd?: string | undefined
	/** Sessions of all folders that the index knows. */
	all?: boolean | undefined
	/** One session, by the beginning of its id. */
	session?: string | undefined
	/** An audit log, or the folder of them, instead of the journals. */
	audit?: string | undefined
	/** Each line, also those that come out the same. */
	lines?: boolean | undefined
	json?: boolean | undefined
}

interface Recorded {
	session: string
	root: string
	events: ReplayEvent[]
}

export interface ReplayReport {
	sessions: { session: string; root: string; lines: ReplayLine[] }[]
	counts: Record<Change, number>
	/** What could not be looked at. */
	problems: string[]
}

/** The text, or one JSON object. UserError as at the start of a session: a rule set that cannot be read replays nothing. */
export async function policyReplay(place: PolicyPlace, flags: ReplayFlags): Promise<string> {
	const report = await replayReport(place, flags)
	return flags.json ? `${JSON.stringify({ version: 1, ...report })}\n` : replayText(report, flags.lines ?? false)
}

export async function replayReport(place: PolicyPlace, flags: ReplayFlags): Promise<ReplayReport> {
	const problems: string[] = []
	const recorded =
		flags.audit === undefined ? await journals(place, flags, problems) : await audits(place, flags, problems)
	const rooms = new Map<string, Promise<RuleRoom>>()
	const counts: ReplayReport['counts'] = {
		same: 0,
		asked_less: 0,
		asked_more: 0,
		blocked: 0,
		unblocked: 0,
		not_comparable: 0,
	}
	const sessions: ReplayReport['sessions'] = []
	// The rules are read even when nothing is recorded: a broken set is never "no difference".
	const here = resolve(place.cwd, flags.cd ?? '.')
	const roomOf = (root: string) => {
		const known = rooms.get(root) ?? ruleRoom(place, root, flags, true)
		rooms.set(root, known)
		return known
	}
	await roomOf(here)
	for (const { session, root, events } of recorded) {
		if (events.every((event) => event.type === 'start')) continue
		let room: RuleRoom
		try {
			room = await roomOf(root)
		} catch (error) {
			if (!(error instanceof UserError) || !flags.all) throw error
			problems.push(`${session}: the rules of ${oneLine(root)} cannot be read: ${error.message}`)
			continue
		}
		const lines = await replayDecisions(events, (fixed, dirs) => room.deciderWith(fixed, dirs))
		for (const line of lines) counts[line.change]++
		sessions.push({ session, root, lines })
	}
	return { sessions, counts, problems }
}

// ---------------------------------------------------------------- where records come from

async function journals(place: PolicyPlace, flags: ReplayFlags, problems: string[]): Promise<Recorded[]> {
	const folder = resolve(place.cwd, flags.cd ?? '.')
	const root = await fs.realpath(folder).catch((error: unknown) => {
		throw new UserError(`The folder cannot be opened: ${folder} (${codeOf(error) ?? messageOf(error)})`)
	})
	const paths = garudaPaths(place.home, root, place.garudaHome)
	const store = createSessionStore({
		root,
		projectDir: paths.project.dir,
		index: paths.sessions,
		origin: '',
		redactor: null,
		clock: systemClock,
		version: '0',
	})
	let found = (await store.list()).filter((one) => flags.all || flags.session !== undefined || one.root === root)
	if (flags.session !== undefined) {
		const wanted = flags.session.trim().toLowerCase()
		found = found.filter((one) => one.id.startsWith(wanted))
		if (found.length === 0) throw new UserError(`No session begins with "${oneLine(wanted, 60)}".`)
	}
	const recorded: Recorded[] = []
	for (const { id } of found.toReversed())
		try {
			const { header, records } = await store.read(id)
			recorded.push({ session: id, root: header.root, events: records.flatMap(eventOf) })
		} catch (error) {
			problems.push(`${id}: ${messageOf(error)}`)
		}
	return recorded
}

const eventOf = (record: SessionRecord): ReplayEvent[] => {
	if (record.type === 'resume') return [{ type: 'start' }]
	return record.type === 'decision' ? [{ type: 'decision', decision: record as RecordedDecision }] : []
}

/** An audit log's decisions; their context is the entry's detail. A chain that is broken is `garuda audit verify`'s matter. */
async function audits(place: PolicyPlace, flags: ReplayFlags, problems: string[]): Promise<Recorded[]> {
	const given = resolve(place.cwd, flags.audit!)
	const stat = await fs.stat(given).catch((error: unknown) => {
		throw new UserError(`${given} cannot be read (${codeOf(error) ?? messageOf(error)}).`)
	})
	const files = stat.isDirectory()
		? (await fs.readdir(given)).filter((name) => name.endsWith('.jsonl')).map((name) => join(given, name))
		: [given]
	const recorded: Recorded[] = []
	for (const file of files.sort()) {
		try {
			recorded.push(await auditOf(file, place))
		} catch (error) {
			problems.push(`${file}: ${messageOf(error)}`)
		}
	}
	const wanted = flags.session?.trim().toLowerCase()
	return wanted === undefined ? recorded : recorded.filter((one) => one.session.startsWith(wanted))
}

async function auditOf(file: string, place: PolicyPlace): Promise<Recorded> {
	const handle = await openPlain(file)
	const found: Recorded = { session: '', root: place.cwd, events: [] }
	try {
		for await (const { bytes, long } of rawLines(handle)) {
			const read = long ? null : readLine(bytes.toString('utf8'))
			if (!read) continue
			const { line } = read
			const detail = line.detail as Record<string, Json> | undefined
			found.session ||= line.session
			if (line.kind === 'session' && typeof detail?.root === 'string') {
				found.root = detail.root
				found.events.push({ type: 'start' })
			}
			if (line.kind !== 'decision') continue
			const { tool = '', input = null, decision = '', reason = '', rule, key = '' } = line
			// What the log shortened is not what was decided on.
			const context = 'cut' in line ? undefined : (detail?.context ?? detail)
			found.events.push({
				type: 'decision',
				decision: {
					...{ time: Date.parse(line.time) || 0, tool, input, decision, reason, key },
					...(rule === undefined ? {} : { rule }),
					...(context === undefined ? {} : { context }),
				},
			})
		}
	} finally {
		await handle.close()
	}
	return found
}

// ---------------------------------------------------------------- words

const titles: [Change, string][] = [
	['blocked', 'blocked: would be refused now'],
	['asked_more', 'asked more: would ask now'],
	['asked_less', 'asked less: would need no question now'],
	['unblocked', 'no longer blocked: was refused'],
	['not_comparable', 'not comparable'],
	['same', 'the same'],
]

function replayText({ sessions, counts, problems }: ReplayReport, all: boolean): string {
	const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
	const words = titles.map(([change, title]) => `${counts[change]} ${title.split(':')[0]}`)
	const out = [
		total === 0
			? 'No decisions are recorded here.'
			: `${total} recorded decision${total === 1 ? '' : 's'} of ${sessions.length} session${sessions.length === 1 ? '' : 's'}: ${words.join(', ')}.`,
	]
	for (const [change, title] of titles) {
		if (counts[change] === 0 || (change === 'same' && !all)) continue
		// Equal lines of equal cause are one, with a count.
		const groups = new Map<string, { text: string; count: number }>()
		for (const { session, lines } of sessions)
			for (const line of lines) {
				if (line.change !== change) continue
				const text = lineText(line)
				const key = all ? `${session}${line.index}` : text
				const group = groups.get(key) ?? { text: `  ${session.slice(0, 10)} #${line.index}  ${text}`, count: 0 }
				group.count++
				groups.set(key, group)
			}
		out.push('', title)
		for (const { text, count } of groups.values()) out.push(count > 1 ? `${text}  (${count} times)` : text)
	}
	for (const problem of problems) out.push(`note: ${visible(problem)}`)
	return `${out.join('\n')}\n`
}

function lineText(line: ReplayLine): string {
	const what = `${line.tool}: ${oneLine(line.what, 200)}`
	if (line.change === 'not_comparable') return `${what}\n      ${visible(line.reason)}`
	const rule = line.rule
		? `${oneLine(line.rule.text, 120)} (${line.rule.file}:${line.rule.line})`
		: visible(line.reason)
	const way = line.was === line.now ? line.now : `${line.was} → ${line.now}`
	return `${what}\n      ${way}  by ${rule}${line.answer ? `; then answered "${oneLine(line.answer, 20)}"` : ''}`
}
