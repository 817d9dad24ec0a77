// The product where an ordinary user can read it, for tests that start as root.
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, linkSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const top = new URL('../../../', import.meta.url).pathname

/** The product and the tests in a folder that anybody can read, with the Node that runs here. */
export const readableCopy = (): string => {
	const copy = mkdtempSync(join(tmpdir(), 'garuda-copy-'))
	chmodSync(copy, 0o755)
	for (const path of ['src/engine', 'test/engine/sandbox', 'test/cases'])
		cpSync(join(top, path), join(copy, path), { recursive: true, filter: (from) => !from.endsWith('.test.ts') })
	// What staging shows its changes with.
	cpSync(join(top, 'node_modules/diff'), join(copy, 'node_modules/diff'), { recursive: true })
	writeFileSync(join(copy, 'package.json'), '{"type":"module"}')
	try {
		linkSync(process.execPath, join(copy, 'node'))
	} catch {
		cpSync(process.execPath, join(copy, 'node'))
	}
	mkdirSync(join(copy, 'tmp'), { mode: 0o777 })
	chmodSync(join(copy, 'tmp'), 0o777)
	execFileSync('chmod', ['-R', 'a+rX', copy])
	return copy
}

/** The driver with an errand, as nobody. */
export const asNobody = (copy: string, args: string[], before: string[] = []): SpawnSyncReturns<string> =>
	spawnSync(
		'setpriv',
		[
			'--reuid=65534',
			'--regid=65534',
			'--clear-groups',
			...before,
			join(copy, 'node'),
			join(copy, 'test/engine/sandbox/driver.ts'),
			...args,
		],
		{ cwd: copy, env: { PATH: '/usr/bin:/bin', TMPDIR: join(copy, 'tmp') }, encoding: 'utf8', maxBuffer: 1e8 },
	)
