// Whether this process may use a key: after `logout` none, until the user signs in again. Used by the server.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface SignIn {
	/** The environment with or without its keys. */
	env(): Record<string, string | undefined>
	/** Why no session can be opened now, or null. */
	missing(): Promise<{ message: string; hint: string } | null>
	/** Forgets the keys of this process; stored ones are `garuda setup`'s. */
	leave(): Promise<void>
	/** The user signed in by the editor. */
	enter(): void
}

const keyName = /_(?:API_KEY|AUTH_TOKEN)$/

/** `garudaHome` holds what `garuda setup` writes: a change there after a logout is a sign-in too. */
export function createSignIn(env: Record<string, string | undefined>, garudaHome: string): SignIn {
	let current = env
	let left: string | null = null
	const state = async (): Promise<string> => {
		const stamps = ['credentials', 'models.json'].map(async (name) => {
			const found = await stat(join(garudaHome, name)).catch(() => null)
			return found ? `${found.ino} ${found.mtimeMs} ${found.size}` : '-'
		})
		return (await Promise.all(stamps)).join('\n')
	}
	return {
		env: () => current,
		async missing() {
			if (left === null) return null
			if ((await state()) !== left) {
				left = null
				return null
			}
			return { message: 'You signed out.', hint: 'Sign in again, or run "garuda setup" in a terminal.' }
		},
		async leave() {
			current = Object.fromEntries(Object.entries(current).filter(([name]) => !keyName.test(name)))
			left = await state()
		},
		enter() {
			left = null
		},
	}
}
