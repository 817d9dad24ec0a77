// A place for setup's tests: a home of its own, a provider on loopback, a person who answers from a list.
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../../src/engine/ports.ts'
import type { Ask } from '../../../src/engine/setup/ask.ts'
import { SetupCancelled } from '../../../src/engine/setup/ask.ts'
import type { SetupPlace } from '../../../src/engine/setup/place.ts'
import { type Handler, type Reply, type SseServer, startSse } from '../../helpers/sse-server.ts'
import { tempDir } from '../../helpers/temp.ts'

export const goodKey = 'sk-good-0123456789abcdef'

export const clock: Clock = { now: () => Date.UTC(2026, 10, 30), sleep: async () => {} }

export const json = (value: unknown, status = 200): Reply => ({
	status,
	headers: { 'content-type': 'application/json' },
	body: JSON.stringify(value),
})

export const models = (...ids: string[]): Reply =>
	json({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) })

/** A provider that takes one key, in either form of header. */
export const provider =
	(ids = ['small-1', 'big-1']): Handler =>
	(request) =>
		[request.headers['x-api-key'], request.headers.authorization?.replace('Bearer ', '')].includes(goodKey)
			? models(...ids)
			: json(
					{
						error: {
							type: 'authentication_error',
							message: `wrong key ${request.headers['x-api-key'] ?? request.headers.authorization}`,
						},
					},
					401,
				)

export interface Scene {
	home: string
	garuda: string
	place: SetupPlace
	server: SseServer
	close(): Promise<void>
}

/** A home (with no ~/.garuda) and a server; both built-in providers lead to it. */
export async function scene(steps: Handler | Reply[] = provider(), env: Record<string, string> = {}): Promise<Scene> {
	const server = await startSse(steps)
	const home = join(tempDir(), 'home')
	mkdirSync(home, { mode: 0o755 })
	return {
		home,
		garuda: join(home, '.garuda'),
		place: {
			home,
			env: { ANTHROPIC_BASE_URL: server.url, OPENAI_BASE_URL: `${server.url}/v1`, ...env },
			platform: 'linux',
			clock,
			localPlaces: [],
			checkMs: 2_000,
			managedPolicy: join(home, 'no-policy.json'),
		},
		server,
		close: () => server.close(),
	}
}

/** Answers in order. A choice is named by (a part of) its name, `secret` and `text` are typed, `confirm` is yes or no. */
export function person(answers: (string | boolean)[]): Ask & { said: string[]; asked: string[]; left(): number } {
	const said: string[] = []
	const asked: string[] = []
	const next = (question: string): string | boolean => {
		asked.push(question)
		const answer = answers.shift()
		if (answer === undefined) throw new SetupCancelled(`nobody answers: ${question}\n${said.join('\n')}`)
		return answer
	}
	return {
		said,
		asked,
		left: () => answers.length,
		say: (text) => void said.push(text),
		async choose(question, choices) {
			const wanted = String(next(`${question} ${choices.map((one) => `${one.name} (${one.note ?? ''})`).join(' | ')}`))
			const found = choices.find((one) => one.name === wanted) ?? choices.find((one) => one.name.includes(wanted))
			if (!found) throw new Error(`no "${wanted}" among: ${choices.map((one) => one.name).join(', ')}`)
			return found.value
		},
		async text(question, options = {}) {
			const typed = String(next(question)) || (options.initial ?? '')
			const wrong = options.check?.(typed)
			if (wrong) {
				said.push(wrong)
				return this.text(question, options)
			}
			return typed
		},
		secret: async (question) => String(next(question)),
		confirm: async (question) => next(question) === true,
	}
}

/** A port of this machine that nobody listens on. */
export async function freePort(): Promise<number> {
	const server = createServer()
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
	const { port } = server.address() as { port: number }
	await new Promise<void>((done) => server.close(() => done()))
	return port
}
