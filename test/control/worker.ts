// Judges in a copy of the project: loads sources and tests anew for each question, in one process, and says which test failed.
// It runs with Node's own type stripping: `node test/control/worker.ts` in the copy; questions come by the process's channel.
import { readFileSync, statSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import Mocha from 'mocha'

/** The test files to run in this order until one fails. */
export interface Question {
	/** One test alone, asked before the files. */
	likely?: { test: string; title: string } | undefined
	tests: readonly string[]
}
/** `begun`: a file is being run, so that whoever waits knows that it goes on. */
export type Answer =
	| { begun: string }
	| { ran: string; ms: number }
	| { done: true; failed: { test: string; title: string; loads: boolean } | null }

const base = pathToFileURL(`${process.cwd()}/`).href
const ours = (url: string) => url.startsWith(`${base}src/`) || url.startsWith(`${base}test/`)
let round = 0
/** By path: what was stripped, and of which state of the file. */
const stripped = new Map<string, { mark: string; source: string }>()

registerHooks({
	resolve(specifier, context, next) {
		const found = next(specifier, context)
		if (!ours(found.url) || !found.url.endsWith('.ts')) return found
		return { ...found, url: `${found.url}?round=${round}` }
	},
	load(url, context, next) {
		if (!ours(url) || !url.includes('.ts?round=')) return next(url, context)
		const path = fileURLToPath(url)
		const { mtimeNs, size } = statSync(path, { bigint: true })
		const mark = `${mtimeNs} ${size}`
		let known = stripped.get(path)
		if (known?.mark !== mark) {
			// A module that asks where it lies must not see the round.
			const plain = "import.meta.url = import.meta.url.replace(/\\?.*/, '');"
			known = { mark, source: plain + stripTypeScriptTypes(readFileSync(path, 'utf8')) }
			stripped.set(path, known)
		}
		return { format: 'module', source: known.source, shortCircuit: true }
	},
})

const say = (answer: Answer) => process.send!(answer)

/** The first test of a file that fails, or null. */
const failing = async (test: string, only?: string): Promise<{ title: string; loads: boolean } | null> => {
	const path = `${process.cwd()}/test/${test}.test.ts`
	const mocha = new Mocha({ timeout: 20_000, bail: true, reporter: class {} as never })
	if (only !== undefined) mocha.fgrep(only)
	mocha.suite.emit('pre-require', globalThis, path, mocha)
	try {
		await import(pathToFileURL(path).href)
	} catch (error) {
		return { title: `it does not load: ${String(error).slice(0, 150)}`, loads: false }
	}
	mocha.suite.emit('post-require', globalThis, path, mocha)
	return new Promise((resolve) => {
		let first: string | null = null
		const runner = mocha.run((failures) =>
			resolve(failures > 0 ? { title: first ?? 'it ended early', loads: true } : null),
		)
		runner.on('fail', (test, error) => {
			first ??= test.fullTitle()
			if (process.env.GARUDA_CONTROL_WHY) console.error(error)
		})
	})
}

process.on('message', async ({ likely, tests }: Question) => {
	let failed: { test: string; title: string; loads: boolean } | null = null
	const turns = [...(likely ? [likely] : []), ...tests.map((test) => ({ test, title: undefined }))]
	for (const { test, title } of turns) {
		round++
		say({ begun: test })
		const at = performance.now()
		const found = await failing(test, title)
		if (title === undefined) say({ ran: test, ms: performance.now() - at })
		if (found) {
			failed = { test, ...found }
			break
		}
	}
	say({ done: true, failed })
})
