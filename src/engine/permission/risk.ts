// What a change of a file starts later, with no question in between: a warning for the question. Used by decide.
import { basename } from 'node:path'
import { oneLine, visible } from '../text.ts'
import type { FileChange } from '../types.ts'

/** Scripts that a package manager runs by itself. */
const byItself = new Set([
	...['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare', 'prepack'],
	...['prepublishOnly', 'dependencies', 'preversion', 'version', 'postversion', 'preuninstall', 'postuninstall'],
	// composer
	...['pre-install-cmd', 'post-install-cmd', 'pre-update-cmd', 'post-update-cmd', 'post-autoload-dump'],
	...['pre-autoload-dump', 'post-root-package-install', 'post-create-project-cmd', 'post-package-install'],
])

const manifests = new Set(['package.json', 'composer.json'])

/**
 * The scripts of a package.json or composer.json that a change adds or alters, in words; null when there are none. They
 * run outside the sandbox when the user installs or builds. A manifest that cannot be read is said to be one.
 */
export function riskOf(change: FileChange): string | null {
	if (!manifests.has(basename(change.path).toLowerCase())) return null
	const after = scriptsOf(change.new)
	// No JSON, no scripts that anything would run.
	if (after === null) return null
	const before = (change.old === null ? null : scriptsOf(change.old)) ?? new Map<string, string>()
	const changed = [...after].filter(([name, text]) => before.get(name) !== text)
	if (changed.length === 0) return null
	const shown = changed.slice(0, 10).map(([name, text]) => {
		const alone = byItself.has(name) ? ', which an install or a publish runs by itself' : ''
		return `${visible(oneLine(name, 60))}${alone}: ${oneLine(text, 160)}`
	})
	const more = changed.length > 10 ? `\n(and ${changed.length - 10} more)` : ''
	return `It changes scripts that run outside the sandbox when you start them:\n${shown.join('\n')}${more}`
}

function scriptsOf(text: string): Map<string, string> | null {
	try {
		const { scripts } = JSON.parse(text.replace(/^\ufeff/, '')) as { scripts?: unknown }
		if (typeof scripts !== 'object' || scripts === null) return new Map()
		return new Map(
			Object.entries(scripts).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
		)
	} catch {
		return null
	}
}
