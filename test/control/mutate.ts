// A copy of the project in which elements are taken away, and a process that runs the tests that should notice.
import { type ChildProcess, fork } from 'node:child_process'
import {
	cpSync,
	existsSync,
	mkdtempSync,
	readFileSync,
	realpathSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Element } from './elements.ts'
import type { Answer, Question } from './worker.ts'

export interface Verdict {
	/** The test file and the test in it that failed, or null when none did. */
	noticed: { test: string; title: string } | null
	/** False: with the element gone the file is no program, which says nothing about the wall. */
	loads: boolean
	ms: number
}

/** Silence for so long means that a test does not end (a loop without its end); in ms. The slowest file needs a fourth of it. */
const patience = 60_000
/** Each question loads everything anew, and nothing of it is ever freed. */
const lifetime = 150

export class Copy {
	readonly dir: string = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-control-')))
	/** How long the files took, in ms. */
	readonly times: Map<string, number> = new Map()
	#worker: ChildProcess | null = null
	#asked = 0

	constructor(root: string) {
		for (const name of ['src', 'test', 'docs', 'package.json', 'tsconfig.json'])
			if (existsSync(join(root, name))) cpSync(join(root, name), join(this.dir, name), { recursive: true })
		symlinkSync(realpathSync(join(root, 'node_modules')), join(this.dir, 'node_modules'))
	}

	/** Runs test files, one after the other until one fails, without the given elements; before them the test that is likely to. */
	async judge(gone: readonly Element[], tests: readonly string[], likely?: Question['likely']): Promise<Verdict> {
		const before = new Map<string, string>()
		// From the last to the first, so that places stay right.
		for (const { file, from, to, instead } of [...gone].sort((a, b) => b.from - a.from)) {
			const path = join(this.dir, 'src/engine', file)
			const text = readFileSync(path, 'utf8')
			if (!before.has(path)) before.set(path, text)
			writeFileSync(path, text.slice(0, from) + instead + text.slice(to))
		}
		const begun = performance.now()
		try {
			const failed = await this.#ask({ likely, tests: tests.filter((test) => this.has(test)) })
			return {
				noticed: failed && { test: failed.test, title: failed.title },
				loads: failed?.loads ?? true,
				ms: performance.now() - begun,
			}
		} finally {
			for (const [path, text] of before) writeFileSync(path, text)
		}
	}

	has(test: string): boolean {
		return existsSync(join(this.dir, `test/${test}.test.ts`))
	}

	/** The tests that fail although nothing was taken away: with one of them every verdict would be worthless. */
	async unfit(tests: readonly string[]): Promise<string[]> {
		const failed: string[] = []
		for (const test of tests) {
			if (!this.has(test)) {
				failed.push(`${test}: there is no such file`)
				continue
			}
			// A busy machine may fail one once.
			const { noticed } = await this.judge([], [test])
			const again = noticed && (await this.judge([], [test])).noticed
			if (again) failed.push(`${test}: ${again.title}`)
		}
		return failed
	}

	#ask(question: Question): Promise<Extract<Answer, { done: true }>['failed']> {
		if (++this.#asked % lifetime === 0) this.#stop()
		this.#worker ??= fork(join(this.dir, 'test/control/worker.ts'), [], {
			cwd: this.dir,
			// Of a group of its own: what a test leaves behind ends with it.
			detached: true,
			execArgv: ['--no-warnings'],
			env: { ...process.env, GARUDA_CONTROL: '1' },
			stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
		})
		const worker = this.#worker
		return new Promise((resolve) => {
			let running = question.tests[0] ?? ''
			let timer: NodeJS.Timeout
			const end = (failed: Extract<Answer, { done: true }>['failed'], stop: boolean) => {
				clearTimeout(timer)
				worker.removeAllListeners('message').removeAllListeners('exit')
				if (stop) this.#stop()
				resolve(failed)
			}
			const wait = () => {
				clearTimeout(timer)
				timer = setTimeout(() => end({ test: running, title: 'it does not end', loads: true }, true), patience)
			}
			worker.on('message', (answer: Answer) => {
				if ('begun' in answer) {
					running = answer.begun
					wait()
				} else if ('ran' in answer) this.times.set(answer.ran, answer.ms)
				// What a failed test has left open must not disturb the next.
				else end(answer.failed, answer.failed !== null && (this.times.get(answer.failed.test) ?? 0) > 2_000)
			})
			worker.on('exit', () => end({ test: running, title: 'the process ended', loads: true }, true))
			wait()
			worker.send(question)
		})
	}

	#stop(): void {
		const pid = this.#worker?.pid
		this.#worker = null
		if (pid === undefined) return
		try {
			process.kill(-pid, 'SIGKILL')
		} catch {
			// it has ended
		}
	}

	close(): void {
		this.#stop()
		rmSync(this.dir, { recursive: true, force: true, maxRetries: 3 })
	}
}
