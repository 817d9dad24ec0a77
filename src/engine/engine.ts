// The composition root: options become a Garuda, a Garuda opens sessions, a session gets all its parts here and nowhere else.
import { realpath, stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { EngineOptions, Garuda, OpenOptions, Session } from './api.ts'
import { systemClock } from './clock.ts'
import { localPlaces } from './config/local-presets.ts'
import { garudaPaths, prepareHome } from './config/paths.ts'
import { createRedactor } from './config/redact.ts'
import type { Settings } from './config/settings.ts'
import { codeOf, UserError } from './errors.ts'
import type { LiveSession } from './live-session.ts'
import { createModelChoice, type LookAt } from './model-choice.ts'
import type { Http } from './net/http.ts'
import { originOf } from './origin.ts'
import { effectiveSettings } from './permission/effective.ts'
import { createTrustStore, trustFile } from './permission/trust.ts'
import type { AuditEntry } from './ports.ts'
import type { GarudaSessions } from './session/journal.ts'

/**
 * Makes the engine. Nothing is read or started before it is asked for; UserErrors come from `open` and the lists.
 * One process may hold several.
 */
export function createEngine(options: EngineOptions): Garuda {
	const clock = options.ports?.clock ?? systemClock
	const paths = garudaPaths(options.home, options.root, options.garudaHome)
	const sessions = new Set<Session>()
	let transport: Promise<Http> | null = null
	let rootPath: Promise<string> | null = null

	const http = (settings: Settings): Promise<Http> => {
		transport ??= (async () => {
			const { createHttp } = await import('./net/http.ts')
			const ca = settings.model.ca
			const pem = ca === undefined ? undefined : await readCa(ca)
			return createHttp({ env: options.env, ...(pem === undefined ? {} : { ca: pem }) })
		})()
		return transport
	}
	/** With a transport of its own: the session's waits for its settings (a CA). */
	const lookAt: LookAt = async (places, signal, limitMs) => {
		const [{ createHttp }, { localServers }] = await Promise.all([import('./net/http.ts'), import('./model/local.ts')])
		const own = createHttp({ env: options.env })
		try {
			return await localServers(own, signal, places, limitMs)
		} finally {
			own.close()
		}
	}
	const models = createModelChoice({ options, paths, clock, http, lookAt })

	/** The real path, taken once: a link that is moved later moves no session. */
	const root = (): Promise<string> => {
		rootPath ??= realFolder(options.root, 'The working folder')
		return rootPath
	}

	async function store(redactor = createRedactor('list')): Promise<GarudaSessions> {
		const real = await root()
		const { createSessionStore } = await import('./session/journal.ts')
		const place = garudaPaths(options.home, real, options.garudaHome)
		return createSessionStore({
			root: real,
			projectDir: place.project.dir,
			index: place.sessions,
			origin: await originOf(place.home, options.hostname ?? 'this-machine', options.uid ?? 0),
			redactor,
			clock,
			version: options.version ?? '0',
		})
	}

	async function open(how: OpenOptions = {}): Promise<Session> {
		const real = await root()
		const place = garudaPaths(options.home, real, options.garudaHome)
		await prepareHome(place)
		// Consents are given before there is a session, so before there is a log of it: kept until then.
		const consents: AuditEntry[] = []
		const trust = createTrustStore({
			file: trustFile(place),
			clock,
			approver: options.approver,
			interactive: options.consents === 'ask',
			record: (entry) => void consents.push(entry),
		})
		const loaded = await effectiveSettings(
			{
				paths: place,
				root: real,
				home: options.home,
				platform: options.platform ?? 'linux',
				...(options.managedPolicy === undefined ? {} : { managedPolicy: options.managedPolicy }),
				trust,
			},
			new AbortController().signal,
		)
		const { assemble } = await import('./assemble.ts')
		const extraDirs = await Promise.all((options.extraDirs ?? []).map((dir) => realFolder(dir, 'The added folder')))
		const session: LiveSession = await assemble({
			options,
			how,
			root: real,
			extraDirs,
			paths: place,
			loaded,
			consents,
			clock,
			models,
			store,
			closed: () => sessions.delete(session),
		})
		sessions.add(session)
		return session
	}

	return {
		root: options.root,
		sessions: {
			list: async () => (await store()).list(),
			rename: async (id, title) => (await store()).rename(id, title),
			read: async (id) => {
				const all = await store()
				return all.read(await all.find(id))
			},
			remove: async (id) => {
				if ([...sessions].some((one) => one.id === id))
					throw new UserError('That session is open here.', 'Open another first: /new.')
				await (await store()).remove(id)
			},
		},
		models: {
			list: models.list,
			local: async (signal) => {
				return lookAt(localPlaces(options.env), signal)
			},
		},
		readiness: models.readiness,
		open,
		async close() {
			await Promise.all([...sessions].map((one) => one.close()))
			if (transport) (await transport).close()
		},
	}
}

/** Loads what the first session of this process will need, for a front end that waits anyway; never throws. */
export async function preload(): Promise<void> {
	await Promise.allSettled([
		import('./assemble.ts'),
		import('./session/journal.ts'),
		import('./session/snapshots.ts'),
		import('./audit/log.ts'),
		import('./audit/witness.ts'),
		import('./net/http.ts'),
		import('./model/index.ts'),
		import('./model/catalogue.ts'),
		import('./model/openai.ts'),
	])
}

async function realFolder(path: string, what: string): Promise<string> {
	if (!isAbsolute(path)) throw new UserError(`${what} is no absolute path: ${path}`)
	try {
		const real = await realpath(path)
		if ((await stat(real)).isDirectory()) return real
	} catch (error) {
		if (codeOf(error) === 'ENOENT') throw new UserError(`${what} does not exist: ${path}`, 'Give the path of a folder.')
		throw new UserError(`${what} cannot be opened: ${path} (${codeOf(error) ?? 'unknown error'})`)
	}
	throw new UserError(`${what} is no folder: ${path}`, 'Give the path of a folder.')
}

async function readCa(file: string): Promise<string> {
	try {
		const { readFile } = await import('node:fs/promises')
		return await readFile(file, 'utf8')
	} catch (error) {
		throw new UserError(
			`The CA file of settings.json (model.ca) cannot be read: ${file} (${codeOf(error) ?? 'unknown error'})`,
		)
	}
}
