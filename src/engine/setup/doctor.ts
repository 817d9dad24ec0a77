// `garuda setup check`: every part that a session needs is tried for real, and told in named lines that may be shared.
import { chooseModel, keyFor } from '../config/models.ts'
import type { Settings } from '../config/settings.ts'
import { usualModels } from '../config/usual-models.ts'
import { messageOf, UserError } from '../errors.ts'
import { findNsenter } from '../sandbox/programs.ts'
import { oneLine } from '../text.ts'
import {
	checkClock,
	checkDisk,
	checkFiles,
	checkGit,
	checkNetworkVariables,
	checkNode,
	checkTerminal,
	checkWsl,
	isProgram,
	type Terminal,
} from './check-machine.ts'
import { checkProvider } from './check-provider.ts'
import { checkWalls, type WallOptions } from './check-walls.ts'
import type { Launcher } from './editor-entries.ts'
import { editorStates } from './editors.ts'
import { type Current, current, forbidden, keyState, openRoom, type SetupPlace, type SetupRoom } from './place.ts'
import { type CheckLine, fail, pass, type Report, shareable, skip, warn } from './report.ts'

export { type Report, reportText } from './report.ts'

export interface DoctorPlace extends SetupPlace {
	cwd: string
	tmpdir: string
	nodeVersion: string
	terminal: Terminal
	launcher: Launcher
	/** Only for tests: another executor. */
	make?: WallOptions['make']
}

/** Looks at everything; never throws for what it finds. Nothing is changed, and no key is in the report. */
export async function doctor(place: DoctorPlace): Promise<Report> {
	const lines: CheckLine[] = [...checkNode(place.nodeVersion, place.platform), ...(await checkWsl())]
	const secrets = Object.entries(place.env).flatMap(([name, value]) =>
		/(?:KEY|TOKEN|SECRET|PASSWORD)$/.test(name) && value ? [value.trim()] : [],
	)
	const done = (): Report => shareable(lines, { home: place.home, secrets })
	let room: SetupRoom
	try {
		room = await openRoom(place)
	} catch (error) {
		if (!(error instanceof UserError)) throw error
		lines.push(fail('files', error.message, error.hint))
		return done()
	}
	try {
		const { paths } = room
		const files = await checkFiles(paths, place.env, place.platform, place.managedPolicy)
		lines.push(...files.lines)
		const settings = files.settings
		const walls = checkWalls({
			home: place.home,
			garudaHome: paths.home,
			env: place.env,
			platform: place.platform,
			tmpdir: place.tmpdir,
			settings: {
				executor: settings?.executor ?? 'auto',
				profile: settings?.profile ?? 'standard',
				writePaths: settings?.sandbox.writePaths ?? [],
				envAllow: settings?.env.allow ?? [],
				...(settings?.sandbox.blockUnix ? { blockUnix: true } : {}),
				denyRead: [...(settings?.sandbox.denyRead ?? []), paths.home],
			},
			...(place.make ? { make: place.make } : {}),
		})
		const [sandbox, { lines: models, date, keys }, git, disk, network] = await Promise.all([
			walls,
			checkModels(room),
			checkGit(place.env, place.cwd),
			checkDisk({ home: place.home, tmp: place.tmpdir }),
			checkNetworkVariables(place.env),
		])
		secrets.push(...keys)
		lines.push(
			...sandbox,
			...hostList(place.platform, settings),
			...models,
			...network,
			git,
			...disk,
			checkClock(room.clock.now(), date),
			checkTerminal(place.terminal, place.env),
		)
		lines.push(...(await checkEditors(place)))
		return done()
	} finally {
		room.close()
	}
}

/** A list of hosts needs one more program. */
const hostList = (platform: string, settings: Settings | null): CheckLine[] =>
	platform !== 'linux' || !settings || settings.network.allow.length === 0
		? []
		: [
				findNsenter()
					? pass('sandbox.hosts', `nsenter is there for the list of ${settings.network.allow.length} hosts`)
					: fail('sandbox.hosts', 'network.allow has no effect: nsenter is not installed', 'Install util-linux.'),
			]

