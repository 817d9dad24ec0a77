// How long one decision takes with 1,000 rules in force: ordinary commands, paths, hosts, and commands of 10 KB.
// `npx tsx bench/permission.ts [rounds] [--strict]`. The floor is the same decision with no rules.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RuleList, RuleText } from '../src/engine/config/settings.ts'
import { createFiles } from '../src/engine/files/guard.ts'
import { createDecider, type DeciderCall } from '../src/engine/permission/decider.ts'
import type { CallInfo } from '../src/engine/types.ts'
import { median, report, rounds } from './common.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-bench-')))
const [home, root] = [join(base, 'home'), join(base, 'home/project')]
mkdirSync(join(root, 'src'), { recursive: true })

/** Rules as teams write them: commands, prefixes, wildcards, paths, hosts, tools; 300 deny, 200 ask, 500 allow. */
function rules(): RuleText[] {
	const shapes: ((n: number) => string)[] = [
		(n) => `bash(tool${n}:*)`,
		(n) => `bash(deploy${n} --stage *)`,
		(n) => `bash(npm run script-${n})`,
		(n) => `bash(git push origin branch${n}/*)`,
		(n) => `bash(*secret${n}*)`,
		(n) => `bash(kubectl delete pod${n})`,
		(n) => `read(**/vault${n}/**)`,
		(n) => `edit(infra/${n}/*.tf)`,
		(n) => `host(host${n}.example.com)`,
		(n) => `mcp__server${n}__*`,
	]
	const list = (n: number): RuleList => (n < 300 ? 'deny' : n < 500 ? 'ask' : 'allow')
	return Array.from({ length: 1000 }, (_, n) => ({
		list: list(n),
		text: shapes[n % shapes.length]!(n),
		level: 'user',
		file: 'settings.json',
		line: n + 1,
	}))
}

const bash = (command: string): DeciderCall =>
	call('bash', { kind: 'execute', access: 'run', key: `bash:${command}`, command })
const file = (access: 'read' | 'write', path: string): DeciderCall =>
	call(access === 'read' ? 'read_file' : 'edit_file', { kind: 'read', access, paths: [join(root, path)], key: path })

function call(tool: string, info: Partial<CallInfo>): DeciderCall {
	return {
		tool,
		readOnlyTool: info.access === 'read',
		info: { title: '', kind: 'other', access: 'none', paths: [], key: '', ...info },
		effect: undefined,
		mode: 'build',
		sandboxed: true,
		keys: new Set(),
		acceptEdits: false,
	}
}

const ordinary = [
	...[
		'npm test',
		'git status',
		'git push origin main',
		'ls -la src',
		'npm run build && npm test',
		'cargo build --release',
	],
	...['rg -n "TODO" src | head -20', 'find . -name "*.ts" -exec wc -l {} +', 'VAR=1 make -j4 all > out.log 2>&1'],
	...['for f in src/*.ts; do sed -i s/a/b/ "$f"; done', 'docker compose up -d', 'python3 -c "print(1)"'],
	...[
		'git log --oneline -5 && git diff HEAD~1 -- src/a.ts',
		'cat package.json | jq .scripts',
		'sudo systemctl restart x',
	],
]
const large: [string, string][] = [
	[
		'a here-document of 10 KB',
		`cat > src/a.ts <<'EOF'\n${'const value = compute(1, 2) // a line of code\n'.repeat(220)}EOF`,
	],
	[
		'200 commands in 10 KB',
		Array.from({ length: 200 }, (_, n) => `step${n} --input file${n}.txt --output out${n}`).join(' && '),
	],
	['one command with 1,000 words', `process ${Array.from({ length: 1000 }, (_, n) => `word-${n}`).join(' ')}`],
	[
		'10 KB of pipes and loops',
		`${'for x in 1 2 3; do grep -v "a b" "f$x" | sort | uniq -c > "o$x"; done; '.repeat(140)}`,
	],
]

const files = await createFiles({ root, home })
const made = (texts: RuleText[]) =>
	createDecider({ settings: { rules: texts, profile: 'standard' }, root, home, files, writable: ['/tmp'] })
const full = made(rules())
const empty = made([])

async function time(decider: typeof full, calls: DeciderCall[], times: number): Promise<number[]> {
	const found: number[] = []
	for (let round = -1; round < times; round++)
		for (const one of calls) {
			const start = performance.now()
			await decider.decide(one)
			if (round >= 0) found.push(performance.now() - start)
		}
	return found.sort((a, b) => a - b)
}
const p95 = (sorted: number[]) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))]!

const times = rounds(30)
const plain = [...ordinary.map(bash), file('read', 'src/a.ts'), file('write', 'infra/7/main.tf')]
const big = large.map(([, command]) => bash(command))
// Of fourteen decisions one is on a command of 10 KB, each kind as often: far more than a session has.
const mix = [...plain, ...plain, ...plain, ...big]
const all = await time(full, mix, times)
const few = await time(full, plain, times)
const floor = await time(empty, mix, times)
const rows = [
	{ what: 'all, median', measured: median(all), unit: 'ms', floor: median(floor), bar: { value: 1 } },
	{ what: 'all, 95th of 100', measured: p95(all), unit: 'ms', floor: p95(floor), bar: { value: 5 } },
	{ what: 'ordinary calls, median', measured: median(few), unit: 'ms' },
]
for (const [index, [what]] of large.entries()) {
	const taken = await time(full, [big[index]!], times)
	rows.push({
		what,
		measured: median(taken),
		unit: 'ms',
		floor: median(await time(empty, [big[index]!], times)),
	} as never)
}
report('a decision with 1,000 rules', rows)
rmSync(base, { recursive: true, force: true })
