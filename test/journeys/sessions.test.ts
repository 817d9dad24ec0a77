// Sessions over processes: going on, going through again, many at once, and every kind of folder they start in.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { commit, garuda, git, journals, lines, type Place, place, records, start, told, until } from '../helpers/cli.ts'
import { removeTemp } from '../helpers/temp.ts'

const write = (path: string, content: string) => ({ name: 'write_file', input: { path, content } })

describe('going on', function () {
	this.timeout(30_000)
	afterEach(removeTemp)

	it('-c takes the newest session of the folder, -r the named one by its first letters; both hear what was said', async () => {
		const at = place()
		const one = await garuda(at, ['-p', 'I am number one.', '--output-format', 'json'], {
			script: { steps: [{ text: 'Hello one.' }] },
		})
		const two = await garuda(at, ['-p', 'I am number two.', '--output-format', 'json'], {
			script: { steps: [{ text: 'Hello two.' }] },
		})
		const id = JSON.parse(one.stdout).session_id as string
		const latest = await garuda(at, ['-c', '-p', 'And?', '--output-format', 'json'], {
			script: { steps: [{ expect: 'And?', text: 'On with two.' }] },
		})
		expect(latest.code, latest.stderr).to.equal(0)
		expect(JSON.parse(latest.stdout).session_id).to.equal(JSON.parse(two.stdout).session_id)
		const named = await garuda(at, ['-r', id.slice(0, 13), '-p', 'Still there?'], {
			script: { steps: [{ text: 'On with one.' }] },
		})
		expect([named.code, named.stdout], named.stderr).to.deep.equal([0, 'On with one.\n'])
		const said = records(at.root, id)
			.filter((one) => one.type === 'user')
			.map((one) => one.prompt)
		expect(said).to.deep.equal(['I am number one.', 'Still there?'])
		expect(journals(at.root)).to.have.length(2)
	})

	it('a session that does not exist, none to go on with, a given id used twice: exit 1 with the way on', async () => {
		const at = place()
		const id = '11111111-1111-4111-8111-111111111111'
		const script = { steps: [{ text: 'x' }] }
		const first = await garuda(at, ['-p', 'x', '--session-id', id], { script })
		expect(first.code).to.equal(0)
		const twice = await garuda(at, ['-p', 'x', '--session-id', id], { script })
		expect(twice.code).to.equal(1)
		expect(twice.stderr).to.include(`--resume ${id}`)
		const missing = await garuda(at, ['-p', 'x', '-r', 'ffffffff', '--output-format', 'json'], { script })
		expect([missing.code, JSON.parse(missing.stdout).is_error]).to.deep.equal([1, true])
		const other = place()
		const none = await garuda(other, ['-p', 'x', '-c'], { script })
		expect(none.stderr).to.not.match(/\n\s+at /)
		expect([0, 1]).to.include(none.code)
	})

	it('--replay goes through a session again: same, exit 0, nothing written, no model asked', async () => {
		const at = place()
		const script = {
			steps: [
				{ text: 'Looking.', calls: [{ name: 'read_file', input: { path: 'a.txt' } }] },
				{ calls: [write('b.txt', 'made\n')] },
				{ text: 'The end.' },
			],
		}
		const ran = await garuda(at, ['-p', 'Do it.', '--allow', 'edits', '--output-format', 'json'], { script })
		const id = JSON.parse(ran.stdout).session_id as string
		const before = readFileSync(join(at.root, '.garuda/sessions', `${id}.jsonl`), 'utf8')
		writeFileSync(join(at.root, 'b.txt'), 'changed by hand\n')
		const replay = await garuda(at, ['--replay', id])
		expect([replay.code, told(replay.stderr)]).to.deep.equal([0, ''])
		expect(replay.stdout).to.include(id).and.include('as recorded')
		expect(readFileSync(join(at.root, 'b.txt'), 'utf8')).to.equal('changed by hand\n')
		expect(readFileSync(join(at.root, '.garuda/sessions', `${id}.jsonl`), 'utf8')).to.equal(before)
	})

	it('MODE plan: edits are refused, commands cannot write, the answer is a plan; going on keeps the mode', async () => {
		const at = place()
		const calls = [
			write('b.txt', 'x'),
			{ name: 'bash', input: { command: 'echo x > c.txt; echo "code $?"; cat a.txt' } },
			{ name: 'read_file', input: { path: 'a.txt' } },
		]
		const ran = await garuda(
			at,
			['-p', 'plan it', '--mode', 'plan', '--allow', 'edits', '--output-format', 'stream-json'],
			{
				script: { steps: [{ calls }, { text: 'First this, then that.' }] },
			},
		)
		const messages = lines(ran.stdout)
		expect(messages[0].permissionMode).to.equal('plan')
		const results = messages.filter((one) => one.type === 'user').map((one) => one.message.content[0])
		expect(results[0].content).to.include('plan mode')
		expect(results[1].content)
			.to.match(/code [1-9]/)
			.and.to.include('hello')
		expect(results[2].content).to.include('hello')
		expect(readdirSync(at.root).filter((name) => /^[bc]\.txt/.test(name))).to.deep.equal([])
		expect(ran.code).to.equal(3)
		expect(git(at.root, 'status', '--porcelain').trim()).to.not.include('.txt')
		const on = await garuda(at, ['-c', '-p', 'now?', '--allow', 'edits', '--output-format', 'stream-json'], {
			script: { steps: [{ calls: [write('b.txt', 'x')] }, { text: 'Still a plan.' }] },
		})
		expect([on.code, lines(on.stdout)[0].permissionMode]).to.deep.equal([3, 'plan'])
		expect(readdirSync(at.root)).to.not.include('b.txt')
	})
})

