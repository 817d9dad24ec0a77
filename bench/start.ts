// From the start of the process to its end: --version, and a one-shot hello in both wires, beside bare Node and a minimal loop.
// npx node --import tsx bench/start.ts [rounds] [--strict]
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import {
	bin,
	floor,
	median,
	modelServer,
	must,
	place,
	product,
	type Row,
	report,
	rounds,
	time,
	type Wire,
	wires,
} from './common.ts'

const n = rounds(15)
const server = await modelServer()
const at = place()
const env = { HOME: at.home }
const rows: Row[] = []
const cacheFolder = join(at.home, '.garuda', 'cache')
const hello = [{ text: 'Hello! What shall we do?' }]

try {
	// --version
	const bare: number[] = []
	const version: number[] = []
	const coldVersion: number[] = []
	await time([bin, '--version'], { cwd: at.root, env })
	for (let i = 0; i < n; i++) {
		bare.push(must(await time(['-e', '0'], { cwd: at.root, env })).wall)
		version.push(must(await time([bin, '--version'], { cwd: at.root, env })).wall)
		if (i % 3 === 0) {
			rmSync(cacheFolder, { recursive: true, force: true })
			coldVersion.push(must(await time([bin, '--version'], { cwd: at.root, env })).wall)
		}
	}
	const bareMs = median(bare)
	rows.push({
		what: '--version',
		measured: median(version),
		unit: 'ms',
		floor: bareMs,
		bar: { ratio: 1.4 },
		peers: 'claude 30, qwen 50, codex 58, pi 262, gemini 1,558',
	})
	rows.push({ what: '--version, cold cache', measured: median(coldVersion), unit: 'ms', floor: bareMs })

	// hello
	for (const wire of wires) {
		const first: Record<string, number[]> = {}
		const wall: Record<string, number[]> = {}
		const run = async (name: string, start: () => ReturnType<typeof floor>) => {
			server.play(hello)
			const before = server.exchanges.length
			const timed = must(await start())
			first[name] = [...(first[name] ?? []), server.exchanges[before]!.arrived - timed.started]
			wall[name] = [...(wall[name] ?? []), timed.wall]
		}
		for (let i = 0; i < 2; i++) await run('warm up', () => product(at, server, wire))
		for (let i = 0; i < n; i++) {
			await run('floor', () => floor(at, server, wire))
			await run('product', () => product(at, server, wire))
			const key = { [wire === 'openai' ? 'OPENAI_API_KEY' : 'ANTHROPIC_API_KEY']: 'sk-in-the-environment' }
			if (i % 2 === 0) await run('handed', () => product(at, server, wire, { env: key }))
		}
		for (let i = 0; i < Math.ceil(n / 3); i++) {
			rmSync(cacheFolder, { recursive: true, force: true })
			await run('cold', () => product(at, server, wire))
		}
		const row = (what: string, list: typeof first, name: string, more: Partial<Row> = {}) =>
			rows.push({
				what: `${wire}: ${what}`,
				measured: median(list[name]!),
				unit: 'ms',
				floor: median(list.floor!),
				...more,
			})
		row('hello, start to first request', first, 'product', {
			bar: { ratio: wire === 'openai' ? 2.4 : 3 },
			peers: 'codex 256, pi 402, claude --bare 434, claude 509',
		})
		row('whole hello', wall, 'product', {
			bar: { ratio: 3 },
			peers: 'codex 299, pi 430, claude --bare 479, claude 584',
		})
		row('first request, cold cache', first, 'cold')
		rows.push({
			what: `${wire}: the key in the environment costs`,
			measured: median(first.handed!) - median(first.product!),
			unit: 'ms',
			floor: bareMs,
		})
		const firstRequest = server.exchanges.at(-1)!
		rows.push({
			what: `${wire}: weight of the first request`,
			measured: firstRequest.bytes / 1000,
			unit: 'kB',
			bar: { value: 15 },
			peers: 'pi 5.5, opencode 30.8, codex 40.6, claude 88.3',
		})
		await memory(wire)
	}
	report(`start, ${n} rounds`, rows)
} finally {
	await server.close()
	at.remove()
}

async function memory(wire: Wire): Promise<void> {
	await product(at, server, wire)
	const peaks: number[] = []
	const floors: number[] = []
	for (let i = 0; i < Math.ceil(n / 3); i++) {
		server.play(hello)
		floors.push(must(await floor(at, server, wire, 0, true)).peak)
		server.play(hello)
		peaks.push(must(await product(at, server, wire, { peak: true })).peak)
	}
	rows.push({
		what: `${wire}: peak memory of hello`,
		measured: median(peaks) / 1024,
		unit: 'MiB',
		floor: median(floors) / 1024,
		bar: { value: 115 },
		peers: 'pi 115, codex 144, claude 202, gemini 228',
	})
}
