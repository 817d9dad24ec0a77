// False alarms and time of the redactor over three source trees from npm, and its hits on seeded fake keys: run with
// `npx node --import tsx bench/redact.ts [--list] [--strict]`.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRedactor } from '../src/engine/config/redact.ts'
import { fakeKeys, leaks } from '../test/engine/config/fake-keys.ts'
import { here, type Row, report } from './common.ts'

const trees = ['zod', 'typescript/lib', '@oclif/core']
const text = /\.(?:[cm]?[jt]sx?|json|md|ya?ml|txt|html|css)$/
const mark = /\[redacted:[a-z0-9-]+:[0-9a-f]{6,16}\]/g
const list = process.argv.includes('--list')

function* files(folder: string): Generator<string> {
	for (const entry of readdirSync(folder, { withFileTypes: true })) {
		const path = join(folder, entry.name)
		if (entry.isDirectory()) yield* files(path)
		else if (entry.isFile() && text.test(entry.name)) yield path
	}
}

const rows: Row[] = []
for (const tree of trees) {
	let lines = 0
	let characters = 0
	let alarms = 0
	let ms = 0
	for (const file of files(join(here, '..', 'node_modules', tree))) {
		const before = readFileSync(file, 'utf8')
		const redactor = createRedactor('bench')
		const began = performance.now()
		const after = redactor.redact(before)
		ms += performance.now() - began
		lines += before.split('\n').length
		characters += before.length
		for (const match of after.matchAll(mark)) {
			alarms++
			if (list) console.log(`${file}: ${redactor.restore(match[0]).text.slice(0, 80)} (${match[0]})`)
		}
	}
	rows.push({
		what: `${tree}: alarms in ${lines.toLocaleString('en')} lines, per 10,000`,
		measured: (alarms / lines) * 10_000,
		unit: '',
		bar: { value: 1 },
	})
	rows.push({ what: `${tree}: time for a million characters`, measured: (ms / characters) * 1e6, unit: 'ms' })
}
for (const count of [200, 10_000]) {
	const keys = fakeKeys(20_261_130, count)
	const missed = keys.filter((key) => leaks(createRedactor('bench').redact(key.text), key)).length
	rows.push({
		what: `${count.toLocaleString('en')} fake keys of 20 kinds: missed`,
		measured: (missed / count) * 100,
		unit: '%',
		bar: { value: 5 },
	})
}
report('Redactor', rows)
