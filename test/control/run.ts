// The negative control: each element of the walls taken away in turn; at least one test must fail. Prints a table.
//   npm run control [-- words of an element's id …]
//   GARUDA_CONTROL_LOG=<file>: one JSON line a verdict; what it holds already (and was noticed) is not asked again
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Element, elements } from './elements.ts'
import { Copy } from './mutate.ts'
import { printTable, type Record, type Standing } from './table.ts'

/** Elements that no test can see alone, by id. */
type Behind =
	/** Both this one and `with` gone must fail the probe (a test file). */
	| { wall: string; with: string[]; probe: string }
	/** Without it everything is the same: why. */
	| { equivalent: string }

const root = fileURLToPath(new URL('../..', import.meta.url))
const words = process.argv.slice(2)
const log = process.env.GARUDA_CONTROL_LOG
const behind = JSON.parse(readFileSync(new URL('second-walls.json', import.meta.url), 'utf8')) as {
	[id: string]: Behind
}

const first = new Copy(root)
const copies = [first, new Copy(first.dir)]
const every = elements(first.dir)
const byId = new Map(every.map((one) => [one.id, one]))
const all = every.filter(({ id }) => words.every((word) => id.includes(word)))
const verdicts = new Map<string, Record>()
if (log && existsSync(log))
	for (const line of readFileSync(log, 'utf8').split('\n').filter(Boolean)) {
		const record = JSON.parse(line) as Record
		if (byId.has(record.id) && record.verdict === 'noticed') verdicts.set(record.id, record)
	}

/** Which test has noticed how often, by source file: the likely ones are asked first, the copy of the lists last. */
const hits = new Map<string, Map<string, number>>()
const hit = (file: string, test: string) => {
	const known = hits.get(file) ?? new Map<string, number>()
	known.set(test, (known.get(test) ?? 0) + 1)
	hits.set(file, known)
}
for (const { file, by } of verdicts.values()) hit(file, by.slice(0, by.indexOf(':')))
/** The test that noticed last, by source file: neighbours are often seen by the same. */
const last = new Map<string, { test: string; title: string }>()
/** How long each test file takes, in ms. */
const times = new Map<string, number>()
const ordered = ({ file, tests }: Element): string[] => {
	const known = hits.get(file)
	// What has noticed often and is quick first.
	const rank = (test: string) =>
		test === 'control/lists' ? -1 : (Math.min(known?.get(test) ?? 0, 5) + 0.5) / (50 + (times.get(test) ?? 0))
	return tests.toSorted((a, b) => rank(b) - rank(a))
}

const judge = async (copy: Copy, element: Element): Promise<Record> => {
	const { id, file, line } = element
	const record = (verdict: Standing, by: string, ms: number): Record => ({
		id,
		file,
		line,
		verdict,
		by,
		ms: Math.round(ms),
	})
	let { noticed, loads, ms } = await copy.judge([element], ordered(element), last.get(file))
	// A slow test that fails once may have met a busy machine.
	if (noticed && loads && (times.get(noticed.test) ?? 0) > 5_000) {
		const again = await copy.judge([element], [], noticed)
		ms += again.ms
		if (!again.noticed) ({ noticed, loads } = await copy.judge([element], element.tests))
	}
	if (noticed && !loads) return record('unloaded', `${noticed.test}: ${noticed.title}`, ms)
	const other = behind[id]
	const listed = noticed?.test === 'control/lists'
	if (noticed && !(listed && other)) {
		hit(file, noticed.test)
		const slower = (times.get(noticed.test) ?? 0) > (times.get(last.get(file)?.test ?? noticed.test) ?? 0)
		if (!listed && !slower) last.set(file, noticed)
		return record(listed ? 'listed' : 'noticed', `${noticed.test}: ${noticed.title}`, ms)
	}
	if (!other) return record('silent', '', ms)
	if ('equivalent' in other) return record('equivalent', other.equivalent, ms)
	const walls = other.with.flatMap((one) => byId.get(one) ?? [])
	if (walls.length !== other.with.length) return record('silent', 'its second wall is no element', ms)
	const both = await copy.judge([element, ...walls], [other.probe])
	return both.noticed && both.loads
		? record('walled', `${other.wall}; both gone: ${both.noticed.test}: ${both.noticed.title}`, ms)
		: record('silent', `with its second wall gone the probe ${other.probe} does not fail`, ms)
}

try {
	const open = all.filter(({ id }) => !verdicts.has(id))
	console.log(`${all.length} elements, ${open.length} to judge`)
	const needed = [...new Set(open.flatMap(({ tests }) => tests))]
	const unfit = (
		await Promise.all(copies.map((copy, index) => copy.unfit(needed.filter((_, at) => at % copies.length === index))))
	).flat()
	for (const copy of copies) for (const [test, ms] of copy.times) times.set(test, ms)
	if (unfit.length > 0) {
		console.log(`These tests fail with nothing taken away, so that they could show nothing:\n${unfit.join('\n')}`)
		process.exitCode = 2
	} else {
		let next = 0
		await Promise.all(
			copies.map(async (copy) => {
				while (next < open.length) {
					const at = next++
					const record = await judge(copy, open[at]!)
					verdicts.set(record.id, record)
					if (log) appendFileSync(log, `${JSON.stringify(record)}\n`)
					console.log(`${at + 1}/${open.length} ${record.id} (line ${record.line})`)
					console.log(`      ${record.verdict === 'silent' ? 'SILENT' : record.verdict} ${record.by} (${record.ms} ms)`)
				}
			}),
		)
		const records = all.flatMap(({ id }) => verdicts.get(id) ?? [])
		printTable(records)
		if (records.length === 0 || records.some(({ verdict }) => verdict === 'silent')) process.exitCode = 1
	}
} finally {
	for (const copy of copies) copy.close()
}
