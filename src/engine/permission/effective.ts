// The settings that a session really runs on: files, then consents, then the team policy. For the engine, and for whoever explains it.
import { applyPolicy } from '../config/apply-policy.ts'
import { grantHeld, type HeldKind, heldParts } from '../config/held.ts'
import type { GarudaPaths } from '../config/paths.ts'
import { boundPlace, loadPolicy, type Policy, policyPlaces } from '../config/policy.ts'
import { type LoadedSettings, loadSettings } from '../config/settings.ts'
import { UserError } from '../errors.ts'
import { expandHosts } from '../net/host-names.ts'
import type { TrustStore } from './trust.ts'

export interface EffectiveOptions {
	paths: Pick<GarudaPaths, 'home' | 'settings' | 'project'>
	/** The real path of the working root. */
	root: string
	/** The user's home folder. */
	home: string
	platform: string
	/** Another managed policy file than the platform's, and who must own it. */
	managedPolicy?: string
	policyOwner?: number | null
	trust: TrustStore
}

export interface Effective extends LoadedSettings {
	policy: Policy | null
}

/**
 * The same for every front end. The policy is read first: a broken one stops Garuda before anything is asked; and applied
 * last: neither the user nor what they agreed to gets around it.
 */
export async function effectiveSettings(o: EffectiveOptions, signal: AbortSignal): Promise<Effective> {
	const places = policyPlaces(o.paths, o.platform, o.managedPolicy)
	const { policy, notices } = await loadPolicy(
		o.policyOwner === undefined ? places : { ...places, owner: o.policyOwner },
	)
	for (const bound of policy?.hosts ?? [])
		for (const name of bound.value) {
			const found = expandHosts([withoutPort(name)])
			if (!Array.isArray(found))
				throw new UserError(`${boundPlace(bound)}: ${bound.field}: ${found.error}.`, 'Mend the policy file.')
		}
	const loaded = await loadSettings(o.paths, o.root)
	const granted: HeldKind[] = []
	const { heldFrom } = loaded
	/** Nobody could be asked: one notice for the file says what, why and how. */
	let open: string | undefined
	if (heldFrom)
		for (const { kind, text } of heldParts(loaded)) {
			const { file: path, bytes } = heldFrom
			const leftOut = (why: string, way: string) => {
				open ??= `${why[0]!.toUpperCase()}${why.slice(1)}, and nobody can be asked here. ${way} to look at it and decide.`
			}
			const artefact = { kind, root: o.root, name: 'settings.json', path, text, bytes, leftOut }
			if ((await o.trust.consent(artefact, signal)) === 'granted') granted.push(kind)
		}
	const trusted = grantHeld(loaded, granted)
	const { settings, notices: tightened } = applyPolicy(trusted, policy, {
		root: o.root,
		home: o.home,
		expandHost,
	})
	const own = trusted.notices.map((notice) => {
		if (open === undefined || !notice.startsWith(`${heldFrom?.file}: left out, since it loosens safety: `))
			return notice
		const at = notice.lastIndexOf(' It counts once you agree to it')
		return `${at < 0 ? notice : notice.slice(0, at)} ${open}`
	})
	const told = [...notices, ...own, ...o.trust.notices(), ...tightened]
	return { ...trusted, settings, policy, notices: told }
}

const withoutPort = (name: string): string => name.replace(/:\d+$/, '')

/** A preset's hosts, or the name itself in its one spelling; a port stays with each. */
function expandHost(name: string): string[] {
	const port = /:\d+$/.exec(name)?.[0] ?? ''
	const found = expandHosts([withoutPort(name)])
	return Array.isArray(found) ? found.map((host) => host + port) : [name]
}
