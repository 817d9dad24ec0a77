// `garuda setup` with a person: what is set, then provider, key, check, model; nothing is written before the end.
import { localPlaces } from '../config/local-presets.ts'
import { baseUrl, type ProviderConfig } from '../config/models.ts'
import { UserError } from '../errors.ts'
import { localServers } from '../model/local.ts'
import { checkKey } from '../model/provider.ts'
import { isLoopback } from '../net/addresses.ts'
import { oneLine } from '../text.ts'
import { type Ask, type Choice, SetupCancelled } from './ask.ts'
import { checkProvider, listUrl } from './check-provider.ts'
import { fieldsOf, finish, presetProvider } from './finish.ts'
import { figures, type Listed } from './listed.ts'
import {
	type Current,
	current,
	forbidden,
	keyState,
	keyWords,
	masked,
	type SetupRoom,
	statusText,
	tilde,
} from './place.ts'
import { keyNameFor, localNames, nameFor, presetOf, presets } from './presets.ts'
import { putAside } from './store.ts'
import { keyToUse, removeKey, type SetupFlags } from './unattended.ts'

/** Asks until there is a model that answers, or the person leaves (SetupCancelled). Throws UserError for broken files. */
export async function guided(room: SetupRoom, ask: Ask, flags: SetupFlags = {}): Promise<void> {
	for (const notice of room.notices) ask.say(notice)
	const now = await openCurrent(room, ask)
	if (flags.provider === undefined) {
		ask.say(statusText(room, now))
		ask.say('')
	}
	const something = now.models.default !== null || now.keys.some((one) => one.from === 'env' || one.from === 'stored')
	const stored = Object.keys(now.credentials)
	if (something && flags.provider === undefined) {
		const what = await ask.choose<'provider' | 'model' | 'remove' | 'leave'>('What would you like to do?', [
			{ value: 'provider', name: 'Set up a provider, or a new key' },
			...(usable(now).length > 0 ? [{ value: 'model' as const, name: 'Choose another default model' }] : []),
			...(stored.length > 0 ? [{ value: 'remove' as const, name: 'Remove a stored key' }] : []),
			{ value: 'leave', name: 'Leave all as it is' },
		])
		if (what === 'leave') return
		if (what === 'remove') {
			const name = await ask.choose(
				'Which key?',
				stored.map((value) => ({ value, name: value })),
			)
			if (await ask.confirm(`Remove the stored key ${name}?`, false)) ask.say(await removeKey(room, name))
			else ask.say('Nothing was changed.')
			return
		}
		if (what === 'model') {
			const provider = await ask.choose(
				'A model of which provider?',
				usable(now).map((one) => ({ value: one.provider, name: one.provider.name, note: keyWords(one) })),
			)
			return complete(room, ask, now, provider, flags)
		}
	}
	await complete(room, ask, now, await chooseProvider(room, ask, now, flags), flags)
}

const usable = (now: Current) => now.keys.filter((one) => one.key !== null || one.from === 'not needed')

/** Credentials that cannot be read are put aside after a yes, so that setup can go on; never without. */
async function openCurrent(room: SetupRoom, ask: Ask): Promise<Current> {
	const now = await current(room)
	const problem = now.credentialsProblem
	// Too open, or a second name: the next write mends it. A link, another user's file: only the person can.
	if (!problem || !/credentials:\d+:\d+: |is not UTF-8/.test(problem.message)) return now
	ask.say(`${problem.message} ${problem.hint ?? ''}`.trim())
	const { credentials } = room.paths
	const yes = await ask.confirm(`Put ${tilde(credentials, room.place.home)} aside and begin a new one?`, false)
	if (!yes) throw problem
	ask.say(`It is now ${tilde(await putAside(credentials, room.clock.now()), room.place.home)}.`)
	return current(room)
}

// ---------------------------------------------------------------- provider

