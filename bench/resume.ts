// How long a resume of a large session takes, beside the floor of reading its bytes. `npx node --import tsx bench/resume.ts [MB]`
import { promises as fs } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newSessionId } from '../src/engine/session/ids.ts'
import { createSessionStore } from '../src/engine/session/journal.ts'
import { rebuild } from '../src/engine/session/resume.ts'

const megabytes = Number(process.argv[2] ?? 50)
/** The bar: 50 MB in a second. */
const barMs = megabytes * 20
const base = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'garuda-bench-')))
try {
	const root = join(base, 'project')
	await fs.mkdir(root)
	const store = createSessionStore({
		root,
		projectDir: join(root, '.garuda'),
		index: join(base, 'home', 'sessions.json'),
		origin: 'bench',
		redactor: null,
		clock: { now: () => Date.now(), sleep: (ms) => new Promise((done) => setTimeout(done, ms)) },
		version: '0',
	})
	const id = newSessionId(Date.now())
	const created = Date.now()
	const start = {
		type: 'start',
		version: 1,
		id,
		root,
		created,
		origin: 'bench',
		model: 'x/y',
		garuda: '0',
		system: 'x',
		tools: [],
	}
	const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, thinking: 0, requests: 1, cost: 0 }
	// Code-like text with quotes, line ends and a little that is not ASCII: what JSON has to unescape.
	const code = Array.from({ length: 60 }, (_, i) => `\tconst name${i} = "value ${i}" // größer\n`).join('')
	const lines = [JSON.stringify(start)]
	let bytes = 0
	for (let turn = 1; bytes < megabytes * 1e6; turn++) {
		const message = (role: string, block: object) => ({ role, blocks: [block] })
		for (const record of [
			{
				type: 'user',
				time: turn,
				prompt: `prompt ${turn}`,
				message: message('user', { type: 'text', text: `prompt ${turn}` }),
			},
			{
				type: 'assistant',
				time: turn,
				model: 'x/y',
				stop: 'tool_calls',
				usage,
				message: message('assistant', {
					type: 'tool_call',
					id: `c${turn}`,
					name: 'read_file',
					input: { path: 'a.ts' },
				}),
			},
			{
				type: 'results',
				time: turn,
				message: message('user', { type: 'tool_result', callId: `c${turn}`, status: 'ok', text: code }),
			},
			{
				type: 'assistant',
				time: turn,
				model: 'x/y',
				stop: 'end',
				usage,
				message: message('assistant', { type: 'text', text: 'Done.' }),
			},
			{ type: 'end', time: turn, turn, reason: 'done', usage },
		]) {
			const line = JSON.stringify(record)
			bytes += line.length
			lines.push(line)
		}
	}
	const dir = join(root, '.garuda', 'sessions')
	await fs.mkdir(dir, { recursive: true, mode: 0o700 })
	const path = join(dir, `${id}.jsonl`)
	await fs.writeFile(path, `${lines.join('\n')}\n`, { mode: 0o600 })
	const records = lines.length
	lines.length = 0

	const floors: number[] = []
	const resumes: number[] = []
	for (let round = 0; round < 5; round++) {
		let before = performance.now()
		await fs.readFile(path)
		floors.push(performance.now() - before)
		before = performance.now()
		const open = await store.open(id)
		const state = rebuild(open.records)
		resumes.push(performance.now() - before)
		if (state.messages.length === 0) throw new Error('nothing was rebuilt')
		await open.writer.close()
	}
	const before = performance.now()
	await store.list()
	const listed = performance.now() - before
	const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
	const result = median(resumes)
	console.log(`session: ${(bytes / 1e6).toFixed(0)} MB, ${records} records`)
	console.log(`floor (read the bytes): ${median(floors).toFixed(0)} ms`)
	console.log(
		`open + rebuild: ${result.toFixed(0)} ms (median of 5; worst ${Math.max(...resumes).toFixed(0)}), ${(result / median(floors)).toFixed(1)} x the floor`,
	)
	console.log(`list: ${listed.toFixed(0)} ms; memory ${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB`)
	console.log(result <= barMs ? `within ${barMs} ms` : `OVER the bar of ${barMs} ms`)
	if (result > barMs) process.exitCode = 1
} finally {
	await fs.rm(base, { recursive: true, force: true })
}
