// The attack scripts and named probes against two sandboxes: ours and @anthropic-ai/sandbox-runtime, with what each adds to a command.
//   node --import tsx bench/walls.ts <attacks.json> [rounds]
// It needs bubblewrap, socat, ripgrep and npm; the other sandbox is installed into a temporary folder, in an exact version.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createExecutor } from '../src/engine/sandbox/index.ts'
import { homeSecrets, systemSecrets } from '../src/engine/sandbox/names.ts'
import { type Fixture, makeFixture, withServices } from '../test/engine/sandbox/fixture.ts'
import { probes } from '../test/engine/sandbox/probes.ts'
import { type Act, attackScripts, batchText, chunk, result } from '../test/engine/sandbox/suite.ts'

const version = '0.0.83'
const [file, count] = process.argv.slice(2)
const attacks = file === undefined ? [] : attackScripts(file)
const rounds = Number(count ?? 20)
const never = new AbortController().signal

const other = process.env.GARUDA_BENCH_SRT ?? mkdtempSync(join(tmpdir(), 'garuda-walls-'))
if (process.env.GARUDA_BENCH_SRT === undefined) {
	writeFileSync(join(other, 'package.json'), '{"private":true}')
	execFileSync('npm', ['install', '--no-audit', '--no-fund', '--silent', `@anthropic-ai/sandbox-runtime@${version}`], {
		cwd: other,
		stdio: 'inherit',
	})
}
const srt = join(other, 'node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js')

/** Runs a script; gives its output. */
type Run = (script: string) => Promise<string>
interface Side {
	name: string
	open(fixture: Fixture): Promise<{ run: Run; close(): Promise<void> }>
}

const command = (program: string, args: string[], fixture: Fixture, env: Record<string, string>): Promise<string> =>
	new Promise((resolve) => {
		const child = spawn(program, args, {
			cwd: fixture.root,
			env,
			stdio: ['ignore', 'pipe', 'ignore'],
			timeout: 300_000,
		})
		let out = ''
		child.stdout.on('data', (part) => {
			out += part
		})
		child.on('close', () => resolve(out))
	})

/** The other one with nothing hidden, as its defaults are, and with every secret of our lists named. */
const runtime = (name: string, filesystem: (fixture: Fixture) => object): Side => ({
	name,
	open: async (fixture) => {
		const settings = join(fixture.base, 'srt.json')
		const network = { allowedDomains: [], deniedDomains: [] }
		writeFileSync(settings, JSON.stringify({ network, filesystem: filesystem(fixture) }))
		const env = { ...fixture.env, ...fixture.vars }
		const run: Run = (script) => command(process.execPath, [srt, '--settings', settings, '-c', script], fixture, env)
		return { run, close: async () => {} }
	},
})

const sides: Side[] = [
	{
		name: 'none',
		open: async (fixture) => ({
			run: (script) => command('/bin/bash', ['-c', script], fixture, { ...fixture.env, ...fixture.vars }),
			close: async () => {},
		}),
	},
	{
		name: 'Garuda',
		open: async (fixture) => {
			const { executor } = await createExecutor(fixture.options())
			const run: Run = async (script) => {
				const spec = { script, cwd: fixture.root, env: fixture.vars, timeoutMs: 300_000, maxOutput: 1_000_000 }
				return (await executor.run(spec, never)).output
			}
			return { run, close: () => executor.close() }
		},
	},
	runtime(`sandbox-runtime ${version}, no secrets named`, ({ root }) => ({
		denyRead: [],
		allowWrite: [root],
		denyWrite: [],
	})),
	runtime(`sandbox-runtime ${version}, all secrets named`, ({ root, home }) => ({
		denyRead: [...homeSecrets.map((name) => join(home, name)), ...systemSecrets],
		allowWrite: [root],
		denyWrite: [],
	})),
]

const acts = (fixture: Fixture): Act[] => [
	...attacks.map(({ id, script }) => ({ id, script, marker: join(fixture.home, `m-${id}`) })),
	...probes.filter((probe) => !probe.in || probe.in.includes('build')),
]

interface Measured {
	name: string
	escaped: Set<string>
	all: number
	ms: number
}
const table: Measured[] = []
for (const side of sides) {
	const fixture = await withServices(makeFixture(false, homeSecrets))
	const opened = await side.open(fixture)
	try {
		if (!(await opened.run('echo al""ive')).includes('alive')) throw new Error(`${side.name} runs nothing here`)
		const all = acts(fixture)
		const escaped = new Set<string>()
		for (const some of chunk(all, 20))
			for (const row of result(some, await opened.run(batchText(some)))) if (row.escaped) escaped.add(row.id)
		const times: number[] = []
		for (let round = 0; round < rounds; round++) {
			const begun = performance.now()
			await opened.run('true')
			times.push(performance.now() - begun)
		}
		table.push({ name: side.name, escaped, all: all.length, ms: times.toSorted((a, b) => a - b)[rounds >> 1]! })
	} finally {
		await opened.close()
		rmSync(join(fixture.root, 'mnt'), { recursive: true, force: true })
		await fixture.remove()
	}
}
if (process.env.GARUDA_BENCH_SRT === undefined) rmSync(other, { recursive: true, force: true })

const [bare] = table as [Measured]
const live = bare.escaped
console.log(
	`${attacks.length} attack scripts and ${bare.all - attacks.length} named probes; ${live.size} act without a sandbox here.\n`,
)
console.log('| sandbox | attack scripts that act | probes that get through | overhead of a command (median) |')
console.log('|---|---|---|---|')
const ids = new Set(attacks.map(({ id }) => id))
for (const { name, escaped, ms } of table) {
	// Only what acts without a sandbox says something.
	const through = [...escaped].filter((id) => live.has(id))
	const scripts = through.filter((id) => ids.has(id)).length
	console.log(
		`| ${name} | ${scripts} | ${through.length - scripts} | ${name === 'none' ? '' : `${(ms - bare.ms).toFixed(0)} ms`} |`,
	)
}
for (const { name, escaped } of table.slice(1)) {
	const through = [...escaped].filter((id) => live.has(id)).sort()
	console.log(`\n${name}: ${through.length === 0 ? 'nothing' : through.join(', ')}`)
}
