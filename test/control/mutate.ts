// A copy of the project in which one element is taken away, and the tests that should notice.
import { spawn } from 'node:child_process'
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

export interface Verdict {
	/** The test that failed, or null when none did. */
	noticed: string | null
	ms: number
}

export class Copy {
	readonly dir: string = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-control-')))
	readonly #root: string

	constructor(root: string) {
		this.#root = root
		for (const name of ['src', 'test', 'docs', 'package.json', 'tsconfig.json'])
			if (existsSync(join(root, name))) cpSync(join(root, name), join(this.dir, name), { recursive: true })
		symlinkSync(join(root, 'node_modules'), join(this.dir, 'node_modules'))
	}

	/** Runs the tests of the element without it, one file after the other, until one fails. */
	async judge(element: Element): Promise<Verdict> {
		const path = join(this.dir, 'src/engine', element.file)
		const text = readFileSync(join(this.#root, 'src/engine', element.file), 'utf8')
		writeFileSync(path, text.slice(0, element.from) + element.instead + text.slice(element.to))
		const begun = performance.now()
		try {
			for (const test of element.tests) {
				const failed = await this.#fails(`test/${test}.test.ts`)
				if (failed) return { noticed: `${test}: ${failed}`, ms: performance.now() - begun }
			}
			return { noticed: null, ms: performance.now() - begun }
		} finally {
			writeFileSync(path, text)
		}
	}

	/** The tests that fail although nothing was taken away: with one of them every verdict would be worthless. */
	async unfit(tests: readonly string[]): Promise<string[]> {
		const failed: string[] = []
		for (const test of tests) {
			const title = await this.#fails(`test/${test}.test.ts`)
			if (title) failed.push(`${test}: ${title}`)
		}
		return failed
	}

	/** The title of the first test that fails, or null. */
	#fails(test: string): Promise<string | null> {
		const args = [
			'node_modules/mocha/bin/mocha.js',
			'--no-config',
			'--node-option',
			'import=tsx',
			'--timeout',
			'20000',
			'--bail',
			'--exit',
			'--reporter',
			'json',
			test,
		]
		return new Promise((resolve, reject) => {
			const child = spawn(process.execPath, args, {
				cwd: this.dir,
				env: { ...process.env, GARUDA_CONTROL: '1' },
				stdio: ['ignore', 'pipe', 'ignore'],
				timeout: 180_000,
				killSignal: 'SIGKILL',
			})
			let out = ''
			child.stdout.on('data', (chunk) => {
				out += chunk
			})
			child.on('error', reject)
			child.on('close', (code) => {
				if (code === 0) return resolve(null)
				try {
					const { failures } = JSON.parse(out.slice(out.indexOf('{'))) as { failures: { fullTitle: string }[] }
					resolve(failures[0]?.fullTitle ?? 'it ended early')
				} catch {
					resolve('it does not load')
				}
			})
		})
	}

	close(): void {
		rmSync(this.dir, { recursive: true, force: true })
	}
}
