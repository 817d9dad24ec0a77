// kill -9 at any moment of a working turn: the session resumes, files are whole, nothing runs on, undo works.
// GARUDA_KILLS=200 for the long run, GARUDA_SEED=n for other moments; 10 in check.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type * as Engine from '../../src/engine/index.ts'
import {
	bin,
	environment,
	garuda,
	git,
	journals,
	lines,
	type Place,
	place,
	records,
	repository,
	start,
	until,
} from '../helpers/cli.ts'
import { skip } from '../helpers/skip.ts'
import { removeTemp } from '../helpers/temp.ts'

const kills = Number(process.env.GARUDA_KILLS ?? 10)
let seed = Number(process.env.GARUDA_SEED ?? 20_261_130)
const random = (): number => {
	seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
	return seed / 2 ** 32
}

/** Every line of a file names one version: a mix of two is a file half written. */
const version = (n: number): string => `version ${n} `.padEnd(60, '=').concat('\n').repeat(2000)
const files = ['one.txt', 'two.txt', 'src/three.txt']
const project = (): Place =>
	place({ ...Object.fromEntries(files.map((name) => [name, version(0)])), '.gitignore': '.garuda/\n' })

/** 20 steps: reads, whole writes, edits at every line, commands that change files and leave something running. */
const steps = (mark: string) => {
	const list: { text?: string; calls?: { name: string; input: Record<string, unknown> }[] }[] = []
	const at: Record<string, number> = {}
	for (let n = 0; n < 19; n++) {
		const name = files[n % 3]!
		if (n < 3) list.push({ calls: [{ name: 'read_file', input: { path: name } }] })
		else if (n % 4 === 3)
			list.push({
				calls: [{ name: 'bash', input: { command: `echo ${n} >> log.txt; sleep ${mark} & sleep 0.05; echo done` } }],
			})
		else if (n % 4 === 0)
			list.push({
				calls: [
					{ name: 'grep', input: { pattern: '^version', path: 'src' } },
					{ name: 'write_file', input: { path: `made-${n}.txt`, content: version(n) } },
				],
			})
		else {
			const old = at[name] ?? 0
			at[name] = old + 1
			const edit = { path: name, old_string: `version ${old} `, new_string: `version ${old + 1} `, replace_all: true }
			list.push({ text: `Step ${n}.`, calls: [{ name: 'edit_file', input: edit }] })
		}
	}
	list.push({ text: 'All steps are done.' })
	return list
}

const whole = (root: string): string[] =>
	[...files, ...readdirSync(root).filter((name) => /^made-/.test(name))].filter((name) => {
		const text = readFileSync(join(root, name), 'utf8')
		const found = /^version (\d+) /.exec(text)
		if (!found) return true
		if (name.startsWith('made-')) return text !== version(Number(found[1]))
		const all = text.split('\n')
		return all.length !== 2001 || all.slice(0, -1).some((line) => line !== all[0])
	})

/** Processes whose command line holds a text. */
const alive = (text: string): string[] =>
	readdirSync('/proc')
		.filter((pid) => /^\d+$/.test(pid))
		.filter((pid) => {
			try {
				return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(`sleep ${text}`)
			} catch {
				return false
			}
		})

/** What git sees, to the last file: a kill in an edit leaves its new content beside the file, and a resume sweeps it. */
const changes = (root: string): string => git(root, 'status', '--porcelain', '-uall').trim()

/** New content that a killed edit left beside its file. */
const isLeft = (line: string): boolean => line.endsWith('.garuda-tmp')

const childrenOf = (pid: number): number[] => {
	try {
		return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
	} catch {
		return []
	}
}

/** The program of a living process. */
const exeOf = (pid: number): string => {
	try {
		return readlinkSync(`/proc/${pid}/exe`)
	} catch {
		return ''
	}
}

const engine = (): Promise<typeof Engine> => import(join(repository, 'dist/engine/index.js'))

