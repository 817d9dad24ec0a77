// The last step of setup, for both ways: what was chosen becomes a change of the files, is written, and is told.
import type { ProviderConfig } from '../config/models.ts'
import { factsOf, type Listed } from './listed.ts'
import { keyState, type SetupRoom, tilde } from './place.ts'
import { presetOf } from './presets.ts'
import { type Change, type ProviderFields, save } from './store.ts'

export interface Chosen {
	provider: ProviderConfig
	/** What of the provider must stand in models.json. */
	fields: ProviderFields
	/** A key to store; null leaves what is there. */
	newKey: string | null
	/** The default model; null leaves the one that is set. */
	model: Listed | null
}

/** What models.json must say of a provider, given what is built in or written there already. */
export function fieldsOf(provider: ProviderConfig, known: ProviderConfig | undefined): ProviderFields {
	const fields: ProviderFields = {}
	if (provider.api !== (known?.api ?? (provider.name === 'anthropic' ? 'anthropic' : 'openai')))
		fields.api = provider.api
	if (provider.baseURL !== known?.baseURL) fields.baseURL = provider.baseURL
	if (provider.keyName !== (known ? known.keyName : undefined)) fields.key = provider.keyName
	if (provider.allowHttp && !known?.allowHttp) fields.allowHttp = true
	return fields
}

/** Writes what was chosen; the lines tell what is set and where, without a key. Throws UserError with nothing written. */
export async function finish(room: SetupRoom, chosen: Chosen): Promise<string> {
	const { place, paths } = room
	const { provider, fields, newKey, model } = chosen
	const local = provider.keyName === null
	const change: Change = {
		provider: { name: provider.name, fields },
		...(model
			? {
					default: `${provider.name}/${model.id}`,
					model: { provider: provider.name, id: model.id, facts: factsOf(provider.name, model, local) },
				}
			: {}),
		...(newKey !== null && provider.keyName !== null ? { key: { name: provider.keyName, value: newKey } } : {}),
	}
	const { written, mended } = await save(paths, change, room.clock)
	const lines = mended.map(
		(text) => `${text} It is written anew and closed; whoever could read it may know the keys in it.`,
	)
	if (written.length === 0) lines.push('All of this was set already; no file was changed.')
	for (const path of written) lines.push(`Written: ${tilde(path, place.home)}`)
	if (newKey !== null && provider.keyName !== null) lines.push(`The key is kept as ${provider.keyName}.`)
	if (model) lines.push(`Default model: ${provider.name}/${model.id}`)
	if (newKey !== null && keyState(provider, place.env, {}).from === 'env')
		lines.push(`The variable ${provider.keyName} is set as well, and it wins over the stored key.`)
	const named = place.env.GARUDA_MODEL?.trim()
	if (model && named && named !== `${provider.name}/${model.id}`)
		lines.push(`GARUDA_MODEL is set to ${named}: it wins over the default. Unset it to use the new one.`)
	return lines.join('\n')
}

/** The provider of a preset, as models.json would make it. */
export const presetProvider = (name: string): ProviderConfig | null => {
	const preset = presetOf(name)
	return preset ? { name, api: preset.api, baseURL: preset.baseURL, keyName: preset.keyName } : null
}
