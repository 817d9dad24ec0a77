// An answer of 20,000 deltas: what each costs over a hello, as text and as JSON events, and the memory that it takes.
// npx node --import tsx bench/stream.ts [rounds] [--strict]
import {
	floor,
	median,
	modelServer,
	must,
	place,
	product,
	type Row,
	report,
	rounds,
	type Timed,
	wires,
} from './common.ts'

const deltas = 20_000
const n = rounds(7)
const server = await modelServer()
const at = place()
const hello = [{ text: 'Hello! What shall we do?' }]
const long = [{ text: 'words of an answer. '.repeat(deltas), deltas }]
const events = ['--output-format', 'stream-json', '--include-partial-messages']
const rows: Row[] = []

try {
	for (const wire of wires) {
		const lists: Record<string, number[]> = {}
		const keep = (name: string, value: number) => {
			const list = lists[name] ?? []
			list.push(value)
			lists[name] = list
		}
		const play = async (name: string, answers: typeof hello, start: () => Promise<Timed>) => {
			server.play(answers)
			const run = must(await start())
			keep(name, run.wall)
			return run
		}
		await play('warm', hello, () => product(at, server, wire))
		await play('warm', hello, () => product(at, server, wire, { args: events }))
		for (let i = 0; i < n; i++) {
			await play('floor hello', hello, () => floor(at, server, wire))
			await play('floor', long, () => floor(at, server, wire))
			await play('hello', hello, () => product(at, server, wire))
			const run = await play('text', long, () => product(at, server, wire))
			if (run.bytes < deltas * 20) throw new Error(`the answer was cut: ${run.bytes} bytes`)
			await play('json hello', hello, () => product(at, server, wire, { args: events }))
			await play('json', long, () => product(at, server, wire, { args: events }))
			if (i % 3 === 0) {
				server.play(long)
				keep('peak', must(await product(at, server, wire, { peak: true })).peak)
				server.play(long)
				keep('peak floor', must(await floor(at, server, wire, 0, true)).peak)
			}
		}
		const each = (name: string, base: string) => ((median(lists[name]!) - median(lists[base]!)) * 1000) / deltas
		const least = each('floor', 'floor hello')
		rows.push(
			{
				what: `${wire}: a delta as text`,
				measured: each('text', 'hello'),
				unit: 'us',
				floor: least,
				bar: { value: 8 },
				peers: 'codex 12, pi 14, claude 19, kimi 117, gemini 715',
			},
			{
				what: `${wire}: a delta as JSON events`,
				measured: each('json', 'json hello'),
				unit: 'us',
				floor: least,
				bar: { value: 25 },
				peers: 'codex 22, pi 35, claude 55, gemini 754 (from whole runs)',
			},
			{
				what: `${wire}: the whole answer`,
				measured: median(lists.text!),
				unit: 'ms',
				floor: median(lists.floor!),
				peers: 'codex 529, pi 701, claude 969, gemini 16,090',
			},
			{
				what: `${wire}: peak memory`,
				measured: median(lists.peak!) / 1024,
				unit: 'MiB',
				floor: median(lists['peak floor']!) / 1024,
				bar: { value: 140 },
				peers: 'codex 147, pi 200, claude 298, gemini 462',
			},
		)
	}
	report(`stream, ${n} rounds of ${deltas.toLocaleString('en')} deltas`, rows)
} finally {
	await server.close()
	at.remove()
}