/** The default model, its provider and key, then every other provider that has a key: one request each. */
async function checkModels(room: SetupRoom): Promise<{ lines: CheckLine[]; date: string | null; keys: string[] }> {
	let now: Current
	try {
		now = await current(room)
	} catch (error) {
		return { lines: [skip('model', messageOf(error))], date: null, keys: [] }
	}
	const keys = [
		...Object.values(now.credentials).map((key) => key.trim()),
		...now.keys.flatMap((one) => (one.key === null ? [] : [one.key])),
	]
	const chosen = chooseModel(undefined, room.place.env, now.models)
	const lines: CheckLine[] = []
	let id: string | null = null
	let first = now.keys[0]
	if ('problem' in chosen) {
		// With one key alone the chat takes the usual model of its provider.
		const usual = usualModels.find(({ provider, at }) =>
			now.keys.some(
				(one) =>
					one.provider.name === provider && one.key !== null && (at === undefined || one.provider.baseURL === at),
			),
		)
		if (usual && now.models.default === null && !room.place.env.GARUDA_MODEL?.trim()) {
			first = now.keys.find((one) => one.provider.name === usual.provider)
			id = usual.id
		} else lines.push(fail('model', chosen.problem.message, 'Run "garuda setup".'))
	} else {
		first =
			now.keys.find((one) => one.provider === chosen.provider) ??
			keyState(chosen.provider, room.place.env, now.credentials)
		id = chosen.id
		const key = keyFor(chosen.provider, room.place.env, now.credentials)
		if (key && 'problem' in key) {
			lines.push(fail('model', `${chosen.provider.name}/${id}: ${key.problem.message}`, 'Run "garuda setup".'))
			id = null
		}
	}
	const others = now.keys
		.filter((one) => one !== first || id === null)
		.filter((one) => one.key !== null || (one.from === 'not needed' && one.provider.name !== first?.provider.name))
	const ask = async ({ provider, key }: (typeof now.keys)[number]) => {
		const { checkMs: ms } = room.place
		return {
			provider,
			checked: await checkProvider(room.http, { provider, key }, { today: room.today, ...(ms ? { ms } : {}) }),
		}
	}
	const results = await Promise.all([...(id !== null && first ? [first] : []), ...others].map(ask))
	let date: string | null = null
	for (const [index, { provider, checked }] of results.entries()) {
		date ??= checked.date
		const main = index === 0 && id !== null
		const name = main ? 'model' : `provider.${provider.name}`
		if (!checked.ok) {
			// A server of one's own may just not run now; the model that is used must answer.
			lines.push(
				(main || checked.problem.code === 'auth' ? fail : warn)(
					name,
					main ? `${provider.name}/${id}: ${checked.problem.message}` : checked.problem.message,
					checked.problem.hint,
				),
			)
			continue
		}
		const taken = provider.keyName === null ? 'answers' : 'answers and takes the key'
		const not = main ? forbidden(room, provider, id!) : null
		if (not) lines.push(fail(name, not, 'Choose another model: garuda setup.'))
		else if (main && checked.models.length > 0 && !checked.models.some((one) => one.id === id))
			lines.push(
				warn(
					name,
					`${provider.name} ${taken}, but does not list ${oneLine(id!, 80)}`,
					'Choose a model it lists: garuda setup.',
				),
			)
		else
			lines.push(
				pass(
					name,
					main ? `${provider.name}/${id}: the provider ${taken}` : `${taken}, ${checked.models.length} models`,
				),
			)
	}
	return { lines, date, keys }
}

/** Entries that start something that is not there; editors without an entry are only told. */
async function checkEditors(place: DoctorPlace): Promise<CheckLine[]> {
	const lines: CheckLine[] = []
	for (const { entry, here, command, problem } of await editorStates(place, place.launcher)) {
		const id = `editor.${entry.name}`
		if (!here) continue
		if (problem !== null) lines.push(warn(id, problem))
		else if (!entry.file)
			lines.push(skip(id, 'its configuration is a program and is not read; "garuda setup editors" prints the entry'))
		else if (command === null) lines.push(skip(id, 'no entry for Garuda; "garuda setup editors" prints one'))
		else if (await isProgram(command, place.env)) lines.push(pass(id, `its entry starts ${oneLine(command, 100)}`))
		else
			lines.push(
				warn(
					id,
					`its entry starts ${oneLine(command, 100)}, which is not found`,
					`Write it anew: garuda setup editors ${entry.name} --write`,
				),
			)
	}
	return lines
}
