// grep over 30,000 files with ignore rules on, against ripgrep when it is installed: run with `npx node --import tsx bench/grep.ts`.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runSearch } from '../src/engine/tools/search.ts'

const files = 30_000
const rounds = Number(process.argv[2] ?? 7)

/** A tree like a project's: folders three deep, files of 1 to 8 kB, some ignored, a needle in one of a hundred. */
const build = (root: string): void => {
	let seed = 1
	const random = (n: number) => {
		seed = (seed * 1103515245 + 12345) & 0x7fffffff
		return (seed >> 8) % n
	}
	const words = [
		'const',
		'return',
		'value',
		'await',
		'import',
		'from',
		'function',
		'result',
		'error',
		'path',
		'=>',
		'{',
		'}',
		'()',
		';',
	]
	const line = () => Array.from({ length: 4 + random(8) }, () => words[random(words.length)]).join(' ')
	execFileSync('git', ['init', '-q', root])
	writeFileSync(
		join(root, '.gitignore'),
		'node_modules/\ndist/\n*.log\n*.tmp\n/build\n.cache/\n!keep.log\ncoverage/\n*.pyc\n__pycache__/\n',
	)
	for (let index = 0; index < files; index++) {
		const folder = join(root, index % 15 === 0 ? 'node_modules' : 'src', `p${index % 40}`, `m${index % 300}`)
		if (index < 12_000) mkdirSync(folder, { recursive: true })
		const lines = Array.from({ length: 20 + random(150) }, line)
		if (index % 100 === 7) lines[random(lines.length)] += ' findTheNeedle(42)'
		writeFileSync(join(folder, `f${index}.ts`), lines.join('\n'))
	}
}

const median = (list: number[]): number => [...list].sort((a, b) => a - b)[list.length >> 1]!

const root = mkdtempSync(join(tmpdir(), 'garuda-grep-'))
try {
	build(root)
	const rg = spawnSync(process.env.RG ?? 'rg', ['--version']).status === 0 ? (process.env.RG ?? 'rg') : null
	if (!rg) console.log('rg is not installed: no comparison (Debian: apt-get install ripgrep)')
	const patterns: [string, string][] = [
		['literal', 'findTheNeedle'],
		['expression', 'findThe\\w+\\(\\d+\\)'],
		['no literal', '[A-Z]\\w+\\(\\d{2}\\)'],
	]
	for (const [name, pattern] of patterns) {
		const ours: number[] = []
		const theirs: number[] = []
		let found = 0
		for (let round = 0; round < rounds; round++) {
			let began = performance.now()
			const job = {
				base: root,
				roots: [root],
				home: '/nonexistent',
				ignore: true,
				denied: [],
				pattern: { pattern },
				context: 0,
				maxFiles: 1000,
				maxRows: 1000,
			}
			const result = await runSearch(job, { deadlineMs: 60_000 }, new AbortController().signal)
			ours.push(performance.now() - began)
			found = result.lineCount
			if (!rg) continue
			began = performance.now()
			const count = execFileSync(rg, ['--no-config', '--hidden', '-n', pattern, root])
				.toString()
				.trim()
				.split('\n').length
			theirs.push(performance.now() - began)
			if (count !== found) console.log(`different: ${found} against ${count} of rg`)
		}
		const ratio = rg
			? `, rg ${median(theirs).toFixed(0)} ms, ratio ${(median(ours) / median(theirs)).toFixed(1)} (goal: at most 5)`
			: ''
		console.log(`${name.padEnd(10)} ${found} lines: ${median(ours).toFixed(0)} ms${ratio}`)
	}
} finally {
	rmSync(root, { recursive: true, force: true })
}
