// `garuda setup` with everything said in flags: no question is asked, so it also runs where there is no terminal.
import { localProvider } from '../config/local-presets.ts'
import { baseUrl, type Env, type ProviderConfig } from '../config/models.ts'
import { UserError } from '../errors.ts'
import { checkKey } from '../model/provider.ts'
import { oneLine } from '../text.ts'
import { checkProvider } from './check-provider.ts'
import { fieldsOf, finish, presetProvider } from './finish.ts'
import type { Listed } from './listed.ts'
import { type Current, current, forbidden, keyState, type SetupRoom, statusText } from './place.ts'
import { keyNameFor, localNames, presetOf, presets } from './presets.ts'
import { save } from './store.ts'

export interface SetupFlags {
	provider?: string | undefined
	'base-url'?: string | undefined
	api?: 'openai' | 'anthropic' | undefined
	/** The variable that holds the key to store. */
	'key-from-env'?: string | undefined
	model?: string | undefined
	/** A key's or a provider's name. */
	'remove-key'?: string | undefined
	show?: boolean | undefined
	json?: boolean | undefined
	/** false: nothing is sent to the provider. */
	check?: boolean | undefined
	/** Plain http to another machine. */
	'allow-http'?: boolean | undefined
	yes?: boolean | undefined
}

/** Sets up what the flags say; resolves with the text for the person. Throws UserError with nothing written. */
export async function unattended(room: SetupRoom, flags: SetupFlags): Promise<string> {
	const now = await current(room)
	const name = flags.provider?.trim()
	if (!name)
		throw new UserError(
			'Which provider? --provider is missing.',
			`One of: ${presets.map((one) => one.name).join(', ')}, a local server (ollama, lmstudio, llamacpp, vllm), or any name with --base-url.`,
		)
	const provider = providerFor(name, flags, now, room.place.env)
	const { newKey, key } = keyToUse(provider, flags, room, now)
	const lines = [...room.notices]
	let listed: Listed[] | null = null
	if (flags.check !== false) {
		const { checkMs: ms } = room.place
		const checked = await checkProvider(room.http, { provider, key }, { today: room.today, ...(ms ? { ms } : {}) })
		if (!checked.ok)
			throw new UserError(
				checked.problem.message,
				`${checked.problem.hint ?? ''} Nothing was written; --no-check writes without asking the provider.`.trim(),
			)
		listed = checked.models
		lines.push(
			`${provider.name} answers${key === null ? '' : ' and takes the key'}: ${listed.length} ${listed.length === 1 ? 'model' : 'models'}.`,
		)
	}
	const model = modelToUse(provider, flags.model, listed, now)
	const not = model && forbidden(room, provider, model.id)
	if (not) throw new UserError(not, 'Choose another with --model; the team policy decides which.')
	const known = now.models.providers.find((one) => one.name === name)
	lines.push(await finish(room, { provider, fields: fieldsOf(provider, known), newKey, model }))
	return lines.join('\n')
}

/** A preset, one of models.json, a server of this machine, or a new one at --base-url. */
function providerFor(name: string, flags: SetupFlags, now: Current, env: Env): ProviderConfig {
	const known = now.models.providers.find((one) => one.name === name)
	const local = localProvider(name, env)
	const base: ProviderConfig | null =
		known ?? presetProvider(name) ?? (local ? { name, api: local.api, baseURL: local.baseURL, keyName: null } : null)
	if (!base && flags['base-url'] === undefined)
		throw new UserError(
			`No provider "${oneLine(name, 60)}" is known.`,
			`Known: ${[...new Set([...presets.map((one) => one.name), ...now.models.providers.map((one) => one.name), ...Object.values(localNames)])].join(', ')}. For another, give --base-url.`,
		)
	if (!/^[A-Za-z][\w.-]{0,63}$/.test(name))
		throw new UserError(
			`"${oneLine(name, 60)}" is no name for a provider.`,
			'It begins with a letter and holds letters, digits, ".", "_" and "-".',
		)
	const api = flags.api ?? base?.api ?? 'openai'
	if (base && ['anthropic', 'openai'].includes(name) && api !== base.api)
		throw new UserError(`"${name}" is built in and speaks ${base.api}.`, 'Give your provider another name.')
	const allowHttp = flags['allow-http'] || base?.allowHttp === true
	const url = flags['base-url'] === undefined ? base!.baseURL : baseUrl(flags['base-url'], api, '--base-url', allowHttp)
	// A new address with no key given is taken for one that needs none, as servers of one's own mostly are.
	const keyName = base ? base.keyName : flags['key-from-env'] === undefined ? null : keyNameFor(name)
	return {
		name,
		api,
		baseURL: url,
		keyName: keyName ?? (flags['key-from-env'] === undefined ? null : keyNameFor(name)),
		...(base?.headers ? { headers: base.headers } : {}),
		...(allowHttp ? { allowHttp: true } : {}),
	}
}

