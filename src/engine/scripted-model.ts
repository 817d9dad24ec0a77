// Models that play a file, and a writer of such files: for tests, demos and rehearsals of the real thing. Named by the environment.
import { readFile } from 'node:fs/promises'
import { systemClock } from './clock.ts'
import { codeOf, messageOf, UserError } from './errors.ts'
import type { RecordedEntry } from './model/recording.ts'
import type { Clock, ModelClient } from './ports.ts'
import type { ModelSpec } from './types.ts'

/** What a script's model is said to be; its price is 0 with the day of this line. */
export const scriptedSpec: ModelSpec = {
	provider: 'scripted',
	id: 'script',
	window: 200_000,
	maxOutput: 16_384,
	thinking: 'none',
	efforts: [],
	price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, date: '2026-11-30' },
	textToolCalls: 'whole',
}

/** The model of a script file (docs/testing.md has the format). UserError for a file that cannot be read or played. */
export async function scriptedFromFile(
	file: string,
	clock: Clock = systemClock,
): Promise<{ client: ModelClient; spec: ModelSpec }> {
	const { scriptedClient } = await import('./model/scripted.ts')
	let text: string
	try {
		text = await readFile(file, 'utf8')
	} catch (error) {
		throw new UserError(
			`The model script cannot be read: ${file} (${codeOf(error) ?? messageOf(error)})`,
			'GARUDA_MODEL_SCRIPT names a JSON file; see docs/testing.md.',
		)
	}
	let json: unknown
	try {
		json = JSON.parse(text)
	} catch (error) {
		throw new UserError(`The model script is no JSON: ${file}: ${messageOf(error)}`)
	}
	return { client: scriptedClient(json, clock), spec: scriptedSpec }
}

/**
 * Wraps clients so that a run's answers are written to a new file as a script, anew after each answer. The texts are
 * what the model said: it never saw a secret that the redactor knows. UserError where the file exists already.
 */
export async function recordingTo(file: string): Promise<(client: ModelClient) => ModelClient> {
	const [{ recordingClient, scriptOf }, { openSync, writeSync, ftruncateSync }] = await Promise.all([
		import('./model/recording.ts'),
		import('node:fs'),
	])
	let fd: number
	try {
		fd = openSync(file, 'wx', 0o600)
	} catch (error) {
		throw new UserError(
			`The recording cannot be written: ${file} (${codeOf(error) ?? messageOf(error)})`,
			'GARUDA_MODEL_RECORD names a new file.',
		)
	}
	const entries: RecordedEntry[] = []
	return (client) =>
		recordingClient(client, (entry) => {
			entries.push(entry)
			ftruncateSync(fd, 0)
			writeSync(fd, `${JSON.stringify(scriptOf(entries), null, 2)}\n`, 0)
		})
}
