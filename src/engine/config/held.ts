// What a project's settings may loosen once the user agreed to them, put back into the settings. Pure; between trust and policy.
import { grantable, type HeldKind } from './held-kinds.ts'
import { locate } from './json-place.ts'
import type { LoadedSettings, Settings } from './settings.ts'

export type { HeldKind } from './held-kinds.ts'

/** The consents that could bring something back, with the words for the question. */
export function heldParts({ held }: Pick<LoadedSettings, 'held'>): { kind: HeldKind; text: string }[] {
	return (['project-settings', 'network'] as const).flatMap((kind) => {
		const parts = Object.entries(held ?? {}).filter(([key]) => grantable[key] === kind)
		if (parts.length === 0) return []
		return { kind, text: parts.map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join('\n') }
	})
}

/**
 * The settings with the held parts of the granted kinds in force: lists after the user's, rules with their own file and
 * line at level `project`. What is not granted stays held, with its notice. The argument stays as it is.
 */
export function grantHeld(loaded: LoadedSettings, granted: readonly HeldKind[]): LoadedSettings {
	const { held, heldFrom } = loaded
	if (!held || !heldFrom || granted.length === 0) return loaded
	const settings = structuredClone(loaded.settings)
	const left: NonNullable<LoadedSettings['held']> = {}
	for (const [key, value] of Object.entries(held)) {
		const kind = grantable[key]
		if (!kind || !granted.includes(kind)) {
			left[key] = value
			continue
		}
		if (key === 'allow' || key === 'outside') {
			for (const [index, text] of (value as string[]).entries()) {
				const line = Number(locate(heldFrom.text, [key, index]).split(':')[0])
				settings.rules.push({ list: key, text, level: 'project', file: heldFrom.file, line })
			}
			settings[key] = settings.rules.filter((rule) => rule.list === key).map((rule) => rule.text)
			continue
		}
		const [group, name] = key.split('.')
		const target = (name === undefined ? settings : (settings[group as keyof Settings] ?? {})) as Record<
			string,
			unknown
		>
		const at = name ?? group!
		if (name !== undefined && settings[group as keyof Settings] === undefined)
			Object.assign(settings, { [group!]: target })
		target[at] = Array.isArray(value) ? [...new Set([...((target[at] as unknown[]) ?? []), ...value])] : value
	}
	const rest = Object.keys(left)
	const asked = rest.filter((key) => grantable[key] !== undefined)
	const notices = loaded.notices.flatMap((notice) => {
		if (notice !== heldFrom.notice) return notice
		return asked.length > 0 ? `${heldFrom.file}: left out, since it loosens safety: ${asked.join(', ')}.` : []
	})
	const { heldFrom: _, ...others } = loaded
	return rest.length > 0 ? { ...loaded, settings, notices, held: left } : { ...others, settings, notices, held: null }
}
