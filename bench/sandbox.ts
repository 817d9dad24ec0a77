// What the sandbox adds to a command: `sh -c true` bare and in the executor, in turns, so that both meet the same noise.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createExecutor } from '../src/engine/sandbox/index.ts'

const rounds = Number(process.argv[2] ?? 60)
const base = mkdtempSync(join(tmpdir(), 'garuda-bench-'))
const [root, home, tmp] = ['root', 'home', 'tmp'].map((name) => join(base, name)) as [string, string, string]
for (const path of [root, home, tmp, join(home, '.ssh'), join(root, '.git/hooks')]) mkdirSync(path, { recursive: true })

const { executor, reason } = await createExecutor({
	root,
	extraDirs: [],
	home,
	tmp,
	env: process.env,
	executor: 'auto',
	profile: 'standard',
	writePaths: [],
	envAllow: [],
	caches: [],
})
if (reason) console.log(`no sandbox here (${reason}): this measures the host executor`)

const bare = () =>
	new Promise<void>((resolve) => {
		spawn('/bin/sh', ['-c', 'true'], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] }).on('close', () => resolve())
	})
const never = new AbortController().signal
const run = (spec: { script?: string; argv?: string[]; readOnly?: boolean; separate?: boolean }) => () =>
	executor.run({ ...spec, cwd: root, timeoutMs: 10_000 }, never)

const ways: [name: string, way: () => Promise<unknown>][] = [
	['bare sh -c true', bare],
	['sandboxed script', run({ script: 'sh -c true' })],
	['sandboxed, not ready', run({ script: 'sh -c true', separate: true })],
	['sandboxed argv', run({ argv: ['sh', '-c', 'true'] })],
	['sandboxed, plan mode', run({ script: 'sh -c true', readOnly: true })],
]
const times = ways.map((): number[] => [])
for (let round = -5; round < rounds; round++)
	for (const [index, [, way]] of ways.entries()) {
		// As between two commands of a model: what the executor does in between must not count for the next one, nor be hidden in it.
		await delay(40)
		const start = performance.now()
		await way()
		if (round >= 0) times[index]!.push(performance.now() - start)
	}
const at = (values: number[], part: number) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]!
const floor = at(times[0]!, 0.5)
for (const [index, [name]] of ways.entries()) {
	const median = at(times[index]!, 0.5)
	console.log(
		`${name.padEnd(22)} min ${at(times[index]!, 0).toFixed(1)}  median ${median.toFixed(1)}  p95 ${at(times[index]!, 0.95).toFixed(1)}  over bare ${(median - floor).toFixed(1)} ms`,
	)
}
await executor.close()
rmSync(base, { recursive: true })
