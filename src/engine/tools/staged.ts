// What a staged command changed, from the copy to the project: compared with what was declared, asked about, applied. Used by bash.
import { resolve } from 'node:path'
import { ToolError } from '../errors.ts'
import { compileGlob } from '../permission/match.ts'
import type { RunResult, ToolContext } from '../ports.ts'
import type { StagedChanges, StagedRun } from '../sandbox/staging.ts'
import { oneLine } from '../text.ts'
import type { Effect } from '../types.ts'

export type ChangeKind = 'create' | 'change' | 'delete'

/** What the model says a command will change. It only narrows: it never allows anything by itself. */
export interface DeclaredEffect {
	/** A glob relative to the working root. */
	path: string
	kinds: ChangeKind[]
}

export const effectsProperty = {
	effects: {
		description:
			'What the command will change in the project, as narrowly as you can. Changes beyond it are asked about by name',
		type: 'array',
		maxItems: 50,
		items: {
			type: 'object',
			properties: {
				path: {
					description: 'Glob relative to the project, e.g. src/**/*.ts',
					type: 'string',
					minLength: 1,
					maxLength: 500,
				},
				kinds: {
					type: 'array',
					minItems: 1,
					maxItems: 3,
					items: { type: 'string', enum: ['create', 'change', 'delete'] },
				},
			},
			required: ['path', 'kinds'],
			additionalProperties: false,
		},
	},
}

/** Throws ToolError for a path that is no glob inside the project. The result is in one spelling, sorted. */
export const checkEffects = (effects: readonly DeclaredEffect[]): DeclaredEffect[] =>
	effects
		.map(({ path, kinds }) => {
			const glob = path.replace(/^(?:\.\/)+/, '')
			if (/^[/~]|(?:^|\/)\.\.(?:\/|$)|[\0\r\n]/.test(glob) || glob === '' || !compileGlob(glob, false))
				throw new ToolError(`effects: "${oneLine(path, 200)}" is no path or glob relative to the project.`)
			return { path: glob, kinds: [...new Set(kinds)].sort() }
		})
		.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))

/** One line for each declared effect: what a person is shown, and what an answer covers. */
export const declarationLines = (effects: readonly DeclaredEffect[]): string[] =>
	effects.map(({ path, kinds }) => `${kinds.join(', ')} ${path}`)

/** What was changed beyond what was declared; what is new as a folder on the way to a declared path is not. */
export const beyond = (
	effects: readonly DeclaredEffect[],
	changes: StagedChanges['changes'],
): StagedChanges['changes'] => {
	const globs = effects.map(({ path, kinds }) => ({ kinds, exact: compileGlob(path, false)! }))
	const covered = (path: string, kind: ChangeKind) =>
		globs.some(({ kinds, exact }) => kinds.includes(kind) && exact.test(path))
	return changes.filter(
		({ path, kind, folder }) =>
			!covered(path, kind) &&
			!(folder && kind === 'create' && changes.some((one) => one.path.startsWith(`${path}/`) && !one.folder)),
	)
}

/** An effect with what the rules and earlier answers need to see of a declaration. */
export type ApplyEffect = Extract<Effect, { type: 'apply_changes' }> & {
	/** Only when all changes lie within it: one line each, as `declarationLines` gives them. */
	declared?: string[]
	/** The paths that would change, absolute. */
	paths?: string[]
}

/** Asks and applies, or throws the changes away. Gives notes for the model, and whether the project has the changes now. */
export const settleStaged = async (
	result: RunResult,
	effects: readonly DeclaredEffect[],
	ctx: ToolContext,
): Promise<{ applied: boolean; notes: string[]; paths: string[] }> => {
	const staged = (result as StagedRun).staged
	if (!staged) return { applied: true, notes: [], paths: [] }
	const { changes, refused } = staged
	const named = refused.slice(0, 20).map(({ path, why }) => `${oneLine(path, 200)} (${why})`)
	const more = refused.length > 20 ? ` and ${refused.length - 20} more` : ''
	const left = refused.length > 0 ? [`never applied: ${named.join('; ')}${more}`] : []
	if (changes.length === 0) return { applied: refused.length === 0, notes: left, paths: [] }
	const lost = 'its changes were thrown away: the project is as before'
	if (result.cancelled || ctx.signal.aborted) return { applied: false, notes: [lost], paths: [] }
	const others = effects.length > 0 ? beyond(effects, changes) : []
	const within = effects.length > 0 && others.length === 0
	const lines = declarationLines(effects)
	const head =
		effects.length === 0
			? []
			: within
				? ['All within what was declared:', ...lines.map((line) => `  ${line}`), '']
				: [
						'BEYOND what was declared:',
						...others.slice(0, 200).map(({ path, kind }) => `  ${kind} ${oneLine(path, 500)}`),
						...(others.length > 200 ? [`  … and ${others.length - 200} more`] : []),
						'declared was:',
						...lines.map((line) => `  ${line}`),
						'',
					]
	const paths = changes.map(({ path }) => resolve(ctx.root, path))
	const effect: ApplyEffect = {
		type: 'apply_changes',
		summary: [...head, staged.summary].join('\n'),
		...(within && { declared: lines }),
		paths,
	}
	const { allowed, reason } = await ctx.request(effect)
	if (!allowed || ctx.signal.aborted)
		return { applied: false, notes: [`${lost}. ${reason}`.trim(), ...left], paths: [] }
	try {
		await staged.apply(ctx.signal)
	} catch (error) {
		// What the command said still matters; a bug stays one.
		if (!(error instanceof ToolError) && !ctx.signal.aborted) throw error
		return { applied: false, notes: [error instanceof ToolError ? error.message : lost, ...left], paths: [] }
	}
	const count = (kind: ChangeKind) => changes.filter((one) => one.kind === kind).length
	const counts = [`${count('create')} new`, `${count('change')} changed`, `${count('delete')} deleted`].filter(
		(text) => !text.startsWith('0 '),
	)
	return { applied: true, notes: [`applied to the project: ${counts.join(', ')}`, ...left], paths }
}
