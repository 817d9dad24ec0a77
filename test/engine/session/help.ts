// What the tests of sessions share: a temporary home and root, a clock, records, and a git that is really git.
import { promises as fs } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock, Redactor, SessionHeader, SessionRecord } from '../../../src/engine/ports.ts'
import { createGit } from '../../../src/engine/sandbox/git.ts'
import { newSessionId } from '../../../src/engine/session/ids.ts'
import { createSessionStore } from '../../../src/engine/session/journal.ts'
import { createSnapshots, type SnapshotOptions } from '../../../src/engine/session/snapshots.ts'
import type { Message } from '../../../src/engine/types.ts'

export const clock: Clock = {
	now: () => Date.now(),
	sleep: (ms, signal) =>
		new Promise((done) => {
			if (signal?.aborted) return done()
			const timer = setTimeout(done, ms)
			signal?.addEventListener('abort', () => {
				clearTimeout(timer)
				done()
			})
		}),
}

const folders: string[] = []

/** A new temporary folder, its real path; removed by `cleanFolders`. */
export async function folder(name = 'garuda-session-'): Promise<string> {
	const path = await fs.realpath(await fs.mkdtemp(join(tmpdir(), name)))
	folders.push(path)
	return path
}

export async function cleanFolders(): Promise<void> {
	for (const path of folders.splice(0)) await fs.rm(path, { recursive: true, force: true })
}

export const redactorOf = (secret: string): Redactor => ({
	redact: (text) => text.replaceAll(secret, '[secret:KEY]'),
	restore: (text) => ({ text, unknown: [] }),
	add: () => {},
})

export interface Place {
	root: string
	home: string
}

export const place = async (): Promise<Place> => {
	const base = await folder()
	const at = { root: join(base, 'project'), home: join(base, 'home') }
	await fs.mkdir(at.root)
	await fs.mkdir(at.home, { mode: 0o700 })
	return at
}

export const storeOf = (at: Place, more: { redactor?: Redactor; origin?: string } = {}) =>
	createSessionStore({
		root: at.root,
		projectDir: join(at.root, '.garuda'),
		index: join(at.home, 'sessions.json'),
		origin: more.origin ?? 'here:me',
		redactor: more.redactor ?? null,
		clock,
		version: '0.1.0',
	})

export const header = (at: Place, more: Partial<SessionHeader> = {}): SessionHeader => ({
	version: 1,
	id: newSessionId(Date.now()),
	root: at.root,
	created: Date.now(),
	system: 'You are Garuda.',
	tools: [],
	model: 'test/one',
	origin: 'here:me',
	garuda: '0.1.0',
	...more,
})

let tick = 1
export const time = (): number => tick++

export const say = (text: string): Message => ({ role: 'user', blocks: [{ type: 'text', text }] })
export const reply = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, thinking: 0, requests: 1, cost: 0.01 }

export const user = (text: string): SessionRecord => ({ type: 'user', time: time(), message: say(text), prompt: text })
export const note = (text: string): SessionRecord => ({ type: 'user', time: time(), message: say(text), prompt: '' })
export const assistant = (text: string, stop = 'end'): SessionRecord => ({
	type: 'assistant',
	time: time(),
	message: reply(text),
	usage,
	model: 'test/one',
	stop,
})
export const call = (
	id: string,
	name = 'bash',
	input: Record<string, unknown> = { command: 'true' },
): SessionRecord => ({
	type: 'assistant',
	time: time(),
	message: { role: 'assistant', blocks: [{ type: 'tool_call', id, name, input }] },
	usage,
	model: 'test/one',
	stop: 'tool_calls',
})
export const results = (
	id: string,
	text: string,
	status: 'ok' | 'failed' | 'denied' | 'cancelled' = 'ok',
): SessionRecord => ({
	type: 'results',
	time: time(),
	message: { role: 'user', blocks: [{ type: 'tool_result', callId: id, status, text }] },
})
export const end = (turn: number, reason = 'done'): SessionRecord => ({
	type: 'end',
	time: time(),
	turn,
	reason,
	usage,
})
export const snapshot = (turn: number, id: string | null): SessionRecord => ({
	type: 'snapshot',
	time: time(),
	turn,
	id,
})

export const turn = (number: number, prompt: string, answer = `answer to ${prompt}`): SessionRecord[] => [
	user(prompt),
	snapshot(number, `s${number}a`),
	assistant(answer),
	snapshot(number, `s${number}b`),
	end(number),
]

export const start = (more: Partial<SessionHeader> = {}): SessionRecord => ({
	type: 'start',
	...header({ root: '/p', home: '/h' }, more),
})

export const journalOf = (at: Place, id: string): string => join(at.root, '.garuda', 'sessions', `${id}.jsonl`)

/** The UserError (or other) that a promise rejects with. */
export async function thrown(promise: Promise<unknown>): Promise<Error & { hint?: string }> {
	try {
		await promise
	} catch (error) {
		return error as Error
	}
	throw new Error('it did not throw')
}

/** The same of several, none left without a listener. */
export const allThrown = (...promises: Promise<unknown>[]) => Promise.all(promises.map(thrown))

export const git = createGit({ env: process.env })

export const snapshotsOf = (root: string, store: string, more: Partial<SnapshotOptions> = {}) =>
	createSnapshots({
		root,
		store,
		git,
		budget: { bytes: 50_000_000, ms: 10_000 },
		keep: { days: 30, bytes: 5e9 },
		clock,
		...more,
	})

export const never = new AbortController().signal
