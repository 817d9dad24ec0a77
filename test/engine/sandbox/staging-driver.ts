// Staged commands as another user, for staging-user.test.ts: runs each script, applies what it changed, prints the results.
import { mkdirSync } from 'node:fs'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import type { StagedRun, StagedSpec } from '../../../src/engine/sandbox/staging.ts'

export interface StagedOutcome {
	output: string
	code: number | null
	changes: string[]
	refused: string[]
}

/** root, home, session, `network` or '', then scripts. */
export const staged = async ([root, home, session, network, ...scripts]: string[]): Promise<void> => {
	for (const path of [root!, home!, session!]) mkdirSync(path, { recursive: true })
	const { executor } = await createExecutor({
		root: root!,
		home: home!,
		tmp: session!,
		extraDirs: [],
		env: process.env,
		executor: 'sandbox',
		profile: 'standard',
		writePaths: [],
		envAllow: [],
		caches: [],
		staging: true,
		...(network && { network: { hosts: ['ok.example'] } }),
	})
	const never = new AbortController().signal
	const results: StagedOutcome[] = []
	for (const script of scripts) {
		const spec: StagedSpec = { script, cwd: root!, timeoutMs: 20_000, staged: true }
		const { output, code, staged: changed }: StagedRun = await executor.run(spec, never)
		await changed!.apply(never)
		results.push({
			output,
			code,
			changes: changed!.changes.map(({ kind, path }) => `${kind} ${path}`),
			refused: changed!.refused.map(({ path, why }) => `${path}: ${why}`),
		})
	}
	await executor.close()
	console.log(JSON.stringify(results))
}
