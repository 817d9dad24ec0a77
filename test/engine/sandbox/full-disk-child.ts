// A Garuda on a full disk for full-disk.test.ts, in a mount space where the project is a small disk of its own. Says what it saw as JSON.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'

const base = process.argv[2]!
const root = join(base, 'root')
const git = (...args: string[]): string => {
	try {
		return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
	} catch (error) {
		return `FAILED ${(error as { stderr?: string }).stderr ?? error}`
	}
}
git('init', '-q', '--template=')
git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'one')
const { executor, reason } = await createExecutor({
	root,
	extraDirs: [],
	home: join(base, 'home'),
	tmp: join(base, 'tmp'),
	env: { PATH: '/usr/bin:/bin' },
	executor: 'auto',
	profile: 'standard',
	writePaths: [],
	envAllow: [],
	caches: [],
})
if (reason) throw new Error(reason)
let during = ''
const run = async (script: string) => {
	during = ''
	const result = await executor.run(
		{
			script,
			cwd: root,
			timeoutMs: 30_000,
			onOutput: () => {
				during ||= `${git('status', '--short', '-uno')}commondir ${existsSync(join(root, '.git/commondir')) ? readFileSync(join(root, '.git/commondir'), 'utf8') : 'none'}`
			},
		},
		new AbortController().signal,
	)
	return {
		output: result.output,
		findings: result.findings ?? [],
		during,
		after: git('status', '--short', '-uno'),
		left: readdirSync(join(root, '.git')).filter((name) => name.includes('commondir')),
	}
}
const fill = () => {
	for (const size of [65_536, 4_096, 1])
		try {
			for (let at = 0; ; at++) writeFileSync(join(root, `fill-${size}-${at}`), 'x'.repeat(size))
		} catch (error) {
			if ((error as { code?: string }).code !== 'ENOSPC') throw error
		}
}
fill()
const attack =
	'echo on; sleep 0.5; rm -f fill-*; mkdir evil && echo made; echo ../evil > .git/commondir && echo PLANTED'
const full = await run(attack)
rmSync(join(root, 'evil'), { recursive: true, force: true })
const free = await run(attack)
fill()
writeFileSync(join(root, '.git/commondir'), '')
const empty = await run('echo on; sleep 0.3')
process.stdout.write(JSON.stringify({ full, free, empty }))
await executor.close()
process.exit()