describe('many at once', function () {
	this.timeout(60_000)
	afterEach(removeTemp)

	it('X04 J06 eight runs in one project: all finish with a result, a session of its own each, and all writes are there', async () => {
		const at = place()
		const runs = await Promise.all(
			Array.from({ length: 8 }, (_, i) =>
				garuda(at, ['-p', `run ${i}`, '--allow', 'edits', '--output-format', 'json'], {
					script: {
						steps: [
							{
								calls: [write(`out-${i}.txt`, `${i}\n`), { name: 'bash', input: { command: `echo ${i} >> log.txt` } }],
							},
							{ text: `Run ${i} is done.` },
						],
					},
					timeoutMs: 40_000,
				}),
			),
		)
		const ids = new Set<string>()
		for (const [i, ran] of runs.entries()) {
			expect(ran.code, ran.stderr).to.equal(0)
			const result = JSON.parse(ran.stdout)
			expect(result).to.include({ is_error: false, result: `Run ${i} is done.` })
			ids.add(result.session_id)
			expect(readFileSync(join(at.root, `out-${i}.txt`), 'utf8')).to.equal(`${i}\n`)
		}
		expect(ids.size).to.equal(8)
		expect(journals(at.root).sort()).to.deep.equal([...ids].sort())
		for (const id of ids) expect(records(at.root, id).at(-1).type).to.equal('end')
		expect(readFileSync(join(at.root, 'log.txt'), 'utf8').trim().split('\n')).to.have.length(8)
		const index = JSON.parse(readFileSync(join(at.home, '.garuda/sessions.json'), 'utf8'))
		for (const id of ids) expect(JSON.stringify(index)).to.include(id)
	})

	it('J06 one of many that meets a disk error says so: exit 1 or a notice, and a result record', async () => {
		const at = place()
		// A file where the folder of sessions should be: also root cannot write there.
		mkdirSync(join(at.root, '.garuda'))
		writeFileSync(join(at.root, '.garuda/sessions'), '')
		const ran = await garuda(at, ['-p', 'x', '--output-format', 'json'], { script: { steps: [{ text: 'ok' }] } })
		const result = JSON.parse(ran.stdout)
		expect(result.type).to.equal('result')
		expect(told(ran.stderr))
			.to.include('sessions')
			.and.to.not.match(/\n\s+at /)
		if (ran.code === 0) expect(result.result).to.equal('ok')
		else expect([ran.code, result.is_error]).to.deep.equal([1, true])
	})

	it('X04 the same session twice: the second is refused and names the process; after kill -9 it is free', async () => {
		const at = place()
		const id = '22222222-2222-4222-8222-222222222222'
		const script = { steps: [{ calls: [{ name: 'bash', input: { command: 'sleep 6.5' } }] }, { text: 'x' }] }
		const first = start(at, ['-p', 'x', '--session-id', id, '--output-format', 'stream-json'], { script })
		await until(() => first.stdout().includes('tool_use'), first.stderr)
		const second = await garuda(at, ['-r', id, '-p', 'me too'], { script: { steps: [{ text: 'never' }] } })
		expect([second.code, second.stdout]).to.deep.equal([1, ''])
		expect(second.stderr).to.include(`process ${first.pid}`)
		first.child.kill('SIGKILL')
		await first.done
		const third = await garuda(at, ['-r', id, '-p', 'now?'], { script: { steps: [{ text: 'Yes.' }] } })
		expect([third.code, third.stdout], third.stderr).to.deep.equal([0, 'Yes.\n'])
	})
})