/** The built engine in the place of a killed process; it says "Went on." */
async function engineAt(at: Place) {
	const { createEngine, scriptedFromFile } = await engine()
	const env = environment(at, { script: { steps: [{ text: 'Went on.' }] } })
	return createEngine({
		root: at.root,
		home: at.home,
		env,
		model: 'scripted',
		// A session belongs to a machine and a user.
		hostname: hostname(),
		uid: process.getuid!(),
		approver: { ask: async () => ({ choice: 'deny' }) },
		clients: { scripted: () => scriptedFromFile(env.GARUDA_MODEL_SCRIPT!) },
	})
}

/** Goes on with a killed session: undo, then one more turn. */
async function goOn(at: Place, id: string, mark: string) {
	const garuda = await engineAt(at)
	try {
		const session = await garuda.open({ resume: id })
		const before = session.history().length
		const undone = await session.undo()
		const end = await session.prompt(`go on ${mark}`).end
		await session.close()
		return { before, undone, end, notices: session.notices }
	} finally {
		await garuda.close()
	}
}

/** What must hold after a kill, however it came. Returns a line about the moment. */
async function aftermath(at: Place, id: string, mark: string, shown: string): Promise<string> {
	await until(
		() => alive(mark).length === 0,
		() => `still running: ${alive(mark).join(' ')}`,
		4000,
	)
	expect(whole(at.root), 'files half written').to.deep.equal([])
	if (!journals(at.root).includes(id)) return 'before the first record'
	const text = readFileSync(join(at.root, '.garuda/sessions', `${id}.jsonl`), 'utf8')
	const broken = text
		.split('\n')
		.slice(0, -1)
		.filter((line) => {
			try {
				return !JSON.parse(line)
			} catch {
				return true
			}
		})
	expect(broken, 'only the last line may be torn').to.deep.equal([])
	const kept = records(at.root, id)
	const torn = !text.endsWith('\n')
	if (kept.length === 0) return 'in the first record'
	// What was shown to a reader had been written before: but for the torn one nothing is lost.
	const results = new Set(
		kept.filter((one) => one.type === 'results').flatMap((one) => one.message.blocks.map((block: any) => block.callId)),
	)
	const seen = shown
		.split('\n')
		.slice(0, -1)
		.map((line) => JSON.parse(line))
	const lastStep = new Set<string>()
	for (const one of seen)
		if (one.type === 'assistant')
			for (const block of one.message.content) if (block.type === 'tool_use') lastStep.add(block.id)
	const assistants = kept
		.filter((one) => one.type === 'assistant')
		.flatMap((one) => one.message.blocks.filter((b: any) => b.type === 'tool_call').map((b: any) => b.id))
	for (const call of lastStep) expect(assistants, 'a shown call is in the record').to.include(call)
	const all = changes(at.root).split('\n').filter(Boolean)
	const changed = all.filter((line) => !isLeft(line)).join('\n')
	const { undone, end, before } = await goOn(at, id, mark)
	expect(end.reason, JSON.stringify(end.error)).to.equal('done')
	expect(end.text).to.equal('Went on.')
	if (kept.some((one) => one.type === 'user')) expect(before).to.be.above(0)
	if (changed !== '') expect(undone.done, `undo: ${undone.message}; changed: ${changed}`).to.equal(true)
	expect(changes(at.root), undone.message).to.equal('')
	return `after ${assistants.length} replies, ${results.size} results${torn ? ', in the middle of a record' : ''}${changed ? `, ${changed.split('\n').length} files changed` : ''}${all.some(isLeft) ? ', new content beside a file' : ''}`
}

