// ~/.garuda/credentials: provider keys by name, as `garuda setup` writes them. Read before a model is called.
import { UserError } from '../errors.ts'
import { ownUid } from '../own-uid.ts'
import { readJsonFile } from './json-file.ts'
import { locate } from './json-place.ts'
import { checkHome, type GarudaPaths } from './paths.ts'

/**
 * Key name → key. Missing file: {}. Refused with a UserError unless it is a regular file of this user, no link of either
 * kind, and closed to all others; checked on the open handle, so that what was checked is what is read.
 */
export async function readCredentials(
	paths: Pick<GarudaPaths, 'home' | 'credentials'>,
): Promise<Record<string, string>> {
	const file = paths.credentials
	await checkHome(paths.home)
	const json = await readJsonFile(file, {
		noFollow: true,
		check: async (handle) => {
			const stat = await handle.stat()
			const uid = await ownUid()
			if (uid !== null && stat.uid !== uid)
				throw new UserError(`${file} belongs to another user (uid ${stat.uid}).`, `Take it over: chown ${uid} ${file}`)
			if (stat.mode & 0o077)
				throw new UserError(
					`${file} is open to others (mode ${(stat.mode & 0o777).toString(8).padStart(4, '0')}).`,
					`Close it: chmod 600 ${file}`,
				)
			if (stat.nlink !== 1)
				throw new UserError(
					`${file} has a second name (a hard link), so others may read it.`,
					'Write it anew with: garuda setup',
				)
		},
	})
	if (!json) return {}
	const { value, text } = json
	if (typeof value !== 'object' || value === null || Array.isArray(value))
		throw new UserError(`${file}:1:1: must be a JSON object of key name → key.`, 'Write it anew with: garuda setup')
	const keys: Record<string, string> = Object.create(null) as Record<string, string>
	for (const [name, key] of Object.entries(value)) {
		if (!/^[A-Za-z_][\w.-]{0,99}$/.test(name) || name === '__proto__')
			throw new UserError(
				`${file}:${locate(text, [name])}: a key name may hold letters, digits, "_", "." and "-" only.`,
			)
		if (typeof key !== 'string')
			throw new UserError(`${file}:${locate(text, [name])}: the key of ${name} must be a string.`)
		keys[name] = key
	}
	return keys
}
