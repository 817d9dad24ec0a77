// The negative control: each element of the walls taken away in turn; at least one test must fail. Prints a table.
//   npm run control [-- words of an element's id …]      GARUDA_CONTROL_FROM=100 begins there
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { elements } from './elements.ts'
import { Copy } from './mutate.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const words = process.argv.slice(2)
/** Elements with another wall behind them: id without its line → that wall, and why one test cannot see the first alone. */
const second = JSON.parse(readFileSync(new URL('second-walls.json', import.meta.url), 'utf8')) as Record<string, string>
const from = Number(process.env.GARUDA_CONTROL_FROM ?? 0)
const all = elements(root).filter(({ id }) => words.every((word) => id.includes(word)))

const copies = [new Copy(root), new Copy(root)]
const silent: string[] = []
let [noticed, unloaded, walled, next] = [0, 0, 0, from]
try {
	const unfit = await copies[0]!.unfit([...new Set(all.flatMap(({ tests }) => tests))])
	if (unfit.length > 0) {
		console.log(`These tests fail with nothing taken away, so that they could show nothing:\n${unfit.join('\n')}`)
		for (const copy of copies) copy.close()
		process.exit(2)
	}
	await Promise.all(
		copies.map(async (copy) => {
			while (next < all.length) {
				const at = next++
				const element = all[at]!
				const verdict = await copy.judge(element)
				const wall = second[element.id.replace(/:\d+ /, ' ')]
				if (verdict.noticed?.endsWith('it does not load')) unloaded++
				else if (verdict.noticed) noticed++
				else if (wall) walled++
				else silent.push(element.id)
				const said = verdict.noticed ? `ok      ${verdict.noticed}` : wall ? `wall    ${wall}` : 'SILENT'
				console.log(`${at + 1}/${all.length} ${element.id}\n      ${said} (${(verdict.ms / 1000).toFixed(1)} s)`)
			}
		}),
	)
} finally {
	for (const copy of copies) copy.close()
}
const judged = noticed + unloaded + walled + silent.length
console.log(
	`${judged} elements: ${noticed} noticed by a test, ${unloaded} without which nothing loads, ${walled} with a second wall, ${silent.length} silent`,
)
console.log(`${((100 * (noticed + unloaded + walled)) / Math.max(1, judged)).toFixed(1)} %`)
for (const id of silent) console.log(`SILENT ${id}`)
if (silent.length > 0 || judged === 0) process.exitCode = 1