const uuid = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`
const args = (id: string): string[] => [
	'-p',
	'Do the steps.',
	'--allow',
	'edits',
	'--output-format',
	'stream-json',
	'--session-id',
	id,
]

describe('kill -9', function () {
	this.timeout(60_000 + kills * 10_000)
	afterEach(removeTemp)

	it(`at ${kills} random moments of a 20-step turn: resumes, nothing lost, torn or left, undo works`, async () => {
		const first = project()
		const clean = await garuda(first, args(uuid(0)), { script: { steps: steps('88.25') } })
		expect(lines(clean.stdout).at(-1).result, clean.stderr).to.equal('All steps are done.')
		expect(git(first.root, 'status', '--porcelain').trim().split('\n').length).to.be.above(5)
		expect(alive('88.25'), 'not even a clean run leaves its children').to.deep.equal([])
		let worked = 0
		for (let i = 1; i <= kills; i++) {
			const at = project()
			const mark = `88.${1000 + i}`
			const running = start(at, args(uuid(i)), { script: { steps: steps(mark) } })
			const ms = Math.round(clean.ms * (0.12 + 0.83 * random()))
			await new Promise((done) => setTimeout(done, ms))
			running.child.kill('SIGKILL')
			const ran = await running.done
			const about = await aftermath(at, uuid(i), mark, ran.stdout).catch((error: Error) => {
				error.message = `kill ${i} after ${ms} ms: ${error.message}`
				throw error
			})
			if (about.startsWith('after')) worked++
			console.log(`        killed at ${ms} ms: ${about}`)
			removeTemp()
		}
		expect(worked, 'most kills hit the work').to.be.above(kills * 0.4)
	})

	describe('placed by strace', () => {
		const can = spawnSync('strace', ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=exit_group', 'true']).status === 0

		/** Runs under strace, which kills the process at the nth call of a kind; `path` limits it to calls on that file. */
		async function placed(at: Place, id: string, mark: string, calls: string, when: number, path?: string) {
			const log = join(at.home, 'strace.log')
			const options = [
				'-f',
				'-qq',
				'-o',
				log,
				'-e',
				`trace=${calls}`,
				'-e',
				`inject=${calls}:signal=SIGKILL:when=${when}`,
			]
			const child = spawn('strace', [...options, ...(path ? ['-P', path] : []), process.execPath, bin, ...args(id)], {
				cwd: at.root,
				// One thread for files: strace counts calls by thread.
				env: environment(at, { script: { steps: steps(mark) }, env: { UV_THREADPOOL_SIZE: '1' } }),
				stdio: ['ignore', 'pipe', 'ignore'],
			})
			let stdout = ''
			child.stdout.on('data', (chunk: Buffer) => {
				stdout += chunk
			})
			let ended = false
			const closed = new Promise<void>((done) => child.on('close', () => done())).then(() => {
				ended = true
			})
			const read = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
			// strace may wait on for a tracee of a process space that is gone: when ours is killed, it is not needed any more.
			const own = readlinkSync('/proc/self/exe')
			const runs = () => childrenOf(child.pid!).some((pid) => exeOf(pid) === own)
			await until(() => ended || runs(), read, 5000)
			await until(() => ended || !runs(), read, 20_000)
			await new Promise((done) => setTimeout(done, 100))
			child.kill('SIGKILL')
			await closed
			const text = read()
			const call =
				text
					.split('\n')
					.filter((line) => /^\d+ +\w+\(/.test(line) && !/^\d+ +<\.\.\./.test(line))
					.at(-1) ?? ''
			return {
				stdout,
				killed: !stdout.includes('"type":"result"'),
				log: text,
				call: call.replace(/^\d+ +/, '').slice(0, 150),
			}
		}

		const places: [string, string, number[], ((at: Place, id: string) => string)?][] = [
			[
				'at an append of the journal',
				'write,pwrite64,writev,pwritev',
				[1, 2, 7, 20],
				(at, id) => join(at.root, '.garuda/sessions', `${id}.jsonl`),
			],
			['at the rename of an edit', 'rename,renameat,renameat2', [9, 10, 11, 12, 13]],
			['at a flush', 'fsync', [1, 4, 8, 12]],
			['in a snapshot', 'rename,renameat,renameat2,link,linkat', [1, 2, 3, 5, 7, 8]],
		]
		for (const [what, calls, moments, path] of places)
			it(`${what}: resumes, files whole, undo works`, async function () {
				if (!can) skip(this, 'no strace')
				let hit = 0
				for (const when of moments) {
					const at = project()
					const id = uuid(1000 + when)
					const mark = `88.${5000 + when}`
					const { stdout, log, killed, call } = await placed(at, id, mark, calls, when, path?.(at, id))
					if (killed) hit++
					const about = await aftermath(at, id, mark, stdout).catch((error: Error) => {
						error.message = `${what} ${when}: ${error.message}\n${log.slice(-300)}`
						throw error
					})
					console.log(`        ${what} (${when}), ${killed ? `killed at ${call}` : 'not reached'}: ${about}`)
				}
				expect(hit, 'at least one kill came').to.be.above(0)
			})
	})

	it('what the user did after the kill is not the turn’s: undo leaves it and names it, redo and undo again too', async () => {
		const at = place({ 'a.txt': 'old\n', 'other.txt': 'theirs\n', '.gitignore': '.garuda/\n' })
		const id = uuid(3000)
		const edit = { path: 'a.txt', old_string: 'old', new_string: 'new' }
		const script = {
			steps: [
				{ calls: [{ name: 'read_file', input: { path: 'a.txt' } }] },
				{ calls: [{ name: 'edit_file', input: edit }] },
				{ calls: [{ name: 'bash', input: { command: 'echo made > made.txt; sleep 88.76' } }] },
			],
		}
		const running = start(at, args(id), { script })
		const file = (name: string) => join(at.root, name)
		await until(
			() => existsSync(file('made.txt')),
			() => 'the command did not begin',
		)
		running.child.kill('SIGKILL')
		await running.done
		await new Promise((done) => setTimeout(done, 1500))
		writeFileSync(file('mine.txt'), 'mine\n')
		writeFileSync(file('other.txt'), 'mine too\n')
		git(at.root, 'add', 'mine.txt', 'other.txt')
		git(at.root, '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'mine')
		const made = await engineAt(at)
		try {
			const session = await made.open({ resume: id })
			const read = (name: string) => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : null)
			const mine = () => expect([read('mine.txt'), read('other.txt')]).to.deep.equal(['mine\n', 'mine too\n'])
			const undone = await session.undo()
			expect(undone.done, undone.message).to.equal(true)
			expect(undone.message).to.match(/left as it is, for it changed after the turn was broken off: .*mine\.txt/)
			expect(read('a.txt')).to.equal('old\n')
			expect(undone.restored).to.include('a.txt').and.not.include('mine.txt').and.not.include('other.txt')
			mine()
			expect((await session.redo()).done).to.equal(true)
			expect(read('a.txt')).to.equal('new\n')
			mine()
			writeFileSync(file('later.txt'), 'later\n')
			const again = await session.undo()
			expect([again.done, read('a.txt'), read('later.txt')]).to.deep.equal([true, 'old\n', 'later\n'])
			mine()
			await session.close()
		} finally {
			await made.close()
		}
	})

	it('N01 in the middle of git’s part of a snapshot: the stale lock does not stop the next turn', async () => {
		const at = project()
		const id = uuid(2000)
		const running = start(at, args(id), { script: { steps: steps('88.75') } })
		const inGit = () => childrenOf(running.pid).some((pid) => /(^|\/)git$/.test(exeOf(pid)))
		const end = performance.now() + 5000
		while (!inGit() && performance.now() < end) await new Promise((done) => setImmediate(done))
		const found = inGit()
		running.child.kill('SIGKILL')
		const ran = await running.done
		expect(found || ran.signal === 'SIGKILL').to.equal(true)
		await aftermath(at, id, '88.75', ran.stdout)
		// A lock that no process holds, as a kill at the wrong moment leaves it, in every store of this home.
		const again = await garuda(at, args(uuid(2001)), { script: { steps: steps('88.76') } })
		expect(lines(again.stdout).at(-1).result, again.stderr).to.equal('All steps are done.')
	})
})
