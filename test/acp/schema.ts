// Messages against the JSON schema that the SDK publishes: what an agent sends must be of it, whole, with nothing beside it.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const file = createRequire(import.meta.url).resolve('@agentclientprotocol/sdk/schema/v1/schema.json')
const { $defs } = JSON.parse(readFileSync(file, 'utf8')) as { $defs: Record<string, Schema> }

interface Schema {
	$ref?: string
	type?: string | string[]
	const?: unknown
	enum?: unknown[]
	properties?: Record<string, Schema | boolean>
	required?: string[]
	additionalProperties?: boolean | Schema
	items?: Schema
	anyOf?: Schema[]
	oneOf?: Schema[]
	allOf?: Schema[]
	minimum?: number
	maximum?: number
	discriminator?: unknown
}

const typeOf = (value: unknown): string =>
	value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value

/** Faults of a value; names of properties that a schema knows are collected in `known`. */
function check(schema: Schema | boolean, value: unknown, at: string, known: Set<string>): string[] {
	if (typeof schema === 'boolean') return schema ? [] : [`${at}: nothing may stand here`]
	const faults: string[] = []
	if (schema.$ref) faults.push(...check($defs[schema.$ref.slice('#/$defs/'.length)]!, value, at, known))
	if (schema.const !== undefined && value !== schema.const) faults.push(`${at}: not ${JSON.stringify(schema.const)}`)
	if (schema.enum && !schema.enum.includes(value)) faults.push(`${at}: ${JSON.stringify(value)} is none of the enum`)
	if (schema.type) {
		const types = [schema.type].flat()
		const is = typeOf(value)
		if (!types.includes(is) && !(is === 'integer' && types.includes('number')))
			return [...faults, `${at}: is ${is}, not ${types.join(' or ')}`]
	}
	if (typeof value === 'number') {
		if (schema.minimum !== undefined && value < schema.minimum) faults.push(`${at}: below ${schema.minimum}`)
		if (schema.maximum !== undefined && value > schema.maximum) faults.push(`${at}: above ${schema.maximum}`)
	}
	if (Array.isArray(value) && schema.items)
		for (const [i, item] of value.entries()) faults.push(...whole(schema.items, item, `${at}[${i}]`))
	if (typeOf(value) === 'object') {
		const object = value as Record<string, unknown>
		for (const name of schema.required ?? []) if (!Object.hasOwn(object, name)) faults.push(`${at}: no ${name}`)
		for (const [name, one] of Object.entries(schema.properties ?? {})) {
			known.add(name)
			if (object[name] !== undefined) faults.push(...whole(one, object[name], `${at}.${name}`))
		}
		if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) known.add('*')
		// A free value: nothing is said of what is in it.
		if (!schema.properties && !schema.$ref && !schema.allOf && !schema.anyOf && !schema.oneOf) known.add('*')
	}
	for (const one of schema.allOf ?? []) faults.push(...check(one, value, at, known))
	for (const kind of ['anyOf', 'oneOf'] as const) {
		const list = schema[kind]
		if (!list) continue
		let best: { faults: string[]; known: Set<string> } | null = null
		for (const one of list) {
			const names = new Set<string>()
			const found = check(one, value, at, names)
			if (!best || found.length < best.faults.length || (found.length === 0 && names.size > best.known.size))
				best = { faults: found, known: names }
		}
		faults.push(...best!.faults)
		for (const name of best!.known) known.add(name)
	}
	return faults
}

function whole(schema: Schema | boolean, value: unknown, at: string): string[] {
	const known = new Set<string>()
	const faults = check(schema, value, at, known)
	if (typeOf(value) === 'object' && !known.has('*'))
		for (const name of Object.keys(value as object))
			if (!known.has(name) && name !== '_meta') faults.push(`${at}: unknown property ${name}`)
	return faults
}

/** Faults of a value against one of the published types. */
export const faultsOf = (type: string, value: unknown): string[] => {
	if (!$defs[type]) throw new Error(`the schema has no ${type}`)
	return whole($defs[type], value, type)
}

/** Types by method. */
export const resultTypes: Record<string, string> = {
	initialize: 'InitializeResponse',
	authenticate: 'AuthenticateResponse',
	logout: 'LogoutResponse',
	'session/new': 'NewSessionResponse',
	'session/load': 'LoadSessionResponse',
	'session/list': 'ListSessionsResponse',
	'session/delete': 'DeleteSessionResponse',
	'session/resume': 'ResumeSessionResponse',
	'session/close': 'CloseSessionResponse',
	'session/set_mode': 'SetSessionModeResponse',
	'session/set_config_option': 'SetSessionConfigOptionResponse',
	'session/prompt': 'PromptResponse',
}
export const paramTypes: Record<string, string> = {
	'session/update': 'SessionNotification',
	'session/request_permission': 'RequestPermissionRequest',
	'fs/read_text_file': 'ReadTextFileRequest',
	'elicitation/create': 'CreateElicitationRequest',
	'$/cancel_request': 'CancelRequestNotification',
}
