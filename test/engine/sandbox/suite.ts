// Runs every probe and every attack script in one setting, inside the sandbox and (for liveness) without it.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import { homeSecrets } from '../../../src/engine/sandbox/names.ts'
import { type Fixture, makeFixture, type Setting, withServices } from './fixture.ts'
import { probes } from './probes.ts'

export interface Row {
	id: string
	escaped: boolean
}

export interface Report {
	/** What got through the sandbox. */
	inside: Row[]
	/** What acts without it. */
	outside: Row[]
}

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
export interface Act {
	id: string
	script: string
	/** Made by an attack script that acts. */
	marker?: string
}

/** Many small scripts in one command, each in a shell of its own; prints the ids of those that say ESCAPED. */
export const batchText = (acts: Act[]): string =>
	acts
		.map(
			({ id, script, marker }) =>
				`r=$(${marker ? `M=${quote(marker)} ` : ''}timeout -k 1 10 /bin/bash -c ${quote(script)} 2>/dev/null </dev/null) 2>/dev/null; case $r in *ESCAPED*) echo ${quote(`@@${id}`)};; esac`,
		)
		.join('\n')

const bare = (script: string, fixture: Fixture): Promise<string> =>
	new Promise((resolve) => {
		// An open pipe on 3 stands for what a careless host leaves open.
		const child = spawn('/bin/bash', ['-c', script], {
			cwd: fixture.root,
			env: { ...fixture.env, ...fixture.vars },
			stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
		})
		let out = ''
		child.stdout!.on('data', (chunk) => {
			out += chunk
		})
		child.on('close', () => resolve(out))
	})

export const chunk = <T>(all: T[], size: number): T[][] =>
	Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))

export const result = (acts: Act[], output: string): Row[] =>
	acts.map(({ id, marker }) => ({ id, escaped: marker ? existsSync(marker) : output.split('\n').includes(`@@${id}`) }))

const fresh = (setting: Setting) => withServices(makeFixture(setting === 'root = home', homeSecrets))

export const attackScripts = (path: string): { id: string; script: string }[] =>
	(JSON.parse(readFileSync(path, 'utf8')) as { id: string; script?: string }[]).flatMap(({ id, script }) =>
		script ? [{ id, script }] : [],
	)

export const runSuite = async (
	setting: Setting,
	attacks: { id: string; script: string }[],
	/** Which of them run without the sandbox too. */
	control: (act: { id: string }) => boolean,
): Promise<Report> => {
	const all: Act[] = probes.filter((probe) => !probe.in || probe.in.includes(setting))
	const acts = (fixture: Fixture): Act[] => [
		// A place that commands see but must not write; in plan mode even the root itself.
		...attacks.map(({ id, script }) => ({
			id,
			script,
			marker: join(
				setting === 'plan' ? fixture.root : setting === 'root = home' ? join(fixture.home, '.ssh') : fixture.home,
				`m-${id}`,
			),
		})),
		...all,
	]
	const report: Report = { inside: [], outside: [] }
	const inside = async () => {
		const fixture = await fresh(setting)
		const { executor } = await createExecutor(fixture.options())
		try {
			const runs = chunk(acts(fixture), 40).map(async (some) => {
				const { output, code, timedOut } = await executor.run(
					{
						script: batchText(some),
						cwd: fixture.root,
						env: fixture.vars,
						timeoutMs: 60_000,
						readOnly: setting === 'plan',
						maxOutput: 1_000_000,
					},
					new AbortController().signal,
				)
				if (code === null || timedOut) throw new Error(`a batch did not end by itself: ${output.slice(-500)}`)
				report.inside.push(...result(some, output))
			})
			await Promise.all(runs)
		} finally {
			await executor.close()
			await fixture.remove()
		}
	}
	const outside = async () => {
		const fixture = await fresh(setting)
		try {
			// One after the other: here they act, and would disturb each other.
			for (const some of chunk(acts(fixture).filter(control), 40))
				report.outside.push(...result(some, await bare(batchText(some), fixture)))
		} finally {
			rmSync(join(fixture.root, 'mnt'), { recursive: true, force: true })
			await fixture.remove()
		}
	}
	await Promise.all([inside(), outside()])
	return report
}
