// A decider over a real temporary root with the real path guard: what tests of rules share.
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RuleList, RuleText, Settings } from '../../../src/engine/config/settings.ts'
import { createFiles } from '../../../src/engine/files/guard.ts'
import type { Decision } from '../../../src/engine/permission/decide.ts'
import { createDecider, type DeciderCall } from '../../../src/engine/permission/decider.ts'
import type { Files } from '../../../src/engine/ports.ts'
import type { CallInfo } from '../../../src/engine/types.ts'

export interface Place {
	dir: string
	root: string
	home: string
	/** Nothing may be written here: outside the root, and not a temp folder for the rules. */
	files: Files
	close(): Promise<void>
}

/** root and home side by side in a temporary folder. */
export async function place(): Promise<Place> {
	const dir = await realpath(await mkdtemp(join(tmpdir(), 'garuda-rules-')))
	const { mkdir } = await import('node:fs/promises')
	const root = join(dir, 'home', 'proj')
	const home = join(dir, 'home')
	await mkdir(root, { recursive: true })
	const files = await createFiles({ root, extraDirs: [], home })
	return { dir, root, home, files, close: () => rm(dir, { recursive: true, force: true }) }
}

export type Lists = Partial<Record<RuleList, string[]>> & { fixed?: string[] }

export const ruleTexts = (lists: Lists): RuleText[] =>
	(['deny', 'ask', 'allow', 'outside'] as const).flatMap((list) =>
		(lists[list] ?? []).map((text, index) => ({
			list,
			text,
			level: 'user' as const,
			file: 'settings.json',
			line: index + 1,
		})),
	)

export type Options = Partial<Omit<DeciderCall, 'info'>> & { profile?: Settings['profile'] }

const decider = (at: Place, lists: Lists, profile: Settings['profile'] = 'standard') =>
	createDecider({
		settings: { rules: ruleTexts(lists), profile },
		root: at.root,
		home: at.home,
		files: at.files,
		fixed: lists.fixed ?? [],
		// The tests' own folders lie in the temp folder: none is writable but the root.
		writable: [],
	})

const base = (info: CallInfo, options: Options): DeciderCall => ({
	tool: 'bash',
	readOnlyTool: false,
	effect: undefined,
	mode: 'build',
	sandboxed: true,
	keys: new Set(),
	acceptEdits: false,
	...options,
	info,
})

/** What happens to a command. */
export const bash = async (
	at: Place,
	command: string,
	lists: Lists = {},
	options: Options & { outside?: boolean } = {},
): Promise<Decision> => {
	const { outside, profile, ...rest } = options
	const info: CallInfo = {
		title: command,
		kind: 'execute',
		access: 'run',
		paths: [],
		key: `bash:${command}`,
		command,
		...(outside ? { outside } : {}),
	}
	return decider(at, lists, profile).decide(base(info, rest))
}

/** What happens to a read or a change of one file, given as the model would. */
export const file = async (
	at: Place,
	access: 'read' | 'write',
	path: string,
	lists: Lists = {},
	options: Options = {},
): Promise<Decision> => {
	const { profile, ...rest } = options
	const resolved = await at.files.resolve(path)
	const info: CallInfo = {
		title: path,
		kind: access === 'read' ? 'read' : 'edit',
		access,
		paths: [resolved.path],
		key: `${access}:${resolved.path}`,
	}
	return decider(at, lists, profile).decide(
		base(info, { tool: access === 'read' ? 'read_file' : 'edit_file', readOnlyTool: access === 'read', ...rest }),
	)
}

export { decider }
