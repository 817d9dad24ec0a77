// What the host list adds: the first command (namespace and proxy made), and each later one, against the same sandbox without it.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createExecutor } from '../src/engine/sandbox/index.ts'
import { openNamespace } from '../src/engine/sandbox/namespace-holder.ts'
import { findBubblewrap, findNsenter } from '../src/engine/sandbox/programs.ts'

const rounds = Number(process.argv[2] ?? 60)
const base = mkdtempSync(join(tmpdir(), 'garuda-bench-'))
const [root, home] = ['root', 'home'].map((name) => join(base, name)) as [string, string]
for (const path of [root, home, join(root, '.git/hooks')]) mkdirSync(path, { recursive: true })
const sandbox = async (name: string, hosts?: string[]) => {
	const tmp = join(base, name)
	mkdirSync(tmp)
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
		...(hosts && { network: { hosts } }),
	})
	return executor
}
const at = (values: number[], part: number) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]!
const time = async (way: () => Promise<unknown>) => {
	const start = performance.now()
	await way()
	return performance.now() - start
}

const programs = { bwrap: findBubblewrap()!, nsenter: findNsenter()! }
const ready: number[] = []
for (let round = -1; round < 10; round++) {
	const took = await time(async () => (await openNamespace(programs)).close())
	if (round >= 0) ready.push(took)
}
const show = (name: string, values: number[], more = '') =>
	console.log(
		`${name.padEnd(24)} min ${at(values, 0).toFixed(1)}  median ${at(values, 0.5).toFixed(1)}  p95 ${at(values, 0.95).toFixed(1)} ms${more}`,
	)
show('namespace ready', ready, `  (aim: median <= 150: ${at(ready, 0.5) <= 150 ? 'met' : 'MISSED'})`)

const [plain, listed] = [await sandbox('plain'), await sandbox('listed', ['registry.npmjs.org'])]
const never = new AbortController().signal
const spec = { script: 'true', cwd: root, timeoutMs: 10_000 }
const ways = [plain, listed].map((executor) => () => executor.run(spec, never))
const times: number[][] = [[], []]
for (let round = -5; round < rounds; round++)
	for (const [index, way] of ways.entries()) {
		const took = await time(way)
		if (round >= 0) times[index]!.push(took)
	}
const more = at(times[1]!, 0.5) - at(times[0]!, 0.5)
show('sandboxed, no network', times[0]!)
show('sandboxed, host list', times[1]!)
console.log(`host list adds ${more.toFixed(1)} ms median (aim: <= 12: ${more <= 12 ? 'met' : 'MISSED'})`)
await Promise.all([plain.close(), listed.close()])
rmSync(base, { recursive: true })
