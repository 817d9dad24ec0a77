// Starts one background process in a real sandbox and then waits to be killed; for the test of a hard kill.
import { mkdirSync } from 'node:fs'
import { createDaemons } from '../../../src/engine/sandbox/daemons.ts'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'

const [root, home, tmp, script] = process.argv.slice(2) as [string, string, string, string]
for (const path of [root, home, tmp]) mkdirSync(path, { recursive: true })
const { executor } = await createExecutor({
	root,
	extraDirs: [],
	home,
	tmp,
	env: process.env,
	executor: 'sandbox',
	profile: 'standard',
	writePaths: [],
	envAllow: [],
	caches: [],
})
const state = await createDaemons({ max: 1, lines: 100 }).start(executor, { script, cwd: root })
console.log(JSON.stringify(state))
setInterval(() => {}, 1_000)