async function chooseProvider(room: SetupRoom, ask: Ask, now: Current, flags: SetupFlags): Promise<ProviderConfig> {
	const wanted = flags.provider
	const known = (name: string) => now.models.providers.find((one) => one.name === name) ?? presetProvider(name)
	if (wanted !== undefined && flags['base-url'] === undefined) {
		const provider = known(wanted)
		if (provider) return provider
		const server = (
			await localServers(room.http, undefined, room.place.localPlaces ?? localPlaces(room.place.env))
		).find((one) => localNames[one.name] === wanted)
		if (server) return { name: wanted, api: 'openai', baseURL: server.url, keyName: null }
		throw new UserError(
			`No provider "${oneLine(wanted, 60)}" is known, and no server of that name was found.`,
			`Known: ${presets.map((one) => one.name).join(', ')}. For another, give --base-url.`,
		)
	}
	if (flags['base-url'] !== undefined) return ownProvider(ask, now, flags)
	const servers = await localServers(room.http, undefined, room.place.localPlaces ?? localPlaces(room.place.env))
	const state = (name: string) => {
		const provider = known(name)
		const found = provider && keyState(provider, room.place.env, now.credentials)
		return found && found.from !== 'none' ? { note: keyWords(found) } : {}
	}
	const choices: Choice<string>[] = presets.map(({ name, title }) => ({ value: name, name: title, ...state(name) }))
	for (const [index, server] of servers.entries())
		choices.push({
			value: `found:${index}`,
			name: `${server.name}, found on this machine`,
			note: `${server.url} · ${server.models.length} ${server.models.length === 1 ? 'model' : 'models'}`,
		})
	for (const { name, baseURL, keyName } of now.models.providers)
		if (!presetOf(name) && !(keyName === null && servers.some((one) => one.url === baseURL)))
			choices.push({ value: name, name, ...state(name) })
	choices.push({ value: 'own:', name: 'Another server, by its address', note: 'OpenAI- or Anthropic-compatible' })
	const chosen = await ask.choose('Which provider answers as the model?', choices)
	if (chosen === 'own:') return ownProvider(ask, now, flags)
	if (!chosen.startsWith('found:')) return known(chosen)!
	const server = servers[Number(chosen.slice('found:'.length))]!
	// One that takes a key is another matter: whoever owns the port must not be given it.
	const same = now.models.providers.find((one) => one.baseURL === server.url && one.keyName === null)
	return (
		same ?? {
			name: freeName(localNames[server.name] ?? 'local', now),
			api: 'openai',
			baseURL: server.url,
			keyName: null,
		}
	)
}

/** A name that no other provider has. */
const freeName = (name: string, now: Current): string => {
	const taken = (one: string) => now.models.providers.some((other) => other.name === one) || presetOf(one) !== undefined
	if (!taken(name)) return name
	for (let n = 2; ; n++) if (!taken(`${name}-${n}`)) return `${name}-${n}`
}

async function ownProvider(ask: Ask, now: Current, flags: SetupFlags): Promise<ProviderConfig> {
	const given =
		flags['base-url'] ??
		(await ask.text('Base URL (such as https://host/v1, or http://localhost:11434/v1):', {
			check: (text) => tryUrl(text),
		}))
	const text = withScheme(given)
	const api =
		flags.api ??
		(await ask.choose<'openai' | 'anthropic'>(
			'What does it speak?',
			[
				{ value: 'openai', name: 'OpenAI Chat Completions', note: 'most servers' },
				{ value: 'anthropic', name: 'Anthropic Messages' },
			],
			/anthropic/i.test(text) ? 'anthropic' : 'openai',
		))
	const url = new URL(text)
	const open = url.protocol === 'http:' && !isLoopback(url.hostname)
	if (open && !flags['allow-http']) {
		const yes = await ask.confirm(
			`Plain http shows your code and key to the network on the way to ${url.host}. Is that network yours?`,
			false,
		)
		if (!yes)
			throw new UserError(
				'Nothing was changed: the server needs https.',
				'Use its https address, or a tunnel to this machine.',
			)
	}
	const baseURL = baseUrl(text, api, 'The base URL', open)
	const same = now.models.providers.find((one) => one.baseURL === baseURL && one.api === api)
	if (same && flags.provider === undefined) return same
	const name =
		flags.provider ??
		(await ask.text('A name for it:', {
			initial: freeName(nameFor(baseURL), now),
			check: (one) =>
				/^[A-Za-z][\w.-]{0,63}$/.test(one)
					? null
					: 'A name begins with a letter and holds letters, digits, ".", "_" and "-".',
		}))
	const known = now.models.providers.find((one) => one.name === name)
	if (known && known.api !== api)
		throw new UserError(`"${name}" speaks ${known.api}.`, 'Give this provider another name.')
	const needsKey = known?.keyName ? true : await ask.confirm('Does it want a key?', !isLoopback(url.hostname))
	return {
		name,
		api,
		baseURL,
		keyName: needsKey ? (known?.keyName ?? keyNameFor(name)) : null,
		...(known?.headers ? { headers: known.headers } : {}),
		...(open ? { allowHttp: true } : {}),
	}
}

const withScheme = (text: string): string =>
	/^[a-z][a-z0-9+.-]*:\/\//i.test(text.trim())
		? text.trim()
		: `${/^(?:localhost|127\.|\[::1\])/.test(text.trim()) ? 'http' : 'https'}://${text.trim()}`

const tryUrl = (text: string): string | null => {
	if (text.trim() === '') return 'An address, please.'
	try {
		baseUrl(withScheme(text), 'openai', 'The base URL', true)
		return null
	} catch (error) {
		return error instanceof UserError ? error.message : String(error)
	}
}

// ---------------------------------------------------------------- key, check, model

