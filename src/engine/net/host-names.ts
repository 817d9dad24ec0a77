// Host names compared as the network sees them (A-labels), and the user's lists of hosts. Used by the proxy of commands and by web_fetch.
import { domainToASCII } from 'node:url'
import { oneLine } from '../text.ts'

/**
 * Hosts that the package tools really ask, and no more: a host of a preset that takes uploads (github) is also a way out for
 * what a command can read. docs/network.md says so.
 */
const presets: Record<string, readonly string[]> = {
	npm: ['registry.npmjs.org', 'registry.yarnpkg.com', 'nodejs.org'],
	pypi: ['pypi.org', 'files.pythonhosted.org'],
	crates: ['crates.io', 'index.crates.io', 'static.crates.io'],
	maven: ['repo.maven.apache.org', 'repo1.maven.org', 'plugins.gradle.org', 'plugins-artifacts.gradle.org'],
	go: ['proxy.golang.org', 'sum.golang.org'],
	github: [
		'github.com',
		'api.github.com',
		'codeload.github.com',
		'raw.githubusercontent.com',
		'objects.githubusercontent.com',
		'release-assets.githubusercontent.com',
	],
	debian: ['deb.debian.org', 'security.debian.org'],
}

/** The presets' names, for messages and docs. */
export const presetNames: readonly string[] = Object.keys(presets)

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

/**
 * A DNS name in its one spelling: lower case, A-labels, no last dot, at least two labels. Null for everything else: IP
 * addresses in any spelling (decimal, hex, octal, short, IPv6), single names, and whatever holds a character that some
 * reader could take for the end of the name. `text` may be Unicode; what arrives as bytes is refused before this.
 */
export const canonicalHost = (text: string): string | null => {
	if (text.length === 0 || text.length > 253 || /[\u0000-\u0020\u007f%@\\/?#[\]:<>^|`{}"'*,;]/.test(text)) return null
	const name = domainToASCII(text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase()
	if (name.length > 253) return null
	const labels = name.split('.')
	// The WHATWG rule: a last label that is a number makes it an IPv4 address, however it is written.
	if (labels.length < 2 || /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1)!)) return null
	return labels.every((one) => label.test(one)) ? name : null
}

/**
 * Hosts, `*.suffix` and presets to the sorted list of names that they mean; an error in words for the first entry that is
 * none. An empty list means no host, never all.
 */
export const expandHosts = (list: readonly string[]): string[] | { error: string } => {
	const hosts = new Set<string>()
	for (const entry of list) {
		const text = entry.trim()
		if (Object.hasOwn(presets, text)) {
			for (const host of presets[text]!) hosts.add(host)
			continue
		}
		const wild = text.startsWith('*.')
		const name = canonicalHost(wild ? text.slice(2) : text)
		if (!name)
			return {
				error: `"${oneLine(entry, 100)}" is no host name: write example.com, *.example.com or one of ${presetNames.join(', ')} (no address, port, path or * alone)`,
			}
		hosts.add(wild ? `*.${name}` : name)
	}
	return [...hosts].sort()
}

/** Whether a canonical name is on an expanded list; `*.x.y` covers what is below x.y, not x.y itself. */
export const onList = (hosts: readonly string[], name: string): boolean =>
	hosts.some((host) => (host.startsWith('*.') ? name.endsWith(host.slice(1)) : host === name))

/** For the system prompt: which hosts commands reach, so that the model neither gives up nor asks to leave the sandbox. Empty for an empty list. */
export const networkNote = (hosts: readonly string[]): string =>
	hosts.length === 0
		? ''
		: `Commands reach these hosts through the sandbox's proxy (HTTPS_PROXY is set, https only): ${hosts.join(', ')}. A command that tries another host has the user asked while it runs. Do not ask to leave the sandbox for the network.`
