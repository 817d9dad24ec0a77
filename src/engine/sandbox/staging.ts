// Staged commands: the command works on a copy of the project, and what it changed waits for an answer. Wraps one run of the executor.
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, ToolError } from '../errors.ts'
import type { RunResult, RunSpec } from '../ports.ts'
import { gitProtected, rootProtected } from './names.ts'
import { below, inside, lstat } from './paths.ts'
import type { Policy } from './policy.ts'
import { applyAll } from './staging-apply.ts'
import { type CopyLimits, remove, type StagedTree, StagingCopy, usualLimits } from './staging-copy.ts'
import { describeChanges, listChanges, type StagedList } from './staging-list.ts'
import {
	findOverlayTools,
	mountPoints,
	OverlayStage,
	type OverlayTools,
	overlayFailed,
	overlayPrefix,
} from './staging-overlay.ts'
import { listOverlay } from './staging-overlay-list.ts'
import { probeOverlay } from './staging-probe.ts'

/** A run on the staging copy; an executor without one refuses it, it never runs unstaged. */
export interface StagedSpec extends RunSpec {
	staged?: boolean
}

export interface StagedRun extends RunResult {
	staged?: StagedChanges
}

/** What one staged command wants to change. Good until the next staged command begins. */
export interface StagedChanges {
	/** Paths relative to the working root (absolute in an added folder) with what happens to each, in order. */
	changes: { path: string; kind: 'create' | 'change' | 'delete'; folder: boolean }[]
	/** Never applied, with the reason. */
	refused: { path: string; why: string }[]
	/** For the question: everything that will happen. */
	summary: string
	/** All or nothing; throws ToolError for a conflict or a failure, and the project is as before. */
	apply(signal: AbortSignal): Promise<void>
}

export interface StagingOptions {
	/** Of the executor's own, seen by no command. */
	folder: string
	/** Real paths: the working root, then added folders. */
	roots: string[]
	limits?: CopyLimits
	/** Always a copy, no overlay tried. */
	copyOnly?: boolean
}

/** How one staged command is started. */
export interface StagedStart {
	policy: Policy
	/** What goes before the sandbox's program, given what goes there for the network. Only with an overlay. */
	wrap?: (network: string[]) => string[]
	/** More flags for bubblewrap. */
	flags: string[]
}

export class Staging {
	readonly #folder: string
	readonly #roots: string[]
	readonly #limits: CopyLimits
	#copies: StagingCopy[] | undefined
	#overlays: OverlayStage[] | undefined
	#tools: OverlayTools | null = null
	/** Why there is no overlay, once that is known; '' where none was wanted. */
	#noOverlay: string | undefined
	#proven = false
	#told = false
	/** Those of the command that runs. */
	#trees: readonly StagedTree[] = []
	#generation = 0
	#busy = false

	constructor({ folder, roots, limits = usualLimits, copyOnly = false }: StagingOptions) {
		// A folder inside another root is part of that one's copy.
		this.#roots = [...new Set(roots.filter((root) => !roots.some((other) => below(root, other))))]
		this.#folder = folder
		this.#limits = limits
		if (copyOnly) this.#noOverlay = ''
	}

