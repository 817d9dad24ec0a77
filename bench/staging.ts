// What staging costs in a large project: `echo > x`, staged, in a tree of 30,000 files; on a copy and on an overlay, in turns.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createExecutor } from '../src/engine/sandbox/index.ts'
import type { StagedRun, StagedSpec } from '../src/engine/sandbox/staging.ts'

const rounds = Number(process.argv[2] ?? 15)
const files = Number(process.argv[3] ?? 30_000)
const base = mkdtempSync(join(tmpdir(), 'garuda-bench-'))
const never = new AbortController().signal
try {
	const [root, home] = ['root', 'home'].map((name) => join(base, name)) as [string, string]
	mkdirSync(home)
	for (let index = 0; index < files; index++) {
		const folder = join(root, `package-${Math.floor(index / 500)}`, `src-${Math.floor(index / 25) % 20}`)
		if (index % 25 === 0) mkdirSync(folder, { recursive: true })
		writeFileSync(join(folder, `file-${index}.ts`), `export const n${index} = ${index}\n`.repeat(20))
	}
	const open = async (staging: true | 'copy') => {
		const tmp = join(base, `tmp-${staging}`)
		mkdirSync(tmp)
		const { executor } = await createExecutor({
			...{ root, home, tmp, staging, extraDirs: [], env: process.env, writePaths: [], envAllow: [], caches: [] },
			executor: 'sandbox',
			profile: 'standard',
		})
		const run = async (staged: boolean): Promise<StagedRun> => {
			const spec: StagedSpec = { script: 'echo > x', cwd: root, timeoutMs: 600_000, staged }
			return executor.run(spec, never)
		}
		return { executor, run }
	}
	const [copy, overlay] = [await open('copy'), await open(true)]
	const ways: [name: string, run: () => Promise<StagedRun>][] = [
		['not staged', () => overlay.run(false)],
		['staged on a copy', () => copy.run(true)],
		['staged on an overlay', () => overlay.run(true)],
	]
	const first: number[] = []
	const times = ways.map((): number[] => [])
	for (let round = -1; round < rounds; round++)
		for (const [index, [name, run]] of ways.entries()) {
			rmSync(join(root, 'x'), { force: true })
			await delay(40)
			const start = performance.now()
			const { code, output, staged } = await run()
			const took = performance.now() - start
			if (code !== 0 || (index > 0 && staged?.changes.length !== 1)) throw new Error(`${name}: ${code} ${output}`)
			if (output.includes('work on a copy')) throw new Error(`no overlay here: ${output}`)
			if (round < 0) first.push(took)
			else times[index]!.push(took)
		}
	const at = (values: number[], part: number) =>
		values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]!
	console.log(`\`echo > x\` in ${files.toLocaleString('en')} files, ${rounds} rounds`)
	for (const [index, [name]] of ways.entries()) {
		const [min, median, p95] = [0, 0.5, 0.95].map((part) => at(times[index]!, part).toFixed(0).padStart(6))
		console.log(
			`${name.padEnd(22)} first ${first[index]!.toFixed(0).padStart(6)}  min ${min}  median ${median}  p95 ${p95} ms`,
		)
	}
	const [, slow, fast] = times.map((values) => at(values, 0.5)) as [number, number, number]
	console.log(`copy : overlay  first ${(first[1]! / first[2]!).toFixed(1)}  median ${(slow / fast).toFixed(1)}`)
	await copy.executor.close()
	await overlay.executor.close()
} finally {
	rmSync(base, { recursive: true, force: true })
}
