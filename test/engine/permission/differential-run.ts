// Runs texts in bash with a PATH of recording stubs and holds what ran against what readShell says could run.
import { spawn } from 'node:child_process'
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	rmSync,
	writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DYNAMIC, readShell } from '../../../src/engine/permission/shell-words.ts'
import { failing, leaves, starters } from './differential-grammar.ts'

export interface Miss {
	text: string
	/** What ran and is not among the commands that were read. */
	argv: string[]
}

export interface Outcome {
	texts: number
	/** Programs that bash really started. */
	started: number
	unsure: number
	misses: Miss[]
}

/** Nothing is there. */
const home = '/home/nobody-of-garuda'

/** A folder with stubs; each records its argv in the file that $LOG names. */
export class Runner {
	readonly dir: string = mkdtempSync(join(tmpdir(), 'garuda-differential-'))
	readonly #bin: string
	readonly #driver: string
	#batches = 0

	constructor() {
		this.#bin = join(this.dir, 'bin')
		this.#driver = join(this.dir, 'driver')
		mkdirSync(this.#bin)
		const stub = (name: string, rest: string) => {
			// One write of one record, so that stubs of a pipe do not mix; a record begins with \u0001=>, which no generated word does.
			const text = `#!/bin/sh\nprintf '%s\\0' '\u0001=>${name}' "$@" >> "$LOG"\n${rest}\n`
			writeFileSync(join(this.#bin, name), text)
			chmodSync(join(this.#bin, name), 0o755)
		}
		for (const name of leaves) stub(name, `exit ${name === failing ? 1 : 0}`)
		for (const name of starters) {
			const real = ['/usr/bin', '/bin'].map((folder) => join(folder, name)).find((path) => existsSync(path))
			if (real) stub(name, `exec ${real} "$@"`)
		}
		// A text ends after a second with all that it started in its process group; functions that call themselves end too.
		writeFileSync(
			this.#driver,
			`i=0
for text; do
	i=$((i + 1))
	mkdir "$OUT/$i"
	cd "$OUT/$i"
	PATH=$STUBS LOG=$OUT/$i.log FUNCNEST=4 /usr/bin/timeout -s KILL 1 /bin/bash --norc --noprofile -c "$text" </dev/null >/dev/null 2>&1
done 2>/dev/null
`,
		)
	}

	/** The argv lists that each of the texts started, in their order. */
	async started(texts: readonly string[]): Promise<string[][][]> {
		const out = join(this.dir, `b${++this.#batches}`)
		mkdirSync(out)
		const env = { PATH: '/usr/bin:/bin', OUT: out, STUBS: this.#bin, HOME: home, LC_ALL: 'C.UTF-8' }
		await new Promise<void>((resolve, reject) =>
			spawn('/bin/bash', ['--norc', this.#driver, ...texts], { env, stdio: 'ignore' })
				.on('error', reject)
				.on('close', () => resolve()),
		)
		// What was sent to the background may still be writing; what loops there for ever ends with its text.
		await new Promise((resolve) => setTimeout(resolve, 60))
		endBelow(out)
		const found = texts.map((_, index) => records(join(out, `${index + 1}.log`)))
		rmSync(out, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
		return found
	}

	/** Reads and runs the texts, two batches at a time. */
	async compare(texts: readonly string[], read = readShell): Promise<Outcome> {
		const outcome: Outcome = { texts: texts.length, started: 0, unsure: 0, misses: [] }
		const size = 100
		let next = 0
		const lane = async () => {
			while (next < texts.length) {
				const batch = texts.slice(next, next + size)
				next += size
				const runs = await this.started(batch)
				for (const [index, text] of batch.entries()) {
					const seen = await read(text, home)
					// A carriage return is asked about whatever the reading says.
					const unsure = seen.broken !== null || seen.doubts.length > 0 || text.includes('\r')
					if (unsure) outcome.unsure++
					outcome.started += runs[index]!.length
					if (unsure) continue
					const patterns = seen.commands.flatMap(({ words, depth }) =>
						words.length > 0 ? [pattern(words, depth > 0)] : [],
					)
					for (const argv of runs[index]!)
						if (!patterns.some((one) => one.test(spelled(argv)))) outcome.misses.push({ text, argv })
				}
			}
		}
		await Promise.all([lane(), lane()])
		return outcome
	}

	close(): void {
		rmSync(this.dir, { recursive: true, force: true })
	}
}

/** Ends the processes that stand in a folder. */
const endBelow = (folder: string): void => {
	for (const pid of readdirSync('/proc'))
		try {
			if (/^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)) process.kill(Number(pid), 'SIGKILL')
		} catch {
			// gone by now, or another user's
		}
}

const records = (path: string): string[][] => {
	if (!existsSync(path)) return []
	const found: string[][] = []
	for (const word of readFileSync(path, 'utf8').split('\0').slice(0, -1)) {
		if (word.startsWith('\u0001=>')) found.push([word.slice(3)])
		else found.at(-1)!.push(word)
	}
	return found
}

/** The parser drops a `\\` before a line's end within $'…', bash keeps it; no rule can mean such a word. */
const spelled = (argv: readonly string[]): string => argv.join('\u0002').replaceAll('\\\n', '')

/** What the words of a read command may be at the run: unknown parts and patterns are any text, also several words or none. */
function pattern(words: readonly string[], inner: boolean): RegExp {
	const [first, ...rest] = words.map((word) => word.replaceAll('\\\n', ''))
	const any = '[^]*'
	const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
	const text = (word: string) =>
		word
			.split(DYNAMIC)
			.map((part) =>
				part
					.split(/[*?[\]{}~]+/)
					.map(literal)
					.join(any),
			)
			.join(any)
	const unknown = (word: string) => word.includes(DYNAMIC) || /[*?[{}~]/.test(word)
	const tail = rest.map((word) => (unknown(word) ? `(?:\\x02?${text(word)})?` : `\\x02${literal(word)}`)).join('')
	// find and xargs append what they find.
	return new RegExp(
		`^(?:[^\\x02]*/)?${text(first!.slice(first!.lastIndexOf('/') + 1))}${tail}${inner ? '(?:\\x02[^]*)?' : ''}$`,
	)
}
