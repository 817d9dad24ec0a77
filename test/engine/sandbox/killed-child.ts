// A Garuda of a moment for killed.test.ts: one command to make ready, then one that sleeps. Says when the second begins.
import { join } from 'node:path'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'

const [base, seconds, where] = process.argv.slice(2) as [string, string, 'auto' | 'host']
const { executor, reason } = await createExecutor({
	root: join(base, 'root'),
	extraDirs: [],
	home: join(base, 'home'),
	tmp: join(base, 'tmp'),
	env: { PATH: '/usr/bin:/bin' },
	executor: where,
	profile: 'standard',
	writePaths: [],
	envAllow: [],
	caches: [],
})
if (reason && where === 'auto') throw new Error(reason)
const run = (script: string) =>
	executor.run({ script, cwd: join(base, 'root'), timeoutMs: 60_000 }, new AbortController().signal)
await run('true')
await new Promise((done) => setTimeout(done, 100))
process.stdout.write('x')
await run(`sleep ${seconds}`)
