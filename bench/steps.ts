// A turn of 20 read_file calls: what each step costs between the end of one answer and the arrival of the next request.
// npx node --import tsx bench/steps.ts [rounds] [--strict]
import { floor, median, modelServer, must, place, product, type Row, report, rounds, wires } from './common.ts'

const steps = 20
const n = rounds(9)
const server = await modelServer()
const names = Array.from({ length: steps }, (_, i) => `file-${i}.ts`)
const text = `${'export const value = compute(left, right) // as it was\n'.repeat(80)}`
const at = place(Object.fromEntries(names.map((name) => [name, text])))
const answers = [
	...names.map((path) => ({ calls: [{ name: 'read_file', input: { path } }] })),
	{ text: 'I have read all of them.' },
]
const rows: Row[] = []

/** Times between the end of an answer and the next request, of one run. */
const between = (from: number): number[] =>
	server.exchanges.slice(from + 1).map((one, i) => one.arrived - server.exchanges[from + i]!.answered)

try {
	for (const wire of wires) {
		const times: Record<'floor' | 'product', { step: number[]; last: number[]; wall: number[] }> = {
			floor: { step: [], last: [], wall: [] },
			product: { step: [], last: [], wall: [] },
		}
		const peaks: number[] = []
		server.play(answers)
		await product(at, server, wire)
		for (let i = 0; i < n; i++)
			for (const name of ['floor', 'product'] as const) {
				server.play(answers)
				const from = server.exchanges.length
				const run = must(
					name === 'floor'
						? await floor(at, server, wire, steps)
						: await product(at, server, wire, { peak: i % 3 === 2 }),
				)
				const list = between(from)
				if (list.length !== steps) throw new Error(`${name}: ${list.length} steps`)
				times[name].step.push(median(list))
				times[name].last.push(median(list.slice(-5)))
				times[name].wall.push(run.wall)
				if (run.peak > 0) peaks.push(run.peak)
			}
		rows.push(
			{
				what: `${wire}: a step, over the server's time`,
				measured: median(times.product.step),
				unit: 'ms',
				floor: median(times.floor.step),
				bar: { value: 4 },
				peers: 'pi 4.5, gemini 7.6, claude --bare 23, codex 57, opencode 213',
			},
			{
				what: `${wire}: the last five steps`,
				measured: median(times.product.last),
				unit: 'ms',
				floor: median(times.floor.last),
			},
			{
				what: `${wire}: the whole turn`,
				measured: median(times.product.wall),
				unit: 'ms',
				floor: median(times.floor.wall),
				peers: 'pi 583, claude --bare 999, codex 1,504, gemini 2,056',
			},
		)
		if (peaks.length > 0)
			rows.push({
				what: `${wire}: peak memory`,
				measured: median(peaks) / 1024,
				unit: 'MiB',
				peers: 'pi 133, codex 152, claude 271',
			})
	}
	report(`steps, ${n} rounds of ${steps}`, rows)
} finally {
	await server.close()
	at.remove()
}
