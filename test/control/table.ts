// What the negative control has found, a line for each file of the source.

/**
 * `noticed`: a test of behaviour failed. `listed`: only the copy of the lists did. `unloaded`: without it nothing loads.
 * `walled`: a second wall holds, and both gone fail a probe. `equivalent`: without it everything is the same. `silent`: none.
 */
export type Standing = 'noticed' | 'listed' | 'unloaded' | 'walled' | 'equivalent' | 'silent'

export interface Record {
	id: string
	file: string
	line: number
	verdict: Standing
	/** The test, or why none. */
	by: string
	ms: number
}

const columns: Standing[] = ['noticed', 'listed', 'unloaded', 'walled', 'equivalent', 'silent']

/** Prints the table, the share of what a test or a named second wall shows, and each silent element. */
export const printTable = (records: readonly Record[]): void => {
	const row = (name: string, some: readonly Record[]) =>
		[name.padEnd(32), String(some.length).padStart(8)]
			.concat(columns.map((one) => String(some.filter(({ verdict }) => verdict === one).length).padStart(11)))
			.join('')
	console.log(['file'.padEnd(32), 'elements'.padStart(8), ...columns.map((one) => one.padStart(11))].join(''))
	for (const [file, some] of Map.groupBy(records, ({ file }) => file)) console.log(row(file, some))
	console.log(row('all', records))
	const silent = records.filter(({ verdict }) => verdict === 'silent')
	const share = (100 * (records.length - silent.length)) / Math.max(1, records.length)
	console.log(`${share.toFixed(2)} %, ${Math.round(records.reduce((sum, { ms }) => sum + ms, 0) / 1000)} s of judging`)
	for (const { id, line, by } of silent) console.log(`SILENT ${id} (line ${line})${by && `: ${by}`}`)
}
