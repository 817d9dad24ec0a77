// The trust store: what the user agreed to of a project's own configuration, pinned to the bytes they saw. Before a session opens.
import { createHash } from 'node:crypto'
import { lstat, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { GarudaPaths } from '../config/paths.ts'
import { messageOf } from '../errors.ts'
import type { Approver, AuditEntry, Clock } from '../ports.ts'
import { hasHidden, hiddenWarning, oneLine } from '../text.ts'
import type { ApprovalRequest } from '../types.ts'
import { changeTrust, type Entry, readTrust } from './trust-file.ts'

export type TrustKind = 'project-settings' | 'network' | 'mcp' | 'hooks' | 'command' | 'skill' | 'agent'
export type Consent = 'granted' | 'refused' | 'left_out'

/** One thing of a project that loosens safety or runs. */
export interface Artefact {
	kind: TrustKind
	/** The real path of the working root. */
	root: string
	/** Of one among several (a server, a command); the file's own name else. */
	name: string
	/** The file it stands in, absolute. */
	path: string
	/** What it means, in full: shown first. The decoded bytes are shown as well when they are something else. */
	text: string
	/** Exactly the bytes that were parsed. */
	bytes: Uint8Array
	/** Files of the project that it runs or reads (a script of its command): pinned with it. */
	files?: readonly { path: string; bytes: Uint8Array }[]
	/** Says in the caller's own words that nobody could be asked; without it a notice does. `why` and `way` are parts of a sentence. */
	leftOut?(why: string, way: string): void
}

export interface TrustStore {
	/**
	 * Pinned to these very bytes: granted with no question. Else, where somebody can answer, asks; a change asks again.
	 * Where nobody can: left out. A link, or a file replaced while the question stood, is refused. Never throws but for a
	 * trust file that must not be used (a link, another's): UserError.
	 */
	consent(artefact: Artefact, signal: AbortSignal): Promise<Consent>
	/** What was agreed to, newest first. */
	list(): Promise<Entry[]>
	/** Takes consents back; how many there were. */
	forget(kind: TrustKind, root: string, name?: string): Promise<number>
	/** The last question was answered by a stop of the task, which is more than a no. */
	stopped(): boolean
	/** What the person should hear, in order; emptied by the call. */
	notices(): string[]
}

export interface TrustDeps {
	/** ~/.garuda/trust.json; `trustFile` has it. */
	file: string
	clock: Clock
	approver: Approver
	/** Somebody is there who can read and answer. */
	interactive: boolean
	/** For the audit log. */
	record?(entry: AuditEntry): void
}

export const trustFile = (paths: Pick<GarudaPaths, 'home'>): string => join(paths.home, 'trust.json')

/** What a consent is pinned to: the bytes, and those of the files with it. */
export function consentHash({ bytes, files = [] }: Pick<Artefact, 'bytes' | 'files'>): string {
	const hash = createHash('sha256').update(bytes)
	const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
	for (const file of sorted) hash.update(`\0${file.path}\0${createHash('sha256').update(file.bytes).digest('hex')}`)
	return hash.digest('hex')
}

const what: Record<TrustKind, string> = {
	'project-settings': "this project's settings, which loosen safety",
	network: "this project's list of hosts that commands may reach",
	mcp: "this project's MCP server",
	hooks: "this project's hooks, which run commands",
	command: "this project's slash command",
	skill: "this project's skill",
	agent: "this project's agent",
}

/** How to be asked: a command is asked about when it is used, all else at a start. */
const way = ({ kind, root, name }: Artefact): string =>
	`Start garuda once in a terminal in ${oneLine(root, 300)}${kind === 'command' ? ` and type /${oneLine(name, 100)} there` : ''}`

/** Above this nobody reads it, so nobody can agree to it. */
const maxShown = 256 * 1024

/** The consents of one user. Reads the file anew at each question: another Garuda may have asked meanwhile. */
export function createTrustStore(deps: TrustDeps): TrustStore {
	const { file, approver, clock } = deps
	const told: string[] = []
	/** Answers of this run alone: "this time only", and a no that is not asked again. */
	const now = new Map<string, 'granted' | 'refused'>()
	let questions = 0
	let stopped = false

	const keyOf = ({ kind, root, name, path }: Pick<Artefact, 'kind' | 'root' | 'name' | 'path'>) =>
		JSON.stringify([kind, root, name, path])

	function finish(artefact: Artefact, sha256: string, decision: Consent, reason: string): Consent {
		deps.record?.({
			kind: 'consent',
			tool: 'trust',
			decision,
			reason,
			key: `${artefact.kind}:${artefact.path}`,
			detail: { kind: artefact.kind, root: artefact.root, name: artefact.name, path: artefact.path, sha256 },
		})
		return decision
	}

	async function consent(artefact: Artefact, signal: AbortSignal): Promise<Consent> {
		const sha256 = consentHash(artefact)
		const key = keyOf(artefact)
		const shown = oneLine(artefact.path, 300)
		const refuse = (why: string): Consent => {
			told.push(`${shown} is left out: ${why}.`)
			return finish(artefact, sha256, 'refused', why)
		}
		const before = await look(artefact.path)
		if (typeof before === 'string') return refuse(before)
		const { entries } = await readTrust(file, told)
		const pinned = entries.find((one) => keyOf(one) === key)
		if (pinned?.sha256 === sha256) return finish(artefact, sha256, 'granted', 'pinned')
		const answered = now.get(`${key}${sha256}`)
		if (answered) return finish(artefact, sha256, answered, 'answered before in this run')
		if (!deps.interactive) {
			const why = pinned ? 'it was changed since you agreed to it' : 'you have not agreed to it'
			if (artefact.leftOut) artefact.leftOut(why, way(artefact))
			else
				told.push(
					`${shown} (${artefact.kind}) is left out: ${why}, and nobody can be asked here. ${way(artefact)} to look at it and decide.`,
				)
			return finish(artefact, sha256, 'left_out', why)
		}
		const text = wholeText(artefact)
		if (text === null) return refuse('it is no UTF-8 text, so it cannot be shown')
		if (text.length > maxShown)
			return refuse(`it is longer than ${maxShown / 1024} KB, too long to be read and agreed to`)

		const choice = await ask(request(artefact, `trust-${++questions}`, sha256, text, pinned !== undefined), signal)
		if (choice !== 'once' && choice !== 'session') {
			if (!signal.aborted) now.set(`${key}${sha256}`, 'refused')
			return finish(artefact, sha256, 'refused', 'the user said no')
		}
		const after = await look(artefact.path)
		if (typeof after === 'string') return refuse(after)
		if (after.stamp !== before.stamp)
			return refuse('it was changed while the question stood; start again to see what it is now')
		now.set(`${key}${sha256}`, 'granted')
		if (choice === 'session') await pin(artefact, sha256, shown)
		return finish(artefact, sha256, 'granted', choice === 'session' ? 'trusted from now on' : 'this time only')
	}

	/** An answer that cannot be kept still counts for this run. */
	async function pin({ kind, root, name, path }: Artefact, sha256: string, shown: string): Promise<void> {
		const entry: Entry = { kind, root, name, path, sha256, time: clock.now() }
		try {
			await changeTrust(file, clock, told, (entries) => [
				...entries.filter((one) => keyOf(one) !== keyOf(entry)),
				entry,
			])
		} catch (error) {
			told.push(`Your consent to ${shown} counts for this run only: ${messageOf(error)}`)
		}
	}

	/** A question that fails, or ends by an abort, was answered with no. */
	async function ask(question: ApprovalRequest, signal: AbortSignal): Promise<string> {
		if (signal.aborted) return 'deny'
		try {
			const { choice } = await approver.ask(question, signal)
			stopped = choice === 'cancel'
			return signal.aborted || !question.choices.includes(choice) ? 'deny' : choice
		} catch {
			return 'deny'
		}
	}

	return {
		consent,
		list: async () => (await readTrust(file, told)).entries.toSorted((a, b) => b.time - a.time),
		async forget(kind, root, name) {
			const matches = (one: Entry) =>
				one.kind === kind && one.root === root && (name === undefined || one.name === name)
			let count = 0
			await changeTrust(file, clock, told, (entries) => {
				count = entries.filter(matches).length
				return entries.filter((one) => !matches(one))
			})
			for (const key of now.keys()) {
				const [k, r, n] = JSON.parse(key.slice(0, -64)) as string[]
				if (k === kind && r === root && (name === undefined || n === name)) now.delete(key)
			}
			return count
		},
		stopped: () => stopped,
		notices: () => told.splice(0),
	}
}

/** A mark of the file's state now, or why it must not count: a link, on the way to it too, could be led elsewhere later. */
async function look(path: string): Promise<{ stamp: string } | string> {
	try {
		const stat = await lstat(path, { bigint: true })
		if (stat.isSymbolicLink()) return 'it is a link'
		if (!stat.isFile()) return 'it is no regular file'
		if ((await realpath(dirname(path))) !== dirname(path)) return 'a folder on the way to it is a link'
		return { stamp: `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}` }
	} catch {
		return 'it is not there any more'
	}
}

/** The caller's words and everything that is hashed; null when the bytes are no text. */
function wholeText({ text, bytes, path, files = [] }: Artefact): string | null {
	const parts = [text.trimEnd()]
	for (const one of [{ path, bytes }, ...files]) {
		let decoded: string
		try {
			decoded = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(one.bytes)
		} catch {
			return null
		}
		if (decoded.trimEnd() !== text.trimEnd()) parts.push(`\n${oneLine(one.path, 300)}:\n${decoded.trimEnd()}`)
	}
	return parts.join('\n')
}

function request(artefact: Artefact, id: string, sha256: string, preview: string, changed: boolean): ApprovalRequest {
	const { kind, path, root, name } = artefact
	const title = `${changed ? 'Changed since you agreed to it. ' : ''}Trust ${what[kind]}? ${oneLine(path, 200)}`
	const warnings = [
		`It comes with the folder ${oneLine(root, 200)}, not from you. Agree only to what you understand.`,
		...(hasHidden([preview, path, root, name].join('\n')) ? [hiddenWarning] : []),
	]
	return {
		id,
		tool: 'trust',
		info: { title, kind: 'other', access: 'none', paths: [path], key: `trust:${kind}:${path}:${sha256}`, preview },
		title,
		preview,
		warning: warnings.join('\n'),
		choices: ['once', 'session', 'deny'],
		labels: { once: 'this time only', session: 'trust this exact text', deny: 'leave it out' },
	}
}
