// A Garuda of a moment for killed.test.ts: one command to make ready, then one that sleeps. Says when the second begins.
import { join } from 'node:path'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import type { StagedSpec } from '../../../src/engine/sandbox/staging.ts'

const [base, seconds, where] = process.argv.slice(2) as [string, string, 'auto' | 'host' | 'staged']
const { executor, reason } = await createExecutor({
	root: join(base, 'root'),
	extraDirs: [],
	home: join(base, 'home'),
	tmp: join(base, 'tmp'),
	env: { PATH: '/usr/bin:/bin' },
	executor: where === 'host' ? where : 'auto',
	staging: where === 'staged',
	profile: 'standard',
	writePaths: [],
	envAllow: [],
	caches: [],
})
if (reason && where !== 'host') throw new Error(reason)
const run = (script: string) => {
	const spec: StagedSpec = { script, cwd: join(base, 'root'), timeoutMs: 60_000, staged: where === 'staged' }
	return executor.run(spec, new AbortController().signal)
}
await run('true')
await new Promise((done) => setTimeout(done, 100))
process.stdout.write('x')
await run(`sleep ${seconds}`)