	/** One staged command at a time: they share the copies. */
	async alone<T>(run: () => Promise<T>): Promise<T> {
		if (this.#busy) throw new ToolError('Another staged command is running. Run this one after it.')
		this.#busy = true
		try {
			return await run()
		} finally {
			this.#busy = false
		}
	}

	/**
	 * Makes ready for one command: an overlay where it works, else a copy that is brought up to date. `policy` is what the
	 * command would have; the result is the same with the staged views in the place of the roots. Throws ToolError: too large, or
	 * a root that is itself below a hidden folder.
	 */
	async begin(policy: Policy, signal: AbortSignal): Promise<StagedStart> {
		if (policy.back.length > 0)
			throw new ToolError(
				'Staged commands cannot be used here: the project lies in a folder that is hidden from commands.',
			)
		this.#generation++
		const overlays = await this.#overlay()
		if (overlays) {
			this.#trees = overlays
			const before = overlayPrefix(
				this.#tools!,
				overlays.map(({ folder }) => folder),
			)
			const root = process.getuid?.() === 0
			return {
				policy: lay(
					policy,
					overlays.map(({ base, merged }) => ({ base, view: merged })),
				),
				// Root mounts with the rights it has, anybody else with those that the network's space of users gives as well.
				wrap: (network) => (root ? [...before, ...network] : [...network, ...before]),
				// In the space that mounts, the user is uid 0; in the sandbox it is itself again.
				flags: root ? [] : ['--uid', String(process.getuid?.()), '--gid', String(process.getgid?.())],
			}
		}
		this.#copies ??= this.#roots.map((root, index) => {
			const path = join(this.#folder, `stage-${index}`)
			mkdirSync(path, { recursive: true, mode: 0o700 })
			return new StagingCopy(root, path, this.#limits)
		})
		this.#trees = this.#copies
		const hidden = new Set(policy.masks.map(({ path }) => path))
		for (const copy of this.#copies) await copy.sync(hidden, signal)
		return {
			policy: lay(
				policy,
				this.#copies.map(({ base, path }) => ({ base, view: path })),
			),
			flags: [],
		}
	}

	/** One for each root, proven to work here and ready; undefined: a copy it is. */
	async #overlay(): Promise<OverlayStage[] | undefined> {
		if (this.#noOverlay !== undefined) return undefined
		try {
			this.#tools ??= findOverlayTools()
			const tools = this.#tools
			if (!tools) throw new Error('unshare, mount, find or xargs is not installed')
			this.#overlays ??= this.#roots.map(
				(root, index) => new OverlayStage(root, join(this.#folder, `overlay-${index}`), tools),
			)
			const mounts = mountPoints()
			for (const stage of this.#overlays) {
				const why = stage.unfit(mounts)
				if (why !== undefined) throw new Error(why)
			}
			if (!this.#proven) await probeOverlay(tools, join(this.#folder, 'overlay-probe'))
			this.#proven = true
			for (const stage of this.#overlays) await stage.begin()
			return this.#overlays
		} catch (error) {
			this.#noOverlay = messageOf(error)
			return undefined
		}
	}

	/** Its sandbox did not start, and this was said: the next try is on a copy where the overlay was to blame. */
	failed(said: string): void {
		if (said.includes(overlayFailed)) this.#noOverlay ??= said.replace(overlayFailed, '').trim().slice(0, 300)
	}

	/** What a person should know of how it was staged, once. `output` is the command's. */
	notes(output: string): string[] {
		if (
			this.#noOverlay === undefined &&
			process.getuid?.() !== 0 &&
			output.includes('Value too large for defined data type')
		) {
			this.#noOverlay = 'files of the project belong to another owner or group'
			this.#told = true
			return [
				'[note: a file of another owner or group could not be changed in staging; the next staged command works on a copy, where it can]',
			]
		}
		if (!this.#noOverlay || this.#told) return []
		this.#told = true
		return [`[note: staged commands work on a copy of the project here, which is slower: ${this.#noOverlay}]`]
	}

	/** Removes what was staged, with what only its maker could open. */
	async close(): Promise<void> {
		for (const name of readdirSync(this.#folder))
			if (/^(?:stage|overlay)-/.test(name)) await remove(join(this.#folder, name)).catch(() => {})
	}

	/** After the command: what it changed. `policy` is the one that `begin` was given. */
	async end(policy: Policy): Promise<StagedChanges> {
		const generation = this.#generation
		const fixed = [...policy.protect, ...policy.absent, ...policy.absentIncludes, ...policy.absentHome]
		const isProtected = (copy: StagedTree) => (real: string) =>
			fixed.some((path) => inside(real, path)) ||
			rootProtected.some((name) => inside(real, join(copy.base, name))) ||
			gitOwn(copy, real)
		const trees = this.#trees
		const hidden = new Set(policy.masks.map(({ path }) => path))
		let lists: StagedList[] = []
		for (const tree of trees) {
			if (tree instanceof OverlayStage) {
				lists.push(await listOverlay(tree, isProtected(tree), hidden, this.#limits))
				await tree.end()
			} else if (tree instanceof StagingCopy) lists.push(await listChanges(tree, isProtected(tree)))
		}
		// What makes one root's changes void makes those of all.
		if (lists.some((list) => list.void)) lists = lists.map(({ refused }) => ({ changes: [], refused }))
		const named = <T extends { path: string }>(pick: (list: StagedList) => readonly T[]) =>
			lists.flatMap((list, index) =>
				pick(list).map((one) => ({
					...one,
					path: index === 0 ? one.path : join(trees[index]!.base, one.path),
				})),
			)
		return {
			changes: named((list) => list.changes).map(({ path, kind, ...change }) => ({
				path,
				kind,
				folder: (change.new ?? change.old)?.kind === 'folder',
			})),
			refused: named((list) => list.refused),
			summary: await describeChanges(trees, lists),
			apply: async (signal) => {
				if (generation !== this.#generation)
					throw new ToolError('Another command ran since: these changes are gone. Run the command again.')
				await applyAll(
					lists.map(({ changes }, index) => ({ copy: trees[index]!, changes })),
					signal,
				)
			},
		}
	}
}

/** Pure: every writable view of a root, and of what lies in it, gives way to its staged view. Masks stay. */
const lay = (policy: Policy, views: readonly { base: string; view: string }[]): Policy => {
	const inRoot = (path: string) => views.some(({ base }) => inside(path, base))
	return {
		...policy,
		// Else `git status` would write down what it saw of the copy, and that would be asked about.
		env: { GIT_OPTIONAL_LOCKS: '0', ...policy.env },
		base: policy.base.flatMap((mount) => {
			const staged = views.find(({ base }) => base === mount.path)
			if (staged) return [{ ...mount, source: staged.view }]
			// A cache or an added folder inside the root would be the real one again.
			return inRoot(mount.path) && mount.kind === 'write' ? [] : [mount]
		}),
		pins: policy.pins.filter((path) => !inRoot(path)),
		protect: policy.protect.filter((path) => !inRoot(path)),
	}
}

/** What leftover stages of dead sessions hold can only be removed by opening it first. `folder` has the executors' own folders. */
export const sweepStages = async (folder: string): Promise<void> => {
	for (const name of quiet(() => readdirSync(folder))) {
		const pid = /^s-(\d+)-[^/]*-own-/.exec(name)?.[1]
		if (pid === undefined || lstat(`/proc/${pid}`)) continue
		await remove(join(folder, name)).catch(() => {})
	}
}

const quiet = (list: () => string[]): string[] => {
	try {
		return list()
	} catch {
		return []
	}
}

/** What makes git run programs, in a repository that was there before the command; of a new one, staging-git.ts looks at what it says. */
const gitOwn = (copy: StagedTree, real: string): boolean => {
	const found = /^(.*\/\.git)\/(?:modules\/(?:.*\/)?)?([^/]+)/.exec(real)
	return found !== null && gitProtected.includes(found[2]!) && copy.had(found[1]!.slice(copy.base.length + 1))
}