async function complete(
	room: SetupRoom,
	ask: Ask,
	now: Current,
	provider: ProviderConfig,
	flags: SetupFlags,
): Promise<void> {
	const state = keyState(provider, room.place.env, now.credentials)
	let key = state.key
	let newKey: string | null = null
	if (flags['key-from-env'] !== undefined && provider.keyName !== null) {
		;({ newKey, key } = keyToUse(provider, flags, room, now))
		ask.say(`The key of the variable ${flags['key-from-env']} is taken, to be stored.`)
	} else if (state.from === 'env') {
		if (state.problem !== null)
			throw new UserError(state.problem, `Set ${provider.keyName} again without it, or unset it and run garuda setup.`)
		ask.say(`The variable ${provider.keyName} is set (${masked(key!)}) and wins: it is used, and no key is stored.`)
	} else if (provider.keyName !== null) {
		const keep =
			state.from === 'stored' && key !== null && (await ask.confirm(`A key is stored (${masked(key)}). Keep it?`, true))
		if (!keep) newKey = key = await askKey(ask, provider)
	}
	let models: Listed[] = []
	while (flags.check !== false) {
		ask.say(`Asking ${new URL(listUrl(provider)).host} for its models …`)
		const { checkMs: ms } = room.place
		const checked = await checkProvider(room.http, { provider, key }, { today: room.today, ...(ms ? { ms } : {}) })
		if (checked.ok) {
			models = checked.models
			ask.say(
				`It answers${key === null ? '' : ' and takes the key'}: ${models.length} ${models.length === 1 ? 'model' : 'models'}.`,
			)
			break
		}
		const { problem, keyTaken } = checked
		ask.say(problem.hint ? `${problem.message}\n${problem.hint}` : problem.message)
		const next = await ask.choose<'key' | 'again' | 'save' | 'stop'>('What now?', [
			...(provider.keyName !== null && state.from !== 'env' && !keyTaken
				? [{ value: 'key' as const, name: 'Enter the key again' }]
				: []),
			{ value: 'again', name: 'Try again' },
			{ value: 'save', name: 'Save it unchecked' },
			{ value: 'stop', name: 'Stop; change nothing' },
		])
		// An editor that started this must not take it for a sign-in.
		if (next === 'stop') throw new SetupCancelled('stopped')
		if (next === 'save') break
		if (next === 'key') newKey = key = await askKey(ask, provider)
	}
	const model = await chooseModel(room, ask, now, provider, models, flags)
	const known = now.models.providers.find((one) => one.name === provider.name)
	ask.say(await finish(room, { provider, fields: fieldsOf(provider, known), newKey, model }))
}

/** Asks until the text can be a key; what is wrong is said without the key. */
async function askKey(ask: Ask, provider: ProviderConfig): Promise<string> {
	const page = presetOf(provider.name)?.keyPage
	if (page) ask.say(`A key for ${provider.name} is made here: ${page}`)
	for (;;) {
		const text = await ask.secret(`Key for ${provider.name} (not shown):`)
		const wrong = checkKey(text)
		if (!wrong) return text.trim()
		ask.say(`${wrong.message} ${text.trim() === '' ? 'Paste it, or leave with Ctrl-C.' : (wrong.hint ?? '')}`.trim())
	}
}

async function chooseModel(
	room: SetupRoom,
	ask: Ask,
	now: Current,
	provider: ProviderConfig,
	models: Listed[],
	flags: SetupFlags,
): Promise<Listed> {
	const prefix = `${provider.name}/`
	const check = (text: string): string | null => {
		if (!/^[\w.:@+/~-]{1,200}$/.test(text.trim())) return 'A model name, please.'
		return forbidden(room, provider, text.trim())
	}
	if (flags.model !== undefined) {
		const id = flags.model.startsWith(prefix) ? flags.model.slice(prefix.length) : flags.model
		const problem = check(id)
		if (problem === null) return models.find((one) => one.id === id) ?? { id, created: 0 }
		ask.say(problem)
	}
	const allowed = models.filter((one) => forbidden(room, provider, one.id) === null)
	if (allowed.length < models.length) ask.say(`The team policy leaves ${allowed.length} of ${models.length} models.`)
	const set = now.models.default?.startsWith(prefix) ? now.models.default.slice(prefix.length) : undefined
	const initial = [set, presetOf(provider.name)?.usual].find((id) => allowed.some((one) => one.id === id))
	const typed = async (): Promise<Listed> => {
		const id = (await ask.text('Model, as the provider names it:', { check, ...(set ? { initial: set } : {}) })).trim()
		return models.find((one) => one.id === id) ?? { id, created: 0 }
	}
	if (allowed.length === 0) return typed()
	const chosen = await ask.choose<Listed | null>(
		'Which model is the default? (prices: a million tokens)',
		[
			...allowed.map((one) => ({
				value: one,
				name: one.id,
				note: figures(provider.name, one, now.models.overrides(provider.name, one.id)),
			})),
			{ value: null, name: 'Another one, by its name' },
		],
		allowed.find((one) => one.id === initial) ?? allowed[0]!,
	)
	return chosen ?? typed()
}
