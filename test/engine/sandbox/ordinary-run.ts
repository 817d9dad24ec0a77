// Runs the ordinary commands in the real sandbox and prints for each whether it would ask to leave it. Exit 1 when too many do.
//   node --import tsx test/engine/sandbox/ordinary-run.ts [group …]
import { execFileSync, spawnSync } from 'node:child_process'
import {
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	realpathSync,
	rmSync,
	writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { languageProfiles } from '../../../src/engine/languages/profiles.ts'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import { groups, leftOut } from './ordinary.ts'

/** At least so many run where everything is installed, and at most 1 % of them ask. */
const atLeast = 150
const only = process.argv.slice(2)
// Not under /tmp, which commands have for themselves.
const base = realpathSync(mkdtempSync(join(homedir(), '.garuda-ordinary-')))
const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' }
const never = new AbortController().signal
const has = (program: string) =>
	spawnSync('/bin/sh', ['-c', `command -v ${program}`], { env, stdio: 'ignore' }).status === 0

let ran = 0
const asked: string[] = []
const broken: string[] = []
const missing: string[] = []
for (const group of groups) {
	if (only.length > 0 && !only.includes(group.name)) continue
	const absent = group.needs.filter((program) => !has(program))
	if (absent.length > 0) {
		missing.push(`${group.name} (${group.commands.length} commands): no ${absent.join(', ')}`)
		continue
	}
	const [root, home, tmp] = ['project', 'home', 'session'].map((name) =>
		join(base, group.name.replace(/\W/g, '-'), name),
	) as [string, string, string]
	for (const path of [root, home, tmp]) mkdirSync(path, { recursive: true })
	writeFileSync(join(home, '.gitconfig'), '[user]\n\tname = Me\n\temail = me@example.org\n')
	execFileSync('/bin/bash', ['-ec', group.setup], {
		cwd: root,
		env: { ...env, HOME: home },
		stdio: ['ignore', 'ignore', 'inherit'],
	})
	const profiles = await languageProfiles({
		files: readdirSync(root),
		home,
		read: async (path) => {
			const whole = resolve(root, path)
			return existsSync(whole) ? readFileSync(whole, 'utf8') : null
		},
	})
	const caches = profiles.flatMap((profile) => profile.caches)
	// As on a machine where the tools have run before.
	for (const path of caches) mkdirSync(path, { recursive: true })
	const { executor } = await createExecutor({
		...{ root, home, tmp, env, caches },
		...{ extraDirs: [], executor: 'sandbox', profile: 'standard', writePaths: [], envAllow: [] },
	})
	const run = async (command: string, exception: boolean) => {
		const { code, wall, output } = await executor.run({ script: command, cwd: root, timeoutMs: 180_000 }, never)
		const line = `${group.name}: ${command}`
		if (!exception) ran++
		if (code === 0 && !exception) console.log(`  runs         ${line}`)
		else if (wall) {
			console.log(
				`  ${exception ? 'asks (named)' : 'ASKS        '} ${line}\n               ${wall.wall}: ${wall.detail}`,
			)
			if (!exception) asked.push(line)
		} else {
			console.log(`  ${code === 0 ? 'RUNS (named as asking)' : `FAILS (${code})`} ${line}\n${output.slice(-1500)}`)
			broken.push(line)
		}
	}
	for (const command of group.commands) await run(command, false)
	for (const command of group.exceptions ?? []) await run(command, true)
	await executor.close()
}
rmSync(base, { recursive: true, force: true })

for (const [command, why] of leftOut) console.log(`  left out     ${command}: ${why}`)
for (const line of missing) console.log(`  NOT RUN      ${line}`)
const listed = groups.flatMap(({ commands }) => commands).length
const share = (100 * asked.length) / Math.max(1, ran)
console.log(
	`${ran} of ${listed} commands ran; ${asked.length} asked to leave the sandbox (${share.toFixed(1)} %), ${broken.length} failed`,
)
if (share > 1 || broken.length > 0 || (only.length === 0 && ran < atLeast)) process.exitCode = 1