describe('N08 folders and gits', function () {
	this.timeout(30_000)
	afterEach(removeTemp)
	const script = {
		steps: [
			{
				calls: [
					write('new.txt', 'made\n'),
					{ name: 'bash', input: { command: 'git status --short 2>&1 | head -3; echo ran' } },
				],
			},
			{ text: 'Done here.' },
		],
	}

	const elsewhere = (at: Place) => join(at.home, 'not-here')
	const kinds: [string, (at: Place) => Record<string, string> | undefined][] = [
		['no repository', () => undefined],
		['a repository without a commit', (at) => void git(at.root, 'init', '-q')],
		[
			'a detached HEAD',
			(at) => {
				commit(at.root)
				git(at.root, 'checkout', '-q', '--detach')
				return undefined
			},
		],
		['a bare repository', (at) => void execFileSync('git', ['init', '-q', '--bare', at.root])],
		['a broken .git file', (at) => void writeFileSync(join(at.root, '.git'), 'gitdir: /nowhere/at/all\n')],
		[
			'GIT_DIR and its kin in the environment',
			(at) => {
				commit(at.root)
				return { GIT_DIR: elsewhere(at), GIT_INDEX_FILE: join(elsewhere(at), 'index'), GIT_WORK_TREE: '/' }
			},
		],
		[
			'no git on the PATH',
			(at) => {
				commit(at.root)
				const tools = join(at.home, 'tools')
				mkdirSync(tools)
				for (const name of ['bash', 'sh', 'cat', 'head'])
					execFileSync('ln', ['-s', `/usr/bin/${name}`, join(tools, name)])
				return { PATH: tools }
			},
		],
		[
			'a git that always fails',
			(at) => {
				commit(at.root)
				const tools = join(at.home, 'tools')
				mkdirSync(tools)
				writeFileSync(join(tools, 'git'), '#!/bin/sh\necho "fatal: no" >&2\nexit 128\n')
				chmodSync(join(tools, 'git'), 0o755)
				return { PATH: `${tools}:${process.env.PATH}` }
			},
		],
	]
	for (const [what, make] of kinds)
		it(`N08 ${what}: the task is done, nothing fatal, the files are as asked`, async () => {
			const at = place({ 'a.txt': 'hello\n' }, false)
			const env = make(at) ?? {}
			const ran = await garuda(at, ['-p', 'x', '--allow', 'edits', '--output-format', 'json'], { script, env })
			expect(ran.code, `${ran.stderr}${ran.stdout}`).to.equal(0)
			expect(JSON.parse(ran.stdout).result).to.equal('Done here.')
			expect(readFileSync(join(at.root, 'new.txt'), 'utf8')).to.equal('made\n')
			expect(told(ran.stderr)).to.not.match(/fatal:|\n\s+at |ENOENT/)
			expect(existsSync(elsewhere(at))).to.equal(false)
			expect(existsSync(join(at.root, '.git/index.lock'))).to.equal(false)
		})
})
