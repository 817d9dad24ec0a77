// npm run check: tests, format and lint, types, and drift of everything generated. One line a step; the failing ones' output below.
// `--without-tests` leaves the tests out where they have just run; `--long` adds the long property runs.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
const locked = resolve('node_modules/.bin/node')
const node = existsSync(locked) ? locked : process.execPath
const flags = new Set(process.argv.slice(2))

const steps = [
	['types', node, ['node_modules/typescript7/bin/tsc']],
	['format and lint', resolve('node_modules/.bin/biome'), ['check', '--error-on-warnings', '.']],
	['manifest', node, ['scripts/drift.mjs', 'manifest']],
	['docs', node, ['scripts/docs.mjs', '--check']],
	['production install', node, ['scripts/drift.mjs', 'production']],
	...(flags.has('--without-tests') ? [] : [['tests', node, ['node_modules/mocha/bin/mocha.js']]]),
]

let failed = 0
for (const [name, command, args] of steps) {
	const begun = Date.now()
	const tests = name === 'tests'
	const env = { ...process.env, ...(flags.has('--long') ? { GARUDA_LONG: '1' } : {}) }
	const result = spawnSync(command, args, {
		stdio: ['ignore', tests ? 'inherit' : 'pipe', tests ? 'inherit' : 'pipe'],
		encoding: 'utf8',
		env,
	})
	const ok = result.status === 0
	if (!ok) failed++
	console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`)
	if (!ok && !tests) console.log(`${result.stdout ?? ''}${result.stderr ?? ''}`.trim())
}
console.log(failed === 0 ? 'check: all good' : `check: ${failed} of ${steps.length} steps failed`)
process.exitCode = failed === 0 ? 0 : 1
