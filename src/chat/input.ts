// The person's side of the plain chat: one line at a time, what is typed during a turn, answers to questions. Used by plain.
import { createInterface, type Interface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { hasHidden, oneLine } from '../engine/index.ts'
import { Keys, Pastes } from './keys.ts'
import type { Output, Stdio } from './stdio.ts'

/** What one wait for the person comes to; `end` is the end of input (Ctrl-D, a closed terminal). */
export type Line = { type: 'line'; text: string } | { type: 'interrupt' } | { type: 'end' }

export interface InputOptions {
	io: Stdio
	out: Output
	/** Keys come raw and the line may be edited in place; else the system's own line editing. */
	terminal: boolean
	complete?: (line: string) => Promise<[string[], string]>
	/** Ctrl-C while nobody waits for a line. */
	onInterrupt(): void
	/** Ctrl-Z. */
	onSuspend?(): void
	/** The terminal is gone or stdin ended. */
	onEnd(): void
	/** A line that was finished during a turn. */
	onQueued?(text: string): void
	/** How long the keys must rest after a question appears before what is typed counts as an answer. */
	guardMs?: number
}

/** Reads stdin for the whole chat. Whoever waits for a line gets it; what comes while nobody waits is kept. */
export class Input {
	private readonly o: InputOptions
	private readonly keys = new Keys()
	private readonly pastes = new Pastes()
	private readonly history: string[] = []
	/** Finished lines, and the beginning of one, typed while nobody waited. */
	private queued: string[] = []
	private ahead = ''
	private ended = false
	private editor: { rl: Interface; feed: PassThrough; ended(): void } | null = null
	/** Who gets typed text now. */
	private sink: (text: string, pasted: boolean) => void
	private interrupt: () => void
	private finish: () => void = () => {}

	constructor(options: InputOptions) {
		this.o = options
		this.sink = this.keep
		this.interrupt = options.onInterrupt
		const { stdin } = options.io
		stdin.on('data', this.read)
		stdin.on('end', () => this.end())
		stdin.on('close', () => this.end())
		stdin.on('error', () => this.end())
		if (stdin.readableEnded || stdin.destroyed) this.end()
	}

	/** Stops listening, so that the process can end. */
	close(): void {
		const { stdin } = this.o.io
		this.closeEditor()
		stdin.removeAllListeners('data')
		stdin.pause()
		const unref = (stdin as { unref?: () => void }).unref
		unref?.call(stdin)
	}

	/** Leaves stdin to another reader of this terminal, until `retake`. */
	release(): void {
		const { stdin } = this.o.io
		stdin.off('data', this.read)
		stdin.pause()
	}

	retake(): void {
		if (this.ended) return
		const { stdin } = this.o.io
		stdin.on('data', this.read)
		stdin.resume()
	}

	/** Ctrl-C that came as a signal: the same as the key. */
	pressInterrupt(): void {
		this.interrupt()
	}

	/** The line being typed is drawn anew, after something else used the screen. */
	redraw(): void {
		this.editor?.rl.prompt(true)
	}

	/** What was queued is given up as lines of their own: it goes back to the beginning of the next line. */
	unqueue(): void {
		if (this.queued.length === 0) return
		this.ahead = [...this.queued, this.ahead].filter((text) => text !== '').join(' ')
		this.queued = []
	}

	/** The next line: one typed ahead, else one typed now. `prefill` stands in it to be edited. */
	async line(prompt: string, prefill = ''): Promise<Line> {
		if (this.ended) return { type: 'end' }
		const next = this.queued.shift()
		if (next !== undefined) {
			this.o.out.line(`${prompt}${oneLine(next)}`)
			return { type: 'line', text: this.pastes.expand(next) }
		}
		this.o.out.flush()
		const begin = prefill === '' ? this.ahead : prefill
		this.ahead = ''
		const line = this.o.terminal ? await this.edited(prompt, begin) : await this.cooked(prompt, begin)
		this.o.out.atLineStart = true
		if (line.type !== 'line') return line
		// A backslash at the end continues on the next line.
		if (line.text.endsWith('\\') && !line.text.endsWith('\\\\')) {
			const more = await this.line('… ')
			return more.type === 'line' ? { type: 'line', text: `${line.text.slice(0, -1)}\n${more.text}` } : more
		}
		return { type: 'line', text: this.pastes.expand(line.text) }
	}

	/**
	 * A line for a question. Text that was typed before, or that goes on without a rest of `guardMs`, is kept for the next
	 * prompt and answers nothing. Ends with `end` when the signal aborts.
	 */
	async answer(prompt: string, signal: AbortSignal): Promise<Line> {
		if (this.ended || signal.aborted) return { type: 'end' }
		await this.rest(signal)
		if (this.ended || signal.aborted) return { type: 'end' }
		this.o.out.write(prompt)
		this.o.out.flush()
		return new Promise<Line>((done) => {
			let text = ''
			const settle = (line: Line) => {
				this.free()
				signal.removeEventListener('abort', stop)
				this.o.out.atLineStart = false
				this.o.out.line('')
				this.o.out.flush()
				done(line)
			}
			const stop = () => settle({ type: 'end' })
			signal.addEventListener('abort', stop, { once: true })
			this.interrupt = () => settle({ type: 'interrupt' })
			this.finish = stop
			const redraw = () => {
				if (!this.o.terminal) return
				this.o.out.write(`\r\u001b[K${prompt}${text}`)
				this.o.out.flush()
			}
			this.sink = (typed, pasted) => {
				if (pasted) {
					// A paste may be a note, never the answer itself.
					if (text.trim() !== '') text += oneLine(typed, 2000)
					return redraw()
				}
				for (const char of stripKeys(typed)) {
					if (char === '\r' || char === '\n') {
						redraw()
						return settle({ type: 'line', text })
					}
					if (char === '\u0004' && text === '') return stop()
					text = edit(text, char)
				}
				redraw()
			}
		})
	}

	// ------------------------------------------------------------ stdin

	private readonly read = (chunk: Buffer | string): void => {
		for (const one of this.keys.feed(chunk)) {
			if (one.type === 'interrupt') this.interrupt()
			else if (one.type === 'suspend') this.o.onSuspend?.()
			else this.sink(one.text, one.type === 'paste')
		}
	}

	/** No more input: whoever waits gets the end. */
	stop(): void {
		this.ended = true
		this.finish()
	}

	private end(): void {
		if (this.ended) return
		this.stop()
		this.o.onEnd()
	}

	/** Nobody waits: typed text is kept. */
	private free(): void {
		this.sink = this.keep
		this.interrupt = this.o.onInterrupt
		this.finish = () => {}
	}

	private readonly keep = (typed: string, pasted: boolean): void => {
		if (pasted) {
			this.ahead += this.pastes.take(typed, plain)
			return
		}
		for (const char of stripKeys(typed)) {
			if (char !== '\r' && char !== '\n') {
				this.ahead = edit(this.ahead, char)
				continue
			}
			if (this.ahead.trim() === '') continue
			this.queued.push(this.ahead)
			this.o.onQueued?.(this.ahead)
			this.ahead = ''
		}
	}

	/** Resolves when no key came for a while. */
	private rest(signal: AbortSignal): Promise<void> {
		const ms = this.o.guardMs ?? 300
		return new Promise((done) => {
			let timer: NodeJS.Timeout
			const finish = () => {
				clearTimeout(timer)
				signal.removeEventListener('abort', finish)
				this.free()
				done()
			}
			const start = () => {
				clearTimeout(timer)
				timer = setTimeout(finish, ms)
			}
			start()
			signal.addEventListener('abort', finish, { once: true })
			this.finish = finish
			this.sink = (typed, pasted) => {
				this.keep(typed, pasted)
				start()
			}
		})
	}

	// ------------------------------------------------------------ lines

	/** The system edits the line and echoes it; it comes whole. */
	private cooked(prompt: string, begin: string): Promise<Line> {
		this.o.out.write(prompt + begin)
		this.o.out.flush()
		return new Promise((done) => {
			let text = begin
			const settle = (line: Line) => {
				this.free()
				done(line)
			}
			this.interrupt = () => settle({ type: 'interrupt' })
			this.finish = () => settle(text.trim() === '' ? { type: 'end' } : { type: 'line', text })
			this.sink = (typed, pasted) => {
				const lines = typed.split(/\r\n?|\n/)
				// Several lines at once: without a terminal's marks that is the best word for a paste.
				if (pasted) return settle({ type: 'line', text: (text + typed).replace(/\n+$/, '') })
				text += lines[0]
				if (lines.length > 1) settle({ type: 'line', text })
			}
		})
	}

	/** Line editing by readline: a fresh one for each line, so that nothing is drawn while a turn writes. */
	private edited(prompt: string, begin: string): Promise<Line> {
		const { io, complete } = this.o
		const feed = new PassThrough()
		// The stream is only a hose for keys; the terminal's raw mode is the chat's.
		const output = io.stdout
		const rl = createInterface({
			input: feed,
			output,
			terminal: true,
			history: [...this.history],
			historySize: 500,
			removeHistoryDuplicates: true,
			tabSize: 4,
			escapeCodeTimeout: 50,
			...(complete
				? {
						completer: (line: string, done: (error: Error | null, found: [string[], string]) => void) => {
							void complete(line).then((found) => done(null, found))
						},
					}
				: {}),
		})
		return new Promise((done) => {
			const settle = (line: Line) => {
				this.free()
				this.closeEditor()
				done(line)
			}
			rl.on('line', (text) => {
				if (text.trim() !== '') {
					this.history.unshift(text)
					this.history.length = Math.min(this.history.length, 500)
				}
				settle({ type: 'line', text })
			})
			// Ctrl-D on an empty line. Of the listeners only this one goes before the close: readline's own take its marks off the terminal.
			const ended = () => settle({ type: 'end' })
			rl.on('close', ended)
			this.editor = { rl, feed, ended }
			this.interrupt = () => {
				const empty = rl.line === ''
				if (empty) return settle({ type: 'interrupt' })
				rl.write(null, { ctrl: true, name: 'e' })
				rl.write(null, { ctrl: true, name: 'u' })
			}
			this.finish = () => settle({ type: 'end' })
			this.sink = (typed, pasted) => {
				if (pasted) rl.write(this.pastes.take(typed, plain))
				else feed.write(typed)
			}
			rl.setPrompt(prompt)
			rl.prompt()
			if (begin !== '') rl.write(this.pastes.take(begin, plain))
		})
	}

	/** Tab again, when a completion came late and the line is still the same. */
	again(line: string): void {
		const rl = this.editor?.rl
		if (rl && rl.line.slice(0, rl.cursor) === line) rl.write(null, { name: 'tab' })
	}

	private closeEditor(): void {
		const editor = this.editor
		if (!editor) return
		this.editor = null
		editor.rl.off('close', editor.ended)
		editor.rl.close()
		editor.feed.destroy()
	}
}

const plain = (text: string): boolean => !hasHidden(text)

/** Cursor keys and other sequences, which mean nothing outside the editor. */
const stripKeys = (typed: string): string => typed.replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?/g, '')

/** One key on a text with no cursor: Backspace, Ctrl-U, Ctrl-W, or a character. */
function edit(text: string, char: string): string {
	if (char === '\u007f' || char === '\b') return [...text].slice(0, -1).join('')
	if (char === '\u0015') return ''
	if (char === '\u0017') return text.replace(/\S+\s*$/, '')
	return char < ' ' && char !== '\t' ? text : text + char
}
