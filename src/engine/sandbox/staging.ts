// Staged commands: the command works on a copy of the project, and what it changed waits for an answer. Wraps one run of the executor.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ToolError } from '../errors.ts'
import type { RunResult, RunSpec } from '../ports.ts'
import { gitProtected, rootProtected } from './names.ts'
import { below, inside } from './paths.ts'
import type { Policy } from './policy.ts'
import { applyChanges } from './staging-apply.ts'
import { type CopyLimits, StagingCopy, usualLimits } from './staging-copy.ts'
import { describeChanges, listChanges, type StagedList } from './staging-list.ts'

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
}

export class Staging {
	readonly #copies: StagingCopy[]
	#generation = 0
	#busy = false

	constructor({ folder, roots, limits = usualLimits }: StagingOptions) {
		// A folder inside another root is part of that one's copy.
		const outer = roots.filter((root) => !roots.some((other) => below(root, other)))
		this.#copies = [...new Set(outer)].map((root, index) => {
			const path = join(folder, `stage-${index}`)
			mkdirSync(path, { recursive: true, mode: 0o700 })
			return new StagingCopy(root, path, limits)
		})
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
	 * Brings the copies up to date for one command. `policy` is what the command would have; the result is the same with
	 * the copies in the place of the roots. Throws ToolError: too large, or a root that is itself below a
	 * hidden folder.
	 */
	async begin(policy: Policy, signal: AbortSignal): Promise<Policy> {
		if (policy.back.length > 0)
			throw new ToolError(
				'Staged commands cannot be used here: the project lies in a folder that is hidden from commands.',
			)
		this.#generation++
		const hidden = new Set(policy.masks.map(({ path }) => path))
		for (const copy of this.#copies) await copy.sync(hidden, signal)
		return this.lay(policy)
	}

	/** Pure: every writable view of a root, and of what lies in it, gives way to its copy. Masks stay. */
	lay(policy: Policy): Policy {
		const copyOf = (path: string) => this.#copies.find(({ base }) => base === path)
		const inRoot = (path: string) => this.#copies.some(({ base }) => inside(path, base))
		return {
			...policy,
			// Else `git status` would write down what it saw of the copy, and that would be asked about.
			env: { GIT_OPTIONAL_LOCKS: '0', ...policy.env },
			base: policy.base.flatMap((mount) => {
				const copy = copyOf(mount.path)
				if (copy) return [{ ...mount, source: copy.path }]
				// A cache or an added folder inside the root would be the real one again.
				return inRoot(mount.path) && mount.kind === 'write' ? [] : [mount]
			}),
			pins: policy.pins.filter((path) => !inRoot(path)),
			protect: policy.protect.filter((path) => !inRoot(path)),
		}
	}

	/** After the command: what it changed. `policy` is the one that `begin` was given. */
	async end(policy: Policy): Promise<StagedChanges> {
		const generation = this.#generation
		const fixed = [...policy.protect, ...policy.absent, ...policy.absentIncludes, ...policy.absentHome]
		const isProtected = (copy: StagingCopy) => (real: string) =>
			fixed.some((path) => inside(real, path)) ||
			rootProtected.some((name) => inside(real, join(copy.base, name))) ||
			gitOwn(copy, real)
		const lists: StagedList[] = []
		for (const copy of this.#copies) lists.push(await listChanges(copy, isProtected(copy)))
		const named = <T extends { path: string }>(pick: (list: StagedList) => readonly T[]) =>
			lists.flatMap((list, index) =>
				pick(list).map((one) => ({
					...one,
					path: index === 0 ? one.path : join(this.#copies[index]!.base, one.path),
				})),
			)
		return {
			changes: named((list) => list.changes).map(({ path, kind, ...change }) => ({
				path,
				kind,
				folder: (change.new ?? change.old)?.kind === 'folder',
			})),
			refused: named((list) => list.refused),
			summary: await describeChanges(this.#copies, lists),
			apply: async (signal) => {
				if (generation !== this.#generation)
					throw new ToolError('Another command ran since: these changes are gone. Run the command again.')
				// One root after the other: each as a whole.
				for (const [index, list] of lists.entries()) await applyChanges(this.#copies[index]!, list.changes, signal)
			},
		}
	}
}

/** What makes git run programs, in a repository that was there before the command; a new one has none of the user's trust. */
const gitOwn = (copy: StagingCopy, real: string): boolean => {
	const found = /^(.*\/\.git)\/(?:modules\/(?:.*\/)?)?([^/]+)/.exec(real)
	return found !== null && gitProtected.includes(found[2]!) && copy.known.has(found[1]!.slice(copy.base.length + 1))
}
