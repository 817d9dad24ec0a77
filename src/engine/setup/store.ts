// The two files that setup writes, ~/.garuda/models.json and ~/.garuda/credentials: what is there stays, but for what was asked.
import { chmod, type FileHandle, lstat, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { readCredentials } from '../config/credentials.ts'
import { brokenFile, type JsonFile, readJsonFile } from '../config/json-file.ts'
import { type GarudaPaths, prepareHome } from '../config/paths.ts'
import { UserError } from '../errors.ts'
import { lock, writeAtomic } from '../files/atomic.ts'
import { ownUid } from '../own-uid.ts'
import type { Clock } from '../ports.ts'
import type { Json, ModelSpec } from '../types.ts'

export interface ProviderFields {
	api?: 'anthropic' | 'openai'
	baseURL?: string
	/** The name of the key; null: it needs none. */
	key?: string | null
	allowHttp?: true
}

export interface Change {
	default?: string
	/** Fields to set; others of the provider stay. */
	provider?: { name: string; fields: ProviderFields }
	/** Facts of a model; those that stand in the file stay. */
	model?: { provider: string; id: string; facts: Partial<ModelSpec> }
	key?: { name: string; value: string }
	removeKey?: string
}

export interface Saved {
	/** Files that were written; none when all was so already. */
	written: string[]
	/** What was amiss with a file and is mended by the writing. */
	mended: string[]
	/** Whether `removeKey` was there. */
	removed: boolean
}

/**
 * Writes a change: the folder 0700, both files 0600, each replaced whole (old or new, never a piece), under a lock. Throws
 * UserError, with nothing written, for a broken file, a link, a file or folder of another user.
 */
export async function save(paths: GarudaPaths, change: Change, clock: Clock): Promise<Saved> {
	await prepareHome(paths)
	const held = await lock(join(paths.home, 'setup.lock'), clock.now())
	if (!held.held)
		throw new UserError('Another "garuda setup" is writing now.', 'Finish it, or wait a moment and try again.')
	try {
		// Both are read and checked before either is written.
		const models = await changedModels(paths, change)
		const credentials = await changedCredentials(paths, change)
		const written: string[] = []
		// The key first: a default must never point to a provider whose key is not there yet.
		if (credentials.text !== null) {
			// Keys lie in it: nobody else needs to look in.
			if ((await lstat(paths.home)).mode & 0o077) await chmod(paths.home, 0o700)
			await writeAtomic(paths.credentials, credentials.text)
			written.push(paths.credentials)
		}
		if (models !== null) {
			await writeAtomic(paths.models, models)
			written.push(paths.models)
		}
		return { written, mended: credentials.mended, removed: credentials.removed }
	} finally {
		await held.release()
	}
}

/** The new text of models.json, or null when it stays as it is. */
async function changedModels(paths: GarudaPaths, change: Change): Promise<string | null> {
	if (change.default === undefined && !change.provider && !change.model) return null
	const file = await readJsonFile(paths.models, { noFollow: true, check: plainFile(paths.models) })
	const { checkModels } = await import('../config/models-schema.ts')
	if (file) checkModels(file, brokenFile)
	const value = (file ? structuredClone(file.value) : {}) as Record<string, any>
	if (change.default !== undefined) value.default = change.default
	const { provider, model } = change
	if (provider && Object.keys(provider.fields).length > 0)
		Object.assign(providerIn(value, provider.name), provider.fields)
	if (model && Object.keys(model.facts).length > 0) {
		const one = providerIn(value, model.provider)
		one.models ??= {}
		const known = own(one.models, model.id) as Record<string, Json>
		for (const [name, fact] of Object.entries(model.facts)) known[name] ??= fact as Json
	}
	if (file && JSON.stringify(file.value) === JSON.stringify(value)) return null
	const text = asText(value, file)
	checkModels({ file: paths.models, text, value, bytes: Buffer.from(text) }, brokenFile)
	return text
}

const providerIn = (value: Record<string, any>, name: string): Record<string, any> => {
	value.providers ??= {}
	return own(value.providers, name) as Record<string, any>
}

/** The object under a name, made when it is missing; names are a person's, so never a prototype's. */
const own = (parent: Record<string, unknown>, name: string): unknown => {
	if (!Object.hasOwn(parent, name))
		Object.defineProperty(parent, name, { value: {}, enumerable: true, writable: true, configurable: true })
	return parent[name]
}

/** As the person indents it; two spaces where there is no file. */
const asText = (value: unknown, file: JsonFile | null): string =>
	`${JSON.stringify(value, null, /^\{[^\S\n]*\n([ \t]+)/.exec(file?.text ?? '')?.[1] ?? 2)}\n`

async function changedCredentials(
	paths: GarudaPaths,
	{ key, removeKey }: Change,
): Promise<{ text: string | null; mended: string[]; removed: boolean }> {
	if (!key && removeKey === undefined) return { text: null, mended: [], removed: false }
	const { keys, problem } = await keysToChange(paths)
	const removed = removeKey !== undefined && Object.hasOwn(keys, removeKey)
	const changed = key !== undefined && keys[key.name] !== key.value
	if (removed) delete keys[removeKey!]
	if (key) keys[key.name] = key.value
	if (!removed && !changed && problem === null) return { text: null, mended: [], removed }
	return { text: `${JSON.stringify({ ...keys }, null, 2)}\n`, mended: problem === null ? [] : [problem], removed }
}

/**
 * The stored keys. A file of this user that is only too open, or has a second name, is read all the same: writing it anew
 * mends it, and `problem` says what it was.
 */
async function keysToChange(paths: GarudaPaths): Promise<{ keys: Record<string, string>; problem: string | null }> {
	try {
		return { keys: await readCredentials(paths), problem: null }
	} catch (error) {
		if (!(error instanceof UserError)) throw error
		const uid = await ownUid()
		const file = await readJsonFile(paths.credentials, {
			noFollow: true,
			check: async (handle) => {
				if (uid !== null && (await handle.stat()).uid !== uid) throw error
			},
		})
		const value = file?.value
		if (typeof value !== 'object' || value === null || Array.isArray(value)) throw error
		if (Object.entries(value).some(([name, one]) => typeof one !== 'string' || !/^[A-Za-z_][\w.-]{0,99}$/.test(name)))
			throw error
		const keys: Record<string, string> = Object.assign(Object.create(null), value)
		return { keys, problem: error.message }
	}
}

const plainFile = (path: string) => async (handle: FileHandle) => {
	const stat = await handle.stat()
	const uid = await ownUid()
	if (uid !== null && stat.uid !== uid)
		throw new UserError(`${path} belongs to another user (uid ${stat.uid}).`, `Take it over: chown ${uid} ${path}`)
	if (stat.nlink !== 1)
		throw new UserError(
			`${path} has a second name (a hard link).`,
			'Remove one of the two, then run garuda setup again.',
		)
}

/** A credentials file that cannot be read is put aside, never overwritten; returns its new path. */
export async function putAside(path: string, now: number): Promise<string> {
	const to = `${path}.broken-${new Date(now).toISOString().replace(/\D/g, '').slice(0, 14)}`
	await rename(path, to)
	return to
}