/** The key that the flags or what is set give; `newKey` is to be stored. UserError for one that cannot be right, and for none. */
export function keyToUse(
	provider: ProviderConfig,
	flags: SetupFlags,
	{ place }: SetupRoom,
	now: Current,
): { newKey: string | null; key: string | null } {
	const from = flags['key-from-env']
	if (from !== undefined) {
		const value = Object.hasOwn(place.env, from) ? place.env[from] : undefined
		if (value === undefined)
			throw new UserError(
				`There is no variable ${oneLine(from, 60)}.`,
				'Export it first; --key-from-env takes the name of a variable, never the key itself.',
			)
		if (value.trim() === '')
			throw new UserError(`The variable ${from} is empty.`, 'Set it to the key, then run this again.')
		const wrong = checkKey(value)
		if (wrong) throw new UserError(`${wrong.message.replace('The API key', `The key in ${from}`)}`, wrong.hint)
		return { newKey: value.trim(), key: value.trim() }
	}
	const state = keyState(provider, place.env, now.credentials)
	if (state.problem !== null) throw new UserError(state.problem, 'Copy the key again, alone.')
	if (state.from === 'none')
		throw new UserError(
			`There is no key for ${provider.name}.`,
			now.credentialsProblem
				? `${now.credentialsProblem.message} ${now.credentialsProblem.hint ?? ''}`.trim()
				: `Give --key-from-env NAME (to store the key of that variable), or set ${provider.keyName}.`,
		)
	return { newKey: null, key: state.key }
}

function modelToUse(
	provider: ProviderConfig,
	asked: string | undefined,
	listed: Listed[] | null,
	now: Current,
): Listed | null {
	const wanted = asked?.trim().replace(new RegExp(`^${provider.name.replace(/\W/g, '\\$&')}/`), '')
	if (wanted) {
		if (!/^[\w.:@+/~-]{1,200}$/.test(wanted)) throw new UserError(`"${oneLine(wanted, 80)}" is no model name.`)
		const found = listed?.find((one) => one.id === wanted)
		if (found || listed === null || listed.length === 0) return found ?? { id: wanted, created: 0 }
		const near = listed.filter((one) => alike(one.id, wanted)).slice(0, 5)
		throw new UserError(
			`${provider.name} has no model "${wanted}".`,
			`${
				near.length > 0
					? `Near it: ${near.map((one) => one.id).join(', ')}.`
					: `It lists: ${listed
							.slice(0, 12)
							.map((one) => one.id)
							.join(', ')}${listed.length > 12 ? ', …' : ''}.`
			} --no-check takes any name.`,
		)
	}
	const usual = presetOf(provider.name)?.usual
	if (usual !== undefined) {
		const found = listed?.find((one) => one.id === usual)
		if (found || listed === null) return found ?? { id: usual, created: 0 }
	}
	if (listed?.length === 1) return listed[0]!
	// What is set already stays, where it is this provider's.
	if (now.models.default?.startsWith(`${provider.name}/`)) return null
	throw new UserError(
		`Which model of ${provider.name}? --model is missing.`,
		listed && listed.length > 0
			? `It lists: ${listed
					.slice(0, 20)
					.map((one) => one.id)
					.join(', ')}${listed.length > 20 ? ', …' : ''}`
			: 'Name one.',
	)
}

/** Shares its beginning or its words. */
const alike = (id: string, wanted: string): boolean => {
	const words = wanted
		.toLowerCase()
		.split(/[^a-z0-9]+/)
		.filter((word) => word.length > 1)
	const text = id.toLowerCase()
	return (
		text.includes(wanted.toLowerCase()) ||
		words.filter((word) => text.includes(word)).length >= Math.max(1, words.length - 1)
	)
}

/** Removes a stored key, by its own name or its provider's; resolves with what to tell. */
export async function removeKey(room: SetupRoom, name: string): Promise<string> {
	const now = await current(room)
	const provider = now.models.providers.find((one) => one.name === name) ?? presetProvider(name)
	const keyName = provider?.keyName ?? name
	if (!/^[A-Za-z_][\w.-]{0,99}$/.test(keyName))
		throw new UserError(
			`"${oneLine(name, 60)}" is no name of a key.`,
			`Stored: ${Object.keys(now.credentials).join(', ') || 'none'}.`,
		)
	const { removed, mended } = await save(room.paths, { removeKey: keyName }, room.clock)
	if (!removed)
		throw new UserError(
			[...mended, `No key ${keyName} is stored.`].join('\n'),
			`Stored: ${Object.keys(now.credentials).join(', ') || 'none'}.`,
		)
	const lines = [...mended, `The stored key ${keyName} is removed.`]
	if ((room.place.env[keyName] ?? '').trim() !== '')
		lines.push(`The variable ${keyName} is still set in your environment, and is used.`)
	return lines.join('\n')
}

/** What is set, as text or JSON; never a key. */
export async function show(room: SetupRoom, json: boolean): Promise<string> {
	const now = await current(room)
	if (!json) return [...room.notices, statusText(room, now)].join('\n')
	return JSON.stringify(
		{
			default: now.models.default,
			environmentModel: room.place.env.GARUDA_MODEL?.trim() || null,
			providers: now.keys.map(({ provider, from, shadowed, problem }) => ({
				name: provider.name,
				api: provider.api,
				baseURL: provider.baseURL,
				keyName: provider.keyName,
				key: from === 'not needed' ? 'not_needed' : from,
				...(shadowed ? { storedUnused: true } : {}),
				...(problem === null ? {} : { problem }),
			})),
			storedKeys: Object.keys(now.credentials),
			...(now.credentialsProblem ? { problem: now.credentialsProblem.message } : {}),
		},
		null,
		2,
	)
}
