// Runs the suite, or one other errand, as whoever starts it, and prints the outcome as JSON; for the tests that need another user.
import { mkdirSync } from 'node:fs'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import { attackScripts, runSuite } from './suite.ts'

const [errand, ...rest] = process.argv.slice(2) as [string, ...string[]]
const never = new AbortController().signal

if (errand === 'staged') await (await import('./staging-driver.ts')).staged(rest)
else if (errand === 'suite') console.log(JSON.stringify(await runSuite('user', attackScripts(rest[0]!), () => true)))
else {
	// choose, run, outside, network (with a host list); open leaves the executor open, stay never ends.
	// root, home, tmp[, script]
	const [root, home, session, script] = rest as [string, string, string, string]
	const tmp = session.replace('s-PID-', `s-${process.pid}-`)
	for (const path of [root, home, tmp]) mkdirSync(path, { recursive: true })
	const options = {
		root,
		extraDirs: [],
		home,
		tmp,
		env: process.env,
		profile: 'standard' as const,
		writePaths: [],
		envAllow: [],
		caches: [],
		...(errand === 'network' && { network: { hosts: ['ok.example'] } }),
	}
	const { executor, notice, reason } = await createExecutor({ ...options, executor: 'auto', limits: { processes: 40 } })
	const result =
		errand === 'choose'
			? undefined
			: await executor.run({ script, cwd: root, timeoutMs: 10_000, outside: errand === 'outside' }, never)
	console.log(JSON.stringify({ kind: executor.kind, notice, reason, result }))
	if (errand === 'open') await new Promise((resolve) => setTimeout(resolve, 100))
	else if (errand === 'stay') setInterval(() => {}, 1_000)
	else await executor.close()
}
