// What every verb shares: how a failure reaches the person, and flags whose value may be left out. Parent of the command classes.
import { Command } from '@oclif/core/command'

interface Thrown extends Error {
	hint?: string
	exitCode?: number
	code?: string
	oclif?: { exit?: number }
	/** What the parser had, on its errors. */
	parse?: unknown
	/** Flags that do not exist. */
	flags?: string[]
}

/**
 * One line on stderr for each kind of failure, never a stack (that is for --debug): exit 1 for what a person must mend and
 * for faults of Garuda, 2 for wrong usage. The process ends by itself, so nothing that was written is cut.
 */
export abstract class BaseCommand extends Command {
	protected override async catch(thrown: Error): Promise<void> {
		// Spares a developer the word that nothing was parsed.
		this.parsed = true
		const error = thrown as Thrown
		if (error.code === 'EEXIT') {
			process.exitCode = error.oclif?.exit ?? 0
			return
		}
		const usage =
			error.exitCode === 2 || error.parse !== undefined || error.oclif?.exit === 2 || /^Parsing --/.test(error.message)
		process.exitCode = usage ? 2 : 1
		if (error.name === 'UserError' || error.name === 'UsageError') return this.tell(error.message, error.hint)
		if (usage) {
			const message = error.message
				.replace(/\s*See more help with --help\s*$/, '')
				.replace(/^Parsing (--\S+)\s+/, '$1: ')
			return this.tell(
				message,
				this.nearestFlag(error.flags) ?? `See: ${this.config.bin} ${(this.id ?? '').replaceAll(':', ' ')} --help`,
			)
		}
		await this.tell(
			`failed by a fault of its own: ${error.message || error.name || 'unknown error'}`,
			'Run it again with --debug and report what the log says, with "garuda --version".',
		)
		if (this.argv.includes('--debug') && error.stack) await this.tell(error.stack)
	}

	/** A verb's text on stdout, resolved when it is written; a reader that left is no failure. Problems go to stderr and make it exit 1. */
	protected async report(text: string, problems: readonly string[] = []): Promise<void> {
		if (text !== '')
			await new Promise<void>((done) => {
				process.stdout.once('error', () => done())
				process.stdout.write(text, () => done())
			})
		if (problems.length > 0) process.exitCode = 1
		for (const problem of problems) await this.tell(problem)
	}

	/** Words on the command line that only together are wrong: exit 2, with the way to the help. */
	protected misused(message: string): never {
		throw Object.assign(new Error(message), { exitCode: 2 })
	}

	/** Resolves when it is written. Text from outside may be in a message, so control characters are shown. */
	private async tell(message: string, hint?: string): Promise<void> {
		const text = `garuda: ${message}\n${hint ? `${hint}\n` : ''}`.replace(
			/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g,
			'\ufffd',
		)
		await new Promise<void>((done) => {
			process.stderr.once('error', () => done())
			process.stderr.write(text, () => done())
		})
	}

	private nearestFlag(wrong: string[] | undefined): string | undefined {
		const typed = wrong?.[0]?.replace(/^--?(no-)?|=.*$/g, '')
		if (!typed) return undefined
		const best = nearest(typed, Object.keys(this.ctor.flags ?? {}))
		return best && `Did you mean --${best}?`
	}
}

/** The name that is at most a few slips away from what was typed, or undefined. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
	const limit = Math.max(1, Math.floor(typed.length / 3))
	let best: { name: string; slips: number } | undefined
	for (const name of names) {
		const slips = name.startsWith(typed) && typed.length > 1 ? 0.5 : distance(typed, name)
		if (slips <= limit && (!best || slips < best.slips)) best = { name, slips }
	}
	return best?.name
}

/** Insertions, deletions, replacements and swaps of neighbours between two short words. */
function distance(a: string, b: string): number {
	const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
	for (let i = 1; i <= a.length; i++) {
		const row = [i]
		for (let j = 1; j <= b.length; j++) {
			const same = a[i - 1] === b[j - 1] ? 0 : 1
			let best = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + same)
			if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
				best = Math.min(best, rows[i - 2]![j - 2]! + 1)
			row.push(best)
		}
		rows.push(row)
	}
	return rows[a.length]![b.length]!
}

/**
 * Arguments for the parser, where some flags may stand without a value (`-p`, `-r`): such a one gets an empty value, and a
 * value that begins with a dash and is plainly text (`-p "- fix it"`) is kept as the value.
 */
export function optionalValues(argv: readonly string[], flags: readonly string[]): string[] {
	const out: string[] = []
	for (let i = 0; i < argv.length; i++) {
		const word = argv[i]!
		if (word === '--') return [...out, ...argv.slice(i)]
		if (!flags.includes(word)) {
			out.push(word)
			continue
		}
		const next = argv[i + 1]
		const isFlag = next !== undefined && /^--?[A-Za-z][\w-]*(=.*)?$/s.test(next)
		const long = word.startsWith('--')
		if (next === undefined || next === '--' || isFlag) out.push(long ? `${word}=` : word, ...(long ? [] : ['']))
		else {
			out.push(word, next)
			i++
		}
	}
	return out
}
