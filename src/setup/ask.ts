// Setup's questions on a terminal: lists to move in and to filter, and plain numbered ones where escape sequences mean nothing.
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { oneLine, visible } from '../engine/index.ts'
import { type Ask, type Choice, SetupCancelled } from '../engine/setup/index.ts'
import { readSecret } from './secret.ts'

export interface Streams {
	stdin: Readable & { setRawMode?(on: boolean): unknown }
	stdout: Writable & { columns?: number }
	/** TERM=dumb: no escape sequence is sent. */
	dumb: boolean
	/** Its abort ends the question like a person who leaves. */
	signal?: AbortSignal
}

/** What is shown comes in part from servers and files: control characters are written out. */
export function terminalAsk(streams: Streams): Ask {
	const say = (text: string) => void streams.stdout.write(`${visible(text)}\n`)
	return streams.dumb ? plainAsk(streams, say) : promptAsk(streams, say)
}

/** A choice as one line that fits. */
const line = ({ name, note }: Choice<unknown>, columns: number): string =>
	oneLine(note ? `${name}  —  ${note}` : name, Math.max(20, columns - 4))

/** Ctrl-C and a closed terminal end every question alike. */
const left = (error: unknown): never => {
	const name = error instanceof Error ? error.name : ''
	if (/^(?:ExitPromptError|AbortPromptError|CancelPromptError|AbortError)$/.test(name)) throw new SetupCancelled('left')
	throw error
}

/** A list this long is worth typing in. */
const filterFrom = 12

function promptAsk(streams: Streams, say: Ask['say']): Ask {
	const context = {
		input: streams.stdin,
		output: streams.stdout as NodeJS.WritableStream,
		...(streams.signal ? { signal: streams.signal } : {}),
	}
	const columns = () => streams.stdout.columns ?? 80
	return {
		say,
		secret: (question) => readSecret(streams, visible(question)),
		async choose(question, choices, initial) {
			const prompts = await import('./prompts.ts')
			const message = visible(question)
			// Values are places in the list: prompts compare and print what they are given.
			const all = choices.map((choice, value) => ({
				value,
				name: line(choice, columns()),
				short: oneLine(choice.name, 60),
			}))
			const at = Math.max(
				0,
				choices.findIndex((one) => one.value === initial),
			)
			const chosen =
				all.length < filterFrom
					? await prompts
							.select({ message, choices: all, default: at, pageSize: filterFrom, loop: false }, context)
							.catch(left)
					: await prompts
							.search(
								{
									message: `${message} (type to filter)`,
									pageSize: 10,
									// The one that is set stands first, so that Enter alone takes it.
									source: (term) => filtered([all[at]!, ...all.filter((_, index) => index !== at)], term),
								},
								context,
							)
							.catch(left)
			return choices[chosen]!.value
		},
		async text(question, { initial, check } = {}) {
			const prompts = await import('./prompts.ts')
			const validate = check ? (text: string) => check(text) ?? true : undefined
			return prompts
				.input(
					{
						message: visible(question),
						...(initial === undefined ? {} : { default: initial }),
						...(validate ? { validate } : {}),
					},
					context,
				)
				.catch(left)
		},
		async confirm(question, initial) {
			const prompts = await import('./prompts.ts')
			return prompts.confirm({ message: visible(question), default: initial }, context).catch(left)
		},
	}
}

/** Every word of the term is somewhere in the line. */
const filtered = <T extends { name: string }>(all: T[], term: string | undefined): T[] => {
	const words = (term ?? '').toLowerCase().split(/\s+/).filter(Boolean)
	return words.length === 0 ? all : all.filter((one) => words.every((word) => one.name.toLowerCase().includes(word)))
}

function plainAsk(streams: Streams, say: Ask['say']): Ask {
	const question = async (text: string): Promise<string> => {
		const rl = createInterface({ input: streams.stdin, output: streams.stdout, terminal: false })
		const ended = new AbortController()
		rl.on('close', () => ended.abort())
		rl.on('SIGINT', () => ended.abort())
		const signal = streams.signal ? AbortSignal.any([ended.signal, streams.signal]) : ended.signal
		try {
			return (await rl.question(`${text} `, { signal })).trim()
		} catch (error) {
			return left(error)
		} finally {
			rl.close()
		}
	}
	return {
		say,
		secret: (text) => readSecret(streams, visible(text)),
		async choose(text, choices, initial) {
			const at = choices.findIndex((one) => one.value === initial)
			say(text)
			for (const [index, choice] of choices.entries()) say(`  ${String(index + 1).padStart(3)}  ${line(choice, 200)}`)
			for (;;) {
				const typed = await question(`Number${at < 0 ? '' : ` [${at + 1}]`}:`)
				const number = typed === '' ? at + 1 : /^\d{1,5}$/.test(typed) ? Number(typed) : 0
				const chosen = choices[number - 1]
				if (chosen) return chosen.value
				say(`A number from 1 to ${choices.length}, please.`)
			}
		},
		async text(text, { initial, check } = {}) {
			for (;;) {
				const typed =
					(await question(`${visible(text)}${initial === undefined ? '' : ` [${initial}]`}`)) || (initial ?? '')
				const wrong = check?.(typed) ?? null
				if (wrong === null) return typed
				say(wrong)
			}
		},
		async confirm(text, initial) {
			const typed = await question(`${visible(text)} (${initial ? 'Y/n' : 'y/N'})`)
			return typed === '' ? initial : /^y(?:es)?$/i.test(typed)
		},
	}
}
