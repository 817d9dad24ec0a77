// A real log of a few turns, and ways to do to it what a tamperer does. For the tests of audit/ and inspect/audit.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AuditLine, genesis, seal } from '../../../src/engine/audit/chain.ts'
import { type AuditOptions, auditFile, createAuditLog } from '../../../src/engine/audit/log.ts'
import { type VerifyOptions, verifyAudit } from '../../../src/engine/audit/verify.ts'
import { createRedactor } from '../../../src/engine/config/redact.ts'
import type { AuditEntry, AuditLog, Clock } from '../../../src/engine/ports.ts'
import { createGit } from '../../../src/engine/sandbox/git.ts'

export const one = '01j00000000000aa'
export const two = '01j00000000000bb'

/** A clock that moves a second a look, with real (short) sleeps for locks. */
export const clock = (): Clock => {
	let time = Date.UTC(2026, 0, 2, 3, 4, 5)
	return {
		now: () => {
			time += 1000
			return time
		},
		sleep: (ms) => new Promise((done) => setTimeout(done, ms)),
	}
}

export class Place {
	readonly base: string
	readonly dir: string
	readonly root: string
	readonly reports: string[] = []
	private readonly time = clock()
	private readonly logs: AuditLog[] = []

	private constructor(base: string) {
		this.base = base
		this.dir = join(base, 'home', '.garuda', 'audit')
		this.root = join(base, 'project')
	}

	static async make(): Promise<Place> {
		const base = await mkdtemp(join(tmpdir(), 'garuda-audit-'))
		const { mkdir } = await import('node:fs/promises')
		await mkdir(join(base, 'home', '.garuda'), { recursive: true, mode: 0o700 })
		await mkdir(join(base, 'project'))
		return new Place(base)
	}

	/** Logs that a test left as a killed process would are closed here. */
	async remove(): Promise<void> {
		for (const log of this.logs) await log.close()
		await rm(this.base, { recursive: true, force: true })
	}

	git = async () => createGit({ env: { PATH: process.env.PATH, HOME: this.base } })

	async log(session: string, more: Partial<AuditOptions> = {}): Promise<AuditLog> {
		const log = await createAuditLog({
			dir: this.dir,
			session,
			root: this.root,
			redactor: createRedactor('seed'),
			clock: this.time,
			version: '1.2.3',
			witnesses: [],
			git: this.git,
			...more,
		})
		this.logs.push(log)
		log.onProblem((text) => this.reports.push(text))
		return log
	}

	/** Three turns of two decisions each, then the end: 1 + 6 + 1 lines. */
	async session(id: string, more: Partial<AuditOptions> = {}): Promise<void> {
		const log = await this.log(id, more)
		for (let turn = 1; turn <= 3; turn++) {
			await log.append(decision(`ls ${turn}`, 'allow'))
			await log.append(decision(`rm -rf ${turn}`, 'deny'))
			await log.turnEnd()
		}
		await log.close()
	}

	file = (id: string): string => auditFile(this.dir, id)
	index = (): string => join(this.dir, 'index.json')

	async lines(id: string): Promise<string[]> {
		const text = await readFile(this.file(id), 'utf8')
		return text.split('\n').filter((line) => line !== '')
	}

	parsed = async (id: string): Promise<AuditLine[]> =>
		(await this.lines(id)).map((line) => JSON.parse(line) as AuditLine)

	put = (id: string, lines: string[]): Promise<void> =>
		writeFile(this.file(id), `${lines.join('\n')}\n`, { mode: 0o600 })

	async edit(id: string, change: (lines: string[]) => string[]): Promise<void> {
		await this.put(id, change(await this.lines(id)))
	}

	/** The index says of a session what its file says: what somebody does who knows of it. */
	async fixIndex(id: string): Promise<void> {
		const last = (await this.parsed(id)).at(-1)!
		const index = JSON.parse(await readFile(this.index(), 'utf8')) as { sessions: Record<string, object> }
		index.sessions[id] = { ...index.sessions[id], lines: last.n, hash: last.hash }
		await writeFile(this.index(), JSON.stringify(index))
	}

	verify = (more: Partial<VerifyOptions> = {}) => verifyAudit({ dir: this.dir, places: [], ...more })

	/** The verdict on one session, as few words. */
	async verdict(
		id: string,
		more: Partial<VerifyOptions> = {},
	): Promise<{ ok: boolean; line?: number; kind?: string; why: string }> {
		const found = await this.verify(more)
		const { ok, line, kind, why = '' } = found.sessions.find((session) => session.session === id)!
		return { ok, ...(line === undefined ? {} : { line }), ...(kind === undefined ? {} : { kind }), why }
	}
}

export const decision = (command: string, what: string): AuditEntry => ({
	kind: 'decision',
	callId: 'c1',
	tool: 'bash',
	input: { command },
	decision: what,
	reason: 'rule',
	rule: `${what} bash(*) (settings.json:1)`,
	key: `bash ${command}`,
})

/** The chain from line `from` (1-based) on made anew, with a change in that line: all hashes fit again. */
export function rewrite(lines: string[], from: number, change: (line: AuditLine) => void): string[] {
	const out = lines.slice(0, from - 1)
	let prev =
		from === 1
			? genesis((JSON.parse(lines[0]!) as AuditLine).session)
			: (JSON.parse(lines[from - 2]!) as AuditLine).hash
	for (const [index, text] of lines.slice(from - 1).entries()) {
		const { hash: _, ...line } = JSON.parse(text) as AuditLine
		if (index === 0) change(line as AuditLine)
		const sealed = seal({ ...line, prev })
		out.push(sealed.text)
		prev = sealed.hash
	}
	return out
}

/** A line with another value and a fitting hash of its own, the rest left as it was. */
export function reseal(text: string, change: (line: AuditLine) => void): string {
	const { hash: _, ...line } = JSON.parse(text) as AuditLine
	change(line as AuditLine)
	return seal(line).text
}
